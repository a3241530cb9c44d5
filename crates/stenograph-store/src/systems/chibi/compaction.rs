//! Compacting a context: which entries of its window a summary takes the place of, and bringing them back. How entries are put
//! aside without losing any is `window.rs`'s part; what the summary says is the caller's.

use std::collections::HashSet;
use std::path::Path;

use stenograph::edit::compact::{Aside, Keep, aside};
use stenograph::edit::tokens::Tokenizer;
use stenograph::formats::chibi::Chibi;
use stenograph::model::Event;
use stenograph::read;

use super::markdown;
use super::window::{Changed, Place, Undo, Window, spoken};
use crate::error::{Error, Problem};
use crate::files::{Files, cut_off};
use crate::layouts::chibi::NAME;
use crate::layouts::chibi::entry::{self, Anchor, Entry};
use crate::layouts::chibi::transcript::Transcript;
use crate::undo::{self, Undone};

/// What a compaction of a window would put aside.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What the window says.
    pub events: Vec<Event<'static>>,
    /// What of it goes.
    pub aside: Aside,
    places: Vec<Place>,
}

impl Choice {
    /// The format that the events come from.
    pub fn origin(&self) -> &'static str {
        NAME
    }
}

impl Window {
    /// Decides which entries go. `None` when there is nothing that a summary could take the place of.
    pub fn choose(&self, keep: Keep, tokenizer: &Tokenizer<'_>) -> Option<Choice> {
        let all: Vec<&Entry> = self.entries.iter().collect();
        let events = read::all(&Chibi, &entry::lines(&all)).events;
        let aside = aside(&events, keep, tokenizer)?;
        let entry_of = |event: &Event<'_>| event.at.and_then(|at| usize::try_from(at.line).ok()?.checked_sub(1));
        let cut = events.get(aside.kept_from).map_or(Some(all.len()), entry_of)?;
        let goes: HashSet<usize> =
            aside.goes.iter().filter_map(|number| events.get(*number)).filter_map(entry_of).collect();
        let place = |(at, entry): (usize, &&Entry)| {
            // A window begins with one anchor, and it gets a new one.
            let goes = goes.contains(&at) || entry.is_anchor();
            if at < cut && goes { Place::Aside } else { Place::Window }
        };
        let places = all.iter().enumerate().map(place).collect();
        Some(Choice { events, aside, places })
    }

    /// Puts the summary in the place of what was chosen.
    pub fn compact(self, choice: &Choice, summary: &str) -> Result<Changed, Error> {
        self.change(&Anchor::Compaction(summary.to_owned()), &choice.places, Undo::Kept)
    }

    /// Keeps the window as it is beside it, before these entries take its place.
    pub(super) fn keep_for_undo(&self, window: &[&Entry]) -> Result<(), Error> {
        let path = self.context.window();
        let before = self.site.files.read(&path, 0).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        undo::keep_bytes(&path, &before, &entry::lines(window), "compact").map(drop)
    }

    /// Brings back what the last compaction put aside, into its old places, and counts it as archived no more. What was said since
    /// stays at the end. Where the window was written anew since, or what was kept of it is gone, the archive says what went.
    /// `None` when there is nothing to undo.
    pub fn undo_compaction(mut self) -> Result<Option<Changed>, Error> {
        self.write_rebuilt()?;
        let path = self.context.window();
        let files = self.site.files.clone();
        let files = files.as_ref();
        if let Transcript::Archive(archive) = Transcript::of(&self.context.folder) {
            // A crash on the way back may have left entries in both.
            take_back(files, &archive, &self.entries)?;
        }
        match undo::undo(&path)? {
            Undone::Restored { .. } => {}
            // A compaction that never came to its end: the one before it is the last one.
            Undone::AsItWas => return self.undo_compaction(),
            Undone::Nothing if self.lacks_anchor()? => return self.anchor_anew().map(Some),
            Undone::Nothing | Undone::Changed | Undone::Damaged { .. } => return self.bring_back(),
        }
        let before = std::mem::replace(&mut self.entries, entry::all(files, &path)?);
        let was: HashSet<(u64, u64)> = before.iter().map(Entry::identity).collect();
        let back: Vec<&Entry> = self.entries.iter().filter(|entry| !was.contains(&entry.identity())).collect();
        let (archived, transcript) = (back.len(), Transcript::of(&self.context.folder));
        markdown::take_back(files, &self.context.markdown(), &spoken(&back))?;
        let mut changed = match &transcript {
            Transcript::Archive(archive) => {
                take_back(files, archive, &self.entries)?;
                let anchor = self.entries.first().filter(|entry| entry.is_anchor()).cloned();
                let (entries, transcript, warnings) = (self.entries.len(), archive.clone(), self.warnings);
                Changed { archived, entries, anchor, transcript, warnings }
            }
            // A transcript is only ever added to: an anchor says what the window holds again.
            Transcript::Single(_) | Transcript::Folder(_) => self.anchor_anew()?,
        };
        changed.archived = archived;
        Ok(Some(changed))
    }

    /// Whether a transcript ends with a compaction of which the window knows nothing: on the way back the last step is missing.
    fn lacks_anchor(&self) -> Result<bool, Error> {
        let transcript = Transcript::of(&self.context.folder);
        let mut last = None;
        if transcript.holds_window() {
            transcript.each(self.site.files.as_ref(), &mut |entry| {
                last = entry.anchor().map(|anchor| (anchor, entry.may_keep())).or(last);
                Ok(())
            })?;
        }
        let known = |anchor: u64| self.entries.iter().any(|entry| entry.anchor() == Some(anchor));
        Ok(last.is_some_and(|(anchor, compacts)| compacts && !known(anchor)))
    }

    /// Puts a new anchor before the window that says what its own one says.
    fn anchor_anew(self) -> Result<Changed, Error> {
        let own = self.entries.first().filter(|entry| entry.is_anchor());
        let anchor = own.map_or(Anchor::Created, Anchor::of);
        let mut places = vec![Place::Window; self.entries.len()];
        if let (Some(first), Some(_)) = (places.first_mut(), own) {
            *first = Place::Aside;
        }
        self.change(&anchor, &places, Undo::Not)
    }
}

/// Takes off the end of an archive what is in the window again.
fn take_back(files: &dyn Files, archive: &Path, window: &[Entry]) -> Result<(), Error> {
    let unwritable = |error| Error::at(archive, Problem::Unwritable, error);
    let back: HashSet<(u64, u64)> = window.iter().map(Entry::identity).collect();
    let (mut kept, mut end) = (0, 0);
    entry::each_at(files, archive, &mut |entry, to| {
        end = to;
        if !back.contains(&entry.identity()) {
            kept = to;
        }
        Ok(())
    })?;
    if kept < end {
        cut_off(files, archive, kept).map_err(unwritable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
