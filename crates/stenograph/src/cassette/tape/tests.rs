//! The entries of a tape and their order.

use super::*;
use crate::formats::steno::Steno;
use crate::model::{Body, Content, Input};
use crate::read::all;

fn user(text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role: Role::User, content: Content::text(text) })
}

fn spoke(text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role: Role::Assistant, content: Content::text(text) })
}

fn called(id: Option<&'static str>) -> Event<'static> {
    let input = Input::Json("{\"where\":\"harbour\"}".into());
    Event::new(Body::ToolCall { call: id.map(Into::into), name: "look".into(), input })
}

fn answered(id: Option<&'static str>, text: &'static str) -> Event<'static> {
    Event::new(Body::ToolResult { call: id.map(Into::into), name: None, content: Content::text(text), error: None })
}

fn grouped(event: Event<'static>, group: &'static str) -> Event<'static> {
    Event { group: Some(group.into()), ..event }
}

fn at(event: Event<'static>, time: &'static str) -> Event<'static> {
    Event { time: Time::iso(time.into()), ..event }
}

/// The items of a request for each answer, and those of the answer, one word each.
fn words(tape: &Tape) -> Vec<(String, String)> {
    let all = |items: Vec<&ChatItem>| items.iter().map(|item| item.text()).collect::<Vec<_>>().join(" | ");
    let answer = |answer: &Answer| {
        let blocks = answer.blocks.iter().map(|block| &block.item).collect();
        (all(tape.conversation(answer).iter().collect()), all(blocks))
    };
    tape.answers().iter().map(answer).collect()
}

const LOOK: &str = "look({\"where\":\"harbour\"})";

#[test]
fn an_answer_ends_where_another_speaker_begins() {
    let events = [
        user("go"),
        spoke("I look."),
        called(Some("a")),
        answered(Some("a"), "ships"),
        spoke("Ships."),
        user("more"),
        spoke("No."),
    ];
    let tape = Tape::of(&events, None);
    let expected = [
        ("go".to_owned(), format!("I look. | {LOOK}")),
        (format!("go | I look. | {LOOK} | ships"), "Ships.".to_owned()),
        (format!("go | I look. | {LOOK} | ships | Ships. | more"), "No.".to_owned()),
    ];
    assert_eq!(words(&tape), expected);
    assert_eq!(
        tape.answers().iter().map(|answer| answer.stop).collect::<Vec<_>>(),
        [Stop::Tools, Stop::End, Stop::End]
    );
}

#[test]
fn a_result_in_the_middle_of_an_answer_does_not_divide_it() {
    let events = [
        user("go"),
        grouped(called(Some("a")), "msg_1"),
        answered(Some("a"), "one"),
        grouped(called(Some("b")), "msg_1"),
        answered(Some("b"), "two"),
        grouped(spoke("Done."), "msg_2"),
    ];
    let tape = Tape::of(&events, None);
    let expected = [
        ("go".to_owned(), format!("{LOOK} | {LOOK}")),
        (format!("go | {LOOK} | {LOOK} | one | two"), "Done.".to_owned()),
    ];
    assert_eq!(words(&tape), expected);
    assert_eq!(tape.answers().first().unwrap().id.as_deref(), Some("msg_1"));
}

#[test]
fn a_summary_replaces_everything_before_it() {
    let summary = Event::new(Body::Compaction { summary: Some(Content::text("They found ships.")) });
    let events = [user("go"), spoke("Ships."), summary, user("more"), spoke("No.")];
    assert_eq!(words(&Tape::of(&events, None)).last().unwrap().0, "They found ships. | more");
}

#[test]
fn prompts_are_not_part_of_the_conversation() {
    let prompt = Event::new(Body::Message { role: Role::System, content: Content::text("Be brief.") });
    let tape = Tape::of(&[prompt, user("go"), spoke("So.")], None);
    let answer = tape.answers().first().unwrap();
    assert_eq!(tape.prompts(answer), ["Be brief."]);
    assert_eq!(words(&tape), [("go".to_owned(), "So.".to_owned())]);
}

