//! The rule `pairs`: replaces large old tool results, then removes whole old turns, oldest first, then the events before the first
//! turn and the last summary, and finally replaces tool results after the newest question. It keeps each call with its result, and
//! never changes a system prompt or a thought, which may be signed, nor the newest question unless [`Depth::EveryMessage`] limits
//! it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Depth, Limits, SNIP, TrimAction, TrimReport, Trimmed, TrimmedEvent, trimmed_event};
use crate::edit::change::{NewBody, Shortening};
use crate::edit::sketch::{Sketch, Sketches};
use crate::edit::tokens::Tokenizer;
use crate::edit::units::Units;
use crate::edit::{Plan, consequences};
use crate::model::{Content, Event, Kind, Role};

/// Results of up to this many tokens stay: `...snip...` would be hardly shorter.
const SMALL_TOKENS: u64 = 10;

/// How often revived branches are removed. Every round removes something, and real files need one round.
const ROUNDS_MAX: usize = 16;

/// The tokens of each event, and how texts over the limit would be cut.
#[derive(Debug)]
pub(super) struct TokenCounts<'h> {
    limits: Limits,
    depth: Depth,
    tokenizer: &'h Tokenizer<'h>,
    /// A record is at most 32 MiB long, so that its tokens fit.
    tokens: Vec<u32>,
    cuts: BTreeMap<usize, TextCut>,
}

/// How the texts of an event are cut, and how many tokens it has then.
#[derive(Debug)]
struct TextCut {
    shortening: Shortening,
    tokens: u64,
}

impl<'h> TokenCounts<'h> {
    pub(super) fn new(limits: Limits, depth: Depth, tokenizer: &'h Tokenizer<'h>) -> TokenCounts<'h> {
        TokenCounts { limits, depth, tokenizer, tokens: Vec::new(), cuts: BTreeMap::new() }
    }

    /// Counts the next event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let tokens = self.tokenizer.event(event);
        let limit = match event.kind() {
            Kind::ToolResult => self.limits.tool,
            Kind::Message if event.role() == Some(Role::User) => self.limits.prompt,
            _ => 0,
        };
        if limit > 0
            && tokens > limit
            && let Some(cut) = self.cut(event, limit).filter(|cut| cut.tokens < tokens)
        {
            self.cuts.insert(self.tokens.len(), cut);
        }
        self.tokens.push(u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    /// Cuts the texts of an event to this many tokens together. `None` if they have no more. Images stay and do not count.
    fn cut(&self, event: &Event<'_>, tokens_max: u64) -> Option<TextCut> {
        let texts = || event.content().into_iter().flat_map(Content::texts).enumerate();
        let snip = self.tokenizer.text(SNIP);
        // The last text that leaves room for `...snip...` is cut, or else the first one.
        let (mut total, mut last) = (0, (0, tokens_max));
        for (index, text) in texts() {
            if total + snip <= tokens_max {
                last = (index, tokens_max - total);
            }
            total += self.tokenizer.text(&text.decode());
        }
        if total <= tokens_max {
            return None;
        }
        let (_, text) = texts().nth(last.0)?;
        let bytes = self.tokenizer.cut(&text.decode(), last.1, SNIP).len();
        let shortening = Shortening::FirstTexts { text: last.0, bytes };
        let cut = Event::new(shortening.of(&event.body));
        Some(TextCut { shortening, tokens: self.tokenizer.event(&cut) })
    }

    /// Plans the trim.
    pub(super) fn trim(self, events: &Sketches) -> Trimmed {
        let TokenCounts { limits, depth, tokenizer, tokens, cuts } = self;
        let units = Units::of(events);
        // The model does not receive events outside the spine.
        let in_spine = |(number, tokens): (usize, u32)| if units.is_in_spine(number) { tokens } else { 0 };
        let first: Vec<u32> = tokens.into_iter().enumerate().map(in_spine).collect();
        let before = first.iter().map(|tokens| u64::from(*tokens)).sum();
        let newest = units.newest().map_or(events.len()..events.len(), |unit| unit.events.clone());
        let mut trimmer = Trimmer {
            events,
            units,
            tokens: first.clone(),
            first,
            newest: newest.clone(),
            total: before,
            snip: tokenizer.text(SNIP),
            plan: Plan::of_count(events.len()),
            actions: vec![None; events.len()],
        };
        let cut_end = match depth {
            Depth::OldTurns | Depth::NewestTurn => newest.start,
            Depth::EveryMessage => events.len(),
        };
        trimmer.cut_texts(cuts, cut_end);
        if limits.chat > 0 {
            trimmer.snip_results(limits.chat, 0..newest.start);
            trimmer.remove_turns(limits.chat);
            trimmer.remove_summary(limits.chat);
            if depth != Depth::OldTurns {
                // The model has not seen results after its last answer.
                let seen = events.iter().enumerate().rposition(|(number, event)| trimmer.is_answer(number, event));
                trimmer.snip_results(limits.chat, newest.start..seen.unwrap_or(0).max(newest.start));
            }
        }
        trimmer.remove_revived_branches();
        let trimmed = trimmer.trimmed().collect();
        let report = TrimReport { before, after: trimmer.total, target: limits.chat, trimmed };
        Trimmed { plan: trimmer.plan, report }
    }
}

