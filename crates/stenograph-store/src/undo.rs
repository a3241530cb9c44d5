//! Saves the content of a file before an edit, so that the file can be restored byte for byte. An undo file is one line of JSON
//! that identifies the file before and after the edit, followed by the old content, compressed. A file that a move created has
//! no content before; one that followed its folder has its old content in another folder. This file does not know what was
//! edited or why.

mod header;
mod placed;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::edit::{EditOutput, FileEdit, FileState, FileStateBuilder};
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, Files, folder_of, resolve_links};
use crate::output::{Existing, NewFile};

use header::UndoHeader;
pub use placed::MovedFile;
pub(crate) use placed::save_undo_of_move;

/// How many edits of one file can be undone, one after the other.
const DEPTH_MAX: u32 = 999;

/// The maximum length of an undo file's first line.
const HEAD_SIZE_MAX: u64 = 4096;

const VERSION: u64 = 1;

/// A command that edits a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditCommand {
    /// `steno trim`.
    Trim,
    /// `steno cut`.
    Cut,
    /// `steno compact`.
    Compact,
    /// `steno move`.
    Move,
}

impl EditCommand {
    /// The name on the command line and in undo files.
    pub fn name(self) -> &'static str {
        match self {
            EditCommand::Trim => "trim",
            EditCommand::Cut => "cut",
            EditCommand::Compact => "compact",
            EditCommand::Move => "move",
        }
    }

    fn named(name: &str) -> Option<EditCommand> {
        const ALL: [EditCommand; 4] = [EditCommand::Trim, EditCommand::Cut, EditCommand::Compact, EditCommand::Move];
        ALL.into_iter().find(|command| command.name() == name)
    }
}

/// The result of undoing an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The file is as it was before the edit.
    Restored {
        /// Its size in bytes.
        size: u64,
        /// How many bytes at its end were appended since the edit.
        appended: u64,
        /// The command that had edited it.
        by: EditCommand,
    },
    /// The file that a move created is removed.
    Removed,
    /// The file is in its old folder again, as it was before it followed its folder.
    MovedBack {
        /// Its path.
        path: PathBuf,
    },
    /// The session went on after it was moved: undoing the move would lose its new turns.
    Continued,
    /// The file already was as before the edit: the edit was never completed.
    AlreadyRestored,
    /// There is no undo file.
    Nothing,
    /// It was changed since, other than by appending complete lines: the saved content no longer fits.
    Changed,
    /// The undo file is damaged.
    Damaged {
        /// Its path.
        path: PathBuf,
    },
}

/// An edit that can be undone.
#[derive(Clone, Copy, Debug)]
pub struct UndoStep<'a> {
    /// The content before the edit.
    pub before: &'a FileState,
    /// The content after the edit.
    pub after: &'a FileState,
    /// The command that edits.
    pub by: EditCommand,
}

/// Saves a file before an edit. `before` are its bytes, which must match the step. The file itself is not touched. Returns the
/// path of the undo file, which lies beside the file itself and not beside a link to it.
pub fn save_undo(file: &Path, step: &UndoStep<'_>, before: &mut dyn Read) -> Result<PathBuf, Error> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    save_undo_on(&files, file, step, before)
}

/// The same on another disk.
pub(crate) fn save_undo_on(
    files: &Arc<dyn Files>,
    file: &Path,
    step: &UndoStep<'_>,
    before: &mut dyn Read,
) -> Result<PathBuf, Error> {
    let file = resolve_links(file);
    // The undo file of an unfinished edit is useless: the file is still as it was.
    let unfinished = |path: &PathBuf| {
        let header = UndoHeader::open(path).ok().flatten();
        header.is_some_and(|(header, _)| header.before.as_ref() == Some(step.before) && header.after != *step.before)
    };
    let (path, existing) = match newest_path(&file).filter(unfinished) {
        Some(path) => (path, Existing::Replaced),
        None => (free_path(&file)?, Existing::Refused),
    };
    let place = Place::Path(path.clone());
    let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
    let mut out = NewFile::options().existing(existing).on(files).create(&path, [])?;
    let (before_edit, after) = (Some(step.before.clone()), step.after.clone());
    let header = UndoHeader { by: step.by, before: before_edit, after, folder: None };
    out.write_all(header.line().as_bytes()).map_err(unwritable)?;
    let mut seen = FingerprintingReader { bytes: before, state: FileStateBuilder::default() };
    zstd::stream::copy_encode(&mut seen, &mut out, 0).map_err(unwritable)?;
    if seen.state.state() != *step.before {
        return Err(Error::about(&file, Problem::Changed));
    }
    out.commit()?;
    Ok(path)
}

