//! Copies sources into the archive without indexing them. Which file is a source is decided by what it says, as when it is indexed; what
//! the catalogue knows of it is said along, where there is one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::archive::{AddOutcome, ArchiveWriter, Change, CopyInfo, Label};
use crate::discover::Found;
use crate::files::Disk;
use crate::identity::session_of;
use crate::index::Store;
use crate::index::catalogue::Catalogue;
use crate::tail::Warning;
use crate::{Error, Passes, Source};

/// What became of the sources.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Sources that were not kept before.
    pub new: u64,
    /// Sources with something new at their end.
    pub grown: u64,
    /// Sources that were written anew; what they were is still added.
    pub rewritten: u64,
    /// Sources as they were.
    pub unchanged: u64,
    /// Sources as they were whose copies were lost or damaged and are whole again.
    pub renewed: u64,
    /// Files whose session was forgotten on purpose.
    pub forgotten: u64,
    /// Forgotten sessions that have grown since, or their files where they have no name.
    pub continued: Vec<String>,
    /// Files that are no transcripts.
    pub strangers: Vec<PathBuf>,
    /// Bytes of all sources.
    pub bytes: u64,
    /// Bytes that had to be stored, before they were compressed.
    pub added: u64,
    /// What could not be added.
    pub warnings: Vec<Warning>,
    /// Whether somebody ended it early.
    pub stopped: bool,
}

/// How many bytes are kept between two commits.
const BATCH_SIZE: u64 = 1 << 30;

/// Keeps these files. `progress` is told how many of their bytes are done, and says with `false` that it is enough.
pub fn gather(
    store: &Store,
    found: &[Found],
    now_ms: i64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Gathered, Error> {
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &store.archive())?;
    let intact = writer.copies().filter(|copy| writer.is_intact(copy.id));
    let known: HashMap<PathBuf, CopyInfo> = intact.map(|copy| (copy.path.clone(), copy)).collect();
    let catalogue = store.catalogue().ok();
    let mut gathered = Gathered { warnings: writer.warnings().to_vec(), ..Gathered::default() };
    let (mut done, mut uncommitted) = (0, 0);
    for file in found {
        if !progress(done) {
            gathered.stopped = true;
            break;
        }
        done += file.stat.size;
        let is_as_it_was =
            |copy: &&CopyInfo| copy.length == file.stat.size && copy.modified_ns == file.stat.modified_ns;
        if known.get(&file.path).filter(is_as_it_was).is_some() {
            gathered.unchanged += 1;
            gathered.bytes += file.stat.size;
            continue;
        }
        uncommitted += take(&mut writer, file, catalogue.as_ref(), &mut gathered)?;
        if uncommitted >= BATCH_SIZE {
            writer.commit(now_ms)?;
            uncommitted = 0;
        }
    }
    writer.commit(now_ms)?;
    progress(done);
    Ok(gathered)
}

/// Keeps one file; how many bytes had to be stored.
fn take(
    writer: &mut ArchiveWriter,
    file: &Found,
    catalogue: Option<&Catalogue>,
    gathered: &mut Gathered,
) -> Result<u64, Error> {
    let source = match Source::open(&file.path, Passes::Many) {
        Ok(source) => source,
        Err(error) => {
            gathered.warnings.push(Warning::new(&file.path, format!("not kept: {error}")));
            return Ok(0);
        }
    };
    let Some(format) = source.recognize(&file.named).map(|recognized| recognized.format) else {
        gathered.strangers.push(file.path.clone());
        return Ok(0);
    };
    let row = catalogue.map(|catalogue| catalogue.source_at(&file.path)).transpose()?.flatten();
    let session = match (catalogue, row) {
        (Some(catalogue), Some(row)) => catalogue.session_name(row.session)?,
        _ => None,
    };
    let stated = || session_of(file.named.session.as_deref(), Some(format), source.head());
    let label = Label { format: format.info().name.to_owned(), session: session.or_else(stated) };
    let added = match writer.add(&file.path, &label) {
        Ok(AddOutcome::Archived(added)) => added,
        Ok(AddOutcome::Forgotten) => {
            gathered.forgotten += 1;
            return Ok(0);
        }
        Ok(AddOutcome::Continued { session }) => {
            gathered.continued.push(session.unwrap_or_else(|| file.path.display().to_string()));
            return Ok(0);
        }
        // One bad file does not stop the rest; a disk that fails is told by the commit.
        Err(error) => {
            gathered.warnings.push(Warning::new(&file.path, format!("not kept: {error}")));
            return Ok(0);
        }
    };
    match added.change {
        Change::New => gathered.new += 1,
        Change::Same => gathered.unchanged += 1,
        Change::Renewed => gathered.renewed += 1,
        Change::Grown => gathered.grown += 1,
        Change::Rewritten => gathered.rewritten += 1,
    }
    gathered.bytes += added.length;
    gathered.added += added.added;
    Ok(added.added)
}
