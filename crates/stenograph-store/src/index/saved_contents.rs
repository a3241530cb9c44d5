//! The contents of conversations, saved between two runs of a program that shows them: reading a gigabyte takes seconds. Each
//! document group has two files: the contents as they were last read, and the state of the fold near the end of the source, from
//! which a source that has grown is continued. Both are derived: a file that is damaged, of another version or of other sources is
//! ignored, and the contents are read again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stenograph::contents::{Contents, ContentsBuilder};
use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Span};
use stenograph::read::{Reading, Sink};
use stenograph::repeat::CheckRepeats;
use xxhash_rust::xxh3::xxh3_64;

use super::catalogue::{Catalogue, FileStamp, Gone};
use super::change::{self, is_unchanged};
use super::{Store, private};
use crate::databases;
use crate::discover::Stat;
use crate::files::{Disk, replace};
use crate::fingerprint::{FINGERPRINT_SIZE, Fingerprint, WHOLE_SIZE_MAX};
use crate::session_events::SessionEvents;
use crate::source_file::Access;
use crate::{Error, Problem};

/// The version of saved contents. Raise the number when the layout changes (a golden shows that) or when the rules of the audit
/// change between two releases.
pub(super) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/5");

/// The folder of saved contents, in that of the index.
const FOLDER: &str = "contents";

/// The first word of a file.
const MAGIC: &str = "steno-contents";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SavedPart {
    /// The contents.
    Contents,
    /// The state from which they are continued.
    State,
}

impl SavedPart {
    fn name(self) -> &'static str {
        match self {
            SavedPart::Contents => "contents",
            SavedPart::State => "state",
        }
    }
}

/// Contents of smaller conversations are not saved: they are read within milliseconds.
const SAVED_SIZE_MIN: u64 = 1 << 20;

/// How many bytes may follow the saved state before it is saved again: reading them takes less time than saving.
const STATE_STEP: u64 = 4 << 20;

/// How far before the end the state is saved. The last records may wait for others, and the last line may be incomplete.
const STATE_MARGIN: u64 = 256 << 10;

/// How many bytes are read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// One program at a time writes a file; another program that writes it in the same moment only damages it.
static WRITING: Mutex<()> = Mutex::new(());

/// The contents of a conversation, and what they were read from.
#[derive(Serialize, Deserialize)]
struct SavedContents {
    sources: ReadSources,
    contents: Contents,
}

/// What contents were read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReadSources {
    /// The files; `None` for one that is gone.
    files: Vec<(PathBuf, Option<FileStamp>)>,
    /// The copy in the archive and how much of the source it has.
    archived: Option<(String, u64)>,
    /// When they were read, in nanoseconds since 1970.
    seen: i64,
}

/// The state of the fold at the beginning of a line.
#[derive(Debug, Serialize, Deserialize)]
struct SavedState {
    path: PathBuf,
    /// The offset of the line.
    offset: u64,
    /// Its number, from 1.
    line: u64,
    /// The number of its first event, from 1.
    event: u64,
    fingerprint: Fingerprint,
    /// The checksum of all bytes before it, if they are few.
    sum: Option<u32>,
    repeats: String,
    builder: ContentsBuilder,
}

impl ReadSources {
    fn of(events: &SessionEvents) -> ReadSources {
        let stamp = |path: PathBuf| {
            let stamp = Stat::of(&path).ok().map(FileStamp::from);
            (path, stamp)
        };
        let row = events.row();
        ReadSources {
            files: events.files().into_iter().map(stamp).collect(),
            archived: row
                .archive_copy
                .clone()
                .filter(|_| row.gone != Gone::There)
                .map(|copy| (copy, row.archived_length)),
            seen: jiff::Timestamp::now().as_nanosecond().try_into().unwrap_or(i64::MAX),
        }
    }

    /// Whether these sources provably have not changed since.
    fn is_unchanged(&self, now: &ReadSources) -> bool {
        let is_same = |known: &Option<FileStamp>, now: &Option<FileStamp>| match (known, now) {
            (Some(known), Some(now)) => is_unchanged(known, self.seen, now),
            (None, None) => true,
            _ => false,
        };
        let mut pairs = self.files.iter().zip(&now.files);
        self.files.len() == now.files.len()
            && self.archived == now.archived
            && pairs.all(|((path, known), (now_path, now))| path == now_path && is_same(known, now))
    }

