//! One turn of devflow's document, to be written: from a record of its own format, or collected from another format's events.
//! This module does not know its position in the document.

use std::borrow::Cow;

use super::{NAME, ZERO_TIME, go_json};
use crate::formats::placeholder;
use crate::json::{Draft, Object};
use crate::model::{Body, Content, Event, ExtraFields, Held, Input, Piece, PieceKind, Tokens, Usage};
use crate::text::quote;
use crate::time::Time;

/// A turn collected from events of another format.
#[derive(Debug)]
pub struct DevflowTurn {
    role: &'static str,
    content: String,
    time: String,
    usage: Usage,
    calls: Vec<TurnCall>,
    /// The times of the event before it and of its own last event, in milliseconds.
    since_ms: Option<i64>,
    until_ms: Option<i64>,
}

#[derive(Debug)]
struct TurnCall {
    id: Option<String>,
    name: String,
    input: String,
    result: Option<CallResult>,
}

#[derive(Debug)]
enum CallResult {
    Output(String),
    Error(String),
}

impl DevflowTurn {
    /// A turn without calls.
    pub fn new(role: &'static str, content: &Content<'_>, time: Option<&Time<'_>>) -> DevflowTurn {
        let time = time.and_then(Time::to_iso).map_or_else(|| ZERO_TIME.to_owned(), Cow::into_owned);
        let (content, usage) = (placeholder::joined(content).to_json(), Usage::default());
        DevflowTurn { role, content, time, usage, calls: Vec::new(), since_ms: None, until_ms: None }
    }

    /// The same turn after an event at this time.
    pub fn after(self, since_ms: Option<i64>) -> DevflowTurn {
        DevflowTurn { since_ms, ..self }
    }

    /// Extends the turn to the time of one of its events.
    pub fn lasts_until(&mut self, time_ms: Option<i64>) {
        self.until_ms = self.until_ms.max(time_ms);
    }

    /// How long the assistant took: from the event before the turn to the turn's last event, including the results of its
    /// calls.
    fn duration_ms(&self) -> Option<u64> {
        let duration = self.until_ms?.checked_sub(self.since_ms?)?;
        u64::try_from(duration).ok().filter(|duration| *duration > 0 && self.is_assistant())
    }

    /// Whether calls can be added to it.
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }

    /// Whether it is a tool result without a call.
    pub fn is_result(&self) -> bool {
        self.role == "tool_result"
    }

    /// Whether one of its calls has no result yet.
    pub fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    /// Adds a call.
    pub fn add_call(&mut self, id: Option<&str>, name: &str, input: &Input<'_>) {
        // Go reads the input into a map, so only an object or null fits.
        let json = input.to_json();
        let object = if json.trim() == "null" { Cow::Borrowed("null") } else { input.to_object() };
        let input = go_json::sorted(&object).into_owned();
        self.calls.push(TurnCall { id: id.map(str::to_owned), name: name.to_owned(), input, result: None });
    }

    /// Whether one of its calls waits for this result.
    pub fn awaits(&self, id: Option<&str>) -> bool {
        self.waiting_call(id).is_some()
    }

    /// The call of a result: the one with its id. For a result without an id it is the oldest one, preferably without an id
    /// too.
    fn waiting_call(&self, id: Option<&str>) -> Option<usize> {
        let position =
            |fits: &dyn Fn(&TurnCall) -> bool| self.calls.iter().position(|call| call.result.is_none() && fits(call));
        match id {
            Some(id) => position(&|call| call.id.as_deref() == Some(id)),
            None => position(&|call| call.id.is_none()).or_else(|| position(&|_| true)),
        }
    }

    /// Adds the result of a call.
    pub fn add_result(&mut self, id: Option<&str>, content: &Content<'_>, error: Option<bool>) {
        let text = placeholder::joined(content);
        let result = match error {
            // Only a text that is not empty marks a call as failed.
            Some(true) if text.is_empty() => CallResult::Error(quote("error")),
            Some(true) => CallResult::Error(text.to_json()),
            Some(false) | None => CallResult::Output(text.to_json()),
        };
        if let Some(call) = self.waiting_call(id).and_then(|position| self.calls.get_mut(position)) {
            call.result = Some(result);
        }
    }

    /// Adds the tokens of a record in this turn.
    pub fn count(&mut self, usage: &Usage) {
        let add = |total: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *total = Some(total.unwrap_or(0).saturating_add(more));
            }
        };
        // devflow does not separate cached tokens.
        add(&mut self.usage.input, Some(Tokens::of(usage).all_input()).filter(|_| states_input(usage)));
        add(&mut self.usage.output, usage.output);
    }

    /// The turn as JSON, with the keys in the order of Go's struct.
    pub fn render(&self, number: u64) -> String {
        let mut draft = Draft::new();
        draft.set("id", number.to_string());
        draft.set_str("role", self.role);
        draft.set("content", self.content.as_str());
        draft.set_number("tokensIn", self.usage.input.filter(|tokens| *tokens > 0));
        draft.set_number("tokensOut", self.usage.output.filter(|tokens| *tokens > 0));
        draft.set_str("timestamp", &self.time);
        if !self.calls.is_empty() {
            let calls: Vec<String> = self.calls.iter().map(TurnCall::render).collect();
            draft.set("toolCalls", format!("[{}]", calls.join(",")));
        }
        draft.set_number("durationMs", self.duration_ms());
        draft.render(None)
    }
}

