//! One file through a session: what is done to it, one thing after the other, on what is known of it. Where what is known cannot be
//! what there was, what was known so far is closed and something new begins.

use super::contents::{Base, Before, FileContents, Fit, Hunk};
use super::look;
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
    pub closed: Vec<FileContents>,
    /// What is known.
    pub sheet: FileContents,
    undo: Vec<FileContents>,
}

/// The result of applying a change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyResult {
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
        self.closed.iter().chain(&self.undo).map(FileContents::size).sum::<usize>() + self.sheet.size()
    }

    /// Whether nothing is known to have changed.
    pub fn is_unchanged(&self) -> bool {
        self.from.is_none() && self.closed.is_empty() && self.sheet.is_unchanged()
    }

    /// Does what a call did, with what the record tells beside it.
    pub fn act(&mut self, acts: &[Act], told: Option<&Told>, memory: Memory) -> ApplyResult {
        let mut came = ApplyResult::Followed;
        match told.and_then(|told| told.before.as_ref()) {
            Some(Was::Text(text)) => came = self.see(text),
            Some(Was::Absent) => self.absent(),
            None => {}
        }
        if memory == Memory::Keeps && !acts.contains(&Act::Undo) {
            self.undo.truncate(UNDO_MAX - 1);
            self.undo.insert(0, self.sheet.clone());
        }
        let told_by_lines = told.filter(|told| !told.hunks.is_empty() && !acts.iter().any(is_write));
        let fit = match told_by_lines {
            Some(told) => self.by_lines(acts, told),
            None => self.all(acts),
        };
        let came = match fit {
            Fit::Fits => came,
            Fit::Differs => ApplyResult::Elsewhere,
            Fit::Contradicts if acts.contains(&Act::Undo) => ApplyResult::Untold,
            Fit::Contradicts => {
                self.close();
                match told_by_lines {
                    Some(told) => self.by_lines(acts, told),
                    None => self.all(acts),
                };
                ApplyResult::Elsewhere
            }
        };
        if let Some(after) = told.and_then(|told| told.after.as_ref()) {
            self.see_after(after);
        }
        self.bounded(came)
    }

    /// Does what a record tells by its lines. What the tool says it did counts for more than what it was to do: some do a little more.
    /// And only the numbers of the lines tell where in a file it was of which not all is known.
    fn by_lines(&mut self, acts: &[Act], told: &Told) -> Fit {
        let is_whole = matches!(self.sheet, FileContents::Whole { .. });
        for hunks in spellings(&told.hunks, self.sheet.has_tabs() || acts.iter().any(has_tabs)) {
            let is_sure = acts.iter().all(|act| is_in(act, &hunks)) && (!is_whole || self.sheet.holds(&hunks));
            let mut next = self.sheet.clone();
            if is_sure && next.patch(&hunks) == Fit::Fits {
                self.sheet = next;
                return Fit::Fits;
            }
        }
        if told.amended { Fit::Contradicts } else { self.all(acts) }
    }

    /// Does one thing after the other; all of them or none.
    fn all(&mut self, acts: &[Act]) -> Fit {
        let before = (acts.len() > 1).then(|| self.sheet.clone());
        for act in acts {
            let fit = self.once(act);
            if fit != Fit::Fits {
                if let (Fit::Contradicts, Some(before)) = (fit, before) {
                    self.sheet = before;
                }
                return fit;
            }
        }
        Fit::Fits
    }

    fn once(&mut self, act: &Act) -> Fit {
        match act {
            Act::Write { text, before } => {
                self.sheet.write(text.clone(), *before);
                Fit::Fits
            }
            Act::Append(text) => match &mut self.sheet {
                FileContents::Whole { now, .. } => {
                    *now = Some(now.take().unwrap_or_default() + text);
                    Fit::Fits
                }
                FileContents::Parts(_) => self.sheet.replace("", text, super::contents::Times::Once),
            },
            Act::Replace { old, new, times } => {
                let is_new = old.is_empty() && self.sheet == FileContents::default();
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
            Act::Look { .. } | Act::Move(_) | Act::Opaque(_) => Fit::Fits,
        }
    }

    /// All of it is seen.
    pub fn see(&mut self, text: &str) -> ApplyResult {
        let came = match self.sheet.see(text) {
            Fit::Fits => ApplyResult::Followed,
            Fit::Differs => ApplyResult::Elsewhere,
            Fit::Contradicts => {
                self.close();
                self.sheet.see(text);
                ApplyResult::Elsewhere
            }
        };
        self.bounded(came)
    }

    /// What a call left is seen: whatever is known of it before, this came of the call.
    fn see_after(&mut self, text: &str) {
        match &mut self.sheet {
            FileContents::Whole { now, .. } => *now = Some(text.to_owned()),
            FileContents::Parts(_) => {
                self.sheet = FileContents::Whole { base: Base::Unknown, now: Some(text.to_owned()) }
            }
        }
    }

    /// Some lines of it are seen.
    pub fn see_lines(&mut self, at: usize, text: &str) -> ApplyResult {
        let came = match self.sheet.see_lines(at, text) {
            Fit::Fits | Fit::Differs => ApplyResult::Followed,
            Fit::Contradicts => {
                self.close();
                self.sheet.see_lines(at, text);
                ApplyResult::Elsewhere
            }
        };
        self.bounded(came)
    }

    /// What a tool shows of it is seen; whether all of it was asked for.
    pub fn look(&mut self, listing: &str, all: bool) -> ApplyResult {
        match look::numbered(listing) {
            Some(shown) if all && shown.at == 1 && !shown.remark && self.sheet.is_now(&shown.text) => {
                ApplyResult::Followed
            }
            Some(shown) if all && shown.at == 1 && !shown.remark => self.see(shown.without_nothing()),
            Some(shown) => self.see_lines(shown.at, shown.without_nothing()),
            None => match look::plain(listing).filter(|_| all) {
                Some(text) => self.see(text),
                None => ApplyResult::Followed,
            },
        }
    }

    /// It is known not to be there.
    fn absent(&mut self) {
        if self.sheet == FileContents::default() {
            self.sheet = FileContents::Whole { base: Base::Absent, now: None };
        }
    }

    fn close(&mut self) {
        let closed = std::mem::take(&mut self.sheet);
        self.undo.clear();
        if !closed.is_unchanged() {
            self.closed.push(closed);
        }
    }

    fn bounded(&mut self, came: ApplyResult) -> ApplyResult {
        if self.size() > FILE_SIZE_MAX {
            self.undo.clear();
        }
        if self.size() > FILE_SIZE_MAX {
            *self = File { from: self.from.take(), ..File::default() };
            return ApplyResult::TooLarge;
        }
        came
    }
}

