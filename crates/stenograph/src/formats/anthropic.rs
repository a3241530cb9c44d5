//! The content blocks of Anthropic's Messages API, which several formats share: blocks become events and pieces, and events and
//! pieces become blocks. This module knows neither the record around the blocks nor its envelope.

use std::borrow::Cow;

use crate::json::{Draft, Object, items};
use crate::model::{Body, Content, Data, ExtraFields, Input, NoteKind, Piece, PieceKind, Role};
use crate::text::Text;
use crate::write::Ownership;

/// One event read from a content list.
#[derive(Debug)]
pub struct BlockEvent<'a> {
    /// The body of the event.
    pub body: Body<'a>,
    /// The extra fields of the block. A message has none: each of its pieces holds its own.
    pub block: Option<Object<'a>>,
}

/// A note about a block that is kept whole.
#[derive(Debug)]
pub struct BlockNote(pub NoteKind, pub String);

/// Types of known elements that only their own system can use. They are kept whole.
const OPAQUE: [&str; 8] = [
    "tool_reference",
    "search_result",
    "container_upload",
    "fallback",
    "compaction",
    "connector_text",
    "mid_conv_system",
    "web_search_result",
];

/// The events of a content list. Consecutive texts and images form one message; each thought, call and result is its own event.
/// Notes about unreadable blocks are added to `notes`.
pub fn blocks<'a>(list: Vec<&'a str>, role: Role, notes: &mut Vec<BlockNote>) -> Vec<BlockEvent<'a>> {
    let mut events: Vec<BlockEvent<'a>> = Vec::with_capacity(list.len().max(1));
    for raw in list {
        match block(raw, notes) {
            BlockContent::Event(one) => events.push(one),
            BlockContent::Piece(piece) => match events.last_mut() {
                Some(BlockEvent { body: Body::Message { content: Content::Pieces(pieces), .. }, .. }) => {
                    pieces.push(piece);
                }
                _ => {
                    let content = Content::Pieces(vec![piece]);
                    events.push(BlockEvent { body: Body::Message { role, content }, block: None });
                }
            },
        }
    }
    if events.is_empty() {
        let content = Content::Pieces(Vec::new());
        events.push(BlockEvent { body: Body::Message { role, content }, block: None });
    }
    events
}

enum BlockContent<'a> {
    Event(BlockEvent<'a>),
    Piece(Piece<'a>),
}

fn block<'a>(raw: &'a str, notes: &mut Vec<BlockNote>) -> BlockContent<'a> {
    let Some(mut object) = Object::parse(raw) else { return BlockContent::Piece(piece(raw, notes)) };
    let body = match object.peek_str("type").as_deref() {
        Some("thinking") => object.take_text("thinking").map(|text| Body::Thinking { content: Content::Text(text) }),
        // Encrypted thoughts have no readable text; the ciphertext stays in the block's extra fields.
        Some("redacted_thinking") => Some(Body::Thinking { content: Content::text("") }),
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => tool_call(&mut object),
        Some("tool_result") => Some(tool_result(&mut object, notes)),
        Some(name) if name.ends_with("_tool_result") => Some(tool_result(&mut object, notes)),
        _ => None,
    };
    match body {
        Some(body) => BlockContent::Event(BlockEvent { body, block: Some(object) }),
        None => BlockContent::Piece(piece_of(object, raw, notes)),
    }
}

/// Takes a call. `None` if it has no name or no input; the object then stays whole.
pub fn tool_call<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let name = object.peek_str("name")?;
    let input = Input::Json(Cow::Borrowed(object.take("input")?));
    object.take("name");
    Some(Body::ToolCall { call: object.take_str("id"), name, input })
}

/// Takes a result. A content that is neither text nor a list of blocks stays in the object, and so does an empty list.
fn tool_result<'a>(object: &mut Object<'a>, notes: &mut Vec<BlockNote>) -> Body<'a> {
    Body::ToolResult {
        call: object.take_str("tool_use_id"),
        name: None,
        content: take_content(object, "content", notes).unwrap_or(Content::Pieces(Vec::new())),
        error: object.take_bool("is_error"),
    }
}

/// Takes a text, or a list whose elements become pieces. An empty list and any other value stay in the object.
pub fn take_content<'a>(object: &mut Object<'a>, key: &str, notes: &mut Vec<BlockNote>) -> Option<Content<'a>> {
    if let Some(text) = object.take_text(key) {
        return Some(Content::Text(text));
    }
    let list = items(object.peek(key)?)?;
    if list.is_empty() {
        return None;
    }
    object.take(key);
    Some(Content::Pieces(list.into_iter().map(|raw| piece(raw, notes)).collect()))
}

