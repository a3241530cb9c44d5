//! The calls of a session and their totals by tool. A call that several records repeat counts once. The fold [`crate::calls::Calls`] pairs
//! calls and results and decides outcomes; this module identifies calls by its numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::agents::Job;
use super::answer::Answer;
use super::failures;
use super::keys::Keys;
use super::report::{Call, CallOutcome, Capped, EventPlace, Tool};
use crate::calls::{Calls as CallsFold, Decision, OutcomeRule};
use crate::model::is_lasting_id;
use crate::query::Touch;
use crate::text::beginning;

/// The calls of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    pub tools: Vec<Tool>,
    pub list: Capped<Call>,
    names: HashMap<String, usize>,
    /// The size of the listed calls in bytes.
    size: usize,
    /// The fold that decides outcomes.
    pub fold: crate::calls::Calls,
    open: BTreeMap<u64, OpenCall>,
    early: BTreeMap<u64, EarlyResult>,
    /// Each numbered call.
    numbered: HashMap<u64, NumberedCall>,
    #[serde(with = "super::save::hashes")]
    seen: HashSet<u64>,
    /// Hashes of the ids of calls, to recognize a repeated result.
    #[serde(with = "super::save::hashes")]
    ids: HashSet<u64>,
    #[serde(with = "super::save::hashes")]
    failed: HashSet<u64>,
}

/// What a later record needs to know about a call that it decides again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct NumberedCall {
    pub thread: usize,
    pub tool: usize,
    fingerprint: u64,
    /// The kind of its failure.
    pub kind: u64,
    /// Its index in the list, if it is listed.
    at: Option<usize>,
}

/// A result whose call is unknown: the call may follow, or no record has it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EarlyResult {
    pub answer: Answer,
    pub place: EventPlace,
    /// The outcome by the result alone.
    pub decision: Decision,
    pub thread: usize,
    /// The tool that the result names.
    pub tool: Option<String>,
}

/// A call without a result so far.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OpenCall {
    pub thread: usize,
    pub tool: usize,
    /// A hash of the tool and its input.
    pub fingerprint: u64,
    pub place: EventPlace,
    /// Its index in the list, if it is listed.
    pub at: Option<usize>,
    pub keys: Keys,
    pub touches: Vec<Touch>,
    /// Its number in the context window.
    pub number: u64,
    /// The jobs that it polls, each with the name that it uses.
    pub polled: Vec<(String, Job)>,
    /// The item that it adds to the to-do list.
    pub todo: Option<String>,
    /// The agent that it starts.
    pub agent: Option<usize>,
}

/// The most calls in the list. A session of a week has some thousands.
const CALLS_MAX: usize = 50_000;

/// The most bytes of inputs in the list.
const SIZE_MAX: usize = 32 << 20;

/// The most tools with totals of their own. A session has dozens.
const TOOLS_MAX: usize = 4096;

/// The most results that wait for their calls.
const EARLY_MAX: usize = 64;

/// The most calls that are remembered to recognize repeats.
const SEEN_MAX: usize = 4 << 20;

/// The name for all tools beyond the limit.
const OTHER_TOOLS: &str = "(other tools)";

/// The name for the tool of a result that names no tool and whose call no record has.
const UNKNOWN_TOOL: &str = "(unknown tool)";

impl Calls {
    /// Whether a call is a repeat, by an id that agents do not reuse.
    pub fn is_known(&mut self, stated: Option<&str>, fingerprint: u64) -> bool {
        let id = CallsFold::id(stated);
        if self.seen.len() >= SEEN_MAX {
            return false;
        }
        if id != 0 {
            self.ids.insert(id);
        }
        let is_lasting = stated.is_some_and(is_lasting_id);
        is_lasting && !self.seen.insert(fingerprint ^ id.rotate_left(17))
    }

