//! Trimming: what goes so that a conversation fits a number of tokens. A rule makes a plan and an account of it; carrying it out is
//! `apply`'s to do, for a file, or [`Plan::outcome`]'s, for events that an agent holds in memory.
//!
//! An agent trims at three moments, and says which one it is:
//!
//! ```
//! use stenograph::edit::trim::{Limits, Moment, Rule, Trim, trim};
//! use stenograph::model::{Body, Content, Event, Role};
//!
//! let said = |role, text: &str| Event::new(Body::Message { role, content: Content::text(text.to_owned()) });
//! let history = [
//!     said(Role::System, "Be brief."),
//!     said(Role::User, "An old question"),
//!     said(Role::Assistant, &"An answer that went on and on. ".repeat(40)),
//!     said(Role::User, "A new question"),
//! ];
//! let how = Trim { rule: Rule::Pairs, limits: Limits { chat: 20, ..Limits::NONE }, ..Trim::default() };
//! // Before each request to the model; the others are `Moment::Load` and `Moment::UserMessage`.
//! let trimmed = trim(&history, Moment::Request, &how);
//! assert!(trimmed.account.is_reached());
//! let left = trimmed.plan.outcome(&history);
//! assert_eq!(left.len(), 2); // the system prompt and the new question
//! ```

mod cycod;
mod pairs;

use super::Plan;
use super::sketch::{Sketched, Sketches};
use super::tokens::Tokenizer;
use crate::model::{Event, Kind};

/// What stands in the place of something that was cut out.
pub(crate) const SNIP: &str = "...snip...";

/// By which rule a conversation is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rule {
    /// CycoD's own: long prompts and tool results are cut, then old tool results replaced. It may stay over its target.
    Cycod,
    /// Ours: large old tool results, then whole old turns, until the target is reached. No call is parted from its result, and
    /// neither system prompts nor the newest turn are touched.
    #[default]
    Pairs,
}

/// When a conversation is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Moment {
    /// It was just loaded: all limits hold.
    #[default]
    Load,
    /// The user just said something: the limit on tool results has nothing new to look at.
    UserMessage,
    /// It is about to be sent to a model: all limits hold.
    Request,
}

/// How many tokens there may be; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In the whole conversation.
    pub chat: u64,
    /// In one message of the user.
    pub prompt: u64,
    /// In one result of a tool.
    pub tool: u64,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Limits = Limits { chat: 0, prompt: 0, tool: 0 };
    /// CycoD's own.
    pub const CYCOD: Limits = Limits { chat: 160_000, prompt: 50_000, tool: 50_000 };

    /// The limits that hold at that moment.
    fn at(self, moment: Moment) -> Limits {
        match moment {
            Moment::Load | Moment::Request => self,
            Moment::UserMessage => Limits { tool: 0, ..self },
        }
    }
}

/// How far the rule [`Rule::Pairs`] may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Depth {
    /// All that came since the newest question stays as it is.
    OldTurns,
    /// When nothing old is left to go, tool results since the newest question are shortened too, up to the last answer of the model:
    /// an agent may work for hours on one question. The question itself stays as it is.
    #[default]
    NewestTurn,
}

/// How a conversation is trimmed.
#[derive(Debug)]
pub struct Trim<'a> {
    /// By which rule.
    pub rule: Rule,
    /// To what size.
    pub limits: Limits,
    /// How far it may go.
    pub depth: Depth,
    /// Who counts. [`Rule::Cycod`] counts by itself.
    pub tokenizer: Tokenizer<'a>,
}

impl Default for Trim<'_> {
    fn default() -> Self {
        Trim { rule: Rule::default(), limits: Limits::NONE, depth: Depth::default(), tokenizer: Tokenizer::default() }
    }
}

/// What to do, and what it gives.
#[derive(Clone, Debug, Default)]
pub struct Trimmed {
    /// What happens to each event.
    pub plan: Plan,
    /// What goes, and how many tokens that gives.
    pub account: Account,
}

/// What goes, and how many tokens that gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Tokens before.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
    /// How many there may be; 0 is no limit.
    pub target: u64,
    /// What goes, in the order of the events.
    pub went: Vec<Went>,
}

impl Account {
    /// Whether it fits now.
    pub fn is_reached(&self) -> bool {
        self.target == 0 || self.after <= self.target
    }
}

/// What happens to one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Went {
    /// The number of the event, from 0.
    pub event: usize,
    /// The line its record begins on, where it is in a file.
    pub line: Option<u64>,
    /// What kind of event it is.
    pub kind: Kind,
    /// What happens to it.
    pub how: Manner,
    /// How many tokens fewer that makes.
    pub tokens: u64,
}

/// What happens to an event that is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It ends early.
    Cut,
    /// Only `...snip...` is left.
    Snipped,
    /// It is gone with its turn.
    Removed,
}

impl Manner {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Manner::Cut => "cut",
            Manner::Snipped => "snipped",
            Manner::Removed => "removed",
        }
    }
}

/// Plans how to make a conversation fit.
pub fn trim(events: &[Event<'_>], moment: Moment, how: &Trim<'_>) -> Trimmed {
    let mut trimming = Trimming::new(moment, how);
    events.iter().for_each(|event| trimming.add(event));
    trimming.plan(&events.sketches())
}

/// A conversation being trimmed whose events are not in memory: every event is measured as it comes along.
#[derive(Debug)]
pub struct Trimming<'h>(Weights<'h>);

#[derive(Debug)]
enum Weights<'h> {
    Cycod(cycod::Sizes),
    Pairs(pairs::Weights<'h>),
}

impl<'h> Trimming<'h> {
    /// Begins to measure.
    pub fn new(moment: Moment, how: &'h Trim<'h>) -> Trimming<'h> {
        let limits = how.limits.at(moment);
        Trimming(match how.rule {
            Rule::Cycod => Weights::Cycod(cycod::Sizes::new(limits)),
            Rule::Pairs => Weights::Pairs(pairs::Weights::new(limits, how.depth, &how.tokenizer)),
        })
    }

    /// Measures the next event; every event, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        match &mut self.0 {
            Weights::Cycod(sizes) => sizes.add(event),
            Weights::Pairs(weights) => weights.add(event),
        }
    }

    /// Plans what goes of the events that were measured.
    pub fn plan(self, events: &Sketches) -> Trimmed {
        match self.0 {
            Weights::Cycod(sizes) => sizes.trim(events),
            Weights::Pairs(weights) => weights.trim(events),
        }
    }
}

fn went(events: &Sketches, event: usize, how: Manner, tokens: u64) -> Option<Went> {
    let found = events.get(event)?;
    Some(Went { event, line: found.line(), kind: found.kind, how, tokens })
}
