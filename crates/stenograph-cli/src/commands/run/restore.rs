//! `steno run restore`: brings runs back.

use stenograph_store::files::Disk;
use stenograph_store::systems::devflow::archive::{self, ArchiveAfterRestore, ArchivedRun, Maintenance};

use super::choice::Choice;
use super::{Deed, Effect, Manner, settle_index, tell};
use crate::error::{self, CommandError};
use crate::output::Output;

/// Bring back runs that were put away
///
/// A run that is there already is not touched. An archive that holds a link, or anything that would be put outside of the run's folder, is
/// refused as a whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno run restore 2025-01-15-ticket-to-pr-TK421
  steno run restore --flow review --since 2025-01-01 --dry-run")]
pub struct Options {
    /// The runs
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// Keep the archive, too
    #[arg(long)]
    keep: bool,
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
        return Err(CommandError::new("which runs are to be brought back is not said")
            .hint("name them; steno run list --archived shows them"));
    }
    let manner = if options.json { Manner::Json } else { Manner::People };
    let effect = if options.dry_run { Effect::DryRun } else { Effect::Real };
    let afterwards = if options.keep { ArchiveAfterRestore::Kept } else { ArchiveAfterRestore::Removed };
    let mut status = error::Status::Done;
    let all = archive::list(&Disk, &base)?;
    for id in &options.runs {
        let places: Vec<String> = all
            .iter()
            .filter(|archived| archived.id == *id)
            .map(|archived| archived.path.display().to_string())
            .collect();
        let told = match places.as_slice() {
            [_] => continue,
            [] => {
                let told = CommandError::nothing(format!("{id}: no such run was put away"));
                told.hint("steno run list --archived shows them")
            }
            several => {
                let told = CommandError::new(format!("{id}: was put away more than once: {}", several.join(", ")));
                told.hint("rename or remove all but one")
            }
        };
        output.error(&told);
        status = status.max(told.status());
    }
    let alone = |one: &ArchivedRun| all.iter().filter(|other| other.id == one.id).count() == 1;
    let named = |archived: &ArchivedRun| options.runs.is_empty() || options.runs.contains(&archived.id);
    let meant = |archived: &ArchivedRun| options.choice.is_everything() || options.choice.has(&archived.read());
    let chosen: Vec<&ArchivedRun> = all.iter().filter(|one| alone(one) && named(one) && meant(one)).collect();
    let house = match effect {
        Effect::Real => Some(Maintenance::enter(&Disk, &base)?),
        Effect::DryRun => None,
    };
    let mut done = 0_u64;
    for archived in chosen {
        let restored = match &house {
            Some(house) => house.restore(archived, afterwards),
            None => Ok(base.run(&archived.id)),
        };
        match restored {
            Ok(folder) => {
                done += 1;
                let about = ("folder", folder.display().to_string());
                tell(&Deed { action: "restore", run: &archived.id, about }, manner, effect, output)?;
            }
            Err(error) => {
                output.error(&error.into());
                status = error::Status::Error;
            }
        }
    }
    if house.is_some() {
        settle_index(&base, output);
    }
    if done == 0 && status == error::Status::Done {
        output.say(&format!("no such run was put away in {}", base.path().display()));
        return Ok(error::Status::No);
    }
    Ok(status)
}
