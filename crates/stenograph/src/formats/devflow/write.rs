//! Writes devflow's document as Go's `MarshalIndent` does. The header is written first, from what is known of the session
//! beforehand; a turn is held until no call of it can still be answered.

use std::collections::VecDeque;

use super::turn::{Turn, own_turn};
use super::{NAME, TURNS, header, spell};
use crate::frame::{Items, is_prologue};
use crate::json::{indent, is_closed};
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role, Usage};
use crate::synthesizer::Synthesizer;
use crate::text::Text;
use crate::write::{Output, Writer};

/// Writes turns. devflow has no place for thoughts and failures; how the session stopped is said in the header.
#[derive(Debug)]
pub struct Turns {
    stand_ins: Synthesizer,
    stage: Stage,
    /// How many turns were written.
    written: u64,
    /// Turns that are not written yet, oldest first. Only the last one, and those with unanswered calls, can change.
    held: VecDeque<Turn>,
    /// When the last event happened, in milliseconds.
    last_ms: Option<i64>,
}

/// How far the document has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Turns,
    Ended,
}

/// How many turns wait for the answer to a call that may never come.
const HELD_MAX: usize = 64;

impl Turns {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Turns {
        Turns {
            stand_ins: Synthesizer::new(outline),
            stage: Stage::Start,
            written: 0,
            held: VecDeque::new(),
            last_ms: None,
        }
    }

    /// Writes the header of a session that has none of this format.
    fn begin(&mut self, out: &mut Output) {
        if self.stage == Stage::Start {
            out.glue(header::opened(&header::made(self.stand_ins.outline(), &self.stand_ins.session())));
            self.stage = Stage::Turns;
        }
    }

    /// Writes a header that comes from this format: what stands before the turns, or a whole document without any.
    fn own_header(&mut self, event: &Event<'_>, own: &ExtraFields<'_>, out: &mut Output) {
        self.flush(out);
        if event.name() != Some("session") {
            // Another such key after the list is none of its turns.
            let json = header::stated(event).render(Some(own));
            self.own_edge(event, &json, out);
        } else if own.raw(TURNS) == Some("[]") {
            // Of two such keys the last one is the list.
            let mut without_turns = own.clone();
            if let Some(at) = own.0.iter().rposition(|(key, _)| key == TURNS) {
                without_turns.0.remove(at);
            }
            let json = header::stated(event).render(Some(&without_turns));
            self.own_edge(event, &json, out);
        } else {
            out.record(indent(&spell::escaped(&header::stated(event).render(Some(own))), 0));
            self.stage = Stage::Ended;
        }
    }

    fn own_edge(&mut self, event: &Event<'_>, json: &str, out: &mut Output) {
        if event.name() == Some("session") {
            self.edge(header::opened(json), out);
            self.stage = Stage::Turns;
        } else {
            self.begin(out);
            self.close_list(out);
            self.edge(header::closed(json), out);
            self.stage = Stage::Ended;
        }
    }

    /// Half an object is a record only to its own document: no other source can be carried in it.
    fn edge(&self, json: String, out: &mut Output) {
        if self.stand_ins.outline().origin == NAME {
            out.record(json);
        } else {
            out.glue(json);
        }
    }

    /// Bytes that never were a record return to the file they came from, and go nowhere else.
    fn unread(&mut self, bytes: &Text<'_>, out: &mut Output) {
        if self.stand_ins.outline().origin != NAME {
            return;
        }
        self.flush(out);
        let bytes = bytes.bytes();
        let ends = bytes.starts_with(b"]") || bytes.starts_with(b"}");
        if self.stage == Stage::Start {
            let opens = is_prologue(Items::Array(TURNS), &bytes);
            self.stage = if opens { Stage::Turns } else { Stage::Ended };
            out.record(bytes);
        } else if ends {
            self.close_list(out);
            self.stage = Stage::Ended;
            out.record(bytes);
        } else {
            self.separate(out);
            // A record that was cut short is the end of its file, and a bracket after it would become a part of it.
            if !is_closed(&bytes) {
                self.stage = Stage::Ended;
            }
            out.record(bytes);
        }
    }

