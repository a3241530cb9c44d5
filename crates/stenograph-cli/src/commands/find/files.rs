//! `steno find --file`: which sessions touched a file, and how.

use std::collections::BTreeMap;
use std::path::Path;

use stenograph::text::quote;
use stenograph_store::index::catalogue::{Catalogue, Session, SourceId, Touched};

use super::Options;
use crate::clock;
use crate::error::{CommandError, Status};
use crate::output::{Ink, Output, counted, harmless_json, harmless_line};
use crate::store::{Opening, Openings, Shorts, project_json};

/// What one session did to one file.
#[derive(Default)]
struct Touching {
    how: BTreeMap<String, u64>,
    last: Option<i64>,
    /// The source of the first events, and their numbers in it.
    source: SourceId,
    events: Vec<u64>,
}

/// How many events are named.
const EVENTS_MAX: usize = 5;

pub(super) fn run(options: &Options, file: &str, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let catalogue = options.place.store()?.catalogue()?;
    let touches = touches(&catalogue, file)?;
    let narrowed = narrowed(options)?;
    let root = options.place.root();
    let inside = root.as_deref().map(|root| catalogue.sources_below(root)).transpose()?;
    let mut found: BTreeMap<(i64, String), Touching> = BTreeMap::new();
    for touched in touches {
        let is_outside = inside.as_ref().is_some_and(|inside| !inside.contains(&touched.source));
        if is_outside || narrowed.as_ref().is_some_and(|sessions| !sessions.contains(&touched.session)) {
            continue;
        }
        let touching = found.entry((touched.session, touched.path)).or_default();
        *touching.how.entry(touched.how).or_default() += 1;
        touching.last = touching.last.max(touched.at);
        if touching.events.is_empty() {
            touching.source = touched.source;
        }
        // Numbers mean something in one source only.
        if touching.events.len() < EVENTS_MAX && touching.source == touched.source {
            touching.events.push(touched.event);
        }
    }
    let mut found: Vec<((i64, String), Touching)> = found.into_iter().collect();
    found.sort_by_key(|(_, touching)| std::cmp::Reverse(touching.last));
    let total = found.len();
    let (shorts, mut openings) = (Shorts::of(&catalogue)?, Openings::default());
    for ((session, path), touching) in found.iter().take(options.limit) {
        let Some(session) = catalogue.session(*session)? else { continue };
        let Some(source) = catalogue.source(touching.source)? else { continue };
        let name = shorts.name(&session);
        let named = Some((&session, name.as_str())).filter(|_| shorts.is_unique(&session));
        let mut opened = Vec::new();
        for event in &touching.events {
            opened.push(super::opening(&mut openings, &catalogue, named, (&source, *event), None)?);
        }
        if options.json {
            output.line(&harmless_json(&json(&session, path, touching, &opened)))?;
        } else {
            let text = text(&session, path, touching, &opened, output);
            output.line(&text)?;
        }
    }
    if total == 0 {
        output.say(&format!("nobody touched {file}, as far as is indexed"));
        return Ok(Status::No);
    }
    if total > options.limit && !options.json {
        output.say(&format!("{} of {total} shown; --limit shows more", options.limit));
    }
    Ok(Status::Done)
}

/// As it was typed, and as a path from the root.
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

/// The sessions that answer the query, where there is one.
fn narrowed(options: &Options) -> Result<Option<std::collections::HashSet<i64>>, CommandError> {
    use stenograph_store::index::search::{Order, SearchRequest};
    if options.query.is_empty() {
        return Ok(None);
    }
    let query = super::parsed(&options.query.join(" "))?;
    let mut searcher = options.place.store()?.searcher()?;
    let request = SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: 100_000, within: None };
    Ok(Some(searcher.find(&request)?.hits.iter().map(|hit| hit.session).collect()))
}

/// The command that shows events. All are in one source, so that they are opened by one name.
fn show_line(opened: &[Opening]) -> String {
    let name = opened.first().map_or("", |open| open.name.as_str());
    format!("steno show {name} --event {}", numbers(opened).join(","))
}

fn numbers(opened: &[Opening]) -> Vec<String> {
    opened.iter().map(|open| open.event.to_string()).collect()
}

fn text(session: &Session, path: &str, touching: &Touching, opened: &[Opening], output: &Output<'_>) -> String {
    let colour = output.colour();
    let how: Vec<String> = touching.how.iter().map(|(how, count)| format!("{how} {}", times(*count))).collect();
    let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or("");
    let time = touching.last.map(clock::minute).unwrap_or_default();
    format!(
        "{}  {}  {time}  {}\n  {}: {}\n  {}",
        colour.ink(Ink::Strong, &harmless_line(&session.agent)),
        harmless_line(&session.name),
        harmless_line(title),
        harmless_line(path),
        how.join(", "),
        colour.ink(Ink::Faint, &harmless_line(&show_line(opened))),
    )
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { counted(count, "time") }
}

fn json(session: &Session, path: &str, touching: &Touching, opened: &[Opening]) -> String {
    let how: Vec<String> = touching.how.iter().map(|(how, count)| format!("{}:{count}", quote(how))).collect();
    format!(
        "{{\"session\":{},\"agent\":{},\"project\":{},\"path\":{},\"how\":{{{}}},\"last\":{},\"events\":[{}],\"show\":{}}}",
        quote(&session.name),
        quote(&session.agent),
        project_json(session.project.as_ref()),
        quote(path),
        how.join(","),
        clock::iso(touching.last).map_or_else(|| "null".to_owned(), |time| quote(&time)),
        numbers(opened).join(","),
        quote(&show_line(opened))
    )
}
