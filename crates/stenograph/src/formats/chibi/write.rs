//! Writes Chibi's entries, with the keys in the order Chibi's own serialiser has them.

use super::NAME;
use crate::formats::placeholder;
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::write::{Output, Writer};

/// Writes one entry an event. Chibi has no place for thoughts, failures and stops.
#[derive(Debug)]
pub struct Entries {
    stand_ins: Synthesizer,
    /// The entry of another system's compaction that has no summary: Chibi has one entry for both, and the summary may follow.
    held: Option<Vec<u8>>,
}

/// The context that messages of another system belong to.
const CONTEXT: &str = "default";

impl Entries {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Entries {
        Entries { stand_ins: Synthesizer::new(outline), held: None }
    }

    fn entry(&mut self, event: &Event<'_>) -> Option<Vec<u8>> {
        let own = event.extra.get(NAME);
        if let Body::Other { bytes: Some(bytes), .. } = &event.body {
            // Bytes that never were an entry return to the file they came from, and go nowhere else.
            return (self.stand_ins.outline().origin == NAME).then(|| bytes.bytes().into_owned());
        }
        let said = self.said(event, own)?;
        let mut draft = Draft::new();
        match (own, &event.id) {
            (Some(_), None) => {}
            (Some(_), Some(id)) => draft.set_str("id", id),
            (None, _) => draft.set_str("id", &self.stand_ins.id(event)),
        }
        match (own, &event.time) {
            (Some(_), None) => {}
            _ => draft.set("timestamp", self.stand_ins.time(event).seconds_json()),
        }
        draft.set_or("from", said.from.as_deref(), &said.from_stand_in);
        draft.set_or("to", said.to.as_deref(), said.to_stand_in);
        match (said.content, &event.body) {
            (Some(content), _) => draft.set("content", content),
            (None, Body::Compaction { .. }) => draft.default_str("content", "Context compacted"),
            (None, _) => {}
        }
        draft.default_str("entry_type", said.entry_type);
        if let Some(summary) = said.summary {
            let mut metadata = Draft::new();
            metadata.set("summary", summary);
            draft.nest("metadata", metadata);
        }
        draft.set_opt("tool_call_id", said.call.as_deref());
        if let Some(role) = event.role() {
            put_role(role, event, own, &mut draft);
        }
        Some(draft.render(own).into_bytes())
    }

    fn said(&mut self, event: &Event<'_>, own: Option<&ExtraFields<'_>>) -> Option<Said> {
        let mut said = Said {
            from: event.from.as_deref().map(str::to_owned),
            to: event.to.as_deref().map(str::to_owned),
            ..Said::default()
        };
        let text = |content: &Content<'_>| Some(placeholder::joined(content).to_json());
        match &event.body {
            Body::Message { role, content } => {
                said.entry_type = "message";
                (said.from_stand_in, said.to_stand_in) = match role {
                    Role::Assistant => (CONTEXT.to_owned(), "user"),
                    Role::System | Role::Developer => ("system".to_owned(), CONTEXT),
                    Role::User | Role::Tool | Role::Unknown => ("user".to_owned(), CONTEXT),
                };
                said.content = text(content);
            }
            Body::ToolCall { call, name, input } => {
                said.entry_type = "tool_call";
                said.from_stand_in = CONTEXT.to_owned();
                said.to = Some(name.to_string());
                // Chibi pairs by position where there is no id, so none has to be made up.
                self.stand_ins.pairing.call(call.as_deref(), name);
                said.call = call.as_deref().map(str::to_owned);
                said.content = Some(input.to_text().to_json());
            }
            Body::ToolResult { call, name, content, .. } => {
                said.entry_type = "tool_result";
                said.to_stand_in = CONTEXT;
                let pair = self.stand_ins.pairing.result(call.as_deref());
                said.from = name.as_deref().map(str::to_owned);
                said.from_stand_in = pair.as_ref().map_or("tool", |(_, tool)| tool).to_owned();
                said.call = call.as_deref().map(str::to_owned);
                said.content = text(content);
            }
            Body::Compaction { summary } => {
                said.entry_type = "compaction";
                (said.from_stand_in, said.to_stand_in) = ("system".to_owned(), CONTEXT);
                said.summary = summary.as_ref().and_then(text);
            }
            Body::Fact { content, .. } if own.is_some() => said.content = content.as_ref().and_then(text),
            Body::Other { .. } if own.is_some() => {}
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {
                return None;
            }
        }
        Some(said)
    }
}

/// What an entry needs of an event.
#[derive(Default)]
struct Said {
    entry_type: &'static str,
    from: Option<String>,
    to: Option<String>,
    from_stand_in: String,
    to_stand_in: &'static str,
    content: Option<String>,
    summary: Option<String>,
    call: Option<String>,
}

impl Writer for Entries {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            let Some(entry) = self.entry(event) else { continue };
            let foreign = event.extra.get(NAME).is_none();
            match &event.body {
                Body::Compaction { summary: Some(_) } if foreign => self.held = None,
                _ => self.finish(out),
            }
            match &event.body {
                Body::Compaction { summary: None } if foreign => self.held = Some(entry),
                _ => out.line(entry),
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if let Some(entry) = self.held.take() {
            out.line(entry);
        }
    }
}

/// A role is only written where Chibi's rule would not find it: new entries state it, as today's Chibi does.
fn put_role(role: Role, event: &Event<'_>, own: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let name = match role {
        Role::Assistant => "agent",
        Role::System | Role::Developer => "system",
        Role::User | Role::Tool | Role::Unknown => "user",
    };
    let known = |role: &str| matches!(role, "user" | "agent" | "system");
    let stated = own.and_then(|own| own.text("role")).filter(|role| known(role));
    let implied = if event.to.as_deref() == Some("user") { "agent" } else { "user" };
    let prompt =
        own.and_then(|own| own.text("entry_type")).is_some_and(|entry_type| entry_type.starts_with("system_prompt"));
    if own.is_none() || prompt || stated.as_deref().unwrap_or(implied) == name {
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
    fn an_entry_whose_order_is_not_known_has_the_order_of_chibi() {
        let entry = r#"{"id":"1","timestamp":1,"from":"system","to":"default","content":"","entry_type":"compaction","metadata":{"summary":"s"}}"#;
        let mut read = crate::read::Collected::default();
        let mut reading = crate::read::Reading::new(&Chibi, crate::format::Want::All);
        reading.feed(entry.as_bytes(), &mut read);
        reading.end(&mut read);
        // As an event is that went over the wire.
        let mut event = read.events.remove(0);
        let left = r#"{"content":"","entry_type":"compaction"}"#;
        event.extra =
            crate::model::Extra::of(&super::super::INFO, crate::json::Object::parse(left).unwrap().into_extra());
        assert_eq!(written(&[event]), [entry]);
    }

    #[test]
    fn a_compaction_and_its_summary_are_one_entry() {
        let bare = || Event::new(Body::Compaction { summary: None });
        let summed = || Event::new(Body::Compaction { summary: Some(Content::text("we named trees")) });
        let said = || Event::new(Body::Message { role: Role::User, content: Content::text("go on") });
        let one = written(&[bare(), summed(), said()]);
        assert_eq!(one.len(), 2);
        assert!(one[0].contains("we named trees"));
        assert_eq!(written(&[bare(), said(), summed()]).len(), 3);
        assert_eq!(written(&[bare()]).len(), 1);
    }
}
