//! `steno redact --everywhere`: cleans every place where steno keeps a session. The files come first, so that nothing archives
//! or indexes the old content again; the index comes last. Each step can be repeated.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use stenograph::Registry;
use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::redact::{FindingClass, RedactionReport};
use stenograph_store::archive::CopyInfo;
use stenograph_store::index::catalogue::{SourceId, SourceRow};
use stenograph_store::index::search::{Order, SearchRequest};
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, remove, run as update_index};
use stenograph_store::layouts::files_beside;
use stenograph_store::redaction::{find_archived_secrets, redact_copy, redact_file};
use stenograph_store::sessions::strings_json;
use stenograph_store::{Passes, Problem, recover};

use super::Options;
use crate::clock;
use crate::commands::archive::{archive, archive_writer, print_warnings};
use crate::error::{CommandError, ExitStatus};
use crate::filter::query_of;
use crate::input;
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::redaction::{self, Redaction};
use crate::store::{ResolvedName, path_json};

/// The memory limit for updating the index.
const MEMORY: usize = 256 << 20;

/// Everything that holds content of a session.
struct Holders {
    rows: Vec<SourceRow>,
    /// Its files that exist, and the journals beside them, with their formats.
    files: Vec<(PathBuf, &'static dyn Format)>,
    copies: Vec<(CopyInfo, &'static dyn Format)>,
    /// Files of the agent about the session that are not transcripts. They are named, not cleaned: the agent restores files from
    /// some of them, and others belong to all sessions.
    beside: Vec<PathBuf>,
    /// Whether a mark of the session has a secret. The log of the archive keeps every mark.
    marks: MarksState,
}

/// Whether a title, tag or note that the user gave the session has a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarksState {
    Clean,
    HaveSecret,
}

/// What is masked, or would be.
#[derive(Default)]
struct Masked {
    files: RedactionReport,
    /// In all archived versions. They repeat what the files have, so they are counted apart.
    archive: RedactionReport,
    /// The undo files that were removed.
    removed: Vec<PathBuf>,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    // Only the index knows the other files and archived copies of a session.
    if store.archive().exists() && store.catalogue().is_err() {
        return Err(CommandError::new("the index is missing or damaged; without it, copies of the session may stay")
            .hint("run steno index first"));
    }
    let mut redaction = Redaction::new(&options.place)?;
    let mut holders = match holders(options, &store) {
        // An interrupted run may have removed the session from the index.
        Err(error) if error.status() == ExitStatus::No && store.catalogue().is_ok() => {
            index_again(options, &store, &[])?;
            holders(options, &store)?
        }
        found => found?,
    };
    search(&store, &holders, &mut redaction)?;
    let others = other_sessions(options, &store, &holders, &redaction)?;
    holders.marks = marks_state(&store, &holders, &redaction)?;
    if options.dry_run {
        let masked = planned(&store, &holders, &redaction)?;
        let is_something = masked.files.total() + masked.archive.total() > 0;
        report(options, "would be masked", &holders, &masked, &others, output)?;
        return Ok(if is_something { ExitStatus::Done } else { ExitStatus::No });
    }
    let mut masked = Masked::default();
    clean_files(&holders, &redaction, &mut masked)?;
    clean_archive(&store, &holders, &redaction, &mut masked, output)?;
    if store.catalogue().is_ok() {
        let sources: Vec<_> = holders.rows.iter().map(|row| row.id).collect();
        index_again(options, &store, &sources)?;
    }
    report(options, "masked", &holders, &masked, &others, output)?;
    if !options.json {
        let count = |count: usize, thing| counted(count as u64, thing);
        let (files, archived) = (count(holders.files.len(), "file"), count(holders.copies.len(), "archived source"));
        output.say(&format!("cleaned: {files}, {archived}, the index"));
        for path in masked.removed {
            output.say(&harmless_line(&format!("removed: {} (it held the old content)", path.display())));
        }
        output.say("note: backups, other machines and the provider may still have the secrets; replace them");
    }
    Ok(ExitStatus::Done)
}

fn report(
    options: &Options,
    verb: &str,
    holders: &Holders,
    masked: &Masked,
    others: &[String],
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    if options.json {
        let files: Vec<PathBuf> = holders.files.iter().map(|(path, _)| path.clone()).collect();
        let mut draft = Draft::new();
        draft.set("report", masked.files.to_json());
        draft.set("archive", masked.archive.to_json());
        draft.set("files", paths_json(&files));
        draft.set("removed", paths_json(&masked.removed));
        draft.set("not_cleaned", paths_json(&holders.beside));
        draft.set("marks_have_secrets", (holders.marks == MarksState::HaveSecret).to_string());
        draft.set("other_sessions", strings_json(others));
        return output.line(&harmless_json(&draft.render(None)));
    }
    redaction::say(&masked.files, verb, output);
    if !holders.copies.is_empty() {
        let secrets = counted(masked.archive.count_of(FindingClass::Secret), "secret");
        let personal = counted(masked.archive.count_of(FindingClass::Personal), "personal detail");
        output.say(&format!("{verb} in all archived versions: {secrets}, {personal}"));
    }
    say_beside(&holders.beside, "not cleaned", output);
    if holders.marks == MarksState::HaveSecret {
        output.say("warning: a title, tag or note that you gave the session has a secret");
        output.say("hint: change it with steno mark; the log of the archive keeps the old text, so replace the secret");
    }
    if !others.is_empty() {
        let (sessions, have) =
            (counted(others.len() as u64, "other session"), if others.len() == 1 { "has" } else { "have" });
        output.say(&format!("warning: {sessions} {have} some of these secrets:"));
        for session in others.iter().take(OTHERS_SHOWN) {
            output.say(&harmless_line(&format!("  {session}")));
        }
        if let Some(more @ 1..) = others.len().checked_sub(OTHERS_SHOWN) {
            output.say(&format!("  and {more} more; --json shows all"));
        }
        output.say("hint: clean each with steno redact SESSION --everywhere");
        output.say("hint: if no rule finds a secret there, add it to Redact.Patterns first");
    }
    Ok(())
}

/// Names the files of the agent that a redaction does not reach.
pub(super) fn say_beside(files: &[PathBuf], verb: &str, output: &mut Output<'_>) {
    for path in files.iter().take(BESIDE_SHOWN) {
        output.say(&harmless_line(&format!("{verb}: {} (the agent's own file)", path.display())));
    }
    if let Some(more @ 1..) = files.len().checked_sub(BESIDE_SHOWN) {
        output.say(&format!("{verb}: {more} more files of the agent"));
    }
    if !files.is_empty() {
        output.say("hint: search them with a secret scanner, and delete those that you do not need");
    }
}

fn marks_state(store: &Store, holders: &Holders, redaction: &Redaction) -> Result<MarksState, CommandError> {
    let Ok(catalogue) = store.catalogue() else { return Ok(MarksState::Clean) };
    let sessions: HashSet<_> = holders.rows.iter().map(|row| row.session).collect();
    for session in sessions {
        let Some(marks) = catalogue.session(session)?.map(|session| session.marks) else { continue };
        let notes = marks.notes.iter().map(|note| &note.text);
        let mut texts = marks.title.iter().chain(&marks.tags).chain(notes);
        if texts.any(|text| redaction.redactor().text(text) != text.as_str()) {
            return Ok(MarksState::HaveSecret);
        }
    }
    Ok(MarksState::Clean)
}

/// The names of files as a JSON array.
fn paths_json(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path_json(path)).collect();
    format!("[{}]", paths.join(","))
}

