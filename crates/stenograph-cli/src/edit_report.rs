//! The report of an edit, the same for all commands: for people, or as one JSON object. The commands add their own fields and
//! sentences.

use std::path::PathBuf;

use serde::Serialize;
use stenograph::edit::compact::RemovedAndKept;
use stenograph::edit::{Edited, Sketches};
use stenograph::loss::LossReport;

use crate::edit_output::{EditTarget, WrittenFiles};
use crate::error::CommandError;
use crate::output::{Output, grouped, harmless_line};

/// The report of an edit. `D` are the fields of one command.
#[derive(Debug, Serialize)]
pub struct EditReport<'a, D> {
    pub file: &'a str,
    pub format: &'a str,
    pub dry_run: bool,
    #[serde(flatten)]
    pub details: D,
    /// The removed and shortened events, by number.
    pub removed: Vec<ReportedEvent>,
    #[serde(flatten)]
    pub result: Option<EditResult<'a>>,
}

/// An event that an edit removes or shortens.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedEvent {
    /// Its number, from 1.
    event: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    kind: &'static str,
    /// What happens to it.
    action: &'static str,
    /// The tokens that this saves, if they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<i64>,
}

/// The result of an edit.
#[derive(Debug, Serialize)]
pub struct EditResult<'a> {
    method: &'static str,
    /// The number of events that changed as a consequence of others.
    also_changed: u64,
    exact: bool,
    differences: &'a LossReport,
    untouched_totals: &'a [&'static str],
    #[serde(skip)]
    note: Option<String>,
    output: Option<PathText>,
    undo: Option<PathText>,
}

/// A path in a report.
#[derive(Debug)]
pub struct PathText(pub PathBuf);

impl Serialize for PathText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

/// Two numbers: how many are removed and how many are kept.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ReportCounts {
    pub removed: u64,
    pub kept: u64,
}

impl From<RemovedAndKept> for ReportCounts {
    fn from(counts: RemovedAndKept) -> ReportCounts {
        ReportCounts { removed: counts.removed, kept: counts.kept }
    }
}

impl ReportedEvent {
    /// The event with this number, from 0.
    pub fn of(events: &Sketches, number: usize, action: &'static str, tokens: Option<i64>) -> Option<ReportedEvent> {
        let (kind, line) = events.kind_and_line(number)?;
        Some(ReportedEvent { event: number + 1, line, kind: kind.name(), action, tokens })
    }

    fn sentence(&self) -> String {
        let line = self.line.map_or(String::new(), |line| format!(" (line {line})"));
        let tokens = self.tokens.map_or(String::new(), |tokens| format!(", {}", signed_tokens(tokens)));
        format!("event {}{line}: {} {}{tokens}", self.event, self.kind, self.action)
    }
}

impl<'a> EditResult<'a> {
    pub fn new(edited: &'a Edited, written: WrittenFiles) -> EditResult<'a> {
        EditResult {
            method: edited.method.name(),
            also_changed: edited.also_changed,
            exact: edited.is_exact(),
            differences: &edited.differences,
            untouched_totals: &edited.untouched_totals,
            note: edited.notes.first().map(|note| format!("line {}: {}", note.at.line, harmless_line(&note.text))),
            output: written.path.map(PathText),
            undo: written.undo.map(PathText),
        }
    }

    /// Reports differences from the plan, and how to undo the edit.
    fn print(&self, output: &mut Output<'_>) {
        for line in self.differences.summary().iter().filter(|line| !line.ends_with("; whole")) {
            output.say(&format!("warning: the format cannot express the whole edit: {line}"));
        }
        if let Some(note) = &self.note {
            output.say(&format!("warning: {note}"));
        }
        if !self.untouched_totals.is_empty() {
            let fields = self.untouched_totals.join(", ");
            output.say(&format!("note: {fields} left unchanged: they describe the whole session"));
        }
        if let (Some(path), Some(undo)) = (&self.output, &self.undo) {
            let (path, undo) = (path.0.display(), undo.0.display());
            output.say(&format!("undo file: {undo}; to undo: steno undo {path}"));
        }
    }
}

impl<D: Serialize> EditReport<'_, D> {
    /// Prints the report: as JSON, or the sentences of the command with the result. A dry run also lists the events.
    pub fn print(
        &self,
        target: &EditTarget,
        sentences: &[String],
        output: &mut Output<'_>,
    ) -> Result<(), CommandError> {
        if target.json {
            let json = serde_json::to_string(self).map_err(|error| CommandError::new(error.to_string()))?;
            return target.report(&json, output);
        }
        if self.dry_run {
            for event in &self.removed {
                output.line(&event.sentence())?;
            }
        }
        sentences.iter().for_each(|sentence| output.say(sentence));
        if let Some(result) = &self.result {
            result.print(output);
        }
        Ok(())
    }
}

/// A number of tokens, which may be negative, with its unit.
pub fn signed_tokens(tokens: i64) -> String {
    let (sign, number) = (if tokens < 0 { "-" } else { "" }, grouped(tokens.unsigned_abs()));
    format!("{sign}{number} {}", if tokens == 1 { "token" } else { "tokens" })
}
