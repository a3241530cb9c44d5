//! Tests of the spine.

use super::*;
use crate::model::{Body, Content};

fn message(id: &'static str, parent: Option<&'static str>) -> Event<'static> {
    let body = Body::Message { role: Role::User, content: Content::text(id) };
    Event { id: Some(id.into()), parent: parent.map(Into::into), ..Event::new(body) }
}

fn result(id: &'static str, parent: &'static str) -> Event<'static> {
    let body = Body::ToolResult { call: None, name: None, content: Content::text(id), error: None };
    Event { id: Some(id.into()), parent: Some(parent.into()), ..Event::new(body) }
}

fn kept(events: &[Event<'static>]) -> Vec<String> {
    let mut spine = Spine::of(events);
    let kept = events.iter().filter(|event| spine.left_out(event).is_none());
    kept.map(|event| event.id.clone().unwrap_or_default().into_owned()).collect()
}

#[test]
fn an_abandoned_branch_is_left_out() {
    let events = [
        message("a", None),
        message("b", Some("a")),
        message("c", Some("b")),
        message("d", Some("a")),
        message("e", Some("d")),
    ];
    assert_eq!(kept(&events), ["a", "d", "e"]);
}

#[test]
fn branches_know_where_they_branch_off() {
    let events = [
        message("a", None),
        message("b", Some("a")),
        message("c", Some("b")),
        message("d", Some("b")),
        message("e", Some("a")),
        message("f", Some("e")),
    ];
    let mut spine = Spine::of(&events);
    let branches = events.iter().map(|event| {
        let _ = spine.left_out(event);
        spine.branch()
    });
    assert_eq!(branches.collect::<Vec<_>>(), [0, 1, 2, 1, 0, 0]);
    assert_eq!(spine.left_from(), [0, 1]);
}

#[test]
fn results_of_parallel_calls_stay() {
    let events =
        [message("a", None), message("b", Some("a")), result("r1", "a"), result("r2", "b"), message("c", Some("r2"))];
    assert_eq!(kept(&events), ["a", "b", "r1", "r2", "c"]);
}

#[test]
fn a_parallel_call_stays_when_the_first_result_comes_last() {
    let events =
        [message("a", None), message("b", Some("a")), result("r2", "b"), result("r1", "a"), message("c", Some("r1"))];
    assert_eq!(kept(&events), ["a", "b", "r2", "r1", "c"]);
}

#[test]
fn parallel_calls_of_one_response_do_not_compete() {
    let call = |id: &'static str, parent: &'static str| Event { group: Some("m1".into()), ..message(id, Some(parent)) };
    let siblings = [message("a", None), call("b", "a"), call("c", "a"), result("r1", "b"), message("d", Some("r1"))];
    assert_eq!(kept(&siblings), ["a", "b", "c", "r1", "d"]);
}

#[test]
fn a_restatement_stays_if_no_other_record_has_its_text() {
    let events = [message("a", None), message("b", None), message("c", None)].map(|event| {
        let restates = event.id.as_deref() != Some("a");
        Event { restates, ..event }
    });
    let mut events = events.to_vec();
    events.push(Event { restates: true, ..message("a", None) });
    assert_eq!(kept(&events), ["a", "b", "c"]);
}

#[test]
fn turns_that_were_taken_back_are_left_out() {
    let rewind = Body::Fact { fact: "rewind".into(), content: Some(Content::text("1")) };
    let events = [message("a", None), message("b", None), Event::new(rewind), message("c", None)];
    assert_eq!(kept(&events), ["a", "c"]);
}

#[test]
fn a_record_that_is_taken_back_by_its_id_is_left_out_with_all_after_it() {
    let back = |id: &'static str| Event::new(Body::Fact { fact: "rewind_to".into(), content: Some(Content::text(id)) });
    let events = [message("a", None), message("b", None), message("c", None), back("b"), message("d", None)];
    assert_eq!(kept(&events), ["a", "d"]);
    let twice = [message("a", None), message("b", None), back("b"), message("c", None), back("a"), message("d", None)];
    assert_eq!(kept(&twice), ["d"]);
    // The spine hides nothing because of an id that it does not know.
    assert_eq!(kept(&[message("a", None), back("x"), message("b", None)]), ["a", "", "b"]);
}

#[test]
fn a_node_takes_few_bytes() {
    assert!(size_of::<Node>() <= 24);
}

#[test]
fn a_nested_record_is_a_repetition_only_if_the_source_has_it_too() {
    let mut spine = Spine::default();
    let (own, inner) = (message("a", None), message("b", None));
    spine.add(&message("outer", None));
    spine.add_nested(&own);
    spine.add_nested(&inner);
    spine.add(&own);
    spine.decide();
    assert!(!spine.is_only_nested(&own) && spine.is_only_nested(&inner));
    assert!(spine.is_only_nested(&Event { id: None, ..own }));
}

#[test]
fn a_missing_parent_loses_nothing() {
    let events = [message("a", None), message("b", Some("gone")), message("c", Some("b"))];
    assert_eq!(kept(&events), ["a", "b", "c"]);
}
