//! What says again what an edited event says, so that it is edited too: records that restate it, fields beside it that hold the
//! same in another shape, and the links of records that hung on one that is gone. Which events are edited, and why, is not
//! decided here.

use std::collections::{HashMap, HashSet};

use super::units::turn_messages;
use super::{Fate, Plan, records};
use crate::model::{Body, Content, Event, Kind, REWIND};

/// The plan with everything that follows from it.
pub(super) fn follow(events: &[Event<'_>], plan: &Plan) -> Plan {
    let mut whole = plan.clone();
    restatements(events, plan, &mut whole);
    rewinds(events, &mut whole);
    twins(events, &mut whole);
    links(events, &mut whole);
    counts(events, &mut whole);
    whole.settle_parts(events);
    whole
}

/// What a record that restates others speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tie {
    /// The event it says again.
    same: Option<usize>,
    /// Calls and results that it names, when it says them in other words.
    named: Vec<usize>,
}

impl Tie {
    /// Whether it speaks of any event at all; what does not stands for itself.
    pub(super) fn holds(&self) -> bool {
        self.same.is_some() || !self.named.is_empty()
    }
}

/// For each event that restates others what it speaks of; for all others nothing.
pub(super) fn ties(events: &[Event<'_>]) -> Vec<Tie> {
    let mut said: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut calls: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, event) in events.iter().enumerate().filter(|(_, event)| !event.restates) {
        said.entry(print(event)).or_default().push(number);
        if let Some(call) = event.call() {
            calls.entry(call).or_default().push(number);
        }
    }
    let tie = |(number, event): (usize, &Event<'_>)| {
        if !event.restates {
            return Tie::default();
        }
        let same = says(event).then(|| nearest(events, &said, number)).flatten();
        let named = if same.is_some() { Vec::new() } else { named(event, &calls) };
        Tie { same, named }
    };
    events.iter().enumerate().map(tie).collect()
}

/// Whether an event says anything that could be recognised.
fn says(event: &Event<'_>) -> bool {
    event.call().is_some()
        || event.kind() == Kind::ToolCall
        || event.content().is_some_and(|content| !content.is_empty())
}

