//! Makes messages of another system's events: what a model said and did in one response becomes one message, and every call
//! is answered before anybody else speaks, because the API takes nothing else.

use std::collections::VecDeque;

use super::write::render;
use crate::model::{Body, Content, Event, Input, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::Str;

/// What stands for an answer that the source does not have: the words that CycoD puts there when it loads such a file.
pub const NOT_ANSWERED: &str = r#"{"result": "...unknown; tool not called..."}"#;

/// The tool of an answer of which nobody knows who gave it.
const NO_NAME: &str = "tool";

/// How many messages wait for the answers to earlier calls.
const WAITING_MAX: usize = 64;

/// How many events of one response are shown before it ends.
const HELD_PARTS_MAX: usize = 256;

/// Gathers events into messages. It holds one model response, and what was said while calls are unanswered.
#[derive(Debug)]
pub struct Composer {
    /// The stand-ins of the file.
    pub stand_ins: Synthesizer,
    turn: Vec<Event<'static>>,
    /// The messages with calls that are not all answered. The first one is written already; the others wait for its answers.
    open: VecDeque<Asked>,
}

/// A message with calls that are not all answered.
#[derive(Debug)]
struct Asked {
    /// The response it belongs to, where the source says so.
    group: Option<String>,
    /// The message itself; empty once it is written.
    message: String,
    /// The calls that nobody answered yet.
    calls: Vec<String>,
    /// The answers that wait until the message is written.
    answers: Vec<String>,
    /// What was said meanwhile.
    after: Vec<String>,
}

impl Composer {
    /// A composer for a session.
    pub fn new(outline: &Outline) -> Composer {
        Composer { stand_ins: Synthesizer::new(outline), turn: Vec::new(), open: VecDeque::new() }
    }

    /// Takes one event and gives the messages it completes. Facts, failures and stops have no place in a message.
    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        match &event.body {
            // A thought of which nothing is readable has no place: what seals it is another vendor's own.
            Body::Thinking { content } if content.is_empty() => {}
            Body::Thinking { .. } | Body::Message { role: Role::Assistant, .. } | Body::ToolCall { .. } => {
                self.model(event, out);
            }
            Body::ToolResult { .. } => self.answer(event, out),
            Body::Message { .. } | Body::Compaction { summary: Some(_) } => self.others(event, out),
            Body::Compaction { summary: None } => {}
            Body::Fact { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {}
        }
    }

    /// The messages that are held back, as they are so far: what waits for an answer, and the response under way.
    pub fn held(&self, out: &mut Vec<String>) {
        for Asked { message, answers, after, .. } in &self.open {
            out.extend(
                Some(message).filter(|message| !message.is_empty()).into_iter().chain(answers).chain(after).cloned(),
            );
        }
        // Each event of a response would render all of it again: a very long one is left out until it ends.
        if !self.turn.is_empty() && self.turn.len() <= HELD_PARTS_MAX {
            out.push(render(&self.turn, ""));
        }
    }

    /// Gives what is held back.
    pub fn finish(&mut self, out: &mut Vec<String>) {
        self.close_turn(out);
        self.give_up(out);
    }

    /// What the model said or did.
    fn model(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        if !self.joins(event) {
            self.close_turn(out);
        }
        let mut event = event.clone().into_owned();
        if let Body::ToolCall { call, name, .. } = &mut event.body {
            *call = Some(self.stand_ins.pairing.call(call.as_deref(), name).into());
        }
        self.turn.push(event);
    }

    /// Whether an event can stand in the message under way: it is of the same response, and comes in a message's order.
    fn joins(&self, event: &Event<'_>) -> bool {
        let Some(last) = self.turn.last() else { return true };
        // A message has one name, so that only one can speak in it.
        let differ = |last: &Option<Str<'_>>, next: &Option<Str<'_>>| last.is_some() && next.is_some() && last != next;
        let apart = differ(&last.group, &event.group) || differ(&last.from, &event.from);
        let in_order = match &event.body {
            Body::ToolCall { .. } => true,
            Body::Message { .. } => matches!(last.body, Body::Thinking { .. }),
            _ => false,
        };
        in_order && !apart
    }

    fn answer(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        let pair = self.stand_ins.pairing.result(event.call());
        let (paired, tool) = pair.unzip();
        let stated = event.call().map(str::to_owned).or(paired);
        let id = stated.unwrap_or_else(|| self.stand_ins.pairing.orphan());
        if !self.open.iter().any(|asked| asked.calls.contains(&id)) {
            self.close_turn(out);
        }
        let mut event = event.clone().into_owned();
        let mut tool = tool;
        if let Body::ToolResult { call, name, .. } = &mut event.body {
            *call = Some(id.clone().into());
            tool = name.as_deref().map(str::to_owned).or(tool);
        }
        let message = render(&[event], "");
        let asked = self.open.iter_mut().find_map(|asked| {
            let at = asked.calls.iter().position(|call| *call == id)?;
            asked.calls.remove(at);
            Some(asked)
        });
        match asked {
            Some(asked) if asked.message.is_empty() => out.push(message),
            Some(asked) => asked.answers.push(message),
            None => {
                // The API takes no answer that nobody asked for: a call is made up, which the loss report shows.
                let (name, input) = (tool.unwrap_or_else(|| NO_NAME.to_owned()).into(), Input::Json("{}".into()));
                let call = Event::new(Body::ToolCall { call: Some(id.into()), name, input });
                self.say(render(&[call], ""), out);
                self.say(message, out);
            }
        }
        self.release(out);
    }

    /// What anybody but the model said.
    fn others(&mut self, event: &Event<'_>, out: &mut Vec<String>) {
        self.close_turn(out);
        self.say(render(std::slice::from_ref(event), ""), out);
        self.release(out);
    }

    /// Writes a message, behind the answers that are still to come.
    fn say(&mut self, message: String, out: &mut Vec<String>) {
        match self.open.back_mut() {
            Some(asked) => asked.after.push(message),
            None => out.push(message),
        }
    }

    /// Writes what waits for no answer any more.
    fn release(&mut self, out: &mut Vec<String>) {
        while self.open.front().is_some_and(|asked| asked.calls.is_empty()) {
            out.extend(self.open.pop_front().into_iter().flat_map(|asked| asked.after));
            if let Some(next) = self.open.front_mut() {
                out.push(std::mem::take(&mut next.message));
                out.append(&mut next.answers);
            }
        }
        let waiting = |asked: &Asked| 1 + asked.answers.len() + asked.after.len();
        if self.open.iter().map(waiting).sum::<usize>() > WAITING_MAX {
            self.give_up(out);
        }
    }

    /// Ends the message under way. Calls of the one before it can be answered no more, unless both are of one response: a response
    /// goes on while the first of its calls are answered.
    fn close_turn(&mut self, out: &mut Vec<String>) {
        if self.turn.is_empty() {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        let group = turn.iter().find_map(|event| event.group.as_deref()).map(str::to_owned);
        let calls_only = turn.iter().all(|event| matches!(event.body, Body::ToolCall { .. }));
        let goes_on = self.open.back().is_some_and(|asked| match (&asked.group, &group) {
            (Some(before), Some(now)) => before == now,
            _ => calls_only && asked.after.is_empty(),
        });
        if !goes_on {
            self.give_up(out);
        }
        let mut message = render(&turn, "");
        if self.open.is_empty() {
            out.push(std::mem::take(&mut message));
        }
        let calls: Vec<String> = turn.iter().filter_map(|event| event.call().map(str::to_owned)).collect();
        if !message.is_empty() || !calls.is_empty() {
            self.open.push_back(Asked { group, message, calls, answers: Vec::new(), after: Vec::new() });
        }
    }

    /// Answers the calls that nobody answered, and lets go of what waited for it.
    fn give_up(&mut self, out: &mut Vec<String>) {
        for asked in std::mem::take(&mut self.open) {
            out.extend(Some(asked.message).filter(|message| !message.is_empty()));
            out.extend(asked.answers);
            for id in asked.calls {
                let content = Content::text(NOT_ANSWERED);
                let body = Body::ToolResult { call: Some(id.into()), name: None, content, error: None };
                out.push(render(&[Event::new(body)], ""));
            }
            out.extend(asked.after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Data, ExtraFields, Piece, PieceKind};

    fn said(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn called(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input: Input::Json("{}".into()) })
    }

    fn answered(id: &'static str) -> Event<'static> {
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
        let sealed = Event::new(Body::Thinking { content: Content::text("") });
        let thought = Event::new(Body::Thinking { content: Content::text("hm") });
        let events = [
            sealed,
            thought,
            said(Role::Assistant, "Let me look."),
            called("a"),
            called("b"),
            answered("a"),
            answered("b"),
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
    fn a_response_goes_on_while_its_first_calls_are_answered() {
        let of = |event: Event<'static>| Event { group: Some("one".into()), ..event };
        let events = [
            of(called("a")),
            of(called("b")),
            answered("a"),
            of(called("c")),
            answered("c"),
            said(Role::User, "well?"),
            answered("b"),
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
    fn what_is_held_back_can_be_looked_at() {
        let mut composer = Composer::new(&Outline::default());
        let (mut out, mut held) = (Vec::new(), Vec::new());
        [said(Role::Assistant, "Let me look."), called("a")].iter().for_each(|event| composer.event(event, &mut out));
        composer.held(&mut held);
        assert!(
            out.is_empty() && held.len() == 1 && held[0].contains("Let me look.") && held[0].contains(r#""id":"a""#)
        );
        composer.event(&said(Role::User, "well?"), &mut out);
        assert_eq!(out, held);
        held.clear();
        composer.held(&mut held);
        assert_eq!(held, [r#"{"role":"user","content":"well?"}"#]);
    }

    #[test]
    fn what_is_said_before_an_answer_waits_for_it() {
        let messages =
            composed(&[called("a"), said(Role::User, "well?"), answered("a"), said(Role::Assistant, "Here.")]);
        assert_eq!(messages[1], r#"{"role":"tool","tool_call_id":"a","content":"a"}"#);
        assert_eq!(messages[2], r#"{"role":"user","content":"well?"}"#);
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn a_call_that_nobody_answers_is_answered() {
        let messages = composed(&[called("a"), said(Role::User, "stop"), said(Role::Assistant, "Stopped.")]);
        assert!(
            messages[1].starts_with(r#"{"role":"tool","tool_call_id":"a","content":"{\"result\": "#),
            "{}",
            messages[1]
        );
        assert_eq!(messages[2], r#"{"role":"user","content":"stop"}"#);
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn an_answer_that_nobody_asked_for_gets_a_call() {
        let orphan = Event::new(Body::ToolResult {
            call: None,
            name: Some("look".into()),
            content: Content::text("seen"),
            error: None,
        });
        let messages = composed(&[called("a"), orphan, answered("a")]);
        assert_eq!(messages.len(), 4);
        // Without an id it answers the oldest call; the second answer is the one that nobody asked for.
        assert_eq!(messages[1], r#"{"role":"tool","tool_call_id":"a","content":"seen","name":"look"}"#);
        assert!(messages[2].starts_with(r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","#));
        assert_eq!(messages[3], r#"{"role":"tool","tool_call_id":"a","content":"a"}"#);
        let messages = composed(&[called("a"), answered("b"), answered("a")]);
        let roles: Vec<&str> = messages.iter().map(|message| message.split('"').nth(3).unwrap()).collect();
        assert_eq!(roles, ["assistant", "tool", "assistant", "tool"]);
        assert!(messages[2].contains(r#""id":"b""#) && messages[3].contains(r#""tool_call_id":"b""#));
    }

    #[test]
    fn arguments_are_an_object_and_answers_are_text() {
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
            composed(&[called("a"), result]).remove(1)
        };
        assert!(answer(vec![image()]).ends_with(r#""content":"[image]"}"#));
        assert!(answer(vec![Piece::text("a cat"), image()]).ends_with(r#""content":"a cat"}"#));
        let said = Event::new(Body::Message { role: Role::User, content: Content::Pieces(vec![image()]) });
        assert!(composed(&[said]).remove(0).contains(r#"{"url":"data:image/png;base64,AAAA"}"#));
    }
}
