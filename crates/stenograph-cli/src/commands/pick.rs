//! `steno pick`: finds a session interactively and does something with it. `pick/model.rs` keeps the state, `pick/screen.rs` draws it,
//! `pick/workers.rs` reads what takes time; this file has the options and performs the chosen action.

mod action;
mod edit;
mod find_loop;
mod layout;
mod matching;
mod model;
mod preview;
mod screen;
mod workers;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;

use clap::FromArgMatches as _;
use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;
use stenograph_store::index::catalogue::IndexedSession;

use crate::args::{self, Args};
use crate::commands;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;
use crate::store::{SessionArgs, StoreArgs};
use crate::terminal::ScreenStream;
use action::{PickAction, PickTask};
use find_loop::Picked;
use matching::SearchedSessions;
use model::{Enter, Loading, Picker};
use stenograph_store::sessions::{SessionOrder, ShortNames};

/// Find a session interactively, and show it
///
/// Lists the indexed sessions, newest first, and narrows the list while you type. All words must match the title, the first
/// question, the project, the agent, the branch, the model, the id, a tag or a note; other letters may be between the letters
/// of a word. A query that begins with / searches the full text of all sessions, like steno find. The preview shows the
/// beginning of a session, or the event that was found. A star precedes the title of a pinned session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: enter          show the session (with --print: print its id)
      alt-r          print the command that resumes it
      alt-y          copy its id and print it
      alt-c          convert it; then choose a format
      alt-e          export it; then choose Markdown, JSON or CSV
      alt-d          compare the two sessions marked with tab
      alt-R          restore it from the archive, if its file is gone
      ctrl-o LETTER  the same actions, for terminals without an alt key
      tab            mark the session
      ctrl-t or /    search the full text
      up down        select; also ctrl-p ctrl-n, page up, page down
      shift-up down  scroll the preview; ctrl-b ctrl-f by pages
      ? or f1        show the keys
      esc ctrl-c     quit

Words: fuzzy  'exact  ^beginning  end$  !excluded

Examples:
  steno pick
  steno pick flaky test                    begin with this query
  steno pick /segfault                     search the full text
  steno show $(steno pick --print)         pass the id to another command

Exit codes: 0 success, 1 nothing chosen, 2 error, 130 ctrl-c. If an action runs
            a command, the exit code of that command")]
pub struct Options {
    /// Begin with this query; several words form one query
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Print the id of the chosen session, or the ids of all marked sessions, instead of showing it
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    place: SessionArgs,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let stream = stream()?;
    let enter = if options.print { Enter::Prints } else { Enter::Shows };
    let mut picker = Picker::new(&options.query.join(" "), enter);
    picker.take_sessions(sessions(&options.place, Amount::Newest)?, Loading::Newest);
    if picker.counts().1 == 0 {
        // The newest sessions may be outside of --root and --project.
        picker.take_sessions(sessions(&options.place, Amount::All)?, Loading::Complete);
    }
    if picker.counts().1 == 0 {
        return Err(commands::list::nothing(&options.place.store()?.catalogue()?)?);
    }
    match find_loop::run(picker, &options.place, stream, output)? {
        Picked::Nothing => Ok(ExitStatus::No),
        Picked::Stopped(code) => Ok(ExitStatus::Code(code)),
        Picked::Task(task) => perform(options, &task, stream, output),
    }
}

/// The stream to draw on: standard error, so that standard output is free for a program that reads it.
fn stream() -> Result<ScreenStream, CommandError> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if !is_dumb && std::io::stderr().is_terminal() {
        return Ok(ScreenStream::Stderr);
    }
    if !is_dumb && std::io::stdout().is_terminal() {
        return Ok(ScreenStream::Stdout);
    }
    Err(CommandError::new("steno pick needs a terminal")
        .hint("without one, use steno list QUERY or steno find QUERY; --json is for programs"))
}

/// How many sessions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// Enough for the first screen.
    Newest,
    All,
}

/// How many sessions are read before the first screen.
const NEWEST: usize = 200;

/// The sessions of the index, newest first.
fn sessions(place: &SessionArgs, amount: Amount) -> Result<SearchedSessions, CommandError> {
    let catalogue = place.store()?.catalogue()?;
    let mut sessions = match amount {
        Amount::Newest => catalogue.newest_sessions(NEWEST)?,
        Amount::All => catalogue.sessions()?,
    };
    if let Some(inside) = place.scope(&catalogue)? {
        sessions.retain(|session| inside.contains(&session.id));
    }
    SessionOrder::Newest.sort(&mut sessions);
    Ok(SearchedSessions::new(sessions))
}

/// Performs the action, after the terminal is restored.
fn perform(
    options: &Options,
    task: &PickTask,
    mut stream: ScreenStream,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let names = names(&options.place, &task.sessions)?;
    if task.action == PickAction::CopyId || task.action == PickAction::Show && options.print {
        for name in &names {
            // A program gets every byte; a terminal gets no control character.
            writeln!(output.transcript(), "{}", name.display())?;
        }
        output.flush()?;
        if let (PickAction::CopyId, Some(name)) = (task.action, names.first()) {
            let name = name.to_string_lossy().into_owned();
            let _ = execute!(stream, CopyToClipboard::to_clipboard_from(name));
            output.say("copied to the clipboard, if the terminal allows it");
        }
        return Ok(ExitStatus::Done);
    }
    let Some(line) = task.command_line(&names, options.place.home().given()) else { return Ok(ExitStatus::Done) };
    let parsed = args::command().try_get_matches_from(line).and_then(|matches| Args::from_arg_matches(&matches));
    let args = parsed.map_err(|error| CommandError::new(error.to_string()))?;
    let Some(command) = &args.command else { return Ok(ExitStatus::No) };
    let status = commands::run(command, output)?;
    if let (ExitStatus::Done, Some(file)) = (status, task.output_name()) {
        output.say(&format!("wrote {}", file.display()));
    }
    Ok(status)
}

/// What other commands call these sessions: the id, or the path of the file if the id means something else.
fn names(place: &StoreArgs, sessions: &[IndexedSession]) -> Result<Vec<OsString>, CommandError> {
    let short_names = ShortNames::of_some(&place.store()?.catalogue()?, &sessions.iter().collect::<Vec<_>>())?;
    let name = |session: &IndexedSession| {
        let name = session.name.as_str();
        let is_taken = name.is_empty() || name == "-" || Path::new(name).symlink_metadata().is_ok();
        match short_names.is_unique(session) && !is_taken {
            true => OsString::from(name),
            false => session.path.clone().into_os_string(),
        }
    };
    Ok(sessions.iter().map(name).collect())
}
