//! The expected values were computed by hand from the source code of CycoD.

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
fn a_prompt_at_the_limit_stays_and_a_longer_one_is_cut() {
    let events = [user(&"a".repeat(20)), user(&"b".repeat(21))];
    let found = texts(&events, limits(5, 0, 0));
    assert_eq!(found, ["a".repeat(20), format!("{}...snip...", "b".repeat(10))]);
    assert_eq!(found[1].len(), 20);
    // A cut text has exactly the limit and is not cut again.
    let again: Vec<Event<'static>> = found.iter().map(|text| user(text)).collect();
    assert!(trim(&again, limits(5, 0, 0)).plan.is_empty());
}

#[test]
fn lengths_are_utf16_units_and_half_a_character_is_replaced() {
    // Each of these is two units and four bytes: ten are exactly twenty units.
    assert!(trim(&[user(&"😀".repeat(10))], limits(5, 0, 0)).plan.is_empty());
    assert_eq!(texts(&[user(&("a".to_owned() + &"😀".repeat(10)))], limits(5, 0, 0)), ["a😀😀😀😀\u{fffd}...snip..."]);
    // Three bytes and one unit: bytes do not count.
    assert!(trim(&[user(&"漢".repeat(20))], limits(5, 0, 0)).plan.is_empty());
}

#[test]
fn every_text_of_a_long_message_ends_with_snip() {
    use crate::model::Piece;
    let content = Content::Pieces(vec![Piece::text("short"), Piece::text("l".repeat(30))]);
    let event = Event::new(Body::Message { role: Role::User, content });
    let left = trim(std::slice::from_ref(&event), limits(5, 0, 0)).plan.outcome(&[event]);
    let texts: Vec<String> = left[0].content().unwrap().texts().map(|text| text.decode().into_owned()).collect();
    assert_eq!(texts, ["short...snip...".to_owned(), "l".repeat(10) + "...snip..."]);
}

#[test]
fn a_limit_shorter_than_snip_leaves_only_snip() {
    assert_eq!(texts(&[user("a long enough prompt")], limits(2, 0, 0)), ["...snip..."]);
}

#[test]
fn a_tool_result_is_cut_by_its_own_limit() {
    let events = [user(&"u".repeat(100)), result(&"r".repeat(41)), result(&"s".repeat(40))];
    let found = texts(&events, limits(0, 10, 0));
    assert_eq!(found, ["u".repeat(100), "r".repeat(30) + "...snip...", "s".repeat(40)]);
}

#[test]
fn results_before_the_last_answer_are_replaced_if_the_conversation_is_too_large() {
    let events =
        [user("go"), result(&"a".repeat(41)), result(&"b".repeat(40)), assistant("and"), result(&"c".repeat(400))];
    let found = texts(&events, limits(0, 0, 10));
    assert_eq!(found, ["go", "...snip...", &"b".repeat(40), "and", &"c".repeat(400)]);
    let report = trim(&events, limits(0, 0, 10)).report;
    assert!(!report.is_reached());
    assert_eq!(report.trimmed.len(), 1);
}

#[test]
fn without_an_answer_nothing_is_replaced() {
    assert!(trim(&[user("go"), result(&"a".repeat(400))], limits(0, 0, 1)).plan.is_empty());
}

#[test]
fn the_size_of_a_conversation_is_that_of_its_json() {
    // {"role":"user","contents":[{"$type":"text","text":"go"}]} has 57 bytes,
    // {"role":"tool","contents":[{"$type":"functionResult","callId":"c","result":"…"}]} has 80 and the text's 41,
    // {"role":"assistant","contents":[{"$type":"text","text":"ok"}]} has 62: 240 in all, which are 60 tokens.
    let events = [user("go"), result(&"a".repeat(41)), assistant("ok")];
    assert_eq!(trim(&events, Limits::NONE).report.before, 60);
    assert!(trim(&events, limits(0, 0, 60)).plan.is_empty());
    let trimmed = trim(&events, limits(0, 0, 59));
    assert!(!trimmed.plan.is_empty());
    // 31 bytes fewer.
    assert_eq!(trimmed.report.after, 52);
}

#[test]
fn dotnet_escapes_unusual_characters() {
    assert_eq!(escaped_size("a b~"), 4);
    assert_eq!(escaped_size("\n\\\t"), 6);
    assert_eq!(escaped_size("\"'<>&+`é漢"), 9 * 6);
    assert_eq!(escaped_size("😀"), 12);
    assert_eq!(escaped_size("\u{7f}\u{1}"), 12);
    assert_eq!(
        json_size(r#"{ "a" : "\u00e9\n", "b": [1, true] }"#),
        Some(r#"{"a":"uuuuuu\n","b":[1,true]}"#.len() as u64)
    );
    assert_eq!(json_size("[1]"), None);
}

#[test]
fn a_call_counts_with_its_arguments() {
    let call = Event::new(Body::ToolCall {
        call: Some("c1".into()),
        name: "Read".into(),
        input: crate::model::Input::Json(r#"{"path": "a"}"#.into()),
    });
    let json = r#"{"role":"assistant","contents":[{"$type":"functionCall","callId":"c1","name":"Read","arguments":{"path":"a"}}]}"#;
    assert_eq!(trim(&[call], Limits::NONE).report.before, json.len() as u64 / 4);
}
