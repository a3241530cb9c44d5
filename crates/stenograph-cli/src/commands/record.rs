//! `steno record`: events from standard input, or from what a command prints, recorded as they come. What arrives is in
//! `record/feed.rs`, how bytes become events in `record/intake.rs` and `known.rs`, where they go in `record/desk.rs`. The limits
//! of a conversation that goes on are in `record/limits.rs`.

mod feed;
mod intake;
mod known;
mod limits;
mod recorders;

use std::path::PathBuf;
use std::time::Duration;

use stenograph_store::Passes;
use stenograph_store::journal::RecordingEnd;
use stenograph_store::layouts::LAYOUTS;
use stenograph_store::log::Durability;

use crate::error::{CommandError, Status};
use crate::input;
use crate::output::Output;
use feed::{Arrival, Feed};
use intake::Intake;
use recorders::Recorders;
pub use recorders::{say, site};

/// Record what an agent does, as it happens
///
/// Reads events from standard input in any line format steno reads, or runs a command and records what it prints, and writes them
/// the way another system does. An event is acknowledged when it is as durable as --sync says: by default when it is on disk. After a crash,
/// steno recover completes what is there. The end of the input means completed, Ctrl-C canceled, and a command that fails failed.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Options {
    /// Where to record: a layout, and its file or folder (can be repeated)
    #[arg(long, value_name = "LAYOUT[:PATH]", required = true)]
    to: Vec<String>,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Go on with the conversation in this file
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Say something about the recording that a header needs; @FILE as a value takes it from a file
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// When an event counts as recorded: on disk (always), on disk within a time (interval=MS), or with the system (never)
    #[arg(long, value_name = "POLICY", default_value = "always", value_parser = policy)]
    sync: Durability,
    /// Print a line for every event that is recorded, with its number and its line in the input
    #[arg(long)]
    ack: bool,
    /// Keep requests to a model and what is known of its responses, too
    #[arg(long)]
    debug: bool,
    /// Report what was recorded as one JSON object
    #[arg(long)]
    json: bool,
    /// The command to run; what it prints is recorded and passed on
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

fn after_help() -> String {
    let mut help = String::from("Layouts:\n");
    for layout in LAYOUTS {
        let info = layout.info();
        help.push_str(&format!("  {:<14} {}\n  {:<14} PATH: {}\n", info.name, info.title, "", info.path));
        for (key, meaning) in info.keys {
            help.push_str(&format!("  {:<14} --set {key}=…  {meaning}\n", ""));
        }
    }
    help.push_str(
        "
Examples:
  steno record --to steno:run.steno.jsonl --ack -- claude -p 'fix the test' --output-format stream-json --verbose
  my-agent | steno record --to steno:run.steno.jsonl

Exit codes: 0 recorded, 2 error, 130 or 143 canceled; with a command, its own",
    );
    help
}

fn policy(text: &str) -> Result<Durability, String> {
    const INTERVAL: Duration = Duration::from_millis(200);
    match text.split_once('=').unwrap_or((text, "")) {
        ("always", "") => Ok(Durability::Always),
        ("never", "") => Ok(Durability::Never),
        ("interval", "") => Ok(Durability::Interval(INTERVAL)),
        ("interval", millis) => match millis.trim_end_matches("ms").parse() {
            Ok(millis @ 1..) => Ok(Durability::Interval(Duration::from_millis(millis))),
            _ => Err(format!("{millis} is not a number of milliseconds")),
        },
        _ => Err("it is always, interval, interval=MS or never".to_owned()),
    }
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    if let Some(load) = &options.load {
        // Before anything is begun: what cannot be loaded leaves no trace.
        input::open(load, None, Passes::Once)?;
    }
    if let Some(program) = options.command.first() {
        feed::look_for(program)?;
    }
    let mut desk = Recorders::open(options)?;
    match attend(options, &mut desk, output) {
        Ok(Ended { end, code }) => {
            desk.finish(&end)?.report(options, output)?;
            Ok(Status::Code(code))
        }
        Err(error) if desk.is_untouched() => {
            // Nothing was recorded: an id or a name that was taken is free again.
            let _ = desk.discard();
            Err(error)
        }
        Err(error) => {
            // What was recorded until then is completed all the same; the error is what is told.
            let _ = desk.finish(&RecordingEnd::Failed(error.message().to_owned()));
            Err(error)
        }
    }
}

/// From the first event to the last.
fn attend(options: &Options, desk: &mut Recorders, output: &mut Output<'_>) -> Result<Ended, CommandError> {
    desk.load(options.load.as_deref(), output)?;
    let mut intake = Intake::new(options.from.as_deref(), &options.command)?;
    let mut feed = match options.command.split_first() {
        None => Feed::standard_input()?,
        Some((program, arguments)) => Feed::command(program, arguments)?,
    };
    desk.say_remarks(output);
    listen(&mut feed, &mut intake, desk, output)
}

/// How it came to an end, and what to say to whoever waits for this process.
struct Ended {
    end: RecordingEnd,
    code: u8,
}

fn listen(
    feed: &mut Feed,
    intake: &mut Intake,
    desk: &mut Recorders,
    output: &mut Output<'_>,
) -> Result<Ended, CommandError> {
    loop {
        match feed.next() {
            Arrival::Bytes(bytes) => {
                if feed.passes_on() {
                    // What the command says is passed on first: it must not notice that somebody listens. When nobody takes it
                    // any more it is still recorded.
                    let _ = std::io::Write::write_all(output.data(), &bytes);
                    let _ = output.flush();
                }
                intake.feed(&bytes)?;
                desk.take(intake.arrived(), output)?;
            }
            Arrival::End(exit) => {
                intake.end()?;
                desk.take(intake.arrived(), output)?;
                return Ok(match exit {
                    feed::Exit::Done => Ended { end: RecordingEnd::Completed, code: 0 },
                    feed::Exit::Failed { code, said } => Ended { end: RecordingEnd::Failed(said), code },
                    feed::Exit::Canceled { code } => Ended { end: RecordingEnd::Canceled, code },
                });
            }
            Arrival::Failed(error) => {
                return Err(CommandError::new(format!("standard input cannot be read: {error}")));
            }
        }
    }
}
