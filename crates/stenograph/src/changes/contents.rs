//! What is known of one file: its initial and its current contents. The contents are either whole, or parts with unknown
//! gaps between them that nothing changed. Nothing here knows calls or tools.

use std::ops::Range;

use super::lines;
use super::parts::Parts;

/// The initial contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The file did not exist.
    Absent,
    /// This text.
    Text(String),
    /// Unknown.
    Unknown,
}

/// The known contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FileContents {
    /// All of the current contents; `None` if the file does not exist.
    Whole { base: Base, now: Option<String> },
    /// Some parts of it.
    Parts(Parts),
}

/// Whether a change is possible on the known contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is possible.
    Fits,
    /// The known contents were wrong, but the current contents are known again.
    Differs,
    /// It is impossible: the known contents were wrong. They stay unchanged.
    Contradicts,
}

/// How often a text is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Everywhere,
}

/// Whether a written file may have existed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Unknown.
    Unknown,
    /// It did not exist.
    Absent,
}

/// A change of some lines, as a patch describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The first line, from 1, if it is stated.
    pub at: Option<usize>,
    /// A line somewhere before it, if it is stated.
    pub after: Option<String>,
    /// The old lines, including context.
    pub old: String,
    /// The new lines, including context.
    pub new: String,
}

impl Default for FileContents {
    fn default() -> FileContents {
        FileContents::Parts(Parts::default())
    }
}

impl FileContents {
    /// Its size in bytes.
    pub fn size(&self) -> usize {
        match self {
            FileContents::Whole { base, now } => {
                let base = match base {
                    Base::Text(text) => text.len(),
                    Base::Absent | Base::Unknown => 0,
                };
                base + now.as_ref().map_or(0, String::len)
            }
            FileContents::Parts(parts) => parts.size(),
        }
    }

    /// Whether no change is known.
    pub fn is_unchanged(&self) -> bool {
        match self {
            FileContents::Whole { base: Base::Absent, now } => now.is_none(),
            FileContents::Whole { base: Base::Text(base), now } => now.as_ref() == Some(base),
            FileContents::Whole { base: Base::Unknown, .. } => false,
            FileContents::Parts(parts) => parts.all().iter().all(|part| !part.is_changed()),
        }
    }

    /// Writes the whole text.
    pub fn write(&mut self, text: String, before: Before) {
        match self {
            FileContents::Whole { now, .. } => *now = Some(text),
            FileContents::Parts(parts) => {
                let base = match before {
                    Before::Absent if parts.all().is_empty() => Base::Absent,
                    Before::Absent | Before::Unknown => Base::Unknown,
                };
                *self = FileContents::Whole { base, now: Some(text) };
            }
        }
    }

    /// Deletes the file.
    pub fn delete(&mut self) {
        match self {
            FileContents::Whole { now, .. } => *now = None,
            FileContents::Parts(_) => *self = FileContents::Whole { base: Base::Unknown, now: None },
        }
    }

    /// Records that the whole text was seen.
    pub fn see(&mut self, text: &str) -> Fit {
        match self {
            FileContents::Whole { base, now } => {
                if now.as_deref() == Some(text) {
                    return Fit::Fits;
                }
                // Listings do not show whether the last line has a newline: the more exact source is right.
                let is_same = now.as_deref().is_some_and(|now| bare(now) == bare(text));
                if is_same && now.as_deref() == base.text() {
                    *base = Base::Text(text.to_owned());
                }
                *now = Some(text.to_owned());
                if is_same { Fit::Fits } else { Fit::Differs }
            }
            FileContents::Parts(parts) => match parts.base_of(text) {
                Some(base) => {
                    *self = FileContents::Whole { base: Base::Text(base), now: Some(text.to_owned()) };
                    Fit::Fits
                }
                None => Fit::Contradicts,
            },
        }
    }

    /// Records that some lines were seen, starting at a line counted from 1.
    pub fn see_lines(&mut self, at: usize, text: &str) -> Fit {
        match self {
            FileContents::Whole { now, .. } => {
                let now = now.as_deref().unwrap_or_default();
                let held = lines::range(now, at.saturating_sub(1), lines::count(text)).and_then(|range| now.get(range));
                if held.is_some_and(|held| bare(held) == bare(text)) { Fit::Fits } else { Fit::Contradicts }
            }
            FileContents::Parts(parts) => parts.see(at, text),
        }
    }

    /// Replaces a text.
    pub fn replace(&mut self, old: &str, new: &str, times: Times) -> Fit {
        match self {
            FileContents::Whole { now, .. } => {
                let text = now.as_deref().unwrap_or_default();
                if old.is_empty() {
                    // Replacing an empty text writes a file that is missing or empty.
                    if !text.is_empty() {
                        return Fit::Contradicts;
                    }
                    *now = Some(new.to_owned());
                    return Fit::Fits;
                }
                match replaced(text, old, new, times) {
                    Some(text) => *now = Some(text),
                    None => return Fit::Contradicts,
                }
                Fit::Fits
            }
            FileContents::Parts(parts) => {
                parts.replace(old, new, times);
                Fit::Fits
            }
        }
    }

    /// Inserts lines after a line, from 1; 0 is the beginning.
    pub fn insert(&mut self, after: usize, text: &str) -> Fit {
        match self {
            FileContents::Whole { now, .. } => {
                let held = now.as_deref().unwrap_or_default();
                let mut held = held.to_owned();
                if lines::count(&held) == after && !held.is_empty() && !held.ends_with('\n') {
                    held.push('\n');
                }
                let Some(at) = lines::start(&held, after) else { return Fit::Contradicts };
                *now = Some(lines::spliced(&held, at..at, &ended(text)));
                Fit::Fits
            }
            FileContents::Parts(parts) => {
                parts.insert(after, &ended(text));
                Fit::Fits
            }
        }
    }

