//! What is said about a compaction: what went, how much of it, and where it is now.

use std::path::PathBuf;

use stenograph::edit::compact::{Aside, Compacting, Gone, Split};
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::{Edited, Sketches};
use stenograph::text::quote;
use stenograph_store::layouts::chibi::Context;
use stenograph_store::systems::chibi::WindowChange;

use super::Options;
use crate::edited::{self, Target, Written};
use crate::error::{CommandError, Status};
use crate::output::{Output, counted, grouped, harmless_json};

/// The account of a compaction.
pub struct Report<'a> {
    name: String,
    tokenizer: &'a Tokenizer<'a>,
    events: Split,
    turns: Split,
    tokens: Split,
    /// What goes, where that is listed.
    goes: Vec<Gone>,
    summary: Option<String>,
    outcome: Outcome,
}

/// What became of it.
enum Outcome {
    /// Nothing, so far.
    None,
    /// A file was edited.
    Edited(Box<Edited>, Written),
    /// The old entries of a window stand in an archive.
    Archived { window: PathBuf, archive: PathBuf },
}

impl<'a> Report<'a> {
    /// A report about this file or folder.
    pub fn new(name: &str, tokenizer: &'a Tokenizer<'a>) -> Report<'a> {
        let (events, turns, tokens) = (Split::default(), Split::default(), Split::default());
        let name = name.to_owned();
        Report { name, tokenizer, events, turns, tokens, goes: Vec::new(), summary: None, outcome: Outcome::None }
    }

    /// Takes notice of what goes.
    pub fn add(&mut self, events: &Sketches, compacting: &Compacting<'_>, aside: &Aside, target: &Target) {
        let gone = aside.goes.len() as u64;
        self.events = Split { gone, kept: events.len() as u64 - gone };
        (self.turns, self.tokens) = (aside.turns, aside.tokens);
        if target.json || target.dry_run {
            self.goes = compacting.gone(events, aside).collect();
        }
    }

    /// Takes notice of the summary.
    pub fn summary(&mut self, summary: &str) {
        self.summary = Some(summary.to_owned());
    }

    /// Takes notice of a file that was edited.
    pub fn edited(&mut self, edited: Edited, written: Written) {
        self.outcome = Outcome::Edited(Box::new(edited), written);
    }

    /// Takes notice of where the entries of a window are now.
    pub fn archived(&mut self, window: PathBuf, archive: PathBuf) {
        self.outcome = Outcome::Archived { window, archive };
    }

    /// Says that there is nothing to do.
    pub fn nothing(&self, target: &Target, output: &mut Output<'_>) -> Result<Status, CommandError> {
        if target.json {
            target.report(&self.json(target), output)?;
        } else {
            let why = "all that was said since the last summary is to be kept";
            output.say(&format!("{}: there is nothing to compact: {why}", self.name));
        }
        Ok(Status::No)
    }

    /// Says what was done, or what would be.
    pub fn done(&self, target: &Target, output: &mut Output<'_>) -> Result<Status, CommandError> {
        if target.json {
            target.report(&self.json(target), output)?;
            return Ok(Status::Done);
        }
        if target.dry_run {
            for gone in &self.goes {
                let line = gone.line.map_or(String::new(), |line| format!(" (line {line})"));
                let (event, kind, tokens) = (gone.event + 1, gone.kind.name(), in_tokens(gone.tokens));
                output.line(&format!("event {event}{line}: {kind}, {tokens}"))?;
            }
        }
        let go = if target.dry_run { "would go" } else { "went" };
        let (gone, turns) = (counted(self.events.gone, "event"), counted(self.turns.gone, "whole turn"));
        output.say(&format!("{}: {gone} {go}, {turns}: {}", self.name, in_tokens(self.tokens.gone)));
        let kept = counted(self.turns.kept, "turn");
        let summary = self.summary_tokens().map(|tokens| format!("; the summary has {}", in_tokens(tokens)));
        output.say(&format!("  {kept} kept: {}{}", in_tokens(self.tokens.kept), summary.unwrap_or_default()));
        match &self.outcome {
            Outcome::None => {}
            Outcome::Edited(done, written) => edited::tell(done, written, "compact", output),
            Outcome::Archived { archive, .. } => {
                let (archive, name) = (archive.display(), &self.name);
                output.say(&format!("what went is in {archive}: steno compact --undo {name} brings it back"));
            }
        }
        Ok(Status::Done)
    }

    fn summary_tokens(&self) -> Option<u64> {
        self.summary.as_deref().map(|summary| self.tokenizer.text(summary))
    }

    fn json(&self, target: &Target) -> String {
        let split = |split: Split| format!("{{\"gone\":{},\"kept\":{}}}", split.gone, split.kept);
        let goes = self.goes.iter().map(|gone| {
            let line = gone.line.map_or(String::new(), |line| format!(",\"line\":{line}"));
            let (event, kind, tokens) = (gone.event + 1, quote(gone.kind.name()), gone.tokens);
            format!("{{\"event\":{event}{line},\"kind\":{kind},\"tokens\":{tokens}}}")
        });
        let goes: Vec<String> = goes.collect();
        let outcome = match &self.outcome {
            Outcome::None => String::new(),
            Outcome::Edited(done, written) => format!(",{}", edited::json_fields(done, written)),
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

/// Says what came back into a window.
pub fn brought_back(
    options: &Options,
    context: &Context,
    changed: &WindowChange,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let (name, back, entries) = (context.folder.display(), changed.archived, changed.entries);
    if options.json {
        let file = quote(&name.to_string());
        let json = format!("{{\"file\":{file},\"undone\":\"compact\",\"back\":{back},\"entries\":{entries}}}");
        output.line(&harmless_json(&json))?;
    } else {
        let are = if back == 1 { "entry is" } else { "entries are" };
        output.say(&format!("{name}: {} {are} back; the window has {}", grouped(back as u64), grouped(entries as u64)));
    }
    Ok(Status::Done)
}
