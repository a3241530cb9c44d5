//! The outline of a session together with the tokens of its model calls.

use super::{CallCounter, CallDetail, Ledger, LedgerBuilder};
use crate::format::Format;
use crate::model::{Event, Outline, Usage};

/// Collects the outline of a source, and counts its tokens as the ledger does: each model call once.
#[derive(Debug)]
pub struct CountedOutline {
    outline: Outline,
    counting: CallCounter,
    /// The counters that any event states.
    stated: Usage,
}

impl Default for CountedOutline {
    fn default() -> CountedOutline {
        CountedOutline::new(None)
    }
}

impl CountedOutline {
    /// An outline of events from this format, where it is known.
    pub fn new(format: Option<&dyn Format>) -> CountedOutline {
        let (origin, agent) = format.map_or(("", ""), |format| (format.info().name, format.info().agent));
        let counting = CallCounter::new(agent, CallDetail::Numbers);
        CountedOutline { outline: Outline::new(origin), counting, stated: Usage::default() }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.outline.add(event);
        self.counting.add(event);
        if let Some(usage) = event.usage.filter(|_| !event.restates) {
            let stated = &mut self.stated;
            stated.input = stated.input.or(usage.input);
            stated.output = stated.output.or(usage.output);
            stated.cache_read = stated.cache_read.or(usage.cache_read);
            stated.cache_write = stated.cache_write.or(usage.cache_write);
            stated.reasoning = stated.reasoning.or(usage.reasoning);
        }
    }

    /// Takes the next event, and counts no tokens for it.
    pub fn add_uncounted(&mut self, event: &Event<'_>) {
        self.outline.add(event);
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.outline.events
    }

    /// The session that the events state.
    pub fn session(&self) -> Option<&str> {
        self.outline.session.as_deref()
    }

    /// The outline with the total.
    pub fn finish(self) -> Outline {
        self.finish_with_ledger().0
    }

    /// The outline with the total, and the ledger that the total comes from.
    pub fn finish_with_ledger(self) -> (Outline, Ledger) {
        let mut ledger = LedgerBuilder::default();
        // Calls that name no session belong to this one.
        ledger.add("", Some(""), 0, self.counting.finish());
        let ledger = ledger.finish();
        (Outline { total: ledger.total(&self.stated), ..self.outline }, ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Content, Role};

    #[test]
    fn a_response_counts_once_and_a_stated_zero_is_kept() {
        let stated = |group: &'static str| Event {
            group: Some(group.into()),
            usage: Some(Usage { output: Some(7), cache_read: Some(0), ..Usage::default() }),
            ..Event::new(Body::Message { role: Role::Assistant, content: Content::text("So.") })
        };
        let mut outline = CountedOutline::default();
        [stated("a"), stated("b"), stated("b")].iter().for_each(|event| outline.add(event));
        let total = outline.finish().total;
        assert_eq!((total.input, total.output, total.cache_read), (None, Some(14), Some(0)));
    }
}
