//! Brings a document up to date with its journal, whatever its state. Missing content is written, damaged content is moved
//! aside, and content of other programs is left alone.

use std::io::{self, Read};

use super::DocumentKind;
use super::body::DocumentBody;
use super::document::{CycodDocument, TitleChanged, beginning};
use super::title::{ConversationTitle, DocumentHead};
use crate::error::{Error, Problem};
use crate::files::{OpenFile, create_folder_durably, folder_of, write_all};
use crate::journal::Recording;
use crate::tail::{self, Warning};

/// Completes a document. Returns warnings.
pub fn complete(document: &mut CycodDocument, recorded: &Recording) -> Result<Vec<Warning>, Error> {
    let path = document.path.clone();
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    create_folder_durably(document.files.as_ref(), folder_of(&path)).map_err(unwritable)?;
    let mut warnings = Vec::new();
    document.head = DocumentHead::of(&beginning(&document.files, &path)?, document.kind);
    document.title = document.head.title.clone();
    document.title_changed = TitleChanged::Elsewhere;
    let length = document.files.length(&path).map_err(unwritable)?.unwrap_or(0);
    if length < document.starts_at() {
        warnings.push(Warning::new(&path, "is shorter than it was: what was recorded is in the journal only"));
        document.final_size = 0;
        return Ok(warnings);
    }
    let mut title = document.title.clone();
    let mut title_changed = TitleChanged::Elsewhere;
    let kind = document.kind;
    let mut body = DocumentBody::new(kind);
    let mut ours = OwnPart::new(document)?;
    ours.headed(title.bytes(kind));
    recorded.read(&mut |event| {
        if ConversationTitle::is_about(event) {
            title.take(event);
            title_changed = TitleChanged::Here;
            ours.headed(title.bytes(kind));
        } else {
            ours.next(&body.event(event));
            ours.held_back(body.held_back());
        }
    })?;
    ours.next(&body.finish());
    let (outcome, at) = ours.end()?;
    document.final_size = at - document.starts_at();
    (document.title, document.title_changed) = (title, title_changed);
    match outcome {
        Completion::Whole(warning) => warnings.extend(warning),
        Completion::Foreign => {
            let text = "somebody else wrote there during the recording, which is whole in the journal only";
            warnings.push(Warning::new(&path, text));
            return Ok(warnings);
        }
    }
    let expected = document.wanted_head();
    if expected != document.head.bytes {
        document.replace_head(&expected).map_err(unwritable)?;
        document.head = DocumentHead::of(&expected, document.kind);
    }
    Ok(warnings)
}

/// Moves the end of a document to a separate file.
fn set_aside(document: &CycodDocument, at: u64, rest: &[u8]) -> io::Result<Warning> {
    let aside = tail::move_aside(document.files.as_ref(), &document.path, rest)?;
    document.files.open(&document.path)?.truncate(at)?;
    let text = format!("{} damaged bytes at the end were moved to {}", rest.len(), aside.display());
    Ok(Warning::new(&document.path, text))
}

/// The result of a comparison.
enum Completion {
    /// The document is complete; damaged content was moved aside.
    Whole(Option<Warning>),
    /// Another program wrote there.
    Foreign,
}

/// The state of comparing a document with its expected content.
enum ComparisonState {
    /// Equal so far.
    Same(Box<dyn Read>),
    /// The document ended: from here on it is written.
    Writing(Box<dyn OpenFile>),
    /// They differ.
    Apart(Difference),
    Failed(Error),
}

/// The first difference between a document and its expected content.
struct Difference {
    /// The actual bytes.
    actual: Vec<u8>,
    /// The expected bytes.
    expected: Vec<u8>,
    /// Whether the actual bytes are an earlier state of ours, possibly damaged by a power failure.
    whose: Whose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Unknown,
}

/// Compares our part of a document with the journal.
struct OwnPart<'d> {
    document: &'d CycodDocument,
    state: ComparisonState,
    /// The offset up to which document and journal agree.
    at: u64,
    /// Bytes that may have followed for a while.
    held_back: Vec<Vec<u8>>,
    /// Heads that may have been cut off from the beginning.
    heads: Vec<Vec<u8>>,
}

/// How many states of the held-back bytes and of the head are remembered. A forgotten state looks like foreign content and is
/// left alone.
const STATES_MAX: usize = 512;

