//! The account of a ledger: what was joined, what was left out, why and where, and which prices were taken.

use stenograph::ledger::{Decision, Ledger, Prices, Report};
use stenograph::text::quote;

use crate::error::CommandError;
use crate::output::{Ink, Output, counted, grouped, harmless_line};

/// Tells it to people.
pub fn tell(ledger: &Ledger, report: &Report, prices: &Prices, output: &mut Output<'_>) -> Result<(), CommandError> {
    let colour = output.colour();
    let records: u64 = ledger.entries.iter().map(|entry| u64::from(entry.row.records)).sum();
    output.line("")?;
    output.line(&format!(
        "{} in the ledger, told of by {}",
        counted(ledger.entries.len() as u64, "row"),
        counted(records, "record")
    ))?;
    for decision in &ledger.decisions {
        let verb = if decision.reason.is_merged() { "joined" } else { "left out" };
        let count = grouped(decision.count);
        output.line(&format!("  {count} {verb}: {}", decision.reason.says()))?;
        for (source, line) in &decision.examples {
            let place = format!("{}:{line}", harmless_line(ledger.source(*source)));
            output.line(&format!("      {}", colour.ink(Ink::Faint, &place)))?;
        }
    }
    if !report.total.cost.money.is_none_or(stenograph::ledger::Money::is_zero) {
        output.line(&format!("prices of {} from {}", prices.date(), prices.source()))?;
    }
    Ok(())
}

/// The decisions as JSON.
pub fn json(ledger: &Ledger) -> Vec<String> {
    let one = |decision: &Decision| {
        let examples: Vec<String> = decision
            .examples
            .iter()
            .map(|(source, line)| format!("{{\"file\":{},\"line\":{line}}}", quote(ledger.source(*source))))
            .collect();
        format!(
            "{{\"reason\":\"{}\",\"merged\":{},\"count\":{},\"says\":{},\"examples\":[{}]}}",
            decision.reason.name(),
            decision.reason.is_merged(),
            decision.count,
            quote(decision.reason.says()),
            examples.join(",")
        )
    };
    ledger.decisions.iter().map(one).collect()
}
