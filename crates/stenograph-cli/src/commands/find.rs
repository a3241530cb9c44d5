//! `steno find`: what was said, done or touched in any session. The index answers; `--in` reads files as they are, without one.

mod files;
mod scan;
mod view;

use std::path::PathBuf;

use stenograph::query::{Mistake, Query, Snippet, Today};
use stenograph_store::index::catalogue::{Catalogue, Session, SourceRow};
use stenograph_store::index::search::{EntryDetail, Hit, Order, SearchRequest};

use crate::clock;
use crate::error::{CommandError, Status};
use crate::output::{Output, counted, harmless_json};
use crate::store::{Opening, Openings, Shorts, Where};

/// Find what was said, done or touched
///
/// Searches every session that was indexed, of every agent. Words must all stand in one event; \"a phrase\", prefix*, fuzzy~, -not, a OR b and
/// /regex/ do what they look like. Fields: agent: project: session: tool: file: role: model: branch: is:error has:thinking after: before:
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno find connection refused
  steno find '\"connection refused\" -timeout tool:bash after:7d'
  steno find 'project:api (migrate OR migration) role:user' --newest
  steno find 数据库
  steno find '/E[0-9]{4}/ rustc'                a pattern, in what has the word
  steno find --file src/main.rs                who touched this file, and how
  steno find walrus --in old/*.jsonl           in these files, without an index
  steno find deadlock --json --tokens 4000     what fits into so much of a model's window

The whole grammar: docs/guide/finding.md. steno index comes first; it also says what is new.

Exit codes: 0 found, 1 nothing found, 2 error")]
pub struct Options {
    /// What to look for; several words are one query
    #[arg(value_name = "QUERY", required_unless_present = "file")]
    query: Vec<String>,
    /// Sessions that touched this file or folder, and how; a query narrows them
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Look through these files as they are, without an index
    #[arg(long = "in", value_name = "FILE", num_args = 1.., conflicts_with = "file")]
    within: Vec<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// The newest first instead of the best
    #[arg(long)]
    newest: bool,
    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = limit)]
    limit: usize,
    /// Go on where another answer ended: what it gave as next
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Show no more than about so many tokens
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Print one JSON object a hit, and one at the end
    #[arg(long)]
    json: bool,
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("a number from 1 to 100000".to_owned()),
    }
}

/// One hit as it is shown.
struct Shown {
    /// The session's name and what is known of it.
    session: Option<Session>,
    /// As much of the session's name as it takes to know it by.
    short: String,
    /// Whether that name means this session and no other.
    is_named: bool,
    source: Option<SourceRow>,
    /// How it is opened.
    open: Option<Opening>,
    hit: Hit,
    read: Result<Seen, &'static str>,
}

/// What was read of a hit.
struct Seen {
    kind: &'static str,
    role: Option<&'static str>,
    tool: Option<String>,
    is_error: bool,
    snippet: Snippet,
}

/// What is shown of an answer.
struct Answered {
    hits: Vec<Shown>,
    total: u64,
    is_exact: bool,
    next: Option<String>,
    /// How well it went: a file that cannot be read may hide hits.
    status: Status,
}

/// How many characters of a hit are shown.
const SNIPPET_LENGTH: usize = 220;

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    if let Some(file) = &options.file {
        return files::run(options, file, output);
    }
    let query = parsed(&options.query.join(" "))?;
    let answered = match options.within.as_slice() {
        [] => indexed(options, &query)?,
        files => scan::answer(options, &query, files, output)?,
    };
    let answered = fitted(answered, options.tokens);
    if options.json {
        for shown in &answered.hits {
            output.line(&harmless_json(&view::json(shown)))?;
        }
        output.line(&view::end_json(&answered))?;
    } else {
        for (at, shown) in answered.hits.iter().enumerate() {
            if at > 0 {
                output.line("")?;
            }
            let text = view::hit(shown, output.colour());
            output.line(&text)?;
        }
        tell(&answered, &query, options, output);
    }
    Ok(answered.status.max(if answered.hits.is_empty() { Status::No } else { Status::Done }))
}

/// The query, or what is wrong with it.
pub(super) fn parsed(text: &str) -> Result<Query, CommandError> {
    let today = Today { now: jiff::Timestamp::now(), zone: clock::zone() };
    Query::parse(text, &today)
        .map_err(|mistake: Mistake| CommandError::new(format!("the query: {mistake}")).hint(mistake.hint))
}

/// What the index answers.
fn indexed(options: &Options, query: &Query) -> Result<Answered, CommandError> {
    let store = options.place.store()?;
    let mut searcher = store.searcher()?;
    let offset = offset(options.cursor.as_deref())?;
    let order = if options.newest { Order::Newest } else { Order::Best };
    let root = options.place.root();
    let request = SearchRequest { query, order, offset, limit: options.limit, within: root.as_deref() };
    let answer = searcher.find(&request)?;
    let counts = searcher.counts(query)?;
    let mut read: Vec<Option<Result<Seen, &'static str>>> = answer.hits.iter().map(|_| None).collect();
    searcher.read_each(&answer.hits, EntryDetail::Texts, &mut |at, found| {
        if let Some(slot) = read.get_mut(at) {
            *slot = Some(match found {
                Ok((_, entry)) => Ok(Seen::of(entry, query, Some(&counts))),
                Err(absent) => Err(absent.reason()),
            });
        }
    })?;
    let next = answer.hits.last().filter(|_| answer.has_more).map(|hit| (hit.rank + 1).to_string());
    let shorts = Shorts::of(searcher.catalogue())?;
    let (mut hits, mut openings) = (Vec::new(), Openings::default());
    for (hit, read) in answer.hits.into_iter().zip(read) {
        let session = searcher.session(hit.session)?.cloned();
        let source = searcher.source(hit.source)?.cloned();
        let short = session.as_ref().map(|session| shorts.name(session)).unwrap_or_default();
        let is_named = session.as_ref().is_some_and(|session| shorts.is_unique(session));
        let named = session.as_ref().filter(|_| is_named).map(|session| (session, short.as_str()));
        let open = source.as_ref().map(|source| {
            let found = (source, hit.event);
            opening(&mut openings, searcher.catalogue(), named, found, hit.version)
        });
        let (open, read) = (open.transpose()?, read.unwrap_or(Err("it cannot be read")));
        hits.push(Shown { session, short, is_named, source, open, hit, read });
    }
    Ok(Answered { hits, total: answer.total, is_exact: answer.is_exact, next, status: Status::Done })
}

/// How a hit is opened: by the name of its session where that means its source, else by a path.
fn opening(
    openings: &mut Openings,
    catalogue: &Catalogue,
    named: Option<(&Session, &str)>,
    (source, event): (&SourceRow, u64),
    version: Option<u32>,
) -> Result<Opening, CommandError> {
    let is_main = |(session, _): &(&Session, &str)| session.path == source.path;
    // A log is no session: its name may be the beginning of a session's.
    let is_log = stenograph::Registry::built_in().named(&source.format).is_some_and(|format| format.info().traits.log);
    let named = named.filter(|_| !is_log);
    if version.is_some() {
        // A version of a file is read alone.
        let by_session = named.filter(is_main).map(|(_, name)| Opening::of_session(name, event));
        return Ok(by_session.unwrap_or_else(|| Opening::alone(&source.path, event)));
    }
    let by_session = match named {
        Some((session, name)) => openings.by_session(catalogue, session, name, (source, event))?,
        None => None,
    };
    Ok(by_session.unwrap_or_else(|| openings.by_path(&source.path, event)))
}

impl Seen {
    /// `counts` says how common each thing is that the query looks for, where that is known.
    fn of(entry: &stenograph::query::Entry<'_>, query: &Query, counts: Option<&[u64]>) -> Seen {
        Seen {
            kind: entry.kind.name(),
            role: entry.role.map(stenograph::model::Role::name),
            tool: entry.tool.as_deref().map(str::to_owned),
            is_error: entry.error,
            snippet: query.snippet(entry, SNIPPET_LENGTH, counts),
        }
    }
}

fn offset(cursor: Option<&str>) -> Result<usize, CommandError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let wrong =
        || CommandError::new("--cursor is not what an answer gave").hint("take it from \"next\" of the last line");
    cursor.parse().map_err(|_| wrong())
}

/// As many hits as fit into so many tokens, and at least one, so that every answer gets further. A token is taken to be four bytes.
fn fitted(mut answered: Answered, tokens: Option<u64>) -> Answered {
    let Some(tokens) = tokens else { return answered };
    let mut left = tokens.saturating_mul(4);
    let fits = answered.hits.iter().take_while(|shown| {
        let size = view::json(shown).len() as u64;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    let count = fits.count().max(1);
    if count < answered.hits.len() {
        answered.hits.truncate(count);
        answered.next = answered.hits.last().map(|shown| (shown.hit.rank + 1).to_string());
    }
    answered
}

/// What there is to say besides the hits.
fn tell(answered: &Answered, query: &Query, options: &Options, output: &mut Output<'_>) {
    let about = if answered.is_exact { "" } else { "about " };
    if answered.hits.is_empty() {
        output.say(&format!("nothing found for {query}"));
        output.say("hint: steno index brings the index up to date; fewer words, word* and word~ find more");
        return;
    }
    let shown = answered.hits.len() as u64;
    let mut text = format!("\n{about}{}", counted(answered.total, "hit"));
    if let Some(next) = &answered.next {
        let order = if options.newest { "" } else { ", the best first" };
        text.push_str(&format!(", {shown} shown{order}; --cursor {next} shows more"));
    }
    output.say(&text);
}
