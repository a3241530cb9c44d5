//! Selects runs by flow, status and date, in one base folder.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use stenograph::time::Time;
use stenograph_store::layouts::devflow::{self, Base, DevflowRun, RunStatus};

use crate::clock;
use crate::error::CommandError;
use crate::filter::{PeriodArgs, TimeRange};

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
    #[command(flatten)]
    pub period: PeriodArgs,
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
    pub fn has(&self, run: &DevflowRun, range: &TimeRange) -> bool {
        let began = run.started.as_ref().and_then(Time::to_seconds).or_else(|| run.moment());
        let is_in_period = range.has(began.map(|began| began.saturating_mul(1000)));
        let flow = self.flow.as_ref().is_none_or(|flow| *flow == run.flow);
        let status = self.status.is_empty() || self.status.iter().any(|status| status == run.status.name());
        is_in_period && flow && status && self.finds(run)
    }

    fn finds(&self, run: &DevflowRun) -> bool {
        let Some(text) = self.find.as_ref().map(|text| text.to_lowercase()) else { return true };
        let fields = [Some(&run.id), Some(&run.flow), run.node.as_ref(), run.error.as_ref(), run.query.as_ref()];
        fields.into_iter().flatten().any(|fields| fields.to_lowercase().contains(&text))
    }

    /// Whether the selection includes all runs.
    pub fn is_everything(&self) -> bool {
        self.find.is_none() && self.flow.is_none() && self.status.is_empty() && self.period.is_empty()
    }
}

/// Formats seconds since 1970 for people.
pub fn moment(seconds: i64) -> String {
    clock::format_minute(seconds.saturating_mul(1000))
}
