//! `steno list`: lists the sessions that the index knows. This file selects them; `list/tree.rs` orders them, `list/view.rs`
//! formats them.

mod choose;
mod tree;
mod view;

use std::cmp::Reverse;

use clap::ValueEnum;
use stenograph_store::index::catalogue::{Catalogue, Session};

use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json};
use crate::store::{ShortNames, StoreArgs};
use crate::{prices, table, terminal};
use choose::Choice;
pub(super) use choose::narrow;
use tree::{Row, Shape};
use view::ListView;

/// List the sessions of all agents, the newest first
///
/// Lists what steno index has found: the beginning of each session's id, which is all that other commands need to know it by, its agent, its
/// project, when something happened in it last, how much there is of it, and its title or else its first question. Sessions whose files
/// are gone are listed too; what was kept of them can still be shown and found. A query as for steno find leaves only sessions in which it
/// is found.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno list
  steno list --project api --after 7d
  steno list 'migration -is:error' --sort largest  sessions in which this is found
  steno list --tree                                what belongs to what
  steno list --gone                                what only the archive has
  steno list --json | jq -r 'select(.errors > 10).session'

Exit codes: 0 there are some, 1 there are none, 2 error")]
pub struct Options {
    /// Only sessions in which this is found; several words are one query
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Only sessions of agents that have this in their name
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only sessions of projects whose name, folder or remote has this in it
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only sessions on branches that have these words in their names
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Only sessions in which something happened since (7d, yesterday, 2026-01-31)
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Only sessions that had begun before
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only sessions whose files are not there any more
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    place: StoreArgs,
    /// In which order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Sort::Newest)]
    sort: Sort,
    /// List at most so many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Put sub-agents, forks and what continues a session below it
    #[arg(long)]
    tree: bool,
    /// Print one JSON object a session, with everything
    #[arg(long)]
    json: bool,
}

/// In which order sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By what happened in them last
    Newest,
    /// By when they began
    Oldest,
    /// By the size of their files
    Largest,
    /// By the number of their messages
    Longest,
    /// By the number of errors in them
    Errors,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    let catalogue = store.catalogue()?;
    let choice = Choice::new(options)?;
    let found = choice.sessions(&store, &catalogue, options, output)?;
    if found.is_empty() {
        return Err(nothing(&catalogue)?);
    }
    let total = found.len();
    let mut rows = match options.tree {
        true => tree::rows(sorted(found, options.sort), &catalogue, Shape::Tree)?,
        false => tree::rows(sorted(found, options.sort), &catalogue, Shape::Flat)?,
    };
    // Without a pager, a terminal shows one screen.
    let screen = terminal::height().filter(|_| !options.json && !output.may_page()).map(|lines| lines.saturating_sub(3).max(5));
    cut(&mut rows, options.limit.or(screen).unwrap_or(usize::MAX));
    let shorts = ShortNames::of(&catalogue)?;
    let prices = prices::load()?;
    let (colour, width) = (output.colour(), table::screen_width());
    let view = ListView { shorts: &shorts, catalogue: &catalogue, prices: &prices, colour, width };
    if options.json {
        for row in &rows {
            output.line(&harmless_json(&view.json(row)?))?;
        }
        return Ok(ExitStatus::Done);
    }
    output.page();
    for piece in view.pieces(&rows) {
        for line in piece {
            output.line(&line)?;
        }
    }
    let listed = rows.iter().filter(|row| matches!(row, Row::Session { .. })).count();
    if listed < total {
        output.say(&format!("{listed} of {} shown; --limit N shows more", counted(total as u64, "session")));
    }
    Ok(ExitStatus::Done)
}

fn sorted(mut sessions: Vec<Session>, sort: Sort) -> Vec<Session> {
    sessions.sort_by_key(|session| (Reverse(session.ended), Reverse(session.id)));
    // Among equals the newest stay first.
    match sort {
        Sort::Newest => {}
        Sort::Oldest => sessions.sort_by_key(|session| (session.started.is_none(), session.started)),
        Sort::Largest => sessions.sort_by_key(|session| Reverse(session.size)),
        Sort::Longest => sessions.sort_by_key(|session| Reverse(session.messages)),
        Sort::Errors => sessions.sort_by_key(|session| Reverse(session.errors)),
    }
    sessions
}

/// Keeps `limit` sessions, with the rows below the last of them.
fn cut(rows: &mut Vec<Row>, limit: usize) {
    let mut seen = 0;
    let end = rows.iter().position(|row| {
        seen += usize::from(matches!(row, Row::Session { .. }));
        seen > limit
    });
    rows.truncate(end.unwrap_or(rows.len()));
}

fn nothing(catalogue: &Catalogue) -> Result<CommandError, CommandError> {
    Ok(match catalogue.session_names()?.len() {
        0 => CommandError::not_found("there are no sessions yet")
            .hint("steno index reads what the agents on this machine wrote; steno formats lists where it looks"),
        count => CommandError::not_found(format!("none of {} is like that", counted(count as u64, "session")))
            .hint("leave out a condition; steno index finds new sessions"),
    })
}
