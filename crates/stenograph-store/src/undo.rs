//! What an edit took away, kept beside the file it was taken from, so that the file can be had back byte for byte. An undo file is
//! one line of JSON that knows the file before and after the edit, and then the file as it was, compressed. Nothing here knows
//! what was edited, or why.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::json::Object;
use stenograph::text::quote;

use crate::edit::{EditOutput, FileEdit, FileState, StateOf};
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, Files, behind_links, folder_of};
use crate::output::{Existing, NewFile};

/// How many edits of one file can be undone, one after the other.
const DEPTH_MAX: u32 = 999;

/// The first line of an undo file is short, whoever wrote it.
const HEAD_SIZE_MAX: u64 = 4096;

const VERSION: u64 = 1;

/// What came of an attempt to undo an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The file is as it was before the edit.
    Restored {
        /// How many bytes it has.
        size: u64,
        /// How many bytes that were appended since the edit stand at its end.
        appended: u64,
        /// What had edited it.
        by: String,
    },
    /// The file was as it was before the edit already: the edit never came to its end.
    AsItWas,
    /// Nothing is kept beside it.
    Nothing,
    /// It was changed since, in another way than by appending whole lines: what was kept does not fit any more.
    Changed,
    /// What was kept is damaged.
    Damaged {
        /// The file that is.
        path: PathBuf,
    },
}

/// An edit that can be undone: what the file was, what it is from then on, and which command did it.
#[derive(Clone, Copy, Debug)]
pub struct UndoStep<'a> {
    /// What it was.
    pub before: &'a FileState,
    /// What it is.
    pub after: &'a FileState,
    /// The command.
    pub by: &'a str,
}

/// Keeps what a file is before an edit, its bytes `before`, which must be what the step says. The file itself is not touched.
/// Gives the path of the undo file, which is beside the file itself and not beside a link to it.
pub fn keep(file: &Path, step: &UndoStep<'_>, before: &mut dyn Read) -> Result<PathBuf, Error> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    keep_on(&files, file, step, before)
}

/// The same on another disk.
pub(crate) fn keep_on(
    files: &Arc<dyn Files>,
    file: &Path,
    step: &UndoStep<'_>,
    before: &mut dyn Read,
) -> Result<PathBuf, Error> {
    let file = behind_links(file);
    // The undo file of an edit that was not finished is of no use: the file is still as it was.
    let unfinished = |path: &PathBuf| {
        let kept = Kept::open(path).ok().flatten();
        kept.is_some_and(|(kept, _)| kept.before == *step.before && kept.after != *step.before)
    };
    let (path, existing) = match newest_path(&file).filter(unfinished) {
        Some(path) => (path, Existing::Replaced),
        None => (free_path(&file)?, Existing::Refused),
    };
    let place = Place::Path(path.clone());
    let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
    let mut out = NewFile::options().existing(existing).on(files).create(&path, [])?;
    out.write_all(step.head().as_bytes()).map_err(unwritable)?;
    let mut seen = Seen { bytes: before, state: StateOf::default() };
    zstd::stream::copy_encode(&mut seen, &mut out, 0).map_err(unwritable)?;
    if seen.state.state() != *step.before {
        return Err(Error::about(&file, Problem::Changed));
    }
    out.commit()?;
    Ok(path)
}

/// The same for a file whose bytes before and after the edit are at hand.
pub(crate) fn keep_bytes(file: &Path, mut before: &[u8], mut after: &[u8], by: &str) -> Result<PathBuf, Error> {
    let state = |bytes: &mut &[u8]| FileState::of(bytes).map_err(|error| Error::at(file, Problem::Unreadable, error));
    let (was, is) = (state(&mut { before })?, state(&mut after)?);
    keep(file, &UndoStep { before: &was, after: &is, by }, &mut before)
}

impl UndoStep<'_> {
    fn head(&self) -> String {
        let state = |state: &FileState| format!("{{\"size\":{},\"xxh3\":{}}}", state.size, quote(&state.print));
        let (before, after) = (state(self.before), state(self.after));
        format!("{{\"steno_undo\":{VERSION},\"by\":{},\"before\":{before},\"after\":{after}}}\n", quote(self.by))
    }
}

/// Gives a file its bytes from before the last edit that was kept, and takes the undo file away. Whole lines that were appended
/// since stay at its end.
pub fn undo(file: &Path) -> Result<Undone, Error> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    undo_on(&files, file)
}

