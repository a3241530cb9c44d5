//! One turn of devflow's document being written: from a record of its own, or gathered from another format's events.
//! Where in the document it goes is not known here.

use std::borrow::Cow;

use super::{NAME, ZERO_TIME, spell};
use crate::formats::placeholder;
use crate::json::{Draft, Object};
use crate::model::{Body, Content, Event, ExtraFields, Held, Input, Piece, PieceKind, Usage};
use crate::text::quote;
use crate::time::Time;

/// A turn gathered from events of another format.
#[derive(Debug)]
pub struct Turn {
    role: &'static str,
    content: String,
    time: String,
    usage: Usage,
    calls: Vec<Call>,
    /// When the event before it happened, and its own last one, in milliseconds.
    since_ms: Option<i64>,
    until_ms: Option<i64>,
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    name: String,
    input: String,
    answer: Option<Answer>,
}

#[derive(Debug)]
enum Answer {
    Output(String),
    Error(String),
}

impl Turn {
    /// A turn without calls.
    pub fn new(role: &'static str, content: &Content<'_>, time: Option<&Time<'_>>) -> Turn {
        let time = time.and_then(Time::to_iso).map_or_else(|| ZERO_TIME.to_owned(), Cow::into_owned);
        let (content, usage) = (placeholder::joined(content).to_json(), Usage::default());
        Turn { role, content, time, usage, calls: Vec::new(), since_ms: None, until_ms: None }
    }

    /// The same, after an event of this moment.
    pub fn after(self, since_ms: Option<i64>) -> Turn {
        Turn { since_ms, ..self }
    }

    /// Takes notice of the moment of one of its events.
    pub fn lasts_until(&mut self, moment_ms: Option<i64>) {
        self.until_ms = self.until_ms.max(moment_ms);
    }

    /// How long the assistant took: from the event before the turn to the last one of it, the results of its calls included.
    fn duration_ms(&self) -> Option<u64> {
        let took = self.until_ms?.checked_sub(self.since_ms?)?;
        u64::try_from(took).ok().filter(|took| *took > 0 && self.is_assistant())
    }

    /// Whether calls can be added to it.
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }

    /// Whether it is the result of a tool whose call is gone.
    pub fn is_result(&self) -> bool {
        self.role == "tool_result"
    }

    /// Whether a call of it has no answer yet.
    pub fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.answer.is_none())
    }

    /// Adds a call.
    pub fn call(&mut self, id: Option<&str>, name: &str, input: &Input<'_>) {
        // Go reads the input into a map: only an object or null has a place there.
        let json = input.to_json();
        let object = if json.trim() == "null" { Cow::Borrowed("null") } else { input.to_object() };
        let input = spell::sorted(&object).into_owned();
        self.calls.push(Call { id: id.map(str::to_owned), name: name.to_owned(), input, answer: None });
    }

    /// Whether one of its calls waits for this answer.
    pub fn awaits(&self, id: Option<&str>) -> bool {
        self.waiting(id).is_some()
    }

    /// The call that a result answers: the one with its id; for a result without one, the oldest, those without ids first.
    fn waiting(&self, id: Option<&str>) -> Option<usize> {
        let place =
            |fits: &dyn Fn(&Call) -> bool| self.calls.iter().position(|call| call.answer.is_none() && fits(call));
        match id {
            Some(id) => place(&|call| call.id.as_deref() == Some(id)),
            None => place(&|call| call.id.is_none()).or_else(|| place(&|_| true)),
        }
    }

    /// Answers a call.
    pub fn answer(&mut self, id: Option<&str>, content: &Content<'_>, error: Option<bool>) {
        let text = placeholder::joined(content);
        let answer = match error {
            // Only a text that is not empty says that a call failed.
            Some(true) if text.is_empty() => Answer::Error(quote("error")),
            Some(true) => Answer::Error(text.to_json()),
            Some(false) | None => Answer::Output(text.to_json()),
        };
        if let Some(call) = self.waiting(id).and_then(|place| self.calls.get_mut(place)) {
            call.answer = Some(answer);
        }
    }

    /// Counts tokens of a record that is a part of this turn.
    pub fn count(&mut self, usage: &Usage) {
        let add = |total: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *total = Some(total.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut self.usage.input, sent(usage));
        add(&mut self.usage.output, usage.output);
    }

    /// The turn as JSON, with the keys in the order of Go's struct.
    pub fn render(&self, number: u64) -> String {
        let mut draft = Draft::new();
        draft.set("id", number.to_string());
        draft.set_str("role", self.role);
        draft.set("content", self.content.as_str());
        draft.set_number("tokensIn", self.usage.input);
        draft.set_number("tokensOut", self.usage.output);
        draft.set_str("timestamp", &self.time);
        if !self.calls.is_empty() {
            let calls: Vec<String> = self.calls.iter().map(Call::render).collect();
            draft.set("toolCalls", format!("[{}]", calls.join(",")));
        }
        draft.set_number("durationMs", self.duration_ms());
        draft.render(None)
    }
}

