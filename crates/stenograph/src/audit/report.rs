//! What an audit tells: plain values, in the order things happened. How they are found is in the other files, how they are spelled as
//! JSON in `json.rs`. Calls and files are here, what a run went through is in `report/course.rs`.

mod course;

pub use crate::calls::{CallOutcome, OutcomeRule};
use crate::run_state::{Patience, RunRule, RunState, State, Why};
pub use crate::run_state::{Place, StuckKind};
use crate::turns::SessionTurn;
pub use course::{
    Agent, AgentState, Approval, Compaction, Context, Failure, Fault, FaultKind, LastMessage, Phase, Step, Todos,
};

/// The first items of a list, and how many more there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped<T> {
    /// The first ones.
    pub items: Vec<T>,
    /// How many more there were.
    pub more: u64,
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Capped { items: Vec::new(), more: 0 }
    }
}

impl<T> Capped<T> {
    /// Keeps one more, if there is room; gives its place in the list.
    pub(super) fn push(&mut self, item: T, most: usize) -> Option<usize> {
        if self.items.len() >= most {
            self.more += 1;
            return None;
        }
        self.items.push(item);
        Some(self.items.len() - 1)
    }

    /// How many there were in all.
    pub fn count(&self) -> u64 {
        self.items.len() as u64 + self.more
    }
}

/// What an audit tells.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The session's id.
    pub session: Option<String>,
    /// Its last title.
    pub title: Option<String>,
    /// The last working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
    /// The models that spoke.
    pub models: Vec<String>,
    /// The first moment that is stated.
    pub started_ms: Option<i64>,
    /// The last one.
    pub ended_ms: Option<i64>,
    /// How many events there are, restatements and all.
    pub events: u64,
    /// How often a person asked.
    pub asked: u64,
    /// The turns of the main conversation.
    pub turns: Capped<SessionTurn>,
    /// How many messages the model gave.
    pub answered: u64,
    /// How the main conversation ended.
    pub end: End,
    /// The conversations: the main one first, then the side ones as they were met.
    pub threads: Vec<Thread>,
    /// The tools, as they were first called.
    pub tools: Vec<Tool>,
    /// The calls.
    pub calls: Capped<Call>,
    /// How many of all calls ran a command.
    pub commands: u64,
    /// The files.
    pub files: Capped<File>,
    /// What was said last.
    pub last: Option<LastMessage>,
    /// What went wrong and was no tool's failure.
    pub errors: Capped<Fault>,
    /// Who allowed or forbade what.
    pub approvals: Capped<Approval>,
    /// The agents that calls started.
    pub agents: Capped<Agent>,
    /// The number of background jobs beyond the limit. Calls that poll them are not linked to them.
    pub jobs_more: u64,
    /// The last list of what is to do.
    pub todos: Option<Todos>,
    /// Where it got nowhere.
    pub phases: Capped<Phase>,
    /// Where what was said was put aside.
    pub compactions: Capped<Compaction>,
    /// How much the model was given, over time.
    pub context: Context,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The state.
    pub state: State,
    /// Why it has this state.
    pub why: Why,
    /// The reason in the words of the source.
    pub word: Option<String>,
    /// The rule that decided the state.
    pub rule: RunRule,
    /// The event that decided it.
    pub place: Place,
}

impl End {
    /// How a conversation ended.
    pub(super) fn of(run: &RunState, is_side: bool) -> End {
        let decision = run.decide(None, &Patience::default());
        // Nobody talks with a side conversation: when its turn is over, it is over.
        let why = if is_side && decision.why == Why::Waiting { Why::Ended } else { decision.why };
        let (rule, place) = (decision.rule, decision.from);
        End { state: decision.state, why, word: run.word().map(str::to_owned), rule, place }
    }
}

impl Default for End {
    fn default() -> End {
        End::of(&RunState::default(), false)
    }
}

/// One conversation.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its id; the main one has none.
    pub id: Option<String>,
    /// How many calls were made in it.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How it ended.
    pub end: End,
    /// How much its model was given.
    pub context: Context,
}

/// How often a tool was called, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How often it failed.
    pub failed: u64,
    /// How often it was not allowed.
    pub denied: u64,
    /// How often no answer came.
    pub unanswered: u64,
    /// How often it was called again with the same input after it had failed.
    pub retries: u64,
    /// How long all calls together took, as far as times are stated.
    pub time_ms: u64,
    /// How long the longest took.
    pub longest_ms: u64,
    /// How many calls have times.
    pub timed: u64,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Where.
    pub place: Place,
    /// In which conversation.
    pub thread: usize,
    /// Which tool; `None` for a command that only a record of its end tells of.
    pub tool: Option<usize>,
    /// What of its input tells calls apart.
    pub keys: Vec<(String, String)>,
    /// Whether a value among them was too long to be kept whole.
    pub is_cut: bool,
    /// The command, if it runs one.
    pub command: Option<String>,
    /// What came of it.
    pub outcome: CallOutcome,
    /// Why that was decided.
    pub rule: OutcomeRule,
    /// The exit code, where one is recorded.
    pub exit: Option<i64>,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Whether the same was tried before and failed.
    pub is_retry: bool,
    /// Where the answer stands.
    pub answer: Option<Place>,
    /// The event that decided what came of it.
    pub decided: Option<Place>,
    /// The beginning of the answer, if it failed or was not allowed.
    pub said: Option<String>,
    /// The event of the call whose work this one asks after.
    pub asks_after: Option<u64>,
}

impl Call {
    /// One line about the call: its command, else the value that tells most.
    pub fn about(&self) -> &str {
        let value = || self.keys.first().map(|(_, value)| value.as_str());
        self.command.as_deref().or_else(value).unwrap_or_default()
    }
}

/// What happened to a file in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It was made.
    Created,
    /// It was there, and is another now.
    Changed,
    /// It was deleted.
    Deleted,
    /// It was only read.
    Read,
    /// It was only named.
    Named,
    /// Whatever was tried with it failed.
    Tried,
}

impl Change {
    /// Every change, what matters most first.
    pub const ALL: [Change; 6] =
        [Change::Created, Change::Changed, Change::Deleted, Change::Read, Change::Named, Change::Tried];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Changed => "changed",
            Change::Deleted => "deleted",
            Change::Read => "read",
            Change::Named => "named",
            Change::Tried => "tried",
        }
    }
}

/// A file that calls touched.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Where it is.
    pub path: String,
    /// What happened to it in the end.
    pub change: Change,
    /// How many calls read it.
    pub reads: u64,
    /// How many wrote it anew.
    pub writes: u64,
    /// How many changed something in it.
    pub edits: u64,
    /// How many deleted it.
    pub deletes: u64,
    /// How many were about it and failed.
    pub failed: u64,
    /// The first call about it.
    pub first: Place,
    /// The last one.
    pub last: Place,
}
