//! Writes a record back with the table that it was read with.

use std::borrow::Cow;

use super::blocks::{put_anthropic_block, put_blocks, put_history, put_mapped_block, put_parts};
use super::conversations::{put_conversations, put_records};
use super::fields::{Values, is_taken, put_fields, put_usage};
use super::read::elements_error;
use super::{CallMap, EMBEDDED, ElementMap, ErrorAt, InputAt, PartMap, RecordMap, ResultMap, Speaks, Words};
use crate::formats::anthropic;
use crate::json::{Object, number};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Input, Piece, PieceKind, is_embedded};
use crate::text::quote;
use crate::write::Ownership;

impl RecordMap {
    /// The record that these events came from; `None` if they came from another format.
    pub fn write(&self, origin: &str, events: &[Event<'_>]) -> Option<String> {
        let first = events.first()?;
        let extra = first.extra.get(origin)?;
        let mut values = Values::default();
        put_fields(self.fields, first, extra, &mut values);
        if !matches!(first.body, Body::Other { .. }) {
            if let Some(map) = &self.usage {
                put_usage(map, first, extra, &mut values);
            }
            let is_lower = |event: &Event<'_>| {
                let is_list = |part: &PartMap| matches!(part, PartMap::LowerRecords(path, _) if element_extra(event, origin, path).is_some());
                self.parts.iter().any(is_list)
            };
            let own = self.own_events(origin, events);
            let own: Cow<'_, [Event<'_>]> = match own.iter().any(is_lower) {
                true => own.iter().filter(|event| !is_lower(event)).cloned().collect(),
                false => Cow::Borrowed(own),
            };
            for part in self.parts {
                match part {
                    PartMap::LowerRecords(path, map_of) => {
                        put_lower_records(path, *map_of, origin, events, extra, &mut values);
                    }
                    PartMap::Conversations(..) | PartMap::Records(..) => {
                        self.put_part(part, origin, events, extra, &mut values);
                    }
                    _ => self.put_part(part, origin, &own, extra, &mut values),
                }
            }
        }
        Some(values.render(extra))
    }

    fn put_part(&self, part: &PartMap, origin: &str, events: &[Event<'_>], extra: &ExtraFields<'_>, out: &mut Values) {
        let facts = self.parts.iter().any(|part| {
            matches!(part, PartMap::Fact(..) | PartMap::Count(..) | PartMap::Stated(_) | PartMap::StatedAt(..))
        });
        let said = |event: &&Event<'_>| match &event.body {
            Body::Message { .. } | Body::Compaction { .. } | Body::Failure { .. } => true,
            Body::Thinking { .. } => matches!(self.speaks, Speaks::Thinking),
            Body::Fact { content: Some(_), .. } => !facts,
            _ => false,
        };
        match part {
            PartMap::Stated(_)
            | PartMap::StatedAt(..)
            | PartMap::Named(_)
            | PartMap::Unknown(_)
            | PartMap::Unread(_)
            | PartMap::UsageByModel(..) => {}
            PartMap::Fact(name, path, _) => {
                let fact = events
                    .iter()
                    .find(|event| matches!(&event.body, Body::Fact { fact, content: Some(_) } if fact == name));
                put_content(path, super::TEXT, fact.and_then(Event::content), extra, out);
            }
            PartMap::Count(name, path) => {
                let fact = events.iter().find(|event| matches!(&event.body, Body::Fact { fact, .. } if fact == name));
                let digits = fact.and_then(Event::content).map(|content| content.joined().decode().into_owned());
                out.put_opt(path, digits.map(|digits| if number(&digits).is_some() { digits } else { quote(&digits) }));
            }
            PartMap::Thinking(path, texts) => {
                let is_it =
                    |event: &&Event<'_>| matches!(event.body, Body::Thinking { .. }) && !self.is_element(event, origin);
                put_content(path, texts, events.iter().find(is_it).and_then(Event::content), extra, out);
            }
            PartMap::Content(path, texts) => {
                put_content(path, texts, events.iter().find(said).and_then(Event::content), extra, out);
            }
            PartMap::Call(map) => {
                if let Some(event) = events.iter().find(|event| matches!(event.body, Body::ToolCall { .. })) {
                    put_call(map, event, extra, out);
                }
            }
            PartMap::Calls(path, map) => {
                let calls = events.iter().filter(|event| matches!(event.body, Body::ToolCall { .. }));
                put_list(path, origin, calls, out, &|event, extra, values| put_call(map, event, extra, values));
            }
            PartMap::Result(map) => {
                if let Some(event) = events.iter().find(|event| matches!(event.body, Body::ToolResult { .. })) {
                    put_result(map, event, extra, out);
                }
            }
            PartMap::Answer(map, own) => {
                if let Some(event) = events.iter().find(|event| matches!(event.body, Body::ToolResult { .. })) {
                    put_result(map, event, extra, out);
                    if is_taken(extra, own) {
                        out.put(own, Values::default().render(&element_extra(event, origin, own).unwrap_or_default()));
                    }
                }
            }
            PartMap::Results(path, map) => {
                let results = events.iter().filter(|event| matches!(event.body, Body::ToolResult { .. }));
                put_list(path, origin, results, out, &|event, extra, values| put_result(map, event, extra, values));
            }
            PartMap::CallsWithResults(path, call, result) => {
                put_calls_with_results(path, call, result, origin, events, out);
            }
            PartMap::Blocks(path, texts, error) => {
                put_blocks(path, origin, events, extra, super::BLOCK_TEXT, out, &|event, extra, values| {
                    put_anthropic_block(texts, *error, event, extra, values);
                });
            }
            PartMap::List(path, maps) => {
                // The list holds only what its table describes; other calls and thoughts have a place of their own.
                let own: Vec<Event<'_>> =
                    events.iter().filter(|event| ElementMap::may_hold(maps, &event.body)).cloned().collect();
                put_blocks(path, origin, &own, extra, ElementMap::texts(maps), out, &|event, extra, values| {
                    put_mapped_block(maps, event, extra, values);
                });
            }
            PartMap::Parts(path, form) => put_parts(path, *form, origin, events, extra, out),
            // The record itself writes them.
            PartMap::LowerRecords(..) => {}
            PartMap::Conversations(path, map) => put_conversations(path, map, origin, events, out),
            PartMap::Records(path, map) => put_records(path, map, origin, events, out),
            PartMap::History(path, map) => put_history(path, map, origin, events, out),
            PartMap::Marked(path, marked) => {
                if is_taken(extra, path) {
                    let bodies: Vec<&Body<'_>> = events.iter().map(|event| &event.body).collect();
                    // A text that is not Unicode has no marks, and keeps its spelling.
                    let json = match bodies.as_slice() {
                        [Body::Message { content: Content::Text(text), .. }] => text.to_json(),
                        bodies => quote(&(marked.join)(bodies)),
                    };
                    out.put(path, json);
                }
            }
            PartMap::Stop(path) => {
                let stop = events.iter().find(|event| matches!(event.body, Body::Stop { .. }));
                out.put_opt(path, stop.and_then(Event::name).map(quote));
            }
            PartMap::Ended(map) => {
                let stop = events.iter().find_map(|event| match &event.body {
                    Body::Stop { reason, success, content } => Some((reason, success, content)),
                    _ => None,
                });
                let Some((reason, success, content)) = stop else { return };
                out.put_opt(map.reason, reason.as_deref().map(quote));
                out.put_opt(map.success, success.map(|success| success.to_string()));
                put_content(map.content, super::TEXT, content.as_ref(), extra, out);
            }
            PartMap::Compacted(path) => {
                let compaction = events.iter().find(|event| matches!(event.body, Body::Compaction { .. }));
                put_content(path, super::TEXT, compaction.and_then(Event::content), extra, out);
            }
            PartMap::Failed(name, path) => {
                let failure = events.iter().find(|event| matches!(event.body, Body::Failure { .. }));
                out.put_opt(name, failure.and_then(Event::name).map(quote));
                put_content(path, super::TEXT, failure.and_then(Event::content), extra, out);
            }
        }
    }

    /// Whether an event came from an element of a list of this record.
    fn is_element(&self, event: &Event<'_>, origin: &str) -> bool {
        self.parts.iter().any(|part| match part {
            PartMap::Blocks(path, ..)
            | PartMap::Parts(path, _)
            | PartMap::List(path, _)
            | PartMap::LowerRecords(path, _)
            | PartMap::History(path, _) => element_extra(event, origin, path).is_some(),
            _ => false,
        })
    }
}

