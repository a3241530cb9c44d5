//! Obtains a summary: from the arguments, or from a command that reads the removed events (`summariser.rs`). An empty summary
//! is refused.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use stenograph::ledger::CountedOutline;
use stenograph::model::{Event, Outline};
use stenograph::wire;
use stenograph::write::{OutputPiece, Writing};
use stenograph_store::{Passes, Source, Spool};

use super::summariser;
use crate::error::CommandError;
use crate::input::format_named;

/// The size limit of a summary. No model accepts that much.
const SIZE_MAX: u64 = 16 << 20;

/// What may be typed about a summary.
#[derive(Debug, clap::Args)]
pub struct SummaryArgs {
    /// Text of the summary; @FILE reads it from a file
    #[arg(long, value_name = "TEXT", conflicts_with = "summarise")]
    summary: Option<String>,
    /// Shell command that reads the old events from standard input, one per line, and prints the summary
    #[arg(long, visible_alias = "summarize", value_name = "CMD")]
    summarise: Option<String>,
    /// Format that the command reads [default: events as in steno show --json]
    #[arg(long = "as", value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true, requires = "summarise")]
    spelling: Option<String>,
    /// Time limit of the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

/// Calls a closure with each event; callable repeatedly.
type EachEvent<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&Event<'_>)) -> io::Result<()>;

/// The events to summarise.
pub struct EventsToSummarise<'a> {
    pub each: EachEvent<'a>,
    /// The format of the events.
    pub origin: &'static str,
}

impl EventsToSummarise<'_> {
    pub fn make(&mut self, wanted: &SummaryArgs) -> Result<String, CommandError> {
        let summary = match (&wanted.summary, &wanted.summarise) {
            (Some(text), _) => given(text)?,
            (None, Some(command)) => {
                let input = self.command_input(wanted.spelling.as_deref())?;
                let printed = summariser::run(command, input, Duration::from_secs(wanted.timeout), SIZE_MAX)?;
                decoded(printed, "the --summarise command")?
            }
            (None, None) => {
                return Err(CommandError::new("no summary given")
                    .hint("use --summary TEXT, --summary @FILE or --summarise CMD"));
            }
        };
        match summary.trim() {
            "" => Err(CommandError::new("the summary is empty; nothing was changed")
                .hint("without a summary, the agent would lose the old part")),
            summary => Ok(summary.to_owned()),
        }
    }

    /// The input of the command. It may be larger than memory.
    fn command_input(&mut self, spelling: Option<&str>) -> Result<Spool, CommandError> {
        let mut spool = Spool::new()?;
        let Some(name) = spelling else {
            self.write(&mut spool, &mut |event| (wire::event(event) + "\n").into_bytes())?;
            return Ok(spool);
        };
        let format = format_named(name)?;
        let mut outline = CountedOutline::default();
        (self.each)(&mut |event| outline.add(event))?;
        let outline = Outline { origin: self.origin, ..outline.finish() };
        let mut writing = Writing::new(format, &outline);
        self.write(&mut spool, &mut |event| joined(writing.event(event)))?;
        spool.write_all(&joined(writing.finish()))?;
        Ok(spool)
    }

    fn write(&mut self, spool: &mut Spool, format_event: &mut dyn FnMut(&Event<'_>) -> Vec<u8>) -> io::Result<()> {
        let mut written = Ok(());
        (self.each)(&mut |event| {
            if written.is_ok() {
                written = spool.write_all(&format_event(event));
            }
        })?;
        written
    }
}

fn joined(pieces: Vec<OutputPiece>) -> Vec<u8> {
    let pieces = pieces.into_iter().map(|(OutputPiece::Record(piece) | OutputPiece::Glue(piece))| piece);
    pieces.flatten().collect()
}

fn given(text: &str) -> Result<String, CommandError> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let source = match path {
        "-" => Source::standard_input(Passes::Once),
        path => Source::open(Path::new(path), Passes::Once),
    };
    decoded(source?.read_whole(SIZE_MAX)?, path)
}

fn decoded(bytes: Vec<u8>, who: &str) -> Result<String, CommandError> {
    String::from_utf8(bytes).map_err(|_| {
        CommandError::new(format!("{who}: the summary is not UTF-8 text; nothing was changed"))
            .hint("convert it with iconv -t UTF-8")
    })
}
