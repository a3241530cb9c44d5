//! The list of sessions: filtered, sorted, as a tree, or by what they contain.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stenograph::query::Snippet;
use stenograph::render::{bytes, dollars, grouped};
use stenograph_store::hits::ShownHit;
use stenograph_store::index::catalogue::{Catalogue, Gone, IndexedSession, SourceRow};
use stenograph_store::index::search::{Order, SearchRequest};
use stenograph_store::sessions::{ListShape, SessionOrder, SessionRow, matches_session, rows, speaks_of_events};

use super::super::address::{Params, link, session_path};
use super::super::html::{Nav, counted, moment, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;

/// How many sessions a page of the list has.
const ROWS_MAX: usize = 60;

/// How many hits a page of results has, and how many of one session are shown.
const HITS_MAX: usize = 60;
const HITS_OF_SESSION_MAX: usize = 3;

/// The longest snippet.
const SNIPPET_LENGTH_MAX: usize = 220;

/// The longest title.
const TITLE_CHARS_MAX: usize = 140;

/// How many projects and agents the filters name.
const FACETS_MAX: usize = 30;

/// The page, or the next part of its list.
pub fn page_html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let list = match list_html(viewer, params) {
        Ok(list) => list,
        // A query that is being typed is often incomplete; the page stays.
        Err(trouble) if params.value("q").is_some() => {
            let hint = trouble.hint.as_deref().map(|hint| format!("<p>{}</p>", text(hint))).unwrap_or_default();
            format!("<div class=\"empty\" role=\"alert\"><p>{}</p>{hint}</div>", text(&viewer.masked(&trouble.message)))
        }
        Err(trouble) => return Err(trouble),
    };
    if params.value("part") == Some("list") {
        return Ok(list);
    }
    let (query, sort) = (params.value("q").unwrap_or_default(), params.value("sort").unwrap_or_default());
    // Hits are best first, sessions newest first, unless the user chooses.
    let mut sorts = "<option value=\"\">automatic</option>".to_owned();
    for order in SessionOrder::ALL {
        let selected = if order.name() == sort { " selected" } else { "" };
        let _ = write!(sorts, "<option{selected}>{}</option>", order.name());
    }
    let check = |name: &str, value: &str, label: &str| {
        let checked = if params.value(name) == Some(value) { " checked" } else { "" };
        format!(
            "<label class=\"check\"><input type=\"checkbox\" name=\"{name}\" value=\"{value}\"{checked}> {label}</label>"
        )
    };
    let hidden = |name: &str| {
        params
            .value(name)
            .map(|value| format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", text(value)))
            .unwrap_or_default()
    };
    let main = format!(
        "<h1 class=\"visually-hidden\">Sessions</h1><div class=\"columns list-page\"><aside class=\"facets\" aria-label=\"Filters\">{}</aside>\
         <section aria-label=\"Sessions\"><form id=\"filter\" class=\"filter\" action=\"/sessions\">{}{}\
         <input type=\"search\" name=\"q\" value=\"{}\" aria-label=\"Filter\" placeholder=\"Words, or project:api is:error since:7d\" autocomplete=\"off\" spellcheck=\"false\">\
         <label>Sort <select name=\"sort\">{sorts}</select></label>{}{}<button class=\"apply\">Apply</button></form>\
         <form id=\"marked\" action=\"/compare\"><div id=\"list\" aria-live=\"polite\">{list}</div></form></section></div>",
        facets_html(viewer, params)?,
        hidden("agent"),
        hidden("project"),
        text(query),
        check("view", "tree", "Tree"),
        check("gone", "yes", "Only gone"),
    );
    Ok(viewer.page(if query.is_empty() { "Sessions" } else { query }, Nav::Sessions, "sessions", &main))
}

/// The conditions of the address, as one query.
fn conditions(params: &Params) -> String {
    let mut parts: Vec<String> = Vec::new();
    for name in ["agent", "project"] {
        if let Some(value) = params.value(name) {
            parts.push(format!("{name}:\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")));
        }
    }
    parts.join(" ")
}

