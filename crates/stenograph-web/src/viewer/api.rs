//! The interface for programs: JSON objects that the command line prints with `--json`, in pages with a cursor.

use stenograph::compare::ShownChange;
use stenograph::contents::{Contents, ContextShare};
use stenograph::json::Draft;
use stenograph::ledger::{By, Group};
use stenograph::render::harmless_json;
use stenograph::text::quote;
use stenograph::wire;
use stenograph_store::hits;
use stenograph_store::index::search::{Order, SearchRequest};
use stenograph_store::sessions::{
    SessionOrder, matches_session, session_fields, sessions_with_events, speaks_of_events, thread_fields,
};

use super::address::Params;
use super::answer::PageAnswer;
use super::comparison::{ComparedPair, TextLength};
use super::marks;
use super::openapi::openapi;
use super::pages;
use super::routes::ViewerRoute;
use super::state::Viewer;
use super::trouble::AnswerProblem;

/// The most items of one answer, and how many there are unless the request asks for fewer.
const ITEMS_MAX: u64 = 500;
const ITEMS: u64 = 100;

/// The longest snippet.
const SNIPPET_LENGTH_MAX: usize = 220;

/// How many bytes of events an answer has before it ends. At least one event is in it.
const EVENTS_SIZE_MAX: usize = 8 << 20;

pub fn answer(
    viewer: &Viewer,
    route: ViewerRoute,
    names: &[String],
    params: &Params,
) -> Result<PageAnswer, AnswerProblem> {
    let name = names.first().map_or("", String::as_str);
    let json = match route {
        ViewerRoute::ApiSessions => sessions(viewer, params)?,
        ViewerRoute::ApiSession => session(viewer, name)?,
        ViewerRoute::ApiMarks => {
            marks::change(viewer, name, params)?;
            session(viewer, name)?
        }
        ViewerRoute::ApiEvents => events(viewer, name, params)?,
        ViewerRoute::ApiContents => contents(viewer, name, params)?,
        ViewerRoute::ApiCompare => comparison(viewer, params)?,
        ViewerRoute::ApiSearch => search(viewer, params)?,
        ViewerRoute::ApiRuns => runs(viewer),
        ViewerRoute::ApiUsage => usage(viewer, params)?,
        // It says nothing about sessions.
        ViewerRoute::OpenApi => return Ok(PageAnswer::json(openapi())),
        _ => return Err(AnswerProblem::not_found("no such path")),
    };
    Ok(PageAnswer::json(harmless_json(&viewer.masked_json(json)).into()))
}

fn limit(params: &Params) -> Result<usize, AnswerProblem> {
    let Some(limit) = params.value("limit") else { return Ok(ITEMS as usize) };
    let wrong = || AnswerProblem::bad("invalid limit").hint(format!("use a number from 1 to {ITEMS_MAX}"));
    let limit = limit.parse::<u64>().ok().filter(|limit| *limit > 0).ok_or_else(wrong)?;
    Ok(usize::try_from(limit.min(ITEMS_MAX)).unwrap_or(1))
}