/// The same with the bytes before and after the edit in memory.
pub(crate) fn save_undo_bytes(
    file: &Path,
    mut before: &[u8],
    mut after: &[u8],
    by: EditCommand,
) -> Result<PathBuf, Error> {
    let state = |bytes: &mut &[u8]| FileState::of(bytes).map_err(|error| Error::at(file, Problem::Unreadable, error));
    let (was, is) = (state(&mut { before })?, state(&mut after)?);
    save_undo(file, &UndoStep { before: &was, after: &is, by }, &mut before)
}

/// The command that edited this file last; `None` if no edit can be undone, or its undo file is damaged.
pub fn last_edit(file: &Path) -> Result<Option<EditCommand>, Error> {
    let Some(path) = newest_path(&resolve_links(file)) else { return Ok(None) };
    Ok(UndoHeader::open(&path)?.map(|(header, _)| header.by))
}

/// The undo files of a file, oldest first.
pub fn undo_files(file: &Path) -> Vec<PathBuf> {
    let file = resolve_links(file);
    (1..=depth(&file)).map(|depth| path_at(&file, depth)).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Restores the bytes of a file from before the last edit and removes the undo file. Complete lines that were appended since
/// stay at its end.
pub fn undo(file: &Path) -> Result<UndoOutcome, Error> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    undo_on(&files, file)
}

/// The same on another disk.
pub fn undo_on(files: &Arc<dyn Files>, file: &Path) -> Result<UndoOutcome, Error> {
    let real = resolve_links(file);
    if newest_path(&real).is_none() {
        return Ok(UndoOutcome::Nothing);
    }
    let edit = FileEdit::begin_on(files, file)?;
    // Another undo may have been faster.
    let Some(path) = newest_path(&real) else { return Ok(UndoOutcome::Nothing) };
    let Some((header, bytes)) = UndoHeader::open(&path)? else { return Ok(UndoOutcome::Damaged { path }) };
    let Some(before) = header.before.clone().filter(|_| header.folder.is_none()) else {
        return placed::undo_placed(files, &edit, &path, &header, bytes);
    };
    if before == *edit.before() && header.after != *edit.before() {
        edit.remove(&path)?;
        return Ok(UndoOutcome::AlreadyRestored);
    }
    if header.by == EditCommand::Move && header.after != *edit.before() {
        return Ok(UndoOutcome::Continued);
    }
    let place = Place::Path(file.to_owned());
    let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
    let Some((after_end, mut appended)) = appended(&header, &real).map_err(unreadable)? else {
        return Ok(UndoOutcome::Changed);
    };
    let mut out = edit.output()?;
    let mut restored = FingerprintingWriter { out: &mut out, state: FileStateBuilder::default(), last: None };
    let limit = before.size + 1;
    let copied =
        zstd::stream::Decoder::with_buffer(bytes).and_then(|decoder| io::copy(&mut decoder.take(limit), &mut restored));
    if let Err(error) = &copied
        && Error::inside(error).is_some()
    {
        return Err(Error::from_system(&place, Problem::Unwritable, io::Error::other(error.to_string())));
    }
    let (state, before_end) = (restored.state.state(), restored.last);
    if copied.is_err() || state != before {
        return Ok(UndoOutcome::Damaged { path });
    }
    if !fits(after_end, before_end, &mut appended).map_err(unreadable)? {
        return Ok(UndoOutcome::Changed);
    }
    let appended =
        io::copy(&mut appended, &mut out).map_err(|error| Error::from_system(&place, Problem::Unwritable, error))?;
    edit.restore(out)?;
    edit.remove(&path)?;
    Ok(UndoOutcome::Restored { size: before.size, appended, by: header.by })
}

/// The bytes appended to a file since the edit, and the last byte before them; `None` if it was changed in another way.
fn appended(header: &UndoHeader, file: &Path) -> io::Result<Option<(Option<u8>, BufReader<File>)>> {
    let mut now = File::open(file)?;
    let state = FileState::of(&mut (&mut now).take(header.after.size))?;
    if state != header.after {
        return Ok(None);
    }
    let mut last = [0; 1];
    let end = match header.after.size.checked_sub(1) {
        None => None,
        Some(at) => {
            now.seek(SeekFrom::Start(at))?;
            now.read_exact(&mut last)?;
            last.first().copied()
        }
    };
    Ok(Some((end, BufReader::new(now))))
}

