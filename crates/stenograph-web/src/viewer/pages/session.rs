//! One session: its header, a window of its events, and the places for what takes longer to read. A window costs what is in it,
//! wherever it is.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use stenograph::render::html::{HtmlEvents, HtmlOptions};
use stenograph::render::{EventContext, Shown, ViewKind, bytes, dollars};
use stenograph_store::archive::{NOTE_SIZE_MAX, SessionNote};
use stenograph_store::index::catalogue::{Gone, IndexedSession};
use stenograph_store::index::search::Searcher;
use stenograph_store::session_events::{RangeEnd, SessionEvents};
use stenograph_store::sessions::resume_command;

use super::super::address::{Params, link, session_path};
use super::super::html::{Nav, counted, lazy, moment, short, text};
use super::super::marks::event_notes;
use super::super::state::{NamedSession, Viewer};
use super::super::trouble::AnswerProblem;
use super::lanes::{links_html, sub_agents};
use super::sessions::within_session;

/// How many events a window has. It ends with a message, so that calls stay with their results.
const WINDOW_EVENTS: u64 = 80;

/// How far a window may grow to begin and end with a message.
const GROWTH_MAX: u64 = 60;

/// How many events are shown before the one that is asked for.
const EVENTS_BEFORE: u64 = 12;

/// How many bytes of a text a window shows. A person reads less; a browser lays out more slowly.
const TEXT_SIZE_MAX: usize = 256 << 10;

/// A window of events as HTML.
struct Window {
    html: String,
    range: Range<u64>,
    is_last: bool,
}

/// Which events are asked for.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// From this event on.
    From(u64),
    /// Those before this event.
    Before(u64),
    /// Around this event.
    At(u64),
    /// The last ones.
    End,
}

impl Place {
    fn of(params: &Params) -> Place {
        match (params.number("from"), params.number("before"), params.value("at")) {
            (Some(from), ..) => Place::From(from.max(1)),
            (_, Some(before), _) => Place::Before(before.max(1)),
            (.., Some("end")) => Place::End,
            (.., Some(at)) => at.parse().map_or(Place::From(1), |at: u64| Place::At(at.max(1))),
            (None, None, None) => Place::From(1),
        }
    }
}

/// A conversation that a request names.
pub struct NamedConversation {
    pub named: NamedSession,
    pub agent: Option<String>,
    pub events: SessionEvents,
}

/// Finds the conversation of a session: that of its main agent, or that of a sub-agent.
pub fn conversation(viewer: &Viewer, name: &str, agent: Option<&str>) -> Result<NamedConversation, AnswerProblem> {
    let named = viewer.session(name)?;
    let agent = agent.map(str::to_owned);
    let events = viewer.events(&named.session, &named.sources, agent.as_deref());
    let events = events.ok_or_else(|| AnswerProblem::not_found("this session has no such conversation"))?;
    Ok(NamedConversation { named, agent, events })
}

/// The page of a session.
pub fn page_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let session = &found.named.session;
    let path = session_path(&session.name);
    let window = window(viewer, &found, Place::of(params));
    let body = match &window {
        Ok(window) => format!("<div id=\"window\">{}</div>", window_html(&path, found.agent.as_deref(), window)),
        Err(trouble) => format!(
            "<div class=\"empty\" role=\"alert\"><p>{}</p><p>{}</p></div>",
            text(&viewer.masked(&trouble.message)),
            text(trouble.hint.as_deref().unwrap_or_default())
        ),
    };
    let agent = found.agent.as_deref().map(|agent| ("agent", agent));
    let contents: Vec<(&str, &str)> = agent.into_iter().collect();
    let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
    let main = format!(
        "<div class=\"session\" data-path=\"{path}\" data-session=\"{}\" data-agent=\"{}\">{}\
         <div class=\"session-grid\">{}<section id=\"events\" aria-label=\"Events\">{body}</section></div></div>",
        text(&session.name),
        text(found.agent.as_deref().unwrap_or_default()),
        header_html(viewer, &found, title)?,
        lazy("contents", &link(&format!("{path}/contents"), &contents), "the contents"),
    );
    Ok(viewer.page(title, Nav::Sessions, "session", &main))
}