/// Reads one element of a list as a piece.
pub fn piece<'a>(raw: &'a str, notes: &mut Vec<BlockNote>) -> Piece<'a> {
    match (Object::parse(raw), Text::from_json(raw)) {
        (Some(object), _) => piece_of(object, raw, notes),
        // A bare string among blocks has no extra fields, which is how the writer recognizes it.
        (None, Some(text)) => Piece::text(text),
        (None, None) => Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() },
    }
}

fn piece_of<'a>(mut object: Object<'a>, raw: &'a str, notes: &mut Vec<BlockNote>) -> Piece<'a> {
    let name = object.peek_str("type");
    let kind = match name.as_deref() {
        Some("text") => object.take_text("text").map(PieceKind::Text),
        Some("image" | "document") => source(&mut object),
        _ => None,
    };
    if let Some(kind) = kind {
        return Piece { kind, extra: object.into_extra() };
    }
    notes.extend(note_about(name.as_deref(), &object));
    Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() }
}

/// Why a block is kept whole; `None` for a known opaque block.
fn note_about(name: Option<&str>, object: &Object<'_>) -> Option<BlockNote> {
    let lack = match name {
        Some(name) if OPAQUE.contains(&name) => return None,
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") if object.peek_str("name").is_none() => Some("tool name"),
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") if !object.has("input") => Some("input"),
        Some("text") => Some("text"),
        Some("thinking") if object.peek_str("thinking").is_none() => Some("thinking text"),
        Some("image" | "document") => Some("readable source"),
        Some(_) | None => None,
    };
    Some(match (name, lack) {
        (Some(name), Some(lack)) => BlockNote(NoteKind::NotARecord, format!("this {name} block has no {lack}")),
        (Some(name), None) => BlockNote(NoteKind::UnknownType, format!("unknown block type {name:?}")),
        (None, _) => BlockNote(NoteKind::UnknownType, "a block without a type".to_owned()),
    })
}

/// Takes the data of an image or a document. A plain-text document becomes text.
fn source<'a>(object: &mut Object<'a>) -> Option<PieceKind<'a>> {
    let mut source = object.open("source")?;
    let kind = match source.peek_str("type").as_deref() {
        Some("text") => source.take_text("data").map(PieceKind::Text),
        Some("base64") => source.take_text("data").map(|data| blob(&mut source, Data::Inline(data))),
        Some("url") => source.take_text("url").map(|url| blob(&mut source, Data::Url(url))),
        Some("file") => source.take_text("file_id").map(|file| blob(&mut source, Data::File(file))),
        _ => None,
    };
    object.close("source", source);
    kind
}

fn blob<'a>(source: &mut Object<'a>, data: Data<'a>) -> PieceKind<'a> {
    PieceKind::Blob { media: source.take_str("media_type"), data }
}

/// The blocks of a content. Foreign pieces that no block can hold are left out.
pub fn content_blocks(content: &Content<'_>, ownership: Ownership, out: &mut Vec<String>) {
    match content {
        Content::Text(text) => out.push(text_block(text)),
        Content::Pieces(pieces) => out.extend(pieces.iter().filter_map(|piece| piece_block(piece, ownership))),
    }
}

/// Whether a block can hold some part of a foreign content.
pub fn is_sayable_content(content: &Content<'_>) -> bool {
    match content {
        Content::Text(_) => true,
        Content::Pieces(pieces) => pieces.iter().any(|piece| piece_block(piece, Ownership::Foreign).is_some()),
    }
}

/// A content as one JSON value: a bare text as a string, pieces as a list.
pub fn content_value(content: &Content<'_>, ownership: Ownership) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(_) => {
            let mut blocks = Vec::new();
            content_blocks(content, ownership, &mut blocks);
            format!("[{}]", blocks.join(","))
        }
    }
}

fn text_block(text: &Text<'_>) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", text.to_json())
}

