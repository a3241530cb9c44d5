//! `steno resume`: prints the command that resumes a session in its agent. It never runs the command; the library quotes it.

use std::path::Path;

use clap::ValueEnum;
use stenograph::json::Draft;
use stenograph::resume;
use stenograph_store::discover::discover;
use stenograph_store::index::catalogue::{Catalogue, Gone, IndexedSession, SourceRow};
use stenograph_store::sessions::{ShortNames, resume_line, resume_template};

use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, harmless_json};
use crate::store::{ResolvedSession, SessionArgs};

/// Print the command that resumes a session
///
/// Prints a command that changes to the folder of the session and runs the agent's own resume command. steno does not run it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno resume 0198f2c4
  steno resume latest
  eval \"$(steno resume latest)\"                    resume it now
  steno resume SESSION --shell powershell

Exit codes: 0 success, 1 no such session, or no command for it, 2 error")]
pub struct Options {
    /// A session: the beginning of its id, the path of its file, or latest
    #[arg(value_name = "SESSION", add = crate::completion::session())]
    session: String,
    #[command(flatten)]
    place: SessionArgs,
    /// Quote for this shell [default: the usual shell of this system]
    #[arg(long, value_name = "SHELL", value_enum)]
    shell: Option<Syntax>,
    /// Print one JSON object with the command and its parts
    #[arg(long)]
    json: bool,
}

/// Whose syntax the command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Syntax {
    /// sh, bash, zsh, fish
    Sh,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
    /// Windows command prompt
    Cmd,
}

impl Syntax {
    const HERE: Syntax = if cfg!(windows) { Syntax::PowerShell } else { Syntax::Sh };

    fn quoting(self) -> resume::Shell {
        match self {
            Syntax::Sh => resume::Shell::Sh,
            Syntax::PowerShell => resume::Shell::PowerShell,
            Syntax::Cmd => resume::Shell::Cmd,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Syntax::Sh => "sh",
            Syntax::PowerShell => "powershell",
            Syntax::Cmd => "cmd",
        }
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let ResolvedSession { session, source, .. } = options.place.session(&options.session)?;
    let catalogue = options.place.store()?.catalogue()?;
    let short = ShortNames::of_some(&catalogue, &[&session])?.name(&session);
    let (source, template) = resumable(&session, source, &catalogue)?;
    if !source.path.exists() {
        let gone = CommandError::not_found(format!("{short}: the file is gone: {}", source.path.display()));
        return Err(match source.archive_copy.is_some() || source.copy_of.is_some() {
            true => gone.hint(format!("restore it first with steno archive restore {short}")),
            false => gone.hint("it was never archived; steno find still searches its indexed text"),
        });
    }
    let shell = options.shell.unwrap_or(Syntax::HERE);
    let line = resume_line(template, &session, &source, shell.quoting()).map_err(|refused| {
        CommandError::not_found(format!("{short}: no safe command: {refused}"))
            .hint(format!("read the session with steno show {short}"))
    })?;
    let is_home = !template.contains("{session}") || is_at_home(&source, &session, &options.place);
    let is_folder_there = session.cwd.as_deref().is_none_or(|folder| Path::new(folder).is_dir());
    if options.json {
        let mut draft = Draft::new();
        draft.set_str("session", &session.name);
        draft.set_str("agent", &session.agent);
        draft.set_str("command", &line);
        draft.set_str("shell", shell.name());
        draft.set_opt("folder", session.cwd.as_deref());
        draft.set("folder_exists", is_folder_there.to_string());
        draft.set_str("path", &source.path.display().to_string());
        draft.set("at_home", is_home.to_string());
        output.line(&harmless_json(&draft.render(None)))?;
        return Ok(ExitStatus::Done);
    }
    output.line(&line)?;
    if let (false, Some(folder)) = (is_folder_there, &session.cwd) {
        output.say(&format!("the folder of the session is gone: {folder}"));
    }
    if !is_home {
        output.say(&format!("the file is not where the agent looks for sessions: {}", source.path.display()));
        output.say(&format!("hint: move it to the folder that steno formats lists for {}", session.agent));
    }
    Ok(ExitStatus::Done)
}

/// The source to resume and its agent's command: of the named source, else of another source of the session.
fn resumable(
    session: &IndexedSession,
    source: SourceRow,
    catalogue: &Catalogue,
) -> Result<(SourceRow, &'static str), CommandError> {
    let others = catalogue.sources_of(session.id)?;
    let mut sources: Vec<SourceRow> = std::iter::once(source).chain(others).collect();
    // A side conversation resumes with its session.
    sources.sort_by_key(|source| (source.thread.is_some(), source.gone == Gone::Gone));
    let found = sources.into_iter().find_map(|source| Some((resume_template(&source)?, source)));
    found.map(|(template, source)| (source, template)).ok_or_else(|| {
        CommandError::not_found(format!("{} has no command to resume a session", session.agent))
            .hint("steno formats lists agents that have one; convert the session with steno convert")
    })
}

/// Whether a source is where its agent looks for it.
fn is_at_home(source: &SourceRow, session: &IndexedSession, place: &SessionArgs) -> bool {
    let mut places = place.home().places();
    places.projects.extend(session.cwd.iter().map(std::path::PathBuf::from));
    let mut is_home = false;
    discover(&places, &mut |found| {
        let agent = found.hints.format.or(found.hints.like).map(|format| format.info().agent);
        is_home |= found.path == source.path && agent == Some(session.agent.as_str());
    });
    is_home
}
