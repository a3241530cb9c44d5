//! A step: one message, call or result, as a hash that does not depend on the format. The comparison aligns two conversations by their
//! steps. [`SessionTurns`](crate::turns::SessionTurns) decides where turns begin.

use std::borrow::Cow;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::calls::CallStep;
use crate::json::{Object, canonical, is_valid};
use crate::model::{Body, Content, Data, Event, Input, PieceKind, Role};
use crate::text::Text;

/// The kind of a step. Formats agree only on these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A user message.
    User,
    /// A message of the assistant.
    Assistant,
    /// Instructions from a system or developer message.
    Instructions,
    /// A message whose source does not state the speaker.
    Unknown,
    /// The thinking of the model.
    Thinking,
    /// A tool call.
    Call,
    /// The result of a tool call.
    Result,
    /// A compaction of the context.
    Compaction,
    /// An error of the run.
    Failure,
}

impl Class {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::User => "user",
            Class::Assistant => "assistant",
            Class::Instructions => "instructions",
            Class::Unknown => "unknown",
            Class::Thinking => "thinking",
            Class::Call => "call",
            Class::Result => "result",
            Class::Compaction => "compaction",
            Class::Failure => "failure",
        }
    }

    /// The kind of an event; `None` for an event that is not a step.
    pub fn of(event: &Event<'_>) -> Option<Class> {
        Some(match &event.body {
            Body::Message { content, .. } | Body::Thinking { content } if content.is_empty() => return None,
            Body::Message { role, .. } => match role {
                Role::User => Class::User,
                Role::Assistant => Class::Assistant,
                Role::System | Role::Developer => Class::Instructions,
                Role::Tool => Class::Result,
                Role::Unknown => Class::Unknown,
            },
            Body::Thinking { .. } => Class::Thinking,
            Body::ToolCall { .. } => Class::Call,
            Body::ToolResult { .. } => Class::Result,
            Body::Compaction { .. } => Class::Compaction,
            Body::Failure { .. } => Class::Failure,
            Body::Fact { .. } | Body::Stop { .. } | Body::Other { .. } => return None,
        })
    }
}

/// What a failure adds to a hash.
const FAILED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step for the comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffStep {
    /// The number of its event in the source, from 1.
    pub number: u64,
    /// Its kind.
    pub class: Class,
    /// A hash of its kind and content.
    pub key: u64,
    /// A hash of its content alone.
    words: u64,
    /// A hash of the id of its call; 0 for none.
    pub call: u64,
    /// Whether it is the result of a failed call.
    pub has_failed: bool,
    /// Whether it belongs to a side conversation.
    pub is_in_side_conversation: bool,
    sketch: Sketch,
}

impl DiffStep {
    /// The step of an event; `None` for an event that is not a step.
    pub fn of(number: u64, event: &Event<'_>) -> Option<DiffStep> {
        let class = Class::of(event)?;
        let text = canonical_text(event);
        let text = text.trim();
        let tool = match &event.body {
            Body::ToolCall { name, .. } => xxh3_64(name.as_bytes()),
            _ => 0,
        };
        let words = xxh3_64(text.as_bytes()) ^ other_content_hash(event);
        let key = xxh3_64_with_seed(text.as_bytes(), xxh3_64_with_seed(&tool.to_le_bytes(), class as u64));
        let call = event.call().filter(|call| !call.is_empty()).map_or(0, |call| xxh3_64(call.as_bytes()).max(1));
        let key = key ^ other_content_hash(event);
        let (has_failed, is_in_side_conversation) = (false, event.thread.is_some());
        Some(DiffStep {
            number,
            class,
            key,
            words,
            call,
            has_failed,
            is_in_side_conversation,
            sketch: Sketch::of(text),
        })
    }

    /// Whether it is the step of this event.
    pub fn is_of(&self, event: &Event<'_>) -> bool {
        let same = |step: DiffStep| (step.class, step.words, step.call) == (self.class, self.words, self.call);
        DiffStep::of(self.number, event).is_some_and(same)
    }

    /// This step with the decision of the fold [`Calls`](crate::calls::Calls) whether its call failed.
    #[must_use]
    pub(crate) fn with_decision(self, call_step: &CallStep) -> DiffStep {
        DiffStep { has_failed: self.class == Class::Result && call_step.has_failed(), ..self }
    }

    /// This step with a key that depends on whether the call failed.
    #[must_use]
    pub(super) fn with_outcome(self) -> DiffStep {
        let failed = u64::from(self.has_failed).wrapping_mul(FAILED);
        DiffStep { key: self.key ^ failed, ..self }
    }

    /// This step with a key that does not depend on the speaker.
    #[must_use]
    pub(crate) fn without_speaker(self) -> DiffStep {
        match self.class {
            Class::User | Class::Assistant | Class::Instructions | Class::Unknown => {
                DiffStep { key: self.words, ..self }
            }
            Class::Thinking | Class::Call | Class::Result | Class::Compaction | Class::Failure => self,
        }
    }

    /// The approximate similarity of two steps, from 0 to 1.
    pub(crate) fn similarity(&self, other: &DiffStep) -> f64 {
        self.sketch.similarity(&other.sketch)
    }
}

/// The text of an event, in a spelling that does not depend on its format.
pub(crate) fn canonical_text<'e>(event: &'e Event<'_>) -> Cow<'e, str> {
    match &event.body {
        Body::ToolCall { input: Input::Json(raw), .. } => Cow::Owned(canonical_input(raw)),
        Body::ToolCall { input: Input::Text(text), .. } => match text.decode() {
            text if is_valid(&text) => Cow::Owned(canonical_input(&text)),
            text => text,
        },
        _ => event.content().map_or(Cow::Borrowed(""), |content| Cow::Owned(content.joined().decode().into_owned())),
    }
}

