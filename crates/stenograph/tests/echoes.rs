//! An edit reaches every copy of the edited content: fields beside it, records that restate it, links to removed records.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use stenograph::Registry;
use stenograph::edit::cut::{SplitBy, split};
use stenograph::edit::{Applied, EditMethod, Original, Plan, apply};
use stenograph::model::{Content, Event, Kind};

fn edited(format: &str, source: &str, plan: impl Fn(&[Event<'static>], &mut Plan)) -> (String, Applied) {
    let format = Registry::built_in().named(format).expect("a format of that name");
    let original = Original::read(format, source.as_bytes()).expect("is small");
    let mut edits = Plan::of(&original.events);
    plan(&original.events, &mut edits);
    let applied = apply(&original, &edits).expect("can be edited");
    assert!(applied.is_exact(), "{:?}", applied.differences);
    (String::from_utf8(applied.bytes.clone()).expect("is UTF-8"), applied)
}

fn snip(events: &[Event<'static>], plan: &mut Plan, kind: Kind) {
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.kind() == kind && !event.restates) {
        plan.replace_body(number, event, event.body.clone().with_content(Content::text("...snip...")));
    }
}

/// A session: a question, a call, a progress report, its result with a copy in another field, an answer and a question.
fn session() -> String {
    let line = |id: u32, parent: Option<u32>, rest: &str| {
        let uuid = |id: u32| format!("\"9d2f6c1e-0000-4000-8000-00000000000{id}\"");
        let parent = parent.map_or("null".to_owned(), uuid);
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"uuid\":{},\"timestamp\":\"2026-03-02T09:14:0{id}.000Z\",\
             \"sessionId\":\"9d2f6c1e-0000-4000-8000-00000000000f\",{rest}}}\n",
            uuid(id)
        )
    };
    [
        line(1, None, r#""type":"user","message":{"role":"user","content":"Look around."}"#),
        line(
            2,
            Some(1),
            r#""type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"list","input":{}}]}"#,
        ),
        line(
            3,
            Some(2),
            r#""type":"progress","data":{"type":"bash_progress","output":"a heron, so far"},"parentToolUseID":"toolu_1""#,
        ),
        line(
            4,
            Some(3),
            r#""type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"a heron"}]},"toolUseResult":{"stdout":"a heron","n": 1.0},"mood":  "calm""#,
        ),
        line(
            5,
            Some(4),
            r#""type":"assistant","message":{"id":"msg_2","role":"assistant","content":[{"type":"text","text":"There is a bird."}]}"#,
        ),
        line(6, Some(5), r#""type":"user","message":{"role":"user","content":"And now?"}"#),
    ]
    .concat()
}

#[test]
fn an_edited_result_leaves_its_old_text_nowhere() {
    let (text, applied) = edited("claude-code", &session(), |events, plan| snip(events, plan, Kind::ToolResult));
    assert!(!text.contains("heron") && !text.contains("toolUseResult") && text.contains("...snip..."), "{text}");
    // Other fields of the record are unchanged, and the chain is complete without the removed report.
    assert!(text.contains("\"mood\":\"calm\"") || text.contains("\"mood\":  \"calm\""), "{text}");
    assert_eq!(applied.method, EditMethod::Spliced);
    assert_eq!(applied.events[2].parent.as_deref(), Some("9d2f6c1e-0000-4000-8000-000000000002"));
}

#[test]
fn a_chain_is_complete_after_its_middle_or_beginning_is_removed() {
    let ids = |applied: &Applied| -> Vec<(String, Option<String>)> {
        let last = |id: &str| id.chars().last().map(String::from).unwrap_or_default();
        let link =
            |event: &Event<'_>| (last(event.id.as_deref().unwrap_or_default()), event.parent.as_deref().map(last));
        applied.events.iter().map(link).collect()
    };
    let link = |id: &str, parent: &str| (id.to_owned(), Some(parent.to_owned()));
    let (_, applied) = edited("claude-code", &session(), |_, plan| (1..4).for_each(|number| plan.remove(number)));
    assert_eq!(ids(&applied), [("1".to_owned(), None), link("5", "1"), link("6", "5")]);
    let (text, applied) = edited("claude-code", &session(), |_, plan| (0..5).for_each(|number| plan.remove(number)));
    assert_eq!(ids(&applied), [("6".to_owned(), None)]);
    assert!(text.starts_with("{\"parentUuid\":null,"), "{text}");
}

#[test]
fn unedited_records_are_copied_byte_for_byte() {
    let source = session().replace("\"isSidechain\":false", "\"isSidechain\" : false");
    let (text, _) = edited("claude-code", &source, |_, plan| plan.remove(5));
    assert!(source.starts_with(&text));
    assert_eq!(text.lines().count(), 5);
}

#[test]
fn a_piece_has_no_report_of_another_piece() {
    let source = session();
    let format = Registry::built_in().named("claude-code").expect("a format of that name");
    let original = Original::read(format, source.as_bytes()).expect("is small");
    let parts = split(&original.events, &SplitBy::Turns(1));
    let plan = |part| parts.plan_as_session(&original.events, part).expect("the session is named");
    let texts: Vec<String> = parts
        .parts
        .iter()
        .map(|piece| {
            let applied = apply(&original, &plan(piece)).expect("can be edited");
            assert!(applied.is_exact(), "{:?}", applied.differences);
            String::from_utf8(applied.bytes).expect("is UTF-8")
        })
        .collect();
    assert_eq!(texts.iter().map(|text| text.contains("bash_progress")).collect::<Vec<_>>(), [true, false]);
}

const ROLLOUT: &str = concat!(
    r#"{"timestamp":"2026-09-03T08:11:50.000Z","type":"session_meta","payload":{"id":"0199","cwd":"/w"}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:51.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:51.001Z","type":"event_msg","payload":{"type":"user_message","message":"Go on."}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:52.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"call_1"}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:53.000Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"call_1","aggregated_output":"a secret"}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:53.001Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"a secret"}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:54.000Z","type":"event_msg","payload":{"type":"agent_message","message":"Done."}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:54.001Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#,
    "\n",
    r#"{"timestamp":"2026-09-03T08:11:54.002Z","type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Done."}}"#,
    "\n",
);

#[test]
fn an_edit_also_changes_restatements() {
    let (text, _) = edited("codex", ROLLOUT, |events, plan| snip(events, plan, Kind::ToolResult));
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(text.lines().count(), 8);
    let (text, _) = edited("codex", ROLLOUT, |events, plan| snip(events, plan, Kind::Message));
    // Both messages, their restatements, and the last message of the turn.
    assert_eq!(text.matches("...snip...").count(), 5, "{text}");
    assert!(!text.contains("Done.") && !text.contains("Go on."));
}

#[test]
fn restatements_are_removed_with_their_record() {
    let (text, applied) = edited("codex", ROLLOUT, |events, plan| {
        let is_removed = |event: &Event<'_>| !event.restates && event.role().is_some();
        events.iter().enumerate().filter(|(_, event)| is_removed(event)).for_each(|(number, _)| plan.remove(number));
    });
    assert!(!text.contains("user_message") && !text.contains("agent_message\",\"message"), "{text}");
    assert_eq!(applied.also_changed, 2);
}

#[test]
fn a_carried_source_does_not_keep_edited_text() {
    use stenograph::convert::{Carry, convert};
    let (from, to) = (
        Registry::built_in().named("codex").expect("is there"),
        Registry::built_in().named("steno").expect("is there"),
    );
    let mut carried = Vec::new();
    convert(from, &mut ROLLOUT.as_bytes(), to, &mut carried, Carry::Embed).expect("converts");
    let carried = String::from_utf8(carried).expect("is UTF-8");
    assert!(carried.contains("a secret"));
    let (text, _) = edited("steno", &carried, |events, plan| snip(events, plan, Kind::ToolResult));
    let line = text.lines().find(|line| line.contains("...snip...")).expect("is there");
    assert!(!line.contains("secret"), "{line}");
}

#[test]
fn an_item_is_removed_with_its_comma_and_a_line_with_its_newline() {
    let document = "{\n  \"runId\": \"r\",\n  \"turns\": [\n    {\"id\": 1, \"role\": \"user\", \"content\": \"a\"},\n    {\"id\": 2, \"role\": \"assistant\", \"content\": \"b\"},\n    {\"id\": 3, \"role\": \"user\", \"content\": \"c\"}\n  ]\n}\n";
    for (gone, left) in [(1, "bc"), (2, "ac"), (3, "ab")] {
        let (text, applied) = edited("devflow", document, |_, plan| plan.remove(gone));
        assert!(stenograph::json::is_valid(&text), "{text}");
        assert_eq!(applied.method, EditMethod::Spliced);
        let found: String = ["a", "b", "c"].into_iter().filter(|word| text.contains(&format!("\"{word}\""))).collect();
        assert_eq!(found, left);
    }
    let (text, _) = edited("devflow", document, |_, plan| (1..4).for_each(|number| plan.remove(number)));
    assert!(stenograph::json::is_valid(&text) && !text.contains("role"), "{text}");
    let lines = "\u{feff}{\"role\":\"user\",\"content\":\"a\"}\r\n{\"role\":\"assistant\",\"content\":\"b\"}\r\n{\"role\":\"user\",\"content\":\"c\"}";
    let expected = ["\u{feff}B\r\nC", "\u{feff}A\r\nC", "\u{feff}A\r\nB"];
    for (gone, expected) in expected.into_iter().enumerate() {
        let (text, _) = edited("openai-chat", lines, |_, plan| plan.remove(gone));
        let mut short = text;
        for (line, letter) in lines.trim_start_matches('\u{feff}').split("\r\n").zip(["A", "B", "C"]) {
            short = short.replace(line, letter);
        }
        assert_eq!(short, expected);
    }
}

#[test]
fn an_inserted_event_is_at_its_position_and_adds_no_second_header() {
    use stenograph::model::{Body, Role};
    let inserted = Event::new(Body::Message { role: Role::User, content: Content::text("Put in.") });
    let format = Registry::built_in().named("codex").expect("is there");
    let original = Original::read(format, ROLLOUT.as_bytes()).expect("is small");
    let mut plan = Plan::of(&original.events);
    plan.insert_after(2, inserted.clone());
    let applied = apply(&original, &plan).expect("can be edited");
    let text = String::from_utf8(applied.bytes).expect("is UTF-8");
    assert_eq!(text.matches("session_meta").count(), 1);
    assert!(text.lines().nth(3).is_some_and(|line| line.contains("Put in.")), "{text}");
    for line in ROLLOUT.lines() {
        assert!(text.contains(line));
    }
}
