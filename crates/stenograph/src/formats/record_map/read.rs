//! Reads a record with its table.

use std::borrow::Cow;

use super::fields::{peek_at, take_at, take_fields, take_usage};
use super::{CallMap, ElementMap, ErrorAt, InputAt, PartMap, RecordMap, ResultMap, StopMap};
use crate::formats::anthropic;
use crate::frame::Framing;
use crate::json::{Object, compact, items};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, FormatInfo, Held, Input, Piece, PieceKind};
use crate::text::Text;

/// One event of a record, with the extra fields of its element and the path of the list that had the element.
type Part<'a> = (Body<'a>, Option<(&'static str, ExtraFields<'a>)>);

impl RecordMap {
    /// The events of a record. Returns the object if it has none of the parts.
    pub fn read<'a>(&self, info: &'static FormatInfo, mut object: Object<'a>) -> Result<Vec<Event<'a>>, Object<'a>> {
        let mut parts = Vec::new();
        for part in self.parts {
            self.take_part(part, &mut object, &mut parts);
        }
        if info.framing != Framing::Lines {
            // The indentation of a document is not part of its values.
            parts.iter_mut().for_each(|(body, _)| drop_indentation(body));
        }
        if parts.is_empty() {
            // A record that says nothing still says that.
            match self.empty_content(&object) {
                Some(body) => parts.push((body, None)),
                None => return Err(object),
            }
        }
        let mut envelope = Event::default();
        take_fields(self.fields, &mut object, &mut envelope);
        envelope.restates |= self.restates;
        let mut usage = self.usage.and_then(|map| take_usage(&map, &mut object));
        let mut record = object.into_extra();
        let events = parts.into_iter().enumerate().map(|(at, (body, element))| {
            let mut extra = if at == 0 { std::mem::take(&mut record) } else { ExtraFields::default() };
            if let Some((path, element)) = element {
                place(&mut extra, path, element);
            }
            Event { body, usage: usage.take(), extra: Extra::of(info, extra), ..envelope.clone() }
        });
        Ok(events.collect())
    }

    fn empty_content<'a>(&self, object: &Object<'_>) -> Option<Body<'a>> {
        let is_content = |part: &&PartMap| match part {
            PartMap::Content(path, _)
            | PartMap::Blocks(path, ..)
            | PartMap::List(path, _)
            | PartMap::Marked(path, _) => peek_at(object, path).is_some_and(|raw| is_empty(&raw)),
            _ => false,
        };
        self.parts.iter().find(is_content).map(|_| self.speaks.body(Content::Pieces(Vec::new())))
    }

    fn take_part<'a>(&self, part: &PartMap, object: &mut Object<'a>, parts: &mut Vec<Part<'a>>) {
        match part {
            PartMap::Stated(name) => parts.push((Body::Fact { fact: Fact::from(*name), content: None }, None)),
            PartMap::Named(path) => {
                let fact = word_at(object, path).map(Fact::from);
                parts.extend(fact.map(|fact| (Body::Fact { fact, content: None }, None)));
            }
            PartMap::Unknown(path) => {
                parts.push((Body::Other { name: word_at(object, path), bytes: None }, None));
            }
            PartMap::Fact(name, path, others) => {
                let text = |raw| full_text(raw).filter(|text| !others.contains(&text.decode().as_ref()));
                let content = take_at(object, path, text).map(Content::Text);
                let fact = |content| (Body::Fact { fact: Fact::from(*name), content: Some(content) }, None);
                parts.extend(content.map(fact));
            }
            PartMap::Thinking(path) => {
                let content = take_at(object, path, full_text).map(Content::Text);
                parts.extend(content.map(|content| (Body::Thinking { content }, None)));
            }
            PartMap::Content(path, texts) => {
                let content = take_at(object, path, |raw| content(raw, texts));
                parts.extend(content.map(|content| (self.speaks.body(content), None)));
            }
            PartMap::Call(map) => parts.extend(take_call(map, object).map(|body| (body, None))),
            PartMap::Calls(path, map) => {
                take_list(path, object, parts, |element| take_call(map, element));
            }
            PartMap::Result(map) => parts.extend(take_result(map, object).map(|body| (body, None))),
            PartMap::Answer(map, own) => {
                let Some(mut body) = take_result(map, object) else { return };
                let asked = parts.iter().rev().find_map(|(body, _)| match body {
                    Body::ToolCall { call, .. } => call.clone(),
                    _ => None,
                });
                if let Body::ToolResult { call, .. } = &mut body {
                    *call = asked;
                }
                let fields = take_at(object, own, Object::parse).map(|fields| (*own, fields.into_extra()));
                parts.push((body, fields));
            }
            PartMap::Results(path, map) => {
                take_list(path, object, parts, |element| take_result(map, element));
            }
            PartMap::Blocks(path, texts, error) => {
                self.take_elements(path, object, parts, &|raw| block(raw, texts, *error));
            }
            PartMap::List(path, maps) => self.take_elements(path, object, parts, &|raw| element(raw, maps)),
            PartMap::Marked(path, marked) => {
                let Some(text) = take_at(object, path, full_text) else { return };
                let bodies = text.borrow().exact().map(|text| (marked.split)(&text)).unwrap_or_default();
                match (marked.join)(&bodies.iter().collect::<Vec<_>>()) == text.decode() {
                    true => parts.extend(bodies.into_iter().map(|body| (body, None))),
                    false => parts.push((self.speaks.body(Content::Text(text)), None)),
                }
            }
            PartMap::Stop(path) => {
                let stop = |reason| Body::Stop { reason: Some(reason), success: None, content: None };
                parts.extend(take_word(object, path).map(|reason| (stop(reason), None)));
            }
            PartMap::Ended(StopMap { reason, success, content: text }) => {
                let reason = take_word(object, reason);
                let success = take_at(object, success, flag);
                let content = take_at(object, text, |raw| content(raw, super::TEXT));
                parts.push((Body::Stop { reason, success, content }, None));
            }
            PartMap::Compacted(path) => {
                let summary = take_at(object, path, |raw| content(raw, super::TEXT));
                parts.push((Body::Compaction { summary }, None));
            }
            PartMap::Failed(name, text) => {
                let name = take_word(object, name);
                let content = take_at(object, text, |raw| content(raw, super::TEXT));
                parts.push((Body::Failure { name, content }, None));
            }
        }
    }

    /// Takes elements of several kinds. Consecutive texts and images are one message.
    fn take_elements<'a>(
        &self,
        path: &'static str,
        object: &mut Object<'a>,
        parts: &mut Vec<Part<'a>>,
        read: &dyn Fn(&'a str) -> Element<'a>,
    ) {
        if let Some(text) = take_at(object, path, full_text) {
            return parts.push((self.speaks.body(Content::Text(text)), None));
        }
        let Some(list) = take_at(object, path, |raw| items(raw).filter(|list| !list.is_empty())) else { return };
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        for raw in list {
            match read(raw) {
                Ok((body, extra)) => {
                    self.end_pieces(&mut pieces, parts);
                    parts.push((body, Some((path, extra))));
                }
                Err(piece) => pieces.push(piece),
            }
        }
        self.end_pieces(&mut pieces, parts);
    }

    fn end_pieces<'a>(&self, pieces: &mut Vec<Piece<'a>>, parts: &mut Vec<Part<'a>>) {
        if !pieces.is_empty() {
            parts.push((self.speaks.body(Content::Pieces(std::mem::take(pieces))), None));
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
fn full_text(raw: &str) -> Option<Text<'_>> {
    Text::from_json(raw).filter(|text| !text.is_empty())
}

