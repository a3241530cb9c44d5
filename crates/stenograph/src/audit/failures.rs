//! The unresolved failures of a conversation, and the one that made its run fail.
//!
//! A later success resolves a failed call if it is of the same kind: the same command (the program and its first word), a change to the
//! same file by any tool, or else the same tool. [`crate::run_state`] decides what resolves any other error. A new question resolves everything.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::calls::OpenCall;
use super::report::{AuditStep, Capped, End, EventPlace, Failure, Fault, FaultKind};
use crate::calls::program;
use crate::query::TouchHow;
use crate::status::{State, Why};

/// Unresolved failures, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenFailures {
    list: Vec<OpenFailure>,
    /// The kind of the last result, if it was a failure.
    last: Option<u64>,
    /// The number of failures beyond the limit.
    more: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewFailure {
    pub fault: Fault,
    pub kind: u64,
    pub call: Option<AuditStep>,
    pub input: Vec<(String, String)>,
    pub before: Vec<AuditStep>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OpenFailure {
    failure: NewFailure,
    times: u64,
    after: Capped<AuditStep>,
}

/// The most unresolved failures of different kinds.
const OPEN_FAILURES_MAX: usize = 64;

/// The most steps that are reported after a failure.
const AFTER_MAX: usize = 5;

impl OpenFailures {
    /// Adds a failure.
    pub fn add(&mut self, failure: NewFailure) {
        let is_tool = matches!(failure.fault.kind, FaultKind::Tool | FaultKind::Denied);
        self.last = is_tool.then_some(failure.kind).or(self.last);
        if let Some(held) = self.list.iter_mut().find(|held| held.failure.kind == failure.kind) {
            held.times += 1;
        } else if self.list.len() >= OPEN_FAILURES_MAX {
            self.more += 1;
        } else {
            self.list.push(OpenFailure { failure, times: 1, after: Capped::default() });
        }
    }

    /// Resolves failures after a successful call: those of its kinds, and all that are not failures of a tool.
    pub fn call_succeeded(&mut self, kinds: &[u64]) {
        self.last = None;
        // A success after a denial means that the run found another way.
        let is_open =
            |held: &OpenFailure| held.failure.fault.kind == FaultKind::Tool && !kinds.contains(&held.failure.kind);
        self.list.retain(is_open);
    }

    /// Resolves all errors that are not failures of a tool.
    pub fn recovered(&mut self) {
        self.list.retain(is_tool);
    }

    /// Resolves everything: the user asked for something else.
    pub fn clear(&mut self) {
        *self = OpenFailures::default();
    }

    /// Adds a step after the failures so far.
    pub fn add_step(&mut self, step: &AuditStep) {
        for held in &mut self.list {
            held.after.push(step.clone(), AFTER_MAX);
        }
    }

    /// The steps after the failures so far.
    pub fn steps(&mut self) -> impl Iterator<Item = &mut AuditStep> {
        self.list.iter_mut().flat_map(|held| &mut held.after.items)
    }

    /// The failure of a run with this ending; `None` if it did not fail. A run that ends with an answer failed only if its last result is a
    /// failure. For a run without an end, the failure is its last result, or else the missing end.
    pub fn failure_of(mut self, ending: Ending<'_>) -> Option<Failure> {
        let end = ending.end;
        let last = || self.list.iter().position(|held| Some(held.failure.kind) == self.last);
        let at = match end.state {
            State::Idle | State::Completed => Some(last()?),
            State::Failed | State::Error => (!self.list.is_empty()).then_some(0),
            State::Stalled | State::Stuck | State::Running | State::Unknown => last(),
        };
        if end.why == Why::Nothing {
            return None;
        }
        let others = (self.list.len() as u64 + self.more).saturating_sub(1);
        if let Some(at) = at.filter(|at| *at < self.list.len()) {
            let OpenFailure { failure, times, after } = self.list.swap_remove(at);
            let NewFailure { fault, call, input, before, .. } = failure;
            return Some(Failure { fault, call, input, times, before, after, others });
        }
        Some(ending.failure(others))
    }
}

/// How a conversation ended.
#[derive(Debug)]
pub(super) struct Ending<'a> {
    pub end: &'a End,
    pub place: EventPlace,
    pub thread: usize,
    pub steps: Vec<AuditStep>,
    /// The last call without a result, and its input.
    pub open: Option<(AuditStep, Vec<(String, String)>)>,
}

impl Ending<'_> {
    /// The failure that consists of the ending itself.
    fn failure(self, others: u64) -> Failure {
        let kind = match self.end.why {
            Why::Interrupted => FaultKind::Interrupted,
            Why::Waiting | Why::Ended | Why::Refused | Why::CutOff | Why::LastError => FaultKind::Stop,
            Why::InCall | Why::Asked | Why::Answering | Why::Failing | Why::Repeating | Why::Nothing => {
                FaultKind::Unfinished
            }
        };
        let open = self.open.filter(|_| self.end.why == Why::InCall);
        let (call, input) = open.map_or_else(Default::default, |(call, input)| (Some(call), input));
        let name = Some(self.end.word.clone().unwrap_or_else(|| self.end.why.name().to_owned()));
        let place = call.as_ref().map_or(self.place, |call| call.place);
        let fault = Fault { place, thread: self.thread, kind, name, text: String::new(), recovered_by: None };
        Failure { fault, call, input, times: 1, before: self.steps, after: Capped::default(), others }
    }
}

fn is_tool(held: &OpenFailure) -> bool {
    matches!(held.failure.fault.kind, FaultKind::Tool | FaultKind::Denied)
}

/// The kinds of a call, as hashes, the narrowest first. A failure has the first kind; a success resolves all of them.
pub(super) fn kinds(open: &OpenCall, tool: &str) -> Vec<u64> {
    let fingerprint = |seed: u64, text: &str| xxh3_64_with_seed(text.as_bytes(), seed);
    let mut kinds = Vec::new();
    if let Some(command) = &open.keys.command {
        kinds.push(fingerprint(1, &program(command)));
        return kinds;
    }
    for touch in &open.touches {
        match touch.how {
            TouchHow::Written | TouchHow::Edited | TouchHow::Deleted => kinds.push(fingerprint(2, &touch.path)),
            TouchHow::Read | TouchHow::Named => {}
        }
    }
    kinds.push(fingerprint(3, tool));
    kinds
}

/// The kind of an error that is not the failure of a tool.
pub(super) fn kind_of(fault: FaultKind, name: Option<&str>) -> u64 {
    xxh3_64_with_seed(name.unwrap_or_default().as_bytes(), 4 + fault as u64)
}
