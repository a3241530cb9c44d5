//! The ledger of a session as CSV: a row for each model call, with its usage, its cost and its position in the source.

use std::io::Write;

use stenograph::ledger::{Ledger, LedgerEntry, Money, Name, Prices};

use crate::clock;
use crate::csv;
use crate::error::CommandError;

const HEADINGS: [&str; 21] = [
    "time",
    "agent",
    "session",
    "subagent",
    "model",
    "service_tier",
    "folder",
    "branch",
    "tools",
    "calls",
    "input",
    "output",
    "cache_write",
    "cache_write_hour",
    "cache_read",
    "reasoning",
    "searches",
    "fetches",
    "cost",
    "stated_cost",
    "source",
];

pub fn write(ledger: &Ledger, prices: &Prices, out: &mut dyn Write) -> Result<(), CommandError> {
    writeln!(out, "{}", csv::line(HEADINGS))?;
    for entry in &ledger.entries {
        writeln!(out, "{}", csv::line(cells(ledger, entry, prices)))?;
    }
    Ok(())
}

fn cells(ledger: &Ledger, entry: &LedgerEntry, prices: &Prices) -> [String; 21] {
    let row = &entry.row;
    let name = |name: Option<Name>| ledger.name(name).unwrap_or_default().to_owned();
    let tools: Vec<&str> = row.tools.iter().filter_map(|tool| ledger.name(Some(tool))).collect();
    let price = ledger.name(row.model).and_then(|model| prices.price(model, row.service_tier));
    let cost = price.and_then(|price| price.cost(&row.tokens, row.calls));
    let money = |money: Option<Money>| money.map(|money| money.to_string()).unwrap_or_default();
    let tokens = row.tokens;
    let count = |number: u64| number.to_string();
    [
        clock::iso(row.time).unwrap_or_default(),
        name(Some(row.agent)),
        name(row.session),
        name(row.thread),
        name(row.model),
        row.service_tier.name().to_owned(),
        name(row.cwd),
        name(row.branch),
        tools.join(" "),
        row.calls.to_string(),
        count(tokens.input),
        count(tokens.output),
        count(tokens.cache_write),
        count(tokens.cache_write_hour),
        count(tokens.cache_read),
        count(tokens.reasoning),
        count(tokens.searches),
        count(tokens.fetches),
        money(cost),
        money(row.stated_cost.and_then(|stated| Money::parse(&stated.to_string()))),
        format!("{}:{}", ledger.source(entry.source), row.line),
    ]
}
