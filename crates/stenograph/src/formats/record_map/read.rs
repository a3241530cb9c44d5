//! Reads a record with its table.

use std::borrow::Cow;

use super::blocks::{anthropic_block, google_part, mapped_block, take_history};
use super::conversations::{take_conversations, take_records};
use super::fields::{peek_at, result_time, take_at, take_fields, take_usage};
use super::{CallMap, EMBEDDED, ErrorAt, InputAt, PartMap, RecordMap, Restates, ResultMap, StopMap, UsageMap, Words};
use crate::formats::anthropic;
use crate::frame::RecordPlace;
use crate::json::{Draft, Object, compact, items, number};
use crate::model::{
    Body, Content, Event, Extra, ExtraFields, Fact, FormatInfo, Held, Input, Piece, PieceKind, Usage, is_embedded,
};
use crate::text::Text;

/// One event of a record.
#[derive(Debug)]
pub struct TakenPart<'a> {
    pub body: Body<'a>,
    /// The extra fields of its element, and the path of the list that had the element.
    pub element: Option<(&'static str, ExtraFields<'a>)>,
    pub restates: bool,
    /// The envelope, if its element is a record of its own.
    pub record: Option<Box<Event<'a>>>,
    /// The model and the usage, if they are not those of the record.
    pub usage: Option<(Cow<'a, str>, Usage)>,
    /// The whole event, if it is one of a record inside this one.
    pub inner: Option<Box<Event<'a>>>,
}

impl<'a> TakenPart<'a> {
    pub fn of(body: Body<'a>) -> TakenPart<'a> {
        TakenPart { body, element: None, restates: false, record: None, usage: None, inner: None }
    }

    fn nothing() -> TakenPart<'a> {
        TakenPart::of(Body::Other { name: None, bytes: None })
    }

