//! `steno show SESSION`: shows the main source of a session, even if only the archive has it, and its side conversations on
//! request.

use std::path::PathBuf;

use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::search::ReadStart;

use super::notes::EventNotes;
use super::{Options, ShowSource, header, show};
use crate::error::{CommandError, ExitStatus};
use crate::input;
use crate::output::{Output, TextStyle, counted, harmless_line};
use crate::store::{NamedBy, ResolvedSession};

/// How many other files of a session are named.
const OTHERS_MAX: usize = 5;

pub(super) fn run(
    options: &Options,
    store: &Store,
    session: &ResolvedSession,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    if options.has_header() {
        let header = match session.by {
            NamedBy::Session => header::of_session(&session.session, store),
            NamedBy::Agent | NamedBy::Path => header::of_source(&session.session, &session.source, store),
        };
        options.print_header(header.ok(), output)?;
    }
    let threads: Vec<&SourceRow> = session.threads().collect();
    let names: Vec<String> = threads.iter().filter_map(|source| source.thread.clone()).collect();
    let parts = session.parts().filter(|_| options.from.is_none());
    let read: Vec<PathBuf> = parts.as_ref().map(|parts| parts.files().to_vec()).unwrap_or_default();
    let notes = if options.json || options.text { EventNotes::default() } else { EventNotes::of(store, session)? };
    let mut status = match parts {
        Some(parts) => {
            show(options, &session.source.path.display().to_string(), ShowSource::Parts(parts), &names, notes, output)?
        }
        None => show_source(options, store, &session.source, &names, notes, output)?,
    };
    let is_other = |source: &&SourceRow| {
        let is_read = source.id == session.source.id || read.contains(&source.path);
        let is_covered = session.sources.iter().any(|by| source.covered_by == Some(by.id) && read.contains(&by.path));
        !is_read && !is_covered && source.copy_of.is_none() && source.thread == session.source.thread
    };
    let others: Vec<&SourceRow> = session.sources.iter().filter(is_other).collect();
    if options.subagents {
        for source in threads {
            print_heading(options, source, output)?;
            // A source that cannot be read does not stop the rest.
            let shown =
                show_source(options, store, source, &names, EventNotes::default(), output).unwrap_or_else(|error| {
                    output.error(&error);
                    error.status()
                });
            status = status.max(shown);
        }
    } else if !threads.is_empty() && options.event.is_empty() {
        output.say(&format!("{} hidden: show with --subagents", counted(threads.len() as u64, "sub-agent")));
    }
    if !others.is_empty() && options.event.is_empty() {
        let count = others.len() as u64;
        let belong = if count == 1 { "belongs to this session and is" } else { "belong to this session and are" };
        output.say(&format!("{} {belong} not shown:", counted(count, "more file")));
        for source in others.iter().take(OTHERS_MAX) {
            output.say(&harmless_line(&format!("  {} ({})", source.path.display(), source.format)));
        }
    }
    Ok(status)
}

pub(super) fn version(
    options: &Options,
    store: &Store,
    session: &ResolvedSession,
    version: u32,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let row = &session.source;
    let input = input::open_version(store, row, version, options.from.as_deref())?;
    output.say(&harmless_line(&format!("showing archived version {version} of {}", row.path.display())));
    show(
        options,
        &row.path.display().to_string(),
        ShowSource::Input(Box::new(input)),
        &[],
        EventNotes::default(),
        output,
    )
}

fn show_source(
    options: &Options,
    store: &Store,
    row: &SourceRow,
    threads: &[String],
    notes: EventNotes,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let name = row.path.display().to_string();
    let input = Box::new(input::open_known(store, row, options.from.as_deref(), output)?);
    let from = match start(options, store, row) {
        Some(start) => ShowSource::At(input, start),
        None => ShowSource::Input(input),
    };
    show(options, &name, from, threads, notes, output)
}

/// How many events before the requested ones are read, to detect repeats.
const CHECKED_BEFORE: u64 = 16;

/// The record from which to read the requested events, if the index knows it.
pub(super) fn start(options: &Options, store: &Store, row: &SourceRow) -> Option<ReadStart> {
    let first = options.numbers()?.first().saturating_sub(CHECKED_BEFORE);
    let is_usual = options.from.is_none() && row.copy_of.is_none();
    // If the index cannot answer, the file is read from its beginning.
    is_usual.then(|| store.searcher().ok()?.start_before(row, first).ok()?).flatten()
}

/// The heading of a side conversation.
fn print_heading(options: &Options, source: &SourceRow, output: &mut Output<'_>) -> Result<(), CommandError> {
    if options.json || options.text {
        return Ok(());
    }
    let thread = source.thread.as_deref().unwrap_or_default();
    let about = source.summary.header.query.as_deref().map(|query| format!(": {query}")).unwrap_or_default();
    let line = harmless_line(&format!("sub-agent {thread}{about}"));
    let line = output.colour().paint(TextStyle::Strong, &line);
    output.line(&format!("\n{line}"))
}
