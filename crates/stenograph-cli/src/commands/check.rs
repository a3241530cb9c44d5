//! `steno check`: reports a file's format, contents and oddities, and whether the laws hold for it. It reads in chunks and
//! holds only a few notes, whatever the file's size.

mod orphans;
mod secrets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stenograph::json::Draft;
use stenograph::laws::{Broken, Effort, applying};
use stenograph::model::{Event, Kind, Note, Span};
use stenograph::read::Sink;
use stenograph::text::quote;
use stenograph::{laws, wire};
use stenograph_store::Passes;

use crate::error::{CommandError, ExitStatus};
use crate::input::{self, Flow, TranscriptInput};
use crate::output::{Output, TextStyle, counted, harmless_json, harmless_line};
use crate::progress::SourceProgress;
use crate::store::SessionArgs;
use crate::table;
use crate::terminal::fitted_path;
use orphans::Orphans;

/// Check a file and report anything unusual
///
/// Prints the format of each file, the number of records and events, and notes: truncated records, unknown types, results
/// without a call, invalid UTF-8. A note never stops the read, and steno never changes the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno check session.jsonl
  steno check --laws *.jsonl            check that no byte of your files is lost
  steno check --json session.jsonl.gz   all notes as JSON
  steno check --secrets latest          likely secrets; mask with steno redact
  zcat old.gz | steno check -

Exit codes: 0 no notes, 1 notes or secrets, 2 a broken law, an unreadable file
            or an unknown format")]
pub struct Options {
    /// Files to check; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript(), required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: SessionArgs,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Test the laws on each file: reading loses nothing, hides nothing, and gives the same result for any split into chunks
    #[arg(long)]
    laws: bool,
    /// List likely secrets instead: rule, line, field and a preview that does not reveal them
    #[arg(long, conflicts_with = "laws")]
    secrets: bool,
    /// Print one JSON object per file, with all notes
    #[arg(long)]
    json: bool,
}

/// How many notes of each file people see.
const NOTES_SHOWN: usize = 20;

/// The laws hold several copies of a file in memory.
const LAWS_SIZE_MAX: u64 = 256 << 20;

/// How many positions the laws that sample positions try.
const LAWS_EFFORT: Effort = Effort { places: 64 };

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut worst = ExitStatus::Done;
    for path in &options.files {
        let status = match check(path, options, output) {
            Ok(status) => status,
            Err(CommandError::BrokenPipe) => return Err(CommandError::BrokenPipe),
            Err(error) => {
                output.error(&error);
                ExitStatus::Error
            }
        };
        worst = worst.max(status);
    }
    Ok(worst)
}

fn check(path: &Path, options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let passes = if options.laws { Passes::Many } else { Passes::Once };
    let mut input = match input::open_named(&options.place, path, options.from.as_deref(), passes, output) {
        Ok(input) => input,
        Err(error) => {
            if options.json {
                let draft = Draft::new().with("file", path.display().to_string());
                output.line(&harmless_json(&with_error(draft, &error).render(None)))?;
            }
            return Err(error);
        }
    };
    if options.secrets {
        return secrets::check(&options.place, input, options.json, output);
    }
    let progress = SourceProgress::over(&input.source, 1);
    let mut counts = FileCounts::default();
    if options.json {
        let (file, format) = (quote(&input.name()), quote(input.format.info().name));
        let mut writer = NoteWriter { counts: &mut counts, output, failed: None };
        writer.put(&format!("{{\"file\":{},\"format\":{format},\"notes\":[", harmless_json(&file)));
        let read = input.read(&mut writer, &progress, |writer| match writer.failed {
            Some(_) => Flow::Stop,
            None => Flow::Continue,
        });
        drop(progress);
        writer.counts.orphans.finish().into_iter().for_each(|note| writer.note(note));
        if let Some(error) = writer.failed {
            return Err(error);
        }
        let laws = if options.laws && read.is_ok() { Some(check_laws(&mut input)) } else { None };
        return finish_json(&counts, read, laws, output);
    }
    let read = input.read(&mut counts, &progress, |_| Flow::Continue);
    drop(progress);
    counts.orphans.finish().into_iter().for_each(|note| counts.note(note));
    counts.notes.sort_by_key(|note| note.at.offset);
    report(&input, &counts, output)?;
    read?;
    let mut status = if counts.notes_count > 0 { ExitStatus::No } else { ExitStatus::Done };
    if options.laws {
        let broken = check_laws(&mut input)?;
        report_laws(&input, &broken, output)?;
        if !broken.is_empty() {
            status = ExitStatus::Error;
        }
    }
    Ok(status)
}

fn check_laws(input: &mut TranscriptInput) -> Result<Vec<Broken>, CommandError> {
    let bytes = input.source.read_whole(LAWS_SIZE_MAX)?;
    Ok(laws::check(input.format, &bytes, LAWS_EFFORT))
}

/// The counts of one pass over a file.
#[derive(Default)]
struct FileCounts {
    records: u64,
    events: BTreeMap<Kind, u64>,
    notes: Vec<Note>,
    notes_count: u64,
    orphans: Orphans,
}

