//! One document of a recording: a head about the whole conversation, the content of other programs, and the messages of this
//! recording. It is kept in step with the journal, which is always right; the content of others is never touched, except for a
//! title in the head.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::model::{self, Event};
use stenograph::read;
use stenograph::{Detected, Registry};

use super::DocumentKind;
use super::body::DocumentBody;
use super::complete::complete;
use super::title::{ConversationTitle, DocumentHead, HEAD_SIZE_MAX};
use crate::document::{ComparedDocument, LineDocument};
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, create_folder_durably, folder_of, replace_with, rewrite_from, write_all};
use crate::journal::Recording;
use crate::tail::Warning;

/// A document of a recording.
pub struct CycodDocument {
    pub(super) files: Arc<dyn Files>,
    pub(super) path: PathBuf,
    pub(super) kind: DocumentKind,
    /// The size of the others' content after the head.
    pub(super) base: u64,
    /// The head as it is in the file.
    pub(super) head: DocumentHead,
    /// The current title data of the conversation.
    pub(super) title: ConversationTitle,
    /// Whether this recording changed the title.
    pub(super) title_changed: TitleChanged,
    /// The end of our final bytes, relative to our part.
    pub(super) final_size: u64,
    /// The bytes after that, which may still change.
    held_back: Vec<u8>,
    body: Option<DocumentBody>,
    file: FileState,
    /// How many bytes were rewritten to change a title.
    rewritten: u64,
}

/// The file, as far as it is written to.
enum FileState {
    /// Nothing was written yet: without content no file is created.
    NotYet,
    Open(Box<dyn OpenFile>),
    /// It is out of step and is completed at the end.
    Lost,
}

/// Whether a recording changed the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TitleChanged {
    Here,
    Elsewhere,
}

/// The budget for rewriting a file to change its title: this much, plus a multiple of the new content.
const REWRITTEN_MAX: u64 = 16 << 20;
const REWRITTEN_FACTOR: u64 = 4;

impl CycodDocument {
    /// Checks the others' content and returns its size. It must be a document of this kind; half a line at its end is moved
    /// aside.
    pub fn base(files: &Arc<dyn Files>, path: &Path, kind: DocumentKind) -> Result<(u64, Option<Warning>), Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        create_folder_durably(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let beginning = beginning(files, path)?;
        if beginning.trim_ascii().is_empty() {
            return Ok((beginning.len() as u64, None));
        }
        if !is_recognised(&beginning, kind) && !holds_messages(&beginning, kind) {
            return Err(Error::about(path, Problem::Exists));
        }
        let (length, warning) = match kind {
            DocumentKind::Chat => LineDocument::base(files, path)?,
            DocumentKind::Trajectory => (end_line(files, path).map_err(unwritable)?, None),
        };
        let head = DocumentHead::of(&beginning, kind);
        Ok((length.saturating_sub(head.bytes.len() as u64), warning))
    }

    /// A document that continues after this much content of others.
    pub fn new(files: &Arc<dyn Files>, path: &Path, kind: DocumentKind, base: u64) -> CycodDocument {
        CycodDocument {
            files: Arc::clone(files),
            path: path.to_owned(),
            kind,
            base,
            head: DocumentHead::default(),
            title: ConversationTitle::default(),
            title_changed: TitleChanged::Elsewhere,
            final_size: 0,
            held_back: Vec::new(),
            body: None,
            file: FileState::NotYet,
            rewritten: 0,
        }
    }

    /// Prepares to write. If that fails, the document is out of step and is completed at the end.
    pub fn begin(&mut self) {
        self.body = Some(DocumentBody::new(self.kind));
        match beginning(&self.files, &self.path) {
            Ok(beginning) => self.head = DocumentHead::of(&beginning, self.kind),
            Err(_) => self.file = FileState::Lost,
        }
        self.title = self.head.title.clone();
    }

    /// The open file, if it is in step.
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

    /// The size of the others' content after the head.
    pub fn others(&self) -> u64 {
        self.base
    }

