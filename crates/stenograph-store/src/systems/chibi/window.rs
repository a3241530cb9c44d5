//! Changes a context's window: archives what leaves it, then replaces the window as a whole. A crash at any point leaves every
//! entry somewhere, and repeating the change adds nothing twice. The caller writes the summary.

use std::path::PathBuf;

use stenograph::model::Role;

use super::markdown;
use super::pending::Pending;
use crate::error::{Error, Problem};
use crate::files::replace;
use crate::layouts::chibi::context::Context;
use crate::layouts::chibi::context_lock::{ContextLock, HEARTBEAT_SECONDS, seconds};
use crate::layouts::chibi::entry::{self, Anchor, ContextEntry, EntryStamp};
use crate::layouts::chibi::rebuild::{Rebuilt, remove_mark};
use crate::layouts::chibi::transcript::ContextTranscript;
use crate::layouts::{Environment, LockedJournal};
use crate::lock::Lock;
use crate::tail::{self, LastLineRule, Warning};

/// A context that no other process changes while this is held.
#[derive(Debug)]
pub struct Window {
    pub(super) context: Context,
    pub(super) environment: Environment,
    pub(super) entries: Vec<ContextEntry>,
    /// The rebuilt window, if Chibi marked the file as out of date. `entries` already holds it; the first change writes it.
    rebuilt: Option<Rebuilt>,
    pub(super) warnings: Vec<Warning>,
    _journal: Lock,
    _hold: ContextLock,
}

/// The result of a change.
#[derive(Debug)]
pub struct WindowChange {
    /// How many entries left the window or came back into it.
    pub archived: usize,
    /// How many entries the window has now.
    pub entries: usize,
    /// Its beginning.
    pub anchor: Option<ContextEntry>,
    /// Where the entries are that left the window.
    pub transcript: PathBuf,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

impl Window {
    /// Locks a context and reads its window, after completing what a crash left. A window that Chibi marked as out of date is
    /// rebuilt in memory; the first change writes it.
    pub fn lock(context: &Context, environment: &Environment) -> Result<Window, Error> {
        context.must_exist()?;
        let hold = ContextLock::take(&context.folder, &environment.clock, HEARTBEAT_SECONDS)?;
        let journal_lock = LockedJournal::of_journal(&context.journal(), environment)?;
        let mut warnings: Vec<Warning> = hold.warning.iter().cloned().collect();
        warnings.extend(journal_lock.warnings);
        let path = context.window();
        warnings.extend(tail::repair_tail(environment.files.as_ref(), &path, LastLineRule::MayLackNewline)?.warning);
        let mut entries = entry::all(environment.files.as_ref(), &path)?;
        let rebuilt = Rebuilt::of_marked(context, environment.files.as_ref(), &entries, seconds(&environment.clock))?;
        if let Some(rebuilt) = &rebuilt {
            entries.clone_from(&rebuilt.entries);
            warnings.push(rebuilt.warning(context));
        }
        let window = Window {
            context: context.clone(),
            environment: environment.clone(),
            entries,
            rebuilt,
            warnings,
            _journal: journal_lock.lock,
            _hold: hold,
        };
        let pending = Pending::read(environment.files.as_ref(), context)?;
        if pending.is_some_and(|pending| window.begins_with(&pending.anchor)) {
            // Only the last step was missing.
            window.end()?;
        }
        Ok(window)
    }

    /// The entries of the window.
    pub fn entries(&self) -> &[ContextEntry] {
        &self.entries
    }

    /// Warnings about what locking it found.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether there are no messages after its anchor.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(ContextEntry::is_anchor)
    }

    /// Archives everything and starts an empty window.
    pub fn clear(self) -> Result<WindowChange, Error> {
        let all = vec![EntryPlace::Aside; self.entries.len()];
        self.put_aside(&Anchor::Archival, &all)
    }

    /// Archives the entries with place `Aside`, and puts an anchor before those that stay. `places` has one element for each
    /// entry.
    pub(crate) fn put_aside(self, anchor: &Anchor, places: &[EntryPlace]) -> Result<WindowChange, Error> {
        self.change(anchor, places, Undo::Not)
    }

