//! Changes the marks of a session: the only change that a request can ask for.

use std::collections::HashMap;

use jiff::Timestamp;
use stenograph_store::archive::{EventKey, MarkChange, SessionNote};
use stenograph_store::index::NoObserver;
use stenograph_store::index::catalogue::IndexedSession;
use stenograph_store::index::search::Searcher;
use stenograph_store::session_events::SessionEvents;

use super::address::Params;
use super::state::{NamedSession, Viewer};
use super::trouble::AnswerProblem;

/// Applies the changes of a form, all or none, and returns the session as it is then.
pub fn change(viewer: &Viewer, name: &str, form: &Params) -> Result<NamedSession, AnswerProblem> {
    let named = viewer.session(name)?;
    let event = form.value("event").map(|number| event_key(viewer, &named, form.value("agent"), number)).transpose()?;
    if event.is_some() && form.value("note").is_none() {
        return Err(AnswerProblem::bad("only a note can be about an event").hint("add the field note"));
    }
    let changes = changes(form, event)?;
    if changes.is_empty() {
        return Err(AnswerProblem::bad("no change is given").hint("use pin, title, tag, untag, note or remove_note"));
    }
    viewer.store.mark(&[(named.session.id, changes)], Timestamp::now().as_millisecond(), &mut NoObserver)?;
    viewer.forget_listing();
    viewer.session(name)
}

/// The key of the event with this number.
fn event_key(
    viewer: &Viewer,
    named: &NamedSession,
    agent: Option<&str>,
    number: &str,
) -> Result<EventKey, AnswerProblem> {
    let wrong = || AnswerProblem::bad("event must be the number of an event");
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_sub(1)).ok_or_else(wrong)?;
    let events = viewer.events(&named.session, &named.sources, agent);
    let events = events.ok_or_else(|| AnswerProblem::not_found("this session has no such conversation"))?;
    if events.count().is_none() {
        return Err(AnswerProblem::bad("events of a conversation in several files have no notes here")
            .hint("use steno mark SESSION --note TEXT --event N"));
    }
    viewer.store.searcher()?.event_key(events.row(), number)?.ok_or_else(|| {
        AnswerProblem::not_found(format!("event {} is not in the index", number.saturating_add(1)))
            .hint("an event without text cannot have a note; a new event is indexed within seconds")
    })
}

/// The notes about single events of a conversation, by the numbers of the events.
pub fn event_notes(
    searcher: &Searcher,
    session: &IndexedSession,
    events: &SessionEvents,
) -> Result<HashMap<u64, Vec<SessionNote>>, AnswerProblem> {
    let keys: Vec<EventKey> = session.marks.notes.iter().filter_map(|note| note.event).collect();
    let (found, row) = (searcher.events_with_keys(session.id, &keys)?, events.row());
    let mut notes: HashMap<u64, Vec<SessionNote>> = HashMap::new();
    for note in &session.marks.notes {
        let Some(hit) = note.event.and_then(|key| found.get(&key)) else { continue };
        if (hit.source == row.id || Some(hit.source) == row.copy_of)
            && hit.version.is_none()
            && events.count().is_some()
        {
            notes.entry(hit.event.saturating_add(1)).or_default().push(note.clone());
        }
    }
    Ok(notes)
}

fn changes(form: &Params, event: Option<EventKey>) -> Result<Vec<MarkChange>, AnswerProblem> {
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
    changes.extend(form.value("note").map(|text| MarkChange::Note { text: text.to_owned(), event }));
    Ok(changes)
}
