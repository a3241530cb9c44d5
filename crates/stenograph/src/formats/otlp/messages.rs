//! Messages of the GenAI conventions: JSON inside the text of an attribute, a list of messages with parts.

use std::borrow::Cow;

use super::{INFO, NAME};
use crate::formats::record_map::{CallMap, ElementMap, ErrorAt, InputAt, PartMap, RecordMap, ResultMap, Speaks};
use crate::frame::RecordPlace;
use crate::json::{Object, compact, items, value_at};
use crate::model::{Body, Event, Extra, ExtraFields, Held, Role};

/// What the messages of an attribute are in their model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The system prompt: a list of parts.
    Instructions,
    Input,
    Output,
}

/// The attributes with messages.
pub const CONTENTS: [(&str, Said); 3] = [
    ("gen_ai.system_instructions", Said::Instructions),
    ("gen_ai.input.messages", Said::Input),
    ("gen_ai.output.messages", Said::Output),
];

/// How the JSON in a text is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// Without spaces.
    Compact,
    /// With a space after each comma and colon, as Python does.
    Spaced,
}

impl Spelling {
    const ALL: [Spelling; 2] = [Spelling::Compact, Spelling::Spaced];

    /// The text that takes the place of messages which events have.
    pub fn blank(self) -> &'static str {
        match self {
            Spelling::Compact => "",
            Spelling::Spaced => " ",
        }
    }

    /// The spelling that such a text states.
    pub fn of_blank(text: &str) -> Option<Spelling> {
        Spelling::ALL.into_iter().find(|spelling| spelling.blank() == text)
    }

    /// Compact JSON in this spelling.
    pub fn of_json(self, json: String) -> String {
        if self == Spelling::Compact {
            return json;
        }
        let mut spelled = String::with_capacity(json.len() + json.len() / 4);
        let (mut in_text, mut escaped) = (false, false);
        // A value that events keep as it is has such spaces already.
        for char in compact(&json).chars() {
            spelled.push(char);
            match char {
                _ if escaped => escaped = false,
                '\\' if in_text => escaped = true,
                '"' => in_text = !in_text,
                ',' | ':' if !in_text => spelled.push(' '),
                _ => {}
            }
        }
        spelled
    }
}

const TEXT: &[&str] = &["content"];

const RESPONSE: ResultMap =
    ResultMap { call: "id", name: "name", content: "response", texts: TEXT, error: ErrorAt::Nowhere };

const PARTS: &[ElementMap] = &[
    ElementMap::Thinking(&[("type", "reasoning")], "content"),
    ElementMap::Thinking(&[("type", "thinking")], "content"),
    ElementMap::Call(&[("type", "tool_call")], CallMap { id: "id", name: "name", input: InputAt::Maybe("arguments") }),
    ElementMap::Result(&[("type", "tool_call_response"), ("response", "*")], RESPONSE),
    // Pydantic AI calls it so.
    ElementMap::Result(&[("type", "tool_call_response"), ("result", "*")], ResultMap { content: "result", ..RESPONSE }),
    ElementMap::Result(&[("type", "tool_call_response")], RESPONSE),
    ElementMap::Text(&[("type", "text")], "content"),
];

const MESSAGE: RecordMap = RecordMap { parts: &[PartMap::List("parts", PARTS)], ..RecordMap::NONE };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static DEVELOPER: RecordMap = RecordMap { speaks: Speaks::As(Role::Developer), ..MESSAGE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static TOOL: RecordMap = RecordMap { speaks: Speaks::As(Role::Tool), ..MESSAGE };

fn table(role: &str) -> Option<&'static RecordMap> {
    match role {
        "system" => Some(&SYSTEM),
        "developer" => Some(&DEVELOPER),
        "user" => Some(&USER),
        "assistant" => Some(&ASSISTANT),
        "tool" => Some(&TOOL),
        _ => None,
    }
}

/// The events of the messages in this text, and how it is spelled. The first event of each message has its extra fields under the key
/// of the attribute. `None` if the events could not give the text back.
pub fn read(key: &str, said: Said, text: &str) -> Option<(Vec<Event<'static>>, Spelling)> {
    let list = items(text).filter(|list| !list.is_empty())?;
    let prompt = format!("{{\"role\":\"system\",\"parts\":{text}}}");
    let list = if said == Said::Instructions { vec![prompt.as_str()] } else { list };
    let mut events = Vec::new();
    for raw in list {
        events.extend(message(key, Object::parse(raw)?));
    }
    let json = json(key, said, &events)?;
    let spelling = Spelling::ALL.into_iter().find(|spelling| spelling.of_json(json.clone()) == text)?;
    Some((events, spelling))
}

fn message(key: &str, object: Object<'_>) -> Vec<Event<'static>> {
    let role = object.peek_str("role");
    let read = match role.as_deref().and_then(table) {
        Some(table) => table.read(&INFO, RecordPlace::Line, object),
        None => Err(object),
    };
    let mut events = read.unwrap_or_else(|object| {
        let other = Event::new(Body::Other { name: role, bytes: None });
        vec![Event { extra: Extra::of(&INFO, object.into_extra()), ..other }]
    });
    if let Some(first) = events.first_mut() {
        let fields = first.extra.get(NAME).cloned().unwrap_or_default();
        first.extra = Extra::of(&INFO, ExtraFields(vec![(Cow::Owned(key.to_owned()), Held::Object(fields))]));
    }
    events.into_iter().map(Event::into_owned).collect()
}

/// The compact JSON of the messages that these events form.
pub fn json(key: &str, said: Said, events: &[Event<'_>]) -> Option<String> {
    let begins = |event: &Event<'_>| event.extra.get(NAME).is_some_and(|extra| extra.has(key));
    let mut messages = Vec::new();
    let mut rest = events;
    while let Some(first) = rest.first() {
        let length = 1 + rest.iter().skip(1).take_while(|event| !begins(event)).count();
        let (group, after) = rest.split_at(length);
        rest = after;
        let fields = first.extra.get(NAME)?.opened(key)?.into_owned();
        let role = fields.text("role").map(Cow::into_owned);
        let mut group = group.to_vec();
        if let Some(first) = group.first_mut() {
            first.extra = Extra::of(&INFO, fields);
        }
        messages.push(role.as_deref().and_then(table).unwrap_or(&RecordMap::NONE).write(NAME, &group)?);
    }
    match said {
        Said::Instructions => value_at(messages.first()?, "parts").map(str::to_owned),
        Said::Input | Said::Output => Some(format!("[{}]", messages.join(","))),
    }
}
