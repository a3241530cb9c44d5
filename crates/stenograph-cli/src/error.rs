//! How a command ends: with a status if it ran, with an error if it could not. The variant decides the exit code; hints suggest
//! a remedy. A missing result is not an error but a plain no.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use stenograph_store::{Place, Problem, databases};

use crate::output::shortened;
use crate::{clock, table};

/// The result of a command that ran. Of several files, the worst result counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    Done,
    /// No: it found notes, or it found nothing.
    No,
    /// Something failed, and the message is printed already.
    Error,
    /// The exit code of a program that the command ran.
    Code(u8),
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(match status {
            ExitStatus::Done => 0,
            ExitStatus::No => 1,
            ExitStatus::Error => 2,
            ExitStatus::Code(code) => code,
        })
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub enum CommandError {
    /// Nobody reads the output any more; ends silently.
    BrokenPipe,
    /// The requested thing does not exist: the answer is no.
    NotFound {
        message: String,
        hints: Vec<String>,
    },
    Failure {
        message: String,
        hints: Vec<String>,
    },
}

impl CommandError {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> CommandError {
        CommandError::Failure { message: message.into(), hints: Vec::new() }
    }

    /// A not-found answer without a hint.
    pub fn not_found(message: impl Into<String>) -> CommandError {
        CommandError::NotFound { message: message.into(), hints: Vec::new() }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> CommandError {
        match &mut self {
            CommandError::BrokenPipe => {}
            CommandError::NotFound { hints, .. } | CommandError::Failure { hints, .. } => hints.push(hint.into()),
        }
        self
    }

    /// The exit status of a command that ends with this error.
    pub fn status(&self) -> ExitStatus {
        match self {
            CommandError::BrokenPipe => ExitStatus::Done,
            CommandError::NotFound { .. } => ExitStatus::No,
            CommandError::Failure { .. } => ExitStatus::Error,
        }
    }

    /// The message; empty for a broken pipe.
    pub fn message(&self) -> &str {
        match self {
            CommandError::BrokenPipe => "",
            CommandError::NotFound { message, .. } | CommandError::Failure { message, .. } => message,
        }
    }

    pub fn hints(&self) -> &[String] {
        match self {
            CommandError::BrokenPipe => &[],
            CommandError::NotFound { hints, .. } | CommandError::Failure { hints, .. } => hints,
        }
    }
}

impl From<&stenograph_store::Error> for CommandError {
    fn from(error: &stenograph_store::Error) -> CommandError {
        let mut failure = CommandError::new(error.to_string());
        if let (Problem::Conversations { count }, Place::Path(path)) = (error.problem, &error.place) {
            failure = with_conversations(failure, path, count);
        }
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// How many conversations of a database an error lists.
const CONVERSATIONS_MAX: usize = 10;

/// The maximum length of a title beside a conversation.
const TITLE_LENGTH_MAX: usize = 50;

/// Adds the conversations of a database to an error, the last changed first.
fn with_conversations(mut error: CommandError, path: &Path, count: u64) -> CommandError {
    for conversation in databases::conversations(path).ok().flatten().unwrap_or_default().iter().take(CONVERSATIONS_MAX)
    {
        let when = table::ago(clock::millis() - conversation.changed_ns / 1_000_000);
        let title = shortened(conversation.title.as_deref().unwrap_or_default(), TITLE_LENGTH_MAX).into_owned();
        let name = databases::conversation_path(path, &conversation.name);
        error = error.hint(format!("{}  {when}  {title}", name.display()).trim_end().to_owned());
    }
    match count.saturating_sub(CONVERSATIONS_MAX as u64) {
        0 => error,
        more => error.hint(format!("and {more} more; steno index lists them all with steno list")),
    }
}

impl From<stenograph_store::Error> for CommandError {
    fn from(error: stenograph_store::Error) -> CommandError {
        CommandError::from(&error)
    }
}

impl From<io::Error> for CommandError {
    /// An error of the store describes itself; every other I/O error concerns standard output.
    fn from(error: io::Error) -> CommandError {
        match stenograph_store::Error::inside(&error) {
            Some(inside) => CommandError::from(inside),
            None if error.kind() == io::ErrorKind::BrokenPipe => CommandError::BrokenPipe,
            None => CommandError::new(format!("standard output: cannot write: {error}")),
        }
    }
}
