//! Our own rule: large old tool results first, then whole old turns, oldest first, and at the very end what was said before the
//! first turn and the last summary; then tool results since the newest question. A call stays with its result, a system prompt and
//! the newest question stay as they are, and a thought that was signed is never touched: it goes with its whole turn or not at all.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Account, Depth, Limits, Manner, SNIP, Trimmed, Went, went, with_texts};
use crate::edit::tokens::Tokenizer;
use crate::edit::units::{Units, told};
use crate::edit::{Fate, Plan, echo};
use crate::model::{Body, Content, Event, Kind, Piece, PieceKind, Role};

/// Results of up to so many tokens stay: the mark in their place would be hardly shorter.
const SMALL_TOKENS: u64 = 10;

/// How often what comes back to life is taken out.
const ROUNDS_MAX: usize = 16;

/// Plans what goes.
pub(super) fn trim(events: &[Event<'_>], limits: Limits, depth: Depth, tokenizer: &Tokenizer<'_>) -> Trimmed {
    let units = Units::of(events);
    let count = |(number, event)| if units.is_told(number) { tokenizer.event(event) } else { 0 };
    let tokens: Vec<u64> = events.iter().enumerate().map(count).collect();
    let before = tokens.iter().sum();
    let newest = units.units.last().map_or(events.len(), |unit| unit.events.start);
    let mut work =
        Work { events, units, tokens, newest, total: before, tokenizer, plan: Plan::of(events), went: BTreeMap::new() };
    if limits.prompt > 0 {
        work.cut(limits.prompt, |event| event.role() == Some(Role::User));
    }
    if limits.tool > 0 {
        work.cut(limits.tool, |event| event.kind() == Kind::ToolResult);
    }
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
    let went = work.went.into_values().collect();
    let account = Account { before, after: work.total, target: limits.chat, went };
    Trimmed { plan: work.plan, account }
}

struct Work<'a> {
    events: &'a [Event<'a>],
    units: Units,
    /// The tokens of each event, by now.
    tokens: Vec<u64>,
    /// Where the newest turn begins.
    newest: usize,
    total: u64,
    tokenizer: &'a Tokenizer<'a>,
    plan: Plan,
    went: BTreeMap<usize, Went>,
}

impl Work<'_> {
    /// Cuts old texts of one kind that are longer than so many tokens.
    fn cut(&mut self, tokens_max: u64, which: impl Fn(&Event<'_>) -> bool) {
        for number in 0..self.newest {
            let Some(event) = self.events.get(number).filter(|event| which(event)) else { continue };
            if self.tokens.get(number).is_none_or(|tokens| *tokens <= tokens_max) {
                continue;
            }
            let (tokenizer, mut left) = (self.tokenizer, tokens_max);
            let body = with_texts(&event.body, |text| {
                let text = text.decode();
                let whole = tokenizer.text(&text);
                let kept =
                    if whole <= left { text.into_owned() } else { tokenizer.cut(&text, left, SNIP).to_owned() + SNIP };
                left = left.saturating_sub(whole);
                kept
            });
            self.say(number, body, Manner::Cut);
        }
    }

    /// Replaces tool results of this stretch, the largest first.
    fn snip_results(&mut self, target: u64, stretch: Range<usize>) {
        let large = |number: &usize| {
            let result =
                self.events.get(*number).is_some_and(|event| event.kind() == Kind::ToolResult && has_room(event));
            result && self.tokens.get(*number).is_some_and(|tokens| *tokens > SMALL_TOKENS)
        };
        let mut results: Vec<usize> = stretch.filter(large).collect();
        results.sort_by_key(|number| std::cmp::Reverse(self.tokens.get(*number).copied()));
        for number in results {
            if self.total <= target {
                return;
            }
            if let Some(event) = self.events.get(number) {
                let body = event.body.clone().into_owned().with_content(Content::text(SNIP));
                self.say(number, body, Manner::Snipped);
            }
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
                let fact = self.events.get(*number).is_some_and(|event| event.kind() == Kind::Fact);
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

    /// Takes out what would come back to life: a branch that was given up must not be taken for the conversation because the
    /// one that was gone on with is no more.
    fn bury(&mut self) {
        // Every round takes something out; real files need one.
        for _ in 0..ROUNDS_MAX {
            if !self.went.values().any(|went| went.how == Manner::Removed) {
                return;
            }
            let whole = echo::follow(self.events, &self.plan);
            let left = (0..self.events.len()).filter(|number| *whole.fate(*number) != Fate::Goes);
            let revived = left.zip(told(&whole.carried_out(self.events))).filter(|(number, told)| {
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
        let is_summary = |event: &Event<'_>| event.kind() == Kind::Compaction && !event.restates;
        let Some(last) = self.events.iter().rposition(is_summary) else { return 0..0 };
        let before = self.events.get(..last).unwrap_or_default();
        let run = before.iter().rev().take_while(|event| is_summary(event) || event.kind() == Kind::Fact).count();
        let first = (last - run..last).find(|number| self.events.get(*number).is_some_and(is_summary));
        first.unwrap_or(last)..last + 1
    }

    fn say(&mut self, number: usize, body: Body<'static>, how: Manner) {
        let Some(event) = self.events.get(number) else { return };
        let now = self.tokenizer.event(&Event::new(body.clone()));
        self.plan.say(number, event, body);
        self.count(number, now, how);
    }

    fn remove(&mut self, number: usize) {
        self.plan.remove(number);
        self.count(number, 0, Manner::Removed);
    }

    /// Notes what became of an event. What was cut before it was removed is told of once.
    fn count(&mut self, number: usize, now: u64, how: Manner) {
        let Some(tokens) = self.tokens.get_mut(number) else { return };
        // What is no part of the conversation costs nothing, whatever is done to it.
        let now = if self.units.is_told(number) { now } else { 0 };
        let gives = tokens.saturating_sub(now);
        self.total = self.total.saturating_sub(gives);
        *tokens = now;
        let before = self.went.get(&number).map_or(0, |went| went.tokens);
        if let Some(went) = went(self.events, number, how, before + gives) {
            self.went.insert(number, went);
        }
    }
}

fn is_answer(event: &Event<'_>) -> bool {
    !event.restates && (event.role() == Some(Role::Assistant) || event.kind() == Kind::ToolCall)
}

/// Whether the mark has a place in a result: one that is nothing but an image may stand in the record of its call, and one that is
/// nothing but a structure of its own has no place for a text.
fn has_room(event: &Event<'_>) -> bool {
    let Some(content) = event.content() else { return false };
    let told = |piece: &Piece<'_>| !matches!(piece.kind, PieceKind::Other(_));
    match content {
        Content::Text(_) => true,
        Content::Pieces(pieces) if event.part.of <= 1 => pieces.iter().any(told),
        Content::Pieces(_) => content.texts().next().is_some(),
    }
}

#[cfg(test)]
mod tests;
