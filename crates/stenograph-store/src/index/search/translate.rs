//! Translates a query for the engine. If the engine cannot express it, the translation is wider, and each hit is checked.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use stenograph::query::{Expr, Field, Is, Phrase, PhraseMatch};
use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery, InvertedIndexRangeQuery, Occur,
    PhrasePrefixQuery, PhraseQuery, Query as EngineQuery, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};
use tantivy::{SegmentReader, Term};

use super::{EntryDetail, SearchRequest, Searcher};
use crate::Error;
use crate::index::catalogue::{DocGroup, OwnedSessionFacts, SessionId};

/// A query translated for the engine.
pub(super) struct Translated {
    pub query: Box<dyn EngineQuery>,
    is_wider: Wider,
    /// How much of a hit the check needs.
    pub depth: EntryDetail,
}

/// Whether a translation matches more than the query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wider {
    No,
    Yes,
}

impl Translated {
    /// Whether hits must be checked, because some may not match.
    pub(super) fn must_check(&self) -> bool {
        self.is_wider == Wider::Yes
    }
}

impl Searcher {
    pub(super) fn translate(&self, request: &SearchRequest<'_>) -> Result<Translated, Error> {
        let expr = request.query.expr();
        let query = self.expr(expr)?;
        let query: Box<dyn EngineQuery> = match request.within {
            Some(folder) if !self.catalogue.are_all_below(folder)? => {
                let inside = self.catalogue.sources_below(folder)?;
                let of_groups = self.of_groups(|doc_group| inside.contains(&doc_group.source))?;
                Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, of_groups)]))
            }
            Some(_) | None => query,
        };
        let depth = if is_of_record(expr) { EntryDetail::Texts } else { EntryDetail::Everything };
        Ok(Translated { query, is_wider: if self.is_wider(expr) { Wider::Yes } else { Wider::No }, depth })
    }

    pub(super) fn facts(&mut self, session: SessionId) -> Result<OwnedSessionFacts, Error> {
        Ok(self.session(session)?.map(OwnedSessionFacts::of).unwrap_or_default())
    }

    fn expr(&self, expr: &Expr) -> Result<Box<dyn EngineQuery>, Error> {
        Ok(match expr {
            Expr::All(parts) => {
                let mut clauses = Vec::new();
                for part in parts {
                    clauses.push(match part {
                        Expr::Not(inner) if !self.is_wider(inner) => (Occur::MustNot, self.expr(inner)?),
                        other => (Occur::Must, self.expr(other)?),
                    });
                }
                if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
                    clauses.push((Occur::Must, Box::new(AllQuery)));
                }
                Box::new(BooleanQuery::new(clauses))
            }
            Expr::Any(parts) => {
                let clauses: Result<Vec<_>, Error> =
                    parts.iter().map(|part| Ok((Occur::Should, self.expr(part)?))).collect();
                Box::new(BooleanQuery::new(clauses?))
            }
            Expr::Not(inner) if self.is_wider(inner) => Box::new(AllQuery),
            Expr::Not(inner) => Box::new(BooleanQuery::new(vec![
                (Occur::Must, Box::new(AllQuery) as Box<dyn EngineQuery>),
                (Occur::MustNot, self.expr(inner)?),
            ])),
            Expr::Phrase(words) => self.words(self.fields.text, words),
            Expr::Pattern(_) => Box::new(AllQuery),
            Expr::Field(field) => self.field(field)?,
        })
    }

    /// A condition filters and does not affect the score.
    fn field(&self, field: &Field) -> Result<Box<dyn EngineQuery>, Error> {
        let tag = |tag: String| -> Box<dyn EngineQuery> {
            Box::new(TermQuery::new(Term::from_field_text(self.fields.tag, &tag), IndexRecordOption::Basic))
        };
        let time = |from: Bound<i64>, to: Bound<i64>| -> Result<Box<dyn EngineQuery>, Error> {
            let term = |bound: Bound<i64>| bound.map(|millis| Term::from_field_i64(self.fields.time, millis));
            let stated: Box<dyn EngineQuery> = Box::new(RangeQuery::new(term(from), term(to)));
            Ok(Box::new(BooleanQuery::union(vec![stated, self.of_sessions(field)?])))
        };
        let query = match field {
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Tag(_)
            | Field::Is(Is::Pinned | Is::Marked) => self.of_sessions(field)?,
            Field::Tool(words) => self.words(self.fields.tool, words),
            Field::File(words) => self.words(self.fields.file, words),
            Field::Model(words) => self.words(self.fields.model, words),
            Field::Branch(words) => self.words(self.fields.branch, words),
            Field::Role(role) => tag(format!("role:{}", role.name())),
            Field::Is(is @ (Is::Error | Is::Kind(_))) => tag(format!("is:{}", is.name())),
            Field::Has(has) => tag(format!("has:{}", has.name())),
            Field::Since(millis) => time(Bound::Included(*millis), Bound::Unbounded)?,
            Field::Until(millis) => time(Bound::Unbounded, Bound::Excluded(*millis))?,
        };
        Ok(Box::new(ConstScoreQuery::new(query, 0.0)))
    }

    /// Events of sessions that match in the catalogue.
    fn of_sessions(&self, field: &Field) -> Result<Box<dyn EngineQuery>, Error> {
        let mut wanted = HashSet::new();
        for (session, facts) in self.catalogue.session_facts()? {
            if field.matches_session(&facts.borrowed()) {
                wanted.insert(session);
            }
        }
        self.of_groups(|doc_group| wanted.contains(&doc_group.session))
    }

    /// Events of some document groups.
    pub(super) fn of_groups(&self, is_wanted: impl Fn(&DocGroup) -> bool) -> Result<Box<dyn EngineQuery>, Error> {
        let all = self.catalogue.all_doc_groups()?;
        let wanted = all.iter().filter(|(_, group)| is_wanted(group)).map(|(number, _)| number).collect();
        Ok(self.of_numbers(wanted))
    }

    /// Events of the document groups with these numbers.
    pub(super) fn of_numbers(&self, wanted: HashSet<u64>) -> Box<dyn EngineQuery> {
        if wanted.is_empty() {
            return Box::new(EmptyQuery);
        }
        let query: Box<dyn EngineQuery> = if wanted.len() <= TERMS_MAX {
            let term = |number: &u64| Term::from_field_u64(self.fields.doc_group, *number);
            Box::new(TermSetQuery::new(wanted.iter().map(term)))
        } else {
            let wanted = Arc::new(wanted);
            let of_segment = move |segment: &SegmentReader| -> tantivy::Result<_> {
                let (column, wanted) = (segment.fast_fields().u64("doc_group")?, Arc::clone(&wanted));
                Ok(move |document: u32| column.first(document).is_some_and(|number| wanted.contains(&number)))
            };
            Box::new(DocPredicateQuery::from(FunctionPredicate::from(of_segment)))
        };
        Box::new(ConstScoreQuery::new(query, 0.0))
    }

    pub(super) fn words(&self, column: Column, words: &Phrase) -> Box<dyn EngineQuery> {
        let term = |word: &String| Term::from_field_text(column, word);
        match (words.words.as_slice(), words.how) {
            ([], _) => Box::new(EmptyQuery),
            ([word], PhraseMatch::Exact) => Box::new(TermQuery::new(term(word), IndexRecordOption::WithFreqs)),
            (phrase, PhraseMatch::Exact) => Box::new(PhraseQuery::new(phrase.iter().map(term).collect())),
            ([word], PhraseMatch::Prefix) => {
                let end = Term::from_field_text(column, &format!("{word}{}", char::MAX));
                Box::new(InvertedIndexRangeQuery::new(Bound::Included(term(word)), Bound::Excluded(end)))
            }
            ([first @ .., last], PhraseMatch::Prefix) => {
                let expansions = self.expansions(column, last);
                if expansions > EXPANSIONS_MAX {
                    let words = |words: &[String], how| self.words(column, &Phrase { words: words.to_vec(), how });
                    let both =
                        vec![words(first, PhraseMatch::Exact), words(std::slice::from_ref(last), PhraseMatch::Prefix)];
                    return Box::new(BooleanQuery::intersection(both));
                }
                let mut query = PhrasePrefixQuery::new(words.words.iter().map(term).collect());
                query.set_max_expansions(expansions.max(1));
                Box::new(query)
            }
            (phrase, PhraseMatch::Fuzzy(distance)) => {
                let near = phrase
                    .iter()
                    .map(|word| -> Box<dyn EngineQuery> { Box::new(FuzzyTermQuery::new(term(word), distance, true)) });
                Box::new(BooleanQuery::intersection(near.collect()))
            }
        }
    }
}

