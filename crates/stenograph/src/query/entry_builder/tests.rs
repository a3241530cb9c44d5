//! The entries of events in order.

use super::*;
use crate::model::{Content, Data, Input, Piece, PieceKind};
use crate::time::Time;

fn call(id: Option<&'static str>, tool: &'static str, json: &'static str) -> Event<'static> {
    Event::new(Body::ToolCall { call: id.map(Into::into), name: tool.into(), input: Input::Json(json.into()) })
}

fn result(id: Option<&'static str>, text: &'static str) -> Event<'static> {
    let content = Content::text(text);
    Event::new(Body::ToolResult { call: id.map(Into::into), name: None, content, error: Some(true) })
}

fn said(role: Role, text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text) })
}

fn texts(event: &Event<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(entry) = EntryBuilder::default().entry(event) {
        entry.texts(&mut |text| found.push(text.to_owned()));
    }
    found
}

#[test]
fn a_result_is_told_by_its_call() {
    let mut builder = EntryBuilder::default();
    for event in [call(Some("1"), "read", "{}"), call(Some("2"), "edit", "{}"), call(None, "list", "{}")] {
        builder.entry(&event).unwrap();
    }
    let mut tool = |id| builder.entry(&result(id, "x")).unwrap().tool.map(Cow::into_owned);
    assert_eq!(tool(Some("2")).as_deref(), Some("edit"));
    assert_eq!(tool(None).as_deref(), Some("list"));
    assert_eq!(tool(Some("2")).as_deref(), Some("edit"), "a result may be said again");
    assert_eq!(tool(Some("3")), None);
    assert_eq!(tool(None).as_deref(), Some("read"));
    assert_eq!(tool(None), None);
}

#[test]
fn a_result_may_come_before_its_call() {
    let mut builder = EntryBuilder::default();
    assert_eq!(builder.entry(&result(Some("1"), "x")).unwrap().tool, None);
    builder.entry(&call(Some("1"), "read", "{}")).unwrap();
    assert_eq!(builder.entry(&result(Some("1"), "x")).unwrap().tool.as_deref(), Some("read"));
}