fn list_html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let filter = conditions(params);
    if let Some(words) = params.value("q") {
        let query = viewer.query(words)?;
        if speaks_of_events(query.expr()) {
            return hits_html(viewer, &filter, words, params);
        }
    }
    let whole = [filter.as_str(), params.value("q").unwrap_or_default()].join(" ");
    let query = if whole.trim().is_empty() { None } else { Some(viewer.query(&whole)?) };
    let listing = viewer.listing()?;
    let is_gone = params.value("gone").is_some();
    let kept = listing.sessions.iter().filter(|session| {
        query.as_ref().is_none_or(|query| matches_session(query, session))
            && (!is_gone || session.gone == session.sources)
    });
    let mut sessions: Vec<IndexedSession> = kept.cloned().collect();
    let order =
        SessionOrder::ALL.into_iter().find(|order| Some(order.name()) == params.value("sort")).unwrap_or_default();
    order.sort(&mut sessions);
    let total = sessions.len();
    if total == 0 {
        return Ok(match listing.sessions.len() {
            0 => "<div class=\"empty\"><p>No sessions yet.</p><p>They appear here when an agent writes one. \
                  <code>steno formats</code> lists where Stenograph looks.</p></div>"
                .to_owned(),
            all => format!(
                "<div class=\"empty\"><p>None of {} matches.</p><p><a href=\"/sessions\">Remove all filters</a></p></div>",
                counted(all as u64, "session")
            ),
        });
    }
    let catalogue = viewer.store.catalogue()?;
    let shape = if params.value("view") == Some("tree") { ListShape::Tree } else { ListShape::Flat };
    let from = usize::try_from(params.number("from").unwrap_or(0)).unwrap_or(usize::MAX);
    let mut html = String::new();
    if from == 0 {
        let _ =
            write!(html, "<p class=\"count\"><span>{}</span>{COMPARE_BUTTON}</p>", counted(total as u64, "session"));
    }
    html.push_str("<ul class=\"rows\">");
    let rows = rows(sessions, &catalogue, shape)?;
    for row in rows.iter().skip(from).take(ROWS_MAX) {
        html.push_str(&row_html(viewer, &catalogue, row));
    }
    html.push_str("</ul>");
    if from.saturating_add(ROWS_MAX) < rows.len() {
        let next = params.with("/sessions", "from", Some(&(from + ROWS_MAX).to_string()));
        let _ = write!(html, "<p class=\"more\"><a rel=\"next\" href=\"{}\">More sessions</a></p>", text(&next));
    }
    Ok(html)
}

fn row_html(viewer: &Viewer, catalogue: &Catalogue, row: &SessionRow) -> String {
    match row {
        SessionRow::Session { session, depth } => {
            session_html(viewer, catalogue, session, depth.unwrap_or(0), RowMarks::Yes)
        }
        SessionRow::Thread { source, session, depth } => thread_html(viewer, source, session, *depth),
    }
}

/// Compares the sessions that are marked.
const COMPARE_BUTTON: &str =
    "<button class=\"compare-marked\" title=\"Compare two marked sessions (c)\">Compare marked</button>";

/// Whether sessions of a list can be marked, to compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMarks {
    Yes,
    No,
}

