//! Where a summary comes from: it is given, or a command makes it of what goes. A command that fails, takes too long or says nothing
//! changes nothing.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use stenograph::model::{Event, Outline};
use stenograph::{wire, write};
use stenograph_store::{Passes, Source};

use crate::error::CommandError;
use crate::input::format_named;

/// How long a summary may be. No model takes as much.
const SIZE_MAX: u64 = 16 << 20;

/// How often a command is looked at that has closed its output and still runs.
const LOOK: Duration = Duration::from_millis(10);

/// What may be typed about a summary.
#[derive(Debug, clap::Args)]
pub struct Wanted {
    /// The summary; @FILE takes it from a file
    #[arg(long, value_name = "TEXT", conflicts_with = "summarise")]
    summary: Option<String>,
    /// A command of the shell that reads what goes from standard input, an event a line, and prints the summary
    #[arg(long, visible_alias = "summarize", value_name = "CMD")]
    summarise: Option<String>,
    /// What the command reads [default: native events, as steno show --json prints them]
    #[arg(long = "as", value_name = "FORMAT", value_parser = crate::args::format_name(), requires = "summarise")]
    spelling: Option<String>,
    /// How long the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

/// What a summary stands for.
pub struct Summary {
    /// The events.
    pub events: Vec<Event<'static>>,
    /// The format they come from.
    pub origin: &'static str,
}

impl Summary {
    /// The summary.
    pub fn make(&self, wanted: &Wanted) -> Result<String, CommandError> {
        let summary = match (&wanted.summary, &wanted.summarise) {
            (Some(text), _) => given(text)?,
            (None, Some(command)) => {
                let input = self.spelled(wanted.spelling.as_deref())?;
                summarised(command, input, Duration::from_secs(wanted.timeout))?
            }
            (None, None) => {
                return Err(CommandError::new("there is no summary").hint(
                    "give one with --summary TEXT or --summary @FILE, or a command that makes one with --summarise CMD",
                ));
            }
        };
        match summary.trim() {
            "" => Err(CommandError::new("the summary is empty; nothing was changed")
                .hint("what goes would be lost to whoever goes on")),
            summary => Ok(summary.to_owned()),
        }
    }

    fn spelled(&self, spelling: Option<&str>) -> Result<Vec<u8>, CommandError> {
        match spelling {
            Some(name) => Ok(write::all(format_named(name)?, &Outline::of(self.origin, &self.events), &self.events)),
            None => Ok(self.events.iter().flat_map(|event| (wire::event(event) + "\n").into_bytes()).collect()),
        }
    }
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
    String::from_utf8(bytes).map_err(|_| CommandError::new(format!("{who}: the summary is not UTF-8 text")))
}

/// What a command prints that reads `input`. It may read and print in any order: both happen at once.
fn summarised(command: &str, input: Vec<u8>, patience: Duration) -> Result<String, CommandError> {
    let deadline = Instant::now() + patience;
    let shell = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = shell.map_err(|error| CommandError::new(format!("sh: cannot be run: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read all of it may still know what to say.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let (sender, printed) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(SIZE_MAX + 1).read_to_end(&mut bytes);
            let _ = sender.send(read.map(|_| bytes));
        });
    }
    let ended = listen(&mut child, &printed, deadline);
    if ended.is_err() {
        // Whatever it still does is of no use to anybody.
        let _ = child.kill();
        let _ = child.wait();
    }
    let (bytes, status) = ended?;
    if !status.success() {
        return Err(CommandError::new(format!("the command that summarises ended with {status}; nothing was changed"))
            .hint("try it by hand: steno show FILE --json | CMD"));
    }
    decoded(bytes, "the command that summarises")
}

type Printed = std::io::Result<Vec<u8>>;

fn listen(
    child: &mut Child,
    printed: &Receiver<Printed>,
    deadline: Instant,
) -> Result<(Vec<u8>, ExitStatus), CommandError> {
    let late = || {
        CommandError::new("the command that summarises took too long; nothing was changed")
            .hint("give it more time with --timeout SECONDS")
    };
    let lost =
        |error: &dyn std::fmt::Display| CommandError::new(format!("the command that summarises was lost: {error}"));
    let left = deadline.saturating_duration_since(Instant::now());
    let bytes = match printed.recv_timeout(left) {
        Ok(read) => read.map_err(|error| lost(&error))?,
        Err(RecvTimeoutError::Timeout) => return Err(late()),
        Err(error @ RecvTimeoutError::Disconnected) => return Err(lost(&error)),
    };
    if bytes.len() as u64 > SIZE_MAX {
        return Err(CommandError::new(format!(
            "the summary is larger than {} MiB; nothing was changed",
            SIZE_MAX >> 20
        )));
    }
    loop {
        match child.try_wait().map_err(|error| lost(&error))? {
            Some(status) => return Ok((bytes, status)),
            None if Instant::now() >= deadline => return Err(late()),
            None => std::thread::sleep(LOOK),
        }
    }
}