/// Finds all secrets before the first is masked: one file may reveal those of another.
fn search(store: &Store, holders: &Holders, redaction: &mut Redaction) -> Result<(), CommandError> {
    for (path, format) in &holders.files {
        let mut input = input::open(path, Some(format.info().name), Passes::Many)?;
        redaction.search(&mut input, &mut |_, _| {})?;
    }
    let archive = archive(store)?;
    for (copy, format) in &holders.copies {
        let found = find_archived_secrets(&archive, copy, *format, redaction.redactor())?;
        redaction.learn(found);
    }
    Ok(())
}

/// What a run masks.
fn planned(store: &Store, holders: &Holders, redaction: &Redaction) -> Result<Masked, CommandError> {
    let mut planned = Masked::default();
    for (path, format) in &holders.files {
        let mut input = input::open(path, Some(format.info().name), Passes::Many)?;
        let (report, _) = input.source.find_secrets(input.format, redaction.redactor(), &mut |_, _| {})?;
        planned.files.merge(&report);
    }
    let archive = archive(store)?;
    for (copy, format) in &holders.copies {
        planned.archive.merge(&find_archived_secrets(&archive, copy, *format, redaction.redactor())?.0);
    }
    Ok(planned)
}

/// How many secrets are looked up in the index, so that a session that consists of them does not take forever.
const SECRETS_SOUGHT: usize = 200;

/// How many events with one secret are looked at.
const EVENTS_SOUGHT: usize = 1000;

/// How many other sessions are listed for people.
const OTHERS_SHOWN: usize = 20;

/// How many files of the agent are listed for people.
const BESIDE_SHOWN: usize = 20;