/// The number that a cursor holds.
fn cursor(params: &Params) -> Result<u64, AnswerProblem> {
    let Some(cursor) = params.value("cursor") else { return Ok(0) };
    let wrong = || AnswerProblem::bad("invalid cursor").hint("use the value of next in an earlier answer");
    cursor.parse().map_err(|_| wrong())
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

fn sessions(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let listing = viewer.listing()?;
    let query = params.value("q").map(|query| viewer.query(query)).transpose()?;
    let with_events = match &query {
        Some(query) if speaks_of_events(query.expr()) => {
            Some(sessions_with_events(&mut viewer.store.searcher()?, query)?.0)
        }
        _ => None,
    };
    let is_wanted = |session: &&stenograph_store::index::catalogue::IndexedSession| match (&with_events, &query) {
        (Some(found), _) => found.contains(&session.id),
        (None, Some(query)) => matches_session(query, session),
        (None, None) => true,
    };
    let mut found: Vec<_> = listing.sessions.iter().filter(is_wanted).cloned().collect();
    let order = match params.value("sort") {
        None => SessionOrder::default(),
        Some(name) => SessionOrder::ALL.into_iter().find(|order| order.name() == name).ok_or_else(|| {
            AnswerProblem::bad("unknown sort order").hint("newest, oldest, largest, longest or errors")
        })?,
    };
    order.sort(&mut found);
    let (from, limit) = (usize::try_from(cursor(params)?).unwrap_or(usize::MAX), limit(params)?);
    let catalogue = viewer.store.catalogue()?;
    let mut items = Vec::new();
    for session in found.iter().skip(from).take(limit) {
        items.push(session_fields(session, &listing.short_names, &catalogue, &viewer.prices)?.render(None));
    }
    let mut draft = Draft::new();
    draft.set("sessions", list(&items));
    draft.set_number("total", Some(found.len() as u64));
    set_next(&mut draft, (from.saturating_add(limit) < found.len()).then(|| (from + limit) as u64));
    Ok(draft.render(None))
}

/// The cursor of the next page; null on the last one.
fn set_next(draft: &mut Draft<'_>, next: Option<u64>) {
    draft.set("next", next.map_or_else(|| "null".to_owned(), |next| quote(&next.to_string())));
}

fn session(viewer: &Viewer, name: &str) -> Result<String, AnswerProblem> {
    let (named, listing) = (viewer.session(name)?, viewer.listing()?);
    let fields = session_fields(&named.session, &listing.short_names, &named.catalogue, &viewer.prices)?;
    let threads =
        named.sources.iter().filter(|row| row.thread.is_some() && row.copy_of.is_none() && row.covered_by.is_none());
    let threads: Vec<String> = threads.map(|row| thread_fields(row, &named.session.name).render(None)).collect();
    let mut draft = Draft::new();
    draft.nest("session", fields);
    draft.set("agents", list(&threads));
    Ok(draft.render(None))
}

fn events(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let found = pages::conversation(viewer, name, params.value("agent"))?;
    let (from, limit) = (cursor(params)?.max(1), limit(params)? as u64);
    let searcher = viewer.store.searcher().ok();
    let (mut items, mut size, mut next) = (Vec::new(), 0, from);
    let end = found.events.range(
        &viewer.store,
        searcher.as_ref(),
        from..from.saturating_add(limit),
        &mut |number, event| {
            if number < from || number != next || size > EVENTS_SIZE_MAX {
                return;
            }
            let item = Draft::new().with("number", number).with_json("event", wire::event_at(event)).render(None);
            size += item.len();
            items.push(item);
            next = number + 1;
        },
    )?;
    let mut draft = Draft::new();
    draft.set("events", list(&items));
    set_next(&mut draft, (!end.is_last || next < end.next).then_some(next));
    Ok(draft.render(None))
}

fn contents(viewer: &Viewer, name: &str, params: &Params) -> Result<String, AnswerProblem> {
    let contents = viewer.contents(&pages::conversation(viewer, name, params.value("agent"))?.events)?;
    let Contents { audit, density, phases, failures, .. } = contents.as_ref();
    let turns: Vec<String> = audit
        .turns
        .items
        .iter()
        .map(|turn| {
            let mut draft = Draft::new();
            draft.set_number("event", Some(turn.from.event));
            draft.set_str("asked", &turn.asked);
            draft.set_number("answers", Some(turn.answers));
            draft.set_number("calls", Some(turn.calls));
            draft.set_number("failed", Some(turn.failed));
            draft.render(None)
        })
        .collect();
    let failures: Vec<String> = failures
        .iter()
        .map(|call| {
            let mut draft = Draft::new();
            draft.set_number("event", Some(call.event));
            draft.set_str("tool", &call.tool);
            draft.set_str("about", &call.about);
            draft.set_str("outcome", call.outcome.name());
            draft.render(None)
        })
        .collect();
    let phases: Vec<String> = phases
        .iter()
        .map(|phase| {
            let mut shares = Draft::new();
            ContextShare::ALL
                .iter()
                .zip(phase.bytes)
                .for_each(|(share, bytes)| shares.set_number(share.name(), Some(bytes)));
            let mut draft = Draft::new();
            draft.set_number("event", Some(phase.first));
            draft.set_number("tokens", Some(phase.tokens));
            draft.nest("bytes", shares);
            draft.render(None)
        })
        .collect();
    let files: Vec<String> = audit
        .files
        .items
        .iter()
        .map(|file| {
            let mut draft = Draft::new();
            draft.set_str("path", &file.path);
            draft.set_str("change", file.change.name());
            draft.set_number("first", Some(file.first.event));
            draft.set_number("last", Some(file.last.event));
            draft.render(None)
        })
        .collect();
    let todos = audit.todos.iter().flat_map(|todos| &todos.items);
    let todos = todos.map(|todo| Draft::new().with("text", &todo.text).with("status", &todo.status).render(None));
    let parts: Vec<String> = density.parts.iter().map(|part| list(&part.map(|count| count.to_string()))).collect();
    let mut draft = Draft::new();
    draft.set_number("events", Some(audit.events));
    draft.set("turns", list(&turns));
    draft.set("failures", list(&failures));
    draft.set("phases", list(&phases));
    draft.set("files", list(&files));
    draft.set_list("todos", todos);
    let mut map = Draft::new();
    map.set_number("step", Some(density.step));
    map.set("parts", list(&parts));
    draft.nest("map", map);
    Ok(draft.render(None))
}

/// How many changes are read at once: each may have two long texts.
const CHANGES_AT_ONCE: usize = 8;

fn comparison(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let pair = ComparedPair::of(viewer, params)?;
    let all = pair.found.changes.len();
    let from = usize::try_from(cursor(params)?).unwrap_or(usize::MAX).min(all);
    let end = from.saturating_add(limit(params)?).min(all);
    let (mut items, mut size, mut next) = (Vec::new(), 0, from);
    while next < end && size <= EVENTS_SIZE_MAX {
        let range = next..end.min(next + CHANGES_AT_ONCE);
        next = range.end;
        let shown = pair.shown(viewer, range, TextLength::Whole)?;
        items.extend(shown.iter().map(ShownChange::json).inspect(|item| size += item.len()));
    }
    let mut draft = Draft::new();
    for (key, side) in [("a", &pair.a), ("b", &pair.b)] {
        let mut named = Draft::new();
        named.set_str("session", &side.named.session.name);
        named.set_opt("agent", side.agent.as_deref());
        draft.nest(key, named);
    }
    draft.set("summary", pair.found.summary_json());
    draft.set("changes", list(&items));
    draft.set_number("total", Some(all as u64));
    set_next(&mut draft, (next < all).then_some(next as u64));
    Ok(draft.render(None))
}

fn search(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let words = params
        .value("q")
        .ok_or_else(|| AnswerProblem::bad("the query is empty").hint("the parameter q has the words to find"))?;
    let query = viewer.query(words)?;
    let order = match params.value("order") {
        Some("newest") => Order::Newest,
        Some("best") | None => Order::Best,
        Some(_) => return Err(AnswerProblem::bad("unknown order").hint("best or newest")),
    };
    let offset = usize::try_from(cursor(params)?).unwrap_or(usize::MAX);
    let request = SearchRequest { query: &query, order, offset, limit: limit(params)?, within: viewer.root.as_deref() };
    let found = viewer.hits(&request, SNIPPET_LENGTH_MAX)?;
    let items: Vec<String> = found.hits.iter().map(hits::ShownHit::json).collect();
    let mut draft = Draft::new();
    draft.set("hits", list(&items));
    draft.set_number("total", Some(found.total));
    draft.set("exact", found.is_exact.to_string());
    draft.set("next", found.next.as_deref().map_or_else(|| "null".to_owned(), quote));
    Ok(draft.render(None))
}

fn runs(viewer: &Viewer) -> String {
    let items: Vec<String> = viewer.runs().iter().map(stenograph_store::runs::RunLook::json).collect();
    Draft::new().with_list("runs", items).render(None)
}

fn usage(viewer: &Viewer, params: &Params) -> Result<String, AnswerProblem> {
    let by = match params.value("by") {
        None => By::Day,
        Some(name) => By::named(name).filter(|by| !matches!(by, By::Tool)).ok_or_else(|| {
            AnswerProblem::bad("unknown grouping").hint("day, week, month, model, project, agent or session")
        })?,
    };
    let report = pages::usage_report(viewer, by, params.value("q"))?;
    let group = |group: &Group| {
        let mut draft = Draft::new();
        draft.set("key", group.key.as_deref().map_or_else(|| "null".to_owned(), quote));
        draft.set_number("calls", Some(group.calls));
        for (name, count) in [
            ("input", group.tokens.input),
            ("output", group.tokens.output),
            ("cache_read", group.tokens.cache_read),
            ("cache_write", group.tokens.cache_write),
        ] {
            draft.set_number(name, Some(count));
        }
        draft.set("cost", group.cost.money.map_or_else(|| "null".to_owned(), |money| money.to_string()));
        draft.set_number("unpriced_calls", Some(group.cost.unpriced));
        draft.render(None)
    };
    let groups: Vec<String> = report.groups.iter().map(group).collect();
    let mut draft = Draft::new();
    draft.set_str("by", by.name());
    draft.set("groups", list(&groups));
    draft.set("total", group(&report.total));
    Ok(draft.render(None))
}
