//! Reads lines of the wire as events.

use std::borrow::Cow;

use super::{NAME, VERSION};
use crate::formats::steno::INFO;
use crate::json::{Object, items};
use crate::model::{
    Body, Content, Data, Event, Extra, ExtraFields, ForkOrigin, Held, Input, Origin, Part, Piece, PieceKind, Role,
    ServiceSpeed, ServiceTier, Usage,
};

/// Reads an event; `None` if the object is not an event of this version.
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
        stop_reason: object.take_str("stop_reason"),
        request_id: object.take_str("request_id"),
        ..Event::new(body)
    };
    event.forked_from = read_fork(object);
    if object.peek_true("restates") {
        event.restates = object.take_bool("restates").unwrap_or(false);
    }
    event.part = read_part(object).unwrap_or_default();
    event.usage = read_usage(object);
    event.extra = read_extra(object);
    Some(event)
}

/// The keys that every event may have.
const KEYS: [&str; 20] = [
    "v",
    "kind",
    "time",
    "session",
    "thread",
    "id",
    "parent",
    "group",
    "from",
    "to",
    "model",
    "cwd",
    "branch",
    "version",
    "stop_reason",
    "request_id",
    "forked_from",
    "restates",
    "part",
    "extra",
];

/// The error in a line of this version and a known kind that is not a valid event: the fields that are missing or have the
/// wrong type, and the keys that no event of this kind has.
pub fn problem(object: &Object<'_>) -> Option<String> {
    if object.peek("v").and_then(crate::json::number)? != VERSION {
        return None;
    }
    let kind = object.peek_str("kind")?;
    let (needed, known): (&[&str], &[&str]) = match kind.as_ref() {
        "fact" => (&["name"], &["name", "content"]),
        "message" => (&["role", "content"], &["role", "content"]),
        "thinking" => (&["content"], &["content"]),
        "tool_call" => (&["name", "input"], &["name", "call", "input", "input_text"]),
        "tool_result" => (&["content"], &["content", "name", "call", "error"]),
        _ => return None,
    };
    let fits = |key: &str| match key {
        "name" => object.peek_str(key).is_some(),
        "role" => object.peek_str(key).is_some_and(|role| Role::named(&role).is_some()),
        "input" => object.has("input") || object.has("input_text"),
        _ => read_content(&mut object.clone()).is_some(),
    };
    let wrong: Vec<String> = needed
        .iter()
        .filter(|key| !fits(key))
        .map(|key| if object.has(key) { format!("{key:?} has the wrong type") } else { format!("{key:?} is missing") })
        .collect();
    let is_unknown = |key: &&str| *key != "usage" && !KEYS.contains(key) && !known.contains(key);
    let unknown: Vec<String> =
        object.keys().filter(is_unknown).take(UNKNOWN_KEYS_MAX).map(|key| format!("{key:?}")).collect();
    let unknown = if unknown.is_empty() { String::new() } else { format!(" (unknown keys: {})", unknown.join(", ")) };
    (!wrong.is_empty()).then(|| format!("not a {kind}: {}{unknown}", wrong.join(", ")))
}

/// The most unknown keys that the message lists.
const UNKNOWN_KEYS_MAX: usize = 4;

fn read_body<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let kind = object.peek_str("kind")?;
    Some(match kind.as_ref() {
        "fact" => Body::Fact { fact: object.take_str("name")?.into(), content: read_content(object) },
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
    let extra = object.open("extra").map(Object::into_extra);
    // A piece with unknown keys is of a later version, and no known writer spells an empty `extra`: the caller keeps the whole
    // line unread.
    if extra.as_ref().is_some_and(|extra| extra.0.is_empty()) {
        return None;
    }
    let extra = extra.unwrap_or_default();
    object.into_extra().0.iter().all(|(_, held)| *held == Held::Hole).then_some(Piece { kind, extra })
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

fn read_fork<'a>(object: &mut Object<'a>) -> Option<Box<ForkOrigin<'a>>> {
    let mut fork = object.open("forked_from")?;
    let origin = fork.take_str("session").map(|session| ForkOrigin { session, record: fork.take_str("record") });
    if origin.is_none() || !fork.clone().into_extra().is_empty() {
        object.close("forked_from", fork);
    }
    origin.map(Box::new)
}

fn read_usage(object: &mut Object<'_>) -> Option<Usage> {
    let mut numbers = object.open("usage")?;
    let mut usage = numbers.take_usage(["input", "output", "cache_read", "cache_write", "reasoning"]);
    usage.cache_write_1h = numbers.take_number("cache_write_1h");
    usage.cache_write_5m = numbers.take_number("cache_write_5m");
    usage.searches = numbers.take_number("searches");
    usage.fetches = numbers.take_number("fetches");
    usage.service_tier = numbers.take_word("service_tier", ServiceTier::named);
    usage.speed = numbers.take_word("speed", ServiceSpeed::named);
    usage.cost = numbers.take_dollars("cost");
    if !numbers.clone().into_extra().is_empty() {
        object.close("usage", numbers);
    }
    Some(usage)
}

fn read_extra<'a>(object: &mut Object<'a>) -> Extra<'a> {
    let mut extra = Extra::default();
    let Some(origins) = object.open("extra") else { return extra };
    if origins.duplicate().is_some() {
        // The format is ambiguous: the field stays on the line.
        object.close("extra", origins);
        return extra;
    }
    let mut unread = Vec::new();
    for (name, held) in origins.into_extra().0 {
        match held {
            Held::Raw(Cow::Borrowed(raw)) if name != NAME && extra.iter().count() < ORIGINS_MAX => {
                match Object::parse(raw) {
                    Some(fields) if extra.get(&name).is_none() => {
                        extra.add(crate::formats::origin(name), fields.into_extra());
                    }
                    _ => unread.push((name, Held::Raw(Cow::Borrowed(raw)))),
                }
            }
            held => unread.push((name, held)),
        }
    }
    // Values that are not the extra fields of a format stay on the line, and so does an empty object.
    if !unread.is_empty() || extra.iter().next().is_none() {
        object.close_with("extra", ExtraFields(unread));
    }
    extra
}

/// The most formats that the extra fields of one event may come from. Real events have one or two.
const ORIGINS_MAX: usize = 16;

/// Adds the unknown fields of a line to its event, under the name of the wire. An event of kind `other` gets the entry even if
/// it is empty: it distinguishes a valid line from bytes in a native file that are not a line of the wire.
pub(crate) fn add_unknown_fields<'a>(event: &mut Event<'a>, fields: ExtraFields<'a>) {
    if !fields.is_empty() || matches!(event.body, Body::Other { .. }) {
        event.extra.add(Origin::Known(&INFO), fields);
    }
}
