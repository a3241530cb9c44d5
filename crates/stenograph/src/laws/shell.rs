//! Laws of the shell lexer, for property tests and fuzzing: no text makes it panic, and these hold for every text.

use crate::shell::{CommandLine, Word};

/// The laws that a command breaks.
pub fn check(command: &str) -> Vec<&'static str> {
    let found = CommandLine::of(command);
    if found.is_opaque {
        return Vec::from_iter(
            (!found.commands.is_empty() || !found.documents.is_empty()).then_some("opaque with parts"),
        );
    }
    let laws = [
        ("a word is longer than the command", is_bounded(command, &found)),
        ("a comment before the command changes it", is_same_after_comment(command, &found)),
        ("another command before it changes it", is_same_after_command(command, &found)),
        ("quoted words are not read back", are_words_quotable(&found)),
    ];
    laws.into_iter().filter(|(_, holds)| !holds).map(|(law, _)| law).collect()
}

fn is_bounded(command: &str, found: &CommandLine) -> bool {
    // A sign of three characters is the longest word that nobody wrote as such.
    let mut sizes = found.commands.iter().flatten().map(|word| word.text.len());
    sizes.all(|size| size <= command.len() + 3)
        && found.documents.iter().all(|document| document.text.len() <= command.len())
}

fn is_same_after_comment(command: &str, found: &CommandLine) -> bool {
    let comment = command.lines().next().unwrap_or_default();
    CommandLine::of(&format!("# {comment}\n{command}")) == *found
}

fn is_same_after_command(command: &str, found: &CommandLine) -> bool {
    let mut after = CommandLine::of(&format!("first\n{command}"));
    if after.is_opaque {
        return true;
    }
    let first = vec![Word { text: "first".to_owned(), quoted: false }];
    !after.commands.is_empty() && after.commands.remove(0) == first && after == *found
}

/// Whether every command, spelled with single quotes around each word, has the same words.
fn are_words_quotable(found: &CommandLine) -> bool {
    found.commands.iter().all(|words| {
        let texts = || words.iter().map(|word| word.text.as_str());
        let quoted: Vec<String> = texts().map(|text| format!("'{}'", text.replace('\'', r"'\''"))).collect();
        let again = CommandLine::of(&quoted.join(" "));
        matches!(again.commands.as_slice(), [only] if only.iter().map(|word| word.text.as_str()).eq(texts()))
    })
}
