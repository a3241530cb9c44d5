//! Tests of which events a summary replaces, and of the place of its marker.

use super::*;
use crate::Registry;
use crate::edit::{EditSource, Original, Plan, apply};
use crate::format::Format;
use crate::model::{Body, Content, Input};
use crate::read;
use crate::text::Str;
use crate::time::{Time, TimeUnit};

fn message(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn call(id: &'static str) -> Event<'static> {
    Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input: Input::Json(Str::Borrowed("{}")) })
}

fn result(id: &'static str, text: &str) -> Event<'static> {
    Event::new(Body::ToolResult {
        call: Some(id.into()),
        name: None,
        content: Content::text(text.to_owned()),
        error: None,
    })
}

fn summary(text: &str) -> Event<'static> {
    Event::new(Body::Compaction { summary: Some(Content::text(text.to_owned())) })
}

fn thought(text: &str) -> Event<'static> {
    Event::new(Body::Thinking { content: Content::text(text.to_owned()) })
}

fn turns(count: usize) -> Vec<Event<'static>> {
    let turn = |number| [message(Role::User, &format!("q{number}")), message(Role::Assistant, &format!("a{number}"))];
    (0..count).flat_map(turn).collect()
}

fn kept(events: &[Event<'static>], keep: Keep) -> Option<usize> {
    old_part(events, keep, &Tokenizer::default()).map(|old| old.first_kept)
}

#[test]
fn the_newest_turns_are_kept_and_system_prompts_stay() {
    let mut events = turns(6);
    events.insert(0, message(Role::System, "be brief"));
    events.insert(3, message(Role::Developer, "be very brief"));
    let found = old_part(&events, Keep::default(), &Tokenizer::default()).unwrap();
    assert_eq!((found.turns, found.first_kept), (RemovedAndKept { removed: 2, kept: 4 }, 6));
    assert_eq!(found.removed, [1, 2, 4, 5]);
    assert_eq!(found.summarized, found.removed);
    assert!(found.tokens.removed > 0 && found.tokens.kept > found.tokens.removed);
    assert_eq!(kept(&events, Keep::Turns(6)), None);
    assert_eq!(kept(&events, Keep::Turns(99)), None);
    assert_eq!(kept(&events, Keep::Turns(0)), Some(events.len()));
    assert_eq!(kept(&[], Keep::Turns(0)), None);
    assert_eq!(kept(&[message(Role::System, "be brief")], Keep::Turns(0)), None);
}

#[test]
fn a_call_is_never_separated_from_a_late_result() {
    let mut events = turns(4);
    events.insert(3, call("slow"));
    events.insert(7, result("slow", "done"));
    // A call of the second turn has its result in the third: both stay or both are removed.
    assert_eq!(kept(&events, Keep::Turns(1)), Some(8));
    assert_eq!(kept(&events, Keep::Turns(2)), Some(2));
    assert_eq!(kept(&events, Keep::Turns(3)), Some(2));
}

#[test]
fn one_long_turn_is_cut_between_two_answers() {
    let mut events = vec![message(Role::User, "do it all")];
    for id in ["a", "b", "c"] {
        events.extend([thought("hm"), call(id), result(id, &"x".repeat(400))]);
    }
    events.push(message(Role::Assistant, "done"));
    // The last thought stays with its call.
    assert_eq!(kept(&events, Keep::Tokens(150)), Some(7));
    assert_eq!(kept(&events, Keep::Tokens(10)), Some(10));
    assert_eq!(kept(&events, Keep::Tokens(100_000)), None);
    assert_eq!(kept(&events, Keep::Dropping(30)), Some(4));
    assert_eq!(kept(&events, Keep::Dropping(50)), Some(7));
    assert_eq!(kept(&events, Keep::Dropping(100)), Some(11));
    assert_eq!(kept(&events, Keep::Turns(1)), None);
    let turns = old_part(&events, Keep::Tokens(10), &Tokenizer::default()).unwrap().turns;
    assert_eq!(turns, RemovedAndKept { removed: 0, kept: 1 });
    // Two parallel calls have their results one after the other: there is no cut between them.
    let both = [
        message(Role::User, "do"),
        call("a"),
        call("b"),
        result("a", "1"),
        result("b", "2"),
        message(Role::Assistant, "ok"),
    ];
    assert_eq!(kept(&both, Keep::Dropping(20)), Some(5));
}

#[test]
fn a_short_conversation_stays_whole() {
    assert_eq!(kept(&turns(2), Keep::Dropping(50)), None);
    assert_eq!(kept(&turns(3), Keep::Dropping(50)), Some(4));
    assert_eq!(kept(&turns(3), Keep::Dropping(1)), Some(2));
}

#[test]
fn the_new_summary_replaces_the_earlier_one() {
    let mut events = turns(2);
    events.push(summary("before"));
    events.extend(turns(3));
    let found = old_part(&events, Keep::Turns(1), &Tokenizer::default()).unwrap();
    assert_eq!(found.first_kept, 9);
    assert_eq!(found.removed, (0..9).collect::<Vec<_>>());
    // The old summary already covers the events before it.
    assert_eq!(found.summarized, (4..9).collect::<Vec<_>>());
    // Nothing new would be removed.
    assert_eq!(kept(&events, Keep::Turns(3)), None);
    assert_eq!(kept(&events, Keep::Turns(5)), None);
    assert_eq!(kept(&[summary("before"), message(Role::User, "now")], Keep::Turns(1)), None);
    // An event before the only turn is no reason to compact.
    assert_eq!(kept(&[message(Role::Assistant, "hello"), message(Role::User, "now")], Keep::Turns(1)), None);
}

#[test]
fn events_before_an_encrypted_summary_are_summarized_again() {
    let mut events = turns(2);
    events.push(Event::new(Body::Compaction { summary: None }));
    events.extend(turns(2));
    let found = old_part(&events, Keep::Turns(1), &Tokenizer::default()).unwrap();
    assert_eq!(found.summarized, (0..7).collect::<Vec<_>>());
}

fn stamp() -> Stamp {
    Stamp {
        id: "0b8f6f3e-5c1d-4a57-8a43-0e2a54b0f6a1".into(),
        time: Time { text: "1772442000".into(), unit: TimeUnit::Seconds },
    }
}

/// The plan of a compaction: `None` if there is nothing to compact, `Some(None)` if the format cannot store a summary.
fn planned(original: &Original<'_>, keep: Keep, summary: &str) -> Option<Option<Plan>> {
    let found = old_part(&original.events, keep, &Tokenizer::default())?;
    let mut source = original.bytes;
    let mut source = EditSource::read(original.format, &mut source, &mut |_| {}).unwrap();
    Some(plan(&mut source, &found, summary, &stamp()).unwrap())
}

fn compacted(format: &dyn Format, source: &str, keep: Keep) -> Vec<Event<'static>> {
    let original = Original::read(format, source.as_bytes()).unwrap();
    let plan = planned(&original, keep, "So far: \"two\"\nlines.").unwrap().unwrap();
    let done = apply(&original, &plan).unwrap();
    assert!(done.is_exact(), "{:?} {:?}", done.differences, done.notes);
    done.events
}

