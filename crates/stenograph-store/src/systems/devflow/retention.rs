//! How long runs are kept: a plan of what happens to each run, made from its summary. This file accesses no disk; the plan is
//! shown as it is and then carried out.

use super::archive::Archived;
use crate::layouts::devflow::{Run, Status};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The rules, with devflow's names and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// With [`Outdated::Deleted`]: an older run is deleted without being archived.
    pub retention_days: u32,
    /// An older run is archived.
    pub archive_after_days: u32,
    /// An older archive is deleted.
    pub archive_retention_days: u32,
    /// Whether failed runs stay.
    pub failed: Failed,
    /// How many of the newest runs stay.
    pub keep_min_runs: usize,
    /// What happens to runs older than the retention.
    pub outdated: Outdated,
}

/// What happens to failed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// They stay, so that the cause can be examined.
    Kept,
    /// They are treated like all others.
    LikeOthers,
}

/// What happens to runs older than the retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated {
    /// They are archived like all others: nothing is deleted that was not archived.
    Archived,
    /// They are deleted.
    Deleted,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            retention_days: 30,
            archive_after_days: 7,
            archive_retention_days: 90,
            failed: Failed::Kept,
            keep_min_runs: 100,
            outdated: Outdated::Archived,
        }
    }
}

/// What happens to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is archived.
    Archive,
    /// It is deleted.
    Delete,
    /// It stays, for this reason.
    Keep(Reason),
}

/// Why a run stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
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

impl Reason {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Running => "running",
            Reason::Failed => "failed",
            Reason::Newest => "among the newest",
            Reason::Young => "not old enough",
            Reason::Undated => "nothing tells how old it is",
            Reason::Unreadable => "unreadable",
        }
    }
}

/// What happens to every run, in the given order: newest first. `now` is in seconds since 1970.
pub fn fates(runs: &[Run], policy: &Policy, now: i64) -> Vec<Fate> {
    let fate = |(place, run): (usize, &Run)| {
        let Some(moment) = run.moment() else { return Fate::Keep(reason_without_age(run)) };
        let older_than = |days: u32| now.saturating_sub(moment) >= i64::from(days) * DAY_SECONDS;
        match run.status {
            Status::Running => return Fate::Keep(Reason::Running),
            Status::Unreadable => return Fate::Keep(Reason::Unreadable),
            Status::Failed if policy.failed == Failed::Kept => return Fate::Keep(Reason::Failed),
            Status::Failed | Status::Completed | Status::Canceled => {}
        }
        if place < policy.keep_min_runs {
            Fate::Keep(Reason::Newest)
        } else if policy.outdated == Outdated::Deleted && older_than(policy.retention_days) {
            Fate::Delete
        } else if older_than(policy.archive_after_days) {
            Fate::Archive
        } else {
            Fate::Keep(Reason::Young)
        }
    };
    runs.iter().enumerate().map(fate).collect()
}

fn reason_without_age(run: &Run) -> Reason {
    match run.status {
        Status::Running => Reason::Running,
        Status::Unreadable => Reason::Unreadable,
        Status::Failed | Status::Completed | Status::Canceled => Reason::Undated,
    }
}

/// Whether an archive is older than the rules allow. Its age counts from its creation: what was archived today is not deleted
/// today, however old it is.
pub fn is_outdated(archived: &Archived, policy: &Policy, now: i64) -> bool {
    let days_max = i64::from(policy.archive_retention_days) * DAY_SECONDS;
    archived.moment.is_some_and(|moment| now.saturating_sub(moment) >= days_max)
}

#[cfg(test)]
mod tests {
    use stenograph::time::Time;

    use super::*;
    use crate::layouts::devflow::Base;

    const NOW: &str = "2026-03-31T00:00:00Z";

    fn run(id: &str, status: Status, ended: Option<&str>) -> Run {
        let empty = Run::read(&Base::at(std::path::Path::new("none")), id);
        Run { status, ended: ended.map(|ended| Time::iso(ended.to_owned().into()).unwrap()), ..empty }
    }

    fn decide(runs: &[Run], policy: &Policy) -> Vec<Fate> {
        fates(runs, policy, Time::iso(NOW.into()).unwrap().to_seconds().unwrap())
    }

    fn none_kept() -> Policy {
        Policy { keep_min_runs: 0, ..Policy::default() }
    }

    #[test]
    fn the_defaults_are_those_of_devflow() {
        let policy = Policy::default();
        assert_eq!((policy.retention_days, policy.archive_after_days, policy.archive_retention_days), (30, 7, 90));
        assert_eq!((policy.failed, policy.keep_min_runs), (Failed::Kept, 100));
    }

    #[test]
    fn an_old_run_is_archived_and_deleted_only_on_request() {
        let runs = [
            run("young", Status::Completed, Some("2026-03-24T00:00:01Z")),
            run("old", Status::Canceled, Some("2026-03-24T00:00:00Z")),
            run("older", Status::Completed, Some("2026-03-01T00:00:00Z")),
        ];
        assert_eq!(decide(&runs, &none_kept()), [Fate::Keep(Reason::Young), Fate::Archive, Fate::Archive]);
        let deleting = Policy { outdated: Outdated::Deleted, ..none_kept() };
        assert_eq!(decide(&runs, &deleting), [Fate::Keep(Reason::Young), Fate::Archive, Fate::Delete]);
        // A clock that jumped back makes nothing old.
        assert_eq!(fates(&runs, &deleting, 0), [Fate::Keep(Reason::Young); 3]);
    }

    #[test]
    fn active_failed_new_and_unreadable_runs_stay() {
        let old = Some("2025-01-01T00:00:00Z");
        let runs = [
            run("first", Status::Completed, old),
            run("running", Status::Running, old),
            run("failed", Status::Failed, old),
            run("unreadable", Status::Unreadable, old),
            run("undated", Status::Completed, None),
            run("2025-01-01-dated-by-its-id", Status::Completed, None),
        ];
        let policy = Policy { keep_min_runs: 1, outdated: Outdated::Deleted, ..Policy::default() };
        let kept = |reason| Fate::Keep(reason);
        assert_eq!(
            decide(&runs, &policy),
            [
                kept(Reason::Newest),
                kept(Reason::Running),
                kept(Reason::Failed),
                kept(Reason::Unreadable),
                kept(Reason::Undated),
                Fate::Delete
            ]
        );
        let told = Policy { failed: Failed::LikeOthers, ..policy };
        assert_eq!(decide(&runs, &told)[2], Fate::Delete);
    }

    #[test]
    fn an_archive_goes_by_when_it_was_made() {
        let archived = |moment| Archived { id: "2020-01-01-x".into(), path: "x".into(), moment, size: 1 };
        let policy = Policy::default();
        assert!(is_outdated(&archived(Some(0)), &policy, 90 * DAY_SECONDS));
        assert!(!is_outdated(&archived(Some(1)), &policy, 90 * DAY_SECONDS));
        assert!(!is_outdated(&archived(None), &policy, i64::MAX));
    }
}
