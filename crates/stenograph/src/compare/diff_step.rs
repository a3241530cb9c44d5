//! A step: one thing that was said or done, as a fingerprint. Whatever a format only spells differently has the same one. Steps are
//! what two conversations are aligned by; where a turn begins [`SessionTurns`](crate::turns::SessionTurns) decides.

use std::borrow::Cow;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::calls::CallStep;
use crate::json::{Object, canonical, is_valid};
use crate::model::{Body, Content, Data, Event, Input, PieceKind, Role};
use crate::text::Text;

/// What kind of thing a step is. Formats do not agree on more kinds than these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A user says something.
    User,
    /// The assistant says something.
    Assistant,
    /// What the model is told before anybody speaks.
    Instructions,
    /// Somebody of whom the source does not say who it is.
    Unknown,
    /// A model thinks aloud.
    Thinking,
    /// A tool is called.
    Call,
    /// A tool answers.
    Result,
    /// What came before is put aside.
    Compaction,
    /// Something goes wrong.
    Failure,
}

impl Class {
    /// The word for people and programs.
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

    /// What an event is: nothing when it is no part of what was said and done.
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

/// What a failure adds to a fingerprint.
const FAILED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One thing that was said or done.
#[derive(Clone, Copy, Debug)]
pub struct DiffStep {
    /// The number of its event in the source, from 1.
    pub number: u64,
    /// What kind of thing it is.
    pub class: Class,
    /// A fingerprint of what it says, with what it is.
    pub key: u64,
    /// A fingerprint of what it says, whoever says it.
    words: u64,
    /// What ties a call and its result, as a fingerprint; 0 where nothing does.
    pub call: u64,
    /// Whether it tells that a call failed.
    pub has_failed: bool,
    /// Whether it belongs to a side conversation.
    pub is_aside: bool,
    sketch: Sketch,
}

impl DiffStep {
    /// The step that an event is, if it is one.
    pub fn of(number: u64, event: &Event<'_>) -> Option<DiffStep> {
        let class = Class::of(event)?;
        let said = said(event);
        let text = said.trim();
        let tool = match &event.body {
            Body::ToolCall { name, .. } => xxh3_64(name.as_bytes()),
            _ => 0,
        };
        let words = xxh3_64(text.as_bytes()) ^ blobs(event);
        let key = xxh3_64_with_seed(text.as_bytes(), xxh3_64_with_seed(&tool.to_le_bytes(), class as u64));
        let call = event.call().filter(|call| !call.is_empty()).map_or(0, |call| xxh3_64(call.as_bytes()).max(1));
        let key = key ^ blobs(event);
        let (has_failed, is_aside) = (false, event.thread.is_some());
        Some(DiffStep { number, class, key, words, call, has_failed, is_aside, sketch: Sketch::of(text) })
    }

    /// Whether it is the step of this event.
    pub fn is_of(&self, event: &Event<'_>) -> bool {
        let same = |step: DiffStep| (step.class, step.words, step.call) == (self.class, self.words, self.call);
        DiffStep::of(self.number, event).is_some_and(same)
    }

    /// The same step, of which the fold [`Calls`](crate::calls::Calls) decided whether it tells that a call failed.
    #[must_use]
    pub fn deciding(self, call_step: &CallStep) -> DiffStep {
        DiffStep { has_failed: self.class == Class::Result && call_step.has_failed(), ..self }
    }

    /// The same step, where it matters whether a call failed.
    #[must_use]
    pub(super) fn by_outcome(self) -> DiffStep {
        let failed = u64::from(self.has_failed).wrapping_mul(FAILED);
        DiffStep { key: self.key ^ failed, ..self }
    }

    /// The same step, where it does not matter who says it.
    #[must_use]
    pub(crate) fn by_anybody(self) -> DiffStep {
        match self.class {
            Class::User | Class::Assistant | Class::Instructions | Class::Unknown => {
                DiffStep { key: self.words, ..self }
            }
            Class::Thinking | Class::Call | Class::Result | Class::Compaction | Class::Failure => self,
        }
    }

