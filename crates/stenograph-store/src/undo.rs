//! What an edit took away, kept beside the file it was taken from, so that the file can be had back byte for byte. An undo file is
//! one line of JSON that knows the file before and after the edit, and then the file as it was, compressed. Nothing here knows
//! what was edited, or why.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use stenograph::json::Object;
use stenograph::text::quote;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, Place, Problem};
use crate::output::NewFile;

/// How many edits of one file can be undone, one after the other.
const DEPTH_MAX: u32 = 999;

/// How large a file may be that is held whole: as large as one that can be edited.
const SIZE_MAX: u64 = stenograph::edit::SIZE_MAX as u64;

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

/// Keeps a file as it is before an edit, which gives it the bytes `after`. The file itself is not touched. Gives the path of the
/// undo file.
pub fn keep(file: &Path, before: &[u8], after: &[u8], by: &str) -> Result<PathBuf, Error> {
    // What an edit kept that never came to its end is of no use: the file is still as it was.
    let unfinished = |path: &PathBuf| {
        let kept = Kept::read(path).ok().flatten();
        kept.is_some_and(|kept| kept.before.is(before) && !kept.after.is(before))
    };
    let path = match newest_path(file).filter(unfinished) {
        Some(path) => path,
        None => free_path(file)?,
    };
    let place = Place::Path(path.clone());
    let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
    let state = |bytes: &[u8]| format!("{{\"size\":{},\"xxh3\":\"{:032x}\"}}", bytes.len(), xxh3_128(bytes));
    let head = format!(
        "{{\"steno_undo\":{VERSION},\"by\":{},\"before\":{},\"after\":{}}}\n",
        quote(by),
        state(before),
        state(after)
    );
    let mut out = NewFile::create(&path, None)?;
    out.write_all(head.as_bytes()).map_err(unwritable)?;
    zstd::stream::copy_encode(before, &mut out, 0).map_err(unwritable)?;
    out.commit()?;
    crate::files::hide_like(&path, file);
    Ok(path)
}

/// Gives a file the bytes `after` and keeps what it was beside it. A file that is not as it was read, `before`, is left alone: an
/// agent may have gone on writing it. Gives the path of the undo file.
pub fn replace(file: &Path, before: &[u8], after: &[u8], by: &str) -> Result<PathBuf, Error> {
    let place = Place::Path(file.to_owned());
    if read_whole(file, &place)? != before {
        return Err(Error::new(&place, Problem::Changed));
    }
    let path = keep(file, before, after, by)?;
    let mut out = NewFile::create(file, None)?;
    out.write_all(after).map_err(|error| Error::from_system(&place, Problem::Unwritable, error))?;
    out.commit()?;
    Ok(path)
}

/// Gives a file its bytes from before the last edit that was kept, and takes the undo file away. Whole lines that were appended
/// since stay at its end.
pub fn undo(file: &Path) -> Result<Undone, Error> {
    let Some(path) = newest_path(file) else { return Ok(Undone::Nothing) };
    let Some(kept) = Kept::read(&path)? else { return Ok(Undone::Damaged { path }) };
    let place = Place::Path(file.to_owned());
    let now = read_whole(file, &place)?;
    if kept.before.is(&now) && !kept.after.is(&now) {
        remove(&path)?;
        return Ok(Undone::AsItWas);
    }
    let Some(appended) = appended(&kept, &now) else { return Ok(Undone::Changed) };
    let mut out = NewFile::create(file, None)?;
    let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
    out.write_all(&kept.bytes).and_then(|()| out.write_all(appended)).map_err(unwritable)?;
    out.commit()?;
    remove(&path)?;
    let (size, appended) = (kept.bytes.len() as u64, appended.len() as u64);
    Ok(Undone::Restored { size, appended, by: kept.by })
}

/// What was appended to the file since the edit; `None` when something else was done to it. Lines that were appended to one
/// ending must fit the other: both with a newline before them.
fn appended<'a>(kept: &Kept, now: &'a [u8]) -> Option<&'a [u8]> {
    let size = usize::try_from(kept.after.size).ok()?;
    let (after, appended) = now.split_at_checked(size)?;
    if !kept.after.is(after) {
        return None;
    }
    let ends = |bytes: &[u8]| bytes.is_empty() || bytes.ends_with(b"\n");
    let fits = match (ends(after), ends(&kept.bytes)) {
        (true, true) => true,
        (false, _) => appended.starts_with(b"\n") && !kept.bytes.ends_with(b"\n"),
        (true, false) => false,
    };
    (appended.is_empty() || fits).then_some(appended)
}

/// What an undo file holds.
struct Kept {
    by: String,
    before: State,
    after: State,
    bytes: Vec<u8>,
}

