//! Excerpts of long, odd and short texts.

use super::*;
use crate::model::{Body, Content, Event, Input, Role};
use crate::query::{EntryBuilder, Today};

fn query(text: &str) -> Query {
    let today = Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    Query::parse(text, &today).unwrap()
}

/// The excerpt with brackets around its matches and dots where it is cut.
fn shown(body: Body<'_>, asked: &str, length_max: usize) -> String {
    let event = Event::new(body);
    let entry = EntryBuilder::default().entry(&event).unwrap();
    let snippet = query(asked).snippet(&entry, length_max, None);
    let mut out = String::from(if snippet.is_cut_before { "…" } else { "" });
    let mut at = 0;
    for mark in &snippet.marks {
        out.push_str(&format!("{}[{}]", &snippet.text[at..mark.start], &snippet.text[mark.clone()]));
        at = mark.end;
    }
    out.push_str(&snippet.text[at..]);
    out + if snippet.is_cut_after { "…" } else { "" }
}

fn said(text: &str, asked: &str, length_max: usize) -> String {
    shown(Body::Message { role: Role::User, content: Content::text(text) }, asked, length_max)
}

#[test]
fn what_was_looked_for_is_marked() {
    assert_eq!(said("Fix the Parser, please", "parser fix", 80), "[Fix] the [Parser], please");
    assert_eq!(said("sort_by_field()", "\"by field\"", 80), "sort_[by_field]()");
    assert_eq!(said("serialise it", "seri*", 80), "[serialise] it");
    assert_eq!(said("请修复解析器的问题", "解析器", 80), "请修复[解析器]的问题");
    assert_eq!(said("let x = 42;", "/x = \\d+/", 80), "let [x = 42];");
}

#[test]
fn a_long_text_is_cut_between_words_around_the_best_place() {
    let text = format!("{}alpha {}beta gamma alpha{}", "word ".repeat(100), "other ".repeat(100), " more".repeat(100));
    assert_eq!(said(&text, "alpha gamma", 40), "…beta [gamma] [alpha] more more more more…");
    let shown = said(&text, "alpha", 40);
    assert!(shown.starts_with("…word word [alpha] other"), "{shown}");
}

#[test]
fn the_rarest_word_is_shown_where_words_stand_far_apart() {
    let text = format!("{}walrus{}", "the error and the other error ".repeat(40), " the end".repeat(40));
    let shown = said(&text, "the error walrus", 40);
    assert!(shown.contains("[walrus]"), "{shown}");
    // How common a word is elsewhere matters more than how often it occurs here.
    let text = format!("common {}rare rare{}", "x ".repeat(200), " y".repeat(200));
    let event = Event::new(Body::Message { role: Role::User, content: Content::text(text.as_str()) });
    let entry = EntryBuilder::default().entry(&event).unwrap();
    for (counts, word) in [([900, 3], "rare"), ([3, 900], "common")] {
        let snippet = query("common rare").snippet(&entry, 40, Some(&counts));
        assert!(snippet.text.contains(word), "{counts:?}: {snippet:?}");
    }
}

#[test]
fn it_is_one_line() {
    assert_eq!(said("a\n\n    b\tneedle\u{7}\r\n  c  ", "needle", 80), "a b [needle] c");
    let deep = format!("{}needle{}", "x\n          ".repeat(50), "\n          y".repeat(50));
    assert_eq!(said(&deep, "needle", 20), "…x x [needle] y y y y y…");
}

#[test]
fn where_nothing_was_looked_for_it_is_the_beginning() {
    assert_eq!(said("one two three four", "role:user", 9), "one two…");
    let call =
        Body::ToolCall { call: None, name: "Shell".into(), input: Input::Json(r#"{"command":"make test"}"#.into()) };
    assert_eq!(shown(call, "is:call", 80), "Shell make test");
    assert_eq!(said("one two", "-three", 80), "one two");
}

#[test]
fn a_mark_longer_than_all_that_is_shown_is_cut() {
    let text = "x".repeat(50);
    assert_eq!(said(&text, "/x+/", 10), format!("[{}]…", "x".repeat(10)));
}