    /// Adds an event that is in the journal.
    pub fn add(&mut self, event: &Event<'_>) {
        if ConversationTitle::is_about(event) {
            self.title.take(event);
            self.title_changed = TitleChanged::Here;
            // A record may state it in several parts.
            if event.part.is_last() {
                let wanted = self.wanted_head();
                self.put_head(&wanted);
            }
            return;
        }
        let Some(body) = &mut self.body else { return };
        let (bytes, held_back) = (body.event(event), body.held_back());
        if self.needs_head() && !bytes.is_empty() {
            let wanted = self.title.bytes(self.kind);
            self.put_head(&wanted);
        }
        self.put(&bytes, held_back);
    }

    /// Whether the file must begin with a head that is not there yet.
    fn needs_head(&self) -> bool {
        self.kind == DocumentKind::Trajectory && self.base == 0 && self.head.bytes.is_empty()
    }

    /// Writes the new bytes and those that may still change, replacing the ones that changed.
    fn put(&mut self, bytes: &[u8], held_back: Vec<u8>) {
        if bytes.is_empty() && held_back == self.held_back {
            return;
        }
        let end = self.starts_at() + self.final_size;
        let new = [bytes, &held_back].concat();
        let (before, files, path) = (std::mem::take(&mut self.held_back), Arc::clone(&self.files), self.path.clone());
        let Some(file) = self.open() else { return };
        let written = match new.strip_prefix(before.as_slice()) {
            // Usually the held-back bytes are unchanged, and more follow.
            Some(rest) => write_all(file, rest),
            // Content that another program may have added after it must not be removed.
            None if !is_length(&files, &path, end + before.len() as u64) => Err(std::io::ErrorKind::Other.into()),
            None => file.truncate(end).and_then(|()| write_all(file, &new)),
        };
        if written.is_err() || !file.is_linked().unwrap_or(false) {
            // How much was written is unknown: it is compared with the journal at the end.
            self.file = FileState::Lost;
            return;
        }
        self.final_size += bytes.len() as u64;
        self.held_back = held_back;
    }

    /// Updates the head in the file.
    fn put_head(&mut self, wanted: &[u8]) {
        if wanted == self.head.bytes || self.open().is_none() {
            return;
        }
        let length = self.starts_at() + self.final_size + self.held_back.len() as u64;
        let done = if length == 0 {
            self.open().is_some_and(|file| write_all(file, wanted).is_ok())
        } else if self.rewritten <= REWRITTEN_MAX + REWRITTEN_FACTOR * self.final_size {
            self.rewritten += length;
            self.file = FileState::NotYet;
            self.replace_head(wanted).is_ok() && self.open().is_some()
        } else {
            // At the end it is written in any case.
            return;
        };
        if done {
            self.head = DocumentHead::of(wanted, self.kind);
        } else {
            self.file = FileState::Lost;
        }
    }

    /// The expected head. A document that another program began keeps its own, unless this recording has a title.
    pub(super) fn wanted_head(&self) -> Vec<u8> {
        match (self.title_changed, self.kind) {
            (TitleChanged::Here, _) => self.head.saying(&self.title, self.kind),
            (TitleChanged::Elsewhere, _) if self.needs_head() && self.final_size > 0 => self.title.bytes(self.kind),
            (TitleChanged::Elsewhere, _) => self.head.bytes.clone(),
        }
    }

