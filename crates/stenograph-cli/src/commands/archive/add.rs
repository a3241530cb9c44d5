//! `steno archive add`: copies sources into the archive, and indexes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stenograph::json::Draft;
use stenograph_store::Warning;
use stenograph_store::archive_sources::{Gathered, gather};
use stenograph_store::discover::{Found, Places, Stat, discover, place_of};
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
    let gathered = gather(&store, &found, clock::millis(), &mut |done| {
        bar.at(done);
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    warnings.extend(gathered.warnings.iter().cloned());
    if !options.paths.is_empty() {
        // Files that were named, however they were spelled; a folder may hold anything.
        let is_stranger =
            |path: &&PathBuf| std::fs::canonicalize(path).is_ok_and(|path| gathered.strangers.contains(&path));
        let strangers = options.paths.iter().filter(is_stranger);
        warnings.extend(strangers.map(|path| Warning::new(path, "not kept: it is of no known format")));
    }
    tell(options, &gathered, &warnings, &store, output)?;
    let known = gathered.unchanged + gathered.renewed + gathered.forgotten + gathered.continued.len() as u64;
    let nothing = gathered.new + gathered.grown + gathered.rewritten + known == 0;
    Ok(if nothing && !gathered.stopped { Status::No } else { Status::Done })
}

/// What there is at a path: a file as it is, a folder with all that is below it.
fn find(path: &Path, store: &Store, found: &mut Vec<Found>) -> Result<Vec<Warning>, CommandError> {
    let whole = std::fs::canonicalize(path).map_err(|error| {
        CommandError::new(format!("{}: cannot be read: {error}", path.display()))
            .hint("check the spelling; steno archive add alone looks where agents write")
    })?;
    if whole.is_dir() {
        let mut places = Places::below(whole);
        places.passed_over.push(store.folder().to_owned());
        return Ok(discover(&places, &mut |file| found.push(file)));
    }
    if !whole.is_file() {
        return Err(CommandError::new(format!("{}: is not a regular file", path.display()))
            .hint("the archive holds files; write what a pipe gives to a file first"));
    }
    let stat = Stat::of(&whole).map_err(|error| CommandError::new(format!("{}: {error}", path.display())))?;
    let named = place_of(&whole);
    found.push(Found { path: whole, stat, named });
    Ok(Vec::new())
}

fn tell(
    options: &Options,
    gathered: &Gathered,
    warnings: &[Warning],
    store: &Store,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let size = archive(store)?.size();
    if options.json {
        let mut draft = Draft::new();
        let numbers = [
            ("new", gathered.new),
            ("grown", gathered.grown),
            ("rewritten", gathered.rewritten),
            ("unchanged", gathered.unchanged),
            ("renewed", gathered.renewed),
            ("forgotten", gathered.forgotten),
            ("strangers", gathered.strangers.len() as u64),
            ("bytes", gathered.bytes),
            ("added", gathered.added),
            ("archive", size.stored),
        ];
        numbers.into_iter().for_each(|(name, number)| draft.set_number(name, Some(number)));
        draft.set("continued", strings_json(&gathered.continued));
        draft.set("stopped", gathered.stopped.to_string());
        draft.set("remarks", remarks_json(warnings));
        return output.line(&harmless_json(&draft.render(None)));
    }
    tell_remarks(warnings, output);
    tell_continued(&gathered.continued, output);
    let counts = [
        (gathered.new, "new"),
        (gathered.grown, "grown"),
        (gathered.rewritten, "rewritten"),
        (gathered.unchanged, "unchanged"),
        (gathered.renewed, "archived again because their copies were lost"),
        (gathered.forgotten, "forgotten"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if counts.is_empty() {
        output.say("no transcripts found");
        output.say("hint: steno formats says where transcripts are looked for; name a folder of others, or --root DIR");
        return Ok(());
    }
    let (added, sources, stored) =
        (store::bytes(gathered.added), store::bytes(size.sources), store::bytes(size.stored));
    output.say(&format!("{}; {added} kept; the archive has {sources} in {stored}", counts.join(", ")));
    if gathered.stopped {
        output.say("stopped: what is done is kept, and the next run goes on from there");
    }
    Ok(())
}
