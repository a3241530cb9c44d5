//! The tool calls of a session, each with its events and its outcome. The fold [`Calls`] decides; this file only puts together what it
//! returns event by event.

use std::sync::Arc;

use crate::calls::{CallOutcome, Calls, Decision, OutcomeRule};
use crate::evidence::{CallArguments, CallKind};
use crate::model::{Body, Event, Input, Kind};

/// A tool call, and what came of it.
#[derive(Clone, Debug)]
pub struct SessionCall<'s> {
    tool: Arc<str>,
    event: Option<&'s Event<'static>>,
    result: Option<&'s Event<'static>>,
    decision: Option<(Decision, &'s Event<'static>)>,
}

impl<'s> SessionCall<'s> {
    /// The name of the tool; empty where no record states it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The event of the call; `None` where the source has only its result, or only a report of it.
    pub fn event(&self) -> Option<&'s Event<'static>> {
        self.event
    }

    /// What the tool was given.
    pub fn input(&self) -> Option<&'s Input<'static>> {
        match &self.event?.body {
            Body::ToolCall { input, .. } => Some(input),
            _ => None,
        }
    }

    /// What the call does, and its arguments under the same names for all agents.
    pub fn arguments(&self) -> Option<(CallKind, CallArguments)> {
        CallArguments::of(self.event?)
    }

    /// The event of the first result.
    pub fn result(&self) -> Option<&'s Event<'static>> {
        self.result
    }

    /// What came of the call.
    pub fn outcome(&self) -> CallOutcome {
        self.decision.map_or(CallOutcome::Unknown, |(decision, _)| decision.outcome)
    }

    /// Whether the call did not do what was requested: it failed, was denied or was interrupted.
    pub fn failed(&self) -> bool {
        self.outcome().is_failure()
    }

    /// Why the outcome was decided.
    pub fn rule(&self) -> OutcomeRule {
        self.decision.map_or(OutcomeRule::NoEvidence, |(decision, _)| decision.rule)
    }

    /// The event that decided the outcome.
    pub fn decided_by(&self) -> Option<&'s Event<'static>> {
        self.decision.map(|(_, event)| event)
    }

    /// The exit code, where a record states one.
    pub fn exit(&self) -> Option<i64> {
        self.decision.and_then(|(decision, _)| decision.exit)
    }
}

/// The calls of these events, in the order in which they first occur.
pub(super) fn calls<'s>(events: &'s [Event<'static>]) -> Vec<SessionCall<'s>> {
    let mut fold = Calls::default();
    let mut found: Vec<SessionCall<'s>> = Vec::new();
    for event in events {
        let step = fold.add(event);
        if let Some(call) = step.call.and_then(|number| numbered(&mut found, number)) {
            if let Some(tool) = step.tool.filter(|_| call.tool.is_empty()) {
                call.tool = tool;
            }
            match event.kind() {
                Kind::ToolCall => call.event = call.event.or(Some(event)),
                Kind::ToolResult => call.result = call.result.or(Some(event)),
                // A report is neither the call nor its result.
                _ => {}
            }
        }
        for decision in step.decision.into_iter().chain(step.later) {
            if let Some(call) = numbered(&mut found, decision.call) {
                call.decision = Some((decision, event));
            }
        }
    }
    found
}

/// The call of that number. Numbers begin with 1, and the fold gives them one after the other.
fn numbered<'f, 's>(found: &'f mut Vec<SessionCall<'s>>, number: u64) -> Option<&'f mut SessionCall<'s>> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    if at == found.len() {
        found.push(SessionCall { tool: Arc::from(""), event: None, result: None, decision: None });
    }
    found.get_mut(at)
}
