//! Input: a file or standard input, opened once and read as often as needed. This file writes nothing.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use stenograph::format::{Format, Head};

use crate::databases;
use crate::decode::{ByteCounter, Container, DecodeGuard, Decoded, decode};
use crate::discover::PathHints;
use crate::error::{Error, Place, Problem};
use crate::files::FileMode;
use crate::identity::Identity;
use crate::output::Spool;
use crate::source_file::{Access, Recognized, recognize};

/// How often a source will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Once, from beginning to end.
    Once,
    /// More than once: a stream is spooled to a temporary file.
    Many,
}

/// An open source of decoded bytes.
pub struct Source {
    place: Place,
    origin: Origin,
    identity: Option<Identity>,
    mode: Option<FileMode>,
    head: Vec<u8>,
    consumed: ByteCounter,
}

enum Origin {
    /// A file: each pass reads it up to its length at opening, so that all passes see the same of a growing file.
    File { file: File, length: u64 },
    /// A stream that can be read only once: its head was read, and this is the rest.
    Stream(Option<StreamRest>),
}

/// The part of a stream after its head.
enum StreamRest {
    Bytes(Decoded<'static>),
    Failed(io::Error),
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Source").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens a file, or a conversation in a database. Named pipes and devices are read like standard input.
    pub fn open(path: &Path, passes: Passes) -> Result<Source, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let mut file = databases::open_file(path).map_err(unreadable)?;
        match databases::only_conversation(path, &mut file)? {
            Some(member) => Source::of_open(&member, databases::open_file(&member).map_err(unreadable)?, passes),
            None => Source::of_open(path, file, passes),
        }
    }

