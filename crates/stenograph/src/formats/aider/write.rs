//! Writes Aider's chat history back, one block per event.

use super::{BREAK, NAME, OUTPUT, STARTED, USER, read};
use crate::formats::blocks::{blank, original_spelling};
use crate::model::{Body, Event, Outline, Role};
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// Writes one block per event.
#[derive(Debug)]
pub struct AiderWriter {
    is_own: bool,
}

impl AiderWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> AiderWriter {
        AiderWriter { is_own: outline.origin == NAME }
    }
}

impl Writer for AiderWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events.iter().filter(|_| self.is_own) {
            let reread = |bytes: &[u8]| vec![Event::new(read::body(bytes).0)];
            let bytes = original_spelling(NAME, std::slice::from_ref(event), reread).or_else(|| block(event));
            if let Some(bytes) = bytes {
                out.record(bytes);
                out.glue(format!("\n{}\n", blank(NAME, event)));
            }
        }
    }
}

/// The bytes of an event.
pub fn block(event: &Event<'_>) -> Option<Vec<u8>> {
    let prefixed = |prefix: &str| {
        let text = event.content()?.joined().bytes().into_owned();
        let mut block = Vec::with_capacity(text.len() + 16);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if at > 0 {
                block.push(b'\n');
            }
            block.extend_from_slice(prefix.as_bytes());
            block.extend_from_slice(line);
            block.extend_from_slice(BREAK.as_bytes());
        }
        Some(block)
    };
    match &event.body {
        Body::Fact { content: None, .. } => {
            let time = event.time.as_ref().and_then(Time::to_iso)?;
            Some(format!("{STARTED}{}", time.trim_end_matches('z').replace('T', " ")).into_bytes())
        }
        Body::Fact { content: Some(_), .. } => prefixed(OUTPUT),
        Body::Message { role: Role::User, .. } => prefixed(USER),
        Body::Message { content, .. } => Some(content.joined().bytes().into_owned()),
        Body::Other { bytes: Some(bytes), .. } => Some(bytes.bytes().into_owned()),
        Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Compaction { .. } => None,
        Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => None,
    }
}