    /// An event of a record inside this one.
    pub fn inner(event: Event<'a>) -> TakenPart<'a> {
        TakenPart { inner: Some(Box::new(event)), ..TakenPart::of(Body::default()) }
    }

    pub fn element(body: Body<'a>, path: &'static str, extra: ExtraFields<'a>) -> TakenPart<'a> {
        TakenPart { element: Some((path, extra)), ..TakenPart::of(body) }
    }
}

impl RecordMap {
    /// The events of a record. Returns the object if it has none of the parts.
    pub fn read<'a>(
        &self,
        info: &'static FormatInfo,
        place: RecordPlace,
        mut object: Object<'a>,
    ) -> Result<Vec<Event<'a>>, Object<'a>> {
        let mut parts = Vec::new();
        for part in self.parts {
            self.take_part(part, info, place, &mut object, &mut parts);
        }
        if place != RecordPlace::Line {
            // The indentation of a document is not part of its values.
            parts.iter_mut().for_each(|part| drop_indentation(&mut part.body));
        }
        if parts.is_empty() {
            // A record that says nothing still says that.
            match self.empty_content(&object) {
                Some(body) => parts.push(TakenPart::of(body)),
                None => return Err(object),
            }
        }
        let mut envelope = Event::default();
        take_fields(self.fields, &mut object, &mut envelope);
        let result_time = result_time(self.fields, &object);
        self.mark_restated(place, &mut envelope, &mut parts);
        let mut usage = self.usage.and_then(|map| take_usage(&map, &mut object));
        let mut record = object.into_extra();
        let events = parts.into_iter().enumerate().map(|(at, part)| {
            if let Some(inner) = part.inner {
                return *inner;
            }
            let mut extra = if at == 0 { std::mem::take(&mut record) } else { ExtraFields::default() };
            if let Some((path, element)) = part.element {
                place_element(&mut extra, path, element);
            }
            let restates = envelope.restates || part.restates;
            let own_time = result_time.clone().filter(|_| matches!(part.body, Body::ToolResult { .. }));
            let time = own_time.or_else(|| envelope.time.clone());
            let (model, usage) = match part.usage {
                Some((model, usage)) => (Some(model), Some(usage)),
                None => (envelope.model.clone(), usage.take()),
            };
            let event = Event {
                body: part.body,
                time,
                restates,
                model,
                usage,
                extra: Extra::of(info, extra),
                ..envelope.clone()
            };
            match part.record {
                Some(own) => {
                    let time = own.time.or(event.time);
                    Event { id: own.id, group: own.group, session: own.session, time, ..event }
                }
                None => event,
            }
        });
        Ok(events.collect())
    }

    fn mark_restated(&self, place: RecordPlace, envelope: &mut Event<'_>, parts: &mut [TakenPart<'_>]) {
        match self.restates {
            Restates::Nothing => {}
            Restates::Everything => envelope.restates = true,
            Restates::Results => {
                let results = parts.iter_mut().filter(|part| matches!(part.body, Body::ToolResult { .. }));
                results.for_each(|part| part.restates = true);
            }
            Restates::TextBesideCalls => {
                let is_part = |part: &TakenPart<'_>| part.element.as_ref().is_some_and(|(path, _)| self.is_parts(path));
                let own =
                    |is_kind: fn(&Body<'_>) -> bool| parts.iter().any(|part| is_kind(&part.body) && !is_part(part));
                let has_calls = own(|body| matches!(body, Body::ToolCall { .. }));
                let has_thoughts = own(|body| matches!(body, Body::Thinking { .. }));
                for part in parts {
                    part.restates = match part.body {
                        Body::Message { .. } => has_calls && place == RecordPlace::Line,
                        Body::Thinking { .. } => {
                            has_calls && place == RecordPlace::Line || has_thoughts && is_part(part)
                        }
                        Body::ToolCall { .. } => has_calls && is_part(part),
                        _ => false,
                    };
                }
            }
        }
    }

    /// Whether the parts of a message are at this path.
    fn is_parts(&self, path: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, PartMap::Parts(list, _) if *list == path))
    }

    fn empty_content<'a>(&self, object: &Object<'_>) -> Option<Body<'a>> {
        let is_content = |part: &&PartMap| match part {
            PartMap::Content(path, _) => {
                peek_at(object, path.trim_end_matches(EMBEDDED)).is_some_and(|raw| is_empty(&raw))
            }
            PartMap::Blocks(path, ..) | PartMap::Parts(path, _) | PartMap::List(path, _) | PartMap::Marked(path, _) => {
                peek_at(object, path).is_some_and(|raw| is_empty(&raw))
            }
            _ => false,
        };
        self.parts.iter().find(is_content).map(|_| self.speaks.body(Content::Pieces(Vec::new())))
    }

    fn take_part<'a>(
        &self,
        part: &PartMap,
        info: &'static FormatInfo,
        place: RecordPlace,
        object: &mut Object<'a>,
        parts: &mut Vec<TakenPart<'a>>,
    ) {
        let mut push = |body| parts.push(TakenPart::of(body));
        match part {
            PartMap::Stated(name) => push(Body::Fact { fact: Fact::from(*name), content: None }),
            PartMap::StatedAt(name, path) => {
                if peek_at(object, path).is_some() {
                    push(Body::Fact { fact: Fact::from(*name), content: None });
                }
            }
            PartMap::Named(path) => {
                let fact = word_at(object, path).map(Fact::from);
                fact.into_iter().for_each(|fact| push(Body::Fact { fact, content: None }));
            }
            PartMap::Unread(_) => push(Body::Other { name: None, bytes: None }),
            PartMap::Unknown(path) => push(Body::Other { name: word_at(object, path), bytes: None }),
            PartMap::Fact(name, path, others) => {
                let text = |raw| full_text(raw).filter(|text| !others.contains(&text.decode().as_ref()));
                if let Some(text) = take_at(object, path, text) {
                    push(Body::Fact { fact: Fact::from(*name), content: Some(Content::Text(text)) });
                }
            }
            PartMap::Count(name, path) => {
                if let Some(digits) = take_at(object, path, |raw| number(raw).map(|_| raw)) {
                    push(Body::Fact { fact: Fact::from(*name), content: Some(Content::text(digits)) });
                }
            }
            PartMap::Thinking(path, texts) => {
                let content = take_at(object, path, |raw| content(raw, texts));
                content.into_iter().for_each(|content| push(Body::Thinking { content }));
            }
            PartMap::Content(path, texts) => {
                let content = take_content(object, path, texts);
                content.into_iter().for_each(|content| push(self.speaks.body(content)));
            }
            PartMap::Call(map) => take_call(map, object).into_iter().for_each(push),
            PartMap::Calls(path, map) => {
                take_list(path, object, parts, |element| Some(vec![take_call(map, element)?]));
            }
            PartMap::Result(map) => take_result(map, object).into_iter().for_each(push),
            PartMap::Answer(map, own) => {
                let Some(mut body) = take_result(map, object) else { return };
                let asked = parts.iter().rev().find_map(|part| match &part.body {
                    Body::ToolCall { call, .. } => call.clone(),
                    _ => None,
                });
                if let Body::ToolResult { call, .. } = &mut body {
                    *call = asked;
                }
                let element = take_at(object, own, Object::parse).map(|fields| (*own, fields.into_extra()));
                parts.push(TakenPart { element, ..TakenPart::of(body) });
            }
            PartMap::Results(path, map) => {
                take_list(path, object, parts, |element| Some(vec![take_result(map, element)?]));
            }
            PartMap::CallsWithResults(path, call, result) => {
                take_list(path, object, parts, |element| take_call_with_result(call, result, element));
            }
            PartMap::Blocks(path, texts, error) => {
                self.take_blocks(path, object, parts, &|raw| anthropic_block(raw, texts, *error));
            }
            PartMap::Parts(path, _) => self.take_blocks(path, object, parts, &google_part),
            PartMap::List(path, maps) => self.take_blocks(path, object, parts, &|raw| mapped_block(raw, maps)),
            PartMap::LowerRecords(path, map_of) => take_lower_records(path, *map_of, info, place, object, parts),
            PartMap::History(path, map) => take_history(path, map, object, parts),
            PartMap::UsageByModel(path, map) => {
                for (model, usage) in peek_at(object, path).map(|raw| usage_by_model(&raw, map)).unwrap_or_default() {
                    let body = Body::Fact { fact: Fact::from("usage"), content: None };
                    parts.push(TakenPart { usage: Some((Cow::Owned(model), usage)), ..TakenPart::of(body) });
                }
            }
            PartMap::Marked(path, marked) => {
                let Some(text) = take_at(object, path, full_text) else { return };
                let bodies = text.borrow().exact().map(|text| (marked.split)(&text)).unwrap_or_default();
                match (marked.join)(&bodies.iter().collect::<Vec<_>>()) == text.decode() {
                    true => bodies.into_iter().for_each(push),
                    false => push(self.speaks.body(Content::Text(text))),
                }
            }
            PartMap::Conversations(path, map) => take_conversations(path, map, info, place, object, parts),
            // What repeats a key stays whole: writing would join the lists.
            PartMap::Records(..) if object.duplicate().is_some() => {}
            PartMap::Records(path, map) => take_records(path, map, info, place, object, parts),
            PartMap::Stop(path) => {
                let reason = take_word(object, path);
                let stop = |reason| Body::Stop { reason: Some(reason), success: None, content: None };
                reason.into_iter().for_each(|reason| push(stop(reason)));
            }
            PartMap::Ended(StopMap { reason, success, content: text }) => {
                let reason = take_word(object, reason);
                let success = take_at(object, success, flag);
                let content = take_at(object, text, |raw| content(raw, super::TEXT));
                push(Body::Stop { reason, success, content });
            }
            PartMap::Compacted(path) => {
                push(Body::Compaction { summary: take_at(object, path, |raw| content(raw, super::TEXT)) });
            }
            PartMap::Failed(name, text) => {
                let name = take_word(object, name);
                let content = take_at(object, text, |raw| content(raw, super::TEXT));
                push(Body::Failure { name, content });
            }
        }
    }
}

