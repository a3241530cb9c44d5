//! The wire: events and notes as lines of JSON. It is the native format, the answer to `--json` and the interface for other
//! programs; `docs/steno.schema.json` describes it and a test holds every output against it.

use std::borrow::Cow;

use crate::json::{Draft, Object, items};
use crate::model::{
    Body, Content, Data, Event, Extra, Held, Input, Note, Part, Piece, PieceKind, Residue, Role, Span, Usage,
};
use crate::text::quote;
use crate::time::Time;

/// The version of the wire. A reader of this version passes over keys it does not know.
pub const VERSION: u64 = 1;

/// The name under which the wire's own unknown keys are kept.
pub const NAME: &str = "steno";

/// An event as one line, without the newline.
pub fn event(event: &Event<'_>) -> String {
    draft(event).render(event.extra.get(NAME))
}

/// An event as one line that says where it stands in its source.
pub fn event_at(event: &Event<'_>) -> String {
    let mut draft = draft(event);
    if let Some(at) = event.at {
        draft.set("at", span(at));
    }
    draft.render(event.extra.get(NAME))
}

/// A note as one line.
pub fn note(note: &Note) -> String {
    let (kind, text) = (quote(note.kind.name()), quote(&note.text));
    format!("{{\"v\":{VERSION},\"note\":{kind},\"text\":{text},\"at\":{}}}", span(note.at))
}

fn span(at: Span) -> String {
    format!("{{\"line\":{},\"offset\":{},\"length\":{}}}", at.line, at.offset, at.length)
}

fn draft<'a>(event: &Event<'_>) -> Draft<'a> {
    let mut draft = Draft::new();
    draft.set("v", VERSION.to_string());
    draft.set_str("kind", event.kind().name());
    draft.set_opt("time", event.time.as_ref().and_then(Time::to_iso).as_deref());
    draft.set_opt("session", event.session.as_deref());
    draft.set_opt("thread", event.thread.as_deref());
    draft.set_opt("id", event.id.as_deref());
    draft.set_opt("parent", event.parent.as_deref());
    draft.set_opt("group", event.group.as_deref());
    if event.part != Part::default() {
        draft.set("part", format!("[{},{}]", event.part.index, event.part.of));
    }
    if event.restates {
        draft.set("restates", "true");
    }
    draft.set_opt("from", event.from.as_deref());
    draft.set_opt("to", event.to.as_deref());
    draft.set_opt("model", event.model.as_deref());
    draft.set_opt("cwd", event.cwd.as_deref());
    draft.set_opt("branch", event.branch.as_deref());
    draft.set_opt("version", event.version.as_deref());
    put_body(&event.body, &mut draft);
    if let Some(usage) = &event.usage {
        draft.nest("usage", usage_draft(usage));
    }
    put_extra(&event.extra, &mut draft);
    draft
}

fn put_body(body: &Body<'_>, draft: &mut Draft<'_>) {
    let flag = |draft: &mut Draft<'_>, key: &'static str, value: &Option<bool>| {
        if let Some(value) = value {
            draft.set(key, value.to_string());
        }
    };
    let said = |draft: &mut Draft<'_>, content: &Option<Content<'_>>| {
        if let Some(content) = content {
            draft.set("content", content_json(content));
        }
    };
    match body {
        Body::Fact { name, content } => {
            draft.set_str("name", name);
            said(draft, content);
        }
        Body::Message { role, content } => {
            draft.set_str("role", role.name());
            draft.set("content", content_json(content));
        }
        Body::Thinking { content } => draft.set("content", content_json(content)),
        Body::ToolCall { call, name, input } => {
            draft.set_str("name", name);
            draft.set_opt("call", call.as_deref());
            match input {
                Input::Json(raw) => draft.set("input", raw.to_string()),
                Input::Text(text) => draft.set_text("input_text", text),
            }
        }
        Body::ToolResult { call, name, content, error } => {
            draft.set_opt("name", name.as_deref());
            draft.set_opt("call", call.as_deref());
            draft.set("content", content_json(content));
            flag(draft, "error", error);
        }
        Body::Compaction { summary } => said(draft, summary),
        Body::Failure { name, content } => {
            draft.set_opt("name", name.as_deref());
            said(draft, content);
        }
        Body::Stop { reason, success, content } => {
            draft.set_opt("reason", reason.as_deref());
            flag(draft, "success", success);
            said(draft, content);
        }
        Body::Other { name, bytes } => {
            draft.set_opt("name", name.as_deref());
            if let Some(bytes) = bytes {
                draft.set_text("bytes", bytes);
            }
        }
    }
}

