//! What the first words of a result say about a file, where its record states nothing: a tool reports its success first and
//! then shows other text. The fold [`crate::calls::Calls`] decides which calls failed; these words only prevent applying an
//! edit that the tool says it did not make.

use crate::text::beginning;

/// How much of a result is examined.
const HEAD_SIZE: usize = 400;

/// Words at the start of a result whose tool changed nothing.
const PREFIXES: [&str; 14] = [
    "error",
    "fail",
    "fatal",
    "invalid",
    "could not",
    "cannot",
    "can't",
    "unable",
    "no replacement",
    "apply_patch verification failed",
    "patch failed",
    "<tool_use_error>",
    "traceback",
    "permission denied",
];

/// Words that only the head of such a result contains.
const SIGNS: [&str; 2] = ["no replacement was performed", "verification failed"];

/// Whether a result says that its tool changed nothing.
pub(super) fn says_nothing_changed(output: &str) -> bool {
    let head = head(output);
    PREFIXES.iter().any(|words| head.starts_with(words)) || SIGNS.iter().any(|words| head.contains(words))
}

/// Whether a result says that its tool created the file.
pub(super) fn is_creation(output: &str) -> bool {
    let head = head(output);
    head.contains("created") && !["overw", "updated", "not created"].iter().any(|word| head.contains(word))
}

fn head(output: &str) -> String {
    beginning(output.trim_start(), HEAD_SIZE).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_say_that_nothing_changed() {
        for output in [
            "Error: no such file",
            "ERROR:\nNo replacement was performed, old_str `x` did not appear",
            "apply_patch verification failed: …",
        ] {
            assert!(says_nothing_changed(output), "{output}");
        }
        for output in ["Success. Updated the following files:\nM a\nerror.rs", "The file a.rs has been updated.", ""] {
            assert!(!says_nothing_changed(output), "{output}");
        }
    }

    #[test]
    fn a_creation_is_recognized() {
        assert!(is_creation("File created successfully at: /a"));
        assert!(!is_creation("The file /a has been updated. created_at"));
    }
}
