//! One document of a recording: a head that speaks of the whole, what others wrote before, and the messages of this recording. It is
//! kept in step with the journal, which is always right; what others wrote is never touched, but for a title in the head.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::model::{self, Event};
use stenograph::read;
use stenograph::{Detected, Registry};

use super::Kind;
use super::body::Body;
use super::complete::complete;
use super::title::{HEAD_SIZE_MAX, Head, Title};
use crate::document::{LineDocument, Measured};
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, folder_of, make_folder, replace_with, write_again, write_all};
use crate::journal::Recorded;
use crate::tail::Warning;

/// A document of a recording.
pub struct Document {
    pub(super) files: Arc<dyn Files>,
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// How much others wrote, after the head.
    pub(super) base: u64,
    /// The head as it stands in the file.
    pub(super) head: Head,
    /// What is known of the conversation by now.
    pub(super) title: Title,
    /// Whether this recording had something to say about that.
    pub(super) titled: Titled,
    /// How much of the file is ours and stays.
    pub(super) settled: u64,
    /// What follows that and may still change.
    held: Vec<u8>,
    body: Option<Body>,
    file: FileState,
    /// How many bytes were written anew for the sake of a title.
    rewritten: u64,
}

/// The file, as far as it is written to.
enum FileState {
    /// Nothing was written yet: where nothing is said no file is made.
    NotYet,
    Open(Box<dyn OpenFile>),
    /// It is out of step, and completed at the end.
    Lost,
}

/// Whether a recording had something to say about the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Titled {
    Here,
    Elsewhere,
}

/// Titles that change again and again are not each worth a rewrite: so much, and a few times what is new, is.
const REWRITTEN_MAX: u64 = 16 << 20;
const REWRITTEN_FACTOR: u64 = 4;

impl Document {
    /// Looks at what others wrote, and says how much it is. What is there must be a document of that kind; half a line at its end
    /// is moved aside.
    pub fn base(files: &Arc<dyn Files>, path: &Path, kind: Kind) -> Result<(u64, Option<Warning>), Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        make_folder(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let beginning = beginning(files, path)?;
        if beginning.trim_ascii().is_empty() {
            return Ok((beginning.len() as u64, None));
        }
        if !is_recognised(&beginning, kind) && !holds_messages(&beginning, kind) {
            return Err(Error::about(path, Problem::Exists));
        }
        let (length, warning) = match kind {
            Kind::Chat => LineDocument::base(files, path)?,
            Kind::Trajectory => (end_line(files, path).map_err(unwritable)?, None),
        };
        let head = Head::of(&beginning, kind);
        Ok((length.saturating_sub(head.bytes.len() as u64), warning))
    }

    /// A document that goes on after so much of others.
    pub fn new(files: &Arc<dyn Files>, path: &Path, kind: Kind, base: u64) -> Document {
        Document {
            files: Arc::clone(files),
            path: path.to_owned(),
            kind,
            base,
            head: Head::default(),
            title: Title::default(),
            titled: Titled::Elsewhere,
            settled: 0,
            held: Vec::new(),
            body: None,
            file: FileState::NotYet,
            rewritten: 0,
        }
    }

    /// Gets ready to write. Where that fails the document is out of step, and completed at the end.
    pub fn begin(&mut self) {
        self.body = Some(Body::new(self.kind));
        match beginning(&self.files, &self.path) {
            Ok(beginning) => self.head = Head::of(&beginning, self.kind),
            Err(_) => self.file = FileState::Lost,
        }
        self.title = self.head.title.clone();
    }

