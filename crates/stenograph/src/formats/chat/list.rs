//! A list of messages inside one record, with the tools that were offered beside it.

use std::borrow::Cow;

use super::{read::message, write::render};
use crate::json::{Draft, Object, items};
use crate::model::{Body, Event, Extra, ExtraFields, FormatInfo, Held, NoteKind};
use crate::read::{At, Sink};
use crate::text::Text;

/// The events of one element of a list. What is no message is an event that holds all of it.
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

/// Notes the elements of a record that are no messages.
pub fn remark(events: &[Event<'_>], at: &At<'_>, out: &mut dyn Sink) {
    let odd = events.iter().filter(|event| matches!(event.body, Body::Other { .. })).count();
    if odd > 0 {
        at.note(NoteKind::UnknownType, format!("{odd} of the record's messages of unknown shape"), out);
    }
}

/// Takes the tools of a record as a fact of their own. An empty list stays.
pub fn tools<'a>(object: &mut Object<'a>, name: &'static str, format: &'static FormatInfo) -> Option<Event<'a>> {
    let raw = object.peek(name).filter(|raw| items(raw).is_some_and(|items| !items.is_empty()))?;
    object.take(name);
    let residue = ExtraFields(vec![(Cow::Borrowed(name), Held::Raw(Cow::Borrowed(raw)))]);
    let extra = Extra::of(format, residue);
    Some(Event { extra, ..Event::new(Body::Fact { name: name.into(), content: None }) })
}

/// Puts the tools back.
pub fn put_tools(events: &[Event<'_>], name: &'static str, origin: &str, draft: &mut Draft<'_>) {
    let fact = events.iter().find(|event| matches!(event.body, Body::Fact { .. }));
    if let Some(raw) = fact.and_then(|fact| fact.extra.get(origin)).and_then(|rest| rest.raw(name)) {
        draft.set(name, raw.to_owned());
    }
}

/// The list that these events make.
pub fn list(events: &[Event<'_>], origin: &str) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut from = 0;
    for at in 1..=events.len() {
        // A message's first event holds its role; what is no message stands alone.
        let ends = events.get(at).is_none_or(|next| begins(next, origin) || events.get(from).is_some_and(is_alone));
        if ends {
            messages.extend(events.get(from..at).and_then(|events| one(events, origin)));
            from = at;
        }
    }
    format!("[{}]", messages.join(","))
}

fn begins(event: &Event<'_>, origin: &str) -> bool {
    is_alone(event) || event.extra.get(origin).is_some_and(|rest| rest.has("role"))
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
