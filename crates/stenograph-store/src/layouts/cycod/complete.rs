//! Brings a document up to date with its journal, whatever its state. Missing content is written, damaged content is moved
//! aside, and content of other programs is left alone.

use std::io::{self, Read};

use super::Kind;
use super::body::Body;
use super::document::{Document, Titled, beginning};
use super::title::{Head, Title};
use crate::error::{Error, Problem};
use crate::files::{OpenFile, create_folder_durably, folder_of, write_all};
use crate::journal::Recording;
use crate::tail::{self, Warning};

/// Completes a document. Returns warnings.
pub fn complete(document: &mut Document, recorded: &Recording) -> Result<Vec<Warning>, Error> {
    let path = document.path.clone();
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    create_folder_durably(document.files.as_ref(), folder_of(&path)).map_err(unwritable)?;
    let mut warnings = Vec::new();
    document.head = Head::of(&beginning(&document.files, &path)?, document.kind);
    document.title = document.head.title.clone();
    document.titled = Titled::Elsewhere;
    let length = document.files.length(&path).map_err(unwritable)?.unwrap_or(0);
    if length < document.starts_at() {
        warnings.push(Warning::new(&path, "is shorter than it was: what was recorded is in the journal only"));
        document.settled = 0;
        return Ok(warnings);
    }
    let mut title = document.title.clone();
    let mut titled = Titled::Elsewhere;
    let kind = document.kind;
    let mut body = Body::new(kind);
    let mut ours = Ours::new(document)?;
    ours.headed(title.bytes(kind));
    recorded.read(&mut |event| {
        if Title::is_about(event) {
            title.take(event);
            titled = Titled::Here;
            ours.headed(title.bytes(kind));
        } else {
            ours.next(&body.event(event));
            ours.held(body.held());
        }
    })?;
    ours.next(&body.finish());
    let (outcome, at) = ours.end()?;
    document.settled = at - document.starts_at();
    (document.title, document.titled) = (title, titled);
    match outcome {
        Outcome::Whole(warning) => warnings.extend(warning),
        Outcome::Foreign => {
            let text = "somebody else wrote there during the recording, which is whole in the journal only";
            warnings.push(Warning::new(&path, text));
            return Ok(warnings);
        }
    }
    let wanted = document.wanted_head();
    if wanted != document.head.bytes {
        document.replace_head(&wanted).map_err(unwritable)?;
        document.head = Head::of(&wanted, document.kind);
    }
    Ok(warnings)
}

/// Moves the end of a document to a separate file.
fn set_aside(document: &Document, at: u64, rest: &[u8]) -> io::Result<Warning> {
    let aside = tail::move_aside(document.files.as_ref(), &document.path, rest)?;
    document.files.open(&document.path)?.truncate(at)?;
    let text = format!("{} damaged bytes at the end were moved to {}", rest.len(), aside.display());
    Ok(Warning::new(&document.path, text))
}

/// The result of a comparison.
enum Outcome {
    /// The document is complete; damaged content was moved aside.
    Whole(Option<Warning>),
    /// Another program wrote there.
    Foreign,
}

/// The state of comparing a document with its expected content.
enum State {
    /// Equal so far.
    Same(Box<dyn Read>),
    /// The document ended: from here on it is written.
    Writing(Box<dyn OpenFile>),
    /// They differ.
    Apart(Apart),
    Failed(Error),
}

/// The first difference between a document and its expected content.
struct Apart {
    /// The actual bytes.
    there: Vec<u8>,
    /// The expected bytes.
    wanted: Vec<u8>,
    /// Whether the actual bytes are an earlier state of ours, possibly damaged by a power failure.
    whose: Whose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Unknown,
}

/// Compares our part of a document with the journal.
struct Ours<'d> {
    document: &'d Document,
    state: State,
    /// The offset up to which document and journal agree.
    at: u64,
    /// Bytes that may have followed for a while.
    held: Vec<Vec<u8>>,
    /// Heads that may have been cut off from the beginning.
    heads: Vec<Vec<u8>>,
}

/// How many states of the held-back bytes and of the head are remembered. A forgotten state looks like foreign content and is
/// left alone.
const STATES_MAX: usize = 512;

