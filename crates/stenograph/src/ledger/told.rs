//! What a record tells about model calls in the words of its own format, where the model of events has no place for it. A format
//! reads it out of what is left of its records; nothing here knows one.

use super::{ServiceTier, Tokens};
use crate::text::Str;
use crate::time::Time;

/// What a record tells about model calls beyond the usage of its event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told<'a> {
    /// The id of the request: with that of the answer it tells one call from another.
    pub request: Option<Str<'a>>,
    /// At which pace the call was served.
    pub pace: ServiceTier,
    /// Counters that the usage of the event does not have. What it has is 0 here.
    pub more: Tokens,
    /// What the session has taken so far.
    pub total: Option<Total>,
    /// A call that the record tells of, and that is not its own.
    pub inner: Option<ForwardedCall<'a>>,
    /// The session whose history the source begins with.
    pub parent: Option<Str<'a>>,
    /// Whether that history stands in another source, so that a running total begins with what is not told here.
    pub apart: bool,
    /// Why its numbers are no call, where they are none.
    pub aside: Option<NotACall>,
    /// Whether it states a count that is none: negative, with a fraction, too large, or no number.
    pub odd: bool,
}

impl Told<'_> {
    /// Whether the record tells anything that is counted or counted by.
    pub(crate) fn is_counted(&self) -> bool {
        let stands_alone = self.total.is_some() || self.inner.is_some() || self.more.searches > 0;
        stands_alone || self.parent.is_some() || self.aside.is_some() || self.odd
    }
}

/// Whether what stands where a count should is none. Nothing at all is no count either, and nothing odd.
pub(crate) fn is_odd(raw: &str) -> bool {
    raw != "null" && crate::json::number(raw).is_none()
}

/// What a session has taken so far, where its source keeps a running count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// The counters, each since the session began.
    pub tokens: Tokens,
    /// What it counts as input.
    pub input: Input,
    /// What the source says that it cost in all.
    pub cost: Option<f64>,
}

/// What a running count has as input. A difference is only taken of what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// What neither came from a cache nor went into one.
    #[default]
    Apart,
    /// Also what came from a cache and went into one.
    WithCache,
}

/// A model call of a sub-agent that a record of the main conversation forwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForwardedCall<'a> {
    /// The id of the answer.
    pub group: Option<Str<'a>>,
    /// The id of the request.
    pub request: Option<Str<'a>>,
    /// The record's own id where it stands by itself.
    pub id: Option<Str<'a>>,
    /// The sub-agent.
    pub thread: Option<Str<'a>>,
    /// The model.
    pub model: Option<Str<'a>>,
    /// When.
    pub time: Option<Time<'a>>,
    /// At which pace it was served.
    pub pace: ServiceTier,
    /// What it took.
    pub tokens: Tokens,
}

/// Why a record that states usage is not a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotACall {
    /// The agent itself put the words into the model's mouth.
    Synthetic,
    /// They add up calls that are told one by one.
    Sum,
}
