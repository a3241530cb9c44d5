//! Compacting: which old part of a conversation a summary takes the place of, and the plan that puts it there. The summary itself
//! is made elsewhere. What is kept stands after the marker, so that whoever goes on from the last marker goes on with it.
//!
//! ```
//! use stenograph::edit::EditSource;
//! use stenograph::edit::carry_out;
//! use stenograph::edit::compact::{Compacting, Keep, Stamp, plan};
//! use stenograph::edit::tokens::Tokenizer;
//! use stenograph::Registry;
//! use stenograph::time::{Time, TimeUnit};
//!
//! let line = |role: &str, text: &str| format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"{role}\",\"content\":\"{text}\"}}\n");
//! let bytes = [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2")].map(|(role, text)| line(role, text));
//! let bytes = bytes.concat();
//! let tokenizer = Tokenizer::default();
//! let mut compacting = Compacting::new(&tokenizer);
//! let mut source = bytes.as_bytes();
//! let mut source = EditSource::read(Registry::built_in().named("steno").unwrap(), &mut source, &mut |event| compacting.add(event))?;
//! let old = compacting.aside(&source.sketches, Keep::Turns(1)).unwrap();
//! let stamp = Stamp { id: "m".into(), time: Time { text: "0".into(), unit: TimeUnit::Seconds } };
//! let plan = plan(&mut source, &old, "They counted.", &stamp)?.unwrap();
//! let mut compacted = Vec::new();
//! let edited = carry_out(&mut source, &plan, &mut compacted)?;
//! assert_eq!(edited.count, 3); // the marker, and the newest turn
//! assert!(edited.is_exact());
//! # Ok::<(), std::io::Error>(())
//! ```

mod marker;

use std::collections::HashSet;

use super::sketch::{Sketch, Sketched, Sketches};
use super::tokens::Tokenizer;
use super::units::{Units, bonds};
use crate::model::{Event, Kind, Role};

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
    /// Whom the summary is for, where speakers have names.
    to: Option<String>,
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
    let mut compacting = Compacting::new(tokenizer);
    events.iter().for_each(|event| compacting.add(event));
    compacting.aside(&events.sketches(), keep)
}

/// A conversation being compacted whose events are not in memory: every event is measured as it comes along.
#[derive(Debug)]
pub struct Compacting<'t> {
    tokenizer: &'t Tokenizer<'t>,
    /// The tokens of each event.
    tokens: Vec<u64>,
    /// Whom the first user speaks to who names somebody, and whom the last marker is for.
    user_to: Option<String>,
    marker_to: Option<String>,
}

/// An event that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its number, from 0.
    pub event: usize,
    /// The line its record begins on, where it is in a file.
    pub line: Option<u64>,
    /// What kind of event it is.
    pub kind: Kind,
    /// How many tokens a model is told by it until now.
    pub tokens: u64,
}

impl<'t> Compacting<'t> {
    /// Begins to measure.
    pub fn new(tokenizer: &'t Tokenizer<'t>) -> Compacting<'t> {
        Compacting { tokenizer, tokens: Vec::new(), user_to: None, marker_to: None }
    }

    /// Measures the next event; every event, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        self.tokens.push(self.tokenizer.event(event));
        if event.role() == Some(Role::User) && self.user_to.is_none() {
            self.user_to = event.to.as_deref().map(str::to_owned);
        }
        if let (Kind::Compaction, Some(to)) = (event.kind(), event.to.as_deref()) {
            self.marker_to = Some(to.to_owned());
        }
    }

    /// Decides which of the events that were measured go, as [`aside`] does.
    pub fn aside(&self, events: &Sketches, keep: Keep) -> Option<Aside> {
        let units = Units::of(events);
        let first = units.units.first()?.events.start;
        let view = View { events, units: &units, tokens: &self.tokens, visible_from: visible_from(events) };
        // What stands before the first turn, such as what an agent tells itself about its surroundings, goes with a turn.
        let kept_from = view.cut(keep).filter(|cut| *cut > first)?;
        // What an earlier marker kept is all that is left of the conversation: none of it goes, so nothing does.
        if events.iter().rposition(is_marker).is_some_and(|last| last >= kept_from) {
            return None;
        }
        let goes = |number: &usize| {
            // A statement about no turn in particular stays where it is.
            let of_all = *number < first && events.get(*number).is_some_and(|event| event.kind == Kind::Fact);
            units.is_movable(*number) && !of_all
        };
        let goes: Vec<usize> = (0..kept_from).filter(goes).collect();
        let told: Vec<usize> = goes.iter().copied().filter(|number| view.is_talk(*number)).collect();
        let new = |number: &usize| events.get(*number).is_some_and(|event| event.kind != Kind::Compaction);
        if !told.iter().any(new) {
            return None;
        }
        let mut turns = Split::default();
        for unit in &units.units {
            let turn = if unit.events.end <= kept_from { &mut turns.gone } else { &mut turns.kept };
            *turn += unit.turns as u64;
        }
        let gone = told.iter().map(|number| view.tokens(*number)).sum();
        let all: u64 = (0..events.len()).map(|number| view.tokens(number)).sum();
        let to = self.marker_to.clone().or_else(|| self.user_to.clone());
        Some(Aside { goes, told, kept_from, turns, tokens: Split { gone, kept: all - gone }, to })
    }

    /// What goes, event by event.
    pub fn gone(&self, events: &Sketches, aside: &Aside) -> impl Iterator<Item = Gone> {
        aside.goes.iter().filter_map(|number| {
            let event = events.get(*number)?;
            let told = aside.told.binary_search(number).is_ok();
            let tokens = self.tokens.get(*number).copied().filter(|_| told).unwrap_or(0);
            Some(Gone { event: *number, line: event.line(), kind: event.kind, tokens })
        })
    }
}

