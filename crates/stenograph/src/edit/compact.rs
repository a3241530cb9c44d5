//! Compaction: which old part of a conversation a summary replaces, and the plan for that. The caller writes the summary. Kept
//! events follow the marker, so that an agent that resumes at the last marker has them.
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
//! let old = compacting.old_part(&source.sketches, Keep::Turns(1)).unwrap();
//! let stamp = Stamp { id: "m".into(), time: Time { text: "0".into(), unit: TimeUnit::Seconds } };
//! let plan = plan(&mut source, &old, "They counted.", &stamp)?.unwrap();
//! let mut compacted = Vec::new();
//! let edited = carry_out(&mut source, &plan, &mut compacted)?;
//! assert_eq!(edited.count, 3); // the marker and the newest turn
//! assert!(edited.is_exact());
//! # Ok::<(), std::io::Error>(())
//! ```

mod marker;

use std::collections::HashSet;

use super::links::Links;
use super::sketch::{Sketch, Sketched, Sketches};
use super::tokens::Tokenizer;
use super::units::Units;
use crate::model::{Event, Kind, Role};

pub use marker::{Stamp, can_store_summary, plan};

/// How much of a conversation a compaction keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// This many of the newest turns.
    Turns(usize),
    /// The newest turns with at most this many tokens. A longer turn is divided between two answers of the model.
    Tokens(u64),
    /// The rest after removing this percentage of the messages, oldest first. A short conversation stays whole.
    Dropping(u8),
}

impl Default for Keep {
    fn default() -> Self {
        Keep::Turns(4)
    }
}

/// The old part of a conversation, which a compaction removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldPart {
    /// The numbers of the removed events.
    pub removed: Vec<usize>,
    /// Those of them that the model received so far: the summary replaces them. They include an earlier summary.
    pub summarized: Vec<usize>,
    /// The number of the first kept event; the number of events if none is kept.
    pub first_kept: usize,
    /// The number of whole turns that are removed, and of turns that are kept at least in part.
    pub turns: RemovedAndKept,
    /// The numbers of removed and kept tokens, without the new summary.
    pub tokens: RemovedAndKept,
    /// The recipient of the summary, in formats where speakers have names.
    recipient: Option<String>,
}

/// Two counts: how many are removed and how many are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedAndKept {
    /// How many are removed.
    pub removed: u64,
    /// How many are kept.
    pub kept: u64,
}

/// Decides which events a compaction removes. `None` if there is nothing new to summarize: events before an earlier summary do
/// not count.
pub fn old_part(events: &[Event<'_>], keep: Keep, tokenizer: &Tokenizer<'_>) -> Option<OldPart> {
    let mut compacting = Compacting::new(tokenizer);
    events.iter().for_each(|event| compacting.add(event));
    compacting.old_part(&events.sketches(), keep)
}

/// Plans the compaction of a conversation that is not in memory: counts each event as it is read.
#[derive(Debug)]
pub struct Compacting<'t> {
    tokenizer: &'t Tokenizer<'t>,
    /// The tokens of each event.
    tokens: Vec<u64>,
    /// The recipient of the first user message that names one, and of the last marker.
    user_to: Option<String>,
    marker_to: Option<String>,
}

/// An event that a compaction removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedEvent {
    /// Its number, from 0.
    pub event: usize,
    /// The line on which its record begins, if it is in a file.
    pub line: Option<u64>,
    /// Its kind.
    pub kind: Kind,
    /// The number of its tokens; 0 if the model does not receive it.
    pub tokens: u64,
}

impl<'t> Compacting<'t> {
    /// Creates a plan without events.
    pub fn new(tokenizer: &'t Tokenizer<'t>) -> Compacting<'t> {
        Compacting { tokenizer, tokens: Vec::new(), user_to: None, marker_to: None }
    }

    /// Counts the next event. Call it for every event, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        self.tokens.push(self.tokenizer.event(event));
        if event.role() == Some(Role::User) && self.user_to.is_none() {
            self.user_to = event.to.as_deref().map(str::to_owned);
        }
        if let (Kind::Compaction, Some(to)) = (event.kind(), event.to.as_deref()) {
            self.marker_to = Some(to.to_owned());
        }
    }

    /// Decides which of the added events to remove, as [`old_part`] does.
    pub fn old_part(&self, events: &Sketches, keep: Keep) -> Option<OldPart> {
        let units = Units::of(events);
        let first_turn = units.units.first()?.events.start;
        let conversation =
            Conversation { events, units: &units, tokens: &self.tokens, visible_from: visible_from(events) };
        // Events before the first turn, such as a description of the environment, are only removed together with a turn.
        let first_kept = conversation.first_kept(keep).filter(|first_kept| *first_kept > first_turn)?;
        // If the last marker would be kept, everything before it is summarized already.
        if events.iter().rposition(is_marker).is_some_and(|last| last >= first_kept) {
            return None;
        }
        let is_removed = |number: &usize| {
            // A fact before the first turn belongs to no turn.
            let is_about_session =
                *number < first_turn && events.get(*number).is_some_and(|event| event.kind == Kind::Fact);
            units.is_removable(*number) && !is_about_session
        };
        let removed: Vec<usize> = (0..first_kept).filter(is_removed).collect();
        let summarized: Vec<usize> =
            removed.iter().copied().filter(|number| conversation.is_visible(*number)).collect();
        let is_new = |number: &usize| events.get(*number).is_some_and(|event| event.kind != Kind::Compaction);
        if !summarized.iter().any(is_new) {
            return None;
        }
        let mut turns = RemovedAndKept::default();
        for unit in &units.units {
            let count = if unit.events.end <= first_kept { &mut turns.removed } else { &mut turns.kept };
            *count += unit.turns as u64;
        }
        let removed_tokens = summarized.iter().map(|number| conversation.tokens(*number)).sum();
        let all_tokens: u64 = (0..events.len()).map(|number| conversation.tokens(number)).sum();
        let tokens = RemovedAndKept { removed: removed_tokens, kept: all_tokens - removed_tokens };
        let recipient = self.marker_to.clone().or_else(|| self.user_to.clone());
        Some(OldPart { removed, summarized, first_kept, turns, tokens, recipient })
    }

    /// The removed events.
    pub fn removed(&self, events: &Sketches, old: &OldPart) -> impl Iterator<Item = RemovedEvent> {
        old.removed.iter().filter_map(|number| {
            let event = events.get(*number)?;
            let is_summarized = old.summarized.binary_search(number).is_ok();
            let tokens = self.tokens.get(*number).copied().filter(|_| is_summarized).unwrap_or(0);
            Some(RemovedEvent { event: *number, line: event.line(), kind: event.kind, tokens })
        })
    }
}

