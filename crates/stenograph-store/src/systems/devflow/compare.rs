//! Reads archives: each entry in turn, checked before use, and all of them compared with their source folder. Archives are
//! untrusted: entries that lead out of their run, and links, are refused.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;

use super::tree::{ENTRIES_MAX, PathKind, TreeEntry, path_within};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::layouts::rewrite::are_equal;
use crate::source::{Passes, Source};

/// Whether an archive and a folder have the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveComparison {
    /// Every file and folder, byte for byte, and nothing else.
    Same,
    /// They differ.
    Differs,
}

/// Receives an entry: its path below the run, its header and its bytes.
type EntryVisitor<'a> = dyn FnMut(&Path, &tar::Header, &mut dyn Read) -> Result<(), Error> + 'a;

/// Passes the entries of an archive, without the run's own folder, to `visit`, and reads it to its very end, where its checksum
/// is.
pub fn each_entry(archive: &Path, run: &str, visit: &mut EntryVisitor<'_>) -> Result<(), Error> {
    let mut source = Source::open(archive, Passes::Once)?;
    let mut archive_reader = tar::Archive::new(source.pass()?);
    let mut count = 0;
    for entry in archive_reader.entries().map_err(|error| explain(archive, error))? {
        let mut entry = entry.map_err(|error| explain(archive, error))?;
        count += 1;
        if count > ENTRIES_MAX {
            return Err(Error::about(archive, Problem::TooMany { most: ENTRIES_MAX as u64 }));
        }
        let header = entry.header().clone();
        let within = entry.path().ok().and_then(|path| path_within(&path, run));
        let Some(path) = within.filter(|_| kind_of(&header) != PathKind::Odd) else {
            return Err(Error::about(archive, Problem::LeadsOut));
        };
        if !path.as_os_str().is_empty() {
            visit(&path, &header, &mut entry)?;
        } else if kind_of(&header) != PathKind::Folder {
            return Err(Error::about(archive, Problem::LeadsOut));
        }
    }
    if count == 0 {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is empty");
        return Err(Error::at(archive, Problem::Unreadable, error));
    }
    let rest = io::copy(&mut archive_reader.into_inner(), &mut io::sink());
    rest.map(|_| ()).map_err(|error| explain(archive, error))
}

/// The kind of an entry. Only files and folders are supported.
pub fn kind_of(header: &tar::Header) -> PathKind {
    match header.entry_type() {
        tar::EntryType::Regular | tar::EntryType::Continuous => PathKind::File { size: header.size().unwrap_or(0) },
        tar::EntryType::Directory => PathKind::Folder,
        _ => PathKind::Odd,
    }
}

/// Compares an archive with its source folder.
pub fn matches(
    files: &dyn Files,
    archive: &Path,
    folder: &Path,
    run: &str,
    entries: &[TreeEntry],
) -> Result<ArchiveComparison, Error> {
    let mut left: HashMap<&Path, PathKind> = entries.iter().map(|entry| (entry.path.as_path(), entry.kind)).collect();
    let mut verdict = ArchiveComparison::Same;
    each_entry(archive, run, &mut |path, header, content| {
        let same = match (left.remove(path), kind_of(header)) {
            (Some(PathKind::Folder), PathKind::Folder) => true,
            (Some(PathKind::File { .. }), PathKind::File { .. }) => {
                let path = folder.join(path);
                let unreadable = |error| Error::at(&path, Problem::Unreadable, error);
                let mut original = files.reader(&path, 0).map_err(unreadable)?;
                are_equal(content, original.as_mut()).map_err(|error| explain(archive, error))?
            }
            _ => false,
        };
        if !same {
            verdict = ArchiveComparison::Differs;
        }
        Ok(())
    })?;
    Ok(if left.is_empty() { verdict } else { ArchiveComparison::Differs })
}

/// Why an archive could not be read.
pub fn explain(archive: &Path, error: io::Error) -> Error {
    match Error::inside(&error) {
        Some(inside) => Error::new(&inside.place, inside.problem),
        None => Error::at(archive, Problem::Unreadable, error),
    }
}
