//! What is known of one file: what it was at the beginning, and what it is now. A sheet is either whole, or has parts with gaps
//! between them of which nothing is known but that nobody touched them. Nothing here knows calls or tools.

use std::ops::Range;

use super::lines;
use super::parts::Parts;

/// What a file was when it was first met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// It was not there.
    Absent,
    /// This.
    Text(String),
    /// Nothing tells.
    Unknown,
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FileContents {
    /// All of what it is now; `None` is a file that is not there.
    Whole { base: Base, now: Option<String> },
    /// Some parts of it.
    Parts(Parts),
}

/// Whether what happened can have happened to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It can.
    Fits,
    /// It cannot have been as it was known, but what it is now is known again.
    Differs,
    /// It cannot: what is known is not what there was. The sheet is as it was.
    Contradicts,
}

/// How often a text is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Everywhere,
}

/// Whether a file that is written can have been there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing tells.
    Unknown,
    /// It was not there.
    Absent,
}

/// A change of some lines, as patches tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line it begins at, from 1, where that is told.
    pub at: Option<usize>,
    /// A line that stands somewhere before it, where that is told.
    pub after: Option<String>,
    /// The lines that were there, with those that stay.
    pub old: String,
    /// The lines that are there, with those that stay.
    pub new: String,
}

impl Default for FileContents {
    fn default() -> FileContents {
        FileContents::Parts(Parts::default())
    }
}

impl FileContents {
    /// How many bytes it holds.
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

    /// Whether nothing changed that is known.
    pub fn is_unchanged(&self) -> bool {
        match self {
            FileContents::Whole { base: Base::Absent, now } => now.is_none(),
            FileContents::Whole { base: Base::Text(base), now } => now.as_ref() == Some(base),
            FileContents::Whole { base: Base::Unknown, .. } => false,
            FileContents::Parts(parts) => parts.all().iter().all(|part| !part.is_changed()),
        }
    }

    /// The whole text is written.
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

    /// The file goes.
    pub fn delete(&mut self) {
        match self {
            FileContents::Whole { now, .. } => *now = None,
            FileContents::Parts(_) => *self = FileContents::Whole { base: Base::Unknown, now: None },
        }
    }

    /// The whole text is seen as it is.
    pub fn see(&mut self, text: &str) -> Fit {
        match self {
            FileContents::Whole { base, now } => {
                if now.as_deref() == Some(text) {
                    return Fit::Fits;
                }
                // Listings do not tell whether the last line has an end: who says more exactly is right.
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

    /// Some lines are seen as they are, from a line on, from 1.
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

    /// A text is put in place of another.
    pub fn replace(&mut self, old: &str, new: &str, times: Times) -> Fit {
        match self {
            FileContents::Whole { now, .. } => {
                let text = now.as_deref().unwrap_or_default();
                if old.is_empty() {
                    // To put something in place of nothing is to write a file that is not there or empty.
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

    /// Lines are put in after a line, from 1; 0 is the beginning.
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

    /// Lines are changed as a patch says. The numbers of all its hunks count the lines before any of them.
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
                // From the last one on, so that the numbers of the others still hold.
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

    /// Whether the lines of all hunks stand exactly where their numbers say.
    pub fn holds(&self, hunks: &[Hunk]) -> bool {
        let FileContents::Whole { now: Some(now), .. } = self else { return false };
        hunks.iter().all(|hunk| hunk.at.is_some_and(|at| at_line(now, hunk, at).is_some()))
    }

    /// Whether this is all there is.
    pub fn is_now(&self, text: &str) -> bool {
        matches!(self, FileContents::Whole { now: Some(now), .. } if now == text)
    }

    /// Whether lines that are known begin with tabs.
    pub fn has_tabs(&self) -> bool {
        let has = |text: &str| text.contains("\n\t");
        match self {
            FileContents::Whole { now, .. } => now.as_deref().is_some_and(has),
            FileContents::Parts(parts) => parts.all().iter().any(|part| has(&part.now)),
        }
    }

    /// A piece of a file that has pieces of its own, such as the cells of a notebook, is given another text.
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

/// A text without the end of its last line.
fn bare(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// A text whose last line has an end.
fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// The text with `new` in place of `old`; `None` where that does not stand in it.
pub(super) fn replaced(text: &str, old: &str, new: &str, times: Times) -> Option<String> {
    let (count, first) = lines::occurrences(text, old);
    match times {
        _ if old.is_empty() => None,
        _ if count == 0 => {
            // Tools show and take lines with plain ends, and put the file's own back.
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

/// The text with the hunks applied; `None` where the lines of one are not in it.
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
        // The end of the last line is told by the text: not every list of lines tells it.
        let is_bare = hunk.at.is_some() && range.end == text.len() && !text.ends_with('\n') && hunk.old.ends_with('\n');
        out.push_str(if is_bare { bare(&hunk.new) } else { &hunk.new });
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Where a hunk belongs: at its number; else after the line it names, and after the hunks before it; else anywhere.
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

/// Where the lines of a hunk stand, if they stand at this line.
fn at_line(text: &str, hunk: &Hunk, at: usize) -> Option<Range<usize>> {
    let length = lines::count(&hunk.old);
    // A hunk without old lines is numbered by the line before it.
    let line = if length == 0 { at } else { at.saturating_sub(1) };
    let range = lines::range(text, line, length)?;
    (bare(text.get(range.clone())?) == bare(&hunk.old)).then_some(range)
}