    /// The open file, where it is in step.
    fn open(&mut self) -> Option<&mut dyn OpenFile> {
        if matches!(self.file, FileState::NotYet) {
            self.file = self.files.open(&self.path).map_or(FileState::Lost, FileState::Open);
        }
        match &mut self.file {
            FileState::Open(file) => Some(file.as_mut()),
            FileState::NotYet | FileState::Lost => None,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much others wrote, after the head.
    pub fn others(&self) -> u64 {
        self.base
    }

    /// Takes an event that is in the journal.
    pub fn add(&mut self, event: &Event<'_>) {
        if Title::is_about(event) {
            self.title.take(event);
            self.titled = Titled::Here;
            // A record may say it in several parts.
            if event.part.index.saturating_add(1) >= event.part.of {
                let wanted = self.wanted_head();
                self.put_head(&wanted);
            }
            return;
        }
        let Some(body) = &mut self.body else { return };
        let (bytes, held) = (body.event(event), body.held());
        if self.needs_head() && !bytes.is_empty() {
            let wanted = self.title.bytes(self.kind);
            self.put_head(&wanted);
        }
        self.put(&bytes, held);
    }

    /// Whether the file must begin with a head that is not there yet.
    fn needs_head(&self) -> bool {
        self.kind == Kind::Trajectory && self.base == 0 && self.head.bytes.is_empty()
    }

    /// Writes what is new, and what may still change, in the place of what changed.
    fn put(&mut self, bytes: &[u8], held: Vec<u8>) {
        if bytes.is_empty() && held == self.held {
            return;
        }
        let end = self.starts_at() + self.settled;
        let new = [bytes, &held].concat();
        let (before, files, path) = (std::mem::take(&mut self.held), Arc::clone(&self.files), self.path.clone());
        let Some(file) = self.open() else { return };
        let written = match new.strip_prefix(before.as_slice()) {
            // Almost always what was held back is as it was, and something follows.
            Some(rest) => write_all(file, rest),
            // What somebody else may have written after it must not go with it.
            None if !is_length(&files, &path, end + before.len() as u64) => Err(std::io::ErrorKind::Other.into()),
            None => file.truncate(end).and_then(|()| write_all(file, &new)),
        };
        if written.is_err() || !file.is_linked().unwrap_or(false) {
            // How much of it is there is not known: it is compared with the journal at the end.
            self.file = FileState::Lost;
            return;
        }
        self.settled += bytes.len() as u64;
        self.held = held;
    }

    /// Puts what is known of the conversation where it stands in the file.
    fn put_head(&mut self, wanted: &[u8]) {
        if wanted == self.head.bytes || self.open().is_none() {
            return;
        }
        let length = self.starts_at() + self.settled + self.held.len() as u64;
        let done = if length == 0 {
            self.open().is_some_and(|file| write_all(file, wanted).is_ok())
        } else if self.rewritten <= REWRITTEN_MAX + REWRITTEN_FACTOR * self.settled {
            self.rewritten += length;
            self.file = FileState::NotYet;
            self.replace_head(wanted).is_ok() && self.open().is_some()
        } else {
            // At the end it is.
            return;
        };
        if done {
            self.head = Head::of(wanted, self.kind);
        } else {
            self.file = FileState::Lost;
        }
    }

    /// The head as it should be. A document that somebody else began keeps its own, unless this recording has a title.
    pub(super) fn wanted_head(&self) -> Vec<u8> {
        match (self.titled, self.kind) {
            (Titled::Here, _) => self.head.saying(&self.title, self.kind),
            (Titled::Elsewhere, _) if self.needs_head() && self.settled > 0 => self.title.bytes(self.kind),
            (Titled::Elsewhere, _) => self.head.bytes.clone(),
        }
    }

    /// Writes the file anew with another head: whole, or not at all.
    pub(super) fn replace_head(&self, wanted: &[u8]) -> std::io::Result<()> {
        // A link stays a link: what it points to is replaced.
        let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut rest = self.files.reader(&path, self.head.bytes.len() as u64)?;
        let mut buffer = vec![0; 256 << 10];
        replace_with(self.files.as_ref(), &path, &mut |file| {
            write_all(file, wanted)?;
            loop {
                match rest.read(&mut buffer)? {
                    0 => return Ok(()),
                    length => write_all(file, buffer.get(..length).unwrap_or_default())?,
                }
            }
        })
    }

    /// Where what is ours begins.
    pub(super) fn starts_at(&self) -> u64 {
        self.head.bytes.len() as u64 + self.base
    }

    /// Completes the document and makes it durable.
    pub fn finish(&mut self, recorded: &Recorded) -> Result<Vec<Warning>, Error> {
        let mut in_step = false;
        if let Some(body) = self.body.take() {
            let rest = body.finish();
            self.put(&rest, Vec::new());
            let lost = matches!(self.file, FileState::Lost);
            let whole = is_length(&self.files, &self.path, self.starts_at() + self.settled);
            in_step = !lost && whole && self.wanted_head() == self.head.bytes;
        }
        let (warnings, synced) = match std::mem::replace(&mut self.file, FileState::NotYet) {
            FileState::Open(mut file) if in_step => (Vec::new(), file.sync()),
            FileState::NotYet if in_step => (Vec::new(), Ok(())),
            FileState::Open(_) | FileState::NotYet | FileState::Lost => {
                let warnings = complete(self, recorded)?;
                // Whoever wrote it may have seen a sync fail.
                let from = if self.base == 0 { 0 } else { self.starts_at() };
                let written = if self.exists() { write_again(self.files.as_ref(), &self.path, from) } else { Ok(()) };
                (warnings, written)
            }
        };
        let placed = || if self.exists() { self.files.sync_folder(folder_of(&self.path)) } else { Ok(()) };
        synced.and_then(|()| placed()).map_err(|error| Error::at(&self.path, Problem::Unwritable, error))?;
        Ok(warnings)
    }

    /// Whether there is a file at all.
    pub fn exists(&self) -> bool {
        !matches!(self.files.length(&self.path), Ok(None))
    }

    /// Whether the file was made, and nothing stands in it.
    pub fn is_claimed_only(&self) -> bool {
        is_length(&self.files, &self.path, 0)
    }

    /// Whether anybody who finds the file knows what it is.
    pub fn is_recognised(&self) -> bool {
        let beginning = beginning(&self.files, &self.path).unwrap_or_default();
        beginning.is_empty() || is_recognised(&beginning, self.kind)
    }

    /// What this recording wrote, to be read back.
    pub fn measured(&self) -> Result<Measured<'_>, Error> {
        let ours: Box<dyn Read> = match self.files.reader(&self.path, self.starts_at()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Box::new(std::io::empty()),
            opened => opened.map_err(|error| Error::at(&self.path, Problem::Unreadable, error))?,
        };
        let head = match (self.titled, self.kind) {
            (Titled::Here, _) | (_, Kind::Trajectory) => self.head.bytes.as_slice(),
            (Titled::Elsewhere, Kind::Chat) => &[],
        };
        Ok(Measured { format: self.kind.format(), bytes: Box::new(head.chain(ours)) })
    }
}

/// The first bytes of a file; none when it is not there.
pub(super) fn beginning(files: &Arc<dyn Files>, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = match files.reader(path, 0) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(bytes),
        opened => opened.and_then(|reader| reader.take(HEAD_SIZE_MAX).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    Ok(bytes)
}

/// Whether a file that begins so is taken for a document of that kind.
fn is_recognised(beginning: &[u8], kind: Kind) -> bool {
    matches!(Registry::built_in().detect(beginning), Detected::Format(format) if format.info().name == kind.format_name())
}

/// Whether a file that nobody recognises holds messages of that kind all the same: others may have put keys of their own into them.
fn holds_messages(beginning: &[u8], kind: Kind) -> bool {
    let whole = beginning.iter().rposition(|byte| *byte == b'\n').map_or(beginning.len(), |newline| newline + 1);
    let lines = beginning.get(..whole).unwrap_or_default();
    let unknown = !matches!(Registry::built_in().detect(beginning), Detected::Format(_));
    let message = |event: &Event<'_>| matches!(event.body, model::Body::Message { .. } | model::Body::ToolCall { .. });
    unknown && kind == Kind::Chat && read::all(kind.format(), lines).events.iter().any(message)
}

fn is_length(files: &Arc<dyn Files>, path: &Path, length: u64) -> bool {
    // A file that is not there is as good as an empty one.
    files.length(path).is_ok_and(|found| found.unwrap_or(0) == length)
}

/// Ends the last line of a text, and says how long it is.
fn end_line(files: &Arc<dyn Files>, path: &Path) -> std::io::Result<u64> {
    let length = files.length(path)?.unwrap_or(0);
    let last = files.read(path, length.saturating_sub(1))?;
    if last.ends_with(b"\n") || last.is_empty() {
        return Ok(length);
    }
    let mut file = files.open(path)?;
    write_all(file.as_mut(), b"\n").and_then(|()| file.sync())?;
    Ok(length + 1)
}