/// Whether what came before it was put aside there.
fn is_marker(event: &Sketch) -> bool {
    event.kind == Kind::Compaction && !event.restates
}

/// Where what a model is told begins: at the last summary that can be read. What stands before one that is sealed is still all
/// that can be read of it.
fn visible_from(events: &Sketches) -> usize {
    events.iter().rposition(|event| is_marker(event) && event.says).unwrap_or(0)
}

/// A conversation, and what of it a model is told.
struct View<'a> {
    events: &'a Sketches,
    units: &'a Units,
    tokens: &'a [u64],
    visible_from: usize,
}

impl View<'_> {
    /// Where what is kept begins.
    fn cut(&self, keep: Keep) -> Option<usize> {
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
                // How many tokens there are from this event on.
                let (mut from, mut rest) = (0, (0..end).map(|number| self.tokens(number)).sum::<u64>());
                if rest <= tokens_max {
                    return None;
                }
                let mut fits = |cut: &usize| {
                    rest += (*cut..from).map(|number| self.tokens(number)).sum::<u64>();
                    rest -= (from..*cut).map(|number| self.tokens(number)).sum::<u64>();
                    from = *cut;
                    rest <= tokens_max
                };
                let cuts = self.cuts();
                cuts.iter().copied().find(&mut fits).or(cuts.last().copied())
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
        let rest = self.events.iter().rev().take_while(|event| event.kind == Kind::Other).count();
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
            let answers = match (event.kind, event.role) {
                (Kind::Message, Some(Role::Assistant)) | (Kind::Thinking | Kind::ToolCall, _) => answered,
                _ => false,
            };
            let step = speaks && answers && event.part == 0 && reach < number;
            if turns.contains(&number) {
                cuts.push(number);
            } else if step {
                cuts.push(self.with_echoes(number));
            }
            if speaks {
                answered = event.kind == Kind::ToolResult;
            }
        }
        cuts.dedup();
        cuts
    }

    /// What says beforehand what an answer says stays with it.
    fn with_echoes(&self, number: usize) -> usize {
        let before = self.events.as_slice().get(..number).unwrap_or_default();
        let echo = |event: &&Sketch| event.restates && event.kind != Kind::ToolResult;
        number - before.iter().rev().take_while(echo).count()
    }

    /// Whether a model is told it.
    fn is_talk(&self, number: usize) -> bool {
        let talk = |event: &Sketch| match event.kind {
            Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::ToolResult | Kind::Compaction | Kind::Failure => {
                true
            }
            Kind::Fact | Kind::Stop | Kind::Other => false,
        };
        number >= self.visible_from && self.units.is_told(number) && self.events.get(number).is_some_and(talk)
    }

    /// Whether it counts where messages are counted.
    fn is_message(&self, number: usize) -> bool {
        let message = |event: &Sketch| match event.kind {
            Kind::Message => !matches!(event.role, Some(Role::System | Role::Developer)),
            Kind::ToolCall | Kind::ToolResult => true,
            Kind::Thinking | Kind::Compaction | Kind::Failure | Kind::Fact | Kind::Stop | Kind::Other => false,
        };
        self.is_talk(number) && self.events.get(number).is_some_and(message)
    }

    /// Whether it belongs to a side conversation.
    fn is_aside(&self, number: usize) -> bool {
        self.events.get(number).is_some_and(|event| event.thread != 0)
    }

    fn tokens(&self, number: usize) -> u64 {
        self.tokens.get(number).copied().filter(|_| self.is_talk(number)).unwrap_or(0)
    }
}

/// A conversation of so many messages is too short for a part of it to be dropped: Chibi's own rule.
const SHORT_MESSAGES: usize = 4;

#[cfg(test)]
mod tests;
