//! One file through a session: applies one step after the other to its known contents. If a step contradicts them, they are
//! closed and new contents begin.

use super::contents::{Base, Before, FileContents, Fit, Hunk};
use super::file_report::{FileReport, Was};
use super::look;
use super::step::Act;

/// The size limit of the known texts of one file, initial and current. A larger file is data.
const FILE_SIZE_MAX: usize = 8 << 20;

/// How many changes can be undone.
const UNDO_MAX: usize = 8;

/// A tracked file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    /// Its initial path, if it has another now.
    pub from: Option<String>,
    /// The known contents before an unrecorded change.
    pub closed: Vec<FileContents>,
    /// The known contents.
    pub contents: FileContents,
    undo: Vec<FileContents>,
}

/// The result of applying a change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyResult {
    /// It was applied.
    Applied,
    /// It was applied, but an unrecorded change to the file came first.
    AfterUnrecorded,
    /// It was not applied: the change to undo is unknown.
    UndoUnknown,
    /// It was not applied: the file is too large.
    TooLarge,
}

/// Whether the tool can undo its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Keeps,
    None,
}

impl File {
    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.closed.iter().chain(&self.undo).map(FileContents::size).sum::<usize>() + self.contents.size()
    }

    /// Whether no change is known.
    pub fn is_unchanged(&self) -> bool {
        self.from.is_none() && self.closed.is_empty() && self.contents.is_unchanged()
    }

    /// Applies the steps of a call, with what the record also reports.
    pub fn act(&mut self, acts: &[Act], report: Option<&FileReport>, memory: Memory) -> ApplyResult {
        let mut applied = ApplyResult::Applied;
        match report.and_then(|report| report.before.as_ref()) {
            Some(Was::Text(text)) => applied = self.see(text),
            Some(Was::Absent) => self.absent(),
            None => {}
        }
        if memory == Memory::Keeps && !acts.contains(&Act::Undo) {
            self.undo.truncate(UNDO_MAX - 1);
            self.undo.insert(0, self.contents.clone());
        }
        let reported_lines = report.filter(|report| !report.hunks.is_empty() && !acts.iter().any(is_write));
        let fit = match reported_lines {
            Some(report) => self.by_lines(acts, report),
            None => self.all(acts),
        };
        let applied = match fit {
            Fit::Fits => applied,
            Fit::Differs => ApplyResult::AfterUnrecorded,
            Fit::Contradicts if acts.contains(&Act::Undo) => ApplyResult::UndoUnknown,
            Fit::Contradicts => {
                self.close();
                match reported_lines {
                    Some(report) => self.by_lines(acts, report),
                    None => self.all(acts),
                };
                ApplyResult::AfterUnrecorded
            }
        };
        if let Some(after) = report.and_then(|report| report.after.as_ref()) {
            self.see_after(after);
        }
        self.bounded(applied)
    }

    /// Applies the changed lines that a record reports. The report takes precedence over the request, because some tools do
    /// a little more. If the file is only partly known, only the line numbers of the report give the position.
    fn by_lines(&mut self, acts: &[Act], report: &FileReport) -> Fit {
        let is_whole = matches!(self.contents, FileContents::Whole { .. });
        for hunks in spellings(&report.hunks, self.contents.has_tabs() || acts.iter().any(has_tabs)) {
            let is_sure = acts.iter().all(|act| is_in(act, &hunks)) && (!is_whole || self.contents.holds(&hunks));
            let mut next = self.contents.clone();
            if is_sure && next.patch(&hunks) == Fit::Fits {
                self.contents = next;
                return Fit::Fits;
            }
        }
        if report.amended { Fit::Contradicts } else { self.all(acts) }
    }

    /// Applies one step after the other; all of them or none.
    fn all(&mut self, acts: &[Act]) -> Fit {
        let before = (acts.len() > 1).then(|| self.contents.clone());
        for act in acts {
            let fit = self.once(act);
            if fit != Fit::Fits {
                if let (Fit::Contradicts, Some(before)) = (fit, before) {
                    self.contents = before;
                }
                return fit;
            }
        }
        Fit::Fits
    }

    fn once(&mut self, act: &Act) -> Fit {
        match act {
            Act::Write { text, before } => {
                self.contents.write(text.clone(), *before);
                Fit::Fits
            }
            Act::Append(text) => match &mut self.contents {
                FileContents::Whole { now, .. } => {
                    *now = Some(now.take().unwrap_or_default() + text);
                    Fit::Fits
                }
                FileContents::Parts(_) => self.contents.replace("", text, super::contents::Times::Once),
            },
            Act::Replace { old, new, times } => {
                let is_new = old.is_empty() && self.contents == FileContents::default();
                if is_new {
                    self.contents.write(new.clone(), Before::Absent);
                    return Fit::Fits;
                }
                self.contents.replace(old, new, *times)
            }
            Act::Insert { after, text } => self.contents.insert(*after, text),
            Act::Patch(hunks) => self.contents.patch(hunks),
            Act::Delete => {
                self.contents.delete();
                Fit::Fits
            }
            Act::Undo => {
                if self.undo.is_empty() {
                    return Fit::Contradicts;
                }
                self.contents = self.undo.remove(0);
                Fit::Fits
            }
            Act::Cell { label, source } => self.contents.cell(label, source.as_deref()),
            Act::See(text) => self.contents.see(text),
            Act::Look { .. } | Act::Move(_) | Act::Opaque(_) => Fit::Fits,
        }
    }

    /// Records that the whole file was seen.
    pub fn see(&mut self, text: &str) -> ApplyResult {
        let applied = match self.contents.see(text) {
            Fit::Fits => ApplyResult::Applied,
            Fit::Differs => ApplyResult::AfterUnrecorded,
            Fit::Contradicts => {
                self.close();
                self.contents.see(text);
                ApplyResult::AfterUnrecorded
            }
        };
        self.bounded(applied)
    }

    /// Records the contents after a call: they are a result of the call, whatever was known before.
    fn see_after(&mut self, text: &str) {
        match &mut self.contents {
            FileContents::Whole { now, .. } => *now = Some(text.to_owned()),
            FileContents::Parts(_) => {
                self.contents = FileContents::Whole { base: Base::Unknown, now: Some(text.to_owned()) }
            }
        }
    }

    /// Records that some lines were seen.
    pub fn see_lines(&mut self, at: usize, text: &str) -> ApplyResult {
        let applied = match self.contents.see_lines(at, text) {
            Fit::Fits | Fit::Differs => ApplyResult::Applied,
            Fit::Contradicts => {
                self.close();
                self.contents.see_lines(at, text);
                ApplyResult::AfterUnrecorded
            }
        };
        self.bounded(applied)
    }

    /// Records what a tool shows of the file; `all` says whether the whole file was requested.
    pub fn look(&mut self, listing: &str, all: bool) -> ApplyResult {
        match look::numbered(listing) {
            Some(shown) if all && shown.at == 1 && !shown.remark && self.contents.is_now(&shown.text) => {
                ApplyResult::Applied
            }
            Some(shown) if all && shown.at == 1 && !shown.remark => self.see(shown.without_empty_end()),
            Some(shown) => self.see_lines(shown.at, shown.without_empty_end()),
            None => match look::plain(listing).filter(|_| all) {
                Some(text) => self.see(text),
                None => ApplyResult::Applied,
            },
        }
    }

    /// Records that the file does not exist.
    fn absent(&mut self) {
        if self.contents == FileContents::default() {
            self.contents = FileContents::Whole { base: Base::Absent, now: None };
        }
    }

    fn close(&mut self) {
        let closed = std::mem::take(&mut self.contents);
        self.undo.clear();
        if !closed.is_unchanged() {
            self.closed.push(closed);
        }
    }

    fn bounded(&mut self, applied: ApplyResult) -> ApplyResult {
        if self.size() > FILE_SIZE_MAX {
            self.undo.clear();
        }
        if self.size() > FILE_SIZE_MAX {
            *self = File { from: self.from.take(), ..File::default() };
            return ApplyResult::TooLarge;
        }
        applied
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

/// The hunks as reported, and as they are if the tool shows two spaces for each leading tab; the more likely variant first.
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

/// Whether the hunks contain the replaced text and its replacement. Unchanged lines between two hunks may be missing.
fn is_in(act: &Act, hunks: &[Hunk]) -> bool {
    let Act::Replace { old, new, .. } = act else { return true };
    let was = |line: &str| hunks.iter().any(|hunk| hunk.old.contains(line));
    let is = |line: &str| hunks.iter().any(|hunk| hunk.new.contains(line));
    let longest = old.lines().max_by_key(|line| line.trim().len()).unwrap_or_default();
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    was(longest)
        && old_lines.iter().filter(|line| !new_lines.contains(line)).all(|line| was(line))
        && new_lines.iter().filter(|line| !old_lines.contains(line)).all(|line| is(line))
}