fn content_json(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(pieces) => {
            let pieces: Vec<String> = pieces.iter().map(piece_json).collect();
            format!("[{}]", pieces.join(","))
        }
    }
}

fn piece_json(piece: &Piece<'_>) -> String {
    let mut draft = Draft::new();
    match &piece.kind {
        PieceKind::Text(text) => draft.set_text("text", text),
        PieceKind::Blob { media, data } => {
            draft.set_opt("media", media.as_deref());
            match data {
                Data::Inline(text) => draft.set_text("data", text),
                Data::Url(text) => draft.set_text("url", text),
                Data::File(text) => draft.set_text("file", text),
            }
        }
        PieceKind::Other(raw) => draft.set("other", raw.to_string()),
    }
    if !piece.extra.is_empty() {
        let mut extra = String::new();
        piece.extra.write_json(&mut extra);
        draft.set("extra", extra);
    }
    draft.render(None)
}

fn usage_draft<'a>(usage: &Usage) -> Draft<'a> {
    let mut draft = Draft::new();
    draft.set_number("input", usage.input);
    draft.set_number("output", usage.output);
    draft.set_number("cache_read", usage.cache_read);
    draft.set_number("cache_write", usage.cache_write);
    draft.set_number("reasoning", usage.reasoning);
    if let Some(cost) = usage.cost {
        draft.set("cost", cost.to_string());
    }
    draft
}

fn put_extra(extra: &Extra<'_>, draft: &mut Draft<'_>) {
    let mut origins = Draft::new();
    for (origin, residue) in extra.iter().filter(|(origin, _)| *origin != NAME) {
        let mut json = String::new();
        residue.write_json(&mut json);
        origins.set(origin.to_owned(), json);
    }
    if !origins.is_empty() {
        draft.nest("extra", origins);
    }
}

/// Reads an event; `None` when the object is not one of this version.
pub fn read<'a>(object: &mut Object<'a>) -> Option<Event<'a>> {
    if object.peek("v").and_then(crate::json::number)? != VERSION {
        return None;
    }
    let body = read_body(object)?;
    object.take("v");
    object.take("kind");
    let mut event = Event {
        time: object.take_iso("time"),
        session: object.take_str("session"),
        thread: object.take_str("thread"),
        id: object.take_str("id"),
        parent: object.take_str("parent"),
        group: object.take_str("group"),
        from: object.take_str("from"),
        to: object.take_str("to"),
        model: object.take_str("model"),
        cwd: object.take_str("cwd"),
        branch: object.take_str("branch"),
        version: object.take_str("version"),
        ..Event::new(body)
    };
    if object.peek_true("restates") {
        event.restates = object.take_bool("restates").unwrap_or(false);
    }
    event.part = read_part(object).unwrap_or_default();
    event.usage = read_usage(object);
    event.extra = read_extra(object);
    Some(event)
}

fn read_body<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let kind = object.peek_str("kind")?;
    Some(match kind.as_ref() {
        "fact" => Body::Fact { name: object.take_str("name")?, content: read_content(object) },
        "message" => {
            let role = object.peek_str("role").and_then(|role| Role::named(&role))?;
            let content = read_content(object)?;
            object.take("role");
            Body::Message { role, content }
        }
        "thinking" => Body::Thinking { content: read_content(object)? },
        "tool_call" => {
            let input = match object.take_text("input_text") {
                Some(text) => Input::Text(text),
                None => Input::Json(Cow::Borrowed(object.take("input")?)),
            };
            Body::ToolCall { name: object.take_str("name")?, call: object.take_str("call"), input }
        }
        "tool_result" => Body::ToolResult {
            content: read_content(object)?,
            name: object.take_str("name"),
            call: object.take_str("call"),
            error: object.take_bool("error"),
        },
        "compaction" => Body::Compaction { summary: read_content(object) },
        "failure" => Body::Failure { name: object.take_str("name"), content: read_content(object) },
        "stop" => Body::Stop {
            reason: object.take_str("reason"),
            success: object.take_bool("success"),
            content: read_content(object),
        },
        "other" => Body::Other { name: object.take_str("name"), bytes: object.take_text("bytes") },
        _ => return None,
    })
}

