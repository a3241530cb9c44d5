//! A result as evidence of the outcome of its call: a stated error, an exit code, a refusal, the name of a background job.

use super::hosted::hosted_status;
use super::words;
use crate::json::{value_at, word};
use crate::model::{Body, CallWords, Content, Event, ExitCodeAt, ExtraFields, ScriptWords, Verdict};
use crate::text::{Str, beginning};

/// Evidence of the outcome of a call in one record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Whether a field of the record states an error.
    pub is_stated_error: bool,
    /// Whether the result begins with words that only an error begins with.
    pub has_error_words: bool,
    /// Whether the call was interrupted.
    pub is_interrupted: bool,
    /// The exit code, from any source. It counts only for calls that can have one.
    pub exit: Option<i64>,
    /// The exit codes in the output of a script.
    pub printed: Vec<i64>,
    /// The decision of a person or a rule about the call.
    pub verdict: Option<Verdict>,
    /// Names by which later records refer to the background job.
    pub handles: Vec<String>,
}

/// How many bytes of a result are searched for words.
const HEAD_SIZE_MAX: usize = 4096;

/// How many lines of a result are searched for an exit code.
const HEAD_LINES_MAX: usize = 10;

/// How many lines at the end of a result are searched for an exit code.
const TAIL_LINES_MAX: usize = 6;

/// The most command results read from the output of a script.
const PRINTED_MAX: usize = 256;

/// The line before the output of the command.
const OUTPUT: &str = "Output:";

/// Keys of an exit code in a result that is JSON, for all agents.
const EXIT_KEYS: [&str; 4] = ["exit_code", "exitCode", "returncode", "return_code"];

/// Keys of the name of a background job in a result that is JSON.
const HANDLE_KEYS: [&str; 5] = ["agent_id", "agentId", "task_id", "taskId", "thread_id"];

impl Evidence {
    /// The evidence in a result. Other events have none here.
    pub fn of(event: &Event<'_>) -> Evidence {
        let Body::ToolResult { content, error, .. } = &event.body else { return Evidence::default() };
        let joined = content.joined();
        let text = joined.decode();
        Evidence::of_text(event, content, text.trim(), *error)
    }

    /// The evidence in a result with this text.
    pub(crate) fn of_text(event: &Event<'_>, content: &Content<'_>, text: &str, error: Option<bool>) -> Evidence {
        let mut evidence = Evidence { is_stated_error: error == Some(true), ..Evidence::default() };
        for (words, extra) in words(event) {
            evidence.read_words(words, extra, text, error);
            if let Some(script) = words.script.filter(|script| text.starts_with(script.head)) {
                content.texts().for_each(|printed| evidence.read_printed(&script, &printed.decode()));
            }
        }
        if text.starts_with('{') {
            let find = |keys: &[&str]| keys.iter().find_map(|key| word(value_at(text, key)?));
            evidence.exit = evidence.exit.or_else(|| find(&EXIT_KEYS)?.parse().ok());
            evidence.handles.extend(find(&HANDLE_KEYS).map(Str::into_owned));
        }
        evidence
    }

    /// The evidence in the call of a hosted tool, whose result no record has.
    pub(crate) fn of_hosted(event: &Event<'_>) -> Option<Evidence> {
        let stated = hosted_status(event).flatten();
        match stated.as_deref() {
            Some("completed") => Some(Evidence::default()),
            Some("failed" | "incomplete") => Some(Evidence { is_stated_error: true, ..Evidence::default() }),
            Some(_) | None => None,
        }
    }

    fn read_words(&mut self, words: &CallWords, extra: &ExtraFields<'_>, text: &str, error: Option<bool>) {
        self.exit = self.exit.or_else(|| words.exit_codes.iter().find_map(|exit| exit_code(exit, extra, text)));
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        // A tool may print such words itself; the record then states that the call succeeded.
        if error != Some(false) {
            self.has_error_words |= begins(words.failure_prefixes);
            self.is_interrupted |= begins(words.interruption_prefixes);
        }
        let is_true = |path: &&str| extra.word_at(path).is_some_and(|word| word == "true");
        self.is_interrupted |= words.interrupted_fields.iter().any(is_true);
        let by_prefix =
            words.verdict_prefixes.iter().find(|(prefix, _)| text.starts_with(prefix)).map(|(_, verdict)| *verdict);
        let field = || {
            let mut found = words.denial_fields.iter().filter_map(|(path, user)| Some((extra.word_at(path)?, user)));
            found.next().map(|(word, user)| if word.contains(user) { Verdict::Denied } else { Verdict::Refused })
        };
        let by_prefix = by_prefix.filter(|verdict| *verdict == Verdict::Approved || error != Some(false));
        self.verdict = self.verdict.or(by_prefix).or_else(field);
        let head = beginning(text, HEAD_SIZE_MAX);
        self.handles.extend(words.job_prefixes.iter().filter_map(|prefix| name_after(head, prefix)));
        let field = |path: &&str| extra.word_at(path).map(Str::into_owned);
        self.handles.extend(words.job_fields.iter().filter_map(field));
    }

