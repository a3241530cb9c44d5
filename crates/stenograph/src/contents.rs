//! The contents of a conversation, for a reader who wants to find a place in it: what the audit tells, where which kinds of events
//! are, and what fills the model's context between two compactions. Its size does not grow with the conversation.

use serde::{Deserialize, Serialize};

use crate::audit::{Audit, Auditor, CallOutcome, SavedAudit};
use crate::ledger::context_tokens;
use crate::model::{Body, Content, Event, Input, PieceKind};
use crate::render::{EventContext, ViewKind};

/// How many parts a conversation is divided into. A map of a conversation has fewer pixels.
const PARTS_MAX: usize = 400;

/// How many compactions and failed calls are listed.
const LIST_MAX: usize = 1000;

/// How much of a call is kept where it only says what failed.
const ABOUT_CHARS_MAX: usize = 160;

/// What fills a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextShare {
    /// What people type.
    Prompts,
    /// What the agent says.
    Answers,
    /// What the model thinks.
    Thinking,
    /// The calls that the model makes.
    Calls,
    /// The results of calls.
    Results,
    /// Texts that the agent's program adds.
    Instructions,
    /// Summaries of compactions, notices and the rest.
    Other,
}

impl ContextShare {
    /// All shares, in the order in which they are shown.
    pub const ALL: [ContextShare; 7] = [
        ContextShare::Prompts,
        ContextShare::Answers,
        ContextShare::Thinking,
        ContextShare::Calls,
        ContextShare::Results,
        ContextShare::Instructions,
        ContextShare::Other,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ContextShare::Prompts => "prompts",
            ContextShare::Answers => "answers",
            ContextShare::Thinking => "thinking",
            ContextShare::Calls => "calls",
            ContextShare::Results => "results",
            ContextShare::Instructions => "instructions",
            ContextShare::Other => "other",
        }
    }

    fn of(kind: ViewKind) -> ContextShare {
        match kind {
            ViewKind::User => ContextShare::Prompts,
            ViewKind::Agent => ContextShare::Answers,
            ViewKind::Thinking => ContextShare::Thinking,
            ViewKind::Call(_) => ContextShare::Calls,
            ViewKind::Result(_) => ContextShare::Results,
            ViewKind::Injected => ContextShare::Instructions,
            ViewKind::Compaction | ViewKind::Failure | ViewKind::Notice | ViewKind::Bookkeeping => ContextShare::Other,
        }
    }
}

/// What happens between two compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPhase {
    /// The number of its first event, from 1.
    pub first: u64,
    /// The bytes of text of each share, in the order of [`ContextShare::ALL`].
    pub bytes: [u64; 7],
    /// The tokens that the model was given at most.
    pub tokens: u64,
}

/// How many events of each share are where: equal parts of the conversation, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Density {
    /// How many events a part has.
    pub step: u64,
    /// For each part: the number of events of each share, then the number of failed calls.
    pub parts: Vec<[u32; 8]>,
}

impl Default for Density {
    fn default() -> Density {
        Density { step: 1, parts: Vec::new() }
    }
}

impl Density {
    /// Counts an event, by its number from 1.
    fn add(&mut self, number: u64, column: usize) {
        let mut at = usize::try_from(number.saturating_sub(1) / self.step).unwrap_or(usize::MAX);
        while at >= PARTS_MAX {
            self.halve();
            at /= 2;
        }
        if self.parts.len() <= at {
            self.parts.resize(at + 1, [0; 8]);
        }
        if let Some(count) = self.parts.get_mut(at).and_then(|part| part.get_mut(column)) {
            *count = count.saturating_add(1);
        }
    }

    /// Joins each two parts.
    fn halve(&mut self) {
        let join = |pair: &[[u32; 8]]| {
            pair.iter().fold([0; 8], |mut sum: [u32; 8], part| {
                sum.iter_mut().zip(part).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
                sum
            })
        };
        self.parts = self.parts.chunks(2).map(join).collect();
        self.step = self.step.saturating_mul(2);
    }
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedCall {
    /// The number of its event, from 1.
    pub event: u64,
    /// The tool.
    pub tool: String,
    /// One line about the call.
    pub about: String,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// Collects the contents of a conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ContentsBuilder {
    auditor: Auditor,
    density: Density,
    phases: Vec<ContextPhase>,
}

/// The contents of a conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Contents {
    /// What the audit tells. The list of all calls is left out.
    #[serde(with = "SavedAudit")]
    pub audit: Audit,
    /// Where which kinds of events are.
    pub density: Density,
    /// What fills the context, from compaction to compaction.
    pub phases: Vec<ContextPhase>,
    /// The calls that failed.
    pub failures: Vec<FailedCall>,
    /// How many more calls failed.
    pub failures_more: u64,
}

