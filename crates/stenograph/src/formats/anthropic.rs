//! The content blocks of Anthropic's Messages form, which several formats share: blocks become events and pieces, and events
//! and pieces become blocks. Nothing here knows the record that holds the blocks, nor an envelope.

use std::borrow::Cow;

use crate::json::{Draft, Object, items};
use crate::model::{Body, Content, Data, ExtraFields, Input, NoteKind, Piece, PieceKind, Role};
use crate::text::Text;
use crate::write::Ownership;

/// One event's worth of a content list.
#[derive(Debug)]
pub struct Said<'a> {
    /// What is said or done.
    pub body: Body<'a>,
    /// What is left of the block. A message has none: each of its pieces keeps its own.
    pub block: Option<Object<'a>>,
}

/// What is to be said of a block that was kept whole.
#[derive(Debug)]
pub struct Remark(pub NoteKind, pub String);

/// Elements that are known and that only their own system can use: they are kept whole.
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

/// The events of a content list. Consecutive texts and pictures are one message; thoughts, calls and results stand alone.
/// Remarks on blocks that nobody can read are added to `remarks`.
pub fn blocks<'a>(list: Vec<&'a str>, role: Role, remarks: &mut Vec<Remark>) -> Vec<Said<'a>> {
    let mut said: Vec<Said<'a>> = Vec::with_capacity(list.len().max(1));
    for raw in list {
        match block(raw, remarks) {
            Read::Said(one) => said.push(one),
            Read::Piece(piece) => match said.last_mut() {
                Some(Said { body: Body::Message { content: Content::Pieces(pieces), .. }, .. }) => pieces.push(piece),
                _ => {
                    let content = Content::Pieces(vec![piece]);
                    said.push(Said { body: Body::Message { role, content }, block: None });
                }
            },
        }
    }
    if said.is_empty() {
        let content = Content::Pieces(Vec::new());
        said.push(Said { body: Body::Message { role, content }, block: None });
    }
    said
}

enum Read<'a> {
    Said(Said<'a>),
    Piece(Piece<'a>),
}

fn block<'a>(raw: &'a str, remarks: &mut Vec<Remark>) -> Read<'a> {
    let Some(mut object) = Object::parse(raw) else { return Read::Piece(piece(raw, remarks)) };
    let body = match object.peek_str("type").as_deref() {
        Some("thinking") => object.take_text("thinking").map(|text| Body::Thinking { content: Content::Text(text) }),
        // Sealed thoughts have nothing to read: the seal stays with what is left of the block.
        Some("redacted_thinking") => Some(Body::Thinking { content: Content::text("") }),
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => tool_call(&mut object),
        Some("tool_result") => Some(tool_result(&mut object, remarks)),
        Some(name) if name.ends_with("_tool_result") => Some(tool_result(&mut object, remarks)),
        _ => None,
    };
    match body {
        Some(body) => Read::Said(Said { body, block: Some(object) }),
        None => Read::Piece(piece_of(object, raw, remarks)),
    }
}

/// Takes a call; `None` leaves the object whole when it has no name or no input.
pub fn tool_call<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let name = object.peek_str("name")?;
    let input = Input::Json(Cow::Borrowed(object.take("input")?));
    object.take("name");
    Some(Body::ToolCall { call: object.take_str("id"), name, input })
}

/// Takes a result. A content that is neither text nor a list of blocks stays where it is, and so does an empty list.
fn tool_result<'a>(object: &mut Object<'a>, remarks: &mut Vec<Remark>) -> Body<'a> {
    Body::ToolResult {
        call: object.take_str("tool_use_id"),
        name: None,
        content: take_content(object, "content", remarks).unwrap_or(Content::Pieces(Vec::new())),
        error: object.take_bool("is_error"),
    }
}

/// Takes a text or a list of which every element becomes a piece. An empty list stays, and so does anything else.
pub fn take_content<'a>(object: &mut Object<'a>, key: &str, remarks: &mut Vec<Remark>) -> Option<Content<'a>> {
    if let Some(text) = object.take_text(key) {
        return Some(Content::Text(text));
    }
    let list = items(object.peek(key)?)?;
    if list.is_empty() {
        return None;
    }
    object.take(key);
    Some(Content::Pieces(list.into_iter().map(|raw| piece(raw, remarks)).collect()))
}

/// One element of a list as a piece.
fn piece<'a>(raw: &'a str, remarks: &mut Vec<Remark>) -> Piece<'a> {
    match (Object::parse(raw), Text::from_json(raw)) {
        (Some(object), _) => piece_of(object, raw, remarks),
        // A bare string among blocks: nothing is left of it, and by that the writer knows it.
        (None, Some(text)) => Piece::text(text),
        (None, None) => Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() },
    }
}

fn piece_of<'a>(mut object: Object<'a>, raw: &'a str, remarks: &mut Vec<Remark>) -> Piece<'a> {
    let name = object.peek_str("type");
    let kind = match name.as_deref() {
        Some("text") => object.take_text("text").map(PieceKind::Text),
        Some("image" | "document") => source(&mut object),
        _ => None,
    };
    if let Some(kind) = kind {
        return Piece { kind, extra: object.into_extra() };
    }
    remarks.extend(remark(name.as_deref(), &object));
    Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() }
}

