//! Makes messages from another system's events: the events of one model response become one message, and every call gets its
//! result before anybody else speaks, because the API accepts no other order.

use std::collections::VecDeque;

use super::write::render;
use crate::model::{Body, Content, Event, Input, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::Str;

/// The content of a result that the source lacks. CycoD writes the same text when it loads such a file.
pub const NOT_ANSWERED: &str = r#"{"result": "...unknown; tool not called..."}"#;

/// The tool name of a result whose tool is unknown.
const NO_NAME: &str = "tool";

/// How many messages may wait for the results of earlier calls.
const WAITING_MAX: usize = 64;

/// How many events of one response are shown before it ends.
const HELD_PARTS_MAX: usize = 256;

/// Groups events into messages. It holds one model response, and the messages that wait for results.
#[derive(Debug)]
pub struct Composer {
    /// Synthesizes the missing values of the file.
    pub synthesizer: Synthesizer,
    response: Vec<Event<'static>>,
    /// The messages with unanswered calls. The first one is already written; the others wait for its results.
    open: VecDeque<PendingCalls>,
}

/// A message with unanswered calls.
#[derive(Debug)]
struct PendingCalls {
    /// The id of its response, if the source states it.
    group: Option<String>,
    /// The message itself; empty once it is written.
    message: String,
    /// The ids of calls without a result.
    calls: Vec<String>,
    /// The results that wait until the message is written.
    results: Vec<String>,
    /// The messages that came meanwhile.
    after: Vec<String>,
}

impl Composer {
    /// A composer for a session.
    pub fn new(outline: &Outline) -> Composer {
        Composer { synthesizer: Synthesizer::new(outline), response: Vec::new(), open: VecDeque::new() }
    }

    /// Takes one event and emits the messages that it completes. Facts, failures and stops have no place in a message.
    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        match &event.body {
            // A thought without readable text has no place: its ciphertext belongs to another vendor.
            Body::Thinking { content } if content.is_empty() => {}
            Body::Thinking { .. } | Body::Message { role: Role::Assistant, .. } | Body::ToolCall { .. } => {
                self.model_event(event, out);
            }
            Body::ToolResult { .. } => self.result_event(event, out),
            Body::Message { .. } | Body::Compaction { summary: Some(_) } => self.other_message(event, out),
            Body::Compaction { summary: None } => {}
            Body::Fact { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {}
        }
    }

    /// The pending messages in their current state: those that wait for a result, and the current response.
    pub fn held(&self, out: &mut Vec<String>) {
        for PendingCalls { message, results, after, .. } in &self.open {
            out.extend(
                Some(message).filter(|message| !message.is_empty()).into_iter().chain(results).chain(after).cloned(),
            );
        }
        // Every event of a response would render all of it again, so a very long response is left out until it ends.
        if !self.response.is_empty() && self.response.len() <= HELD_PARTS_MAX {
            out.push(render(&self.response, ""));
        }
    }

    /// Emits everything that is pending.
    pub fn finish(&mut self, out: &mut Vec<String>) {
        self.close_response(out);
        self.close_open_calls(out);
    }

    /// Takes an event of the model.
    fn model_event(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        if !self.joins(event) {
            self.close_response(out);
        }
        let mut event = event.clone().into_owned();
        if let Body::ToolCall { call, name, .. } = &mut event.body {
            *call = Some(self.synthesizer.pairing.call(call.as_deref(), name).into());
        }
        self.response.push(event);
    }

    /// Whether an event fits the current message: it has the same response and follows the order of a message.
    fn joins(&self, event: &Event<'_>) -> bool {
        let Some(last) = self.response.last() else { return true };
        // A message has one name, so only one speaker fits.
        let differ = |last: &Option<Str<'_>>, next: &Option<Str<'_>>| last.is_some() && next.is_some() && last != next;
        let differs = differ(&last.group, &event.group) || differ(&last.from, &event.from);
        let in_order = match &event.body {
            Body::ToolCall { .. } => true,
            Body::Message { .. } => matches!(last.body, Body::Thinking { .. }),
            _ => false,
        };
        in_order && !differs
    }

    fn result_event(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        let pair = self.synthesizer.pairing.result(event.call());
        let (paired, tool) = pair.unzip();
        let stated = event.call().map(str::to_owned).or(paired);
        let id = stated.unwrap_or_else(|| self.synthesizer.pairing.orphan());
        if !self.open.iter().any(|pending| pending.calls.contains(&id)) {
            self.close_response(out);
        }
        let mut event = event.clone().into_owned();
        let mut tool = tool;
        if let Body::ToolResult { call, name, .. } = &mut event.body {
            *call = Some(id.clone().into());
            tool = name.as_deref().map(str::to_owned).or(tool);
        }
        let message = render(&[event], "");
        let pending = self.open.iter_mut().find_map(|pending| {
            let at = pending.calls.iter().position(|call| *call == id)?;
            pending.calls.remove(at);
            Some(pending)
        });
        match pending {
            Some(pending) if pending.message.is_empty() => out.push(message),
            Some(pending) => pending.results.push(message),
            None => {
                // The API accepts no result without a call: a call is synthesized, which the loss report shows.
                let (name, input) = (tool.unwrap_or_else(|| NO_NAME.to_owned()).into(), Input::Json("{}".into()));
                let call = Event::new(Body::ToolCall { call: Some(id.into()), name, input });
                self.write_after_results(render(&[call], ""), out);
                self.write_after_results(message, out);
            }
        }
        self.release(out);
    }

    /// Takes a message of anybody but the model.
    fn other_message(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        self.close_response(out);
        self.write_after_results(render(std::slice::from_ref(event), ""), out);
        self.release(out);
    }

    /// Writes a message after the pending results.
    fn write_after_results(&mut self, message: String, out: &mut Vec<String>) {
        match self.open.back_mut() {
            Some(pending) => pending.after.push(message),
            None => out.push(message),
        }
    }

    /// Writes the messages that no longer wait for a result.
    fn release(&mut self, out: &mut Vec<String>) {
        while self.open.front().is_some_and(|pending| pending.calls.is_empty()) {
            out.extend(self.open.pop_front().into_iter().flat_map(|pending| pending.after));
            if let Some(next) = self.open.front_mut() {
                out.push(std::mem::take(&mut next.message));
                out.append(&mut next.results);
            }
        }
        let waiting = |pending: &PendingCalls| 1 + pending.results.len() + pending.after.len();
        if self.open.iter().map(waiting).sum::<usize>() > WAITING_MAX {
            self.close_open_calls(out);
        }
    }

    /// Ends the current message. Calls of the previous message then get no more results, unless both messages have the same
    /// response: a response can continue while its first calls get their results.
    fn close_response(&mut self, out: &mut Vec<String>) {
        if self.response.is_empty() {
            return;
        }
        let response = std::mem::take(&mut self.response);
        let group = response.iter().find_map(|event| event.group.as_deref()).map(str::to_owned);
        let calls_only = response.iter().all(|event| matches!(event.body, Body::ToolCall { .. }));
        let continues = self.open.back().is_some_and(|pending| match (&pending.group, &group) {
            (Some(before), Some(now)) => before == now,
            _ => calls_only && pending.after.is_empty(),
        });
        if !continues {
            self.close_open_calls(out);
        }
        let mut message = render(&response, "");
        if self.open.is_empty() {
            out.push(std::mem::take(&mut message));
        }
        let calls: Vec<String> = response.iter().filter_map(|event| event.call().map(str::to_owned)).collect();
        if !message.is_empty() || !calls.is_empty() {
            self.open.push_back(PendingCalls { group, message, calls, results: Vec::new(), after: Vec::new() });
        }
    }

    /// Synthesizes the missing results, and writes the messages that waited for them.
    fn close_open_calls(&mut self, out: &mut Vec<String>) {
        for pending in std::mem::take(&mut self.open) {
            out.extend(Some(pending.message).filter(|message| !message.is_empty()));
            out.extend(pending.results);
            for id in pending.calls {
                let content = Content::text(NOT_ANSWERED);
                let body = Body::ToolResult { call: Some(id.into()), name: None, content, error: None };
                out.push(render(&[Event::new(body)], ""));
            }
            out.extend(pending.after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Data, ExtraFields, Piece, PieceKind};

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text(id), error: None })
    }

    fn composed(events: &[Event<'static>]) -> Vec<String> {
        let mut composer = Composer::new(&Outline::default());
        let mut out = Vec::new();
        events.iter().for_each(|event| composer.event(event, &mut out));
        composer.finish(&mut out);
        out
    }

    #[test]
    fn one_response_is_one_message() {
        let encrypted = Event::new(Body::Thinking { content: Content::text("") });
        let thought = Event::new(Body::Thinking { content: Content::text("hm") });
        let events = [
            encrypted,
            thought,
            message(Role::Assistant, "Let me look."),
            call("a"),
            call("b"),
            result("a"),
            result("b"),
        ];
        let messages = composed(&events);
        assert_eq!(messages.len(), 3);
        let call =
            |id: &str| format!(r#"{{"id":"{id}","function":{{"name":"look","arguments":"{{}}"}},"type":"function"}}"#);
        let calls = format!(r#""tool_calls":[{},{}],"reasoning_content":"hm"}}"#, call("a"), call("b"));
        assert_eq!(messages[0], format!(r#"{{"role":"assistant","content":"Let me look.",{calls}"#));
        assert_eq!(messages[2], r#"{"role":"tool","tool_call_id":"b","content":"b"}"#);
    }

    #[test]
    fn a_response_continues_while_its_first_calls_are_answered() {
        let of = |event: Event<'static>| Event { group: Some("one".into()), ..event };
        let events = [
            of(call("a")),
            of(call("b")),
            result("a"),
            of(call("c")),
            result("c"),
            message(Role::User, "well?"),
            result("b"),
        ];
        let roles = |messages: &[String]| -> Vec<String> {
            messages.iter().map(|message| message.split('"').nth(3).unwrap().to_owned()).collect()
        };
        let expected = ["assistant", "tool", "tool", "assistant", "tool", "user"];
        assert_eq!(roles(&composed(&events)), expected);
        let without = events.map(|event| Event { group: None, ..event });
        assert_eq!(roles(&composed(&without)), expected);
    }

    #[test]
    fn pending_messages_can_be_shown() {
        let mut composer = Composer::new(&Outline::default());
        let (mut out, mut held) = (Vec::new(), Vec::new());
        [message(Role::Assistant, "Let me look."), call("a")].iter().for_each(|event| composer.event(event, &mut out));
        composer.held(&mut held);
        assert!(
            out.is_empty() && held.len() == 1 && held[0].contains("Let me look.") && held[0].contains(r#""id":"a""#)
        );
        composer.event(&message(Role::User, "well?"), &mut out);
        assert_eq!(out, held);
        held.clear();
        composer.held(&mut held);
        assert_eq!(held, [r#"{"role":"user","content":"well?"}"#]);
    }

    #[test]
    fn a_message_before_a_result_waits_for_it() {
        let messages =
            composed(&[call("a"), message(Role::User, "well?"), result("a"), message(Role::Assistant, "Here.")]);
        assert_eq!(messages[1], r#"{"role":"tool","tool_call_id":"a","content":"a"}"#);
        assert_eq!(messages[2], r#"{"role":"user","content":"well?"}"#);
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn an_unanswered_call_gets_a_synthesized_result() {
        let messages = composed(&[call("a"), message(Role::User, "stop"), message(Role::Assistant, "Stopped.")]);
        assert!(
            messages[1].starts_with(r#"{"role":"tool","tool_call_id":"a","content":"{\"result\": "#),
            "{}",
            messages[1]
        );
        assert_eq!(messages[2], r#"{"role":"user","content":"stop"}"#);
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn a_result_without_a_call_gets_a_synthesized_call() {
        let orphan = Event::new(Body::ToolResult {
            call: None,
            name: Some("look".into()),
            content: Content::text("seen"),
            error: None,
        });
        let messages = composed(&[call("a"), orphan, result("a")]);
        assert_eq!(messages.len(), 4);
        // Without an id it is the result of the oldest call; the second result has no call.
        assert_eq!(messages[1], r#"{"role":"tool","tool_call_id":"a","content":"seen","name":"look"}"#);
        assert!(messages[2].starts_with(r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","#));
        assert_eq!(messages[3], r#"{"role":"tool","tool_call_id":"a","content":"a"}"#);
        let messages = composed(&[call("a"), result("b"), result("a")]);
        let roles: Vec<&str> = messages.iter().map(|message| message.split('"').nth(3).unwrap()).collect();
        assert_eq!(roles, ["assistant", "tool", "assistant", "tool"]);
        assert!(messages[2].contains(r#""id":"b""#) && messages[3].contains(r#""tool_call_id":"b""#));
    }

    #[test]
    fn arguments_are_an_object_and_results_are_text() {
        let input = |input: Input<'static>| {
            let call = Event::new(Body::ToolCall { call: Some("a".into()), name: "patch".into(), input });
            composed(&[call]).remove(0)
        };
        assert!(input(Input::Text("*** Begin".into())).contains(r#""arguments":"{\"input\":\"*** Begin\"}""#));
        assert!(input(Input::Json("null".into())).contains(r#""arguments":"{}""#));
        assert!(input(Input::Json("[1]".into())).contains(r#""arguments":"{\"input\":[1]}""#));
        let image = || {
            let kind = PieceKind::Blob { media: Some("image/png".into()), data: Data::Inline("AAAA".into()) };
            Piece { kind, extra: ExtraFields::default() }
        };
        let answer = |pieces: Vec<Piece<'static>>| {
            let content = Content::Pieces(pieces);
            let result = Event::new(Body::ToolResult { call: Some("a".into()), name: None, content, error: None });
            composed(&[call("a"), result]).remove(1)
        };
        assert!(answer(vec![image()]).ends_with(r#""content":"[image]"}"#));
        assert!(answer(vec![Piece::text("a cat"), image()]).ends_with(r#""content":"a cat"}"#));
        let message = Event::new(Body::Message { role: Role::User, content: Content::Pieces(vec![image()]) });
        assert!(composed(&[message]).remove(0).contains(r#"{"url":"data:image/png;base64,AAAA"}"#));
    }
}
