//! `steno devflow`: manages the runs of a system that keeps each run in a folder. `devflow/` has a file for each action; the layout
//! knows how runs are stored.

mod archive;
mod choice;
mod clean;
mod list;
mod restore;

use clap::Subcommand;
use stenograph::json::Draft;
use stenograph_store::files::Disk;
use stenograph_store::layouts::devflow::{Base, index};
use stenograph_store::systems::devflow::archive::Maintenance;

use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, OutputForm, harmless_json, harmless_line};

/// List, archive, restore and clean up the runs of devflow
///
/// A run is a folder with metadata.json and a transcript, written by devflow or by steno record --to devflow. steno lists runs from
/// index.json and rebuilds that file if it is missing or out of date. An archived run is a .tar.gz file; steno reads it back and compares
/// it before it removes the folder.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno devflow list --status failed --since 7d
  steno devflow archive --until 30d --dry-run
  steno devflow restore 2025-01-15-ticket-to-pr-TK421
  steno devflow clean --dry-run

Exit codes: 0 success, 1 no matching run, 2 error"
)]
pub struct Options {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Options),
    Archive(archive::Options),
    Restore(restore::Options),
    Clean(clean::Options),
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::List(options) => list::run(options, output),
        Action::Archive(options) => archive::run(options, output),
        Action::Restore(options) => restore::run(options, output),
        Action::Clean(options) => clean::run(options, output),
    }
}

/// Whether to act, or only to report what would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Real,
    DryRun,
}

impl Effect {
    fn of(dry_run: bool) -> Effect {
        if dry_run { Effect::DryRun } else { Effect::Real }
    }

    /// Locks the runs for changes; a dry run needs no lock.
    fn maintenance(self, base: &Base) -> Result<Option<Maintenance<'_>>, CommandError> {
        match self {
            Effect::Real => Ok(Some(Maintenance::enter(&Disk, base)?)),
            Effect::DryRun => Ok(None),
        }
    }
}

/// One action on a run, done or planned.
struct RunAction<'a> {
    action: &'static str,
    run: &'a str,
    /// The key and the value of its result: a file or a reason.
    about: (&'static str, String),
}

/// Prints an action at once: somebody may be watching.
fn print_action(
    run_action: &RunAction<'_>,
    form: OutputForm,
    effect: Effect,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let (key, value) = &run_action.about;
    match form {
        OutputForm::Json => {
            let draft = Draft::new().with("action", run_action.action.replace(' ', "-"));
            let mut draft = draft.with("runId", run_action.run).with(*key, value);
            if effect == Effect::DryRun {
                draft = draft.with("dryRun", true);
            }
            output.line(&harmless_json(&draft.render(None)))?;
        }
        OutputForm::People => {
            let done = match effect {
                Effect::DryRun => format!("would {}", run_action.action),
                Effect::Real => match run_action.action.split_once(' ') {
                    Some((verb, object)) => format!("{} {object}", past(verb)),
                    None => past(run_action.action),
                },
            };
            let line = format!("{done}  {}  {value}", run_action.run);
            output.line(&harmless_line(&line))?;
        }
    }
    output.flush()
}

fn past(verb: &str) -> String {
    if verb.ends_with('e') { format!("{verb}d") } else { format!("{verb}ed") }
}

/// Updates the index after runs were moved. A failure is only noted: the next listing rebuilds the index.
fn update_index(base: &Base, output: &mut Output<'_>) {
    if let Err(error) = index::update(&Disk, base, &crate::clock::now()) {
        output.say(&format!("note: {error}: the next listing rebuilds it"));
    }
}
