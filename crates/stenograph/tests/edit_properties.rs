//! Properties of trimming and cutting any generated conversation in every format: nothing panics, the result is as planned, and
//! trimming a trimmed conversation does nothing.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use stenograph::calls::Calls;
use stenograph::edit::compact::{Keep, old_part};
use stenograph::edit::cut::{Selection, SplitBy, cut, split};
use stenograph::edit::links::Links;
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::trim::{Limits, Moment, Rule, Trim, TrimAction, trim};
use stenograph::edit::{Applied, Fate, Original, Plan, apply};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::model::{Body, Content, Event, Fact, Input, Kind, Outline, Role, Spine};
use stenograph::time::Time;
use stenograph::write;

/// The number of conversations tried with every format.
const CASES: u32 = 60;

/// A step of a conversation.
#[derive(Clone, Debug)]
enum Step {
    Message(u8, String),
    Thinking(String),
    /// A call, and how many steps later its result comes.
    Call(String, usize),
    /// The user takes turns back.
    Rewind(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop_oneof![
        "[a-z ]{1,40}",
        "[a-zé漢😀\n\"\\\\]{1,60}",
        "[a-z]{10}".prop_map(|word| word.repeat(30)),
        Just("user:\n[USER]: ---\n```\n> ".to_owned()),
    ];
    let step = prop_oneof![
        3 => (0u8..8, text.clone()).prop_map(|(role, text)| Step::Message(role, text)),
        1 => text.clone().prop_map(Step::Thinking),
        3 => (text, 0usize..3).prop_map(|(text, later)| Step::Call(text, later)),
        1 => (1u8..3).prop_map(Step::Rewind),
    ];
    prop::collection::vec(step, 1..24)
}

fn conversation(steps: &[Step]) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let mut waiting: Vec<(usize, String, String)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Message(role, text) => {
                let role = match role {
                    0..=2 => Role::User,
                    3 => Role::System,
                    _ => Role::Assistant,
                };
                events.push(Event::new(Body::Message { role, content: Content::text(text.clone()) }));
            }
            Step::Thinking(text) => events.push(Event::new(Body::Thinking { content: Content::text(text.clone()) })),
            Step::Call(text, later) => {
                let call = format!("call_{number}");
                let input = Input::Json("{\"path\":\"a\"}".into());
                events.push(Event::new(Body::ToolCall { call: Some(call.clone().into()), name: "read".into(), input }));
                waiting.push((number + later, call, text.clone()));
            }
            Step::Rewind(turns) => {
                let content = Some(Content::text(turns.to_string()));
                events.push(Event::new(Body::Fact { fact: Fact::Rewind, content }));
            }
        }
        let (ready, rest) = waiting.into_iter().partition(|(due, _, _)| *due <= number);
        waiting = rest;
        events.extend(Vec::into_iter(ready).map(result));
    }
    events.extend(waiting.into_iter().map(result));
    for (second, event) in events.iter_mut().enumerate() {
        let text = format!("2026-03-02T09:{:02}:{:02}Z", second / 60, second % 60);
        event.time = Time::iso(text.into());
        event.session = Some("8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10".into());
    }
    events
}

fn result((_, call, text): (usize, String, String)) -> Event<'static> {
    Event::new(Body::ToolResult { call: Some(call.into()), name: None, content: Content::text(text), error: None })
}

