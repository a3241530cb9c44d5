//! Reads message lines, the header line and lines that hold a whole conversation. The reader keeps no state between lines.

use memchr::memmem;

use super::{CONVERSATION, INFO, TITLE_LOCKED, TOOLS, chat};
use crate::format::Wanted;
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, NoteKind};
use crate::read::{At, Objects, Sink};

/// Reads one line at a time.
#[derive(Debug)]
pub struct ChatReader {
    /// The fields that the caller needs.
    want: Wanted,
    usage: memmem::Finder<'static>,
}

impl ChatReader {
    /// A reader for the wanted fields.
    pub fn new(want: Wanted) -> ChatReader {
        ChatReader { want, usage: memmem::Finder::new(b"\"usage\"") }
    }
}

impl Objects for ChatReader {
    fn object(&mut self, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        if object.has("role") {
            let has_calls = object.peek("tool_calls").is_some_and(|raw| raw != "null" && raw != "[]");
            return match message(object) {
                Ok(mut events) => {
                    let is_read = events.iter().any(|event| matches!(event.body, Body::ToolCall { .. }));
                    if has_calls && !is_read {
                        at.note(NoteKind::UnknownType, "tool calls in an unknown form; they are kept unparsed", out);
                    }
                    at.emit(&mut events, out);
                }
                Err(object) => {
                    let role = object.peek_str("role");
                    at.emit_unknown(&INFO, role.as_deref(), object, out);
                }
            };
        }
        if object.peek("_meta").is_some_and(|raw| raw.starts_with('{')) {
            return at.emit(&mut header(object), out);
        }
        match conversation(object) {
            Ok(mut events) => {
                chat::note_unknown(&events, at, out);
                at.emit(&mut events, out);
            }
            Err(object) => {
                let name = object.keys().next().map(str::to_owned);
                at.emit_unknown(&INFO, name.as_deref(), object, out);
            }
        }
    }

    fn skips(&self, line: &[u8]) -> bool {
        // Few messages state usage.
        self.want == Wanted::Usage && self.usage.find(line).is_none()
    }
}

/// A message on a line of its own. Programs that log responses may add model and usage; in a list of messages the same fields
/// would repeat those of earlier responses.
fn message(mut object: Object<'_>) -> Result<Vec<Event<'_>>, Object<'_>> {
    if !object.has("usage") && !object.has("model") {
        return chat::message(object, &INFO);
    }
    let whole = object.clone();
    let usage = chat::usage::take(&mut object);
    let model = object.take_name("model");
    let Ok(mut events) = chat::message(object, &INFO) else { return Err(whole) };
    for (at, event) in events.iter_mut().enumerate() {
        event.model.clone_from(&model);
        event.usage = usage.filter(|_| at == 0);
    }
    Ok(events)
}

/// CycoD's header line: the title, and whether it is locked.
fn header(mut object: Object<'_>) -> Vec<Event<'_>> {
    let mut title = None;
    let mut locked = None;
    if let Some(mut meta) = object.open("_meta") {
        title = meta.take_text("title");
        if meta.peek("titleLocked") == Some("true") {
            meta.take("titleLocked");
            locked = Some(Event::new(Body::Fact { fact: TITLE_LOCKED.into(), content: None }));
        }
        object.close("_meta", meta);
    }
    let name = if title.is_some() { "title" } else { "_meta" };
    let mut event = Event::new(Body::Fact { fact: name.into(), content: title.map(Content::Text) });
    event.extra = Extra::of(&INFO, object.into_extra());
    std::iter::once(event).chain(locked).collect()
}

/// A line of a training file: a fact for the line, one for its tools, and the events of its messages.
fn conversation(mut object: Object<'_>) -> Result<Vec<Event<'_>>, Object<'_>> {
    let Some(messages) = object.peek("messages").and_then(crate::json::items).filter(|items| !items.is_empty()) else {
        return Err(object);
    };
    object.take("messages");
    let tools = chat::tools(&mut object, TOOLS, &INFO);
    let mut events = vec![Event::new(Body::Fact { fact: CONVERSATION.into(), content: None })];
    events.extend(tools);
    for raw in messages {
        events.extend(chat::element(raw, &INFO));
    }
    if let Some(first) = events.first_mut() {
        first.extra = Extra::of(&INFO, object.into_extra());
    }
    Ok(events)
}
