//! Prints the selected events of `steno show` as they are read.

use std::collections::VecDeque;

use stenograph::evidence::nested_events;
use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::wire;

use super::notes::EventNotes;
use super::numbers::{Nearness, NumberSelection};
use super::select::{EventSelection, Selected};
use super::{ShowForm, Shown, view};
use crate::error::CommandError;
use crate::input::Flow;
use crate::output::{Output, counted, harmless_json};
use crate::terminal::Drawer;

/// Whether an event is left out because it repeats another.
fn is_repeat(event: &Event<'_>, form: ShowForm, selected: Selected) -> bool {
    event.restates && form != ShowForm::Json && selected != Selected::ByType
}

/// Prints events as they are read.
pub(super) struct ShowPrinter<'a, 'o> {
    pub(super) form: ShowForm,
    pub(super) drawer: Drawer,
    /// How many events were read.
    pub(super) count: u64,
    pub(super) selection: EventSelection,
    /// With `--event`: the requested numbers.
    pub(super) numbers: Option<NumberSelection>,
    pub(super) first: Option<usize>,
    pub(super) last: Option<usize>,
    /// With `--last`: the newest events so far.
    pub(super) kept: VecDeque<Shown>,
    /// The text between two events.
    pub(super) gap: &'static str,
    pub(super) shown: usize,
    pub(super) written: usize,
    /// With `--event`: the number of the last printed event.
    pub(super) number: u64,
    pub(super) nested: NestedEvents<'a>,
    pub(super) repeats: u64,
    /// How many notes the reader has about the source.
    pub(super) notes: u64,
    /// The notes of people about single events.
    pub(super) event_notes: EventNotes,
    pub(super) output: &'a mut Output<'o>,
    pub(super) failed: Option<CommandError>,
}

/// How to treat events of nested records.
pub(super) enum NestedEvents<'a> {
    /// Printed in place, except those of side conversations that have their own file.
    Shown { elsewhere: &'a [String] },
    /// Only counted.
    Counted(u64),
}

impl Sink for ShowPrinter<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        if self.numbers.is_some() {
            return self.print_numbered(event);
        }
        self.count += 1;
        self.print_event(event);
        for inner in nested_events(event) {
            let is_elsewhere =
                |threads: &[String]| threads.iter().any(|thread| inner.thread.as_deref() == Some(thread));
            match &mut self.nested {
                NestedEvents::Shown { elsewhere } if is_elsewhere(elsewhere) => {}
                NestedEvents::Shown { .. } => self.print_event(&inner),
                NestedEvents::Counted(count) => *count += 1,
            }
        }
    }

    fn note(&mut self, _note: Note) {
        self.notes += 1;
    }
}

impl ShowPrinter<'_, '_> {
    fn print_event(&mut self, event: &Event<'_>) {
        let selected = self.selection.choose(event);
        if selected == Selected::No || self.flow() == Flow::Stop {
            return self.drawer.skip(event);
        }
        if is_repeat(event, self.form, selected) {
            self.repeats += 1;
            return;
        }
        if self.form == ShowForm::View && self.last.is_none() {
            if let Some(text) = self.drawer.event(Some(self.count), event) {
                self.shown += 1;
                let notes = self.event_notes.take(Some(self.count), self.output.colour());
                self.write(&(text + &notes));
            }
            return;
        }
        if self.form == ShowForm::View && !self.drawer.shows(event) {
            return self.drawer.skip(event);
        }
        let Some(shown) = self.form.shown(Some(self.count), event) else { return };
        self.shown += 1;
        match self.last {
            None => {
                let text = shown.text(&mut self.drawer);
                self.write(&text);
            }
            Some(most) => {
                self.kept.push_back(shown);
                if self.kept.len() > most
                    && let Some(Shown::Event(_, event)) = self.kept.pop_front()
                {
                    self.drawer.skip(&event);
                }
            }
        }
    }

    pub(super) fn flow(&self) -> Flow {
        let enough = self.first.is_some_and(|most| self.shown >= most)
            || self.numbers.as_ref().is_some_and(NumberSelection::is_past);
        if enough || self.failed.is_some() { Flow::Stop } else { Flow::Continue }
    }

    /// Handles an event that is selected by its number alone.
    fn print_numbered(&mut self, event: &Event<'_>) {
        let Some(numbers) = &mut self.numbers else { return };
        let (number, nearness) = numbers.next();
        // A requested event is printed even if it repeats another; its neighbours are not.
        let is_shown = nearness == Nearness::Requested
            || nearness == Nearness::Neighbour && (!event.restates || self.form == ShowForm::Json);
        self.print_numbered_event(event, number, nearness, is_shown);
        // A nested event has the number of its record.
        for inner in nested_events(event).into_iter().filter(|_| nearness == Nearness::Requested) {
            self.print_numbered_event(&inner, number, nearness, true);
        }
    }

    fn print_numbered_event(&mut self, event: &Event<'_>, number: u64, nearness: Nearness, is_shown: bool) {
        let text = match self.form {
            _ if !is_shown => {
                self.drawer.skip(event);
                None
            }
            ShowForm::Json => Some(format!("{}\n", harmless_json(&wire::event_at(event)))),
            ShowForm::Text => view::contents(event),
            ShowForm::View => {
                self.drawer.mark(nearness == Nearness::Requested);
                let text = self.drawer.event(Some(number), event);
                text.map(|text| text + &self.event_notes.take(Some(number), self.output.colour()))
            }
        };
        if let Some(text) = text {
            self.shown += 1;
            self.number = number;
            self.write(&text);
        }
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            let gap = if self.written > 0 { self.gap } else { "" };
            self.written += 1;
            self.failed = write!(self.output.data(), "{gap}{text}").err().map(CommandError::from);
        }
    }

    pub(super) fn finish(&mut self, name: &str) -> Result<(), CommandError> {
        for shown in std::mem::take(&mut self.kept) {
            let number = match &shown {
                Shown::Event(number, _) => *number,
                Shown::Text(_) => None,
            };
            let text = shown.text(&mut self.drawer) + &self.event_notes.take(number, self.output.colour());
            self.write(&text);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let NestedEvents::Counted(count @ 1..) = self.nested {
            let events = counted(count, "event");
            self.output.say(&format!("{events} of sub-agents hidden: show them with --subagents"));
        }
        if self.repeats > 0 {
            let repeats = counted(self.repeats, "repeated event");
            self.output.say(&format!("{repeats} hidden; --json prints them"));
        }
        if self.notes > 0 && self.flow() == Flow::Continue {
            let notes = counted(self.notes, "note");
            self.output.say(&format!("{notes} about this file: run steno check {name}"));
        }
        Ok(())
    }
}