struct Trimmer<'a> {
    events: &'a Sketches,
    units: Units,
    /// The tokens of each event at first, and now.
    first: Vec<u32>,
    tokens: Vec<u32>,
    /// The events of the newest turn that is in the spine.
    newest: Range<usize>,
    total: u64,
    /// The tokens of `...snip...`.
    snip: u64,
    plan: Plan,
    /// What happens to each event.
    actions: Vec<Option<TrimAction>>,
}

impl Trimmer<'_> {
    /// Cuts texts over their limit, of events before `end`.
    fn cut_texts(&mut self, cuts: BTreeMap<usize, TextCut>, end: usize) {
        for (number, cut) in cuts {
            if number < end && self.units.is_in_spine(number) {
                self.plan.set_body(number, NewBody::Shortened(cut.shortening));
                self.record(number, cut.tokens, TrimAction::Cut);
            }
        }
    }

    /// Replaces tool results in this range, largest first.
    fn snip_results(&mut self, target: u64, range: Range<usize>) {
        let tokens = |number: &usize| self.tokens.get(*number).copied().unwrap_or(0);
        let is_large = |number: &usize| {
            let is_result = |event: &Sketch| event.kind == Kind::ToolResult && event.is_replaceable;
            self.events.get(*number).is_some_and(is_result) && u64::from(tokens(number)) > SMALL_TOKENS.max(self.snip)
        };
        let mut results: Vec<usize> = range.filter(is_large).collect();
        results.sort_by_key(|number| std::cmp::Reverse(tokens(number)));
        for number in results {
            if self.total <= target {
                return;
            }
            self.plan.replace_content(number, Content::text(SNIP));
            self.record(number, self.snip, TrimAction::Snipped);
        }
    }

    /// Removes whole old turns, oldest first, and then the events before the first turn: agents put there what applies to all
    /// turns.
    fn remove_turns(&mut self, target: u64) {
        let summary = self.summary();
        let prelude = 0..self.units.units.first().map_or(self.newest.start, |unit| unit.events.start);
        let old = self.units.units.iter().map(|unit| unit.events.clone());
        let old = old.filter(|events| events.start < self.newest.start);
        let old: Vec<Range<usize>> = old.chain(std::iter::once(prelude.clone())).collect();
        for range in old {
            if self.total <= target {
                return;
            }
            let is_removed = |number: &usize| {
                // A fact before the first turn belongs to no turn.
                let is_fact = self.events.get(*number).is_some_and(|event| event.kind == Kind::Fact);
                let is_about_session = is_fact && prelude.contains(number);
                self.units.is_removable(*number) && !summary.contains(number) && !is_about_session
            };
            let numbers: Vec<usize> = range.filter(is_removed).collect();
            if numbers.iter().any(|number| self.tokens.get(*number).is_some_and(|tokens| *tokens > 0)) {
                numbers.into_iter().for_each(|number| self.remove(number));
            }
        }
    }

    /// Removes the last summary: the last old event to go.
    fn remove_summary(&mut self, target: u64) {
        if self.total > target {
            let is_removed = |number: &usize| self.units.is_removable(*number) && *number < self.newest.start;
            let summary: Vec<usize> = self.summary().filter(is_removed).collect();
            summary.into_iter().for_each(|number| self.remove(number));
        }
    }

    /// Removes abandoned branches that would become active because the branch that replaced them is removed.
    fn remove_revived_branches(&mut self) {
        for _ in 0..ROUNDS_MAX {
            if !self.actions.contains(&Some(TrimAction::Removed)) {
                return;
            }
            let complete = consequences::add(self.events, &self.plan);
            let after = self.events.spine_after(&complete);
            let is_revived = |(number, is_in_spine): &(usize, bool)| {
                let was_in_spine = self.units.is_in_spine(*number);
                *is_in_spine && !was_in_spine && self.units.is_removable(*number) && !self.newest.contains(number)
            };
            let revived: Vec<usize> = after.into_iter().filter(is_revived).map(|(number, _)| number).collect();
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
        self.record(number, 0, TrimAction::Removed);
    }

    /// Records the last action on an event, and its new token count.
    fn record(&mut self, number: usize, new: u64, action: TrimAction) {
        let (Some(tokens), Some(slot)) = (self.tokens.get_mut(number), self.actions.get_mut(number)) else { return };
        let new = if self.units.is_in_spine(number) { u32::try_from(new).unwrap_or(u32::MAX) } else { 0 };
        self.total = self.total + u64::from(new) - u64::from(*tokens);
        *tokens = new;
        *slot = Some(action);
    }

    /// The trimmed events.
    fn trimmed(&self) -> impl Iterator<Item = TrimmedEvent> {
        let trimmed = |(number, action): (usize, &Option<TrimAction>)| {
            let tokens = |all: &[u32]| all.get(number).map_or(0, |tokens| i64::from(*tokens));
            trimmed_event(self.events, number, (*action)?, tokens(&self.first) - tokens(&self.tokens))
        };
        self.actions.iter().enumerate().filter_map(trimmed)
    }

    /// Whether it is an answer of the model in the spine.
    fn is_answer(&self, number: usize, event: &Sketch) -> bool {
        let is_of_model = event.role == Some(Role::Assistant) || event.kind == Kind::ToolCall;
        is_of_model && !event.restates && self.units.is_in_spine(number)
    }
}

#[cfg(test)]
mod tests;
