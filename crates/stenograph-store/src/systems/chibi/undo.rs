//! Brings back what the last compaction archived. The window is complete before the archive is truncated, so that a crash in
//! between leaves entries in both and loses none.

use std::collections::HashSet;

use super::window::{Window, WindowChange};
use crate::error::{Error, Problem};
use crate::files::replace;
use crate::layouts::chibi::context_lock::seconds;
use crate::layouts::chibi::entry::{self, Anchor, ContextEntry, EntryStamp};
use crate::layouts::chibi::rebuild::kept_by_anchor;
use crate::layouts::chibi::transcript::ContextTranscript;

impl Window {
    /// Undoes the compaction that the window begins with; `None` if it does not begin with one.
    pub(crate) fn bring_back(mut self) -> Result<Option<WindowChange>, Error> {
        self.write_rebuilt()?;
        let Some(marker) = self.entries.first().filter(|entry| entry.may_keep()).cloned() else { return Ok(None) };
        let now = seconds(&self.environment.clock);
        let mut transcript = ContextTranscript::of(&self.context.folder);
        let files = self.environment.files.clone();
        let files = files.as_ref();
        let mut archived = archived_by(&marker, &transcript, files)?;
        let before = archived.first().filter(|anchor| !anchor.kept_ids().is_empty());
        let kept = kept_by_anchor(files, &transcript, &self.entries, before)?;
        archived.splice(archived.len().min(1)..archived.len().min(1), kept);
        let back: HashSet<(u64, u64)> = archived.iter().map(ContextEntry::identity).collect();
        let stayed = self.entries.iter().skip(1).filter(|entry| !back.contains(&entry.identity()));
        let mut window: Vec<ContextEntry> = archived.iter().chain(stayed).cloned().collect();
        if transcript.holds_window() {
            // The transcript is append-only: a new anchor states what belongs after it.
            let ids: Vec<&str> =
                window.iter().filter(|entry| !entry.is_anchor()).filter_map(|entry| entry.id.as_deref()).collect();
            let anchor = Anchor::Created.entry(&self.context.name, &EntryStamp::random(now), &ids);
            self.warnings.extend(transcript.add_anchor(files, &anchor, now)?);
            window.retain(|entry| !entry.is_anchor());
            window.insert(0, anchor);
        }
        let lines: Vec<&ContextEntry> = window.iter().collect();
        self.write(&lines)?;
        let archived = back.len();
        if let ContextTranscript::Archive(path) = &transcript {
            let mut kept = Vec::new();
            entry::each(files, path, &mut |entry| {
                if !back.contains(&entry.identity()) {
                    kept.extend_from_slice(&entry.line);
                    kept.push(b'\n');
                }
                Ok(())
            })?;
            replace(files, path, &kept).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        }
        self.end()?;
        let anchor = window.first().filter(|entry| entry.is_anchor()).cloned();
        let transcript = transcript.path().to_owned();
        Ok(Some(WindowChange { archived, entries: window.len(), anchor, transcript, warnings: self.warnings }))
    }
}

/// The entries that a compaction archived: in an archive everything from the anchor of the window before it on, in a transcript
/// everything between that anchor and the marker.
fn archived_by(
    marker: &ContextEntry,
    transcript: &ContextTranscript,
    files: &dyn crate::files::Files,
) -> Result<Vec<ContextEntry>, Error> {
    let mut archived: Vec<ContextEntry> = Vec::new();
    let mut past = false;
    transcript.each(files, &mut |entry| {
        past |= transcript.holds_window() && entry.identity() == marker.identity();
        if !past {
            if entry.is_anchor() {
                archived.clear();
            }
            archived.push(entry);
        }
        Ok(())
    })?;
    Ok(archived)
}