/// Writes a list of records. The result of a call is in the record of that call.
fn put_lower_records(
    path: &'static str,
    map_of: fn(&Words<'_>, &Words<'_>) -> &'static RecordMap,
    origin: &str,
    events: &[Event<'_>],
    extra: &ExtraFields<'_>,
    out: &mut Values,
) {
    if !is_taken(extra, path) {
        return;
    }
    let mut records: Vec<Vec<Event<'_>>> = Vec::new();
    for event in events {
        let Some(element) = element_extra(event, origin, path) else { continue };
        let Some((info, _)) = event.extra.known().find(|(info, _)| info.name == origin) else { continue };
        let inner = Event { extra: Extra::of(info, element.into_owned()), ..event.clone() };
        let answers = |record: &&mut Vec<Event<'_>>| {
            matches!(inner.body, Body::ToolResult { .. })
                && matches!(record.as_slice(), [Event { body: Body::ToolCall { .. }, .. }])
        };
        match records.last_mut().filter(answers) {
            Some(record) => record.push(inner),
            None => records.push(vec![inner]),
        }
    }
    let written = records.iter().filter_map(|record| {
        let element = record.first()?.extra.get(origin)?;
        let words = |path: &str| extra.word_at(path).map(Cow::into_owned);
        let own_words = |path: &str| element.word_at(path).map(Cow::into_owned);
        map_of(&words, &own_words).write(origin, record)
    });
    let written: Vec<String> = written.collect();
    out.put(path, format!("[{}]", written.join(",")));
}

