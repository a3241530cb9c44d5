//! Copies sources into the archive without indexing them. The content decides whether a file is a source, as in indexing. If
//! there is a catalogue, it supplies the session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::archive::{AddOutcome, ArchiveWriter, CopyChange, CopyInfo, Label};
use crate::databases;
use crate::discover::FoundFile;
use crate::files::Disk;
use crate::identity::session_of;
use crate::index::Store;
use crate::index::catalogue::Catalogue;
use crate::tail::Warning;
use crate::{Error, Passes, Source};

/// The result of archiving files.
#[derive(Debug, Default)]
pub struct ArchiveReport {
    /// Sources without a copy before.
    pub new: u64,
    /// Sources that grew.
    pub grown: u64,
    /// Sources that were rewritten; the archive still has their old content.
    pub rewritten: u64,
    /// Unchanged sources.
    pub unchanged: u64,
    /// Unchanged sources whose copies were lost or damaged and are whole again.
    pub renewed: u64,
    /// Files of forgotten sessions.
    pub forgotten: u64,
    /// Forgotten sessions that have grown since, or their files if they have no name.
    pub continued: Vec<String>,
    /// Files that are not transcripts.
    pub non_transcripts: Vec<PathBuf>,
    /// The size of all sources.
    pub bytes: u64,
    /// The number of bytes stored, before compression.
    pub added: u64,
    /// Files that could not be archived.
    pub warnings: Vec<Warning>,
    /// Whether the caller stopped early.
    pub stopped: bool,
}

/// How many bytes are archived between two commits.
const BATCH_SIZE: u64 = 1 << 30;

/// Archives these files. `progress` receives how many of their bytes are done, and returns `false` to stop.
pub fn archive_files(
    store: &Store,
    found: &[FoundFile],
    now_ms: i64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<ArchiveReport, Error> {
    let mut writer = ArchiveWriter::open(Arc::new(Disk), &store.archive())?;
    let intact = writer.copies().filter(|copy| writer.is_intact(copy.id));
    let known: HashMap<PathBuf, CopyInfo> = intact.map(|copy| (copy.path.clone(), copy)).collect();
    let catalogue = store.catalogue().ok();
    let mut unread = Vec::new();
    let found = &databases::expanded(found.to_vec(), &HashMap::new(), &HashMap::new(), &mut unread);
    let mut report = ArchiveReport { warnings: writer.warnings().to_vec(), ..ArchiveReport::default() };
    report.warnings.append(&mut unread);
    let (mut done, mut uncommitted) = (0, 0);
    for file in found {
        if !progress(done) {
            report.stopped = true;
            break;
        }
        done += file.stat.size;
        let is_as_it_was =
            |copy: &&CopyInfo| copy.length == file.stat.size && copy.modified_ns == file.stat.modified_ns;
        if known.get(&file.path).filter(is_as_it_was).is_some() {
            report.unchanged += 1;
            report.bytes += file.stat.size;
            continue;
        }
        uncommitted += archive_file(&mut writer, file, catalogue.as_ref(), &mut report)?;
        if uncommitted >= BATCH_SIZE {
            writer.commit(now_ms)?;
            uncommitted = 0;
        }
    }
    writer.commit(now_ms)?;
    progress(done);
    Ok(report)
}

/// Archives one file. Returns how many bytes were stored.
fn archive_file(
    writer: &mut ArchiveWriter,
    file: &FoundFile,
    catalogue: Option<&Catalogue>,
    report: &mut ArchiveReport,
) -> Result<u64, Error> {
    let source = match Source::open(&file.path, Passes::Many) {
        Ok(source) => source,
        Err(error) => {
            report.warnings.push(Warning::new(&file.path, format!("not archived: {error}")));
            return Ok(0);
        }
    };
    let Some(format) = source.recognize(&file.hints).map(|recognized| recognized.format) else {
        report.non_transcripts.push(file.path.clone());
        return Ok(0);
    };
    let row = catalogue.map(|catalogue| catalogue.source_at(&file.path)).transpose()?.flatten();
    let session = match (catalogue, row) {
        (Some(catalogue), Some(row)) => catalogue.session_name(row.session)?,
        _ => None,
    };
    let stated = || session_of(file.hints.session.as_deref(), Some(format), source.head());
    let label = Label { format: format.info().name.to_owned(), session: session.or_else(stated) };
    let added = match writer.add(&file.path, &label) {
        Ok(AddOutcome::Archived(added)) => added,
        Ok(AddOutcome::Forgotten) => {
            report.forgotten += 1;
            return Ok(0);
        }
        Ok(AddOutcome::Continued { session }) => {
            report.continued.push(session.unwrap_or_else(|| file.path.display().to_string()));
            return Ok(0);
        }
        // One bad file does not stop the rest; the commit reports a failing disk.
        Err(error) => {
            report.warnings.push(Warning::new(&file.path, format!("not archived: {error}")));
            return Ok(0);
        }
    };
    match added.change {
        CopyChange::New => report.new += 1,
        CopyChange::Same => report.unchanged += 1,
        CopyChange::Renewed => report.renewed += 1,
        CopyChange::Grown => report.grown += 1,
        CopyChange::Rewritten => report.rewritten += 1,
    }
    report.bytes += added.length;
    report.added += added.added;
    Ok(added.added)
}
