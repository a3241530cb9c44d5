//! The header of a replayed conversation. Statements of the agent's system about the whole run are added to what its events say.

use stenograph::ledger::Ledger;
use stenograph::model::{Outline, Usage};
use stenograph_store::layouts::RunSummary;

use crate::clock;
use crate::commands::show::header::of_outline;
use crate::error::CommandError;
use crate::output::{grouped, shortened, stated_dollars};
use crate::terminal::Header;

/// The maximum length of an error in a header.
const ERROR_LENGTH_MAX: usize = 200;

pub fn of_replay(
    name: &str,
    agent: &str,
    outline: &Outline,
    ledger: &Ledger,
    summary: Option<&RunSummary>,
) -> Result<Header, CommandError> {
    let run = summary.map(|summary| summary.run.as_str()).filter(|run| !run.is_empty());
    let agent = summary.map_or(agent, |summary| summary.agent);
    let mut header = of_outline(outline, ledger, agent, outline.session.as_deref().or(run).unwrap_or(name))?;
    if let Some(summary) = summary {
        header.place.extend(summary.flow.iter().map(|flow| format!("flow {flow}")));
        header.place.extend(summary.node.iter().map(|node| format!("node {node}")));
        header.facts = vec![
            summary.started.as_ref().and_then(clock::format_second).unwrap_or_default(),
            summary.duration_ms.map(clock::format_duration).unwrap_or_default(),
            tokens(&Usage { input: Some(summary.tokens_in), output: Some(summary.tokens_out), ..Usage::default() }),
            // devflow writes 0 if the cost is unknown.
            summary.cost.filter(|cost| *cost > 0.0).and_then(stated_dollars).unwrap_or_default(),
        ];
    }
    header.facts.extend(ended(outline).or_else(|| summary.map(|summary| summary.status.to_owned())));
    let failure = outline.failure.as_ref().or(summary.and_then(|summary| summary.error.as_ref()));
    header.facts.extend(failure.map(|failure| format!("error: {}", shortened(failure, ERROR_LENGTH_MAX))));
    Ok(header)
}

/// The end of a conversation, in its own words.
pub fn ended(outline: &Outline) -> Option<String> {
    let outcome = outline.success.map(|success| if success { "success" } else { "no success" });
    let parts_stated: Vec<&str> = [outline.stop.as_deref(), outcome].into_iter().flatten().collect();
    (!parts_stated.is_empty()).then(|| parts_stated.join(", "))
}

pub fn tokens(usage: &Usage) -> String {
    let cached = match (usage.cache_read, usage.cache_write) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0).saturating_add(write.unwrap_or(0))),
    };
    let parts = [(usage.input, "in"), (usage.output, "out"), (cached, "cached")];
    let parts_stated = parts.into_iter().filter_map(|(number, word)| Some(format!("{} {word}", grouped(number?))));
    parts_stated.collect::<Vec<_>>().join(" / ")
}
