//! Our own rule: large old tool results first, then whole old turns, oldest first, and at the very end what was said before the
//! first turn and the last summary; then tool results since the newest question. A call stays with its result, a system prompt and
//! the newest question stay as they are, and a thought that was signed is never touched: it goes with its whole turn or not at all.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Account, Depth, Limits, Manner, SNIP, Trimmed, Went, went};
use crate::edit::change::{NewBody, Shortening};
use crate::edit::sketch::{Sketch, Sketches};
use crate::edit::tokens::Tokenizer;
use crate::edit::units::Units;
use crate::edit::{Plan, echo};
use crate::model::{Content, Event, Kind, Role};

/// Results of up to so many tokens stay: the mark in their place would be hardly shorter.
const SMALL_TOKENS: u64 = 10;

/// How often what comes back to life is taken out.
const ROUNDS_MAX: usize = 16;

/// The tokens of events, and how those that are too long would be cut.
#[derive(Debug)]
pub(super) struct Weights<'h> {
    limits: Limits,
    depth: Depth,
    tokenizer: &'h Tokenizer<'h>,
    /// A record has at most some megabytes.
    tokens: Vec<u32>,
    cuts: BTreeMap<usize, TextCut>,
}

/// How the texts of an event are cut, and how many tokens it has then.
#[derive(Debug)]
struct TextCut {
    kept: Box<[Option<usize>]>,
    tokens: u64,
}

impl<'h> Weights<'h> {
    pub(super) fn new(limits: Limits, depth: Depth, tokenizer: &'h Tokenizer<'h>) -> Weights<'h> {
        Weights { limits, depth, tokenizer, tokens: Vec::new(), cuts: BTreeMap::new() }
    }

    /// Measures the next event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let tokens = self.tokenizer.event(event);
        let most = match event.kind() {
            Kind::ToolResult => self.limits.tool,
            Kind::Message if event.role() == Some(Role::User) => self.limits.prompt,
            _ => 0,
        };
        if most > 0 && tokens > most {
            self.cuts.insert(self.tokens.len(), self.cut(event, most));
        }
        self.tokens.push(u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    fn cut(&self, event: &Event<'_>, mut left: u64) -> TextCut {
        let mut kept = Vec::new();
        for text in event.content().into_iter().flat_map(Content::texts) {
            let text = text.decode();
            let whole = self.tokenizer.text(&text);
            kept.push((whole > left).then(|| self.tokenizer.cut(&text, left, SNIP).len()));
            left = left.saturating_sub(whole);
        }
        let kept: Box<[Option<usize>]> = kept.into();
        let cut = Event::new(Shortening::Bytes(kept.clone()).of(&event.body));
        TextCut { kept, tokens: self.tokenizer.event(&cut) }
    }

    /// Plans what goes.
    pub(super) fn trim(self, events: &Sketches) -> Trimmed {
        let Weights { limits, depth, tokenizer, tokens, cuts } = self;
        let units = Units::of(events);
        // What is no part of the conversation costs nothing.
        let count = |(number, tokens): (usize, u32)| if units.is_told(number) { tokens } else { 0 };
        let first: Vec<u32> = tokens.into_iter().enumerate().map(count).collect();
        let before = first.iter().map(|tokens| u64::from(*tokens)).sum();
        let newest = units.units.last().map_or(events.len(), |unit| unit.events.start);
        let (total, plan, went) = (before, Plan::of_count(events.len()), vec![None; events.len()]);
        let snip = tokenizer.text(SNIP);
        let tokens = first.clone();
        let mut work = Work { events, units, first, tokens, newest, total, snip, plan, went };
        work.cut(limits, cuts);
        if limits.chat > 0 {
            work.snip_results(limits.chat, 0..newest);
            work.remove_turns(limits.chat);
            work.remove_summary(limits.chat);
            if depth == Depth::NewestTurn {
                // What came after the last answer was never seen by the model.
                let seen = events.iter().rposition(is_answer).unwrap_or(0);
                work.snip_results(limits.chat, newest..seen.max(newest));
            }
        }
        work.bury();
        let went = work.account().collect();
        let account = Account { before, after: work.total, target: limits.chat, went };
        Trimmed { plan: work.plan, account }
    }
}

struct Work<'a> {
    events: &'a Sketches,
    units: Units,
    /// The tokens of each event, at first and by now.
    first: Vec<u32>,
    tokens: Vec<u32>,
    /// Where the newest turn begins.
    newest: usize,
    total: u64,
    /// The tokens of the mark.
    snip: u64,
    plan: Plan,
    /// What happens to each event.
    went: Vec<Option<Manner>>,
}