/// Writes a list of calls, each with the result that follows it.
fn put_calls_with_results(
    path: &'static str,
    call: &CallMap,
    result: &ResultMap,
    origin: &str,
    events: &[Event<'_>],
    out: &mut Values,
) {
    let mut elements: Vec<(Values, Cow<'_, ExtraFields<'_>>)> = Vec::new();
    for event in events {
        match (&event.body, element_extra(event, origin, path)) {
            (Body::ToolCall { .. }, Some(extra)) => {
                let mut values = Values::default();
                put_call(call, event, &extra, &mut values);
                elements.push((values, extra));
            }
            (Body::ToolResult { .. }, _) => {
                if let Some((values, extra)) = elements.last_mut() {
                    put_result(result, event, extra, values);
                }
            }
            _ => {}
        }
    }
    let elements: Vec<String> = elements.into_iter().map(|(values, extra)| values.render(&extra)).collect();
    if !elements.is_empty() {
        out.put(path, format!("[{}]", elements.join(",")));
    }
}

/// Writes a content. An empty one was not taken.
pub fn put_content(
    path: &'static str,
    texts: &[&'static str],
    content: Option<&Content<'_>>,
    extra: &ExtraFields<'_>,
    out: &mut Values,
) {
    let Some(content) = content else { return };
    let (path, is_embedding) = path.strip_suffix(EMBEDDED).map_or((path, false), |path| (path, true));
    if !content.is_empty() || is_taken(extra, path) {
        let embedded = is_embedding.then(|| content.joined().decode().into_owned()).filter(|text| is_embedded(text));
        out.put(path, embedded.unwrap_or_else(|| content_json(content, texts)));
    }
}

fn content_json(content: &Content<'_>, texts: &[&'static str]) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(pieces) => {
            let pieces: Vec<String> = pieces.iter().map(|piece| piece_json(piece, texts)).collect();
            format!("[{}]", pieces.join(","))
        }
    }
}