pub fn is_empty(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"") || items(raw).is_some_and(|list| list.is_empty())
}

/// A content that is not empty: a text, or a list of elements.
fn content<'a>(raw: &'a str, texts: &[&str]) -> Option<Content<'a>> {
    if is_empty(raw) {
        return None;
    }
    match Text::from_json(raw) {
        Some(text) => Some(Content::Text(text)),
        None => Some(Content::Pieces(items(raw)?.into_iter().map(|raw| piece(raw, texts)).collect())),
    }
}

fn piece<'a>(raw: &'a str, texts: &[&str]) -> Piece<'a> {
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

/// An event with its extra fields, or a piece of a message.
type Element<'a> = Result<(Body<'a>, ExtraFields<'a>), Piece<'a>>;

/// An element of a list.
fn element<'a>(raw: &'a str, maps: &'static [ElementMap]) -> Element<'a> {
    let Some(mut object) = Object::parse(raw) else { return Err(piece(raw, super::TEXT)) };
    let words = |path: &str| peek_at(&object, path).and_then(|raw| crate::json::word(&raw).map(Cow::into_owned));
    let body = match ElementMap::of(maps, &words) {
        Some(ElementMap::Thinking(_, path)) => {
            take_at(&mut object, path, Text::from_json).map(|text| Body::Thinking { content: Content::Text(text) })
        }
        Some(ElementMap::Call(_, map)) => take_call(map, &mut object),
        Some(ElementMap::Result(_, map)) => take_result(map, &mut object),
        None => None,
    };
    body.map(|body| (body, object.into_extra())).ok_or_else(|| piece(raw, super::TEXT))
}

