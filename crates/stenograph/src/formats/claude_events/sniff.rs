//! Tells flat events from real Claude Code records and from Chat Completions messages, both of which share words with them.

use std::borrow::Cow;

use crate::format::Sniff;
use crate::json::{Object, items};

/// How sure the first records make us.
pub fn sniff(objects: &[Object<'_>]) -> Sniff {
    let (mut strange, mut bare, mut flat, mut texts, mut blocks) = (0, 0, 0, 0, 0);
    for object in objects {
        match look(object) {
            Look::Foreign => return Sniff::No,
            Look::Strange => strange += 1,
            Look::Bare => bare += 1,
            Look::Text => texts += 1,
            Look::Blocks => blocks += 1,
            Look::Flat => flat += 1,
        }
    }
    match flat + texts + blocks {
        // A log may begin with a message: its place tells what it is.
        0 if bare > 0 && strange == 0 => Sniff::Maybe,
        0 => Sniff::No,
        seen if seen <= strange => Sniff::No,
        _ if flat > 0 && strange == 0 => Sniff::Certain,
        _ => Sniff::Likely,
    }
}

enum Look {
    /// A record of another system.
    Foreign,
    /// No line of this format, nor of any other that we know.
    Strange,
    /// A message that Chat Completions spells the same way.
    Bare,
    /// A text with a type: much else could be that.
    Text,
    /// A message with calls or results among its blocks.
    Blocks,
    /// An event that only this format spells so.
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

fn look(object: &Object<'_>) -> Look {
    let has = |key: &str| object.has(key);
    if FOREIGN.into_iter().any(has) {
        return Look::Foreign;
    }
    let flat_when = |good: bool| if good { Look::Flat } else { Look::Strange };
    match (object.peek_str("type").as_deref(), object.peek_str("role").as_deref()) {
        (Some("tool_use"), None) => flat_when(has("name") && has("input")),
        (Some("tool_result"), None) => flat_when(has("output") || (has("content") && has("tool_use_id"))),
        (Some("text"), None) if has("text") && !has("time") => Look::Text,
        (Some("error"), None) => flat_when(has("error")),
        (Some("stop"), None) => flat_when(has("stop_reason") || has("success")),
        (Some("result"), None) => flat_when(has("result") && !has("key")),
        (None, Some("user" | "assistant" | "system")) if has("content") => message(object),
        _ => Look::Strange,
    }
}

fn message(object: &Object<'_>) -> Look {
    let list = object.peek("content").and_then(items).unwrap_or_default();
    let speaks = |raw: &&str| {
        let name = Object::parse(raw).and_then(|block| block.peek_str("type").map(Cow::into_owned));
        name.is_some_and(|name| matches!(name.as_str(), "tool_use" | "tool_result" | "thinking"))
    };
    if list.iter().any(speaks) { Look::Blocks } else { Look::Bare }
}
