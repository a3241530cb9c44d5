//! The commands, one file each: what may be typed, and what it does.

pub mod archive;
pub mod audit;
pub mod branches;
pub mod check;
pub mod compact;
pub mod completions;
pub mod config;
pub mod context;
pub mod r#continue;
pub mod convert;
pub mod cut;
pub mod demo;
pub mod diff;
pub mod export;
pub mod find;
pub mod formats;
pub mod inbox;
pub mod index;
pub mod list;
pub mod man;
pub mod record;
pub mod recover;
pub mod replay;
pub mod resume;
pub mod run;
pub mod show;
pub mod status;
pub mod tail;
pub mod trim;
pub mod usage;

use crate::args::Command;
use crate::error::{CommandError, Status};
use crate::output::Output;

/// Runs a command.
pub fn run(command: &Command, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match command {
        Command::Formats(options) => formats::run(options, output),
        Command::Check(options) => check::run(options, output),
        Command::Convert(options) => convert::run(options, output),
        Command::Index(options) => index::run(options, output),
        Command::Find(options) => find::run(options, output),
        Command::List(options) => list::run(options, output),
        Command::Archive(options) => archive::run(options, output),
        Command::Resume(options) => resume::run(options, output),
        Command::Record(options) => record::run(options, output),
        Command::Recover(options) => recover::run(options, output),
        Command::Replay(options) => replay::run(options, output),
        Command::Diff(options) => diff::run(options, output),
        Command::Branches(options) => branches::run(options, output),
        Command::Run(options) => run::run(options, output),
        Command::Context(options) => context::run(options, output),
        Command::Inbox(options) => inbox::run(options, output),
        Command::Audit(options) => audit::run(options, output),
        Command::Show(options) => show::run(options, output),
        Command::Tail(options) => tail::run(options, output),
        Command::Status(options) => status::run(options, output),
        Command::Export(options) => export::run(options, output),
        Command::Usage(options) => usage::run(options, output),
        Command::Trim(options) => trim::run(options, output),
        Command::Cut(options) => cut::run(options, output),
        Command::Continue(options) => r#continue::run(options, output),
        Command::Config(options) => config::run(options, output),
        Command::Demo(options) => demo::run(options, output),
        Command::Compact(options) => compact::run(options, output),
        Command::Completions(options) => completions::run(options, output),
        Command::Man(options) => man::run(options, output),
    }
}
