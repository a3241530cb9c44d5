//! What the words of a result say about whether a change was made, where the source does not say it in any other way. Only the first
//! words count: a tool says first how it went, and then shows what it likes.

/// How much of an answer is looked at.
const HEAD_SIZE: usize = 400;

/// How an answer begins that says that nothing was done.
const FAILURES: [&str; 14] = [
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

/// What an answer has in its first words that says so.
const SIGNS: [&str; 4] = ["no replacement was performed", "verification failed", "rejected by user", "aborted by user"];

/// Whether the words say that a call failed.
pub(super) fn is_failure(said: &str) -> bool {
    let head = head(said);
    FAILURES.iter().any(|start| head.starts_with(start))
        || SIGNS.iter().any(|sign| head.contains(sign))
        || ["exit code: ", "\"exit_code\":", "exit code "]
            .iter()
            .any(|key| code(&head, key).is_some_and(|code| code != 0))
}

/// Whether the words say that a file was made.
pub(super) fn is_creation(said: &str) -> bool {
    let head = head(said);
    head.contains("created") && !["overw", "updated", "not created"].iter().any(|word| head.contains(word))
}

fn head(said: &str) -> String {
    let said = said.trim_start();
    crate::text::beginning(said, HEAD_SIZE).to_lowercase()
}

/// The code after a key.
fn code(head: &str, key: &str) -> Option<u32> {
    let rest = head.get(head.find(key)? + key.len()..)?;
    let rest = rest.trim_start();
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..length)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_say_how_it_went() {
        for said in [
            "Error: no such file",
            "ERROR:\nNo replacement was performed, old_str `x` did not appear",
            "Exit code: 1\nWall time: 0 seconds",
            r#"{"output":"oops","metadata":{"exit_code":1}}"#,
            "apply_patch verification failed: …",
        ] {
            assert!(is_failure(said), "{said}");
        }
        for said in [
            "Success. Updated the following files:\nM a\nerror.rs",
            "The file a.rs has been updated.",
            r#"{"output":"Success","metadata":{"exit_code":0}}"#,
            "",
        ] {
            assert!(!is_failure(said), "{said}");
        }
    }

    #[test]
    fn a_file_that_was_made_is_said_to_be() {
        assert!(is_creation("File created successfully at: /a"));
        assert!(!is_creation("The file /a has been updated. created_at"));
    }
}
