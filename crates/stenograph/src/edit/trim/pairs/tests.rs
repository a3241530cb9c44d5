//! What our rule promises, one promise a test.

use super::*;
use crate::edit::Sketched;
use crate::model::{Body, Input};

fn trim(events: &[Event<'static>], limits: Limits, depth: Depth, tokenizer: &Tokenizer<'_>) -> Trimmed {
    let mut weights = Weights::new(limits, depth, tokenizer);
    events.iter().for_each(|event| weights.add(event));
    weights.trim(&events.sketches())
}

fn said(role: Role, text: &str) -> Event<'static> {
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
        said(Role::System, "rules"),
        said(Role::User, "one"),
        call("c1"),
        result("c1", &"a".repeat(400)),
        said(Role::Assistant, "done 1"),
        said(Role::User, "two"),
        call("c2"),
        result("c2", &"b".repeat(800)),
        said(Role::Assistant, "done 2"),
        said(Role::User, "three"),
        call("c3"),
        result("c3", &"c".repeat(1200)),
    ]
}

#[test]
fn what_fits_is_left_alone() {
    let whole = trimmed(&conversation(), 0).account.before;
    assert!(trimmed(&conversation(), whole).plan.is_empty());
    assert!(trimmed(&conversation(), whole).account.is_reached());
}

#[test]
fn the_largest_old_result_goes_first_and_only_as_much_as_it_takes() {
    let whole = trimmed(&conversation(), 0).account.before;
    let found = trimmed(&conversation(), whole - 1);
    assert_eq!(found.account.went.len(), 1);
    assert_eq!(found.account.went[0].event, 7);
    assert_eq!(found.account.went[0].how, Manner::Snipped);
    // 800 bytes are 200 tokens, and the mark is 3.
    assert_eq!(found.account.went[0].tokens, 197);
    assert_eq!(found.account.after, whole - 197);
}

#[test]
fn whole_old_turns_go_when_results_are_not_enough() {
    let found = left(&conversation(), 316);
    assert_eq!(found[..5], ["rules", "two", "read", "...snip...", "done 2"]);
    let found = left(&conversation(), 306);
    assert_eq!(found.len(), 4);
    assert_eq!(found[..3], ["rules", "three", "read"]);
}

#[test]
fn system_prompts_and_the_newest_turn_stay_and_it_says_that_this_is_too_much() {
    let found = trimmed(&conversation(), 1);
    assert_eq!(found.plan.outcome(&conversation()).len(), 4);
    assert!(!found.account.is_reached());
    // "rules" and "three" are 2 each, "read" and "{}" are 1 each, 1200 bytes are 300.
    assert_eq!(found.account.after, 306);
}

#[test]
fn deeper_it_shortens_results_of_the_newest_turn_that_the_model_has_seen() {
    let mut events = conversation();
    let how = Limits { chat: 20, ..Limits::NONE };
    let found = trim(&events, how, Depth::NewestTurn, &Tokenizer::default());
    assert!(!found.account.is_reached());
    events.push(said(Role::Assistant, "seen"));
    let found = trim(&events, how, Depth::NewestTurn, &Tokenizer::default());
    assert!(found.account.is_reached());
    assert_eq!(found.plan.outcome(&events).len(), 5);
}

#[test]
fn a_call_that_is_answered_in_a_later_turn_goes_with_it_or_not_at_all() {
    let events = [
        said(Role::User, "one"),
        call("late"),
        said(Role::User, "two"),
        result("late", &"a".repeat(100)),
        said(Role::Assistant, "ok"),
        said(Role::User, "three"),
    ];
    for target in 1..40 {
        let kept = trimmed(&events, target).plan.outcome(&events);
        let has = |kind: Kind| kept.iter().any(|event| event.kind() == kind);
        assert_eq!(has(Kind::ToolCall), has(Kind::ToolResult), "{target}");
    }
    // The newest turn holds the answer: nothing can go.
    assert!(trimmed(&events[..4], 1).plan.is_empty());
}

#[test]
fn a_summary_goes_last_of_all_that_is_old() {
    let summary = Event::new(Body::Compaction { summary: Some(Content::text("s".repeat(40))) });
    let events = [
        said(Role::User, &"o".repeat(40)),
        summary,
        said(Role::User, &"n".repeat(40)),
        said(Role::Assistant, "ok"),
        said(Role::User, "now"),
    ];
    assert_eq!(left(&events, 25), ["s".repeat(40), "n".repeat(40), "ok".into(), "now".into()]);
    assert_eq!(left(&events, 11), ["s".repeat(40), "now".into()]);
    assert_eq!(left(&events, 3), ["now"]);
}

#[test]
fn one_text_may_be_too_long_by_itself() {
    let how = Limits { chat: 0, prompt: 10, tool: 20 };
    let mut events = conversation();
    events[1] = said(Role::User, &"é".repeat(100));
    let found = trim(&events, how, Depth::OldTurns, &Tokenizer::default());
    let kept = found.plan.outcome(&events);
    let text = |at: usize| kept[at].content().unwrap().joined().decode().into_owned();
    // Ten tokens are forty bytes, of which the mark takes ten.
    assert_eq!(text(1), "é".repeat(15) + "...snip...");
    assert_eq!(text(3), "a".repeat(70) + "...snip...");
    assert_eq!(text(11), "c".repeat(1200));
    assert!(found.account.went.iter().all(|went| went.how == Manner::Cut));
}

#[test]
fn where_nobody_is_a_user_the_oldest_records_go() {
    let events = [call("a"), result("a", &"x".repeat(40)), call("b"), result("b", &"y".repeat(40))];
    assert_eq!(left(&events, 12), ["read", &"y".repeat(40)]);
}

#[test]
fn the_count_is_the_callers() {
    let words = Tokenizer::new("words", |text: &str| text.split_whitespace().count() as u64);
    let events = [said(Role::User, "one two three"), said(Role::Assistant, "four"), said(Role::User, "five")];
    let found = trim(&events, Limits { chat: 1, ..Limits::NONE }, Depth::OldTurns, &words);
    assert_eq!((found.account.before, found.account.after), (5, 1));
}

#[test]
fn the_task_of_another_agent_is_the_newest_turn_where_nobody_typed_one() {
    let task = |text: &str| said(Role::User, &format!("<teammate-message from=\"lead\">{text}</teammate-message>"));
    let only = [task("look"), said(Role::Assistant, "I look."), said(Role::Assistant, "Found.")];
    assert!(trimmed(&only, 2).plan.is_empty());
    let two = [task("look"), said(Role::Assistant, "I look."), task("again"), said(Role::Assistant, "Found.")];
    let left = left(&two, 2);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains("again"));
    // Where somebody did, it is what an agent put in, and goes with its turn.
    let typed = [said(Role::User, "one"), said(Role::Assistant, "1"), task("x"), said(Role::Assistant, "2")];
    assert!(trimmed(&typed, 2).plan.is_empty());
}
