//! Matches sessions against what the user types, fuzzily: every word must occur in the texts of a session, with other characters
//! between its letters. The syntax is that of fzf: 'exact, ^beginning, end$, !not.

use frizbee::{Config, Matcher};
use stenograph_store::index::catalogue::IndexedSession;

/// How many characters of a title, of a first question and of each note are searched.
const TEXT_LENGTH_MAX: usize = 200;

/// Characters of a query with a meaning of their own. A query with one of them may match more when it becomes longer.
const OPERATORS: [char; 5] = ['!', '^', '$', '\'', '\\'];

/// Sessions with their searched texts.
#[derive(Debug, Default)]
pub struct SearchedSessions {
    pub sessions: Vec<IndexedSession>,
    /// The texts, in the order of the sessions.
    texts: Vec<String>,
    /// The last query with its matches: a longer query matches a part of them.
    last: Option<(String, Vec<usize>)>,
}

impl SearchedSessions {
    pub fn new(sessions: Vec<IndexedSession>) -> SearchedSessions {
        SearchedSessions { texts: sessions.iter().map(text).collect(), sessions, last: None }
    }

    /// The number of searched sessions. Sessions that were added later are not searched.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The positions of the sessions that match, best first; among equals, in the order of the sessions.
    pub fn matches(&mut self, query: &str) -> Vec<usize> {
        if query.trim().is_empty() {
            self.last = None;
            return (0..self.texts.len()).collect();
        }
        let narrowed = self.last.take().filter(|(last, _)| query.starts_with(last) && !query.contains(OPERATORS));
        let mut among = narrowed.map_or_else(|| (0..self.texts.len()).collect(), |(_, matches)| matches);
        among.sort_unstable();
        let texts: Vec<&str> = among.iter().filter_map(|at| self.texts.get(*at)).map(String::as_str).collect();
        let found = Matcher::from_query(query, &Config::default()).match_list(&texts);
        let at = |index: u32| among.get(usize::try_from(index).ok()?).copied();
        let found: Vec<usize> = found.iter().filter_map(|found| at(found.index)).collect();
        self.last = Some((query.to_owned(), found.clone()));
        found
    }
}

fn text(session: &IndexedSession) -> String {
    let project = session.project.as_ref().map(|project| project.name.as_str());
    let fields = [
        session.title.as_deref(),
        session.query.as_deref().filter(|query| session.title.as_deref() != Some(query)),
        project,
        Some(session.agent.as_str()),
        session.branch.as_deref(),
        session.model.as_deref(),
        Some(session.name.as_str()),
    ];
    let marks = &session.marks;
    let notes = marks.notes.iter().map(|note| note.text.as_str());
    let marks = session.agent_title.as_deref().into_iter().chain(marks.tags.iter().map(String::as_str)).chain(notes);
    let mut text = String::new();
    for field in fields.into_iter().flatten().chain(marks) {
        text.extend(field.chars().take(TEXT_LENGTH_MAX));
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn texts(titles: &[&str]) -> SearchedSessions {
        let session = |(at, title): (usize, &&str)| {
            let mut session = IndexedSession::bare("agent-one", &format!("id-{at}"), Path::new("/a"));
            session.title = Some((*title).to_owned());
            session.branch = Some(format!("branch-{at}"));
            session
        };
        SearchedSessions::new(titles.iter().enumerate().map(session).collect())
    }

    #[test]
    fn the_best_match_comes_first_and_every_word_must_match() {
        let mut texts = texts(&["fix the lazy parser", "parser: fix flaky test", "Größe der 数据库"]);
        assert_eq!(texts.matches("flaky"), [1]);
        assert_eq!(texts.matches("flaky zzz"), Vec::<usize>::new());
        assert_eq!(texts.matches("数据"), [2]);
        assert_eq!(texts.matches("größe"), [2]);
        assert_eq!(texts.matches("id-1 agent"), [1]);
        assert_eq!(texts.matches("branch-2"), [2]);
        assert_eq!(texts.matches(""), [0, 1, 2]);
        assert_eq!(texts.matches("fix").len(), 2);
    }

    #[test]
    fn a_query_that_becomes_longer_finds_what_it_finds_alone() {
        let titles = ["fix the parser", "fix the flaky parser", "refactor", "!important"];
        for query in ["fix the fl", "!fix", "pa$ !x", "re"] {
            let mut typed = texts(&titles);
            let mut found = Vec::new();
            for (end, char) in query.char_indices() {
                found = typed.matches(&query[..end + char.len_utf8()]);
            }
            assert_eq!(found, texts(&titles).matches(query), "{query}");
        }
    }
}
