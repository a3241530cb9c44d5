//! Every rule, with events.

use super::*;
use crate::Registry;
use crate::model::{Body, Content, Input, Role, Usage};
use crate::read::all;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

fn said(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn call(id: &str, name: &str, input: &str) -> Event<'static> {
    let input = Input::Json(format!("{{\"x\":\"{input}\"}}").into());
    Event::new(Body::ToolCall { call: Some(id.to_owned().into()), name: name.to_owned().into(), input })
}

fn answered(id: &str, text: &str, error: bool) -> Event<'static> {
    let content = Content::text(text.to_owned());
    Event::new(Body::ToolResult { call: Some(id.to_owned().into()), name: None, content, error: Some(error) })
}

fn failure(name: &'static str) -> Event<'static> {
    Event::new(Body::Failure { name: Some(name.into()), content: None })
}

fn stop(reason: Option<&'static str>, success: Option<bool>) -> Event<'static> {
    Event::new(Body::Stop { reason: reason.map(Into::into), success, content: None })
}

fn status(events: &[Event<'_>], silence_ms: u64) -> Status {
    let mut watch = Watch::default();
    events.iter().for_each(|event| watch.add(event));
    watch.summary().status(Some(silence_ms), &Patience::default())
}

fn judged(events: &[Event<'_>], silence_ms: u64) -> (State, Why) {
    let status = status(events, silence_ms);
    (status.state, status.why)
}

/// A call and its result.
fn step(number: usize, name: &str, input: &str, answer: &str, error: bool) -> [Event<'static>; 2] {
    let id = format!("c{number}");
    [call(&id, name, input), answered(&id, answer, error)]
}

#[test]
fn nothing_said_is_unknown() {
    assert_eq!(judged(&[], 0), (State::Unknown, Why::Nothing));
    let title = Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text("Fix it")) });
    let found = status(&[title], 0);
    assert_eq!((found.state, found.title.as_deref()), (State::Unknown, Some("Fix it")));
    let mut watch = Watch::default();
    watch.add(&said(Role::User, "hi"));
    assert_eq!(watch.summary().status(None, &Patience::default()).state, State::Unknown);
}

#[test]
fn a_question_runs_until_silence_is_too_long() {
    let events = [said(Role::User, "Fix the test")];
    assert_eq!(judged(&events, MINUTE), (State::Running, Why::Asked));
    assert_eq!(judged(&events, 5 * MINUTE), (State::Stalled, Why::Asked));
    assert_eq!(status(&events, 0).asked.as_deref(), Some("Fix the test"));
}

#[test]
fn an_open_call_runs_long_after_a_model_would_be_stale() {
    let events = [said(Role::User, "Build it"), call("1", "Bash", "make")];
    assert_eq!(judged(&events, 30 * MINUTE), (State::Running, Why::InCall));
    assert_eq!(judged(&events, HOUR), (State::Stalled, Why::InCall));
    let found = status(&events, 0);
    assert_eq!((found.open, found.tool.as_deref()), (vec!["Bash".to_owned()], Some("Bash")));
    let short = Patience { call_ms: MINUTE, ..Patience::default() };
    let mut watch = Watch::default();
    events.iter().for_each(|event| watch.add(event));
    assert_eq!(watch.summary().status(Some(2 * MINUTE), &short).state, State::Stalled);
}

#[test]
fn an_answer_without_a_word_on_its_end_settles() {
    let events = [said(Role::User, "hi"), said(Role::Assistant, "Hello!")];
    assert_eq!(judged(&events, SECOND), (State::Running, Why::Answering));
    assert_eq!(judged(&events, MINUTE), (State::Idle, Why::Waiting));
    let thinking = Event::new(Body::Thinking { content: Content::text("hm") });
    assert_eq!(judged(&[said(Role::User, "hi"), thinking], 10 * MINUTE), (State::Stalled, Why::Answering));
}

#[test]
fn a_stop_says_how_it_ended() {
    let user = said(Role::User, "hi");
    let after = |last: Event<'static>| judged(&[user.clone(), last], HOUR);
    assert_eq!(after(stop(Some("end_turn"), None)), (State::Idle, Why::Waiting));
    assert_eq!(after(stop(None, Some(true))), (State::Completed, Why::Ended));
    assert_eq!(after(stop(Some("completed"), Some(true))), (State::Completed, Why::Ended));
    assert_eq!(after(stop(Some("end_turn"), Some(false))), (State::Failed, Why::LastError));
    assert_eq!(after(stop(Some("max_tokens"), None)), (State::Failed, Why::CutOff));
    assert_eq!(after(stop(Some("refusal"), None)), (State::Failed, Why::Refused));
    assert_eq!(after(stop(Some("interrupted"), Some(false))), (State::Failed, Why::Interrupted));
    assert_eq!(after(stop(Some("error_during_execution"), None)), (State::Failed, Why::LastError));
    // One that stops for a tool goes on.
    assert_eq!(after(stop(Some("tool_use"), None)), (State::Stalled, Why::Asked));
    assert_eq!(status(&[user.clone(), stop(Some("refusal"), None)], 0).word.as_deref(), Some("refusal"));
    // The user goes on after it.
    assert_eq!(judged(&[stop(Some("end_turn"), None), user], 0), (State::Running, Why::Asked));
}

#[test]
fn an_error_that_success_followed_is_recovered() {
    let user = said(Role::User, "hi");
    assert_eq!(judged(&[user.clone(), failure("overloaded")], HOUR), (State::Error, Why::LastError));
    assert_eq!(status(&[user.clone(), failure("overloaded")], 0).word.as_deref(), Some("overloaded"));
    let over = [user.clone(), failure("overloaded"), stop(Some("end_turn"), None)];
    assert_eq!(judged(&over, 0), (State::Failed, Why::LastError));
    assert_eq!(status(&over, 0).word.as_deref(), Some("overloaded"));
    let recovered = [user.clone(), failure("overloaded"), said(Role::Assistant, "Here."), stop(Some("end_turn"), None)];
    let found = status(&recovered, 0);
    assert_eq!((found.state, found.is_recovered), (State::Idle, true));
    let [call, good] = step(1, "Read", "a", "text", false);
    let found = status(&[user, failure("overloaded"), call, good], 0);
    assert_eq!((found.state, found.is_recovered), (State::Running, true));
}

#[test]
fn a_failing_tool_is_no_error_of_the_run() {
    let mut events = vec![said(Role::User, "hi")];
    events.extend(step(1, "Bash", "make", "no rule", true));
    assert_eq!(judged(&events, 0), (State::Running, Why::Asked));
    events.extend([said(Role::Assistant, "It cannot be made."), stop(Some("end_turn"), None)]);
    assert_eq!(judged(&events, 0), (State::Idle, Why::Waiting));
}

#[test]
fn three_steps_that_fail_in_a_row_are_stuck() {
    let steps = |outcomes: &[bool]| -> Vec<Event<'static>> {
        let each = outcomes.iter().enumerate();
        each.flat_map(|(at, error)| step(at, "Bash", &format!("try {at}"), "answer", *error)).collect()
    };
    assert_eq!(judged(&steps(&[true, true]), 0).0, State::Running);
    assert_eq!(judged(&steps(&[true, true, true]), 0), (State::Stuck, Why::Failing));
    assert_eq!(judged(&steps(&[true, true, false, true]), 0).0, State::Running);
    // Silence is worse, and an end is an end.
    assert_eq!(judged(&steps(&[true, true, true]), HOUR).0, State::Stalled);
    let mut over = steps(&[true, true, true]);
    over.push(stop(Some("end_turn"), None));
    assert_eq!(judged(&over, 0).0, State::Idle);
    // The end of a file may begin in the middle of a step.
    let tail = ["a", "b", "c"].map(|id| answered(id, "no", true));
    assert_eq!(judged(&tail, 0), (State::Stuck, Why::Failing));
}

