//! `steno show SESSION`: the main source of a session, also when only the archive has it, and its side conversations where they are asked
//! for. How a source is shown is the business of `steno show` itself.

use std::path::PathBuf;

use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::search::ReadStart;

use super::{AROUND_USUAL, From, Manner, Options, show};
use crate::error::{CommandError, Status};
use crate::input;
use crate::output::{Ink, Output, counted, harmless_line};
use crate::store::Chosen;

/// How many other files of a session are named.
const OTHERS_MAX: usize = 5;

pub(super) fn run(
    options: &Options,
    store: &Store,
    chosen: &Chosen,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let threads: Vec<&SourceRow> = chosen.threads().collect();
    let names: Vec<String> = threads.iter().filter_map(|source| source.thread.clone()).collect();
    let parts = chosen.parts().filter(|_| options.from.is_none());
    let read: Vec<PathBuf> = parts.as_ref().map(|parts| parts.files().to_vec()).unwrap_or_default();
    let mut status = match parts {
        Some(parts) => show(options, &chosen.source.path.display().to_string(), From::Parts(parts), &names, output)?,
        None => one(options, store, &chosen.source, &names, output)?,
    };
    let is_other = |source: &&SourceRow| {
        let is_read = source.id == chosen.source.id || read.contains(&source.path);
        let is_covered = chosen.sources.iter().any(|by| source.covered_by == Some(by.id) && read.contains(&by.path));
        !is_read && !is_covered && source.copy_of.is_none() && source.thread == chosen.source.thread
    };
    let others: Vec<&SourceRow> = chosen.sources.iter().filter(is_other).collect();
    if options.threads {
        for source in threads {
            head(options, source, output)?;
            // One that cannot be read does not stop the rest.
            let shown = one(options, store, source, &names, output).unwrap_or_else(|error| {
                output.error(&error);
                error.status()
            });
            status = status.max(shown);
        }
    } else if !threads.is_empty() && options.event.is_empty() {
        output.say(&format!("{} not shown: --threads shows them", counted(threads.len() as u64, "side conversation")));
    }
    if !others.is_empty() && options.event.is_empty() {
        output.say(&format!("this session has {} more:", counted(others.len() as u64, "file")));
        for source in others.iter().take(OTHERS_MAX) {
            output.say(&harmless_line(&format!("  {} ({})", source.path.display(), source.format)));
        }
    }
    Ok(status)
}

/// Shows an earlier version of a session's source.
pub(super) fn version(
    options: &Options,
    store: &Store,
    chosen: &Chosen,
    version: u32,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let row = &chosen.source;
    let input = input::open_version(store, row, version, options.from.as_deref())?;
    output.say(&harmless_line(&format!("this is version {version} of {}, from the archive", row.path.display())));
    show(options, &row.path.display().to_string(), From::Input(Box::new(input)), &[], output)
}

/// Shows one source.
fn one(
    options: &Options,
    store: &Store,
    row: &SourceRow,
    threads: &[String],
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let name = row.path.display().to_string();
    let input = Box::new(input::open_known(store, row, options.from.as_deref(), output)?);
    let from = match start(options, store, row) {
        Some(start) => From::At(input, start),
        None => From::Input(input),
    };
    show(options, &name, from, threads, output)
}

/// How many events before those that are asked for are read, to know what is only said again.
const BEHIND: u64 = 16;

/// The record from which a source is read to show the events that are asked for by number, where the index knows it.
pub(super) fn start(options: &Options, store: &Store, row: &SourceRow) -> Option<ReadStart> {
    let first = options.numbers(Manner::Json)?.first().saturating_sub(AROUND_USUAL + BEHIND);
    let is_usual = options.from.is_none() && row.copy_of.is_none();
    // An index that cannot be asked is no reason not to read the file.
    is_usual.then(|| store.searcher().ok()?.start_before(row, first).ok()?).flatten()
}

/// What stands above a side conversation.
fn head(options: &Options, source: &SourceRow, output: &mut Output<'_>) -> Result<(), CommandError> {
    if options.json || options.text {
        return Ok(());
    }
    let thread = source.thread.as_deref().unwrap_or_default();
    let about = source.summary.query.as_deref().map(|query| format!(": {query}")).unwrap_or_default();
    let line = harmless_line(&format!("side conversation {thread}{about}"));
    let line = output.colour().ink(Ink::Strong, &line);
    output.line(&format!("\n{line}"))
}
