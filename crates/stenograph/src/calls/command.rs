//! The meaning of a command line: what its exit code means, and which program it runs.

use crate::shell::{CommandLine, Word};

/// Programs whose exit code 1 is an answer: nothing was found, or the two differ.
const ASKING: [&str; 14] =
    ["grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "which", "pgrep", "command", "type", "ls"];

/// Subcommands of git whose exit code 1 is an answer.
const ASKING_GIT: [&str; 2] = ["grep", "diff"];

/// Whether exit code 1 of this command is an answer and not a failure. The last program of the command line decides.
pub(crate) fn answers_with_one(command: &str) -> bool {
    let commands = CommandLine::of(command).commands;
    let words = commands.last().map(|words| words_of(words)).unwrap_or_default();
    match words.as_slice() {
        [program, rest @ ..] if base(program) == "git" => {
            subcommand(rest).is_some_and(|name| ASKING_GIT.contains(&name))
        }
        [program, ..] => ASKING.contains(&base(program)),
        [] => false,
    }
}

/// The subcommand of git, after its options.
fn subcommand<'w>(words: &[&'w str]) -> Option<&'w str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            // These options have a value.
            "-C" | "-c" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return Some(word),
        }
    }
    None
}

/// A short name for a command: its first program that is not a mere preparation, and the word after it.
pub(crate) fn program(command: &str) -> String {
    /// Programs that only prepare for the next one.
    const PREPARATIONS: [&str; 8] = ["cd", "export", "source", ".", "set", "pushd", "echo", "sleep"];
    let mut fallback = String::new();
    for segment in &CommandLine::of(command).commands {
        let words = words_of(segment);
        let Some(name) = words.first().map(|program| base(program)) else { continue };
        let second = words
            .get(1)
            .filter(|word| word.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == ':'));
        let second = second.filter(|word| !word.starts_with('-'));
        let about = second.map_or_else(|| name.to_owned(), |second| format!("{name} {second}"));
        if !PREPARATIONS.contains(&name) {
            return about;
        }
        if fallback.is_empty() {
            fallback = about;
        }
    }
    fallback
}

/// The words of a command, without prefixes that only control how it runs.
fn words_of(segment: &[Word]) -> Vec<&str> {
    const WRAPPERS: [&str; 6] = ["sudo", "env", "time", "nice", "nohup", "exec"];
    let words = segment.iter().map(|word| word.text.as_str());
    words.skip_while(|word| WRAPPERS.contains(word) || word.contains('=') && !word.starts_with('-')).take(4).collect()
}

/// The name of a program, without its folder.
fn base(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_program_and_its_first_word() {
        for (command, expected) in [
            ("cargo test -p x 2>&1 | tail", "cargo test"),
            ("cd /a/b && RUST_LOG=x cargo build", "cargo build"),
            ("/usr/bin/python3 x.py", "python3"),
            ("ls -la", "ls"),
            ("sudo make install", "make install"),
            ("cd /a", "cd"),
            ("", ""),
        ] {
            assert_eq!(program(command), expected, "{command}");
        }
    }

    #[test]
    fn finding_nothing_is_not_a_failure() {
        assert!(answers_with_one("cd src && grep -r foo ."));
        assert!(answers_with_one("diff a b"));
        assert!(!answers_with_one("grep foo x | cargo test"));
        assert!(answers_with_one(r#"rg -n "a|b & c" src"#));
        assert!(answers_with_one("gh run view 7 --log | /usr/bin/grep -E 'x|y;z'"));
        assert!(answers_with_one("git diff --quiet") && !answers_with_one("git push"));
        assert!(answers_with_one("git -C dir grep x") && !answers_with_one("git -C grep push"));
        assert!(!answers_with_one("python3 - <<'EOF'\nprint(1)\ntest x\nEOF"));
    }
}
