//! Whether an entry matches a query: the plain scan, which defines what the index must find. It ranks nothing.

use std::ops::Range;

use super::entry::Entry;
use super::expr::{Expr, Field, Has, Is, Query, TagPattern};
use super::field::{fold, has_in_name};
use super::fuzzy;
use super::words::{Phrase, PhraseMatch, words};
use crate::model::Kind;

/// The properties of an entry's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts<'a> {
    /// The name of its format.
    pub agent: &'a str,
    /// The names of its project: its path, its repository, and its short name.
    pub projects: &'a [String],
    /// Its ids.
    pub sessions: &'a [String],
    /// The time of its file in milliseconds since 1970, if no record of the session states a time.
    pub file_time: Option<i64>,
    /// Whether a person pinned it.
    pub is_pinned: bool,
    /// Whether a person pinned, named, tagged or annotated it.
    pub is_marked: bool,
    /// The tags that people gave it.
    pub tags: &'a [String],
}

impl Query {
    /// Whether an entry of this session matches.
    pub fn matches(&self, entry: &Entry<'_>, session: &SessionFacts<'_>) -> bool {
        self.expr.matches(entry, session)
    }
}

impl Expr {
    /// Whether an entry of this session matches.
    pub fn matches(&self, entry: &Entry<'_>, session: &SessionFacts<'_>) -> bool {
        match self {
            Expr::All(parts) => parts.iter().all(|part| part.matches(entry, session)),
            Expr::Any(parts) => parts.iter().any(|part| part.matches(entry, session)),
            Expr::Not(inner) => !inner.matches(entry, session),
            Expr::Phrase(words) => entry.texts.iter().any(|text| words.is_in(text)),
            Expr::Pattern(pattern) => entry.texts.iter().any(|text| pattern.regex().is_match(text)),
            Expr::Field(field) => field.matches(entry, session),
        }
    }
}

impl Field {
    /// Whether an entry of this session matches.
    pub fn matches(&self, entry: &Entry<'_>, session: &SessionFacts<'_>) -> bool {
        match self {
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Tag(_)
            | Field::Is(Is::Pinned | Is::Marked) => self.matches_session(session),
            Field::Tool(words) => entry.tool.as_deref().is_some_and(|tool| words.is_in(tool)),
            Field::File(words) => entry.files.iter().any(|file| words.is_in(&file.path)),
            Field::Model(words) => entry.model.as_deref().is_some_and(|model| words.is_in(model)),
            Field::Branch(words) => entry.branch.as_deref().is_some_and(|branch| words.is_in(branch)),
            Field::Role(role) => entry.role == Some(*role),
            Field::Is(Is::Error) => entry.error,
            Field::Is(Is::Kind(kind)) => entry.kind == *kind,
            Field::Has(has) => has.is_in(entry),
            Field::Since(ms) => entry.time.or(session.file_time).is_some_and(|time| time >= *ms),
            Field::Until(ms) => entry.time.or(session.file_time).is_some_and(|time| time < *ms),
        }
    }

    /// Whether this is a condition on the session, not on the event: `agent:`, `project:`, `session:`, `tag:`, `is:pinned` and
    /// `is:marked` are.
    pub fn is_of_session(&self) -> bool {
        use Field::{Agent, Project, Session, Tag};
        matches!(self, Agent(_) | Project(_) | Session(_) | Tag(_) | Field::Is(Is::Pinned | Is::Marked))
    }

    /// Whether a session matches. A condition on events does not match a session, except for times if no record states one.
    pub fn matches_session(&self, session: &SessionFacts<'_>) -> bool {
        match self {
            Field::Agent(text) => has_in_name(session.agent, text),
            Field::Project(text) => session.projects.iter().any(|name| has_in_name(name, text)),
            Field::Session(text) => session.sessions.iter().any(|id| fold(id).starts_with(text.as_str())),
            Field::Tag(tag) => session.tags.iter().any(|name| tag.matches(name)),
            Field::Is(Is::Pinned) => session.is_pinned,
            Field::Is(Is::Marked) => session.is_marked,
            Field::Since(ms) => session.file_time.is_some_and(|time| time >= *ms),
            Field::Until(ms) => session.file_time.is_some_and(|time| time < *ms),
            Field::Tool(_)
            | Field::File(_)
            | Field::Model(_)
            | Field::Branch(_)
            | Field::Role(_)
            | Field::Is(Is::Error | Is::Kind(_))
            | Field::Has(_) => false,
        }
    }
}

impl TagPattern {
    /// Whether a tag matches. Case does not count.
    pub fn matches(&self, tag: &str) -> bool {
        let tag = fold(tag);
        if self.is_prefix { tag.starts_with(&self.text) } else { tag == self.text }
    }
}

impl Has {
    /// Whether the entry has it.
    pub fn is_in(self, entry: &Entry<'_>) -> bool {
        match self {
            Has::Thinking => entry.kind == Kind::Thinking,
            Has::Tool => entry.tool.is_some(),
            Has::File => !entry.files.is_empty(),
            Has::Attachment => entry.attachment,
        }
    }
}

impl Phrase {
    /// Whether these words are adjacent somewhere in a text.
    pub fn is_in(&self, text: &str) -> bool {
        let mut found = false;
        self.each_in(text, &mut |_| found = true);
        found
    }

    /// Calls `each` with each place in a text where these words are adjacent. Places may overlap.
    pub(crate) fn each_in(&self, text: &str, each: &mut dyn FnMut(Range<usize>)) {
        let count = self.words.len();
        let Some(last) = 1_u128.checked_shl(u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)) else { return };
        // Bit n is set while the words up to n precede this point; the starts of the last words move along.
        let mut reached = 0_u128;
        let mut starts = vec![0; count];
        words(text, &mut |word| {
            if let Some(start) = starts.get_mut(word.position as usize % count) {
                *start = word.at.start;
            }
            reached = (reached << 1 | 1) & self.places(word.text);
            if reached & last != 0 {
                let first = (word.position as usize + 1).saturating_sub(count);
                let start = starts.get(first % count).copied().unwrap_or(word.at.start);
                each(start..word.at.end);
            }
        });
    }

    /// The positions at which a word may occur, one bit each.
    fn places(&self, word: &str) -> u128 {
        let last = self.words.len().saturating_sub(1);
        let fits = |(at, wanted): (usize, &String)| match self.how {
            PhraseMatch::Prefix if at == last => word.starts_with(wanted.as_str()),
            PhraseMatch::Exact | PhraseMatch::Prefix => word == wanted,
            PhraseMatch::Fuzzy(most) => fuzzy::is_near(wanted, word, most),
        };
        self.words.iter().enumerate().fold(0, |places, (at, wanted)| places | u128::from(fits((at, wanted))) << at)
    }
}

#[cfg(test)]
mod tests;
