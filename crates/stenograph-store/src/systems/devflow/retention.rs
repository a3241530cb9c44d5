//! How long runs are kept: a plan of what goes where, made from what is known of the runs. Nothing here touches a disk; what is
//! planned is shown as it is, and then done.

use super::archive::Archived;
use crate::layouts::devflow::{Run, Status};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The rules, by devflow's names and with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// With [`Outdated::Deleted`]: a run older than this is removed without being put away.
    pub retention_days: u32,
    /// A run older than this is put away.
    pub archive_after_days: u32,
    /// An archive older than this is removed.
    pub archive_retention_days: u32,
    /// Whether failed runs stay where they are.
    pub failed: Failed,
    /// This many of the newest runs stay where they are.
    pub keep_min_runs: usize,
    /// What becomes of runs that are older than the retention.
    pub outdated: Outdated,
}

/// What becomes of failed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// They stay: somebody may want to know why.
    Kept,
    /// They go like all others.
    LikeOthers,
}

/// What becomes of runs that are older than the retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated {
    /// They are put away like all others: nothing is removed that was not put away.
    Archived,
    /// They are removed.
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

/// What becomes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is put away.
    Archive,
    /// It is removed for good.
    Delete,
    /// It stays, for this reason.
    Keep(Reason),
}

/// Why a run stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It goes on.
    Running,
    /// It failed.
    Failed,
    /// It is one of the newest.
    Newest,
    /// It is not old enough.
    Young,
    /// Nothing tells how old it is.
    Undated,
    /// Nobody knows what it is.
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

/// What becomes of every run, in the order they were given: newest first. `now` is in seconds since 1970.
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

/// Whether an archive is older than the rules allow. Its age is counted from when it was made: what was put away today is not
/// removed today, however old it is.
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
    fn an_old_run_is_put_away_and_never_removed_unless_told() {
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
    fn what_runs_what_failed_what_is_new_and_what_nobody_understands_stays() {
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
