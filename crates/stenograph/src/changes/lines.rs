//! Texts as lines: their number, their offsets, and the position of a run of lines. Nothing here knows what a text is for.

/// The number of lines of a text. A last line without a newline counts.
pub(super) fn count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// The offset of a line, from 0. The line after the last one begins at the end, if the last one has a newline.
pub(super) fn start(text: &str, line: usize) -> Option<usize> {
    if line == 0 {
        return Some(0);
    }
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(line - 1).map(|newline| newline + 1)
}

/// The range of `length` lines from `line`, if there are that many.
pub(super) fn range(text: &str, line: usize, length: usize) -> Option<std::ops::Range<usize>> {
    let from = start(text, line)?;
    let rest = text.get(from..)?;
    let size: usize = rest.split_inclusive('\n').take(length).map(str::len).sum();
    (count(rest.get(..size)?) == length).then_some(from..from + size)
}

/// How exactly lines must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eye {
    /// In every character.
    Sharp,
    /// Except for trailing white space.
    Ends,
    /// Except for leading and trailing white space.
    Around,
}

impl Eye {
    fn sees(self, a: &str, b: &str) -> bool {
        match self {
            Eye::Sharp => a.trim_end_matches('\n') == b.trim_end_matches('\n'),
            Eye::Ends => a.trim_end() == b.trim_end(),
            Eye::Around => a.trim() == b.trim(),
        }
    }
}

/// The position of these lines in a text, starting at a line: exact, otherwise ignoring white space, as tools that apply
/// patches search.
pub(super) fn find(text: &str, lines: &str, from: usize) -> Option<std::ops::Range<usize>> {
    [Eye::Sharp, Eye::Ends, Eye::Around].into_iter().find_map(|eye| seen(text, lines, from, eye))
}

/// The exact position of these lines in a text, starting at a line.
pub(super) fn find_exactly(text: &str, lines: &str, from: usize) -> Option<std::ops::Range<usize>> {
    seen(text, lines, from, Eye::Sharp)
}

fn seen(text: &str, lines: &str, from: usize, eye: Eye) -> Option<std::ops::Range<usize>> {
    let sought: Vec<&str> = lines.split_inclusive('\n').collect();
    let held: Vec<&str> = text.split_inclusive('\n').collect();
    let first = sought.first()?;
    let at = (from..held.len()).find(|at| {
        held.get(*at).is_some_and(|line| eye.sees(line, first))
            && held
                .get(*at..*at + sought.len())
                .is_some_and(|run| run.iter().zip(&sought).all(|(held, sought)| eye.sees(held, sought)))
    })?;
    let offset: usize = held.iter().take(at).map(|line| line.len()).sum();
    let size: usize = held.iter().skip(at).take(sought.len()).map(|line| line.len()).sum();
    Some(offset..offset + size)
}

/// The number of occurrences of a text in another, without overlaps, and the first one. An empty text has none.
pub(super) fn occurrences(text: &str, sought: &str) -> (usize, usize) {
    if sought.is_empty() {
        return (0, 0);
    }
    let mut places = memchr::memmem::find_iter(text.as_bytes(), sought.as_bytes());
    let Some(first) = places.next() else { return (0, 0) };
    (1 + places.count(), first)
}

/// The text with a range replaced.
pub(super) fn spliced(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    [before, new, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_with_or_without_a_last_end() {
        assert_eq!([count(""), count("a"), count("a\n"), count("a\nb")], [0, 1, 1, 2]);
        assert_eq!(start("a\nb", 1), Some(2));
        assert_eq!(start("a\n", 1), Some(2));
        assert_eq!(start("a", 1), None);
        assert_eq!(range("a\nb\nc", 1, 2), Some(2..5));
        assert_eq!(range("a\nb\nc", 1, 3), None);
        assert_eq!(range("a\n", 1, 0), Some(2..2));
    }

    #[test]
    fn lines_are_found_exactly_before_they_are_found_roughly() {
        assert_eq!(find(" b\nb\n", "b\n", 0), Some(3..5));
        assert_eq!(find("a\n b \nc", "b\nc\n", 0), Some(2..7));
        assert_eq!(find("b\na\n", "b\n", 1), None);
    }

    #[test]
    fn an_empty_text_does_not_occur() {
        assert_eq!(occurrences("aaa", "aa"), (1, 0));
        assert_eq!(occurrences("abab", "b"), (2, 1));
        assert_eq!(occurrences("abab", ""), (0, 0));
    }
}