    /// Reads a file that was opened under this path, whatever has the path now.
    pub(crate) fn of_open(path: &Path, file: File, passes: Passes) -> Result<Source, Error> {
        let place = Place::Path(path.to_owned());
        let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(Error::new(&place, Problem::Folder));
        }
        let identity = Identity::of_metadata(&metadata).or_else(|| Identity::of_path(path));
        // Some system files report a length of 0 and have content: an apparently empty file is read like a pipe.
        if metadata.is_file() && metadata.len() > 0 {
            let mode = FileMode::of_metadata(&metadata);
            return Ok(Source { mode, ..Source::of_file(place, file, metadata.len(), identity)? });
        }
        Source::of_stream(place, file, identity, passes)
    }

    /// Opens standard input.
    pub fn standard_input(passes: Passes) -> Result<Source, Error> {
        let identity = Identity::of_standard_input();
        let mode = FileMode::of_standard_input();
        Ok(Source { mode, ..Source::of_stream(Place::StandardInput, io::stdin().lock(), identity, passes)? })
    }

    fn of_file(place: Place, file: File, length: u64, identity: Option<Identity>) -> Result<Source, Error> {
        let consumed = ByteCounter::default();
        let mut source =
            Source { place, origin: Origin::File { file, length }, identity, mode: None, head: Vec::new(), consumed };
        let mut head = Vec::new();
        let read = Head::read(&mut source.pass()?, &mut head);
        // A file that is damaged further on still has a head; the pass that reads the damage reports it.
        match read {
            Err(error) if head.is_empty() => return Err(source.explain(error)),
            _ => source.head = head,
        }
        source.consumed = ByteCounter::default();
        Ok(source)
    }

    fn of_stream(
        place: Place,
        stream: impl Read + 'static,
        identity: Option<Identity>,
        passes: Passes,
    ) -> Result<Source, Error> {
        if passes == Passes::Many {
            return Ok(Source { identity, ..Source::spooled(place, stream)? });
        }
        let consumed = ByteCounter::default();
        let mut rest = decode(stream, &place, &consumed, DecodeGuard::USUAL)?;
        let mut head = Vec::new();
        let rest = match Head::read(&mut rest, &mut head) {
            Ok(()) => StreamRest::Bytes(rest),
            Err(error) => StreamRest::Failed(error),
        };
        Ok(Source { place, origin: Origin::Stream(Some(rest)), identity, mode: None, head, consumed })
    }

    /// Spools a stream so that it can be read as often as needed.
    pub(crate) fn spooled(place: Place, mut stream: impl Read) -> Result<Source, Error> {
        let mut spool = Spool::new()?;
        let copied = io::copy(&mut stream, &mut spool);
        // A full spool reports that itself: the source is not at fault.
        let length = copied.map_err(|error| match error.downcast::<Error>() {
            Ok(inside) => inside,
            Err(error) => Error::from_system(&place, Problem::Unreadable, error),
        })?;
        Source::of_file(place, spool.into_file()?, length, None)
    }

    /// These bytes as the content of a file.
    pub fn of_content(path: &Path, content: Spool) -> Result<Source, Error> {
        let place = Place::Path(path.to_owned());
        let file = content.into_file()?;
        let length = file.metadata().map_err(|error| Error::from_system(&place, Problem::Unreadable, error))?.len();
        Source::of_file(place, file, length, None)
    }

    /// The same source with other bytes.
    pub(crate) fn with_content(self, content: Spool) -> Result<Source, Error> {
        let Source { place, identity, mode, .. } = self;
        let file = content.into_file()?;
        let length = file.metadata().map_err(|error| Error::from_system(&place, Problem::Unreadable, error))?.len();
        Ok(Source { mode, ..Source::of_file(place, file, length, identity)? })
    }

    /// Where it comes from.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Detects the format and how certain it is, by the beginning, or by later records if the first one is too long. If the
    /// content leaves a choice, the path decides.
    pub fn recognize(&self, place: &PathHints) -> Option<Recognized> {
        recognize(&self.head, place).or_else(|| recognize(&self.after_long_line()?, place))
    }

    /// The beginning of what follows a first line that is longer than the head. A later pass reports a read error.
    fn after_long_line(&self) -> Option<Vec<u8>> {
        let Origin::File { file, length } = &self.origin else { return None };
        let mut file: &File = file;
        if self.head.len() < Head::LINE_SIZE_MAX || file.rewind().is_err() {
            return None;
        }
        let mut rest = decode(file.take(*length), &self.place, &ByteCounter::default(), DecodeGuard::USUAL).ok()?;
        let mut head = Vec::new();
        Head::read(&mut rest, &mut head).ok()?;
        Head::after_long_line(&head, &mut rest).ok().flatten()
    }

    /// How its records are reached in this format.
    pub fn access(&self, format: &dyn Format) -> Access {
        Access::of(format, self.container(), &self.head)
    }

    /// Its compression.
    pub(crate) fn container(&self) -> Container {
        match &self.origin {
            Origin::File { file, .. } => {
                let (mut reader, mut first) = (file, Vec::new());
                let read = reader.rewind().and_then(|()| reader.take(4).read_to_end(&mut first));
                read.map_or(Container::Plain, |_| Container::of(&first))
            }
            Origin::Stream(Some(StreamRest::Bytes(rest))) => rest.container(),
            Origin::Stream(_) => Container::Plain,
        }
    }

    /// The first decoded bytes, as many as detection looks at.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// How many raw bytes a pass reads, if known.
    pub fn length(&self) -> Option<u64> {
        match self.origin {
            Origin::File { length, .. } => Some(length),
            Origin::Stream(_) => None,
        }
    }

    /// How many raw bytes all passes have read so far.
    pub fn consumed(&self) -> impl Fn() -> u64 + 'static {
        let consumed = self.consumed.clone();
        move || consumed.count()
    }

    /// The file's permissions; `None` if it is not a file.
    pub fn mode(&self) -> Option<FileMode> {
        self.mode
    }

    /// Whether `path` is this file, under any name.
    pub fn is_at(&self, path: &Path) -> bool {
        self.identity.is_some() && Identity::of_path(path) == self.identity
    }

    /// Returns a function that tells whether a path is this file, without borrowing the source.
    pub fn recognizer(&self) -> impl Fn(&Path) -> bool + 'static {
        let identity = self.identity.clone();
        move |path| identity.is_some() && Identity::of_path(path) == identity
    }

    /// Whether standard output is redirected to this file.
    pub fn is_standard_output(&self) -> bool {
        self.identity.is_some() && Identity::of_standard_output() == self.identity
    }

    /// The whole source in memory, unless it is larger than `size_max`.
    pub fn read_whole(&mut self, size_max: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.pass()?.take(size_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.explain(error))?;
        if bytes.len() as u64 > size_max {
            return Err(Error::new(&self.place, Problem::TooLarge { size_max }));
        }
        Ok(bytes)
    }

    /// Reads from the beginning.
    pub fn pass(&mut self) -> Result<Box<dyn Read + '_>, Error> {
        let place = &self.place;
        match &mut self.origin {
            Origin::File { file, length } => {
                let mut file: &File = file;
                file.rewind().map_err(|error| Error::from_system(place, Problem::Unreadable, error))?;
                Ok(Box::new(decode(file.take(*length), place, &self.consumed, DecodeGuard::USUAL)?))
            }
            Origin::Stream(rest) => {
                let head = Cursor::new(self.head.as_slice());
                match rest.take() {
                    Some(StreamRest::Bytes(rest)) => Ok(Box::new(head.chain(rest))),
                    Some(StreamRest::Failed(error)) => Ok(Box::new(head.chain(FailOnce(Some(error))))),
                    None => Err(Error::new(place, Problem::ReadAlready)),
                }
            }
        }
    }

    /// The file and its length, for another thread that reads while this source is read; `None` for a stream.
    #[cfg(unix)]
    pub(crate) fn shared_file(&self) -> Option<(File, u64)> {
        let Origin::File { file, length } = &self.origin else { return None };
        file.try_clone().ok().map(|file| (file, *length))
    }

    /// The file and its length, for another thread. On this system, reading moves the position of all who share the file.
    #[cfg(not(unix))]
    pub(crate) fn shared_file(&self) -> Option<(File, u64)> {
        None
    }

    /// Whether the source is compressed.
    pub fn is_compressed(&self) -> bool {
        matches!(self.origin, Origin::File { .. }) && self.plain_file().is_none()
    }

    /// The file itself, if its bytes are the source; `None` for compressed data and streams.
    pub(crate) fn plain_file(&self) -> Option<File> {
        let Origin::File { file, .. } = &self.origin else { return None };
        (self.container() == Container::Plain).then(|| file.try_clone().ok()).flatten()
    }

    fn explain(&self, error: io::Error) -> Error {
        match Error::inside(&error) {
            Some(inside) => Error::new(&inside.place, inside.problem),
            None => Error::from_system(&self.place, Problem::Unreadable, error),
        }
    }
}

