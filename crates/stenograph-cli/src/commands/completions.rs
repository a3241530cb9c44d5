//! `steno completions`: what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::error::{CommandError, Status};
use crate::output::Output;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno completions bash > ~/.local/share/bash-completion/completions/steno
  steno completions zsh > \"${fpath[1]}/_steno\"
  steno completions fish > ~/.config/fish/completions/steno.fish")]
pub struct Options {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    // The generator takes a failing writer badly, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Args::command(), "steno", &mut script);
    output.data().write_all(&script)?;
    Ok(Status::Done)
}
