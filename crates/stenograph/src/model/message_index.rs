//! An index of the messages of a session, by fingerprint. It tells whether a record that claims to repeat another one really does, and
//! which turns a user took back. It keeps eight bytes of each text. The spine decides which events it leaves out.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::spine::SpineEvent;
use super::{Body, Event, Kind, Role};
use crate::evidence::UserMessage;

/// What a fact takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// The last turns of the user.
    Turns(u64),
    /// The record with this fingerprint of its id, and everything after it.
    To(u64),
}

/// The messages of a session. Add every event ([`MessageIndex::add`]), sort once ([`MessageIndex::sort`]), then ask.
#[derive(Debug, Default)]
pub struct MessageIndex {
    /// Fingerprints of all texts, except those of records that claim to repeat another one.
    fingerprints: Vec<u64>,
    /// Messages in the role of the user, one entry for each fingerprint.
    users: Vec<IndexedMessage>,
    /// Records that take turns back, and how many turns.
    rewinds: Vec<(u32, u64)>,
    /// The runs that end with a record which names where they begin.
    named_runs: Vec<Range<u32>>,
    /// The first message since a model or a tool did something.
    prelude: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct IndexedMessage {
    record: u32,
    fingerprint: u64,
    author: Author,
    /// The first of the messages that came together with this one.
    prelude: u32,
}

/// What the record of a user message shows about its author.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Author {
    /// A person typed it.
    Person,
    /// The agent wrote it.
    Agent,
    /// A person typed it, but the record claims to repeat a message of another record.
    Repeated,
}

impl MessageIndex {
    /// Adds one event of this record, and what it is as a message in the role of the user.
    pub fn add(&mut self, event: &impl SpineEvent, message: Option<UserMessage>, record: u32) {
        if !event.restates() {
            self.fingerprints.extend_from_slice(&event.fingerprints());
        }
        if event.thread().is_some() {
            return;
        }
        match (event.kind(), event.role()) {
            (Kind::Message, Some(Role::User)) => {
                let prelude = if event.restates() { record } else { *self.prelude.get_or_insert(record) };
                let author = match message.is_none_or(UserMessage::begins_turn) {
                    true if event.restates() => Author::Repeated,
                    true => Author::Person,
                    false => Author::Agent,
                };
                let fingerprints = event.fingerprints();
                self.users.extend(fingerprints.iter().map(|fingerprint| IndexedMessage {
                    record,
                    fingerprint: *fingerprint,
                    author,
                    prelude,
                }));
            }
            (Kind::Message, Some(Role::System | Role::Developer)) if !event.restates() => {
                self.prelude.get_or_insert(record);
            }
            (Kind::Fact, _) => match event.rewinds() {
                Some(Rewind::Turns(turns)) => self.rewinds.push((record, turns)),
                // The spine knows which record has that id.
                Some(Rewind::To(_)) | None => {}
            },
            _ if event.restates() => {}
            _ => self.prelude = None,
        }
    }

    /// Adds a run of records that its last record takes back.
    pub(crate) fn take_back(&mut self, run: Range<u32>) {
        self.named_runs.push(run);
    }

    /// Sorts the index, after the last event was added.
    pub fn sort(&mut self) {
        self.fingerprints.sort_unstable();
        self.fingerprints.dedup();
    }

    /// Whether an event that claims to repeat another record says what no other record says.
    pub fn is_alone(&self, event: &impl SpineEvent) -> bool {
        is_alone(&event.fingerprints(), |fingerprint| self.has(fingerprint))
    }

    fn has(&self, fingerprint: u64) -> bool {
        self.fingerprints.binary_search(&fingerprint).is_ok()
    }

    /// The runs of records that the user took back: each from its first turn to the record that takes it back. No run contains another.
    pub(crate) fn rewound(&self) -> Vec<Range<u32>> {
        let mut all = self.rewound_turns();
        all.extend(self.named_runs.iter().cloned());
        all.sort_by_key(|run| run.end);
        let mut runs: Vec<Range<u32>> = Vec::new();
        for run in all {
            // A run that goes further back covers earlier runs.
            while runs.pop_if(|earlier| earlier.start >= run.start).is_some() {}
            runs.push(run);
        }
        runs
    }

    fn rewound_turns(&self) -> Vec<Range<u32>> {
        if self.rewinds.is_empty() {
            return Vec::new();
        }
        let mut turns = self.turns().into_iter().peekable();
        let (mut live, mut runs): (Vec<Range<u32>>, Vec<Range<u32>>) = (Vec::new(), Vec::new());
        for (record, count) in &self.rewinds {
            while let Some(turn) = turns.next_if(|turn| turn.end < *record) {
                live.push(turn);
            }
            let kept = live.len().saturating_sub(usize::try_from(*count).unwrap_or(usize::MAX));
            // Records before the first turn belong to no turn.
            let start = live.get(kept).map(|turn| if kept == 0 { turn.end } else { turn.start });
            live.truncate(kept);
            let start = start.unwrap_or(*record);
            runs.push(start..record.saturating_add(1));
        }
        runs
    }

