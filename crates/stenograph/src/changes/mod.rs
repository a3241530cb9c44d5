//! What a session did to files: the net change of each as a unified diff, rebuilt from the recorded calls, and a list of what cannot
//! be seen from them. A pure fold over events; no format and no tool is named, and no file is looked at.
//!
//! The content of a file is followed as far as calls and results tell it. What was read or told of it gives what it was; every edit is
//! done again on that. A call that failed, or was never answered, changes nothing. Where nothing tells what a file was, the diff has
//! the hunks that are known, without line numbers. Where a result shows something else than what the calls add up to, something that
//! is not recorded changed the file: that is listed, and the diff goes on from what is seen.

mod answer;
mod calls;
mod contents;
mod doing;
mod file;
pub(crate) mod json;
mod lines;
mod look;
mod parts;
mod patch;
mod preview;
mod report;
mod shell;
mod step;
#[cfg(test)]
mod tests;
mod told;
mod unified;
mod unseen;

use std::collections::{BTreeMap, HashSet};

use crate::evidence::nested_events;
use crate::model::{Body, Event};
use calls::SourceCalls;
use file::File;
use told::told;

pub use preview::{RequestedChange, RequestedKind, requested_changes};
pub use report::{BaseKnown, ChangeHow, FileChange};
pub use step::Opaque;
pub use unseen::{Place, Unseen, UnseenReason};

/// Follows what events do to files. Give it the events of a session in order.
#[derive(Debug, Default)]
pub struct Changes {
    files: BTreeMap<String, File>,
    unseen: Vec<Unseen>,
    unlisted: u64,
    /// The calls of each source.
    sources: BTreeMap<usize, SourceCalls>,
    /// Calls that have a result, by fingerprint, and their ids.
    done: HashSet<u64>,
    known: HashSet<u64>,
    held: usize,
    open_size: usize,
    root: Option<String>,
    place: Place,
}

/// What is known when all events were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesOutcome {
    /// The files that changed, by path.
    pub files: Vec<FileChange>,
    /// What cannot be seen, in order.
    pub unseen: Vec<Unseen>,
    /// How much more of it there is than is listed.
    pub unlisted: u64,
}

impl Changes {
    /// The next events are those of this source, numbered from 0. What several sources tell should come in the order of its times.
    pub fn source(&mut self, source: usize) {
        self.source_calls().given = self.place.event;
        self.place = Place { source, event: 0, line: None };
        self.place.event = self.source_calls().given;
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.place.event += 1;
        self.place.line = event.at.map(|at| at.line).filter(|line| *line > 0);
        self.take(event);
    }

    fn take(&mut self, event: &Event<'_>) {
        if let Some(cwd) = event.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            self.source_calls().moves_to(cwd);
            self.root.get_or_insert_with(|| cwd.to_owned());
        }
        let step = self.source_calls().calls.add(event);
        match &event.body {
            Body::ToolCall { call, name, input } if !event.restates => {
                let plan = step::plan(name, input, self.source_calls().cwd.as_deref());
                self.call(&step, call.as_deref(), name, plan, &input.to_text().decode());
            }
            Body::ToolResult { content, .. } if !event.restates => self.result(&step, content, event),
            Body::Fact { .. } => {
                nested_events(event).iter().for_each(|inner| self.take(inner));
                if let Some(told) = told(event).filter(|told| told.call.is_some() && !told.files.is_empty()) {
                    self.fact(told);
                }
            }
            Body::Other { .. } if event.is_oversize() => {
                self.blind(self.place, None, "a record", UnseenReason::Oversize);
            }
            Body::ToolCall { .. }
            | Body::ToolResult { .. }
            | Body::Message { .. }
            | Body::Thinking { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }

    /// What is known now.
    pub fn finish(mut self) -> ChangesOutcome {
        self.unanswered();
        let root = self.root.as_deref();
        let files = self.files.iter().filter_map(|(path, file)| report::change(path, file, root)).collect();
        ChangesOutcome { files, unseen: self.unseen, unlisted: self.unlisted }
    }
}