/// A window of events alone, for a page that is scrolled.
pub fn events_html(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = conversation(viewer, name, params.value("agent"))?;
    let window = window(viewer, &found, Place::of(params))?;
    Ok(window_html(&session_path(&found.named.session.name), found.agent.as_deref(), &window))
}

/// The events, with links to those before and after them.
fn window_html(path: &str, agent: Option<&str>, window: &Window) -> String {
    let address = |key: &str, value: u64| {
        let value = value.to_string();
        let params: Vec<(&str, &str)> =
            [(key, value.as_str())].into_iter().chain(agent.map(|agent| ("agent", agent))).collect();
        text(&link(path, &params))
    };
    let mut html = String::new();
    let Range { start, end } = window.range;
    let last = if window.is_last { " data-last" } else { "" };
    let _ = write!(html, "<div class=\"chunk\" data-from=\"{start}\" data-next=\"{end}\"{last}>");
    if start > 1 {
        let _ = write!(
            html,
            "<p class=\"more\"><a rel=\"prev\" href=\"{}\">Earlier events</a></p>",
            address("before", start)
        );
    }
    html.push_str(&window.html);
    if window.html.is_empty() && window.is_last && start <= 1 {
        html.push_str("<div class=\"empty\"><p>This conversation has no events.</p></div>");
    }
    if !window.is_last {
        let _ =
            write!(html, "<p class=\"more\"><a rel=\"next\" href=\"{}\">Later events</a></p>", address("from", end));
    }
    html.push_str("</div>");
    html
}

fn window(viewer: &Viewer, found: &NamedConversation, place: Place) -> Result<Window, AnswerProblem> {
    let events = &found.events;
    // Without a usable index, the file is read from its beginning.
    let searcher = viewer.store.searcher().ok();
    let (place, mut wanted) = match place {
        Place::From(from) => (place, from..from.saturating_add(WINDOW_EVENTS)),
        Place::Before(end) => (place, end.saturating_sub(WINDOW_EVENTS).max(1)..end),
        Place::At(at) => {
            let start = at.saturating_sub(EVENTS_BEFORE).max(1);
            (place, start..start.saturating_add(WINDOW_EVENTS))
        }
        Place::End => {
            let count = count(viewer, events, searcher.as_ref())?;
            let start = count.saturating_sub(WINDOW_EVENTS).max(1);
            (place, start..count.saturating_add(1))
        }
    };
    let grow_end = matches!(place, Place::From(_) | Place::At(_));
    let grow_start = !matches!(place, Place::From(_));
    let seen = messages(viewer, events, searcher.as_ref(), &wanted)?;
    if grow_start && wanted.start > 1 {
        let first = wanted.start.saturating_sub(GROWTH_MAX).max(1);
        let before = seen.iter().copied().filter(|number| (first..=wanted.start).contains(number)).max();
        wanted.start = before.unwrap_or(wanted.start);
    }
    if grow_end {
        let last = wanted.end.saturating_add(GROWTH_MAX);
        wanted.end = seen.iter().copied().find(|number| (wanted.end..=last).contains(number)).unwrap_or(wanted.end);
    }
    drawn(viewer, found, searcher.as_ref(), wanted)
}

/// The number of the last event. The index knows how many there were; the file may have grown since.
fn count(viewer: &Viewer, events: &SessionEvents, searcher: Option<&Searcher>) -> Result<u64, AnswerProblem> {
    let known = events.count().unwrap_or(0).max(1);
    let RangeEnd { next, .. } = events.range(&viewer.store, searcher, known..u64::MAX - 1, &mut |_, _| ())?;
    Ok(next.saturating_sub(1))
}

