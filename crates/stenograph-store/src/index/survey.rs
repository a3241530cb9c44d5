//! What an indexing run has to do: the files that are new or changed since they were indexed, and the sources that are gone. It
//! looks at paths, sizes and times, and lists the conversations of databases; it reads no transcript.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::catalogue::{Catalogue, FileStamp, Gone, KnownFile, SourceId};
use super::passed_over::{PassedOver, PassedOverReason};
use super::run::{Archiving, IndexPlan, IndexReport, IndexScope};
use super::{Store, change};
use crate::Error;
use crate::databases;
use crate::discover::{FoundFile, PathHints, Stat, discover_all, registry_path_hints};

/// A file to read.
#[derive(Clone, Debug)]
pub(super) struct IndexJob {
    pub path: PathBuf,
    pub stamp: FileStamp,
    pub hints: PathHints,
    pub known: Option<SourceId>,
}

/// What a run has to do.
pub(super) struct Survey {
    pub jobs: Vec<IndexJob>,
    pub gone: Vec<SourceId>,
    /// Databases that have changed. Once the run is done, all of their conversations are indexed.
    pub databases: Vec<(PathBuf, FileStamp)>,
}

/// Finds the files to read and the sources that are gone.
pub(super) fn survey(catalogue: &Catalogue, plan: &IndexPlan<'_>, report: &mut IndexReport) -> Result<Survey, Error> {
    let mut known = catalogue.stamps()?;
    if let IndexScope::Files(paths) = &plan.scope
        && paths.iter().all(|path| known.contains_key(path))
    {
        let (jobs, gone) = survey_files(paths, catalogue, &known, plan, report);
        return Ok(Survey { jobs, gone, databases: Vec::new() });
    }
    let saved = catalogue.databases()?;
    let (mut databases, mut unread) = (Vec::new(), Vec::new());
    let non_transcripts = catalogue.non_transcripts()?;
    let mut jobs = Vec::new();
    let mut ignored = PassedOver::default();
    let places = plan.places.clone().with_registry(catalogue.registry());
    let warnings =
        discover_all(&places, &mut |path| ignored.add(path, PassedOverReason::Ending), &mut |found: FoundFile| {
            let members = match databases::found_in(&found, &saved, &known) {
                Ok(members) => members,
                Err(error) => {
                    report.warnings.push(databases::warning(&found.path, &error));
                    unread.push(found.path);
                    return;
                }
            };
            let found = match members {
                None => vec![found],
                Some(members) => {
                    databases.extend(members.changed.map(|stamp| (found.path, stamp)));
                    members.files
                }
            };
            for found in found {
                report.found += 1;
                let stamp = FileStamp::from(found.stat);
                match known.remove(&found.path) {
                    Some(known) if can_skip(&known, &stamp, plan.archiving) => report.unchanged += 1,
                    Some(KnownFile { id, .. }) => {
                        jobs.push(IndexJob { path: found.path, stamp, hints: found.hints, known: Some(id) });
                    }
                    None if non_transcripts.get(&found.path) == Some(&(stamp.size, stamp.changed)) => {
                        report.non_transcripts += 1;
                        report.passed_over.add_unrecognized(&found.path, &stamp);
                    }
                    None => jobs.push(IndexJob { path: found.path, stamp, hints: found.hints, known: None }),
                }
            }
        });
    report.warnings.extend(warnings);
    report.passed_over.append(ignored);
    // The conversations of a database that cannot be read are still there.
    let is_unread = |path: &Path| databases::split(path).is_some_and(|(of, _)| unread.iter().any(|path| path == of));
    let is_there = |known: &KnownFile| known.gone == Gone::There;
    let missing = known.into_iter().filter(|(path, known)| is_there(known) && !is_unread(path) && is_missing(path));
    let gone = missing.map(|(_, known)| known.id).collect();
    Ok(Survey { jobs, gone, databases })
}

impl Store {
    /// The files and the conversations of databases whose present content is not in the archive yet. Files that are known not to
    /// be transcripts are left out, and so are databases that cannot be read.
    pub fn not_archived(&self, files: &[FoundFile]) -> Result<Vec<FoundFile>, Error> {
        let catalogue = self.catalogue()?;
        let (known, others) = (catalogue.stamps()?, catalogue.non_transcripts()?);
        let mut files = databases::expanded(files.to_vec(), &catalogue.databases()?, &known, &mut Vec::new());
        files.retain(|file| {
            let stamp = FileStamp::from(file.stat);
            match known.get(&file.path) {
                Some(known) => !known.is_archived || known.stamp != stamp,
                None => others.get(&file.path) != Some(&(stamp.size, stamp.changed)),
            }
        });
        Ok(files)
    }
}

/// Whether a known file can be skipped.
fn can_skip(known: &KnownFile, stamp: &FileStamp, archiving: Archiving) -> bool {
    known.gone == Gone::There
        && change::is_unchanged(&known.stamp, known.seen, stamp)
        && (known.is_archived || archiving == Archiving::No)
}

fn survey_files(
    paths: &[PathBuf],
    catalogue: &Catalogue,
    known: &HashMap<PathBuf, KnownFile>,
    plan: &IndexPlan<'_>,
    report: &mut IndexReport,
) -> (Vec<IndexJob>, Vec<SourceId>) {
    let (mut jobs, mut gone) = (Vec::new(), Vec::new());
    for path in paths {
        let Some(known) = known.get(path) else { continue };
        report.found += 1;
        // A path that is neither a file nor missing may be a pipe, and reading that may never end.
        match Stat::of(path).map(FileStamp::from) {
            Ok(_) if !path.is_dir() && !path.is_file() && !databases::is_conversation(path) => {}
            _ if is_missing(path) => gone.extend((known.gone == Gone::There).then_some(known.id)),
            Ok(stamp) if can_skip(known, &stamp, plan.archiving) => report.unchanged += 1,
            Ok(stamp) => {
                let hints = registry_path_hints(catalogue.registry(), path);
                jobs.push(IndexJob { path: path.clone(), stamp, hints, known: Some(known.id) });
            }
            Err(_) => {}
        }
    }
    (jobs, gone)
}

/// Whether there is no file at this path. A folder without permission to look into it proves nothing; a folder at the path
/// itself proves it.
pub(crate) fn is_missing(path: &Path) -> bool {
    use std::io::ErrorKind;
    match path.symlink_metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) && databases::is_gone(path)
        }
    }
}

impl From<Stat> for FileStamp {
    fn from(stat: Stat) -> FileStamp {
        FileStamp { device: stat.id.device, inode: stat.id.inode, size: stat.size, changed: stat.modified_ns }
    }
}
