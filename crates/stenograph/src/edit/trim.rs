//! Trimming: shortens a conversation until it fits a number of tokens. A rule makes a plan and a report.
//! [`carry_out`](super::carry_out) applies the plan to a file, and [`Plan::outcome`] to events in memory.
//!
//! An agent trims at three moments:
//!
//! ```
//! use stenograph::edit::trim::{Limits, Moment, Rule, Trim, trim};
//! use stenograph::model::{Body, Content, Event, Role};
//!
//! let message = |role, text: &str| Event::new(Body::Message { role, content: Content::text(text.to_owned()) });
//! let history = [
//!     message(Role::System, "Be brief."),
//!     message(Role::User, "An old question"),
//!     message(Role::Assistant, &"An answer that went on and on. ".repeat(40)),
//!     message(Role::User, "A new question"),
//! ];
//! let how = Trim { rule: Rule::Pairs, limits: Limits { chat: 20, ..Limits::NONE }, ..Trim::default() };
//! // Before each request to the model. The other moments are `Moment::Load` and `Moment::UserMessage`.
//! let trimmed = trim(&history, Moment::Request, &how);
//! assert!(trimmed.report.is_reached());
//! let left = trimmed.plan.outcome(&history);
//! assert_eq!(left.len(), 2); // the system prompt and the new question
//! ```

mod cycod;
mod pairs;

use super::Plan;
use super::sketch::{Sketched, Sketches};
use super::tokens::Tokenizer;
use crate::model::{Event, Kind};

/// The text that replaces removed text.
pub(crate) const SNIP: &str = "...snip...";

/// The rule by which a conversation is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rule {
    /// The rule of CycoD: cuts long prompts and tool results, then replaces old tool results. It may miss its target.
    Cycod,
    /// Replaces large old tool results, then removes whole old turns, until the target is reached. It never separates a call from
    /// its result, and keeps system prompts and the newest question.
    #[default]
    Pairs,
}

/// When a conversation is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Moment {
    /// After loading it: all limits apply.
    #[default]
    Load,
    /// After a message of the user: there are no new tool results, so their limit does not apply.
    UserMessage,
    /// Before sending it to a model: all limits apply.
    Request,
}

/// Limits in tokens; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limit of the whole conversation.
    pub chat: u64,
    /// The limit of the texts of one user message.
    pub prompt: u64,
    /// The limit of the texts of one tool result.
    pub tool: u64,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits { chat: 0, prompt: 0, tool: 0 };
    /// The default limits of CycoD.
    pub const CYCOD: Limits = Limits { chat: 160_000, prompt: 50_000, tool: 50_000 };

    /// The limits that apply at this moment.
    fn at(self, moment: Moment) -> Limits {
        match moment {
            Moment::Load | Moment::Request => self,
            Moment::UserMessage => Limits { tool: 0, ..self },
        }
    }
}

/// Which turns [`Rule::Pairs`] may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Depth {
    /// Only turns before the newest question.
    OldTurns,
    /// As a last resort, also tool results after the newest question, up to the last answer of the model: an agent may work for
    /// hours on one question. The question itself stays.
    #[default]
    NewestTurn,
    /// The same, and the limits of a single message apply to every message, the newest question included, as in CycoD.
    EveryMessage,
}

/// How to trim a conversation.
#[derive(Debug)]
pub struct Trim<'a> {
    /// The rule.
    pub rule: Rule,
    /// The limits.
    pub limits: Limits,
    /// Which turns may change.
    pub depth: Depth,
    /// Counts the tokens. [`Rule::Cycod`] counts by itself.
    pub tokenizer: Tokenizer<'a>,
}

impl Default for Trim<'_> {
    fn default() -> Self {
        Trim { rule: Rule::default(), limits: Limits::NONE, depth: Depth::default(), tokenizer: Tokenizer::default() }
    }
}

/// The plan of a trim, and its report.
#[derive(Clone, Debug, Default)]
pub struct Trimmed {
    /// What happens to each event.
    pub plan: Plan,
    /// What is trimmed, and how many tokens that saves.
    pub report: TrimReport,
}

/// What is trimmed, and how many tokens that saves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrimReport {
    /// Tokens before.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
    /// The token limit of the conversation; 0 means no limit.
    pub target: u64,
    /// The trimmed events, in order.
    pub trimmed: Vec<TrimmedEvent>,
}

impl TrimReport {
    /// Whether the conversation fits after the trim.
    pub fn is_reached(&self) -> bool {
        self.target == 0 || self.after <= self.target
    }
}

/// One trimmed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimmedEvent {
    /// Its number, from 0.
    pub event: usize,
    /// The line on which its record begins, if it is in a file.
    pub line: Option<u64>,
    /// Its kind.
    pub kind: Kind,
    /// What happens to it.
    pub action: TrimAction,
    /// How many tokens that saves. Negative if [`Rule::Cycod`] makes short texts longer.
    pub saved: i64,
}

/// What happens to a trimmed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimAction {
    /// Its text ends early.
    Cut,
    /// `...snip...` replaces its content.
    Snipped,
    /// It is removed with its turn.
    Removed,
}

impl TrimAction {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            TrimAction::Cut => "cut",
            TrimAction::Snipped => "snipped",
            TrimAction::Removed => "removed",
        }
    }
}

/// Plans the trim of these events.
pub fn trim(events: &[Event<'_>], moment: Moment, how: &Trim<'_>) -> Trimmed {
    let mut trimming = Trimming::new(moment, how);
    events.iter().for_each(|event| trimming.add(event));
    trimming.plan(&events.sketches())
}

/// Plans the trim of a conversation that is not in memory: measures each event as it is read.
#[derive(Debug)]
pub struct Trimming<'h>(Measured<'h>);

#[derive(Debug)]
enum Measured<'h> {
    Cycod(cycod::Sizes),
    Pairs(pairs::TokenCounts<'h>),
}

impl<'h> Trimming<'h> {
    /// Creates a plan without events.
    pub fn new(moment: Moment, how: &'h Trim<'h>) -> Trimming<'h> {
        let limits = how.limits.at(moment);
        Trimming(match how.rule {
            Rule::Cycod => Measured::Cycod(cycod::Sizes::new(limits)),
            Rule::Pairs => Measured::Pairs(pairs::TokenCounts::new(limits, how.depth, &how.tokenizer)),
        })
    }

    /// Measures the next event. Call it for every event, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        match &mut self.0 {
            Measured::Cycod(sizes) => sizes.add(event),
            Measured::Pairs(counts) => counts.add(event),
        }
    }

    /// Plans the trim of the measured events.
    pub fn plan(self, events: &Sketches) -> Trimmed {
        match self.0 {
            Measured::Cycod(sizes) => sizes.trim(events),
            Measured::Pairs(counts) => counts.trim(events),
        }
    }
}

fn trimmed_event(events: &Sketches, event: usize, action: TrimAction, saved: i64) -> Option<TrimmedEvent> {
    let sketch = events.get(event)?;
    Some(TrimmedEvent { event, line: sketch.line(), kind: sketch.kind, action, saved })
}
