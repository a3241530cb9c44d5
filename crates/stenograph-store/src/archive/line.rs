//! The lines of the log and the commits that contain them. A commit is a header line with its number, length and checksums,
//! followed by its lines. `state.rs` applies them.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::block::{COMMIT_SIZE_MAX, Hash};
use super::encoding::{hash_hex, path_text, sum_hex};
use super::forgotten::Tombstone;
use super::marks::{Marks, SessionKey};

/// The latest version of a commit that this program knows. It refuses a log with a commit of a later version.
pub(super) const VERSION: u32 = MARKS_VERSION;

/// The version of commits that every program understands that reads this log at all.
pub(super) const FIRST_VERSION: u32 = 2;

/// The first version with marks. A commit states the lowest version that understands all of its lines, so an earlier program
/// reads a log without marks, and refuses one with marks instead of losing them.
const MARKS_VERSION: u32 = 3;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogLine {
    /// A piece was written to a pack, for the first time or again.
    Piece(PieceLine),
    /// A source was copied, or more of it.
    Copy(CopyLine),
    /// Old versions of a copy are no longer needed.
    Thin { copy: u32, versions: Vec<u32> },
    /// Copies are no longer needed and must not be archived again.
    Forget { copies: Vec<u32>, tombstones: Vec<Tombstone>, why: String },
    /// A forgotten session may be archived again.
    Unforget { format: String, session: Option<String> },
    /// A folder was added to or removed from those that are searched for transcripts.
    Folder {
        #[serde(with = "path_text")]
        path: PathBuf,
        known: FolderChange,
    },
    /// All marks of a session; empty if it has none any more.
    Mark { session: SessionKey, marks: Marks },
    /// A pack is no longer needed.
    Drop { pack: u32 },
    /// The complete list of pieces found damaged.
    Damaged { pieces: Vec<u32> },
    /// Commits are lost; the next one follows this sum.
    Lost {
        commits: u64,
        #[serde(with = "sum_hex")]
        sum: u64,
    },
}

/// The location of a piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PieceLine {
    pub number: u32,
    pub pack: u32,
    pub at: u64,
    /// The size of its block.
    pub size: u64,
    pub raw: u32,
    #[serde(with = "hash_hex")]
    pub hash: Hash,
}

/// A copy of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CopyLine {
    pub copy: u32,
    pub version: u32,
    /// Only if new or changed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text::option")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub length: u64,
    /// The source's modification time; nanoseconds since 1970.
    pub modified: i64,
    /// How many pieces are reused from this version, or from the previous one if this one is new.
    pub same: u32,
    /// The pieces after those.
    pub pieces: Vec<u32>,
}

/// Whether a folder is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FolderChange {
    Added,
    Removed,
}

impl LogLine {
    /// The first version that understands this line.
    pub fn version(&self) -> u32 {
        match self {
            LogLine::Mark { .. } => MARKS_VERSION,
            LogLine::Piece(_)
            | LogLine::Copy(_)
            | LogLine::Thin { .. }
            | LogLine::Forget { .. }
            | LogLine::Unforget { .. }
            | LogLine::Folder { .. }
            | LogLine::Drop { .. }
            | LogLine::Damaged { .. }
            | LogLine::Lost { .. } => FIRST_VERSION,
        }
    }

    /// The line with its newline.
    pub fn encode(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    pub fn parse(line: &[u8]) -> Option<LogLine> {
        serde_json::from_slice(line).ok()
    }
}

/// The header line of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CommitHeader {
    /// The lowest version that understands the lines.
    pub archive: u32,
    pub commit: u64,
    /// In milliseconds since 1970.
    pub time: i64,
    /// The chain sum of the previous commit.
    #[serde(with = "sum_hex")]
    pub after: u64,
    /// The pack that holds a second copy of this commit, and the offset there.
    pub pack: u32,
    pub at: u64,
    /// The length of the lines.
    pub bytes: u64,
    /// The checksum of the lines.
    #[serde(with = "sum_hex")]
    pub sum: u64,
}

const CHECK: &str = ",\"check\":\"";

/// The maximum length of a header line.
const HEAD_MAX: u64 = 1024;

impl CommitHeader {
    /// The header line, which ends with its own checksum.
    fn encode(&self) -> io::Result<String> {
        let text = serde_json::to_string(self)?;
        let check = xxh3_64(text.as_bytes());
        let open = text.strip_suffix('}').unwrap_or(&text);
        Ok(format!("{open}{CHECK}{check:016x}\"}}\n"))
    }

