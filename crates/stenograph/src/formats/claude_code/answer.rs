//! What a model says, on its way out: which records are one response, why it stopped, and what it cost. An answer is kept back
//! until that is known. How a record hangs on others, and what its blocks say, is not known here.

use super::write::{put_cost, usage_draft};
use crate::json::Draft;
use crate::model::{Body, Event, Outline, Usage};
use crate::text::quote;
use crate::write::Output;

/// A record with an answer of the model, not yet written.
#[derive(Debug)]
pub struct Answer {
    /// The record, up to its message.
    pub record: Draft<'static>,
    /// The message, up to why it stopped.
    pub message: Draft<'static>,
    /// The id of the response it is a part of.
    pub response: String,
    /// Why the model stopped; not known before its response is at an end.
    pub stop: Option<String>,
    /// The record's id.
    pub uuid: String,
    /// When.
    pub time: String,
    /// What it cost.
    pub usage: Option<Usage>,
}

/// The answers of a file.
#[derive(Debug, Default)]
pub struct Answers {
    /// The last one, kept back until it is known whether a count of its tokens follows.
    held: Option<Answer>,
    /// The results that follow the answer that is kept back.
    after: Vec<String>,
    /// The response that the next answer goes on with, where its source does not say: its conversation and its id.
    open: Option<(u64, String)>,
    responses: u64,
}

impl Answers {
    /// Writes what is kept back.
    pub fn release(&mut self, out: &mut Output) {
        if let Some(Answer { mut record, mut message, stop, uuid, time, usage, .. }) = self.held.take() {
            message.set("stop_reason", stop.as_deref().map_or_else(|| "null".to_owned(), quote));
            message.set("stop_sequence", "null");
            // Claude Code goes on from answers without a usage. Zeros would say that a call was made that took nothing.
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

    /// The id of the response that an answer is a part of. Where the source does not say, all that a model says in a
    /// conversation up to a result, a message or a count of tokens is one response.
    pub fn response(&mut self, event: &Event<'_>, thread: u64, outline: &Outline) -> String {
        if let Some(group) = &event.group {
            self.open = None;
            return group.to_string();
        }
        let counted = event.part.index == 0 && self.held.as_ref().is_some_and(|held| held.usage.is_some());
        if let Some((_, id)) = self.open.as_ref().filter(|(of, _)| *of == thread && !counted) {
            return id.clone();
        }
        self.responses += 1;
        let id = format!("msg_{:032x}", outline.invent("answer", self.responses));
        self.open = Some((thread, id.clone()));
        id
    }

    /// Keeps an answer back, and writes the one before it.
    pub fn hold(&mut self, mut answer: Answer, out: &mut Output) {
        if let Some(held) = self.held.as_mut().filter(|held| held.response == answer.response) {
            // Of the records of one response the last one says why it stopped and what it cost.
            held.stop = None;
            answer.usage = answer.usage.or_else(|| held.usage.take());
        }
        self.release(out);
        self.held = Some(answer);
    }

    /// The response is at its end: the next answer begins another.
    pub fn end(&mut self) {
        self.open = None;
    }

    /// The response is at its end, and this is why. There is no record of an end, but its last answer says it.
    pub fn stop(&mut self, reason: &str) {
        self.open = None;
        if let Some(answer) = &mut self.held {
            answer.stop = Some(reason.to_owned());
        }
    }

    /// Puts a count of tokens on the answer it follows; `false` when the event is none, or there is no answer to put it on.
    pub fn count(&mut self, event: &Event<'_>) -> bool {
        let (Body::Fact { name, .. }, Some(usage)) = (&event.body, event.usage) else { return false };
        if name != "usage" {
            return false;
        }
        self.open = None;
        let Some(answer) = self.held.as_mut().filter(|answer| answer.usage.is_none()) else { return false };
        answer.usage = Some(usage);
        true
    }

    /// Writes a result: behind the answer before it, whose tokens may be counted only after the result.
    pub fn result(&mut self, line: String, out: &mut Output) {
        self.open = None;
        if self.held.as_ref().is_some_and(|answer| answer.usage.is_none()) {
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

    fn said(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "ls".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        let content = Content::text(id);
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
    }

    fn counted(output: u64) -> Event<'static> {
        let body = Body::Fact { name: "usage".into(), content: None };
        Event { usage: Some(Usage { output: Some(output), ..Usage::default() }), ..Event::new(body) }
    }

    fn written(events: &[Event<'_>]) -> String {
        String::from_utf8(write::all(&ClaudeCode, &Outline::of("codex", events), events)).unwrap()
    }

    /// The response, the reason and the tokens of each answer; responses are numbered as they come.
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
    fn what_a_model_says_up_to_a_result_is_one_response() {
        let hello = said(Role::User, "hello");
        let text = said(Role::Assistant, "I look");
        let events =
            [hello, text, call("a"), call("b"), result("a"), result("b"), counted(7), said(Role::Assistant, "ok")];
        let expected = [(0, "null", ""), (0, "null", ""), (0, "\"tool_use\"", "7"), (1, "\"end_turn\"", "")];
        let expected = expected.map(|(at, stop, output)| (at, stop.to_owned(), output.to_owned()));
        assert_eq!(answers(&written(&events)), expected);
    }

    #[test]
    fn what_says_nothing_makes_no_record() {
        let sealed = Event::new(Body::Thinking { content: Content::text("") });
        let strange = Piece { kind: PieceKind::Other("{\"type\":\"rune\"}".into()), extra: Default::default() };
        let strange = Body::Message { role: Role::User, content: Content::Pieces(vec![strange]) };
        assert_eq!(written(&[sealed, Event::new(strange), said(Role::User, "hello")]).lines().count(), 1);
    }

    #[test]
    fn ids_that_are_no_uuids_are_replaced_and_still_link() {
        let first = Event { id: Some("a".into()), session: Some("s".into()), ..said(Role::User, "hello") };
        let second = Event { id: Some("b".into()), parent: Some("a".into()), ..said(Role::User, "again") };
        let found = crate::read::all(&ClaudeCode, written(&[first, second]).as_bytes()).events;
        assert_eq!(found[1].parent, found[0].id);
        assert_eq!(found[1].session, found[0].session);
        assert!([&found[0].id, &found[0].session].into_iter().all(|id| id.as_ref().is_some_and(|id| id.len() == 36)));
    }
}