/// The text of an event for people. An event without text names its other content.
pub(crate) fn display_text<'e>(event: &'e Event<'_>) -> Cow<'e, str> {
    let text = canonical_text(event);
    let others = event.content().into_iter().flat_map(Content::others);
    if !text.trim().is_empty() || !matches!(event.body, Body::Message { .. } | Body::ToolResult { .. }) {
        return text;
    }
    let names = others.map(|piece| match &piece.kind {
        PieceKind::Blob { media, .. } => format!("[{}]", media.as_deref().unwrap_or("a file")),
        PieceKind::Other(raw) => raw.clone().into_owned(),
        PieceKind::Text(text) => text.decode().into_owned(),
    });
    Cow::Owned(names.collect::<Vec<_>>().join(" "))
}

/// The input of a tool as canonical JSON. A format whose inputs must be objects wraps other inputs under one key, and an empty input becomes
/// an empty object; see [`Input::to_object`].
fn canonical_input(raw: &str) -> String {
    let bare = Object::parse(raw).and_then(|object| {
        let mut pairs = object.pairs();
        match (pairs.next(), pairs.next()) {
            (None, _) => Some(String::new()),
            (Some(("input", inner)), None) => Some(Text::from_json(inner)?.decode().into_owned()),
            (Some(_), _) => None,
        }
    });
    match bare {
        Some(text) if is_valid(&text) => canonical(&text).into_owned(),
        Some(text) => text,
        None => canonical(raw).into_owned(),
    }
}

/// A hash of the content that is not text; 0 if there is none.
fn other_content_hash(event: &Event<'_>) -> u64 {
    event.content().into_iter().flat_map(Content::others).fold(0, |fingerprint, piece| {
        let one = match &piece.kind {
            PieceKind::Text(text) => text.hash(),
            PieceKind::Blob { data: Data::Inline(text) | Data::Url(text) | Data::File(text), .. } => text.hash(),
            PieceKind::Other(raw) => xxh3_64(canonical(raw).as_bytes()),
        };
        fingerprint.rotate_left(7) ^ one
    })
}

/// A sketch of the words of a text in 32 bytes, which estimates how many words two texts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sketch([u16; BUCKETS]);

const BUCKETS: usize = 16;

/// The most words of a sketch. The beginning of a long text is enough to recognize it.
const WORDS_MAX: usize = 2_000;

impl Sketch {
    fn of(text: &str) -> Sketch {
        // The hash of a word selects a bucket. Each bucket keeps its smallest hash.
        let mut least = [u16::MAX; BUCKETS];
        for word in text.split_whitespace().take(WORDS_MAX) {
            let fingerprint = xxh3_64(word.as_bytes());
            let bucket = usize::try_from(fingerprint % BUCKETS as u64).unwrap_or(0);
            if let Some(slot) = least.get_mut(bucket) {
                *slot = (*slot).min(u16::try_from(fingerprint >> 48).unwrap_or(u16::MAX));
            }
        }
        Sketch(least)
    }

    fn similarity(&self, other: &Sketch) -> f64 {
        let used = self.0.iter().zip(&other.0).filter(|(one, other)| **one != u16::MAX || **other != u16::MAX);
        let (all, same) = used.fold((0, 0), |(all, same), (one, other)| (all + 1, same + i32::from(one == other)));
        if all == 0 { 1.0 } else { f64::from(same) / f64::from(all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(event: &Event<'_>) -> u64 {
        DiffStep::of(1, event).unwrap().key
    }

    fn call(input: Input<'static>) -> Event<'static> {
        Event::new(Body::ToolCall { call: None, name: "read".into(), input })
    }

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    #[test]
    fn a_different_spelling_is_equal() {
        assert_eq!(
            key(&call(Input::Json(r#"{"a": 1, "b": 2}"#.into()))),
            key(&call(Input::Text(r#"{"b":2,"a":1}"#.into())))
        );
        let text = Input::Text("a \"patch\"\n".into());
        let object = Input::Json(text.to_object().into_owned().into());
        assert_eq!(key(&call(text)), key(&call(object)));
        assert_eq!(key(&call(Input::Text("".into()))), key(&call(Input::Json("{}".into()))));
        assert_ne!(key(&call(Input::Text("a".into()))), key(&call(Input::Json(r#"{"input":"a","b":1}"#.into()))));
        assert_eq!(key(&message(Role::User, "go on\n")), key(&message(Role::User, " go on")));
        assert_eq!(key(&message(Role::System, "rules")), key(&message(Role::Developer, "rules")));
        assert_ne!(key(&message(Role::User, "yes")), key(&message(Role::Assistant, "yes")));
    }

    #[test]
    fn an_empty_message_is_not_a_step() {
        assert!(DiffStep::of(1, &message(Role::User, "")).is_none());
        assert!(DiffStep::of(1, &Event::new(Body::Fact { fact: "title".into(), content: None })).is_none());
    }

    #[test]
    fn texts_that_share_words_are_similar() {
        let step = |text: &'static str| DiffStep::of(1, &message(Role::User, text)).unwrap();
        let one = step("the parser fails on an empty file, so the reader must give nothing back");
        let near = step("the parser fails on a torn file, so the reader must give nothing back");
        assert!(one.similarity(&near) > 0.5, "{}", one.similarity(&near));
        assert!(one.similarity(&step("quite another thing altogether")) < 0.2);
    }

    #[test]
    fn a_step_takes_few_bytes() {
        assert!(size_of::<DiffStep>() <= 72);
    }
}