/// The same on another disk.
pub fn undo_on(files: &Arc<dyn Files>, file: &Path) -> Result<Undone, Error> {
    let real = behind_links(file);
    if newest_path(&real).is_none() {
        return Ok(Undone::Nothing);
    }
    let edit = FileEdit::begin_on(files, file)?;
    // Another undo may have been faster.
    let Some(path) = newest_path(&real) else { return Ok(Undone::Nothing) };
    let Some((kept, bytes)) = Kept::open(&path)? else { return Ok(Undone::Damaged { path }) };
    if kept.before == *edit.before() && kept.after != *edit.before() {
        edit.remove(&path)?;
        return Ok(Undone::AsItWas);
    }
    let place = Place::Path(file.to_owned());
    let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
    let Some((after_end, mut appended)) = appended(&kept, &real).map_err(unreadable)? else {
        return Ok(Undone::Changed);
    };
    let mut out = edit.output()?;
    let mut restored = Ending { out: &mut out, state: StateOf::default(), last: None };
    let limit = kept.before.size + 1;
    let copied =
        zstd::stream::Decoder::with_buffer(bytes).and_then(|decoder| io::copy(&mut decoder.take(limit), &mut restored));
    if let Err(error) = &copied
        && Error::inside(error).is_some()
    {
        return Err(Error::from_system(&place, Problem::Unwritable, io::Error::other(error.to_string())));
    }
    let (state, before_end) = (restored.state.state(), restored.last);
    if copied.is_err() || state != kept.before {
        return Ok(Undone::Damaged { path });
    }
    if !fits(after_end, before_end, &mut appended).map_err(unreadable)? {
        return Ok(Undone::Changed);
    }
    let appended =
        io::copy(&mut appended, &mut out).map_err(|error| Error::from_system(&place, Problem::Unwritable, error))?;
    edit.restore(out)?;
    edit.remove(&path)?;
    Ok(Undone::Restored { size: kept.before.size, appended, by: kept.by })
}

/// What was appended to a file since the edit, and the last byte before that; `None` when something else was done to it.
fn appended(kept: &Kept, file: &Path) -> io::Result<Option<(Option<u8>, BufReader<File>)>> {
    let mut now = File::open(file)?;
    let state = FileState::of(&mut (&mut now).take(kept.after.size))?;
    if state != kept.after {
        return Ok(None);
    }
    let mut last = [0; 1];
    let end = match kept.after.size.checked_sub(1) {
        None => None,
        Some(at) => {
            now.seek(SeekFrom::Start(at))?;
            now.read_exact(&mut last)?;
            last.first().copied()
        }
    };
    Ok(Some((end, BufReader::new(now))))
}

/// Whether lines that were appended to one ending fit the other: both have a newline before them.
fn fits(after: Option<u8>, before: Option<u8>, appended: &mut impl BufRead) -> io::Result<bool> {
    let first = appended.fill_buf()?.first().copied();
    let ends = |last: Option<u8>| last.is_none_or(|last| last == b'\n');
    Ok(match (first, ends(after), ends(before)) {
        (None, _, _) | (_, true, true) => true,
        (Some(first), false, _) => first == b'\n' && before != Some(b'\n'),
        (_, true, false) => false,
    })
}

/// Bytes that are fingerprinted while they are read.
struct Seen<'a> {
    bytes: &'a mut dyn Read,
    state: StateOf,
}

impl Read for Seen<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.state.add(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

/// Bytes that are fingerprinted while they are written, and the last of them.
struct Ending<'a> {
    out: &'a mut EditOutput,
    state: StateOf,
    last: Option<u8>,
}

impl Write for Ending<'_> {
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

/// What the first line of an undo file says.
struct Kept {
    by: String,
    before: FileState,
    after: FileState,
}

fn parse_state(raw: &str) -> Option<FileState> {
    let mut object = Object::parse(raw)?;
    Some(FileState { size: object.take_number("size")?, print: object.take_str("xxh3")?.into_owned() })
}

impl Kept {
    /// Opens an undo file, whose first line is read; `None` when that is damaged.
    fn open(path: &Path) -> Result<Option<(Kept, BufReader<File>)>, Error> {
        let place = Place::Path(path.to_owned());
        let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
        let mut input = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut head = Vec::new();
        input.by_ref().take(HEAD_SIZE_MAX).read_until(b'\n', &mut head).map_err(unreadable)?;
        Ok(Kept::parse(&String::from_utf8_lossy(&head)).map(|kept| (kept, input)))
    }

    fn parse(head: &str) -> Option<Kept> {
        let mut object = Object::parse(head.trim_end())?;
        if object.take_number("steno_undo")? != VERSION {
            return None;
        }
        let by = object.take_str("by")?.into_owned();
        let before = parse_state(object.take("before")?)?;
        let after = parse_state(object.take("after")?)?;
        Some(Kept { by, before, after })
    }
}

/// The path of the undo file of that depth: `FILE.undo`, then `FILE.undo.2`.
fn path_at(file: &Path, depth: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(if depth == 1 { ".undo".to_owned() } else { format!(".undo.{depth}") });
    PathBuf::from(name)
}

/// The depth of the last edit of a file that can be undone; 0 where there is none. Somebody may have removed earlier ones.
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

/// The undo file of the last edit of a file, if one is there.
fn newest_path(file: &Path) -> Option<PathBuf> {
    let depth = depth(file);
    (depth > 0).then(|| path_at(file, depth))
}

