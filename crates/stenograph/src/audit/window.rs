//! What stands before the model of one conversation: what was said and done since the last compaction, and what that one kept. It is
//! counted, and remembered one by one only as far back as a compaction keeps anything.

use std::collections::{BTreeMap, HashSet, VecDeque};

use xxhash_rust::xxh3::xxh3_64;

use super::report::Capped;
use crate::text::beginning;

/// What stands before the model.
#[derive(Debug, Default)]
pub(super) struct Window {
    events: u64,
    messages: u64,
    calls: u64,
    /// Files, with the number of the event that touched them last.
    files: BTreeMap<usize, u64>,
    commands: Capped<(u64, String)>,
    /// The last events.
    traces: VecDeque<Trace>,
    /// How many events there were, those that are gone too.
    number: u64,
    /// Whether something was said or done since the last compaction.
    has_moved: bool,
}

/// One event.
#[derive(Clone, Copy, Debug)]
struct Trace {
    number: u64,
    /// A fingerprint of its record's id; 0 for none.
    record: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A message, with a fingerprint of its words.
    Message(u64),
    Call,
    /// A call that runs a command.
    Command,
    Other,
}

/// What a compaction says it keeps.
#[derive(Debug, Default)]
pub(super) struct Preserved {
    records: HashSet<u64>,
    words: HashSet<u64>,
}

/// What a compaction puts aside, and how much of what stood there it keeps.
#[derive(Debug, Default)]
pub(super) struct PutAside {
    pub events: u64,
    pub messages: u64,
    pub calls: u64,
    pub files: Vec<usize>,
    pub commands: Capped<String>,
    pub kept_messages: u64,
    pub kept_calls: u64,
}

/// How many files and commands of a window are kept.
const FILES_MAX: usize = 10_000;
const COMMANDS_MAX: usize = 100;

/// How much of a command is kept.
const COMMAND_SIZE_MAX: usize = 400;

/// How many events are remembered one by one. What a compaction keeps are the last ones, and what users asked.
const TRACES_MAX: usize = 16 << 10;

/// How much a compaction may say it keeps.
const PRESERVED_MAX: usize = 1 << 16;

impl Preserved {
    /// A record stays.
    pub fn record(&mut self, id: &str) {
        if self.records.len() < PRESERVED_MAX && !id.is_empty() {
            self.records.insert(print(id));
        }
    }

    /// A message with these words stays.
    pub fn message(&mut self, text: &str) {
        if self.words.len() < PRESERVED_MAX {
            self.words.insert(print(text.trim()));
        }
    }

    fn keeps(&self, trace: &Trace) -> bool {
        let is_said = match trace.what {
            What::Message(words) => self.words.contains(&words),
            What::Call | What::Command | What::Other => false,
        };
        is_said || self.records.contains(&trace.record)
    }
}

impl Window {
    /// The next event, with the id of its record.
    pub fn event(&mut self, record: Option<&str>) {
        self.events += 1;
        self.number += 1;
        if self.traces.len() >= TRACES_MAX {
            self.traces.pop_front();
        }
        let record = record.filter(|record| !record.is_empty()).map_or(0, print);
        self.traces.push_back(Trace { number: self.number, record, what: What::Other });
    }

    /// It is a message.
    pub fn message(&mut self, text: &str) {
        self.messages += 1;
        self.is(What::Message(print(text.trim())));
    }

    /// It is a call, which may run a command. Gives its number.
    pub fn call(&mut self, command: Option<&str>) -> u64 {
        self.calls += 1;
        self.is(if command.is_some() { What::Command } else { What::Call });
        if let Some(command) = command {
            self.commands.push((self.number, beginning(command, COMMAND_SIZE_MAX).to_owned()), COMMANDS_MAX);
        }
        self.number
    }

    /// The call of that number touched a file; without one, the last event tells of it.
    pub fn file(&mut self, file: usize, call: Option<u64>) {
        let number = call.unwrap_or(self.number);
        if self.files.len() < FILES_MAX || self.files.contains_key(&file) {
            let last = self.files.entry(file).or_default();
            *last = number.max(*last);
        }
    }

    /// Whether nothing was said or done since the last compaction.
    pub fn is_fresh(&self) -> bool {
        !self.has_moved
    }

    /// The last event is a compaction: what it does not keep is gone from here.
    pub fn compact(&mut self, preserved: &Preserved) -> PutAside {
        self.traces.pop_back();
        self.events = self.events.saturating_sub(1);
        self.traces.retain(|trace| preserved.keeps(trace));
        let stays: HashSet<u64> = self.traces.iter().map(|trace| trace.number).collect();
        let mut kept = Window { number: self.number, events: self.traces.len() as u64, ..Window::default() };
        let mut commands = 0;
        for trace in &self.traces {
            match trace.what {
                What::Message(_) => kept.messages += 1,
                What::Call => kept.calls += 1,
                What::Command => {
                    kept.calls += 1;
                    commands += 1;
                }
                What::Other => {}
            }
        }
        kept.traces = std::mem::take(&mut self.traces);
        let mut aside = PutAside {
            events: self.events.saturating_sub(kept.events),
            messages: self.messages.saturating_sub(kept.messages),
            calls: self.calls.saturating_sub(kept.calls),
            kept_messages: kept.messages,
            kept_calls: kept.calls,
            ..PutAside::default()
        };
        for (file, number) in std::mem::take(&mut self.files) {
            if stays.contains(&number) {
                kept.files.insert(file, number);
            } else {
                aside.files.push(file);
            }
        }
        let gone = self.commands.count().saturating_sub(commands);
        for (number, command) in std::mem::take(&mut self.commands).items {
            if stays.contains(&number) {
                kept.commands.push((number, command), COMMANDS_MAX);
            } else {
                aside.commands.push(command, COMMANDS_MAX);
            }
        }
        aside.commands.more = gone.saturating_sub(aside.commands.items.len() as u64);
        kept.commands.more = commands.saturating_sub(kept.commands.items.len() as u64);
        *self = kept;
        aside
    }

    fn is(&mut self, what: What) {
        self.has_moved = true;
        if let Some(trace) = self.traces.back_mut() {
            trace.what = what;
        }
    }
}

fn print(text: &str) -> u64 {
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
    fn everything_is_put_aside_that_is_not_kept() {
        let mut window = window();
        let aside = window.compact(&Preserved::default());
        assert_eq!((aside.events, aside.messages, aside.calls), (5, 1, 2));
        assert_eq!(aside.files, [0, 1]);
        assert_eq!(aside.commands.items, ["make", "make all"]);
        assert_eq!((aside.kept_messages, aside.kept_calls), (0, 0));
        assert!(window.is_fresh());
    }

    #[test]
    fn what_is_kept_stands_there_until_the_next_time() {
        let mut window = window();
        let mut preserved = Preserved::default();
        preserved.record("c");
        preserved.message(" Mend it.\n");
        let aside = window.compact(&preserved);
        assert_eq!((aside.events, aside.messages, aside.calls), (2, 0, 1));
        assert_eq!((aside.files, aside.commands.items, aside.commands.more), (vec![0], vec!["make".to_owned()], 0));
        assert_eq!((aside.kept_messages, aside.kept_calls), (1, 1));
        window.event(Some("e"));
        let aside = window.compact(&Preserved::default());
        assert_eq!((aside.events, aside.messages, aside.calls), (3, 1, 1));
        assert_eq!((aside.files, aside.commands.items), (vec![1], vec!["make all".to_owned()]));
    }
}
