//! The fields of a call's input that identify the call: a path, a command, a pattern, an address, a task. The shape of the input decides, not
//! the name of the tool. The content that a tool writes into a file does not count.

use serde::{Deserialize, Serialize};

use crate::evidence::{
    COMMAND_KEYS, COMMAND_SIZE_MAX, CallInput, PATH_KEYS, PATTERN_KEYS, Task, URL_KEYS, flat, fold_key,
};
use crate::json::{Object, word};
use crate::model::{Input, ScriptWords};
use crate::text::beginning;

/// The identifying fields of a call's input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Keys {
    /// The fields, the most specific first.
    pub fields: Vec<(String, String)>,
    /// Whether a value was too long and is cut.
    pub is_cut: bool,
    /// The command, if it runs one. A script has one line for each of its commands.
    pub command: Option<String>,
    /// The names of background jobs that it may poll.
    pub polled_names: Vec<String>,
    /// The task that it gives to another agent.
    pub task: Option<Task>,
}

/// The most fields of a call.
const FIELDS_MAX: usize = 6;

/// The most bytes of an identifying field without a known name.
const SHORT_SIZE_MAX: usize = 200;

/// Keys of identifying fields, without separators between their words, the most specific first.
const DISTINGUISHING_KEYS: [&[&str]; 8] = [
    &COMMAND_KEYS,
    &PATH_KEYS,
    &PATTERN_KEYS,
    &URL_KEYS,
    &["subagenttype", "agenttype", "skill", "subject", "description", "title", "name"],
    &["taskid", "agentid", "bashid", "shellid", "sessionid", "id", "ids", "to", "recipient", "target"],
    &["status", "question", "message", "prompt", "task"],
    &["cwd", "workdir", "chars"],
];

impl Keys {
    /// The fields of this input. `paths` are the files that a text names.
    pub fn of(tool: &str, input: &Input<'_>, paths: &[String], script: Option<ScriptWords>) -> Keys {
        let call_input = CallInput::of(tool, input, script, || !paths.is_empty());
        let mut keys = Keys {
            is_cut: call_input.is_cut,
            command: call_input.command,
            polled_names: call_input.polled_jobs,
            ..Keys::default()
        };
        let object = match input {
            Input::Text(_) => None,
            Input::Json(raw) => Object::parse(raw),
        };
        match (input, object) {
            (_, Some(object)) => keys.object(tool, &object),
            (Input::Text(text), None) => keys.text(&text.decode(), paths, script),
            (Input::Json(raw), None) => keys.text(&word(raw).unwrap_or_default(), paths, script),
        }
        keys
    }

    /// A summary of the call: its command, or else the most specific value.
    pub fn about(&self) -> &str {
        if let Some(command) = &self.command {
            return command;
        }
        self.fields.first().map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn text(&mut self, text: &str, paths: &[String], script: Option<ScriptWords>) {
        if !paths.is_empty() {
            return self.put("files", &paths.join(", "));
        }
        // The commands of a script say more than its source text.
        if script.is_some()
            && let Some(command) = self.command.clone()
        {
            self.put("command", &command);
        }
        self.put("input", text);
    }

    fn object(&mut self, tool: &str, object: &Object<'_>) {
        for keys in DISTINGUISHING_KEYS {
            for (key, raw) in object.pairs() {
                let folded = fold_key(key);
                if keys.contains(&folded.as_str())
                    && let Some(text) = flat(raw)
                {
                    self.put(key, &text);
                }
            }
        }
        if self.fields.is_empty() {
            for (key, raw) in object.pairs() {
                if let Some(text) = word(raw).filter(|text| text.len() <= SHORT_SIZE_MAX) {
                    self.put(key, &text);
                }
            }
        }
        self.task = Task::of(tool, object).map(|task| Task { prompt: self.capped(&task.prompt), ..task });
    }

    fn put(&mut self, key: &str, value: &str) {
        let is_known = self.fields.iter().any(|(known, _)| known == key);
        if self.fields.len() < FIELDS_MAX && !value.is_empty() && !is_known {
            let value = self.capped(value);
            self.fields.push((key.to_owned(), value));
        }
    }

    fn capped(&mut self, text: &str) -> String {
        let capped = beginning(text, COMMAND_SIZE_MAX);
        self.is_cut |= capped.len() < text.len();
        capped.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(tool: &str, json: &'static str) -> Keys {
        Keys::of(tool, &Input::Json(json.into()), &[], None)
    }

    #[test]
    fn the_most_specific_field_comes_first() {
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
    fn a_task_is_recognized_by_its_shape() {
        let task =
            keys("Task", r#"{"subagent_type":"Explore","description":"look","prompt":"look around"}"#).task.unwrap();
        assert_eq!((task.kind.as_deref(), task.title.as_deref()), (Some("Explore"), Some("look")));
        assert!(keys("spawn_agent", r#"{"message":"go"}"#).task.is_some());
        assert!(keys("TaskCreate", r#"{"subject":"a","description":"b"}"#).task.is_none());
        assert!(keys("TaskOutput", r#"{"task_id":"7"}"#).task.is_none());
        assert_eq!(keys("wait_agent", r#"{"ids":["a","b"]}"#).polled_names, ["a", "b"]);
        assert_eq!(keys("write_stdin", r#"{"session_id":66,"chars":""}"#).polled_names, ["66"]);
    }

    #[test]
    fn written_content_is_not_a_field_and_a_long_value_is_cut() {
        let keys = keys("Write", r#"{"file_path":"/a","content":"everything"}"#);
        assert_eq!(keys.fields, [("file_path".into(), "/a".into())]);
        let long = format!(r#"{{"command":"{}"}}"#, "ä".repeat(COMMAND_SIZE_MAX));
        let keys = Keys::of("Bash", &Input::Json(long.into()), &[], None);
        assert!(keys.is_cut && keys.command.is_some_and(|command| command.len() <= COMMAND_SIZE_MAX));
    }
}
