//! Applies the steps of calls again, file by file, and reports where that is impossible. `file.rs` handles a single file.

use super::Changes;
use super::answer::is_creation;
use super::contents::{Base, Before, FileContents};
use super::file::{ApplyResult, File, Memory};
use super::file_report::FileReport;
use super::step::Act;
use super::unseen::{Unseen, UnseenReason};
use crate::run_state::EventPlace;

/// The most files that are tracked.
const FILES_MAX: usize = 10_000;

/// The most bytes of all held texts, initial and current.
const HELD_SIZE_MAX: usize = 256 << 20;

/// The most unseen changes that are listed. The rest are counted.
const UNSEEN_MAX: usize = 10_000;

impl Changes {
    /// Applies the steps of a call to one file.
    pub(super) fn acts(
        &mut self,
        path: &str,
        mut acts: Vec<Act>,
        report: Option<&FileReport>,
        memory: Memory,
        output: &str,
    ) -> ApplyResult {
        if let [Act::Move(to)] = acts.as_slice() {
            self.rename(path, to.clone());
            return ApplyResult::Applied;
        }
        if !self.files.contains_key(path) && self.files.len() >= FILES_MAX {
            return ApplyResult::TooLarge;
        }
        let file = self.files.entry(path.to_owned()).or_default();
        let before = file.size();
        if let [Act::Write { before, .. }] = acts.as_mut_slice()
            && is_creation(output)
        {
            *before = Before::Absent;
        }
        let applied = match acts.as_slice() {
            [Act::Look { all }] => match report.and_then(|report| report.shown.as_ref()) {
                Some(shown) if shown.all => file.see(&shown.text),
                Some(shown) => file.see_lines(shown.at, &shown.text),
                None => file.look(output, *all),
            },
            acts => file.act(acts, report, memory),
        };
        self.held = self.held + file.size() - before;
        if self.held > HELD_SIZE_MAX {
            // Files that were only read are dropped first.
            self.files.retain(|_, file| !file.is_unchanged());
            self.held = self.files.values().map(File::size).sum();
        }
        if self.held > HELD_SIZE_MAX {
            let removed = self.files.remove(path);
            self.held -= removed.map_or(0, |file| file.size());
            return ApplyResult::TooLarge;
        }
        applied
    }

    /// Renames a file. It replaces an existing file at the new path.
    fn rename(&mut self, path: &str, to: String) {
        let mut file = self.files.remove(path).unwrap_or_default();
        let origin = file.from.clone().unwrap_or_else(|| path.to_owned());
        if let (Some(target), FileContents::Whole { now: Some(now), .. }) =
            (self.files.get_mut(&to), &mut file.contents)
        {
            target.contents.write(std::mem::take(now), Before::Unknown);
            file.contents.delete();
            self.files.insert(path.to_owned(), file);
            return;
        }
        // A file that was created here and then moved was created there.
        let is_new = matches!(file.contents, FileContents::Whole { base: Base::Absent, .. }) && file.closed.is_empty();
        file.from = Some(origin).filter(|origin| !is_new && *origin != to);
        self.files.insert(to, file);
    }

    pub(super) fn record_applied(&mut self, applied: ApplyResult, path: String, what: &str) {
        let why = match applied {
            ApplyResult::Applied => return,
            ApplyResult::AfterUnrecorded => UnseenReason::Elsewhere,
            ApplyResult::UndoUnknown => UnseenReason::NotRecorded,
            ApplyResult::TooLarge => UnseenReason::Limit,
        };
        self.add_unseen(self.place, Some(path), what, why);
    }

    pub(super) fn add_unseen(&mut self, place: EventPlace, path: Option<String>, what: &str, why: UnseenReason) {
        if self.unseen.len() < UNSEEN_MAX {
            self.unseen.push(Unseen { place, path, what: what.to_owned(), why });
        } else {
            self.unlisted += 1;
        }
    }
}
