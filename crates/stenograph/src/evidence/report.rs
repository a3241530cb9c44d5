//! Facts that report on a call: the exit code of its command, the files it changed, the agent it started. For some calls the
//! report is the only record.

use super::input::command_at;
use super::result::Evidence;
use super::words;
use crate::json::{Object, word};
use crate::model::{Body, Event, ExtraFields, ReportPaths};
use crate::text::Str;

/// A report of a fact on a call.
#[derive(Debug)]
pub(crate) struct CallReport<'e> {
    paths: &'static ReportPaths,
    extra: &'e ExtraFields<'e>,
}

/// The agent that a call started.
#[derive(Debug)]
pub(crate) struct StartedAgent {
    /// Its side conversation.
    pub thread: String,
    /// Its kind.
    pub kind: Option<String>,
    /// Its task.
    pub task: Option<String>,
}

/// The most changed files of one report that are read.
const CHANGES_MAX: usize = 256;

impl<'e> CallReport<'e> {
    /// The report in this event.
    pub fn of(event: &'e Event<'_>) -> Option<CallReport<'e>> {
        let Body::Fact { fact: name, .. } = &event.body else { return None };
        words(event).find_map(|(words, extra)| {
            let paths = words.reports.iter().find(|report| *name == report.fact)?;
            Some(CallReport { paths, extra })
        })
    }

    /// The id of the call.
    pub fn call(&self) -> Option<Str<'e>> {
        self.extra.word_at(self.paths.call)
    }

    /// The command that the call ran.
    pub fn command(&self) -> Option<String> {
        if self.paths.command.is_empty() { None } else { self.extra.at(self.paths.command).and_then(command_at) }
    }

    /// Whether the call succeeded, if the report states it.
    pub fn success(&self) -> Option<bool> {
        self.extra.word_at(self.paths.success).map(|word| word == "true")
    }

    /// The evidence of the outcome of the call.
    pub fn evidence(&self) -> Evidence {
        let exit = self.extra.word_at(self.paths.exit).and_then(|code| code.parse().ok());
        Evidence { exit, is_stated_error: self.success() == Some(false), ..Evidence::default() }
    }

    /// The agent that the call started.
    pub fn agent(&self) -> Option<StartedAgent> {
        let text = |path: &str| self.extra.word_at(path).map(Str::into_owned);
        Some(StartedAgent {
            thread: text(self.paths.thread)?,
            kind: text(self.paths.kind),
            task: text(self.paths.task),
        })
    }

    /// The files that the call changed, each with the agent's word for the change.
    pub fn changed_files(&self) -> Vec<(String, Option<String>)> {
        let changes = if self.paths.changes.is_empty() { None } else { self.extra.at(self.paths.changes) };
        let Some(changes) = changes.and_then(Object::parse) else { return Vec::new() };
        let kind = |raw: &str| Some(Object::parse(raw)?.peek("type").and_then(word)?.into_owned());
        changes.pairs().take(CHANGES_MAX).map(|(path, raw)| (path.to_owned(), kind(raw))).collect()
    }
}
