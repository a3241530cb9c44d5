//! Writes Chibi's entries, with the keys in the order of Chibi's own serializer.

use super::NAME;
use crate::formats::placeholder;
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::write::{Writer, WriterOutput};

/// Writes one entry per event. Chibi has no place for thoughts, failures and stops.
#[derive(Debug)]
pub struct ChibiWriter {
    synthesizer: Synthesizer,
    /// The entry of another system's compaction without a summary. Chibi has one entry for both, and the summary may follow.
    pending: Option<Vec<u8>>,
}

/// The context of another system's messages.
const CONTEXT: &str = "default";

impl ChibiWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ChibiWriter {
        ChibiWriter { synthesizer: Synthesizer::new(outline), pending: None }
    }

    fn entry(&mut self, event: &Event<'_>) -> Option<Vec<u8>> {
        let extra = event.extra.get(NAME);
        if let Body::Other { bytes: Some(bytes), .. } = &event.body {
            // Bytes that never were an entry return only to the file they came from.
            return (self.synthesizer.outline().origin == NAME).then(|| bytes.bytes().into_owned());
        }
        let fields = self.fields(event, extra)?;
        let mut draft = Draft::new();
        match (extra, &event.id) {
            (Some(_), None) => {}
            (Some(_), Some(id)) => draft.set_str("id", id),
            (None, _) => draft.set_str("id", &self.synthesizer.id(event)),
        }
        match (extra, &event.time) {
            (Some(_), None) => {}
            _ => draft.set("timestamp", self.synthesizer.time(event).seconds_json()),
        }
        draft.set_or("from", fields.from.as_deref(), &fields.default_from);
        draft.set_or("to", fields.to.as_deref(), fields.default_to);
        match (fields.content, &event.body) {
            (Some(content), _) => draft.set("content", content),
            (None, Body::Compaction { .. }) => draft.default_str("content", "Context compacted"),
            (None, _) => {}
        }
        draft.default_str("entry_type", fields.entry_type);
        if let Some(summary) = fields.summary {
            let mut metadata = Draft::new();
            metadata.set("summary", summary);
            draft.nest("metadata", metadata);
        }
        draft.set_opt("tool_call_id", fields.call.as_deref());
        if let Some(role) = event.role() {
            put_role(role, event, extra, &mut draft);
        }
        Some(draft.render(extra).into_bytes())
    }

    fn fields(&mut self, event: &Event<'_>, extra: Option<&ExtraFields<'_>>) -> Option<EntryFields> {
        let mut fields = EntryFields {
            from: event.from.as_deref().map(str::to_owned),
            to: event.to.as_deref().map(str::to_owned),
            ..EntryFields::default()
        };
        let text = |content: &Content<'_>| Some(placeholder::joined(content).to_json());
        match &event.body {
            Body::Message { role, content } => {
                fields.entry_type = "message";
                (fields.default_from, fields.default_to) = match role {
                    Role::Assistant => (CONTEXT.to_owned(), "user"),
                    Role::System | Role::Developer => ("system".to_owned(), CONTEXT),
                    Role::User | Role::Tool | Role::Unknown => ("user".to_owned(), CONTEXT),
                };
                fields.content = text(content);
            }
            Body::ToolCall { call, name, input } => {
                fields.entry_type = "tool_call";
                fields.default_from = CONTEXT.to_owned();
                fields.to = Some(name.to_string());
                // Chibi pairs by position if there is no id, so none is synthesized.
                self.synthesizer.pairing.call(call.as_deref(), name);
                fields.call = call.as_deref().map(str::to_owned);
                fields.content = Some(input.to_text().to_json());
            }
            Body::ToolResult { call, name, content, .. } => {
                fields.entry_type = "tool_result";
                fields.default_to = CONTEXT;
                let pair = self.synthesizer.pairing.result(call.as_deref());
                fields.from = name.as_deref().map(str::to_owned);
                fields.default_from = pair.as_ref().map_or("tool", |(_, tool)| tool).to_owned();
                fields.call = call.as_deref().map(str::to_owned);
                fields.content = text(content);
            }
            Body::Compaction { summary } => {
                fields.entry_type = "compaction";
                (fields.default_from, fields.default_to) = ("system".to_owned(), CONTEXT);
                fields.summary = summary.as_ref().and_then(text);
            }
            Body::Fact { content, .. } if extra.is_some() => fields.content = content.as_ref().and_then(text),
            Body::Other { .. } if extra.is_some() => {}
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {
                return None;
            }
        }
        Some(fields)
    }
}