impl TurnCall {
    fn render(&self) -> String {
        let mut draft = Draft::new();
        draft.set_opt("id", self.id.as_deref());
        draft.set_str("name", &self.name);
        draft.set("input", self.input.as_str());
        match &self.result {
            Some(CallResult::Output(text)) if text == "\"\"" => {}
            Some(CallResult::Output(text)) => draft.set("output", text.as_str()),
            Some(CallResult::Error(text)) => draft.set("error", text.as_str()),
            None => {}
        }
        draft.render(None)
    }
}

fn states_input(usage: &Usage) -> bool {
    let Usage { input, cache_read, cache_write, cache_write_1h, cache_write_5m, .. } = usage;
    [input, cache_read, cache_write, cache_write_1h, cache_write_5m].into_iter().any(Option::is_some)
}

/// A turn that was read from this format, unchanged. `None` if its first event does not belong to a turn.
pub fn own_turn(events: &[Event<'_>]) -> Option<String> {
    let first = events.first()?;
    let extra = first.extra.get(NAME)?;
    let mut draft = Draft::new();
    if let Some(id) = &first.id {
        draft.set("id", if crate::json::number(id).is_some() { id.to_string() } else { quote(id) });
    }
    // The role keeps its place among the keys, even if their order is not known any more.
    if let Some(role) = extra.raw("role") {
        draft.set("role", role);
    }
    // The first call is the first part of a turn without content.
    let calls = match &first.body {
        Body::Message { content, .. } | Body::ToolResult { content, .. } => {
            draft.set("content", content.joined().to_json());
            events.get(1..).unwrap_or_default()
        }
        Body::ToolCall { .. } => events,
        Body::Other { .. } => return Some(Draft::new().render(Some(extra))),
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
        draft.set("toolCalls", own_calls(calls, extra));
    }
    Some(draft.render(Some(extra)))
}

/// The calls of a turn, each with the result after it.
fn own_calls(events: &[Event<'_>], turn: &ExtraFields<'_>) -> String {
    let mut calls: Vec<String> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Body::ToolCall { call, name, input } = &event.body else { continue };
        let call_extra = if event.part.index == 0 { first_call_extra(turn) } else { event.extra.get(NAME).cloned() };
        let call_extra = call_extra.unwrap_or_default();
        let mut draft = Draft::new();
        draft.set_opt("id", call.as_deref());
        draft.set_str("name", name);
        // A missing input was not taken: a null is in the extra fields, and if the name left a hole, a missing input left none.
        let nothing = call_extra.raw("input") == Some("null") || (call_extra.has("name") && !call_extra.has("input"));
        match input.to_json() {
            json if json == "{}" && nothing => {}
            json => draft.set("input", json.into_owned()),
        }
        if let Some(Event { body: Body::ToolResult { content, error, .. }, .. }) = events.get(at + 1) {
            put_own_result(content, *error, &call_extra, &mut draft);
        }
        calls.push(draft.render(Some(&call_extra)));
    }
    format!("[{}]", calls.join(","))
}

/// Writes the result of a call to its original keys.
fn put_own_result(content: &Content<'_>, error: Option<bool>, call_extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let failed = error == Some(true) && call_extra.raw("error").is_none();
    match content {
        // The reader did not take an empty text: if it was stated, it is in the extra fields.
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

/// The extra fields of the first call, which replace the list of calls in its turn's extra fields.
fn first_call_extra<'a>(turn: &'a ExtraFields<'_>) -> Option<ExtraFields<'a>> {
    turn.0.iter().rev().find(|(key, _)| key == "toolCalls").and_then(|(_, held)| match held {
        Held::Object(extra) => Some(extra.clone()),
        Held::Raw(raw) => Object::parse(raw).map(Object::into_extra),
        Held::Hole => None,
    })
}