    fn parse(line: &[u8]) -> Option<CommitHeader> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix("\"}\n")?;
        let (open, check) = line.split_at_checked(line.len().checked_sub(16)?)?;
        let text = format!("{}}}", open.strip_suffix(CHECK)?);
        let is_sound = format!("{:016x}", xxh3_64(text.as_bytes())) == check;
        is_sound.then(|| serde_json::from_str(&text).ok()).flatten()
    }
}

/// A commit: its header and all of its bytes, including the header's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Commit {
    pub head: CommitHeader,
    pub bytes: Vec<u8>,
    lines_at: usize,
}

/// The next item of a log.
#[derive(Debug)]
pub(super) enum NextCommit {
    Commit(Commit),
    /// The end of the log.
    End,
    /// The log ends within a commit.
    Incomplete,
    /// A commit is damaged.
    Damaged,
    /// The log has another version.
    Version(u32),
}

impl Commit {
    /// The commit of these lines. Fills in the checksum and length. It refuses lines that [`Commit::read`] would refuse.
    pub fn new(head: CommitHeader, lines: &str) -> io::Result<Commit> {
        if lines.len() > COMMIT_SIZE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let head = CommitHeader { bytes: lines.len() as u64, sum: xxh3_64(lines.as_bytes()), ..head };
        let line = head.encode()?;
        let lines_at = line.len();
        Ok(Commit { head, bytes: (line + lines).into_bytes(), lines_at })
    }

    /// Reads the next commit.
    pub fn read(input: &mut dyn BufRead) -> io::Result<NextCommit> {
        let mut bytes = Vec::new();
        input.take(HEAD_MAX).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(NextCommit::End);
        }
        // A crash leaves the beginning of a commit, or zeros if the system had recorded only the length.
        if !bytes.ends_with(b"\n") && ((bytes.len() as u64) < HEAD_MAX || bytes.iter().all(|byte| *byte == 0)) {
            return Ok(NextCommit::Incomplete);
        }
        let Some(head) = CommitHeader::parse(&bytes) else {
            let first = serde_json::from_slice::<FirstVersion>(&bytes).ok();
            return Ok(first.map_or(NextCommit::Damaged, |first| NextCommit::Version(first.archive)));
        };
        if !(FIRST_VERSION..=VERSION).contains(&head.archive) {
            return Ok(NextCommit::Version(head.archive));
        }
        if head.bytes > COMMIT_SIZE_MAX as u64 {
            return Ok(NextCommit::Damaged);
        }
        let lines_at = bytes.len();
        let read = input.take(head.bytes).read_to_end(&mut bytes)? as u64;
        let lines = bytes.get(lines_at..).unwrap_or_default();
        Ok(if read < head.bytes || lines.ends_with(&[0]) {
            NextCommit::Incomplete
        } else if xxh3_64(lines) == head.sum {
            NextCommit::Commit(Commit { head, bytes, lines_at })
        } else {
            NextCommit::Damaged
        })
    }

    /// Every intact commit in these bytes, even between damaged ones.
    pub fn all_in(bytes: &[u8]) -> Vec<Commit> {
        let (mut commits, mut at) = (Vec::new(), 0);
        while let Some(mut rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Ok(NextCommit::Commit(commit)) = Commit::read(&mut rest) {
                at += commit.bytes.len();
                commits.push(commit);
                continue;
            }
            let after = bytes.get(at + 1..).unwrap_or_default();
            let Some(next) = memmem::find(after, b"{\"archive\":") else { break };
            at += 1 + next;
        }
        commits
    }

    /// Whether a damaged end of a log looks like the result of a power failure: zeros where the bytes of a commit were not
    /// written, and no commit after them. A flipped bit leaves no such run.
    pub fn is_torn(rest: &[u8]) -> bool {
        memmem::find(rest, &[0; 8]).is_some() && Commit::all_in(rest).is_empty()
    }

    /// The lines without the header.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.bytes.get(self.lines_at..).unwrap_or_default();
        lines.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
    }

    /// The pieces that this commit wrote.
    pub fn pieces(&self) -> impl Iterator<Item = PieceLine> {
        self.lines().filter_map(|line| match LogLine::parse(line) {
            Some(LogLine::Piece(piece)) => Some(piece),
            _ => None,
        })
    }

    /// The sum by which the next commit refers to this one. It covers the header too, so that equal lines at different times
    /// differ.
    pub fn chain(&self) -> u64 {
        xxh3_64(&self.bytes)
    }
}

/// The first line of a log of version 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstVersion {
    archive: u32,
}

#[cfg(test)]
mod tests {
    use super::super::marks::{EventKey, MarkChange};
    use super::*;

    fn head(commit: u64) -> CommitHeader {
        CommitHeader {
            archive: FIRST_VERSION,
            commit,
            time: -1,
            after: u64::MAX,
            pack: 3,
            at: 1 << 33,
            bytes: 0,
            sum: 0,
        }
    }

