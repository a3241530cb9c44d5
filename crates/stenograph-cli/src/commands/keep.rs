//! `steno keep`: copies sources into the archive, and gives them back. What a copy is is the store's business; what each action does is
//! in `keep/`.

mod folder;
mod list;
mod recall;
mod restore;
mod shelf;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use stenograph::json::Draft;
use stenograph_store::archive::{Archive, CopyInfo, Keeper};
use stenograph_store::discover::{Found, Named, Places, Stat, discover};
use stenograph_store::files::Disk;
use stenograph_store::gather::{Gathered, gather};
use stenograph_store::index::Store;
use stenograph_store::{Problem, Remark};

use crate::error::{CommandError, Status};
use crate::output::{Output, harmless_json};
use crate::progress::Progress;
use crate::store::{self, Where};
use crate::{clock, output};
pub(super) use shelf::{Held, Shelf};

/// Copy what agents wrote into the archive, check it, and give it back
///
/// Copies everything that steno index would find, or the files and folders named here, into the archive, and indexes nothing. What is there
/// already is not stored again: a file that has grown costs its new bytes. A copy stays when the agent deletes its file. steno index
/// keeps too, so that this is only needed where nothing is to be indexed.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  steno keep                                everything on this machine
  steno keep ~/transcripts session.jsonl    only these
  steno keep verify                         is every copy still what it was?
  steno keep restore 0198f2c4               give a session's files back, byte for byte
  steno keep list
  steno keep folder add ~/transcripts       look there too, from now on

A file that is called like an action is named ./list.

Exit codes: 0 done, 1 no (something is damaged, or nothing was found), 2 error"
)]
pub struct Options {
    /// Only these files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    /// What else to do
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Verify(verify::Options),
    Restore(restore::Options),
    List(list::Options),
    Recall(recall::Options),
    Folder(folder::Options),
}

/// How many remarks are told.
const REMARKS_MAX: usize = 20;

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match &options.action {
        None => keep(options, output),
        Some(Action::Verify(options)) => verify::run(options, output),
        Some(Action::Restore(options)) => restore::run(options, output),
        Some(Action::List(options)) => list::run(options, output),
        Some(Action::Recall(options)) => recall::run(options, output),
        Some(Action::Folder(options)) => folder::run(options, output),
    }
}

/// The archive, to read.
pub(super) fn archive(store: &Store) -> Result<Archive, CommandError> {
    Ok(Archive::open(Arc::new(Disk), &store.archive())?)
}

/// The archive, to write.
pub(super) fn keeper(store: &Store) -> Result<Keeper, CommandError> {
    Ok(Keeper::open(Arc::new(Disk), &store.archive())?)
}

