//! Writes the answers of a model: which records form one response, why it stopped, and its cost. An answer is held back until
//! these are known. This module knows neither the links between records nor the blocks.

use super::write::{put_cost, usage_draft};
use crate::json::Draft;
use crate::model::{Body, Event, Outline, Usage};
use crate::text::quote;
use crate::write::WriterOutput;

/// A record with an answer of the model, not yet written.
#[derive(Debug)]
pub struct PendingAnswer {
    /// The record, up to its message.
    pub record: Draft<'static>,
    /// The message, up to the stop reason.
    pub message: Draft<'static>,
    /// The id of its response.
    pub response: String,
    /// Whether the source states that id.
    pub is_response_stated: bool,
    /// Why the model stopped; unknown until the response ends.
    pub stop: Option<String>,
    /// The record's id.
    pub uuid: String,
    /// The record's time.
    pub time: String,
    /// The usage of its response.
    pub usage: Option<Usage>,
}

/// Writes the answers of a file.
#[derive(Debug, Default)]
pub struct AnswerWriter {
    /// The last answer, held back until it is known whether a token count follows.
    pending: Option<PendingAnswer>,
    /// The results after the pending answer.
    after: Vec<String>,
    /// A token count that came before its answer, with the response that it names.
    early: Option<(Option<String>, Usage)>,
    /// The thread and the id of the response that the next answer continues, if its source does not state one.
    open: Option<(u64, String)>,
    responses: u64,
}

impl AnswerWriter {
    /// Writes the pending answer.
    pub fn release(&mut self, out: &mut WriterOutput) {
        if let Some(PendingAnswer { mut record, mut message, stop, uuid, time, usage, .. }) = self.pending.take() {
            message.set("stop_reason", stop.as_deref().map_or_else(|| "null".to_owned(), quote));
            message.set("stop_sequence", "null");
            // Claude Code resumes from answers without usage. Zeros would state a call that cost nothing.
            if let Some(usage) = usage {
                let (input, output) = (usage.input.or(Some(0)), usage.output.or(Some(0)));
                message.nest("usage", usage_draft(&Usage { input, output, ..usage }));
                put_cost(&usage, &mut record);
            }
            record.nest("message", message);
            record.set_str("uuid", &uuid);
            record.set_str("timestamp", &time);
            out.line(record.render(None));
        }
        self.after.drain(..).for_each(|line| out.line(line));
    }

    /// The id of an answer's response. If the source does not state it, everything that a model says in a thread up to a
    /// result, a message or a token count is one response.
    pub fn response(&mut self, event: &Event<'_>, thread: u64, outline: &Outline) -> String {
        if let Some(group) = &event.group {
            self.open = None;
            return group.to_string();
        }
        let token_count = event.part.index == 0 && self.pending.as_ref().is_some_and(|pending| pending.usage.is_some());
        if let Some((_, id)) = self.open.as_ref().filter(|(of, _)| *of == thread && !token_count) {
            return id.clone();
        }
        self.responses += 1;
        let id = format!("msg_{:032x}", outline.invent("answer", self.responses));
        self.open = Some((thread, id.clone()));
        id
    }

