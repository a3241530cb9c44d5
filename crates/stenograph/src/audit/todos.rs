//! The list of what is to do, as calls keep it: given whole each time, or item by item. By shape; no tool is named here.

use super::report::{Place, Todo, Todos};
use crate::evidence::is_named;
use crate::json::{Object, items, word};
use crate::model::{Input, ScriptWords};
use crate::text::beginning;

/// How many items are kept.
const ITEMS_MAX: usize = 1000;

/// How long an item may be.
const TEXT_SIZE_MAX: usize = 2000;

/// Keys below which a whole list stands.
const LISTS: [&str; 5] = ["todos", "plan", "tasks", "items", "todoList"];

/// Keys of what is to do, the likelier first.
const TEXTS: [&str; 7] = ["content", "step", "subject", "title", "text", "task", "description"];

/// What a call does to the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// Here is all of it.
    All(Vec<Todo>, u64),
    /// One more; its id comes with the answer.
    More(String),
    /// Something about one of them.
    One { id: String, status: Option<String>, text: Option<String> },
}

/// What a call does to the list, if it is about it.
pub(super) fn change(tool: &str, input: &Input<'_>, script: Option<ScriptWords>) -> Option<Change> {
    let raw = match input {
        Input::Json(raw) => raw,
        Input::Text(text) => return scripted(&text.decode(), &script?),
    };
    let object = Object::parse(raw)?;
    let text = |key: &str| object.peek(key).and_then(word).map(|text| beginning(&text, TEXT_SIZE_MAX).to_owned());
    if let Some(list) = LISTS.iter().find_map(|key| object.peek(key).filter(|raw| raw.starts_with('['))) {
        let raws = items(list)?;
        let items: Vec<Todo> = raws.iter().take(ITEMS_MAX).filter_map(|raw| item(raw)).collect();
        // An empty list is one that was cleared, if the tool is about such lists at all.
        let is_list = !items.is_empty() || raws.is_empty() && is_named(tool, &["todo", "plan", "todos"]);
        return is_list.then(|| Change::All(items, raws.len().saturating_sub(ITEMS_MAX) as u64));
    }
    if !is_named(tool, &["task", "todo", "issue"]) {
        return None;
    }
    if is_named(tool, &["create", "add", "new"]) {
        return text("subject").or_else(|| text("title")).or_else(|| text("content")).map(Change::More);
    }
    let id = text("taskId").or_else(|| text("task_id")).or_else(|| text("id"))?;
    let (status, subject) = (text("status"), text("subject"));
    let is_change = is_named(tool, &["update", "edit", "set", "complete"]) && (status.is_some() || subject.is_some());
    is_change.then_some(Change::One { id, status, text: subject })
}

/// The list that a script gives to a tool.
fn scripted(text: &str, script: &ScriptWords) -> Option<Change> {
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
    (!items.is_empty()).then_some(Change::All(items, 0))
}

fn item(raw: &str) -> Option<Todo> {
    let object = Object::parse(raw)?;
    let text = |key: &str| object.peek(key).and_then(word).map(|text| beginning(&text, TEXT_SIZE_MAX).to_owned());
    let status = text("status").or_else(|| {
        let done = text("completed").or_else(|| text("done"))?;
        Some(if done == "true" { "completed" } else { "pending" }.to_owned())
    })?;
    let said = TEXTS.iter().find_map(|key| text(key).filter(|text| !text.is_empty()))?;
    Some(Todo { id: text("id"), text: said, status })
}

/// Carries a change out.
pub(super) fn apply(todos: &mut Option<Todos>, change: Change, place: Place) {
    let list = todos.get_or_insert_with(Todos::default);
    list.place = place;
    match change {
        Change::All(items, more) => {
            list.items = items;
            list.more = more;
        }
        Change::More(text) => {
            let todo = Todo { id: None, text, status: "pending".to_owned() };
            if list.items.len() < ITEMS_MAX { list.items.push(todo) } else { list.more += 1 }
        }
        Change::One { id, status, text } => {
            let at = list.items.iter().position(|item| item.id.as_deref() == Some(&id));
            match (at, status.as_deref()) {
                (Some(at), Some("deleted")) => drop(list.items.remove(at)),
                (Some(at), _) => {
                    if let Some(item) = list.items.get_mut(at) {
                        item.status = status.unwrap_or_else(|| std::mem::take(&mut item.status));
                        item.text = text.unwrap_or_else(|| std::mem::take(&mut item.text));
                    }
                }
                (None, _) => {}
            }
        }
    }
}

/// Gives an item that was added the id by which it is changed later.
pub(super) fn name(todos: &mut Option<Todos>, text: &str, id: Option<&str>, place: Place) {
    apply(todos, Change::More(text.to_owned()), place);
    let item = todos.as_mut().and_then(|todos| todos.items.last_mut());
    if let (Some(item), Some(id)) = (item, id) {
        item.id = Some(id.to_owned());
    }
}

/// The number that an answer gives an item: `Task #3 created`.
pub(super) fn number(answer: &str) -> Option<String> {
    let rest = answer.get(answer.find('#')? + 1..)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).take(16).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tool: &str, json: &'static str) -> Option<Change> {
        change(tool, &Input::Json(json.into()), None)
    }

    #[test]
    fn lists_are_known_by_their_shape() {
        let Some(Change::All(items, 0)) = of("TodoWrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#) else {
            panic!("no list")
        };
        assert_eq!((items[0].text.as_str(), items[0].status.as_str()), ("a", "pending"));
        let plan = of("update_plan", r#"{"plan":[{"step":"b","status":"completed"}],"explanation":"x"}"#);
        assert!(matches!(plan, Some(Change::All(items, _)) if items[0].text == "b"));
        assert!(of("anything", r#"{"items":[{"name":"no status"}]}"#).is_none());
        assert!(matches!(of("TodoWrite", r#"{"todos":[]}"#), Some(Change::All(items, _)) if items.is_empty()));
    }

    #[test]
    fn items_come_and_change_one_by_one() {
        let mut todos = None;
        name(&mut todos, "first", Some("1"), Place::default());
        name(&mut todos, "second", number("Task #2 created successfully").as_deref(), Place::default());
        for json in [r#"{"taskId":"2","status":"completed"}"#, r#"{"taskId":"1","status":"deleted"}"#] {
            apply(&mut todos, of("TaskUpdate", json).unwrap(), Place::default());
        }
        let items = todos.unwrap().items;
        assert_eq!(items, [Todo { id: Some("2".into()), text: "second".into(), status: "completed".into() }]);
        assert!(of("TaskOutput", r#"{"task_id":"2"}"#).is_none());
    }
}
