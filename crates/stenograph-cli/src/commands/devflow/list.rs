//! `steno devflow list`: lists runs, newest first, including unreadable ones.

use stenograph::ledger::Money;
use stenograph::time::Time;
use stenograph_store::files::Disk;
use stenograph_store::layouts::devflow::{DevflowRun, RunStatus, index};
use stenograph_store::systems::devflow::archive;

use super::choice::{RunSelection, moment};
use crate::clock;
use crate::clock::format_duration;
use crate::error::{self, CommandError};
use crate::output::{Colour, Output, TextStyle, counted, dollars, harmless_json, harmless_line, shortened};

/// List runs, newest first
///
/// An unreadable run is listed with its error. --json prints the entry of each run in index.json.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno devflow list
  steno devflow list --flow ticket-to-pr --status failed,canceled --since 30d
  steno devflow list --json | jq -r 'select(.totalCost > 1) | .runId'
  steno devflow list --archived")]
pub struct Options {
    #[command(flatten)]
    choice: RunSelection,
    /// List archived runs instead
    #[arg(long)]
    archived: bool,
    /// List only the newest N runs
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object per run
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<error::ExitStatus, CommandError> {
    let base = options.choice.base()?;
    let range = options.choice.period.range()?;
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut listed = 0;
    if options.archived {
        let mut found: Vec<_> = archive::list(&Disk, &base)?.into_iter().map(|found| (found.read(), found)).collect();
        found.retain(|(run, _)| options.choice.has(run, &range));
        found.sort_by_cached_key(|(run, _)| run.order());
        for (run, archived) in found.iter().take(limit) {
            if options.json {
                output.line(&harmless_json(&archived.to_json(run)))?;
            } else {
                show(run, output)?;
                let about = format!("  {}, {}", archived.path.display(), counted(archived.size, "byte"));
                output.line(&harmless_line(&about))?;
            }
            listed += 1;
        }
    } else {
        let runs = index::list(&Disk, &base, &crate::clock::now())?;
        for run in runs.iter().filter(|run| options.choice.has(run, &range)).take(limit) {
            match options.json {
                true => output.line(&harmless_json(&run.to_json()))?,
                false => show(run, output)?,
            }
            listed += 1;
        }
    }
    if listed > 0 {
        return Ok(error::ExitStatus::Done);
    }
    output.say(&format!("no matching runs in {}", base.path().display()));
    Ok(error::ExitStatus::No)
}

const QUERY_LENGTH_MAX: usize = 90;

/// A run on two lines: its facts, and its error or first question.
fn show(run: &DevflowRun, output: &mut Output<'_>) -> Result<(), CommandError> {
    let colour = output.colour();
    let began = run.started.as_ref().and_then(Time::to_millis).map(clock::format_minute);
    let began = began.or_else(|| run.moment().map(moment)).unwrap_or_else(|| "at an unknown time".to_owned());
    let mut parts = vec![colour.paint(TextStyle::Strong, &harmless_line(&run.id)), status(run.status, colour), began];
    if !run.flow.is_empty() {
        parts.push(harmless_line(&run.flow));
    }
    if let Some(took @ 1..) = run.duration_ms() {
        parts.push(format_duration(took));
    }
    if let Some(turns) = run.turn_count {
        parts.push(counted(turns, "turn"));
    }
    if run.tokens_in + run.tokens_out > 0 {
        parts.push(format!("{} tokens in, {} out", run.tokens_in, run.tokens_out));
    }
    if let Some(cost) = run.cost.as_deref().and_then(Money::parse).filter(|cost| !cost.is_zero()) {
        parts.push(dollars(cost));
    }
    output.line(&parts.join("  "))?;
    let about = run.problem.as_deref().or(run.error.as_deref()).or(run.query.as_deref());
    match about {
        None => Ok(()),
        Some(about) => {
            let about = harmless_line(about);
            output.line(&colour.paint(TextStyle::Faint, &format!("  {}", shortened(&about, QUERY_LENGTH_MAX))))
        }
    }
}

fn status(status: RunStatus, colour: Colour) -> String {
    match status {
        RunStatus::Completed => colour.paint(TextStyle::Good, status.name()),
        RunStatus::Failed | RunStatus::Unreadable => colour.paint(TextStyle::Warning, status.name()),
        RunStatus::Running | RunStatus::Canceled => status.name().to_owned(),
    }
}
