//! `steno devflow restore`: restores archived runs.

use stenograph_store::files::Disk;
use stenograph_store::systems::devflow::archive::{self, ArchiveAfterRestore, ArchivedRun};

use super::choice::RunSelection;
use super::{Effect, RunAction, print_action, update_index};
use crate::error::{self, CommandError};
use crate::output::{Output, OutputForm};

/// Restore archived runs
///
/// Existing runs are not changed. steno refuses an archive that contains a link or a path outside the folder of the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno devflow restore 2025-01-15-ticket-to-pr-TK421
  steno devflow restore --flow review --since 2025-01-01 --dry-run")]
pub struct Options {
    /// Runs to restore
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    choice: RunSelection,
    /// Keep the archive
    #[arg(long)]
    keep: bool,
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
        return Err(CommandError::new("say which runs to restore")
            .hint("name them; list archived runs with steno devflow list --archived"));
    }
    let form = OutputForm::of(options.json);
    let effect = Effect::of(options.dry_run);
    let afterwards = if options.keep { ArchiveAfterRestore::Kept } else { ArchiveAfterRestore::Removed };
    let mut status = error::ExitStatus::Done;
    let all = archive::list(&Disk, &base)?;
    for id in &options.runs {
        let places: Vec<String> = all
            .iter()
            .filter(|archived| archived.id == *id)
            .map(|archived| archived.path.display().to_string())
            .collect();
        let error_shown = match places.as_slice() {
            [_] => continue,
            [] => {
                let error_shown = CommandError::not_found(format!("{id}: no such archived run"));
                error_shown.hint("list archived runs with steno devflow list --archived")
            }
            several => {
                let error_shown = CommandError::new(format!("{id}: several archives: {}", several.join(", ")));
                error_shown.hint("rename or remove all but one")
            }
        };
        output.error(&error_shown);
        status = status.max(error_shown.status());
    }
    let is_unique = |one: &ArchivedRun| all.iter().filter(|other| other.id == one.id).count() == 1;
    let named = |archived: &ArchivedRun| options.runs.is_empty() || options.runs.contains(&archived.id);
    let is_selected =
        |archived: &ArchivedRun| options.choice.is_everything() || options.choice.has(&archived.read(), &range);
    let selected: Vec<&ArchivedRun> =
        all.iter().filter(|one| is_unique(one) && named(one) && is_selected(one)).collect();
    let maintenance = effect.maintenance(&base)?;
    let mut done = 0_u64;
    for archived in selected {
        let restored = match &maintenance {
            Some(maintenance) => maintenance.restore(archived, afterwards),
            None => Ok(base.run(&archived.id)),
        };
        match restored {
            Ok(folder) => {
                done += 1;
                let about = ("folder", folder.display().to_string());
                print_action(&RunAction { action: "restore", run: &archived.id, about }, form, effect, output)?;
            }
            Err(error) => {
                output.error(&error.into());
                status = error::ExitStatus::Error;
            }
        }
    }
    if maintenance.is_some() {
        update_index(&base, output);
    }
    if done == 0 && status == error::ExitStatus::Done {
        output.say(&format!("no matching archived runs in {}", base.path().display()));
        return Ok(error::ExitStatus::No);
    }
    Ok(status)
}