/// Whether it is the marker of an earlier compaction.
fn is_marker(event: &Sketch) -> bool {
    event.kind == Kind::Compaction && !event.restates
}

/// The first event that the model receives: the last readable summary. An encrypted summary cannot be read, so the events before
/// it still count.
fn visible_from(events: &Sketches) -> usize {
    events.iter().rposition(|event| is_marker(event) && event.has_text).unwrap_or(0)
}

/// A conversation, and which of its events the model receives.
struct Conversation<'a> {
    events: &'a Sketches,
    units: &'a Units,
    tokens: &'a [u64],
    visible_from: usize,
}

impl Conversation<'_> {
    /// The first event to keep; `None` if everything stays.
    fn first_kept(&self, keep: Keep) -> Option<usize> {
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
                // The tokens of all events from `from` on.
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
                // Rounded to the nearest number, and at least one.
                let target = ((messages.len() * usize::from(percent) + 50) / 100).max(1);
                let cuts = self.cuts();
                let dropped = |cut: usize| messages.partition_point(|number| *number < cut);
                cuts.iter().copied().find(|cut| dropped(*cut) >= target).or(cuts.last().copied())
            }
        }
    }

    /// The end of the conversation, without unknown records at the end of the file such as half a line.
    fn end(&self) -> usize {
        let rest = self.events.iter().rev().take_while(|event| event.kind == Kind::Other).count();
        self.events.len() - rest
    }

    /// The places where the conversation can be divided: before a turn of the spine, and before an answer to results, unless a link
    /// crosses it.
    fn cuts(&self) -> Vec<usize> {
        let has_main = (0..self.events.len()).any(|number| self.is_visible(number) && !self.is_side(number));
        let active = self.units.units.iter().filter(|unit| unit.turns > 0);
        let turns: HashSet<usize> = active.map(|unit| unit.events.start).collect();
        let links = Links::of(self.events);
        let mut crossings = links.crossings(None);
        let mut is_after_result = false;
        let mut cuts = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            let speaks = self.is_visible(number) && !(has_main && self.is_side(number)) && !event.restates;
            let answers = match (event.kind, event.role) {
                (Kind::Message, Some(Role::Assistant)) | (Kind::Thinking | Kind::ToolCall, _) => is_after_result,
                _ => false,
            };
            if turns.contains(&number) {
                cuts.push(number);
            } else if speaks && answers && event.part == 0 && !crossings.is_crossed(number) {
                cuts.push(self.before_restatements(number));
            }
            if speaks {
                is_after_result = event.kind == Kind::ToolResult;
            }
        }
        cuts.dedup();
        cuts
    }

    /// The place before an answer and the records just before it that repeat it.
    fn before_restatements(&self, number: usize) -> usize {
        let before = self.events.as_slice().get(..number).unwrap_or_default();
        let repeats = |event: &&Sketch| event.restates && event.kind != Kind::ToolResult;
        number - before.iter().rev().take_while(repeats).count()
    }

    /// Whether the model receives this event.
    fn is_visible(&self, number: usize) -> bool {
        let is_talk = |event: &Sketch| match event.kind {
            Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::ToolResult | Kind::Compaction | Kind::Failure => {
                true
            }
            Kind::Fact | Kind::Stop | Kind::Other => false,
        };
        number >= self.visible_from && self.units.is_in_spine(number) && self.events.get(number).is_some_and(is_talk)
    }

    /// Whether [`Keep::Dropping`] counts this event as a message.
    fn is_message(&self, number: usize) -> bool {
        let is_message = |event: &Sketch| match event.kind {
            Kind::Message => !matches!(event.role, Some(Role::System | Role::Developer)),
            Kind::ToolCall | Kind::ToolResult => true,
            Kind::Thinking | Kind::Compaction | Kind::Failure | Kind::Fact | Kind::Stop | Kind::Other => false,
        };
        self.is_visible(number) && self.events.get(number).is_some_and(is_message)
    }

    /// Whether this event belongs to a side conversation.
    fn is_side(&self, number: usize) -> bool {
        self.events.get(number).is_some_and(|event| event.thread != 0)
    }

    fn tokens(&self, number: usize) -> u64 {
        self.tokens.get(number).copied().filter(|_| self.is_visible(number)).unwrap_or(0)
    }
}

/// [`Keep::Dropping`] keeps a conversation of up to this many messages whole. Chibi has the same rule.
const SHORT_MESSAGES: usize = 4;

#[cfg(test)]
mod tests;
