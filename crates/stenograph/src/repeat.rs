//! Whether a record that claims to repeat another one really does, for code that sees events only once. The events before
//! it and a few events after it decide. Code that reads a source twice asks the spine, which has the same rule
//! (`is_alone`). A claim that is still open when the look-ahead ends is taken as false: text may be shown twice, but is
//! never hidden.

use std::collections::{HashSet, VecDeque};

use crate::format::Format;
use crate::model::{Body, Event, Note, Role, fingerprints, is_alone};
use crate::read::Sink;

/// How many events after a claim may still prove it: agents write the records of one message next to each other.
pub(crate) const AHEAD_MAX: usize = 64;

/// How many stated texts are remembered.
const STATED_MAX: usize = 1 << 16;

/// Compares claimed repetitions with stated texts, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatCheck {
    stated_max: usize,
    /// Fingerprints of stated texts, oldest first, each once.
    stated: VecDeque<u64>,
    known: HashSet<u64>,
    /// Open claims, oldest first: the number of the event and the fingerprints of its texts.
    claims: VecDeque<(u64, Vec<u64>)>,
    /// The number of the next event.
    next: u64,
}

/// The comparable content of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpokenWords {
    restates: bool,
    fingerprints: Vec<u64>,
}

impl SpokenWords {
    /// The texts of an event.
    pub fn of(event: &Event<'_>) -> SpokenWords {
        SpokenWords { restates: event.restates, fingerprints: fingerprints(event) }
    }

    /// The texts of an event that is always shown and claims nothing.
    pub fn stated(event: &Event<'_>) -> SpokenWords {
        SpokenWords { restates: false, ..SpokenWords::of(event) }
    }
}

/// How an event relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatVerdict {
    /// It claims no repetition.
    States,
    /// It repeats another record.
    Repeats,
    /// It claims to repeat a text that was not stated so far. This is the number of the claim.
    Claims(u64),
}

impl Default for RepeatCheck {
    fn default() -> RepeatCheck {
        RepeatCheck::remembering(STATED_MAX)
    }
}

impl RepeatCheck {
    /// The check for a format. `None` for a log: it repeats whole conversations, and its claims are true.
    pub fn for_format(format: &dyn Format) -> Option<RepeatCheck> {
        (!format.info().traits.log).then(RepeatCheck::default)
    }

    /// A check that remembers this many texts.
    pub fn remembering(stated_max: usize) -> RepeatCheck {
        RepeatCheck { stated_max, stated: VecDeque::new(), known: HashSet::new(), claims: VecDeque::new(), next: 0 }
    }

    /// Takes the texts of the next event and returns how it relates to those before it. Calls `proved` for each open claim
    /// that it proves.
    pub fn add(&mut self, words: SpokenWords, proved: &mut dyn FnMut(u64)) -> RepeatVerdict {
        let number = self.next;
        self.next += 1;
        while self.claims.front().is_some_and(|(claim, _)| number - claim > AHEAD_MAX as u64) {
            self.claims.pop_front();
        }
        let SpokenWords { restates, fingerprints } = words;
        if restates {
            if !is_alone(&fingerprints, |fingerprint| self.known.contains(&fingerprint)) {
                return RepeatVerdict::Repeats;
            }
            self.claims.push_back((number, fingerprints));
            return RepeatVerdict::Claims(number);
        }
        for fingerprint in fingerprints {
            self.state(fingerprint);
        }
        let known = &self.known;
        self.claims.retain(|(claim, fingerprints)| {
            let is_open = is_alone(fingerprints, |fingerprint| known.contains(&fingerprint));
            if !is_open {
                proved(*claim);
            }
            is_open
        });
        RepeatVerdict::States
    }

    /// Whether the next event only repeats another. For events that are not messages, the claim is trusted. A message that claims
    /// to repeat a text that no event stated so far counts, because it may be the only record of the text. Calls `proved` for each open claim that it proves.
    pub fn is_repeat(&mut self, event: &Event<'_>, proved: &mut dyn FnMut(u64)) -> IsRepeat {
        let is_repeat = match &event.body {
            Body::Message { role: Role::User | Role::Assistant, .. } => {
                self.add(SpokenWords::of(event), proved) == RepeatVerdict::Repeats
            }
            _ => event.restates,
        };
        if is_repeat { IsRepeat::Yes } else { IsRepeat::No }
    }