fn is_write(act: &Act) -> bool {
    matches!(act, Act::Write { .. })
}

fn has_tabs(act: &Act) -> bool {
    match act {
        Act::Replace { old, new, .. } => [old, new].iter().any(|text| text.starts_with('\t') || text.contains("\n\t")),
        _ => false,
    }
}

/// The hunks as they are told, and as they are where a tool shows two blanks for each tab that a line begins with; what is more
/// likely first.
fn spellings(hunks: &[Hunk], is_tabbed: bool) -> [Vec<Hunk>; 2] {
    let tabs = |text: &str| -> String {
        let line = |line: &str| {
            let rest = line.trim_start_matches(' ');
            let blanks = line.len() - rest.len();
            format!("{}{}{rest}", "\t".repeat(blanks / 2), " ".repeat(blanks % 2))
        };
        text.split_inclusive('\n').map(line).collect()
    };
    let other = |hunk: &Hunk| Hunk { old: tabs(&hunk.old), new: tabs(&hunk.new), ..hunk.clone() };
    let mut both = [hunks.to_vec(), hunks.iter().map(other).collect()];
    if is_tabbed {
        both.reverse();
    }
    both
}

/// Whether what is to be replaced, and what takes its place, stands in the hunks. Lines that stay may be left out between two of them.
fn is_in(act: &Act, hunks: &[Hunk]) -> bool {
    let Act::Replace { old, new, .. } = act else { return true };
    let was = |line: &str| hunks.iter().any(|hunk| hunk.old.contains(line));
    let is = |line: &str| hunks.iter().any(|hunk| hunk.new.contains(line));
    let longest = old.lines().max_by_key(|line| line.trim().len()).unwrap_or_default();
    let (gone, come): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    was(longest)
        && gone.iter().filter(|line| !come.contains(line)).all(|line| was(line))
        && come.iter().filter(|line| !gone.contains(line)).all(|line| is(line))
}
