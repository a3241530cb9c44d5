//! The permanent storage of a context's entries: the archive of the document, the single transcript of 0.5.0, or the current
//! folder of partitions. Entries are only added, and existing ones are not added again.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use stenograph::json;

use super::entry::{self, ContextEntry};
use super::partitions::Partitions;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, replace, write_all};
use crate::tail::{self, LastLineRule, Warning};

/// The transcript of a context.
#[derive(Debug)]
pub enum ContextTranscript {
    /// `transcript_archive.jsonl`: the entries that left the window. The window holds the rest.
    Archive(PathBuf),
    /// `transcript.jsonl`, as 0.5.0 wrote it: everything, including the window's entries.
    Single(PathBuf),
    /// `transcript/`, as Chibi writes it today: everything, including the window's entries.
    Folder(Partitions),
}

/// The result of adding entries to a transcript.
#[derive(Debug, Default)]
pub struct AddedEntries {
    /// The number of entries that were new.
    pub entries: usize,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// When written entries must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncTime {
    /// Before anything else happens.
    Now,
    /// At the next explicit sync.
    Later,
}

impl ContextTranscript {
    /// The transcript of the context in this folder.
    pub fn of(folder: &Path) -> ContextTranscript {
        let partitions = folder.join("transcript");
        let single = folder.join("transcript.jsonl");
        if partitions.is_dir() {
            ContextTranscript::Folder(Partitions::new(partitions))
        } else if single.is_file() {
            ContextTranscript::Single(single)
        } else {
            ContextTranscript::Archive(folder.join("transcript_archive.jsonl"))
        }
    }

    /// Whether a file is named like one of a transcript in this folder that includes the entries of the window.
    pub(super) fn is_whole(path: &Path, folder: &Path) -> bool {
        path == folder.join("transcript.jsonl") || path.starts_with(folder.join("transcript"))
    }

    /// Whether it includes the entries of the window.
    pub(crate) fn holds_window(&self) -> bool {
        match self {
            ContextTranscript::Archive(_) => false,
            ContextTranscript::Single(_) | ContextTranscript::Folder(_) => true,
        }
    }

    /// Its file or folder.
    pub(crate) fn path(&self) -> &Path {
        match self {
            ContextTranscript::Archive(path) | ContextTranscript::Single(path) => path,
            ContextTranscript::Folder(partitions) => partitions.folder(),
        }
    }

    /// Its files, oldest first.
    pub fn files(&self, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
        match self {
            ContextTranscript::Archive(path) | ContextTranscript::Single(path) => Ok(vec![path.clone()]),
            ContextTranscript::Folder(partitions) => partitions.files(files),
        }
    }

