//! The command `steno`: parses arguments, runs one command, and turns its result into an exit code. Each file in `commands/`
//! implements one command.

mod args;
mod clock;
mod commands;
mod completion;
mod config;
mod context;
mod conversation;
mod csv;
mod edit_output;
mod edit_report;
mod error;
#[cfg(test)]
mod examples;
mod filter;
mod home;
mod index_loop;
mod input;
mod last;
mod live;
mod memory;
mod output;
mod output_file;
mod overview;
mod prices;
mod progress;
mod redaction;
mod store;
mod table;
mod terminal;
mod tokenizer;
mod usage_error;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::Args;
use error::{CommandError, ExitStatus};
use output::Output;

fn main() -> ExitCode {
    // A shell that asks for completions gets them and nothing else.
    clap_complete::CompleteEnv::with_factory(args::command).var(completion::VARIABLE).bin("steno").complete();
    let parsed = args::command().try_get_matches().and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return usage_error::print(&error),
    };
    let zone = if args.utc { Some(jiff::tz::TimeZone::UTC) } else { args.timezone.clone() };
    if let Some(zone) = zone {
        clock::use_zone(zone);
    }
    let mut output = Output::standard(args.color, !args.no_pager);
    let ended = match &args.command {
        Some(_) if args.place.root().is_some() => {
            Err(CommandError::new("--root belongs after the command").hint("write steno COMMAND --root DIR"))
        }
        Some(command) => commands::run(command, &mut output),
        None if output.is_terminal() || args.place.root().is_some() => overview::run(&args.place, &mut output),
        None => {
            output.say(&args::command().render_long_help().to_string());
            return ExitCode::from(2);
        }
    };
    let ended = ended.and_then(|status| match (status, output.finish()) {
        // The exit code of a program that was run counts, even if nobody reads its output any more.
        (ExitStatus::Code(_), _) => Ok(status),
        (_, flushed) => flushed.map(|()| status),
    });
    match ended {
        Ok(status) => output.raised(status).into(),
        Err(CommandError::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            // A pager that is still open would draw over the message.
            let _ = output.finish();
            output.error(&error);
            error.status().into()
        }
    }
}
