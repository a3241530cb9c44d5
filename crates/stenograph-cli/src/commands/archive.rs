//! `steno archive`: copies sources into the archive, checks the copies, and restores them. `archive/` has a file for each
//! action.

mod add;
mod copies_by_session;
mod list;
mod prune;
mod restore;
mod unforget;
mod verify;

use std::sync::Arc;

use clap::Subcommand;
use stenograph::json::Draft;
use stenograph_store::archive::{Archive, ArchiveWriter, CopyInfo};
use stenograph_store::files::Disk;
use stenograph_store::index::Store;
pub(super) use stenograph_store::sessions::strings_json;
use stenograph_store::{Problem, Warning};

use crate::error::{CommandError, ExitStatus};
use crate::output::{self, Output};
use crate::store::SessionArgs;
use copies_by_session::{CopiesBySession, SessionCopies};

/// Manage archived copies of transcripts
///
/// The archive has a copy of every transcript that steno index finds. The copy stays when the agent deletes its file. steno
/// archive prune and steno archive unforget change only the store, never the agents' files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive add                            copy all transcripts
  steno archive add ~/transcripts one.jsonl    copy only these
  steno archive list
  steno archive verify                         check every copy
  steno archive restore 0198f2c4               restore the files of a session
  steno archive prune --older-than 90d --dry-run
  steno archive unforget 0198f2c4              allow a pruned session again

Exit codes: 0 success, 1 something is damaged, or nothing found, 2 error")]
pub struct Options {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Add(add::Options),
    List(list::Options),
    Verify(verify::Options),
    Restore(restore::Options),
    Prune(prune::Options),
    Unforget(unforget::Options),
}

/// The number of warnings to print.
const WARNINGS_MAX: usize = 20;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::Add(options) => add::run(options, output),
        Action::List(options) => list::run(options, output),
        Action::Verify(options) => verify::run(options, output),
        Action::Restore(options) => restore::run(options, output),
        Action::Prune(options) => prune::run(options, output),
        Action::Unforget(options) => unforget::run(options, output),
    }
}

/// Opens the archive for reading.
pub(super) fn archive(store: &Store) -> Result<Archive, CommandError> {
    Ok(Archive::open(Arc::new(Disk), &store.archive())?)
}

/// Opens the archive for writing.
pub(super) fn archive_writer(store: &Store) -> Result<ArchiveWriter, CommandError> {
    Ok(ArchiveWriter::open(Arc::new(Disk), &store.archive())?)
}

/// Prints the first warnings, and how many follow.
pub(super) fn print_warnings(warnings: &[Warning], output: &mut Output<'_>) {
    for warning in warnings.iter().take(WARNINGS_MAX) {
        let (path, text) = (warning.path.display().to_string(), &warning.text);
        output.say(&format!("note: {}: {}", output::harmless_line(&path), output::harmless_line(text)));
    }
    if warnings.len() > WARNINGS_MAX {
        output.say(&format!("note: and {} more", warnings.len() - WARNINGS_MAX));
    }
}

/// How many forgotten sessions with new events are named.
const CONTINUED_MAX: usize = 8;

/// Names forgotten sessions that have grown since; their new events are neither archived nor found.
pub(super) fn print_continued(continued: &[String], output: &mut Output<'_>) {
    let Some(first) = continued.first() else { return };
    let names: Vec<String> = continued.iter().take(CONTINUED_MAX).map(|name| output::harmless_line(name)).collect();
    let more = continued.len().saturating_sub(CONTINUED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let count = output::counted(continued.len() as u64, "pruned session");
    let verb = if continued.len() == 1 { "has" } else { "have" };
    output.say(&format!("note: {count} {verb} new events: {}{more}", names.join(", ")));
    output.say(&format!("hint: to include it again, run steno archive unforget {}", output::harmless_line(first)));
}

pub(super) fn warnings_json(warnings: &[Warning]) -> String {
    let warning = |warning: &Warning| {
        Draft::new().with("path", warning.path.display().to_string()).with("text", &warning.text).render(None)
    };
    format!("[{}]", warnings.iter().map(warning).collect::<Vec<_>>().join(","))
}

/// The copies that a name refers to: a path, or a prefix of a session id. The archive answers where the index cannot.
fn copies_named(
    place: &SessionArgs,
    store: &Store,
    archive: &Archive,
    name: &str,
) -> Result<Vec<CopyInfo>, CommandError> {
    let paths = [stenograph_store::databases::canonical(std::path::Path::new(name)), std::path::absolute(name)];
    if let Some(copy) = paths.iter().flatten().find_map(|path| archive.copy_at(path)) {
        return Ok(vec![copy]);
    }
    match store.catalogue() {
        Ok(catalogue) => match place.session(name) {
            Ok(chosen) => {
                let rows = catalogue.sources_of(chosen.session.id)?;
                let SessionCopies { own, others } =
                    CopiesBySession::new(archive, &catalogue)?.of(&chosen.session, &rows);
                match (own.is_empty(), others.is_empty()) {
                    (false, _) => return Ok(own),
                    (true, false) => return Ok(others),
                    (true, true) => {}
                }
            }
            // The archive alone knows sources that were archived but never indexed.
            Err(CommandError::NotFound { .. }) if place.project().is_none() => {}
            Err(error) => return Err(error),
        },
        Err(error) if matches!(error.problem, Problem::IndexMissing | Problem::IndexOlder | Problem::IndexDamaged) => {}
        Err(error) => return Err(error.into()),
    }
    let has_prefix = |copy: &CopyInfo| {
        let session = copy.label.session.as_deref().and_then(|session| session.get(..name.len()));
        !name.is_empty() && session.is_some_and(|session| session.eq_ignore_ascii_case(name))
    };
    let copies: Vec<CopyInfo> = archive.copies().filter(has_prefix).collect();
    let first = copies.first().map(|copy| copy.label.clone());
    match first {
        None => Err(CommandError::not_found(format!("{name}: not in the archive"))
            .hint("list the archive with steno archive list")),
        Some(first) if copies.iter().any(|copy| copy.label != first) => {
            Err(CommandError::new(format!("{name}: ambiguous: copies of several sessions match"))
                .hint("type more of the id; list the archive with steno archive list"))
        }
        Some(_) => Ok(copies),
    }
}
