//! `steno devflow archive`: moves runs into archives.

use stenograph_store::files::Disk;
use stenograph_store::layouts::devflow::{DevflowRun, RunStatus, index};

use super::choice::RunSelection;
use super::{Effect, RunAction, print_action, update_index};
use crate::error::{self, CommandError};
use crate::output::{Output, OutputForm, counted};

/// Archive runs as archive/YYYY-MM/RUN.tar.gz
///
/// Archives the named runs, or the runs that match a flow, status or time. steno reads each archive back and compares it before it
/// removes the folder. Runs that are still running are skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno devflow archive 2025-01-15-ticket-to-pr-TK421
  steno devflow archive --until 30d --status completed --dry-run")]
pub struct Options {
    /// Runs to archive
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    choice: RunSelection,
    /// Print the actions without doing anything
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object per run
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<error::ExitStatus, CommandError> {
    let base = options.choice.base()?;
    let range = options.choice.period.range()?;
    if options.runs.is_empty() && options.choice.is_everything() {
        return Err(CommandError::new("say which runs to archive")
            .hint("name them, or use --until 30d, --status completed or --flow FLOW"));
    }
    let form = OutputForm::of(options.json);
    let effect = Effect::of(options.dry_run);
    let mut status = error::ExitStatus::Done;
    let all = index::read_all(&Disk, &base)?;
    for missing in options.runs.iter().filter(|id| !all.iter().any(|run| run.id == **id)) {
        let error_shown =
            CommandError::not_found(format!("{missing}: no such run")).hint("list the runs with steno devflow list");
        output.error(&error_shown);
        status = status.max(error_shown.status());
    }
    let named = |run: &DevflowRun| options.runs.is_empty() || options.runs.contains(&run.id);
    let selected: Vec<&DevflowRun> = all.iter().filter(|run| named(run) && options.choice.has(run, &range)).collect();
    let maintenance = effect.maintenance(&base)?;
    let (mut done, mut running) = (0_u64, 0_u64);
    for run in selected {
        if run.status == RunStatus::Running && options.runs.is_empty() {
            running += 1;
            continue;
        }
        let moved = match &maintenance {
            Some(maintenance) => maintenance.archive(run),
            None => stenograph_store::systems::devflow::archive::destination(&base, run),
        };
        match moved {
            Ok(path) => {
                done += 1;
                let about = ("archive", path.display().to_string());
                print_action(&RunAction { action: "archive", run: &run.id, about }, form, effect, output)?;
            }
            // One bad run does not stop the rest.
            Err(error) => {
                output.error(&error.into());
                status = error::ExitStatus::Error;
            }
        }
    }
    if maintenance.is_some() {
        update_index(&base, output);
    }
    if running > 0 {
        output.say(&format!("{} skipped: still running", counted(running, "run")));
    }
    if done == 0 && status == error::ExitStatus::Done {
        output.say(&format!("no matching runs in {}", base.path().display()));
        return Ok(error::ExitStatus::No);
    }
    Ok(status)
}