#[test]
fn calls_that_fail_together_are_one_step() {
    let mut events: Vec<Event<'static>> = ["a", "b", "c"].map(|id| call(id, "Grep", id)).to_vec();
    events.extend(["a", "b", "c"].map(|id| answered(id, "no", true)));
    assert_eq!(judged(&events, 0).0, State::Running);
}

#[test]
fn the_same_call_with_the_same_answer_over_and_over_is_stuck() {
    let same = |number, answer: &str| step(number, "Read", "a.rs", answer, false);
    let four: Vec<Event<'static>> = (0..4).flat_map(|number| same(number, "text")).collect();
    assert_eq!(judged(&four, 0).0, State::Running);
    let five: Vec<Event<'static>> = (0..5).flat_map(|number| same(number, "text")).collect();
    assert_eq!(judged(&five, 0), (State::Stuck, Why::Repeating));
    // Something else in between does not hide it, until it is most of what is done.
    let mixed = |others: usize| -> Vec<Event<'static>> {
        let one = |number| {
            let between = (0..others)
                .flat_map(move |at| step(1000 + number * 10 + at, "Edit", &format!("{number} {at}"), "done", false));
            same(number, "text").into_iter().chain(between)
        };
        (0..5).flat_map(one).collect()
    };
    assert_eq!(judged(&mixed(1), 0).0, State::Stuck);
    assert_eq!(judged(&mixed(2), 0).0, State::Running);
    // Ten files, or one command that says something new each time, are work.
    let files: Vec<Event<'static>> =
        (0..10).flat_map(|number| step(number, "Read", &format!("{number}.rs"), "text", false)).collect();
    assert_eq!(judged(&files, 0).0, State::Running);
    let polls: Vec<Event<'static>> = (0..10).flat_map(|number| same(number, &format!("{number} lines"))).collect();
    assert_eq!(judged(&polls, 0).0, State::Running);
}