/// One session of a list.
pub fn session_html(
    viewer: &Viewer,
    catalogue: &Catalogue,
    session: &IndexedSession,
    depth: usize,
    marks: RowMarks,
) -> String {
    let path = session_path(&session.name);
    let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or(&session.name);
    let mut badges = String::new();
    if session.gone == session.sources {
        let (class, word) = match session.lost == session.sources {
            true => ("bad", "gone, not archived"),
            false => ("kept", "gone, archived"),
        };
        let _ = write!(badges, " <span class=\"badge {class}\">{word}</span>");
    }
    if session.marks.pinned {
        badges.push_str(" <span class=\"badge pinned\">pinned</span>");
    }
    for tag in &session.marks.tags {
        let _ = write!(badges, " <span class=\"badge tag\">{}</span>", short(tag, 40));
    }
    if let (1.., Some((_, how))) = (depth, &session.parent) {
        let _ = write!(badges, " <span class=\"badge\">{}</span>", text(how));
    }
    let cost = viewer.cost(session, catalogue).ok().and_then(|took| took.cost).map(dollars);
    let errors =
        (session.errors > 0).then(|| format!("<span class=\"errors\">{}</span>", counted(session.errors, "error")));
    let facts = [
        Some(text(&session.agent)),
        session.project.as_ref().map(|project| format!("<b>{}</b>", text(&project.name))),
        session.branch.as_deref().map(|branch| short(branch, 40)),
        session.model.as_deref().map(text),
        Some(counted(session.messages, "message")),
        Some(counted(session.calls, "call")),
        errors,
        Some(bytes(session.size)),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let mark = match marks {
        RowMarks::Yes => format!(
            "<input type=\"checkbox\" name=\"s\" value=\"{}\" aria-label=\"Mark {}\">",
            text(&session.name),
            short(title, 60)
        ),
        RowMarks::No => String::new(),
    };
    format!(
        "<li class=\"row\" data-depth=\"{}\">{mark}<a href=\"{path}\">{}</a>{badges}<span class=\"when\">{}</span><span class=\"cost\">{}</span>\
         <p>{}</p></li>",
        depth.min(6),
        short(title, TITLE_CHARS_MAX),
        moment(session.ended, &viewer.zone),
        cost.unwrap_or_default(),
        facts.join(" <span class=\"dot\">·</span> "),
    )
}

fn thread_html(viewer: &Viewer, source: &SourceRow, session: &str, depth: usize) -> String {
    let thread = source.thread.as_deref().unwrap_or_default();
    let gone = if source.gone == Gone::Gone { " <span class=\"badge kept\">gone</span>" } else { "" };
    format!(
        "<li class=\"row thread\" data-depth=\"{}\"><a href=\"{}\">{}</a>{gone}<span class=\"when\">{}</span><span class=\"cost\"></span>\
         <p>sub-agent {} <span class=\"dot\">·</span> {} <span class=\"dot\">·</span> {}</p></li>",
        depth.min(6),
        text(&link(&session_path(session), &[("agent", thread)])),
        short(&viewer.masked(source.summary.header.query.as_deref().unwrap_or(thread)), TITLE_CHARS_MAX),
        moment(source.summary.header.ended_ms, &viewer.zone),
        text(thread),
        counted(source.summary.messages, "message"),
        counted(source.summary.calls, "call"),
    )
}

/// The query with its last word as a prefix, for a user who is still typing it. `None` if the query does not end with a plain
/// word.
pub fn with_prefix(words: &str) -> Option<String> {
    /// Shorter beginnings match too much.
    const WORD_LENGTH_MIN: usize = 2;
    let last = words.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_word = last.chars().count() >= WORD_LENGTH_MIN && last.chars().all(char::is_alphanumeric);
    let is_quoted = words.matches('"').count() % 2 == 1 || words.contains('/');
    (is_word && !is_quoted && !["AND", "OR", "NOT"].contains(&last)).then(|| format!("{words}*"))
}

/// The sessions that contain what the query asks for, each with its best places. If nothing does, the last word is a prefix.
fn hits_html(viewer: &Viewer, filter: &str, words: &str, params: &Params) -> Result<String, AnswerProblem> {
    let offset = usize::try_from(params.number("from").unwrap_or(0)).unwrap_or(usize::MAX);
    let order = if params.value("sort") == Some("newest") { Order::Newest } else { Order::Best };
    let find = |words: &str| {
        let whole = if filter.is_empty() { words.to_owned() } else { format!("{filter} ({words})") };
        let query = viewer.query(&whole)?;
        let request = SearchRequest { query: &query, order, offset, limit: HITS_MAX, within: viewer.root.as_deref() };
        viewer.hits(&request, SNIPPET_LENGTH_MAX)
    };
    let (mut found, mut asked) = (find(words)?, words.to_owned());
    if found.hits.is_empty()
        && let Some(longer) = with_prefix(words)
        && let Ok(more) = find(&longer)
    {
        (found, asked) = (more, longer);
    }
    if found.hits.is_empty() {
        return Ok("<div class=\"empty\"><p>Nothing found.</p><p>Fewer words, <code>word*</code> or <code>word~</code> match more.</p></div>".to_owned());
    }
    let mut groups: Vec<Vec<&ShownHit>> = Vec::new();
    for hit in &found.hits {
        let is_same =
            |group: &&mut Vec<&ShownHit>| group.first().is_some_and(|first| first.hit.session == hit.hit.session);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(hit),
            None => groups.push(vec![hit]),
        }
    }
    let catalogue = viewer.store.catalogue()?;
    let about = if found.is_exact { "" } else { "about " };
    let mut html = String::new();
    if offset == 0 {
        let of = if asked == words { String::new() } else { format!(" of <code>{}</code>", text(&asked)) };
        let hits = counted(found.total, "hit");
        let _ = write!(html, "<p class=\"count\"><span>{about}{hits}{of}</span>{COMPARE_BUTTON}</p>");
    }
    html.push_str("<ul class=\"rows\">");
    // Hits of a single session are all shown.
    let shown_max = if groups.len() == 1 { HITS_MAX } else { HITS_OF_SESSION_MAX };
    for group in groups {
        let Some(session) = group.first().and_then(|hit| hit.session.as_ref()) else { continue };
        let row = session_html(viewer, &catalogue, session, 0, RowMarks::Yes);
        html.push_str(row.strip_suffix("</li>").unwrap_or(&row));
        html.push_str("<ol class=\"hits\">");
        for hit in group.iter().take(shown_max) {
            html.push_str(&hit_html(session, hit));
        }
        html.push_str("</ol>");
        let more = group.len().saturating_sub(shown_max);
        if more > 0 {
            let query = within_session(&session.name, &format!("({asked})"));
            let address = link("/sessions", &[("q", &query)]);
            let more = grouped(more as u64);
            let _ = write!(html, "<p class=\"muted\"><a href=\"{}\">{more} more here</a></p>", text(&address));
        }
        html.push_str("</li>");
    }
    html.push_str("</ul>");
    if let Some(next) = &found.next {
        let next = params.set("q", &asked).with("/sessions", "from", Some(next));
        let _ = write!(html, "<p class=\"more\"><a rel=\"next\" href=\"{}\">More hits</a></p>", text(&next));
    }
    Ok(html)
}