#[test]
fn what_is_not_repeated_stays_in_force() {
    let mut builder = EntryBuilder::default();
    let start = Event { model: Some("m-1".into()), cwd: Some("/w".into()), ..said(Role::User, "a") };
    builder.entry(&start).unwrap();
    let event = call(None, "read", r#"{"path":"b.rs","limit":20,"flag":true}"#);
    let entry = builder.entry(&event).unwrap();
    assert_eq!((entry.model.as_deref(), entry.branch.as_deref()), (Some("m-1"), None));
    assert_eq!(entry.files, [crate::query::Touch { path: "/w/b.rs".into(), how: crate::query::TouchHow::Read }]);
    assert_eq!(entry.pieces(), ["read", "b.rs", "20"]);
    assert_eq!(entry.role, Some(Role::Assistant));
}

#[test]
fn a_builder_continues_from_what_was_saved() {
    let events = [
        Event { model: Some("m\"1".into()), branch: Some("b".into()), ..said(Role::User, "a") },
        call(Some("1"), "read", r#"{"path":"x"}"#),
        call(None, "l\\s", "{}"),
        result(Some("1"), "r"),
        said(Role::User, "a"),
        result(None, "r"),
        result(Some("1"), "again"),
        said(Role::User, "a"),
    ];
    let mut whole = EntryBuilder::default();
    for (at, event) in events.iter().enumerate() {
        let mut again = EntryBuilder::restore(&whole.save());
        assert_eq!(again, whole, "before event {at}");
        assert_eq!(again.entry(event), whole.entry(event), "event {at}");
    }
    assert_eq!(EntryBuilder::restore("no JSON"), EntryBuilder::default());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut builder = EntryBuilder::default();
    for number in 0..10_000 {
        let body = Body::ToolCall {
            call: Some(format!("call {number}").into()),
            name: "t".into(),
            input: Input::Json("{}".into()),
        };
        builder.entry(&Event::new(body)).unwrap();
    }
    assert!(builder.save().len() < 24 << 10);
}

#[test]
fn what_nobody_can_read_is_not_searched() {
    let base64 = "aGVsbG8gd29ybGQh".repeat(64);
    let blob = PieceKind::Blob { media: None, data: Data::Inline(base64.clone().into()) };
    let pieces = vec![Piece::text("see"), Piece { kind: blob, extra: Default::default() }, Piece::text(base64)];
    let event = Event::new(Body::Message { role: Role::User, content: Content::Pieces(pieces) });
    assert_eq!(texts(&event), ["see"]);
    assert!(EntryBuilder::default().entry(&event).unwrap().attachment);
}

#[test]
fn a_list_of_paths_is_searched() {
    let paths = "crates/stenograph/src/formats/some_format/fixtures/and_more\n".repeat(40);
    let event = Event::new(Body::Message { role: Role::User, content: Content::text(paths.clone()) });
    assert_eq!(texts(&event), [paths]);
}

#[test]
fn records_that_nobody_understands_are_searched_within_limits() {
    let line = Event::unread("half a record, in words".into());
    assert_eq!(texts(&line), ["half a record, in words"]);
    let long = Event::unread("many words ".repeat(100_000).into());
    assert!(texts(&long).concat().len() <= 64 << 10);
    assert!(texts(&Event::default()).is_empty());
}

#[test]
fn failures_are_errors() {
    let failed = |body| EntryBuilder::default().entry(&Event::new(body)).unwrap().error;
    assert!(failed(Body::Failure { name: Some("rate_limit".into()), content: None }));
    assert!(failed(Body::Stop { reason: None, success: Some(false), content: None }));
    assert!(failed(result(None, "").body));
    assert!(!failed(said(Role::User, "error").body));
    assert_eq!(
        texts(&Event::new(Body::Failure { name: Some("rate_limit".into()), content: Some(Content::text("slow")) })),
        ["rate_limit", "slow"]
    );
}

#[test]
fn copies_have_the_same_key_and_repetitions_have_not() {
    let at = |time: &'static str, text| Event { time: Time::iso(time.into()), ..said(Role::User, text) };
    let key = |event: &Event<'_>| EntryBuilder::default().entry(event).unwrap().key;
    let one = at("2026-01-01T00:00:00Z", "yes");
    assert_eq!(key(&one), key(&Event { session: Some("fork".into()), ..one.clone() }));
    assert_ne!(key(&one), key(&at("2026-01-01T00:00:01Z", "yes")));
    assert_ne!(key(&one), key(&at("2026-01-01T00:00:00Z", "no")));
    let with_id = |id: &'static str, event: Event<'static>| Event { id: Some(id.into()), ..event };
    assert_eq!(key(&with_id("0123-4567-89", one.clone())), key(&with_id("0123-4567-89", said(Role::User, "yes"))));
    assert_ne!(key(&with_id("1", one.clone())), key(&with_id("1", at("2026-01-02T00:00:00Z", "yes"))));
    // Without id and time, the earlier texts distinguish them.
    let keys = |texts: [&'static str; 3]| {
        let mut builder = EntryBuilder::default();
        texts.map(|text| builder.entry(&said(Role::User, text)).unwrap().key)
    };
    let (whole, fork) = (keys(["a", "yes", "yes"]), keys(["a", "yes", "b"]));
    assert_eq!(whole[..2], fork[..2]);
    assert_ne!(whole[1], whole[2]);
    assert_ne!(whole[1], keys(["b", "yes", "c"])[1]);
}

#[test]
fn twins_say_the_same_in_the_same_voice() {
    let twin = |event: &Event<'_>| EntryBuilder::default().entry(event).unwrap().twin;
    assert_eq!(
        twin(&said(Role::User, "a\n")),
        twin(&Event { id: Some("x".into()), restates: true, ..said(Role::User, "a") })
    );
    assert_ne!(twin(&said(Role::User, "a")), twin(&said(Role::Assistant, "a")));
    assert_eq!(twin(&result(Some("1"), "long")), twin(&result(Some("1"), "short")));
    assert_ne!(twin(&result(Some("1"), "a")), twin(&call(Some("1"), "a", "{}")));
}

#[test]
fn titles_queued_prompts_and_last_words_may_say_again_what_was_said() {
    let entry =
        |body| EntryBuilder::default().entry(&Event::new(body)).map(|entry| (entry.twin, entry.restates)).unwrap();
    let content = || Content::text("do it");
    let asked = entry(Body::Message { role: Role::User, content: content() });
    let answered = entry(Body::Message { role: Role::Assistant, content: content() });
    assert_eq!(entry(Body::Fact { fact: "prompt".into(), content: Some(content()) }), (asked.0, true));
    assert_eq!(entry(Body::Stop { reason: None, success: None, content: Some(content()) }), (answered.0, true));
    assert!(!entry(Body::Stop { reason: None, success: Some(false), content: Some(content()) }).1);
    assert_ne!(asked, answered);
}

#[test]
fn each_of_several_texts_may_be_said_again() {
    let twins = |content| {
        EntryBuilder::default()
            .entry(&Event::new(Body::Thinking { content }))
            .map(|entry| (entry.twin, entry.piece_twins))
    };
    let (one, alone) = twins(Content::text("one")).unwrap();
    let (_, pieces) = twins(Content::Pieces(vec![Piece::text("one "), Piece::text("two")])).unwrap();
    assert!(alone.is_empty() && pieces.len() == 2 && pieces.contains(&one));
    let failure = |name: Option<&'static str>| {
        let body = Body::Failure { name: name.map(Into::into), content: Some(Content::text("Overloaded")) };
        EntryBuilder::default().entry(&Event::new(body)).map(|entry| (entry.twin, entry.piece_twins)).unwrap()
    };
    let ((without_name, _), (_, pieces)) = (failure(None), failure(Some("overloaded_error")));
    assert!(pieces.contains(&without_name));
}

#[test]
fn discarded_texts_of_an_unknown_record_leave_room_for_others() {
    let record = format!(
        "{{\"v\":1,\"kind\":\"other\",\"name\":\"odd\",\"steno\":{{}},\"blank\":\"{}\",\"word\":\"walrus\"}}",
        " ".repeat(64 << 10)
    );
    let events = crate::read::all(&crate::formats::steno::Steno, record.as_bytes()).events;
    assert_eq!(texts(&events[0]), ["walrus"]);
}
