//! The to-do list of a session, kept up to date call by call.

use super::report::{EventPlace, Todos};
use crate::evidence::{PLAN_ITEMS_MAX, PlanChange, Todo};

/// Applies a change.
pub(super) fn apply(todos: &mut Option<Todos>, change: PlanChange, place: EventPlace) {
    let list = todos.get_or_insert_with(Todos::default);
    list.place = place;
    match change {
        PlanChange::All(items, more) => {
            list.items = items;
            list.more = more;
        }
        PlanChange::Added(text) => {
            let todo = Todo { id: None, text, status: "pending".to_owned() };
            if list.items.len() < PLAN_ITEMS_MAX { list.items.push(todo) } else { list.more += 1 }
        }
        PlanChange::Changed { id, status, text } => {
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

/// Adds an item with the id by which later calls change it.
pub(super) fn name(todos: &mut Option<Todos>, text: &str, id: Option<&str>, place: EventPlace) {
    apply(todos, PlanChange::Added(text.to_owned()), place);
    let item = todos.as_mut().and_then(|todos| todos.items.last_mut());
    if let (Some(item), Some(id)) = (item, id) {
        item.id = Some(id.to_owned());
    }
}

/// The number of the item that a result states: `Task #3 created`.
pub(super) fn number(answer: &str) -> Option<String> {
    let rest = answer.get(answer.find('#')? + 1..)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).take(16).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Input;

    fn of(tool: &str, json: &'static str) -> Option<PlanChange> {
        PlanChange::of(tool, &Input::Json(json.into()), None)
    }

    #[test]
    fn lists_are_recognized_by_their_shape() {
        let Some(PlanChange::All(items, 0)) = of("TodoWrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#)
        else {
            panic!("no list")
        };
        assert_eq!((items[0].text.as_str(), items[0].status.as_str()), ("a", "pending"));
        let plan = of("update_plan", r#"{"plan":[{"step":"b","status":"completed"}],"explanation":"x"}"#);
        assert!(matches!(plan, Some(PlanChange::All(items, _)) if items[0].text == "b"));
        assert!(of("anything", r#"{"items":[{"name":"no status"}]}"#).is_none());
        assert!(matches!(of("TodoWrite", r#"{"todos":[]}"#), Some(PlanChange::All(items, _)) if items.is_empty()));
    }

    #[test]
    fn items_are_added_and_changed_one_by_one() {
        let mut todos = None;
        name(&mut todos, "first", Some("1"), EventPlace::default());
        name(&mut todos, "second", number("Task #2 created successfully").as_deref(), EventPlace::default());
        for json in [r#"{"taskId":"2","status":"completed"}"#, r#"{"taskId":"1","status":"deleted"}"#] {
            apply(&mut todos, of("TaskUpdate", json).unwrap(), EventPlace::default());
        }
        let items = todos.unwrap().items;
        assert_eq!(items, [Todo { id: Some("2".into()), text: "second".into(), status: "completed".into() }]);
        assert!(of("TaskOutput", r#"{"task_id":"2"}"#).is_none());
    }
}
