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
    let script = String::from_utf8_lossy(&script);
    let script = if options.shell == Shell::Bash { with_colons(&script) } else { script.into_owned() };
    write!(output.data(), "{script}")?;
    Ok(ExitStatus::Done)
}

/// How the generated script for bash takes the words, and what ends its answer.
const WORDS_TAKEN: &str = "\
    local words=(\"${COMP_WORDS[@]}\")
    if [[ \"${BASH_VERSINFO[0]}\" -ge 4 ]]; then
        words[COMP_CWORD]=\"$2\"
    fi
";
const ANSWER_END: &str = "\
    if [[ $? != 0 ]]; then
";

/// Bash divides a word at colons, so `tag:x` would be completed as three words. This joins them, and takes what is before the last
/// colon out of the answers, because bash replaces only what is after it.
fn with_colons(script: &str) -> String {
    const WORDS_JOINED: &str = "\
    local words=() last=-1 i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        local word=\"${COMP_WORDS[i]}\"
        if ((i == COMP_CWORD)) && [[ \"$word\" != \":\" ]]; then
            word=\"$2\"
        fi
        if ((last > 0)) && [[ \"$word\" == \":\" || \"${words[last]}\" == *: && \"${COMP_LINE:0:COMP_POINT}\" == *\"${words[last]}$word\" ]]; then
            words[last]+=\"$word\"
        else
            words+=(\"$word\")
            ((last += 1))
        fi
    done
    _CLAP_COMPLETE_INDEX=$last
";
    const ANSWERS_SHORTENED: &str = "\
    local status=$?
    if [[ \"${words[last]}\" == *:* && \"$COMP_WORDBREAKS\" == *:* ]]; then
        COMPREPLY=(\"${COMPREPLY[@]#\"${words[last]%\"${words[last]##*:}\"}\"}\")
    fi
    if [[ $status != 0 ]]; then
";
    script.replacen(WORDS_TAKEN, WORDS_JOINED, 1).replacen(ANSWER_END, ANSWERS_SHORTENED, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_for_bash_joins_words_at_colons() {
        let mut script = Vec::new();
        let shells = Shells::builtins();
        let bash = shells.completer("bash").unwrap();
        bash.write_registration(completion::VARIABLE, "steno", "steno", "steno", &mut script).unwrap();
        let joined = with_colons(std::str::from_utf8(&script).unwrap());
        assert!(
            joined.contains("words[last]+=") && joined.contains("local status=$?") && !joined.contains(WORDS_TAKEN)
        );
    }
}