    /// Reads the output of a script, if it is the result of a command: its exit code, or the name of its background job.
    fn read_printed(&mut self, script: &ScriptWords, text: &str) {
        let field = |key: &str| word(value_at(text, key)?);
        if self.printed.len() >= PRINTED_MAX || !text.starts_with('{') || field(script.marker).is_none() {
            return;
        }
        match field(script.exit).and_then(|code| code.parse().ok()) {
            Some(code) => self.printed.push(code),
            None => self.handles.extend(field(script.job).map(Str::into_owned)),
        }
    }

    /// The exit code of a script that runs this many commands. One failure decides; success requires the exit codes of all
    /// commands.
    pub(crate) fn printed_exit(&self, commands: u32) -> Option<i64> {
        let failed = self.printed.iter().copied().find(|code| *code != 0);
        let is_complete = !self.printed.is_empty() && self.printed.len() as u64 >= u64::from(commands);
        failed.or_else(|| is_complete.then_some(0))
    }
}

/// Whether the call of this result created its file, if the result states it.
pub(crate) fn created_file(event: &Event<'_>) -> Option<bool> {
    words(event).find_map(|(words, extra)| {
        words.creation_fields.iter().find_map(|(path, word)| Some(extra.word_at(path)? == *word))
    })
}

/// The output of a command without the header that the agent puts before it: an id, a time, an exit code.
pub(crate) fn output_without_header<'t>(event: &Event<'_>, text: &'t str) -> &'t str {
    let mut prefixes = event.extra.known().flat_map(|(info, _)| info.changing_lines);
    if !prefixes.any(|prefix| text.starts_with(prefix)) {
        return text;
    }
    let mut at = 0;
    for line in text.split_inclusive('\n').take(HEAD_LINES_MAX) {
        at += line.len();
        if line.trim_end() == OUTPUT {
            return text.get(at..).unwrap_or_default();
        }
    }
    text
}

fn exit_code(exit: &ExitCodeAt, extra: &ExtraFields<'_>, text: &str) -> Option<i64> {
    match exit {
        ExitCodeAt::First(words) => digits(text.strip_prefix(words)?),
        ExitCodeAt::Head(words) => {
            let lines =
                beginning(text, HEAD_SIZE_MAX).lines().take(HEAD_LINES_MAX).take_while(|line| line.trim() != OUTPUT);
            lines.into_iter().find_map(|line| digits(line.trim_start().strip_prefix(words)?))
        }
        ExitCodeAt::Last(words) => digits(text.lines().next_back()?.trim_start().strip_prefix(words)?),
        ExitCodeAt::Tail(words) => {
            let mut lines = text.lines().rev().take(TAIL_LINES_MAX);
            lines.find_map(|line| digits(line.trim_start().strip_prefix(words)?))
        }
        ExitCodeAt::Json(path) if text.starts_with('{') => word(value_at(text, path)?)?.parse().ok(),
        ExitCodeAt::Json(_) => None,
        ExitCodeAt::Field(path) => extra.word_at(path)?.parse().ok(),
    }
}

/// The whole number at the beginning of a text.
pub(super) fn digits(text: &str) -> Option<i64> {
    let end = text.char_indices().find(|(at, char)| !(char.is_ascii_digit() || *at == 0 && *char == '-'));
    text.get(..end.map_or(text.len(), |(at, _)| at))?.parse().ok()
}

/// The name that follows these words.
fn name_after(text: &str, words: &str) -> Option<String> {
    const LENGTH_MAX: usize = 128;
    let rest = text.get(text.find(words)? + words.len()..)?;
    let name: String =
        rest.chars().take(LENGTH_MAX).take_while(|char| char.is_alphanumeric() || matches!(char, '_' | '-')).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_counts_only_where_the_format_puts_it() {
        let extra = ExtraFields::default();
        let head = ExitCodeAt::Head("Process exited with code ");
        let text = "Wall time: 1\nProcess exited with code 2\nOutput:\nProcess exited with code 7";
        assert_eq!(exit_code(&head, &extra, text), Some(2));
        assert_eq!(exit_code(&head, &extra, "Output:\nProcess exited with code 7"), None);
        assert_eq!(exit_code(&ExitCodeAt::First("Exit code "), &extra, "Exit code 143\nx"), Some(143));
        assert_eq!(exit_code(&ExitCodeAt::First("Exit code "), &extra, "x\nExit code 1"), None);
        assert_eq!(
            exit_code(&ExitCodeAt::Last("<exited with exit code "), &extra, "a\n<exited with exit code -1>"),
            Some(-1)
        );
        let tail = ExitCodeAt::Tail("Exit Code: ");
        assert_eq!(exit_code(&tail, &extra, "no\nExit Code: 3\nProcess Group PGID: 7\n</context>"), Some(3));
        assert_eq!(exit_code(&tail, &extra, "Exit Code: 3\na\nb\nc\nd\ne\nf"), None);
        let json = r#"{"output":"","metadata":{"exit_code":3}}"#;
        assert_eq!(exit_code(&ExitCodeAt::Json("metadata.exit_code"), &extra, json), Some(3));
        assert_eq!(exit_code(&ExitCodeAt::Json("metadata.exit_code"), &extra, "no"), None);
    }

    #[test]
    fn a_name_ends_at_the_first_other_character() {
        assert_eq!(name_after("running with ID: ab_1-c. Output", "with ID: ").as_deref(), Some("ab_1-c"));
        assert_eq!(name_after("running", "with ID: "), None);
    }
}
