//! Checks that every command line in the README, the guides and the help is one that `steno` accepts. Examples with output are
//! run by `tests/cli/readme.rs`; this also covers those whose output cannot be reproduced.

use std::fs;
use std::path::Path;

use crate::args;

/// The arguments of each `steno` in a line of shell.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let mut line = line.to_owned();
    // The innermost substitution first.
    while let Some(from) = line.rfind("$(") {
        let to = line[from..].find(')').map_or(line.len(), |at| from + at);
        calls.extend(commands(&line[from + 2..to]));
        line.replace_range(from..(to + 1).min(line.len()), "X");
    }
    calls.extend(commands(&line));
    let is_steno = |words: &Vec<String>| words.iter().position(|word| word == "steno");
    calls.iter().filter_map(|words| is_steno(words).map(|at| words[at..].to_vec())).collect()
}

/// The words of each simple command, without redirections and comments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut is_target = false;
    let end_word = |word: &mut Option<String>, words: &mut Vec<String>, is_target: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(is_target)
        {
            words.push(word);
        }
    };
    while let Some(char) = chars.next() {
        match char {
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|char| *char != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(char) = chars.next().filter(|char| *char != '"') {
                    word.push(if char == '\\' { chars.next().unwrap_or('\\') } else { char });
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '#' if word.is_none() => break,
            '>' | '<' => {
                // The number before a sign belongs to it.
                word = word.filter(|word| word.parse::<u8>().is_err());
                end_word(&mut word, &mut words, &mut is_target);
                is_target = true;
            }
            '&' if is_target && word.is_none() => word = Some(String::new()),
            '|' | '&' | ';' | '{' | '}' => {
                end_word(&mut word, &mut words, &mut is_target);
                commands.push(std::mem::take(&mut words));
            }
            char if char.is_whitespace() => end_word(&mut word, &mut words, &mut is_target),
            char => word.get_or_insert_default().push(char),
        }
    }
    end_word(&mut word, &mut words, &mut is_target);
    commands.push(words);
    commands
}

/// The lines of shell in the code blocks of a page.
fn shell_lines(page: &str) -> Vec<String> {
    let (mut lines, mut block) = (Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, Some("sh")) => lines.push(line.to_owned()),
            (None, Some("console" | "text")) => lines.extend(line.strip_prefix("$ ").map(str::to_owned)),
            (None, _) => {}
        }
    }
    lines
}

/// The lines of the examples in a help text, without their remarks.
fn help_lines(help: &str) -> Vec<String> {
    let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
    let lines = examples.lines().take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim_start().split("  ").next().unwrap_or_default().to_owned()).collect()
}

/// Joins lines that end with a backslash with the next.
fn joined(lines: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for line in lines {
        match joined.last_mut().filter(|before| before.ends_with('\\')) {
            Some(before) => {
                before.pop();
                before.push_str(&line);
            }
            None => joined.push(line),
        }
    }
    joined
}

/// The commands in a text that `steno` does not accept, and how many were tried.
fn refused(place: &str, lines: Vec<String>) -> (Vec<String>, usize) {
    let (mut refused, mut count) = (Vec::new(), 0);
    for line in joined(lines) {
        for call in calls(&line) {
            count += 1;
            if let Err(error) = args::command().try_get_matches_from(call) {
                let is_help = matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                );
                if !is_help {
                    refused.push(format!("{place}: {line}\n    {}", error.to_string().replace('\n', "\n    ")));
                }
            }
        }
    }
    (refused, count)
}

#[test]
fn every_example_of_the_readme_and_the_guides_is_a_valid_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guides = fs::read_dir(root.join("docs/guide")).unwrap().map(|entry| entry.unwrap().path());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in
        guides.chain(["README.md", "CONTRIBUTING.md", "docs/config.md", "docs/security.md"].map(|name| root.join(name)))
    {
        let (refused, tried) = refused(&page.display().to_string(), shell_lines(&fs::read_to_string(&page).unwrap()));
        wrong.extend(refused);
        count += tried;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count}");
}

#[test]
fn every_example_of_the_help_is_a_valid_command() {
    fn check(command: &clap::Command, path: &str, wrong: &mut Vec<String>) -> usize {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (refused, mut count) = refused(path, help_lines(&help));
        wrong.extend(refused);
        for command in command.get_subcommands() {
            count += check(command, &format!("{path} {}", command.get_name()), wrong);
        }
        count
    }
    let mut wrong = Vec::new();
    let count = check(&args::command(), "steno", &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count}");
}

#[test]
fn a_line_of_shell_is_split_into_its_commands() {
    assert_eq!(calls("A=1 steno show 'a b' 2>/dev/null | head -2 # steno"), [["steno", "show", "a b"]]);
    assert_eq!(
        calls("eval \"$(steno resume latest)\" && steno x < in > out"),
        [vec!["steno", "resume", "latest"], vec!["steno", "x"]]
    );
    assert_eq!(joined(vec!["steno a \\".to_owned(), "  b".to_owned()]), ["steno a   b"]);
}
