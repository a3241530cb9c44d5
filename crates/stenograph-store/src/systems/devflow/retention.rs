//! How long runs are kept: a plan of what happens to each run, made from its summary. This file accesses no disk; the plan is
//! shown as it is and then carried out.

use super::archive::ArchivedRun;
use crate::layouts::devflow::{DevflowRun, RunStatus};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The rules, with devflow's names and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// With [`OutdatedRuns::Deleted`]: an older run is deleted without being archived.
    pub retention_days: u32,
    /// An older run is archived.
    pub archive_after_days: u32,
    /// An older archive is deleted.
    pub archive_retention_days: u32,
    /// Whether failed runs stay.
    pub failed: FailedRuns,
    /// How many of the newest runs stay.
    pub keep_min_runs: usize,
    /// What happens to runs older than the retention.
    pub outdated: OutdatedRuns,
}

/// What happens to failed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedRuns {
    /// They stay, so that the cause can be examined.
    Kept,
    /// They are treated like all others.
    LikeOthers,
}

/// What happens to runs older than the retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutdatedRuns {
    /// They are archived like all others: nothing is deleted that was not archived.
    Archived,
    /// They are deleted.
    Deleted,
}

impl Default for RetentionPolicy {
    fn default() -> RetentionPolicy {
        RetentionPolicy {
            retention_days: 30,
            archive_after_days: 7,
            archive_retention_days: 90,
            failed: FailedRuns::Kept,
            keep_min_runs: 100,
            outdated: OutdatedRuns::Archived,
        }
    }
}

/// What happens to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFate {
    /// It is archived.
    Archive,
    /// It is deleted.
    Delete,
    /// It stays, for this reason.
    Keep(KeepReason),
}

/// Why a run stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// It is active.
    Running,
    /// It failed.
    Failed,
    /// It is one of the newest.
    Newest,
    /// It is not old enough.
    Young,
    /// Its age is unknown.
    Undated,
    /// Its status is unknown.
    Unreadable,
}

impl KeepReason {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            KeepReason::Running => "running",
            KeepReason::Failed => "failed",
            KeepReason::Newest => "among the newest",
            KeepReason::Young => "not old enough",
            KeepReason::Undated => "unknown age",
            KeepReason::Unreadable => "unreadable",
        }
    }
}

/// What happens to every run, in the given order: newest first. `now` is in seconds since 1970.
pub fn fates(runs: &[DevflowRun], policy: &RetentionPolicy, now: i64) -> Vec<RunFate> {
    let fate = |(place, run): (usize, &DevflowRun)| {
        let Some(moment) = run.moment() else { return RunFate::Keep(reason_without_age(run)) };
        let older_than = |days: u32| now.saturating_sub(moment) >= i64::from(days) * DAY_SECONDS;
        match run.status {
            RunStatus::Running => return RunFate::Keep(KeepReason::Running),
            RunStatus::Unreadable => return RunFate::Keep(KeepReason::Unreadable),
            RunStatus::Failed if policy.failed == FailedRuns::Kept => return RunFate::Keep(KeepReason::Failed),
            RunStatus::Failed | RunStatus::Completed | RunStatus::Canceled => {}
        }
        if place < policy.keep_min_runs {
            RunFate::Keep(KeepReason::Newest)
        } else if policy.outdated == OutdatedRuns::Deleted && older_than(policy.retention_days) {
            RunFate::Delete
        } else if older_than(policy.archive_after_days) {
            RunFate::Archive
        } else {
            RunFate::Keep(KeepReason::Young)
        }
    };
    runs.iter().enumerate().map(fate).collect()
}

fn reason_without_age(run: &DevflowRun) -> KeepReason {
    match run.status {
        RunStatus::Running => KeepReason::Running,
        RunStatus::Unreadable => KeepReason::Unreadable,
        RunStatus::Failed | RunStatus::Completed | RunStatus::Canceled => KeepReason::Undated,
    }
}

