//! The lines of the log: how they are spelled and read. A commit is a group of lines that ends with one that sums them up. What
//! the lines lead to is decided in `state.rs`.

use std::fmt::Write as _;
use std::path::PathBuf;

use stenograph::json::{Draft, Object};
use xxhash_rust::xxh3::xxh3_64;

use super::frame::Hash;
use super::spell::{hex, read_numbers, read_path, spell_numbers, spell_path, unhex};

/// The version of the log that is written here. A log of a later one is not written to.
pub(super) const VERSION: u64 = 1;

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// The log begins; which version it is in.
    Begin(u64),
    /// A frame was written.
    Frame(FrameLine),
    /// A source was kept, or more of it.
    Keep(KeepLine),
    /// Old versions of a copy are no longer kept.
    Thin { copy: u32, versions: Vec<u32> },
    /// Copies are no longer kept, and must not come back.
    Forget { copies: Vec<u32>, why: String },
    /// What was forgotten may come back.
    Recall { format: String, session: Option<String>, head: Option<Head> },
    /// A folder is one to look into, or no longer.
    Folder { path: PathBuf, known: Known },
    /// A pack is no longer needed.
    Drop { pack: u32 },
    /// The group ends.
    Commit { number: u64, time_ms: i64, sum: u64 },
}

/// Where pieces are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrameLine {
    pub pack: u32,
    pub at: u64,
    pub size: u64,
    pub pieces: FramePieces,
}

/// Which pieces a frame has, in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FramePieces {
    /// New ones, numbered from the first one on.
    New { first: u32, pieces: Vec<(Hash, u32)> },
    /// Ones that were elsewhere before.
    Moved(Vec<u32>),
}

/// What is kept of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KeepLine {
    pub copy: u32,
    pub version: u32,
    /// Only where it is new or changed.
    pub path: Option<PathBuf>,
    pub format: Option<String>,
    pub session: Option<String>,
    pub length: u64,
    /// When the source was last changed, as its file system says.
    pub modified_ns: i64,
    pub head: Option<Head>,
    /// How many pieces stay of those the version, or the one before a new one, has.
    pub same: u32,
    /// The pieces that follow.
    pub pieces: Vec<u32>,
    /// How many of the last ones were not cut by content.
    pub loose: u32,
}

/// How a source begins: the hash of its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Head {
    pub length: u32,
    pub hash: [u8; 16],
}

/// As much of a source is looked at to know it again.
pub(super) const HEAD_SIZE: usize = 4096;

impl Head {
    /// The head of a source that begins so.
    pub fn of(bytes: &[u8]) -> Head {
        let bytes = bytes.get(..HEAD_SIZE).unwrap_or(bytes);
        let mut hash = [0; 16];
        hash.copy_from_slice(blake3::hash(bytes).as_bytes().first_chunk::<16>().unwrap_or(&[0; 16]));
        Head { length: bytes.len() as u32, hash }
    }
}

/// Whether a folder is to be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Added,
    Removed,
}

/// The sum of a group of lines.
pub(super) fn sum(lines: &[u8]) -> u64 {
    xxh3_64(lines)
}

impl Line {
    /// The line, with its newline.
    pub fn spell(&self) -> String {
        let mut draft = Draft::new();
        match self {
            Line::Begin(version) => draft.set_number("archive", Some(*version)),
            Line::Frame(frame) => frame.spell(&mut draft),
            Line::Keep(keep) => keep.spell(&mut draft),
            Line::Thin { copy, versions } => {
                draft.set_number("thin", Some(u64::from(*copy)));
                draft.set_str("versions", &spell_numbers(versions));
            }
            Line::Forget { copies, why } => {
                draft.set_str("forget", &spell_numbers(copies));
                draft.set_str("why", why);
            }
            Line::Recall { format, session, head } => {
                draft.set_str("recall", format);
                draft.set_opt("session", session.as_deref());
                draft.set_opt("head", head.as_ref().map(spell_head).as_deref());
            }
            Line::Folder { path, known } => {
                let (key, name) = spell_path(path);
                draft.set_str(key, &name);
                draft.set_str(
                    "folder",
                    match known {
                        Known::Added => "added",
                        Known::Removed => "removed",
                    },
                );
            }
            Line::Drop { pack } => draft.set_number("drop", Some(u64::from(*pack))),
            Line::Commit { number, time_ms, sum } => {
                draft.set_number("commit", Some(*number));
                draft.set("time", time_ms.to_string());
                draft.set_str("sum", &format!("{sum:016x}"));
            }
        }
        let mut line = draft.render(None);
        line.push('\n');
        line
    }