/// Whether appended lines fit both endings: both have a newline before them.
fn fits(after: Option<u8>, before: Option<u8>, appended: &mut impl BufRead) -> io::Result<bool> {
    let first = appended.fill_buf()?.first().copied();
    let ends = |last: Option<u8>| last.is_none_or(|last| last == b'\n');
    Ok(match (first, ends(after), ends(before)) {
        (None, _, _) | (_, true, true) => true,
        (Some(first), false, _) => first == b'\n' && before != Some(b'\n'),
        (_, true, false) => false,
    })
}

/// Fingerprints bytes while they are read.
struct FingerprintingReader<'a> {
    bytes: &'a mut dyn Read,
    state: FileStateBuilder,
}

impl Read for FingerprintingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.state.add(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

/// Fingerprints bytes while they are written, and remembers the last one.
struct FingerprintingWriter<'a> {
    out: &'a mut EditOutput,
    state: FileStateBuilder,
    last: Option<u8>,
}

impl Write for FingerprintingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        let written = bytes.get(..length).unwrap_or_default();
        self.state.add(written);
        self.last = written.last().copied().or(self.last);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The path of the undo file of that depth: `FILE.undo`, then `FILE.undo.2`.
fn path_at(file: &Path, depth: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(if depth == 1 { ".undo".to_owned() } else { format!(".undo.{depth}") });
    PathBuf::from(name)
}

/// The depth of the last edit that can be undone; 0 if there is none. Earlier undo files may have been removed.
fn depth(file: &Path) -> u32 {
    let first = path_at(file, 1);
    let Some(first) = first.file_name() else { return 0 };
    let depth_of = |name: &OsStr| match name.as_encoded_bytes().strip_prefix(first.as_encoded_bytes())? {
        [] => Some(1),
        rest => std::str::from_utf8(rest).ok()?.strip_prefix('.')?.parse().ok().filter(|depth| *depth > 1),
    };
    let entries = fs::read_dir(folder_of(file)).into_iter().flatten().flatten();
    entries.filter_map(|entry| depth_of(&entry.file_name())).filter(|depth| *depth <= DEPTH_MAX).max().unwrap_or(0)
}

/// The undo file of the last edit, if it exists.
fn newest_path(file: &Path) -> Option<PathBuf> {
    let depth = depth(file);
    (depth > 0).then(|| path_at(file, depth))
}

