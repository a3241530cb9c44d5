//! What the telemetry states about an agent's work, collected from its events. It keeps names and the last message, never a
//! conversation.

use stenograph::json::Object;
use stenograph::model::{Body, Content, Event, Input, Role};

use super::agent::beginning;
use crate::journal::{Author, author};

/// A summary of an agent's events.
#[derive(Clone, Debug, Default)]
pub struct AgentSummary {
    tools: NameList,
    files: NameList,
    /// The last message of the assistant.
    last_message: Option<String>,
    /// The final result that an agent stated when it stopped.
    result: Option<String>,
    /// Whether the agent succeeded, if its last stop states it.
    success: Option<bool>,
    last_ms: Option<i64>,
    stopped_ms: Option<i64>,
}

/// Names in the order of first occurrence, each once.
#[derive(Clone, Debug, Default)]
struct NameList {
    names: Vec<String>,
    left_out: u64,
}

/// The maximum number and length of the tool or file names on a line; the log has the rest.
const NAMES_MAX: usize = 1000;
const NAME_SIZE_MAX: usize = 4096;

impl NameList {
    fn see(&mut self, name: &str) {
        if self.names.iter().any(|known| known == name) {
            return;
        }
        if self.names.len() < NAMES_MAX && name.len() <= NAME_SIZE_MAX {
            self.names.push(name.to_owned());
        } else {
            self.left_out += 1;
        }
    }
}

impl AgentSummary {
    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let moment = event.time.as_ref().and_then(stenograph::time::Time::to_millis);
        if author(event) == Author::Stop {
            self.stopped_ms = moment;
        } else {
            self.last_ms = moment.or(self.last_ms);
        }
        if event.restates {
            return;
        }
        match &event.body {
            Body::Message { role: Role::Assistant, content } => {
                self.last_message = text(content).or_else(|| self.last_message.take());
            }
            Body::ToolCall { name, input, .. } => {
                self.tools.see(name);
                if let Some(file) = file_changed(name, input) {
                    self.files.see(&file);
                }
            }
            Body::Stop { success, content, .. } if author(event) == Author::Given => {
                self.success = *success;
                self.result = content.as_ref().and_then(text).or_else(|| self.result.take());
            }
            Body::Message { .. }
            | Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::ToolResult { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }

    /// The tools that were used.
    pub fn tools(&self) -> &[String] {
        &self.tools.names
    }

    /// The files that were changed.
    pub fn files(&self) -> &[String] {
        &self.files.names
    }

    /// The beginning of the agent's last message.
    pub fn last_message(&self) -> &str {
        self.last_message.as_deref().or(self.result.as_deref()).unwrap_or_default()
    }

    /// Whether the agent succeeded, if it stated that.
    pub fn success(&self) -> Option<bool> {
        self.success
    }

    /// The time of the last recorded event.
    pub fn last_ms(&self) -> Option<i64> {
        self.last_ms
    }

    /// When the recorder stated the end.
    pub fn stopped_ms(&self) -> Option<i64> {
        self.stopped_ms
    }

    /// How many occurrences of tool and file names were left out.
    pub fn left_out(&self) -> u64 {
        self.tools.left_out + self.files.left_out
    }
}

fn text(content: &Content<'_>) -> Option<String> {
    let text = content.joined();
    (!text.is_empty()).then(|| beginning(&text.decode()))
}

/// The tools that change files, in the two notations that GoodVibes knows and with those it forgot, and their path arguments.
const CHANGING: [&str; 6] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "edit_file"];
const PATHS: [&str; 4] = ["file_path", "notebook_path", "path", "file"];

fn file_changed(tool: &str, input: &Input<'_>) -> Option<String> {
    match input {
        Input::Json(raw) if CHANGING.contains(&tool) => {
            let input = Object::parse(raw)?;
            PATHS.iter().find_map(|key| input.peek_str(key).filter(|path| !path.is_empty())).map(String::from)
        }
        Input::Json(_) | Input::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::Registry;
    use stenograph::read;

    fn summary(lines: &str) -> AgentSummary {
        let mut summary = AgentSummary::default();
        let events = read::all(Registry::built_in().named("claude-events").unwrap(), lines.as_bytes()).events;
        events.iter().for_each(|event| summary.add(event));
        summary
    }

    #[test]
    fn the_last_words_are_the_assistants_and_the_result_only_where_there_are_none() {
        let said = "{\"type\":\"text\",\"text\":\"Done.\"}\n{\"role\":\"user\",\"content\":\"Thanks.\"}\n";
        let result = "{\"type\":\"result\",\"result\":\"All is well.\",\"success\":true}\n";
        assert_eq!(summary(&format!("{said}{result}")).last_message(), "Done.");
        assert_eq!(summary(result).last_message(), "All is well.");
        assert_eq!((summary("").last_message(), summary(result).success()), ("", Some(true)));
    }

    #[test]
    fn a_file_is_named_by_whatever_key_the_tool_has_for_it() {
        let call =
            |name: &str, input: &str| format!("{{\"type\":\"tool_use\",\"name\":\"{name}\",\"input\":{input}}}\n");
        let calls = [
            call("write_file", r#"{"path":"/a"}"#),
            call("MultiEdit", r#"{"file_path":"/b","edits":[]}"#),
            call("NotebookEdit", r#"{"notebook_path":"/c"}"#),
            call("Read", r#"{"file_path":"/d"}"#),
            call("Write", r#"{"file_path":7}"#),
        ];
        let summary = summary(&calls.concat());
        assert_eq!(summary.files(), ["/a", "/b", "/c"]);
        assert_eq!(summary.tools(), ["write_file", "MultiEdit", "NotebookEdit", "Read", "Write"]);
    }

    #[test]
    fn no_agent_makes_a_line_grow_without_end() {
        let mut names = NameList::default();
        (0..2000).for_each(|number| names.see(&number.to_string()));
        names.see(&"x".repeat(5000));
        assert_eq!((names.names.len(), names.left_out), (NAMES_MAX, 1001));
    }
}
