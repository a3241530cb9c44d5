//! Lists of content: Anthropic's blocks, the parts of Google's Gemini API, elements that a table describes, and lists of earlier
//! messages.

use std::borrow::Cow;

use super::fields::{Values, is_taken, peek_at, take_at};
use super::read::{TakenPart, content, full_text, piece, take_call, take_list, take_result};
use super::write::{element_extra, piece_json, put_call, put_content, put_result};
use super::{BLOCK_TEXT, CallMap, ElementMap, ErrorAt, HistoryMap, InputAt, PartsForm, RecordMap, ResultMap, TEXT};
use crate::formats::anthropic;
use crate::json::{Object, items, word};
use crate::model::{Body, Content, Event, ExtraFields, Piece, PieceKind, Role};
use crate::text::Text;

/// Something in a list: an event with its extra fields, or a piece of a message.
type Block<'a> = Result<(Body<'a>, ExtraFields<'a>), Piece<'a>>;

impl RecordMap {
    /// Takes content blocks. Consecutive texts and images are one message.
    pub fn take_blocks<'a>(
        &self,
        path: &'static str,
        object: &mut Object<'a>,
        parts: &mut Vec<TakenPart<'a>>,
        block: &dyn Fn(&'a str) -> Block<'a>,
    ) {
        if let Some(text) = take_at(object, path, full_text) {
            return parts.push(TakenPart::of(self.speaks.body(Content::Text(text))));
        }
        let Some(list) = take_at(object, path, |raw| items(raw).filter(|list| !list.is_empty())) else { return };
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        for raw in list {
            match block(raw) {
                Ok((body, extra)) => {
                    self.end_pieces(&mut pieces, parts);
                    parts.push(TakenPart::element(body, path, extra));
                }
                Err(piece) => pieces.push(piece),
            }
        }
        self.end_pieces(&mut pieces, parts);
    }

    fn end_pieces<'a>(&self, pieces: &mut Vec<Piece<'a>>, parts: &mut Vec<TakenPart<'a>>) {
        if !pieces.is_empty() {
            parts.push(TakenPart::of(self.speaks.body(Content::Pieces(std::mem::take(pieces)))));
        }
    }
}

/// One of Anthropic's blocks.
pub fn anthropic_block<'a>(raw: &'a str, texts: &'static [&'static str], error: ErrorAt) -> Block<'a> {
    let Some(mut object) = Object::parse(raw) else { return Err(piece(raw, BLOCK_TEXT)) };
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
    body.map(|body| (body, object.into_extra())).ok_or_else(|| piece(raw, BLOCK_TEXT))
}

/// An element that a table describes.
pub fn mapped_block<'a>(raw: &'a str, maps: &'static [ElementMap]) -> Block<'a> {
    let Some(mut object) = Object::parse(raw) else { return Err(piece(raw, TEXT)) };
    let has = |path: &str, expected: &str| {
        let found = peek_at(&object, path);
        found.is_some_and(|raw| expected == "*" || word(&raw).is_some_and(|word| word == expected))
    };
    let body = match ElementMap::of(maps, &has) {
        Some(ElementMap::Text(_, key)) => return Err(piece(raw, std::slice::from_ref(key))),
        Some(ElementMap::Thinking(_, path)) => {
            take_at(&mut object, path, Text::from_json).map(|text| Body::Thinking { content: Content::Text(text) })
        }
        Some(ElementMap::Call(_, map)) => take_call(map, &mut object),
        Some(ElementMap::Result(_, map)) => take_result(map, &mut object),
        None => None,
    };
    body.map(|body| (body, object.into_extra())).ok_or_else(|| piece(raw, TEXT))
}

const FUNCTION_CALL: CallMap =
    CallMap { id: "functionCall.id", name: "functionCall.name", input: InputAt::Maybe("functionCall.args") };

/// Gemini CLI and Qwen Code put the result of a tool under one of two keys.
const RESPONSE: ResultMap = ResultMap {
    call: "functionResponse.id",
    name: "functionResponse.name",
    content: "functionResponse.response.output",
    texts: TEXT,
    error: ErrorAt::Nowhere,
};
const FAILED_RESPONSE: ResultMap =
    ResultMap { content: "functionResponse.response.error", error: ErrorAt::Failed, ..RESPONSE };