/// The fields of an entry, as taken from an event.
#[derive(Default)]
struct EntryFields {
    entry_type: &'static str,
    from: Option<String>,
    to: Option<String>,
    default_from: String,
    default_to: &'static str,
    content: Option<String>,
    summary: Option<String>,
    call: Option<String>,
}

impl Writer for ChibiWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            let Some(entry) = self.entry(event) else { continue };
            let foreign = event.extra.get(NAME).is_none();
            match &event.body {
                Body::Compaction { summary: Some(_) } if foreign => self.pending = None,
                _ => self.finish(out),
            }
            match &event.body {
                Body::Compaction { summary: None } if foreign => self.pending = Some(entry),
                _ => out.line(entry),
            }
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        if let Some(entry) = self.pending.take() {
            out.line(entry);
        }
    }
}

/// Writes a role only if Chibi's rule would not find it. New entries state it, as current Chibi does.
fn put_role(role: Role, event: &Event<'_>, extra: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let name = match role {
        Role::Assistant => "agent",
        Role::System | Role::Developer => "system",
        Role::User | Role::Tool | Role::Unknown => "user",
    };
    let known = |role: &str| matches!(role, "user" | "agent" | "system");
    let stated = extra.and_then(|extra| extra.text("role")).filter(|role| known(role));
    let implied = if event.to.as_deref() == Some("user") { "agent" } else { "user" };
    let prompt = extra
        .and_then(|extra| extra.text("entry_type"))
        .is_some_and(|entry_type| entry_type.starts_with("system_prompt"));
    if extra.is_none() || prompt || stated.as_deref().unwrap_or(implied) == name {
        draft.default_str("role", name);
    } else {
        draft.set_str("role", name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chibi::Chibi;

    fn written(events: &[Event<'_>]) -> Vec<String> {
        let bytes = crate::write::all(&Chibi, &Outline::of("claude-code", events), events);
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_entry_without_a_known_key_order_gets_the_order_of_chibi() {
        let entry = r#"{"id":"1","timestamp":1,"from":"system","to":"default","content":"","entry_type":"compaction","metadata":{"summary":"s"}}"#;
        let mut read = crate::read::Collected::default();
        let mut reading = crate::read::Reading::new(&Chibi, crate::format::Wanted::All);
        reading.feed(entry.as_bytes(), &mut read);
        reading.end(&mut read);
        // Such an event comes from the wire.
        let mut event = read.events.remove(0);
        let extra = r#"{"content":"","entry_type":"compaction"}"#;
        event.extra =
            crate::model::Extra::of(&super::super::INFO, crate::json::Object::parse(extra).unwrap().into_extra());
        assert_eq!(written(&[event]), [entry]);
    }

    #[test]
    fn a_compaction_and_its_summary_are_one_entry() {
        let bare = || Event::new(Body::Compaction { summary: None });
        let with_summary = || Event::new(Body::Compaction { summary: Some(Content::text("we named trees")) });
        let message = || Event::new(Body::Message { role: Role::User, content: Content::text("go on") });
        let one = written(&[bare(), with_summary(), message()]);
        assert_eq!(one.len(), 2);
        assert!(one[0].contains("we named trees"));
        assert_eq!(written(&[bare(), message(), with_summary()]).len(), 3);
        assert_eq!(written(&[bare()]).len(), 1);
    }
}
