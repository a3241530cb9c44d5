//! The calls of a session, tallied by tool: a call counts once however often it is told. Which answer belongs to which call, and what came of
//! it, the fold [`crate::calls::Calls`] decides; here calls go by its numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::agents::Job;
use super::answer::Answer;
use super::keys::Keys;
use super::report::{Call, CallOutcome, Capped, Place, Tool};
use crate::calls::{Calls as Fold, Decision, OutcomeRule};
use crate::model::is_lasting_id;
use crate::query::Touch;
use crate::text::beginning;

/// The calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub tools: Vec<Tool>,
    pub kept: Capped<Call>,
    names: HashMap<String, usize>,
    /// How many bytes the kept calls have.
    size: usize,
    /// The fold that decides.
    pub fold: crate::calls::Calls,
    open: BTreeMap<u64, Open>,
    early: BTreeMap<u64, EarlyAnswer>,
    /// Where each numbered call is kept, if it is, and its tool.
    places: HashMap<u64, (Option<usize>, usize)>,
    seen: HashSet<u64>,
    /// Ids of calls that were made, to know an answer that is told again.
    ids: HashSet<u64>,
    failed: HashSet<u64>,
}

/// An answer whose call is not known: the call may follow, or nobody recorded it.
#[derive(Debug)]
pub(super) struct EarlyAnswer {
    pub answer: Answer,
    pub place: Place,
    /// What the answer alone decides.
    pub decision: Decision,
    pub thread: usize,
    /// The tool that the answer names.
    pub tool: Option<String>,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Open {
    pub thread: usize,
    pub tool: usize,
    /// A fingerprint of the tool and its input.
    pub print: u64,
    pub place: Place,
    /// Where it is kept, if it is.
    pub at: Option<usize>,
    pub keys: Keys,
    pub touches: Vec<Touch>,
    /// Its number in what stands before the model.
    pub number: u64,
    /// The jobs that it polls, each with the name that it uses.
    pub polled: Vec<(String, Job)>,
    /// What it adds to the list of what is to do.
    pub todo: Option<String>,
    /// The agent that it gives a task.
    pub agent: Option<usize>,
}

/// How many calls are kept one by one. A session of a week has some thousands.
const CALLS_MAX: usize = 50_000;

/// How many bytes of their inputs are kept.
const SIZE_MAX: usize = 32 << 20;

/// How many tools are told apart; a session has dozens.
const TOOLS_MAX: usize = 4096;

/// How many answers may stand before their calls.
const EARLY_MAX: usize = 64;

/// How many calls are remembered to know them again.
const SEEN_MAX: usize = 4 << 20;

/// The name under which tools are counted that are too many.
const OTHER_TOOLS: &str = "(other tools)";

/// The name of the tool of an answer that names none and whose call is not recorded.
const UNKNOWN_TOOL: &str = "(unknown tool)";

impl Calls {
    /// Whether a call was told already, by an id that is not given twice.
    pub fn is_known(&mut self, stated: Option<&str>, print: u64) -> bool {
        let id = Fold::id(stated);
        if self.seen.len() >= SEEN_MAX {
            return false;
        }
        if id != 0 {
            self.ids.insert(id);
        }
        let is_lasting = stated.is_some_and(is_lasting_id);
        is_lasting && !self.seen.insert(print ^ id.rotate_left(17))
    }

    /// Takes a new call under the number that the fold gave it.
    pub fn begin(&mut self, number: u64, mut open: Open, name: &str) {
        open.tool = self.tool(name);
        let is_retry = self.failed.contains(&open.print);
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.calls += 1;
            tool.retries += u64::from(is_retry);
        }
        open.at = self.keep(Call { is_retry, ..undecided(&open) });
        if self.places.len() < SEEN_MAX {
            self.places.insert(number, (open.at, open.tool));
        }
        self.open.insert(number, open);
    }

    /// Keeps a call, if there is room.
    pub fn keep(&mut self, call: Call) -> Option<usize> {
        let size = call.keys.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
            + call.command.as_ref().map_or(0, String::len);
        if self.size + size > SIZE_MAX {
            self.kept.more += 1;
            return None;
        }
        self.size += size;
        self.kept.push(call, CALLS_MAX)
    }

    /// The call of this number, which waits no longer.
    pub fn take(&mut self, number: u64) -> Option<Open> {
        self.open.remove(&number)
    }

    /// Keeps an answer whose call may follow. Returns an answer whose call is no longer expected.
    pub fn keep_early(&mut self, id: Option<&str>, answer: EarlyAnswer) -> Option<EarlyAnswer> {
        let id = Fold::id(id);
        if id == 0 {
            return Some(answer);
        }
        if self.ids.contains(&id) {
            return None;
        }
        let given_up = if self.early.len() < EARLY_MAX { None } else { self.early.pop_first() };
        self.early.insert(answer.decision.call, answer);
        given_up.map(|(_, early)| early)
    }

    /// The answer that came before the call of this number.
    pub fn early(&mut self, number: u64) -> Option<EarlyAnswer> {
        self.early.remove(&number)
    }