/// One part of Google's Gemini API.
pub fn google_part<'a>(raw: &'a str) -> Block<'a> {
    let Some(mut object) = Object::parse(raw) else { return Err(piece(raw, TEXT)) };
    let body = if object.has("functionCall") {
        take_call(&FUNCTION_CALL, &mut object)
    } else if object.has("functionResponse") {
        let has_failed = peek_at(&object, FAILED_RESPONSE.content).is_some();
        take_result(if has_failed { &FAILED_RESPONSE } else { &RESPONSE }, &mut object)
    } else if is_thought(&object) {
        object.take_text("text").map(|text| Body::Thinking { content: Content::Text(text) })
    } else {
        None
    };
    body.map(|body| (body, object.into_extra())).ok_or_else(|| piece(raw, TEXT))
}

fn is_thought(part: &Object<'_>) -> bool {
    part.peek_true("thought")
}

/// Takes a list of earlier messages. Only the texts become events: calls and thoughts stay in the list.
pub fn take_history<'a>(path: &'static str, map: &HistoryMap, object: &mut Object<'a>, parts: &mut Vec<TakenPart<'a>>) {
    let known = parts.len();
    take_list(path, object, parts, |element| {
        let speaker = element.peek(map.speaker).and_then(word);
        let role = map.roles.iter().find(|(word, _)| Some(*word) == speaker.as_deref()).map(|(_, role)| *role);
        let mut said = take_at(element, map.content, |raw| content(raw, TEXT));
        if let Some(Content::Pieces(pieces)) = &mut said {
            pieces.iter_mut().for_each(keep_thought_whole);
        }
        let content = said.unwrap_or(Content::Pieces(Vec::new()));
        Some(vec![Body::Message { role: role.unwrap_or(Role::System), content }])
    });
    // An agent begins a session with a list of one text, which no other record has.
    let is_beginning = matches!(parts.get(known..), Some([only]) if has_text(&only.body));
    parts.iter_mut().skip(known).for_each(|part| part.restates = !is_beginning);
}

fn has_text(body: &Body<'_>) -> bool {
    match body.content() {
        Some(Content::Text(text)) => !text.is_empty(),
        Some(Content::Pieces(pieces)) => pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Text(_))),
        None => false,
    }
}

/// Makes a thought a piece that is not text.
fn keep_thought_whole(piece: &mut Piece<'_>) {
    if piece.extra.raw("thought") == Some("true") {
        *piece = Piece { kind: PieceKind::Other(Cow::Owned(piece_json(piece, TEXT))), extra: ExtraFields::default() };
    }
}

/// Writes a list of earlier messages.
pub fn put_history(path: &'static str, map: &HistoryMap, origin: &str, events: &[Event<'_>], out: &mut Values) {
    let elements = events.iter().filter_map(|event| {
        let extra = element_extra(event, origin, path)?;
        let mut values = Values::default();
        put_content(map.content, TEXT, event.content(), &extra, &mut values);
        Some(values.render(&extra))
    });
    let elements: Vec<String> = elements.collect();
    if !elements.is_empty() {
        out.put(path, format!("[{}]", elements.join(",")));
    }
}