    /// How much of what two steps say is the same, from 0 to 1, about.
    pub(crate) fn likeness(&self, other: &DiffStep) -> f64 {
        self.sketch.likeness(&other.sketch)
    }
}

/// What an event says, in a spelling that does not depend on where it comes from.
pub fn said<'e>(event: &'e Event<'_>) -> Cow<'e, str> {
    match &event.body {
        Body::ToolCall { input: Input::Json(raw), .. } => Cow::Owned(given(raw)),
        Body::ToolCall { input: Input::Text(text), .. } => match text.decode() {
            text if is_valid(&text) => Cow::Owned(given(&text)),
            text => text,
        },
        _ => event.content().map_or(Cow::Borrowed(""), |content| Cow::Owned(content.joined().decode().into_owned())),
    }
}

/// What an event says, for people: what is no text is named where nothing else is said.
pub fn shown<'e>(event: &'e Event<'_>) -> Cow<'e, str> {
    let said = said(event);
    let others = event.content().into_iter().flat_map(Content::others);
    if !said.trim().is_empty() || !matches!(event.body, Body::Message { .. } | Body::ToolResult { .. }) {
        return said;
    }
    let names = others.map(|piece| match &piece.kind {
        PieceKind::Blob { media, .. } => format!("[{}]", media.as_deref().unwrap_or("a file")),
        PieceKind::Other(raw) => raw.clone().into_owned(),
        PieceKind::Text(text) => text.decode().into_owned(),
    });
    Cow::Owned(names.collect::<Vec<_>>().join(" "))
}

/// What a tool is given, which is JSON. Where nothing but objects is taken, anything else stands below one key, and nothing is an empty one:
/// see [`Input::to_object`].
fn given(raw: &str) -> String {
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

/// A fingerprint of what is no text; 0 where all is.
fn blobs(event: &Event<'_>) -> u64 {
    event.content().into_iter().flat_map(Content::others).fold(0, |print, piece| {
        let one = match &piece.kind {
            PieceKind::Text(text) => text.hash(),
            PieceKind::Blob { data: Data::Inline(text) | Data::Url(text) | Data::File(text), .. } => text.hash(),
            PieceKind::Other(raw) => xxh3_64(canonical(raw).as_bytes()),
        };
        print.rotate_left(7) ^ one
    })
}

/// The words of a text in 32 bytes: enough to tell about how many of them two texts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sketch([u16; BUCKETS]);

const BUCKETS: usize = 16;

/// How many words are looked at: the beginning of a long text is enough to know it by.
const WORDS_MAX: usize = 2_000;

impl Sketch {
    fn of(text: &str) -> Sketch {
        // Each word falls into one bucket, and the smallest of each bucket counts.
        let mut least = [u16::MAX; BUCKETS];
        for word in text.split_whitespace().take(WORDS_MAX) {
            let print = xxh3_64(word.as_bytes());
            let bucket = usize::try_from(print % BUCKETS as u64).unwrap_or(0);
            if let Some(slot) = least.get_mut(bucket) {
                *slot = (*slot).min(u16::try_from(print >> 48).unwrap_or(u16::MAX));
            }
        }
        Sketch(least)
    }

    fn likeness(&self, other: &Sketch) -> f64 {
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

    fn said_by(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    #[test]
    fn what_is_only_spelled_differently_is_the_same() {
        assert_eq!(
            key(&call(Input::Json(r#"{"a": 1, "b": 2}"#.into()))),
            key(&call(Input::Text(r#"{"b":2,"a":1}"#.into())))
        );
        let text = Input::Text("a \"patch\"\n".into());
        let object = Input::Json(text.to_object().into_owned().into());
        assert_eq!(key(&call(text)), key(&call(object)));
        assert_eq!(key(&call(Input::Text("".into()))), key(&call(Input::Json("{}".into()))));
        assert_ne!(key(&call(Input::Text("a".into()))), key(&call(Input::Json(r#"{"input":"a","b":1}"#.into()))));
        assert_eq!(key(&said_by(Role::User, "go on\n")), key(&said_by(Role::User, " go on")));
        assert_eq!(key(&said_by(Role::System, "rules")), key(&said_by(Role::Developer, "rules")));
        assert_ne!(key(&said_by(Role::User, "yes")), key(&said_by(Role::Assistant, "yes")));
    }

    #[test]
    fn nothing_said_is_no_step() {
        assert!(DiffStep::of(1, &said_by(Role::User, "")).is_none());
        assert!(DiffStep::of(1, &Event::new(Body::Fact { fact: "title".into(), content: None })).is_none());
    }

    #[test]
    fn texts_that_share_words_are_alike() {
        let step = |text: &'static str| DiffStep::of(1, &said_by(Role::User, text)).unwrap();
        let one = step("the parser fails on an empty file, so the reader must give nothing back");
        let near = step("the parser fails on a torn file, so the reader must give nothing back");
        assert!(one.likeness(&near) > 0.5, "{}", one.likeness(&near));
        assert!(one.likeness(&step("quite another thing altogether")) < 0.2);
    }

    #[test]
    fn a_step_takes_few_bytes() {
        assert!(size_of::<DiffStep>() <= 72);
    }
}
