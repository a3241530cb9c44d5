//! Distinguishes flat events from real Claude Code records and from Chat Completions messages, which share words with them.

use std::borrow::Cow;

use crate::format::Sniff;
use crate::json::{Object, items};

/// How certain the first records make this format.
pub fn sniff(objects: &[Object<'_>]) -> Sniff {
    let (mut unknown, mut bare, mut flat, mut texts, mut blocks) = (0, 0, 0, 0, 0);
    for object in objects {
        match line_shape(object) {
            LineShape::Foreign => return Sniff::No,
            LineShape::Unknown => unknown += 1,
            LineShape::Bare => bare += 1,
            LineShape::Text => texts += 1,
            LineShape::Blocks => blocks += 1,
            LineShape::Flat => flat += 1,
        }
    }
    match flat + texts + blocks {
        // A log may begin with a message; its path then decides.
        0 if bare > 0 && unknown == 0 => Sniff::Maybe,
        0 => Sniff::No,
        seen if seen <= unknown => Sniff::No,
        _ if flat > 0 && unknown == 0 => Sniff::Certain,
        _ => Sniff::Likely,
    }
}

enum LineShape {
    /// A record of another system.
    Foreign,
    /// A line of no known format.
    Unknown,
    /// A message that Chat Completions writes the same way.
    Bare,
    /// A text with a type, which many formats could have.
    Text,
    /// A message with calls or results among its blocks.
    Blocks,
    /// An event that only this format has.
    Flat,
}

/// Keys of the records of other systems that also have lines of these types.
const FOREIGN: [&str; 12] = [
    "sessionId",
    "sessionID",
    "session_id",
    "uuid",
    "messageID",
    "part",
    "parts",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "entry_type",
    "payload",
];

fn line_shape(object: &Object<'_>) -> LineShape {
    let has = |key: &str| object.has(key);
    if FOREIGN.into_iter().any(has) {
        return LineShape::Foreign;
    }
    let flat_when = |good: bool| if good { LineShape::Flat } else { LineShape::Unknown };
    match (object.peek_str("type").as_deref(), object.peek_str("role").as_deref()) {
        (Some("tool_use"), None) => flat_when(has("name") && has("input")),
        (Some("tool_result"), None) => flat_when(has("output") || (has("content") && has("tool_use_id"))),
        (Some("text"), None) if has("text") && !has("time") => LineShape::Text,
        (Some("error"), None) => flat_when(has("error")),
        (Some("stop"), None) => flat_when(has("stop_reason") || has("success")),
        (Some("result"), None) => flat_when(has("result") && !has("key")),
        (None, Some("user" | "assistant" | "system")) if has("content") => message(object),
        _ => LineShape::Unknown,
    }
}

fn message(object: &Object<'_>) -> LineShape {
    let list = object.peek("content").and_then(items).unwrap_or_default();
    let has_tools = |raw: &&str| {
        let name = Object::parse(raw).and_then(|block| block.peek_str("type").map(Cow::into_owned));
        name.is_some_and(|name| matches!(name.as_str(), "tool_use" | "tool_result" | "thinking"))
    };
    if list.iter().any(has_tools) { LineShape::Blocks } else { LineShape::Bare }
}
