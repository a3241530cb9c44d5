//! Selects runs by flow, status and date, in one base folder.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use stenograph::time::Time;
use stenograph_store::layouts::devflow::{self, Base, DevflowRun, RunStatus};

use crate::clock;
use crate::error::CommandError;

/// Which runs.
#[derive(Debug, clap::Args)]
pub struct RunSelection {
    /// Folder with runs/ and archive/
    #[arg(long, value_name = "DIR", default_value = devflow::BASE)]
    base: PathBuf,
    /// Select only runs of this flow
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    /// Select only runs with this status (repeat, or separate with commas)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = statuses())]
    status: Vec<String>,
    /// Select only runs whose id, flow, node, error or first question contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    find: Option<String>,
    /// Select only runs that began at WHEN or later: a date (2025-01-15), a time, or an age (30m, 24h, 7d, 2w)
    #[arg(long, value_name = "WHEN", value_parser = seconds)]
    since: Option<i64>,
    /// Select only runs that began before WHEN: a date (2025-01-15), a time, or an age (30m, 24h, 7d, 2w)
    #[arg(long, value_name = "WHEN", value_parser = seconds)]
    before: Option<i64>,
}

fn statuses() -> PossibleValuesParser {
    PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::name))
}

impl RunSelection {
    /// The base folder, which must exist.
    pub fn base(&self) -> Result<Base, CommandError> {
        if self.base.is_dir() {
            return Ok(Base::at(&self.base));
        }
        Err(CommandError::new(format!("{}: no such folder", self.base.display()))
            .hint("give the folder that contains runs/ with --base DIR"))
    }

    /// Whether the selection includes a run.
    pub fn has(&self, run: &DevflowRun) -> bool {
        let began = run.started.as_ref().and_then(Time::to_seconds).or_else(|| run.moment());
        let since = self.since.is_none_or(|since| began.is_some_and(|began| began >= since));
        let before = self.before.is_none_or(|before| began.is_some_and(|began| began < before));
        let flow = self.flow.as_ref().is_none_or(|flow| *flow == run.flow);
        let status = self.status.is_empty() || self.status.iter().any(|status| status == run.status.name());
        since && before && flow && status && self.finds(run)
    }

    fn finds(&self, run: &DevflowRun) -> bool {
        let Some(text) = self.find.as_ref().map(|text| text.to_lowercase()) else { return true };
        let fields = [Some(&run.id), Some(&run.flow), run.node.as_ref(), run.error.as_ref(), run.query.as_ref()];
        fields.into_iter().flatten().any(|fields| fields.to_lowercase().contains(&text))
    }

    /// Whether the selection includes all runs.
    pub fn is_everything(&self) -> bool {
        self.find.is_none()
            && self.flow.is_none()
            && self.status.is_empty()
            && self.since.is_none()
            && self.before.is_none()
    }
}

/// Parses a time as seconds since 1970: a local date, a time with its offset, or a duration before now.
fn seconds(text: &str) -> Result<i64, String> {
    let bad = || "expected a date (2025-01-15), a time (2025-01-15T10:30:00Z) or an age (30m, 24h, 7d, 2w)".to_owned();
    if let Some(time) = clock::start_of_day(text).or_else(|| Time::iso(text.to_owned().into())) {
        return time.to_seconds().ok_or_else(bad);
    }
    let ago = clock::duration_seconds(text).ok_or_else(bad)?;
    clock::now().to_seconds().and_then(|now| now.checked_sub(ago)).ok_or_else(bad)
}

/// Formats seconds since 1970 for people.
pub fn moment(seconds: i64) -> String {
    clock::format_minute(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_or_a_duration_before_now() {
        assert_eq!(seconds("1970-01-02T00:00:00Z"), Ok(86_400));
        assert!(seconds("yesterday").is_err());
        assert!(seconds("2025-02-30").is_err());
        let day = seconds("2025-01-16").unwrap() - seconds("2025-01-15").unwrap();
        assert!((23 * 3600..=25 * 3600).contains(&day));
    }
}
