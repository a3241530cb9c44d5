//! Explains the outcomes in an audit: for each one, the rule and the record that decided it.

use super::json::at;
use super::report::{Audit, Call, EventPlace, Fault, FaultKind, Phase, StuckKind};
use super::thread_name;
use crate::calls::{CallOutcome, OutcomeRule};
use crate::json::Draft;
use crate::run_state::RunRule;

/// What an explanation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Explained {
    /// The state of the run.
    Run,
    /// The outcome of a call.
    Call,
    /// An error of the run.
    Error,
    /// That an error of the run is recovered.
    Recovery,
    /// A phase without progress.
    Stuck,
}

impl Explained {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Explained::Run => "run",
            Explained::Call => "call",
            Explained::Error => "error",
            Explained::Recovery => "recovery",
            Explained::Stuck => "stuck",
        }
    }
}

/// The reason for an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What an explanation is about.
    pub what: Explained,
    /// Its conversation.
    pub thread: usize,
    /// The tool of a call, the name of an error.
    pub name: Option<String>,
    /// The outcome.
    pub outcome: &'static str,
    /// The rule that decided it, for programs.
    pub rule: &'static str,
    /// The rule that decided it, for people.
    pub sentence: &'static str,
    /// The record that decided it.
    pub place: EventPlace,
    /// The call, the error or the first call of the phase.
    pub of: Option<EventPlace>,
}

impl Audit {
    /// The reasons for the state of the run, for unsuccessful calls, errors, recoveries and phases without progress. The state comes first, the
    /// others follow in the order of the records that decided them.
    pub fn explanations(&self) -> Vec<Explanation> {
        let calls = self.calls.items.iter().filter_map(|call| self.explained_call(call));
        let errors = self.errors.items.iter().flat_map(explained_error);
        let mut found: Vec<Explanation> =
            calls.chain(errors).chain(self.phases.items.iter().map(explained_stuck)).collect();
        found.sort_by_key(|one| (one.place.source, one.place.event));
        let (rule, sentence) = (self.end.rule.name(), self.end.rule.sentence());
        let (name, outcome, place) = (Some(self.end.why.name().to_owned()), self.end.state.name(), self.end.place);
        let state = Explanation { what: Explained::Run, thread: 0, name, outcome, rule, sentence, place, of: None };
        found.insert(0, state);
        found
    }

    /// Adds the explanations to an object.
    pub fn put_explanations(&self, draft: &mut Draft<'static>) {
        let explained = self.explanations();
        let one = |one: &Explanation| {
            let mut object = at(one.place);
            object.set_str("what", one.what.name());
            object.set_opt("thread", thread_name(self, one.thread));
            object.set_opt("name", one.name.as_deref());
            object.set_str("outcome", one.outcome);
            object.set_str("rule", one.rule);
            object.set_str("text", one.sentence);
            if let Some(of) = one.of {
                object.set("of", at(of).render(None));
            }
            object.render(None)
        };
        draft.set_list("explain", explained.iter().map(one));
    }

    fn explained_call(&self, call: &Call) -> Option<Explanation> {
        let is_notable = match call.outcome {
            CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Interrupted | CallOutcome::Running => true,
            CallOutcome::Ok => call.rule == OutcomeRule::AnswerCode,
            CallOutcome::Unknown => false,
        };
        let tool = call.tool.and_then(|tool| self.tools.get(tool)).map(|tool| tool.name.clone());
        is_notable.then(|| Explanation {
            what: Explained::Call,
            thread: call.thread,
            name: tool,
            outcome: call.outcome.name(),
            rule: call.rule.name(),
            sentence: call.rule.sentence(),
            place: call.decided.or(call.answer).unwrap_or(call.place),
            of: Some(call.place),
        })
    }
}

/// The explanation of an error, and of its recovery if it is recovered.
fn explained_error(error: &Fault) -> impl Iterator<Item = Explanation> + use<> {
    let (rule, sentence) = match error.kind {
        FaultKind::Interrupted => (RunRule::InterruptionMessage.name(), RunRule::InterruptionMessage.sentence()),
        FaultKind::Stop => ("failed_stop", "the record states that the run ended without success"),
        FaultKind::Tool | FaultKind::Denied | FaultKind::Failure | FaultKind::Unfinished => {
            ("error_record", "the record states that the run hit an error")
        }
    };
    let stated = Explanation {
        what: Explained::Error,
        thread: error.thread,
        name: error.name.clone(),
        outcome: error.kind.name(),
        rule,
        sentence,
        place: error.place,
        of: None,
    };
    let recovery = error.recovered_by.map(|place| Explanation {
        what: Explained::Recovery,
        outcome: "recovered",
        rule: "recovery",
        sentence: "the model answers, a call succeeds, or the run reports success",
        place,
        of: Some(error.place),
        ..stated.clone()
    });
    [Some(stated), recovery].into_iter().flatten()
}

fn explained_stuck(phase: &Phase) -> Explanation {
    let rule = match phase.kind {
        StuckKind::Failing => RunRule::FailingSteps,
        StuckKind::Repeating => RunRule::RepeatedCalls,
    };
    Explanation {
        what: Explained::Stuck,
        thread: phase.thread,
        name: Some(phase.tool.clone()).filter(|tool| !tool.is_empty()),
        outcome: phase.kind.name(),
        rule: rule.name(),
        sentence: rule.sentence(),
        place: phase.to,
        of: Some(phase.from),
    }
}
