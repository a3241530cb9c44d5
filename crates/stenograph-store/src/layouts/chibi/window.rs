//! Changing a context's window: what leaves it is archived first, then the window is replaced whole. A crash at any point leaves
//! every entry somewhere, and doing it again adds nothing twice. What a summary says is the caller's business.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use stenograph::model::Role;

use super::context::Context;
use super::entry::{self, Anchor, Entry, Stamp, WINDOW_SIZE_MAX};
use super::hold::{HEARTBEAT_SECONDS, Hold, seconds};
use super::markdown;
use super::pending::Pending;
use super::transcript::Transcript;
use crate::error::{Error, Problem};
use crate::files::{folder_of, replace};
use crate::layouts::{Ground, Site};
use crate::lock::Lock;
use crate::tail::{self, LastLine, Remark};

/// A context that nobody else changes as long as this is held.
#[derive(Debug)]
pub struct Window {
    pub(super) context: Context,
    pub(super) site: Site,
    pub(super) entries: Vec<Entry>,
    pub(super) remarks: Vec<Remark>,
    _journal: Lock,
    _hold: Hold,
}

/// What a change did.
#[derive(Debug)]
pub struct Changed {
    /// How many entries left the window, or came back into it.
    pub archived: usize,
    /// How many the window has now.
    pub entries: usize,
    /// What it begins with.
    pub anchor: Option<Entry>,
    /// Where entries stand that left the window.
    pub transcript: PathBuf,
    /// What there is to say.
    pub remarks: Vec<Remark>,
}

impl Window {
    /// Holds a context and reads its window, once what a crash left is completed.
    pub fn hold(context: &Context, site: &Site) -> Result<Window, Error> {
        context.must_exist()?;
        let hold = Hold::take(&context.folder, &site.clock, HEARTBEAT_SECONDS)?;
        let ground = Ground::of_journal(&context.journal(), site)?;
        let mut remarks: Vec<Remark> = hold.remark.iter().cloned().collect();
        remarks.extend(ground.remarks);
        let path = context.window();
        remarks.extend(tail::settle(site.files.as_ref(), &path, LastLine::MayLackNewline)?.remark);
        let entries = entry::all(site.files.as_ref(), &path)?;
        let window = Window {
            context: context.clone(),
            site: site.clone(),
            entries,
            remarks,
            _journal: ground.lock,
            _hold: hold,
        };
        let pending = Pending::read(site.files.as_ref(), context)?;
        if pending.is_some_and(|pending| window.begins_with(&pending.anchor)) {
            // Only the last step was missing.
            window.end()?;
        }
        Ok(window)
    }

