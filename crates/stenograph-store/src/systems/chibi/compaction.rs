//! Compacts a context: chooses the entries of its window that a summary replaces, and brings them back. `window.rs` archives
//! entries without losing any; the caller writes the summary.

use std::collections::HashSet;
use std::path::Path;

use stenograph::edit::compact::{Keep, OldPart, old_part};
use stenograph::edit::tokens::Tokenizer;
use stenograph::formats::chibi::Chibi;
use stenograph::model::Event;
use stenograph::read;

use super::markdown;
use super::window::{EntryPlace, Undo, Window, WindowChange, spoken};
use crate::error::{Error, Problem};
use crate::files::{Files, truncate_durably};
use crate::layouts::chibi::NAME;
use crate::layouts::chibi::entry::{self, Anchor, ContextEntry};
use crate::layouts::chibi::transcript::ContextTranscript;
use crate::undo::{self, EditCommand, UndoOutcome};

/// The entries that a compaction would archive.
#[derive(Clone, Debug)]
pub struct CompactionChoice {
    /// The events of the window.
    pub events: Vec<Event<'static>>,
    /// Which of them are archived.
    pub old: OldPart,
    places: Vec<EntryPlace>,
}

impl Window {
    /// The name of the format of its events.
    pub fn format(&self) -> &'static str {
        NAME
    }

    /// Chooses the entries. `None` if there is nothing that a summary could replace.
    pub fn choose(&self, keep: Keep, tokenizer: &Tokenizer<'_>) -> Option<CompactionChoice> {
        let all: Vec<&ContextEntry> = self.entries.iter().collect();
        let events = read::all(&Chibi, &entry::lines(&all)).events;
        let old = old_part(&events, keep, tokenizer)?;
        let entry_of = |event: &Event<'_>| event.at.and_then(|at| usize::try_from(at.line).ok()?.checked_sub(1));
        let cut = events.get(old.first_kept).map_or(Some(all.len()), entry_of)?;
        let removed: HashSet<usize> =
            old.removed.iter().filter_map(|number| events.get(*number)).filter_map(entry_of).collect();
        let place = |(at, entry): (usize, &&ContextEntry)| {
            // A window begins with one anchor, which is replaced.
            let is_removed = removed.contains(&at) || entry.is_anchor();
            if at < cut && is_removed { EntryPlace::Aside } else { EntryPlace::Window }
        };
        let places = all.iter().enumerate().map(place).collect();
        Some(CompactionChoice { events, old, places })
    }

    /// Replaces the chosen entries with the summary.
    pub fn compact(self, choice: &CompactionChoice, summary: &str) -> Result<WindowChange, Error> {
        self.change(&Anchor::Compaction(summary.to_owned()), &choice.places, Undo::Kept)
    }

    /// Saves the window for undo before these entries replace it.
    pub(super) fn keep_for_undo(&self, window: &[&ContextEntry]) -> Result<(), Error> {
        let path = self.context.window();
        let before =
            self.environment.files.read(&path, 0).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        undo::save_undo_bytes(&path, &before, &entry::lines(window), EditCommand::Compact).map(drop)
    }

    /// Restores the entries that the last compaction archived to their old positions, and removes them from the archive. Later
    /// entries stay at the end. If the window was rewritten since, or its undo file is missing, the archive determines which
    /// entries are restored. `None` if there is nothing to undo.
    pub fn undo_compaction(mut self) -> Result<Option<WindowChange>, Error> {
        self.write_rebuilt()?;
        let path = self.context.window();
        let files = self.environment.files.clone();
        let files = files.as_ref();
        if let ContextTranscript::Archive(archive) = ContextTranscript::of(&self.context.folder) {
            // A crash during an earlier undo may have left entries in both.
            remove_from_end(files, &archive, &self.entries)?;
        }
        match undo::undo(&path)? {
            UndoOutcome::Restored { .. } => {}
            // The compaction was never completed: the one before it is the last one.
            UndoOutcome::AlreadyRestored => return self.undo_compaction(),
            UndoOutcome::Nothing if self.lacks_anchor()? => return self.renew_anchor().map(Some),
            UndoOutcome::Nothing
            | UndoOutcome::Changed
            | UndoOutcome::Damaged { .. }
            | UndoOutcome::Removed
            | UndoOutcome::MovedBack { .. }
            | UndoOutcome::Continued => return self.bring_back(),
        }
        let before = std::mem::replace(&mut self.entries, entry::all(files, &path)?);
        let was: HashSet<(u64, u64)> = before.iter().map(ContextEntry::identity).collect();
        let back: Vec<&ContextEntry> = self.entries.iter().filter(|entry| !was.contains(&entry.identity())).collect();
        let (archived, transcript) = (back.len(), ContextTranscript::of(&self.context.folder));
        markdown::remove_from_end(files, &self.context.markdown(), &spoken(&back))?;
        let mut changed = match &transcript {
            ContextTranscript::Archive(archive) => {
                remove_from_end(files, archive, &self.entries)?;
                let anchor = self.entries.first().filter(|entry| entry.is_anchor()).cloned();
                let (entries, transcript, warnings) = (self.entries.len(), archive.clone(), self.warnings);
                WindowChange { archived, entries, anchor, transcript, warnings }
            }
            // A transcript is append-only: a new anchor states what the window holds again.
            ContextTranscript::Single(_) | ContextTranscript::Folder(_) => self.renew_anchor()?,
        };
        changed.archived = archived;
        Ok(Some(changed))
    }

    /// Whether a transcript ends with a compaction that the window does not have: the last step of an undo is missing.
    fn lacks_anchor(&self) -> Result<bool, Error> {
        let transcript = ContextTranscript::of(&self.context.folder);
        let mut last = None;
        if transcript.holds_window() {
            transcript.each(self.environment.files.as_ref(), &mut |entry| {
                last = entry.anchor().map(|anchor| (anchor, entry.may_keep())).or(last);
                Ok(())
            })?;
        }
        let known = |anchor: u64| self.entries.iter().any(|entry| entry.anchor() == Some(anchor));
        Ok(last.is_some_and(|(anchor, compacts)| compacts && !known(anchor)))
    }

    /// Puts a new anchor with the content of the window's own one before the window.
    fn renew_anchor(self) -> Result<WindowChange, Error> {
        let own = self.entries.first().filter(|entry| entry.is_anchor());
        let anchor = own.map_or(Anchor::Created, Anchor::of);
        let mut places = vec![EntryPlace::Window; self.entries.len()];
        if let (Some(first), Some(_)) = (places.first_mut(), own) {
            *first = EntryPlace::Aside;
        }
        self.change(&anchor, &places, Undo::Not)
    }
}

/// Removes entries from the end of an archive that are in the window again.
fn remove_from_end(files: &dyn Files, archive: &Path, window: &[ContextEntry]) -> Result<(), Error> {
    let unwritable = |error| Error::at(archive, Problem::Unwritable, error);
    let back: HashSet<(u64, u64)> = window.iter().map(ContextEntry::identity).collect();
    let (mut kept, mut end) = (0, 0);
    entry::each_at(files, archive, &mut |entry, to| {
        end = to;
        if !back.contains(&entry.identity()) {
            kept = to;
        }
        Ok(())
    })?;
    if kept < end {
        truncate_durably(files, archive, kept).map_err(unwritable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
