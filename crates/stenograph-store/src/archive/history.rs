//! Reads the log: group by group, as far as it is whole. What follows the last whole group was never acknowledged. Nothing is
//! written here.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::line::{Line, VERSION, sum};
use super::state::State;
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::tail::Remark;

/// How far the log was read.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub state: State,
    /// Everything before is whole groups.
    pub good: u64,
    /// What is odd about it.
    pub remarks: Vec<Remark>,
}

/// No line of ours is longer: a commit is cut into lines by frame and source.
const LINE_MAX: u64 = 256 << 20;

impl History {
    /// Reads the log from its beginning.
    pub fn load(files: &dyn Files, path: &Path) -> Result<History, Error> {
        History::load_until(files, path, u64::MAX)
    }

    /// Reads the log up to an offset: what follows is about to be taken back.
    pub fn load_until(files: &dyn Files, path: &Path, end: u64) -> Result<History, Error> {
        let mut history = History::default();
        history.go_on(files, path, end)?;
        Ok(history)
    }

    /// Reads what was added since. A log that is shorter than it was, or goes on with something that is no group, was written
    /// anew by somebody; then it is read from its beginning.
    pub fn refresh(&mut self, files: &dyn Files, path: &Path) -> Result<(), Error> {
        let length = files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?.unwrap_or(0);
        if length == self.good {
            return Ok(());
        }
        let before = self.good;
        if length > before {
            self.go_on(files, path, u64::MAX)?;
        }
        if self.good == before {
            *self = History::load(files, path)?;
        }
        Ok(())
    }

    fn go_on(&mut self, files: &dyn Files, path: &Path, end: u64) -> Result<(), Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let input = match files.reader(path, self.good) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            input => input.map_err(unreadable)?.take(end.saturating_sub(self.good)),
        };
        let input = BufReader::with_capacity(256 << 10, input);
        let mut groups = Groups { input, group: Vec::new() };
        let mut at = self.good;
        // Groups that are whole but do not add up, which is fine only where the log ends with them.
        let mut odd = Vec::new();
        while let Some(group) = groups.next().map_err(unreadable)? {
            let start = at;
            at += group.bytes.len() as u64;
            if !group.adds_up() {
                odd.push((start, group.bytes.to_vec()));
                // What a torn commit left is one group; more of them are somebody's damage, and kept in mind only in part.
                odd.truncate(ODD_MAX);
                continue;
            }
            for (start, bytes) in odd.drain(..) {
                self.follow(path, start, &bytes, 0)?;
                let text = format!("the log is damaged between byte {start} and byte {}", start + bytes.len() as u64);
                self.remarks.push(Remark::new(path, text));
            }
            self.follow(path, start, group.bytes, group.time_ms)?;
            self.good = at;
        }
        Ok(())
    }

    /// Follows the lines of a group.
    fn follow(&mut self, path: &Path, start: u64, bytes: &[u8], time_ms: i64) -> Result<(), Error> {
        let mut at = start;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let read = Line::read(line.trim_ascii_end());
            if let Some(Line::Begin(version)) = read
                && version > VERSION
            {
                return Err(Error::about(path, Problem::Newer));
            }
            if read.and_then(|line| self.state.apply(line, time_ms)).is_none() {
                self.remarks.push(Remark::new(path, format!("the line at byte {at} of the log makes no sense")));
                self.remarks.truncate(REMARKS_MAX);
            }
            at += line.len() as u64;
        }
        Ok(())
    }
}

const ODD_MAX: usize = 64;
const REMARKS_MAX: usize = 100;

/// The lines up to one that ends a commit.
struct Group<'g> {
    bytes: &'g [u8],
    time_ms: i64,
    /// What the last line says the others sum up to.
    sum: u64,
    last: usize,
}

impl Group<'_> {
    fn adds_up(&self) -> bool {
        let lines = self.bytes.get(..self.bytes.len() - self.last).unwrap_or_default();
        sum(lines) == self.sum
    }
}

struct Groups<R> {
    input: R,
    group: Vec<u8>,
}

impl<R: BufRead> Groups<R> {
    fn next(&mut self) -> io::Result<Option<Group<'_>>> {
        self.group.clear();
        loop {
            let start = self.group.len();
            let read = (&mut self.input).take(LINE_MAX).read_until(b'\n', &mut self.group)?;
            let line = self.group.get(start..).unwrap_or_default();
            if !line.ends_with(b"\n") {
                return Ok(None);
            }
            if line.starts_with(b"{\"commit\"")
                && let Some(Line::Commit { time_ms, sum, .. }) = Line::read(line.trim_ascii_end())
            {
                return Ok(Some(Group { bytes: &self.group, time_ms, sum, last: read }));
            }
        }
    }
}