    /// What stands in the window.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether anything was said since its anchor.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(Entry::is_anchor)
    }

    /// Archives everything and begins anew.
    pub fn clear(self) -> Result<Changed, Error> {
        let all = vec![Place::Aside; self.entries.len()];
        self.put_aside(&Anchor::Archival, &all)
    }

    /// Archives the entries whose place is aside, and puts an anchor before those that stay. `places` has one for each entry.
    pub fn put_aside(self, anchor: &Anchor, places: &[Place]) -> Result<Changed, Error> {
        self.change(anchor, places, Undo::Not)
    }

    /// The same, and says whether it can be undone.
    pub(super) fn change(mut self, anchor: &Anchor, places: &[Place], undo: Undo) -> Result<Changed, Error> {
        let now = seconds(&self.site.clock);
        let mut transcript = Transcript::of(&self.context.folder);
        let place = |at: usize| places.get(at).copied().unwrap_or(Place::Window);
        let chosen = |which: Place| -> Vec<&Entry> {
            let chosen = self.entries.iter().enumerate().filter(|(at, _)| place(*at) == which);
            chosen.map(|(_, entry)| entry).collect()
        };
        let (aside, kept) = (chosen(Place::Aside), chosen(Place::Window));
        let archived: Vec<&Entry> =
            if transcript.holds_window() { self.entries.iter().collect() } else { aside.clone() };
        let files = self.site.files.as_ref();
        let mut remarks = transcript.add_missing(files, &archived, now)?.remarks;
        let ids: Vec<&str> = kept.iter().filter_map(|entry| entry.id.as_deref()).collect();
        let made =
            anchor.entry(&self.context.name, &Stamp::random(now), if transcript.holds_window() { &ids } else { &[] });
        let pending = Pending::begin(files, &self.context, &self.entries, made)?;
        if !transcript.holds_window() || self.context.markdown().is_file() {
            markdown::append(files, &self.context.markdown(), &spoken(&aside), pending.markdown_length)?;
        }
        let anchor = pending.anchor;
        if transcript.holds_window() {
            remarks.extend(transcript.add_anchor(files, &anchor, now)?);
        }
        let window: Vec<&Entry> = std::iter::once(&anchor).chain(kept.iter().copied()).collect();
        if undo == Undo::Kept {
            self.keep_for_undo(&window)?;
        }
        self.write(&window)?;
        let (archived, entries) = (aside.len(), window.len());
        self.end()?;
        self.remarks.extend(remarks);
        let transcript = place_of(&transcript, &self.context);
        Ok(Changed { archived, entries, anchor: Some(anchor), transcript, remarks: self.remarks })
    }

    /// Makes the window anew: the last anchor, what was kept after it, and everything since.
    pub fn rebuild(mut self) -> Result<Changed, Error> {
        let now = seconds(&self.site.clock);
        let files = self.site.files.clone();
        let files = files.as_ref();
        let mut transcript = Transcript::of(&self.context.folder);
        let all: Vec<&Entry> = self.entries.iter().collect();
        if transcript.holds_window() {
            self.remarks.extend(transcript.add_missing(files, &all, now)?.remarks);
        }
        let since = self.since_anchor(&transcript)?;
        let mut window = self.kept_by_anchor(&transcript, since.first())?;
        let anchored = since.first().is_some_and(Entry::is_anchor);
        let dropped = |entry: &Entry| entry.entry_type.as_deref() == Some("system_prompt_changed");
        let mut rest = since.into_iter().filter(|entry| !dropped(entry)).peekable();
        let anchor = match rest.peek() {
            Some(_) if anchored => rest.next(),
            Some(first) => Some(self.beginning(first.seconds.unwrap_or(now))),
            None => None,
        };
        window.splice(0..0, anchor);
        window.extend(rest);
        let stays: HashSet<(u64, u64)> = window.iter().map(Entry::identity).collect();
        let leaving: Vec<&Entry> = self.entries.iter().filter(|entry| !stays.contains(&entry.identity())).collect();
        if !transcript.holds_window() {
            self.remarks.extend(transcript.add_missing(files, &leaving, now)?.remarks);
        }
        let archived = leaving.len();
        let lines: Vec<&Entry> = window.iter().collect();
        if window != self.entries {
            self.write(&lines)?;
        }
        self.end()?;
        let transcript = place_of(&transcript, &self.context);
        let anchor = window.first().filter(|entry| entry.is_anchor()).cloned();
        Ok(Changed { archived, entries: window.len(), anchor, transcript, remarks: self.remarks })
    }

    /// What a window without an anchor in its transcript begins with: what it began with before, else a new anchor, as Chibi
    /// makes one.
    fn beginning(&self, created_seconds: u64) -> Entry {
        let before = self.entries.first().filter(|entry| entry.entry_type.as_deref() == Some("context_created"));
        let new = || Anchor::Created.entry(&self.context.name, &Stamp::random(created_seconds), &[]);
        before.cloned().unwrap_or_else(new)
    }

    /// The last anchor and all entries after it, or all entries where there is none.
    fn since_anchor(&self, transcript: &Transcript) -> Result<Vec<Entry>, Error> {
        let mut since: Vec<Entry> = Vec::new();
        let mut known = super::transcript::Known::new(transcript);
        let mut size = 0;
        let path = self.context.window();
        let mut next = |entry: Entry| {
            if entry.is_anchor() {
                since.clear();
                size = 0;
            }
            size += entry.line.len() as u64;
            since.push(entry);
            if size > WINDOW_SIZE_MAX {
                return Err(Error::about(&path, Problem::TooLarge { size_max: WINDOW_SIZE_MAX }));
            }
            Ok(())
        };
        transcript.each(self.site.files.as_ref(), &mut |entry| {
            known.add(&entry);
            next(entry)
        })?;
        if !transcript.holds_window() {
            for entry in &self.entries {
                if !known.has(entry) {
                    next(entry.clone())?;
                }
            }
        }
        Ok(since)
    }

    /// What stands before an anchor in the transcript and belongs after it in the window: what the anchor names, or what Chibi
    /// kept in the window when it summed up the rest. Chibi forgets the latter the next time it makes the window anew.
    pub(super) fn kept_by_anchor(&self, transcript: &Transcript, anchor: Option<&Entry>) -> Result<Vec<Entry>, Error> {
        let Some(anchor) = anchor.filter(|anchor| transcript.holds_window() && anchor.is_anchor()) else {
            return Ok(Vec::new());
        };
        let named = anchor.kept();
        let mut ids: HashSet<&str> = named.iter().map(String::as_str).collect();
        let mut said: HashMap<u64, usize> = HashMap::new();
        let last = self.entries.iter().rposition(Entry::is_anchor);
        let own = last.and_then(|last| self.entries.get(last));
        let same = own.is_some_and(|own| own.entry_type == anchor.entry_type && own.sums_up_like(anchor));
        if named.is_empty() && same && anchor.may_keep() {
            for entry in self.entries.iter().skip(last.map_or(0, |last| last + 1)) {
                ids.extend(entry.id.as_deref());
                *said.entry(entry.said()).or_default() += 1;
            }
        }
        let mut before: Vec<Entry> = Vec::new();
        let mut past = false;
        transcript.each(self.site.files.as_ref(), &mut |entry| {
            past |= entry.identity() == anchor.identity();
            let by_id = entry.id.as_deref().is_some_and(|id| ids.contains(id));
            if !past && !entry.is_anchor() && (by_id || said.contains_key(&entry.said())) {
                before.push(entry);
            }
            Ok(())
        })?;
        if named.is_empty() {
            // Of several that say the same the last ones were kept.
            let mut kept: Vec<Entry> = Vec::new();
            for entry in before.into_iter().rev() {
                match said.get_mut(&entry.said()) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        kept.push(entry);
                    }
                    _ => {}
                }
            }
            kept.reverse();
            before = kept;
        }
        Ok(before)
    }

    fn begins_with(&self, anchor: &Entry) -> bool {
        self.entries.first().is_some_and(|first| first.identity() == anchor.identity())
    }

    pub(super) fn write(&self, entries: &[&Entry]) -> Result<(), Error> {
        let path = self.context.window();
        let bytes = entry::lines(entries);
        replace(self.site.files.as_ref(), &path, &bytes).map_err(|error| Error::at(&path, Problem::Unwritable, error))
    }

    /// Removes the marks of a change that is done.
    pub(super) fn end(&self) -> Result<(), Error> {
        let files = self.site.files.as_ref();
        for path in [self.context.dirty(), Pending::path(&self.context)] {
            let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
            if files.length(&path).map_err(unwritable)?.is_some() {
                files.remove(&path).map_err(unwritable)?;
                files.sync_folder(folder_of(&path)).map_err(unwritable)?;
            }
        }
        Ok(())
    }
}

/// Where an entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is archived.
    Aside,
    /// It stays in the window.
    Window,
}

/// Whether a change can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// What is needed for it is kept.
    Kept,
    /// It cannot.
    Not,
}

pub(super) fn place_of(transcript: &Transcript, context: &Context) -> PathBuf {
    match transcript {
        Transcript::Archive(path) | Transcript::Single(path) => path.clone(),
        Transcript::Folder(_) => context.folder.join("transcript"),
    }
}

/// What user and assistant said.
pub(super) fn spoken<'e>(entries: &[&'e Entry]) -> Vec<&'e Entry> {
    let speaks = |role: Option<Role>| matches!(role, Some(Role::User | Role::Assistant));
    entries.iter().copied().filter(|entry| speaks(entry.role)).collect()
}

#[cfg(test)]
#[path = "window_tests.rs"]
pub(super) mod tests;
