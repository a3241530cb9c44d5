//! What a result says about its call: whether it failed, the exit code, who did not allow it, what goes on. It looks at one event only.

use super::report::Outcome;
use crate::format::marks::{Exit, Marks, Script, Verdict, value_at, word};
use crate::format::named;
use crate::model::{Content, Event, Residue};
use crate::text::{Str, beginning};

/// What a result says about its call.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// Whether the record says that it failed.
    pub is_error: bool,
    /// The exit code, wherever it stands. It is only believed of a call that can have one.
    pub exit: Option<i64>,
    /// The exit codes in what a script printed.
    pub printed: Vec<i64>,
    pub verdict: Option<Verdict>,
    /// Names by which later calls ask for what goes on.
    pub handles: Vec<String>,
    /// How far the work of another agent has come, in the source's word.
    pub state: Option<String>,
    /// Of what kind that agent is.
    pub kind: Option<String>,
    /// Whether the file was not there before.
    pub made: Option<bool>,
    /// The beginning of what it says.
    pub beginning: String,
}

/// How much of an answer is kept where it matters.
const BEGINNING_SIZE_MAX: usize = 2000;

/// How much of an answer is looked through for words.
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

impl Answer {
    /// What this result says.
    pub fn of(event: &Event<'_>, content: &Content<'_>, error: Option<bool>) -> Answer {
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        let mut answer = Answer {
            is_error: error == Some(true),
            beginning: beginning(text, BEGINNING_SIZE_MAX).to_owned(),
            ..Answer::default()
        };
        for (marks, residue) in marks(event) {
            answer.marked(&marks, residue, text, error);
            if let Some(script) = marks.script.filter(|script| text.starts_with(script.head)) {
                content.texts().for_each(|printed| answer.read_printed(&script, &printed.decode()));
            }
        }
        if text.starts_with('{') {
            let find = |keys: &[&str]| keys.iter().find_map(|key| word(value_at(text, key)?));
            answer.exit = answer.exit.or_else(|| find(&EXIT_KEYS)?.parse().ok());
            answer.handles.extend(find(&HANDLE_KEYS).map(Str::into_owned));
        }
        answer
    }

    fn marked(&mut self, marks: &Marks, residue: &Residue<'_>, text: &str, error: Option<bool>) {
        self.exit = self.exit.or_else(|| marks.exits.iter().find_map(|exit| exit_code(exit, residue, text)));
        if error != Some(false) {
            self.is_error |= marks.failures.iter().any(|words| text.starts_with(words));
        }
        let said = marks.verdicts.iter().find(|(words, _)| text.starts_with(words)).map(|(_, verdict)| *verdict);
        let field = || {
            let mut found = marks.denials.iter().filter_map(|(path, user)| Some((residue.word_at(path)?, user)));
            found.next().map(|(word, user)| if word.contains(user) { Verdict::Denied } else { Verdict::Refused })
        };
        // A tool may print such words itself; then the record says that all went well.
        let said = said.filter(|verdict| *verdict == Verdict::Approved || error != Some(false));
        self.verdict = self.verdict.or(said).or_else(field);
        let head = beginning(text, HEAD_SIZE_MAX);
        self.handles.extend(marks.handles.iter().filter_map(|words| name_after(head, words)));
        let field = |path: &&str| residue.word_at(path).map(Str::into_owned);
        self.handles.extend(marks.handle_fields.iter().filter_map(field));
        self.state = self.state.take().or_else(|| marks.state_fields.iter().find_map(field));
        self.kind = self.kind.take().or_else(|| marks.kind_fields.iter().find_map(field));
        for (path, word) in marks.made {
            self.made = self.made.or_else(|| Some(residue.word_at(path)? == *word));
        }
    }

    /// What a script printed, if it is the result of a command: its exit code, or the name under which it goes on.
    fn read_printed(&mut self, script: &Script, text: &str) {
        let field = |key: &str| word(value_at(text, key)?);
        if self.printed.len() >= PRINTED_MAX || !text.starts_with('{') || field(script.sign).is_none() {
            return;
        }
        match field(script.exit).and_then(|code| code.parse().ok()) {
            Some(code) => self.printed.push(code),
            None => self.handles.extend(field(script.handle).map(Str::into_owned)),
        }
    }

    /// Believes what a script printed that ran so many commands: one that failed is enough, but that all went well has to be told of all.
    pub fn believe(&mut self, commands: usize) {
        if self.exit.is_none() {
            let failed = self.printed.iter().copied().find(|code| *code != 0);
            let is_told = !self.printed.is_empty() && self.printed.len() >= commands;
            self.exit = failed.or_else(|| is_told.then_some(0));
        }
    }

    /// What came of the call. `believed` is the exit code, if the call is one that has one.
    pub fn outcome(&self, believed: Option<i64>) -> Outcome {
        match self.verdict {
            Some(Verdict::Denied | Verdict::Refused | Verdict::Blocked) => Outcome::Denied,
            Some(Verdict::Approved) | None if self.is_error || believed.is_some_and(|code| code != 0) => {
                Outcome::Failed
            }
            Some(Verdict::Approved) | None => Outcome::Good,
        }
    }
}

/// The marks of the formats that an event is told in the words of, and those words.
pub(super) fn marks<'e>(event: &'e Event<'_>) -> impl Iterator<Item = (Marks, &'e Residue<'e>)> {
    event.extra.iter().filter_map(|(origin, residue)| Some((named(origin)?.marks(), residue)))
}

fn exit_code(exit: &Exit, residue: &Residue<'_>, text: &str) -> Option<i64> {
    match exit {
        Exit::First(words) => digits(text.strip_prefix(words)?),
        Exit::Head(words) => {
            let lines =
                beginning(text, HEAD_SIZE_MAX).lines().take(HEAD_LINES_MAX).take_while(|line| line.trim() != OUTPUT);
            lines.into_iter().find_map(|line| digits(line.trim_start().strip_prefix(words)?))
        }
        Exit::Last(words) => digits(text.lines().next_back()?.trim_start().strip_prefix(words)?),
        Exit::Json(path) if text.starts_with('{') => word(value_at(text, path)?)?.parse().ok(),
        Exit::Json(_) => None,
        Exit::Field(path) => residue.word_at(path)?.parse().ok(),
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
        let residue = Residue::default();
        let head = Exit::Head("Process exited with code ");
        let text = "Wall time: 1\nProcess exited with code 2\nOutput:\nProcess exited with code 7";
        assert_eq!(exit_code(&head, &residue, text), Some(2));
        assert_eq!(exit_code(&head, &residue, "Output:\nProcess exited with code 7"), None);
        assert_eq!(exit_code(&Exit::First("Exit code "), &residue, "Exit code 143\nx"), Some(143));
        assert_eq!(exit_code(&Exit::First("Exit code "), &residue, "x\nExit code 1"), None);
        assert_eq!(
            exit_code(&Exit::Last("<exited with exit code "), &residue, "a\n<exited with exit code -1>"),
            Some(-1)
        );
        let json = r#"{"output":"","metadata":{"exit_code":3}}"#;
        assert_eq!(exit_code(&Exit::Json("metadata.exit_code"), &residue, json), Some(3));
        assert_eq!(exit_code(&Exit::Json("metadata.exit_code"), &residue, "no"), None);
    }

    #[test]
    fn a_name_ends_where_its_letters_end() {
        assert_eq!(name_after("running with ID: ab_1-c. Output", "with ID: ").as_deref(), Some("ab_1-c"));
        assert_eq!(name_after("running", "with ID: "), None);
    }
}
