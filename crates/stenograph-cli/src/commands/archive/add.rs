//! `steno archive add`: copies sources into the archive, and indexes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stenograph::json::Draft;
use stenograph_store::Warning;
use stenograph_store::archive_sources::{ArchiveReport, archive_files};
use stenograph_store::discover::{FoundFile, Places, Stat, discover, path_hints};
use stenograph_store::index::Store;

use super::{archive, remarks_json, strings_json, tell_continued, tell_remarks};
use crate::clock;
use crate::error::{CommandError, Status};
use crate::output::{Output, harmless_json};
use crate::progress::Progress;
use crate::store::{self, Where};

/// Copy transcripts into the archive, without indexing them
///
/// Copies everything that steno index would find, or only the files and folders named here. What the archive has already is not stored
/// again: a file that has grown costs its new bytes. steno index copies too, so this is only needed where nothing is to be indexed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive add
  steno archive add ~/transcripts session.jsonl

Exit codes: 0 done, 1 nothing was found, 2 error")]
pub struct Options {
    /// Only these files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let store = options.place.store()?;
    let stop = Arc::new(AtomicBool::new(false));
    store::on_interrupt(&stop);
    let mut warnings = Vec::new();
    let mut found = Vec::new();
    if options.paths.is_empty() {
        warnings = discover(&options.place.places(&store)?, &mut |file| found.push(file));
    }
    for path in &options.paths {
        warnings.extend(find(path, &store, &mut found)?);
    }
    let bar = Progress::rate("keeping", found.iter().map(|file| file.stat.size).sum());
    let report = archive_files(&store, &found, clock::millis(), &mut |done| {
        bar.at(done);
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    warnings.extend(report.warnings.iter().cloned());
    if !options.paths.is_empty() {
        // Files that were named, however they were spelled; a folder may hold anything.
        let is_stranger =
            |path: &&PathBuf| std::fs::canonicalize(path).is_ok_and(|path| report.non_transcripts.contains(&path));
        let non_transcripts = options.paths.iter().filter(is_stranger);
        warnings.extend(non_transcripts.map(|path| Warning::new(path, "not kept: it is of no known format")));
    }
    tell(options, &report, &warnings, &store, output)?;
    let known = report.unchanged + report.renewed + report.forgotten + report.continued.len() as u64;
    let nothing = report.new + report.grown + report.rewritten + known == 0;
    Ok(if nothing && !report.stopped { Status::No } else { Status::Done })
}

/// What there is at a path: a file as it is, a folder with all that is below it.
fn find(path: &Path, store: &Store, found: &mut Vec<FoundFile>) -> Result<Vec<Warning>, CommandError> {
    let whole = std::fs::canonicalize(path).map_err(|error| {
        CommandError::new(format!("{}: cannot be read: {error}", path.display()))
            .hint("check the spelling; steno archive add alone looks where agents write")
    })?;
    if whole.is_dir() {
        let mut places = Places::below(whole);
        places.excluded.push(store.folder().to_owned());
        return Ok(discover(&places, &mut |file| found.push(file)));
    }
    if !whole.is_file() {
        return Err(CommandError::new(format!("{}: is not a regular file", path.display()))
            .hint("the archive holds files; write what a pipe gives to a file first"));
    }
    let stat = Stat::of(&whole).map_err(|error| CommandError::new(format!("{}: {error}", path.display())))?;
    let hints = path_hints(&whole);
    found.push(FoundFile { path: whole, stat, hints });
    Ok(Vec::new())
}

fn tell(
    options: &Options,
    report: &ArchiveReport,
    warnings: &[Warning],
    store: &Store,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let size = archive(store)?.size();
    if options.json {
        let mut draft = Draft::new();
        let numbers = [
            ("new", report.new),
            ("grown", report.grown),
            ("rewritten", report.rewritten),
            ("unchanged", report.unchanged),
            ("renewed", report.renewed),
            ("forgotten", report.forgotten),
            ("strangers", report.non_transcripts.len() as u64),
            ("bytes", report.bytes),
            ("added", report.added),
            ("archive", size.stored),
        ];
        numbers.into_iter().for_each(|(name, number)| draft.set_number(name, Some(number)));
        draft.set("continued", strings_json(&report.continued));
        draft.set("stopped", report.stopped.to_string());
        draft.set("remarks", remarks_json(warnings));
        return output.line(&harmless_json(&draft.render(None)));
    }
    tell_remarks(warnings, output);
    tell_continued(&report.continued, output);
    let counts = [
        (report.new, "new"),
        (report.grown, "grown"),
        (report.rewritten, "rewritten"),
        (report.unchanged, "unchanged"),
        (report.renewed, "archived again because their copies were lost"),
        (report.forgotten, "forgotten"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if counts.is_empty() {
        output.say("no transcripts found");
        output.say("hint: steno formats says where transcripts are looked for; name a folder of others, or --root DIR");
        return Ok(());
    }
    let (added, sources, stored) = (store::bytes(report.added), store::bytes(size.sources), store::bytes(size.stored));
    output.say(&format!("{}; {added} kept; the archive has {sources} in {stored}", counts.join(", ")));
    if report.stopped {
        output.say("stopped: what is done is kept, and the next run goes on from there");
    }
    Ok(())
}