impl Call {
    fn render(&self) -> String {
        let mut draft = Draft::new();
        draft.set_opt("id", self.id.as_deref());
        draft.set_str("name", &self.name);
        draft.set("input", self.input.as_str());
        match &self.answer {
            Some(Answer::Output(text)) if text == "\"\"" => {}
            Some(Answer::Output(text)) => draft.set("output", text.as_str()),
            Some(Answer::Error(text)) => draft.set("error", text.as_str()),
            None => {}
        }
        draft.render(None)
    }
}

/// What was sent to the model: devflow does not tell apart what came from a cache.
pub fn sent(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write];
    parts.into_iter().flatten().reduce(u64::saturating_add)
}

/// A turn that comes from this format, as it was. `None` when its first event is not one of a turn.
pub fn own_turn(events: &[Event<'_>]) -> Option<String> {
    let first = events.first()?;
    let own = first.extra.get(NAME)?;
    let mut draft = Draft::new();
    if let Some(id) = &first.id {
        draft.set("id", if crate::json::number(id).is_some() { id.to_string() } else { quote(id) });
    }
    // The first call stands for a turn in which nothing was said.
    let calls = match &first.body {
        Body::Message { content, .. } | Body::ToolResult { content, .. } => {
            draft.set("content", content.joined().to_json());
            events.get(1..).unwrap_or_default()
        }
        Body::ToolCall { .. } => events,
        Body::Other { .. } => return Some(Draft::new().render(Some(own))),
        Body::Fact { .. }
        | Body::Thinking { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. } => {
            return None;
        }
    };
    let usage = first.usage.unwrap_or_default();
    draft.set_number("tokensIn", usage.input);
    draft.set_number("tokensOut", usage.output);
    draft.set_opt("timestamp", first.time.as_ref().and_then(Time::to_iso).as_deref());
    if !calls.is_empty() {
        draft.set("toolCalls", own_calls(calls, own));
    }
    Some(draft.render(Some(own)))
}

/// The calls of a turn, each with the result that follows it.
fn own_calls(events: &[Event<'_>], turn: &ExtraFields<'_>) -> String {
    let mut calls: Vec<String> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Body::ToolCall { call, name, input } = &event.body else { continue };
        let left = if event.part.index == 0 { held_calls(turn) } else { event.extra.get(NAME).cloned() };
        let left = left.unwrap_or_default();
        let mut draft = Draft::new();
        draft.set_opt("id", call.as_deref());
        draft.set_str("name", name);
        // No input was not taken: a null is among what is left, and where the name left a place, a missing input left none.
        let nothing = left.raw("input") == Some("null") || (left.has("name") && !left.has("input"));
        match input.to_json() {
            json if json == "{}" && nothing => {}
            json => draft.set("input", json.into_owned()),
        }
        if let Some(Event { body: Body::ToolResult { content, error, .. }, .. }) = events.get(at + 1) {
            own_answer(content, *error, &left, &mut draft);
        }
        calls.push(draft.render(Some(&left)));
    }
    format!("[{}]", calls.join(","))
}

/// What a call brought, where it stood.
fn own_answer(content: &Content<'_>, error: Option<bool>, left: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let failed = error == Some(true) && left.raw("error").is_none();
    match content {
        // An empty text was not taken: where it is stated, it is among what is left.
        _ if content.is_empty() => {}
        Content::Pieces(pieces) if failed => match pieces.as_slice() {
            [Piece { kind: PieceKind::Text(output), .. }, Piece { kind: PieceKind::Text(error), .. }] => {
                draft.set_text("output", output);
                draft.set_text("error", error);
            }
            _ => draft.set("error", placeholder::joined(content).to_json()),
        },
        _ if failed => draft.set("error", placeholder::joined(content).to_json()),
        _ => draft.set("output", placeholder::joined(content).to_json()),
    }
}

/// What is left of the first call, which is kept where the calls of its turn stood.
fn held_calls<'a>(turn: &'a ExtraFields<'_>) -> Option<ExtraFields<'a>> {
    turn.0.iter().rev().find(|(key, _)| key == "toolCalls").and_then(|(_, held)| match held {
        Held::Object(rest) => Some(rest.clone()),
        Held::Raw(raw) => Object::parse(raw).map(Object::into_extra),
        Held::Hole => None,
    })
}
