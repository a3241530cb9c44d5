//! To-do lists and plans in calls, which replace the whole list or change single items. It recognizes them by their shape.

use serde::{Deserialize, Serialize};

use super::is_named;
use crate::json::{Object, items, word};
use crate::model::{Input, ScriptWords};
use crate::text::beginning;

/// The most items kept.
pub(crate) const PLAN_ITEMS_MAX: usize = 1000;

/// The longest item kept.
const TEXT_SIZE_MAX: usize = 2000;

/// Keys of a whole list.
const LISTS: [&str; 5] = ["todos", "plan", "tasks", "items", "todoList"];

/// Keys of the text of an item, the likelier first.
const TEXTS: [&str; 7] = ["content", "step", "subject", "title", "text", "task", "description"];

/// An item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// The id by which later calls change it.
    pub id: Option<String>,
    /// The text of the item.
    pub text: String,
    /// The progress, in the agent's word.
    pub status: String,
}

/// The progress of an item of a to-do list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoProgress {
    /// Nobody works on it yet.
    Open,
    /// The agent works on it.
    Active,
    /// It is done, or no longer needed.
    Done,
}

impl Todo {
    /// The progress that the agent's word states.
    pub fn progress(&self) -> TodoProgress {
        match self.status.as_str() {
            "completed" | "done" | "cancelled" => TodoProgress::Done,
            "in_progress" | "in-progress" | "active" => TodoProgress::Active,
            _ => TodoProgress::Open,
        }
    }
}

/// A change of the to-do list.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanChange {
    /// It replaces the list. The number counts the items over the limit.
    All(Vec<Todo>, u64),
    /// It adds an item. The result states its id.
    Added(String),
    /// It changes one item.
    Changed {
        /// The item.
        id: String,
        /// Its new status.
        status: Option<String>,
        /// Its new text.
        text: Option<String>,
    },
}

impl PlanChange {
    /// The change that a call of this tool makes, if any.
    pub(crate) fn of(tool: &str, input: &Input<'_>, script: Option<ScriptWords>) -> Option<PlanChange> {
        let raw = match input {
            Input::Json(raw) => raw,
            Input::Text(text) => return scripted(&text.decode(), &script?),
        };
        let object = Object::parse(raw)?;
        let text = |key: &str| object.peek(key).and_then(word).map(|text| beginning(&text, TEXT_SIZE_MAX).to_owned());
        if let Some(list) = LISTS.iter().find_map(|key| object.peek(key).filter(|raw| raw.starts_with('['))) {
            let raws = items(list)?;
            let items: Vec<Todo> = raws.iter().take(PLAN_ITEMS_MAX).filter_map(|raw| item(raw)).collect();
            // An empty list clears the list, if the tool is about such lists at all.
            let is_list = !items.is_empty() || raws.is_empty() && is_named(tool, &["todo", "plan", "todos"]);
            return is_list.then(|| PlanChange::All(items, raws.len().saturating_sub(PLAN_ITEMS_MAX) as u64));
        }
        if !is_named(tool, &["task", "todo", "issue"]) {
            return None;
        }
        if is_named(tool, &["create", "add", "new"]) {
            return text("subject").or_else(|| text("title")).or_else(|| text("content")).map(PlanChange::Added);
        }
        let id = text("taskId").or_else(|| text("task_id")).or_else(|| text("id"))?;
        let (status, subject) = (text("status"), text("subject"));
        let is_change =
            is_named(tool, &["update", "edit", "set", "complete"]) && (status.is_some() || subject.is_some());
        is_change.then_some(PlanChange::Changed { id, status, text: subject })
    }
}

/// The list that a script passes to a tool.
fn scripted(text: &str, script: &ScriptWords) -> Option<PlanChange> {
    let statuses = ScriptWords::texts(text, script.status);
    let steps = ScriptWords::texts(text, script.step);
    let status_after = |at: usize| statuses.iter().find(|(status, _)| *status > at).map(|(_, text)| text.clone());
    let items: Vec<Todo> = steps
        .into_iter()
        .filter_map(|(at, step)| {
            let text = beginning(&step, TEXT_SIZE_MAX).to_owned();
            Some(Todo { id: None, text, status: status_after(at)? })
        })
        .collect();
    (!items.is_empty()).then_some(PlanChange::All(items, 0))
}

fn item(raw: &str) -> Option<Todo> {
    let object = Object::parse(raw)?;
    let text = |key: &str| object.peek(key).and_then(word).map(|text| beginning(&text, TEXT_SIZE_MAX).to_owned());
    let status = text("status").or_else(|| {
        let done = text("completed").or_else(|| text("done"))?;
        Some(if done == "true" { "completed" } else { "pending" }.to_owned())
    })?;
    let content = TEXTS.iter().find_map(|key| text(key).filter(|text| !text.is_empty()))?;
    Some(Todo { id: text("id"), text: content, status })
}
