//! Sessions for programs: the JSON objects that `steno list` prints and the server sends.

use std::path::Path;

use jiff::Timestamp;
use stenograph::json::Draft;
use stenograph::ledger::Prices;
use stenograph::text::quote;

use super::resume::resume_command;
use super::{SessionCost, ShortNames};
use crate::Error;
use crate::index::catalogue::{Catalogue, Gone, IndexedSession, ProjectRow, SourceRow, TimesFrom};

/// The fields that name a session, wherever it is printed as JSON.
pub fn session_draft(session: &IndexedSession, short_names: &ShortNames) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_str("session", &session.name);
    draft.set_str("short", &short_names.name(session));
    draft.set_str("agent", &session.agent);
    draft.set_str("path", &session.path.display().to_string());
    draft.set("project", project_json(session.project.as_ref()));
    draft.set_opt("title", session.title.as_deref());
    draft.set_opt("agent_title", session.agent_title.as_deref());
    draft.set("pinned", session.marks.pinned.to_string());
    draft.set("tags", strings_json(&session.marks.tags));
    draft
}

/// A session as `steno list --json` prints it.
pub fn session_fields(
    session: &IndexedSession,
    short_names: &ShortNames,
    catalogue: &Catalogue,
    prices: &Prices,
) -> Result<Draft<'static>, Error> {
    let mut draft = session_draft(session, short_names);
    draft.set_number("notes", Some(session.marks.notes.len() as u64));
    draft.set_opt("asked", session.query.as_deref());
    draft.set_opt("cwd", session.cwd.as_deref());
    draft.set_opt("branch", session.branch.as_deref());
    draft.set_opt("model", session.model.as_deref());
    draft.set_opt("started", iso(session.started).as_deref());
    draft.set_opt("ended", iso(session.ended).as_deref());
    // Readers of the times should not take that of a file for one that a record states.
    draft.set_opt("times_from", (session.times == TimesFrom::File).then_some("file"));
    for (key, number) in [
        ("events", session.events),
        ("messages", session.messages),
        ("calls", session.calls),
        ("errors", session.errors),
        ("size", session.size),
        ("sources", session.sources),
        ("gone", session.gone),
        ("lost", session.lost),
    ] {
        draft.set_number(key, Some(number));
    }
    if let Some((parent, link)) = &session.parent {
        let mut inner = Draft::new();
        inner.set_opt("session", catalogue.session_name(*parent)?.as_deref());
        inner.set_str("link", link);
        draft.nest("parent", inner);
    }
    let took = SessionCost::of(session, catalogue, prices);
    draft.set_number("tokens", Some(took.tokens));
    draft.set("cost", took.cost.map_or_else(|| "null".to_owned(), |cost| cost.to_string()));
    draft.set_opt("resume", resume_command(session, catalogue)?.as_deref());
    Ok(draft)
}

/// A side conversation as `steno list --tree --json` prints it.
pub fn thread_fields(source: &SourceRow, session: &str) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_str("session", session);
    draft.set_opt("thread", source.thread.as_deref());
    draft.set_str("format", &source.format);
    draft.set_str("path", &source.path.display().to_string());
    draft.set_opt("asked", source.summary.header.query.as_deref());
    draft.set_opt("started", iso(source.summary.header.started_ms).as_deref());
    draft.set_opt("ended", iso(source.summary.header.ended_ms).as_deref());
    for (key, number) in [
        ("events", source.doc_group_events + source.tail_events),
        ("messages", source.summary.messages),
        ("calls", source.summary.calls),
        ("errors", source.summary.errors),
        ("size", source.stamp.size),
        ("gone", u64::from(source.gone == Gone::Gone)),
        ("lost", u64::from(source.gone == Gone::Gone && source.archive_copy.is_none())),
    ] {
        draft.set_number(key, Some(number));
    }
    draft
}

/// Formats milliseconds since 1970 for programs.
pub fn iso(millis: Option<i64>) -> Option<String> {
    Timestamp::from_millisecond(millis?).ok().map(|time| time.to_string())
}

/// A project in JSON; all commands use this form.
pub fn project_json(project: Option<&ProjectRow>) -> String {
    let Some(project) = project else { return "null".to_owned() };
    Draft::new().with("name", &project.name).with("root", &project.root).with("remote", &project.remote).render(None)
}

/// A path in JSON.
pub fn path_json(path: &Path) -> String {
    quote(&path.display().to_string())
}

/// Texts as a JSON list.
pub fn strings_json(strings: &[String]) -> String {
    format!("[{}]", strings.iter().map(|text| quote(text)).collect::<Vec<_>>().join(","))
}