    fn separate(&mut self, out: &mut Output) {
        out.glue(if self.written == 0 { "\n    " } else { ",\n    " });
        self.written += 1;
    }

    fn close_list(&self, out: &mut Output) {
        if self.written > 0 {
            out.glue("\n  ");
        }
    }

    fn put(&mut self, json: &str, out: &mut Output) {
        self.begin(out);
        self.separate(out);
        out.record(indent(&spell::escaped(json), 2));
    }

    /// Writes the turns that can no longer change.
    fn settle(&mut self, out: &mut Output) {
        while let Some(first) = self.held.front() {
            let may_call = first.is_assistant() && self.held.iter().skip(1).all(Turn::is_result);
            if self.held.len() == 1 || ((may_call || first.is_waiting()) && self.held.len() <= HELD_MAX) {
                return;
            }
            self.put_first(out);
        }
    }

    fn put_first(&mut self, out: &mut Output) {
        if let Some(turn) = self.held.pop_front() {
            let json = turn.render(self.written + 1);
            self.put(&json, out);
        }
    }

    fn flush(&mut self, out: &mut Output) {
        while !self.held.is_empty() {
            self.put_first(out);
        }
    }

    /// The turn that a call belongs to: the most recent one of the assistant, unless somebody asked for something since.
    fn caller(&mut self) -> Option<&mut Turn> {
        self.held.iter_mut().rev().find(|turn| !turn.is_result()).filter(|turn| turn.is_assistant())
    }

    /// Adds an event of another format. Tells whether it has a place.
    fn add(&mut self, event: &Event<'_>) -> Placed {
        let moment_ms = event.time.as_ref().and_then(|time| Some(time.instant()?.as_millisecond()));
        let since_ms = self.last_ms;
        self.last_ms = self.last_ms.max(moment_ms);
        let new = |role, content: &Content<'_>| Turn::new(role, content, event.time.as_ref()).after(since_ms);
        match &event.body {
            Body::Message { role, content } => {
                let mut turn = new(role_name(*role), content);
                turn.lasts_until(moment_ms);
                self.held.push_back(turn);
            }
            Body::ToolCall { call, name, input } => {
                if self.caller().is_none() {
                    self.held.push_back(new("assistant", &Content::text("")));
                }
                if let Some(turn) = self.caller() {
                    turn.call(call.as_deref(), name, input);
                    turn.lasts_until(moment_ms);
                }
            }
            Body::ToolResult { call, content, error, .. } => {
                let call = call.as_deref();
                let turn = self.held.iter_mut().find(|turn| turn.awaits(call));
                match turn {
                    Some(turn) => {
                        turn.answer(call, content, *error);
                        turn.lasts_until(moment_ms);
                    }
                    None => self.held.push_back(new("tool_result", content)),
                }
            }
            // What stands in the place of the past is told to the model as a user would.
            Body::Compaction { summary: Some(summary) } => {
                self.held.push_back(Turn::new("user", summary, event.time.as_ref()));
            }
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Compaction { summary: None }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => return Placed::Nowhere,
        }
        Placed::InATurn
    }

