//! What a session did to files: the net change of each as a unified diff, rebuilt from the recorded calls, and a list of
//! changes that the calls do not show. A pure fold over events: it names no format and no tool, and reads no file.
//!
//! The contents of a file are tracked as far as calls and results show them. What a session read or reported of a file
//! gives its initial contents, and every edit is applied to that. A call that failed, or has no result, changes nothing. If
//! the initial contents are unknown, the diff has the known hunks without line numbers. If a result contradicts the tracked
//! contents, an unrecorded change happened: it is listed, and the diff continues from what the result shows.

mod answer;
mod calls;
mod contents;
mod doing;
mod file;
mod file_report;
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
mod unified;
mod unseen;

use std::collections::{BTreeMap, HashSet};

use crate::evidence::nested_events;
use crate::model::{Body, Event};
use calls::SourceCalls;
use file::File;
use file_report::file_report;

pub use preview::{RequestedChange, RequestedKind, requested_changes};
pub use report::{BaseKnown, ChangeHow, FileChange};
pub use step::Opaque;
pub use unseen::{Unseen, UnseenReason};

use crate::run_state::EventPlace;

/// Tracks what events do to files. Give it the events of a session in order.
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
    place: EventPlace,
}

/// The result after all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesOutcome {
    /// The changed files, by path.
    pub files: Vec<FileChange>,
    /// The unseen changes, in order.
    pub unseen: Vec<Unseen>,
    /// The number of unseen changes that are not listed.
    pub unlisted: u64,
}

impl Changes {
    /// Selects the source of the next events, numbered from 0. Give it the events of several sources in the order of their
    /// times.
    pub fn source(&mut self, source: usize) {
        self.source_calls().given = self.place.event;
        self.place = EventPlace { source, ..EventPlace::default() };
        self.place.event = self.source_calls().given;
    }

    /// Adds the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.place.event += 1;
        self.place.line = event.at.map_or(0, |at| at.line);
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
                if let Some(report) =
                    file_report(event).filter(|report| report.call.is_some() && !report.files.is_empty())
                {
                    self.fact(&step, report);
                }
            }
            Body::Other { .. } if event.is_oversize() => {
                self.add_unseen(self.place, None, "a record", UnseenReason::Oversize);
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

    /// The result so far.
    pub fn finish(mut self) -> ChangesOutcome {
        self.unanswered();
        let root = self.root.as_deref();
        let files = self.files.iter().filter_map(|(path, file)| report::change(path, file, root)).collect();
        ChangesOutcome { files, unseen: self.unseen, unlisted: self.unlisted }
    }
}
