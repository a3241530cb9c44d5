//! Counts one source: reads it from its file, or from the archive if the file is gone.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stenograph::Registry;
use stenograph::format::{Format, Head, Wanted};
use stenograph::ledger::{CallCounter, CallDetail, SourceUsage};
use stenograph::read::Reading;

use super::grown::Grown;
use super::{SourcePage, UsageRunReport};
use crate::archive::{Archive, CopyInfo, ForgottenState, Label, WhichVersion};
use crate::databases;
use crate::decode::{ByteCounter, Container, DecodeGuard, decode};
use crate::discover::PathHints;
use crate::identity::{first_time, session_of, stem};
use crate::session_files::recording_name;
use crate::source_file::recognize_after;
use crate::tail::Warning;
use crate::{Error, Place, Problem};

/// How many bytes one read takes.
const CHUNK_SIZE: usize = 128 << 10;

/// How many calls one page holds if a source is read in pieces, so that delivered pages free memory early.
const ROWS_MAX: usize = 4096;

/// A source to read.
pub(super) enum UsageJob {
    File {
        path: PathBuf,
        size: u64,
        changed: i64,
        hints: PathHints,
        /// The index's part, if the file only grew since.
        grown: Option<Box<Grown>>,
    },
    Archived(CopyInfo),
}

/// State that one thread reuses.
pub(super) struct ThreadState {
    /// The formats that a source may have.
    registry: &'static Registry,
    buffer: Vec<u8>,
    /// The format of the last file: the next one in the folder is likely to have the same.
    last: Option<&'static dyn Format>,
}

impl ThreadState {
    pub fn new(registry: &'static Registry) -> ThreadState {
        ThreadState { registry, buffer: Vec::new(), last: None }
    }
}

impl UsageJob {
    pub fn size(&self) -> u64 {
        match self {
            UsageJob::File { size, .. } => *size,
            UsageJob::Archived(copy) => copy.length,
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            UsageJob::File { path, .. } => path,
            UsageJob::Archived(copy) => &copy.path,
        }
    }

    /// When the source was last written, in nanoseconds since 1970.
    pub fn changed(&self) -> i64 {
        match self {
            UsageJob::File { changed, .. } => *changed,
            UsageJob::Archived(copy) => copy.modified_ns,
        }
    }

    /// Delivers the pages and updates the report.
    pub fn deliver(
        &self,
        outcome: Result<JobOutcome, Error>,
        give: &mut dyn FnMut(SourcePage),
        report: &mut UsageRunReport,
    ) {
        match outcome {
            Ok(JobOutcome::Counted { pages, damage }) => {
                match self {
                    UsageJob::File { .. } => report.read += 1,
                    UsageJob::Archived(_) => report.from_archive += 1,
                }
                let session = self.session();
                for page in pages {
                    give(SourcePage::new(self.path(), session.clone(), self.changed(), page));
                }
                report
                    .warnings
                    .extend(damage.map(|damage| Warning::new(self.path(), error_text(self.path(), &damage))));
            }
            Ok(JobOutcome::Unrecognized | JobOutcome::NeedsFormat(_)) => report.unrecognized.add(self.path()),
            Ok(JobOutcome::Forgotten) => report.forgotten += 1,
            Ok(JobOutcome::Nothing) => {}
            Err(error) => report.warnings.push(Warning::new(self.path(), error_text(self.path(), &error))),
        }
    }

    /// The session of calls that name none.
    fn session(&self) -> Option<String> {
        match self {
            UsageJob::Archived(copy) => copy.label.session.clone(),
            UsageJob::File { grown: Some(grown), .. } => Some(grown.session.clone()),
            UsageJob::File { path, hints, .. } => {
                hints.session.clone().or_else(|| recording_name(path)).or_else(|| Some(stem(path)))
            }
        }
    }

    /// Reads its pages.
    pub fn read(
        &self,
        calls: CallDetail,
        archive: Option<&Archive>,
        hand: &mut ThreadState,
        done: &AtomicU64,
    ) -> Result<JobOutcome, Error> {
        match self.read_as(None, calls, archive, hand, done)? {
            JobOutcome::NeedsFormat(format) => self.read_as(Some(format), calls, archive, hand, done),
            outcome => Ok(outcome),
        }
    }