fn piece_block(piece: &Piece<'_>, ownership: Ownership) -> Option<String> {
    let extra = (ownership == Ownership::Own && !piece.extra.0.is_empty()).then_some(&piece.extra);
    let mut draft = Draft::new();
    match (&piece.kind, extra.and_then(|extra| extra.text("type"))) {
        (PieceKind::Text(text), Some(name)) if name == "document" => {
            let mut source = Draft::new();
            source.set_text("data", text);
            draft.nest("source", source);
        }
        (PieceKind::Text(text), Some(name)) => {
            draft.default_str("type", &name);
            draft.set_text("text", text);
        }
        (PieceKind::Text(text), None) if ownership == Ownership::Own => return Some(text.to_json()),
        (PieceKind::Text(text), None) => return Some(text_block(text)),
        (PieceKind::Blob { media, data }, _) => {
            let media = media.as_deref();
            // The block returns to its own format and still has its type.
            let kind = if extra.is_some() { "image" } else { blob_type(media, piece)? };
            return blob_block(media, data, kind, extra);
        }
        (PieceKind::Other(raw), _) => {
            let name = Object::parse(raw).and_then(|object| object.peek_str("type").map(Cow::into_owned));
            let fits = ownership == Ownership::Own || name.is_some_and(|name| OPAQUE.contains(&name.as_str()));
            return fits.then(|| raw.to_string());
        }
    }
    Some(draft.render(extra))
}

/// The block type of a foreign blob. A blob without a media type keeps the type of its element; if that is unknown, the blob
/// may be anything and becomes no block.
fn blob_type(media: Option<&str>, piece: &Piece<'_>) -> Option<&'static str> {
    match (media, piece.extra.text("type").as_deref()) {
        (Some("application/pdf"), _) | (None, Some("document")) => Some("document"),
        (Some(media), _) if media.starts_with("image/") => Some("image"),
        (None, Some("image" | "image_url" | "input_image")) => Some("image"),
        (Some(_) | None, _) => None,
    }
}

fn blob_block(media: Option<&str>, data: &Data<'_>, kind: &str, extra: Option<&ExtraFields<'_>>) -> Option<String> {
    let mut source = Draft::new();
    match data {
        Data::Inline(text) => {
            source.default_str("type", "base64");
            source.set_or("media_type", media, if kind == "document" { "application/pdf" } else { "image/png" });
            source.set_text("data", text);
        }
        Data::Url(text) => {
            source.default_str("type", "url");
            if extra.is_some() {
                source.set_opt("media_type", media);
            }
            source.set_text("url", text);
        }
        Data::File(text) => {
            // These blocks cannot refer to a file of another system.
            extra?;
            source.set_opt("media_type", media);
            source.set_text("file_id", text);
        }
    }
    let mut draft = Draft::new();
    draft.default_str("type", kind);
    draft.nest("source", source);
    Some(draft.render(extra))
}

/// The block of a thought, a call or a result; `None` for every other body. `extra` holds the extra fields of the block it was
/// read from, and `call` is the id that connects call and result.
pub fn block_of(body: &Body<'_>, call: Option<&str>, extra: Option<&ExtraFields<'_>>) -> Option<String> {
    let ownership = if extra.is_some() { Ownership::Own } else { Ownership::Foreign };
    let mut draft = Draft::new();
    match body {
        Body::Thinking { content } => {
            draft.default_str("type", "thinking");
            let is_encrypted =
                extra.and_then(|extra| extra.text("type")).is_some_and(|name| name == "redacted_thinking");
            if !is_encrypted {
                draft.set_text("thinking", &content.joined());
            }
            draft.default_str("signature", "");
        }
        Body::ToolCall { name, input, .. } => {
            draft.default_str("type", "tool_use");
            draft.set_opt("id", call);
            draft.set_str("name", name);
            draft.set(
                "input",
                if ownership == Ownership::Own { input.to_json() } else { input.to_object() }.into_owned(),
            );
        }
        Body::ToolResult { content, error, .. } => {
            draft.set_opt("tool_use_id", call);
            draft.default_str("type", "tool_result");
            let is_empty = matches!(content, Content::Pieces(pieces) if pieces.is_empty());
            if ownership == Ownership::Foreign || !is_empty {
                draft.set("content", content_value(content, ownership));
            }
            if let Some(error) = error {
                draft.set("is_error", error.to_string());
            }
        }
        Body::Fact { .. }
        | Body::Message { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. }
        | Body::Other { .. } => return None,
    }
    Some(draft.render(extra))
}

/// The extra fields below a key, whether a reader opened the object or left it whole.
pub fn below<'r>(extra: &'r ExtraFields<'_>, key: &str) -> Option<ExtraFields<'r>> {
    if let Some(inner) = extra.object(key) {
        return Some(inner.clone());
    }
    Object::parse(extra.raw(key)?).map(Object::into_extra)
}