    fn state(&mut self, fingerprint: u64) {
        if !self.known.insert(fingerprint) {
            return;
        }
        self.stated.push_back(fingerprint);
        if self.stated.len() > self.stated_max
            && let Some(oldest) = self.stated.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// The state as words without spaces, for continuing later.
    pub fn save(&self) -> String {
        let stated = self.stated.iter().map(|fingerprint| format!("{fingerprint:x}"));
        let claims = self.claims.iter().map(|(claim, fingerprints)| {
            let fingerprints: Vec<String> = fingerprints.iter().map(|fingerprint| format!("{fingerprint:x}")).collect();
            format!("{}:{}", self.next - claim, fingerprints.join(","))
        });
        stated.chain(claims).collect::<Vec<_>>().join(" ")
    }

    /// Continues from a saved state. It skips words that it does not understand.
    #[must_use]
    pub fn restore(mut self, saved: &str) -> RepeatCheck {
        let fingerprint = |word: &str| u64::from_str_radix(word, 16).ok();
        self.next = AHEAD_MAX as u64 + 1;
        for word in saved.split(' ') {
            match word.split_once(':') {
                None => fingerprint(word).into_iter().for_each(|fingerprint| self.state(fingerprint)),
                Some((back, fingerprints)) => {
                    let claim = back.parse().ok().and_then(|back| self.next.checked_sub(back));
                    let fingerprints: Vec<u64> = fingerprints.split(',').filter_map(fingerprint).collect();
                    self.claims.extend(claim.map(|claim| (claim, fingerprints)));
                }
            }
        }
        self
    }
}

/// Items that represent events, held back until it is known whether their events only repeat others.
#[derive(Debug)]
pub struct RepeatQueue<T> {
    check: RepeatCheck,
    held: VecDeque<Held<T>>,
}

#[derive(Debug)]
struct Held<T> {
    item: T,
    verdict: RepeatVerdict,
    /// The number of events after it.
    waited: usize,
}

impl<T> Default for RepeatQueue<T> {
    fn default() -> RepeatQueue<T> {
        RepeatQueue { check: RepeatCheck::default(), held: VecDeque::new() }
    }
}

impl<T> RepeatQueue<T> {
    /// Takes the texts of the next event and the item that represents it.
    pub fn add(&mut self, words: SpokenWords, item: T) {
        let verdict = self.judge(words);
        self.hold(item, verdict);
    }

    /// The next item whose event is decided, and whether the event repeats another. Items keep their order: a decided item
    /// waits for undecided ones before it.
    pub fn next_decided(&mut self) -> Option<(T, IsRepeat)> {
        let is_open = |held: &Held<T>| matches!(held.verdict, RepeatVerdict::Claims(_)) && held.waited <= AHEAD_MAX;
        if self.held.front().is_none_or(is_open) {
            return None;
        }
        self.take()
    }

    /// The next item, decided or not, once no event follows that could prove a claim.
    pub fn take(&mut self) -> Option<(T, IsRepeat)> {
        let held = self.held.pop_front()?;
        Some((held.item, if held.verdict == RepeatVerdict::Repeats { IsRepeat::Yes } else { IsRepeat::No }))
    }

    fn judge(&mut self, words: SpokenWords) -> RepeatVerdict {
        let held = &mut self.held;
        self.check.add(words, &mut |claim| {
            let is_it = |held: &&mut Held<T>| held.verdict == RepeatVerdict::Claims(claim);
            if let Some(held) = held.iter_mut().find(is_it) {
                held.verdict = RepeatVerdict::Repeats;
            }
        })
    }

    fn hold(&mut self, item: T, verdict: RepeatVerdict) {
        self.held.iter_mut().for_each(|held| held.waited += 1);
        self.held.push_back(Held { item, verdict, waited: 0 });
    }
}

/// Whether an event only repeats another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsRepeat {
    /// It repeats another event.
    Yes,
    /// It has content of its own.
    No,
}

/// Passes events on to a sink. Only events that repeat an existing record are marked as restatements; the others are
/// unmarked, because they are the only record of their content.
#[derive(Debug)]
pub struct CheckRepeats<S> {
    /// The sink.
    pub sink: S,
    queue: RepeatQueue<Event<'static>>,
}

