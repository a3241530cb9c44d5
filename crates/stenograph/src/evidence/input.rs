//! The input of a call as evidence of its outcome: the command that it runs and the jobs that it polls. It recognizes tools by
//! the shape of their inputs and names none.

use std::borrow::Cow;

use crate::json::{Object, items, word};
use crate::model::{Input, ScriptWords};
use crate::text::{Text, beginning};

/// The input of a call as evidence of its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallInput {
    /// The command, if the call runs one. The commands of a script are separated by newlines.
    pub command: Option<String>,
    /// How many commands a script runs.
    pub commands: usize,
    /// Whether the command was truncated.
    pub is_cut: bool,
    /// Names of jobs that the call may poll.
    pub polled_jobs: Vec<String>,
    /// Whether the input is text and not an object.
    is_text: bool,
}

/// The largest command kept whole. A script can be long; anything longer is data.
pub(crate) const COMMAND_SIZE_MAX: usize = 16 << 10;

/// The most jobs that a call may poll.
const POLLED_MAX: usize = 32;

/// Keys whose value is a command, without the separators between their words.
pub(crate) const COMMAND_KEYS: [&str; 5] = ["command", "cmd", "script", "argv", COMMANDS];

/// The key of a list of commands.
const COMMANDS: &str = "commands";

/// Keys whose value is a file or a folder.
pub(crate) const PATH_KEYS: [&str; 13] = [
    "filepath",
    "path",
    "file",
    "filename",
    "notebookpath",
    "absolutepath",
    "relativepath",
    "targetfile",
    "files",
    "paths",
    "filepaths",
    "directory",
    "dir",
];

/// Keys whose value names a job.
const HANDLES: [&str; 16] = [
    "taskid",
    "taskids",
    "agentid",
    "agentids",
    "bashid",
    "shellid",
    "sessionid",
    "processid",
    "id",
    "ids",
    "to",
    "target",
    "targets",
    "recipient",
    "receiverid",
    "threadid",
];

/// Words in the name of a tool that runs any text as a command.
const SHELLS: [&str; 7] = ["bash", "shell", "exec", "terminal", "sh", "powershell", "python"];

impl CallInput {
    /// The evidence in this input. `touches_files` returns whether a text names files that it changes; it is then a patch, not
    /// a command.
    pub fn of(
        tool: &str,
        input: &Input<'_>,
        script: Option<ScriptWords>,
        touches_files: impl FnOnce() -> bool,
    ) -> CallInput {
        let mut found = CallInput { is_text: matches!(input, Input::Text(_)), ..CallInput::default() };
        match input {
            Input::Text(text) => found.text(tool, &text.decode(), script, touches_files),
            Input::Json(raw) => match Object::parse(raw) {
                Some(object) => found.object(tool, &object),
                None => found.text(tool, &word(raw).unwrap_or_default(), script, touches_files),
            },
        }
        found
    }

    /// Whether the result may state an exit code.
    pub fn may_exit(&self) -> bool {
        self.command.is_some() || self.is_text
    }

    fn text(&mut self, tool: &str, text: &str, script: Option<ScriptWords>, touches_files: impl FnOnce() -> bool) {
        if touches_files() {
            return;
        }
        if let Some(script) = script {
            let commands: Vec<String> =
                ScriptWords::texts(text, script.command).into_iter().map(|(_, command)| command).collect();
            self.commands = commands.len();
            self.command =
                Some(commands.join("\n")).filter(|command| !command.is_empty()).map(|text| self.capped(&text));
            let handles = ScriptWords::texts(text, script.job).into_iter().map(|(_, name)| name);
            self.polled_jobs.extend(handles.take(POLLED_MAX));
        } else if is_named(tool, &SHELLS) && !text.trim().is_empty() {
            self.command = Some(self.capped(text));
        }
    }

    fn object(&mut self, tool: &str, object: &Object<'_>) {
        let has_path = || object.pairs().any(|(key, _)| PATH_KEYS.contains(&&*fold_key(key)));
        for (key, raw) in object.pairs() {
            let folded = fold_key(key);
            // A key "script" may hold anything, such as instructions for other agents.
            let is_command = COMMAND_KEYS.contains(&folded.as_str())
                && (folded != "script" || is_named(tool, &SHELLS) || is_named(tool, &["run", "script", "command"]));
            // In a tool for files, a single word names an operation and not a command.
            if is_command && self.command.is_none() && !(is_one_word(raw) && has_path()) {
                let found = if folded == COMMANDS { Some(words(raw).join("\n")) } else { command(raw) };
                self.command = found.map(|text| self.capped(&text)).filter(|text| !text.trim().is_empty());
            }
            if HANDLES.contains(&folded.as_str()) {
                self.polled_jobs.extend(words(raw).into_iter().take(POLLED_MAX));
            }
        }
        self.polled_jobs.truncate(POLLED_MAX);
    }

    fn capped(&mut self, text: &str) -> String {
        let capped = beginning(text, COMMAND_SIZE_MAX);
        self.is_cut |= capped.len() < text.len();
        capped.to_owned()
    }
}

/// Whether a name contains one of these words, whatever separates its words.
pub(crate) fn is_named(name: &str, words: &[&str]) -> bool {
    crate::text::name_words(name).iter().any(|word| words.contains(&word.as_str()))
}

/// A key in lower case without the separators between its words.
pub(crate) fn fold_key(key: &str) -> String {
    const LENGTH_MAX: usize = 32;
    if key.len() > LENGTH_MAX {
        return String::new();
    }
    key.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// The first text, under any of these keys, that is not empty. The keys are spelled as [`fold_key`] returns them.
pub(crate) fn text_under(object: &Object<'_>, keys: &[&str]) -> Option<String> {
    let named = object.pairs().filter(|(key, _)| keys.contains(&fold_key(key).as_str()));
    named.filter_map(|(_, raw)| flat(raw)).find(|text| !text.is_empty())
}

/// A text, a number, or a list of them as one line.
pub(crate) fn flat(raw: &str) -> Option<String> {
    if raw.starts_with('[') {
        let words = words(raw);
        return (!words.is_empty()).then(|| words.join(" "));
    }
    Some(word(raw)?.into_owned())
}

/// The texts and numbers of a list, or the only one.
pub(crate) fn words(raw: &str) -> Vec<String> {
    if !raw.starts_with('[') {
        return word(raw).map(Cow::into_owned).into_iter().collect();
    }
    items(raw).unwrap_or_default().into_iter().filter_map(|item| Some(word(item)?.into_owned())).collect()
}

/// A command as a user would type it. A list that only passes a script to a shell becomes that script.
fn command(raw: &str) -> Option<String> {
    if !raw.starts_with('[') {
        return Some(Text::from_json(raw)?.decode().into_owned());
    }
    let words = words(raw);
    match words.as_slice() {
        [shell, flag, script] if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") => {
            Some(script.clone())
        }
        [] => None,
        words => Some(words.join(" ")),
    }
}

/// The command that a field of a record states.
pub(super) fn command_at(raw: &str) -> Option<String> {
    command(raw).map(|text| beginning(&text, COMMAND_SIZE_MAX).to_owned())
}

fn is_one_word(raw: &str) -> bool {
    raw.starts_with('"') && raw.len() <= 32 && !raw.contains(char::is_whitespace)
}
