//! Sessions for people and for other programs. This output is not read back. It only promises to be legible and harmless:
//! transcripts are hostile text, and their content must stay in its place.

mod amounts;
mod document;
mod harmless;
pub mod html;
mod markdown;
mod markup;
mod sections;
mod view;

pub use amounts::{ago, bytes, counted, span};
pub use document::Document;
pub use harmless::{dollars, grouped, harmless, harmless_json, harmless_line, stated_dollars};
pub use markdown::{Markdown, Shown};
pub use sections::{EventSection, Speaker, SpeakerSections};
pub use view::{Block, EventContext, EventView, EventViewer, ViewKind};

use crate::calls::{CallOutcome, CallStep};

/// How a call failed, if the event of this step decides that one did: the call that it answers, otherwise the call that it
/// reports on.
fn failure(step: &CallStep) -> Option<CallOutcome> {
    let mut outcomes = step.decision.iter().chain(&step.later).map(|decision| decision.outcome);
    outcomes.find(|outcome| outcome.is_failure())
}

#[cfg(test)]
mod tests;
