//! `steno record`: records events from standard input, or from the output of a command, as they arrive. `record/feed.rs`
//! receives bytes, `record/intake.rs` and `record/known_input.rs` turn them into events, `record/recorders.rs` writes them.
//! `record/limits.rs` applies the limits of a continued conversation.

mod feed;
mod intake;
mod known_input;
mod limits;
mod recorders;

use std::path::PathBuf;
use std::time::Duration;

use stenograph_store::Passes;
use stenograph_store::journal::RecordingEnd;
use stenograph_store::layouts::LAYOUTS;
use stenograph_store::log::Durability;

use crate::error::{CommandError, ExitStatus};
use crate::input;
use crate::output::Output;
use crate::terminal::wrapped_text;
use feed::{Arrival, Feed};
use intake::Intake;
use recorders::Recorders;
pub use recorders::{environment, print_warning};

/// Record an agent while it runs
///
/// Reads events from standard input in any line format, or runs a command and records its output. Writes the events in one or
/// more layouts: the files that another system would write. steno acknowledges an event when it is as safe as --sync
/// requires: by default, on disk. After a crash, steno recover completes the recording.
///
/// A recording ends as completed at the end of the input, as failed if the command fails, as canceled on Ctrl-C, and as
/// interrupted if steno itself was killed.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Options {
    /// Layout to write, with its file or folder (repeatable)
    #[arg(long, value_name = "LAYOUT[:PATH]", required = true)]
    to: Vec<String>,
    /// Read as this line format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::line_format_name())]
    from: Option<String>,
    /// Continue the conversation in this file
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Set an option of the layout, listed below (repeatable); @FILE reads the value from a file
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// When to acknowledge an event: when it is on disk (always), when the system has it and writes it to disk within MS milliseconds
    /// (interval=MS; interval means 200), or when the system has it (never)
    #[arg(long, value_name = "POLICY", default_value = "always", value_parser = policy)]
    sync: Durability,
    /// Print one line per acknowledged event, with its number and input line
    #[arg(long)]
    ack: bool,
    /// Also record requests to the model and details of its responses
    #[arg(long)]
    debug: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Command to run; its standard output is recorded and passed on
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// The width of the help: the terminal is not known when it is made.
const HELP_WIDTH: usize = 80;

fn after_help() -> String {
    let mut help = String::from("Layouts:\n");
    for layout in LAYOUTS {
        let info = layout.info();
        // The title has a line of its own, so that the lines of a long one are indented alike.
        let mut lines = vec![format!("  {}", info.name), format!("      {}", info.title)];
        lines.push(format!("      PATH: {}", info.path));
        lines.extend(info.keys.iter().map(|(key, meaning)| format!("      --set {key}=…  {meaning}")));
        for line in lines {
            help.push_str(&wrapped_text(&line, HELP_WIDTH));
            help.push('\n');
        }
    }
    help.push_str(
        "
Examples:
  steno record --to steno:run.steno.jsonl --ack -- \\
    claude -p 'fix the test' --output-format stream-json --verbose
  my-agent | steno record --to steno:run.steno.jsonl

Exit codes: 0 success, 2 error, 129, 130 or 143 canceled by a signal
            With CMD: the exit code of the command",
    );
    help
}

fn policy(text: &str) -> Result<Durability, String> {
    const INTERVAL: Duration = Duration::from_millis(200);
    match text.split_once('=').unwrap_or((text, "")) {
        ("always", "") => Ok(Durability::Always),
        ("never", "") => Ok(Durability::Never),
        ("interval", "") => Ok(Durability::Interval(INTERVAL)),
        ("interval", millis) => match millis.strip_suffix("ms").unwrap_or(millis).parse() {
            Ok(millis @ 1..) => Ok(Durability::Interval(Duration::from_millis(millis))),
            _ => Err(format!("{millis} is not a number of milliseconds")),
        },
        _ => Err("expected always, interval, interval=MS or never".to_owned()),
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if let Some(load) = &options.load {
        // Checked first, so that an unreadable file leaves no trace.
        input::open(load, None, Passes::Once)?;
    }
    if let Some(program) = options.command.first() {
        feed::check_exists(program)?;
    }
    let mut recorders = Recorders::open(options)?;
    match record_all(options, &mut recorders, output) {
        Ok(Ended { end, code }) => {
            recorders.finish(&end)?.report(options, output)?;
            Ok(ExitStatus::Code(code))
        }
        Err(error) if recorders.is_untouched() => {
            // Nothing was recorded: the reserved id or name is free again.
            let _ = recorders.discard();
            Err(error)
        }
        Err(error) => {
            // Completes what was recorded so far; reports the first error.
            let _ = recorders.finish(&RecordingEnd::Failed(error.message().to_owned()));
            Err(error)
        }
    }
}

fn record_all(options: &Options, recorders: &mut Recorders, output: &mut Output<'_>) -> Result<Ended, CommandError> {
    recorders.load(options.load.as_deref(), output)?;
    let mut intake = Intake::new(options.from.as_deref(), &options.command)?;
    let mut feed = match options.command.split_first() {
        None => Feed::standard_input()?,
        Some((program, arguments)) => Feed::command(program, arguments)?,
    };
    recorders.print_warnings(output);
    record_arrivals(&mut feed, &mut intake, recorders, output)
}

/// How the recording ended, and the exit code.
struct Ended {
    end: RecordingEnd,
    code: u8,
}

fn record_arrivals(
    feed: &mut Feed,
    intake: &mut Intake,
    recorders: &mut Recorders,
    output: &mut Output<'_>,
) -> Result<Ended, CommandError> {
    loop {
        match feed.next() {
            Arrival::Bytes(bytes) => {
                if feed.passes_on() {
                    // Passes the output on first, so that the command does not notice the recording. It is recorded even if
                    // nobody reads it any more.
                    let _ = std::io::Write::write_all(output.data(), &bytes);
                    let _ = output.flush();
                }
                intake.feed(&bytes)?;
                recorders.take(intake.arrived(), output)?;
            }
            Arrival::End(exit) => {
                intake.end()?;
                recorders.take(intake.arrived(), output)?;
                return Ok(match exit {
                    feed::Exit::Done => Ended { end: RecordingEnd::Completed, code: 0 },
                    feed::Exit::Failed { code, message } => Ended { end: RecordingEnd::Failed(message), code },
                    feed::Exit::Canceled { code } => Ended { end: RecordingEnd::Canceled, code },
                });
            }
            Arrival::Failed(error) => {
                return Err(CommandError::new(format!("cannot read the events to record: {error}")));
            }
        }
    }
}
