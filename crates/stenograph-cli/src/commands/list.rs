//! `steno list`: lists the sessions that the index knows. This file selects them, the store orders them, and
//! `list/view.rs` formats them.

mod choose;
mod tree;
mod view;

use std::path::PathBuf;

use clap::ValueEnum;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession};
use stenograph_store::sessions::{DEPTH_MAX, ListShape, SessionOrder, ShortNames, rows as rows_of};

use crate::error::{CommandError, ExitStatus};
use crate::filter::FilterArgs;
use crate::output::{Output, TextStyle, counted, grouped, harmless_json};
use crate::store::{SessionArgs, StoreArgs};
use crate::{prices, table, terminal};
use choose::Choice;
pub(super) use choose::narrow;
use view::{ListItem, ListRow, ListView};

/// List the sessions of all agents, newest first
///
/// Lists the sessions that steno index has found, including those whose files are gone; steno show and steno find read their
/// archived copies. Each line shows the shortest unique beginning of the session id (other commands accept it), the agent, the
/// project, the time of the last event, the cost, the number of messages, the size, and the title or else the first question.
/// The time is that of the last message, call or result. Sessions without a message of a person come after all others. With a QUERY, steno lists only the sessions that match; the syntax is that of steno find.
///
/// A project is a git repository, identified by its remote or else by its folder; outside a repository it is the folder of the
/// session. Two clones of one remote are one project.
///
/// --tree shows sub-agents, forks and continuations below their session. After it, name files, folders or sessions to compare
/// their events: steno then shows where each conversation branched off, and the turns that were abandoned or retried. For a
/// session it reads all related sessions; it compares files and folders only with each other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno list
  steno list --project api --since 7d
  steno list 'migration -is:error' --sort largest  sessions that match a query
  steno list --tree                                with sub-agents and forks
  steno list --tree 0198f2c4                       where its relatives branched off
  steno list --tree ~/chats                        the same for files in a folder
  steno list --gone                                sessions whose files are gone
  steno list --json | jq -r 'select(.errors > 10).session'

Exit codes: 0 sessions listed, 1 no sessions found, 2 error")]
pub struct Options {
    /// List only sessions that match this query; several words form one query
    #[arg(value_name = "QUERY", add = crate::completion::query())]
    query: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only git branches whose name contains these words
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// List only sessions whose files are gone
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    place: StoreArgs,
    /// Sort order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Sort::Newest)]
    sort: Sort,
    /// List at most N sessions
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Show sub-agents, forks and continuations below their session; with names, also where they branched off
    #[arg(long, value_name = "FILE|SESSION", num_args = 0.., add = crate::completion::transcript())]
    tree: Option<Vec<PathBuf>>,
    /// Print one JSON object per session, with all fields
    #[arg(long)]
    json: bool,
}

/// In which order sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By the time of the last event
    Newest,
    /// By the time of the first event
    Oldest,
    /// By file size
    Largest,
    /// By number of messages
    Longest,
    /// By number of errors
    Errors,
}

/// How many more sessions are read than shown, because logs that belong to no conversation are not listed.
const NEWEST_MARGIN: usize = 50;

impl Options {
    /// Whether it lists the newest of all sessions.
    fn is_unfiltered(&self, catalogue: &Catalogue) -> Result<bool, CommandError> {
        let is_unfiltered = self.query.is_empty()
            && self.filter.all().iter().all(|(_, value)| value.is_none())
            && self.branch.is_none()
            && !self.gone
            && self.tree.is_none()
            && self.sort == Sort::Newest;
        Ok(match self.place.root() {
            Some(root) if is_unfiltered => catalogue.are_all_below(&root)?,
            _ => is_unfiltered,
        })
    }

