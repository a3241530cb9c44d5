//! Stand-ins: what a format demands and a source does not state. Every one is made the same way each time, and shows in the
//! loss report as invented. Nothing here is used for a record that returns to its own format.

mod call_ids;

use crate::model::{Event, Outline};
use crate::time::{Time, TimeUnit};
pub use call_ids::CallIds;

/// Makes the values that a target demands and the source does not state, for one written file.
#[derive(Clone, Debug, Default)]
pub struct Synthesizer {
    outline: Outline,
    made: u64,
    time: Option<Time<'static>>,
    /// The ids of calls and results in the file that is written.
    pub pairing: CallIds,
}

impl Synthesizer {
    /// Stand-ins for a session.
    pub fn new(outline: &Outline) -> Synthesizer {
        Synthesizer { time: outline.started.clone(), outline: outline.clone(), ..Synthesizer::default() }
    }

    /// What is known of the session.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The record's own id for its first event, a made-up one for the others: two records never share an id.
    pub fn id(&mut self, event: &Event<'_>) -> String {
        match &event.id {
            Some(id) if event.part.index == 0 && !id.is_empty() => id.to_string(),
            _ => self.uuid(),
        }
    }

    /// A made-up UUID.
    pub fn uuid(&mut self) -> String {
        self.made += 1;
        self.outline.invent_uuid("record", self.made)
    }

    /// The session's id, made up where the source has none.
    pub fn session(&self) -> String {
        self.outline.session.clone().unwrap_or_else(|| self.outline.invent_uuid("session", 0))
    }

    /// The event's moment; else the last one known, for time does not run backwards; else the beginning of 1970.
    pub fn time(&mut self, event: &Event<'_>) -> Time<'static> {
        if let Some(time) = event.time.as_ref().filter(|time| time.instant().is_some()) {
            self.time = Some(time.clone().into_owned());
        }
        self.time.clone().unwrap_or(Time { text: "0".into(), unit: TimeUnit::Seconds })
    }
}
