//! `steno find --file`: lists the sessions that touched a file, and how.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use stenograph::json::Draft;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SessionId, SourceId, Touched};

use super::Options;
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, TextStyle, counted, harmless_json, harmless_line};
use crate::store::project_json;
use stenograph_store::hits::{EventAddresses, ShowAddress};
use stenograph_store::sessions::ShortNames;

#[derive(Default)]
struct FileUse {
    how: BTreeMap<String, u64>,
    last: Option<i64>,
    /// The source of the first events, and their numbers in it.
    source: SourceId,
    events: Vec<u64>,
}

const EVENTS_MAX: usize = 5;

pub(super) fn run(options: &Options, file: &str, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let catalogue = options.place.store()?.catalogue()?;
    let touches = touches(&catalogue, file)?;
    let sessions_matching = sessions_matching(options)?;
    let root = options.place.root();
    let inside = root.as_deref().map(|root| catalogue.sources_below(root)).transpose()?;
    let mut found: BTreeMap<(i64, String), FileUse> = BTreeMap::new();
    for touched in touches {
        let is_outside = inside.as_ref().is_some_and(|inside| !inside.contains(&touched.source));
        if is_outside || sessions_matching.as_ref().is_some_and(|sessions| !sessions.contains(&touched.session)) {
            continue;
        }
        let file_use = found.entry((touched.session, touched.path)).or_default();
        *file_use.how.entry(touched.how).or_default() += 1;
        file_use.last = file_use.last.max(touched.at);
        if file_use.events.is_empty() {
            file_use.source = touched.source;
        }
        // Event numbers are valid within one source only.
        if file_use.events.len() < EVENTS_MAX && file_use.source == touched.source {
            file_use.events.push(touched.event);
        }
    }
    let mut found: Vec<((i64, String), FileUse)> = found.into_iter().collect();
    found.sort_by_key(|(_, file_use)| std::cmp::Reverse(file_use.last));
    let total = found.len();
    let mut sessions: HashMap<SessionId, IndexedSession> = HashMap::new();
    for ((session, _), _) in found.iter().take(options.limit()) {
        if !sessions.contains_key(session) {
            sessions.extend(catalogue.session(*session)?.map(|session| (session.id, session)));
        }
    }
    let short_names = ShortNames::of_some(&catalogue, &sessions.values().collect::<Vec<_>>())?;
    let mut addresses = EventAddresses::default();
    for ((session, path), file_use) in found.iter().take(options.limit()) {
        let Some(session) = sessions.get(session) else { continue };
        let Some(source) = catalogue.source(file_use.source)? else { continue };
        let name = short_names.name(session);
        let named = Some((session, name.as_str())).filter(|_| short_names.is_unique(session));
        let mut event_addresses = Vec::new();
        for event in &file_use.events {
            event_addresses.push(addresses.of(&catalogue, named, (&source, *event), None)?);
        }
        if options.json {
            output.line(&harmless_json(&json(session, path, file_use, &event_addresses)))?;
        } else {
            let text = text(session, path, file_use, &event_addresses, output);
            output.line(&text)?;
        }
    }
    if total == 0 {
        output.say(&format!("no indexed session used {file}"));
        return Ok(ExitStatus::No);
    }
    if total > options.limit() && !options.json {
        output.say(&format!("{} of {total} shown; --limit shows more", options.limit()));
    }
    Ok(ExitStatus::Done)
}

/// Looks up the path as typed, then as an absolute path.
fn touches(catalogue: &Catalogue, file: &str) -> Result<Vec<Touched>, CommandError> {
    let plain = file.trim_end_matches('/').trim_start_matches("./");
    let mut found = catalogue.touches(plain)?;
    if found.is_empty()
        && let Ok(whole) = std::path::absolute(Path::new(file))
    {
        found = catalogue.touches(&whole.display().to_string())?;
    }
    Ok(found)
}

/// The sessions that match the query, if there is one.
fn sessions_matching(options: &Options) -> Result<Option<std::collections::HashSet<i64>>, CommandError> {
    use stenograph_store::index::search::{Order, SearchRequest};
    let Some(query) = options.full_query()? else { return Ok(None) };
    let mut searcher = options.place.store()?.searcher()?;
    let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 100_000, within: None };
    Ok(Some(searcher.find(&request)?.hits.iter().map(|hit| hit.session).collect()))
}

/// The command that shows the events. All are in one source, so one name opens them.
fn show_line(event_addresses: &[ShowAddress]) -> String {
    let name = event_addresses.first().map(ShowAddress::word).unwrap_or_default();
    format!("steno show {name} --event {}", numbers(event_addresses).join(","))
}

fn numbers(event_addresses: &[ShowAddress]) -> Vec<String> {
    event_addresses.iter().map(|open| open.event.to_string()).collect()
}

fn text(
    session: &IndexedSession,
    path: &str,
    file_use: &FileUse,
    event_addresses: &[ShowAddress],
    output: &Output<'_>,
) -> String {
    let colour = output.colour();
    let how: Vec<String> = file_use.how.iter().map(|(how, count)| format!("{how} {}", times(*count))).collect();
    let title = &session.about();
    let time = file_use.last.map(clock::format_minute).unwrap_or_default();
    format!(
        "{}  {}  {time}  {}\n  {}: {}\n  {}",
        colour.paint(TextStyle::Strong, &harmless_line(&session.agent)),
        harmless_line(&session.name),
        harmless_line(title),
        harmless_line(path),
        how.join(", "),
        colour.paint(TextStyle::Faint, &harmless_line(&show_line(event_addresses))),
    )
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { counted(count, "time") }
}

fn json(session: &IndexedSession, path: &str, file_use: &FileUse, event_addresses: &[ShowAddress]) -> String {
    let how = file_use.how.iter().fold(Draft::new(), |draft, (how, count)| draft.with(how.to_string(), count));
    Draft::new()
        .with("session", &session.name)
        .with("agent", &session.agent)
        .with_json("project", project_json(session.project.as_ref()))
        .with("path", path)
        .with_json("how", how.render(None))
        .with("last", clock::iso(file_use.last))
        .with_list("events", numbers(event_addresses))
        .with("show", show_line(event_addresses))
        .render(None)
}
