//! The values of an audit, in the order of events. The other files compute them, and `json.rs` writes them as JSON. Calls and files are
//! here; errors, agents and the rest of the run are in `report/run.rs`.

mod run;

use serde::{Deserialize, Serialize};

pub use crate::calls::{CallOutcome, OutcomeRule};
pub use crate::run_state::{EventPlace, StuckKind};
use crate::run_state::{Patience, RunRule, RunState, State, StateDecision, Why};
use crate::turns::SessionTurn;
pub use run::{
    Agent, AgentState, Approval, AuditStep, Compaction, ContextSize, Failure, Fault, FaultKind, LastMessage, Phase,
    Todos,
};

/// The first items of a list, and the number of further items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capped<T> {
    /// The first items.
    pub items: Vec<T>,
    /// The number of further items.
    pub more: u64,
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Capped { items: Vec::new(), more: 0 }
    }
}

impl<T> Capped<T> {
    /// Adds an item if there is room, and returns its index.
    pub(super) fn push(&mut self, item: T, most: usize) -> Option<usize> {
        if self.items.len() >= most {
            self.more += 1;
            return None;
        }
        self.items.push(item);
        Some(self.items.len() - 1)
    }

    /// The number of all items.
    pub fn count(&self) -> u64 {
        self.items.len() as u64 + self.more
    }
}

/// What a session did.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The session's id.
    pub session: Option<String>,
    /// Its last title or summary.
    pub title: Option<String>,
    /// The last working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
    /// The models that answered.
    pub models: Vec<String>,
    /// The earliest time in the session.
    pub started_ms: Option<i64>,
    /// The latest time in the session.
    pub ended_ms: Option<i64>,
    /// The number of events, including restatements.
    pub events: u64,
    /// The number of questions that a person typed.
    pub asked: u64,
    /// The turns of the main conversation.
    pub turns: Capped<SessionTurn>,
    /// The number of messages of the model.
    pub answered: u64,
    /// How the main conversation ended.
    pub end: End,
    /// The conversations: the main one first, then the side conversations in the order of their first events.
    pub threads: Vec<Thread>,
    /// The tools, in the order of their first calls.
    pub tools: Vec<Tool>,
    /// The calls.
    pub calls: Capped<Call>,
    /// The number of calls that ran a command.
    pub commands: u64,
    /// The files.
    pub files: Capped<File>,
    /// The last message of the model.
    pub last: Option<LastMessage>,
    /// The errors that are not failures of a tool.
    pub errors: Capped<Fault>,
    /// The decisions of people and rules about calls.
    pub approvals: Capped<Approval>,
    /// The agents that calls started.
    pub agents: Capped<Agent>,
    /// The number of background jobs beyond the limit. Calls that poll them are not linked to them.
    pub jobs_more: u64,
    /// The to-do list at the end.
    pub todos: Option<Todos>,
    /// The phases without progress.
    pub phases: Capped<Phase>,
    /// The compactions of the context.
    pub compactions: Capped<Compaction>,
    /// The size of the context over time.
    pub context: ContextSize,
    /// The failure of the run, if it failed.
    pub failure: Option<Failure>,
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The state.
    pub state: State,
    /// Why it has this state.
    pub why: Why,
    /// The reason, in the words of the source.
    pub word: Option<String>,
    /// The rule that decided the state.
    pub rule: RunRule,
    /// The event that decided it.
    pub place: EventPlace,
}

impl End {
    /// How a conversation ended.
    pub(super) fn of(run: &RunState, is_side: bool) -> End {
        let decision = run.decide(None, &Patience::default());
        let StateDecision { state, why, rule, from: place, .. } =
            if is_side { decision.for_side_conversation() } else { decision };
        End { state, why, word: run.word().map(str::to_owned), rule, place }
    }
}

impl Default for End {
    fn default() -> End {
        End::of(&RunState::default(), false)
    }
}

/// One conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Thread {
    /// Its id; the main one has none.
    pub id: Option<String>,
    /// The number of its calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// How it ended.
    pub end: End,
    /// The size of its context.
    pub context: ContextSize,
}

/// A tool with the totals of its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The number of calls that were not allowed.
    pub denied: u64,
    /// How often no answer came.
    pub unanswered: u64,
    /// How often it was called again with the same input after it had failed.
    pub retries: u64,
    /// The duration of all calls with known times.
    pub time_ms: u64,
    /// The duration of the longest call.
    pub longest_ms: u64,
    /// The number of calls with known times.
    pub timed: u64,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The event of the call.
    pub place: EventPlace,
    /// Its conversation.
    pub thread: usize,
    /// Its tool; `None` for a command that only the report of its end records.
    pub tool: Option<usize>,
    /// The identifying fields of its input.
    pub keys: Vec<(String, String)>,
    /// Whether a value among them is cut.
    pub is_cut: bool,
    /// The command, if it runs one.
    pub command: Option<String>,
    /// Its outcome.
    pub outcome: CallOutcome,
    /// The rule that decided the outcome.
    pub rule: OutcomeRule,
    /// The exit code, if a record states it.
    pub exit: Option<i64>,
    /// Its duration.
    pub took_ms: Option<u64>,
    /// Whether an equal call failed before.
    pub is_retry: bool,
    /// The event of its result.
    pub answer: Option<EventPlace>,
    /// The event that decided the outcome.
    pub decided: Option<EventPlace>,
    /// The beginning of the result, if the call failed or was not allowed.
    pub error_text: Option<String>,
    /// The event that started the job which this call polls.
    pub asks_after: Option<u64>,
}

impl Call {
    /// A summary of the call: its command, or else the most specific value.
    pub fn about(&self) -> &str {
        let value = || self.keys.first().map(|(_, value)| value.as_str());
        self.command.as_deref().or_else(value).unwrap_or_default()
    }
}

/// The net effect of a session on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileOutcome {
    /// It was created.
    Created,
    /// It existed before and was changed.
    Changed,
    /// It was deleted.
    Deleted,
    /// It was only read.
    Read,
    /// A call only named it.
    Named,
    /// All calls that used it failed.
    Tried,
}

impl FileOutcome {
    /// All of them, the most important first.
    pub const ALL: [FileOutcome; 6] = [
        FileOutcome::Created,
        FileOutcome::Changed,
        FileOutcome::Deleted,
        FileOutcome::Read,
        FileOutcome::Named,
        FileOutcome::Tried,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FileOutcome::Created => "created",
            FileOutcome::Changed => "changed",
            FileOutcome::Deleted => "deleted",
            FileOutcome::Read => "read",
            FileOutcome::Named => "named",
            FileOutcome::Tried => "tried",
        }
    }
}

/// A file that calls used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// The net effect on it.
    pub change: FileOutcome,
    /// The number of calls that read it.
    pub reads: u64,
    /// The number of calls that wrote it whole.
    pub writes: u64,
    /// The number of calls that edited it.
    pub edits: u64,
    /// The number of calls that deleted it.
    pub deletes: u64,
    /// The number of failed calls that used it.
    pub failed: u64,
    /// The first call that used it.
    pub first: EventPlace,
    /// The latest time in the session.
    pub last: EventPlace,
}