fn keep(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let store = options.place.store()?;
    let stop = Arc::new(AtomicBool::new(false));
    store::on_interrupt(&stop);
    let mut remarks = Vec::new();
    let mut found = Vec::new();
    if options.paths.is_empty() {
        remarks = discover(&options.place.places(&store)?, &mut |file| found.push(file));
    }
    for path in &options.paths {
        remarks.extend(find(path, &store, &mut found)?);
    }
    let bar = Progress::rate("keeping", found.iter().map(|file| file.stat.size).sum());
    let gathered = gather(&store, &found, clock::millis(), &mut |done| {
        bar.at(done);
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    remarks.extend(gathered.remarks.iter().cloned());
    if !options.paths.is_empty() {
        let stranger = |path: &PathBuf| Remark::new(path, "not kept: it is of no known format");
        let named = gathered.strangers.iter().filter(|path| options.paths.iter().any(|named| path.ends_with(named)));
        remarks.extend(named.map(stranger));
    }
    tell(options, &gathered, &remarks, &store, output)?;
    let nothing = gathered.new + gathered.grown + gathered.rewritten + gathered.unchanged + gathered.forgotten == 0;
    Ok(if nothing && !gathered.stopped { Status::No } else { Status::Done })
}

/// What there is at a path: a file as it is, a folder with all that is below it.
fn find(path: &Path, store: &Store, found: &mut Vec<Found>) -> Result<Vec<Remark>, CommandError> {
    let whole = std::fs::canonicalize(path).map_err(|error| {
        CommandError::new(format!("{}: cannot be read: {error}", path.display()))
            .hint("check the spelling; steno keep alone looks where agents write")
    })?;
    if whole.is_dir() {
        let mut places = Places::below(whole);
        places.passed_over.push(store.folder().to_owned());
        return Ok(discover(&places, &mut |file| found.push(file)));
    }
    let stat = Stat::of(&whole).map_err(|error| CommandError::new(format!("{}: {error}", path.display())))?;
    found.push(Found { path: whole, stat, named: Named::default() });
    Ok(Vec::new())
}

fn tell(
    options: &Options,
    gathered: &Gathered,
    remarks: &[Remark],
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
            ("forgotten", gathered.forgotten),
            ("strangers", gathered.strangers.len() as u64),
            ("bytes", gathered.bytes),
            ("added", gathered.added),
            ("archive", size.stored),
        ];
        numbers.into_iter().for_each(|(name, number)| draft.set_number(name, Some(number)));
        draft.set("stopped", gathered.stopped.to_string());
        draft.set("remarks", remarks_json(remarks));
        return output.line(&harmless_json(&draft.render(None)));
    }
    tell_remarks(remarks, output);
    let counts = [
        (gathered.new, "new"),
        (gathered.grown, "grown"),
        (gathered.rewritten, "rewritten"),
        (gathered.unchanged, "unchanged"),
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

/// Tells what is odd, if not too much of it.
pub(super) fn tell_remarks(remarks: &[Remark], output: &mut Output<'_>) {
    for remark in remarks.iter().take(REMARKS_MAX) {
        let (path, text) = (remark.path.display().to_string(), &remark.text);
        output.say(&format!("note: {}: {}", output::harmless_line(&path), output::harmless_line(text)));
    }
    if remarks.len() > REMARKS_MAX {
        output.say(&format!("note: and {} more", remarks.len() - REMARKS_MAX));
    }
}

fn remarks_json(remarks: &[Remark]) -> String {
    let remark = |remark: &Remark| {
        let mut draft = Draft::new();
        draft.set_str("path", &remark.path.display().to_string());
        draft.set_str("text", &remark.text);
        draft.render(None)
    };
    format!("[{}]", remarks.iter().map(remark).collect::<Vec<_>>().join(","))
}

/// The copies that a word means: of the file of that name, or of the session that begins so. The archive answers where the index cannot.
fn meant(place: &Where, store: &Store, archive: &Archive, name: &str) -> Result<Vec<CopyInfo>, CommandError> {
    let paths = [std::fs::canonicalize(name), std::path::absolute(name)];
    if let Some(copy) = paths.iter().flatten().find_map(|path| archive.copy_at(path)) {
        return Ok(vec![copy]);
    }
    match store.catalogue() {
        Ok(catalogue) => match place.session(name) {
            Ok(chosen) => {
                let rows = catalogue.sources_of(chosen.session.id)?;
                let Held { own, others } = Shelf::new(archive, &catalogue)?.of(&chosen.session, &rows);
                match (own.is_empty(), others.is_empty()) {
                    (false, _) => return Ok(own),
                    (true, false) => return Ok(others),
                    (true, true) => {}
                }
            }
            // What was kept and not indexed is known to the archive alone.
            Err(CommandError::Nothing { .. }) => {}
            Err(error) => return Err(error),
        },
        Err(error) if matches!(error.problem, Problem::IndexMissing | Problem::IndexDamaged) => {}
        Err(error) => return Err(error.into()),
    }
    let begins = |copy: &CopyInfo| {
        let session = copy.label.session.as_deref().and_then(|session| session.get(..name.len()));
        !name.is_empty() && session.is_some_and(|session| session.eq_ignore_ascii_case(name))
    };
    let copies: Vec<CopyInfo> = archive.copies().filter(begins).collect();
    let first = copies.first().map(|copy| copy.label.clone());
    match first {
        None => {
            Err(CommandError::nothing(format!("{name}: nothing of it is kept"))
                .hint("steno keep list shows what is kept"))
        }
        Some(first) if copies.iter().any(|copy| copy.label != first) => {
            Err(CommandError::new(format!("{name}: copies of several sessions can be meant"))
                .hint("write more of the id; steno keep list shows what is kept"))
        }
        Some(_) => Ok(copies),
    }
}
