//! Saves the fold between two events: one line of JSON, at most a few kilobytes. Each name of a tool occurs once.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outcome::{CallOutcome, OutcomeRule};
use super::{Calls, EarlyResult, Job, TrackedCall};

/// The fold as it is saved.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    count: u64,
    tools: Vec<String>,
    open: Vec<SavedCall>,
    answered: Vec<SavedCall>,
    early: Vec<SavedEarly>,
    jobs: Vec<(u64, u64, u8)>,
}

/// Number, id, the exit code, the decision, the printed exit codes, the names of jobs.
type SavedEarly = (u64, u64, Option<i64>, Option<u8>, Vec<i64>, Vec<String>);

/// Number, id, print, thread, tool, bits, commands, the polled call or 0, the exit code.
type SavedCall = (u64, u64, u32, u32, usize, u8, u32, u64, Option<i64>);

const ANSWERS_WITH_ONE: u8 = 1;
const MAY_EXIT: u8 = 2;
const RUNS: u8 = 4;
const HAS_FAILED: u8 = 8;
const HAS_ENDED: u8 = 2;

impl Calls {
    /// The state of the fold, to continue later.
    pub fn save(&self) -> String {
        let mut saved = Saved { count: self.count, ..Saved::default() };
        saved.open = saved_calls(&self.open, &mut saved.tools);
        saved.answered = saved_calls(&self.answered, &mut saved.tools);
        let early = |early: &EarlyResult| {
            (
                early.number,
                early.id,
                early.exit,
                early.decided.map(saved_decision),
                early.printed.clone(),
                early.handles.clone(),
            )
        };
        saved.early = self.early.iter().map(early).collect();
        let bits = |job: &Job| bit(job.answers_with_one, ANSWERS_WITH_ONE) | bit(job.has_ended, HAS_ENDED);
        saved.jobs = self.jobs.iter().map(|job| (job.name, job.call, bits(job))).collect();
        serde_json::to_string(&saved).unwrap_or_default()
    }

    /// Restores a saved fold. If the text is invalid, the fold starts at the next event.
    pub fn restore(saved: &str) -> Calls {
        let Ok(saved) = serde_json::from_str::<Saved>(saved) else { return Calls::default() };
        let tools: Vec<Arc<str>> = saved.tools.iter().map(|tool| Arc::from(tool.as_str())).collect();
        let early = saved.early.into_iter().map(|(number, id, exit, decided, printed, handles)| EarlyResult {
            number,
            id,
            exit,
            printed,
            handles,
            decided: decided.and_then(restored_decision),
        });
        let jobs = saved.jobs.into_iter().map(|(name, call, bits)| Job {
            name,
            call,
            answers_with_one: bits & ANSWERS_WITH_ONE != 0,
            has_ended: bits & HAS_ENDED != 0,
        });
        Calls {
            open: restored_calls(saved.open, &tools),
            answered: restored_calls(saved.answered, &tools),
            early: early.collect(),
            jobs: jobs.collect(),
            count: saved.count,
        }
    }
}

fn bit(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

fn saved_calls(calls: &VecDeque<TrackedCall>, tools: &mut Vec<String>) -> Vec<SavedCall> {
    let mut saved = Vec::with_capacity(calls.len());
    for call in calls {
        let tool = tools.iter().position(|tool| **tool == *call.tool).unwrap_or_else(|| {
            tools.push(call.tool.to_string());
            tools.len() - 1
        });
        let bits = bit(call.answers_with_one, ANSWERS_WITH_ONE)
            | bit(call.may_exit, MAY_EXIT)
            | bit(call.runs, RUNS)
            | bit(call.has_failed, HAS_FAILED);
        let TrackedCall { number, id, fingerprint, thread, commands, polls, exit, .. } = *call;
        saved.push((number, id, fingerprint, thread, tool, bits, commands, polls.unwrap_or(0), exit));
    }
    saved
}

fn restored_calls(saved: Vec<SavedCall>, tools: &[Arc<str>]) -> VecDeque<TrackedCall> {
    let restored = |(number, id, fingerprint, thread, tool, bits, commands, polls, exit): SavedCall| TrackedCall {
        number,
        id,
        fingerprint,
        thread,
        tool: tools.get(tool).cloned().unwrap_or_default(),
        answers_with_one: bits & ANSWERS_WITH_ONE != 0,
        may_exit: bits & MAY_EXIT != 0,
        runs: bits & RUNS != 0,
        has_failed: bits & HAS_FAILED != 0,
        commands,
        polls: (polls != 0).then_some(polls),
        exit,
    };
    saved.into_iter().map(restored).collect()
}

/// The decisions that a result without its call can make.
const EARLY_DECISIONS: [(CallOutcome, OutcomeRule); 7] = [
    (CallOutcome::Ok, OutcomeRule::Result),
    (CallOutcome::Denied, OutcomeRule::Refusal),
    (CallOutcome::Interrupted, OutcomeRule::Interruption),
    (CallOutcome::Failed, OutcomeRule::StatedError),
    (CallOutcome::Failed, OutcomeRule::ErrorWords),
    (CallOutcome::Failed, OutcomeRule::ExitCode),
    (CallOutcome::Unknown, OutcomeRule::NoEvidence),
];

fn saved_decision(decision: (CallOutcome, OutcomeRule)) -> u8 {
    let at = EARLY_DECISIONS.iter().position(|known| *known == decision);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
}

fn restored_decision(saved: u8) -> Option<(CallOutcome, OutcomeRule)> {
    EARLY_DECISIONS.get(usize::from(saved)).copied()
}
