//! Writes devflow's document as Go's `MarshalIndent` does. The header comes first, from what is known of the session
//! beforehand; a turn is held back until none of its calls can get a result any more.

use std::collections::VecDeque;

use super::turn::{DevflowTurn, own_turn};
use super::{NAME, TURNS, go_json, header};
use crate::formats::document::{DocumentFrame, DocumentPart, closed};
use crate::frame::Items;
use crate::json::indent;
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role, Usage};
use crate::synthesizer::Synthesizer;
use crate::text::Text;
use crate::write::{Writer, WriterOutput};

/// Writes turns. devflow has no place for thoughts and failures; the header states how the session stopped.
#[derive(Debug)]
pub struct DevflowWriter {
    synthesizer: Synthesizer,
    document: DocumentFrame,
    /// The turns not yet written, oldest first. Only the last one, and those with unanswered calls, can change.
    pending: VecDeque<DevflowTurn>,
    /// The time of the last event, in milliseconds.
    last_ms: Option<i64>,
}

/// How many turns may wait for the result of a call.
const PENDING_MAX: usize = 64;

impl DevflowWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> DevflowWriter {
        DevflowWriter {
            synthesizer: Synthesizer::new(outline),
            document: DocumentFrame::new(Items::Array(TURNS), "\n    ", "\n  "),
            pending: VecDeque::new(),
            last_ms: None,
        }
    }

    /// Writes the header of another system's session.
    fn begin_turns(&mut self, out: &mut WriterOutput) {
        if self.document.part == DocumentPart::Start {
            out.glue(header::opened(&header::of_session(self.synthesizer.outline(), &self.synthesizer.session())));
            self.document.part = DocumentPart::Items;
        }
    }

    /// Writes a header that was read from this format: the fields before the turns, or a whole document without turns.
    fn own_header(&mut self, event: &Event<'_>, extra: &ExtraFields<'_>, out: &mut WriterOutput) {
        self.flush(out);
        if event.name() != Some("session") {
            // Another such key after the list is not the list of turns.
            let json = header::stated(event).render(Some(extra));
            self.write_own_part(event, &json, out);
        } else if extra.raw(TURNS) == Some("[]") {
            // Of two such keys the last one is the list.
            let mut without_turns = extra.clone();
            if let Some(at) = extra.0.iter().rposition(|(key, _)| key == TURNS) {
                without_turns.0.remove(at);
            }
            let json = header::stated(event).render(Some(&without_turns));
            self.write_own_part(event, &json, out);
        } else {
            out.record(indent(&go_json::escaped(&header::stated(event).render(Some(extra))), 0));
            self.document.part = DocumentPart::Ended;
        }
    }

    fn write_own_part(&mut self, event: &Event<'_>, json: &str, out: &mut WriterOutput) {
        if event.name() == Some("session") {
            self.write_part(header::opened(json), out);
            self.document.part = DocumentPart::Items;
        } else {
            self.begin_turns(out);
            self.document.end(out);
            self.write_part(closed(&indent(&go_json::escaped(json), 0)), out);
        }
    }

    /// Writes the head or the end of a document. It is a record only in its own document: half an object cannot carry another
    /// source.
    fn write_part(&self, json: String, out: &mut WriterOutput) {
        if self.synthesizer.outline().origin == NAME {
            out.record(json);
        } else {
            out.glue(json);
        }
    }

    /// Writes bytes that never were a record back to the file they came from, and only there.
    fn unread(&mut self, bytes: &Text<'_>, out: &mut WriterOutput) {
        if self.synthesizer.outline().origin == NAME {
            self.flush(out);
            self.document.unread(bytes.bytes().into_owned(), None, out);
        }
    }

    fn put(&mut self, json: &str, out: &mut WriterOutput) {
        self.begin_turns(out);
        self.document.item(indent(&go_json::escaped(json), 2), out);
    }

    /// Writes the turns that can no longer change.
    fn write_finished(&mut self, out: &mut WriterOutput) {
        while let Some(first) = self.pending.front() {
            let may_call = first.is_assistant() && self.pending.iter().skip(1).all(DevflowTurn::is_result);
            if self.pending.len() == 1 || ((may_call || first.is_waiting()) && self.pending.len() <= PENDING_MAX) {
                return;
            }
            self.put_first(out);
        }
    }

    fn put_first(&mut self, out: &mut WriterOutput) {
        if let Some(turn) = self.pending.pop_front() {
            let json = turn.render(self.document.written + 1);
            self.put(&json, out);
        }
    }

    fn flush(&mut self, out: &mut WriterOutput) {
        while !self.pending.is_empty() {
            self.put_first(out);
        }
    }

    /// The turn that a call belongs to: the assistant's most recent one, unless a user or system message came since.
    fn calling_turn(&mut self) -> Option<&mut DevflowTurn> {
        self.pending.iter_mut().rev().find(|turn| !turn.is_result()).filter(|turn| turn.is_assistant())
    }

    /// Adds an event of another format, and tells whether it has a place.
    fn add(&mut self, event: &Event<'_>) -> Placement {
        let time_ms = event.time.as_ref().and_then(crate::time::Time::to_millis);
        let since_ms = self.last_ms;
        self.last_ms = self.last_ms.max(time_ms);
        let new = |role, content: &Content<'_>| DevflowTurn::new(role, content, event.time.as_ref()).after(since_ms);
        match &event.body {
            Body::Message { role, content } => {
                let mut turn = new(role_name(*role), content);
                turn.lasts_until(time_ms);
                self.pending.push_back(turn);
            }
            Body::ToolCall { call, name, input } => {
                if self.calling_turn().is_none() {
                    self.pending.push_back(new("assistant", &Content::text("")));
                }
                if let Some(turn) = self.calling_turn() {
                    turn.add_call(call.as_deref(), name, input);
                    turn.lasts_until(time_ms);
                }
            }
            Body::ToolResult { call, content, error, .. } => {
                let call = call.as_deref();
                let turn = self.pending.iter_mut().find(|turn| turn.awaits(call));
                match turn {
                    Some(turn) => {
                        turn.add_result(call, content, *error);
                        turn.lasts_until(time_ms);
                    }
                    None => self.pending.push_back(new("tool_result", content)),
                }
            }
            // Agents give the model the summary of a compaction as a user message.
            Body::Compaction { summary: Some(summary) } => {
                self.pending.push_back(DevflowTurn::new("user", summary, event.time.as_ref()));
            }
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Compaction { summary: None }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => return Placement::Nowhere,
        }
        Placement::InTurn
    }

    fn own_record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) -> Option<()> {
        let first = events.first()?;
        let extra = first.extra.get(NAME)?;
        match &first.body {
            Body::Fact { .. } => self.own_header(first, extra, out),
            _ => {
                self.flush(out);
                let json = own_turn(events)?;
                self.put(&json, out);
            }
        }
        Some(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    InTurn,
    Nowhere,
}

impl Writer for DevflowWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        if let [Event { body: Body::Other { bytes: Some(bytes), .. }, .. }] = events {
            return self.unread(bytes, out);
        }
        if self.own_record(events, out).is_some() {
            return;
        }
        let mut placement = Placement::Nowhere;
        let mut usage: Option<Usage> = None;
        for event in events {
            usage = usage.or(event.usage);
            if self.add(event) == Placement::InTurn {
                placement = Placement::InTurn;
            }
        }
        let turn = match (placement, events) {
            (Placement::InTurn, [.., Event { body: Body::ToolCall { .. }, .. }]) => self.calling_turn(),
            (Placement::InTurn, _) => self.pending.back_mut(),
            // A record that only counts tokens belongs to the answer before it.
            (Placement::Nowhere, [Event { body: Body::Fact { .. }, .. }]) => {
                self.pending.iter_mut().rev().find(|turn| turn.is_assistant())
            }
            (Placement::Nowhere, _) => None,
        };
        if let (Some(usage), Some(turn)) = (usage, turn) {
            turn.count(&usage);
        }
        self.write_finished(out);
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.flush(out);
        // An empty file of this format stays empty.
        if self.synthesizer.outline().origin != NAME {
            self.begin_turns(out);
        }
        if self.document.part == DocumentPart::Items {
            self.document.end(out);
            out.glue("]\n}");
        }
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "system",
        Role::User | Role::Unknown => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool_result",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::devflow::Devflow;
    use crate::model::{Data, Input, Kind, Piece, PieceKind};

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "run".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str, text: &'static str) -> Event<'static> {
        let content = Content::text(text);
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
    }

    /// The events that are read back, each by its kind, its call and its text.
    fn read_back(events: &[Event<'_>]) -> Vec<String> {
        let bytes = crate::write::all(&Devflow, &Outline::new("chibi"), events);
        let found = crate::read::all(&Devflow, &bytes);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        let text = |event: &Event<'_>| event.content().map(|content| content.joined().decode().into_owned());
        let show = |event: &Event<'_>| {
            format!("{} {} {}", event.kind().name(), event.call().unwrap_or("-"), text(event).unwrap_or_default())
        };
        let turns = found.events.iter().filter(|event| !matches!(event.kind(), Kind::Fact | Kind::Stop));
        turns.map(show).collect()
    }

    #[test]
    fn a_late_result_joins_its_call_and_a_stray_one_is_a_turn() {
        let events = [
            message(Role::Assistant, "one"),
            call("a"),
            call("b"),
            message(Role::User, "wait"),
            result("b", "B"),
            result("z", "Z"),
            result("a", "A"),
        ];
        let expected = [
            "message - one",
            "tool_call a ",
            "tool_result a A",
            "tool_call b ",
            "tool_result b B",
            "message - wait",
            "tool_result - Z",
        ];
        assert_eq!(read_back(&events), expected);
    }

    fn written(events: &[Event<'_>]) -> String {
        let total = events.iter().find_map(|event| event.usage).unwrap_or_default();
        let outline = Outline { total, ..Outline::of("codex", events) };
        String::from_utf8(crate::write::all(&Devflow, &outline, events)).unwrap()
    }

    #[test]
    fn a_token_count_after_an_answer_belongs_to_the_answer() {
        let mut token_count = Event::new(Body::Fact { fact: "usage".into(), content: None });
        token_count.usage = Some(Usage {
            input: Some(18),
            output: Some(7),
            cache_read: Some(300),
            cache_write: Some(20),
            ..Usage::default()
        });
        let text = written(&[message(Role::User, "go"), message(Role::Assistant, "ok"), call("a"), token_count]);
        assert!(text.contains(r#""totalTokensIn": 338"#), "{text}");
        let answer = text.split_once(r#""content": "ok""#).unwrap().1;
        assert!(answer.starts_with(",\n      \"tokensIn\": 338,\n      \"tokensOut\": 7,"), "{text}");
    }

    #[test]
    fn a_summary_becomes_a_message_and_an_image_a_placeholder() {
        let summary = Event::new(Body::Compaction { summary: Some(Content::text("So far: A.")) });
        let data = Data::Inline("aGk=".into());
        let image = Piece { kind: PieceKind::Blob { media: None, data }, extra: ExtraFields::default() };
        let content = Content::Pieces(vec![image]);
        let seen = Event::new(Body::ToolResult { call: Some("a".into()), name: None, content, error: None });
        assert_eq!(
            read_back(&[summary, call("a"), seen]),
            ["message - So far: A.", "tool_call a ", "tool_result a [1 item that is not text]"]
        );
    }

    #[test]
    fn a_call_needs_no_text() {
        assert_eq!(
            read_back(&[message(Role::User, "go"), call("a"), result("a", "A")]),
            ["message - go", "tool_call a ", "tool_result a A"]
        );
    }

    #[test]
    fn an_unanswered_call_does_not_hold_back_the_rest_for_ever() {
        let mut writing = crate::write::Writing::new(&Devflow, &Outline::new("chibi"));
        writing.event(&call("a"));
        let written = (0..100).map(|_| writing.event(&message(Role::User, "and"))).filter(|pieces| !pieces.is_empty());
        assert!(written.count() > 30);
    }
}
