//! Rebuilds the window of a context from its transcript, as Chibi does when it finds its marker `.dirty`: a window with that
//! marker is out of date. [`Rebuilt::of`] only reads, so that read-only commands see the same window as others.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use stenograph::json::Object;

use super::context::Context;
use super::context_lock::seconds;
use super::entry::{self, Anchor, ContextEntry, EntryStamp, WINDOW_SIZE_MAX};
use super::transcript::{ContextTranscript, KnownEntries, SyncTime, WindowState};
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, replace};
use crate::layouts::Environment;
use crate::tail::{self, LastLineRule, Warning};

/// A window rebuilt from its transcript. The caller of [`Rebuilt::write`] holds the context's lock.
#[derive(Debug)]
pub struct Rebuilt {
    /// The entries of the rebuilt window.
    pub entries: Vec<ContextEntry>,
    /// The entries of the old window that leave it.
    pub leaving: Vec<ContextEntry>,
    /// The entries of the old window that the transcript lacks.
    missing: Vec<ContextEntry>,
    /// Whether the file differs from `entries`.
    differs: bool,
}

impl Rebuilt {
    /// The rebuilt window, if Chibi marked the file as out of date.
    pub fn of_marked(
        context: &Context,
        files: &dyn Files,
        window: &[ContextEntry],
        now: u64,
    ) -> Result<Option<Rebuilt>, Error> {
        match context.window_state(files)? {
            WindowState::OutOfDate => Rebuilt::of(context, files, window, now).map(Some),
            WindowState::Current => Ok(None),
        }
    }

    /// The last anchor, the entries kept after it, and all later entries. Changes nothing.
    pub fn of(context: &Context, files: &dyn Files, window: &[ContextEntry], now: u64) -> Result<Rebuilt, Error> {
        let transcript = ContextTranscript::of(&context.folder);
        let mut missing = Vec::new();
        if transcript.holds_window() {
            let mut known = transcript.known(files, context.window_state(files)?)?;
            missing.extend(window.iter().filter(|entry| !known.take_match(entry)).cloned());
        }
        let since =
            since_anchor(context, files, &transcript, if transcript.holds_window() { &missing } else { window })?;
        let mut entries = kept_by_anchor(files, &transcript, window, since.first())?;
        let anchored = since.first().is_some_and(ContextEntry::is_anchor);
        let dropped = |entry: &ContextEntry| entry.entry_type.as_deref() == Some("system_prompt_changed");
        let mut rest = since.into_iter().filter(|entry| !dropped(entry)).peekable();
        let anchor = match rest.peek() {
            Some(_) if anchored => rest.next(),
            Some(first) => Some(beginning(context, files, window, first.seconds.unwrap_or(now))),
            None => None,
        };
        entries.splice(0..0, anchor);
        entries.extend(rest);
        let stays: HashSet<(u64, u64)> = entries.iter().map(ContextEntry::identity).collect();
        let leaving = window.iter().filter(|entry| !stays.contains(&entry.identity())).cloned().collect();
        Ok(Rebuilt { leaving, missing, differs: entries != window, entries })
    }

    /// Writes the window after everything that leaves it is in the transcript, and removes the marker.
    pub fn write(&self, context: &Context, files: &dyn Files, now: u64) -> Result<Vec<Warning>, Error> {
        let mut transcript = ContextTranscript::of(&context.folder);
        let warnings = if transcript.holds_window() {
            let missing: Vec<&ContextEntry> = self.missing.iter().collect();
            transcript.append(files, &missing, now, SyncTime::Now)?
        } else {
            let leaving: Vec<&ContextEntry> = self.leaving.iter().collect();
            transcript.add_missing(files, &leaving, now)?.warnings
        };
        if self.differs {
            let (path, lines): (_, Vec<&ContextEntry>) = (context.window(), self.entries.iter().collect());
            let written = replace(files, &path, &entry::lines(&lines));
            written.map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        }
        remove_mark(files, &context.dirty())?;
        Ok(warnings)
    }

    /// The warning that the window was out of date.
    pub fn warning(&self, context: &Context) -> Warning {
        Warning::new(&context.window(), "is marked as out of date (.dirty): rebuilt from the transcript")
    }
}

/// Rebuilds the window if Chibi marked it as out of date. The caller holds the context's lock.
pub fn refresh(context: &Context, environment: &Environment) -> Result<Vec<Warning>, Error> {
    let files = environment.files.as_ref();
    if context.window_state(files)? == WindowState::Current {
        return Ok(Vec::new());
    }
    let mut warnings: Vec<Warning> =
        tail::repair_tail(files, &context.window(), LastLineRule::MayLackNewline)?.warning.into_iter().collect();
    let window = entry::all(files, &context.window())?;
    let now = seconds(&environment.clock);
    let rebuilt = Rebuilt::of(context, files, &window, now)?;
    warnings.push(rebuilt.warning(context));
    warnings.extend(rebuilt.write(context, files, now)?);
    Ok(warnings)
}

