//! The undo of a move: the file that a move put in its place is removed, after its old content, if it had any, is back in its old
//! folder.

use std::io::{self, BufRead, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::header::UndoHeader;
use super::{EditCommand, FingerprintingReader, UndoOutcome, free_path};
use crate::confined::Confined;
use crate::edit::{FileEdit, FileState, FileStateBuilder};
use crate::error::{Error, Place, Problem};
use crate::files::{Files, create_folder_durably, folder_of};
use crate::output::NewFile;

/// Where the content of a file was before a move put the file in its place.
#[derive(Clone, Copy, Debug)]
pub enum MovedFile<'a> {
    /// Nowhere: the move created the file.
    Created,
    /// In another folder beside the folder of the file, or beside one above it, under the same name.
    Followed {
        /// The name of that folder, and of the folders in it that the file is in, separated by slashes.
        folder: &'a str,
        /// The content there.
        before: &'a FileState,
    },
}

/// Saves what is needed to undo a move that is about to put a file in its place. `before` is the old content, if there is any.
/// Returns the path of the undo file.
pub(crate) fn save_undo_of_move(
    files: &Arc<dyn Files>,
    file: &Path,
    moved: &MovedFile<'_>,
    after: &FileState,
    before: &mut dyn Read,
) -> Result<PathBuf, Error> {
    let path = free_path(file)?;
    let place = Place::Path(path.clone());
    let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
    let (before_move, folder) = match moved {
        MovedFile::Created => (None, None),
        MovedFile::Followed { folder, before } => (Some((*before).clone()), Some((*folder).to_owned())),
    };
    let header = UndoHeader { by: EditCommand::Move, before: before_move, after: after.clone(), folder };
    let mut out = NewFile::options().on(files).create(&path, [])?;
    out.write_all(header.line().as_bytes()).map_err(unwritable)?;
    zstd::stream::copy_encode(before, &mut out, 0).map_err(unwritable)?;
    out.commit()?;
    Ok(path)
}

/// Removes a file that a move put in its place, after its old content, if it had any, is back in its old folder.
pub(super) fn undo_placed(
    files: &Arc<dyn Files>,
    edit: &FileEdit,
    undo: &Path,
    header: &UndoHeader,
    bytes: impl BufRead,
) -> Result<UndoOutcome, Error> {
    if header.after != *edit.before() {
        return Ok(UndoOutcome::Continued);
    }
    let damaged = || Ok(UndoOutcome::Damaged { path: undo.to_owned() });
    let outcome = match (&header.folder, &header.before) {
        (None, _) => UndoOutcome::Removed,
        (Some(folder), before) => {
            let (Some(before), Some((near, path))) = (before, sibling(edit.path(), folder)) else { return damaged() };
            let place = Place::Path(path.clone());
            let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
            let files = Confined::to(files, &[near]);
            create_folder_durably(files.as_ref(), folder_of(&path)).map_err(unwritable)?;
            let mut out = NewFile::options().on(&files).create(&path, [])?;
            let decoder = zstd::stream::Decoder::with_buffer(bytes).map_err(unwritable)?;
            let mut decoder = decoder.take(before.size + 1);
            let mut old = FingerprintingReader { bytes: &mut decoder, state: FileStateBuilder::default() };
            if io::copy(&mut old, &mut out).is_err() || old.state.state() != *before {
                return damaged();
            }
            out.commit()?;
            UndoOutcome::MovedBack { path }
        }
    };
    edit.remove_file()?;
    edit.remove(undo)?;
    Ok(outcome)
}

/// The file of the same name in another folder beside one of the folders of this one, and the folder that has both. The names
/// come from an undo file, which anyone may have written: they must be plain names.
fn sibling(file: &Path, folder: &str) -> Option<(PathBuf, PathBuf)> {
    const DEPTH_MAX: usize = 8;
    let parts: Vec<Component<'_>> = Path::new(folder).components().take(DEPTH_MAX + 1).collect();
    let is_plain = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || parts.is_empty() || parts.len() > DEPTH_MAX {
        return None;
    }
    let near = file.ancestors().nth(parts.len() + 1)?;
    Some((near.to_owned(), near.join(folder).join(file.file_name()?)))
}