/// Why a block is kept whole; `None` for one that is meant to be.
fn remark(name: Option<&str>, object: &Object<'_>) -> Option<Remark> {
    let lack = match name {
        Some(name) if OPAQUE.contains(&name) => return None,
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") if object.peek_str("name").is_none() => {
            Some("the name of its tool")
        }
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") if !object.has("input") => Some("an input"),
        Some("text") => Some("a text"),
        Some("thinking") if object.peek_str("thinking").is_none() => Some("a thought"),
        Some("image" | "document") => Some("a source that can be read"),
        Some(_) | None => None,
    };
    Some(match (name, lack) {
        (Some(name), Some(lack)) => Remark(NoteKind::NotARecord, format!("this {name} block is without {lack}")),
        (Some(name), None) => Remark(NoteKind::UnknownType, format!("unknown block type {name:?}")),
        (None, _) => Remark(NoteKind::UnknownType, "a block without a type".to_owned()),
    })
}

/// Takes what the source of an image or a document holds. A document of plain text is text.
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

/// The blocks of a content. Pieces from elsewhere that no block can hold are left out.
pub fn content_blocks(content: &Content<'_>, ownership: Ownership, out: &mut Vec<String>) {
    match content {
        Content::Text(text) => out.push(text_block(text)),
        Content::Pieces(pieces) => out.extend(pieces.iter().filter_map(|piece| piece_block(piece, ownership))),
    }
}

/// Whether any block can hold something of a content from elsewhere.
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
    let left = (ownership == Ownership::Own && !piece.extra.0.is_empty()).then_some(&piece.extra);
    let mut draft = Draft::new();
    match (&piece.kind, left.and_then(|left| left.text("type"))) {
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
            // A block that returns still has its type.
            let kind = if left.is_some() { "image" } else { blob_type(media, piece)? };
            return blob_block(media, data, kind, left);
        }
        (PieceKind::Other(raw), _) => {
            let name = Object::parse(raw).and_then(|object| object.peek_str("type").map(Cow::into_owned));
            let fits = ownership == Ownership::Own || name.is_some_and(|name| OPAQUE.contains(&name.as_str()));
            return fits.then(|| raw.to_string());
        }
    }
    Some(draft.render(left))
}

/// The type of block for a blob from elsewhere. One without a media type is what its own element was called; one that was
/// called nothing of the kind may be anything, and is no picture.
fn blob_type(media: Option<&str>, piece: &Piece<'_>) -> Option<&'static str> {
    match (media, piece.extra.text("type").as_deref()) {
        (Some("application/pdf"), _) | (None, Some("document")) => Some("document"),
        (Some(media), _) if media.starts_with("image/") => Some("image"),
        (None, Some("image" | "image_url" | "input_image")) => Some("image"),
        (Some(_) | None, _) => None,
    }
}

fn blob_block(media: Option<&str>, data: &Data<'_>, kind: &str, left: Option<&ExtraFields<'_>>) -> Option<String> {
    let mut source = Draft::new();
    match data {
        Data::Inline(text) => {
            source.default_str("type", "base64");
            source.set_or("media_type", media, if kind == "document" { "application/pdf" } else { "image/png" });
            source.set_text("data", text);
        }
        Data::Url(text) => {
            source.default_str("type", "url");
            if left.is_some() {
                source.set_opt("media_type", media);
            }
            source.set_text("url", text);
        }
        Data::File(text) => {
            // A file of another system is none that these blocks can name.
            left?;
            source.set_opt("media_type", media);
            source.set_text("file_id", text);
        }
    }
    let mut draft = Draft::new();
    draft.default_str("type", kind);
    draft.nest("source", source);
    Some(draft.render(left))
}

/// The block of a thought, a call or a result; `None` for every other body. `left` is what is left of the block it came from,
/// and `call` the id that ties call and result.
pub fn block_of(body: &Body<'_>, call: Option<&str>, left: Option<&ExtraFields<'_>>) -> Option<String> {
    let ownership = if left.is_some() { Ownership::Own } else { Ownership::Foreign };
    let mut draft = Draft::new();
    match body {
        Body::Thinking { content } => {
            draft.default_str("type", "thinking");
            let sealed = left.and_then(|left| left.text("type")).is_some_and(|name| name == "redacted_thinking");
            if !sealed {
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
            let silent = matches!(content, Content::Pieces(pieces) if pieces.is_empty());
            if ownership == Ownership::Foreign || !silent {
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
    Some(draft.render(left))
}

/// What is left below a key: of an object that was opened, or of one that nobody touched.
pub fn below<'r>(left: &'r ExtraFields<'_>, key: &str) -> Option<ExtraFields<'r>> {
    if let Some(inner) = left.object(key) {
        return Some(inner.clone());
    }
    Object::parse(left.raw(key)?).map(Object::into_extra)
}
