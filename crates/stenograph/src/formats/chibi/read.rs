//! Reads Chibi's entries. The reader keeps no state between entries; a fold pairs calls and results.

use super::INFO;
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, Input, Role};
use crate::read::{At, Objects, Sink};
use crate::text::Text;
use crate::time::TimeUnit;

/// Reads one entry at a time.
#[derive(Debug)]
pub struct ChibiReader;

impl Objects for ChibiReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let entry_type = object.peek_str("entry_type");
        // An entry of an unknown type still has an id, a time and an address.
        let body = body(entry_type.as_deref(), &mut object).unwrap_or_else(|| {
            at.note_unknown(entry_type.as_deref(), out);
            Body::Other { name: entry_type, bytes: None }
        });
        let mut event = Event {
            id: object.take_str("id"),
            time: object.take_time("timestamp", TimeUnit::Seconds),
            from: object.take_str("from"),
            to: object.take_str("to"),
            ..Event::new(body)
        };
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}

/// The body of an entry. `None` if no release of Chibi wrote the type, or if the entry lacks the content its type needs.
fn body<'a>(entry_type: Option<&str>, object: &mut Object<'a>) -> Option<Body<'a>> {
    Some(match entry_type? {
        "message" => Body::Message { role: role(object), content: content(object)? },
        "system_prompt" | "system_prompt_changed" => Body::Message { role: Role::System, content: content(object)? },
        "tool_call" | "flow_control_call" => {
            let name = object.peek_str("to")?;
            let input = Input::from_text(object.take_text("content")?);
            object.take("to");
            Body::ToolCall { call: object.take_str("tool_call_id"), name, input }
        }
        "tool_result" | "flow_control_result" => Body::ToolResult {
            content: content(object)?,
            call: object.take_str("tool_call_id"),
            name: object.take_str("from"),
            error: None,
        },
        "compaction" => Body::Compaction { summary: summary(object) },
        name @ ("context_created" | "archival" | "control_transfer") => {
            Body::Fact { fact: name.to_owned().into(), content: content(object) }
        }
        _ => return None,
    })
}

fn content<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    object.take_text("content").map(Content::Text)
}

fn summary<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    let mut metadata = object.open("metadata")?;
    let summary = metadata.take_text("summary");
    object.close("metadata", metadata);
    summary.map(Content::Text)
}

/// The role of a message by Chibi's own rule: the field `role`, or else the receiver of the message.
pub fn role(object: &Object<'_>) -> Role {
    let text = |key: &str| object.peek(key).and_then(Text::from_json).and_then(Text::exact);
    match text("role").as_deref() {
        Some("user") => Role::User,
        Some("agent") => Role::Assistant,
        Some("system") => Role::System,
        _ if text("to").as_deref() == Some("user") => Role::Assistant,
        _ => Role::User,
    }
}
