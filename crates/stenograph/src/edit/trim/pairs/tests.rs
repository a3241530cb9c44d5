//! Tests of the rule `pairs`.

use super::*;
use crate::edit::Sketched;
use crate::model::{Body, Data, Input, Piece, PieceKind};

fn trim(events: &[Event<'static>], limits: Limits, depth: Depth, tokenizer: &Tokenizer<'_>) -> Trimmed {
    let mut counts = TokenCounts::new(limits, depth, tokenizer);
    events.iter().for_each(|event| counts.add(event));
    counts.trim(&events.sketches())
}

fn message(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn call(id: &'static str) -> Event<'static> {
    Event::new(Body::ToolCall { call: Some(id.into()), name: "read".into(), input: Input::Json("{}".into()) })
}

fn result(id: &'static str, text: &str) -> Event<'static> {
    let content = Content::text(text.to_owned());
    Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
}

fn trimmed(events: &[Event<'static>], chat: u64) -> Trimmed {
    trim(events, Limits { chat, ..Limits::NONE }, Depth::OldTurns, &Tokenizer::default())
}

fn left(events: &[Event<'static>], chat: u64) -> Vec<String> {
    let left = trimmed(events, chat).plan.outcome(events);
    let text = |event: &Event<'_>| match event.content() {
        Some(content) => content.joined().decode().into_owned(),
        None => event.name().unwrap_or_default().to_owned(),
    };
    left.iter().map(text).collect()
}

/// Two old turns with a result each, and a new one.
fn conversation() -> Vec<Event<'static>> {
    vec![
        message(Role::System, "rules"),
        message(Role::User, "one"),
        call("c1"),
        result("c1", &"a".repeat(400)),
        message(Role::Assistant, "done 1"),
        message(Role::User, "two"),
        call("c2"),
        result("c2", &"b".repeat(800)),
        message(Role::Assistant, "done 2"),
        message(Role::User, "three"),
        call("c3"),
        result("c3", &"c".repeat(1200)),
    ]
}

#[test]
fn a_conversation_that_fits_stays() {
    let whole = trimmed(&conversation(), 0).report.before;
    assert!(trimmed(&conversation(), whole).plan.is_empty());
    assert!(trimmed(&conversation(), whole).report.is_reached());
}

#[test]
fn the_largest_old_result_is_replaced_first() {
    let whole = trimmed(&conversation(), 0).report.before;
    let found = trimmed(&conversation(), whole - 1);
    assert_eq!(found.report.trimmed.len(), 1);
    assert_eq!(found.report.trimmed[0].event, 7);
    assert_eq!(found.report.trimmed[0].action, TrimAction::Snipped);
    // 800 bytes are 200 tokens, and `...snip...` is 3.
    assert_eq!(found.report.trimmed[0].saved, 197);
    assert_eq!(found.report.after, whole - 197);
}

#[test]
fn whole_old_turns_are_removed_if_results_are_not_enough() {
    let found = left(&conversation(), 316);
    assert_eq!(found[..5], ["rules", "two", "read", "...snip...", "done 2"]);
    let found = left(&conversation(), 306);
    assert_eq!(found.len(), 4);
    assert_eq!(found[..3], ["rules", "three", "read"]);
}

#[test]
fn system_prompts_and_the_newest_turn_stay_even_if_the_target_is_missed() {
    let found = trimmed(&conversation(), 1);
    assert_eq!(found.plan.outcome(&conversation()).len(), 4);
    assert!(!found.report.is_reached());
    // "rules" and "three" are 2 each, "read" and "{}" are 1 each, 1200 bytes are 300.
    assert_eq!(found.report.after, 306);
}

#[test]
fn results_of_the_newest_turn_are_replaced_if_the_model_has_seen_them() {
    let mut events = conversation();
    let how = Limits { chat: 20, ..Limits::NONE };
    let found = trim(&events, how, Depth::NewestTurn, &Tokenizer::default());
    assert!(!found.report.is_reached());
    events.push(message(Role::Assistant, "seen"));
    let found = trim(&events, how, Depth::NewestTurn, &Tokenizer::default());
    assert!(found.report.is_reached());
    assert_eq!(found.plan.outcome(&events).len(), 5);
}

#[test]
fn a_call_is_removed_with_a_result_in_a_later_turn_or_not_at_all() {
    let events = [
        message(Role::User, "one"),
        call("late"),
        message(Role::User, "two"),
        result("late", &"a".repeat(100)),
        message(Role::Assistant, "ok"),
        message(Role::User, "three"),
    ];
    for target in 1..40 {
        let kept = trimmed(&events, target).plan.outcome(&events);
        let has = |kind: Kind| kept.iter().any(|event| event.kind() == kind);
        assert_eq!(has(Kind::ToolCall), has(Kind::ToolResult), "{target}");
    }
    // The result is in the newest turn: nothing can be removed.
    assert!(trimmed(&events[..4], 1).plan.is_empty());
}

#[test]
fn a_summary_is_removed_after_all_other_old_events() {
    let summary = Event::new(Body::Compaction { summary: Some(Content::text("s".repeat(40))) });
    let events = [
        message(Role::User, &"o".repeat(40)),
        summary,
        message(Role::User, &"n".repeat(40)),
        message(Role::Assistant, "ok"),
        message(Role::User, "now"),
    ];
    assert_eq!(left(&events, 25), ["s".repeat(40), "n".repeat(40), "ok".into(), "now".into()]);
    assert_eq!(left(&events, 11), ["s".repeat(40), "now".into()]);
    assert_eq!(left(&events, 3), ["now"]);
}

#[test]
fn a_text_over_its_own_limit_is_cut() {
    let how = Limits { chat: 0, prompt: 10, tool: 20 };
    let mut events = conversation();
    events[1] = message(Role::User, &"é".repeat(100));
    let found = trim(&events, how, Depth::OldTurns, &Tokenizer::default());
    let kept = found.plan.outcome(&events);
    let text = |at: usize| kept[at].content().unwrap().joined().decode().into_owned();
    // Ten tokens are forty bytes, and `...snip...` takes ten of them.
    assert_eq!(text(1), "é".repeat(15) + "...snip...");
    assert_eq!(text(3), "a".repeat(70) + "...snip...");
    assert_eq!(text(11), "c".repeat(1200));
    assert!(found.report.trimmed.iter().all(|event| event.action == TrimAction::Cut));
}

#[test]
fn without_users_the_oldest_records_are_removed() {
    let events = [call("a"), result("a", &"x".repeat(40)), call("b"), result("b", &"y".repeat(40))];
    assert_eq!(left(&events, 12), ["read", &"y".repeat(40)]);
}

#[test]
fn the_caller_chooses_the_tokenizer() {
    let words = Tokenizer::new("words", |text: &str| text.split_whitespace().count() as u64);
    let events = [message(Role::User, "one two three"), message(Role::Assistant, "four"), message(Role::User, "five")];
    let found = trim(&events, Limits { chat: 1, ..Limits::NONE }, Depth::OldTurns, &words);
    assert_eq!((found.report.before, found.report.after), (5, 1));
}

#[test]
fn the_task_of_another_agent_begins_a_turn_if_no_person_typed_anything() {
    let task = |text: &str| message(Role::User, &format!("<teammate-message from=\"lead\">{text}</teammate-message>"));
    let only = [task("look"), message(Role::Assistant, "I look."), message(Role::Assistant, "Found.")];
    assert!(trimmed(&only, 2).plan.is_empty());
    let two = [task("look"), message(Role::Assistant, "I look."), task("again"), message(Role::Assistant, "Found.")];
    let left = left(&two, 2);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains("again"));
    // If a person typed something, the message of an agent belongs to that turn.
    let typed = [message(Role::User, "one"), message(Role::Assistant, "1"), task("x"), message(Role::Assistant, "2")];
    assert!(trimmed(&typed, 2).plan.is_empty());
}

#[test]
fn a_turn_that_the_user_took_back_is_not_the_newest_one() {
    let rewind = Event::new(Body::Fact { fact: "rewind".into(), content: Some(Content::text("1")) });
    let events = [
        message(Role::User, "one"),
        message(Role::Assistant, "1"),
        message(Role::User, "two"),
        message(Role::Assistant, "2"),
        rewind,
    ];
    assert!(trimmed(&events, 1).plan.is_empty());
}

fn pieces(texts: Vec<Piece<'static>>) -> Event<'static> {
    let content = Content::Pieces(texts);
    Event::new(Body::ToolResult { call: Some("c1".into()), name: None, content, error: None })
}

fn tool_limit(events: &[Event<'static>], tool: u64) -> Trimmed {
    trim(events, Limits { tool, ..Limits::NONE }, Depth::OldTurns, &Tokenizer::default())
}

#[test]
fn texts_after_the_cut_are_removed() {
    let mut events = conversation();
    events[3] = pieces(vec![Piece::text("12345678"); 50]);
    let found = tool_limit(&events, 20);
    let first = found.report.trimmed[0];
    assert_eq!((first.event, first.action, first.saved), (3, TrimAction::Cut, 80));
    let kept = found.plan.outcome(&events);
    assert_eq!(Tokenizer::default().event(&kept[3]), 20);
    assert_eq!(kept[3].content().unwrap().texts().count(), 9);
}

#[test]
fn a_result_is_not_cut_if_that_saves_nothing() {
    let image = Piece {
        kind: PieceKind::Blob { media: None, data: Data::Url("https://example.org/i.png".into()) },
        ..Piece::text("")
    };
    let mut events = conversation();
    events[3] = pieces(vec![image, Piece::text("ok")]);
    events[7] = result("c2", "12345678");
    assert!(tool_limit(&events, 1000).plan.is_empty());
    assert!(tool_limit(&events, 1).plan.is_empty());
}