impl<S: Sink> CheckRepeats<S> {
    /// Passes events on to this sink.
    pub fn new(sink: S) -> CheckRepeats<S> {
        CheckRepeats { sink, queue: RepeatQueue::default() }
    }

    /// Continues from the state that [`CheckRepeats::save`] returned.
    pub fn resumed(sink: S, saved: &str) -> CheckRepeats<S> {
        let check = RepeatCheck::default().restore(saved);
        CheckRepeats { sink, queue: RepeatQueue { check, held: VecDeque::new() } }
    }

    /// The state, for continuing after the last event. `None` while an event waits for those after it.
    pub fn save(&self) -> Option<String> {
        self.queue.held.is_empty().then(|| self.queue.check.save())
    }

    /// Passes on all held events, once no event follows.
    pub fn finish(&mut self) {
        while let Some((event, is_repeat)) = self.queue.take() {
            self.give(&event, is_repeat);
        }
    }

    fn give(&mut self, event: &Event<'static>, is_repeat: IsRepeat) {
        match is_repeat {
            IsRepeat::Yes => self.sink.event(event),
            IsRepeat::No => self.sink.event(&event.as_original()),
        }
    }
}

impl<S: Sink> Sink for CheckRepeats<S> {
    fn event(&mut self, event: &Event<'_>) {
        let verdict = self.queue.judge(SpokenWords::of(event));
        // Only events that must wait are copied.
        if self.queue.held.is_empty() && !matches!(verdict, RepeatVerdict::Claims(_)) {
            return self.sink.event(event);
        }
        self.queue.hold(event.clone().into_owned(), verdict);
        while let Some((event, is_repeat)) = self.queue.next_decided() {
            self.give(&event, is_repeat);
        }
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Content;

    fn said(text: &str) -> Event<'static> {
        Event::new(Body::Message { role: Role::User, content: Content::text(text.to_owned()) })
    }

    fn restated(text: &str) -> Event<'static> {
        Event { restates: true, ..said(text) }
    }

    #[derive(Default)]
    struct Texts(Vec<String>);

    impl Sink for Texts {
        fn event(&mut self, event: &Event<'_>) {
            let text = event.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default();
            self.0.push(format!("{text}{}", if event.restates { " again" } else { "" }));
        }
    }

    fn checked(events: &[Event<'static>]) -> Vec<String> {
        let mut check = CheckRepeats::new(Texts::default());
        events.iter().for_each(|event| check.event(event));
        check.finish();
        check.sink.0
    }

    #[test]
    fn a_claim_is_proved_by_what_came_before_or_after_it() {
        let events = [said("a"), restated("a "), restated("b"), restated("c"), said("b"), said("d")];
        assert_eq!(checked(&events), ["a", "a  again", "b again", "c", "b", "d"]);
    }

    #[test]
    fn what_comes_too_late_proves_nothing_and_nothing_is_held_for_ever() {
        let mut check = CheckRepeats::new(Texts::default());
        check.event(&restated("b"));
        (0..=AHEAD_MAX).for_each(|number| check.event(&said(&number.to_string())));
        assert_eq!(check.sink.0.first().map(String::as_str), Some("b"));
        check.event(&said("b"));
        assert_eq!(check.sink.0.len(), AHEAD_MAX + 3);
    }

    #[test]
    fn a_check_that_is_saved_and_restored_at_any_event_says_the_same() {
        let mut events =
            vec![restated("x"), said("a"), restated("a"), restated("b"), said("b"), said("x"), restated("y")];
        events.extend((0..AHEAD_MAX).map(|number| said(&number.to_string())));
        events.extend([said("y"), restated("a"), restated("0")]);
        let judged = |cut: usize| {
            let (mut check, mut proved, mut verdicts) = (RepeatCheck::remembering(50), 0, Vec::new());
            for (at, event) in events.iter().enumerate() {
                if at == cut {
                    check = RepeatCheck::remembering(50).restore(&check.save());
                }
                let verdict = check.add(SpokenWords::of(event), &mut |_| proved += 1);
                verdicts.push(std::mem::discriminant(&verdict));
            }
            (verdicts, proved)
        };
        let whole = judged(usize::MAX);
        assert_eq!(whole.1, 2);
        (0..events.len()).for_each(|cut| assert_eq!(judged(cut), whole, "{cut}"));
    }
}
