//! Messages of OpenInference: each field of each message is an attribute of its own, such as
//! `llm.input_messages.0.message.tool_calls.1.tool_call.function.name`. Events have the texts and the arguments; the other attributes
//! stay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::attributes::{Attributes, text_of};
use super::messages::Said;
use super::{INFO, NAME};
use crate::json::Draft;
use crate::model::{Body, Content, Event, Extra, ExtraFields, Held, Input, Piece, Role};
use crate::text::{Str, Text};

/// The prefixes of the attributes of messages.
const PREFIXES: [(&str, Said); 2] = [("llm.input_messages.", Said::Input), ("llm.output_messages.", Said::Output)];

/// The end of the key of the arguments of a call.
const ARGUMENTS: &str = ".tool_call.function.arguments";

/// The ends of the keys of texts.
const TEXTS: [&str; 2] = [".message.content", ".message_content.text"];

/// The messages of a span. `None` if the events could not give the attributes back.
pub fn read(attributes: &Attributes<'_>) -> Option<Vec<(Said, Vec<Event<'static>>)>> {
    let mut messages: Vec<(Said, Vec<Event<'static>>)> = Vec::new();
    for (name, said, own) in by_message(attributes) {
        let events = message(name, &own);
        let stated = own.iter().filter(|(key, raw)| taken(name, key, raw).is_some());
        let mut texts_stated: Vec<(String, String)> = Vec::new();
        for (key, raw) in stated {
            // A text that is not Unicode would not return as it was.
            let text = text_of(raw)?.exact()?.into_owned();
            texts_stated.extend((!text.is_empty()).then(|| (key.to_owned(), text)));
        }
        if texts(name, &events, &own) != texts_stated {
            return None;
        }
        messages.push((said, events));
    }
    Some(messages)
}

/// The messages that attributes belong to, each with its own attributes, in the order of their first ones.
fn by_message<'n, 'a>(attributes: &'n Attributes<'a>) -> Vec<(&'n str, Said, Attributes<'a>)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<(&str, Said, Attributes<'_>)> = Vec::new();
    for (key, raw) in attributes.iter() {
        let Some((name, said)) = message_of(key) else { continue };
        let place = *places.entry(name).or_insert_with(|| {
            found.push((name, said, Attributes::default()));
            found.len() - 1
        });
        if let Some((.., own)) = found.get_mut(place) {
            own.add(key, raw);
        }
    }
    found
}

/// The name of the message that an attribute belongs to: `llm.input_messages.0`.
fn message_of(key: &str) -> Option<(&str, Said)> {
    let (prefix, said) = PREFIXES.into_iter().find(|(prefix, _)| key.starts_with(prefix))?;
    let digits = key.get(prefix.len()..)?.split('.').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((key.get(..prefix.len() + digits.len()).filter(|_| is_number)?, said))
}

/// The attribute of this message whose key ends so, if an event has its text.
fn taken<'k>(name: &str, key: &'k str, raw: &str) -> Option<&'k str> {
    let rest = key.strip_prefix(name).filter(|rest| rest.starts_with('.'))?;
    let is_text = TEXTS.iter().any(|end| rest.ends_with(end)) || rest.ends_with(ARGUMENTS);
    Some(rest).filter(|_| is_text && text_of(raw).is_some())
}

fn message(name: &str, attributes: &Attributes<'_>) -> Vec<Event<'static>> {
    let word = |field: &str| attributes.word(&[&format!("{name}{field}")]).map(Str::into_owned);
    let role = word(".message.role");
    let (mut bodies, mut pieces): (Vec<Body<'static>>, Vec<Piece<'static>>) = (Vec::new(), Vec::new());
    let mut bare = None;
    let (mut calls, mut known): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for (key, raw) in attributes.iter() {
        let text =
            taken(name, key, raw).and_then(|_| text_of(raw)).map(Text::into_owned).filter(|text| !text.is_empty());
        let Some(rest) = key.strip_prefix(name) else { continue };
        if let Some(call) = rest.strip_prefix(".message.tool_calls.").and_then(|rest| rest.split('.').next()) {
            let call = rest.get(..".message.tool_calls.".len() + call.len()).unwrap_or_default();
            if known.insert(call) {
                calls.push(call);
            }
        } else if rest == ".message.content" {
            bare = text;
        } else if let Some(text) = text {
            pieces.push(Piece::text(text));
        }
    }
    let content = match bare {
        Some(text) if pieces.is_empty() => Content::Text(text),
        bare => Content::Pieces(bare.map(Piece::text).into_iter().chain(pieces).collect()),
    };
    let own = |text: Option<String>| text.map(Cow::Owned);
    match role.as_deref() {
        Some("tool") => bodies.push(Body::ToolResult {
            call: own(word(".message.tool_call_id")),
            name: own(word(".message.name")),
            content,
            error: None,
        }),
        role if !content.is_empty() || calls.is_empty() => {
            let role = role.and_then(Role::named).unwrap_or(Role::Unknown);
            bodies.push(Body::Message { role, content });
        }
        _ => {}
    }
    for call in calls {
        let field = |field: &str| word(&format!("{call}.tool_call.{field}"));
        let arguments = attributes.text(&format!("{name}{call}{ARGUMENTS}")).map(Text::into_owned);
        bodies.push(Body::ToolCall {
            call: own(field("id")),
            name: Cow::Owned(field("function.name").unwrap_or_default()),
            input: arguments.map_or_else(|| Input::Text(Text::from("")), Input::from_text),
        });
    }
    let mut events: Vec<Event<'static>> = bodies.into_iter().map(Event::new).collect();
    let mut extra = ExtraFields::default();
    if let Some(first) = events.first_mut() {
        // The marker of the message survives in a native stream only if it is not empty.
        let role = Draft::new().with("role", role.as_deref().unwrap_or_default()).render(None);
        extra.0.push((Cow::Owned(name.to_owned()), Held::Raw(Cow::Owned(role))));
        first.extra = Extra::of(&INFO, extra);
    }
    for event in events.iter_mut().skip(1) {
        event.extra = Extra::of(&INFO, ExtraFields::default());
    }
    events
}

/// The name of the message that begins with this event.
pub fn begins(event: &Event<'_>) -> Option<String> {
    let extra = event.extra.get(NAME)?;
    extra.0.iter().find_map(|(key, _)| message_of(key).filter(|(name, _)| name == key).map(|(name, _)| name.to_owned()))
}

/// The keys of the attributes that events have.
pub fn is_taken(key: &str, raw: &str) -> bool {
    message_of(key).is_some_and(|(name, _)| taken(name, key, raw).is_some())
}

/// The texts of a message, for its attributes in their order.
pub fn texts(name: &str, events: &[Event<'_>], attributes: &Attributes<'_>) -> Vec<(String, String)> {
    let mut said = events.iter().filter_map(Event::content).flat_map(|content| {
        let texts: Vec<String> = content.texts().map(|text| text.decode().into_owned()).collect();
        texts
    });
    let is_stated = |input: &&Input<'_>| !matches!(input, Input::Text(text) if text.is_empty());
    let inputs = events.iter().filter_map(|event| match &event.body {
        Body::ToolCall { input, .. } => Some(input),
        _ => None,
    });
    let mut inputs = inputs.filter(is_stated);
    let mut found = Vec::new();
    for (key, raw) in attributes.iter() {
        let Some(rest) = taken(name, key, raw) else { continue };
        let text = match rest.ends_with(ARGUMENTS) {
            true => inputs.next().map(|input| input.to_text().decode().into_owned()),
            false => said.next(),
        };
        found.extend(text.map(|text| (key.to_owned(), text)));
    }
    found
}