/// A query for words in one session.
pub fn within_session(name: &str, words: &str) -> String {
    format!("session:\"{}\" {words}", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One hit, with a link to its event.
pub fn hit_html(session: &IndexedSession, hit: &ShownHit) -> String {
    let body = match &hit.read {
        Ok(seen) => snippet_html(&seen.snippet),
        Err(reason) => format!("<span class=\"muted\">{}</span>", text(reason)),
    };
    let kind = hit.read.as_ref().map(|seen| match seen.kind {
        "message" => seen.role.unwrap_or("message").to_owned(),
        kind => [kind.replace('_', " "), seen.tool.clone().unwrap_or_default()].join(" ").trim().to_owned(),
    });
    format!(
        "<li><a href=\"{}\"><small>{}</small> {body}</a></li>",
        text(&hit_link(session, hit)),
        text(&kind.unwrap_or_default())
    )
}

/// The address of the event of a hit: in the conversation of the main agent, or of a sub-agent.
pub fn hit_link(session: &IndexedSession, hit: &ShownHit) -> String {
    let Some(number) = hit.number() else { return session_path(&session.name) };
    let number = number.to_string();
    let thread = hit.source.as_ref().and_then(|source| source.thread.as_deref());
    let is_main = hit.source.as_ref().is_none_or(|source| source.path == session.path);
    let agent = thread.filter(|_| !is_main).map(|thread| ("agent", thread));
    let params: Vec<(&str, &str)> = [("at", number.as_str())].into_iter().chain(agent).collect();
    format!("{}#e{number}", link(&session_path(&session.name), &params))
}

/// A snippet with its marked words.
pub fn snippet_html(snippet: &Snippet) -> String {
    let (mut html, mut at) = (String::new(), 0);
    for mark in &snippet.marks {
        html.push_str(&text(snippet.text.get(at..mark.start).unwrap_or_default()));
        let _ = write!(html, "<mark>{}</mark>", text(snippet.text.get(mark.clone()).unwrap_or_default()));
        at = mark.end;
    }
    html.push_str(&text(snippet.text.get(at..).unwrap_or_default()));
    let (before, after) = (if snippet.is_cut_before { "…" } else { "" }, if snippet.is_cut_after { "…" } else { "" });
    format!("{before}{html}{after}")
}

/// The projects and agents by which the list can be filtered.
fn facets_html(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let listing = viewer.listing()?;
    let (mut projects, mut agents): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = Default::default();
    for session in &listing.sessions {
        *agents.entry(&session.agent).or_default() += 1;
        if let Some(project) = &session.project {
            *projects.entry(&project.name).or_default() += 1;
        }
    }
    let mut html = String::new();
    for (name, title, counts) in [("project", "Projects", projects), ("agent", "Agents", agents)] {
        let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let _ = write!(html, "<details open><summary>{title}</summary><ul>");
        if params.value(name).is_some() {
            let all = params.with("/sessions", name, None);
            let _ = write!(html, "<li><a href=\"{}\">All</a></li>", text(&all));
        }
        for (value, count) in counts.iter().take(FACETS_MAX) {
            let current = if params.value(name) == Some(value) { " aria-current=\"true\"" } else { "" };
            let address = params.with("/sessions", name, Some(value));
            let _ = write!(
                html,
                "<li><a href=\"{}\"{current}>{} <small>{}</small></a></li>",
                text(&address),
                short(value, 32),
                grouped(*count)
            );
        }
        html.push_str("</ul></details>");
    }
    Ok(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_last_word_becomes_a_prefix() {
        for (typed, longer) in [
            ("harb", Some("harb*")),
            ("calm harb", Some("calm harb*")),
            ("project:api harb", Some("project:api harb*")),
            ("h", None),
            ("harb ", None),
            ("project:ap", None),
            ("harb*", None),
            ("harb~", None),
            ("\"calm harb", None),
            ("/harb", None),
            ("calm OR", None),
            ("", None),
        ] {
            assert_eq!(with_prefix(typed).as_deref(), longer, "{typed}");
        }
    }
}
