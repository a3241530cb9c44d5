//! Prepares a conversation to be sent: the messages of a chat history as CycoD has them after loading it. The file itself is
//! unchanged.

use std::io;

use stenograph::edit::trim::{Depth, Limits, Moment, Rule, Trim, TrimReport, Trimmed, trim};
use stenograph::edit::{self, Original};
use stenograph::format::Wanted;
use stenograph::formats::openai_chat::NOT_ANSWERED;
use stenograph::json::Draft;
use stenograph::model::{Body, Event, Fact, Outline};
use stenograph::read::{Reading, Sink};
use stenograph::write;

use crate::layouts::cycod::DocumentKind;

/// A conversation that is ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedConversation {
    /// Its title.
    pub title: Option<String>,
    /// Its messages, each a JSON object on one line.
    pub messages: Vec<String>,
    /// How many unanswered calls got a placeholder answer.
    pub answered: u64,
    /// How many answers without a call were dropped: models reject them.
    pub orphans: u64,
    /// How many lines were dropped because they are not messages.
    pub others: u64,
}

/// Prepares the messages of a chat history.
pub fn ready(bytes: &[u8]) -> PreparedConversation {
    let mut preparing = Preparation { ready: PreparedConversation::default(), record: Vec::new(), open: Vec::new() };
    let mut reading = Reading::new(DocumentKind::Chat.format(), Wanted::All);
    reading.feed(bytes, &mut preparing);
    reading.end(&mut preparing);
    preparing.give_answers();
    preparing.ready
}

impl PreparedConversation {
    /// Trims the conversation to the limits of a moment, as far as the system prompts and the newest question allow. Returns a
    /// report. A call and its answer are removed together. The limits of one message apply to every message, as in CycoD, and
    /// tool results of the newest turn may be replaced: one question may keep an agent busy for hours.
    pub fn trim(&mut self, limits: Limits, moment: Moment) -> io::Result<TrimReport> {
        let mut bytes = self.messages.join("\n").into_bytes();
        bytes.push(b'\n');
        let original = Original::read(DocumentKind::Chat.format(), &bytes)?;
        let how = Trim { rule: Rule::Pairs, limits, depth: Depth::EveryMessage, ..Trim::default() };
        let Trimmed { plan, report } = trim(&original.events, moment, &how);
        let trimmed = ready(&edit::apply(&original, &plan)?.bytes);
        self.messages = trimmed.messages;
        Ok(report)
    }
}

struct Preparation {
    ready: PreparedConversation,
    /// The parts of the current record.
    record: Vec<Event<'static>>,
    /// The calls without an answer yet.
    open: Vec<String>,
}

impl Sink for Preparation {
    fn event(&mut self, event: &Event<'_>) {
        self.record.push(event.clone().into_owned());
        if event.part.is_last() {
            let record = std::mem::take(&mut self.record);
            self.record(&record);
        }
    }
}

