//! Reports a compaction: what was removed, how much of it, and where it is now.

use std::path::PathBuf;

use stenograph::edit::compact::{Aside, Compacting, Gone, Split};
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::{Edited, Sketches};
use stenograph::text::quote;
use stenograph_store::layouts::chibi::Context;
use stenograph_store::systems::chibi::WindowChange;

use crate::edit_output::{self, EditTarget, WrittenFiles};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped, harmless_json};

pub struct CompactionReport<'a> {
    name: String,
    tokenizer: &'a Tokenizer<'a>,
    events: Split,
    turns: Split,
    tokens: Split,
    /// The removed events, if they are listed.
    goes: Vec<Gone>,
    summary: Option<String>,
    outcome: Outcome,
}

enum Outcome {
    /// Nothing so far.
    None,
    Edited(Box<Edited>, WrittenFiles),
    /// The old entries of a window are in an archive.
    Archived {
        window: PathBuf,
        archive: PathBuf,
    },
}

impl<'a> CompactionReport<'a> {
    /// A report about a file or folder.
    pub fn new(name: &str, tokenizer: &'a Tokenizer<'a>) -> CompactionReport<'a> {
        let (events, turns, tokens) = (Split::default(), Split::default(), Split::default());
        let name = name.to_owned();
        CompactionReport {
            name,
            tokenizer,
            events,
            turns,
            tokens,
            goes: Vec::new(),
            summary: None,
            outcome: Outcome::None,
        }
    }

    /// Records what is removed.
    pub fn add(&mut self, events: &Sketches, compacting: &Compacting<'_>, aside: &Aside, target: &EditTarget) {
        let gone = aside.goes.len() as u64;
        self.events = Split { gone, kept: events.len() as u64 - gone };
        (self.turns, self.tokens) = (aside.turns, aside.tokens);
        if target.json || target.dry_run {
            self.goes = compacting.gone(events, aside).collect();
        }
    }

    pub fn summary(&mut self, summary: &str) {
        self.summary = Some(summary.to_owned());
    }

    pub fn edited(&mut self, edited: Edited, written: WrittenFiles) {
        self.outcome = Outcome::Edited(Box::new(edited), written);
    }

    pub fn archived(&mut self, window: PathBuf, archive: PathBuf) {
        self.outcome = Outcome::Archived { window, archive };
    }

    /// Reports that there is nothing to do.
    pub fn nothing(&self, target: &EditTarget, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        if target.json {
            target.report(&self.json(target), output)?;
        } else {
            let why = "everything since the last summary is kept";
            output.say(&format!("{}: nothing to compact: {why}", self.name));
        }
        Ok(ExitStatus::No)
    }

    /// Reports what was done, or what would be done.
    pub fn done(&self, target: &EditTarget, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        if target.json {
            target.report(&self.json(target), output)?;
            return Ok(ExitStatus::Done);
        }
        if target.dry_run {
            for gone in &self.goes {
                let line = gone.line.map_or(String::new(), |line| format!(" (line {line})"));
                let (event, kind, tokens) = (gone.event + 1, gone.kind.name(), in_tokens(gone.tokens));
                output.line(&format!("event {event}{line}: {kind}, {tokens}"))?;
            }
        }
        let go = if target.dry_run { "would be removed" } else { "removed" };
        let (gone, turns) = (counted(self.events.gone, "event"), counted(self.turns.gone, "whole turn"));
        output.say(&format!("{}: {gone} {go}, {turns}: {}", self.name, in_tokens(self.tokens.gone)));
        let kept = counted(self.turns.kept, "turn");
        let summary = self.summary_tokens().map(|tokens| format!("; the summary has {}", in_tokens(tokens)));
        output.say(&format!("  {kept} kept: {}{}", in_tokens(self.tokens.kept), summary.unwrap_or_default()));
        match &self.outcome {
            Outcome::None => {}
            Outcome::Edited(done, written) => edit_output::report_differences(done, written, output),
            Outcome::Archived { archive, .. } => {
                let (archive, name) = (archive.display(), &self.name);
                output.say(&format!("removed entries are in {archive}; to undo: steno undo {name}"));
            }
        }
        Ok(ExitStatus::Done)
    }

    fn summary_tokens(&self) -> Option<u64> {
        self.summary.as_deref().map(|summary| self.tokenizer.text(summary))
    }

    fn json(&self, target: &EditTarget) -> String {
        let split = |split: Split| format!("{{\"gone\":{},\"kept\":{}}}", split.gone, split.kept);
        let goes = self.goes.iter().map(|gone| {
            let line = gone.line.map_or(String::new(), |line| format!(",\"line\":{line}"));
            let (event, kind, tokens) = (gone.event + 1, quote(gone.kind.name()), gone.tokens);
            format!("{{\"event\":{event}{line},\"kind\":{kind},\"tokens\":{tokens}}}")
        });
        let goes: Vec<String> = goes.collect();
        let outcome = match &self.outcome {
            Outcome::None => String::new(),
            Outcome::Edited(done, written) => format!(",{}", edit_output::json_fields(done, written)),
            Outcome::Archived { window, archive } => {
                let text = |path: &PathBuf| quote(&path.display().to_string());
                format!(",\"output\":{},\"archive\":{}", text(window), text(archive))
            }
        };
        format!(
            "{{\"file\":{},\"compacted\":{},\"dry_run\":{},\"tokenizer\":{},\"events\":{},\"turns\":{},\"tokens\":{},\
             \"summary\":{},\"summary_tokens\":{},\"went\":[{}]{outcome}}}",
            quote(&self.name),
            self.summary.is_some(),
            target.dry_run,
            quote(self.tokenizer.name()),
            split(self.events),
            split(self.turns),
            split(self.tokens),
            self.summary.as_deref().map_or("null".to_owned(), quote),
            self.summary_tokens().map_or("null".to_owned(), |tokens| tokens.to_string()),
            goes.join(",")
        )
    }
}

fn in_tokens(number: u64) -> String {
    format!("{} {}", grouped(number), if number == 1 { "token" } else { "tokens" })
}

/// Reports what returned to a window.
pub fn report_undo(
    json: bool,
    context: &Context,
    changed: &WindowChange,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let (name, back, entries) = (context.folder.display(), changed.archived, changed.entries);
    if json {
        let file = quote(&name.to_string());
        let json = format!("{{\"file\":{file},\"undone\":\"compact\",\"back\":{back},\"entries\":{entries}}}");
        output.line(&harmless_json(&json))?;
    } else {
        let are = if back == 1 { "entry" } else { "entries" };
        output.say(&format!(
            "{name}: {} {are} restored; the window has {}",
            grouped(back as u64),
            grouped(entries as u64)
        ));
    }
    Ok(ExitStatus::Done)
}
