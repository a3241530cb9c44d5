//! `steno convert`: converts a file to another format and reports the losses. Data and report never share a stream.

use std::io::Write;
use std::path::PathBuf;

use stenograph::convert::{self, Carry, ConversionMethod, Outcome};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::json::Draft;
use stenograph::wire;
use stenograph_store::{NewFile, Passes, Spool};

use crate::error::{CommandError, ExitStatus};
use crate::input::{self, TranscriptInput};
use crate::output::{Output, counted, harmless_json};
use crate::output_file::OutputFile;
use crate::progress::{ProgressSource, SourceProgress};
use crate::redaction::{RedactArgs, Redaction};
use crate::store::SessionArgs;

/// Convert a transcript to another format and report losses
///
/// steno measures what the conversion loses: it reads the output back and compares it with the input, event by event. It prints
/// one line per kind of event on standard error. With --json the report is one JSON object, on standard output if -o names a
/// file, else on standard error.
///
/// A file that already has the format is copied byte for byte. A file with an embedded source (see --carry) is restored from
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno convert session.jsonl --to steno -o session.steno.jsonl
  steno convert session.jsonl --to steno --carry -o out.jsonl   embed the source
  steno convert session.jsonl --to steno --strict -o out.jsonl  fail on any loss
  steno convert session.jsonl --to steno --redact -o out.jsonl  mask secrets
  zcat old.gz | steno convert - --to steno | wc -l

Exit codes: 0 success, even with losses; 2 error, or any loss with --strict")]
pub struct Options {
    /// File to convert; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    input: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Format to write (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::target_format_name(), hide_possible_values = true)]
    to: String,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    output: OutputFile,
    /// Write nothing and exit with 2 if anything would be lost
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    redact: RedactArgs,
    /// Embed the source in the output, so that converting back restores the same bytes
    #[arg(long)]
    carry: bool,
    /// Print the report with all losses as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let to = input::format_named(&options.to)?;
    let carry = if options.carry { Carry::Embed } else { Carry::Omit };
    if carry == Carry::Embed && !to.info().traits.carries {
        let carriers = FORMATS.iter().map(|format| format.info()).filter(|info| info.traits.carries);
        let carriers: Vec<&str> = carriers.map(|info| info.name).collect();
        return Err(CommandError::new(stenograph::Error::NoRoomToCarry(to.info().name).to_string())
            .hint(format!("formats that can embed a source: {}", carriers.join(", "))));
    }
    options.output.must_not_fill_terminal(output)?;
    let mut input = input::open_named(&options.place, &options.input, options.from.as_deref(), Passes::Many, output)?;
    input::say_history(&input, output);
    let redaction = match options.redact.is_given() {
        true => {
            let mut redaction = Redaction::new(&options.place)?;
            redaction.search(&mut input, &mut |_, _| {})?;
            input = redaction.apply(input)?;
            Some(redaction)
        }
        false => None,
    };
    let mut target = ConvertOutput::open(options, &input)?;
    let progress = match target {
        ConvertOutput::Standard => SourceProgress::none(),
        ConvertOutput::Buffered(_) | ConvertOutput::File(_) => SourceProgress::over(&input.source, 2),
    };
    let format = input.format;
    let mut source = ProgressSource { source: &mut input.source, progress: &progress };
    let done = convert::convert(format, &mut source, to, target.writer(output), carry);
    drop(progress);
    let outcome = done.map_err(|error| conversion_error(error, input.source.place()))?;
    let lost = is_lossy(&outcome);
    let stream = if matches!(target, ConvertOutput::File(_)) { ReportStream::Stdout } else { ReportStream::Stderr };
    if options.strict && lost {
        report(options, &input, to, &outcome, stream, output)?;
        return Err(CommandError::new(
            "the conversion would lose content, and --strict forbids it; nothing was written",
        )
        .hint("omit --strict to convert anyway; --carry embeds the source so that it can be restored"));
    }
    target.commit(output)?;
    report(options, &input, to, &outcome, stream, output)?;
    if let Some(redaction) = redaction {
        redaction.report(output);
    }
    Ok(ExitStatus::Done)
}