#[test]
fn a_side_conversation_is_played_only_on_request() {
    let in_side = |event: Event<'static>| Event { thread: Some("agent-7".into()), ..event };
    let events = [user("go"), in_side(user("dig")), in_side(spoke("dug")), spoke("So.")];
    assert_eq!(words(&Tape::of(&events, None)), [("go".to_owned(), "So.".to_owned())]);
    assert_eq!(words(&Tape::of(&events, Some("agent-7"))), [("dig".to_owned(), "dug".to_owned())]);
    assert!(Tape::of(&events, Some("agent-8")).answers().is_empty());
    let mut builder = TapeBuilder::new(None);
    events.iter().for_each(|event| builder.notice(event));
    assert_eq!(builder.threads(), ["agent-7"]);
}

#[test]
fn an_id_that_no_vendor_accepts_is_replaced_in_call_and_result() {
    let events = [
        user("go"),
        called(None),
        answered(None, "one"),
        called(Some("an id / with spaces")),
        answered(Some("an id / with spaces"), "two"),
        spoke("So."),
    ];
    let tape = Tape::of(&events, None);
    let ids: Vec<&str> = tape
        .conversation
        .iter()
        .filter_map(|item| match item {
            ChatItem::Call { id, .. } | ChatItem::Result { id, .. } => Some(id.as_str()),
            ChatItem::Message { .. } | ChatItem::Thinking { .. } => None,
        })
        .collect();
    assert_eq!(ids.len(), 4);
    assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2], "{ids:?}");
    assert!(ids.iter().all(|id| id.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')), "{ids:?}");
    assert_eq!(tape, Tape::of(&events, None));
}

#[test]
fn the_usage_of_an_answer_may_follow_it() {
    let usage = |input, output| Some(Usage { input: Some(input), output: Some(output), ..Usage::default() });
    let fact = Body::Fact { fact: "usage".into(), content: None };
    let events = [
        user("go"),
        Event { usage: usage(5, 1), ..called(Some("a")) },
        answered(Some("a"), "one"),
        Event { usage: usage(5, 30), ..Event::new(fact) },
        spoke("So."),
    ];
    let tape = Tape::of(&events, None);
    assert_eq!(tape.answers().first().unwrap().usage, usage(5, 30).unwrap());
    assert_eq!(tape.answers().last().unwrap().usage, Usage::default());
}

#[test]
fn times_increase_and_waits_are_limited() {
    let events = [
        at(user("go"), "2026-03-02T09:00:00Z"),
        at(spoke("One."), "2026-03-02T09:00:02.5Z"),
        at(spoke("Two."), "2026-03-02T08:00:00Z"),
        at(spoke("Three."), "2026-03-09T09:00:00Z"),
    ];
    let tape = Tape::of(&events, None);
    let waits: Vec<u64> = tape.answers().first().unwrap().blocks.iter().map(|block| block.after_ms).collect();
    assert_eq!(waits, [2500, 0, 600_000]);
}

#[test]
fn a_session_without_an_answer_is_an_empty_tape() {
    assert!(Tape::of(&[], None).answers().is_empty());
    assert!(Tape::of(&[user("go"), answered(None, "so")], None).answers().is_empty());
}

#[test]
fn errors_of_the_service_are_answers_on_request() {
    let session = r#"{"v":1,"kind":"message","role":"user","content":"go"}
{"v":1,"kind":"failure","content":"Overloaded","extra":{"x":{"error":{"status":529}}}}
{"v":1,"kind":"failure","content":"no status","extra":{"x":{"error":{"status":"none"}}}}
{"v":1,"kind":"failure","content":"no error","extra":{"x":{"status":200}}}
{"v":1,"kind":"message","model":"m","role":"assistant","content":"Done."}
{"v":1,"kind":"failure","content":"in the middle","extra":{"x":{"status":500}}}
"#;
    let events = all(&Steno, session.as_bytes()).events;
    let taped = |errors: Errors| {
        let mut builder = TapeBuilder::new(None).with_errors(errors);
        events.iter().for_each(|event| builder.notice(event));
        builder.decide();
        events.iter().for_each(|event| builder.add(event));
        builder.finish()
    };
    assert_eq!(taped(Errors::Left).answers().len(), 1);
    let tape = taped(Errors::Played);
    let [failed, answer] = tape.answers() else { panic!("{tape:?}") };
    assert_eq!(failed.failed, Some(Failed { status: 529, message: "Overloaded".into() }));
    assert_eq!((answer.failed.as_ref(), answer.number), (None, 2));
    // Both have the same request.
    assert_eq!((tape.conversation(failed), tape.conversation(failed).len()), (tape.conversation(answer), 1));
}
