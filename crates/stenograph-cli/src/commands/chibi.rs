//! `steno chibi`: administers the contexts of Chibi. It records nothing.

pub mod context;
pub mod inbox;

use clap::Subcommand;

use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

/// Manage the contexts and inboxes of Chibi
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno chibi context list
  steno chibi context clear --context research
  steno chibi inbox take --context research"
)]
pub struct Options {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    Context(context::Options),
    Inbox(inbox::Options),
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.part {
        Part::Context(options) => context::run(options, output),
        Part::Inbox(options) => inbox::run(options, output),
    }
}
