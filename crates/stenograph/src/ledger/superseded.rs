//! Which records state a usage that a later record of the same model response states again. A writer writes the last statement only, so
//! that the written source counts each call once, as the ledger does.

use crate::model::{Event, Recent, key};

/// The superseded statements of a source. The first pass builds it ([`SupersededUsage::add`]), the second queries it
/// ([`SupersededUsage::is_superseded`]).
#[derive(Debug, Default)]
pub struct SupersededUsage {
    /// For each model response, the last record that stated its usage.
    last: Recent,
    /// The superseded records, each with a short fingerprint of its response.
    records: Vec<(u32, u32)>,
    /// How many records the pass has reached.
    reached: u32,
}

impl SupersededUsage {
    /// Adds one event. Call it for every event of the source, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        let record = self.record(event);
        let Some(group) = event.group.as_deref().filter(|_| event.usage.is_some() && !event.restates).map(key) else {
            return;
        };
        match self.last.get(group) {
            Some(last) if last == record => return,
            Some(last) => self.records.push((last, short(group))),
            None => {}
        }
        self.last.insert(group, record);
    }

    /// Ends the first pass.
    pub fn decide(&mut self) {
        (self.last, self.reached) = (Recent::default(), 0);
        self.records.sort_unstable();
    }

    /// Whether a later record of the same model response states the usage of this event again. Call it for every event again, in the
    /// same order.
    pub fn is_superseded(&mut self, event: &Event<'_>) -> bool {
        let record = self.record(event);
        let (Some(group), Some(_)) = (event.group.as_deref(), event.usage) else { return false };
        self.records.binary_search(&(record, short(key(group)))).is_ok()
    }

    /// The number of the record of the next event. A stream may begin in the middle of a record.
    fn record(&mut self, event: &Event<'_>) -> u32 {
        if event.part.index == 0 || self.reached == 0 {
            self.reached = self.reached.saturating_add(1);
        }
        self.reached
    }
}

fn short(key: u64) -> u32 {
    u32::try_from(key >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Usage};

    #[test]
    fn only_the_last_usage_of_a_response_counts() {
        let stated = |group: &'static str| Event {
            group: Some(group.into()),
            usage: Some(Usage { output: Some(7), ..Usage::default() }),
            ..Event::new(Body::Other { name: None, bytes: None })
        };
        let events = [stated("one"), stated("two"), stated("one"), stated("one")];
        let mut usage = SupersededUsage::default();
        events.iter().for_each(|event| usage.add(event));
        usage.decide();
        let found: Vec<bool> = events.iter().map(|event| usage.is_superseded(event)).collect();
        assert_eq!(found, [true, false, true, false]);
    }
}
