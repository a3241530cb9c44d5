//! The lines of the log, and the commits that hold them. A commit is a header line with its number, length and checksums, followed
//! by its lines. What the lines lead to is decided in `state.rs`.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::block::{COMMIT_SIZE_MAX, Hash};
use super::encoding::{hash_hex, path_text, sum_hex};
use super::forgotten::Tombstone;

/// The version of the log that is written here. A log of another one is refused.
pub(super) const VERSION: u32 = 2;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A piece was written to a pack, for the first time or again.
    Piece(PieceLine),
    /// A source was copied, or more of it.
    Copy(CopyLine),
    /// Old versions of a copy are no longer needed.
    Thin { copy: u32, versions: Vec<u32> },
    /// Copies are no longer needed, and must not come back.
    Forget { copies: Vec<u32>, tombstones: Vec<Tombstone>, why: String },
    /// A forgotten session may come back.
    Unforget { format: String, session: Option<String> },
    /// A folder is searched for transcripts, or no longer.
    Folder {
        #[serde(with = "path_text")]
        path: PathBuf,
        known: Known,
    },
    /// A pack is no longer needed.
    Drop { pack: u32 },
    /// These pieces were found damaged, and no others are.
    Damaged { pieces: Vec<u32> },
    /// Commits are lost; the next one follows this sum.
    Lost {
        commits: u64,
        #[serde(with = "sum_hex")]
        sum: u64,
    },
}

/// Where a piece is.
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

/// The copy of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CopyLine {
    pub copy: u32,
    pub version: u32,
    /// Only where it is new or changed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text::option")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub length: u64,
    /// When the source was last changed, as its file system says; nanoseconds since 1970.
    pub modified: i64,
    /// How many pieces stay of this version, or of the one before a new one.
    pub same: u32,
    /// The pieces that follow.
    pub pieces: Vec<u32>,
}

/// Whether a folder is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Known {
    Added,
    Removed,
}

impl Line {
    /// The line, with its newline.
    pub fn encode(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    pub fn parse(line: &[u8]) -> Option<Line> {
        serde_json::from_slice(line).ok()
    }
}

/// The header line of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub archive: u32,
    pub commit: u64,
    /// When; milliseconds since 1970.
    pub time: i64,
    /// The sum of the commit before.
    #[serde(with = "sum_hex")]
    pub after: u64,
    /// The pack that holds a second copy of this commit, and where.
    pub pack: u32,
    pub at: u64,
    /// How long the lines are.
    pub bytes: u64,
    /// Their sum.
    #[serde(with = "sum_hex")]
    pub sum: u64,
}

const CHECK: &str = ",\"check\":\"";

/// No header line is longer.
const HEAD_MAX: u64 = 1024;

impl Head {
    /// The header line, which ends with a sum of itself.
    fn encode(&self) -> io::Result<String> {
        let text = serde_json::to_string(self)?;
        let check = xxh3_64(text.as_bytes());
        let open = text.strip_suffix('}').unwrap_or(&text);
        Ok(format!("{open}{CHECK}{check:016x}\"}}\n"))
    }

    fn parse(line: &[u8]) -> Option<Head> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix("\"}\n")?;
        let (open, check) = line.split_at_checked(line.len().checked_sub(16)?)?;
        let text = format!("{}}}", open.strip_suffix(CHECK)?);
        let is_sound = format!("{:016x}", xxh3_64(text.as_bytes())) == check;
        is_sound.then(|| serde_json::from_str(&text).ok()).flatten()
    }
}

/// A commit: its header, and all of its bytes, the header's among them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Commit {
    pub head: Head,
    pub bytes: Vec<u8>,
    lines_at: usize,
}

/// What follows in a log.
#[derive(Debug)]
pub(super) enum Next {
    Commit(Commit),
    /// The log ends.
    End,
    /// The log ends in the middle of a commit.
    Incomplete,
    /// A commit is damaged.
    Damaged,
    /// The log is of another version.
    Version(u32),
}

impl Commit {
    /// The commit of these lines. Its sum and length are filled in.
    pub fn new(head: Head, lines: &str) -> io::Result<Commit> {
        let head = Head { archive: VERSION, bytes: lines.len() as u64, sum: xxh3_64(lines.as_bytes()), ..head };
        let line = head.encode()?;
        let lines_at = line.len();
        Ok(Commit { head, bytes: (line + lines).into_bytes(), lines_at })
    }