    /// The answers whose calls never came.
    pub fn rest_of_early(&mut self) -> Vec<EarlyAnswer> {
        std::mem::take(&mut self.early).into_values().collect()
    }

    /// The call of an answer without one. It is listed with its tool, but counts as an outcome only, because no record makes it.
    pub fn without_call(&mut self, early: &EarlyAnswer) -> Open {
        let tool = self.tool(early.tool.as_deref().unwrap_or(UNKNOWN_TOOL));
        // Nobody knows how long it took.
        let place = Place { time_ms: None, ..early.place };
        let mut open = Open {
            thread: early.thread,
            tool,
            print: early.decision.call,
            place,
            at: None,
            keys: Keys::default(),
            touches: Vec::new(),
            number: 0,
            polled: Vec::new(),
            todo: None,
            agent: None,
        };
        open.at = self.keep(undecided(&open));
        open
    }

    /// Whether a call with this id was made.
    pub fn is_made(&self, id: Option<&str>) -> bool {
        self.ids.contains(&Fold::id(id))
    }

    /// A later record decides what came of a call.
    pub fn decide_later(&mut self, decision: &Decision, place: Place) {
        let Some((at, tool)) = self.places.get(&decision.call).copied() else { return };
        let had_failed = match at.and_then(|at| self.kept.items.get_mut(at)) {
            Some(call) => {
                let had_failed = call.outcome.is_failure();
                call.exit = decision.exit.or(call.exit);
                if !had_failed {
                    (call.outcome, call.rule) = (decision.outcome, decision.rule);
                    call.decided = Some(place);
                }
                had_failed
            }
            None => false,
        };
        if let Some(tool) = self.tools.get_mut(tool).filter(|_| !had_failed && decision.outcome.is_failure()) {
            tool.failed += 1;
        }
    }

    /// Writes down what came of a call.
    pub fn settle(&mut self, open: &Open, answer: &Answer, place: Place, decision: &Decision) {
        let outcome = decision.outcome;
        let took_ms = match (open.place.time_ms, place.time_ms) {
            (Some(from), Some(to)) => u64::try_from(to.saturating_sub(from)).ok(),
            _ => None,
        };
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.failed += u64::from(matches!(outcome, CallOutcome::Failed | CallOutcome::Interrupted));
            tool.denied += u64::from(outcome == CallOutcome::Denied);
            if let Some(took_ms) = took_ms {
                tool.timed += 1;
                tool.time_ms = tool.time_ms.saturating_add(took_ms);
                tool.longest_ms = tool.longest_ms.max(took_ms);
            }
        }
        let is_bad = outcome.is_failure();
        if !is_bad {
            self.failed.remove(&open.print);
        } else if self.failed.len() < SEEN_MAX {
            self.failed.insert(open.print);
        }
        if let Some(call) = open.at.and_then(|at| self.kept.items.get_mut(at)) {
            (call.outcome, call.rule) = (outcome, decision.rule);
            call.exit = decision.exit;
            call.took_ms = took_ms;
            (call.answer, call.decided) = (Some(place), Some(place));
            call.said = is_bad.then(|| answer.beginning.clone()).filter(|said| !said.is_empty());
        }
    }

    /// Gives back what never was answered.
    pub fn unanswered(&mut self, open: &Open) {
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.unanswered += 1;
        }
    }

    /// Everything that still waits.
    pub fn rest(&mut self) -> Vec<Open> {
        std::mem::take(&mut self.open).into_values().collect()
    }

    /// The tool of the call of this number, and what the call is about.
    pub fn about(&self, number: u64) -> (&str, &str) {
        let Some((at, tool)) = self.places.get(&number).copied() else { return Default::default() };
        let call = at.and_then(|at| self.kept.items.get(at));
        (self.name(tool), call.map(Call::about).unwrap_or_default())
    }

    /// The name of a tool.
    pub fn name(&self, tool: usize) -> &str {
        self.tools.get(tool).map(|tool| tool.name.as_str()).unwrap_or_default()
    }

    fn tool(&mut self, name: &str) -> usize {
        let name = if self.tools.len() + 1 >= TOOLS_MAX && !self.names.contains_key(name) { OTHER_TOOLS } else { name };
        if let Some(tool) = self.names.get(name) {
            return *tool;
        }
        self.tools.push(Tool { name: beginning(name, 1024).to_owned(), ..Tool::default() });
        self.names.insert(name.to_owned(), self.tools.len() - 1);
        self.tools.len() - 1
    }
}

/// A call without its outcome.
fn undecided(open: &Open) -> Call {
    Call {
        place: open.place,
        thread: open.thread,
        tool: Some(open.tool),
        keys: open.keys.fields.clone(),
        is_cut: open.keys.is_cut,
        command: open.keys.command.clone(),
        outcome: CallOutcome::Unknown,
        rule: OutcomeRule::NoEvidence,
        exit: None,
        took_ms: None,
        is_retry: false,
        answer: None,
        decided: None,
        said: None,
        asks_after: None,
    }
}
