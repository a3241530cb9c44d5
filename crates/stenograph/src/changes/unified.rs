//! Writes changes as `git diff` does. It writes line numbers only where they are known: a hunk without them is for people,
//! and `git apply` ignores it.

use std::fmt::Write as _;

use imara_diff::{Algorithm, Diff, InternedInput};

/// The number of context lines around a change.
const CONTEXT: usize = 3;

/// The contents of a list of hunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunks {
    /// Hunks that a program can apply.
    pub applicable: String,
    /// Hunks for people only.
    pub for_people: String,
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

/// Where two texts begin in their files, and whether they end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    /// The line of the old file at which the old text begins, from 1.
    pub old: Option<usize>,
    /// The line of the new file at which the new text begins.
    pub new: Option<usize>,
    /// What follows.
    pub end: TextEnd,
}

/// What follows a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// The file ends here: a last line without a newline has none in the file either.
    OfFile,
    /// Unknown.
    Unknown,
}

/// The hunks between two texts.
pub(super) fn hunks(old: &str, new: &str, place: TextPosition, out: &mut Hunks) {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let [old, new]: [Vec<&str>; 2] = [old, new].map(|text| text.split_inclusive('\n').collect());
    let changes: Vec<Change> = diff
        .hunks()
        .map(|hunk| Change {
            old: (hunk.before.start as usize, hunk.before.end as usize),
            new: (hunk.after.start as usize, hunk.after.end as usize),
        })
        .collect();
    for group in changes.chunk_by(|a, b| b.old.0 - a.old.1 <= 2 * CONTEXT) {
        Group { changes: group, old: &old, new: &new, place }.write(out);
    }
}

/// A changed run of lines on both sides: start and exclusive end, from 0.
#[derive(Clone, Copy, Debug)]
struct Change {
    old: (usize, usize),
    new: (usize, usize),
}

/// Changes that are close enough to form one hunk.
struct Group<'a> {
    changes: &'a [Change],
    old: &'a [&'a str],
    new: &'a [&'a str],
    place: TextPosition,
}

impl Group<'_> {
    fn write(&self, out: &mut Hunks) {
        let (Some(first), Some(last)) = (self.changes.first(), self.changes.last()) else { return };
        let before = first.old.0.min(CONTEXT);
        let after = (self.old.len() - last.old.1).min(CONTEXT);
        let old = (first.old.0 - before, last.old.1 + after);
        let new = (first.new.0 - before, last.new.1 + after);
        let place = self.place;
        // `git apply` takes a hunk without trailing context for the end of the file.
        let ends = after > 0 || place.end == TextEnd::OfFile;
        let is_exact = place.old.is_some() && place.new.is_some() && ends;
        // A missing number keeps programs from applying an inexact hunk.
        let new_line = place.new.filter(|_| is_exact || place.old.is_none());
        let mut text = format!(
            "@@ -{} +{} @@\n",
            numbers(place.old, old.0, old.1 - old.0),
            numbers(new_line, new.0, new.1 - new.0)
        );
        let mut at = old.0;
        for change in self.changes {
            self.lines(' ', self.old, (at, change.old.0), &mut text);
            self.lines('-', self.old, change.old, &mut text);
            self.lines('+', self.new, change.new, &mut text);
            at = change.old.1;
            out.removed += (change.old.1 - change.old.0) as u64;
            out.added += (change.new.1 - change.new.0) as u64;
        }
        self.lines(' ', self.old, (at, old.1), &mut text);
        if is_exact { &mut out.applicable } else { &mut out.for_people }.push_str(&text);
    }

    fn lines(&self, mark: char, lines: &[&str], (from, to): (usize, usize), out: &mut String) {
        for line in lines.get(from..to).unwrap_or_default() {
            out.push(mark);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push('\n');
                if self.place.end == TextEnd::OfFile {
                    out.push_str("\\ No newline at end of file\n");
                }
            }
        }
    }
}

/// The numbers of a side, as git writes them. An empty side has the number of the line before the change.
fn numbers(start: Option<usize>, from: usize, length: usize) -> String {
    match start {
        None => format!("?,{length}"),
        Some(start) => {
            let line = if length == 0 { (start + from).saturating_sub(1) } else { start + from };
            if length == 1 { line.to_string() } else { format!("{line},{length}") }
        }
    }
}

/// A path as git writes it in the head of a diff.
pub(super) fn quoted(side: &str, path: &str) -> String {
    let is_plain = |char: char| !char.is_control() && char != '"' && char != '\\';
    if path.chars().all(is_plain) {
        return format!("{side}{path}");
    }
    let mut out = format!("\"{side}");
    for char in path.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            char if char.is_control() => {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str, place: TextPosition) -> Hunks {
        let mut out = Hunks::default();
        hunks(old, new, place, &mut out);
        out
    }

    const WHOLE: TextPosition = TextPosition { old: Some(1), new: Some(1), end: TextEnd::OfFile };

    #[test]
    fn hunks_are_spelled_as_git_does() {
        let found = diff("a\nb\nc\nd\ne\nf", "a\nb\nc\nd\nE\nf", WHOLE);
        assert_eq!(found.applicable, "@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+E\n f\n\\ No newline at end of file\n");
        assert_eq!((found.added, found.removed), (1, 1));
        assert_eq!(diff("", "x\n", WHOLE).applicable, "@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn numbers_that_are_not_known_are_not_made_up() {
        let found = diff("a", "b", TextPosition { old: None, new: None, end: TextEnd::Unknown });
        assert_eq!(found.for_people, "@@ -?,1 +?,1 @@\n-a\n+b\n");
        assert_eq!(found.applicable, "");
    }

    #[test]
    fn a_hunk_without_a_line_after_it_cannot_be_applied_in_the_middle_of_a_file() {
        let place = TextPosition { old: Some(7), new: Some(8), end: TextEnd::Unknown };
        assert_eq!(diff("a\nb\n", "a\nc\n", place).for_people, "@@ -7,2 +?,2 @@\n a\n-b\n+c\n");
        let found = diff("a\nb\n", "c\nb\n", place);
        assert_eq!(found.applicable, "@@ -7,2 +8,2 @@\n-a\n+c\n b\n");
    }

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(quoted("a/", "x y.rs"), "a/x y.rs");
        assert_eq!(quoted("a/", "x\"\u{1b}\n"), "\"a/x\\\"\\033\\n\"");
    }
}
