//! Writes native lines: every event has a place, so nothing is ever left out.

use crate::model::Event;
use crate::wire;
use crate::write::{Output, Writer};

/// Writes one event a line.
#[derive(Debug)]
pub struct Lines;

impl Writer for Lines {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            out.line(wire::event(event));
        }
    }
}