/// A file at one moment.
struct State {
    size: u64,
    print: String,
}

impl State {
    fn parse(raw: &str) -> Option<State> {
        let mut object = Object::parse(raw)?;
        Some(State { size: object.take_number("size")?, print: object.take_str("xxh3")?.into_owned() })
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && self.print == format!("{:032x}", xxh3_128(bytes))
    }
}

impl Kept {
    /// Reads an undo file; `None` when it is damaged.
    fn read(path: &Path) -> Result<Option<Kept>, Error> {
        let place = Place::Path(path.to_owned());
        let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
        let mut input = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut head = Vec::new();
        input.by_ref().take(HEAD_SIZE_MAX).read_until(b'\n', &mut head).map_err(unreadable)?;
        let Some(mut kept) = Kept::parse(&String::from_utf8_lossy(&head)) else { return Ok(None) };
        let read = zstd::stream::Decoder::with_buffer(input)
            .and_then(|decoder| decoder.take(kept.before.size.min(SIZE_MAX) + 1).read_to_end(&mut kept.bytes));
        Ok((read.is_ok() && kept.before.is(&kept.bytes)).then_some(kept))
    }

    fn parse(head: &str) -> Option<Kept> {
        let mut object = Object::parse(head.trim_end())?;
        if object.take_number("steno_undo")? != VERSION {
            return None;
        }
        let by = object.take_str("by")?.into_owned();
        let before = State::parse(object.take("before")?)?;
        let after = State::parse(object.take("after")?)?;
        Some(Kept { by, before, after, bytes: Vec::new() })
    }
}

/// The path of the undo file of that depth: `FILE.undo`, then `FILE.undo.2`.
fn path_at(file: &Path, depth: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(if depth == 1 { ".undo".to_owned() } else { format!(".undo.{depth}") });
    PathBuf::from(name)
}

/// The undo file of the last edit of a file, if one is there.
pub fn newest_path(file: &Path) -> Option<PathBuf> {
    let there = |depth: &u32| fs::symlink_metadata(path_at(file, *depth)).is_ok();
    (1..=DEPTH_MAX).take_while(there).last().map(|depth| path_at(file, depth))
}

fn free_path(file: &Path) -> Result<PathBuf, Error> {
    let free = |depth: &u32| fs::symlink_metadata(path_at(file, *depth)).is_err();
    let found = (1..=DEPTH_MAX).find(free).map(|depth| path_at(file, depth));
    found.ok_or_else(|| {
        let said = io::Error::other("there are too many undo files beside it already");
        Error::from_system(&Place::Path(file.to_owned()), Problem::Unwritable, said)
    })
}

fn read_whole(file: &Path, place: &Place) -> Result<Vec<u8>, Error> {
    let unreadable = |error| Error::from_system(place, Problem::Unreadable, error);
    let mut bytes = Vec::new();
    // An agent may have appended as much as an edit can hold.
    File::open(file).map_err(unreadable)?.take(2 * SIZE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > 2 * SIZE_MAX {
        return Err(Error::new(place, Problem::TooLarge { size_max: 2 * SIZE_MAX }));
    }
    Ok(bytes)
}

fn remove(path: &Path) -> Result<(), Error> {
    let place = Place::Path(path.to_owned());
    fs::remove_file(path).map_err(|error| Error::from_system(&place, Problem::Unwritable, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"one\ntwo\nthree\n";
    const AFTER: &[u8] = b"one\nthree\n";

    fn edited(before: &[u8], after: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        keep(&path, before, after, "trim").unwrap();
        fs::write(&path, after).unwrap();
        (folder, path)
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
        keep(&path, AFTER, b"one\n", "cut").unwrap();
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
        replace(&path, BEFORE, b"three\n", "trim").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(undo(&path).unwrap(), restored(14, 0));
        assert_eq!(fs::read(&path).unwrap(), BEFORE);
    }

    #[test]
    fn a_file_that_an_agent_goes_on_writing_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        fs::write(&path, [BEFORE, b"four\n"].concat()).unwrap();
        assert_eq!(replace(&path, BEFORE, AFTER, "trim").unwrap_err().problem, Problem::Changed);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_undo_file_is_not_believed() {
        let (_folder, path) = edited(BEFORE, AFTER);
        let kept = newest_path(&path).unwrap();
        let bytes = fs::read(&kept).unwrap();
        for damaged in [&bytes[..bytes.len() - 3], b"{}\n".as_slice(), b"", &bytes[1..]] {
            fs::write(&kept, damaged).unwrap();
            assert_eq!(undo(&path).unwrap(), Undone::Damaged { path: kept.clone() });
            assert_eq!(fs::read(&path).unwrap(), AFTER);
        }
    }
}