    fn size(&self) -> u64 {
        let archived = self.archived.as_ref().map_or(0, |(_, length)| *length);
        self.files.iter().filter_map(|(_, stamp)| stamp.as_ref()).map(|stamp| stamp.size).sum::<u64>().max(archived)
    }
}

impl SavedState {
    /// Whether a file still begins with the bytes that the state was made from.
    fn is_of(&self, file: &mut File, size: u64) -> io::Result<bool> {
        if self.offset > size || !self.fingerprint.is_on(file)? {
            return Ok(false);
        }
        match self.sum {
            Some(sum) => Ok(change::sum(file, 0, 0..self.offset)? == sum),
            None => Ok(true),
        }
    }
}

impl SessionEvents {
    /// The contents of the conversation. What was saved of them is not read again.
    pub fn contents(&self, store: &Store) -> Result<Contents, Error> {
        let now = ReadSources::of(self);
        let doc_group = self.row().doc_group;
        // Masked texts depend on secrets that other sources show, and a copy has no group of its own.
        if self.is_redacted() || doc_group == 0 || now.size() < SAVED_SIZE_MIN {
            return self.read_contents(store);
        }
        let saved = SavedFiles { store, doc_group };
        if let Some(known) = saved.read::<SavedContents>(SavedPart::Contents)
            && known.sources.is_unchanged(&now)
        {
            return Ok(known.contents);
        }
        let contents = match now.files.as_slice() {
            [(path, Some(stamp))] if self.is_continued() => {
                let from = saved.read::<SavedState>(SavedPart::State).filter(|state| state.path == *path);
                let (contents, state) = continued(path, stamp.size, self.format(), from)?;
                if let Some(state) = state {
                    saved.write(SavedPart::State, &state, self);
                }
                contents
            }
            _ => self.read_contents(store)?,
        };
        let contents = SavedContents { sources: now, contents };
        if let Ok(bytes) = serde_json::to_vec(&contents) {
            saved.write(SavedPart::Contents, &bytes, self);
        }
        Ok(contents.contents)
    }

    fn read_contents(&self, store: &Store) -> Result<Contents, Error> {
        let mut contents = ContentsBuilder::default();
        self.all(store, &mut |number, event| contents.add(number, event))?;
        Ok(contents.finish())
    }

    /// Whether appended records can be read alone.
    fn is_continued(&self) -> bool {
        let row = self.row();
        row.access == Access::ByRecord && row.gone == Gone::There && row.copy_of.is_none()
    }
}

/// Numbers events and adds them to the contents.
struct ContentsSink {
    next: u64,
    builder: ContentsBuilder,
}

impl Sink for ContentsSink {
    fn event(&mut self, event: &Event<'_>) {
        self.builder.add(self.next, event);
        self.next += 1;
    }
}

