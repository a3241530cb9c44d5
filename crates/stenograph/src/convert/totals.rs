//! Running totals that repeat the previous one. The ledger counts no call for such a total, so the conversion treats it as a
//! restatement too: a total belongs to the answer before its first statement.

use crate::evidence::{has_invalid_count, running_total};
use crate::model::{Body, Event, Fact, LeftOut, Spine, Tokens};

/// The running total of a source. It takes every event of a pass, in order.
#[derive(Debug, Default)]
pub struct RunningTotal(Tokens);

impl RunningTotal {
    /// Adds an event to the spine. A repeated total does not take the usage from the record that it repeats.
    pub fn add(&mut self, event: &Event<'_>, spine: &mut Spine) {
        match self.is_repeated_by(event) {
            true => spine.add(&repeating(event)),
            false => spine.add(event),
        }
    }

    /// Why an event is not in the spine; `None` if it is.
    pub fn left_out(&mut self, event: &Event<'_>, spine: &mut Spine) -> Option<LeftOut> {
        match self.is_repeated_by(event) {
            true => spine.left_out(&repeating(event)),
            false => spine.left_out(event),
        }
    }

    fn is_repeated_by(&mut self, event: &Event<'_>) -> bool {
        if !matches!(&event.body, Body::Fact { name: Fact::Usage, .. }) {
            return false;
        }
        match running_total(event) {
            // The next total corrects an invalid one.
            Some(total) if !has_invalid_count(event) => std::mem::replace(&mut self.0, total.tokens) == total.tokens,
            Some(_) | None => false,
        }
    }
}

fn repeating<'a>(event: &Event<'a>) -> Event<'a> {
    Event { restates: true, ..event.clone() }
}