    /// Where the names after `--tree` are looked up. They select the sessions, so no other option may.
    fn names_scope(&self) -> Result<SessionArgs, CommandError> {
        let filters = self.filter.all();
        let project = filters.iter().find(|(field, _)| *field == "project").and_then(|(_, value)| *value);
        let is_filtered = filters.iter().any(|(field, value)| *field != "project" && value.is_some());
        if is_filtered || !self.query.is_empty() || self.branch.is_some() || self.gone {
            return Err(CommandError::new("names after --tree cannot be combined with a query or a filter")
                .hint("remove the names: steno list QUERY --tree"));
        }
        Ok(SessionArgs::new(self.place.home(), project.map(str::to_owned)))
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    // Without a pager, a terminal shows one screen.
    let screen =
        terminal::height().filter(|_| !options.json && !output.may_page()).map(|lines| lines.saturating_sub(3).max(5));
    let limit = options.limit.or(screen);
    let store = options.place.store()?;
    let (mut rows, total, status, catalogue) = match options.tree.as_deref() {
        Some(names @ [_, ..]) => {
            let (rows, status) = tree::rows(names, &options.names_scope()?, output)?;
            let total = rows.iter().filter(|row| row.is_conversation()).count() as u64;
            (rows, total, status, store.catalogue().ok())
        }
        tree => {
            let catalogue = store.catalogue()?;
            let is_unfiltered = options.is_unfiltered(&catalogue)?;
            let (found, total) = match limit.filter(|_| is_unfiltered) {
                Some(limit) => {
                    (catalogue.newest_sessions(limit.saturating_add(NEWEST_MARGIN))?, catalogue.session_count()?)
                }
                None => {
                    let found = Choice::new(options)?.sessions(&store, &catalogue, options, output)?;
                    let total = found.len() as u64;
                    (found, total)
                }
            };
            let is_narrowed =
                !options.query.is_empty() || options.filter.all().iter().any(|(_, value)| value.is_some());
            if found.is_empty() && options.gone && !is_narrowed && catalogue.session_count()? > 0 {
                return Err(CommandError::not_found("no session's file is gone").hint("steno list lists all sessions"));
            }
            if found.is_empty() {
                return Err(nothing(&catalogue)?);
            }
            let shape = if tree.is_some() { ListShape::Tree } else { ListShape::Flat };
            let rows = rows_of(sorted(found, options.sort), &catalogue, shape)?;
            (rows.into_iter().map(ListRow::from).collect(), total, ExitStatus::Done, Some(catalogue))
        }
    };
    cut(&mut rows, limit.unwrap_or(usize::MAX));
    let shorts = catalogue.as_ref().map(|catalogue| short_names(catalogue, &rows)).transpose()?.unwrap_or_default();
    let prices = prices::load()?;
    let (colour, width) = (output.colour(), table::screen_width());
    let view = ListView { shorts: &shorts, catalogue: catalogue.as_ref(), prices: &prices, colour, width };
    if options.json {
        for row in &rows {
            output.line(&harmless_json(&view.json(row)?))?;
        }
        return Ok(status);
    }
    if rows.is_empty() {
        return Ok(status);
    }
    output.page();
    for piece in view.pieces(&rows) {
        for line in piece {
            output.line(&line)?;
        }
    }
    let listed = rows.iter().filter(|row| row.is_conversation()).count() as u64;
    let count = match listed < total {
        true => format!("{} of {} shown; --limit N shows more", grouped(listed), counted(total, "session")),
        false => counted(listed, "session"),
    };
    match output.is_terminal() {
        // In the pager too, the last line says how many there are.
        true => output.line(&colour.paint(TextStyle::Faint, &count))?,
        false if listed < total => output.say(&count),
        false => {}
    }
    Ok(status)
}

/// The table of the pinned sessions, which take at most half of the lines, and of the newest sessions.
pub fn newest(catalogue: &Catalogue, count: usize, output: &Output<'_>) -> Result<Vec<String>, CommandError> {
    let mut sessions = sorted(catalogue.pinned_sessions()?, Sort::Newest);
    sessions.truncate(count.div_ceil(2));
    let newest = sorted(catalogue.newest_sessions(count)?, Sort::Newest);
    let is_listed = |session: &IndexedSession| sessions.iter().any(|pinned| pinned.id == session.id);
    let newest: Vec<IndexedSession> = newest.into_iter().filter(|session| !is_listed(session)).collect();
    sessions.extend(newest);
    sessions.truncate(count);
    let rows: Vec<ListRow> = rows_of(sessions, catalogue, ListShape::Flat)?.into_iter().map(ListRow::from).collect();
    let (shorts, prices) = (short_names(catalogue, &rows)?, prices::load()?);
    let (colour, width) = (output.colour(), table::screen_width());
    let view = ListView { shorts: &shorts, catalogue: Some(catalogue), prices: &prices, colour, width };
    Ok(view.pieces(&rows).flatten().collect())
}

fn short_names(catalogue: &Catalogue, rows: &[ListRow]) -> Result<ShortNames, CommandError> {
    let sessions = rows.iter().filter_map(|row| match &row.item {
        ListItem::Session(session) => Some(&**session),
        ListItem::Thread { .. } | ListItem::File(_) | ListItem::Abandoned { .. } => None,
    });
    Ok(ShortNames::of_some(catalogue, &sessions.collect::<Vec<_>>())?)
}

fn sorted(mut sessions: Vec<IndexedSession>, sort: Sort) -> Vec<IndexedSession> {
    sort.order().sort(&mut sessions);
    sessions
}

impl Sort {
    fn order(self) -> SessionOrder {
        match self {
            Sort::Newest => SessionOrder::Newest,
            Sort::Oldest => SessionOrder::Oldest,
            Sort::Largest => SessionOrder::Largest,
            Sort::Longest => SessionOrder::Longest,
            Sort::Errors => SessionOrder::Errors,
        }
    }
}

/// Keeps `limit` conversations, with the rows below the last of them.
fn cut(rows: &mut Vec<ListRow>, limit: usize) {
    let mut seen = 0;
    let end = rows.iter().position(|row| {
        seen += usize::from(row.is_conversation());
        seen > limit
    });
    rows.truncate(end.unwrap_or(rows.len()));
}

pub(super) fn nothing(catalogue: &Catalogue) -> Result<CommandError, CommandError> {
    Ok(match catalogue.session_names()?.len() {
        0 => CommandError::not_found("no sessions found yet")
            .hint("run steno index to find them; steno formats lists where it looks"),
        count => CommandError::not_found(format!("none of {} matches", counted(count as u64, "session")))
            .hint("remove a filter, or find new sessions with steno index"),
    })
}