impl<'d> Ours<'d> {
    fn new(document: &'d Document) -> Result<Ours<'d>, Error> {
        let at = document.starts_at();
        let reader: Box<dyn Read> = match document.files.reader(&document.path, at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
            opened => opened.map_err(|error| unreadable(document, error))?,
        };
        Ok(Ours { document, state: State::Same(reader), at, held: Vec::new(), heads: vec![Vec::new()] })
    }

    /// Remembers a possible head. Only a file that was empty can have lost its head.
    fn headed(&mut self, head: Vec<u8>) {
        if self.document.starts_at() == 0 && self.heads.len() < STATES_MAX && !self.heads.contains(&head) {
            self.heads.push(head);
        }
    }

    /// Remembers a possible end.
    fn held(&mut self, held: Vec<u8>) {
        match &mut self.state {
            State::Same(_) if !held.is_empty() && self.held.last() != Some(&held) => {
                if self.held.len() >= STATES_MAX {
                    self.held.remove(0);
                }
                self.held.push(held);
            }
            State::Apart(apart) => apart.explain(&self.heads, &held),
            State::Same(_) | State::Writing(_) | State::Failed(_) => {}
        }
    }

    /// Compares the next expected bytes.
    fn next(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.state {
            State::Same(reader) => {
                let mut there = Vec::new();
                match reader.by_ref().take(bytes.len() as u64).read_to_end(&mut there) {
                    Err(error) => self.state = State::Failed(unreadable(self.document, error)),
                    Ok(_) if there == bytes => {
                        self.at += bytes.len() as u64;
                        self.held.clear();
                    }
                    Ok(_) => {
                        self.state = self.part(&there, bytes);
                        self.next(bytes);
                    }
                }
            }
            State::Writing(file) => match write_all(file.as_mut(), bytes) {
                Ok(()) => self.at += bytes.len() as u64,
                Err(error) => self.state = State::Failed(unwritable(self.document, error)),
            },
            State::Apart(apart) => {
                apart.wanted.extend_from_slice(bytes);
                apart.explain(&self.heads, &[]);
            }
            State::Failed(_) => {}
        }
    }

    /// Handles the first difference.
    fn part(&self, there: &[u8], wanted: &[u8]) -> State {
        if wanted.starts_with(there) {
            return cut(self.document, self.at).map_or_else(State::Failed, State::Writing);
        }
        match self.document.files.read(&self.document.path, self.at) {
            Err(error) => State::Failed(unreadable(self.document, error)),
            Ok(there) => {
                let mut apart = Apart { there, wanted: Vec::new(), whose: Whose::Unknown };
                self.held.iter().for_each(|held| apart.explain(&self.heads, held));
                State::Apart(apart)
            }
        }
    }

    /// Finishes the comparison. Returns the offset up to which the document is correct.
    fn end(self) -> Result<(Outcome, u64), Error> {
        let Ours { document, state, mut at, heads, .. } = self;
        let mut apart = match state {
            State::Failed(error) => return Err(error),
            State::Same(_) | State::Writing(_) => return Ok((Outcome::Whole(None), at)),
            State::Apart(apart) => apart,
        };
        // The head may already contain a title that came late.
        apart.explain(&heads, &[]);
        let Apart { there, wanted, whose } = apart;
        let same = there.iter().zip(&wanted).take_while(|(there, wanted)| there == wanted).count();
        let lines =
            there.get(..same).unwrap_or_default().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (rest, missing) = (there.get(lines..).unwrap_or_default(), wanted.get(lines..).unwrap_or_default());
        at += lines as u64;
        let warning = match (whose, is_damaged(rest, document.kind)) {
            (Whose::Ours, _) => None,
            (Whose::Unknown, false) => return Ok((Outcome::Foreign, at)),
            (Whose::Unknown, true) => Some(set_aside(document, at, rest).map_err(|error| unwritable(document, error))?),
        };
        let mut file = cut(document, at)?;
        write_all(file.as_mut(), missing).map_err(|error| unwritable(document, error))?;
        Ok((Outcome::Whole(warning), at + missing.len() as u64))
    }
}

impl Apart {
    /// Whether the actual bytes are one of these heads, the expected bytes and `held`, or a prefix of that; a power failure
    /// leaves zeros for bytes that were not on disk yet.
    fn explain(&mut self, heads: &[Vec<u8>], held: &[u8]) {
        if self.whose != Whose::Unknown {
            return;
        }
        // Bytes beyond the end explain nothing new, except with a head that is known by then.
        let (length, wanted) = (self.there.len(), self.wanted.len());
        let may_end = |head: &&Vec<u8>| length <= head.len() + wanted + held.len();
        for head in heads.iter().filter(may_end) {
            let mut pairs = self.there.iter().zip(head.iter().chain(&self.wanted).chain(held));
            if pairs.all(|(there, wanted)| *there == 0 || there == wanted) {
                self.whose = Whose::Ours;
                return;
            }
        }
    }
}

fn cut(document: &Document, at: u64) -> Result<Box<dyn OpenFile>, Error> {
    let opened = document.files.open(&document.path).and_then(|mut file| file.truncate(at).map(|()| file));
    opened.map_err(|error| unwritable(document, error))
}

fn unreadable(document: &Document, error: io::Error) -> Error {
    Error::at(&document.path, Problem::Unreadable, error)
}

fn unwritable(document: &Document, error: io::Error) -> Error {
    Error::at(&document.path, Problem::Unwritable, error)
}

/// Whether no program can have written this on purpose: no complete line among lines, or zeros. After a hole that a power
/// failure left, a line of ours may be complete.
fn is_damaged(rest: &[u8], kind: Kind) -> bool {
    match kind {
        _ if rest.contains(&0) => true,
        Kind::Chat => {
            let whole =
                |line: &[u8]| std::str::from_utf8(line).is_ok_and(|text| stenograph::json::is_valid(text.trim()));
            !rest.split(|byte| *byte == b'\n').any(|line| !line.trim_ascii().is_empty() && whole(line))
        }
        Kind::Trajectory => false,
    }
}