/// Tries a property with every format and reports all formats that violate it.
fn for_every_format(property: impl Fn(&Original<'_>, u64) -> Result<(), TestCaseError>) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut failures = Vec::new();
    for format in FORMATS.iter().filter(|format| !format.info().is_never_edited) {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let done = runner.run(&(steps(), 0u64..100), |(steps, share)| {
            let bytes = written(*format, &conversation(&steps));
            let original = Original::read(*format, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            property(&original, share)
        });
        if let Err(TestError::Fail(reason, input)) = done {
            failures.push(format!("{}: {reason}\n  {input:?}", format.info().name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn written(format: &dyn Format, events: &[Event<'static>]) -> Vec<u8> {
    write::all(format, &Outline::of("", events), events)
}

/// Applies a plan. Lossy formats may keep less than planned, and report that.
fn applied(original: &Original<'_>, plan: &Plan) -> Result<Applied, TestCaseError> {
    let applied = apply(original, plan).map_err(|error| TestCaseError::fail(error.to_string()))?;
    if !original.format.info().traits.lossy {
        prop_assert!(applied.is_exact(), "{:?} {} {:?}", applied.method, applied.differences.to_json(), applied.notes);
        prop_assert!(unpaired(&applied.events) <= unpaired(&original.events), "a call lost its result");
    }
    Ok(applied)
}

fn unpaired(events: &[Event<'_>]) -> usize {
    let paired: Vec<usize> = Links::of(events).iter().flat_map(|link| [link.from, link.to]).collect();
    let calls = |kind: Kind| matches!(kind, Kind::ToolCall | Kind::ToolResult);
    (0..events.len())
        .filter(|number| events.get(*number).is_some_and(|event| calls(event.kind()) && !event.restates))
        .filter(|number| !paired.contains(number))
        .count()
}

#[test]
fn a_trimmed_conversation_fits_and_needs_no_more_trimming() {
    for_every_format(|original, share| {
        let whole = trim(&original.events, Moment::Load, &Trim::default()).report.before;
        let limits = Limits { chat: (whole * share / 100).max(1), ..Limits::NONE };
        let how = Trim { limits, ..Trim::default() };
        let found = trim(&original.events, Moment::Load, &how);
        let applied = applied(original, &found.plan)?;
        if found.report.is_reached() && !original.format.info().traits.lossy {
            let again = trim(&applied.events, Moment::Load, &how);
            prop_assert!(again.report.before <= found.report.after, "{:?} {:?}", again.report, found.report);
            prop_assert!(again.plan.is_empty());
        }
        Ok(())
    });
}

#[test]
fn trimming_as_cycod_does_gives_the_planned_result() {
    for_every_format(|original, share| {
        let limits = Limits { chat: share + 1, prompt: share / 3 + 1, tool: share / 5 + 1 };
        let how = Trim { rule: Rule::Cycod, limits, ..Trim::default() };
        let found = trim(&original.events, Moment::Load, &how);
        applied(original, &found.plan)?;
        prop_assert!(found.report.after <= found.report.before + 3 * found.report.trimmed.len() as u64);
        Ok(())
    });
}

#[test]
fn any_range_can_be_cut_and_the_parts_contain_everything() {
    for_every_format(|original, share| {
        let count = original.events.len();
        let from = count * usize::try_from(share).unwrap_or(0) / 100;
        let selection = Selection { events: Some(from..(from + count / 3 + 1).min(count)), ..Selection::default() };
        applied(original, &cut(&original.events, &selection).plan)?;
        for by in [SplitBy::Turns(1 + from % 3), SplitBy::Events(vec![from])] {
            let mut reached = 0;
            let parts = split(&original.events, &by);
            for part in &parts.parts {
                prop_assert_eq!(part.events.start, reached);
                reached = part.events.end;
                applied(original, &parts.plan(&original.events, part))?;
            }
            prop_assert_eq!(reached, count);
        }
        Ok(())
    });
}

/// The texts of the newest question in the spine.
fn newest_question(events: &[Event<'_>]) -> Option<String> {
    let mut spine = Spine::of(events);
    let spine: Vec<&Event<'_>> = events.iter().filter(|event| spine.left_out(event).is_none()).collect();
    let question = spine.into_iter().rfind(|event| event.role() == Some(Role::User))?;
    question.content().map(|content| content.joined().decode().into_owned())
}

/// The numbers of the events that the fold gives each call, calls without a result excluded.
fn answered_calls(events: &[Event<'_>]) -> Vec<Vec<usize>> {
    let mut fold = Calls::default();
    let mut calls: Vec<Vec<usize>> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let Some(call) = fold.add(event).call.and_then(|call| usize::try_from(call).ok()) else { continue };
        calls.resize(calls.len().max(call + 1), Vec::new());
        calls.get_mut(call).into_iter().for_each(|events| events.push(number));
    }
    calls.retain(|events| events.len() > 1);
    calls
}

#[test]
fn a_trim_counts_what_is_left_and_keeps_questions_and_pairs() {
    let steps = (steps(), 1u64..400, 1u64..40, 1u64..40);
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let tried = runner.run(&steps, |(steps, chat, prompt, tool)| {
        let events = conversation(&steps);
        let how = Trim { limits: Limits { chat, prompt, tool }, ..Trim::default() };
        let found = trim(&events, Moment::Load, &how);
        let left = found.plan.outcome(&events);
        let counted = trim(&left, Moment::Load, &Trim::default()).report.before;
        prop_assert_eq!(found.report.after, counted);
        for event in &found.report.trimmed {
            prop_assert!(event.saved > 0 || event.action == TrimAction::Removed, "{:?}", event);
        }
        prop_assert_eq!(newest_question(&left), newest_question(&events));
        for pair in answered_calls(&events) {
            let kept = pair.iter().filter(|number| found.plan.fate(**number) != Fate::Removed).count();
            prop_assert!(kept == 0 || kept == pair.len(), "{:?}", pair);
        }
        Ok(())
    });
    assert!(tried.is_ok(), "{tried:?}");
}

#[test]
fn a_compaction_keeps_the_newest_question_and_pairs() {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let tried = runner.run(&(steps(), 1usize..4), |(steps, turns)| {
        let events = conversation(&steps);
        let Some(old) = old_part(&events, Keep::Turns(turns), &Tokenizer::default()) else { return Ok(()) };
        prop_assert_eq!(newest_question(&events[old.first_kept..]), newest_question(&events));
        for pair in answered_calls(&events) {
            let removed = pair.iter().filter(|number| old.removed.contains(number)).count();
            prop_assert!(removed == 0 || removed == pair.len(), "{:?}", pair);
        }
        Ok(())
    });
    assert!(tried.is_ok(), "{tried:?}");
}