impl stenograph::convert::Reopen for Source {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(self.pass()?)
    }
}

/// Fails once, with the error that a stream had.
struct FailOnce(Option<io::Error>);

impl Read for FailOnce {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_often_as_needed_and_a_stream_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "hello").unwrap();
        let mut source = Source::open(&path, Passes::Once).unwrap();
        assert_eq!(source.head(), b"hello");
        assert_eq!(source.read_whole(5).unwrap(), b"hello");
        assert_eq!(source.read_whole(4).unwrap_err().problem, Problem::TooLarge { size_max: 4 });

        let mut stream = Source::of_stream(Place::StandardInput, b"hello".as_slice(), None, Passes::Once).unwrap();
        assert_eq!(stream.read_whole(9).unwrap(), b"hello");
        assert_eq!(stream.read_whole(9).unwrap_err().problem, Problem::ReadAlready);

        let mut spooled = Source::of_stream(Place::StandardInput, b"hello".as_slice(), None, Passes::Many).unwrap();
        assert_eq!(spooled.read_whole(9).unwrap(), b"hello");
        assert_eq!(spooled.read_whole(9).unwrap(), b"hello");
    }

    #[test]
    fn every_pass_sees_the_same_of_a_file_that_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "hello").unwrap();
        let mut source = Source::open(&path, Passes::Many).unwrap();
        std::fs::write(&path, "hello, world").unwrap();
        assert_eq!(source.read_whole(99).unwrap(), b"hello");
    }

    #[test]
    fn an_open_error_states_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Source::open(&folder.path().join("none"), Passes::Once).unwrap_err();
        assert_eq!(missing.problem, Problem::Missing);
        assert!(missing.hint().is_some());
        assert_eq!(Source::open(folder.path(), Passes::Once).unwrap_err().problem, Problem::Folder);
    }
}