/// The numbers of the messages in a range and near it.
fn messages(
    viewer: &Viewer,
    events: &SessionEvents,
    searcher: Option<&Searcher>,
    range: &Range<u64>,
) -> Result<Vec<u64>, AnswerProblem> {
    let near = range.start.saturating_sub(GROWTH_MAX).max(1)..range.end.saturating_add(GROWTH_MAX);
    let mut found = Vec::new();
    events.range(&viewer.store, searcher, near, &mut |number, event| {
        let (kind, _) = ViewKind::of(event, &EventContext::default());
        if !event.restates && matches!(kind, ViewKind::User | ViewKind::Agent | ViewKind::Compaction) {
            found.push(number);
        }
    })?;
    Ok(found)
}

fn drawn(
    viewer: &Viewer,
    found: &NamedConversation,
    searcher: Option<&Searcher>,
    range: Range<u64>,
) -> Result<Window, AnswerProblem> {
    let events = &found.events;
    let notes = match searcher {
        Some(searcher) => event_notes(searcher, &found.named.session, events)?,
        None => HashMap::new(),
    };
    let notes = notes.iter().map(|(number, notes)| (*number, notes_html(found, *number, notes))).collect();
    let options = HtmlOptions {
        zone: viewer.zone.clone(),
        raw: Shown::Yes,
        text_size_max: Some(TEXT_SIZE_MAX),
        id_prefix: String::new(),
    };
    let (mut writer, mut html) = (HtmlEvents::new(options).with_notes(notes), String::new());
    let start = range.start;
    if start > 1 {
        writer = writer.in_the_middle();
    }
    let end = events.range(&viewer.store, searcher, range, &mut |number, event| {
        if number < start || event.restates {
            writer.skip(event);
        } else {
            writer.event(Some(number), event, event.usage, &mut html);
        }
    })?;
    writer.end_group(&mut html);
    Ok(Window { html, range: start..end.next.max(start), is_last: end.is_last })
}

/// The notes about an event.
fn notes_html(found: &NamedConversation, number: u64, notes: &[SessionNote]) -> String {
    let path = session_path(&found.named.session.name);
    let agent = text(found.agent.as_deref().unwrap_or_default());
    notes.iter().fold(String::new(), |mut html, note| {
        let _ = writeln!(
            html,
            "<aside class=\"event-note\" aria-label=\"Note on event {number}\"><p>{}</p>\
             <form method=\"post\" action=\"{path}/marks\"><input type=\"hidden\" name=\"agent\" value=\"{agent}\">\
             <button name=\"remove_note\" value=\"{}\">Remove</button></form></aside>",
            text(&note.text),
            note.number
        );
        html
    })
}

/// The form for a note about an event, which a script opens.
fn note_dialog(path: &str, agent: Option<&str>) -> String {
    format!(
        "<dialog id=\"note\" aria-labelledby=\"note-title\"><form method=\"post\" action=\"{path}/marks\">\
         <h2 id=\"note-title\">Note on event <output></output></h2><input type=\"hidden\" name=\"event\">\
         <input type=\"hidden\" name=\"agent\" value=\"{}\">\
         <textarea name=\"note\" rows=\"4\" maxlength=\"{NOTE_SIZE_MAX}\" aria-label=\"Note\" required></textarea>\
         <p><button>Save</button> <button formmethod=\"dialog\" formnovalidate>Cancel</button></p></form></dialog>",
        text(agent.unwrap_or_default())
    )
}

