//! What of a call's input tells calls apart, by the shape of what the tool was given: a path, a command, a pattern, an address, a task.
//! No tool is named here. What a tool is to write into a file is no key.

use std::borrow::Cow;

use crate::format::marks::{Script, word};
use crate::json::{Object, items};
use crate::model::Input;
use crate::text::{Text, beginning};

/// What the input of a call tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Keys {
    /// The fields that tell calls apart, the more telling first.
    pub fields: Vec<(String, String)>,
    /// Whether a value was too long to be kept whole.
    pub is_cut: bool,
    /// The command, if it runs one. Those of a script stand one below the other.
    pub command: Option<String>,
    /// How many commands that are.
    pub commands: usize,
    /// Names by which work that goes on may be asked for.
    pub asks_for: Vec<String>,
    /// What another agent is to do.
    pub task: Option<Task>,
}

/// What another agent is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Task {
    pub kind: Option<String>,
    pub title: Option<String>,
    pub prompt: String,
    pub name: Option<String>,
}

/// How long a value may be to be kept whole. A script can be long; what is longer is data.
const VALUE_SIZE_MAX: usize = 16 << 10;

/// How many fields of a call are kept.
const FIELDS_MAX: usize = 6;

/// How many names a call may ask for.
const ASKED_MAX: usize = 32;

/// How long a field without a known name may be to tell calls apart.
const SHORT_SIZE_MAX: usize = 200;

/// Keys whose values tell calls apart, without the signs between their words, the more telling first.
const TELLING: [&[&str]; 8] = [
    &["command", "cmd", "script", "argv"],
    &[
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
    ],
    &["pattern", "query", "regex", "glob", "search", "q", "queries"],
    &["url", "uri", "urls"],
    &["subagenttype", "agenttype", "skill", "subject", "description", "title", "name"],
    &["taskid", "agentid", "bashid", "shellid", "sessionid", "id", "ids", "to", "recipient", "target"],
    &["status", "question", "message", "prompt", "task"],
    &["cwd", "workdir", "chars"],
];

/// Keys whose value is what another agent is to do.
const PROMPTS: [&str; 5] = ["prompt", "message", "task", "instructions", "items"];

/// Keys whose value is the kind of another agent.
const AGENT_KINDS: [&str; 4] = ["subagenttype", "agenttype", "subagent", "agentrole"];

/// Keys by whose value work that goes on is asked for.
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

/// Words in the name of a tool that runs whatever text it is given.
const SHELLS: [&str; 7] = ["bash", "shell", "exec", "terminal", "sh", "powershell", "python"];

impl Keys {
    /// What this input tells.
    pub fn of(tool: &str, input: &Input<'_>, paths: &[String], script: Option<Script>) -> Keys {
        let mut keys = Keys::default();
        match input {
            Input::Text(text) => keys.text(tool, &text.decode(), paths, script),
            Input::Json(raw) => match Object::parse(raw).or_else(|| Object::parse(raw)) {
                Some(object) => keys.object(tool, &object, paths),
                None => keys.text(tool, &word(raw).unwrap_or_default(), paths, script),
            },
        }
        keys
    }