    /// Changes lines as a patch describes. The line numbers of all its hunks refer to the file before the patch.
    pub fn patch(&mut self, hunks: &[Hunk]) -> Fit {
        match self {
            FileContents::Whole { now, .. } => match patched(now.as_deref().unwrap_or_default(), hunks) {
                Some(text) => {
                    *now = Some(text);
                    Fit::Fits
                }
                None => Fit::Contradicts,
            },
            FileContents::Parts(parts) => {
                let mut next = parts.clone();
                // Start with the last hunk, so that the numbers of the others stay valid.
                for hunk in hunks.iter().rev() {
                    if next.patch(hunk) == Fit::Contradicts {
                        return Fit::Contradicts;
                    }
                }
                *parts = next;
                Fit::Fits
            }
        }
    }

    /// Whether the lines of all hunks are exactly at their line numbers.
    pub fn holds(&self, hunks: &[Hunk]) -> bool {
        let FileContents::Whole { now: Some(now), .. } = self else { return false };
        hunks.iter().all(|hunk| hunk.at.is_some_and(|at| at_line(now, hunk, at).is_some()))
    }

    /// Whether the contents are complete.
    pub fn is_now(&self, text: &str) -> bool {
        matches!(self, FileContents::Whole { now: Some(now), .. } if now == text)
    }

    /// Whether known lines begin with tabs.
    pub fn has_tabs(&self) -> bool {
        let has = |text: &str| text.contains("\n\t");
        match self {
            FileContents::Whole { now, .. } => now.as_deref().is_some_and(has),
            FileContents::Parts(parts) => parts.all().iter().any(|part| has(&part.now)),
        }
    }

    /// Replaces a named part of a file, such as a cell of a notebook.
    pub fn cell(&mut self, label: &str, text: Option<&str>) -> Fit {
        match self {
            FileContents::Whole { .. } => Fit::Contradicts,
            FileContents::Parts(parts) => {
                parts.label(label, text);
                Fit::Fits
            }
        }
    }
}

impl Base {
    pub fn text(&self) -> Option<&str> {
        match self {
            Base::Text(text) => Some(text),
            Base::Absent | Base::Unknown => None,
        }
    }
}

/// A text without the newline of its last line.
fn bare(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// A text whose last line has a newline.
fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// The text with `new` instead of `old`; `None` if it does not contain `old`.
pub(super) fn replaced(text: &str, old: &str, new: &str, times: Times) -> Option<String> {
    let (count, first) = lines::occurrences(text, old);
    match times {
        _ if old.is_empty() => None,
        _ if count == 0 => {
            // Tools show and accept lines with plain newlines, and restore the file's own.
            let is_foreign = text.contains("\r\n") && !old.contains('\r');
            let foreign = |plain: &str| plain.replace("\r\n", "\n").replace('\n', "\r\n");
            let (old, new) = (foreign(old), foreign(new));
            (is_foreign && text.contains(&old)).then(|| match times {
                Times::Once => text.replacen(&old, &new, 1),
                Times::Everywhere => text.replace(&old, &new),
            })
        }
        Times::Once => Some(lines::spliced(text, first..first + old.len(), new)),
        Times::Everywhere => Some(text.replace(old, new)),
    }
}

/// The text with the hunks applied; `None` if it lacks the lines of one.
fn patched(text: &str, hunks: &[Hunk]) -> Option<String> {
    let mut places: Vec<(Range<usize>, &Hunk)> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        let range = place(text, hunk, from)?;
        from = lines::count(text.get(..range.end)?);
        places.push((range, hunk));
    }
    places.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, hunk) in places {
        out.push_str(text.get(done..range.start)?);
        if !out.is_empty() && !out.ends_with('\n') && !hunk.new.is_empty() {
            out.push('\n');
        }
        // The text determines the newline of its last line: not every list of lines shows it.
        let is_bare = hunk.at.is_some() && range.end == text.len() && !text.ends_with('\n') && hunk.old.ends_with('\n');
        out.push_str(if is_bare { bare(&hunk.new) } else { &hunk.new });
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// The position of a hunk: its line number; otherwise after the line it names and after the hunks before it; otherwise
/// anywhere.
fn place(text: &str, hunk: &Hunk, from: usize) -> Option<Range<usize>> {
    let length = lines::count(&hunk.old);
    if let Some(range) = hunk.at.and_then(|at| at_line(text, hunk, at)) {
        return Some(range);
    }
    let named = hunk.after.as_ref().and_then(|after| lines::find(text, &format!("{after}\n"), from));
    let line = named.as_ref().map_or(from, |named| lines::count(text.get(..named.end).unwrap_or_default()));
    if length == 0 {
        let at = named.map_or(text.len(), |named| named.end);
        return Some(at..at);
    }
    let find = if hunk.at.is_some() { lines::find_exactly } else { lines::find };
    find(text, &hunk.old, line).or_else(|| find(text, &hunk.old, 0))
}

/// The range of a hunk's lines, if they are at this line.
fn at_line(text: &str, hunk: &Hunk, at: usize) -> Option<Range<usize>> {
    let length = lines::count(&hunk.old);
    // A hunk without old lines has the number of the line before it.
    let line = if length == 0 { at } else { at.saturating_sub(1) };
    let range = lines::range(text, line, length)?;
    (bare(text.get(range.clone())?) == bare(&hunk.old)).then_some(range)
}
