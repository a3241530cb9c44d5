//! `steno completions`: prints completion scripts for shells.

use clap_complete::Shell;

use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno completions bash > ~/.local/share/bash-completion/completions/steno
  steno completions zsh > \"${fpath[1]}/_steno\"
  steno completions fish > ~/.config/fish/completions/steno.fish")]
pub struct Options {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    // The generator panics if its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut crate::args::command(), "steno", &mut script);
    output.data().write_all(&script)?;
    Ok(ExitStatus::Done)
}
