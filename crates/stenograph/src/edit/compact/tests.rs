//! What a summary takes the place of, and where its marker stands.

use super::*;
use crate::Registry;
use crate::edit::{EditSource, Original, Plan, apply};
use crate::format::Format;
use crate::model::{Body, Content, Input};
use crate::read;
use crate::text::Str;
use crate::time::{Time, TimeUnit};

fn said(role: Role, text: &str) -> Event<'static> {
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
    let turn = |number| [said(Role::User, &format!("q{number}")), said(Role::Assistant, &format!("a{number}"))];
    (0..count).flat_map(turn).collect()
}

fn kept(events: &[Event<'static>], keep: Keep) -> Option<usize> {
    aside(events, keep, &Tokenizer::default()).map(|aside| aside.kept_from)
}

#[test]
fn the_newest_turns_are_kept_and_system_prompts_stay() {
    let mut events = turns(6);
    events.insert(0, said(Role::System, "be brief"));
    events.insert(3, said(Role::Developer, "be very brief"));
    let found = aside(&events, Keep::default(), &Tokenizer::default()).unwrap();
    assert_eq!((found.turns, found.kept_from), (Split { gone: 2, kept: 4 }, 6));
    assert_eq!(found.goes, [1, 2, 4, 5]);
    assert_eq!(found.told, found.goes);
    assert!(found.tokens.gone > 0 && found.tokens.kept > found.tokens.gone);
    assert_eq!(kept(&events, Keep::Turns(6)), None);
    assert_eq!(kept(&events, Keep::Turns(99)), None);
    assert_eq!(kept(&events, Keep::Turns(0)), Some(events.len()));
    assert_eq!(kept(&[], Keep::Turns(0)), None);
    assert_eq!(kept(&[said(Role::System, "be brief")], Keep::Turns(0)), None);
}

#[test]
fn a_call_is_never_parted_from_a_result_that_comes_much_later() {
    let mut events = turns(4);
    events.insert(3, call("slow"));
    events.insert(7, result("slow", "done"));
    // The second turn began what the third one ends: both stay or both go.
    assert_eq!(kept(&events, Keep::Turns(1)), Some(8));
    assert_eq!(kept(&events, Keep::Turns(2)), Some(2));
    assert_eq!(kept(&events, Keep::Turns(3)), Some(2));
}

#[test]
fn one_long_turn_is_cut_between_two_answers() {
    let mut events = vec![said(Role::User, "do it all")];
    for id in ["a", "b", "c"] {
        events.extend([thought("hm"), call(id), result(id, &"x".repeat(400))]);
    }
    events.push(said(Role::Assistant, "done"));
    // The last thought stays with its call.
    assert_eq!(kept(&events, Keep::Tokens(150)), Some(7));
    assert_eq!(kept(&events, Keep::Tokens(10)), Some(10));
    assert_eq!(kept(&events, Keep::Tokens(100_000)), None);
    assert_eq!(kept(&events, Keep::Dropping(30)), Some(4));
    assert_eq!(kept(&events, Keep::Dropping(50)), Some(7));
    assert_eq!(kept(&events, Keep::Dropping(100)), Some(11));
    assert_eq!(kept(&events, Keep::Turns(1)), None);
    let turns = aside(&events, Keep::Tokens(10), &Tokenizer::default()).unwrap().turns;
    assert_eq!(turns, Split { gone: 0, kept: 1 });
    // Two calls at once are answered one after the other: there is no cut between them.
    let both =
        [said(Role::User, "do"), call("a"), call("b"), result("a", "1"), result("b", "2"), said(Role::Assistant, "ok")];
    assert_eq!(kept(&both, Keep::Dropping(20)), Some(5));
}

#[test]
fn a_short_conversation_is_not_dropped_in_part() {
    assert_eq!(kept(&turns(2), Keep::Dropping(50)), None);
    assert_eq!(kept(&turns(3), Keep::Dropping(50)), Some(4));
    assert_eq!(kept(&turns(3), Keep::Dropping(1)), Some(2));
}

#[test]
fn the_summary_before_is_folded_into_the_new_one() {
    let mut events = turns(2);
    events.push(summary("before"));
    events.extend(turns(3));
    let found = aside(&events, Keep::Turns(1), &Tokenizer::default()).unwrap();
    assert_eq!(found.kept_from, 9);
    assert_eq!(found.goes, (0..9).collect::<Vec<_>>());
    // What stands before the old summary is told by it.
    assert_eq!(found.told, (4..9).collect::<Vec<_>>());
    // Nothing new would go.
    assert_eq!(kept(&events, Keep::Turns(3)), None);
    assert_eq!(kept(&events, Keep::Turns(5)), None);
    assert_eq!(kept(&[summary("before"), said(Role::User, "now")], Keep::Turns(1)), None);
    // What stands before the only turn is no reason to sum it up.
    assert_eq!(kept(&[said(Role::Assistant, "hello"), said(Role::User, "now")], Keep::Turns(1)), None);
}

#[test]
fn what_stands_before_a_sealed_summary_is_told_to_the_next_one() {
    let mut events = turns(2);
    events.push(Event::new(Body::Compaction { summary: None }));
    events.extend(turns(2));
    let found = aside(&events, Keep::Turns(1), &Tokenizer::default()).unwrap();
    assert_eq!(found.told, (0..7).collect::<Vec<_>>());
}

fn stamp() -> Stamp {
    Stamp {
        id: "0b8f6f3e-5c1d-4a57-8a43-0e2a54b0f6a1".into(),
        time: Time { text: "1772442000".into(), unit: TimeUnit::Seconds },
    }
}

/// The plan of a compaction, if anything can be compacted and if its format has a place for a summary.
fn planned(original: &Original<'_>, keep: Keep, summary: &str) -> Option<Option<Plan>> {
    let found = aside(&original.events, keep, &Tokenizer::default())?;
    let mut source = original.bytes;
    let mut source = EditSource::read(original.format, &mut source, &mut |_| {}).unwrap();
    Some(plan(&mut source, &found, summary, &stamp()).unwrap())
}

fn compacted(format: &dyn Format, source: &str, keep: Keep) -> Vec<Event<'static>> {
    let original = Original::read(format, source.as_bytes()).unwrap();
    let plan = planned(&original, keep, "So far: \"two\"\nlines.").unwrap().unwrap();
    let done = apply(&original, &plan).unwrap();
    assert!(done.is_exact(), "{:?} {:?}", done.differs, done.notes);
    done.events
}