impl Work<'_> {
    /// Cuts old texts that have more tokens than they may.
    fn cut(&mut self, limits: Limits, cuts: BTreeMap<usize, TextCut>) {
        for (number, cut) in cuts {
            let kind = self.events.get(number).map(|event| event.kind);
            let most = if kind == Some(Kind::ToolResult) { limits.tool } else { limits.prompt };
            if number < self.newest && self.tokens.get(number).is_some_and(|tokens| u64::from(*tokens) > most) {
                self.plan.say_new(number, NewBody::Shortened(Shortening::Bytes(cut.kept)));
                self.count(number, cut.tokens, Manner::Cut);
            }
        }
    }

    /// Replaces tool results of this stretch, the largest first.
    fn snip_results(&mut self, target: u64, stretch: Range<usize>) {
        let large = |number: &usize| {
            let result = self.events.get(*number).is_some_and(|event| event.kind == Kind::ToolResult && event.has_room);
            result && self.tokens.get(*number).is_some_and(|tokens| u64::from(*tokens) > SMALL_TOKENS)
        };
        let mut results: Vec<usize> = stretch.filter(large).collect();
        results.sort_by_key(|number| std::cmp::Reverse(self.tokens.get(*number).copied()));
        for number in results {
            if self.total <= target {
                return;
            }
            self.plan.say_content(number, Content::text(SNIP));
            self.count(number, self.snip, Manner::Snipped);
        }
    }

    /// Takes out whole old turns, the oldest first, and then what was said before the first one: agents tell there what holds
    /// for all turns.
    fn remove_turns(&mut self, target: u64) {
        let summary = self.summary();
        let first = self.units.units.first().map_or(self.newest, |unit| unit.events.start);
        let old = self.units.units.iter().map(|unit| unit.events.clone()).filter(|events| events.start < self.newest);
        let old: Vec<Range<usize>> = old.chain(std::iter::once(0..first)).collect();
        for range in old {
            if self.total <= target {
                return;
            }
            let prelude = range.end == first;
            let goes = |number: &usize| {
                // A statement about no turn in particular stays where it is.
                let fact = self.events.get(*number).is_some_and(|event| event.kind == Kind::Fact);
                self.units.is_movable(*number) && !summary.contains(number) && !(prelude && fact)
            };
            let numbers: Vec<usize> = range.filter(goes).collect();
            if numbers.iter().any(|number| self.tokens.get(*number).is_some_and(|tokens| *tokens > 0)) {
                numbers.into_iter().for_each(|number| self.remove(number));
            }
        }
    }

    /// Takes out the summary that stands for what was put aside: the last thing that is old.
    fn remove_summary(&mut self, target: u64) {
        if self.total > target {
            let goes = |number: &usize| self.units.is_movable(*number) && *number < self.newest;
            let summary: Vec<usize> = self.summary().filter(goes).collect();
            summary.into_iter().for_each(|number| self.remove(number));
        }
    }

    /// Takes out what would come back to life: an abandoned branch must not be taken for the conversation because the
    /// one that was gone on with is no more.
    fn bury(&mut self) {
        // Every round takes something out; real files need one.
        for _ in 0..ROUNDS_MAX {
            if !self.went.contains(&Some(Manner::Removed)) {
                return;
            }
            let whole = echo::follow(self.events, &self.plan);
            let told = self.events.told_after(&whole);
            let revived = told.into_iter().filter(|(number, told)| {
                *told && !self.units.is_told(*number) && self.units.is_movable(*number) && *number < self.newest
            });
            let revived: Vec<usize> = revived.map(|(number, _)| number).collect();
            if revived.is_empty() {
                return;
            }
            revived.into_iter().for_each(|number| self.remove(number));
        }
    }

    /// The records of the last summary.
    fn summary(&self) -> Range<usize> {
        let is_summary = |event: &Sketch| event.kind == Kind::Compaction && !event.restates;
        let Some(last) = self.events.iter().rposition(is_summary) else { return 0..0 };
        let before = self.events.as_slice().get(..last).unwrap_or_default();
        let run = before.iter().rev().take_while(|event| is_summary(event) || event.kind == Kind::Fact).count();
        let first = (last - run..last).find(|number| self.events.get(*number).is_some_and(is_summary));
        first.unwrap_or(last)..last + 1
    }

    fn remove(&mut self, number: usize) {
        self.plan.remove(number);
        self.count(number, 0, Manner::Removed);
    }

    /// Notes what became of an event. What was cut before it was removed is told of once.
    fn count(&mut self, number: usize, now: u64, how: Manner) {
        let (Some(tokens), Some(went)) = (self.tokens.get_mut(number), self.went.get_mut(number)) else { return };
        // What is no part of the conversation costs nothing, whatever is done to it.
        let now = if self.units.is_told(number) { u32::try_from(now).unwrap_or(u32::MAX) } else { 0 };
        self.total = self.total.saturating_sub(u64::from(tokens.saturating_sub(now)));
        *tokens = now;
        *went = Some(how);
    }

    /// What happens to the events to which something happens.
    fn account(&self) -> impl Iterator<Item = Went> {
        let went = |(number, how): (usize, &Option<Manner>)| {
            let tokens = |all: &[u32]| all.get(number).copied().unwrap_or(0);
            let gives = tokens(&self.first).saturating_sub(tokens(&self.tokens));
            went(self.events, number, (*how)?, u64::from(gives))
        };
        self.went.iter().enumerate().filter_map(went)
    }
}

fn is_answer(event: &Sketch) -> bool {
    !event.restates && (event.role == Some(Role::Assistant) || event.kind == Kind::ToolCall)
}

#[cfg(test)]
mod tests;