    /// One line about the call: its command, else the value that tells most.
    pub fn about(&self) -> &str {
        if let Some(command) = &self.command {
            return command;
        }
        self.fields.first().map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn text(&mut self, tool: &str, text: &str, paths: &[String], script: Option<Script>) {
        if !paths.is_empty() {
            return self.put("files", &paths.join(", "));
        }
        if let Some(script) = script {
            // Of a script that calls tools, the commands it runs tell more than it does itself.
            let commands: Vec<String> =
                Script::texts(text, script.command).into_iter().map(|(_, command)| command).collect();
            self.commands = commands.len();
            self.command = Some(commands.join("\n")).filter(|command| !command.is_empty()).map(|text| self.kept(&text));
            let handles = Script::texts(text, script.handle).into_iter().map(|(_, name)| name);
            self.asks_for.extend(handles.take(ASKED_MAX));
            if let Some(command) = self.command.clone() {
                self.put("command", &command);
            }
        } else if is_named(tool, &SHELLS) && !text.trim().is_empty() {
            self.command = Some(self.kept(text));
        }
        self.put("input", text);
    }

    fn object(&mut self, tool: &str, object: &Object<'_>, paths: &[String]) {
        for telling in TELLING {
            for (key, raw) in object.pairs() {
                let folded = fold(key);
                if telling.contains(&folded.as_str())
                    && let Some(text) = flat(raw)
                {
                    self.put(key, &text);
                }
            }
        }
        if !paths.is_empty() && self.fields.iter().all(|(_, value)| !paths.iter().any(|path| ends_alike(path, value))) {
            self.fields.insert(0, ("files".to_owned(), paths.join(", ")));
        }
        if self.fields.is_empty() {
            for (key, raw) in object.pairs() {
                if let Some(text) = word(raw).filter(|text| text.len() <= SHORT_SIZE_MAX) {
                    self.put(key, &text);
                }
            }
        }
        let has_path = object.pairs().any(|(key, _)| TELLING.get(1).is_some_and(|paths| paths.contains(&&*fold(key))));
        for (key, raw) in object.pairs() {
            let folded = fold(key);
            // A script may be one for anything, such as for what other agents are to do.
            let is_command = TELLING.first().is_some_and(|commands| commands.contains(&folded.as_str()))
                && (folded != "script" || is_named(tool, &SHELLS) || is_named(tool, &["run", "script", "command"]));
            // A tool for files is told by one word what it is to do; that is no command.
            if is_command && self.command.is_none() && !(has_path && is_one_word(raw)) && paths.is_empty() {
                self.command = command(raw).map(|text| self.kept(&text)).filter(|text| !text.trim().is_empty());
            }
            if HANDLES.contains(&folded.as_str()) {
                self.asks_for.extend(words(raw).into_iter().take(ASKED_MAX));
            }
        }
        self.asks_for.truncate(ASKED_MAX);
        self.task = task(tool, object).map(|task| Task { prompt: self.kept(&task.prompt), ..task });
    }

    fn put(&mut self, key: &str, value: &str) {
        let is_known = self.fields.iter().any(|(known, _)| known == key);
        if self.fields.len() < FIELDS_MAX && !value.is_empty() && !is_known {
            let value = self.kept(value);
            self.fields.push((key.to_owned(), value));
        }
    }

    fn kept(&mut self, text: &str) -> String {
        let kept = beginning(text, VALUE_SIZE_MAX);
        self.is_cut |= kept.len() < text.len();
        kept.to_owned()
    }
}

/// Whether one of the words of a name is among these, however they are joined.
pub(super) fn is_named(name: &str, words: &[&str]) -> bool {
    crate::query::parts(name).iter().any(|part| words.contains(&part.as_str()))
}

/// A task for another agent: by a field that says of what kind the agent is, else by a prompt given to a tool that is called so.
fn task(tool: &str, object: &Object<'_>) -> Option<Task> {
    let text = |keys: &[&str]| {
        let found = object.pairs().find(|(key, _)| keys.contains(&fold(key).as_str()));
        found.and_then(|(_, raw)| flat(raw)).filter(|text| !text.is_empty())
    };
    let kind = text(&AGENT_KINDS);
    let prompt = text(&PROMPTS);
    let is_agent = is_named(tool, &["agent", "subagent", "task"]);
    let asks =
        is_named(tool, &["wait", "send", "close", "stop", "get", "list", "update", "output", "resume", "create"]);
    if asks && kind.is_none() || kind.is_none() && !(is_agent && prompt.is_some()) {
        return None;
    }
    let title = text(&["description", "title", "nickname"]);
    Some(Task { kind, prompt: prompt.unwrap_or_default(), title, name: text(&["name", "taskname"]) })
}

/// A key without the signs between its words.
fn fold(key: &str) -> String {
    const LENGTH_MAX: usize = 32;
    if key.len() > LENGTH_MAX {
        return String::new();
    }
    key.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// A text, a number, or a list of them as one line.
fn flat(raw: &str) -> Option<String> {
    if raw.starts_with('[') {
        let words = words(raw);
        return (!words.is_empty()).then(|| words.join(" "));
    }
    Some(word(raw)?.into_owned())
}

fn words(raw: &str) -> Vec<String> {
    if !raw.starts_with('[') {
        return word(raw).map(Cow::into_owned).into_iter().collect();
    }
    items(raw).unwrap_or_default().into_iter().filter_map(|item| Some(word(item)?.into_owned())).collect()
}

/// A command as it would be typed. A list that only hands a script to a shell is that script.
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
    command(raw).map(|text| beginning(&text, VALUE_SIZE_MAX).to_owned())
}

fn is_one_word(raw: &str) -> bool {
    raw.starts_with('"') && raw.len() <= 32 && !raw.contains(char::is_whitespace)
}

fn ends_alike(path: &str, value: &str) -> bool {
    let last = |text: &str| text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    !value.is_empty() && last(path) == last(value.trim_end_matches(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(tool: &str, json: &'static str) -> Keys {
        Keys::of(tool, &Input::Json(json.into()), &[], None)
    }

    #[test]
    fn what_tells_most_stands_first() {
        let keys = keys("Grep", r#"{"output_mode":"content","path":"src","pattern":"fn main"}"#);
        assert_eq!(keys.fields, [("path".into(), "src".into()), ("pattern".into(), "fn main".into())]);
        assert_eq!(keys.command, None);
    }

    #[test]
    fn a_command_is_text_or_a_list_of_words() {
        assert_eq!(keys("Bash", r#"{"command":"ls -la"}"#).command.as_deref(), Some("ls -la"));
        assert_eq!(keys("shell", r#"{"command":["bash","-lc","ls | wc"]}"#).command.as_deref(), Some("ls | wc"));
        assert_eq!(keys("shell", r#"{"command":["git","status"]}"#).command.as_deref(), Some("git status"));
        assert_eq!(keys("editor", r#"{"command":"view","path":"/a"}"#).command, None);
        assert_eq!(keys("run_script", r#"{"script":"ls"}"#).command.as_deref(), Some("ls"));
        assert_eq!(keys("Workflow", r#"{"script":"await agent('look')"}"#).command, None);
        assert_eq!(Keys::of("exec", &Input::Text("ls".into()), &[], None).command.as_deref(), Some("ls"));
    }

    #[test]
    fn a_task_is_told_by_its_shape() {
        let task =
            keys("Task", r#"{"subagent_type":"Explore","description":"look","prompt":"look around"}"#).task.unwrap();
        assert_eq!((task.kind.as_deref(), task.title.as_deref()), (Some("Explore"), Some("look")));
        assert!(keys("spawn_agent", r#"{"message":"go"}"#).task.is_some());
        assert!(keys("TaskCreate", r#"{"subject":"a","description":"b"}"#).task.is_none());
        assert!(keys("TaskOutput", r#"{"task_id":"7"}"#).task.is_none());
        assert_eq!(keys("wait_agent", r#"{"ids":["a","b"]}"#).asks_for, ["a", "b"]);
        assert_eq!(keys("write_stdin", r#"{"session_id":66,"chars":""}"#).asks_for, ["66"]);
    }

    #[test]
    fn what_is_written_is_no_key_and_what_is_long_is_cut() {
        let keys = keys("Write", r#"{"file_path":"/a","content":"everything"}"#);
        assert_eq!(keys.fields, [("file_path".into(), "/a".into())]);
        let long = format!(r#"{{"command":"{}"}}"#, "ä".repeat(VALUE_SIZE_MAX));
        let keys = Keys::of("Bash", &Input::Json(long.into()), &[], None);
        assert!(keys.is_cut && keys.command.is_some_and(|command| command.len() <= VALUE_SIZE_MAX));
    }
}