    /// The turns of the user: the first record that came together with the message, and the record of the message.
    fn turns(&self) -> Vec<Range<u32>> {
        let mut turns: Vec<Range<u32>> = Vec::new();
        for user in &self.users {
            let begins = match user.author {
                Author::Repeated => !self.has(user.fingerprint),
                Author::Agent => false,
                Author::Person => true,
            };
            let last = turns.last().map(|turn| turn.end);
            if begins && last != Some(user.record) {
                let start = user.prelude.max(last.map_or(0, |last| last.saturating_add(1)));
                turns.push(start.min(user.record)..user.record);
            }
        }
        turns
    }
}

/// Whether a record that claims to repeat another one says what no other record states. A record without words never does.
pub(crate) fn is_alone(fingerprints: &[u64], is_stated: impl Fn(u64) -> bool) -> bool {
    !fingerprints.is_empty() && !fingerprints.iter().any(|fingerprint| is_stated(*fingerprint))
}

/// The fingerprints of what an event says, without the spaces around it: one of the whole, and one of each text if it has several.
pub(crate) fn fingerprints(event: &Event<'_>) -> Vec<u64> {
    let (Some(speaker), Some(content)) = (speaker(&event.body), event.content()) else { return Vec::new() };
    let joined = content.joined();
    let text = joined.decode();
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut found = vec![fingerprint(speaker, &text)];
    if content.texts().nth(1).is_some() {
        found.extend(content.texts().map(|text| fingerprint(speaker, &text.decode())));
    }
    found
}

/// The speaker as a number for fingerprints. Calls, results and facts have none.
pub(crate) fn speaker(body: &Body<'_>) -> Option<u64> {
    match body {
        Body::Message { role, .. } => Some(1 + *role as u64),
        Body::Thinking { .. } => Some(0),
        _ => None,
    }
}

/// A fingerprint of a text of this speaker, without the spaces around it.
pub(crate) fn fingerprint(speaker: u64, text: &str) -> u64 {
    xxh3_64_with_seed(text.trim().as_bytes(), speaker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Fact};

    fn said(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn restated(role: Role, text: &'static str) -> Event<'static> {
        Event { restates: true, ..said(role, text) }
    }

    fn rewind(turns: &'static str) -> Event<'static> {
        Event::new(Body::Fact { fact: Fact::Rewind, content: Some(Content::text(turns)) })
    }

    fn taken_back(events: &[Event<'static>]) -> Vec<(u32, u32)> {
        let mut all = MessageIndex::default();
        (0..).zip(events).for_each(|(record, event)| all.add(event, UserMessage::of(event), record));
        all.sort();
        all.rewound().into_iter().map(|run| (run.start, run.end)).collect()
    }

    #[test]
    fn the_last_turns_are_taken_back() {
        let turn = |text| [said(Role::User, text), said(Role::Assistant, "done")];
        let mut events: Vec<Event<'static>> = ["a", "b", "c"].into_iter().flat_map(turn).collect();
        events.push(rewind("2"));
        assert_eq!(taken_back(&events), [(2, 7)]);
        // The next one goes back from where the first one left off.
        events.extend(turn("d"));
        events.push(rewind("1"));
        assert_eq!(taken_back(&events), [(2, 7), (7, 10)]);
        events.push(rewind("9"));
        assert_eq!(taken_back(&events), [(0, 11)]);
        events.push(rewind("1"));
        assert_eq!(taken_back(&events).last(), Some(&(11, 12)));
    }

    #[test]
    fn what_an_agent_puts_in_is_no_turn_and_goes_with_its_turn() {
        let events = [
            said(Role::Developer, "rules"),
            said(Role::User, "<context>\n/w</context>"),
            said(Role::User, "a"),
            said(Role::Assistant, "done"),
            said(Role::Developer, "new rules"),
            said(Role::User, "<context of=\"x\">/x</context>\n"),
            said(Role::User, "b"),
            rewind("1"),
        ];
        assert_eq!(taken_back(&events), [(4, 8)]);
        let mut events = events.to_vec();
        events.push(rewind("5"));
        assert_eq!(taken_back(&events), [(2, 9)]);
    }

    #[test]
    fn a_turn_and_its_restatement_are_one_turn() {
        let events = [
            said(Role::User, "<rules>for this folder</rules>"),
            said(Role::User, "a"),
            restated(Role::User, "a "),
            said(Role::Assistant, "done"),
            restated(Role::User, "said nowhere else"),
            rewind("1"),
        ];
        assert_eq!(taken_back(&events), [(4, 6)]);
        assert_eq!(taken_back(&[events.as_slice(), &[rewind("1")]].concat()), [(1, 7)]);
    }

    #[test]
    fn a_restatement_without_a_twin_is_alone() {
        let mut all = MessageIndex::default();
        all.add(&said(Role::User, "a\n"), None, 0);
        all.sort();
        assert!(!all.is_alone(&restated(Role::User, "a")));
        assert!(all.is_alone(&restated(Role::Assistant, "a")));
        assert!(all.is_alone(&restated(Role::User, "b")));
    }
}
