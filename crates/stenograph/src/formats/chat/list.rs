//! A list of messages inside one record, with the tools that the request offers.

use std::borrow::Cow;

use super::{read::message, write::render};
use crate::json::{Draft, Object, items};
use crate::model::{Body, Event, Extra, ExtraFields, FormatInfo, Held, NoteKind};
use crate::read::{At, Sink};
use crate::text::Text;

/// The events of one element of a list. An element that is not a message becomes one event that holds all of it.
pub fn element<'a>(raw: &'a str, format: &'static FormatInfo) -> Vec<Event<'a>> {
    let Some(object) = Object::parse(raw) else {
        return vec![Event { extra: Extra::of(format, ExtraFields::default()), ..Event::unread(Text::from(raw)) }];
    };
    match message(object, format) {
        Ok(events) => events,
        Err(object) => {
            let name = object.peek_str("role");
            let extra = Extra::of(format, object.into_extra());
            vec![Event { extra, ..Event::new(Body::Other { name, bytes: None }) }]
        }
    }
}

/// Notes how many elements of a record are not messages.
pub fn note_unknown(events: &[Event<'_>], at: &At<'_>, out: &mut dyn Sink) {
    let unknown = events.iter().filter(|event| matches!(event.body, Body::Other { .. })).count();
    if unknown > 0 {
        at.note(NoteKind::UnknownType, format!("messages of an unknown form in this record: {unknown}"), out);
    }
}

/// Takes the tools of a record as a separate fact. An empty list stays in the object.
pub fn tools<'a>(object: &mut Object<'a>, name: &'static str, format: &'static FormatInfo) -> Option<Event<'a>> {
    let raw = object.peek(name).filter(|raw| items(raw).is_some_and(|items| !items.is_empty()))?;
    object.take(name);
    let extra_fields = ExtraFields(vec![(Cow::Borrowed(name), Held::Raw(Cow::Borrowed(raw)))]);
    let extra = Extra::of(format, extra_fields);
    Some(Event { extra, ..Event::new(Body::Fact { fact: name.into(), content: None }) })
}

/// Writes the tools back.
pub fn put_tools(events: &[Event<'_>], name: &'static str, origin: &str, draft: &mut Draft<'_>) {
    let fact = events.iter().find(|event| matches!(event.body, Body::Fact { .. }));
    if let Some(raw) = fact.and_then(|fact| fact.extra.get(origin)).and_then(|extra| extra.raw(name)) {
        draft.set(name, raw.to_owned());
    }
}

/// The JSON list of the messages that these events form.
pub fn list(events: &[Event<'_>], origin: &str) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut from = 0;
    for at in 1..=events.len() {
        // The first event of a message holds its role; an element that is not a message is one event.
        let ends = events.get(at).is_none_or(|next| begins(next, origin) || events.get(from).is_some_and(is_alone));
        if ends {
            messages.extend(events.get(from..at).and_then(|events| one(events, origin)));
            from = at;
        }
    }
    format!("[{}]", messages.join(","))
}

fn begins(event: &Event<'_>, origin: &str) -> bool {
    is_alone(event) || event.extra.get(origin).is_some_and(|extra| extra.has("role"))
}

fn is_alone(event: &Event<'_>) -> bool {
    matches!(event.body, Body::Other { .. } | Body::Fact { .. })
}

fn one(events: &[Event<'_>], origin: &str) -> Option<String> {
    match events.first()? {
        Event { body: Body::Fact { .. }, .. } => None,
        Event { body: Body::Other { bytes: Some(bytes), .. }, .. } => Some(bytes.decode().into_owned()),
        event @ Event { body: Body::Other { bytes: None, .. }, .. } => {
            Some(Draft::new().render(event.extra.get(origin)))
        }
        _ => Some(render(events, origin)),
    }
}
