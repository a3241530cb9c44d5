//! Brings our part of a document up to date with its journal, whatever its state: after a crash, a full disk, or another
//! program's writing. The journal is always right. Missing content is written, damaged content is moved aside, and content of
//! other programs is left alone.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use stenograph::json;

use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, create_folder_durably, folder_of, write_all};
use crate::tail::{self, Warning};

/// Compares our part of a document with the bytes that the journal implies, piece by piece, and writes what is missing.
pub(crate) struct Completion<'d> {
    files: &'d Arc<dyn Files>,
    path: &'d Path,
    kind: CompletedKind,
    state: ComparisonState,
    /// The offset up to which document and journal agree.
    at: u64,
    /// Bytes that may have followed for a while.
    held_back: Vec<Vec<u8>>,
    /// Heads that may have been cut off from the beginning.
    heads: Vec<Vec<u8>>,
    starts_at: u64,
    warnings: Vec<Warning>,
}

/// What a document may contain at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletedKind {
    /// Lines of JSON that never change.
    Lines,
    /// Lines of JSON, of which the last ones may have been replaced.
    ReplacedLines,
    /// Text, of which the end may have been replaced.
    ReplacedText,
}

/// The result of a completion.
pub(crate) struct Completed {
    /// The offset up to which the document is correct.
    pub end: u64,
    /// Whether the document has everything that the journal has.
    pub is_whole: bool,
    pub warnings: Vec<Warning>,
}