/// Writes the parts of Google's Gemini API.
pub fn put_parts(
    path: &'static str,
    form: PartsForm,
    origin: &str,
    events: &[Event<'_>],
    extra: &ExtraFields<'_>,
    out: &mut Values,
) {
    let mut parts = Vec::new();
    for event in events {
        let element = element_extra(event, origin, path);
        let mut values = Values::default();
        match (&event.body, element) {
            (Body::Thinking { content }, Some(extra)) => {
                put_content("text", TEXT, Some(content), &extra, &mut values);
                parts.push(values.render(&extra));
            }
            (Body::ToolCall { .. }, Some(extra)) => {
                put_call(&FUNCTION_CALL, event, &extra, &mut values);
                parts.push(values.render(&extra));
            }
            (Body::ToolResult { .. }, Some(extra)) => {
                let has_failed = is_taken(&extra, FAILED_RESPONSE.content);
                put_result(if has_failed { &FAILED_RESPONSE } else { &RESPONSE }, event, &extra, &mut values);
                parts.push(values.render(&extra));
            }
            (Body::Message { content, .. } | Body::Compaction { summary: Some(content) }, _) => match content {
                Content::Pieces(pieces) => parts.extend(pieces.iter().map(|piece| piece_json(piece, TEXT))),
                Content::Text(text) if form == PartsForm::ListOrText => return out.put(path, text.to_json()),
                Content::Text(text) => {
                    values.put("text", text.to_json());
                    parts.push(values.render(&ExtraFields::default()));
                }
            },
            _ => {}
        }
    }
    if !parts.is_empty() || is_taken(extra, path) {
        out.put(path, format!("[{}]", parts.join(",")));
    }
}

/// Writes a list of blocks. `put` writes the fields of an event that is one block.
pub fn put_blocks(
    path: &'static str,
    origin: &str,
    events: &[Event<'_>],
    extra: &ExtraFields<'_>,
    texts: &[&'static str],
    out: &mut Values,
    put: &dyn Fn(&Event<'_>, &ExtraFields<'_>, &mut Values),
) {
    // A record may have calls in a list of their own.
    let is_own = |event: &&Event<'_>| match &event.body {
        Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => {
            element_extra(event, origin, path).is_some()
        }
        _ => true,
    };
    let own: Vec<&Event<'_>> = events.iter().filter(is_own).collect();
    if let [Event { body, .. }] = own.as_slice()
        && let Some(Content::Text(text)) = body.content()
        && !matches!(body, Body::Thinking { .. } | Body::ToolResult { .. })
    {
        return out.put(path, text.to_json());
    }
    let mut blocks = Vec::new();
    for event in own {
        let extra = element_extra(event, origin, path).unwrap_or_default();
        match &event.body {
            Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => {
                let mut values = Values::default();
                put(event, &extra, &mut values);
                blocks.push(values.render(&extra));
            }
            Body::Message { content: Content::Pieces(pieces), .. }
            | Body::Compaction { summary: Some(Content::Pieces(pieces)) }
            | Body::Failure { content: Some(Content::Pieces(pieces)), .. }
            | Body::Fact { content: Some(Content::Pieces(pieces)), .. } => {
                blocks.extend(pieces.iter().map(|piece| piece_json(piece, texts)));
            }
            Body::Message { content: Content::Text(text), .. } => blocks.push(text.to_json()),
            Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }
    if !blocks.is_empty() || is_taken(extra, path) {
        out.put(path, format!("[{}]", blocks.join(",")));
    }
}

/// The fields of one of Anthropic's blocks.
pub fn put_anthropic_block(
    texts: &'static [&'static str],
    error: ErrorAt,
    event: &Event<'_>,
    extra: &ExtraFields<'_>,
    out: &mut Values,
) {
    match &event.body {
        Body::Thinking { content } => put_content("thinking", TEXT, Some(content), extra, out),
        Body::ToolCall { .. } => {
            let map = CallMap { id: "id", name: "name", input: InputAt::Json("input") };
            put_call(&map, event, extra, out);
        }
        Body::ToolResult { .. } => {
            let map = ResultMap { call: "tool_use_id", name: "name", content: "content", texts, error };
            put_result(&map, event, extra, out);
        }
        _ => {}
    }
}

/// The fields of an element of a list.
pub fn put_mapped_block(maps: &'static [ElementMap], event: &Event<'_>, extra: &ExtraFields<'_>, out: &mut Values) {
    let has = |path: &str, expected: &str| match expected {
        "*" => extra.has(path),
        _ => extra.word_at(path).is_some_and(|word| word == expected),
    };
    match (ElementMap::of(maps, &has), &event.body) {
        (Some(ElementMap::Thinking(_, path)), Body::Thinking { content }) => {
            put_content(path, TEXT, Some(content), extra, out);
        }
        (Some(ElementMap::Call(_, map)), _) => put_call(map, event, extra, out),
        (Some(ElementMap::Result(_, map)), _) => put_result(map, event, extra, out),
        _ => {}
    }
}
