//! Tasks that a call gives to another agent, recognized by the shape of the call's input.

use serde::{Deserialize, Serialize};

use super::{is_named, text_under};
use crate::json::Object;

/// The task of another agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The kind of agent.
    pub kind: Option<String>,
    /// The title of the task.
    pub title: Option<String>,
    /// The instructions for the agent.
    pub prompt: String,
    /// The name of the agent.
    pub name: Option<String>,
}

/// Keys whose value instructs another agent.
const PROMPTS: [&str; 5] = ["prompt", "message", "task", "instructions", "items"];

/// Keys whose value is the kind of another agent.
const AGENT_KINDS: [&str; 4] = ["subagenttype", "agenttype", "subagent", "agentrole"];

/// Words in the name of a tool that manages a task and does not start one.
const MANAGING: [&str; 10] = ["wait", "send", "close", "stop", "get", "list", "update", "output", "resume", "create"];

impl Task {
    /// The task that a call of this tool gives. A field with the kind of agent is enough; without one, the tool must have a
    /// prompt and be named after agents or tasks.
    pub(crate) fn of(tool: &str, input: &Object<'_>) -> Option<Task> {
        let text = |keys: &[&str]| text_under(input, keys);
        let (kind, prompt) = (text(&AGENT_KINDS), text(&PROMPTS));
        let is_named_so = || is_named(tool, &["agent", "subagent", "task"]) && !is_named(tool, &MANAGING);
        if kind.is_none() && !(prompt.is_some() && is_named_so()) {
            return None;
        }
        let title = text(&["description", "title", "nickname"]);
        Some(Task { kind, prompt: prompt.unwrap_or_default(), title, name: text(&["name", "taskname"]) })
    }
}
