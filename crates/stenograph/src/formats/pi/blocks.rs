//! The content blocks of pi's messages: text, pictures, thinking and calls. This module knows neither the message nor its record.

use std::borrow::Cow;

use crate::json::{Draft, Object};
use crate::model::{Body, Content, Data, ExtraFields, Input, Piece, PieceKind, Role};

/// The events of a content list, each with the extra fields of its block. Consecutive texts and pictures form one message.
pub(super) fn events<'a>(list: Vec<&'a str>, role: Role) -> Vec<(Body<'a>, Option<Object<'a>>)> {
    let mut events: Vec<(Body<'a>, Option<Object<'a>>)> = Vec::with_capacity(list.len().max(1));
    for raw in list {
        if let Some(event) = event(raw) {
            events.push(event);
            continue;
        }
        match events.last_mut() {
            Some((Body::Message { content: Content::Pieces(pieces), .. }, _)) => pieces.push(piece(raw)),
            _ => events.push((Body::Message { role, content: Content::Pieces(vec![piece(raw)]) }, None)),
        }
    }
    if events.is_empty() {
        events.push((Body::Message { role, content: Content::Pieces(Vec::new()) }, None));
    }
    events
}

fn event(raw: &str) -> Option<(Body<'_>, Option<Object<'_>>)> {
    let mut object = Object::parse(raw)?;
    let body = match object.peek_str("type").as_deref() {
        Some("thinking") => Body::Thinking { content: Content::Text(object.take_text("thinking")?) },
        Some("toolCall") => {
            let name = object.peek_str("name")?;
            let input = Input::Json(Cow::Borrowed(object.take("arguments")?));
            object.take("name");
            Body::ToolCall { call: object.take_name("id"), name, input }
        }
        _ => return None,
    };
    Some((body, Some(object)))
}

/// An element of a content list as a piece.
pub(super) fn piece(raw: &str) -> Piece<'_> {
    let whole = || Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() };
    let Some(mut object) = Object::parse(raw) else { return whole() };
    let kind = match object.peek_str("type").as_deref() {
        Some("text") => object.take_text("text").map(PieceKind::Text),
        Some("image") => object.take_text("data").map(|data| {
            let media = object.take_name("mimeType");
            PieceKind::Blob { media, data: Data::Inline(data) }
        }),
        _ => None,
    };
    kind.map_or_else(whole, |kind| Piece { kind, extra: object.into_extra() })
}

/// Takes a content: a text, or a list that is not empty.
pub(super) fn take_content<'a>(object: &mut Object<'a>, key: &str) -> Option<Content<'a>> {
    if let Some(text) = object.take_text(key) {
        return Some(Content::Text(text));
    }
    let list = object.take_as(key, |raw| crate::json::items(raw).filter(|list| !list.is_empty()))?;
    Some(Content::Pieces(list.into_iter().map(piece).collect()))
}

/// A content as it was; `None` if nothing was taken.
pub(super) fn content_value(content: &Content<'_>) -> Option<String> {
    match content {
        Content::Text(text) => Some(text.to_json()),
        Content::Pieces(pieces) if pieces.is_empty() => None,
        Content::Pieces(pieces) => {
            let blocks: Vec<String> = pieces.iter().map(piece_block).collect();
            Some(format!("[{}]", blocks.join(",")))
        }
    }
}

/// The block of a piece.
pub(super) fn piece_block(piece: &Piece<'_>) -> String {
    let mut draft = Draft::new();
    match &piece.kind {
        PieceKind::Text(text) => {
            draft.default_str("type", "text");
            draft.set_text("text", text);
        }
        PieceKind::Blob { media, data } => {
            draft.default_str("type", "image");
            let (Data::Inline(text) | Data::Url(text) | Data::File(text)) = data;
            draft.set_text("data", text);
            draft.set_opt("mimeType", media.as_deref());
        }
        PieceKind::Other(raw) => return raw.to_string(),
    }
    draft.render((!piece.extra.0.is_empty()).then_some(&piece.extra))
}

/// The block of a thought or a call; `None` for every other body.
pub(super) fn block_of(body: &Body<'_>, extra: &ExtraFields<'_>) -> Option<String> {
    let mut draft = Draft::new();
    match body {
        Body::Thinking { content } => draft.set_text("thinking", &content.joined()),
        Body::ToolCall { call, name, input } => {
            draft.set_opt("id", call.as_deref());
            draft.set_str("name", name);
            draft.set("arguments", input.to_json().into_owned());
        }
        _ => return None,
    }
    Some(draft.render(Some(extra)))
}