/// The error that ended a conversion. An error of the library says why a source cannot be carried or merged.
pub fn conversion_error(error: stenograph::Error, place: &dyn std::fmt::Display) -> CommandError {
    match error {
        stenograph::Error::Io(error) => CommandError::from(error),
        other => {
            let failure = CommandError::new(format!("{place}: {other}"));
            match other.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    }
}

/// Where the output goes.
enum ConvertOutput {
    /// Standard output, unbuffered.
    Standard,
    /// Standard output, once the result is known to be acceptable.
    Buffered(Spool),
    File(NewFile),
}

impl ConvertOutput {
    fn open(options: &Options, input: &TranscriptInput) -> Result<ConvertOutput, CommandError> {
        match options.output.create(&[&input.source])? {
            Some(file) => Ok(ConvertOutput::File(file)),
            None if options.strict => Ok(ConvertOutput::Buffered(Spool::new()?)),
            None => Ok(ConvertOutput::Standard),
        }
    }

    fn writer<'a>(&'a mut self, output: &'a mut Output<'_>) -> &'a mut dyn Write {
        match self {
            ConvertOutput::Standard => output.transcript(),
            ConvertOutput::Buffered(spool) => spool,
            ConvertOutput::File(file) => file,
        }
    }

    fn commit(self, output: &mut Output<'_>) -> Result<(), CommandError> {
        match self {
            ConvertOutput::Standard => output.flush(),
            ConvertOutput::Buffered(spool) => {
                spool.copy_to(output.transcript())?;
                output.flush()
            }
            ConvertOutput::File(file) => Ok(file.commit()?),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportStream {
    /// Standard output, which is free.
    Stdout,
    /// Standard error, because standard output has the data.
    Stderr,
}

fn is_lossy(outcome: &Outcome) -> bool {
    // A missing piece of the source exists nowhere else.
    let missing = matches!(outcome.method, ConversionMethod::Merged { missing, .. } if missing > 0);
    missing || outcome.losses.is_lossy()
}

fn report(
    options: &Options,
    input: &TranscriptInput,
    to: &'static dyn Format,
    outcome: &Outcome,
    stream: ReportStream,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let from = input.format;
    if options.json {
        let json = report_json(from, to, outcome);
        match stream {
            ReportStream::Stdout => output.line(&harmless_json(&json))?,
            ReportStream::Stderr => output.say(&harmless_json(&json)),
        }
        return Ok(());
    }
    let (from, to) = (from.info().name, to.info().name);
    match outcome.method {
        ConversionMethod::Copied => output.say(&format!("already {from}: copied byte for byte")),
        ConversionMethod::Restored => {
            output.say(&format!("{to} restored byte for byte from the source embedded in the {from} file"));
        }
        ConversionMethod::Merged { edited, added, missing } => {
            output.say(&format!("{to} restored from the source embedded in the {from} file"));
            let changes = [(edited, "edited"), (added, "added")].into_iter().filter(|(count, _)| *count > 0);
            let changes: Vec<String> =
                changes.map(|(count, what)| format!("{} {what} since", counted(count, "record"))).collect();
            if !changes.is_empty() {
                output.say(&format!("{}; the rest is byte for byte", changes.join(", ")));
            }
            if missing > 0 {
                let are = if missing == 1 { "is" } else { "are" };
                output.say(&format!("{} of the embedded source {are} missing", counted(missing, "piece")));
            }
            outcome.losses.summary().iter().for_each(|line| output.say(&format!("  {line}")));
        }
        ConversionMethod::Written => {
            output.say(&format!("{from} to {to}: {}", counted(outcome.outline.events, "event")));
            outcome.losses.summary().iter().for_each(|line| output.say(&format!("  {line}")));
        }
    }
    match outcome.carries.as_deref() {
        Some(of) if of == from => {
            output.say(&format!("the source is embedded: converting back to {from} restores it byte for byte"));
        }
        Some(of) => {
            let source = format!("the {of} source embedded in the {from} file is embedded here too");
            output.say(&format!("{source}: converting to {of} restores it byte for byte"));
        }
        None if options.carry => output.say(&format!("nothing is embedded: the output is the {to} source itself")),
        None => {}
    }
    if let Some(note) = outcome.output_notes.first() {
        let count = counted(outcome.output_notes.len() as u64, "record");
        let first_note = crate::output::harmless_line(&note.text);
        output.say(&format!("warning: {to} may reject the output ({count}): {first_note}"));
    }
    if outcome.notes_count > 0 {
        let notes = counted(outcome.notes_count, "note");
        output.say(&format!("{notes} about the source: run steno check {}", input.name()));
    }
    Ok(())
}

fn report_json(from: &dyn Format, to: &dyn Format, outcome: &Outcome) -> String {
    let mut report = Draft::new();
    report.set_str("from", from.info().name);
    report.set_str("to", to.info().name);
    match outcome.method {
        ConversionMethod::Written => report.set_str("way", "written"),
        ConversionMethod::Copied => report.set_str("way", "copied"),
        ConversionMethod::Restored => report.set_str("way", "restored"),
        ConversionMethod::Merged { edited, added, missing } => {
            report.set_str("way", "merged");
            for (key, count) in [("edited", edited), ("added", added), ("missing", missing)] {
                report.set_number(key, Some(count));
            }
        }
    }
    report.set_opt("carries", outcome.carries.as_deref());
    report.set("lossy", is_lossy(outcome).to_string());
    report.set("report", outcome.losses.to_json());
    report.set_number("notes_count", Some(outcome.notes_count));
    let notes: Vec<String> = outcome.notes.iter().map(wire::note).collect();
    report.set("notes", format!("[{}]", notes.join(",")));
    report.render(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_own_hint() {
        let hints = |error| conversion_error(error, &"a").hints().join(" ");
        assert!(hints(stenograph::Error::TooLargeToCarry).contains("without embedding"));
        assert!(hints(stenograph::Error::TooLargeToMerge).contains("the original file"));
    }
}
