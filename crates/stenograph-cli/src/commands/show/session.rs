//! `steno show SESSION`: the main source of a session, also when only the archive has it, and its side conversations where they are asked
//! for. How a source is shown is the business of `steno show` itself.

use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SourceRow;

use super::{From, Options, show};
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
    let mut others = store.catalogue()?.sources_of(chosen.session.id)?;
    others.retain(|source| source.id != chosen.source.id && source.copy_of.is_none());
    let (threads, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|source| source.thread.is_some());
    let names: Vec<String> = threads.iter().filter_map(|source| source.thread.clone()).collect();
    let mut status = one(options, store, &chosen.source, &names, output)?;
    if options.threads {
        for source in &threads {
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

/// Shows one source.
fn one(
    options: &Options,
    store: &Store,
    row: &SourceRow,
    threads: &[String],
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let name = row.path.display().to_string();
    let input = input::open_known(store, row, options.from.as_deref(), output)?;
    show(options, &name, From::Input(Box::new(input)), threads, output)
}

/// What stands above a side conversation.
fn head(options: &Options, source: &SourceRow, output: &mut Output<'_>) -> Result<(), CommandError> {
    if options.json || options.text {
        return Ok(());
    }
    let thread = source.thread.as_deref().unwrap_or_default();
    let about = source.tally.query.as_deref().map(|query| format!(": {query}")).unwrap_or_default();
    let line = harmless_line(&format!("side conversation {thread}{about}"));
    let line = output.colour().ink(Ink::Strong, &line);
    output.line(&format!("\n{line}"))
}