/// Reads the contents of the first `size` bytes of a file, from the saved state if the file still begins with what that was made
/// from. Returns a new state too, if it is worth saving.
fn continued(
    path: &Path,
    size: u64,
    format: &'static dyn Format,
    from: Option<SavedState>,
) -> Result<(Contents, Option<Vec<u8>>), Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let mut file = databases::open_file(path).map_err(unreadable)?;
    let from = match from {
        Some(state) => state.is_of(&mut file, size).map_err(unreadable)?.then_some(state),
        None => None,
    };
    let known_until = from.as_ref().map_or(0, |state| state.offset);
    // A file is continued where its state is; it is saved again only if much has followed.
    let save_from = size.saturating_sub(STATE_MARGIN).max(known_until.saturating_add(STATE_STEP));
    let (mut offset, mut line, mut checked) = match from {
        Some(SavedState { offset, line, event, repeats, builder, .. }) => {
            (offset, line, CheckRepeats::resumed(ContentsSink { next: event, builder }, &repeats))
        }
        None => (0, 1, CheckRepeats::new(ContentsSink { next: 1, builder: ContentsBuilder::default() })),
    };
    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    let mut reading = Reading::from_line(format, Wanted::All, Span { offset, length: 0, line });
    let (mut buffer, mut saved) = (vec![0; CHUNK_SIZE], None);
    while offset < size {
        let wanted = usize::try_from(size - offset).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
        let length = match file.read(buffer.get_mut(..wanted).unwrap_or_default()) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        let mut chunk = buffer.get(..length).unwrap_or_default();
        while saved.is_none() && offset + chunk.len() as u64 > save_from {
            let begin = usize::try_from(save_from.saturating_sub(offset)).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', chunk.get(begin..).unwrap_or_default()) else { break };
            let (before, after) = chunk.split_at(begin + end + 1);
            reading.feed(before, &mut checked);
            (offset, line) = (offset + before.len() as u64, line + lines(before));
            chunk = after;
            // Nothing waits for later records here.
            if let Some(repeats) = checked.save().filter(|_| reading.stable_until() == offset) {
                let fingerprint = Fingerprint::of(&file, offset.min(FINGERPRINT_SIZE), offset).map_err(unreadable)?;
                let sum = (offset <= WHOLE_SIZE_MAX).then(|| change::sum(&mut file, 0, 0..offset)).transpose();
                let sum = sum.map_err(unreadable)?;
                file.seek(SeekFrom::Start(offset + chunk.len() as u64)).map_err(unreadable)?;
                let ContentsSink { next: event, builder } = &checked.sink;
                let state = StateAt { path, offset, line, event: *event, fingerprint, sum, repeats, builder };
                saved = serde_json::to_vec(&state).ok();
            }
        }
        reading.feed(chunk, &mut checked);
        (offset, line) = (offset + chunk.len() as u64, line + lines(chunk));
    }
    reading.end(&mut checked);
    checked.finish();
    Ok((checked.sink.builder.finish(), saved))
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// [`SavedState`] while the fold continues.
#[derive(Serialize)]
struct StateAt<'s> {
    path: &'s Path,
    offset: u64,
    line: u64,
    event: u64,
    fingerprint: Fingerprint,
    sum: Option<u32>,
    repeats: String,
    builder: &'s ContentsBuilder,
}

/// The files of one document group.
#[derive(Clone, Copy)]
struct SavedFiles<'s> {
    store: &'s Store,
    doc_group: u64,
}

impl SavedFiles<'_> {
    fn path(&self, part: SavedPart) -> PathBuf {
        self.store.index().join(FOLDER).join(format!("{}.{}", self.doc_group, part.name()))
    }

    /// What was saved; `None` if there is nothing, or it is damaged or of another version.
    fn read<T: DeserializeOwned>(&self, part: SavedPart) -> Option<T> {
        let bytes = fs::read(self.path(part)).ok()?;
        let at = memchr::memchr(b'\n', &bytes)?;
        let (head, body) = (bytes.get(..at)?, bytes.get(at + 1..)?);
        (head == self.head(part, body).as_bytes()).then(|| serde_json::from_slice(body).ok())?
    }

    /// The first line of a file with this body.
    fn head(&self, part: SavedPart, body: &[u8]) -> String {
        format!("{MAGIC} {VERSION} {} {} {:016x}", part.name(), self.doc_group, xxh3_64(body))
    }

    /// Saves a part. If that fails, the contents are read again next time.
    fn write(&self, part: SavedPart, body: &[u8], events: &SessionEvents) {
        let mut bytes = self.head(part, body).into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        // A source that was removed or read again since has another group, and nobody would remove this file.
        let row = self.store.catalogue().and_then(|catalogue| catalogue.source(events.row().id));
        let is_live = matches!(row, Ok(Some(row)) if row.doc_group == self.doc_group);
        if is_live && private::folder(&self.store.index().join(FOLDER)).is_ok() {
            let _ = replace(&Disk, &self.path(part), &bytes);
        }
    }
}

/// Removes the saved contents of document groups that are no longer live. A file that cannot be removed is tried again after the
/// next run.
pub(super) fn sweep(index: &Path, catalogue: &Catalogue) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(index.join(FOLDER)) else { return Ok(()) };
    let doc_group = |name: &OsStr| name.to_str().and_then(|name| name.split('.').next()?.parse().ok());
    let saved: Vec<(PathBuf, Option<u64>)> =
        entries.flatten().map(|entry| (entry.path(), doc_group(&entry.file_name()))).collect();
    let live = catalogue.doc_groups(&saved.iter().filter_map(|(_, doc_group)| *doc_group).collect())?;
    for (path, doc_group) in saved {
        if !doc_group.is_some_and(|doc_group| live.has(doc_group)) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
