//! Changes the marks of a session: the only change that a request can ask for.

use jiff::Timestamp;
use stenograph_store::archive::MarkChange;
use stenograph_store::index::NoObserver;

use super::address::Params;
use super::state::{NamedSession, Viewer};
use super::trouble::AnswerProblem;

/// Applies the changes of a form, all or none, and returns the session as it is then.
pub fn change(viewer: &Viewer, name: &str, form: &Params) -> Result<NamedSession, AnswerProblem> {
    let named = viewer.session(name)?;
    let changes = changes(form)?;
    if changes.is_empty() {
        return Err(AnswerProblem::bad("no change is given").hint("use pin, title, tag, untag, note or remove_note"));
    }
    viewer.store.mark(&[(named.session.id, changes)], Timestamp::now().as_millisecond(), &mut NoObserver)?;
    viewer.forget_listing();
    viewer.session(name)
}

fn changes(form: &Params) -> Result<Vec<MarkChange>, AnswerProblem> {
    let mut changes = Vec::new();
    match form.value("pin") {
        None => {}
        Some("yes") => changes.push(MarkChange::Pin),
        Some("no") => changes.push(MarkChange::Unpin),
        Some(_) => return Err(AnswerProblem::bad("pin must be yes or no")),
    }
    match form.value("title") {
        None => {}
        Some("-") => changes.push(MarkChange::NoTitle),
        Some(title) => changes.push(MarkChange::Title(title.to_owned())),
    }
    // Removals first, so that they make room.
    changes.extend(form.value("untag").map(|tag| MarkChange::Untag(tag.to_owned())));
    changes.extend(form.value("tag").map(|tag| MarkChange::Tag(tag.to_owned())));
    if let Some(number) = form.value("remove_note") {
        let number = number.parse().map_err(|_| AnswerProblem::bad("remove_note must be the number of a note"))?;
        changes.push(MarkChange::RemoveNote(number));
    }
    changes.extend(form.value("note").map(|text| MarkChange::Note { text: text.to_owned(), event: None }));
    Ok(changes)
}
