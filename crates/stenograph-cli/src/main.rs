//! The command `steno`: takes the arguments, runs one command, and turns what came of it into an exit code.
//! What a command does is in `commands/`, one file each.

mod args;
mod clock;
mod commands;
mod config;
mod context;
mod conversation;
mod csv;
mod edited;
mod error;
mod home;
mod input;
mod last;
mod live;
mod memory;
mod output;
mod output_file;
mod prices;
mod progress;
mod store;
mod table;
mod tokenizer;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use error::{CommandError, Status};
use output::Output;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help that nobody reads to its end is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if args.utc {
        clock::use_utc();
    }
    let mut output = Output::standard();
    let ended = commands::run(&args.command, &mut output).and_then(|status| match (status, output.flush()) {
        // How a command that was run ended is told, whoever has stopped reading what it said.
        (Status::Code(_), _) => Ok(status),
        (_, flushed) => flushed.map(|()| status),
    });
    match ended {
        Ok(status) => status.into(),
        Err(CommandError::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            error.status().into()
        }
    }
}