#[test]
fn kept_records_hang_on_the_summary_where_records_are_linked() {
    let uuid = |number: usize| Some(format!("00000000-0000-4000-8000-{number:012}").into());
    let turns = turns(2).into_iter().enumerate().map(|(number, event)| {
        let parent = if number == 0 { None } else { uuid(number - 1) };
        Event { id: uuid(number), parent, ..event }
    });
    let turns: Vec<Event<'static>> = turns.collect();
    let mut linked = 0;
    for format in crate::formats::FORMATS.iter().filter(|format| has_place(**format)) {
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
fn whether_a_format_has_a_place_is_measured() {
    let native = Registry::built_in().named("steno").unwrap();
    assert!(has_place(native));
    let places: Vec<&str> =
        crate::formats::FORMATS.iter().filter(|format| has_place(**format)).map(|format| format.info().name).collect();
    assert!(places.len() >= 4, "{places:?}");
    for format in crate::formats::FORMATS.iter().filter(|format| !has_place(**format)) {
        let events = turns(3);
        let bytes = crate::write::all(*format, &crate::model::Outline::of("", &events), &events);
        let original = Original::read(*format, &bytes).unwrap();
        assert_eq!(original.events, read::all(*format, &bytes).events);
        if let Some(plan) = planned(&original, Keep::Turns(1), "So far.") {
            assert_eq!(plan, None, "{}", format.info().name);
        }
    }
}