/// Takes a list of records. A list with anything else stays in its record.
fn take_lower_records<'a>(
    path: &'static str,
    map_of: fn(&Words<'_>, &Words<'_>) -> &'static RecordMap,
    info: &'static FormatInfo,
    place: RecordPlace,
    object: &mut Object<'a>,
    parts: &mut Vec<TakenPart<'a>>,
) {
    let parse = |raw: &'a str| Object::parse(raw).filter(|object| object.duplicate().is_none());
    let list = |raw| items(raw)?.into_iter().map(parse).collect::<Option<Vec<Object<'a>>>>();
    let Some(list) = take_at(object, path, |raw| list(raw).filter(|list| !list.is_empty())) else { return };
    for mut element in list {
        let map = map_of(&|path: &str| word_at(object, path).map(Cow::into_owned), &|path: &str| {
            word_at(&element, path).map(Cow::into_owned)
        });
        let mut inner = Vec::new();
        map.parts.iter().for_each(|part| map.take_part(part, info, place, &mut element, &mut inner));
        if inner.is_empty() {
            let nothing = Body::Other { name: None, bytes: None };
            inner.push(TakenPart::of(map.empty_content(&element).unwrap_or(nothing)));
        }
        let mut envelope = Event::default();
        take_fields(map.fields, &mut element, &mut envelope);
        let result_time = result_time(map.fields, &element);
        let mut extra = element.into_extra();
        for part in inner {
            let mut own = std::mem::take(&mut extra);
            if let Some((path, element)) = part.element {
                place_element(&mut own, path, element);
            }
            let is_result = matches!(part.body, Body::ToolResult { .. });
            let time = result_time.clone().filter(|_| is_result).or_else(|| envelope.time.clone());
            let record = Some(Box::new(Event { time, ..envelope.clone() }));
            parts.push(TakenPart { body: part.body, element: Some((path, own)), record, ..TakenPart::nothing() });
        }
    }
}