/// Records that say again what an edited one says.
fn restatements(events: &[Event<'_>], plan: &Plan, whole: &mut Plan) {
    let edited = |number: usize| match (plan.fate(number), events.get(number)) {
        (Fate::Becomes(new), Some(event)) => new.body != event.body,
        (Fate::Goes, Some(_)) => true,
        (Fate::Stays | Fate::Becomes(_) | Fate::Goes, _) => false,
    };
    let changed = events.iter().enumerate().filter(|(number, event)| event.kind() == Kind::Message && edited(*number));
    let messages: HashMap<String, usize> = changed.map(|(number, event)| (text(event), number)).collect();
    for (number, (event, tie)) in events.iter().zip(ties(events)).enumerate() {
        if *plan.fate(number) != Fate::Stays {
            continue;
        }
        match tie.same.map(|base| (base, plan.fate(base))) {
            Some((_, Fate::Goes)) => whole.remove(number),
            Some((base, Fate::Becomes(new))) => echo(events, number, base, new, whole),
            // What tells of a call in other words than the call's own record has to go when that is edited.
            _ if tie.named.iter().any(|base| edited(*base)) => whole.remove(number),
            // A last word or a queued prompt repeats a message without being marked: it is changed with it, and stays where
            // the message goes, for it is a statement of its own.
            _ if matches!(event.kind(), Kind::Stop | Kind::Fact) && says(event) => {
                let base = messages.get(&text(event)).copied();
                if let Some((base, Fate::Becomes(new))) = base.map(|base| (base, plan.fate(base))) {
                    echo(events, number, base, new, whole);
                }
            }
            _ => {}
        }
    }
}

/// Lets a restatement say what the event it restates says now.
fn echo(events: &[Event<'_>], number: usize, base: usize, new: &Event<'static>, whole: &mut Plan) {
    let (Some(event), Some(base)) = (events.get(number), events.get(base)) else { return };
    if base.body == event.body {
        return whole.say(number, event, new.body.clone());
    }
    let Some(content) = new.content() else { return };
    let content = match event.content() {
        Some(before) if base.content() == Some(before) => content.clone(),
        _ => Content::Text(content.joined().into_owned()),
    };
    let body = event.body.clone().into_owned().with_content(content);
    whole.say(number, event, body);
}

/// The number nearest to this one at which the same was said. No record restates itself.
fn nearest(events: &[Event<'_>], said: &HashMap<u64, Vec<usize>>, number: usize) -> Option<usize> {
    let event = events.get(number)?;
    let elsewhere = |base: &usize| event.at.is_none() || events.get(*base).is_some_and(|base| base.at != event.at);
    said.get(&print(event))?.iter().copied().filter(elsewhere).min_by_key(|base| base.abs_diff(number))
}

/// A fingerprint of what an event says, the same for the record and for what restates it.
fn print(event: &Event<'_>) -> u64 {
    let kind = event.kind() as u64;
    let said = match (&event.body, event.call()) {
        (Body::ToolCall { .. } | Body::ToolResult { .. }, Some(call)) => call.to_owned(),
        (Body::ToolCall { name, input, .. }, None) => format!("{name} {}", input.to_text().decode()),
        _ => text(event),
    };
    let seed = kind << 8 | event.role().map_or(0, |role| 1 + role as u64);
    xxhash_rust::xxh3::xxh3_64_with_seed(said.as_bytes(), seed)
}

fn text(event: &Event<'_>) -> String {
    event.content().map(|content| content.joined().decode().trim().to_owned()).unwrap_or_default()
}

/// The calls and results that what is left of a record names.
fn named(event: &Event<'_>, calls: &HashMap<&str, Vec<usize>>) -> Vec<usize> {
    if calls.is_empty() {
        return Vec::new();
    }
    let mut json = String::new();
    event.extra.iter().for_each(|(_, residue)| residue.write_json(&mut json));
    json.split('"').filter_map(|word| calls.get(word)).flatten().copied().collect()
}

/// Turns that were taken back and are gone are not to be taken back again: what takes them back says how many are left.
fn rewinds(events: &[Event<'_>], whole: &mut Plan) {
    let is_rewind = |event: &&Event<'_>| matches!(&event.body, Body::Fact { name, .. } if name == REWIND);
    if !events.iter().any(|event| is_rewind(&event)) {
        return;
    }
    let mut turns = turn_messages(events).into_iter().peekable();
    let mut live: Vec<usize> = Vec::new();
    for (number, event) in events.iter().enumerate().filter(|(_, event)| is_rewind(event)) {
        while let Some(turn) = turns.next_if(|turn| *turn < number) {
            live.push(turn);
        }
        let count: usize = text(event).parse().unwrap_or(0);
        let taken = live.split_off(live.len().saturating_sub(count));
        let gone = taken.iter().filter(|turn| *whole.fate(**turn) == Fate::Goes).count();
        if gone == 0 || *whole.fate(number) != Fate::Stays {
            continue;
        }
        match taken.len() - gone {
            0 => whole.remove(number),
            left => {
                let body = event.body.clone().into_owned().with_content(Content::text(left.to_string()));
                whole.say(number, event, body);
            }
        }
    }
}

/// Fields of an edited record that hold the same in another shape, and the source it carries: both would keep the old words.
fn twins(events: &[Event<'_>], whole: &mut Plan) {
    for range in records(events) {
        let edited = range.clone().any(|number| match (whole.fate(number), events.get(number)) {
            (Fate::Becomes(new), Some(event)) => new.body != event.body,
            (Fate::Goes, Some(_)) => true,
            (Fate::Stays | Fate::Becomes(_) | Fate::Goes, _) => false,
        });
        let Some(number) = range.clone().find(|number| *whole.fate(*number) != Fate::Goes).filter(|_| edited) else {
            continue;
        };
        let Some(event) = events.get(number) else { continue };
        let mut event = match whole.fate(number) {
            Fate::Becomes(new) => (**new).clone(),
            Fate::Stays | Fate::Goes => event.clone().into_owned(),
        };
        let origins: Vec<String> = event.extra.iter().map(|(origin, _)| origin.to_owned()).collect();
        for origin in origins {
            let twins = crate::format::named(&origin).map_or([].as_slice(), crate::format::Format::twins);
            twins.iter().for_each(|field| event.extra.drop_field(&origin, field));
        }
        event.carried = None;
        whole.replace(number, event);
    }
}

/// Links to records that are gone lead to the nearest one that stays, so that nobody takes what stands before for forgotten. Where that
/// one has a successor already that stays, they lead to the successor: two that follow one record would look like two branches.
fn links(events: &[Event<'_>], whole: &mut Plan) {
    let mut gone: HashMap<&str, Option<&str>> = HashMap::new();
    let mut kept: HashSet<&str> = HashSet::new();
    for (number, event) in events.iter().enumerate() {
        let Some(id) = event.id.as_deref() else { continue };
        match whole.fate(number) {
            Fate::Goes => {
                gone.entry(id).or_insert(event.parent.as_deref());
            }
            Fate::Stays | Fate::Becomes(_) => {
                kept.insert(id);
            }
        }
    }
    gone.retain(|id, _| !kept.contains(id));
    if gone.is_empty() {
        return;
    }
    let told = super::units::told(events);
    // The last record of the conversation that was led to each one, and where each record was led.
    let mut successors: HashMap<String, String> = HashMap::new();
    let mut led: HashMap<String, Option<String>> = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        let new = match whole.fate(number) {
            Fate::Goes => continue,
            Fate::Stays => None,
            Fate::Becomes(new) => Some((**new).clone()),
        };
        let parent = new.as_ref().map_or(event.parent.as_deref(), |new| new.parent.as_deref());
        let Some(parent) = parent.filter(|parent| gone.contains_key(parent)) else { continue };
        let found = standing(&gone, parent).map(str::to_owned);
        let is_told = told.get(number) == Some(&true) && event.thread.is_none();
        let parent = match (event.id.as_deref(), found) {
            // The parts of a record follow the same one.
            (Some(id), _) if led.contains_key(id) => led.get(id).cloned().flatten(),
            (Some(id), Some(found)) if is_told => {
                let parent = successors.insert(found.clone(), id.to_owned()).unwrap_or(found);
                led.insert(id.to_owned(), Some(parent.clone()));
                Some(parent)
            }
            (_, found) => found,
        };
        let new = new.clone().unwrap_or_else(|| event.clone().into_owned());
        whole.replace(number, Event { parent: parent.map(Into::into), ..new });
    }
}

/// What a header counts follows by as many as went or were put in. A count that was never that of its events stays as wrong as it
/// was.
fn counts(events: &[Event<'_>], whole: &mut Plan) {
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.kind() == Kind::Fact) {
        for (origin, residue) in event.extra.iter() {
            let counts = crate::format::named(origin).map_or([].as_slice(), crate::format::Format::counts);
            for (field, kind) in counts {
                let Some(stated) = residue.text(field).and_then(|text| text.trim().parse::<u64>().ok()) else {
                    continue;
                };
                let gone = (0..events.len()).filter(|at| *whole.fate(*at) == Fate::Goes);
                let gone = gone.filter(|at| events.get(*at).is_some_and(|event| event.kind() == *kind)).count();
                let new = whole.put_in().iter().filter(|(_, event)| event.kind() == *kind).count();
                let count = stated.saturating_add(new as u64).saturating_sub(gone as u64);
                let mut header = match whole.fate(number) {
                    Fate::Becomes(header) => (**header).clone(),
                    Fate::Stays => event.clone().into_owned(),
                    Fate::Goes => continue,
                };
                if count != stated {
                    header.extra.set_field(origin, field, crate::text::quote(&count.to_string()));
                    whole.replace(number, header);
                }
            }
        }
    }
}

/// The nearest ancestor that is not gone. A chain that leads in a circle leads nowhere.
fn standing<'a>(gone: &HashMap<&'a str, Option<&'a str>>, parent: &str) -> Option<&'a str> {
    let mut next = gone.get(parent).copied()?;
    for _ in 0..=gone.len() {
        match next {
            Some(id) if gone.contains_key(id) => next = gone.get(id).copied()?,
            other => return other,
        }
    }
    None
}
