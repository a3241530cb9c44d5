//! Errors of the argument parser in the style of all other messages: one line that says what is wrong, and one that says what to do.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::error::CommandError;
use crate::output::{ColourChoice, Output};

/// Prints an error of the parser, or the help that the user asked for.
pub fn print(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader who closes the help early causes no failure.
            let _ = error.print();
        }
        _ => Output::standard(ColourChoice::Auto, false).error(&explained(&error.render().to_string())),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The error that the parser describes in several paragraphs.
fn explained(text: &str) -> CommandError {
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
    let first = paragraphs.first().copied().unwrap_or_default();
    let (values, words): (Vec<&str>, Vec<&str>) =
        first.lines().map(str::trim).partition(|line| line.starts_with(POSSIBLE_VALUES));
    let message = words.join(" ");
    let mut error = CommandError::new(expected(message.strip_prefix("error: ").unwrap_or(&message)));
    for values in values {
        let values = values.trim_start_matches(POSSIBLE_VALUES).trim_end_matches(']');
        error = error.hint(format!("use one of{values}"));
    }
    // A long option that a command lacks is hardly meant as a value.
    let is_wrong = |tip: &&str| tip.starts_with("to pass '--");
    for tip in paragraphs.iter().filter_map(|paragraph| paragraph.strip_prefix("tip: ")).filter(|tip| !is_wrong(tip)) {
        error = error.hint(tip.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if error.hints().is_empty() {
        // Only some errors state the command.
        let usage = paragraphs.iter().find_map(|paragraph| paragraph.strip_prefix("Usage: ")).unwrap_or_default();
        let is_name = |word: &&str| !word.starts_with(['[', '<', '-']);
        let command: String = usage.split_whitespace().take_while(is_name).map(|word| format!("{word} ")).collect();
        error = error.hint(format!("{command}--help lists the options"));
    }
    error
}

/// How the parser begins the list of the values that an option takes.
const POSSIBLE_VALUES: &str = "[possible values:";

/// A message that says what is expected instead of how parsing failed.
fn expected(message: &str) -> String {
    const REASONS: [(&str, &str); 5] = [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("number would be zero for non-zero type", "expected a number greater than 0"),
        ("invalid float literal", "expected a number"),
    ];
    let known = REASONS.iter().find_map(|(reason, ours)| Some(format!("{}{ours}", message.strip_suffix(reason)?)));
    known.unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(arguments: &[&str]) -> (String, Vec<String>) {
        let error = crate::args::command().try_get_matches_from(arguments).unwrap_err();
        let error = explained(&error.render().to_string());
        (error.message().to_owned(), error.hints().to_vec())
    }

    #[test]
    fn an_error_of_the_parser_is_one_line_with_a_hint() {
        let (message, hints) = lines(&["steno", "list", "--limit", "x"]);
        assert_eq!(message, "invalid value 'x' for '--limit <N>': expected a whole number");
        assert_eq!(hints, ["--help lists the options"]);
        let (message, hints) = lines(&["steno", "list", "--limt", "3"]);
        assert_eq!(message, "unexpected argument '--limt' found");
        assert_eq!(hints, ["a similar argument exists: '--limit'"]);
        let (_, hints) = lines(&["steno", "show", "a", "--nothing"]);
        assert_eq!(hints, ["steno show --help lists the options"]);
        let (message, hints) = lines(&["steno", "show"]);
        assert_eq!(message, "the following required arguments were not provided: <FILE|SESSION>");
        assert_eq!(hints, ["steno show --help lists the options"]);
        let (_, hints) = lines(&["steno", "list", "--sort", "best"]);
        assert_eq!(hints.first().map(String::as_str), Some("use one of newest, oldest, largest, longest, errors"));
    }
}
