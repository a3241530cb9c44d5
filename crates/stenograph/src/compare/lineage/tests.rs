//! Families of conversations. Each letter is a step: a small letter is a user message, a capital letter a message of the assistant.

use super::*;
use crate::compare::conversation::{ConversationBuilder, IsInSpine};
use crate::model::ForkOrigin;
use crate::model::{Body, Content, Event, Role, Spine};
use crate::time::Time;

fn events(letters: &str) -> Vec<Event<'static>> {
    let event = |letter: char| {
        let role = if letter.is_lowercase() { Role::User } else { Role::Assistant };
        Event::new(Body::Message { role, content: Content::text(letter.to_string()) })
    };
    letters.chars().map(event).collect()
}

fn built(events: &[Event<'_>]) -> ConversationSteps {
    let mut spine = Spine::of(events);
    let mut builder = ConversationBuilder::new(&spine);
    for event in events {
        let is_in_spine = if spine.left_out(event).is_none() { IsInSpine::Yes } else { IsInSpine::No };
        builder.add(event, &spine, is_in_spine);
    }
    builder.finish()
}

fn conversation(letters: &str) -> ConversationSteps {
    built(&events(letters))
}

fn parents(conversations: &[ConversationSteps]) -> Vec<Option<(usize, usize, RelationEvidence)>> {
    relate(conversations).into_iter().map(|found| found.map(|found| (found.parent, found.shared, found.how))).collect()
}

#[test]
fn a_continuation_is_a_child() {
    let found = parents(&["aAbB", "aAbBcC", "aAdD"].map(conversation));
    assert_eq!(found, [None, Some((0, 4, RelationEvidence::Continues)), Some((0, 2, RelationEvidence::Branches))]);
}

#[test]
fn the_order_does_not_matter_if_one_contains_the_other() {
    let found = parents(&["aAbBcCdD", "aAbBcC", "aA", "aAbB"].map(conversation));
    let expected = [
        Some((1, 6, RelationEvidence::Continues)),
        Some((3, 4, RelationEvidence::Continues)),
        None,
        Some((2, 2, RelationEvidence::Continues)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn branches_from_one_position_have_one_parent() {
    let found = parents(&["aAbB", "aAcC", "aAdDeE", "aAdDfF"].map(conversation));
    assert_eq!(found.first(), Some(&None));
    assert_eq!(found[1..3], [Some((0, 2, RelationEvidence::Branches)), Some((0, 2, RelationEvidence::Branches))]);
    assert_eq!(found[3], Some((2, 4, RelationEvidence::Branches)));
}

#[test]
fn the_same_question_does_not_make_a_family() {
    assert_eq!(parents(&["aAbB", "aBcC", "a"].map(conversation)), [None, None, None]);
    assert_eq!(parents(&["", ""].map(conversation)), [None, None]);
}

#[test]
fn a_copy_is_not_a_branch() {
    assert_eq!(parents(&["aAbB", "aAbB"].map(conversation)), [None, Some((0, 4, RelationEvidence::Copy))]);
}

#[test]
fn the_conversation_that_continued_first_is_the_parent() {
    let at = |letters: &str, times: [&'static str; 4]| {
        let mut events = events(letters);
        for (event, time) in events.iter_mut().zip(times) {
            event.time = Time::iso(format!("2026-03-02T09:{time}:00Z").into());
        }
        built(&events)
    };
    let found = parents(&[at("aAbB", ["00", "01", "30", "31"]), at("aAcC", ["00", "01", "10", "11"])]);
    assert_eq!(found, [Some((1, 2, RelationEvidence::Branches)), None]);
}

#[test]
fn calls_match_by_their_ids_even_if_their_results_differ() {
    let answered = |answer: &'static str| {
        let call = |input: &'static str| Body::ToolCall {
            call: Some("call_00000001".into()),
            name: "read".into(),
            input: crate::model::Input::Json(input.into()),
        };
        let result = Body::ToolResult {
            call: Some("call_00000001".into()),
            name: None,
            content: Content::text(answer),
            error: None,
        };
        let mut all = events("a");
        all.extend([Event::new(call("{}")), Event::new(result)]);
        all
    };
    let mut longer = answered("...snip...");
    longer.extend(events("B"));
    let found = parents(&[built(&answered("all of it")), built(&longer)]);
    assert_eq!(found, [None, Some((0, 3, RelationEvidence::Continues))]);
}

#[test]
fn a_source_without_the_beginning_is_related_by_ids_and_by_its_statement() {
    let named = |letters: &'static str, session: &'static str| {
        let mut events = events(letters);
        for (at, event) in events.iter_mut().enumerate() {
            event.id = Some(format!("{session}-record-0000000{at}").into());
            event.session = Some(session.into());
        }
        events
    };
    let first = named("aAbB", "one");
    let mut second = named("cC", "two");
    second[0].parent = first[1].id.clone();
    let mut third = built(&named("dD", "three"));
    third.fork = Some(ForkOrigin { session: "two".into(), record: Some("two-record-00000000".into()) });
    let mut fourth = built(&named("eE", "four"));
    fourth.fork = Some(ForkOrigin { session: "elsewhere".into(), record: None });
    let found = relate(&[built(&first), built(&second), third, fourth]);
    let relation = |at: usize| found[at].as_ref().map(|found| (found.parent, found.left, found.how));
    assert_eq!(relation(0), None);
    assert_eq!(relation(1), Some((0, Some(2), RelationEvidence::Ids)));
    assert_eq!(relation(2), Some((1, Some(1), RelationEvidence::Stated)));
    assert_eq!(relation(3), None);
}

#[test]
fn nothing_is_its_own_ancestor() {
    let mut conversations = ["aA", "bB"].map(conversation);
    for (conversation, (own, other)) in conversations.iter_mut().zip([("x", "y"), ("y", "x")]) {
        conversation.session = Some(own.into());
        conversation.fork = Some(ForkOrigin { session: other.into(), record: None });
    }
    let found = relate(&conversations);
    assert_eq!(found.iter().filter(|relation| relation.is_some()).count(), 1);
}

#[test]
fn branches_within_a_source_state_where_and_why_they_start() {
    let message = |id: &'static str, parent: Option<&'static str>, role| Event {
        id: Some(id.into()),
        parent: parent.map(Into::into),
        ..Event::new(Body::Message { role, content: Content::text(format!("say {id}")) })
    };
    let events = [
        message("1", None, Role::User),
        message("2", Some("1"), Role::Assistant),
        message("3", Some("2"), Role::User),
        message("4", Some("3"), Role::Assistant),
        message("5", Some("2"), Role::User),
        message("6", Some("5"), Role::Assistant),
    ];
    let conversation = built(&events);
    assert_eq!(conversation.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [1, 2, 5, 6]);
    let [branch] = conversation.branches.as_slice() else { panic!("{:?}", conversation.branches) };
    assert_eq!((branch.within, branch.left, branch.first, branch.last, branch.steps), (0, Some(2), 3, 4, 2));
    assert_eq!(branch.asked.as_deref(), Some("say 3"));
    assert_eq!(conversation.asked_from(2), Some("say 5"));
}
