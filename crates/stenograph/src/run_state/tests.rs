//! Decisions of the fold that status and audit cannot show: repeated records, a restored fold, a start in the middle.

use super::*;
use crate::model::Input;

fn message(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn call(id: &str, input: &str) -> Event<'static> {
    let input = Input::Json(format!("{{\"x\":\"{input}\"}}").into());
    Event::new(Body::ToolCall { call: Some(id.to_owned().into()), name: "Bash".into(), input })
}

fn result(id: &str, error: bool) -> Event<'static> {
    let content = Content::text("answer");
    Event::new(Body::ToolResult { call: Some(id.to_owned().into()), name: None, content, error: Some(error) })
}

/// Three failed steps, each repeated, then an error that is recovered.
fn events() -> Vec<Event<'static>> {
    let mut events = vec![message(Role::User, "Fix it")];
    for number in 0..3 {
        let id = format!("call-{number:04}");
        events.extend([call(&id, &id), result(&id, true), result(&id, true)]);
    }
    events.push(Event::new(Body::Failure { name: Some("overloaded".into()), content: None }));
    events.extend([message(Role::Assistant, "Again."), call("call-0009", "last")]);
    events
}

fn run(events: &[Event<'_>]) -> RunState {
    let (mut calls, mut run) = (Calls::default(), RunState::default());
    for (number, event) in (1..).zip(events) {
        let step = calls.add(event);
        run.add(event, &step, EventPlace { event: number, ..EventPlace::default() });
    }
    run
}

#[test]
fn a_repeated_result_changes_nothing() {
    let found = run(&events()[..10]);
    let stuck: Vec<Stuck> = found.stuck().collect();
    assert_eq!(stuck.len(), 1);
    assert_eq!((stuck[0].kind, stuck[0].count, stuck[0].from.event, stuck[0].to.event), (StuckKind::Failing, 3, 2, 9));
    let answered = [
        call("call-0001", "a"),
        result("call-0001", false),
        message(Role::Assistant, "Done."),
        result("call-0001", false),
    ];
    assert_eq!(run(&answered).phase(), &RunPhase::Answered);
}

#[test]
fn a_decision_names_its_rule_and_its_event() {
    let decided = |count: usize| {
        let decision = run(&events()[..count]).decide(Some(0), &Patience::default());
        (decision.state, decision.rule, decision.from.event, decision.to.event)
    };
    assert_eq!(decided(0), (State::Unknown, RunRule::NoRecord, 0, 0));
    assert_eq!(decided(1), (State::Running, RunRule::Prompt, 1, 1));
    assert_eq!(decided(2), (State::Running, RunRule::OpenCall, 2, 2));
    assert_eq!(decided(3), (State::Running, RunRule::Result, 3, 3));
    assert_eq!(decided(10), (State::Stuck, RunRule::FailingSteps, 2, 9));
    assert_eq!(decided(11), (State::Error, RunRule::LastError, 11, 11));
    let recovery = run(&events()).recovery().unwrap();
    assert_eq!((recovery.error.event, recovery.by.event), (11, 12));
}

#[test]
fn if_the_silence_is_unknown_an_answer_is_complete_and_any_other_open_phase_is_unknown() {
    let decided = |events: &[Event<'_>]| run(events).decide(None, &Patience::default()).state;
    assert_eq!(decided(&[message(Role::User, "hi"), message(Role::Assistant, "Hello!")]), State::Idle);
    assert_eq!(decided(&[message(Role::User, "hi")]), State::Unknown);
    assert_eq!(decided(&[call("call-0001", "a")]), State::Unknown);
}

#[test]
fn a_restored_fold_continues_the_same() {
    let (mut calls, mut whole, mut resumed) = (Calls::default(), RunState::default(), RunState::default());
    for event in &events() {
        let step = calls.add(event);
        resumed = RunState::restore(&resumed.save());
        assert_eq!(whole.add(event, &step, EventPlace::default()), resumed.add(event, &step, EventPlace::default()));
        assert_eq!(whole, resumed);
    }
    assert_eq!(RunState::restore("nonsense"), RunState::default());
}

#[test]
fn the_saved_state_stays_small() {
    let many: Vec<Event<'static>> =
        (0..5000).map(|number| call(&format!("call-{number:06}"), "x".repeat(99).as_str())).collect();
    let saved = run(&many).save();
    assert!(saved.len() < 32 << 10, "{} bytes", saved.len());
}

#[test]
fn a_call_that_is_answered_before_it_is_made_is_not_open() {
    let found = run(&[result("call-0001", false), call("call-0001", "a")]);
    assert_eq!(found.open_tools().count(), 0);
}
