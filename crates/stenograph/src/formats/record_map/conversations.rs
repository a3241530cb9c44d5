//! Lists of whole conversations of sub-agents inside a record. Their records become events of this record, each with the name of the
//! sub-agent. They have the extra fields of their own records, below the path of the list.

use std::borrow::Cow;

use super::fields::{Values, peek_at, put_fields, take_at, take_fields};
use super::read::{TakenPart, is_empty, place_element};
use super::{ConversationMap, MappedPlace, PartMap, RecordMap, RecordsMap};
use crate::frame::RecordPlace;
use crate::json::{Object, items, word};
use crate::model::{Body, Event, Extra, ExtraFields, Fact, FormatInfo};

/// The most events of such a list. Writers group fewer events of a record.
const EVENTS_MAX: usize = 32_768;

/// Takes the conversations in the list at this path.
pub fn take_conversations<'a>(
    path: &'static str,
    map: &ConversationMap,
    info: &'static FormatInfo,
    place: RecordPlace,
    object: &mut Object<'a>,
    parts: &mut Vec<TakenPart<'a>>,
) {
    let read = |raw: &'a str| -> Option<Vec<Event<'a>>> {
        let mut events = Vec::new();
        for raw in items(raw).filter(|list| !list.is_empty())? {
            take_conversation(path, map, info, place, raw, &mut events)?;
            if events.len() > EVENTS_MAX {
                return None;
            }
        }
        Some(events)
    };
    let events = take_at(object, path, read).unwrap_or_default();
    parts.extend(events.into_iter().map(TakenPart::inner));
}

fn take_conversation<'a>(
    path: &'static str,
    map: &ConversationMap,
    info: &'static FormatInfo,
    place: RecordPlace,
    raw: &'a str,
    events: &mut Vec<Event<'a>>,
) -> Option<()> {
    let mut element = Object::parse(raw)?;
    let thread = word(&peek_at(&element, map.thread)?).filter(|name| !name.is_empty())?.into_owned();
    let records: Vec<Object<'a>> =
        items(element.peek(map.records)?)?.into_iter().map(Object::parse).collect::<Option<_>>()?;
    element.take(map.records);
    let mut head = Event::new(Body::Fact { fact: Fact::from(map.fact), content: None });
    take_fields(map.fields, &mut element, &mut head);
    head.extra = Extra::of(info, below(path, element.into_extra()));
    let first = events.len();
    events.push(head);
    for record in records {
        events.extend(read_record(&map.record, info, place, record, |fields| below(path, below(map.records, fields))));
    }
    for event in events.get_mut(first..).unwrap_or_default() {
        event.thread = Some(Cow::Owned(thread.clone()));
    }
    Some(())
}

/// Takes the records in the list at this path.
pub fn take_records<'a>(
    path: &'static str,
    map: &RecordsMap,
    info: &'static FormatInfo,
    place: RecordPlace,
    object: &mut Object<'a>,
    parts: &mut Vec<TakenPart<'a>>,
) {
    let read = |raw: &'a str| -> Option<Vec<Object<'a>>> {
        items(raw).filter(|list| (1..=EVENTS_MAX).contains(&list.len()))?.into_iter().map(Object::parse).collect()
    };
    for record in take_at(object, path, read).unwrap_or_default() {
        let events = read_record(map, info, place, record, |fields| below(path, fields));
        parts.extend(events.into_iter().map(TakenPart::inner));
    }
}

fn below<'a>(path: &'static str, fields: ExtraFields<'a>) -> ExtraFields<'a> {
    let mut extra = ExtraFields::default();
    place_element(&mut extra, path, fields);
    extra
}

/// The events of a record. The first one has its extra fields below a path.
fn read_record<'a>(
    map: &RecordsMap,
    info: &'static FormatInfo,
    place: RecordPlace,
    record: Object<'a>,
    below: impl Fn(ExtraFields<'a>) -> ExtraFields<'a>,
) -> Vec<Event<'a>> {
    let words = |path: &str| word(&peek_at(&record, path)?).map(Cow::into_owned);
    let name = words(map.kind).map(Cow::Owned);
    let read = match (map.map_of)(MappedPlace::Record, &words) {
        Some(table) => table.read(info, place, record),
        None => Err(record),
    };
    let mut events = read.unwrap_or_else(|record| {
        vec![Event { extra: Extra::of(info, record.into_extra()), ..Event::new(Body::Other { name, bytes: None }) }]
    });
    if let Some(first) = events.first_mut() {
        let fields = first.extra.get(info.name).cloned().unwrap_or_default();
        first.extra = Extra::of(info, below(fields));
    }
    events
}

