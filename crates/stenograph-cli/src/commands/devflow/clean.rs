//! `steno devflow clean`: archives old runs and removes old archives, by devflow's rules.

use stenograph_store::Error;
use stenograph_store::files::Disk;
use stenograph_store::layouts::devflow::{Base, DevflowRun, index};
use stenograph_store::systems::devflow::archive::{self, ArchivedRun, Maintenance};
use stenograph_store::systems::devflow::retention::{
    FailedRuns, KeepReason, OutdatedRuns, RetentionPolicy, RunFate, fates, is_outdated,
};

use super::choice::RunSelection;
use super::{Effect, RunAction, print_action, update_index};
use crate::error::{self, CommandError};
use crate::output::{Output, OutputForm, counted};

/// Archive old runs and remove old archives
///
/// Archives runs that ended long ago, and removes archives that were created long ago. Running, failed and unreadable runs stay, and so
/// do the newest ones. Without --delete, steno never removes a run that is not archived.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno devflow clean --dry-run
  steno devflow clean --keep-min-runs 20 --archive-after-days 14
  steno devflow clean --delete --retention-days 60 --include-failed --dry-run")]
pub struct Options {
    #[command(flatten)]
    choice: RunSelection,
    /// Archive runs older than this
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().archive_after_days)]
    archive_after_days: u32,
    /// Remove archives that were created longer ago than this
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().archive_retention_days)]
    archive_retention_days: u32,
    /// Keep this many of the newest runs, whatever their age
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().keep_min_runs)]
    keep_min_runs: usize,
    /// Treat failed runs like all others
    #[arg(long)]
    include_failed: bool,
    /// Remove runs older than --retention-days permanently instead of archiving them
    #[arg(long)]
    delete: bool,
    /// With --delete: remove runs older than this
    #[arg(long, value_name = "N", default_value_t = RetentionPolicy::default().retention_days)]
    retention_days: u32,
    /// Print the actions without doing anything
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object per run, including kept runs with the reason
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<error::ExitStatus, CommandError> {
    let base = options.choice.base()?;
    let range = options.choice.period.range()?;
    let policy = RetentionPolicy {
        retention_days: options.retention_days,
        archive_after_days: options.archive_after_days,
        archive_retention_days: options.archive_retention_days,
        failed: if options.include_failed { FailedRuns::LikeOthers } else { FailedRuns::Kept },
        keep_min_runs: options.keep_min_runs,
        outdated: if options.delete { OutdatedRuns::Deleted } else { OutdatedRuns::Archived },
    };
    let effect = Effect::of(options.dry_run);
    let maintenance = effect.maintenance(&base)?;
    let now = crate::clock::now().to_seconds().unwrap_or_default();
    let runs = index::read_all(&Disk, &base)?;
    // List the archives first, so that runs archived below are not removed.
    let archives = archive::list(&Disk, &base)?;
    let mut cleaner = Cleaner {
        form: OutputForm::of(options.json),
        effect,
        maintenance: maintenance.as_ref(),
        base: &base,
        kept: Vec::new(),
        status: error::ExitStatus::Done,
        output,
    };
    for (run, fate) in runs.iter().zip(fates(&runs, &policy, now)).filter(|(run, _)| options.choice.has(run, &range)) {
        cleaner.run(run, fate)?;
    }
    for archived in archives.iter().filter(|archived| is_outdated(archived, &policy, now)) {
        if options.choice.is_everything() || options.choice.has(&archived.read(), &range) {
            cleaner.archived(archived)?;
        }
    }
    cleaner.finish()
}

/// Carries out the decisions one by one and reports each.
struct Cleaner<'a, 'o> {
    form: OutputForm,
    effect: Effect,
    maintenance: Option<&'a Maintenance<'a>>,
    base: &'a Base,
    kept: Vec<KeepReason>,
    status: error::ExitStatus,
    output: &'a mut Output<'o>,
}

impl Cleaner<'_, '_> {
    fn run(&mut self, run: &DevflowRun, fate: RunFate) -> Result<(), CommandError> {
        match fate {
            RunFate::Keep(reason) => {
                self.kept.push(reason);
                if self.form == OutputForm::Json {
                    let about = ("reason", reason.text().to_owned());
                    let run_action = RunAction { action: "keep", run: &run.id, about };
                    print_action(&run_action, self.form, self.effect, self.output)?;
                }
                Ok(())
            }
            RunFate::Archive => {
                let moved = match self.maintenance {
                    Some(maintenance) => maintenance.archive(run),
                    None => archive::destination(self.base, run),
                };
                self.report("archive", &run.id, moved.map(|path| ("archive", path.display().to_string())))
            }
            RunFate::Delete => {
                let removed = self.maintenance.map_or(Ok(()), |maintenance| maintenance.remove(run));
                let folder = self.base.run(&run.id).display().to_string();
                self.report("delete", &run.id, removed.map(|()| ("folder", folder)))
            }
        }
    }

    fn archived(&mut self, archived: &ArchivedRun) -> Result<(), CommandError> {
        let removed = self.maintenance.map_or(Ok(()), |maintenance| maintenance.remove_archived(archived));
        let path = archived.path.display().to_string();
        self.report("delete archive", &archived.id, removed.map(|()| ("archive", path)))
    }

    /// Reports an action or its error; a failed action does not stop the rest.
    fn report(
        &mut self,
        action: &'static str,
        run: &str,
        done: Result<(&'static str, String), Error>,
    ) -> Result<(), CommandError> {
        match done {
            Ok(about) => print_action(&RunAction { action, run, about }, self.form, self.effect, self.output),
            Err(error) => {
                self.output.error(&error.into());
                self.status = error::ExitStatus::Error;
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<error::ExitStatus, CommandError> {
        if self.maintenance.is_some() {
            update_index(self.base, self.output);
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
            [] => self.output.say("no runs kept"),
            reasons => self.output.say(&format!("{kept} kept: {}", reasons.join(", "))),
        }
        Ok(self.status)
    }
}
