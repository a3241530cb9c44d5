//! A plain file of lines, read from its end. The bytes before the wanted lines are not read, so the lines have no numbers.

use std::fs::{self, File};
use std::io::{self, BufRead as _, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::format::{Format, Wanted};
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::json;
use stenograph::model::Span;
use stenograph::read::{Reading, Sink};

use super::{EndSink, FollowChange, LastLine, Listener, LookResult, missing};
use crate::error::{Error, Problem};
use crate::fingerprint::FingerprintBuilder;
use crate::identity::Identity;

/// The factor by which the distance from the end grows if the first one was not enough.
const WINDOW_GROWTH: u64 = 4;

/// The largest distance, in total and per event: a line of many gigabytes, or a sparse file, is not worth more.
const WINDOW_SIZE_MAX: u64 = 64 << 20;
const WINDOW_EVENT_SIZE: u64 = 64 << 10;

const CHUNK_SIZE: usize = 256 << 10;

const HEAD_SIZE: usize = 4 << 10;

pub(super) struct Lines {
    pub format: &'static dyn Format,
    pub consumed: u64,
    /// The first bytes: enough to tell lines from a document, and compressed from plain data.
    pub head: Vec<u8>,
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    reading: Reading,
    /// The offset after the last byte read, and its line number.
    at: Span,
    /// Whether the current line began before the bytes read; it is then skipped.
    within: bool,
    fingerprint: FingerprintBuilder,
    /// The file's size and time at the last look.
    seen: Option<(u64, Option<SystemTime>)>,
    /// Whether the file was too short at the last look. Some agents rewrite a file in place with every message: it is short for
    /// a moment, and then continues where it was.
    short: bool,
    gone: bool,
    /// The offset up to which an incomplete last line was checked.
    checked_to: u64,
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
            reading: Reading::new(format, Wanted::All),
            at: START,
            within: false,
            fingerprint: FingerprintBuilder::default(),
            seen: None,
            short: false,
            gone: false,
            checked_to: 0,
        })
    }

    /// The file, for another read strategy.
    pub fn into_file(self) -> File {
        self.file
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::at(&self.path, Problem::Unreadable, error)
    }

    /// Reads everything up to the end.
    pub fn all(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        self.drain(listener)?;
        Ok(())
    }

    /// Collects the last events: goes further and further back until there are enough.
    pub fn last(&mut self, sink: &mut dyn EndSink, last_line: LastLine) -> Result<(), Error> {
        let length = self.file.metadata().map_err(|error| self.unreadable(error))?.len();
        let enough = u64::try_from(sink.enough()).unwrap_or(u64::MAX);
        let window_max = WINDOW_SIZE_MAX.saturating_add(enough.saturating_mul(WINDOW_EVENT_SIZE));
        let mut window = sink.window_size();
        loop {
            sink.clear();
            let start = length.saturating_sub(window);
            self.begin(start);
            self.read_to(length, sink).map_err(|error| self.unreadable(error))?;
            if start == 0 || (sink.has_enough() && !self.within) {
                break;
            }
            if window >= window_max {
                sink.give_up(window);
                break;
            }
            window = window.saturating_mul(WINDOW_GROWTH).min(window_max);
        }
        self.fingerprint =
            FingerprintBuilder::at(&self.file, self.at.offset).map_err(|error| self.unreadable(error))?;
        self.consumed += self.fingerprint.size();
        if last_line == LastLine::Include {
            self.end(sink);
        }
        Ok(())
    }

    /// Starts reading at the first line that begins after this offset.
    fn begin(&mut self, offset: u64) {
        self.within = offset > 0;
        self.at = if offset == 0 { START } else { Span { offset, length: 0, line: Span::LINE_UNKNOWN } };
        self.reading = self.new_reading();
    }

    /// A new reading from the current position.
    fn new_reading(&self) -> Reading {
        match self.at.offset {
            // A byte order mark has no meaning in the middle of a file.
            0 => Reading::new(self.format, Wanted::All),
            _ => Reading::from_line(self.format, Wanted::All, self.at),
        }
    }

    /// Ends the current line, complete or not, and continues after it.
    fn end(&mut self, sink: &mut (impl Sink + ?Sized)) {
        let next = self.new_reading();
        let reading = std::mem::replace(&mut self.reading, next);
        reading.end(&mut &mut *sink);
    }

    /// Reads up to this offset or to the end. Returns how many bytes there were.
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
            self.reading = self.new_reading();
        }
        self.reading.feed(rest, &mut &mut *sink);
        self.at.offset += rest.len() as u64;
        if self.at.line != Span::LINE_UNKNOWN {
            self.at.line += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }

    /// Looks once and gives the new events.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<LookResult, Error> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) => {
                // The process that renamed the file may still write to it.
                self.drain(listener)?;
                missing(&self.path, error, &mut self.gone, listener)?;
                return Ok(LookResult::Same);
            }
        };
        let identity = Identity::of_metadata(&metadata);
        if self.gone || identity != self.identity {
            return self.switch_to_new_file(listener);
        }
        if metadata.len() < self.at.offset {
            return match std::mem::replace(&mut self.short, true) {
                true => self.restart(FollowChange::Truncated),
                false => Ok(LookResult::Same),
            };
        }
        let seen = Some((metadata.len(), metadata.modified().ok()));
        if seen != self.seen && !self.is_same_file()? {
            return self.restart(if self.short { FollowChange::Truncated } else { FollowChange::Rewritten });
        }
        (self.seen, self.short) = (seen, false);
        if self.drain(listener)? == 0 {
            self.give_unterminated_line(listener)?;
        }
        Ok(LookResult::Same)
    }

    /// Restarts with the same file.
    fn restart(&self, file_change: FollowChange) -> Result<LookResult, Error> {
        Ok(LookResult::Restart(file_change, Some(self.same_file()?)))
    }

    /// The file being read, even if another one has its name now.
    pub fn same_file(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|error| self.unreadable(error))
    }

    /// Whether the file still begins with what was read of it.
    fn is_same_file(&mut self) -> Result<bool, Error> {
        self.consumed += self.fingerprint.size();
        self.fingerprint.build().is_on(&self.file).map_err(|error| self.unreadable(error))
    }

    /// Another file has the name now. If it contains everything that was read of the old one, it is a rewritten version of it.
    fn switch_to_new_file(&mut self, listener: &mut dyn Listener) -> Result<LookResult, Error> {
        self.drain(listener)?;
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // It disappeared again: the next look handles it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LookResult::Same),
            Err(error) => return Err(self.unreadable(error)),
        };
        if self.fingerprint.build().is_on(&file).map_err(|error| self.unreadable(error))? && self.at.offset > 0 {
            // The identity of the opened file: yet another one may have taken the name meanwhile.
            let metadata = file.metadata().map_err(|error| self.unreadable(error))?;
            (self.identity, self.gone, self.short) = (Identity::of_metadata(&metadata), false, false);
            self.seen = Some((metadata.len(), metadata.modified().ok()));
            self.file = file;
            self.drain(listener)?;
            return Ok(LookResult::Same);
        }
        // The rest of its last line will never be written.
        self.end(listener);
        Ok(LookResult::Restart(FollowChange::Rotated, Some(file)))
    }

    /// Reads the new bytes. Returns how many there were.
    fn drain(&mut self, listener: &mut dyn Listener) -> Result<u64, Error> {
        self.read_to(u64::MAX, listener).map_err(|error| self.unreadable(error))
    }

    /// Gives a complete last line without a newline once no bytes follow it: some agents write no final newline.
    fn give_unterminated_line(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        let settled = self.reading.stable_until();
        let length = usize::try_from(self.at.offset.saturating_sub(settled)).unwrap_or(usize::MAX);
        if self.within || length == 0 || length > RECORD_SIZE_MAX || self.checked_to == self.at.offset {
            return Ok(());
        }
        self.checked_to = self.at.offset;
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