    /// Reads a line; `None` where it makes no sense.
    pub fn read(bytes: &[u8]) -> Option<Line> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut object = Object::parse(text)?;
        // The first key says what the line is.
        let (_, rest) = text.split_once('"')?;
        let (first, _) = rest.split_once('"')?;
        Some(match first {
            "archive" => Line::Begin(object.take_number("archive")?),
            "frame" => Line::Frame(FrameLine::read(&mut object)?),
            "keep" => Line::Keep(KeepLine::read(&mut object)?),
            "thin" => {
                let copy = small(&mut object, "thin")?;
                Line::Thin { copy, versions: read_numbers(&object.take_str("versions")?)? }
            }
            "forget" => {
                let copies = read_numbers(&object.take_str("forget")?)?;
                Line::Forget { copies, why: object.take_str("why")?.into_owned() }
            }
            "recall" => Line::Recall {
                format: object.take_str("recall")?.into_owned(),
                session: object.take_str("session").map(std::borrow::Cow::into_owned),
                head: object.take_str("head").and_then(|head| read_head(&head)),
            },
            "path" | "path_hex" => {
                let known = match object.take_str("folder")?.as_ref() {
                    "added" => Known::Added,
                    "removed" => Known::Removed,
                    _ => return None,
                };
                Line::Folder { path: read_path(&mut object)?, known }
            }
            "drop" => Line::Drop { pack: small(&mut object, "drop")? },
            "commit" => Line::Commit {
                number: object.take_number("commit")?,
                time_ms: object.take("time")?.parse().ok()?,
                sum: u64::from_str_radix(&object.take_str("sum")?, 16).ok()?,
            },
            _ => return None,
        })
    }
}

impl FrameLine {
    fn spell(&self, draft: &mut Draft<'_>) {
        draft.set_number("frame", Some(u64::from(self.pack)));
        draft.set_number("at", Some(self.at));
        draft.set_number("size", Some(self.size));
        match &self.pieces {
            FramePieces::New { first, pieces } => {
                let mut text = String::with_capacity(pieces.len() * 72);
                for (hash, length) in pieces {
                    let gap = if text.is_empty() { "" } else { " " };
                    let _ = write!(text, "{gap}{} {length}", blake3::Hash::from_bytes(*hash).to_hex());
                }
                draft.set_number("first", Some(u64::from(*first)));
                draft.set_str("pieces", &text);
            }
            FramePieces::Moved(numbers) => draft.set_str("moved", &spell_numbers(numbers)),
        }
    }

    fn read(object: &mut Object<'_>) -> Option<FrameLine> {
        let pack = small(object, "frame")?;
        let (at, size) = (object.take_number("at")?, object.take_number("size")?);
        let pieces = match object.take_str("moved") {
            Some(moved) => FramePieces::Moved(read_numbers(&moved)?),
            None => {
                let first = small(object, "first")?;
                let text = object.take_str("pieces")?;
                let mut words = text.split_ascii_whitespace();
                let mut pieces = Vec::with_capacity(text.len() / 70);
                while let Some(hash) = words.next() {
                    pieces.push((unhex(hash)?, words.next()?.parse().ok()?));
                }
                FramePieces::New { first, pieces }
            }
        };
        Some(FrameLine { pack, at, size, pieces })
    }
}