    /// Adds a call with the number that the fold gave it.
    pub fn begin(&mut self, number: u64, mut open: OpenCall, name: &str) {
        open.tool = self.tool(name);
        let is_retry = self.failed.contains(&open.fingerprint);
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.calls += 1;
            tool.retries += u64::from(is_retry);
        }
        open.at = self.keep(Call { is_retry, ..undecided(&open) });
        if self.numbered.len() < SEEN_MAX {
            let OpenCall { thread, tool, fingerprint, at, .. } = open;
            let kind = failures::kinds(&open, self.name(tool)).first().copied().unwrap_or_default();
            self.numbered.insert(number, NumberedCall { thread, tool, fingerprint, kind, at });
        }
        self.open.insert(number, open);
    }

    /// Adds a call to the list, if there is room.
    pub fn keep(&mut self, call: Call) -> Option<usize> {
        let size = call.keys.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
            + call.command.as_ref().map_or(0, String::len);
        if self.size + size > SIZE_MAX {
            self.list.more += 1;
            return None;
        }
        self.size += size;
        self.list.push(call, CALLS_MAX)
    }

    /// Removes the open call with this number.
    pub fn take(&mut self, number: u64) -> Option<OpenCall> {
        self.open.remove(&number)
    }

    /// Adds a result whose call may follow. Returns a result whose call is no longer expected.
    pub fn add_early(&mut self, id: Option<&str>, answer: EarlyResult) -> Option<EarlyResult> {
        let id = CallsFold::id(id);
        if id == 0 {
            return Some(answer);
        }
        let evicted = if self.early.len() < EARLY_MAX { None } else { self.early.pop_first() };
        self.early.insert(answer.decision.call, answer);
        evicted.map(|(_, early)| early)
    }

    /// Removes the result that preceded the call with this number.
    pub fn early_result(&mut self, number: u64) -> Option<EarlyResult> {
        self.early.remove(&number)
    }

    /// Removes the results whose calls never followed.
    pub fn take_early(&mut self) -> Vec<EarlyResult> {
        std::mem::take(&mut self.early).into_values().collect()
    }

    /// Makes up the call of a result without one. It is listed with its tool, but only its outcome counts, because no record has the call.
    pub fn add_result_without_call(&mut self, early: &EarlyResult) -> OpenCall {
        let tool = self.tool(early.tool.as_deref().unwrap_or(UNKNOWN_TOOL));
        // Its duration is unknown.
        let place = EventPlace { time_ms: None, ..early.place };
        let mut open = OpenCall {
            thread: early.thread,
            tool,
            fingerprint: early.decision.call,
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

    /// Whether there is a call with this id.
    pub fn is_made(&self, id: Option<&str>) -> bool {
        self.ids.contains(&CallsFold::id(id))
    }

    /// Changes the outcome of a call by a later record. Returns the call.
    pub fn decide_later(&mut self, decision: &Decision, place: EventPlace) -> Option<NumberedCall> {
        let known = self.numbered.get(&decision.call).copied()?;
        if let Some(call) = known.at.and_then(|at| self.list.items.get_mut(at)) {
            call.exit = decision.exit.or(call.exit);
            (call.outcome, call.rule) = (decision.outcome, decision.rule);
            call.decided = Some(place);
        }
        self.count_outcome(known.tool, known.fingerprint, decision.outcome);
        Some(known)
    }

    /// The listed call with this number.
    pub fn listed(&self, call: &NumberedCall) -> Option<&Call> {
        self.list.items.get(call.at?)
    }

    /// Adds an outcome to the totals of a tool, and remembers a failure, so that an equal call later counts as a retry.
    fn count_outcome(&mut self, tool: usize, fingerprint: u64, outcome: CallOutcome) {
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.failed += u64::from(matches!(outcome, CallOutcome::Failed | CallOutcome::Interrupted));
            tool.denied += u64::from(outcome == CallOutcome::Denied);
        }
        if !outcome.is_failure() {
            self.failed.remove(&fingerprint);
        } else if self.failed.len() < SEEN_MAX {
            self.failed.insert(fingerprint);
        }
    }

    /// Records the outcome of a call.
    pub fn add_outcome(&mut self, open: &OpenCall, answer: &Answer, place: EventPlace, decision: &Decision) {
        let outcome = decision.outcome;
        let took_ms = match (open.place.time_ms, place.time_ms) {
            (Some(from), Some(to)) => u64::try_from(to.saturating_sub(from)).ok(),
            _ => None,
        };
        if let Some(tool) = self.tools.get_mut(open.tool)
            && let Some(took_ms) = took_ms
        {
            tool.timed += 1;
            tool.time_ms = tool.time_ms.saturating_add(took_ms);
            tool.longest_ms = tool.longest_ms.max(took_ms);
        }
        let is_failure = outcome.is_failure();
        self.count_outcome(open.tool, open.fingerprint, outcome);
        if let Some(call) = open.at.and_then(|at| self.list.items.get_mut(at)) {
            (call.outcome, call.rule) = (outcome, decision.rule);
            call.exit = decision.exit;
            call.took_ms = took_ms;
            (call.answer, call.decided) = (Some(place), Some(place));
            call.error_text = is_failure.then(|| answer.beginning.clone()).filter(|text| !text.is_empty());
        }
    }

    /// Counts a call without a result.
    pub fn unanswered(&mut self, open: &OpenCall) {
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.unanswered += 1;
        }
    }

    /// Removes all open calls.
    pub fn rest(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.open).into_values().collect()
    }

    /// The tool of the call with this number, and its summary.
    pub fn about(&self, number: u64) -> (&str, &str) {
        let Some(known) = self.numbered.get(&number) else { return Default::default() };
        (self.name(known.tool), self.listed(known).map(Call::about).unwrap_or_default())
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
fn undecided(open: &OpenCall) -> Call {
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
        error_text: None,
        asks_after: None,
    }
}