    /// The same, with or without undo.
    pub(super) fn change(mut self, anchor: &Anchor, places: &[EntryPlace], undo: Undo) -> Result<WindowChange, Error> {
        self.write_rebuilt()?;
        let now = seconds(&self.environment.clock);
        let mut transcript = ContextTranscript::of(&self.context.folder);
        let place = |at: usize| places.get(at).copied().unwrap_or(EntryPlace::Window);
        let chosen = |which: EntryPlace| -> Vec<&ContextEntry> {
            let chosen = self.entries.iter().enumerate().filter(|(at, _)| place(*at) == which);
            chosen.map(|(_, entry)| entry).collect()
        };
        let (aside, kept) = (chosen(EntryPlace::Aside), chosen(EntryPlace::Window));
        let archived: Vec<&ContextEntry> =
            if transcript.holds_window() { self.entries.iter().collect() } else { aside.clone() };
        let files = self.environment.files.as_ref();
        let mut warnings = transcript.add_missing(files, &archived, now)?.warnings;
        let ids: Vec<&str> = kept.iter().filter_map(|entry| entry.id.as_deref()).collect();
        let made = anchor.entry(
            &self.context.name,
            &EntryStamp::random(now),
            if transcript.holds_window() { &ids } else { &[] },
        );
        let pending = Pending::begin(files, &self.context, &self.entries, made)?;
        if !transcript.holds_window() || self.context.markdown().is_file() {
            markdown::append(files, &self.context.markdown(), &spoken(&aside), pending.markdown_length)?;
        }
        let anchor = pending.anchor;
        if transcript.holds_window() {
            warnings.extend(transcript.add_anchor(files, &anchor, now)?);
        }
        let window: Vec<&ContextEntry> = std::iter::once(&anchor).chain(kept.iter().copied()).collect();
        if undo == Undo::Kept {
            self.keep_for_undo(&window)?;
        }
        self.write(&window)?;
        let (archived, entries) = (aside.len(), window.len());
        self.end()?;
        self.warnings.extend(warnings);
        let transcript = transcript.path().to_owned();
        Ok(WindowChange { archived, entries, anchor: Some(anchor), transcript, warnings: self.warnings })
    }

    /// Rebuilds the window: the last anchor, the entries kept after it, and all later entries.
    pub fn rebuild(mut self) -> Result<WindowChange, Error> {
        if self.rebuilt.is_none() {
            let (files, now) = (self.environment.files.as_ref(), seconds(&self.environment.clock));
            self.rebuilt = Some(Rebuilt::of(&self.context, files, &self.entries, now)?);
        }
        let archived = self.write_rebuilt()?;
        self.end()?;
        let transcript = ContextTranscript::of(&self.context.folder).path().to_owned();
        let anchor = self.entries.first().filter(|entry| entry.is_anchor()).cloned();
        Ok(WindowChange { archived, entries: self.entries.len(), anchor, transcript, warnings: self.warnings })
    }

    /// Writes the rebuilt window, if there is one. Returns how many entries left the window.
    pub(super) fn write_rebuilt(&mut self) -> Result<usize, Error> {
        let Some(rebuilt) = self.rebuilt.take() else { return Ok(0) };
        let (now, files) = (seconds(&self.environment.clock), self.environment.files.as_ref());
        if !ContextTranscript::of(&self.context.folder).holds_window() || self.context.markdown().is_file() {
            let leaving: Vec<&ContextEntry> = rebuilt.leaving.iter().collect();
            markdown::append_once(files, &self.context.markdown(), &spoken(&leaving))?;
        }
        self.warnings.extend(rebuilt.write(&self.context, files, now)?);
        self.entries = rebuilt.entries;
        Ok(rebuilt.leaving.len())
    }

    fn begins_with(&self, anchor: &ContextEntry) -> bool {
        self.entries.first().is_some_and(|first| first.identity() == anchor.identity())
    }

    pub(super) fn write(&self, entries: &[&ContextEntry]) -> Result<(), Error> {
        let path = self.context.window();
        let bytes = entry::lines(entries);
        replace(self.environment.files.as_ref(), &path, &bytes)
            .map_err(|error| Error::at(&path, Problem::Unwritable, error))
    }

    /// Removes the record of a completed change.
    pub(super) fn end(&self) -> Result<(), Error> {
        remove_mark(self.environment.files.as_ref(), &Pending::path(&self.context))
    }
}

/// Whether a change archives an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPlace {
    /// It is archived.
    Aside,
    /// It stays in the window.
    Window,
}

/// Whether a change can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// An undo file is written.
    Kept,
    /// No undo file is written.
    Not,
}

/// The messages of user and assistant.
pub(super) fn spoken<'e>(entries: &[&'e ContextEntry]) -> Vec<&'e ContextEntry> {
    let speaks = |role: Option<Role>| matches!(role, Some(Role::User | Role::Assistant));
    entries.iter().copied().filter(|entry| speaks(entry.role)).collect()
}

#[cfg(test)]
#[path = "window_tests.rs"]
pub(crate) mod tests;
