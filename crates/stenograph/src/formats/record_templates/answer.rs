//! The answer of a model that is not written yet: its events, the results of its calls, and its usage, which may come later.

use super::RecordTemplates;
use crate::model::{Body, Event, StopReason, Usage};

/// How many parts of an answer, and results after it, are held back. Real answers have a few dozen.
const PARTS_MAX: usize = 1024;

/// An answer that is held back until it is complete.
#[derive(Clone, Debug)]
pub struct HeldAnswer {
    /// Its thoughts, texts and calls, in their order. Every call has an id.
    pub events: Vec<Event<'static>>,
    /// The results that came after it. Every result names its call.
    pub results: Vec<Event<'static>>,
    pub usage: Option<Usage>,
    /// The reason that a record of its own stated.
    pub stop: Option<String>,
}

impl HeldAnswer {
    /// Whether an event belongs to this answer.
    pub fn takes(&self, event: &Event<'_>, templates: &RecordTemplates) -> bool {
        let is_same_response = self.group() == event.group.as_deref();
        let is_counted = self.usage.is_some() && event.group.is_none() && event.part.index == 0;
        let is_full = self.events.len() >= PARTS_MAX;
        if !is_same_response || is_counted || is_full || !self.results.is_empty() || self.stop.is_some() {
            return false;
        }
        let Some(last) = self.events.last() else { return true };
        let (before, after) = (rank(&last.body), rank(&event.body));
        match templates.is_ordered() {
            // Consecutive texts would become one message.
            true => before != after || after != MESSAGE_RANK,
            false => before < after || (before == after && matches!(event.body, Body::ToolCall { .. })),
        }
    }

    fn group(&self) -> Option<&str> {
        self.events.first().and_then(|event| event.group.as_deref())
    }

    /// Whether it can hold one more result.
    pub fn has_room(&self) -> bool {
        self.results.len() < PARTS_MAX
    }

    /// Whether a token count of this response belongs to it.
    pub fn awaits_count_of(&self, group: Option<&str>) -> bool {
        self.usage.is_none() && group.is_none_or(|group| self.group().is_none_or(|own| own == group))
    }

    /// The result of one of its calls.
    pub fn result_of(&self, call: Option<&str>) -> Option<&Event<'static>> {
        self.results.iter().find(|result| result.call() == call)
    }

    pub fn has_calls(&self) -> bool {
        self.events.iter().any(|event| matches!(event.body, Body::ToolCall { .. }))
    }

    /// Whether it has a call whose result is known. A format that keeps both together has no place for other calls.
    pub fn has_answered_calls(&self) -> bool {
        self.events
            .iter()
            .any(|event| matches!(event.body, Body::ToolCall { .. }) && self.result_of(event.call()).is_some())
    }

    /// Whether it called a tool whose result is awaited.
    pub fn called(&self, call: &str) -> bool {
        self.events.iter().any(|event| matches!(event.body, Body::ToolCall { .. }) && event.call() == Some(call))
    }

    /// Why it ended, in the words of the format. A stated error is not written: agents do not send such answers again.
    pub fn stop(&self, templates: &RecordTemplates) -> Option<&'static str> {
        let word = |reason| templates.stops.iter().find(|(known, _)| *known == reason).map(|(_, word)| *word);
        let stated = self.stop.as_deref().or(self.events.iter().rev().find_map(|event| event.stop_reason.as_deref()));
        let otherwise = if self.has_calls() { StopReason::Continues } else { StopReason::Waiting };
        stated.map(StopReason::of).and_then(word).or_else(|| word(otherwise))
    }
}

const MESSAGE_RANK: u8 = 1;

/// The order of the fields of an answer.
fn rank(body: &Body<'_>) -> u8 {
    match body {
        Body::Thinking { .. } => 0,
        Body::ToolCall { .. } => 2,
        _ => MESSAGE_RANK,
    }
}
