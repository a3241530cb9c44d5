//! The values of an audit about the run: errors, approvals, other agents, to-dos, phases without progress, compactions.

use serde::{Deserialize, Serialize};

use super::{CallOutcome, Capped, EventPlace};
use crate::audit::ContextParts;
use crate::evidence::Todo;
pub use crate::model::AgentState;
use crate::model::Verdict;
use crate::run_state::StuckKind;

/// The last message of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastMessage {
    /// Its first event.
    pub place: EventPlace,
    /// The whole text.
    pub text: String,
    /// Whether the text was too long and is cut.
    pub is_cut: bool,
}

/// An error or a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its event.
    pub place: EventPlace,
    /// Its conversation.
    pub thread: usize,
    /// Its kind.
    pub kind: FaultKind,
    /// Its name, in the words of the source.
    pub name: Option<String>,
    /// Its message.
    pub text: String,
    /// The event that shows that it is recovered.
    pub recovered_by: Option<EventPlace>,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FaultKind {
    /// A tool failed.
    Tool,
    /// A call was not allowed.
    Denied,
    /// An error that is not the failure of a tool.
    Failure,
    /// The user interrupted the run.
    Interrupted,
    /// The run ended without success.
    Stop,
    /// The transcript ends where something must follow.
    Unfinished,
}

impl FaultKind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Tool => "tool",
            FaultKind::Denied => "denied",
            FaultKind::Failure => "failure",
            FaultKind::Interrupted => "interrupted",
            FaultKind::Stop => "stop",
            FaultKind::Unfinished => "unfinished",
        }
    }
}

/// A decision of a person or a rule about a call, or a permission mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its event.
    pub place: EventPlace,
    /// Its conversation.
    pub thread: usize,
    /// The decision; `None` for a permission mode.
    pub verdict: Option<Verdict>,
    /// The tool, if it is known.
    pub tool: Option<String>,
    /// A summary of the call, or the mode.
    pub about: String,
    /// The reason, in the words of the source.
    pub reason: String,
}

/// An agent that a call started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// The event of the call that started it.
    pub place: Option<EventPlace>,
    /// The agent that started it; `None` for the main conversation.
    pub parent: Option<usize>,
    /// Its side conversation.
    pub thread: Option<usize>,
    /// Its id.
    pub id: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// The title of its task.
    pub title: Option<String>,
    /// The beginning of its task.
    pub task: Option<String>,
    /// Its state.
    pub state: AgentState,
    /// The number of its calls, if its conversation is known.
    pub calls: u64,
    /// The number of its failed calls.
    pub failed: u64,
    /// The later events that report on it.
    pub later: Capped<EventPlace>,
    /// The beginning of its answer.
    pub answer: Option<String>,
}

/// A to-do list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Todos {
    /// The last event that changed it.
    pub place: EventPlace,
    /// Its items.
    pub items: Vec<Todo>,
    /// The number of items beyond the limit.
    pub more: u64,
}

/// A phase without progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its kind.
    pub kind: StuckKind,
    /// Its conversation.
    pub thread: usize,
    /// Its first event.
    pub from: EventPlace,
    /// Its last event.
    pub to: EventPlace,
    /// The number of failed steps, or of equal calls.
    pub count: u64,
    /// The tool of its last call.
    pub tool: String,
    /// A summary of that call.
    pub about: String,
}

/// What a compaction removed from the context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Its event.
    pub place: EventPlace,
    /// Its conversation.
    pub thread: usize,
    /// The number of removed events.
    pub events: u64,
    /// The number of removed messages.
    pub messages: u64,
    /// The number of removed calls.
    pub calls: u64,
    /// The number of messages that the source states as kept.
    pub kept_messages: u64,
    /// The number of calls that the source states as kept.
    pub kept_calls: u64,
    /// The size of the context before.
    pub tokens_before: Option<u64>,
    /// The size of the context after.
    pub tokens_after: Option<u64>,
    /// The length of the summary in characters.
    pub summary_length: u64,
    /// The files that the removed calls used.
    pub files: Capped<String>,
    /// The commands of the removed calls.
    pub commands: Capped<String>,
}

/// The size of the context of a conversation, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSize {
    /// At the first model call.
    pub first: u64,
    /// The largest size.
    pub max: u64,
    /// At the last model call.
    pub last: u64,
    /// The number of model calls that state it.
    pub calls: u64,
    /// Event, time and tokens of each model call. A long series has only every second, fourth, … call.
    pub series: Vec<(u64, Option<i64>, u64)>,
    /// What it consists of at the end.
    pub parts: ContextParts,
}

/// A step of a run: a call or a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditStep {
    /// Its event.
    pub place: EventPlace,
    /// The tool; `None` for a message.
    pub tool: Option<String>,
    /// A summary of the call, or the text of the message.
    pub text: String,
    /// The outcome of the call.
    pub outcome: Option<CallOutcome>,
    /// The exit code of the call.
    pub exit: Option<i64>,
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The first unresolved error.
    pub fault: Fault,
    /// The call, if a tool failed.
    pub call: Option<AuditStep>,
    /// The input of that call.
    pub input: Vec<(String, String)>,
    /// The number of equal failures.
    pub times: u64,
    /// The steps before it.
    pub before: Vec<AuditStep>,
    /// The steps after it.
    pub after: Capped<AuditStep>,
    /// The number of other unresolved errors.
    pub others: u64,
}
