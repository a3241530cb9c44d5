//! Running totals that repeat the previous one. The ledger counts no call for such a total, so the conversion treats it as a
//! restatement too: a total belongs to the answer before its first statement.

use std::borrow::Cow;

use crate::evidence::{has_invalid_count, running_total};
use crate::model::{Body, Event, Fact, Tokens};

/// The running total of a source. It takes every event of a pass, in order.
#[derive(Debug, Default)]
pub struct RunningTotal(Tokens);

impl RunningTotal {
    /// The event; a total that repeats the last one is marked as a restatement.
    pub fn marked<'e, 'a>(&mut self, event: &'e Event<'a>) -> Cow<'e, Event<'a>> {
        match self.is_repeated_by(event) {
            true => Cow::Owned(Event { restates: true, ..event.clone() }),
            false => Cow::Borrowed(event),
        }
    }

    fn is_repeated_by(&mut self, event: &Event<'_>) -> bool {
        if !matches!(&event.body, Body::Fact { fact: Fact::Usage, .. }) {
            return false;
        }
        match running_total(event) {
            // The next total corrects an invalid one.
            Some(total) if !has_invalid_count(event) => std::mem::replace(&mut self.0, total.tokens) == total.tokens,
            Some(_) | None => false,
        }
    }
}
