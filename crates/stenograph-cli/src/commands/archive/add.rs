//! `steno archive add`: copies sources into the archive without indexing them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stenograph::json::Draft;
use stenograph_store::Warning;
use stenograph_store::archive_sources::{ArchiveReport, archive_files};
use stenograph_store::databases;
use stenograph_store::discover::{FoundFile, Places, Stat, discover, path_hints};
use stenograph_store::index::Store;

use super::{archive, print_continued, print_warnings, strings_json, warnings_json};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, harmless_json};
use crate::progress::SourceProgress;
use crate::store::{self, StoreArgs};

/// Copy transcripts into the archive, without indexing them
///
/// Copies everything that steno index would find, or only the files and folders named here. Content that is already in the archive is
/// not stored again. steno index archives too, so use this only to archive without indexing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive add
  steno archive add ~/transcripts session.jsonl

Exit codes: 0 success, 1 nothing found, 2 error")]
pub struct Options {
    /// Archive only these files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    place: StoreArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
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
    let bar = SourceProgress::rate("keeping", found.iter().map(|file| file.stat.size).sum());
    let archived = archive_files(&store, &found, clock::millis(), &mut |done| {
        bar.at(done);
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    warnings.extend(archived.warnings.iter().cloned());
    if !options.paths.is_empty() {
        // Only files named on the command line, in any spelling; a folder may contain anything.
        let is_stranger =
            |path: &&PathBuf| std::fs::canonicalize(path).is_ok_and(|path| archived.non_transcripts.contains(&path));
        let strangers = options.paths.iter().filter(is_stranger);
        warnings.extend(strangers.map(|path| Warning::new(path, "not archived: unknown format")));
    }
    report(options, &archived, &warnings, &store, output)?;
    let known = archived.unchanged + archived.renewed + archived.forgotten + archived.continued.len() as u64;
    let nothing = archived.new + archived.grown + archived.rewritten + known == 0;
    Ok(if nothing && !archived.stopped { ExitStatus::No } else { ExitStatus::Done })
}

/// Finds the sources at a path: the file itself, or everything below a folder.
fn find(path: &Path, store: &Store, found: &mut Vec<FoundFile>) -> Result<Vec<Warning>, CommandError> {
    let whole = databases::canonical(path).map_err(|error| {
        CommandError::new(format!("{}: cannot read: {error}", path.display()))
            .hint("check the spelling; without a path, steno archive add looks where agents write")
    })?;
    if whole.is_dir() {
        let mut places = Places::below(whole);
        places.excluded.push(store.folder().to_owned());
        return Ok(discover(&places, &mut |file| found.push(file)));
    }
    if !whole.is_file() && !databases::is_conversation(&whole) {
        return Err(CommandError::new(format!("{}: not a regular file", path.display()))
            .hint("write the output of a pipe to a file first"));
    }
    let stat = Stat::of(&whole).map_err(|error| CommandError::new(format!("{}: {error}", path.display())))?;
    let hints = path_hints(&whole);
    found.push(FoundFile { path: whole, stat, hints });
    Ok(Vec::new())
}

fn report(
    options: &Options,
    archived: &ArchiveReport,
    warnings: &[Warning],
    store: &Store,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let size = archive(store)?.size();
    if options.json {
        let mut draft = Draft::new();
        let numbers = [
            ("new", archived.new),
            ("grown", archived.grown),
            ("rewritten", archived.rewritten),
            ("unchanged", archived.unchanged),
            ("renewed", archived.renewed),
            ("forgotten", archived.forgotten),
            ("strangers", archived.non_transcripts.len() as u64),
            ("bytes", archived.bytes),
            ("added", archived.added),
            ("archive", size.stored),
        ];
        numbers.into_iter().for_each(|(name, number)| draft.set_number(name, Some(number)));
        draft.set("continued", strings_json(&archived.continued));
        draft.set("stopped", archived.stopped.to_string());
        draft.set("remarks", warnings_json(warnings));
        return output.line(&harmless_json(&draft.render(None)));
    }
    print_warnings(warnings, output);
    print_continued(&archived.continued, output);
    let counts = [
        (archived.new, "new"),
        (archived.grown, "grown"),
        (archived.rewritten, "rewritten"),
        (archived.unchanged, "unchanged"),
        (archived.renewed, "archived again because the copies were lost"),
        (archived.forgotten, "pruned earlier"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if counts.is_empty() {
        output.say("no transcripts found");
        output.say("hint: steno formats lists where steno looks; name another folder, or use --root DIR");
        return Ok(());
    }
    let (added, sources, stored) =
        (store::bytes(archived.added), store::bytes(size.sources), store::bytes(size.stored));
    output.say(&format!("{}; {added} archived; the archive stores {sources} in {stored}", counts.join(", ")));
    if archived.stopped {
        output.say("stopped: the next run continues from here");
    }
    Ok(())
}
