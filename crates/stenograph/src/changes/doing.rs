//! Applies the steps of calls again, file by file, and reports where that is impossible. `file.rs` handles a single file.

use super::Changes;
use super::answer::is_creation;
use super::contents::{Base, Before, FileContents};
use super::file::{ApplyResult, File, Memory};
use super::step::Act;
use super::told::Told;
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
        told: Option<&Told>,
        memory: Memory,
        said: &str,
    ) -> ApplyResult {
        if let [Act::Move(to)] = acts.as_slice() {
            self.rename(path, to.clone());
            return ApplyResult::Followed;
        }
        if !self.files.contains_key(path) && self.files.len() >= FILES_MAX {
            return ApplyResult::TooLarge;
        }
        let file = self.files.entry(path.to_owned()).or_default();
        let before = file.size();
        if let [Act::Write { before, .. }] = acts.as_mut_slice()
            && is_creation(said)
        {
            *before = Before::Absent;
        }
        let came = match acts.as_slice() {
            [Act::Look { all }] => match told.and_then(|told| told.shown.as_ref()) {
                Some(shown) if shown.all => file.see(&shown.text),
                Some(shown) => file.see_lines(shown.at, &shown.text),
                None => file.look(said, *all),
            },
            acts => file.act(acts, told, memory),
        };
        self.held = self.held + file.size() - before;
        if self.held > HELD_SIZE_MAX {
            // Files that were only read are dropped first.
            self.files.retain(|_, file| !file.is_unchanged());
            self.held = self.files.values().map(File::size).sum();
        }
        if self.held > HELD_SIZE_MAX {
            let gone = self.files.remove(path);
            self.held -= gone.map_or(0, |file| file.size());
            return ApplyResult::TooLarge;
        }
        came
    }

    /// Renames a file. It replaces an existing file at the new path.
    fn rename(&mut self, path: &str, to: String) {
        let mut file = self.files.remove(path).unwrap_or_default();
        let origin = file.from.clone().unwrap_or_else(|| path.to_owned());
        if let (Some(target), FileContents::Whole { now: Some(now), .. }) = (self.files.get_mut(&to), &mut file.sheet) {
            target.sheet.write(std::mem::take(now), Before::Unknown);
            file.sheet.delete();
            self.files.insert(path.to_owned(), file);
            return;
        }
        // A file that was created here and then moved was created there.
        let is_new = matches!(file.sheet, FileContents::Whole { base: Base::Absent, .. }) && file.closed.is_empty();
        file.from = Some(origin).filter(|origin| !is_new && *origin != to);
        self.files.insert(to, file);
    }

    pub(super) fn came(&mut self, came: ApplyResult, path: String, what: &str) {
        let why = match came {
            ApplyResult::Followed => return,
            ApplyResult::Elsewhere => UnseenReason::Elsewhere,
            ApplyResult::Untold => UnseenReason::Untold,
            ApplyResult::TooLarge => UnseenReason::Limit,
        };
        self.blind(self.place, Some(path), what, why);
    }

    pub(super) fn blind(&mut self, place: EventPlace, path: Option<String>, what: &str, why: UnseenReason) {
        if self.unseen.len() < UNSEEN_MAX {
            self.unseen.push(Unseen { place, path, what: what.to_owned(), why });
        } else {
            self.unlisted += 1;
        }
    }
}