    #[test]
    fn every_line_is_read_as_it_was_written() {
        let copy = CopyLine {
            copy: 3,
            version: 2,
            path: Some("/a \"quoted\"\n/path".into()),
            format: Some("f".into()),
            session: Some("s".into()),
            length: 1 << 40,
            modified: -5,
            same: 7,
            pieces: vec![1, 2, 3, 9, 5],
        };
        let tombstone = Tombstone { format: "f".into(), session: None, contents: Vec::new() };
        let first = Some(EventKey(u64::MAX - 1));
        let session = SessionKey { agent: "a".into(), name: "n\n".into(), home: "/h".into(), first };
        let mut marks = Marks::default();
        let note = MarkChange::Note { text: "two\nlines".into(), event: first };
        for change in [MarkChange::Pin, MarkChange::Title("t".into()), MarkChange::Tag("x".into()), note] {
            marks.apply(&change, -3).unwrap();
        }
        let lines = [
            LogLine::Piece(PieceLine { number: 1, pack: 2, at: 1 << 33, size: 7, raw: u32::MAX, hash: [0xab; 32] }),
            LogLine::Copy(copy),
            LogLine::Copy(CopyLine::default()),
            LogLine::Thin { copy: 1, versions: vec![2, 4] },
            LogLine::Forget { copies: vec![0, 1, 2], tombstones: vec![tombstone], why: "older than 90 days".into() },
            LogLine::Unforget { format: "f".into(), session: None },
            LogLine::Folder { path: "/x".into(), known: FolderChange::Added },
            LogLine::Mark { session: session.clone(), marks: Marks::default() },
            LogLine::Mark { session, marks },
            LogLine::Drop { pack: 8 },
            LogLine::Damaged { pieces: vec![1] },
            LogLine::Lost { commits: 2, sum: u64::MAX },
        ];
        for line in lines {
            let text = line.encode().unwrap();
            assert_eq!(text.matches('\n').count(), 1, "{text}");
            assert_eq!(LogLine::parse(text.trim_end().as_bytes()), Some(line), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_text_is_preserved() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/a/\xff\xfe".to_vec()));
        let line = LogLine::Folder { path: path.clone(), known: FolderChange::Added };
        assert_eq!(LogLine::parse(line.encode().unwrap().trim_end().as_bytes()), Some(line));
        let line = LogLine::Copy(CopyLine { path: Some(path), ..CopyLine::default() });
        assert_eq!(LogLine::parse(line.encode().unwrap().trim_end().as_bytes()), Some(line));
    }

    #[test]
    fn a_commit_that_could_not_be_read_is_not_written() {
        let lines = String::from_utf8(vec![0; COMMIT_SIZE_MAX + 1]).unwrap();
        assert!(Commit::new(head(1), &lines).is_err());
    }

    #[test]
    fn a_flipped_bit_is_damage_and_a_cut_is_an_incomplete_commit() {
        let commit = Commit::new(head(1), "{\"drop\":{\"pack\":8}}\n{\"damaged\":{\"pieces\":[]}}\n").unwrap();
        let read = Commit::read(&mut commit.bytes.as_slice()).unwrap();
        assert!(matches!(read, NextCommit::Commit(read) if read == commit));
        for end in 1..commit.bytes.len() {
            let next = Commit::read(&mut &commit.bytes[..end]).unwrap();
            assert!(matches!(next, NextCommit::Incomplete), "{end}: {next:?}");
        }
        for bit in 0..commit.bytes.len() * 8 {
            let mut bad = commit.bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let next = Commit::read(&mut bad.as_slice()).unwrap();
            assert!(matches!(next, NextCommit::Damaged), "{bit}: {next:?}");
        }
        assert!(matches!(Commit::read(&mut &b"{\"archive\":1}\n"[..]).unwrap(), NextCommit::Version(1)));
    }
    #[test]
    fn a_commit_of_a_later_version_is_refused_and_one_without_marks_is_of_the_first() {
        let drop = LogLine::Drop { pack: 8 };
        assert_eq!((drop.version(), VERSION), (FIRST_VERSION, 3));
        for (version, is_read) in [(1, false), (2, true), (3, true), (4, false)] {
            let head = CommitHeader { archive: version, ..head(1) };
            let commit = Commit::new(head, &drop.encode().unwrap()).unwrap();
            let next = Commit::read(&mut commit.bytes.as_slice()).unwrap();
            assert_eq!(matches!(next, NextCommit::Commit(_)), is_read, "{version}");
            assert!(is_read || matches!(next, NextCommit::Version(found) if found == version), "{version}");
        }
    }
}
