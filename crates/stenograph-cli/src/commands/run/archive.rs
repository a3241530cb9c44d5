//! `steno run archive`: puts runs away.

use stenograph_store::files::Disk;
use stenograph_store::systems::devflow::archive::Maintenance;
use stenograph_store::layouts::devflow::{DevflowRun, RunStatus, index};

use super::choice::Choice;
use super::{Deed, Effect, Manner, settle_index, tell};
use crate::error::{self, CommandError};
use crate::output::{Output, counted};

/// Put runs away: archive/YYYY-MM/RUN.tar.gz
///
/// The runs that are named, or those of a flow, status or time. Each archive is read back and compared before the folder goes. A run that is
/// still running is left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno run archive 2025-01-15-ticket-to-pr-TK421
  steno run archive --before 30d --status completed --dry-run")]
pub struct Options {
    /// The runs
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<error::Status, CommandError> {
    let base = options.choice.base()?;
    if options.runs.is_empty() && options.choice.is_everything() {
        return Err(CommandError::new("which runs are to be put away is not said")
            .hint("name them, or say --before 30d, --status completed or --flow FLOW"));
    }
    let manner = if options.json { Manner::Json } else { Manner::People };
    let effect = if options.dry_run { Effect::DryRun } else { Effect::Real };
    let mut status = error::Status::Done;
    let all = index::read_all(&Disk, &base)?;
    for missing in options.runs.iter().filter(|id| !all.iter().any(|run| run.id == **id)) {
        let told = CommandError::nothing(format!("{missing}: no such run")).hint("steno run list shows the runs");
        output.error(&told);
        status = status.max(told.status());
    }
    let named = |run: &DevflowRun| options.runs.is_empty() || options.runs.contains(&run.id);
    let chosen: Vec<&DevflowRun> = all.iter().filter(|run| named(run) && options.choice.has(run)).collect();
    let house = match effect {
        Effect::Real => Some(Maintenance::enter(&Disk, &base)?),
        Effect::DryRun => None,
    };
    let (mut done, mut running) = (0_u64, 0_u64);
    for run in chosen {
        if run.status == RunStatus::Running && options.runs.is_empty() {
            running += 1;
            continue;
        }
        let moved = match &house {
            Some(house) => house.archive(run),
            None => stenograph_store::systems::devflow::archive::destination(&base, run),
        };
        match moved {
            Ok(path) => {
                done += 1;
                let about = ("archive", path.display().to_string());
                tell(&Deed { action: "archive", run: &run.id, about }, manner, effect, output)?;
            }
            // One bad run does not stop the rest.
            Err(error) => {
                output.error(&error.into());
                status = error::Status::Error;
            }
        }
    }
    if house.is_some() {
        settle_index(&base, output);
    }
    if running > 0 {
        output.say(&format!("{} left alone: still running", counted(running, "run")));
    }
    if done == 0 && status == error::Status::Done {
        output.say(&format!("no such run in {}", base.path().display()));
        return Ok(error::Status::No);
    }
    Ok(status)
}