impl RecordMap {
    /// The path of a list of conversations that the first event of a record still has.
    pub fn unread_conversations(&self, origin: &str, first: &Event<'_>) -> Option<&'static str> {
        self.parts.iter().find_map(|part| match part {
            PartMap::Conversations(path, _) | PartMap::Records(path, _) => {
                first.extra.get(origin)?.at(path).filter(|raw| !is_empty(raw)).map(|_| *path)
            }
            _ => None,
        })
    }
}

impl RecordMap {
    /// The events of the record itself: those before the events of records in it.
    pub fn own_events<'e, 'a>(&self, origin: &str, events: &'e [Event<'a>]) -> &'e [Event<'a>] {
        let begins = |event: &Event<'_>| {
            self.parts.iter().any(|part| match part {
                PartMap::Conversations(path, map) => begins(path, map, origin, event),
                PartMap::Records(path, _) => {
                    event.extra.get(origin).is_some_and(|extra| extra.object_at(path).is_some())
                }
                _ => false,
            })
        };
        // The first event is that of the record, which may have a list that was not taken.
        let length = events.iter().skip(1).position(begins).map_or(events.len(), |at| at + 1);
        events.get(..length).unwrap_or(events)
    }
}

/// Writes the conversations back to the list at this path.
pub fn put_conversations(
    path: &'static str,
    map: &ConversationMap,
    origin: &str,
    events: &[Event<'_>],
    out: &mut Values,
) {
    let mut elements: Vec<(Values, ExtraFields<'_>, Vec<String>)> = Vec::new();
    let mut rest = events;
    while let Some(first) = rest.first() {
        let place = first.extra.get(origin).and_then(|extra| extra.object_at(path));
        let record = place
            .as_ref()
            .and_then(|place| place.object_at(map.records).map(|record| record.into_owned().into_owned()));
        let length = 1 + rest.iter().skip(1).take_while(|event| !begins(path, map, origin, event)).count();
        let (group, after) = rest.split_at(length);
        rest = after;
        match (record, place, elements.last_mut()) {
            (Some(fields), _, Some((_, _, records))) => records.push(record_json(&map.record, origin, group, &fields)),
            _ if !is_head(map, first) => {}
            (_, place, _) => {
                let fields = place.map(Cow::into_owned).unwrap_or_default();
                let mut values = Values::default();
                put_fields(map.fields, first, &fields, &mut values);
                elements.push((values, fields, Vec::new()));
            }
        }
    }
    let render = |(mut values, fields, records): (Values, ExtraFields<'_>, Vec<String>)| {
        values.put(map.records, format!("[{}]", records.join(",")));
        values.render(&fields)
    };
    if !elements.is_empty() {
        out.put(path, format!("[{}]", elements.into_iter().map(render).collect::<Vec<_>>().join(",")));
    }
}

/// Writes the records back to the list at this path.
pub fn put_records(path: &'static str, map: &RecordsMap, origin: &str, events: &[Event<'_>], out: &mut Values) {
    let fields = |event: &Event<'_>| Some(event.extra.get(origin)?.object_at(path)?.into_owned().into_owned());
    let mut records = Vec::new();
    let mut rest = events.get(1..).unwrap_or_default();
    while let Some(first) = rest.first() {
        let length = 1 + rest.iter().skip(1).take_while(|event| fields(event).is_none()).count();
        let (group, after) = rest.split_at(length);
        rest = after;
        records.extend(fields(first).map(|fields| record_json(map, origin, group, &fields)));
    }
    if !records.is_empty() {
        out.put(path, format!("[{}]", records.join(",")));
    }
}

fn is_head(map: &ConversationMap, event: &Event<'_>) -> bool {
    matches!(&event.body, Body::Fact { fact, .. } if fact == map.fact)
}

/// Whether a conversation or one of its records begins with this event.
fn begins(path: &str, map: &ConversationMap, origin: &str, event: &Event<'_>) -> bool {
    let record = || event.extra.get(origin)?.object_at(path)?.object_at(map.records).map(|_| ());
    is_head(map, event) || record().is_some()
}

/// A record, whose first event has these fields.
fn record_json(map: &RecordsMap, origin: &str, events: &[Event<'_>], fields: &ExtraFields<'_>) -> String {
    let words = |path: &str| fields.word_at(path).map(Cow::into_owned);
    let table = (map.map_of)(MappedPlace::Record, &words).unwrap_or(&RecordMap::NONE);
    let mut events: Vec<Event<'_>> = events.to_vec();
    if let Some(first) = events.first_mut() {
        let mut extra = Extra::default();
        if let Some((name, _)) = first.extra.iter().find(|(name, _)| name.name() == origin) {
            extra.add(name.clone(), fields.clone());
        }
        first.extra = extra;
    }
    table.write(origin, &events).unwrap_or_else(|| Values::default().render(fields))
}
