//! Compacting: which old part of a conversation a summary takes the place of, and the plan that puts it there. The summary itself
//! is made elsewhere. What is kept stands after the marker, so that whoever goes on from the last marker goes on with it.
//!
//! ```
//! use stenograph::edit::compact::{Keep, Stamp, aside, plan};
//! use stenograph::edit::tokens::Tokenizer;
//! use stenograph::edit::{Original, apply};
//! use stenograph::format::named;
//! use stenograph::time::{Time, Unit};
//!
//! let line = |role: &str, text: &str| format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"{role}\",\"content\":\"{text}\"}}\n");
//! let source = [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2")].map(|(role, text)| line(role, text));
//! let source = source.concat();
//! let original = Original::read(named("steno").unwrap(), source.as_bytes())?;
//! let old = aside(&original.events, Keep::Turns(1), &Tokenizer::default()).unwrap();
//! let stamp = Stamp { id: "m".into(), time: Time { text: "0".into(), unit: Unit::Seconds } };
//! let compacted = apply(&original, &plan(&original, &old, "They counted.", &stamp).unwrap())?;
//! assert_eq!(compacted.events.len(), 3); // the marker, and the newest turn
//! assert!(compacted.is_exact());
//! # Ok::<(), std::io::Error>(())
//! ```

mod marker;

use std::collections::HashSet;

use super::tokens::Tokenizer;
use super::units::{Units, bonds};
use crate::model::{Body, Event, Kind, Role};

pub use marker::{Stamp, has_place, plan};

/// How much stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest turns.
    Turns(usize),
    /// The newest turns that have so many tokens at most. A turn that alone has more is cut between two answers of the model.
    Tokens(u64),
    /// What is left when so many of a hundred messages, the oldest ones, go. A short conversation stays as it is.
    Dropping(u8),
}

impl Default for Keep {
    fn default() -> Self {
        Keep::Turns(4)
    }
}

/// The old part of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// The numbers of the events that go.
    pub goes: Vec<usize>,
    /// Of these, the ones that a model is told until now: what the summary stands for. The summary before is among them.
    pub told: Vec<usize>,
    /// The number of the first event that is kept; what is after the last one when none is.
    pub kept_from: usize,
    /// How many whole turns go, and how many are kept, one of them perhaps in part.
    pub turns: Split,
    /// How many tokens go, and how many are kept, without the new summary.
    pub tokens: Split,
}

/// How much of something goes and how much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// What goes.
    pub gone: u64,
    /// What is kept.
    pub kept: u64,
}

/// Decides which events go. `None` when there is nothing that a summary could take the place of: what an earlier summary stands
/// for already does not count.
pub fn aside(events: &[Event<'_>], keep: Keep, tokenizer: &Tokenizer<'_>) -> Option<Aside> {
    let units = Units::of(events);
    let first = units.units.first()?.events.start;
    let visible = visible_from(events);
    let is_visible = |number: usize| number >= visible && units.is_told(number);
    let view = View { events, units: &units, visible: (0..events.len()).map(is_visible).collect() };
    // What stands before the first turn, such as what an agent tells itself about its surroundings, goes with a turn.
    let kept_from = view.cut(keep, tokenizer).filter(|cut| *cut > first)?;
    // What an earlier marker kept is all that is left of the conversation: none of it goes, so nothing does.
    if events.iter().rposition(is_marker).is_some_and(|last| last >= kept_from) {
        return None;
    }
    let goes = |number: &usize| {
        // A statement about no turn in particular stays where it is.
        let of_all = *number < first && events.get(*number).is_some_and(|event| event.kind() == Kind::Fact);
        units.is_movable(*number) && !of_all
    };
    let goes: Vec<usize> = (0..kept_from).filter(goes).collect();
    let told: Vec<usize> = goes.iter().copied().filter(|number| view.is_talk(*number)).collect();
    let new = |number: &usize| events.get(*number).is_some_and(|event| event.kind() != Kind::Compaction);
    if !told.iter().any(new) {
        return None;
    }
    let (mut turns, mut tokens) = (Split::default(), Split::default());
    for unit in &units.units {
        let turn = if unit.events.end <= kept_from { &mut turns.gone } else { &mut turns.kept };
        *turn += unit.turns as u64;
    }
    let going: HashSet<usize> = goes.iter().copied().collect();
    for number in 0..events.len() {
        let part = if going.contains(&number) { &mut tokens.gone } else { &mut tokens.kept };
        *part += view.tokens(number, tokenizer);
    }
    Some(Aside { goes, told, kept_from, turns, tokens })
}

/// Whether what came before it was put aside there.
fn is_marker(event: &Event<'_>) -> bool {
    event.kind() == Kind::Compaction && !event.restates
}

/// Where what a model is told begins: at the last summary that can be read. What stands before one that is sealed is still all
/// that can be read of it.
fn visible_from(events: &[Event<'_>]) -> usize {
    let is_read = |event: &Event<'_>| match &event.body {
        Body::Compaction { summary: Some(summary) } => !event.restates && !summary.is_empty(),
        _ => false,
    };
    events.iter().rposition(is_read).unwrap_or(0)
}

/// A conversation, and what of it a model is told.
struct View<'a> {
    events: &'a [Event<'a>],
    units: &'a Units,
    visible: Vec<bool>,
}

