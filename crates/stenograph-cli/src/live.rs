//! Which file is meant by a command that looks at what happens now: one that is named, or the one that was written last. How it is
//! followed is the store's part.

use std::path::{Path, PathBuf};

use stenograph_store::discover::{Found, discover};
use stenograph_store::folder;

use crate::error::CommandError;
use crate::home::Root;
use crate::store::{Asked, Where};

/// The file to look at. What was recorded may be spread over a folder, or have a journal beside it: the one that was written last tells
/// what happens now.
pub fn file(path: &Path) -> PathBuf {
    let modified = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let parts = folder::parts(path);
    let newest = parts.as_ref().and_then(|parts| parts.files().iter().max_by_key(|path| modified(path)));
    newest.cloned().unwrap_or_else(|| path.to_owned())
}

/// The file that a word means: its own, or that of a session.
pub fn named(place: &Where, name: &Path) -> Result<PathBuf, CommandError> {
    let chosen = match place.asked(name)? {
        Asked::File(path) => return Ok(file(&path)),
        Asked::Session(chosen) => chosen,
    };
    let path = chosen.source.path;
    if path.symlink_metadata().is_err() {
        return Err(CommandError::nothing(format!("{}: its file is gone: {}", name.display(), path.display()))
            .hint(format!("steno show {} shows what was kept of it", name.display())));
    }
    Ok(path)
}

/// The files that agents have written, the newest first.
pub fn files(root: &Root) -> Result<Vec<Found>, CommandError> {
    if let Some(root) = root.given()
        && !root.is_dir()
    {
        return Err(CommandError::new(format!("{}: no such folder", root.display()))
            .hint("--root DIR names a folder in which to look"));
    }
    let mut found = Vec::new();
    discover(&root.places(), &mut |file| found.push(file));
    found.sort_by_key(|file| std::cmp::Reverse(file.stat.modified_ns));
    Ok(found)
}

/// That there is nothing to look at.
pub fn nothing(root: &Root) -> CommandError {
    let place =
        root.given().map_or("in the homes of the agents".to_owned(), |root| format!("below {}", root.display()));
    CommandError::nothing(format!("no transcripts {place}"))
        .hint("name a file, or with --root DIR a folder in which to look; steno formats lists the homes")
}
