//! Explains an audit for people: one line for each outcome, with its record and its rule.

use std::fmt::Write as _;

use stenograph::audit::{Audit, EventPlace, Explained};

use super::view::{brief, heading, number};
use crate::output::{Colour, TextStyle, counted};

/// The maximum length of a name.
const NAME_LENGTH_MAX: usize = 60;

/// Every outcome, with the record and the rule that decided it.
pub fn text(audit: &Audit, colour: Colour, out: &mut String) {
    let explained = audit.explanations();
    heading("explain", &counted(explained.len() as u64, "outcome"), colour, out);
    for one in &explained {
        let name = one.name.as_deref().map(|name| format!(" {}", brief(name, NAME_LENGTH_MAX))).unwrap_or_default();
        let of = match (one.what, one.of) {
            (Explained::Call, Some(of)) => format!(", called in {}", record(of)),
            (Explained::Recovery, Some(of)) => format!(", the error is in {}", record(of)),
            (Explained::Stuck, Some(of)) => format!(", since {}", record(of)),
            (Explained::Run | Explained::Error, _) | (_, None) => String::new(),
        };
        let rule = colour.paint(TextStyle::Faint, &format!("[{}]", one.rule));
        let (what, outcome) = (one.what.name(), one.outcome);
        let _ = writeln!(out, "  {what}{name}: {outcome} by {}: {}{of} {rule}", record(one.place), one.sentence);
    }
}

/// The record of an event.
fn record(place: EventPlace) -> String {
    match (place.event, place.line) {
        (0, _) => "no event".to_owned(),
        (_, 0) => format!("event {}", number(place)),
        (_, line) => format!("event {} (line {line})", number(place)),
    }
}
