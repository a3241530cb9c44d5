//! Synthesizes values that a target format requires and the source does not state. The same session always gives the same
//! values, and the loss report lists them as invented. A record that returns to its own format gets none.

mod call_ids;

use crate::model::{Event, Outline};
use crate::time::{Time, TimeUnit};
pub use call_ids::CallIds;

/// Synthesizes the missing values of one written file.
#[derive(Clone, Debug, Default)]
pub struct Synthesizer {
    outline: Outline,
    count: u64,
    time: Option<Time<'static>>,
    /// The ids of calls and results in the written file.
    pub pairing: CallIds,
}

impl Synthesizer {
    /// A synthesizer for a session.
    pub fn new(outline: &Outline) -> Synthesizer {
        Synthesizer { time: outline.started.clone(), outline: outline.clone(), ..Synthesizer::default() }
    }

    /// The outline of the session.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The record's own id for its first event, a synthesized one for the others: two records never share an id.
    pub fn id(&mut self, event: &Event<'_>) -> String {
        match &event.id {
            Some(id) if event.part.index == 0 && !id.is_empty() => id.to_string(),
            _ => self.uuid(),
        }
    }

    /// A synthesized UUID.
    pub fn uuid(&mut self) -> String {
        self.count += 1;
        self.outline.invent_uuid("record", self.count)
    }

    /// The session's id, synthesized if the source has none.
    pub fn session(&self) -> String {
        self.outline.session.clone().unwrap_or_else(|| self.outline.invent_uuid("session", 0))
    }

    /// The event's time, or else the last known one, so that time never runs backwards, or else the beginning of 1970.
    pub fn time(&mut self, event: &Event<'_>) -> Time<'static> {
        if let Some(time) = event.time.as_ref().filter(|time| time.instant().is_some()) {
            self.time = Some(time.clone().into_owned());
        }
        self.time.clone().unwrap_or(Time { text: "0".into(), unit: TimeUnit::Seconds })
    }
}
