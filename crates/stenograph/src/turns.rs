//! The fold `SessionTurns`: what a person asks, and everything up to the next time a person asks. It follows one conversation.
//! [`UserMessage`] decides which messages a person typed, [`Calls`](crate::calls::Calls) which calls failed, and the ledger
//! counts the tokens of each response once.

use serde::{Deserialize, Serialize};

use crate::calls::CallStep;
use crate::evidence::{UserMessage, UserQuestion};
use crate::ledger::{CallCounter, CallDetail, Tokens};
use crate::model::{Body, Event, Role};
use crate::run_state::EventPlace;
use crate::text::beginning;

/// A turn of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionTurn {
    /// What the person asks.
    pub from: EventPlace,
    /// The last event of the turn.
    pub to: EventPlace,
    /// The beginning of what the person typed.
    pub asked: String,
    /// How many messages the model gave.
    pub answers: u64,
    /// How many calls it made.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The tokens of its model calls, each counted once.
    pub tokens: Tokens,
}

/// Follows the turns of one conversation.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionTurns {
    turn: Option<SessionTurn>,
    counting: CallCounter,
    count: u64,
}

/// How much of a prompt is kept.
const ASKED_SIZE_MAX: usize = 400;

impl Default for SessionTurns {
    fn default() -> SessionTurns {
        SessionTurns { turn: None, counting: CallCounter::new("", CallDetail::Numbers), count: 0 }
    }
}

impl SessionTurns {
    /// Takes the next event of the conversation, and what it means for the calls. Returns the turn that ended before it.
    pub fn add(&mut self, event: &Event<'_>, step: &CallStep, place: EventPlace) -> Option<SessionTurn> {
        let ended = if begins_turn(event) && !event.restates { self.begin(event, place) } else { None };
        self.counting.add(event);
        let turn = self.turn.as_mut()?;
        turn.to = place;
        // A record that repeats another may be the only one that states the exit code.
        turn.calls += u64::from(matches!(event.body, Body::Fact { .. }) && step.decision.is_some());
        let decisions = step.decision.iter().chain(&step.later);
        turn.failed += decisions.filter(|decision| decision.outcome.is_failure()).count() as u64;
        if event.restates {
            return ended;
        }
        match &event.body {
            Body::Message { role: Role::Assistant, .. } => turn.answers += 1,
            Body::ToolCall { .. } if !step.is_again => turn.calls += 1,
            _ => {}
        }
        ended
    }

    /// How many turns began.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The turn that lasts until now ends.
    pub fn finish(&mut self) -> Option<SessionTurn> {
        let tokens = self.counting.take_part().rows.iter().fold(Tokens::default(), |sum, row| sum.plus(&row.tokens));
        self.turn.take().map(|turn| SessionTurn { tokens, ..turn })
    }

    fn begin(&mut self, event: &Event<'_>, place: EventPlace) -> Option<SessionTurn> {
        let ended = self.finish();
        self.count += 1;
        let text = UserQuestion::of(event).map_or_else(|| event.text(), |question| question.text().to_owned());
        let asked = beginning(text.trim(), ASKED_SIZE_MAX).to_owned();
        self.turn = Some(SessionTurn { from: place, to: place, asked, ..SessionTurn::default() });
        ended
    }
}

/// Whether a person begins a turn with this event, unless the event only repeats another one.
pub(crate) fn begins_turn(event: &Event<'_>) -> bool {
    UserMessage::of(event).is_some_and(UserMessage::begins_turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Calls;
    use crate::model::{Content, Input, Usage};

    fn said(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn turns(events: &[Event<'static>]) -> Vec<SessionTurn> {
        let (mut calls, mut turns, mut found) = (Calls::default(), SessionTurns::default(), Vec::new());
        for (number, event) in (1..).zip(events) {
            let step = calls.add(event);
            found.extend(turns.add(event, &step, EventPlace { event: number, ..EventPlace::default() }));
        }
        found.extend(turns.finish());
        found
    }

    #[test]
    fn a_turn_lasts_until_a_person_asks_again() {
        let answer = |group: &'static str| {
            let usage = Usage { input: Some(10), output: Some(2), ..Usage::default() };
            Event { usage: Some(usage), group: Some(group.into()), ..said(Role::Assistant, "So.") }
        };
        let input = Input::Json("{}".into());
        let call = Event::new(Body::ToolCall { call: Some("call-0001".into()), name: "Bash".into(), input });
        let content = Content::text("no");
        let result = Body::ToolResult { call: Some("call-0001".into()), name: None, content, error: Some(true) };
        let found = turns(&[
            said(Role::User, "<context>/w</context>"),
            said(Role::User, "Fix it"),
            // Two records of one response count once.
            answer("r1"),
            answer("r1"),
            call,
            Event::new(result),
            said(Role::User, "<note>an aside</note>"),
            said(Role::User, "And test it"),
            answer("r2"),
        ]);
        let told = |turn: &SessionTurn| (turn.from.event, turn.to.event, turn.calls, turn.failed, turn.tokens.input);
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), [(2, 7, 1, 1, 10), (8, 9, 0, 0, 10)]);
        assert_eq!((found[0].asked.as_str(), found[1].asked.as_str()), ("Fix it", "And test it"));
    }

    #[test]
    fn without_a_question_there_is_no_turn() {
        assert_eq!(turns(&[said(Role::Assistant, "Hello")]), []);
    }
}
