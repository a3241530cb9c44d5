//! `steno cycod`: continues the chat histories of CycoD. It records nothing.

pub mod r#continue;

use clap::Subcommand;

use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

/// Continue the chat histories of CycoD
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno cycod continue > messages.jsonl
  steno cycod continue talk.jsonl --max-tokens 100000"
)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Continue(r#continue::Options),
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::Continue(options) => r#continue::run(options, output),
    }
}