impl View<'_> {
    /// Where what is kept begins.
    fn cut(&self, keep: Keep, tokenizer: &Tokenizer<'_>) -> Option<usize> {
        let end = self.end();
        match keep {
            Keep::Turns(0) | Keep::Tokens(0) | Keep::Dropping(100..) => Some(end),
            Keep::Turns(turns) => {
                let mut kept = 0;
                let mut newest = self.units.units.iter().rev();
                let unit = newest.find(|unit| {
                    kept += unit.turns;
                    kept >= turns
                });
                unit.map(|unit| unit.events.start)
            }
            Keep::Tokens(tokens_max) => {
                let tokens: Vec<u64> = (0..end).map(|number| self.tokens(number, tokenizer)).collect();
                let rest = |cut: &usize| tokens.get(*cut..).unwrap_or_default().iter().sum::<u64>();
                if tokens.iter().sum::<u64>() <= tokens_max {
                    return None;
                }
                let cuts = self.cuts();
                let fits = cuts.iter().copied().find(|cut| rest(cut) <= tokens_max);
                fits.or(cuts.last().copied())
            }
            Keep::Dropping(percent) => {
                let messages: Vec<usize> = (0..end).filter(|number| self.is_message(*number)).collect();
                if messages.len() <= SHORT_MESSAGES {
                    return None;
                }
                // Rounded to the nearest, and at least one.
                let target = ((messages.len() * usize::from(percent) + 50) / 100).max(1);
                let cuts = self.cuts();
                let dropped = |cut: usize| messages.partition_point(|number| *number < cut);
                cuts.iter().copied().find(|cut| dropped(*cut) >= target).or(cuts.last().copied())
            }
        }
    }

    /// Where a conversation in which nothing is kept ends: before what nobody understands, such as half a line.
    fn end(&self) -> usize {
        let rest = self.events.iter().rev().take_while(|event| event.kind() == Kind::Other).count();
        self.events.len() - rest
    }

    /// Where a conversation can be cut: before a turn, and before an answer to results. Nothing that belongs together is on both
    /// sides.
    fn cuts(&self) -> Vec<usize> {
        let main = (0..self.events.len()).any(|number| self.is_talk(number) && !self.is_aside(number));
        let turns: HashSet<usize> = self.units.units.iter().map(|unit| unit.events.start).collect();
        let mut bonds = bonds(self.events).into_iter().peekable();
        // How far what was begun before reaches, and whether the last thing said was a result.
        let (mut reach, mut answered) = (0, false);
        let mut cuts = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            while let Some((_, to)) = bonds.next_if(|(from, _)| *from < number) {
                reach = reach.max(to);
            }
            let speaks = self.is_talk(number) && !(main && self.is_aside(number)) && !event.restates;
            let answers = match &event.body {
                Body::Message { role: Role::Assistant, .. } | Body::Thinking { .. } | Body::ToolCall { .. } => answered,
                _ => false,
            };
            let step = speaks && answers && event.part.index == 0 && reach < number;
            if turns.contains(&number) {
                cuts.push(number);
            } else if step {
                cuts.push(self.with_echoes(number));
            }
            if speaks {
                answered = event.kind() == Kind::ToolResult;
            }
        }
        cuts.dedup();
        cuts
    }

    /// What says beforehand what an answer says stays with it.
    fn with_echoes(&self, number: usize) -> usize {
        let before = self.events.get(..number).unwrap_or_default();
        let echo = |event: &&Event<'_>| event.restates && event.kind() != Kind::ToolResult;
        number - before.iter().rev().take_while(echo).count()
    }

    /// Whether a model is told it.
    fn is_talk(&self, number: usize) -> bool {
        let talk = |event: &Event<'_>| match event.kind() {
            Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::ToolResult | Kind::Compaction | Kind::Failure => {
                true
            }
            Kind::Fact | Kind::Stop | Kind::Other => false,
        };
        self.visible.get(number) == Some(&true) && self.events.get(number).is_some_and(talk)
    }

    /// Whether it counts where messages are counted.
    fn is_message(&self, number: usize) -> bool {
        let message = |event: &Event<'_>| match &event.body {
            Body::Message { role, .. } => !matches!(role, Role::System | Role::Developer),
            Body::ToolCall { .. } | Body::ToolResult { .. } => true,
            Body::Thinking { .. } | Body::Compaction { .. } | Body::Failure { .. } => false,
            Body::Fact { .. } | Body::Stop { .. } | Body::Other { .. } => false,
        };
        self.is_talk(number) && self.events.get(number).is_some_and(message)
    }

    /// Whether it belongs to a side conversation.
    fn is_aside(&self, number: usize) -> bool {
        self.events.get(number).is_some_and(|event| event.thread.is_some())
    }

    fn tokens(&self, number: usize, tokenizer: &Tokenizer<'_>) -> u64 {
        let told = self.events.get(number).filter(|_| self.is_talk(number));
        told.map_or(0, |event| tokenizer.event(event))
    }
}

/// A conversation of so many messages is too short for a part of it to be dropped: Chibi's own rule.
const SHORT_MESSAGES: usize = 4;

#[cfg(test)]
mod tests;