impl<'d> OwnPart<'d> {
    fn new(document: &'d CycodDocument) -> Result<OwnPart<'d>, Error> {
        let at = document.starts_at();
        let reader: Box<dyn Read> = match document.files.reader(&document.path, at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
            opened => opened.map_err(|error| unreadable(document, error))?,
        };
        Ok(OwnPart {
            document,
            state: ComparisonState::Same(reader),
            at,
            held_back: Vec::new(),
            heads: vec![Vec::new()],
        })
    }

    /// Remembers a possible head. Only a file that was empty can have lost its head.
    fn headed(&mut self, head: Vec<u8>) {
        if self.document.starts_at() == 0 && self.heads.len() < STATES_MAX && !self.heads.contains(&head) {
            self.heads.push(head);
        }
    }

    /// Remembers a possible end.
    fn held_back(&mut self, held_back: Vec<u8>) {
        match &mut self.state {
            ComparisonState::Same(_) if !held_back.is_empty() && self.held_back.last() != Some(&held_back) => {
                if self.held_back.len() >= STATES_MAX {
                    self.held_back.remove(0);
                }
                self.held_back.push(held_back);
            }
            ComparisonState::Apart(difference) => difference.explain(&self.heads, &held_back),
            ComparisonState::Same(_) | ComparisonState::Writing(_) | ComparisonState::Failed(_) => {}
        }
    }

    /// Compares the next expected bytes.
    fn next(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.state {
            ComparisonState::Same(reader) => {
                let mut actual = Vec::new();
                match reader.by_ref().take(bytes.len() as u64).read_to_end(&mut actual) {
                    Err(error) => self.state = ComparisonState::Failed(unreadable(self.document, error)),
                    Ok(_) if actual == bytes => {
                        self.at += bytes.len() as u64;
                        self.held_back.clear();
                    }
                    Ok(_) => {
                        self.state = self.handle_difference(&actual, bytes);
                        self.next(bytes);
                    }
                }
            }
            ComparisonState::Writing(file) => match write_all(file.as_mut(), bytes) {
                Ok(()) => self.at += bytes.len() as u64,
                Err(error) => self.state = ComparisonState::Failed(unwritable(self.document, error)),
            },
            ComparisonState::Apart(difference) => {
                difference.expected.extend_from_slice(bytes);
                difference.explain(&self.heads, &[]);
            }
            ComparisonState::Failed(_) => {}
        }
    }

    /// Handles the first difference.
    fn handle_difference(&self, actual: &[u8], expected: &[u8]) -> ComparisonState {
        if expected.starts_with(actual) {
            return cut(self.document, self.at).map_or_else(ComparisonState::Failed, ComparisonState::Writing);
        }
        match self.document.files.read(&self.document.path, self.at) {
            Err(error) => ComparisonState::Failed(unreadable(self.document, error)),
            Ok(actual) => {
                let mut difference = Difference { actual, expected: Vec::new(), whose: Whose::Unknown };
                self.held_back.iter().for_each(|held_back| difference.explain(&self.heads, held_back));
                ComparisonState::Apart(difference)
            }
        }
    }

    /// Finishes the comparison. Returns the offset up to which the document is correct.
    fn end(self) -> Result<(Completion, u64), Error> {
        let OwnPart { document, state, mut at, heads, .. } = self;
        let mut difference = match state {
            ComparisonState::Failed(error) => return Err(error),
            ComparisonState::Same(_) | ComparisonState::Writing(_) => return Ok((Completion::Whole(None), at)),
            ComparisonState::Apart(difference) => difference,
        };
        // The head may already contain a title that came late.
        difference.explain(&heads, &[]);
        let Difference { actual, expected, whose } = difference;
        let same = actual.iter().zip(&expected).take_while(|(actual, expected)| actual == expected).count();
        let lines =
            actual.get(..same).unwrap_or_default().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (rest, missing) = (actual.get(lines..).unwrap_or_default(), expected.get(lines..).unwrap_or_default());
        at += lines as u64;
        let warning = match (whose, is_damaged(rest, document.kind)) {
            (Whose::Ours, _) => None,
            (Whose::Unknown, false) => return Ok((Completion::Foreign, at)),
            (Whose::Unknown, true) => Some(set_aside(document, at, rest).map_err(|error| unwritable(document, error))?),
        };
        let mut file = cut(document, at)?;
        write_all(file.as_mut(), missing).map_err(|error| unwritable(document, error))?;
        Ok((Completion::Whole(warning), at + missing.len() as u64))
    }
}

impl Difference {
    /// Whether the actual bytes are one of these heads, the expected bytes and `held_back`, or a prefix of that; a power failure
    /// leaves zeros for bytes that were not on disk yet.
    fn explain(&mut self, heads: &[Vec<u8>], held_back: &[u8]) {
        if self.whose != Whose::Unknown {
            return;
        }
        // Bytes beyond the end explain nothing new, except with a head that is known by then.
        let (length, expected) = (self.actual.len(), self.expected.len());
        let may_end = |head: &&Vec<u8>| length <= head.len() + expected + held_back.len();
        for head in heads.iter().filter(may_end) {
            let mut pairs = self.actual.iter().zip(head.iter().chain(&self.expected).chain(held_back));
            if pairs.all(|(actual, expected)| *actual == 0 || actual == expected) {
                self.whose = Whose::Ours;
                return;
            }
        }
    }
}

fn cut(document: &CycodDocument, at: u64) -> Result<Box<dyn OpenFile>, Error> {
    let opened = document.files.open(&document.path).and_then(|mut file| file.truncate(at).map(|()| file));
    opened.map_err(|error| unwritable(document, error))
}

fn unreadable(document: &CycodDocument, error: io::Error) -> Error {
    Error::at(&document.path, Problem::Unreadable, error)
}

fn unwritable(document: &CycodDocument, error: io::Error) -> Error {
    Error::at(&document.path, Problem::Unwritable, error)
}

/// Whether no program can have written this on purpose: no complete line among lines, or zeros. After a hole that a power
/// failure left, a line of ours may be complete.
fn is_damaged(rest: &[u8], kind: DocumentKind) -> bool {
    match kind {
        _ if rest.contains(&0) => true,
        DocumentKind::Chat => {
            let whole =
                |line: &[u8]| std::str::from_utf8(line).is_ok_and(|text| stenograph::json::is_valid(text.trim()));
            !rest.split(|byte| *byte == b'\n').any(|line| !line.trim_ascii().is_empty() && whole(line))
        }
        DocumentKind::Trajectory => false,
    }
}