impl Searcher {
    /// Whether the engine matches more than this expression.
    fn is_wider(&self, expr: &Expr) -> bool {
        match expr {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().any(|part| self.is_wider(part)),
            Expr::Not(inner) => self.is_wider(inner),
            Expr::Phrase(words) => self.are_wider(self.fields.text, words),
            Expr::Pattern(_) => true,
            Expr::Field(Field::Tool(words)) => self.are_wider(self.fields.tool, words),
            Expr::Field(Field::File(words)) => self.are_wider(self.fields.file, words),
            Expr::Field(Field::Model(words)) => self.are_wider(self.fields.model, words),
            Expr::Field(Field::Branch(words)) => self.are_wider(self.fields.branch, words),
            Expr::Field(_) => false,
        }
    }

    fn are_wider(&self, column: Column, words: &Phrase) -> bool {
        match (words.words.as_slice(), words.how) {
            ([] | [_], _) | (_, PhraseMatch::Exact) => false,
            (_, PhraseMatch::Fuzzy(_)) => true,
            ([.., last], PhraseMatch::Prefix) => self.expansions(column, last) > EXPANSIONS_MAX,
        }
    }

    /// How many words of a column begin with this prefix, in the segment that has the most; counting stops at the limit. If a
    /// segment cannot be read, the search itself fails.
    fn expansions(&self, column: Column, prefix: &str) -> u32 {
        let end = format!("{prefix}{}", char::MAX);
        let count = |segment: &SegmentReader| {
            let words = segment.inverted_index(column).ok()?;
            let mut found = words.terms().range().ge(prefix.as_bytes()).lt(end.as_bytes()).into_stream().ok()?;
            let mut count = 0;
            while count <= EXPANSIONS_MAX && found.advance() {
                count += 1;
            }
            Some(count)
        };
        self.engine.segment_readers().iter().filter_map(count).max().unwrap_or(0)
    }
}

/// The engine needs about 2 KB for each word that a phrase may end with.
const EXPANSIONS_MAX: u32 = 2048;

/// Beyond this number of document groups, the engine checks the group of each candidate instead of collecting the documents of
/// every group.
const TERMS_MAX: usize = 64;

/// Whether the record alone decides, without the records before it.
fn is_of_record(expr: &Expr) -> bool {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => parts.iter().all(is_of_record),
        Expr::Not(inner) => is_of_record(inner),
        Expr::Phrase(_) | Expr::Pattern(_) => true,
        Expr::Field(field) => match field {
            Field::Tool(_) | Field::File(_) | Field::Model(_) | Field::Branch(_) | Field::Has(_) => false,
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Tag(_)
            | Field::Role(_)
            | Field::Is(_)
            | Field::Since(_)
            | Field::Until(_) => true,
        },
    }
}