fn free_path(file: &Path) -> Result<PathBuf, Error> {
    match depth(file) + 1 {
        free @ ..=DEPTH_MAX => Ok(path_at(file, free)),
        _ => {
            let said = io::Error::other("there are too many undo files beside it already");
            Err(Error::from_system(&Place::Path(file.to_owned()), Problem::Unwritable, said))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"one\ntwo\nthree\n";
    const AFTER: &[u8] = b"one\nthree\n";

    fn kept(path: &Path, before: &[u8], after: &[u8], by: &str) {
        keep_bytes(path, before, after, by).unwrap();
    }

    #[test]
    fn an_undo_file_that_somebody_removed_does_not_confuse_later_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let versions: [&[u8]; 4] = [b"one\n", b"two\n", b"three\n", b"four\n"];
        for pair in versions[..3].windows(2) {
            kept(&path, pair[0], pair[1], "test");
        }
        fs::remove_file(path_at(&path, 1)).unwrap();
        kept(&path, versions[2], versions[3], "test");
        fs::write(&path, versions[3]).unwrap();
        for before in [versions[2], versions[1]] {
            assert!(matches!(undo(&path).unwrap(), Undone::Restored { .. }));
            assert_eq!(fs::read(&path).unwrap(), before);
        }
        assert!(matches!(undo(&path).unwrap(), Undone::Nothing));
    }

    fn edited(before: &[u8], after: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        kept(&path, before, after, "trim");
        fs::write(&path, after).unwrap();
        (folder, path)
    }

    fn replace(path: &Path, after: &[u8]) -> Result<Option<PathBuf>, Error> {
        let edit = FileEdit::begin(path)?;
        let mut out = edit.output()?;
        out.write_all(after).unwrap();
        edit.finish(out, "trim")
    }

    fn restored(size: u64, appended: u64) -> Undone {
        Undone::Restored { size, appended, by: "trim".into() }
    }

    #[test]
    fn a_file_comes_back_byte_for_byte_and_nothing_is_left_beside_it() {
        let (folder, path) = edited(BEFORE, AFTER);
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(undo(&path).unwrap(), Undone::Nothing);
    }

    #[test]
    fn lines_that_were_appended_stay() {
        let (_folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, [AFTER, b"four\n"].concat()).unwrap();
        assert_eq!(undo(&path).unwrap(), restored(14, 5));
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\nthree\nfour\n");
        // Without a newline at the end, what follows brings it along.
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
            assert_eq!(undo(&path).unwrap(), Undone::Changed);
            assert_eq!(fs::read(&path).unwrap(), now);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn edits_are_undone_in_turn() {
        let (_folder, path) = edited(BEFORE, AFTER);
        kept(&path, AFTER, b"one\n", "cut");
        fs::write(&path, b"one\n").unwrap();
        assert_eq!(undo(&path).unwrap(), Undone::Restored { size: 10, appended: 0, by: "cut".into() });
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
    }

    #[test]
    fn an_edit_that_never_came_to_its_end_is_no_edit() {
        let (_folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, BEFORE).unwrap();
        assert_eq!(undo(&path).unwrap(), Undone::AsItWas);
        assert_eq!(undo(&path).unwrap(), Undone::Nothing);
    }

    #[test]
    fn what_an_edit_kept_that_never_came_to_its_end_is_replaced_by_the_next_one() {
        let (folder, path) = edited(BEFORE, AFTER);
        fs::write(&path, BEFORE).unwrap();
        replace(&path, b"three\n").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
    }

    #[test]
    fn a_file_that_an_agent_goes_on_writing_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        fs::write(&path, BEFORE).unwrap();
        let edit = FileEdit::begin(&path).unwrap();
        let mut out = edit.output().unwrap();
        out.write_all(AFTER).unwrap();
        fs::write(&path, [BEFORE, b"four\n"].concat()).unwrap();
        assert_eq!(edit.finish(out, "trim").unwrap_err().problem, Problem::Changed);
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
        let kept = replace(&link, AFTER).unwrap().unwrap();
        assert_eq!(kept, real.canonicalize().unwrap().join("a.jsonl.undo"));
        assert_eq!((mode(&kept), mode(&path)), (0o600, 0o640));
        assert_eq!(undo(&link).unwrap(), restored(14, 0));
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o640, BEFORE.to_vec()));
        assert_eq!((fs::read_dir(&real).unwrap().count(), fs::read_dir(&linked).unwrap().count()), (1, 1));
    }

    #[test]
    fn a_damaged_undo_file_is_not_believed() {
        let (_folder, path) = edited(BEFORE, AFTER);
        let kept = newest_path(&path.canonicalize().unwrap()).unwrap();
        let bytes = fs::read(&kept).unwrap();
        for damaged in [&bytes[..bytes.len() - 3], b"{}\n".as_slice(), b"", &bytes[1..]] {
            fs::write(&kept, damaged).unwrap();
            assert_eq!(undo(&path).unwrap(), Undone::Damaged { path: kept.clone() });
            assert_eq!(fs::read(&path).unwrap(), AFTER);
        }
    }
}