fn read_content<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    if let Some(text) = object.take_text("content") {
        return Some(Content::Text(text));
    }
    let pieces = items(object.peek("content")?)?.into_iter().map(read_piece).collect::<Option<Vec<_>>>()?;
    object.take("content");
    Some(Content::Pieces(pieces))
}

fn read_piece(raw: &str) -> Option<Piece<'_>> {
    let mut object = Object::parse(raw)?;
    let kind = if let Some(text) = object.take_text("text") {
        PieceKind::Text(text)
    } else if let Some(data) = read_data(&mut object) {
        PieceKind::Blob { media: object.take_str("media"), data }
    } else {
        PieceKind::Other(Cow::Borrowed(object.take("other")?))
    };
    let extra = object.open("extra").map(Object::rest);
    // A piece with keys of its own is of a later version, and one that says it has nothing of its own is spelled by nobody we
    // know: the caller keeps the whole line unread.
    if extra.as_ref().is_some_and(|extra| extra.0.is_empty()) {
        return None;
    }
    let extra = extra.unwrap_or_default();
    object.rest().0.iter().all(|(_, held)| *held == Held::Hole).then_some(Piece { kind, extra })
}

fn read_data<'a>(object: &mut Object<'a>) -> Option<Data<'a>> {
    let inline = object.take_text("data").map(Data::Inline);
    inline.or_else(|| object.take_text("url").map(Data::Url)).or_else(|| object.take_text("file").map(Data::File))
}

fn read_part(object: &mut Object<'_>) -> Option<Part> {
    let numbers = items(object.peek("part")?)?;
    let [index, of] = numbers.as_slice() else { return None };
    let number = |raw: &str| crate::json::number(raw).and_then(|number| u32::try_from(number).ok());
    let part = Part { index: number(index)?, of: number(of)? };
    if part == Part::default() || part.index >= part.of {
        return None;
    }
    object.take("part");
    Some(part)
}

fn read_usage(object: &mut Object<'_>) -> Option<Usage> {
    let mut numbers = object.open("usage")?;
    let mut usage = numbers.take_usage(["input", "output", "cache_read", "cache_write", "reasoning"]);
    usage.cost = numbers.take_float("cost");
    if !numbers.clone().rest().is_empty() {
        object.close("usage", numbers);
    }
    Some(usage)
}

fn read_extra<'a>(object: &mut Object<'a>) -> Extra<'a> {
    let mut extra = Extra::default();
    let Some(origins) = object.open("extra") else { return extra };
    let mut unread = Vec::new();
    for (name, held) in origins.rest().0 {
        match held {
            Held::Raw(Cow::Borrowed(raw)) if name != NAME && extra.iter().count() < ORIGINS_MAX => {
                match Object::parse(raw) {
                    Some(residue) if extra.get(&name).is_none() => extra.add(name, residue.rest()),
                    _ => unread.push((name, Held::Raw(Cow::Borrowed(raw)))),
                }
            }
            held => unread.push((name, held)),
        }
    }
    // What is in no format's words stays on the line, and an empty object with it.
    if !unread.is_empty() || extra.iter().next().is_none() {
        object.close_with("extra", Residue(unread));
    }
    extra
}

/// How many formats' words one event may hold. Real events hold those of one or two.
const ORIGINS_MAX: usize = 16;

/// What is left of a line whose event was read, under the wire's own name. Where nobody could read what the event stands for,
/// even nothing is left: it tells the event from bytes in this very file that are no line of it.
pub fn leave<'a>(event: &mut Event<'a>, rest: Residue<'a>) {
    if !rest.is_empty() || matches!(event.body, Body::Other { .. }) {
        event.extra.add(Cow::Borrowed(NAME), rest);
    }
}