/// The state of comparing a document with its expected content.
enum ComparisonState {
    /// Equal so far.
    Same(Box<dyn Read>),
    /// The document ended or was damaged: from here on it is written.
    Writing(Box<dyn OpenFile>),
    /// They differ, and a later piece may explain why.
    Apart(Difference),
    /// Another program wrote there.
    Foreign,
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

/// How many states of the held-back bytes and of the head are remembered. A forgotten state looks like foreign content and is
/// left alone.
const STATES_MAX: usize = 512;

impl<'d> Completion<'d> {
    /// Begins to complete a document of which our part begins at this offset.
    pub fn new(
        files: &'d Arc<dyn Files>,
        path: &'d Path,
        starts_at: u64,
        kind: CompletedKind,
    ) -> Result<Completion<'d>, Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        create_folder_durably(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let (state, warnings) = if files.length(path).map_err(unwritable)?.unwrap_or(0) < starts_at {
            let text = "is shorter than before: only the journal has the recording";
            (ComparisonState::Foreign, vec![Warning::new(path, text)])
        } else {
            let reader: Box<dyn Read> = match files.reader(path, starts_at) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
                opened => opened.map_err(|error| Error::at(path, Problem::Unreadable, error))?,
            };
            (ComparisonState::Same(reader), Vec::new())
        };
        let (held_back, heads) = (Vec::new(), vec![Vec::new()]);
        Ok(Completion { files, path, kind, state, at: starts_at, held_back, heads, starts_at, warnings })
    }

    /// Remembers a possible head. Only a file that was empty can have lost its head.
    pub fn headed(&mut self, head: Vec<u8>) {
        if self.starts_at == 0 && self.heads.len() < STATES_MAX && !self.heads.contains(&head) {
            self.heads.push(head);
        }
    }

    /// Remembers a possible end.
    pub fn held_back(&mut self, held_back: Vec<u8>) {
        match &mut self.state {
            ComparisonState::Same(_) if !held_back.is_empty() && self.held_back.last() != Some(&held_back) => {
                if self.held_back.len() >= STATES_MAX {
                    self.held_back.remove(0);
                }
                self.held_back.push(held_back);
            }
            ComparisonState::Apart(difference) => difference.explain(&self.heads, &held_back),
            ComparisonState::Same(_)
            | ComparisonState::Writing(_)
            | ComparisonState::Foreign
            | ComparisonState::Failed(_) => {}
        }
    }

    /// Compares the next expected bytes.
    pub fn next(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.state {
            ComparisonState::Same(reader) => {
                let mut actual = Vec::new();
                match reader.by_ref().take(bytes.len() as u64).read_to_end(&mut actual) {
                    Err(error) => self.state = ComparisonState::Failed(self.unreadable(error)),
                    Ok(_) if actual == bytes => {
                        self.at += bytes.len() as u64;
                        self.held_back.clear();
                    }
                    Ok(_) => {
                        self.state = self.handle_difference(&actual, bytes).unwrap_or_else(ComparisonState::Failed);
                    }
                }
            }
            ComparisonState::Writing(file) => match write_all(file.as_mut(), bytes) {
                Ok(()) => self.at += bytes.len() as u64,
                Err(error) => self.state = ComparisonState::Failed(self.unwritable(error)),
            },
            ComparisonState::Apart(difference) => {
                difference.expected.extend_from_slice(bytes);
                difference.explain(&self.heads, &[]);
            }
            ComparisonState::Foreign | ComparisonState::Failed(_) => {}
        }
    }

    /// Handles the first difference, which these expected bytes have.
    fn handle_difference(&mut self, actual: &[u8], expected: &[u8]) -> Result<ComparisonState, Error> {
        if expected.starts_with(actual) {
            return self.write_from_here(expected);
        }
        let actual = self.files.read(self.path, self.at).map_err(|error| self.unreadable(error))?;
        let mut difference = Difference { actual, expected: Vec::new(), whose: Whose::Unknown };
        if self.kind != CompletedKind::Lines {
            self.held_back.iter().for_each(|held_back| difference.explain(&self.heads, held_back));
        }
        difference.expected.extend_from_slice(expected);
        if self.kind == CompletedKind::Lines {
            return self.resolve(difference);
        }
        difference.explain(&self.heads, &[]);
        Ok(ComparisonState::Apart(difference))
    }

    /// Replaces the actual bytes after the last common line, unless another program wrote them.
    fn resolve(&mut self, difference: Difference) -> Result<ComparisonState, Error> {
        let Difference { actual, expected, whose } = difference;
        let same = actual.iter().zip(&expected).take_while(|(actual, expected)| actual == expected).count();
        let lines =
            actual.get(..same).unwrap_or_default().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (rest, missing) = (actual.get(lines..).unwrap_or_default(), expected.get(lines..).unwrap_or_default());
        self.at += lines as u64;
        if whose == Whose::Unknown {
            if !is_damaged(rest, self.kind) {
                let text = "another program wrote to this file during the recording: only the journal is complete";
                self.warnings.push(Warning::new(self.path, text));
                return Ok(ComparisonState::Foreign);
            }
            let aside = tail::move_aside(self.files.as_ref(), self.path, rest);
            let aside = aside.map_err(|error| self.unwritable(error))?;
            let text = format!("{} damaged bytes at the end were moved to {}", rest.len(), aside.display());
            self.warnings.push(Warning::new(self.path, text));
        }
        self.write_from_here(missing)
    }

    /// Cuts the document where it is correct, and writes these bytes.
    fn write_from_here(&mut self, bytes: &[u8]) -> Result<ComparisonState, Error> {
        let cut = || {
            let mut file = self.files.open(self.path)?;
            file.truncate(self.at)?;
            write_all(file.as_mut(), bytes)?;
            Ok(file)
        };
        let file = cut().map_err(|error| self.unwritable(error))?;
        self.at += bytes.len() as u64;
        Ok(ComparisonState::Writing(file))
    }

    /// Finishes the completion: no more bytes are expected.
    pub fn end(mut self) -> Result<Completed, Error> {
        let mut state = std::mem::replace(&mut self.state, ComparisonState::Foreign);
        if let ComparisonState::Apart(mut difference) = state {
            // The head may already contain a title that came late.
            difference.explain(&self.heads, &[]);
            state = self.resolve(difference)?;
        }
        let is_whole = match state {
            ComparisonState::Failed(error) => return Err(error),
            ComparisonState::Same(_) | ComparisonState::Writing(_) | ComparisonState::Apart(_) => true,
            ComparisonState::Foreign => false,
        };
        Ok(Completed { end: self.at, is_whole, warnings: self.warnings })
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::at(self.path, Problem::Unreadable, error)
    }

    fn unwritable(&self, error: io::Error) -> Error {
        Error::at(self.path, Problem::Unwritable, error)
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

/// Whether no program can have written this on purpose: no complete line among lines, or zeros. After a hole that a power
/// failure left, a line of ours may be complete.
fn is_damaged(rest: &[u8], kind: CompletedKind) -> bool {
    match kind {
        _ if rest.contains(&0) => true,
        CompletedKind::Lines | CompletedKind::ReplacedLines => {
            let whole = |line: &[u8]| std::str::from_utf8(line).is_ok_and(|text| json::is_valid(text.trim()));
            !rest.split(|byte| *byte == b'\n').any(|line| !line.trim_ascii().is_empty() && whole(line))
        }
        CompletedKind::ReplacedText => false,
    }
}
