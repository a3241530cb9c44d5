//! Properties of queries for any generated query and text: parsing never panics, a printed query parses as the same, and every
//! piece of a text is found in it.

use std::borrow::Cow;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use stenograph::model::{Body, Content, Event, Input, Role};
use stenograph::query::{EntryBuilder, Phrase, Query, SessionFacts, Today, words};

/// The number of cases of each property.
const CASES: u32 = 2000;

fn for_any<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    if let Err(error) = runner.run(strategy, property) {
        panic!("{error}");
    }
}

fn today() -> Today {
    Today { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC }
}

/// A text like a query, made of tokens that matter.
fn query_text() -> impl Strategy<Value = String> {
    let sign = prop_oneof![
        4 => "[a-zA-Zéİßς题漢字カ한0-9]{1,9}".prop_map(Cow::Owned),
        3 => prop::sample::select(vec![
            " ", "\"", "(", ")", "-", "--", " OR ", " AND ", " NOT ", "*", "~", "~1", "~2", ":", ",", "/", "/i", "\\", "\n", ".",
            "agent:", "project:", "tool:", "file:", "role:user", "role:", "is:error", "is:", "has:thinking", "since:7d", "since:",
            "until:2026-01-01", "session:", "tag:", "is:pinned", "model:", "branch:", "/a+b/", "/[/", "_", "\u{301}", "\u{e0100}", "\u{0}", "😀",
        ]).prop_map(Cow::Borrowed),
        1 => any::<char>().prop_map(|char| Cow::Owned(char.to_string())),
    ];
    prop::collection::vec(sign, 0..20).prop_map(|signs| signs.concat())
}

/// A text in several scripts.
fn text() -> impl Strategy<Value = String> {
    let sign = prop_oneof![
        3 => "[a-zA-Z0-9]{1,8}",
        3 => "[题漢字解析器的カタ한국𠀀]{1,6}",
        2 => "[ ,.\n_/-]{1,2}",
        1 => "[éÉİΣς\u{301}ß]{1,3}",
        1 => any::<char>().prop_map(|char| char.to_string()),
    ];
    prop::collection::vec(sign, 1..24).prop_map(|signs| signs.concat())
}

#[test]
fn a_printed_query_parses_as_the_same() {
    for_any(&query_text(), |text| {
        let Ok(query) = Query::parse(&text, &today()) else { return Ok(()) };
        let printed = query.to_string();
        prop_assert_eq!(Query::parse(&printed, &today()), Ok(query), "{} is printed as {}", text, printed);
        Ok(())
    });
}

#[test]
fn every_word_of_a_text_is_at_its_position() {
    for_any(&text(), |text| {
        let (mut end, mut position) = (0, 0);
        words(&text, &mut |word| {
            assert!(text.get(word.at.clone()).is_some_and(|piece| !piece.is_empty()), "{word:?}");
            assert!(word.at.start < word.at.end && word.at.end >= end && word.position == position, "{word:?}");
            let mut again = Vec::new();
            words(word.text, &mut |word| again.push(word.text.to_owned()));
            assert_eq!(again.first().map(String::as_str), Some(word.text));
            (end, position) = (word.at.end, position + 1);
        });
        Ok(())
    });
}

#[test]
fn every_piece_of_a_text_is_found_in_it() {
    for_any(&(text(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), |(text, from, to)| {
        let mut places = Vec::new();
        words(&text, &mut |word| places.push(word.at));
        if places.is_empty() {
            return Ok(());
        }
        let (from, to) = (from.index(places.len()), to.index(places.len()));
        let start = places.get(from.min(to)).map_or(0, |place| place.start);
        let end = places.get(from.max(to)).map_or(0, |place| place.end);
        let piece = text.get(start..end).unwrap_or_default();
        let sought = Phrase::of(piece);
        prop_assert!(
            sought.as_ref().is_some_and(|sought| sought.is_in(&text)),
            "{:?} in {:?}: {:?}",
            piece,
            text,
            sought
        );
        Ok(())
    });
}

#[test]
fn a_snippet_is_one_short_line_with_its_marks_in_order() {
    for_any(&(text(), text(), query_text(), 1_usize..60), |(one, other, asked, length_max)| {
        let Ok(query) = Query::parse(&asked, &today()) else { return Ok(()) };
        let input =
            Input::Json(format!("[{},{}]", stenograph::text::quote(&one), stenograph::text::quote(&other)).into());
        let event = Event::new(Body::ToolCall { call: None, name: "t".into(), input });
        let Some(entry) = EntryBuilder::default().entry(&event) else { return Ok(()) };
        let snippet = query.snippet(&entry, length_max, None);
        prop_assert!(snippet.text.chars().count() <= length_max, "{:?}", snippet);
        prop_assert!(!snippet.text.contains(char::is_control), "{:?}", snippet);
        let mut end = 0;
        for mark in &snippet.marks {
            prop_assert!(
                mark.start >= end && snippet.text.get(mark.clone()).is_some_and(|text| !text.is_empty()),
                "{:?}",
                snippet
            );
            end = mark.end;
        }
        let _ = query.matches(&entry, &SessionFacts::default());
        Ok(())
    });
}

#[test]
fn a_restored_entry_builder_continues_as_if_it_was_never_saved() {
    let event = (0_u8..6, prop::option::of(0_u8..4), "[a-c\"\\\\]{0,3}");
    for_any(&prop::collection::vec(event, 0..40), |events| {
        let (mut whole, mut saved) = (EntryBuilder::default(), EntryBuilder::default());
        for (kind, id, text) in events {
            let call = id.map(|id| Cow::Owned(id.to_string()));
            let body = match kind {
                0 | 1 => Body::ToolCall { call, name: text.into(), input: Input::Json("{\"path\":\"a\"}".into()) },
                2 | 3 => Body::ToolResult { call, name: None, content: Content::text(text), error: None },
                _ => Body::Message { role: Role::User, content: Content::text(text) },
            };
            let event = Event { model: id.map(|id| format!("model {id}").into()), ..Event::new(body) };
            saved = EntryBuilder::restore(&saved.save());
            prop_assert_eq!(whole.entry(&event), saved.entry(&event));
        }
        Ok(())
    });
}
