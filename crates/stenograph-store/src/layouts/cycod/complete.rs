//! Brings a document up to what its journal says, whatever state it is in. What is missing is written; what is damaged is moved
//! aside; what somebody else wrote is left alone.

use std::io::{self, Read};

use super::Kind;
use super::body::Body;
use super::document::{Document, Titled, beginning};
use super::title::{Head, Title, is_torn_header};
use crate::error::{Error, Problem};
use crate::files::{OpenFile, folder_of, make_folder, write_all};
use crate::journal::Recorded;
use crate::tail::{self, Remark};

/// Completes a document, and gives what there is to say.
pub fn complete(document: &mut Document, recorded: &Recorded) -> Result<Vec<Remark>, Error> {
    let path = document.path.clone();
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    make_folder(document.files.as_ref(), folder_of(&path)).map_err(unwritable)?;
    let mut remarks = Vec::new();
    let mut beginning = beginning(&document.files, &path)?;
    if document.base == 0 && is_torn_header(&beginning, document.kind) {
        remarks.push(set_aside(document, 0, &beginning).map_err(unwritable)?);
        beginning.clear();
    }
    document.head = Head::of(&beginning, document.kind);
    document.title = document.head.title.clone();
    document.titled = Titled::Elsewhere;
    let length = document.files.length(&path).map_err(unwritable)?.unwrap_or(0);
    if length < document.starts_at() {
        remarks.push(Remark::new(&path, "is shorter than it was: what was recorded is in the journal only"));
        document.settled = 0;
        return Ok(remarks);
    }
    let mut title = document.title.clone();
    let mut titled = Titled::Elsewhere;
    let mut body = Body::new(document.kind);
    let mut ours = Ours::new(document)?;
    recorded.read(&mut |event| {
        if Title::is_about(event) {
            title.take(event);
            titled = Titled::Here;
        } else {
            ours.next(&body.event(event));
            ours.held(body.held());
        }
    })?;
    ours.next(&body.finish());
    let Ours { state, at, remarks: more, .. } = ours;
    remarks.extend(more);
    document.settled = at - document.starts_at();
    (document.title, document.titled) = (title, titled);
    match state {
        State::Failed(error) => return Err(error),
        State::Foreign => return Ok(remarks),
        State::Same(_) | State::Writing(_) => {}
    }
    let wanted = document.wanted_head();
    if wanted != document.head.bytes {
        document.replace_head(&wanted).map_err(unwritable)?;
        document.head = Head::of(&wanted, document.kind);
    }
    Ok(remarks)
}

/// Moves the end of a document to a file of its own.
fn set_aside(document: &Document, at: u64, rest: &[u8]) -> io::Result<Remark> {
    let aside = tail::move_aside(document.files.as_ref(), &document.path, rest)?;
    document.files.open(&document.path)?.truncate(at)?;
    let text = format!("{} damaged bytes at the end were moved to {}", rest.len(), aside.display());
    Ok(Remark::new(&document.path, text))
}

/// How a document compares with what it should hold.
enum State {
    /// So far they are the same.
    Same(Box<dyn Read>),
    /// The document ended, or stopped making sense: from here on it is written.
    Writing(Box<dyn OpenFile>),
    /// Somebody else wrote there.
    Foreign,
    Failed(Error),
}

/// The part of a document that is ours, gone through beside the journal.
struct Ours<'d> {
    document: &'d Document,
    state: State,
    /// How far document and journal are the same.
    at: u64,
    /// What may have stood after that for a while.
    held: Vec<Vec<u8>>,
    remarks: Vec<Remark>,
}

/// How many states of what was held back are known. One that is forgotten looks like somebody else's, and is left alone.
const HELD_MAX: usize = 512;

impl<'d> Ours<'d> {
    fn new(document: &'d Document) -> Result<Ours<'d>, Error> {
        let at = document.starts_at();
        let reader: Box<dyn Read> = match document.files.reader(&document.path, at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
            opened => opened.map_err(|error| Error::at(&document.path, Problem::Unreadable, error))?,
        };
        Ok(Ours { document, state: State::Same(reader), at, held: Vec::new(), remarks: Vec::new() })
    }

    /// Remembers what may have stood at the end.
    fn held(&mut self, held: Vec<u8>) {
        if matches!(self.state, State::Same(_)) && !held.is_empty() && self.held.last() != Some(&held) {
            if self.held.len() >= HELD_MAX {
                self.held.remove(0);
            }
            self.held.push(held);
        }
    }

    /// The next bytes that should be there.
    fn next(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let State::Same(reader) = &mut self.state {
            let mut there = Vec::new();
            match reader.by_ref().take(bytes.len() as u64).read_to_end(&mut there) {
                Err(error) => self.state = State::Failed(self.unreadable(error)),
                Ok(_) if there == bytes => {
                    self.at += bytes.len() as u64;
                    self.held.clear();
                    return;
                }
                Ok(_) => {
                    let before = self.at;
                    self.state = self.part(&there, bytes);
                    bytes = bytes.get(usize::try_from(self.at - before).unwrap_or(0)..).unwrap_or_default();
                }
            }
        }
        if let State::Writing(file) = &mut self.state {
            match write_all(file.as_mut(), bytes) {
                Ok(()) => self.at += bytes.len() as u64,
                Err(error) => {
                    let error = Error::at(&self.document.path, Problem::Unwritable, error);
                    self.state = State::Failed(error);
                }
            }
        }
    }

    /// Where the document is no longer what it should be. The lines that still are stay.
    fn part(&mut self, there: &[u8], wanted: &[u8]) -> State {
        let (files, path) = (&self.document.files, &self.document.path);
        let cut = |at: u64| {
            let mut file = files.open(path)?;
            file.truncate(at)?;
            Ok(file)
        };
        let unwritable = |error: io::Error| State::Failed(Error::at(path, Problem::Unwritable, error));
        if wanted.starts_with(there) {
            return cut(self.at).map_or_else(unwritable, State::Writing);
        }
        let rest = match files.read(path, self.at) {
            Ok(rest) => rest,
            Err(error) => return State::Failed(self.unreadable(error)),
        };
        if self.held.iter().any(|held| held.starts_with(&rest)) {
            return cut(self.at).map_or_else(unwritable, State::Writing);
        }
        let same = there.iter().zip(wanted).take_while(|(there, wanted)| there == wanted).count();
        let lines =
            there.get(..same).unwrap_or_default().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = rest.get(lines..).unwrap_or_default();
        self.at += lines as u64;
        if !is_damaged(rest, self.document.kind) {
            let text = "somebody else wrote there during the recording, which is whole in the journal only";
            self.remarks.push(Remark::new(path, text));
            return State::Foreign;
        }
        match set_aside(self.document, self.at, rest).and_then(|remark| Ok((remark, files.open(path)?))) {
            Ok((remark, file)) => {
                self.remarks.push(remark);
                State::Writing(file)
            }
            Err(error) => unwritable(error),
        }
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::at(&self.document.path, Problem::Unreadable, error)
    }
}

/// Whether nobody can have meant to write this: no whole line among lines, or zeros in a text.
fn is_damaged(rest: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Chat => {
            let whole =
                |line: &[u8]| std::str::from_utf8(line).is_ok_and(|text| stenograph::json::is_valid(text.trim()));
            !rest.split(|byte| *byte == b'\n').any(|line| !line.trim_ascii().is_empty() && whole(line))
        }
        Kind::Trajectory => rest.contains(&0),
    }
}
