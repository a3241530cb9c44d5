//! The context window of one conversation: everything since the last compaction, and what that compaction kept. Totals cover all of it; only
//! the last events are remembered one by one, because a compaction keeps the last events.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::report::Capped;
use crate::text::beginning;

/// The context window of a model.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Window {
    events: u64,
    messages: u64,
    calls: u64,
    /// Files, each with the number of the last event that used it.
    files: BTreeMap<usize, u64>,
    commands: Capped<(u64, String)>,
    /// The last events.
    traces: VecDeque<Trace>,
    /// The number of events so far, including removed ones.
    number: u64,
    /// Whether a message or a call followed the last compaction.
    has_moved: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Trace {
    number: u64,
    /// A hash of its record's id; 0 for none.
    record: u64,
    what: EventKind,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum EventKind {
    /// A message, with a hash of its text.
    Message(u64),
    Call,
    /// A call that runs a command.
    Command,
    Other,
}

/// What a compaction states that it keeps.
#[derive(Debug, Default)]
pub(super) struct Preserved {
    records: HashSet<u64>,
    words: HashSet<u64>,
}

/// What a compaction removes, and how much it keeps.
#[derive(Debug, Default)]
pub(super) struct RemovedFromContext {
    pub events: u64,
    pub messages: u64,
    pub calls: u64,
    pub files: Vec<usize>,
    pub commands: Capped<String>,
    pub kept_messages: u64,
    pub kept_calls: u64,
}

/// The most files and commands of a window.
const FILES_MAX: usize = 10_000;
const COMMANDS_MAX: usize = 100;

/// The most bytes of a command.
const COMMAND_SIZE_MAX: usize = 400;

/// The most events that are remembered one by one. A compaction keeps the last events, and user messages.
const TRACES_MAX: usize = 16 << 10;

/// The most records and messages that a compaction may state.
const PRESERVED_MAX: usize = 1 << 16;

impl Preserved {
    /// Adds a record that stays.
    pub fn record(&mut self, id: &str) {
        if self.records.len() < PRESERVED_MAX && !id.is_empty() {
            self.records.insert(fingerprint(id));
        }
    }

    /// Adds a message that stays.
    pub fn message(&mut self, text: &str) {
        if self.words.len() < PRESERVED_MAX {
            self.words.insert(fingerprint(text.trim()));
        }
    }

    fn keeps(&self, trace: &Trace) -> bool {
        let is_said = match trace.what {
            EventKind::Message(words) => self.words.contains(&words),
            EventKind::Call | EventKind::Command | EventKind::Other => false,
        };
        is_said || self.records.contains(&trace.record)
    }
}

impl Window {
    /// Adds an event with the id of its record.
    pub fn event(&mut self, record: Option<&str>) {
        self.events += 1;
        self.number += 1;
        if self.traces.len() >= TRACES_MAX {
            self.traces.pop_front();
        }
        let record = record.filter(|record| !record.is_empty()).map_or(0, fingerprint);
        self.traces.push_back(Trace { number: self.number, record, what: EventKind::Other });
    }

    /// Marks the last event as a message.
    pub fn message(&mut self, text: &str) {
        self.messages += 1;
        self.is(EventKind::Message(fingerprint(text.trim())));
    }

    /// Marks the last event as a call, which may run a command. Returns its number.
    pub fn call(&mut self, command: Option<&str>) -> u64 {
        self.calls += 1;
        self.is(if command.is_some() { EventKind::Command } else { EventKind::Call });
        if let Some(command) = command {
            self.commands.push((self.number, beginning(command, COMMAND_SIZE_MAX).to_owned()), COMMANDS_MAX);
        }
        self.number
    }

    /// Adds a file that the call with this number used, or the last event if there is no number.
    pub fn file(&mut self, file: usize, call: Option<u64>) {
        let number = call.unwrap_or(self.number);
        if self.files.len() < FILES_MAX || self.files.contains_key(&file) {
            let last = self.files.entry(file).or_default();
            *last = number.max(*last);
        }
    }

    /// Whether no message and no call followed the last compaction.
    pub fn is_fresh(&self) -> bool {
        !self.has_moved
    }

    /// Applies the last event, a compaction: removes everything that it does not keep.
    pub fn compact(&mut self, preserved: &Preserved) -> RemovedFromContext {
        self.traces.pop_back();
        self.events = self.events.saturating_sub(1);
        self.traces.retain(|trace| preserved.keeps(trace));
        let kept_numbers: HashSet<u64> = self.traces.iter().map(|trace| trace.number).collect();
        let mut kept = Window { number: self.number, events: self.traces.len() as u64, ..Window::default() };
        let mut commands = 0;
        for trace in &self.traces {
            match trace.what {
                EventKind::Message(_) => kept.messages += 1,
                EventKind::Call => kept.calls += 1,
                EventKind::Command => {
                    kept.calls += 1;
                    commands += 1;
                }
                EventKind::Other => {}
            }
        }
        kept.traces = std::mem::take(&mut self.traces);
        let mut removed = RemovedFromContext {
            events: self.events.saturating_sub(kept.events),
            messages: self.messages.saturating_sub(kept.messages),
            calls: self.calls.saturating_sub(kept.calls),
            kept_messages: kept.messages,
            kept_calls: kept.calls,
            ..RemovedFromContext::default()
        };
        for (file, number) in std::mem::take(&mut self.files) {
            if kept_numbers.contains(&number) {
                kept.files.insert(file, number);
            } else {
                removed.files.push(file);
            }
        }
        let removed_count = self.commands.count().saturating_sub(commands);
        for (number, command) in std::mem::take(&mut self.commands).items {
            if kept_numbers.contains(&number) {
                kept.commands.push((number, command), COMMANDS_MAX);
            } else {
                removed.commands.push(command, COMMANDS_MAX);
            }
        }
        removed.commands.more = removed_count.saturating_sub(removed.commands.items.len() as u64);
        kept.commands.more = commands.saturating_sub(kept.commands.items.len() as u64);
        *self = kept;
        removed
    }

    fn is(&mut self, what: EventKind) {
        self.has_moved = true;
        if let Some(trace) = self.traces.back_mut() {
            trace.what = what;
        }
    }
}

fn fingerprint(text: &str) -> u64 {
    xxh3_64(text.as_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let mut window = Window::default();
        window.event(Some("a"));
        window.message("Mend it.");
        for (record, command) in [("b", "make"), ("c", "make all")] {
            window.event(Some(record));
            let call = window.call(Some(command));
            window.file(usize::from(record == "c"), Some(call));
            window.event(Some(record));
        }
        window.event(Some("d"));
        window
    }

    #[test]
    fn a_compaction_removes_everything_that_it_does_not_keep() {
        let mut window = window();
        let removed = window.compact(&Preserved::default());
        assert_eq!((removed.events, removed.messages, removed.calls), (5, 1, 2));
        assert_eq!(removed.files, [0, 1]);
        assert_eq!(removed.commands.items, ["make", "make all"]);
        assert_eq!((removed.kept_messages, removed.kept_calls), (0, 0));
        assert!(window.is_fresh());
    }

    #[test]
    fn kept_events_stay_until_the_next_compaction() {
        let mut window = window();
        let mut preserved = Preserved::default();
        preserved.record("c");
        preserved.message(" Mend it.\n");
        let removed = window.compact(&preserved);
        assert_eq!((removed.events, removed.messages, removed.calls), (2, 0, 1));
        assert_eq!(
            (removed.files, removed.commands.items, removed.commands.more),
            (vec![0], vec!["make".to_owned()], 0)
        );
        assert_eq!((removed.kept_messages, removed.kept_calls), (1, 1));
        window.event(Some("e"));
        let removed = window.compact(&Preserved::default());
        assert_eq!((removed.events, removed.messages, removed.calls), (3, 1, 1));
        assert_eq!((removed.files, removed.commands.items), (vec![1], vec!["make all".to_owned()]));
    }
}
