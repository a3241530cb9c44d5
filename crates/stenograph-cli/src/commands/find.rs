//! `steno find`: searches all sessions. The index answers; `--in` reads files directly, without an index.

mod across;
mod files;
mod scan;
mod view;

use std::collections::HashSet;
use std::path::PathBuf;

use stenograph::query::Query;
use stenograph_store::hits::{self, ShownAnswer, ShownHit};
use stenograph_store::index::search::{Order, SearchRequest};

use crate::error::{CommandError, ExitStatus};
use crate::filter::{FilterArgs, query_of};
use crate::output::{Output, counted, grouped, harmless_json};
use crate::store::StoreArgs;
use crate::table;

/// Search all sessions for messages, calls and files
///
/// Searches every indexed session of every agent. One event must contain all words of the query; with --session, they may be in
/// different events of a session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno find connection refused
  steno find '\"connection refused\" -timeout tool:bash since:7d'
  steno find 'project:api (migrate OR migration) role:user' --newest
  steno find --session flaky checkout retry    words anywhere in a session
  steno find 数据库
  steno find -- --json                         a query that begins with a dash
  steno find '/E[0-9]{4}/ rustc'               a regex, in events with the word
  steno find --file src/main.rs                sessions that used this file
  steno find walrus --in old/*.jsonl           search files without an index
  steno find deadlock --json --tokens 4000     limit the output to 4000 tokens

Query:
  word other            both words, in any order; case does not matter
  \"a phrase\"            these words in this order
  prefix*  fuzzy~       words that begin with prefix; one letter may differ
  -word                 not this word; also before a field
  a OR b  (a b)         one of both; a group
  /regex/               a regular expression, next to at least one word
  agent: project: model: session: branch:   about the session, part of a name
  tag:NAME is:pinned is:marked              marks that you gave (steno mark)
  tool:bash file:main.rs                    calls of a tool; calls with a file
  role:user is:error is:call has:thinking   about the event
  since:7d until:yesterday                  ages (30m, 12h, 7d, 2w, 3mo, 1y),
                                            days, months, years, last-week

Run steno index first.

Exit codes: 0 found, 1 nothing found, 2 error")]
pub struct Options {
    /// The query; several words form one query
    #[arg(value_name = "QUERY", required_unless_present_any = ["file", "agent", "project", "model", "since", "until"],
        add = crate::completion::query())]
    query: Vec<String>,
    /// Find sessions that used this file or folder; a query narrows them
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Search these files directly, without the index
    #[arg(long = "in", value_name = "FILE", num_args = 1.., conflicts_with = "file")]
    within: Vec<PathBuf>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    place: StoreArgs,
    /// Find sessions that have all words of the query, in any of their events
    #[arg(long, conflicts_with_all = ["file", "within", "tokens"])]
    session: bool,
    /// List every hit separately instead of grouping hits by session
    #[arg(long)]
    events: bool,
    /// Sort by time, newest first, instead of by relevance
    #[arg(long)]
    newest: bool,
    /// Show at most N hits [default: 20, or 100 if grouped by session]; with --session, N sessions [default: 20]
    #[arg(long, value_name = "N", value_parser = limit)]
    limit: Option<usize>,
    /// Show the next page: the value of "next" in an earlier result
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Show at most about N tokens of text
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Print one JSON object per hit, and a summary object at the end
    #[arg(long)]
    json: bool,
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("expected a number from 1 to 100000".to_owned()),
    }
}

/// How many hits are shown without --limit. Of those of one session, people see only a few.
const LIMIT: usize = 20;
const GROUPED_LIMIT: usize = 100;

/// How many hits of one session are shown. With --session, there is one for each word.
const HITS_OF_SESSION_MAX: usize = 3;

/// The longest snippet.
const SNIPPET_LENGTH_MAX: usize = 220;

/// The length of a snippet: one line of the terminal, with its indentation.
fn snippet_length() -> usize {
    table::screen_width().saturating_sub(10).clamp(40, SNIPPET_LENGTH_MAX)
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if let Some(file) = &options.file {
        return files::run(options, file, output);
    }
    let Some(query) = options.full_query()? else {
        return Err(CommandError::new("the query is empty").hint("write a word, or a field such as is:error"));
    };
    if options.session {
        return across::run(options, &query, output);
    }
    let (answer_to_show, status) = match options.within.as_slice() {
        [] => (ask_index(options, &query)?, ExitStatus::Done),
        files => scan::answer(options, &query, files, output)?,
    };
    let answer_to_show = limited_to(answer_to_show, options.tokens);
    if options.json {
        for shown in &answer_to_show.hits {
            output.line(&harmless_json(&shown.json()))?;
        }
        output.line(&view::end_json(&answer_to_show))?;
    } else {
        options.print(&answer_to_show.hits, output)?;
        report_count(&answer_to_show, &query, options, output);
    }
    Ok(status.max(if answer_to_show.hits.is_empty() { ExitStatus::No } else { ExitStatus::Done }))
}

impl Options {
    fn limit(&self) -> usize {
        let is_grouped = !(self.json || self.events || self.session) && self.file.is_none() && self.tokens.is_none();
        self.limit.unwrap_or(if is_grouped { GROUPED_LIMIT } else { LIMIT })
    }

    /// Prints hits for people.
    fn print(&self, hits: &[ShownHit], output: &mut Output<'_>) -> Result<(), CommandError> {
        output.page();
        let (colour, width) = (output.colour(), table::screen_width());
        let texts: Vec<String> = match self.events {
            true => hits.iter().map(|shown| view::hit(shown, colour, width)).collect(),
            false if self.session => view::sessions(hits, usize::MAX, colour, width),
            false => view::sessions(hits, HITS_OF_SESSION_MAX, colour, width),
        };
        if texts.is_empty() { Ok(()) } else { output.line(&texts.join("\n\n")) }
    }

    /// The query with the conditions of the options; `None` if there are none.
    fn full_query(&self) -> Result<Option<Query>, CommandError> {
        query_of(&self.filter.all(), &self.query.join(" "))
    }
}

fn ask_index(options: &Options, query: &Query) -> Result<ShownAnswer, CommandError> {
    let offset = offset(options.cursor.as_deref())?;
    let order = if options.newest { Order::Newest } else { Order::Best };
    search(&options.place, query, order, offset, options.limit())
}

/// Asks the index for at most `limit` hits after the first `offset`.
pub(super) fn search(
    place: &StoreArgs,
    query: &Query,
    order: Order,
    offset: usize,
    limit: usize,
) -> Result<ShownAnswer, CommandError> {
    let root = place.root();
    let request = SearchRequest { query, order, offset, limit, within: root.as_deref() };
    Ok(hits::find(&mut place.store()?.searcher()?, &request, snippet_length())?)
}

fn offset(cursor: Option<&str>) -> Result<usize, CommandError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let wrong =
        || CommandError::new("invalid --cursor").hint("use the \"next\" value of the last line of an earlier result");
    cursor.parse().map_err(|_| wrong())
}

/// Keeps as many hits as fit into `tokens` tokens, at least one so that paging makes progress. Assumes four bytes per token.
fn limited_to(mut answer_to_show: ShownAnswer, tokens: Option<u64>) -> ShownAnswer {
    let Some(tokens) = tokens else { return answer_to_show };
    let mut left = tokens.saturating_mul(4);
    let fits = answer_to_show.hits.iter().take_while(|shown| {
        let size = shown.json().len() as u64;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    let count = fits.count().max(1);
    if count < answer_to_show.hits.len() {
        answer_to_show.hits.truncate(count);
        answer_to_show.next = answer_to_show.hits.last().map(|shown| (shown.hit.rank + 1).to_string());
    }
    answer_to_show
}

fn report_nothing(query: &Query, options: &Options, output: &mut Output<'_>) {
    let filters =
        if options.filter.all().iter().any(|(_, value)| value.is_some()) { " with these filters" } else { "" };
    let text = if options.query.is_empty() { query.to_string() } else { options.query.join(" ") };
    output.say(&format!("nothing found for {text}{filters}"));
    let spread = if options.session || options.query.len() < 2 { "" } else { ", or --session" };
    output.say(&format!("hint: try fewer words, word*, word~{spread}; or update the index with steno index"));
}

/// Reports the number of hits, and how to get more.
fn report_count(answer_to_show: &ShownAnswer, query: &Query, options: &Options, output: &mut Output<'_>) {
    let about = if answer_to_show.is_exact { "" } else { "about " };
    if answer_to_show.hits.is_empty() {
        return report_nothing(query, options, output);
    }
    let sessions: HashSet<i64> = answer_to_show.hits.iter().map(|shown| shown.hit.session).collect();
    let sessions = match options.within.is_empty() {
        true => format!(" in {}", counted(sessions.len() as u64, "session")),
        // Files that are read directly have no sessions.
        false => String::new(),
    };
    let total = format!("\n{about}{}", counted(answer_to_show.total, "hit"));
    output.say(&match &answer_to_show.next {
        None if options.cursor.is_none() => format!("{total}{sessions}"),
        next => {
            let which = match (&options.cursor, options.newest) {
                (Some(_), _) => "next",
                (None, true) => "newest",
                (None, false) => "best",
            };
            let shown = grouped(answer_to_show.hits.len() as u64);
            let more = next.as_ref().map(|next| format!("; more with --cursor {next}")).unwrap_or_default();
            format!("{total}: {which} {shown} shown{sessions}{more}")
        }
    });
}
