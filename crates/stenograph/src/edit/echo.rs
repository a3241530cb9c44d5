//! What says again what an edited event says, so that it is edited too: records that restate it, counts in headers, and the links of
//! records that hung on one that is gone. What is beside it in its own record is `step.rs`'s to know. Which events are edited, and
//! why, is not decided here.

use std::collections::{HashMap, HashSet};

use super::change::{NewBody, NewParent};
use super::sketch::{Sketch, Sketches, Tie};
use super::units::turn_messages;
use super::{Fate, Plan};
use crate::model::{Content, Kind};

/// The plan with everything that follows from it.
pub(super) fn follow(events: &Sketches, plan: &Plan) -> Plan {
    let mut whole = plan.clone();
    restatements(events, plan, &mut whole);
    rewinds(events, &mut whole);
    links(events, &mut whole);
    counts(events, &mut whole);
    whole
}

/// Records that say again what an edited one says.
fn restatements(events: &Sketches, plan: &Plan, whole: &mut Plan) {
    let edited = |number: usize| plan.is_edited(events, number);
    let changed = events.iter().enumerate().filter(|(number, event)| event.kind == Kind::Message && edited(*number));
    let messages: HashMap<u64, usize> = changed.map(|(number, event)| (event.said, number)).collect();
    for (number, event) in events.iter().enumerate() {
        if plan.fate(number) != Fate::Stays {
            continue;
        }
        let tie = events.tie(number);
        match tie {
            Some(Tie::Same(base)) if plan.fate(base) == Fate::Goes => whole.remove(number),
            Some(Tie::Same(base)) if plan.fate(base) == Fate::Becomes => echo(plan, number, base, whole),
            // What tells of a call in other words than the call's own record has to go when that is edited.
            Some(Tie::Named(named)) if named.iter().any(|base| edited(*base)) => whole.remove(number),
            // A last word or a queued prompt repeats a message without being marked: it is changed with it, and stays where
            // the message goes, for it is a statement of its own.
            _ if matches!(event.kind, Kind::Stop | Kind::Fact) && event.says => {
                let base = messages.get(&event.said).copied();
                if let Some(base) = base.filter(|base| plan.fate(*base) == Fate::Becomes) {
                    echo(plan, number, base, whole);
                }
            }
            _ => {}
        }
    }
}

/// Lets a restatement say what the event it restates says now.
fn echo(plan: &Plan, number: usize, base: usize, whole: &mut Plan) {
    match plan.changes.get(&base).and_then(|change| change.body.as_ref()) {
        // A text that is the same whatever it stands in needs no look at the other event.
        Some(NewBody::Content(content @ Content::Text(_))) => whole.say_content(number, content.clone()),
        Some(NewBody::Content(_) | NewBody::Given(_) | NewBody::Shortened(_) | NewBody::As(_)) | None => {
            whole.say_new(number, NewBody::As(base));
        }
    }
}

/// Turns that were taken back and are gone are not to be taken back again: what takes them back says how many are left.
fn rewinds(events: &Sketches, whole: &mut Plan) {
    if events.rewinds.is_empty() {
        return;
    }
    let mut turns = turn_messages(events).into_iter().peekable();
    let mut live: Vec<usize> = Vec::new();
    for (number, count) in &events.rewinds {
        while let Some(turn) = turns.next_if(|turn| turn < number) {
            live.push(turn);
        }
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let taken = live.split_off(live.len().saturating_sub(count));
        let gone = taken.iter().filter(|turn| whole.fate(**turn) == Fate::Goes).count();
        if gone == 0 || whole.fate(*number) != Fate::Stays {
            continue;
        }
        match taken.len() - gone {
            0 => whole.remove(*number),
            left => whole.say_content(*number, Content::text(left.to_string())),
        }
    }
}

/// Links to records that are gone lead to the nearest one that stays, so that nobody takes what stands before for forgotten. Where that
/// one has a successor already that stays, they lead to the successor: two that follow one record would look like two branches.
fn links(events: &Sketches, whole: &mut Plan) {
    // Each id that is gone, with the first event that has it.
    let mut gone: HashMap<u64, usize> = HashMap::new();
    let mut kept: HashSet<u64> = HashSet::new();
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.id != 0) {
        if whole.fate(number) == Fate::Goes {
            gone.entry(event.id).or_insert(number);
        }
    }
    for (number, event) in events.iter().enumerate() {
        if whole.fate(number) != Fate::Goes && gone.contains_key(&event.id) {
            kept.insert(event.id);
        }
    }
    gone.retain(|id, _| !kept.contains(id));
    if gone.is_empty() {
        return;
    }
    // The last record of the conversation that was led to each one, and where each record was led.
    let mut successors: HashMap<u64, usize> = HashMap::new();
    let mut led: HashMap<u64, NewParent> = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        if whole.fate(number) == Fate::Goes {
            continue;
        }
        let parent = whole.parent_key(events, number).unwrap_or(event.parent);
        if !gone.contains_key(&parent) {
            continue;
        }
        let found = standing(events, &gone, parent);
        let is_told = events.is_told(number) && event.thread == 0;
        let parent = match found {
            // The parts of a record follow the same one.
            _ if event.id != 0 && led.contains_key(&event.id) => {
                led.get(&event.id).cloned().unwrap_or(NewParent::Nothing)
            }
            Some((id, gone)) if event.id != 0 && is_told => {
                let parent = successors.insert(id, number).map_or(NewParent::ParentOf(gone), NewParent::Event);
                led.insert(event.id, parent.clone());
                parent
            }
            Some((_, gone)) => NewParent::ParentOf(gone),
            None => NewParent::Nothing,
        };
        whole.lead(number, parent);
    }
}

/// The nearest ancestor that is not gone, and the event that is gone and follows it. A chain that leads in a circle leads nowhere.
fn standing(events: &Sketches, gone: &HashMap<u64, usize>, parent: u64) -> Option<(u64, usize)> {
    let mut last = *gone.get(&parent)?;
    for _ in 0..=gone.len() {
        let next = events.get(last).map_or(0, |event: &Sketch| event.parent);
        match gone.get(&next) {
            Some(further) => last = *further,
            None => return (next != 0).then_some((next, last)),
        }
    }
    None
}

/// What a header counts follows by as many as went or were put in. A count that was never that of its events stays as wrong as it
/// was.
fn counts(events: &Sketches, whole: &mut Plan) {
    for count in &events.counts {
        let goes = |(number, event): &(usize, &Sketch)| whole.fate(*number) == Fate::Goes && event.kind == count.kind;
        let gone = events.iter().enumerate().filter(goes).count();
        let new = whole.put_in().iter().filter(|(_, event)| event.kind() == count.kind).count();
        let now = count.stated.saturating_add(new as u64).saturating_sub(gone as u64);
        if now == count.stated || whole.fate(count.event) == Fate::Goes {
            continue;
        }
        let field = (count.origin, count.field, crate::text::quote(&now.to_string()));
        if let Some(change) = whole.change(count.event) {
            change.fields.push(field);
        }
    }
}