    /// Rewrites the file with another head: completely or not at all.
    pub(super) fn replace_head(&self, wanted: &[u8]) -> std::io::Result<()> {
        // A link stays a link: the file that it points to is replaced.
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

    /// The offset at which our part begins.
    pub(super) fn starts_at(&self) -> u64 {
        self.head.bytes.len() as u64 + self.base
    }

    /// Completes the document and makes it durable.
    pub fn finish(&mut self, recorded: &Recording) -> Result<Vec<Warning>, Error> {
        let mut in_step = false;
        if let Some(body) = self.body.take() {
            let rest = body.finish();
            self.put(&rest, Vec::new());
            let lost = matches!(self.file, FileState::Lost);
            let whole = is_length(&self.files, &self.path, self.starts_at() + self.final_size);
            in_step = !lost && whole && self.wanted_head() == self.head.bytes;
        }
        let (warnings, synced) = match std::mem::replace(&mut self.file, FileState::NotYet) {
            FileState::Open(mut file) if in_step => (Vec::new(), file.sync()),
            FileState::NotYet if in_step => (Vec::new(), Ok(())),
            FileState::Open(_) | FileState::NotYet | FileState::Lost => {
                let warnings = complete(self, recorded)?;
                // A sync by an earlier process may have failed.
                let from = if self.base == 0 { 0 } else { self.starts_at() };
                let written = if self.exists() { rewrite_from(self.files.as_ref(), &self.path, from) } else { Ok(()) };
                (warnings, written)
            }
        };
        let placed = || if self.exists() { self.files.sync_folder(folder_of(&self.path)) } else { Ok(()) };
        synced.and_then(|()| placed()).map_err(|error| Error::at(&self.path, Problem::Unwritable, error))?;
        Ok(warnings)
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        !matches!(self.files.length(&self.path), Ok(None))
    }

    /// Whether the file was created but is empty.
    pub fn is_claimed_only(&self) -> bool {
        is_length(&self.files, &self.path, 0)
    }

    /// Whether the file's format can be detected.
    pub fn is_recognised(&self) -> bool {
        let beginning = beginning(&self.files, &self.path).unwrap_or_default();
        beginning.is_empty() || is_recognised(&beginning, self.kind)
    }

    /// The part that this recording wrote, to be read back.
    pub fn measured(&self) -> Result<ComparedDocument<'_>, Error> {
        let ours: Box<dyn Read> = match self.files.reader(&self.path, self.starts_at()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Box::new(std::io::empty()),
            opened => opened.map_err(|error| Error::at(&self.path, Problem::Unreadable, error))?,
        };
        let head = match (self.title_changed, self.kind) {
            (TitleChanged::Here, _) | (_, DocumentKind::Trajectory) => self.head.bytes.as_slice(),
            (TitleChanged::Elsewhere, DocumentKind::Chat) => &[],
        };
        Ok(ComparedDocument { format: self.kind.format(), bytes: Box::new(head.chain(ours)) })
    }
}

/// The first bytes of a file; empty if it is missing.
pub(super) fn beginning(files: &Arc<dyn Files>, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = match files.reader(path, 0) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(bytes),
        opened => opened.and_then(|reader| reader.take(HEAD_SIZE_MAX).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    Ok(bytes)
}

/// Whether a file with this beginning is detected as a document of this kind.
fn is_recognised(beginning: &[u8], kind: DocumentKind) -> bool {
    matches!(Registry::built_in().detect(beginning), Detected::Format(format) if format.info().name == kind.format_name())
}

/// Whether a file contains messages of this kind although its format is not detected: other programs may have added their own
/// keys.
fn holds_messages(beginning: &[u8], kind: DocumentKind) -> bool {
    let whole = beginning.iter().rposition(|byte| *byte == b'\n').map_or(beginning.len(), |newline| newline + 1);
    let lines = beginning.get(..whole).unwrap_or_default();
    let unknown = !matches!(Registry::built_in().detect(beginning), Detected::Format(_));
    let message = |event: &Event<'_>| matches!(event.body, model::Body::Message { .. } | model::Body::ToolCall { .. });
    unknown && kind == DocumentKind::Chat && read::all(kind.format(), lines).events.iter().any(message)
}

fn is_length(files: &Arc<dyn Files>, path: &Path, length: u64) -> bool {
    // A missing file counts as empty.
    files.length(path).is_ok_and(|found| found.unwrap_or(0) == length)
}

/// Ends the last line of a text. Returns its length.
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
