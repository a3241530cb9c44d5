//! `steno redact --everywhere`: cleans every place where steno keeps a session. The files come first, so that nothing archives
//! or indexes the old content again; the index comes last. Each step can be repeated.

use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::format::Format;
use stenograph::redact::RedactionReport;
use stenograph_store::archive::CopyInfo;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, remove, run as update_index};
use stenograph_store::redaction::{find_archived_secrets, redact_copy, redact_file};
use stenograph_store::{Passes, Problem, recover};

use super::{Options, report_json};
use crate::clock;
use crate::commands::archive::{archive, archive_writer, print_warnings};
use crate::error::{CommandError, ExitStatus};
use crate::input;
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::redaction::{self, Redaction};
use crate::store::ResolvedName;

/// The memory limit for updating the index.
const MEMORY: usize = 256 << 20;

/// Everything that holds content of a session.
struct Holders {
    rows: Vec<SourceRow>,
    /// Its files that exist, and the journals beside them, with their formats.
    files: Vec<(PathBuf, &'static dyn Format)>,
    copies: Vec<(CopyInfo, &'static dyn Format)>,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    let mut redaction = Redaction::new(&options.place)?;
    let holders = holders(options, &store)?;
    for (path, format) in &holders.files {
        let mut input = input::open(path, Some(format.info().name), Passes::Many)?;
        redaction.search(&mut input, &mut |_, _| {})?;
    }
    {
        let archive = archive(&store)?;
        for (copy, format) in &holders.copies {
            let known = find_archived_secrets(&archive, copy, *format, redaction.redactor())?;
            redaction.learn((RedactionReport::default(), known));
        }
    }
    if options.dry_run {
        match options.json {
            true => output.line(&harmless_json(&redaction.found().to_json()))?,
            false => redaction::say(redaction.found(), "would be masked", output),
        }
        return Ok(if redaction.found().total() > 0 { ExitStatus::Done } else { ExitStatus::No });
    }
    let removed = clean_files(&holders, &mut redaction)?;
    let archived = clean_archive(&store, &holders, &mut redaction, output)?;
    clean_index(options, &store, &holders)?;
    let files: Vec<PathBuf> = holders.files.iter().map(|(path, _)| path.clone()).collect();
    if options.json {
        output.line(&harmless_json(&report_json(redaction.masked(), &files, &removed)))?;
        return Ok(ExitStatus::Done);
    }
    redaction.report(output);
    let (files, archived) = (counted(files.len() as u64, "file"), counted(archived, "archived source"));
    output.say(&format!("cleaned: {files}, {archived}, the index"));
    for path in removed {
        output.say(&harmless_line(&format!("removed: {} (it held the old content)", path.display())));
    }
    output.say("note: backups, other machines and the provider may still have the secrets; replace them");
    Ok(ExitStatus::Done)
}

fn holders(options: &Options, store: &Store) -> Result<Holders, CommandError> {
    let (rows, paths) = match options.place.resolve(&options.input)? {
        ResolvedName::Session(session) => {
            let paths = session.sources.iter().map(|row| row.path.clone()).collect();
            (session.sources.clone(), paths)
        }
        ResolvedName::File(path) => {
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            match options.place.known(&path) {
                Some((store, row)) => {
                    let rows = store.catalogue()?.sources_of(row.session)?;
                    let paths = rows.iter().map(|row| row.path.clone()).collect();
                    (rows, paths)
                }
                None => (Vec::new(), vec![path]),
            }
        }
    };
    let (mut files, mut copies) = (Vec::new(), Vec::new());
    let archive = archive(store)?;
    for path in paths {
        let row = rows.iter().find(|row| row.path == path);
        let mut format = row.and_then(|row| Registry::built_in().named(&row.format));
        if path.is_file() {
            if format.is_none() {
                format = Some(input::open(&path, None, Passes::Once)?.format);
            }
            files.extend(format.map(|format| (path.clone(), format)));
            files.extend(journal_of(&path));
        }
        let numbered = row.and_then(|row| row.archive_copy.as_deref()).and_then(|copy| copy.parse().ok());
        let numbered = numbered.and_then(|copy| archive.copy(stenograph_store::archive::CopyId(copy)));
        for copy in numbered.into_iter().chain(archive.copy_at(&path)) {
            let named = Registry::built_in().named(&copy.label.format).or(format);
            if let Some(format) = named.filter(|_| copies.iter().all(|(known, _): &(CopyInfo, _)| known.id != copy.id))
            {
                copies.push((copy, format));
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files.dedup_by(|(one, _), (other, _)| one == other);
    if files.is_empty() && copies.is_empty() {
        return Err(CommandError::not_found(format!("{}: no file and no archived copy", options.input.display()))
            .hint("list sessions with steno list"));
    }
    Ok(Holders { rows, files, copies })
}

/// The journal beside a file.
fn journal_of(path: &Path) -> Option<(PathBuf, &'static dyn Format)> {
    let journal = recover::journal_path(path);
    let native = Registry::built_in().named(stenograph::wire::NAME)?;
    journal.is_file().then_some((journal, native))
}

/// Cleans the files in place. Returns the undo files that were removed.
fn clean_files(holders: &Holders, redaction: &mut Redaction) -> Result<Vec<PathBuf>, CommandError> {
    let mut removed = Vec::new();
    for (path, format) in &holders.files {
        let done = redact_file(path, *format, redaction.redactor()).map_err(|error| match error.problem {
            Problem::OpenElsewhere { .. } | Problem::Locked { .. } => {
                CommandError::from(error).hint("end the session first, then run the command again")
            }
            _ => error.into(),
        })?;
        redaction.add(&done.report);
        removed.extend(done.undo_files);
    }
    Ok(removed)
}

/// Cleans all archived versions and removes the old bytes from the packs. Returns the number of copies.
fn clean_archive(
    store: &Store,
    holders: &Holders,
    redaction: &mut Redaction,
    output: &mut Output<'_>,
) -> Result<u64, CommandError> {
    if !store.archive().is_dir() {
        return Ok(0);
    }
    let mut writer = archive_writer(store)?;
    for (copy, format) in &holders.copies {
        let report = redact_copy(&mut writer, copy, *format, redaction.redactor())?;
        redaction.add(&report);
    }
    writer.commit(clock::millis())?;
    // An interrupted run may have left old bytes, so this runs even if nothing was masked now.
    let reclaimed = writer.reclaim_all(clock::millis())?;
    if !reclaimed.warnings.is_empty() {
        print_warnings(&reclaimed.warnings, output);
        return Err(CommandError::new("damaged parts of the archive may still hold secrets")
            .hint("run steno archive verify --repair, then run this command again"));
    }
    Ok(holders.copies.len() as u64)
}

/// Removes the sources from the index, with all words of their texts, and indexes the clean ones.
fn clean_index(options: &Options, store: &Store, holders: &Holders) -> Result<(), CommandError> {
    if store.catalogue().is_err() {
        return Ok(());
    }
    let sources: Vec<_> = holders.rows.iter().map(|row| row.id).collect();
    let places = options.place.places(store)?;
    let (scope, archiving, now) = (IndexScope::All, Archiving::No, clock::nanoseconds());
    let plan = IndexPlan { places: &places, scope, archiving, memory: MEMORY, threads: 1, now };
    remove(store, &sources, &plan)?;
    update_index(store, &IndexPlan { archiving: Archiving::Yes, scope: IndexScope::All, ..plan }, &mut NoObserver)?;
    Ok(())
}