    /// Holds an answer back, and writes the previous one.
    pub fn hold(&mut self, mut answer: PendingAnswer, out: &mut WriterOutput) {
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.response == answer.response) {
            // Only the last record of a response has the stop reason and the usage.
            pending.stop = None;
            answer.usage = answer.usage.or_else(|| pending.usage.take());
        }
        if answer.usage.is_none()
            && let Some((response, usage)) = self.early.take()
        {
            match response {
                Some(response) if response != answer.response => self.early = Some((Some(response), usage)),
                _ => answer.usage = Some(usage),
            }
        }
        self.release(out);
        self.pending = Some(answer);
    }

    /// Ends the response: the next answer begins another one.
    pub fn end(&mut self) {
        self.open = None;
    }

    /// Ends the response with a reason. There is no record for it; the last answer states it.
    pub fn stop(&mut self, reason: &str) {
        self.open = None;
        if let Some(answer) = &mut self.pending {
            answer.stop = Some(reason.to_owned());
        }
    }

    /// Adds a token count to the answer of its response: the one before it, or else the next one. `false` if the event is not one.
    pub fn count(&mut self, event: &Event<'_>) -> bool {
        let (Body::Fact { fact: name, .. }, Some(usage)) = (&event.body, event.usage) else { return false };
        if name != "usage" {
            return false;
        }
        self.open = None;
        let group = event.group.as_deref();
        let is_of = |answer: &PendingAnswer| {
            answer.usage.is_none() && group.is_none_or(|group| !answer.is_response_stated || answer.response == group)
        };
        match self.pending.as_mut().filter(|answer| is_of(answer)) {
            Some(answer) => answer.usage = Some(usage),
            None => self.early = Some((group.map(str::to_owned), usage)),
        }
        true
    }

    /// Writes a result after the previous answer, whose token count may come only after the result.
    pub fn result(&mut self, line: String, out: &mut WriterOutput) {
        self.open = None;
        if self.pending.as_ref().is_some_and(|answer| answer.usage.is_none()) {
            return self.after.push(line);
        }
        self.release(out);
        out.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClaudeCode;
    use super::*;
    use crate::json::Object;
    use crate::model::{Content, Input, Piece, PieceKind, Role};
    use crate::write;

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "ls".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        let content = Content::text(id);
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
    }

    fn token_count(output: u64) -> Event<'static> {
        let body = Body::Fact { fact: "usage".into(), content: None };
        Event { usage: Some(Usage { output: Some(output), ..Usage::default() }), ..Event::new(body) }
    }

    fn written(events: &[Event<'_>]) -> String {
        String::from_utf8(write::all(&ClaudeCode, &Outline::of("codex", events), events)).unwrap()
    }

    /// The response, the stop reason and the output tokens of each answer; responses are numbered in order.
    fn answers(text: &str) -> Vec<(usize, String, String)> {
        let mut ids: Vec<String> = Vec::new();
        let mut found = Vec::new();
        for line in text.lines() {
            let mut record = Object::parse(line).unwrap();
            let mut message = record.open("message").unwrap();
            let Some(id) = message.peek_str("id").map(std::borrow::Cow::into_owned) else { continue };
            if !ids.contains(&id) {
                ids.push(id.clone());
            }
            let usage = message.open("usage");
            let raw = |raw: Option<&str>| raw.unwrap_or_default().to_owned();
            let at = ids.iter().position(|known| *known == id).unwrap();
            found.push((
                at,
                raw(message.peek("stop_reason")),
                raw(usage.as_ref().and_then(|usage| usage.peek("output_tokens"))),
            ));
        }
        found
    }

    #[test]
    fn everything_up_to_a_result_is_one_response() {
        let hello = message(Role::User, "hello");
        let text = message(Role::Assistant, "I look");
        let events = [
            hello,
            text,
            call("a"),
            call("b"),
            result("a"),
            result("b"),
            token_count(7),
            message(Role::Assistant, "ok"),
        ];
        let expected = [(0, "null", ""), (0, "null", ""), (0, "\"tool_use\"", "7"), (1, "\"end_turn\"", "")];
        let expected = expected.map(|(at, stop, output)| (at, stop.to_owned(), output.to_owned()));
        assert_eq!(answers(&written(&events)), expected);
    }

    #[test]
    fn a_token_count_before_its_answer_waits_for_it() {
        let named = |count: Event<'static>, group: &'static str| Event { group: Some(group.into()), ..count };
        let said = |group: &'static str, text| named(message(Role::Assistant, text), group);
        let output = |events: &[Event<'_>]| -> Vec<String> {
            answers(&written(events)).into_iter().map(|(_, _, output)| output).collect()
        };
        let events = [named(token_count(7), "a"), said("a", "one"), named(token_count(8), "b"), said("b", "two")];
        assert_eq!(output(&events), ["7", "8"]);
        let hello = || message(Role::User, "hello");
        let said = |text| message(Role::Assistant, text);
        assert_eq!(output(&[hello(), token_count(7), said("one"), hello(), token_count(8), said("two")]), ["7", "8"]);
        // A count may name a response that its answer does not name.
        assert_eq!(output(&[hello(), said("one"), named(token_count(7), "a"), hello(), said("two")]), ["7", ""]);
    }

    #[test]
    fn an_event_without_content_makes_no_record() {
        let encrypted = Event::new(Body::Thinking { content: Content::text("") });
        let unknown = Piece { kind: PieceKind::Other("{\"type\":\"rune\"}".into()), extra: Default::default() };
        let unknown = Body::Message { role: Role::User, content: Content::Pieces(vec![unknown]) };
        assert_eq!(written(&[encrypted, Event::new(unknown), message(Role::User, "hello")]).lines().count(), 1);
    }

    #[test]
    fn ids_that_are_not_uuids_are_replaced_and_still_link() {
        let first = Event { id: Some("a".into()), session: Some("s".into()), ..message(Role::User, "hello") };
        let second = Event { id: Some("b".into()), parent: Some("a".into()), ..message(Role::User, "again") };
        let found = crate::read::all(&ClaudeCode, written(&[first, second]).as_bytes()).events;
        assert_eq!(found[1].parent, found[0].id);
        assert_eq!(found[1].session, found[0].session);
        assert!([&found[0].id, &found[0].session].into_iter().all(|id| id.as_ref().is_some_and(|id| id.len() == 36)));
    }
}