    /// Reads the next commit.
    pub fn read(input: &mut dyn BufRead) -> io::Result<Next> {
        let mut bytes = Vec::new();
        input.take(HEAD_MAX).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(Next::End);
        }
        // A crash leaves the beginning of a commit, or zeros where the system knew only the length.
        if !bytes.ends_with(b"\n") && ((bytes.len() as u64) < HEAD_MAX || bytes.iter().all(|byte| *byte == 0)) {
            return Ok(Next::Incomplete);
        }
        let Some(head) = Head::parse(&bytes) else {
            let first = serde_json::from_slice::<Older>(&bytes).ok();
            return Ok(first.map_or(Next::Damaged, |first| Next::Version(first.archive)));
        };
        if head.archive != VERSION {
            return Ok(Next::Version(head.archive));
        }
        if head.bytes > COMMIT_SIZE_MAX as u64 {
            return Ok(Next::Damaged);
        }
        let lines_at = bytes.len();
        let read = input.take(head.bytes).read_to_end(&mut bytes)? as u64;
        let lines = bytes.get(lines_at..).unwrap_or_default();
        Ok(if read < head.bytes || lines.ends_with(&[0]) {
            Next::Incomplete
        } else if xxh3_64(lines) == head.sum {
            Next::Commit(Commit { head, bytes, lines_at })
        } else {
            Next::Damaged
        })
    }

    /// Every sound commit in some bytes, wherever they are damaged.
    pub fn all_in(bytes: &[u8]) -> Vec<Commit> {
        let (mut commits, mut at) = (Vec::new(), 0);
        while let Some(mut rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Ok(Next::Commit(commit)) = Commit::read(&mut rest) {
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

    /// Whether a damaged end of a log is what a power failure leaves: zeros where the system never wrote the bytes of a commit, and
    /// no commit after it. A flipped bit leaves no such run.
    pub fn is_torn(rest: &[u8]) -> bool {
        memmem::find(rest, &[0; 8]).is_some() && Commit::all_in(rest).is_empty()
    }

    /// The lines, without the header.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.bytes.get(self.lines_at..).unwrap_or_default();
        lines.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
    }

    /// The pieces that were written for this commit.
    pub fn pieces(&self) -> impl Iterator<Item = PieceLine> {
        self.lines().filter_map(|line| match Line::parse(line) {
            Some(Line::Piece(piece)) => Some(piece),
            _ => None,
        })
    }

    /// The sum by which the next commit names this one: of everything, so that equal lines at different times differ.
    pub fn chain(&self) -> u64 {
        xxh3_64(&self.bytes)
    }
}

/// How logs of the first version began.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Older {
    archive: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(commit: u64) -> Head {
        Head { archive: 0, commit, time: -1, after: u64::MAX, pack: 3, at: 1 << 33, bytes: 0, sum: 0 }
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
        let lines = [
            Line::Piece(PieceLine { number: 1, pack: 2, at: 1 << 33, size: 7, raw: u32::MAX, hash: [0xab; 32] }),
            Line::Copy(copy),
            Line::Copy(CopyLine::default()),
            Line::Thin { copy: 1, versions: vec![2, 4] },
            Line::Forget { copies: vec![0, 1, 2], tombstones: vec![tombstone], why: "older than 90 days".into() },
            Line::Unforget { format: "f".into(), session: None },
            Line::Folder { path: "/x".into(), known: Known::Added },
            Line::Drop { pack: 8 },
            Line::Damaged { pieces: vec![1] },
            Line::Lost { commits: 2, sum: u64::MAX },
        ];
        for line in lines {
            let text = line.encode().unwrap();
            assert_eq!(text.matches('\n').count(), 1, "{text}");
            assert_eq!(Line::parse(text.trim_end().as_bytes()), Some(line), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_text_is_kept_as_it_is() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/a/\xff\xfe".to_vec()));
        let line = Line::Folder { path: path.clone(), known: Known::Added };
        assert_eq!(Line::parse(line.encode().unwrap().trim_end().as_bytes()), Some(line));
        let line = Line::Copy(CopyLine { path: Some(path), ..CopyLine::default() });
        assert_eq!(Line::parse(line.encode().unwrap().trim_end().as_bytes()), Some(line));
    }

    #[test]
    fn a_flipped_bit_is_damage_and_a_cut_is_an_incomplete_commit() {
        let commit = Commit::new(head(1), "{\"drop\":{\"pack\":8}}\n{\"damaged\":{\"pieces\":[]}}\n").unwrap();
        let read = Commit::read(&mut commit.bytes.as_slice()).unwrap();
        assert!(matches!(read, Next::Commit(read) if read == commit));
        for end in 1..commit.bytes.len() {
            let next = Commit::read(&mut &commit.bytes[..end]).unwrap();
            assert!(matches!(next, Next::Incomplete), "{end}: {next:?}");
        }
        for bit in 0..commit.bytes.len() * 8 {
            let mut bad = commit.bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let next = Commit::read(&mut bad.as_slice()).unwrap();
            assert!(matches!(next, Next::Damaged), "{bit}: {next:?}");
        }
        assert!(matches!(Commit::read(&mut &b"{\"archive\":1}\n"[..]).unwrap(), Next::Version(1)));
    }
}
