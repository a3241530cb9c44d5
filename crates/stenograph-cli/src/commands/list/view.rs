//! Formats a session in a list, for people and for programs.

use stenograph::json::Draft;
use stenograph_store::index::catalogue::{Catalogue, Gone, Session, SourceRow, TimesFrom};

use super::tree::Row;
use crate::error::CommandError;
use crate::output::{Colour, TextStyle, grouped, harmless_line, shortened};
use crate::store::{ShortNames, bytes, project_json};
use crate::table::{self, Align};
use crate::{clock, commands::resume};

const HEADINGS: [(&str, Align); 7] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("PROJECT", Align::Left),
    ("LAST", Align::Right),
    ("MESSAGES", Align::Right),
    ("SIZE", Align::Right),
    ("TITLE", Align::Left),
];

/// The maximum length of a name; a session's name is never cut, because people copy it.
const NAME_LENGTH_MAX: usize = 24;

pub(super) fn table(rows: &[Row], shorts: &ShortNames, colour: Colour) -> Vec<String> {
    let now = clock::millis();
    let cells: Vec<[String; 7]> = rows.iter().map(|row| cells(row, shorts, now)).collect();
    let mut lines = table::lines(HEADINGS, &cells, table::screen_width());
    if let Some(heading) = lines.first_mut() {
        *heading = colour.paint(TextStyle::Faint, heading);
    }
    for (line, row) in lines.iter_mut().skip(1).zip(rows) {
        if is_gone(row) {
            *line = colour.paint(TextStyle::Faint, line);
        }
    }
    lines
}

fn cells(row: &Row, shorts: &ShortNames, now: i64) -> [String; 7] {
    let ago = |ended: Option<i64>| ended.map_or("-".to_owned(), |ended| table::ago(now - ended));
    let short = |text: &str| shortened(&harmless_line(text), NAME_LENGTH_MAX).into_owned();
    match row {
        Row::Session { session, depth } => [
            format!("{}{}", indent(depth.unwrap_or(0)), harmless_line(&shorts.name(session))),
            short(&session.agent),
            session.project.as_ref().map_or("-".to_owned(), |project| short(&project.name)),
            ago(session.ended),
            grouped(session.messages),
            bytes(session.size),
            harmless_line(&title(session, *depth)),
        ],
        Row::Thread { source, depth, .. } => [
            format!("{}{}", indent(*depth), short(source.thread.as_deref().unwrap_or_default())),
            short(&source.format),
            String::new(),
            ago(source.summary.ended),
            grouped(source.summary.messages),
            bytes(source.stamp.size),
            harmless_line(&[gone(source), source.summary.query.as_deref().unwrap_or_default()].concat()),
        ],
    }
}

fn indent(depth: usize) -> String {
    if depth == 0 { String::new() } else { format!("{}\u{2514} ", "  ".repeat(depth - 1)) }
}

/// Whether it is gone, its relation to its parent, and its title.
fn title(session: &Session, depth: Option<usize>) -> String {
    let gone = match (session.gone == session.sources, session.lost == session.sources) {
        (true, true) => "[gone, not kept] ",
        (true, false) => "[gone] ",
        (false, _) => "",
    };
    let link = match (depth, &session.parent) {
        (Some(1..), Some((_, link))) => format!("[{link} it] "),
        _ => String::new(),
    };
    let about = session.title.as_deref().or(session.query.as_deref()).unwrap_or_default();
    format!("{gone}{link}{about}")
}

fn gone(source: &SourceRow) -> &'static str {
    match (source.gone, &source.archive_copy) {
        (Gone::There, _) => "",
        (Gone::Gone, Some(_)) => "[gone] ",
        (Gone::Gone, None) => "[gone, not kept] ",
    }
}

fn is_gone(row: &Row) -> bool {
    match row {
        Row::Session { session, .. } => session.gone == session.sources,
        Row::Thread { source, .. } => source.gone == Gone::Gone,
    }
}

pub(super) fn json(row: &Row, shorts: &ShortNames, catalogue: &Catalogue) -> Result<String, CommandError> {
    match row {
        Row::Session { session, depth } => session_json(session, *depth, shorts, catalogue),
        Row::Thread { source, session, depth } => Ok(thread_json(source, session, *depth)),
    }
}

fn session_json(
    session: &Session,
    depth: Option<usize>,
    shorts: &ShortNames,
    catalogue: &Catalogue,
) -> Result<String, CommandError> {
    let mut draft = Draft::new();
    draft.set_str("session", &session.name);
    draft.set_str("short", &shorts.name(session));
    draft.set_str("agent", &session.agent);
    draft.set_str("path", &session.path.display().to_string());
    draft.set("project", project_json(session.project.as_ref()));
    draft.set_opt("title", session.title.as_deref());
    draft.set_opt("asked", session.query.as_deref());
    draft.set_opt("cwd", session.cwd.as_deref());
    draft.set_opt("branch", session.branch.as_deref());
    draft.set_opt("model", session.model.as_deref());
    draft.set_opt("started", clock::iso(session.started).as_deref());
    draft.set_opt("ended", clock::iso(session.ended).as_deref());
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
    draft.set_opt("resume", resume::command_here(session, catalogue)?.as_deref());
    draft.set_number("depth", depth.map(|depth| depth as u64));
    Ok(draft.render(None))
}

fn thread_json(source: &SourceRow, session: &str, depth: usize) -> String {
    let mut draft = Draft::new();
    draft.set_str("session", session);
    draft.set_opt("thread", source.thread.as_deref());
    draft.set_str("format", &source.format);
    draft.set_str("path", &source.path.display().to_string());
    draft.set_opt("asked", source.summary.query.as_deref());
    draft.set_opt("started", clock::iso(source.summary.started).as_deref());
    draft.set_opt("ended", clock::iso(source.summary.ended).as_deref());
    for (key, number) in [
        ("events", source.doc_group_events + source.tail_events),
        ("messages", source.summary.messages),
        ("calls", source.summary.calls),
        ("errors", source.summary.errors),
        ("size", source.stamp.size),
        ("gone", u64::from(source.gone == Gone::Gone)),
        ("lost", u64::from(source.gone == Gone::Gone && source.archive_copy.is_none())),
        ("depth", depth as u64),
    ] {
        draft.set_number(key, Some(number));
    }
    draft.render(None)
}