impl FileCounts {
    fn count(&mut self, event: &Event<'_>) -> Option<Note> {
        if event.part.index == 0 {
            self.records += 1;
        }
        *self.events.entry(event.kind()).or_default() += 1;
        self.orphans.event(event)
    }
}

impl Sink for FileCounts {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(note) = self.count(event) {
            self.note(note);
        }
    }

    fn note(&mut self, note: Note) {
        self.notes_count += 1;
        if self.notes.len() < NOTES_SHOWN {
            self.notes.push(note);
        }
    }
}

/// Writes notes as they are found: they may not fit in memory.
struct NoteWriter<'a, 'o> {
    counts: &'a mut FileCounts,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl NoteWriter<'_, '_> {
    fn put(&mut self, json: &str) {
        if self.failed.is_none() {
            self.failed = self.output.data().write_all(json.as_bytes()).err().map(CommandError::from);
        }
    }
}

impl Sink for NoteWriter<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(note) = self.counts.count(event) {
            self.note(note);
        }
    }

    fn note(&mut self, note: Note) {
        let comma = if self.counts.notes_count > 0 { "," } else { "" };
        self.counts.notes_count += 1;
        self.put(&format!("{comma}{}", harmless_json(&wire::note(&note))));
    }
}

fn finish_json(
    counts: &FileCounts,
    read: Result<(), CommandError>,
    laws: Option<Result<Vec<Broken>, CommandError>>,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let mut draft = Draft::new().with("notes_count", counts.notes_count).with("records", counts.records);
    draft
        .nest("events", counts.events.iter().fold(Draft::new(), |draft, (kind, count)| draft.with(kind.name(), count)));
    let mut status = if counts.notes_count > 0 { ExitStatus::No } else { ExitStatus::Done };
    let mut failed = read.err();
    match laws {
        Some(Ok(broken)) => {
            draft.set_list("laws_broken", broken.iter().map(broken_json));
            if !broken.is_empty() {
                status = ExitStatus::Error;
            }
        }
        Some(Err(error)) => failed = Some(error),
        None => {}
    }
    if let Some(error) = &failed {
        draft = with_error(draft, error);
    }
    // The object began with the list of notes.
    let rest = draft.render(None);
    output.line(&format!("],{}", harmless_json(rest.trim_start_matches('{'))))?;
    failed.map_or(Ok(status), Err)
}

fn with_error<'a>(draft: Draft<'a>, error: &CommandError) -> Draft<'a> {
    draft.with("error", error.message()).with("hints", error.hints())
}

fn broken_json(broken: &Broken) -> String {
    let mut draft = Draft::new().with("law", broken.law).with("what", &broken.what);
    if let Some(at) = broken.at {
        draft = draft.with("line", at.line).with("offset", at.offset);
    }
    draft.render(None)
}

fn report(input: &TranscriptInput, counts: &FileCounts, output: &mut Output<'_>) -> Result<(), CommandError> {
    let events: u64 = counts.events.values().sum();
    let kinds = Kind::ALL.iter().filter_map(|kind| Some(format!("{} {}", counts.events.get(kind)?, kind.name())));
    let kinds: Vec<String> = kinds.collect();
    let width = table::screen_width();
    let room = if width == usize::MAX { width } else { width.saturating_sub(1) };
    let name = output.colour().paint(TextStyle::Strong, &fitted_path(Path::new(&input.name()), room));
    let format = input.format.info().name;
    let (records, events) = (counted(counts.records, "record"), counted(events, "event"));
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let notes = match counts.notes_count {
        0 => output.colour().paint(TextStyle::Good, "no notes"),
        count => output.colour().paint(TextStyle::Warning, &counted(count, "note")),
    };
    output.line(&format!("{name}: {format}, {records}, {events}{kinds}, {notes}"))?;
    for note in &counts.notes {
        let (place, text) = (place(note.at), harmless_line(&note.text));
        output.line(&format!("  {place}: {}: {text}", note.kind.name()))?;
    }
    let more = counts.notes_count.saturating_sub(counts.notes.len() as u64);
    if more > 0 {
        output.line(&format!("  and {more} more; --json shows all"))?;
    }
    Ok(())
}

fn place(at: Span) -> String {
    format!("line {}, byte {}", at.line, at.offset)
}

fn report_laws(input: &TranscriptInput, broken: &[Broken], output: &mut Output<'_>) -> Result<(), CommandError> {
    for broken in broken {
        let at = broken.at.map(|at| format!("{}: ", place(at))).unwrap_or_default();
        let what = crate::output::harmless(&broken.what).into_owned();
        let word = output.colour().paint(TextStyle::Warning, "law broken");
        output.line(&format!("  {word}: {}: {at}{what}", broken.law))?;
    }
    if broken.is_empty() {
        let names: Vec<&str> = applying(input.format).collect();
        let word = output.colour().paint(TextStyle::Good, &format!("{} laws hold", names.len()));
        output.line(&format!("  {word}: {}", names.join(", ")))?;
    }
    Ok(())
}
