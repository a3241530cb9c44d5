//! Opens a source that the catalogue knows, where it stands, or as it was kept when it is gone. What it says is for readers.

use super::Store;
use super::archive_worker::{Kept, copy_of};
use super::catalogue::SourceRow;
use crate::{Error, Passes, Place, Problem, Source};

/// Where the bytes of a source come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// From where it stands.
    InPlace,
    /// From the archive: it is gone.
    InArchive,
}

impl Store {
    /// Opens an earlier version of a source, which only the archive has. One that is not kept is missing.
    pub fn open_version(&self, row: &SourceRow, version: u32) -> Result<Source, Error> {
        let place = Place::Path(row.path.clone());
        let kept = Kept::open(self)?;
        let stream = copy_of(row).map(|copy| kept.read_version(copy, version, 0)).transpose()?.flatten();
        match stream {
            Some(stream) => Source::spooled(place, stream),
            None => Err(Error::new(&place, Problem::NotKept)),
        }
    }

    /// Opens a source, from the archive when it is gone. One that was not kept either is missing.
    pub fn open_source(&self, row: &SourceRow) -> Result<(Source, Held), Error> {
        let missing = match Source::open(&row.path, Passes::Once) {
            Ok(source) => return Ok((source, Held::InPlace)),
            Err(error) if error.problem == Problem::Missing => error,
            Err(error) => return Err(error),
        };
        let kept = Kept::open(self)?;
        let place = Place::Path(row.path.clone());
        match kept.read(row, 0)? {
            Some(stream) => Ok((Source::spooled(place, stream)?, Held::InArchive)),
            None => Err(missing),
        }
    }
}