impl ContentsBuilder {
    /// Takes notice of the next event, with its number from 1.
    pub fn add(&mut self, number: u64, event: &Event<'_>) {
        self.auditor.add(event);
        let (kind, _) = ViewKind::of(event, &EventContext::default());
        let share = ContextShare::of(kind);
        if self.phases.is_empty() || kind == ViewKind::Compaction && self.phases.len() < LIST_MAX {
            self.phases.push(ContextPhase { first: number, ..ContextPhase::default() });
        }
        if event.restates || kind == ViewKind::Bookkeeping {
            return;
        }
        self.density.add(number, share as usize);
        if let Some(phase) = self.phases.last_mut() {
            if let Some(bytes) = phase.bytes.get_mut(share as usize) {
                *bytes = bytes.saturating_add(text_size(event));
            }
            phase.tokens = phase.tokens.max(context_tokens(event).unwrap_or_default());
        }
    }

    /// The contents.
    pub fn finish(self) -> Contents {
        let ContentsBuilder { auditor, mut density, phases } = self;
        let mut audit = auditor.finish();
        let calls = std::mem::take(&mut audit.calls);
        let (mut failures, mut failures_more) = (Vec::new(), 0);
        for call in calls.items.iter().filter(|call| call.outcome.is_failure()) {
            density.add(call.place.event, ContextShare::ALL.len());
            if failures.len() == LIST_MAX {
                failures_more += 1;
                continue;
            }
            let tool = call.tool.and_then(|tool| audit.tools.get(tool)).map(|tool| tool.name.clone());
            let about = call.about().chars().take(ABOUT_CHARS_MAX).collect();
            let (event, outcome) = (call.place.event, call.outcome);
            failures.push(FailedCall { event, tool: tool.unwrap_or_default(), about, outcome });
        }
        // The calls themselves are not kept, but a reader must learn that some were not looked at.
        audit.calls.more = calls.more;
        Contents { audit, density, phases, failures, failures_more }
    }
}

/// The bytes of text that an event gives the model.
fn text_size(event: &Event<'_>) -> u64 {
    let content = |content: &Content<'_>| content.texts().map(|text| text.wtf8().len() as u64).sum();
    match &event.body {
        Body::Message { content: said, .. } | Body::Thinking { content: said } => content(said),
        Body::ToolResult { content: said, .. } => content(said) + blobs(said),
        Body::ToolCall { input: Input::Json(raw), .. } => raw.len() as u64,
        Body::ToolCall { input: Input::Text(text), .. } => text.wtf8().len() as u64,
        Body::Compaction { summary } => summary.as_ref().map_or(0, content),
        Body::Failure { .. } | Body::Stop { .. } | Body::Fact { .. } | Body::Other { .. } => 0,
    }
}

/// The bytes that images and other data of a content count as: about as much text as a small image costs.
fn blobs(content: &Content<'_>) -> u64 {
    const BLOB_SIZE: u64 = 6_000;
    BLOB_SIZE * content.others().filter(|piece| matches!(piece.kind, PieceKind::Blob { .. })).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    fn message(role: Role, text: &str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
    }

    #[test]
    fn a_long_conversation_has_as_many_parts_as_a_map_needs() {
        let mut builder = ContentsBuilder::default();
        let event = message(Role::Assistant, "yes");
        (1..=100_000).for_each(|number| builder.add(number, &event));
        let Density { step, parts } = builder.finish().density;
        assert!(parts.len() <= PARTS_MAX && parts.len() > PARTS_MAX / 2, "{}", parts.len());
        let answers: u64 = parts.iter().map(|part| u64::from(part[ContextShare::Answers as usize])).sum();
        assert_eq!((answers, step), (100_000, 256));
    }

    #[test]
    fn a_compaction_begins_a_phase() {
        let mut builder = ContentsBuilder::default();
        builder.add(1, &message(Role::User, "four"));
        builder.add(2, &Event::new(Body::Compaction { summary: Some(Content::text("sum")) }));
        builder.add(3, &message(Role::Assistant, "seven77"));
        let contents = builder.finish();
        let phases: Vec<(u64, u64)> =
            contents.phases.iter().map(|phase| (phase.first, phase.bytes.iter().sum())).collect();
        assert_eq!(phases, [(1, 4), (2, 10)]);
        assert_eq!(contents.audit.turns.items.len(), 1);
    }
}
