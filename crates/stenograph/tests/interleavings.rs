//! Parallel calls of one response are one turn, in whatever order their records come and whichever parents they name: every
//! order gives the same conversation, with and without user messages.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use stenograph::Registry;
use stenograph::convert::{Carry, Outcome, convert};
use stenograph::model::{Body, Event};
use stenograph::read::all;

/// The number of calls in the response.
const CALLS: usize = 3;

/// A record of the turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Record {
    Call(usize),
    Result(usize),
}

/// Which record a call of the response follows.
#[derive(Clone, Copy, Debug)]
enum Follows {
    CallBefore,
    RecordBefore,
    Prompt,
}

/// The position of the user's message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Words {
    Nowhere,
    /// In the record of this result.
    Within(usize),
    /// In a record that follows this result.
    After(usize),
}

/// Which record the next response follows.
#[derive(Clone, Copy, Debug)]
enum Next {
    RecordBefore,
    Result(usize),
}

/// Every order in which calls keep their order and results come after their calls.
fn orders() -> Vec<Vec<Record>> {
    fn extend(order: &mut Vec<Record>, found: &mut Vec<Vec<Record>>) {
        if order.len() == 2 * CALLS {
            return found.push(order.clone());
        }
        let calls = order.iter().filter(|record| matches!(record, Record::Call(_))).count();
        let call = (calls < CALLS).then_some(Record::Call(calls));
        let results = (0..calls).map(Record::Result).filter(|result| !order.contains(result));
        for record in call.into_iter().chain(results).collect::<Vec<_>>() {
            order.push(record);
            extend(order, found);
            order.pop();
        }
    }
    let mut found = Vec::new();
    extend(&mut Vec::new(), &mut found);
    found
}

/// A session file under construction.
#[derive(Default)]
struct File {
    text: String,
    last: Option<String>,
}

impl File {
    fn add(&mut self, kind: &str, id: &str, parent: Option<&str>, message: &str) {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        self.text.push_str(&format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/w\",\"sessionId\":\"s\",\
             \"version\":\"2.1.0\",\"type\":\"{kind}\",\"uuid\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\"{message}}}\n"
        ));
        self.last = Some(id.to_owned());
    }

    fn prompt(&mut self, id: &str, parent: Option<&str>, text: &str) {
        self.add("user", id, parent, &format!(",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}"));
    }

    fn response(&mut self, id: &str, parent: Option<&str>, group: &str, block: &str) {
        let message = format!(
            ",\"message\":{{\"id\":\"{group}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\
             \"content\":[{block}],\"stop_reason\":null,\"usage\":{{\"input_tokens\":1,\"output_tokens\":2}}}}"
        );
        self.add("assistant", id, parent, &message);
    }

    fn turn(&mut self, order: &[Record], follows: Follows, words: Words, next: Next) {
        let prompt = self.last.clone();
        for record in order {
            let before = self.last.clone();
            match *record {
                Record::Call(call) => {
                    let parent = match follows {
                        Follows::CallBefore if call > 0 => Some(format!("call-{}", call - 1)),
                        Follows::RecordBefore => before,
                        Follows::CallBefore | Follows::Prompt => prompt.clone(),
                    };
                    let input = format!(
                        "{{\"type\":\"tool_use\",\"id\":\"t{call}\",\"name\":\"look\",\"input\":{{\"n\":{call}}}}}"
                    );
                    self.response(&format!("call-{call}"), parent.as_deref(), "one", &input);
                }
                Record::Result(call) => {
                    let text =
                        if words == Words::Within(call) { ",{\"type\":\"text\",\"text\":\"and test it\"}" } else { "" };
                    let message = format!(
                        ",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{call}\",\
                         \"content\":\"found {call}\"}}{text}]}}"
                    );
                    let (id, parent) = (format!("result-{call}"), format!("call-{call}"));
                    self.add("user", &id, Some(&parent), &message);
                    let hook = format!("hook-{call}");
                    self.add("progress", &hook, Some(&id), ",\"data\":{\"type\":\"hook_progress\"}");
                    self.last = Some(id.clone());
                    if words == Words::After(call) {
                        self.prompt("words", Some(&id), "and test it");
                    }
                }
            }
        }
        let parent = match next {
            Next::RecordBefore => self.last.clone(),
            Next::Result(call) => Some(format!("result-{call}")),
        };
        self.response("next", parent.as_deref(), "two", "{\"type\":\"text\",\"text\":\"all three looked\"}");
    }
}

