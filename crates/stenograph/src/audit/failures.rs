//! What went wrong in a conversation and was not made good yet, and which of it a run failed by.
//!
//! A tool's failure is made good by a success of the same kind: of the same command (the program and its first word), of a change to the same
//! file by whatever tool, else of the same tool. Any other error is made good as [`crate::status`] tells. Whoever asks again begins anew.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::calls::Open;
use super::report::{Capped, End, Failure, Fault, FaultKind, Place, Step};
use crate::calls::program;
use crate::query::TouchHow;
use crate::status::{State, Why};

/// Failures that nothing has recovered yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct OpenFailures {
    list: Vec<Held>,
    /// The kind of the last result, if it went wrong.
    last: Option<u64>,
    /// How many did not fit.
    more: u64,
}

#[derive(Debug)]
pub(super) struct Trouble {
    pub fault: Fault,
    pub kind: u64,
    pub call: Option<Step>,
    pub input: Vec<(String, String)>,
    pub before: Vec<Step>,
}

#[derive(Debug)]
struct Held {
    trouble: Trouble,
    times: u64,
    after: Capped<Step>,
}

/// How many things that went wrong are followed up.
const TROUBLES_MAX: usize = 64;

/// How many steps after something are told.
const AFTER_MAX: usize = 5;

impl OpenFailures {
    /// Something went wrong.
    pub fn add(&mut self, trouble: Trouble) {
        let is_tool = matches!(trouble.fault.kind, FaultKind::Tool | FaultKind::Denied);
        self.last = is_tool.then_some(trouble.kind).or(self.last);
        if let Some(held) = self.list.iter_mut().find(|held| held.trouble.kind == trouble.kind) {
            held.times += 1;
        } else if self.list.len() >= TROUBLES_MAX {
            self.more += 1;
        } else {
            self.list.push(Held { trouble, times: 1, after: Capped::default() });
        }
    }

    /// A call went well: what is of its kind is made good, and so is whatever was no tool's failure.
    pub fn good(&mut self, kinds: &[u64]) {
        self.last = None;
        // Who was not allowed something and went on well has found another way.
        let is_open = |held: &Held| held.trouble.fault.kind == FaultKind::Tool && !kinds.contains(&held.trouble.kind);
        self.list.retain(is_open);
    }

    /// Something came that shows that the run goes well again, whatever a tool did.
    pub fn recovered(&mut self) {
        self.list.retain(is_tool);
    }

    /// Somebody asked for something else.
    pub fn asked(&mut self) {
        *self = OpenFailures::default();
    }

    /// A step was taken after all of it.
    pub fn tried(&mut self, step: &Step) {
        for held in &mut self.list {
            held.after.push(step.clone(), AFTER_MAX);
        }
    }

    /// Why the run failed that ended so; nothing if it did not. What ends with an answer failed only if the last thing it did went wrong; what
    /// breaks off, by its last result if that went wrong, else by breaking off.
    pub fn verdict(mut self, ending: Ending<'_>) -> Option<Failure> {
        let end = ending.end;
        let last = || self.list.iter().position(|held| Some(held.trouble.kind) == self.last);
        let at = match end.state {
            State::Completed => Some(last()?),
            State::Failed | State::Error => (!self.list.is_empty()).then_some(0),
            State::Stale | State::Stuck | State::Running | State::Unknown => last(),
        };
        if end.why == Why::Nothing {
            return None;
        }
        let others = (self.list.len() as u64 + self.more).saturating_sub(1);
        if let Some(at) = at.filter(|at| *at < self.list.len()) {
            let Held { trouble, times, after } = self.list.swap_remove(at);
            let Trouble { fault, call, input, before, .. } = trouble;
            return Some(Failure { fault, call, input, times, before, after, others });
        }
        Some(ending.alone(others))
    }
}

/// How a conversation ended, for those that nothing went wrong in before.
#[derive(Debug)]
pub(super) struct Ending<'a> {
    pub end: &'a End,
    pub place: Place,
    pub thread: usize,
    pub steps: Vec<Step>,
    /// The last call that has no answer, and its input.
    pub open: Option<(Step, Vec<(String, String)>)>,
}

impl Ending<'_> {
    /// The failure that is the end itself.
    fn alone(self, others: u64) -> Failure {
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

fn is_tool(held: &Held) -> bool {
    matches!(held.trouble.fault.kind, FaultKind::Tool | FaultKind::Denied)
}

/// Of which kinds a call is, by fingerprint, the narrowest first. A failure is of the first one; a success is of all.
pub(super) fn kinds(open: &Open, tool: &str) -> Vec<u64> {
    let print = |seed: u64, text: &str| xxh3_64_with_seed(text.as_bytes(), seed);
    let mut kinds = Vec::new();
    if let Some(command) = &open.keys.command {
        kinds.push(print(1, &program(command)));
        return kinds;
    }
    for touch in &open.touches {
        match touch.how {
            TouchHow::Written | TouchHow::Edited | TouchHow::Deleted => kinds.push(print(2, &touch.path)),
            TouchHow::Read | TouchHow::Named => {}
        }
    }
    kinds.push(print(3, tool));
    kinds
}

/// The kind of what was no tool's failure.
pub(super) fn kind_of(fault: FaultKind, name: Option<&str>) -> u64 {
    xxh3_64_with_seed(name.unwrap_or_default().as_bytes(), 4 + fault as u64)
}
