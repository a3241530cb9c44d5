//! What a run went through: what went wrong, who allowed what, other agents, what is to do, where it got nowhere. Plain values.

use super::{CallOutcome, Capped, Place};
use crate::evidence::Todo;
pub use crate::model::AgentState;
use crate::model::Verdict;
use crate::run_state::StuckKind;

/// What was said last.
#[derive(Clone, Debug, PartialEq)]
pub struct LastMessage {
    /// Where it begins.
    pub place: Place,
    /// All of it.
    pub text: String,
    /// Whether it was too long to be kept whole.
    pub is_cut: bool,
}

/// Something that went wrong and was no tool's failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// In which conversation.
    pub thread: usize,
    /// What.
    pub kind: FaultKind,
    /// Its name, in the source's word.
    pub name: Option<String>,
    /// What it says.
    pub text: String,
    /// The event that shows that it is recovered.
    pub recovered_by: Option<Place>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A tool failed.
    Tool,
    /// A tool was not allowed.
    Denied,
    /// An error that was no tool's.
    Failure,
    /// Somebody broke it off.
    Interrupted,
    /// It came to a bad end.
    Stop,
    /// It ends where something had to follow.
    Unfinished,
}

impl FaultKind {
    /// The word for it.
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

/// Who allowed or forbade what.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Where.
    pub place: Place,
    /// In which conversation.
    pub thread: usize,
    /// What was said; `None` where a mode was set.
    pub verdict: Option<Verdict>,
    /// The tool, where it is known.
    pub tool: Option<String>,
    /// What the call was about, or the mode.
    pub about: String,
    /// Why, in the source's words.
    pub reason: String,
}

/// An agent that was given a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    /// Where it was given.
    pub place: Option<Place>,
    /// The agent that gave it; `None` is the main one.
    pub parent: Option<usize>,
    /// Its side conversation.
    pub thread: Option<usize>,
    /// The name it is known by.
    pub id: Option<String>,
    /// Of what kind it is.
    pub kind: Option<String>,
    /// What it is to do, in a few words.
    pub title: Option<String>,
    /// What it is to do, as far as it is kept.
    pub task: Option<String>,
    /// How far it has come.
    pub state: AgentState,
    /// How many calls it made, where they are known.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The later events that report on it.
    pub later: Capped<Place>,
    /// The beginning of its answer.
    pub answer: Option<String>,
}

/// A list of what is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Todos {
    /// Where it was changed last.
    pub place: Place,
    /// What is to do.
    pub items: Vec<Todo>,
    /// How many more there were.
    pub more: u64,
}

/// A stretch in which a run got nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// In which way.
    pub kind: StuckKind,
    /// In which conversation.
    pub thread: usize,
    /// Where it begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// How many steps, or equal calls, it has.
    pub count: u64,
    /// The tool of its last call.
    pub tool: String,
    /// What that call was about.
    pub about: String,
}

/// What a compaction put aside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// Where.
    pub place: Place,
    /// In which conversation.
    pub thread: usize,
    /// How many events were put aside.
    pub events: u64,
    /// How many messages.
    pub messages: u64,
    /// How many calls.
    pub calls: u64,
    /// How many messages stay, as far as the source says so.
    pub kept_messages: u64,
    /// How many calls stay.
    pub kept_calls: u64,
    /// How much the model was given before.
    pub tokens_before: Option<u64>,
    /// How much it was given after.
    pub tokens_after: Option<u64>,
    /// How many characters stand in their place.
    pub summary_length: u64,
    /// The files that calls which were put aside were about.
    pub files: Capped<String>,
    /// The commands of such calls.
    pub commands: Capped<String>,
}

/// How much a model was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// With its first call.
    pub first: u64,
    /// At most.
    pub max: u64,
    /// With the last one.
    pub last: u64,
    /// How many calls state it.
    pub calls: u64,
    /// Event, moment and tokens. Of a long series every second, fourth, … is kept.
    pub series: Vec<(u64, Option<i64>, u64)>,
}

/// A step on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// The tool; `None` where something was said.
    pub tool: Option<String>,
    /// What it was about, or what was said.
    pub text: String,
    /// What came of it.
    pub outcome: Option<CallOutcome>,
    /// With which exit code.
    pub exit: Option<i64>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The first thing that went wrong and was never made good.
    pub fault: Fault,
    /// The call, if it was a tool's.
    pub call: Option<Step>,
    /// The input of that call.
    pub input: Vec<(String, String)>,
    /// How often the same went wrong.
    pub times: u64,
    /// What came just before.
    pub before: Vec<Step>,
    /// What was tried after.
    pub after: Capped<Step>,
    /// How many other things went wrong after it and were not made good either.
    pub others: u64,
}
