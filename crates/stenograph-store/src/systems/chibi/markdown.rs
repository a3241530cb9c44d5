//! `transcript.md`: the archived conversation for people, in the style of 0.5.0. It is append-only.

use std::path::Path;

use stenograph::format::Format;
use stenograph::formats::{chibi::Chibi, chibi_markdown::ChibiMarkdown};
use stenograph::model::Outline;
use stenograph::{read, write};

use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, truncate_durably, write_all};
use crate::layouts::chibi::entry::{self, ContextEntry};

/// Appends messages after the first `length` bytes, where a crash may have left some of them already.
pub fn append(files: &dyn Files, path: &Path, spoken: &[&ContextEntry], length: u64) -> Result<(), Error> {
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    let there = files.length(path).map_err(unwritable)?.unwrap_or(0);
    let text = text(spoken);
    if text.is_empty() {
        return Ok(());
    }
    let length = length.min(there);
    let mut wanted = Vec::new();
    if length > 0 {
        // Every message ends with a blank line; if the previous writer omitted it, it is added here.
        let end = files.read(path, length.saturating_sub(2)).map_err(unwritable)?;
        let before = end.get(..usize::try_from(length.min(2)).unwrap_or(0)).unwrap_or_default();
        wanted.extend(match before {
            [b'\n', b'\n'] => "".bytes(),
            [.., b'\n'] => "\n".bytes(),
            _ => "\n\n".bytes(),
        });
    }
    wanted.extend_from_slice(&text);
    let left = if there > length { files.read(path, length).map_err(unwritable)? } else { Vec::new() };
    let missing = if left.starts_with(&wanted) {
        &[]
    } else {
        // Text that another process added meanwhile stays, and all of ours follows it.
        wanted.strip_prefix(left.as_slice()).unwrap_or(&wanted)
    };
    let mut file = files.open(path).map_err(unwritable)?;
    write_all(file.as_mut(), missing).and_then(|()| file.sync()).map_err(unwritable)?;
    files.sync_folder(folder_of(path)).map_err(unwritable)
}

/// Appends messages, unless a crash left them at the end already.
pub fn append_once(files: &dyn Files, path: &Path, spoken: &[&ContextEntry]) -> Result<(), Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let there = files.length(path).map_err(unreadable)?.unwrap_or(0);
    let before = there.saturating_sub(text(spoken).len() as u64);
    let is_there = there > 0 && files.read(path, before).map_err(unreadable)? == text(spoken);
    if is_there { Ok(()) } else { append(files, path, spoken, there) }
}

/// Removes the last messages, which are in the window again, if nothing follows them.
pub fn remove_from_end(files: &dyn Files, path: &Path, spoken: &[&ContextEntry]) -> Result<(), Error> {
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    let text = text(spoken);
    let there = files.length(path).map_err(unwritable)?.unwrap_or(0);
    let Some(before) = there.checked_sub(text.len() as u64).filter(|_| !text.is_empty()) else { return Ok(()) };
    if files.read(path, before).map_err(unwritable)? == text {
        truncate_durably(files, path, before).map_err(unwritable)?;
    }
    Ok(())
}

fn text(spoken: &[&ContextEntry]) -> Vec<u8> {
    let events = read::all(&Chibi, &entry::lines(spoken)).events;
    write::all(&ChibiMarkdown, &Outline::of(Chibi.info().name, &events), &events)
}