    /// Reads all its entries, oldest first.
    pub fn each(
        &self,
        files: &dyn Files,
        visit: &mut dyn FnMut(ContextEntry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for path in self.files(files)? {
            entry::each(files, &path, visit)?;
        }
        Ok(())
    }

    /// The entries that it has.
    pub fn held(&self, files: &dyn Files) -> Result<KnownEntries, Error> {
        self.known(files, WindowState::Current)
    }

    /// The entries that it has, for comparison with a window in this state.
    pub fn known(&self, files: &dyn Files, window: WindowState) -> Result<KnownEntries, Error> {
        let mut known = KnownEntries { window, ..KnownEntries::new(self) };
        self.each(files, &mut |entry| {
            known.add(&entry);
            Ok(())
        })?;
        Ok(known)
    }

    /// Adds the missing entries in their order and makes them durable.
    pub(crate) fn add_missing(
        &mut self,
        files: &dyn Files,
        entries: &[&ContextEntry],
        now: u64,
    ) -> Result<AddedEntries, Error> {
        let mut known = self.held(files)?;
        let missing: Vec<&ContextEntry> = entries.iter().copied().filter(|entry| !known.take_match(entry)).collect();
        let warnings = self.append(files, &missing, now, SyncTime::Now)?;
        Ok(AddedEntries { entries: missing.len(), warnings })
    }

    /// Adds an anchor that was made for this transcript, unless it already has it.
    pub(crate) fn add_anchor(
        &mut self,
        files: &dyn Files,
        anchor: &ContextEntry,
        now: u64,
    ) -> Result<Vec<Warning>, Error> {
        let missing: &[&ContextEntry] = if self.held(files)?.has(anchor) { &[] } else { &[anchor] };
        self.append(files, missing, now, SyncTime::Now)
    }

    /// Inserts entries before others in the current file; `before` selects those. Invalid lines among `ours` are remains of a
    /// power failure, and are moved to another file.
    pub fn insert(
        &mut self,
        files: &dyn Files,
        before: &HashMap<(u64, u64), Vec<ContextEntry>>,
        ours: &HashSet<(u64, u64)>,
    ) -> Result<Vec<Warning>, Error> {
        match self {
            ContextTranscript::Archive(path) | ContextTranscript::Single(path) => {
                insert_lines(files, path, before, ours)
            }
            ContextTranscript::Folder(partitions) => {
                partitions.change(files, |path| insert_lines(files, path, before, ours))
            }
        }
    }

    /// Appends entries.
    pub fn append(
        &mut self,
        files: &dyn Files,
        entries: &[&ContextEntry],
        now: u64,
        sync: SyncTime,
    ) -> Result<Vec<Warning>, Error> {
        match self {
            ContextTranscript::Archive(path) | ContextTranscript::Single(path) => {
                append_lines(files, path, entries, sync)
            }
            ContextTranscript::Folder(partitions) => partitions.append(files, entries, now, sync),
        }
    }
}

/// Appends entries to a file of lines. Moves half a line at its end aside first.
pub(crate) fn append_lines(
    files: &dyn Files,
    path: &Path,
    entries: &[&ContextEntry],
    sync: SyncTime,
) -> Result<Vec<Warning>, Error> {
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    if entries.is_empty() && sync == SyncTime::Later {
        return Ok(Vec::new());
    }
    create_folder_durably(files, folder_of(path)).map_err(unwritable)?;
    let tail = tail::repair_tail(files, path, LastLineRule::MayLackNewline)?;
    if entries.is_empty() && tail.length == 0 {
        return Ok(tail.warning.into_iter().collect());
    }
    let mut bytes = Vec::new();
    if tail.lacks_newline {
        bytes.push(b'\n');
    }
    for entry in entries {
        bytes.extend_from_slice(&entry.line);
        bytes.push(b'\n');
    }
    let mut file = files.open(path).map_err(unwritable)?;
    if let Err(error) = write_all(file.as_mut(), &bytes) {
        // Half of it must not stay, or the next writer would continue half a line.
        let _ = file.truncate(tail.length);
        return Err(unwritable(error));
    }
    if sync == SyncTime::Now {
        // Earlier bytes may have been left unsynced by their writer, and later steps rely on them.
        file.sync().map_err(unwritable)?;
        files.sync_folder(folder_of(path)).map_err(unwritable)?;
    }
    Ok(tail.warning.into_iter().collect())
}

fn insert_lines(
    files: &dyn Files,
    path: &Path,
    before: &HashMap<(u64, u64), Vec<ContextEntry>>,
    ours: &HashSet<(u64, u64)>,
) -> Result<Vec<Warning>, Error> {
    let (mut bytes, mut damaged, mut began) = (Vec::new(), Vec::new(), false);
    entry::each(files, path, &mut |entry| {
        began |= ours.contains(&entry.identity());
        let whole = std::str::from_utf8(&entry.line).is_ok_and(|line| json::is_valid(line.trim()));
        let inserted = before.get(&entry.identity()).map(Vec::as_slice).unwrap_or_default();
        let kept = if whole || !began { &mut bytes } else { &mut damaged };
        for entry in inserted.iter().chain([&entry]) {
            kept.extend_from_slice(&entry.line);
            kept.push(b'\n');
        }
        Ok(())
    })?;
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    let mut warnings = Vec::new();
    if !damaged.is_empty() {
        let aside = tail::move_aside(files, path, &damaged).map_err(unwritable)?;
        let text = format!("{} damaged bytes were moved to {}", damaged.len(), aside.display());
        warnings.push(Warning::new(path, text));
    }
    if !before.is_empty() || !damaged.is_empty() {
        replace(files, path, &bytes).map_err(unwritable)?;
    }
    Ok(warnings)
}

/// Whether the window that entries are compared with is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// It begins at the last anchor of the transcript.
    Current,
    /// It may still begin at the anchor before that.
    OutOfDate,
}

/// The entries of a transcript, in some tens of bytes each.
#[derive(Debug)]
pub struct KnownEntries {
    identities: HashSet<(u64, u64)>,
    /// Chibi rewrites its window with other ids: how often each content occurs that the window may hold, and the anchors.
    hash_counts: Option<HashMap<u64, usize>>,
    /// The same from before the last anchor, for a window that is out of date.
    earlier_counts: HashMap<u64, usize>,
    anchors: HashSet<u64>,
    window: WindowState,
}

