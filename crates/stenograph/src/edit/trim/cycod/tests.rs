//! Expectations worked out by hand from CycoD's own steps.

use super::*;
use crate::edit::Sketched;

fn trim(events: &[Event<'static>], limits: Limits) -> Trimmed {
    let mut sizes = Sizes::new(limits);
    events.iter().for_each(|event| sizes.add(event));
    sizes.trim(&events.sketches())
}

fn user(text: &str) -> Event<'static> {
    Event::new(Body::Message { role: Role::User, content: Content::text(text.to_owned()) })
}

fn assistant(text: &str) -> Event<'static> {
    Event::new(Body::Message { role: Role::Assistant, content: Content::text(text.to_owned()) })
}

fn result(text: &str) -> Event<'static> {
    let content = Content::text(text.to_owned());
    Event::new(Body::ToolResult { call: Some("c".into()), name: None, content, error: None })
}

fn limits(prompt: u64, tool: u64, chat: u64) -> Limits {
    Limits { chat, prompt, tool }
}

fn texts(events: &[Event<'static>], limits: Limits) -> Vec<String> {
    let left = trim(events, limits).plan.outcome(events);
    left.iter().map(|event| event.content().unwrap().joined().decode().into_owned()).collect()
}

#[test]
fn a_prompt_of_exactly_the_limit_stays_and_one_unit_more_is_cut_to_it() {
    let events = [user(&"a".repeat(20)), user(&"b".repeat(21))];
    let found = texts(&events, limits(5, 0, 0));
    assert_eq!(found, ["a".repeat(20), format!("{}...snip...", "b".repeat(10))]);
    assert_eq!(found[1].len(), 20);
    // What was cut once is exactly as long as it may be, and is not cut again.
    let again: Vec<Event<'static>> = found.iter().map(|text| user(text)).collect();
    assert!(trim(&again, limits(5, 0, 0)).plan.is_empty());
}

#[test]
fn lengths_are_utf16_units_and_half_a_character_becomes_the_replacement() {
    // Each of these is two units and four bytes: ten are exactly twenty units.
    assert!(trim(&[user(&"😀".repeat(10))], limits(5, 0, 0)).plan.is_empty());
    assert_eq!(texts(&[user(&("a".to_owned() + &"😀".repeat(10)))], limits(5, 0, 0)), ["a😀😀😀😀\u{fffd}...snip..."]);
    // Three bytes and one unit: bytes do not count.
    assert!(trim(&[user(&"漢".repeat(20))], limits(5, 0, 0)).plan.is_empty());
}

#[test]
fn every_text_of_a_message_that_is_too_long_gets_the_mark() {
    use crate::model::Piece;
    let content = Content::Pieces(vec![Piece::text("short"), Piece::text("l".repeat(30))]);
    let event = Event::new(Body::Message { role: Role::User, content });
    let left = trim(std::slice::from_ref(&event), limits(5, 0, 0)).plan.outcome(&[event]);
    let texts: Vec<String> = left[0].content().unwrap().texts().map(|text| text.decode().into_owned()).collect();
    assert_eq!(texts, ["short...snip...".to_owned(), "l".repeat(10) + "...snip..."]);
}

#[test]
fn a_limit_shorter_than_the_mark_leaves_the_mark_alone() {
    assert_eq!(texts(&[user("a long enough prompt")], limits(2, 0, 0)), ["...snip..."]);
}

#[test]
fn a_tool_result_is_cut_by_its_own_limit() {
    let events = [user(&"u".repeat(100)), result(&"r".repeat(41)), result(&"s".repeat(40))];
    let found = texts(&events, limits(0, 10, 0));
    assert_eq!(found, ["u".repeat(100), "r".repeat(30) + "...snip...", "s".repeat(40)]);
}

#[test]
fn results_before_the_last_answer_are_replaced_when_the_whole_is_too_large() {
    let events =
        [user("go"), result(&"a".repeat(41)), result(&"b".repeat(40)), assistant("and"), result(&"c".repeat(400))];
    let found = texts(&events, limits(0, 0, 10));
    assert_eq!(found, ["go", "...snip...", &"b".repeat(40), "and", &"c".repeat(400)]);
    let account = trim(&events, limits(0, 0, 10)).account;
    assert!(!account.is_reached());
    assert_eq!(account.went.len(), 1);
}

#[test]
fn without_an_answer_nothing_is_replaced() {
    assert!(trim(&[user("go"), result(&"a".repeat(400))], limits(0, 0, 1)).plan.is_empty());
}

#[test]
fn the_whole_is_measured_in_the_bytes_of_its_json_and_only_more_than_the_target_is_too_large() {
    // {"role":"user","contents":[{"$type":"text","text":"go"}]} has 57 bytes,
    // {"role":"tool","contents":[{"$type":"functionResult","callId":"c","result":"…"}]} has 80 and the text's 41,
    // {"role":"assistant","contents":[{"$type":"text","text":"ok"}]} has 62: 240 in all, which are 60 tokens.
    let events = [user("go"), result(&"a".repeat(41)), assistant("ok")];
    assert_eq!(trim(&events, Limits::NONE).account.before, 60);
    assert!(trim(&events, limits(0, 0, 60)).plan.is_empty());
    let trimmed = trim(&events, limits(0, 0, 59));
    assert!(!trimmed.plan.is_empty());
    // 31 bytes fewer.
    assert_eq!(trimmed.account.after, 52);
}

#[test]
fn dotnet_escapes_what_it_does_not_trust() {
    assert_eq!(spelled("a b~"), 4);
    assert_eq!(spelled("\n\\\t"), 6);
    assert_eq!(spelled("\"'<>&+`é漢"), 9 * 6);
    assert_eq!(spelled("😀"), 12);
    assert_eq!(spelled("\u{7f}\u{1}"), 12);
    assert_eq!(
        spelled_json(r#"{ "a" : "\u00e9\n", "b": [1, true] }"#),
        Some(r#"{"a":"uuuuuu\n","b":[1,true]}"#.len() as u64)
    );
    assert_eq!(spelled_json("[1]"), None);
}

#[test]
fn a_call_counts_with_its_arguments() {
    let call = Event::new(Body::ToolCall {
        call: Some("c1".into()),
        name: "Read".into(),
        input: crate::model::Input::Json(r#"{"path": "a"}"#.into()),
    });
    let json = r#"{"role":"assistant","contents":[{"$type":"functionCall","callId":"c1","name":"Read","arguments":{"path":"a"}}]}"#;
    assert_eq!(trim(&[call], Limits::NONE).account.before, json.len() as u64 / 4);
}
