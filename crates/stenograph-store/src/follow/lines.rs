//! A plain file of lines, read from its end and on. Bytes before the lines that are wanted are not read, which is why what stands there
//! has no line numbers.

use std::fs::{self, File};
use std::io::{self, BufRead as _, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::format::{Format, Want};
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::json;
use stenograph::model::Span;
use stenograph::read::{Reading, Sink};

use super::{LastLine, Listener, Looked, Rings, Turn, missing};
use crate::error::{Error, Problem};
use crate::fingerprint::FingerprintBuilder;
use crate::identity::Identity;

/// How far back is looked at first: the last dozen records of most files.
const WINDOW_SIZE: u64 = 64 << 10;

/// How much further each time there was not enough.
const WINDOW_GROWTH: u64 = 4;

/// How far back is looked at most, for all events and for each: one line of many gigabytes, or a file with a hole, is not worth more.
const WINDOW_SIZE_MAX: u64 = 64 << 20;
const WINDOW_EVENT_SIZE: u64 = 64 << 10;

const CHUNK_SIZE: usize = 256 << 10;

const HEAD_SIZE: usize = 4 << 10;

pub(super) struct Lines {
    pub format: &'static dyn Format,
    pub consumed: u64,
    /// The first bytes: enough to tell lines from a document, and what is compressed from what is not.
    pub head: Vec<u8>,
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    reading: Reading,
    /// The offset after the last byte that was read, and the line that is.
    at: Span,
    /// Whether the line under way began before what was read: then there is nothing to be made of it.
    within: bool,
    fingerprint: FingerprintBuilder,
    /// How the file looked at the last look.
    seen: Option<(u64, Option<SystemTime>)>,
    /// Whether the file was found too short at the last look. Some write a file anew under its name at every message: for a moment it
    /// is short, and then it goes on where it was.
    short: bool,
    gone: bool,
    /// Up to where half a last line was looked at and found not to be whole.
    tried: u64,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lines").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

const START: Span = Span { offset: 0, length: 0, line: 1 };

/// The line, from 1, on which this byte of a plain file is.
pub fn line_at(path: &Path, offset: u64) -> Result<u64, Error> {
    let unreadable = |error: io::Error| Error::at(path, Problem::Unreadable, error);
    let mut reader = io::BufReader::new(File::open(path).map_err(unreadable)?.take(offset));
    let mut line = 1;
    loop {
        let bytes = reader.fill_buf().map_err(unreadable)?;
        if bytes.is_empty() {
            return Ok(line);
        }
        line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = bytes.len();
        reader.consume(length);
    }
}

impl Lines {
    pub fn of(path: &Path, file: File, format: &'static dyn Format) -> Result<Lines, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(Error::about(path, Problem::Folder));
        }
        let mut head = vec![0; HEAD_SIZE];
        let length = read_at(&file, 0, &mut head).map_err(unreadable)?;
        head.truncate(length);
        Ok(Lines {
            format,
            consumed: length as u64,
            head,
            path: path.to_owned(),
            file,
            identity: Identity::of_metadata(&metadata),
            reading: Reading::new(format, Want::All),
            at: START,
            within: false,
            fingerprint: FingerprintBuilder::default(),
            seen: None,
            short: false,
            gone: false,
            tried: 0,
        })
    }

    /// The file, to be read in another way.
    pub fn into_file(self) -> File {
        self.file
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::at(&self.path, Problem::Unreadable, error)
    }

    /// Reads everything, and is at its end then.
    pub fn all(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        self.drain(listener)?;
        Ok(())
    }

    /// The last events there are now: looks further and further back until there are enough.
    pub fn last(&mut self, ring: &mut dyn Rings, last_line: LastLine) -> Result<(), Error> {
        let length = self.file.metadata().map_err(|error| self.unreadable(error))?.len();
        let most = u64::try_from(ring.most()).unwrap_or(u64::MAX);
        let window_max = WINDOW_SIZE_MAX.saturating_add(most.saturating_mul(WINDOW_EVENT_SIZE));
        let mut window = WINDOW_SIZE;
        loop {
            ring.clear();
            let start = length.saturating_sub(window);
            self.begin(start);
            self.read_to(length, ring).map_err(|error| self.unreadable(error))?;
            if start == 0 || (ring.is_full() && !self.within) {
                break;
            }
            if window >= window_max {
                ring.give_up(window);
                break;
            }
            window = window.saturating_mul(WINDOW_GROWTH).min(window_max);
        }
        self.fingerprint =
            FingerprintBuilder::at(&self.file, self.at.offset).map_err(|error| self.unreadable(error))?;
        self.consumed += self.fingerprint.size();
        if last_line == LastLine::Given {
            self.end(ring);
        }
        Ok(())
    }

    /// Begins to read here: at the first line that begins after it.
    fn begin(&mut self, offset: u64) {
        self.within = offset > 0;
        self.at = if offset == 0 { START } else { Span { offset, length: 0, line: Span::LINE_UNKNOWN } };
        self.reading = self.begun();
    }

    /// A new reading from here on.
    fn begun(&self) -> Reading {
        match self.at.offset {
            // The mark of the byte order is none in the middle.
            0 => Reading::new(self.format, Want::All),
            _ => Reading::from_line(self.format, Want::All, self.at),
        }
    }

    /// Ends the line under way, whole or not, and goes on after it.
    fn end(&mut self, sink: &mut (impl Sink + ?Sized)) {
        let next = self.begun();
        let reading = std::mem::replace(&mut self.reading, next);
        reading.end(&mut &mut *sink);
    }

    /// Reads up to this offset, or to the end. Gives how many bytes there were.
    fn read_to(&mut self, end: u64, sink: &mut (impl Sink + ?Sized)) -> io::Result<u64> {
        let mut buffer = vec![0; CHUNK_SIZE];
        let from = self.at.offset;
        while self.at.offset < end {
            let size = usize::try_from(end - self.at.offset).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
            let room = buffer.get_mut(..size).unwrap_or_default();
            let length = read_at(&self.file, self.at.offset, room)?;
            if length == 0 {
                break;
            }
            self.consumed += length as u64;
            self.feed(buffer.get(..length).unwrap_or_default(), sink);
        }
        Ok(self.at.offset - from)
    }

    fn feed(&mut self, chunk: &[u8], sink: &mut (impl Sink + ?Sized)) {
        self.fingerprint.add(chunk);
        let mut rest = chunk;
        if self.within {
            let skipped = chunk.iter().position(|byte| *byte == b'\n').map_or(chunk.len(), |newline| newline + 1);
            self.within = skipped == chunk.len() && !chunk.ends_with(b"\n");
            self.at.offset += skipped as u64;
            rest = chunk.get(skipped..).unwrap_or_default();
            self.reading = self.begun();
        }
        self.reading.feed(rest, &mut &mut *sink);
        self.at.offset += rest.len() as u64;
        if self.at.line != Span::LINE_UNKNOWN {
            self.at.line += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }

    /// Looks once, and gives what came since.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<Looked, Error> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) => {
                // Whoever took the name away may still write to the file.
                self.drain(listener)?;
                missing(&self.path, error, &mut self.gone, listener)?;
                return Ok(Looked::Same);
            }
        };
        let identity = Identity::of_metadata(&metadata);
        if self.gone || identity != self.identity {
            return self.succeed(listener);
        }
        if metadata.len() < self.at.offset {
            return match std::mem::replace(&mut self.short, true) {
                true => self.anew(Turn::Truncated),
                false => Ok(Looked::Same),
            };
        }
        let seen = Some((metadata.len(), metadata.modified().ok()));
        if seen != self.seen && !self.is_same_file()? {
            return self.anew(if self.short { Turn::Truncated } else { Turn::Rewritten });
        }
        (self.seen, self.short) = (seen, false);
        if self.drain(listener)? == 0 {
            self.settle(listener)?;
        }
        Ok(Looked::Same)
    }

    /// The same file is read from its beginning again.
    fn anew(&self, turn: Turn) -> Result<Looked, Error> {
        Ok(Looked::Anew(turn, Some(self.same_file()?)))
    }

    /// The file that is read, whatever has its name now.
    pub fn same_file(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|error| self.unreadable(error))
    }

    /// Whether the file still begins with what was read of it.
    fn is_same_file(&mut self) -> Result<bool, Error> {
        self.consumed += self.fingerprint.size();
        self.fingerprint.build().is_on(&self.file).map_err(|error| self.unreadable(error))
    }

    /// Another file has the name now. When it has all that was read of the old one, somebody wrote it anew and put it in its place.
    fn succeed(&mut self, listener: &mut dyn Listener) -> Result<Looked, Error> {
        self.drain(listener)?;
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // It went away again: the next look finds out.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Looked::Same),
            Err(error) => return Err(self.unreadable(error)),
        };
        if self.fingerprint.build().is_on(&file).map_err(|error| self.unreadable(error))? && self.at.offset > 0 {
            // Of the file that was opened: since it was noticed, yet another one may have taken the name.
            let metadata = file.metadata().map_err(|error| self.unreadable(error))?;
            (self.identity, self.gone, self.short) = (Identity::of_metadata(&metadata), false, false);
            self.seen = Some((metadata.len(), metadata.modified().ok()));
            self.file = file;
            self.drain(listener)?;
            return Ok(Looked::Same);
        }
        // Nobody writes the rest of its last line any more.
        self.end(listener);
        Ok(Looked::Anew(Turn::Rotated, Some(file)))
    }

    /// Reads what came since, and gives how much it was.
    fn drain(&mut self, listener: &mut dyn Listener) -> Result<u64, Error> {
        self.read_to(u64::MAX, listener).map_err(|error| self.unreadable(error))
    }

    /// Gives a last line without a newline that is whole all the same, once nothing follows it: some systems write none at the end.
    fn settle(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        let settled = self.reading.settled();
        let length = usize::try_from(self.at.offset.saturating_sub(settled)).unwrap_or(usize::MAX);
        if self.within || length == 0 || length > RECORD_SIZE_MAX || self.tried == self.at.offset {
            return Ok(());
        }
        self.tried = self.at.offset;
        let mut rest = vec![0; length];
        let found = read_at(&self.file, settled, &mut rest).map_err(|error| self.unreadable(error))?;
        self.consumed += found as u64;
        let whole = std::str::from_utf8(&rest).is_ok_and(|text| {
            let text = text.trim_start_matches('\u{feff}').trim();
            text.ends_with('}') && json::is_valid(text)
        });
        if found == length && whole {
            self.end(listener);
        }
        Ok(())
    }
}

/// Reads at an offset until the buffer is full or the file ends.
pub(super) fn read_at(mut file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    let mut found = 0;
    while let Some(room) = buffer.get_mut(found..).filter(|room| !room.is_empty()) {
        match file.read(room) {
            Ok(0) => break,
            Ok(length) => found += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