impl KnownEntries {
    /// An empty set.
    pub fn new(transcript: &ContextTranscript) -> KnownEntries {
        let hash_counts = transcript.holds_window().then(HashMap::new);
        let window = WindowState::Current;
        KnownEntries {
            identities: HashSet::new(),
            hash_counts,
            earlier_counts: HashMap::new(),
            anchors: HashSet::new(),
            window,
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: &ContextEntry) {
        let new = self.identities.insert(entry.identity());
        let Some(hash_counts) = &mut self.hash_counts else { return };
        if let Some(anchor) = entry.anchor() {
            self.anchors.insert(anchor);
            // A window begins at its anchor, unless entries before it were kept. Equal content after that is new.
            if !entry.may_keep() {
                let before = std::mem::take(hash_counts);
                if self.window == WindowState::OutOfDate {
                    self.earlier_counts = before;
                }
            }
        } else if new {
            *hash_counts.entry(entry.content_hash()).or_default() += 1;
        }
    }

    /// Whether it has the entry; an entry with another id and the same content counts once.
    pub(crate) fn take_match(&mut self, entry: &ContextEntry) -> bool {
        let known = self.identities.contains(&entry.identity());
        let again = match (entry.anchor(), &self.hash_counts) {
            // The beginning of a window was made for it, unless it has a summary that exists nowhere else.
            (Some(anchor), Some(_)) => !entry.may_keep() || self.anchors.contains(&anchor),
            (Some(_), None) => false,
            (None, _) => self.count_down(entry.content_hash()),
        };
        if !known && !again {
            self.identities.insert(entry.identity());
        }
        known || again
    }

    /// Whether it has exactly this entry.
    pub fn has(&self, entry: &ContextEntry) -> bool {
        self.identities.contains(&entry.identity())
    }

    fn count_down(&mut self, content_hash: u64) -> bool {
        let Some(counts) = &mut self.hash_counts else { return false };
        for counts in [counts, &mut self.earlier_counts] {
            if let Some(count) = counts.get_mut(&content_hash).filter(|count| **count > 0) {
                *count -= 1;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    fn message(id: &str, content: &str) -> ContextEntry {
        let line = format!(
            r#"{{"id":"{id}","timestamp":5,"from":"a","to":"b","content":"{content}","entry_type":"message"}}"#
        );
        ContextEntry::new(line.as_bytes())
    }

    #[test]
    fn an_archived_entry_is_not_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (message("1", "yes"), message("2", "yes"));
        let mut archive = ContextTranscript::of(folder.path());
        assert_eq!(archive.add_missing(&Disk, &[&one], 9).unwrap().entries, 1);
        assert_eq!(archive.add_missing(&Disk, &[&one, &two], 9).unwrap().entries, 1);
        assert_eq!(archive.add_missing(&Disk, &[&one, &two], 9).unwrap().entries, 0);
        // One id with two contents is two entries.
        assert_eq!(archive.add_missing(&Disk, &[&message("1", "no")], 9).unwrap().entries, 1);
        assert_eq!(entry::all(&Disk, &folder.path().join("transcript_archive.jsonl")).unwrap().len(), 3);
    }

    #[test]
    fn a_window_that_chibi_rewrote_is_recognised_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("transcript.jsonl"), "").unwrap();
        let mut transcript = ContextTranscript::of(folder.path());
        transcript.add_missing(&Disk, &[&message("1", "yes"), &message("2", "no")], 9).unwrap();
        let rewrite = [message("x", "yes"), message("y", "no"), message("z", "yes")];
        let rewrite: Vec<&ContextEntry> = rewrite.iter().collect();
        assert_eq!(transcript.add_missing(&Disk, &rewrite, 9).unwrap().entries, 1);
    }

    #[test]
    fn half_a_line_at_the_end_is_moved_aside_with_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("transcript_archive.jsonl"), "{\"id\":\"0\"}\n{\"id\":").unwrap();
        let mut archive = ContextTranscript::of(folder.path());
        let added = archive.add_missing(&Disk, &[&message("1", "a")], 9).unwrap();
        assert!(added.warnings[0].text.contains("torn-1"));
        assert_eq!(entry::all(&Disk, &folder.path().join("transcript_archive.jsonl")).unwrap().len(), 2);
    }
}