/// The messages, calls and results of a source, sorted.
fn contents(events: &[Event<'_>]) -> Vec<String> {
    let mut contents: Vec<String> = events
        .iter()
        .filter(|event| !event.restates)
        .filter_map(|event| match &event.body {
            Body::Message { role, content } => Some(format!("{} {}", role.name(), content.joined().decode())),
            Body::ToolCall { call, input, .. } => Some(format!("call {call:?} {}", input.to_text().decode())),
            Body::ToolResult { call, content, .. } => Some(format!("result {call:?} {}", content.joined().decode())),
            _ => None,
        })
        .collect();
    contents.sort();
    contents
}

fn converted(source: &str, to: &str) -> (Vec<String>, Outcome) {
    let (from, to) = (Registry::built_in().named("claude-code").unwrap(), Registry::built_in().named(to).unwrap());
    let mut out = Vec::new();
    let outcome = convert(from, &mut source.as_bytes(), to, &mut out, Carry::Omit).unwrap();
    (contents(&all(to, &out).events), outcome)
}

#[test]
fn parallel_calls_are_one_turn_in_every_order() {
    let mut tried = 0;
    let orders = orders();
    assert_eq!(orders.len(), 15);
    let all_words = [
        Words::Nowhere,
        Words::Within(0),
        Words::Within(1),
        Words::Within(2),
        Words::After(0),
        Words::After(1),
        Words::After(2),
    ];
    for words in all_words {
        for order in &orders {
            for follows in [Follows::CallBefore, Follows::RecordBefore, Follows::Prompt] {
                for next in [Next::RecordBefore, Next::Result(0), Next::Result(1), Next::Result(2)] {
                    let mut file = File::default();
                    file.prompt("start", None, "look three times");
                    file.turn(order, follows, words, next);
                    file.prompt("end", Some("next"), "thank you");
                    let (found, outcome) = converted(&file.text, "openai-chat");
                    let case = format!("{words:?} {order:?} {follows:?} {next:?}\n{:#?}", outcome.losses.summary());
                    let mut expected = vec!["assistant all three looked".to_owned()];
                    expected.extend((0..CALLS).map(|call| format!("call Some(\"t{call}\") {{\"n\":{call}}}")));
                    expected.extend((0..CALLS).map(|call| format!("result Some(\"t{call}\") found {call}")));
                    expected.extend(["user look three times", "user thank you"].map(str::to_owned));
                    if words != Words::Nowhere {
                        expected.push("user and test it".to_owned());
                    }
                    expected.sort();
                    assert_eq!(found, expected, "{case}");
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 7 * 15 * 3 * 4);
}

#[test]
fn an_edited_prompt_abandons_the_branch_of_the_old_one_in_every_order() {
    for order in orders() {
        for words in [Words::Nowhere, Words::Within(1)] {
            let mut file = File::default();
            file.prompt("start", None, "look three times");
            file.turn(&order, Follows::RecordBefore, words, Next::RecordBefore);
            file.prompt("edited", Some("next"), "no, look up");
            file.response("up", Some("edited"), "three", "{\"type\":\"text\",\"text\":\"looked up\"}");
            file.prompt("again", Some("next"), "no, look down");
            file.response("down", Some("again"), "four", "{\"type\":\"text\",\"text\":\"looked down\"}");
            let lines = file.text.lines().count();
            let (found, outcome) = converted(&file.text, "openai-chat");
            assert!(found.contains(&"user no, look down".to_owned()), "{found:?}");
            assert!(!found.contains(&"user no, look up".to_owned()), "{found:?}");
            assert!(!found.contains(&"assistant looked up".to_owned()), "{found:?}");
            assert!(found.contains(&"result Some(\"t1\") found 1".to_owned()), "{found:?}");
            let summary = outcome.losses.summary().join("\n");
            let expected = format!("2 left out (on an abandoned branch; lines {}-{})", lines - 3, lines - 2);
            assert!(summary.contains(&expected), "{summary}");
        }
    }
}

#[test]
fn editing_the_prompt_before_a_turn_abandons_the_whole_turn() {
    for order in orders() {
        let mut file = File::default();
        file.prompt("start", None, "hello");
        file.response("hi", Some("start"), "zero", "{\"type\":\"text\",\"text\":\"hi\"}");
        file.prompt("look", Some("hi"), "look three times");
        file.turn(&order, Follows::CallBefore, Words::Within(0), Next::RecordBefore);
        file.prompt("again", Some("hi"), "do not look");
        file.response("well", Some("again"), "four", "{\"type\":\"text\",\"text\":\"well\"}");
        let (found, _) = converted(&file.text, "openai-chat");
        assert_eq!(found, ["assistant hi", "assistant well", "user do not look", "user hello"]);
    }
}

#[test]
fn commands_beside_the_conversation_are_never_abandoned() {
    let mut file = File::default();
    file.prompt("caveat", None, "Caveat: these are commands");
    for (id, command) in [("one", "/doctor"), ("two", "/status")] {
        file.prompt(
            id,
            Some("caveat"),
            &format!("<command-name>{command}</command-name>\\n<command-args></command-args>"),
        );
        let output = format!("{id}-output");
        file.prompt(&output, Some(id), "<local-command-stdout>fine</local-command-stdout>");
    }
    file.prompt("asked", Some("caveat"), "go on");
    file.response("done", Some("asked"), "one", "{\"type\":\"text\",\"text\":\"done\"}");
    let (found, outcome) = converted(&file.text, "openai-chat");
    assert_eq!(found.len(), 7, "{found:?} {:?}", outcome.losses.summary());
}

#[test]
fn every_format_receives_the_whole_turn() {
    let mut file = File::default();
    file.prompt("start", None, "look three times");
    let order =
        [Record::Call(0), Record::Call(1), Record::Result(0), Record::Call(2), Record::Result(1), Record::Result(2)];
    file.turn(&order, Follows::RecordBefore, Words::Within(0), Next::RecordBefore);
    for to in Registry::built_in().targets().filter(|to| to.info().name != "claude-code") {
        let (_, outcome) = converted(&file.text, to.info().name);
        let summary = outcome.losses.summary().join("\n");
        assert!(!summary.contains("abandoned"), "{}: {summary}", to.info().name);
    }
}
