//! The search in a replay: what matches, and how far a running search has come. Letter case counts only if the query has capital letters.

use std::ops::Range;

use stenograph::render::{Block, EventView};

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub text: String,
    chars: Vec<char>,
    is_exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// A search that is still running: a long session is searched in steps, so that keys are read in between.
#[derive(Clone, Copy, Debug)]
pub struct SearchRun {
    /// The place to look at next.
    pub at: usize,
    direction: Direction,
    /// How many places are left, of how many.
    left: usize,
    count: usize,
}

impl SearchRun {
    /// A search that starts beside a place, and ends there after a round; `count` is the number of places.
    pub fn beside(at: Option<usize>, direction: Direction, count: usize) -> SearchRun {
        let run = SearchRun { at: at.unwrap_or(count.saturating_sub(1)), direction, left: count, count };
        run.next_place()
    }

    /// The search after one more place; `None` if every place was looked at.
    pub fn next(self) -> Option<SearchRun> {
        let left = self.left.saturating_sub(1);
        (left > 0).then(|| SearchRun { left, ..self }.next_place())
    }

    fn next_place(self) -> SearchRun {
        let last = self.count.saturating_sub(1);
        let at = match self.direction {
            Direction::Forward if self.at >= last => 0,
            Direction::Forward => self.at + 1,
            Direction::Backward => self.at.checked_sub(1).unwrap_or(last),
        };
        SearchRun { at, ..self }
    }
}

impl SearchQuery {
    pub fn new(text: &str) -> SearchQuery {
        SearchQuery {
            text: text.to_owned(),
            chars: text.chars().collect(),
            is_exact: text.chars().any(char::is_uppercase),
        }
    }

    /// Whether a reader of the whole event would find the query.
    pub fn is_in(&self, view: &EventView) -> bool {
        let has = |text: &str| self.first(text).is_some();
        has(&view.heading)
            || view.remark.as_deref().is_some_and(has)
            || view.blocks.iter().any(|block| match block {
                Block::Markdown(text) | Block::Output(text) | Block::Code { text, .. } => has(text),
                Block::Diff { path, hunks } => has(path) || has(hunks),
                Block::Plan(todos) => todos.iter().any(|todo| has(&todo.text)),
                Block::Blob { media, place, .. } => [media, place].into_iter().flatten().any(|text| has(text)),
            })
    }

    /// Where the query is in a line, from left to right.
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        while let Some(range) = text.get(start..).and_then(|rest| self.first(rest)) {
            let range = start + range.start..start + range.end;
            start = range.end;
            found.push(range);
        }
        found
    }

    fn first(&self, text: &str) -> Option<Range<usize>> {
        if self.is_exact {
            return text.find(&self.text).map(|at| at..at + self.text.len());
        }
        let first = *self.chars.first()?;
        let starts = text.char_indices().filter(|(_, char)| self.is_same(*char, first));
        starts.map(|(at, _)| at).find_map(|at| Some(at..at + self.length_at(text.get(at..)?)?))
    }

    /// The length of the query at the beginning of a text, if it is there.
    fn length_at(&self, text: &str) -> Option<usize> {
        let mut chars = text.chars();
        let mut length = 0;
        for wanted in &self.chars {
            let char = chars.next().filter(|char| self.is_same(*char, *wanted))?;
            length += char.len_utf8();
        }
        Some(length)
    }

    fn is_same(&self, char: char, wanted: char) -> bool {
        char == wanted || char.to_lowercase().eq(wanted.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_match_both_cases_and_capital_letters_only_themselves() {
        let ranges = |query: &str, text: &str| -> Vec<(usize, usize)> {
            SearchQuery::new(query).ranges(text).iter().map(|range| (range.start, range.end)).collect()
        };
        assert_eq!(ranges("ab", "Ab aB x"), [(0, 2), (3, 5)]);
        assert_eq!(ranges("Ab", "Ab aB x"), [(0, 2)]);
        assert_eq!(ranges("über", "ÜBER die"), [(0, 5)]);
        assert_eq!(ranges("aa", "aaaa"), [(0, 2), (2, 4)]);
        assert!(ranges("z", "abc").is_empty());
    }

    #[test]
    fn a_search_looks_at_every_place_once_and_at_its_own_last() {
        let places = |at, direction| {
            let first = SearchRun::beside(at, direction, 4);
            std::iter::successors(Some(first), |run| run.next()).map(|run| run.at).collect::<Vec<_>>()
        };
        assert_eq!(places(Some(1), Direction::Forward), [2, 3, 0, 1]);
        assert_eq!(places(Some(1), Direction::Backward), [0, 3, 2, 1]);
        assert_eq!(places(None, Direction::Forward), [0, 1, 2, 3]);
    }
}
