//! What is said about a compaction: what went, how much of it, and where it is now.

use std::path::{Path, PathBuf};

use stenograph::edit::Applied;
use stenograph::edit::compact::{Aside, Split};
use stenograph::edit::tokens::Tokenizer;
use stenograph::model::Event;
use stenograph::text::quote;
use stenograph_store::layouts::chibi::Changed;
use stenograph_store::undo::Undone;

use super::Options;
use crate::error::{CommandError, Status};
use crate::output::{Output, counted, harmless_json};

/// Where a report goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// To standard output, which is free.
    Data,
    /// To standard error, beside the data.
    Talk,
}

/// The account of a compaction.
#[derive(Debug, Default)]
pub struct Report {
    name: String,
    events: Split,
    turns: Split,
    tokens: Split,
    /// What goes: the number of the event, its line, its kind and its tokens.
    goes: Vec<String>,
    summary: Option<(String, u64)>,
    differs: Vec<String>,
    /// What was written.
    pub output: Option<PathBuf>,
    /// Where the entries are that went.
    pub archive: Option<PathBuf>,
    /// What an undo rests on.
    pub undo: Option<PathBuf>,
}

impl Report {
    /// A report about this file or folder.
    pub fn new(name: &str) -> Report {
        Report { name: name.to_owned(), ..Report::default() }
    }