#[test]
fn results_without_ids_answer_the_oldest_call() {
    let anonymous = |event: Event<'static>| match event.body {
        Body::ToolCall { name, input, .. } => Event::new(Body::ToolCall { call: None, name, input }),
        Body::ToolResult { content, error, .. } => {
            Event::new(Body::ToolResult { call: None, name: None, content, error })
        }
        body => Event::new(body),
    };
    let events = [call("1", "Read", "a"), call("2", "Grep", "b"), answered("1", "text", false)].map(anonymous);
    assert_eq!(status(&events, 0).open, ["Grep"]);
}

#[test]
fn a_new_answer_ends_calls_that_nobody_answered() {
    let events = [call("1", "WebSearch", "a"), said(Role::Assistant, "Found.")];
    let found = status(&events, HOUR);
    assert_eq!((found.state, found.open.len()), (State::Idle, 0));
    // Text and call of one answer belong together, in whatever order.
    let together = events.map(|event| Event { group: Some("m1".into()), ..event });
    assert_eq!(judged(&together, MINUTE), (State::Running, Why::InCall));
}

#[test]
fn side_conversations_decide_only_where_there_is_no_other() {
    let side = |event: Event<'static>| Event { thread: Some("a1".into()), ..event };
    let done = [side(said(Role::Assistant, "Found.")), side(stop(Some("end_turn"), None))];
    let found = status(&done, 0);
    assert_eq!((found.state, found.why, found.thread.as_deref()), (State::Completed, Why::Ended, Some("a1")));
    let mut events = vec![call("1", "Task", "look")];
    events.extend(done);
    let found = status(&events, MINUTE);
    assert_eq!((found.state, found.why, found.thread), (State::Running, Why::InCall, None));
}

#[test]
fn what_is_said_again_counts_for_nothing() {
    let again = Event { restates: true, ..stop(None, None) };
    assert_eq!(judged(&[said(Role::User, "hi"), again], 0).0, State::Running);
}

#[test]
fn a_message_that_claims_to_repeat_one_that_is_missing_counts() {
    let again = |role, text: &'static str| Event { restates: true, ..said(role, text) };
    let alone = [again(Role::User, "hi"), again(Role::Assistant, "Done."), stop(Some("end_turn"), None)];
    let found = status(&alone, 0);
    assert_eq!((found.state, found.asked.as_deref()), (State::Idle, Some("hi")));
    // The agent repeats the prompt after it ended its turn.
    let repeated = [said(Role::User, "hi"), stop(Some("end_turn"), None), again(Role::User, "hi")];
    assert_eq!(judged(&repeated, 0).0, State::Idle);
}

#[test]
fn markup_that_an_agent_puts_in_asks_for_nothing() {
    let out = "<command-name>/exit</command-name>\n<command-args></command-args>";
    let events = [said(Role::User, "hi"), stop(Some("end_turn"), None), said(Role::User, out)];
    assert_eq!(judged(&events, HOUR).0, State::Idle);
    assert_eq!(status(&events, 0).asked.as_deref(), Some("hi"));
}

#[test]
fn the_context_is_what_the_last_request_was_given() {
    let usage = |input, read, write| {
        let usage = Usage { input: Some(input), cache_read: Some(read), cache_write: write, ..Usage::default() };
        Event { usage: Some(usage), model: Some("m".into()), ..said(Role::Assistant, "x") }
    };
    let mut events = vec![usage(10, 90, None), usage(5, 900, Some(95))];
    assert_eq!(status(&events, 0).context, Some(1000));
    events.push(usage(0, 0, None));
    assert_eq!(status(&events, 0).context, Some(1000));
    events.push(Event::new(Body::Compaction { summary: None }));
    assert_eq!(status(&events, 0).context, None);
    assert_eq!(status(&events, 0).model.as_deref(), Some("m"));
}

/// The first format that has words of its own for the end of an answer and an interruption, and a record in it.
fn record(kind: &str, content: &str, stop: &str) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":\"2026-03-02T09:14:05.000Z\",\
         \"message\":{{\"role\":\"{kind}\",\"id\":\"m1\",\"content\":{content},\"stop_reason\":{stop}}}}}\n"
    )
}

#[test]
fn the_words_of_a_format_are_heard() {
    let format =
        crate::formats::FORMATS.iter().find(|format| !format.info().calls.interruption_messages.is_empty()).unwrap();
    let judged = |lines: &[String]| judged(&all(*format, lines.concat().as_bytes()).events, SECOND);
    let text = r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Done."}]"#;
    let asked = record("user", "\"Fix it\"", "null");
    assert_eq!(judged(&[asked.clone(), record("assistant", text, "null")]), (State::Running, Why::Answering));
    assert_eq!(judged(&[asked.clone(), record("assistant", text, "\"end_turn\"")]), (State::Idle, Why::Waiting));
    assert_eq!(judged(&[asked.clone(), record("assistant", text, "\"tool_use\"")]), (State::Running, Why::Answering));
    let words = format.info().calls.interruption_messages.first().unwrap();
    let broken = record("user", &format!("\"{words}]\""), "null");
    assert_eq!(judged(&[asked, broken]), (State::Failed, Why::Interrupted));
    assert!(Registry::built_in().named(format.info().name).is_some());
}