impl Preparation {
    fn record(&mut self, events: &[Event<'static>]) {
        let Some(first) = events.first() else { return };
        match &first.body {
            Body::Fact { fact: Fact::Title, content } => {
                self.ready.title = content.as_ref().map(|content| content.joined().decode().into_owned());
            }
            Body::Fact { .. } => {}
            Body::ToolResult { call: Some(call), .. } => {
                match self.open.iter().position(|open| *open == **call) {
                    Some(at) => {
                        self.open.remove(at);
                        self.put(events);
                    }
                    None => self.ready.orphans += 1,
                };
            }
            // An old answer names the tool and not the call.
            Body::ToolResult { call: None, .. } => self.put(events),
            Body::Message { .. } | Body::Thinking { .. } | Body::ToolCall { .. } => {
                self.give_answers();
                self.put(events);
                self.open = events.iter().filter(|event| is_call(event)).filter_map(called).collect();
            }
            Body::Compaction { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {
                self.ready.others += 1;
            }
        }
    }

    fn put(&mut self, events: &[Event<'static>]) {
        // Without an outline nothing is added that a record only carries.
        let message = write::fragment(DocumentKind::Chat.format(), &Outline::default(), events);
        match message.and_then(|message| String::from_utf8(message).ok()) {
            Some(message) => self.ready.messages.push(message),
            None => self.ready.others += 1,
        }
    }

    /// Answers unanswered calls with CycoD's placeholder: models reject a conversation without.
    fn give_answers(&mut self) {
        for call in std::mem::take(&mut self.open) {
            let mut answer = Draft::new();
            answer.set_str("role", "tool");
            answer.set_str("tool_call_id", &call);
            answer.set_str("content", NOT_ANSWERED);
            self.ready.messages.push(answer.render(None));
            self.ready.answered += 1;
        }
    }
}

fn is_call(event: &Event<'_>) -> bool {
    matches!(event.body, Body::ToolCall { .. })
}

fn called(event: &Event<'_>) -> Option<String> {
    event.call().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"role":"assistant","content":"Looking","tool_calls":[{"id":"a","function":{"name":"look","arguments":"{}"},"type":"function"},{"id":"b","function":{"name":"look","arguments":"{}"},"type":"function"}]}"#;

    #[test]
    fn dangling_calls_are_answered_as_cycod_does() {
        let answer = r#"{"role":"tool","tool_call_id":"b","content":"seen"}"#;
        let user = r#"{"role": "user", "content": "h\u0069"}"#;
        let source = format!(
            "\u{feff}{{\"_meta\":{{\"title\":\"Oak\",\"titleLocked\":false}}}}\n{CALL}\n{answer}\n{user}\n{CALL}"
        );
        let ready = ready(source.as_bytes());
        let dangling = |id: &str| {
            format!(
                r#"{{"role":"tool","tool_call_id":"{id}","content":"{{\"result\": \"...unknown; tool not called...\"}}"}}"#
            )
        };
        let user = r#"{"role":"user","content":"h\u0069"}"#.to_owned();
        let expected =
            [CALL.to_owned(), answer.to_owned(), dangling("a"), user, CALL.to_owned(), dangling("a"), dangling("b")];
        assert_eq!(ready.messages, expected);
        assert_eq!((ready.title.as_deref(), ready.answered), (Some("Oak"), 3));
    }

    #[test]
    fn a_trimmed_conversation_can_still_be_sent() {
        let long = "x".repeat(4000);
        let answers = format!(
            "{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{long}\"}}\n\
             {{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"b\"}}\n"
        );
        let user = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
        let source = [user("old"), format!("{CALL}\n"), answers, user("and a new one")].concat();
        let mut fits = ready(source.as_bytes());
        let account = fits.trim(Limits { chat: 300, ..Limits::NONE }, Moment::Load).unwrap();
        assert!(account.is_reached() && account.before > 1000 && account.after <= 300);
        assert_eq!(fits.messages.last().unwrap(), user("and a new one").trim_end());
        assert_eq!(ready(fits.messages.join("\n").as_bytes()).answered, 0);
        let account = ready(source.as_bytes()).trim(Limits { chat: 1, ..Limits::NONE }, Moment::Request).unwrap();
        assert!(!account.is_reached());
    }

    #[test]
    fn the_limits_of_a_message_apply_to_the_newest_question_and_its_results() {
        let long = "x".repeat(4000);
        let source = format!(
            "{{\"role\":\"user\",\"content\":\"{long}\"}}\n{CALL}\n{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{long}\"}}\n"
        );
        let mut cut = ready(source.as_bytes());
        cut.trim(Limits { prompt: 100, tool: 200, chat: 0 }, Moment::Load).unwrap();
        let sizes: Vec<usize> = cut.messages.iter().map(String::len).collect();
        assert!(cut.messages[0].len() < 500 && cut.messages[0].contains("...snip..."), "{sizes:?}");
        assert!(cut.messages[2].len() < 1000 && cut.messages[2].contains("...snip..."), "{sizes:?}");
    }

    #[test]
    fn records_that_models_reject_are_dropped_and_counted() {
        let source = "{\"banana\":1}\n{\"role\":\"user\",\"content\":\"a\"}\n\
                      {\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"y\"}\nnot json\n";
        let ready = ready(source.as_bytes());
        assert_eq!(ready.messages, [r#"{"role":"user","content":"a"}"#]);
        assert_eq!((ready.orphans, ready.others), (1, 2));
    }
}
