//! What a run needs from its user. `steno status` lists the runs in this order.

use stenograph::evidence::UserRequest;
use stenograph::status::{State, Why};

use super::RunLook;

/// What a run needs, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// An answer to a question.
    Answer,
    /// Permission for a call, or approval of a plan.
    Permission,
    /// The next instruction: its turn is over.
    Instruction,
    /// A look: it failed, or makes no progress.
    Failed,
    /// A look: it was working, and is silent.
    Stalled,
    /// Nothing: it works.
    Running,
    /// Nothing: it is over.
    Over,
    /// Nobody knows: its records do not tell.
    Unknown,
}

impl Need {
    /// All needs, most urgent first.
    pub const ALL: [Need; 8] = [
        Need::Answer,
        Need::Permission,
        Need::Instruction,
        Need::Failed,
        Need::Stalled,
        Need::Running,
        Need::Over,
        Need::Unknown,
    ];

    /// What a run needs.
    pub fn of(run: &RunLook) -> Need {
        let status = &run.status;
        // A call that waits for a person is not silent because its tool hangs.
        let is_open = status.why == Why::InCall && matches!(status.state, State::Running | State::Stalled);
        let request = status.open.iter().filter(|_| is_open).find_map(|tool| UserRequest::of(tool));
        match (request, status.state) {
            (Some(UserRequest::Answer), _) => Need::Answer,
            (Some(UserRequest::Permission), _) => Need::Permission,
            (None, State::Idle) => Need::Instruction,
            (None, State::Failed | State::Error | State::Stuck) => Need::Failed,
            (None, State::Stalled) => Need::Stalled,
            (None, State::Running) => Need::Running,
            (None, State::Completed) => Need::Over,
            (None, State::Unknown) => Need::Unknown,
        }
    }

    /// The word in JSON; `None` if it needs nothing.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Need::Answer => Some("answer"),
            Need::Permission => Some("permission"),
            Need::Instruction => Some("instruction"),
            Need::Failed | Need::Stalled => Some("look"),
            Need::Running | Need::Over | Need::Unknown => None,
        }
    }

    /// A number of runs that need this.
    pub fn counted(self, count: usize) -> String {
        let words = match self {
            Need::Answer => "to answer",
            Need::Permission => "to permit",
            Need::Instruction => "idle",
            Need::Failed => "failed",
            Need::Stalled => "stalled",
            Need::Running => "running",
            Need::Over => "over",
            Need::Unknown => "unknown",
        };
        format!("{count} {words}")
    }
}