/// Takes a word that is not empty.
fn take_word<'a>(object: &mut Object<'a>, path: &str) -> Option<Cow<'a, str>> {
    take_at(object, path, |raw| Text::from_json(raw)?.exact().filter(|text| !text.is_empty()))
}

/// The word at a path, without taking it.
fn word_at(object: &Object<'_>, path: &str) -> Option<Cow<'static, str>> {
    crate::json::word(&peek_at(object, path)?).map(|word| Cow::Owned(word.into_owned()))
}

fn usage_by_model(raw: &str, map: &UsageMap) -> Vec<(String, Usage)> {
    let Some(object) = Object::parse(raw) else { return Vec::new() };
    let of = |model: &str| take_usage(map, &mut Object::parse(object.peek(model)?)?);
    object.keys().filter_map(|model| Some((model.to_owned(), of(model)?))).collect()
}

fn drop_indentation(body: &mut Body<'_>) {
    match body {
        Body::ToolCall { input: Input::Json(raw), .. } => compact_value(raw),
        Body::Message { content: Content::Pieces(pieces), .. }
        | Body::ToolResult { content: Content::Pieces(pieces), .. } => {
            for piece in pieces {
                if let PieceKind::Other(raw) = &mut piece.kind {
                    compact_value(raw);
                }
            }
        }
        _ => {}
    }
}

/// Compacts a value of the document. A value that was decoded from a text keeps the spelling that it has there.
fn compact_value(raw: &mut Cow<'_, str>) {
    if let Cow::Borrowed(spelled) = raw {
        *raw = compact(spelled);
    }
}

/// A text that is not empty; an empty one stays in the record.
pub fn full_text(raw: &str) -> Option<Text<'_>> {
    Text::from_json(raw).filter(|text| !text.is_empty())
}

pub fn is_empty(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"") || items(raw).is_some_and(|list| list.is_empty())
}