fn header_html(viewer: &Viewer, found: &NamedConversation, title: &str) -> Result<String, AnswerProblem> {
    let NamedConversation { named, agent, .. } = found;
    let session = &named.session;
    let took = viewer.cost(session, &named.catalogue).unwrap_or_default();
    let facts = [
        Some(text(&session.agent)),
        session.project.as_ref().map(|project| {
            format!(
                "<a href=\"{}\">{}</a>",
                text(&link("/sessions", &[("project", &project.name)])),
                text(&project.name)
            )
        }),
        session.branch.as_deref().map(|branch| short(branch, 60)),
        session.model.as_deref().map(text),
        Some(moment(session.ended, &viewer.zone)),
        Some(counted(session.messages, "message")),
        Some(counted(session.calls, "call")),
        (session.errors > 0).then(|| format!("<span class=\"errors\">{}</span>", counted(session.errors, "error"))),
        Some(took.tokens()).filter(|tokens| !tokens.is_empty()),
        took.cost.map(dollars),
        Some(bytes(session.size)),
        // The panels are about one conversation; these numbers are about all.
        Some(sub_agents(named).len() as u64)
            .filter(|count| *count > 0)
            .map(|count| format!("with {}", counted(count, "sub-agent"))),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let path = session_path(&session.name);
    let mut actions = String::new();
    for (key, label, neighbour) in neighbours(viewer, session)? {
        let _ = write!(
            actions,
            "<a class=\"button\" rel=\"{key}\" data-neighbour=\"{key}\" href=\"{}\" title=\"{}\">{label}</a>",
            session_path(&neighbour.0),
            text(&neighbour.1)
        );
    }
    let end = Params::parse("").with(&path, "at", Some("end"));
    let _ = write!(
        actions,
        "<a class=\"button\" data-find href=\"{}\" title=\"Search in this session (s)\">Search</a>\
         <a class=\"button\" href=\"{}\">End</a><a class=\"button\" href=\"{path}/changes\">Changes</a>\
         <a class=\"button\" href=\"{path}/convert\">Convert</a><a class=\"button\" href=\"{}\">Compare</a>\
         <button type=\"button\" data-action=\"focus\" aria-pressed=\"false\" title=\"Only messages (f)\" hidden>Focus</button>\
         <button type=\"button\" data-action=\"all\" aria-pressed=\"false\" title=\"Also bookkeeping (a)\" hidden>All events</button>\
         <button type=\"button\" data-action=\"follow\" aria-pressed=\"false\" title=\"Follow new events (F)\" hidden>Follow</button>\
         <button type=\"button\" data-action=\"note\" title=\"Write a note about the event (n)\" hidden>Note</button>",
        text(&link("/sessions", &[("q", &within_session(&session.name, ""))])),
        text(&end),
        text(&compare_link(&session.name, agent.as_deref())),
    );
    // A masked command resumes nothing.
    if let Some(command) = resume_command(session, &named.catalogue)?.filter(|_| !viewer.is_redacted()) {
        let command = text(&command);
        let _ = write!(
            actions,
            "<button type=\"button\" data-action=\"copy\" data-copy=\"{command}\" title=\"{command}\" hidden>Copy resume command</button>"
        );
    }
    Ok(format!(
        "<header class=\"session-head\"><h1>{}</h1><p class=\"facts\">{}{}</p>{}<div class=\"actions\">{actions}</div>{}{}</header>",
        short(title, 200),
        facts.join(" <span class=\"dot\">·</span> "),
        gone_html(session, &found.events),
        agents_html(&path, named, agent.as_deref()),
        marks_html(session, &path),
        note_dialog(&path, agent.as_deref()),
    ))
}

/// The address at which the other session is chosen.
fn compare_link(name: &str, agent: Option<&str>) -> String {
    let agent = agent.map(|agent| ("agent_a", agent));
    link("/compare", &[("a", name)].into_iter().chain(agent).collect::<Vec<_>>())
}

/// The marks of the session, and forms that change them.
fn marks_html(session: &IndexedSession, path: &str) -> String {
    let marks = &session.marks;
    let button = |field: &str, value: &str, label: &str| {
        format!(
            "<form class=\"inline\" method=\"post\" action=\"{path}/marks\"><button name=\"{field}\" value=\"{}\">{}</button></form>",
            text(value),
            short(label, 60)
        )
    };
    let field = |name: &str, label: &str, about: &str| {
        format!(
            "<form method=\"post\" action=\"{path}/marks\"><label>{label} <input name=\"{name}\" placeholder=\"{about}\" required></label>\
             <button>Save</button></form>"
        )
    };
    let mut html = match marks.pinned {
        true => button("pin", "no", "Unpin"),
        false => button("pin", "yes", "Pin"),
    };
    for tag in &marks.tags {
        html.push_str(&button("untag", tag, &format!("Remove tag {tag}")));
    }
    if marks.title.is_some() {
        html.push_str(&button("title", "-", "Remove the given title"));
    }
    if !marks.notes.is_empty() {
        html.push_str("<ul>");
        for note in &marks.notes {
            let _ = write!(
                html,
                "<li>{} {}</li>",
                text(&note.text),
                button("remove_note", &note.number.to_string(), "Remove")
            );
        }
        html.push_str("</ul>");
    }
    html.push_str(&field("title", "Title", "a title of your own"));
    html.push_str(&field("tag", "Tag", "one word"));
    html.push_str(&field("note", "Note", "about this session"));
    let count = marks.notes.len() + marks.tags.len() + usize::from(marks.pinned) + usize::from(marks.title.is_some());
    let remark = if count > 0 { format!(" ({count})") } else { String::new() };
    format!("<details class=\"marks\"><summary>Marks{remark}</summary>{html}</details>")
}

/// Says that the file is gone, and what is shown instead.
fn gone_html(session: &IndexedSession, events: &SessionEvents) -> String {
    let row = events.row();
    match (row.gone, &row.archive_copy) {
        (Gone::There, _) => String::new(),
        (Gone::Gone, Some(_)) => {
            " <span class=\"badge kept\">the file is gone; this is the archived copy</span>".to_owned()
        }
        (Gone::Gone, None) if session.sources > 0 => {
            " <span class=\"badge bad\">the file is gone and was not archived</span>".to_owned()
        }
        (Gone::Gone, None) => String::new(),
    }
}

/// The agents of the session, each with its conversation. The page loads their lanes in this place.
fn agents_html(path: &str, named: &NamedSession, agent: Option<&str>) -> String {
    let params: Vec<(&str, &str)> = agent.map(|agent| ("agent", agent)).into_iter().collect();
    let agents = sub_agents(named);
    let links = match agents.is_empty() && agent.is_none() {
        true => String::new(),
        false => {
            let current = if agent.is_none() { " aria-current=\"true\"" } else { "" };
            let links = links_html(path, &agents, agent);
            format!("<nav class=\"agents\" aria-label=\"Agents\"><a href=\"{path}\"{current}>main</a>{links}</nav>")
        }
    };
    format!("<div id=\"lanes\" data-load=\"{}\">{links}</div>", text(&link(&format!("{path}/lanes"), &params)))
}

/// A neighbour of a session in the list: its name and its title.
type Neighbour = (String, String);

/// The sessions before and after it in the list, newest first.
fn neighbours(
    viewer: &Viewer,
    session: &IndexedSession,
) -> Result<Vec<(&'static str, &'static str, Neighbour)>, AnswerProblem> {
    let listing = viewer.listing()?;
    let Some(at) = listing.sessions.iter().position(|known| known.id == session.id) else { return Ok(Vec::new()) };
    let named = |session: &IndexedSession| {
        let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
        (session.name.clone(), title.chars().take(120).collect())
    };
    let newer = at.checked_sub(1).and_then(|at| listing.sessions.get(at)).map(|one| ("prev", "Newer", named(one)));
    let older = listing.sessions.get(at + 1).map(|one| ("next", "Older", named(one)));
    Ok(newer.into_iter().chain(older).collect())
}
