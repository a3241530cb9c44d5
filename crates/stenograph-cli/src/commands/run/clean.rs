//! `steno run clean`: puts old runs away and removes old archives, by devflow's rules.

use stenograph_store::Error;
use stenograph_store::files::Disk;
use stenograph_store::systems::devflow::archive::{self, ArchivedRun, Maintenance};
use stenograph_store::systems::devflow::retention::{
    FailedRuns, KeepReason, OutdatedRuns, RetentionPolicy, RunFate, fates, is_outdated,
};
use stenograph_store::layouts::devflow::{Base, DevflowRun, index};

use super::choice::Choice;
use super::{Deed, Effect, Manner, settle_index, tell};
use crate::error::{self, CommandError};
use crate::output::{Output, counted};

/// Put old runs away, and remove old archives
///
/// A run that ended long enough ago is put away; an archive that was made long enough ago is removed. Running, failed and unreadable runs and the
/// newest ones stay. No run is removed that was not put away, unless --delete says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno run clean --dry-run
  steno run clean --keep-min-runs 20 --archive-after-days 14
  steno run clean --delete --retention-days 60 --include-failed --dry-run")]
pub struct Options {
    #[command(flatten)]
    choice: Choice,
    /// Put away runs older than this
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().archive_after_days)]
    archive_after_days: u32,
    /// Remove archives older than this, counted from when they were made
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().archive_retention_days)]
    archive_retention_days: u32,
    /// Keep this many of the newest runs, whatever their age
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().keep_min_runs)]
    keep_min_runs: usize,
    /// Treat failed runs like all others
    #[arg(long)]
    include_failed: bool,
    /// Remove runs older than --retention-days for good instead of putting them away
    #[arg(long)]
    delete: bool,
    /// With --delete: remove runs older than this
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().retention_days)]
    retention_days: u32,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object a line, what is kept and why among them
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<error::Status, CommandError> {
    let base = options.choice.base()?;
    let policy = RetentionPolicy {
        retention_days: options.retention_days,
        archive_after_days: options.archive_after_days,
        archive_retention_days: options.archive_retention_days,
        failed: if options.include_failed { FailedRuns::LikeOthers } else { FailedRuns::Kept },
        keep_min_runs: options.keep_min_runs,
        outdated: if options.delete { OutdatedRuns::Deleted } else { OutdatedRuns::Archived },
    };
    let effect = if options.dry_run { Effect::DryRun } else { Effect::Real };
    let house = match effect {
        Effect::Real => Some(Maintenance::enter(&Disk, &base)?),
        Effect::DryRun => None,
    };
    let now = crate::clock::now().to_seconds().unwrap_or_default();
    let runs = index::read_all(&Disk, &base)?;
    // Looked at before anything is put away: what is put away now is new.
    let archives = archive::list(&Disk, &base)?;
    let mut cleaning = Cleaning {
        manner: if options.json { Manner::Json } else { Manner::People },
        effect,
        house: house.as_ref(),
        base: &base,
        kept: Vec::new(),
        status: error::Status::Done,
        output,
    };
    for (run, fate) in runs.iter().zip(fates(&runs, &policy, now)).filter(|(run, _)| options.choice.has(run)) {
        cleaning.run(run, fate)?;
    }
    for archived in archives.iter().filter(|archived| is_outdated(archived, &policy, now)) {
        if options.choice.is_everything() || options.choice.has(&archived.read()) {
            cleaning.archived(archived)?;
        }
    }
    cleaning.finish()
}

/// Does what was planned, one after the other, and tells of it.
struct Cleaning<'a, 'o> {
    manner: Manner,
    effect: Effect,
    house: Option<&'a Maintenance<'a>>,
    base: &'a Base,
    kept: Vec<KeepReason>,
    status: error::Status,
    output: &'a mut Output<'o>,
}

impl Cleaning<'_, '_> {
    fn run(&mut self, run: &DevflowRun, fate: RunFate) -> Result<(), CommandError> {
        match fate {
            RunFate::Keep(reason) => {
                self.kept.push(reason);
                if self.manner == Manner::Json {
                    let about = ("reason", reason.text().to_owned());
                    let deed = Deed { action: "keep", run: &run.id, about };
                    tell(&deed, self.manner, self.effect, self.output)?;
                }
                Ok(())
            }
            RunFate::Archive => {
                let moved = match self.house {
                    Some(house) => house.archive(run),
                    None => archive::destination(self.base, run),
                };
                self.told("archive", &run.id, moved.map(|path| ("archive", path.display().to_string())))
            }
            RunFate::Delete => {
                let removed = self.house.map_or(Ok(()), |house| house.remove(run));
                let folder = self.base.run(&run.id).display().to_string();
                self.told("delete", &run.id, removed.map(|()| ("folder", folder)))
            }
        }
    }

    fn archived(&mut self, archived: &ArchivedRun) -> Result<(), CommandError> {
        let removed = self.house.map_or(Ok(()), |house| house.remove_archived(archived));
        let path = archived.path.display().to_string();
        self.told("delete archive", &archived.id, removed.map(|()| ("archive", path)))
    }

    /// Tells of a deed or of why it failed; one that fails does not stop the rest.
    fn told(
        &mut self,
        action: &'static str,
        run: &str,
        done: Result<(&'static str, String), Error>,
    ) -> Result<(), CommandError> {
        match done {
            Ok(about) => tell(&Deed { action, run, about }, self.manner, self.effect, self.output),
            Err(error) => {
                self.output.error(&error.into());
                self.status = error::Status::Error;
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<error::Status, CommandError> {
        if self.house.is_some() {
            settle_index(self.base, self.output);
        }
        let all = [
            KeepReason::Running,
            KeepReason::Failed,
            KeepReason::Newest,
            KeepReason::Young,
            KeepReason::Undated,
            KeepReason::Unreadable,
        ];
        let count = |reason: &KeepReason| self.kept.iter().filter(|kept| *kept == reason).count();
        let reasons: Vec<String> = all
            .iter()
            .filter(|reason| count(reason) > 0)
            .map(|reason| format!("{} {}", count(reason), reason.text()))
            .collect();
        let kept = counted(self.kept.len() as u64, "run");
        match reasons.as_slice() {
            [] => self.output.say("no run is kept"),
            reasons => self.output.say(&format!("{kept} kept: {}", reasons.join(", "))),
        }
        Ok(self.status)
    }
}
