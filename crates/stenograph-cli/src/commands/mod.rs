//! The commands, one file each: what may be typed, and what it does.

pub mod check;
pub mod completions;
pub mod convert;
pub mod cut;
pub mod demo;
pub mod formats;
pub mod man;
pub mod record;
pub mod recover;
pub mod show;
pub mod trim;

use crate::args::Command;
use crate::error::{CommandError, Status};
use crate::output::Output;

/// Runs a command.
pub fn run(command: &Command, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match command {
        Command::Formats(options) => formats::run(options, output),
        Command::Check(options) => check::run(options, output),
        Command::Convert(options) => convert::run(options, output),
        Command::Record(options) => record::run(options, output),
        Command::Recover(options) => recover::run(options, output),
        Command::Show(options) => show::run(options, output),
        Command::Trim(options) => trim::run(options, output),
        Command::Cut(options) => cut::run(options, output),
        Command::Demo(options) => demo::run(options, output),
        Command::Completions(options) => completions::run(options, output),
        Command::Man(options) => man::run(options, output),
    }
}
