//! The outcome of a call, and the rules that decide it, in this order:
//!
//! 1. A person or a rule refused the call: denied.
//! 2. The record states that it was interrupted: interrupted.
//! 3. The record states an error, or starts with words that only errors start with: failed.
//! 4. A command exits with a code other than 0: failed. Exit code 1 of a program that answers with it (`grep` found nothing,
//!    `diff` found a difference) is ok.
//! 5. A command keeps running after its call returned: running, until a later record states its exit code. A polling call
//!    reports the exit code of its job, not its own.
//! 6. Any other result: ok.
//!
//! A result whose call is unknown follows the same rules, but exit code 1 decides nothing, because its program is unknown.

use serde::Deserialize;

use super::{Evidence, TrackedCall};
use crate::model::Verdict;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It succeeded, or nothing states otherwise.
    Ok,
    /// It failed.
    Failed,
    /// A person or a rule did not allow it.
    Denied,
    /// It was interrupted.
    Interrupted,
    /// It returned, and its command still runs.
    Running,
    /// No record states it.
    Unknown,
}

impl CallOutcome {
    /// Every outcome.
    pub const ALL: [CallOutcome; 6] = [
        CallOutcome::Ok,
        CallOutcome::Failed,
        CallOutcome::Denied,
        CallOutcome::Interrupted,
        CallOutcome::Running,
        CallOutcome::Unknown,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            CallOutcome::Ok => "ok",
            CallOutcome::Failed => "failed",
            CallOutcome::Denied => "denied",
            CallOutcome::Interrupted => "interrupted",
            CallOutcome::Running => "running",
            CallOutcome::Unknown => "unknown",
        }
    }

    /// Whether the call did not do what was requested.
    pub fn is_failure(self) -> bool {
        match self {
            CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Interrupted => true,
            CallOutcome::Ok | CallOutcome::Running | CallOutcome::Unknown => false,
        }
    }
}

/// Why an outcome was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeRule {
    /// A person or a rule refused the call.
    Refusal,
    /// The record states that it was interrupted.
    Interruption,
    /// The record states an error.
    StatedError,
    /// The result starts with words that only errors start with.
    ErrorWords,
    /// The exit code is nonzero.
    ExitCode,
    /// A poll or a notice states a nonzero exit code for the job.
    JobExitCode,
    /// For this program, exit code 1 is an answer.
    AnswerCode,
    /// The command keeps running.
    StillRunning,
    /// The call has a result, and no evidence against it.
    Result,
    /// No record decides.
    NoEvidence,
}

impl OutcomeRule {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            OutcomeRule::Refusal => "refusal",
            OutcomeRule::Interruption => "interruption",
            OutcomeRule::StatedError => "stated_error",
            OutcomeRule::ErrorWords => "error_words",
            OutcomeRule::ExitCode => "exit_code",
            OutcomeRule::JobExitCode => "job_exit_code",
            OutcomeRule::AnswerCode => "answer_code",
            OutcomeRule::StillRunning => "still_running",
            OutcomeRule::Result => "result",
            OutcomeRule::NoEvidence => "no_evidence",
        }
    }
}

impl OutcomeRule {
    /// The rule for people.
    pub fn sentence(self) -> &'static str {
        match self {
            OutcomeRule::Refusal => "a person or a rule refused the call",
            OutcomeRule::Interruption => "the record states that the call was interrupted",
            OutcomeRule::StatedError => "the record states an error",
            OutcomeRule::ErrorWords => "the result starts with words that only errors start with",
            OutcomeRule::ExitCode => "the exit code is nonzero",
            OutcomeRule::JobExitCode => "a later record states a nonzero exit code for the job",
            OutcomeRule::AnswerCode => "for this program, exit code 1 is an answer, not a failure",
            OutcomeRule::StillRunning => "the command keeps running after its call returned",
            OutcomeRule::Result => "the call has a result and no sign of failure",
            OutcomeRule::NoEvidence => "no record decides the outcome",
        }
    }
}

/// The outcome that an exit code decides.
pub(super) fn of_exit(exit: i64, answers_with_one: bool) -> (CallOutcome, OutcomeRule) {
    match exit {
        0 => (CallOutcome::Ok, OutcomeRule::Result),
        1 if answers_with_one => (CallOutcome::Ok, OutcomeRule::AnswerCode),
        _ => (CallOutcome::Failed, OutcomeRule::ExitCode),
    }
}

impl Evidence {
    /// The outcome that this evidence decides for a call; `None` is an unknown call.
    pub(super) fn outcome(&self, call: Option<&TrackedCall>) -> (CallOutcome, OutcomeRule) {
        match self.verdict {
            Some(Verdict::Denied | Verdict::Refused | Verdict::Blocked) => {
                return (CallOutcome::Denied, OutcomeRule::Refusal);
            }
            Some(Verdict::Approved) | None => {}
        }
        if self.is_interrupted {
            return (CallOutcome::Interrupted, OutcomeRule::Interruption);
        }
        if self.is_stated_error {
            return (CallOutcome::Failed, OutcomeRule::StatedError);
        }
        if self.has_error_words {
            return (CallOutcome::Failed, OutcomeRule::ErrorWords);
        }
        match (call, self.exit) {
            (Some(call), Some(exit)) if call.may_exit && call.polls.is_none() => of_exit(exit, call.answers_with_one),
            (Some(call), None) if call.runs && !self.handles.is_empty() => {
                (CallOutcome::Running, OutcomeRule::StillRunning)
            }
            (None, Some(1)) => (CallOutcome::Unknown, OutcomeRule::NoEvidence),
            (None, Some(exit)) => of_exit(exit, false),
            (Some(_) | None, _) => (CallOutcome::Ok, OutcomeRule::Result),
        }
    }
}
