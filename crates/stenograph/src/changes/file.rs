//! One file through a session: what is done to it, one thing after the other, on what is known of it. Where what is known cannot be
//! what there was, what was known so far is closed and something new begins.

use super::look;
use super::sheet::{Base, Before, Fit, Sheet};
use super::step::Act;
use super::told::{Told, Was};

/// How large the known texts of one file may be, both as it was and as it is. A larger file is data.
const FILE_SIZE_MAX: usize = 8 << 20;

/// How often something can be taken back.
const UNDO_MAX: usize = 8;

/// A file that is followed.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    /// The path it had at the beginning, where it has another now.
    pub from: Option<String>,
    /// What was known before something that is not recorded happened.
    pub closed: Vec<Sheet>,
    /// What is known.
    pub sheet: Sheet,
    undo: Vec<Sheet>,
}

/// What came of something that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It is followed.
    Followed,
    /// It is followed, but something that is not recorded changed the file before.
    Elsewhere,
    /// It is not followed: there is nothing to take back that is known.
    Untold,
    /// It is not followed: there is too much of it.
    TooLarge,
}

/// Whether the tool that acts can take back what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Keeps,
    None,
}

impl File {
    /// How many bytes are held.
    pub fn size(&self) -> usize {
        self.closed.iter().chain(&self.undo).map(Sheet::size).sum::<usize>() + self.sheet.size()
    }

    /// Whether nothing is known to have changed.
    pub fn is_unchanged(&self) -> bool {
        self.from.is_none() && self.closed.is_empty() && self.sheet.is_unchanged()
    }

    /// Does it, with what the record tells beside it.
    pub fn act(&mut self, act: &Act, told: Option<&Told>, memory: Memory) -> Came {
        let mut came = Came::Followed;
        match told.and_then(|told| told.before.as_ref()) {
            Some(Was::Text(text)) => came = self.see(text),
            Some(Was::Absent) => self.absent(),
            None => {}
        }
        if memory == Memory::Keeps && !matches!(act, Act::Look { .. } | Act::Undo) {
            self.undo.truncate(UNDO_MAX - 1);
            self.undo.insert(0, self.sheet.clone());
        }
        let hunks = told.map(|told| told.hunks.as_slice()).unwrap_or_default();
        let is_amended = told.is_some_and(|told| told.amended);
        let is_whole = matches!(self.sheet, Sheet::Whole { .. });
        // What the tool says it did counts for more than what it was to do: some do a little more. And only the numbers of the lines
        // tell where in a file it was of which not all is known.
        let by_lines = !hunks.is_empty()
            && !matches!(act, Act::Write { .. })
            && (is_amended || !is_whole || self.sheet.holds(hunks));
        let fit = if by_lines { self.sheet.patch(hunks) } else { self.once(act) };
        let came = match fit {
            Fit::Fits => came,
            Fit::Differs => Came::Elsewhere,
            Fit::Contradicts if !hunks.is_empty() && self.sheet.patch(hunks) == Fit::Fits => came,
            Fit::Contradicts if *act == Act::Undo => Came::Untold,
            Fit::Contradicts => {
                self.close();
                if hunks.is_empty() {
                    self.once(act);
                } else {
                    self.sheet.patch(hunks);
                }
                Came::Elsewhere
            }
        };
        if let Some(after) = told.and_then(|told| told.after.as_ref()) {
            self.see_after(after);
        }
        self.bounded(came)
    }

    fn once(&mut self, act: &Act) -> Fit {
        match act {
            Act::Write { text, before } => {
                self.sheet.write(text.clone(), *before);
                Fit::Fits
            }
            Act::Append(text) => match &mut self.sheet {
                Sheet::Whole { now, .. } => {
                    *now = Some(now.take().unwrap_or_default() + text);
                    Fit::Fits
                }
                Sheet::Parts(_) => self.sheet.replace("", text, super::sheet::Times::Once),
            },
            Act::Replace { old, new, times } => {
                let is_new = old.is_empty() && self.sheet == Sheet::default();
                if is_new {
                    self.sheet.write(new.clone(), Before::Absent);
                    return Fit::Fits;
                }
                self.sheet.replace(old, new, *times)
            }
            Act::Insert { after, text } => self.sheet.insert(*after, text),
            Act::Patch(hunks) => self.sheet.patch(hunks),
            Act::Delete => {
                self.sheet.delete();
                Fit::Fits
            }
            Act::Undo => {
                if self.undo.is_empty() {
                    return Fit::Contradicts;
                }
                self.sheet = self.undo.remove(0);
                Fit::Fits
            }
            Act::Cell { label, source } => self.sheet.cell(label, source.as_deref()),
            Act::See(text) => self.sheet.see(text),
            Act::Look { .. } | Act::Move(_) | Act::Blind(_) => Fit::Fits,
        }
    }

    /// All of it is seen.
    pub fn see(&mut self, text: &str) -> Came {
        let came = match self.sheet.see(text) {
            Fit::Fits => Came::Followed,
            Fit::Differs => Came::Elsewhere,
            Fit::Contradicts => {
                self.close();
                self.sheet.see(text);
                Came::Elsewhere
            }
        };
        self.bounded(came)
    }

    /// What a call left is seen: whatever is known of it before, this came of the call.
    fn see_after(&mut self, text: &str) {
        match &mut self.sheet {
            Sheet::Whole { now, .. } => *now = Some(text.to_owned()),
            Sheet::Parts(_) => self.sheet = Sheet::Whole { base: Base::Unknown, now: Some(text.to_owned()) },
        }
    }

    /// Some lines of it are seen.
    pub fn see_lines(&mut self, at: usize, text: &str) -> Came {
        let came = match self.sheet.see_lines(at, text) {
            Fit::Fits | Fit::Differs => Came::Followed,
            Fit::Contradicts => {
                self.close();
                self.sheet.see_lines(at, text);
                Came::Elsewhere
            }
        };
        self.bounded(came)
    }

    /// What a tool shows of it is seen; whether all of it was asked for.
    pub fn look(&mut self, listing: &str, all: bool) -> Came {
        match look::numbered(listing) {
            Some(shown) if all && shown.at == 1 && !shown.remark => self.see(&shown.text),
            Some(shown) => self.see_lines(shown.at, &shown.text),
            None => match look::plain(listing).filter(|_| all) {
                Some(text) => self.see(text),
                None => Came::Followed,
            },
        }
    }

    /// It is known not to be there.
    fn absent(&mut self) {
        if self.sheet == Sheet::default() {
            self.sheet = Sheet::Whole { base: Base::Absent, now: None };
        }
    }

    fn close(&mut self) {
        let closed = std::mem::take(&mut self.sheet);
        self.undo.clear();
        if !closed.is_unchanged() {
            self.closed.push(closed);
        }
    }

    fn bounded(&mut self, came: Came) -> Came {
        if self.size() > FILE_SIZE_MAX {
            self.undo.clear();
        }
        if self.size() > FILE_SIZE_MAX {
            *self = File { from: self.from.take(), ..File::default() };
            return Came::TooLarge;
        }
        came
    }
}