pub fn piece_json(piece: &Piece<'_>, texts: &[&'static str]) -> String {
    match &piece.kind {
        PieceKind::Text(text) if piece.extra.0.is_empty() => text.to_json(),
        PieceKind::Text(text) => {
            let taken = texts.iter().find(|key| is_taken(&piece.extra, key));
            let key = taken.or_else(|| texts.iter().find(|key| !piece.extra.has(key))).copied().unwrap_or("text");
            let mut values = Values::default();
            values.put(key, text.to_json());
            values.render(&piece.extra)
        }
        PieceKind::Blob { .. } => {
            let mut blocks = Vec::new();
            anthropic::content_blocks(&Content::Pieces(vec![piece.clone()]), Ownership::Own, &mut blocks);
            blocks.concat()
        }
        PieceKind::Other(raw) => raw.to_string(),
    }
}

pub fn put_call(map: &CallMap, event: &Event<'_>, extra: &ExtraFields<'_>, out: &mut Values) {
    let Body::ToolCall { call, name, input } = &event.body else { return };
    out.put_opt(map.id, call.as_deref().map(quote));
    if !map.name.starts_with('=') {
        out.put(map.name, quote(name));
    }
    match map.input {
        InputAt::Json(path) => out.put(path, input.to_json().into_owned()),
        InputAt::Text(path) => out.put(path, input.to_text().to_json()),
        InputAt::Maybe(path) => {
            let is_absent = matches!(input, Input::Text(text) if text.is_empty()) && !is_taken(extra, path);
            out.put_opt(path, (!is_absent).then(|| input.to_json().into_owned()));
        }
        InputAt::Fields(fields) => {
            let arguments = input.to_json();
            let arguments = Object::parse(&arguments);
            let stated = |key: &str| arguments.as_ref().and_then(|arguments| arguments.peek(key));
            fields.iter().for_each(|(key, path)| out.put_opt(path, stated(key).map(str::to_owned)));
        }
    }
}

pub fn put_result(map: &ResultMap, event: &Event<'_>, extra: &ExtraFields<'_>, out: &mut Values) {
    let Body::ToolResult { call, name, content, error } = &event.body else { return };
    match map.call.strip_suffix("[]") {
        Some(list) => out.put_opt(list, call.as_deref().map(|call| format!("[{}]", quote(call)))),
        None => out.put_opt(map.call, call.as_deref().map(quote)),
    }
    if !map.name.is_empty() {
        out.put_opt(map.name, name.as_deref().map(quote));
    }
    put_content(map.content, map.texts, Some(content), extra, out);
    let spelled = error.map(|error| error.to_string());
    match map.error {
        ErrorAt::Flag(path) => out.put_opt(path, spelled),
        // Another content, such as that of an edit, does not state the error.
        ErrorAt::Elements(key, own)
            if is_taken(extra, own) || elements_error(&content_json(content, map.texts), key) != *error =>
        {
            out.put_opt(own, spelled);
        }
        ErrorAt::Elements(..) | ErrorAt::Word(..) | ErrorAt::Failed | ErrorAt::Nowhere => {}
    }
}

/// Writes the elements of a list.
fn put_list<'e>(
    path: &'static str,
    origin: &str,
    events: impl Iterator<Item = &'e Event<'e>>,
    out: &mut Values,
    put: &dyn Fn(&Event<'_>, &ExtraFields<'_>, &mut Values),
) {
    let element = |event: &Event<'_>| {
        let extra = element_extra(event, origin, path).unwrap_or_default();
        let mut values = Values::default();
        put(event, &extra, &mut values);
        values.render(&extra)
    };
    let elements: Vec<String> = events.map(element).collect();
    if !elements.is_empty() {
        out.put(path, format!("[{}]", elements.join(",")));
    }
}

/// The extra fields of an element, which its event has in the place of the list.
pub fn element_extra<'e>(event: &'e Event<'_>, origin: &str, path: &str) -> Option<Cow<'e, ExtraFields<'e>>> {
    event.extra.get(origin).and_then(|extra| extra.object_at(path))
}