    fn own(&mut self, events: &[Event<'_>], out: &mut Output) -> Option<()> {
        let first = events.first()?;
        let own = first.extra.get(NAME)?;
        match &first.body {
            Body::Fact { .. } => self.own_header(first, own, out),
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
enum Placed {
    InATurn,
    Nowhere,
}

impl Writer for Turns {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        if let [Event { body: Body::Other { bytes: Some(bytes), .. }, .. }] = events {
            return self.unread(bytes, out);
        }
        if self.own(events, out).is_some() {
            return;
        }
        let mut placed = Placed::Nowhere;
        let mut usage: Option<Usage> = None;
        for event in events {
            usage = usage.or(event.usage);
            if self.add(event) == Placed::InATurn {
                placed = Placed::InATurn;
            }
        }
        let turn = match (placed, events) {
            (Placed::InATurn, [.., Event { body: Body::ToolCall { .. }, .. }]) => self.caller(),
            (Placed::InATurn, _) => self.held.back_mut(),
            // A record that only counts speaks of the answer before it.
            (Placed::Nowhere, [Event { body: Body::Fact { .. }, .. }]) => {
                self.held.iter_mut().rev().find(|turn| turn.is_assistant())
            }
            (Placed::Nowhere, _) => None,
        };
        if let (Some(usage), Some(turn)) = (usage, turn) {
            turn.count(&usage);
        }
        self.settle(out);
    }

    fn finish(&mut self, out: &mut Output) {
        self.flush(out);
        // A file of this format in which nothing stood stays empty.
        if self.stand_ins.outline().origin != NAME {
            self.begin(out);
        }
        if self.stage == Stage::Turns {
            self.close_list(out);
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

    fn said(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn called(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "run".into(), input: Input::Json("{}".into()) })
    }

    fn answered(id: &'static str, text: &'static str) -> Event<'static> {
        let content = Content::text(text);
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
    }

    /// What is read back, each event by its kind, its call and its text.
    fn read_back(events: &[Event<'_>]) -> Vec<String> {
        let bytes = crate::write::all(&Devflow, &Outline::new("chibi"), events);
        let found = crate::read::all(&Devflow, &bytes);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        let text = |event: &Event<'_>| event.content().map(|said| said.joined().decode().into_owned());
        let show = |event: &Event<'_>| {
            format!("{} {} {}", event.kind().name(), event.call().unwrap_or("-"), text(event).unwrap_or_default())
        };
        let turns = found.events.iter().filter(|event| !matches!(event.kind(), Kind::Fact | Kind::Stop));
        turns.map(show).collect()
    }

    #[test]
    fn a_late_result_joins_its_call_and_a_stray_one_is_a_turn() {
        let events = [
            said(Role::Assistant, "one"),
            called("a"),
            called("b"),
            said(Role::User, "wait"),
            answered("b", "B"),
            answered("z", "Z"),
            answered("a", "A"),
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
        let bytes = crate::write::all(&Devflow, &Outline::of("codex", events), events);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn tokens_that_are_counted_after_an_answer_are_the_answers() {
        let mut counted = Event::new(Body::Fact { name: "usage".into(), content: None });
        counted.usage = Some(Usage {
            input: Some(18),
            output: Some(7),
            cache_read: Some(300),
            cache_write: Some(20),
            ..Usage::default()
        });
        let text = written(&[said(Role::User, "go"), said(Role::Assistant, "ok"), called("a"), counted]);
        assert!(text.contains(r#""totalTokensIn": 338"#), "{text}");
        let answer = text.split_once(r#""content": "ok""#).unwrap().1;
        assert!(answer.starts_with(",\n      \"tokensIn\": 338,\n      \"tokensOut\": 7,"), "{text}");
    }

    #[test]
    fn a_summary_is_told_and_an_image_is_not_nothing() {
        let summary = Event::new(Body::Compaction { summary: Some(Content::text("So far: A.")) });
        let data = Data::Inline("aGk=".into());
        let image = Piece { kind: PieceKind::Blob { media: None, data }, extra: ExtraFields::default() };
        let content = Content::Pieces(vec![image]);
        let seen = Event::new(Body::ToolResult { call: Some("a".into()), name: None, content, error: None });
        assert_eq!(
            read_back(&[summary, called("a"), seen]),
            ["message - So far: A.", "tool_call a ", "tool_result a [1 item that is not text]"]
        );
    }

    #[test]
    fn a_call_needs_no_words() {
        assert_eq!(
            read_back(&[said(Role::User, "go"), called("a"), answered("a", "A")]),
            ["message - go", "tool_call a ", "tool_result a A"]
        );
    }

    #[test]
    fn an_unanswered_call_does_not_hold_the_rest_for_ever() {
        let mut writing = crate::write::Writing::new(&Devflow, &Outline::new("chibi"));
        writing.event(&called("a"));
        let written = (0..100).map(|_| writing.event(&said(Role::User, "and"))).filter(|pieces| !pieces.is_empty());
        assert!(written.count() > 30);
    }
}