/// One of Anthropic's blocks.
fn block<'a>(raw: &'a str, texts: &'static [&'static str], error: ErrorAt) -> Element<'a> {
    let Some(mut object) = Object::parse(raw) else { return Err(piece(raw, super::TEXT)) };
    let body = match object.peek_str("type").as_deref() {
        Some("thinking") => object.take_text("thinking").map(|text| Body::Thinking { content: Content::Text(text) }),
        Some("redacted_thinking") => Some(Body::Thinking { content: Content::text("") }),
        Some("tool_use") => anthropic::tool_call(&mut object),
        Some("tool_result") => {
            let map = ResultMap { call: "tool_use_id", name: "name", content: "content", texts, error };
            take_result(&map, &mut object)
        }
        _ => None,
    };
    body.map(|body| (body, object.into_extra())).ok_or_else(|| piece(raw, super::TEXT))
}

/// Takes the elements of a list. A list with an element of another form stays whole.
fn take_list<'a>(
    path: &'static str,
    object: &mut Object<'a>,
    parts: &mut Vec<Part<'a>>,
    take: impl Fn(&mut Object<'a>) -> Option<Body<'a>>,
) {
    let read = |raw: &'a str| -> Option<Vec<Part<'a>>> {
        let mut found: Vec<Part<'a>> = Vec::new();
        for raw in items(raw)? {
            let mut element = Object::parse(raw)?;
            let body = take(&mut element)?;
            found.push((body, Some((path, element.into_extra()))));
        }
        (!found.is_empty()).then_some(found)
    };
    parts.extend(take_at(object, path, read).unwrap_or_default());
}

fn take_call<'a>(map: &CallMap, object: &mut Object<'a>) -> Option<Body<'a>> {
    let mut rest = object.clone();
    let name = take_at(&mut rest, map.name, |raw| Text::from_json(raw)?.exact())?;
    let input = match map.input {
        InputAt::Json(path) => take_at(&mut rest, path, Some).map(|raw| Input::Json(Cow::Borrowed(raw)))?,
        InputAt::Text(path) => take_at(&mut rest, path, Text::from_json).map(Input::from_text)?,
        // A call without arguments has an empty text, which the writer leaves out.
        InputAt::Maybe(path) => take_at(&mut rest, path, any_input).unwrap_or(Input::Text(Text::from(""))),
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
fn take_result<'a>(map: &ResultMap, object: &mut Object<'a>) -> Option<Body<'a>> {
    let word = |raw: &'a str| Text::from_json(raw)?.exact();
    if peek_at(object, map.call.trim_end_matches("[]")).is_none() && peek_at(object, map.content).is_none() {
        return None;
    }
    let error = match map.error {
        ErrorAt::Nowhere => None,
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
    let content = take_at(object, map.content, |raw| content(raw, map.texts));
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
fn place<'a>(extra: &mut ExtraFields<'a>, path: &'static str, element: ExtraFields<'a>) {
    let (key, held) = match path.split_once('.') {
        None => (path, Held::Object(element)),
        Some((key, below)) => {
            if let Some(Held::Object(inner)) = extra.held_mut(key) {
                return place(inner, below, element);
            }
            let mut inner = ExtraFields::default();
            place(&mut inner, below, element);
            (key, Held::Object(inner))
        }
    };
    match extra.held_mut(key) {
        Some(place) => *place = held,
        None => extra.0.push((Cow::Borrowed(key), held)),
    }
}
