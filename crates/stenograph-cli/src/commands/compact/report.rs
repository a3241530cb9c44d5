//! The report of a compaction.

use std::path::PathBuf;

use serde::Serialize;
use stenograph::edit::Sketches;
use stenograph::edit::compact::{Compacting, OldPart};
use stenograph::edit::tokens::Tokenizer;
use stenograph::json::Draft;
use stenograph_store::layouts::chibi::Context;
use stenograph_store::systems::chibi::WindowChange;

use crate::edit_output::EditTarget;
use crate::edit_report::{EditReport, EditResult, PathText, ReportCounts, ReportedEvent};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped, harmless_json};

pub struct CompactionReport<'a> {
    name: &'a str,
    format: &'a str,
    removed: Vec<ReportedEvent>,
    details: Details<'a>,
}

/// The fields that only compactions report.
#[derive(Serialize)]
struct Details<'a> {
    compacted: bool,
    tokenizer: &'a str,
    events: ReportCounts,
    turns: ReportCounts,
    tokens: ReportCounts,
    summary: Option<String>,
    summary_tokens: Option<u64>,
    #[serde(flatten)]
    context: Option<CompactedContext>,
}

/// The files of a compacted context.
#[derive(Serialize)]
struct CompactedContext {
    /// The window.
    output: PathText,
    /// The archive with the removed entries.
    archive: PathText,
}

impl<'a> CompactionReport<'a> {
    /// A report about a file or folder.
    pub fn new(name: &'a str, format: &'a str, tokenizer: &'a Tokenizer<'a>) -> CompactionReport<'a> {
        let details = Details {
            compacted: false,
            tokenizer: tokenizer.name(),
            events: ReportCounts::default(),
            turns: ReportCounts::default(),
            tokens: ReportCounts::default(),
            summary: None,
            summary_tokens: None,
            context: None,
        };
        CompactionReport { name, format, removed: Vec::new(), details }
    }

    /// Adds what is removed.
    pub fn add(&mut self, events: &Sketches, compacting: &Compacting<'_>, old: &OldPart, target: &EditTarget) {
        let removed = old.removed.len() as u64;
        self.details.events = ReportCounts { removed, kept: events.len() as u64 - removed };
        (self.details.turns, self.details.tokens) = (old.turns.into(), old.tokens.into());
        let reported = compacting
            .removed(events, old)
            .filter_map(|event| ReportedEvent::of(events, event.event, "removed", i64::try_from(event.tokens).ok()));
        self.removed = if target.lists_events() { reported.collect() } else { Vec::new() };
    }

    pub fn summary(&mut self, summary: &str, tokenizer: &Tokenizer<'_>) {
        self.details.compacted = true;
        self.details.summary_tokens = Some(tokenizer.text(summary));
        self.details.summary = Some(summary.to_owned());
    }

    pub fn archived(&mut self, output: PathBuf, archive: PathBuf) {
        self.details.context = Some(CompactedContext { output: PathText(output), archive: PathText(archive) });
    }

    /// Reports that there is nothing to compact.
    pub fn nothing(self, target: &EditTarget, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let sentence = format!("{}: nothing to compact: everything since the last summary is kept", self.name);
        self.print(&[sentence], None, target, output)?;
        Ok(ExitStatus::No)
    }

    /// Reports the compaction, or what a dry run would do.
    pub fn done(
        self,
        result: Option<EditResult<'_>>,
        target: &EditTarget,
        output: &mut Output<'_>,
    ) -> Result<ExitStatus, CommandError> {
        let Details { events, turns, tokens, summary_tokens, context, .. } = &self.details;
        let action = if target.dry_run { "would be removed" } else { "removed" };
        let (removed, removed_turns) = (counted(events.removed, "event"), counted(turns.removed, "whole turn"));
        let summary = summary_tokens.map(|tokens| format!("; the summary has {}", counted(tokens, "token")));
        let (kept, kept_tokens) = (counted(turns.kept, "turn"), counted(tokens.kept, "token"));
        let mut sentences = vec![
            format!("{}: {removed} {action}, {removed_turns}: {}", self.name, counted(tokens.removed, "token")),
            format!("  {kept} kept: {kept_tokens}{}", summary.unwrap_or_default()),
        ];
        if let Some(context) = context {
            let (archive, name) = (context.archive.0.display(), self.name);
            sentences.push(format!("removed entries are in {archive}; to undo: steno undo {name}"));
        }
        self.print(&sentences, result, target, output)?;
        Ok(ExitStatus::Done)
    }

    fn print(
        self,
        sentences: &[String],
        result: Option<EditResult<'_>>,
        target: &EditTarget,
        output: &mut Output<'_>,
    ) -> Result<(), CommandError> {
        let CompactionReport { name: file, format, removed, details } = self;
        EditReport { file, format, dry_run: target.dry_run, details, removed, result }.print(target, sentences, output)
    }
}

/// Reports the entries that were restored to a window.
pub fn report_undo(
    json: bool,
    context: &Context,
    changed: &WindowChange,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let (name, restored, entries) = (context.folder.display(), changed.archived, changed.entries);
    if json {
        let draft = Draft::new().with("file", name.to_string()).with("undone", "compact");
        output.line(&harmless_json(&draft.with("back", restored).with("entries", entries).render(None)))?;
    } else {
        let noun = if restored == 1 { "entry" } else { "entries" };
        let (restored, entries) = (grouped(restored as u64), grouped(entries as u64));
        output.say(&format!("{name}: {restored} {noun} restored; the window has {entries}"));
    }
    Ok(ExitStatus::Done)
}
