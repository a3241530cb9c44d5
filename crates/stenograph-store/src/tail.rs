//! The end of a file of lines before more is appended. Half a line that a crash left is moved to a file of its own, never
//! dropped and never continued.

use std::io;
use std::path::{Path, PathBuf};

use stenograph::json;

use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, write_all};

/// Something that users should know and that is not a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file concerned.
    pub path: PathBuf,
    /// The message.
    pub text: String,
}

impl Warning {
    /// A warning about a file.
    pub fn new(path: &Path, text: impl Into<String>) -> Warning {
        Warning { path: path.to_owned(), text: text.into() }
    }
}

/// When the last line of a file counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLineRule {
    /// Only with a newline: every line that we write has one.
    EndsWithNewline,
    /// Also as complete JSON: the system that writes this file adds no final newline.
    MayLackNewline,
}

/// The end of a file of lines, after a torn line was moved aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The length of the file.
    pub length: u64,
    /// Whether a newline must be written before the next line.
    pub lacks_newline: bool,
    /// A warning about what was moved aside.
    pub warning: Option<Warning>,
}

const STEP_SIZE: u64 = 64 << 10;

/// Checks the end of a file and moves half a line aside. The truncation becomes durable with the next writer's sync.
pub fn repair_tail(files: &dyn Files, path: &Path, last_line: LastLineRule) -> Result<Tail, Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let Some(length) = files.length(path).map_err(unreadable)? else { return Ok(Tail::default()) };
    let (start, rest) = unterminated(files, path, length).map_err(unreadable)?;
    if rest.is_empty() {
        return Ok(Tail { length, ..Tail::default() });
    }
    if last_line == LastLineRule::MayLackNewline && is_whole(&rest) {
        return Ok(Tail { length, lacks_newline: true, warning: None });
    }
    let aside = move_aside(files, path, &rest).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    let cut = files.open(path).and_then(|mut file| file.truncate(start));
    cut.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    let text = format!("moved an incomplete line of {} bytes at the end to {}", rest.len(), aside.display());
    Ok(Tail { length: start, lacks_newline: false, warning: Some(Warning::new(path, text)) })
}

/// The bytes after the last newline, and their offset.
fn unterminated(files: &dyn Files, path: &Path, length: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut size = STEP_SIZE;
    loop {
        let start = length.saturating_sub(size);
        let bytes = files.read(path, start)?;
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => {
                let rest = bytes.get(newline + 1..).unwrap_or_default().to_vec();
                return Ok((start + newline as u64 + 1, rest));
            }
            None if start == 0 => return Ok((0, bytes)),
            None => size = size.saturating_mul(4),
        }
    }
}

fn is_whole(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.trim_ascii().is_empty() || std::str::from_utf8(line).is_ok_and(|text| json::is_valid(text.trim()))
}

/// Whether a file is half a line that was moved aside.
pub(crate) fn is_aside(path: &Path) -> bool {
    let number = path.extension().and_then(|ending| ending.to_str()?.strip_prefix("torn-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Writes half a line to a file beside the original. An interrupted attempt is continued, so that a crash does not save the
/// same bytes twice.
pub(crate) fn move_aside(files: &dyn Files, path: &Path, rest: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1_u32.. {
        let aside = path.with_file_name(format!("{name}.torn-{number}"));
        let (mut file, kept) = match files.create_new(&aside) {
            Ok(file) => (file, Vec::new()),
            // A link leads to a file that is not ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && aside.is_symlink() => continue,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (files.open(&aside)?, files.read(&aside, 0)?),
            Err(error) => return Err(error),
        };
        if let Some(more) = rest.strip_prefix(kept.as_slice()) {
            write_all(file.as_mut(), more)?;
            file.sync()?;
            files.sync_folder(folder_of(&aside))?;
            return Ok(aside);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn half_a_line_is_moved_aside_and_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        assert_eq!(repair_tail(&Disk, &path, LastLineRule::EndsWithNewline).unwrap(), Tail::default());
        std::fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        let tail = repair_tail(&Disk, &path, LastLineRule::MayLackNewline).unwrap();
        assert_eq!((tail.length, tail.lacks_newline), (8, false));
        assert!(tail.warning.unwrap().text.contains("a.jsonl.torn-1"));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\":1}\n");
        assert_eq!(std::fs::read(folder.path().join("a.jsonl.torn-1")).unwrap(), b"{\"b\":");
        assert_eq!(repair_tail(&Disk, &path, LastLineRule::EndsWithNewline).unwrap().warning, None);
    }

    #[test]
    fn a_complete_line_without_a_newline_stays_if_the_system_writes_them_like_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "\u{feff}{\"a\":1}").unwrap();
        let tail = repair_tail(&Disk, &path, LastLineRule::MayLackNewline).unwrap();
        assert_eq!(tail, Tail { length: 10, lacks_newline: true, warning: None });
        assert!(repair_tail(&Disk, &path, LastLineRule::EndsWithNewline).unwrap().warning.is_some());
    }

    #[test]
    fn a_long_half_line_is_found_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, format!("{{}}\n\"{}", "x".repeat(1 << 20))).unwrap();
        assert_eq!(repair_tail(&Disk, &path, LastLineRule::EndsWithNewline).unwrap().length, 3);
        std::fs::write(&path, b"{}\n\0\0\0\0").unwrap();
        assert_eq!(repair_tail(&Disk, &path, LastLineRule::MayLackNewline).unwrap().length, 3);
    }
}
