//! Opens a source that the catalogue knows: the file, or the archived copy if the file is gone. It does not read events.

use super::Store;
use super::archive_worker::{ArchiveReader, copy_of};
use super::catalogue::SourceRow;
use crate::{Error, Passes, Place, Problem, Source};

/// Where the bytes of a source come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// From the file itself.
    InPlace,
    /// From the archive, because the file is gone.
    InArchive,
}

impl Store {
    /// Opens an earlier version of a source, which only the archive has. Fails with [`Problem::NotKept`] if it is not archived.
    pub fn open_version(&self, row: &SourceRow, version: u32) -> Result<Source, Error> {
        let place = Place::Path(row.path.clone());
        let archive = ArchiveReader::open(self)?;
        let stream = copy_of(row).map(|copy| archive.read_version(copy, version, 0)).transpose()?.flatten();
        match stream {
            Some(stream) => Source::spooled(place, stream),
            None => Err(Error::new(&place, Problem::NotKept)),
        }
    }

    /// Opens a source, from the archive if the file is gone. Fails with [`Problem::Missing`] if it is not archived either.
    pub fn open_source(&self, row: &SourceRow) -> Result<(Source, SourceLocation), Error> {
        let missing = match Source::open(&row.path, Passes::Once) {
            Ok(source) => return Ok((source, SourceLocation::InPlace)),
            Err(error) if matches!(error.problem, Problem::Missing | Problem::NoSuchConversation) => error,
            Err(error) => return Err(error),
        };
        let archive = ArchiveReader::open(self)?;
        let place = Place::Path(row.path.clone());
        match archive.read(row, 0)? {
            Some(stream) => Ok((Source::spooled(place, stream)?, SourceLocation::InArchive)),
            None => Err(missing),
        }
    }
}
