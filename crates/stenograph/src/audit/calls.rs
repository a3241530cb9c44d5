//! The calls of a session, tallied by tool: a call counts once however often it is told. Which answer belongs to which call, and what came of
//! it, the fold [`crate::calls::Calls`] decides; here calls go by its numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

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
    early: BTreeMap<u64, (Answer, Place)>,
    /// Where each numbered call is kept, if it is, and its tool.
    places: HashMap<u64, (Option<usize>, usize)>,
    seen: HashSet<u64>,
    /// Ids of calls that were made, to know an answer that is told again.
    ids: HashSet<u64>,
    failed: HashSet<u64>,
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
    /// The work that it asks after, if it asks for some.
    pub after: Option<usize>,
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
        let call = Call {
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
            is_retry,
            answer: None,
            decided: None,
            said: None,
            asks_after: None,
        };
        open.at = self.keep(call);
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

    /// Keeps an answer whose call may follow.
    pub fn keep_early(&mut self, number: u64, id: Option<&str>, answer: Answer, place: Place) {
        let id = Fold::id(id);
        if id == 0 || self.ids.contains(&id) {
            return;
        }
        if self.early.len() >= EARLY_MAX {
            self.early.pop_first();
        }
        self.early.insert(number, (answer, place));
    }

    /// The answer that came before the call of this number.
    pub fn early(&mut self, number: u64) -> Option<(Answer, Place)> {
        self.early.remove(&number)
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