#[test]
fn kept_records_follow_the_marker_where_records_have_parents() {
    let uuid = |number: usize| Some(format!("00000000-0000-4000-8000-{number:012}").into());
    let turns = turns(2).into_iter().enumerate().map(|(number, event)| {
        let parent = if number == 0 { None } else { uuid(number - 1) };
        Event { id: uuid(number), parent, ..event }
    });
    let turns: Vec<Event<'static>> = turns.collect();
    let mut linked = 0;
    for format in crate::formats::FORMATS.iter().filter(|format| can_store_summary(**format)) {
        let source = crate::write::all(*format, &crate::model::Outline::of("", &turns), &turns);
        let before = read::all(*format, &source).events;
        if before.iter().all(|event| event.parent.is_none()) {
            continue;
        }
        linked += 1;
        let events = compacted(*format, std::str::from_utf8(&source).unwrap(), Keep::Turns(1));
        let marker = events.iter().rposition(|event| event.kind() == Kind::Compaction).unwrap();
        let chain: Vec<_> = events[marker..].windows(2).map(|pair| (&pair[0].id, &pair[1].parent)).collect();
        assert_eq!(chain.len(), 2);
        assert!(chain.iter().all(|(id, parent)| id.is_some() && id == parent), "{}: {chain:?}", format.info().name);
        let ids: HashSet<_> = events.iter().map(|event| event.id.clone()).collect();
        assert_eq!(ids.len(), events.len());
    }
    assert!(linked >= 2);
}

#[test]
fn formats_that_cannot_store_a_summary_have_no_plan() {
    let native = Registry::built_in().named("steno").unwrap();
    assert!(can_store_summary(native));
    let places: Vec<&str> = crate::formats::FORMATS
        .iter()
        .filter(|format| can_store_summary(**format))
        .map(|format| format.info().name)
        .collect();
    assert!(places.len() >= 4, "{places:?}");
    for format in
        crate::formats::FORMATS.iter().filter(|format| !can_store_summary(**format) && !format.info().is_never_edited)
    {
        let events = turns(3);
        let bytes = crate::write::all(*format, &crate::model::Outline::of("", &events), &events);
        let original = Original::read(*format, &bytes).unwrap();
        assert_eq!(original.events, read::all(*format, &bytes).events);
        if let Some(plan) = planned(&original, Keep::Turns(1), "So far.") {
            assert_eq!(plan, None, "{}", format.info().name);
        }
    }
}

#[test]
fn an_abandoned_turn_does_not_count_as_a_kept_one() {
    let rewind = Event::new(Body::Fact { fact: "rewind".into(), content: Some(Content::text("1")) });
    let mut events = turns(3);
    events.push(rewind);
    assert_eq!(kept(&events, Keep::Turns(1)), Some(2));
    assert_eq!(kept(&events[2..], Keep::Turns(1)), None);
    for keep in [Keep::Tokens(1), Keep::Dropping(90)] {
        assert!(kept(&events, keep).is_none_or(|kept| kept <= 2), "{keep:?}");
    }
}