fn free_path(file: &Path) -> Result<PathBuf, Error> {
    match depth(file) + 1 {
        free @ ..=DEPTH_MAX => Ok(path_at(file, free)),
        _ => {
            let said = io::Error::other("it has too many undo files");
            Err(Error::from_system(&Place::Path(file.to_owned()), Problem::Unwritable, said))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"one\ntwo\nthree\n";
    const AFTER: &[u8] = b"one\nthree\n";

    fn save(path: &Path, before: &[u8], after: &[u8], by: EditCommand) {
        save_undo_bytes(path, before, after, by).unwrap();
    }

    #[test]
    fn a_removed_undo_file_does_not_confuse_later_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let versions: [&[u8]; 4] = [b"one\n", b"two\n", b"three\n", b"four\n"];
        for pair in versions[..3].windows(2) {
            save(&path, pair[0], pair[1], EditCommand::Trim);
        }
        fs::remove_file(path_at(&path, 1)).unwrap();
        save(&path, versions[2], versions[3], EditCommand::Trim);
        fs::write(&path, versions[3]).unwrap();
        for before in [versions[2], versions[1]] {
            assert!(matches!(undo(&path).unwrap(), UndoOutcome::Restored { .. }));
            assert_eq!(fs::read(&path).unwrap(), before);
        }
        assert!(matches!(undo(&path).unwrap(), UndoOutcome::Nothing));
    }

    fn edited(before: &[u8], after: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        save(&path, before, after, EditCommand::Trim);
        fs::write(&path, after).unwrap();
        (folder, path)
    }

    fn replace(path: &Path, after: &[u8]) -> Result<Option<PathBuf>, Error> {
        let edit = FileEdit::begin(path)?;
        let mut out = edit.output()?;
        out.write_all(after).unwrap();
        edit.finish(out, EditCommand::Trim)
    }

    fn restored(size: u64, appended: u64) -> UndoOutcome {
        UndoOutcome::Restored { size, appended, by: EditCommand::Trim }
    }

    #[test]
    fn a_file_comes_back_byte_for_byte_and_nothing_is_left_beside_it() {
        let (folder, path) = edited(BEFORE, AFTER);
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(undo(&path).unwrap(), UndoOutcome::Nothing);
    }

    #[test]
    fn lines_that_were_appended_stay() {
        let (_folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, [AFTER, b"four\n"].concat()).unwrap();
        assert_eq!(undo(&path).unwrap(), restored(14, 5));
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\nthree\nfour\n");
        // Without a newline at the end, the appended text starts with one.
        let (_folder, path) = edited(b"one\ntwo", b"two");
        fs::write(&path, b"two\nthree").unwrap();
        assert_eq!(undo(&path).unwrap(), restored(7, 6));
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\nthree");
    }

    #[test]
    fn a_file_that_was_changed_is_left_alone() {
        for (before, after, now) in [
            (BEFORE, AFTER, b"one\nTHREE\n".as_slice()),
            (BEFORE, AFTER, b"one\n"),
            (BEFORE, b"one\nthree", b"one\nthree and more\n"),
            (b"one\ntwo", AFTER, b"one\nthree\nfour\n"),
        ] {
            let (folder, path) = edited(before, after);
            fs::write(&path, now).unwrap();
            assert_eq!(undo(&path).unwrap(), UndoOutcome::Changed);
            assert_eq!(fs::read(&path).unwrap(), now);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn edits_are_undone_in_turn() {
        let (_folder, path) = edited(BEFORE, AFTER);
        save(&path, AFTER, b"one\n", EditCommand::Cut);
        fs::write(&path, b"one\n").unwrap();
        assert_eq!(undo(&path).unwrap(), UndoOutcome::Restored { size: 10, appended: 0, by: EditCommand::Cut });
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
    }

    #[test]
    fn an_edit_that_was_never_completed_does_not_count() {
        let (_folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, BEFORE).unwrap();
        assert_eq!(undo(&path).unwrap(), UndoOutcome::AlreadyRestored);
        assert_eq!(undo(&path).unwrap(), UndoOutcome::Nothing);
    }

    #[test]
    fn the_undo_file_of_an_incomplete_edit_is_replaced_by_the_next_edit() {
        let (folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, BEFORE).unwrap();
        replace(&path, b"three\n").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
    }

    #[test]
    fn a_file_that_an_agent_still_writes_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        fs::write(&path, BEFORE).unwrap();
        let edit = FileEdit::begin(&path).unwrap();
        let mut out = edit.output().unwrap();
        out.write_all(AFTER).unwrap();
        fs::write(&path, [BEFORE, b"four\n"].concat()).unwrap();
        assert_eq!(edit.finish(out, EditCommand::Trim).unwrap_err().problem, Problem::Changed);
        drop(edit);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn an_undo_file_is_private_and_beside_the_file_itself() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, linked) = (folder.path().join("real"), folder.path().join("linked"));
        [&real, &linked].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let (path, link) = (real.join("a.jsonl"), linked.join("a.jsonl"));
        fs::write(&path, BEFORE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let undo_file = replace(&link, AFTER).unwrap().unwrap();
        assert_eq!(undo_file, real.canonicalize().unwrap().join("a.jsonl.undo"));
        assert_eq!((mode(&undo_file), mode(&path)), (0o600, 0o640));
        assert_eq!(undo(&link).unwrap(), restored(14, 0));
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o640, BEFORE.to_vec()));
        assert_eq!((fs::read_dir(&real).unwrap().count(), fs::read_dir(&linked).unwrap().count()), (1, 1));
    }

    #[test]
    fn a_damaged_undo_file_is_not_believed() {
        let (_folder, path) = edited(BEFORE, AFTER);
        let undo_file = newest_path(&path.canonicalize().unwrap()).unwrap();
        let bytes = fs::read(&undo_file).unwrap();
        for damaged in [&bytes[..bytes.len() - 3], b"{}\n".as_slice(), b"", &bytes[1..]] {
            fs::write(&undo_file, damaged).unwrap();
            assert_eq!(undo(&path).unwrap(), UndoOutcome::Damaged { path: undo_file.clone() });
            assert_eq!(fs::read(&path).unwrap(), AFTER);
        }
    }
}