fn take_content<'a>(object: &mut Object<'a>, path: &str, texts: &[&str]) -> Option<Content<'a>> {
    match path.strip_suffix(EMBEDDED) {
        Some(path) => take_at(object, path, embedded_text).map(Content::Text),
        None => take_at(object, path, |raw| content(raw, texts)),
    }
}

/// The text of a database row.
fn embedded_text(raw: &str) -> Option<Text<'_>> {
    if is_embedded(raw) { Some(Text::from(raw)) } else { full_text(raw).filter(|text| !is_embedded(&text.decode())) }
}

/// A content that is not empty: a text, or a list of elements.
pub fn content<'a>(raw: &'a str, texts: &[&str]) -> Option<Content<'a>> {
    if is_empty(raw) {
        return None;
    }
    match Text::from_json(raw) {
        Some(text) => Some(Content::Text(text)),
        None => Some(Content::Pieces(items(raw)?.into_iter().map(|raw| piece(raw, texts)).collect())),
    }
}

pub fn piece<'a>(raw: &'a str, texts: &[&str]) -> Piece<'a> {
    if let Some(text) = Text::from_json(raw) {
        // A bare string among elements has no extra fields, which is how the writer recognizes it.
        return Piece::text(text);
    }
    let Some(mut object) = Object::parse(raw) else { return opaque(raw) };
    if let Some(text) = texts.iter().find_map(|path| take_at(&mut object, path, Text::from_json)) {
        return Piece { kind: PieceKind::Text(text), extra: object.into_extra() };
    }
    match anthropic::piece(raw, &mut Vec::new()) {
        blob @ Piece { kind: PieceKind::Blob { .. }, .. } => blob,
        _ => opaque(raw),
    }
}

fn opaque(raw: &str) -> Piece<'_> {
    Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() }
}

/// Takes the elements of a list. A list with an element of another form stays whole. The first event of an element has its
/// extra fields.
pub fn take_list<'a>(
    path: &'static str,
    object: &mut Object<'a>,
    parts: &mut Vec<TakenPart<'a>>,
    take: impl Fn(&mut Object<'a>) -> Option<Vec<Body<'a>>>,
) {
    let read = |raw: &'a str| -> Option<Vec<TakenPart<'a>>> {
        let mut found: Vec<TakenPart<'a>> = Vec::new();
        for raw in items(raw)? {
            let mut element = Object::parse(raw)?;
            let mut bodies = take(&mut element)?.into_iter();
            found.push(TakenPart::element(bodies.next()?, path, element.into_extra()));
            found.extend(bodies.map(TakenPart::of));
        }
        (!found.is_empty()).then_some(found)
    };
    parts.extend(take_at(object, path, read).unwrap_or_default());
}

fn take_call_with_result<'a>(call: &CallMap, result: &ResultMap, element: &mut Object<'a>) -> Option<Vec<Body<'a>>> {
    let asked = take_call(call, element)?;
    let mut answer = take_result(result, element);
    if let (Some(Body::ToolResult { call, .. }), Body::ToolCall { call: id, .. }) = (&mut answer, &asked) {
        *call = call.take().or_else(|| id.clone());
    }
    Some([Some(asked), answer].into_iter().flatten().collect())
}

pub fn take_call<'a>(map: &CallMap, object: &mut Object<'a>) -> Option<Body<'a>> {
    let mut rest = object.clone();
    let name = match map.name.strip_prefix('=') {
        Some(path) => word_at(&rest, path)?,
        None => take_at(&mut rest, map.name, |raw| Text::from_json(raw)?.exact())?,
    };
    let input = match map.input {
        InputAt::Json(path) => take_at(&mut rest, path, Some).map(|raw| Input::Json(Cow::Borrowed(raw)))?,
        InputAt::Text(path) => take_at(&mut rest, path, Text::from_json).map(Input::from_text)?,
        // A call without arguments has an empty text, which the writer leaves out.
        InputAt::Maybe(path) => take_at(&mut rest, path, any_input).unwrap_or(Input::Text(Text::from(""))),
        InputAt::Fields(fields) => {
            let mut arguments = Draft::new();
            for (key, path) in fields {
                if let Some(raw) = take_at(&mut rest, path, Some) {
                    arguments.set(*key, raw.to_owned());
                }
            }
            Input::Json(Cow::Owned(arguments.render(None)))
        }
    };
    let call = take_at(&mut rest, map.id, |raw| Text::from_json(raw)?.exact());
    *object = rest;
    Some(Body::ToolCall { call, name, input })
}

