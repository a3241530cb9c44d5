//! How a command ends: a status when it ran, an error when it could not. The kind decides the exit code, hints tell the way out.
//! That what was asked for is not there is no error, but a plain no.

use std::io;
use std::process::ExitCode;

/// How a command that ran ended. The worst of several files counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Done, and all is well.
    Done,
    /// No: notes were found, or nothing was.
    No,
    /// Something failed; it was said already.
    Error,
    /// Whatever a command that was run ended with.
    Code(u8),
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Done => 0,
            Status::No => 1,
            Status::Error => 2,
            Status::Code(code) => code,
        })
    }
}

/// Why a command could not go on.
#[derive(Debug)]
pub enum CommandError {
    /// Nobody reads the output any more: a quiet end.
    BrokenPipe,
    /// What was asked for is not there: a no.
    Nothing {
        /// What is not there.
        message: String,
        /// The ways out.
        hints: Vec<String>,
    },
    /// Something to be told.
    Told {
        /// What is wrong.
        message: String,
        /// The ways out.
        hints: Vec<String>,
    },
}

impl CommandError {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> CommandError {
        CommandError::Told { message: message.into(), hints: Vec::new() }
    }

    /// A no without a hint.
    pub fn nothing(message: impl Into<String>) -> CommandError {
        CommandError::Nothing { message: message.into(), hints: Vec::new() }
    }

    /// The same error with one more hint.
    pub fn hint(mut self, hint: impl Into<String>) -> CommandError {
        match &mut self {
            CommandError::BrokenPipe => {}
            CommandError::Nothing { hints, .. } | CommandError::Told { hints, .. } => hints.push(hint.into()),
        }
        self
    }

    /// How a command ends that ends with it.
    pub fn status(&self) -> Status {
        match self {
            CommandError::BrokenPipe => Status::Done,
            CommandError::Nothing { .. } => Status::No,
            CommandError::Told { .. } => Status::Error,
        }
    }

    /// What is wrong; empty for a quiet end.
    pub fn message(&self) -> &str {
        match self {
            CommandError::BrokenPipe => "",
            CommandError::Nothing { message, .. } | CommandError::Told { message, .. } => message,
        }
    }

    /// The ways out.
    pub fn hints(&self) -> &[String] {
        match self {
            CommandError::BrokenPipe => &[],
            CommandError::Nothing { hints, .. } | CommandError::Told { hints, .. } => hints,
        }
    }
}

impl From<&stenograph_store::Error> for CommandError {
    fn from(error: &stenograph_store::Error) -> CommandError {
        let told = CommandError::new(error.to_string());
        match error.hint() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}

impl From<stenograph_store::Error> for CommandError {
    fn from(error: stenograph_store::Error) -> CommandError {
        CommandError::from(&error)
    }
}

impl From<io::Error> for CommandError {
    /// What the store could not do says so itself; everything else happened on standard output.
    fn from(error: io::Error) -> CommandError {
        match stenograph_store::Error::inside(&error) {
            Some(inside) => CommandError::from(inside),
            None if error.kind() == io::ErrorKind::BrokenPipe => CommandError::BrokenPipe,
            None => CommandError::new(format!("standard output cannot be written: {error}")),
        }
    }
}
