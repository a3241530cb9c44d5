//! Why a run has its state: the rule and the record that decided it, and the last error that was recovered.

use stenograph::json::Draft;
use stenograph::run_state::EventPlace;
use stenograph_store::follow;
use stenograph_store::runs::RunLook;

use crate::output::harmless_line;

/// For people: a line for the state, and one for the last recovered error.
pub fn lines(run: &RunLook) -> Vec<String> {
    let decision = &run.status.decision;
    let name = harmless_line(&run.id().unwrap_or_else(|| run.path.display().to_string()));
    let (state, rule) = (run.status.state.name(), decision.rule);
    let place = record(run, decision.to).map(|place| format!(" ({place})")).unwrap_or_default();
    let mut lines = vec![format!("{name}: {state}: {}{place}", rule.sentence())];
    if let Some(recovery) = run.status.recovery
        && let (Some(error), Some(by)) = (record(run, recovery.error), record(run, recovery.by))
    {
        lines.push(format!("{name}: recovered: the error at {error} was followed by a success at {by}"));
    }
    lines
}

/// For programs: the run with the rules and the records behind its state.
pub fn run_json(run: &RunLook) -> String {
    let mut draft = run.draft();
    draft.set("explain", json(run));
    draft.render(None)
}

fn json(run: &RunLook) -> String {
    let decision = &run.status.decision;
    let mut draft = at(run, decision.to);
    draft.set_str("rule", decision.rule.name());
    draft.set_str("text", decision.rule.sentence());
    if decision.from != decision.to {
        draft.set("from", at(run, decision.from).render(None));
    }
    if let Some(recovery) = run.status.recovery {
        draft.set("recovered_error", at(run, recovery.error).render(None));
        draft.set("recovered_by", at(run, recovery.by).render(None));
    }
    draft.render(None)
}

fn at(run: &RunLook, place: EventPlace) -> Draft<'static> {
    let mut draft = Draft::new();
    if place.event > 0 {
        draft.set_number("line", line(run, place));
        draft.set_number("offset", Some(place.offset));
    }
    draft
}

fn record(run: &RunLook, place: EventPlace) -> Option<String> {
    match line(run, place) {
        _ if place.event == 0 => None,
        Some(line) => Some(format!("line {line}")),
        None => Some(format!("byte {}", place.offset)),
    }
}

/// The line of a record. What was read from the end of a large file has no line until somebody counts.
fn line(run: &RunLook, place: EventPlace) -> Option<u64> {
    match place.line {
        0 => follow::line_at(&run.path, place.offset).ok(),
        line => Some(line),
    }
}