    /// Takes notice of what goes.
    pub fn add(&mut self, events: &[Event<'_>], aside: &Aside, tokenizer: &Tokenizer<'_>) {
        let gone = aside.goes.len() as u64;
        self.events = Split { gone, kept: events.len() as u64 - gone };
        (self.turns, self.tokens) = (aside.turns, aside.tokens);
        let told = |number: &usize| aside.told.binary_search(number).is_ok();
        let event = |number: &usize| {
            let event = events.get(*number)?;
            let line = event.at.map_or("null".to_owned(), |at| at.line.to_string());
            let tokens = if told(number) { tokenizer.event(event) } else { 0 };
            let kind = quote(event.kind().name());
            Some(format!("{{\"event\":{number},\"line\":{line},\"kind\":{kind},\"tokens\":{tokens}}}"))
        };
        self.goes = aside.goes.iter().filter_map(event).collect();
    }

    /// Takes notice of the summary.
    pub fn summary(&mut self, summary: &str, tokenizer: &Tokenizer<'_>) {
        self.summary = Some((summary.to_owned(), tokenizer.text(summary)));
    }

    /// Takes notice of what did not come out as planned.
    pub fn differs(&mut self, applied: &Applied) {
        let losses = applied.differs.losses.iter().map(|((kind, field, how), count)| {
            let field = if field.is_empty() { String::new() } else { format!(" {field}") };
            format!("{}{field} {} ×{}", kind.name(), how.name(), count.times)
        });
        self.differs = losses.chain(applied.notes.iter().map(|note| note.text.clone())).collect();
    }

    /// Says that there is nothing to do.
    pub fn nothing(&self, options: &Options, place: Where, output: &mut Output<'_>) -> Result<Status, CommandError> {
        if options.json {
            self.json(options, place, output)?;
        } else {
            output.say(&format!(
                "{}: there is nothing to compact: what was said since the last summary is all to be kept",
                self.name
            ));
        }
        Ok(Status::No)
    }

    /// Says what was done, or what would be.
    pub fn done(&self, options: &Options, place: Where, output: &mut Output<'_>) -> Result<Status, CommandError> {
        if options.json {
            self.json(options, place, output)?;
            return Ok(Status::Done);
        }
        let go = if options.dry_run { "would go" } else { "went" };
        let (gone, turns) = (counted(self.events.gone, "event"), counted(self.turns.gone, "turn"));
        output.say(&format!("{}: {gone} of {turns} {go} ({})", self.name, counted(self.tokens.gone, "token")));
        let (kept, tokens) = (counted(self.turns.kept, "turn"), counted(self.tokens.kept, "token"));
        let summary =
            self.summary.as_ref().map(|(_, tokens)| format!("; the summary has {}", counted(*tokens, "token")));
        output.say(&format!("  kept: {kept} ({tokens}){}", summary.unwrap_or_default()));
        self.differs.iter().for_each(|line| output.say(&format!("warning: not as planned: {line}")));
        if let Some(archive) = &self.archive {
            output.say(&format!("  archived in {}", archive.display()));
        }
        if self.undo.is_some() {
            output.say(&format!("  undo: steno compact {} --undo", self.name));
        }
        Ok(Status::Done)
    }

    fn json(&self, options: &Options, place: Where, output: &mut Output<'_>) -> Result<(), CommandError> {
        let split = |split: Split| format!("{{\"gone\":{},\"kept\":{}}}", split.gone, split.kept);
        let path =
            |path: &Option<PathBuf>| path.as_ref().map_or("null".to_owned(), |path| quote(&path.display().to_string()));
        let differs: Vec<String> = self.differs.iter().map(|line| quote(line)).collect();
        let (summary, summary_tokens) = match &self.summary {
            Some((text, tokens)) => (quote(text), tokens.to_string()),
            None => ("null".to_owned(), "null".to_owned()),
        };
        let json = format!(
            "{{\"input\":{},\"compacted\":{},\"dry_run\":{},\"events\":{},\"turns\":{},\"tokens\":{},\"summary\":{summary},\"summary_tokens\":{summary_tokens},\"output\":{},\"archive\":{},\"undo\":{},\"differs\":[{}],\"goes\":[{}]}}",
            quote(&self.name),
            self.summary.is_some(),
            options.dry_run,
            split(self.events),
            split(self.turns),
            split(self.tokens),
            path(&self.output),
            path(&self.archive),
            path(&self.undo),
            differs.join(","),
            self.goes.join(",")
        );
        match place {
            Where::Data => output.line(&harmless_json(&json)),
            Where::Talk => {
                output.say(&harmless_json(&json));
                Ok(())
            }
        }
    }
}

/// Says what came of an undo.
pub fn undone(
    options: &Options,
    path: &Path,
    undone: &Undone,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let name = path.display();
    let (word, said) = match undone {
        Undone::Restored { size, appended: 0, .. } => {
            ("restored", format!("restored, {} byte for byte", counted(*size, "byte")))
        }
        Undone::Restored { size, appended, .. } => (
            "restored",
            format!(
                "restored, {} byte for byte, and {} after them that came since",
                counted(*size, "byte"),
                counted(*appended, "byte")
            ),
        ),
        Undone::AsItWas => ("as_it_was", "is as it was: the compaction never came to its end".to_owned()),
        Undone::Nothing => ("nothing", "there is nothing to undo".to_owned()),
        Undone::Changed => {
            return Err(CommandError::new(format!("{name}: was changed since, and not only by lines at its end"))
                .hint(format!("what it was is kept in {name}.undo")));
        }
        Undone::Damaged { path } => {
            return Err(CommandError::new(format!("{}: what was kept is damaged", path.display()))
                .hint("it cannot be undone; remove that file to undo what was done before"));
        }
    };
    let status = super::status(undone);
    if options.json {
        output.line(&harmless_json(&format!("{{\"input\":{},\"undo\":{}}}", quote(&name.to_string()), quote(word))))?;
    } else {
        output.say(&format!("{name}: {said}"));
    }
    Ok(status)
}

/// Says what came back into a window.
pub fn brought_back(
    options: &Options,
    path: &Path,
    changed: &Changed,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let (name, back, entries) = (path.display(), changed.archived, changed.entries);
    if options.json {
        let json = format!(
            "{{\"input\":{},\"undo\":\"restored\",\"back\":{back},\"entries\":{entries}}}",
            quote(&name.to_string())
        );
        output.line(&harmless_json(&json))?;
    } else {
        output.say(&format!("{name}: {back} entries are back; the window has {entries}"));
    }
    Ok(Status::Done)
}