/// The beginning of a window without an anchor in its transcript: its old beginning, otherwise a new anchor, as Chibi makes
/// one.
fn beginning(context: &Context, files: &dyn Files, window: &[ContextEntry], first_seconds: u64) -> ContextEntry {
    let before = window.first().filter(|entry| entry.entry_type.as_deref() == Some("context_created"));
    let new = || {
        let created = created_seconds(context, files).unwrap_or(first_seconds);
        Anchor::Created.entry(&context.name, &EntryStamp::random(created), &[])
    };
    before.cloned().unwrap_or_else(new)
}

/// The maximum size of `state.json`, which has a line or two for each context.
const STATE_SIZE_MAX: u64 = 16 << 20;

/// When Chibi created a context, according to the `state.json` of its home.
fn created_seconds(context: &Context, files: &dyn Files) -> Option<u64> {
    let contexts = context.folder.parent().filter(|folder| folder.ends_with("contexts"))?;
    let path = contexts.parent().unwrap_or(Path::new(".")).join("state.json");
    files.length(&path).ok().flatten().filter(|length| *length <= STATE_SIZE_MAX)?;
    let text = String::from_utf8(files.read(&path, 0).ok()?).ok()?;
    let items = Object::parse(&text)?.take_items("contexts")?;
    let created = |raw| {
        let item = Object::parse(raw).filter(|item| item.peek_str("name").as_deref() == Some(context.name.as_str()))?;
        item.peek("created_at").and_then(stenograph::json::number)
    };
    items.into_iter().find_map(created)
}

/// The last anchor and all entries after it, or all entries if there is none; `more` are entries that follow the transcript
/// unless it has them.
fn since_anchor(
    context: &Context,
    files: &dyn Files,
    transcript: &ContextTranscript,
    more: &[ContextEntry],
) -> Result<Vec<ContextEntry>, Error> {
    let mut since: Vec<ContextEntry> = Vec::new();
    let mut known = KnownEntries::new(transcript);
    let mut size = 0;
    let path = context.window();
    let mut next = |entry: ContextEntry| {
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
    transcript.each(files, &mut |entry| {
        known.add(&entry);
        next(entry)
    })?;
    for entry in more {
        if !known.has(entry) {
            next(entry.clone())?;
        }
    }
    Ok(since)
}

/// Entries before an anchor in the transcript that belong after it in the window: those that the anchor lists, or those that
/// Chibi kept in the window when it summarised the rest. Chibi forgets the latter when it next rebuilds the window.
pub(crate) fn kept_by_anchor(
    files: &dyn Files,
    transcript: &ContextTranscript,
    window: &[ContextEntry],
    anchor: Option<&ContextEntry>,
) -> Result<Vec<ContextEntry>, Error> {
    let Some(anchor) = anchor.filter(|anchor| transcript.holds_window() && anchor.is_anchor()) else {
        return Ok(Vec::new());
    };
    let named = anchor.kept_ids();
    let mut ids: HashSet<&str> = named.iter().map(String::as_str).collect();
    let mut hash_counts: HashMap<u64, usize> = HashMap::new();
    let last = window.iter().rposition(ContextEntry::is_anchor);
    let own = last.and_then(|last| window.get(last));
    let same = own.is_some_and(|own| own.entry_type == anchor.entry_type && own.sums_up_like(anchor));
    if named.is_empty() && same && anchor.may_keep() {
        for entry in window.iter().skip(last.map_or(0, |last| last + 1)) {
            ids.extend(entry.id.as_deref());
            *hash_counts.entry(entry.content_hash()).or_default() += 1;
        }
    }
    let mut before: Vec<ContextEntry> = Vec::new();
    let mut past = false;
    transcript.each(files, &mut |entry| {
        past |= entry.identity() == anchor.identity();
        let by_id = entry.id.as_deref().is_some_and(|id| ids.contains(id));
        if !past && !entry.is_anchor() && (by_id || hash_counts.contains_key(&entry.content_hash())) {
            before.push(entry);
        }
        Ok(())
    })?;
    if named.is_empty() {
        // Of several with equal content, the last ones were kept.
        let mut kept: Vec<ContextEntry> = Vec::new();
        for entry in before.into_iter().rev() {
            match hash_counts.get_mut(&entry.content_hash()) {
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

/// Removes a file that marks a state, durably.
pub(crate) fn remove_mark(files: &dyn Files, path: &Path) -> Result<(), Error> {
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    if files.length(path).map_err(unwritable)?.is_some() {
        files.remove(path).map_err(unwritable)?;
        files.sync_folder(folder_of(path)).map_err(unwritable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
