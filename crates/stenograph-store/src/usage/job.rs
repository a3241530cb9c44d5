//! One source of which the ledger wants the pages: read from its file, or from the archive where it is gone.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stenograph::format::{Format, Head, Want};
use stenograph::ledger::{CallDetail, Counting, SourceUsage};
use stenograph::read::Reading;

use super::grown::Grown;
use super::{Report, Told};
use crate::archive::{Archive, CopyInfo, Label, Memory, Which};
use crate::decode::{Container, Counter, Guard, decode};
use crate::discover::Named;
use crate::identity::session_of;
use crate::source_file::recognize_after;
use crate::tail::Warning;
use crate::{Error, Place, Problem};

/// How much is read at a time.
const CHUNK_SIZE: usize = 128 << 10;

/// How many calls stand on one page of what is read in pieces, so that much of it can be let go as it is taken in.
const ROWS_MAX: usize = 4096;

/// What has to be read.
pub(super) enum Job {
    File {
        path: PathBuf,
        size: u64,
        changed: i64,
        named: Named,
        /// What the index knows of it, if it only grew since.
        grown: Option<Box<Grown>>,
    },
    Kept(CopyInfo),
}

/// What one thread uses again and again.
#[derive(Default)]
pub(super) struct Hand {
    buffer: Vec<u8>,
    /// The format of the last file: the next one beside it is likely to be of the same.
    last: Option<&'static dyn Format>,
}

impl Job {
    pub fn size(&self) -> u64 {
        match self {
            Job::File { size, .. } => *size,
            Job::Kept(copy) => copy.length,
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Job::File { path, .. } => path,
            Job::Kept(copy) => &copy.path,
        }
    }

    /// When the source was last written, in nanoseconds since 1970.
    pub fn changed(&self) -> i64 {
        match self {
            Job::File { changed, .. } => *changed,
            Job::Kept(copy) => copy.modified_ns,
        }
    }

    /// Gives what was counted.
    pub fn hand_in(&self, outcome: Result<Outcome, Error>, give: &mut dyn FnMut(Told), report: &mut Report) {
        match outcome {
            Ok(Outcome::Counted { pages, damage }) => {
                match self {
                    Job::File { .. } => report.read += 1,
                    Job::Kept(_) => report.kept += 1,
                }
                let session = self.session();
                for page in pages {
                    give(Told {
                        path: self.path().to_owned(),
                        session: session.clone(),
                        written: self.changed(),
                        page,
                    });
                }
                report.warnings.extend(damage.map(|damage| Warning::new(self.path(), said(self.path(), &damage))));
            }
            Ok(Outcome::Stranger | Outcome::Shown(_)) => report.strangers.add(self.path()),
            Ok(Outcome::Forgotten) => report.forgotten += 1,
            Ok(Outcome::Nothing) => {}
            Err(error) => report.warnings.push(Warning::new(self.path(), said(self.path(), &error))),
        }
    }

    /// The session that rows are of which name none.
    fn session(&self) -> Option<String> {
        match self {
            Job::Kept(copy) => copy.label.session.clone(),
            Job::File { grown: Some(grown), .. } => Some(grown.session.clone()),
            Job::File { path, named, .. } => named.session.clone().or_else(|| {
                let stem = path.file_name()?.to_string_lossy();
                stem.split('.').next().map(str::to_owned)
            }),
        }
    }

    /// Its pages.
    pub fn read(
        &self,
        calls: CallDetail,
        archive: Option<&Archive>,
        hand: &mut Hand,
        done: &AtomicU64,
    ) -> Result<Outcome, Error> {
        match self.read_as(None, calls, archive, hand, done)? {
            Outcome::Shown(format) => self.read_as(Some(format), calls, archive, hand, done),
            outcome => Ok(outcome),
        }
    }

