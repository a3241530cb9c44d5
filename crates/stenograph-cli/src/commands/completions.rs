//! `steno completions`: prints completion scripts for shells. The script asks `steno` for values while the user types.

use clap::ValueEnum;
use clap_complete::env::Shells;

use crate::completion;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

/// Print shell completions
///
/// The script completes commands, options, formats, session ids, projects and models.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Elvish => "elvish",
            Shell::Fish => "fish",
            Shell::Powershell => "powershell",
            Shell::Zsh => "zsh",
        }
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let name = options.shell.name();
    let shells = Shells::builtins();
    let shell = shells.completer(name).ok_or_else(|| CommandError::new(format!("{name}: no completions")))?;
    let mut script = Vec::new();
    shell.write_registration(completion::VARIABLE, "steno", "steno", "steno", &mut script)?;
    output.data().write_all(&script)?;
    Ok(ExitStatus::Done)
}