/// Whether an archive is older than the rules allow. Its age counts from its creation: an archive of today is not deleted
/// today, however old its run is.
pub fn is_outdated(archived: &ArchivedRun, policy: &RetentionPolicy, now: i64) -> bool {
    let days_max = i64::from(policy.archive_retention_days) * DAY_SECONDS;
    archived.moment.is_some_and(|moment| now.saturating_sub(moment) >= days_max)
}

#[cfg(test)]
mod tests {
    use stenograph::time::Time;

    use super::*;
    use crate::layouts::devflow::Base;

    const NOW: &str = "2026-03-31T00:00:00Z";

    fn run(id: &str, status: RunStatus, ended: Option<&str>) -> DevflowRun {
        let empty = DevflowRun::read(&Base::at(std::path::Path::new("none")), id);
        DevflowRun { status, ended: ended.map(|ended| Time::iso(ended.to_owned().into()).unwrap()), ..empty }
    }

    fn decide(runs: &[DevflowRun], policy: &RetentionPolicy) -> Vec<RunFate> {
        fates(runs, policy, Time::iso(NOW.into()).unwrap().to_seconds().unwrap())
    }

    fn none_kept() -> RetentionPolicy {
        RetentionPolicy { keep_min_runs: 0, ..RetentionPolicy::default() }
    }

    #[test]
    fn the_defaults_are_those_of_devflow() {
        let policy = RetentionPolicy::default();
        assert_eq!((policy.retention_days, policy.archive_after_days, policy.archive_retention_days), (30, 7, 90));
        assert_eq!((policy.failed, policy.keep_min_runs), (FailedRuns::Kept, 100));
    }

    #[test]
    fn an_old_run_is_archived_and_deleted_only_on_request() {
        let runs = [
            run("young", RunStatus::Completed, Some("2026-03-24T00:00:01Z")),
            run("old", RunStatus::Canceled, Some("2026-03-24T00:00:00Z")),
            run("older", RunStatus::Completed, Some("2026-03-01T00:00:00Z")),
        ];
        assert_eq!(decide(&runs, &none_kept()), [RunFate::Keep(KeepReason::Young), RunFate::Archive, RunFate::Archive]);
        let deleting = RetentionPolicy { outdated: OutdatedRuns::Deleted, ..none_kept() };
        assert_eq!(decide(&runs, &deleting), [RunFate::Keep(KeepReason::Young), RunFate::Archive, RunFate::Delete]);
        // A clock that jumped back makes nothing old.
        assert_eq!(fates(&runs, &deleting, 0), [RunFate::Keep(KeepReason::Young); 3]);
    }

    #[test]
    fn active_failed_new_and_unreadable_runs_stay() {
        let old = Some("2025-01-01T00:00:00Z");
        let runs = [
            run("first", RunStatus::Completed, old),
            run("running", RunStatus::Running, old),
            run("failed", RunStatus::Failed, old),
            run("unreadable", RunStatus::Unreadable, old),
            run("undated", RunStatus::Completed, None),
            run("2025-01-01-dated-by-its-id", RunStatus::Completed, None),
        ];
        let policy =
            RetentionPolicy { keep_min_runs: 1, outdated: OutdatedRuns::Deleted, ..RetentionPolicy::default() };
        let kept = |reason| RunFate::Keep(reason);
        assert_eq!(
            decide(&runs, &policy),
            [
                kept(KeepReason::Newest),
                kept(KeepReason::Running),
                kept(KeepReason::Failed),
                kept(KeepReason::Unreadable),
                kept(KeepReason::Undated),
                RunFate::Delete
            ]
        );
        let other_policy = RetentionPolicy { failed: FailedRuns::LikeOthers, ..policy };
        assert_eq!(decide(&runs, &other_policy)[2], RunFate::Delete);
    }

    #[test]
    fn the_age_of_an_archive_counts_from_its_creation() {
        let archived = |moment| ArchivedRun { id: "2020-01-01-x".into(), path: "x".into(), moment, size: 1 };
        let policy = RetentionPolicy::default();
        assert!(is_outdated(&archived(Some(0)), &policy, 90 * DAY_SECONDS));
        assert!(!is_outdated(&archived(Some(1)), &policy, 90 * DAY_SECONDS));
        assert!(!is_outdated(&archived(None), &policy, i64::MAX));
    }
}