    /// Its pages, as those of a format where that is known.
    fn read_as(
        &self,
        format: Option<&'static dyn Format>,
        calls: CallDetail,
        archive: Option<&Archive>,
        hand: &mut Hand,
        done: &AtomicU64,
    ) -> Result<Outcome, Error> {
        let place = Place::Path(self.path().to_owned());
        let unreadable = |error| Error::at(self.path(), Problem::Unreadable, error);
        hand.buffer.resize(CHUNK_SIZE, 0);
        match self {
            Job::File { path, grown: Some(grown), .. } => {
                let pages = grown.read(path, calls, &mut hand.buffer, done).map_err(unreadable)?;
                Ok(Outcome::Counted { pages, damage: None })
            }
            Job::File { path, named, .. } => {
                let mut file = File::open(path).map_err(unreadable)?;
                if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                    return Ok(Outcome::Nothing);
                }
                let is_forgotten = |format: &dyn Format, head: &[u8]| {
                    let session = session_of(named.session.as_deref(), Some(format), head);
                    let label = Label { format: format.info().name.to_owned(), session };
                    let memory = archive.map(|archive| archive.memory(&label, path));
                    memory.is_some_and(|memory| memory.is_ok_and(|memory| memory != Memory::Unknown))
                };
                let filled = fill(&mut file, &mut hand.buffer);
                let begin = hand.buffer.get(..filled.length).unwrap_or_default();
                if Container::of(begin) == Container::Plain {
                    return count(&mut file, filled, format, named, &is_forgotten, calls, hand, done)
                        .map_err(unreadable);
                }
                let file = File::open(path).map_err(unreadable)?;
                let mut stream = decode(file, &place, &Counter::default(), Guard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                count(&mut stream, filled, format, named, &is_forgotten, calls, hand, done).map_err(unreadable)
            }
            Job::Kept(copy) => {
                let Some(archive) = archive else { return Ok(Outcome::Nothing) };
                let stream = archive.read(copy.id, Which::Last, 0)?;
                let mut stream = decode(stream, &place, &Counter::default(), Guard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                let named = Named { like: stenograph::format::named(&copy.label.format), ..Named::default() };
                count(&mut stream, filled, format, &named, &|_, _| false, calls, hand, done).map_err(unreadable)
            }
        }
    }
}

/// What came of a source.
pub(super) enum Outcome {
    /// Its pages, and what ended them before it did.
    Counted { pages: Vec<SourceUsage>, damage: Option<io::Error> },
    /// It has to be read again, as what shows behind its first record, which is too long to show it.
    Shown(&'static dyn Format),
    /// It is of no format that is read.
    Stranger,
    /// Its session was forgotten on purpose.
    Forgotten,
    /// It is no file.
    Nothing,
}

/// Counts what a stream says, of which the first bytes are in hand. Its format is the one that is given, or it is recognized.
#[expect(clippy::too_many_arguments, reason = "what a source is, how it is counted, and who wants to know")]
fn count(
    stream: &mut dyn Read,
    filled: Filled,
    format: Option<&'static dyn Format>,
    place: &Named,
    is_forgotten: &dyn Fn(&dyn Format, &[u8]) -> bool,
    calls: CallDetail,
    hand: &mut Hand,
    done: &AtomicU64,
) -> io::Result<Outcome> {
    let Filled { length, mut damage } = filled;
    if length == 0
        && let Some(damage) = damage
    {
        return Err(damage);
    }
    let mut head = Vec::new();
    let begin = hand.buffer.get(..length).unwrap_or_default();
    if !Head::is_whole(begin) && length == CHUNK_SIZE && damage.is_none() {
        // The first line is longer than what is read at a time: the format may only show at its end.
        head.extend_from_slice(begin);
        damage = Head::read(stream, &mut head).err();
    }
    let begin = if head.is_empty() { begin } else { head.as_slice() };
    let last = hand.last;
    let recognized = |begin: &[u8]| recognize_after(last, begin, place).map(|recognized| recognized.format);
    let Some(format) = format.or_else(|| recognized(begin)) else {
        let is_cut = damage.is_none() && Head::is_cut(begin);
        let shown = if is_cut { recognized(&Head::beyond(stream)?) } else { None };
        return Ok(shown.map_or(Outcome::Stranger, Outcome::Shown));
    };
    if is_forgotten(format, begin) {
        return Ok(Outcome::Forgotten);
    }
    hand.last = Some(format);
    let want = match calls {
        CallDetail::Numbers => Want::Usage,
        CallDetail::Tools => Want::All,
    };
    let mut counting = Counting::new(format.info().agent, calls);
    let mut reading = Reading::new(format, want);
    let mut pages = Vec::new();
    reading.feed(begin, &mut counting);
    done.fetch_add(begin.len() as u64, Ordering::Relaxed);
    // What stands before some damage counts.
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
    Ok(Outcome::Counted { pages, damage })
}

/// How much of a buffer was filled, and what ended that early.
struct Filled {
    length: usize,
    damage: Option<io::Error>,
}

/// What there is to say of an error about a file whose name is said before it.
pub(crate) fn said(path: &Path, error: &dyn std::error::Error) -> String {
    error.to_string().replace(&format!("{}: ", path.display()), "")
}

/// Fills a buffer as far as there is something.
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
