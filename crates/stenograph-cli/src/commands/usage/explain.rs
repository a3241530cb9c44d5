//! Explains a ledger: what was merged or left out, why and where, and which prices apply.

use std::path::Path;

use stenograph::json::Draft;
use stenograph::ledger::{Ledger, LedgerDecision, Price, PriceCounter, Prices, ServiceTier, Tokens, UsageReport};
use stenograph_store::usage::UnrecognizedFiles;

use crate::error::CommandError;
use crate::output::{Output, TextStyle, counted, grouped, harmless_line};
use crate::table;
use crate::terminal::fitted_path;

/// The columns before a place, and those after its path.
const INDENT: usize = 6;
const LINE_NUMBER_WIDTH: usize = 8;

/// For people.
pub fn print(
    ledger: &Ledger,
    report: &UsageReport,
    prices: &Prices,
    strangers: &UnrecognizedFiles,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let colour = output.colour();
    let width = table::screen_width();
    let room = if width == usize::MAX { width } else { width.saturating_sub(INDENT + LINE_NUMBER_WIDTH) };
    let records: u64 = ledger.entries.iter().map(|entry| u64::from(entry.row.records)).sum();
    output.line("")?;
    output.line(&format!(
        "{} in the ledger, from {}",
        counted(ledger.entries.len() as u64, "row"),
        counted(records, "record")
    ))?;
    for decision in &ledger.decisions {
        let verb = if decision.reason.is_merged() { "merged" } else { "left out" };
        let count = grouped(decision.count);
        output.line(&format!("  {count} {verb}: {}", decision.reason.says()))?;
        for (source, line) in &decision.examples {
            let place = format!("{}:{line}", fitted_path(Path::new(ledger.source(*source)), room));
            output.line(&format!("      {}", colour.paint(TextStyle::Faint, &place)))?;
        }
    }
    if strangers.count > 0 {
        output.line(&format!("{} left out: unknown format", counted(strangers.count, "file")))?;
        for path in &strangers.examples {
            let place = fitted_path(path, room);
            output.line(&format!("      {}", colour.paint(TextStyle::Faint, &place)))?;
        }
    }
    let models: Vec<&String> = report.total.models.iter().filter(|model| prices.knows(model)).collect();
    if !models.is_empty() {
        output.line(&format!("prices of {} from {}, in dollars per million tokens", prices.date(), prices.source()))?;
    }
    for model in models {
        if let Some(price) = prices.price(model, ServiceTier::Standard) {
            output.line(&format!("  {}: {}", harmless_line(model), rates(&price, model)))?;
        }
    }
    Ok(())
}

/// The rates of a model for small contexts, and the name under which they were found.
fn rates(price: &Price, model: &str) -> String {
    let small = Tokens { input: 1, ..Tokens::default() };
    let rates = price.rates(&small, 1);
    let counters = [
        PriceCounter::Input,
        PriceCounter::Output,
        PriceCounter::CacheWrite,
        PriceCounter::CacheWriteHour,
        PriceCounter::CacheRead,
    ];
    let rate = |counter: PriceCounter| Some(format!("{} {}", counter.name(), rates.of(counter)?.times(MILLION)?));
    let mut said: Vec<String> = counters.into_iter().filter_map(rate).collect();
    let over = price.tiers().iter().skip(1).map(|tier| format!("higher above {} tokens", grouped(tier.over)));
    said.extend(over);
    if price.found_as != model {
        said.push(format!("priced as {}", harmless_line(&price.found_as)));
    }
    said.join(", ")
}

const MILLION: u64 = 1_000_000;

pub fn json(ledger: &Ledger) -> impl Iterator<Item = String> {
    ledger.decisions.iter().map(|LedgerDecision { reason, count, examples, .. }| {
        let examples = examples
            .iter()
            .map(|(source, line)| Draft::new().with("file", ledger.source(*source)).with("line", line).render(None));
        let draft = Draft::new().with("reason", reason.name()).with("merged", reason.is_merged());
        draft.with("count", count).with("says", reason.says()).with_list("examples", examples).render(None)
    })
}