impl KeepLine {
    fn spell(&self, draft: &mut Draft<'_>) {
        draft.set_number("keep", Some(u64::from(self.copy)));
        draft.set_number("version", Some(u64::from(self.version)));
        if let Some(path) = &self.path {
            let (key, name) = spell_path(path);
            draft.set_str(key, &name);
        }
        draft.set_opt("format", self.format.as_deref());
        draft.set_opt("session", self.session.as_deref());
        draft.set_number("length", Some(self.length));
        draft.set("modified", self.modified_ns.to_string());
        draft.set_opt("head", self.head.as_ref().map(spell_head).as_deref());
        draft.set_number("same", Some(u64::from(self.same)).filter(|same| *same > 0));
        draft.set_str("pieces", &spell_numbers(&self.pieces));
        draft.set_number("loose", Some(u64::from(self.loose)).filter(|loose| *loose > 0));
    }

    fn read(object: &mut Object<'_>) -> Option<KeepLine> {
        let owned = std::borrow::Cow::into_owned;
        Some(KeepLine {
            copy: small(object, "keep")?,
            version: small(object, "version")?,
            path: read_path(object),
            format: object.take_str("format").map(owned),
            session: object.take_str("session").map(owned),
            length: object.take_number("length")?,
            modified_ns: object.take("modified")?.parse().ok()?,
            head: object.take_str("head").and_then(|head| read_head(&head)),
            same: small(object, "same").unwrap_or(0),
            pieces: read_numbers(&object.take_str("pieces")?)?,
            loose: small(object, "loose").unwrap_or(0),
        })
    }
}

fn small(object: &mut Object<'_>, key: &str) -> Option<u32> {
    object.take_number(key).and_then(|number| u32::try_from(number).ok())
}

fn spell_head(head: &Head) -> String {
    format!("{}:{}", head.length, hex(&head.hash))
}

fn read_head(text: &str) -> Option<Head> {
    let (length, hash) = text.split_once(':')?;
    Some(Head { length: length.parse().ok()?, hash: unhex(hash)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_was_meant() {
        let head = Some(Head::of(b"how it begins"));
        let keep = KeepLine {
            copy: 3,
            version: 2,
            path: Some("/a \"quoted\"\n/path".into()),
            format: Some("f".into()),
            session: Some("s".into()),
            length: 1 << 40,
            modified_ns: -5,
            head,
            same: 7,
            pieces: vec![1, 2, 3, 9, 5],
            loose: 2,
        };
        let new = FramePieces::New { first: 4, pieces: vec![([7; 32], 1), ([0xab; 32], u32::MAX)] };
        let lines = [
            Line::Begin(VERSION),
            Line::Frame(FrameLine { pack: 1, at: 1 << 33, size: 7, pieces: new }),
            Line::Frame(FrameLine { pack: 1, at: 0, size: 7, pieces: FramePieces::Moved(vec![5, 1, 2]) }),
            Line::Keep(keep),
            Line::Keep(KeepLine { copy: 1, version: 1, ..KeepLine::default() }),
            Line::Thin { copy: 1, versions: vec![2, 4] },
            Line::Forget { copies: vec![0, 1, 2], why: "older than 90 days".into() },
            Line::Recall { format: "f".into(), session: None, head },
            Line::Folder { path: "/x".into(), known: Known::Added },
            Line::Folder { path: "/x".into(), known: Known::Removed },
            Line::Drop { pack: 8 },
            Line::Commit { number: 1, time_ms: -1, sum: u64::MAX },
        ];
        for line in lines {
            let spelled = line.spell();
            assert_eq!(spelled.matches('\n').count(), 1, "{spelled}");
            assert_eq!(Line::read(spelled.trim_end().as_bytes()), Some(line), "{spelled}");
        }
        for bad in ["", "{}", "[]", "{\"keep\":1}", "{\"frame\":1,\"at\":0,\"size\":1,\"first\":0,\"pieces\":\"x 1\"}"]
        {
            assert_eq!(Line::read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_kept_as_it_is() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/a/\xff\xfe".to_vec()));
        let line = Line::Folder { path, known: Known::Added };
        assert_eq!(Line::read(line.spell().trim_end().as_bytes()), Some(line));
    }
}