/// The ids of other indexed sessions that have one of the secrets.
fn other_sessions(
    options: &Options,
    store: &Store,
    holders: &Holders,
    redaction: &Redaction,
) -> Result<Vec<String>, CommandError> {
    let mut names = BTreeSet::new();
    // Without an index there is nothing to ask.
    let Ok(mut searcher) = store.searcher() else { return Ok(Vec::new()) };
    let own: HashSet<_> = holders.rows.iter().map(|row| row.session).collect();
    let root = options.place.root();
    for secret in redaction.redactor().known_secrets().secrets().take(SECRETS_SOUGHT) {
        let Ok(text) = std::str::from_utf8(secret) else { continue };
        let phrase = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        // A secret without words cannot be asked for.
        let Ok(Some(query)) = query_of(&[], &phrase) else { continue };
        let (order, limit, within) = (Order::Newest, EVENTS_SOUGHT, root.as_deref());
        let found = searcher.find(&SearchRequest { query: &query, order, offset: 0, limit, within })?;
        let sessions: BTreeSet<_> = found.hits.iter().map(|hit| hit.session).filter(|id| !own.contains(id)).collect();
        for session in sessions {
            names.extend(searcher.session(session)?.map(|session| session.name.clone()));
        }
    }
    Ok(names.into_iter().collect())
}

fn holders(options: &Options, store: &Store) -> Result<Holders, CommandError> {
    let (mut rows, mut paths): (Vec<SourceRow>, Vec<PathBuf>) = match options.place.resolve(&options.input)? {
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
    // The index may have found a journal as a session of its own.
    let journals: Vec<PathBuf> = paths.iter().map(|path| recover::journal_path(path)).collect();
    for journal in &journals {
        let row = store.catalogue().and_then(|catalogue| catalogue.source_at(journal));
        rows.extend(row.unwrap_or_default().filter(|row| rows.iter().all(|known| known.id != row.id)));
    }
    let native = Registry::built_in().named(stenograph::wire::NAME);
    paths.extend(journals.iter().cloned());
    let (mut files, mut copies) = (Vec::new(), Vec::new());
    let archive = archive(store)?;
    for path in paths {
        let row = rows.iter().find(|row| row.path == path);
        let mut format = row.and_then(|row| Registry::built_in().named(&row.format));
        format = format.or(native.filter(|_| journals.contains(&path)));
        if path.is_file() {
            if format.is_none() {
                format = Some(input::open(&path, None, Passes::Once)?.format);
            }
            files.extend(format.map(|format| (path.clone(), format)));
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
    let mut beside: Vec<PathBuf> = files.iter().flat_map(|(path, _)| files_beside(path)).collect();
    beside.retain(|path| files.iter().all(|(file, _)| file != path));
    beside.sort();
    beside.dedup();
    Ok(Holders { rows, files, copies, beside, marks: MarksState::Clean })
}

/// Cleans the files in place and removes their undo files.
fn clean_files(holders: &Holders, redaction: &Redaction, masked: &mut Masked) -> Result<(), CommandError> {
    for (path, format) in &holders.files {
        let done = redact_file(path, *format, redaction.redactor()).map_err(|error| match error.problem {
            Problem::OpenElsewhere { .. } | Problem::Locked { .. } => {
                CommandError::from(error).hint("end the session first, then run the command again")
            }
            _ => error.into(),
        })?;
        masked.files.merge(&done.report);
        masked.removed.extend(done.undo_files);
    }
    Ok(())
}

/// Cleans all archived versions and removes the old bytes from the packs.
fn clean_archive(
    store: &Store,
    holders: &Holders,
    redaction: &Redaction,
    masked: &mut Masked,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    if !store.archive().is_dir() {
        return Ok(());
    }
    let mut writer = archive_writer(store)?;
    for (copy, format) in &holders.copies {
        masked.archive.merge(&redact_copy(&mut writer, copy, *format, redaction.redactor())?);
    }
    writer.commit(clock::millis())?;
    // An interrupted run may have left old bytes, so this runs even if nothing was masked now.
    let reclaimed = writer.reclaim_all(clock::millis())?;
    if !reclaimed.warnings.is_empty() {
        print_warnings(&reclaimed.warnings, output);
        return Err(CommandError::new("damaged parts of the archive may still hold secrets")
            .hint("run steno archive verify --repair, then run this command again"));
    }
    Ok(())
}

/// Removes sources from the index, with all words of their texts, and indexes what is new or clean.
fn index_again(options: &Options, store: &Store, sources: &[SourceId]) -> Result<(), CommandError> {
    let places = options.place.places(store)?;
    let (scope, archiving, now) = (IndexScope::All, Archiving::No, clock::nanoseconds());
    let plan = IndexPlan { places: &places, scope, archiving, memory: MEMORY, threads: 1, now };
    remove(store, sources, &plan)?;
    update_index(store, &IndexPlan { archiving: Archiving::Yes, scope: IndexScope::All, ..plan }, &mut NoObserver)?;
    Ok(())
}