    /// Reads its pages, in this format if it is known.
    fn read_as(
        &self,
        format: Option<&'static dyn Format>,
        calls: CallDetail,
        archive: Option<&Archive>,
        hand: &mut ThreadState,
        done: &AtomicU64,
    ) -> Result<JobOutcome, Error> {
        let place = Place::Path(self.path().to_owned());
        let unreadable = |error| Error::at(self.path(), Problem::Unreadable, error);
        hand.buffer.resize(CHUNK_SIZE, 0);
        match self {
            UsageJob::File { path, grown: Some(grown), .. } => {
                let pages = grown.read(path, calls, &mut hand.buffer, done).map_err(unreadable)?;
                Ok(JobOutcome::Counted { pages, damage: None })
            }
            UsageJob::File { path, hints, .. } => {
                let mut file = databases::open_file(path).map_err(unreadable)?;
                if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                    return Ok(JobOutcome::Nothing);
                }
                let is_forgotten = |format: &dyn Format, head: &[u8]| {
                    let session = session_of(hints.session.as_deref(), Some(format), head);
                    let label = Label { format: format.info().name.to_owned(), session };
                    let forgotten_state = archive.map(|archive| archive.forgotten_state(&label, path));
                    forgotten_state.is_some_and(|forgotten_state| {
                        forgotten_state.is_ok_and(|forgotten_state| forgotten_state != ForgottenState::Unknown)
                    })
                };
                let filled = fill(&mut file, &mut hand.buffer);
                let begin = hand.buffer.get(..filled.length).unwrap_or_default();
                if Container::of(begin) == Container::Plain {
                    return count(&mut file, filled, format, hints, &is_forgotten, calls, hand, done)
                        .map_err(unreadable);
                }
                let file = databases::open_file(path).map_err(unreadable)?;
                let mut stream = decode(file, &place, &ByteCounter::default(), DecodeGuard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                count(&mut stream, filled, format, hints, &is_forgotten, calls, hand, done).map_err(unreadable)
            }
            UsageJob::Archived(copy) => {
                let Some(archive) = archive else { return Ok(JobOutcome::Nothing) };
                let stream = archive.read(copy.id, WhichVersion::Last, 0)?;
                let mut stream = decode(stream, &place, &ByteCounter::default(), DecodeGuard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                let like = hand.registry.named(&copy.label.format);
                let hints = PathHints { registry: hand.registry, like, ..PathHints::default() };
                count(&mut stream, filled, format, &hints, &|_, _| false, calls, hand, done).map_err(unreadable)
            }
        }
    }
}

/// The result of reading a source.
pub(super) enum JobOutcome {
    /// Its pages, and the error that ended it early.
    Counted { pages: Vec<SourceUsage>, damage: Option<io::Error> },
    /// It must be read again in this format, which a record after its very long first one reveals.
    NeedsFormat(&'static dyn Format),
    /// It has no known format.
    Unrecognized,
    /// Its session was forgotten.
    Forgotten,
    /// It is not a file, or an empty one.
    Nothing,
}

/// Counts a stream whose first bytes are in the buffer, in the given format or the detected one.
#[expect(clippy::too_many_arguments, reason = "the source, the counting rule, and the receivers")]
fn count(
    stream: &mut dyn Read,
    filled: Filled,
    format: Option<&'static dyn Format>,
    place: &PathHints,
    is_forgotten: &dyn Fn(&dyn Format, &[u8]) -> bool,
    calls: CallDetail,
    hand: &mut ThreadState,
    done: &AtomicU64,
) -> io::Result<JobOutcome> {
    let Filled { length, mut damage } = filled;
    if length == 0
        && let Some(damage) = damage
    {
        return Err(damage);
    }
    if length == 0 {
        return Ok(JobOutcome::Nothing);
    }
    let mut head = Vec::new();
    let begin = hand.buffer.get(..length).unwrap_or_default();
    if !Head::is_whole(begin) && length == CHUNK_SIZE && damage.is_none() {
        // The first line is longer than the buffer: the format may only show at its end.
        head.extend_from_slice(begin);
        damage = Head::read(stream, &mut head).err();
    }
    let begin = if head.is_empty() { begin } else { head.as_slice() };
    let last = hand.last;
    let recognized = |begin: &[u8]| recognize_after(last, begin, place).map(|recognized| recognized.format);
    let Some(format) = format.or_else(|| recognized(begin)) else {
        let later = if damage.is_none() { Head::after_long_line(begin, stream)? } else { None };
        let format = later.and_then(|later| recognized(&later));
        return Ok(format.map_or(JobOutcome::Unrecognized, JobOutcome::NeedsFormat));
    };
    if is_forgotten(format, begin) {
        return Ok(JobOutcome::Forgotten);
    }
    hand.last = Some(format);
    let want = match calls {
        CallDetail::Numbers => Wanted::Usage,
        CallDetail::Tools => Wanted::All,
    };
    let mut counting = CallCounter::new(format.info().agent, calls);
    if let Some(time) = first_time(format, begin) {
        counting.begin(&time);
    }
    let mut reading = Reading::new(format, want);
    let mut pages = Vec::new();
    reading.feed(begin, &mut counting);
    done.fetch_add(begin.len() as u64, Ordering::Relaxed);
    // The part before the damage counts.
    let damage = loop {
        if damage.is_some() {
            break damage;
        }
        match stream.read(&mut hand.buffer) {
            Ok(0) => break None,
            Ok(length) => {
                reading.feed(hand.buffer.get(..length).unwrap_or_default(), &mut counting);
                done.fetch_add(length as u64, Ordering::Relaxed);
                if counting.rows() >= ROWS_MAX && format.info().traits.pieces {
                    pages.push(counting.take_part());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    reading.end(&mut counting);
    pages.push(counting.finish());
    Ok(JobOutcome::Counted { pages, damage })
}

/// How much of a buffer was filled, and the error that ended it early.
struct Filled {
    length: usize,
    damage: Option<io::Error>,
}

/// The message of an error about a file, without the path, which precedes it.
pub(crate) fn error_text(path: &Path, error: &dyn std::error::Error) -> String {
    error.to_string().replace(&format!("{}: ", path.display()), "")
}

/// Fills a buffer as far as possible.
fn fill(stream: &mut dyn Read, buffer: &mut [u8]) -> Filled {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Filled { length, damage: Some(error) },
        }
    }
    Filled { length, damage: None }
}
