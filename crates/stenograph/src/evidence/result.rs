//! What a result says about its call: a stated error, an exit code, a refusal, the name of a job that goes on.

use super::hosted::hosted_status;
use super::words;
use crate::json::{value_at, word};
use crate::model::{Body, CallWords, Content, Event, ExitCodeAt, ExtraFields, ScriptWords, Verdict};
use crate::text::{Str, beginning};

/// What a record says about a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Whether a field of the record states an error.
    pub is_stated_error: bool,
    /// Whether the result begins with words that only an error begins with.
    pub has_error_words: bool,
    /// Whether somebody interrupted the call.
    pub is_interrupted: bool,
    /// The exit code, wherever it stands. Only a call that can have one is judged by it.
    pub exit: Option<i64>,
    /// The exit codes in what a script printed.
    pub printed: Vec<i64>,
    /// What a person or a rule said to the call.
    pub verdict: Option<Verdict>,
    /// Names by which later records refer to what goes on.
    pub handles: Vec<String>,
}

/// How much of a result is looked through for words.
const HEAD_SIZE_MAX: usize = 4096;

/// In how many lines an exit code is looked for.
const HEAD_LINES_MAX: usize = 10;

/// How many results of commands are looked for in what a script printed.
const PRINTED_MAX: usize = 256;

/// The line after which a result only repeats what a command printed.
const OUTPUT: &str = "Output:";

/// Keys of a result that is JSON, by which exit codes are known everywhere.
const EXIT_KEYS: [&str; 4] = ["exit_code", "exitCode", "returncode", "return_code"];

/// Keys of a result that is JSON, by which work that goes on is known.
const HANDLE_KEYS: [&str; 5] = ["agent_id", "agentId", "task_id", "taskId", "thread_id"];

impl Evidence {
    /// What a result says about its call. Other events say nothing here.
    pub fn of(event: &Event<'_>) -> Evidence {
        let Body::ToolResult { content, error, .. } = &event.body else { return Evidence::default() };
        let joined = content.joined();
        let text = joined.decode();
        Evidence::of_text(event, content, text.trim(), *error)
    }