fn any_input(raw: &str) -> Option<Input<'_>> {
    match Text::from_json(raw) {
        Some(text) => (!text.is_empty()).then_some(Input::Text(text)),
        None => Some(Input::Json(Cow::Borrowed(raw))),
    }
}

/// Takes a result. It needs a call or a content.
pub fn take_result<'a>(map: &ResultMap, object: &mut Object<'a>) -> Option<Body<'a>> {
    let word = |raw: &'a str| Text::from_json(raw)?.exact();
    if peek_at(object, map.call.trim_end_matches("[]")).is_none()
        && peek_at(object, map.content.trim_end_matches(EMBEDDED)).is_none()
    {
        return None;
    }
    let error = match map.error {
        ErrorAt::Nowhere => None,
        ErrorAt::Failed => Some(true),
        ErrorAt::Flag(path) => take_at(object, path, flag),
        ErrorAt::Word(path, failed, succeeded) => peek_at(object, path).and_then(|raw| {
            let word = crate::json::word(&raw)?;
            match (failed.contains(&word.as_ref()), succeeded.contains(&word.as_ref())) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            }
        }),
        ErrorAt::Elements(key, own) => take_at(object, own, flag)
            .or_else(|| peek_at(object, map.content).and_then(|raw| elements_error(&raw, key))),
    };
    let call = match map.call.strip_suffix("[]") {
        Some(list) => {
            take_at(object, list, |raw| items(raw).filter(|list| list.len() == 1)?.first().and_then(|raw| word(raw)))
        }
        None => take_at(object, map.call, word),
    };
    let name = if map.name.is_empty() { None } else { take_at(object, map.name, word) };
    let content = take_content(object, map.content, map.texts);
    Some(Body::ToolResult { call, name, content: content.unwrap_or(Content::Pieces(Vec::new())), error })
}

fn flag(raw: &str) -> Option<bool> {
    match raw {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Whether an element states that it failed; a success needs all of them.
pub fn elements_error(raw: &str, key: &str) -> Option<bool> {
    // Some tools give one element as text.
    let decoded = Text::from_json(raw).map(|text| text.decode().into_owned());
    let elements = decoded.as_deref().map_or_else(|| items(raw), |text| Some(vec![text]))?;
    let flags: Vec<Option<bool>> = elements
        .into_iter()
        .map(|raw| match Object::parse(raw)?.peek(key) {
            Some("true") => Some(false),
            Some("false") => Some(true),
            _ => None,
        })
        .collect();
    match flags.contains(&Some(true)) {
        true => Some(true),
        false => (!flags.is_empty() && flags.iter().all(|flag| *flag == Some(false))).then_some(false),
    }
}

/// Puts the extra fields of an element in the place of its list.
pub fn place_element<'a>(extra: &mut ExtraFields<'a>, path: &'static str, element: ExtraFields<'a>) {
    let (key, held) = match path.split_once('.') {
        None => (path, Held::Object(element)),
        Some((key, below)) => {
            if let Some(Held::Object(inner)) = extra.held_mut(key) {
                return place_element(inner, below, element);
            }
            let mut inner = ExtraFields::default();
            place_element(&mut inner, below, element);
            (key, Held::Object(inner))
        }
    };
    match extra.held_mut(key) {
        Some(place) => *place = held,
        None => extra.0.push((Cow::Borrowed(key), held)),
    }
}