    /// What a result with this text says about its call.
    pub(crate) fn of_text(event: &Event<'_>, content: &Content<'_>, text: &str, error: Option<bool>) -> Evidence {
        let mut evidence = Evidence { is_stated_error: error == Some(true), ..Evidence::default() };
        for (words, residue) in words(event) {
            evidence.read_words(words, residue, text, error);
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

    /// What a call says about itself whose result no record holds: the tool runs where the model does.
    pub(crate) fn of_hosted(event: &Event<'_>) -> Option<Evidence> {
        let stated = hosted_status(event).flatten();
        match stated.as_deref() {
            Some("completed") => Some(Evidence::default()),
            Some("failed" | "incomplete") => Some(Evidence { is_stated_error: true, ..Evidence::default() }),
            Some(_) | None => None,
        }
    }

    fn read_words(&mut self, words: &CallWords, residue: &ExtraFields<'_>, text: &str, error: Option<bool>) {
        self.exit = self.exit.or_else(|| words.exit_codes.iter().find_map(|exit| exit_code(exit, residue, text)));
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        // A tool may print such words itself; then the record says that all went well.
        if error != Some(false) {
            self.has_error_words |= begins(words.failure_prefixes);
            self.is_interrupted |= begins(words.interruption_prefixes);
        }
        let is_true = |path: &&str| residue.word_at(path).is_some_and(|word| word == "true");
        self.is_interrupted |= words.interrupted_fields.iter().any(is_true);
        let said =
            words.verdict_prefixes.iter().find(|(prefix, _)| text.starts_with(prefix)).map(|(_, verdict)| *verdict);
        let field = || {
            let mut found = words.denial_fields.iter().filter_map(|(path, user)| Some((residue.word_at(path)?, user)));
            found.next().map(|(word, user)| if word.contains(user) { Verdict::Denied } else { Verdict::Refused })
        };
        let said = said.filter(|verdict| *verdict == Verdict::Approved || error != Some(false));
        self.verdict = self.verdict.or(said).or_else(field);
        let head = beginning(text, HEAD_SIZE_MAX);
        self.handles.extend(words.job_prefixes.iter().filter_map(|prefix| name_after(head, prefix)));
        let field = |path: &&str| residue.word_at(path).map(Str::into_owned);
        self.handles.extend(words.job_fields.iter().filter_map(field));
    }

    /// What a script printed, if it is the result of a command: its exit code, or the name under which it goes on.
    fn read_printed(&mut self, script: &ScriptWords, text: &str) {
        let field = |key: &str| word(value_at(text, key)?);
        if self.printed.len() >= PRINTED_MAX || !text.starts_with('{') || field(script.sign).is_none() {
            return;
        }
        match field(script.exit).and_then(|code| code.parse().ok()) {
            Some(code) => self.printed.push(code),
            None => self.handles.extend(field(script.job).map(Str::into_owned)),
        }
    }

    /// The exit code of a script that runs this many commands: one that failed is enough, but all have to say that they went well.
    pub(crate) fn printed_exit(&self, commands: u32) -> Option<i64> {
        let failed = self.printed.iter().copied().find(|code| *code != 0);
        let is_told = !self.printed.is_empty() && self.printed.len() as u64 >= u64::from(commands);
        failed.or_else(|| is_told.then_some(0))
    }
}

/// What a result says about the agent that its call started or asked for.
#[derive(Debug, Default)]
pub(crate) struct AgentEvidence {
    /// The state of the agent, in the words of the source.
    pub state: Option<String>,
    /// The kind of the agent.
    pub kind: Option<String>,
}

impl AgentEvidence {
    /// What this result says.
    pub fn of(event: &Event<'_>) -> AgentEvidence {
        let mut found = AgentEvidence::default();
        for (words, residue) in words(event) {
            let field = |path: &&str| residue.word_at(path).map(Str::into_owned);
            found.state = found.state.take().or_else(|| words.agent_state_fields.iter().find_map(field));
            found.kind = found.kind.take().or_else(|| words.agent_kind_fields.iter().find_map(field));
        }
        found
    }
}

/// Whether the call of this result created its file, where the result says so.
pub(crate) fn created_file(event: &Event<'_>) -> Option<bool> {
    words(event).find_map(|(words, residue)| {
        words.creation_fields.iter().find_map(|(path, word)| Some(residue.word_at(path)? == *word))
    })
}

fn exit_code(exit: &ExitCodeAt, residue: &ExtraFields<'_>, text: &str) -> Option<i64> {
    match exit {
        ExitCodeAt::First(words) => digits(text.strip_prefix(words)?),
        ExitCodeAt::Head(words) => {
            let lines =
                beginning(text, HEAD_SIZE_MAX).lines().take(HEAD_LINES_MAX).take_while(|line| line.trim() != OUTPUT);
            lines.into_iter().find_map(|line| digits(line.trim_start().strip_prefix(words)?))
        }
        ExitCodeAt::Last(words) => digits(text.lines().next_back()?.trim_start().strip_prefix(words)?),
        ExitCodeAt::Json(path) if text.starts_with('{') => word(value_at(text, path)?)?.parse().ok(),
        ExitCodeAt::Json(_) => None,
        ExitCodeAt::Field(path) => residue.word_at(path)?.parse().ok(),
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
    fn an_exit_code_stands_where_the_format_says_and_nowhere_else() {
        let residue = ExtraFields::default();
        let head = ExitCodeAt::Head("Process exited with code ");
        let text = "Wall time: 1\nProcess exited with code 2\nOutput:\nProcess exited with code 7";
        assert_eq!(exit_code(&head, &residue, text), Some(2));
        assert_eq!(exit_code(&head, &residue, "Output:\nProcess exited with code 7"), None);
        assert_eq!(exit_code(&ExitCodeAt::First("Exit code "), &residue, "Exit code 143\nx"), Some(143));
        assert_eq!(exit_code(&ExitCodeAt::First("Exit code "), &residue, "x\nExit code 1"), None);
        assert_eq!(
            exit_code(&ExitCodeAt::Last("<exited with exit code "), &residue, "a\n<exited with exit code -1>"),
            Some(-1)
        );
        let json = r#"{"output":"","metadata":{"exit_code":3}}"#;
        assert_eq!(exit_code(&ExitCodeAt::Json("metadata.exit_code"), &residue, json), Some(3));
        assert_eq!(exit_code(&ExitCodeAt::Json("metadata.exit_code"), &residue, "no"), None);
    }

    #[test]
    fn a_name_ends_where_its_letters_end() {
        assert_eq!(name_after("running with ID: ab_1-c. Output", "with ID: ").as_deref(), Some("ab_1-c"));
        assert_eq!(name_after("running", "with ID: "), None);
    }
}
