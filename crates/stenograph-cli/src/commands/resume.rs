//! `steno resume`: prints the command that resumes a session in its agent, or in another one after moving it there. It runs the
//! command only if the user asks for that; the library quotes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use stenograph::json::Draft;
use stenograph::resume;
use stenograph_store::Passes;
use stenograph_store::databases;
use stenograph_store::discover::{discover, path_hints};
use stenograph_store::index::catalogue::{Gone, SourceRow};
use stenograph_store::sessions::{ShortNames, resume_template};

use super::r#move::{self, MoveRequest};
use crate::error::{CommandError, ExitStatus};
use crate::input;
use crate::output::{Output, harmless_json};
use crate::store::{ResolvedSession, SessionArgs};

/// Print the command that resumes a session
///
/// Prints a command that changes to the folder of the session and runs the agent's own resume command. With --in, steno first
/// moves the session to another agent, as steno move does. With --run, steno runs the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno resume 0198f2c4
  steno resume latest
  steno resume latest --run                 resume it now
  steno resume latest --in AGENT --run      resume it in another agent
  steno resume SESSION --shell powershell

Exit codes: 0 success, 1 no such session, or no command for it, 2 error")]
pub struct Options {
    /// A session: the beginning of its id, latest, or the path of a file; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    session: String,
    #[command(flatten)]
    place: SessionArgs,
    /// Move the session to this agent first
    #[arg(long = "in", value_name = "AGENT", add = crate::completion::target_agent())]
    agent: Option<String>,
    /// Run the command instead of printing it
    #[arg(long, conflicts_with_all = ["shell", "json"])]
    run: bool,
    /// Quote for this shell [default: the usual shell of this system]
    #[arg(long, value_name = "SHELL", value_enum)]
    shell: Option<Syntax>,
    /// Print one JSON object with the command and its parts
    #[arg(long)]
    json: bool,
}

/// Whose syntax the command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Syntax {
    /// sh, bash, zsh, fish
    Sh,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
    /// Windows command prompt
    Cmd,
}

impl Syntax {
    pub const HERE: Syntax = if cfg!(windows) { Syntax::PowerShell } else { Syntax::Sh };

    pub fn quoting(self) -> resume::Shell {
        match self {
            Syntax::Sh => resume::Shell::Sh,
            Syntax::PowerShell => resume::Shell::PowerShell,
            Syntax::Cmd => resume::Shell::Cmd,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Syntax::Sh => "sh",
            Syntax::PowerShell => "powershell",
            Syntax::Cmd => "cmd",
        }
    }
}

/// A session that its agent can resume.
struct Resumable {
    name: String,
    /// The name in messages.
    short: String,
    agent: String,
    cwd: Option<String>,
    path: PathBuf,
    template: &'static str,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let shell = options.shell.unwrap_or(Syntax::HERE);
    let is_own = |agent: &&str| resumable(options).is_ok_and(|target| target.agent.eq_ignore_ascii_case(agent));
    if let Some(agent) = options.agent.as_deref().filter(|agent| !is_own(agent)) {
        let moved = r#move::to_agent(&MoveRequest::to(agent, &options.session, &options.place), output)?;
        if !options.run {
            return moved.print(shell, options.json, output);
        }
        moved.explain(output);
        return run_in_shell(&moved.command(Syntax::HERE)?);
    }
    let target = resumable(options)?;
    let Resumable { name, short, agent, cwd, path, template } = &target;
    let file = path.display().to_string();
    let values = resume::ResumeTarget { session: Some(name), file: Some(&file), folder: cwd.as_deref() };
    let line = resume::line(template, &values, shell.quoting()).map_err(|refused| {
        CommandError::not_found(format!("{short}: no safe command: {refused}"))
            .hint(format!("read the session with steno show {short}"))
    })?;
    if options.run {
        return run_in_shell(&line);
    }
    let is_home = !template.contains("{session}") || is_at_home(&target, &options.place);
    let is_folder_there = cwd.as_deref().is_none_or(|folder| Path::new(folder).is_dir());
    if options.json {
        let mut draft = Draft::new();
        draft.set_str("session", name);
        draft.set_str("agent", agent);
        draft.set_str("command", &line);
        draft.set_str("shell", shell.name());
        draft.set_opt("folder", cwd.as_deref());
        draft.set("folder_exists", is_folder_there.to_string());
        draft.set_str("path", &file);
        draft.set("at_home", is_home.to_string());
        output.line(&harmless_json(&draft.render(None)))?;
        return Ok(ExitStatus::Done);
    }
    output.line(&line)?;
    if let (false, Some(folder)) = (is_folder_there, cwd) {
        output.say(&format!("the folder of the session does not exist here: {folder}"));
    }
    if !is_home {
        output.say(&format!("the file is not where the agent looks for sessions: {file}"));
        output.say(&format!("hint: move it to the folder that steno formats lists for {agent}"));
    }
    Ok(ExitStatus::Done)
}

/// Runs a command line in the usual shell of this system, and ends as it ends.
fn run_in_shell(line: &str) -> Result<ExitStatus, CommandError> {
    let (shell, option) = if cfg!(windows) { ("powershell", "-Command") } else { ("sh", "-c") };
    let status = Command::new(shell).args([option, line]).status();
    let status = status.map_err(|error| {
        CommandError::new(format!("{shell}: cannot be run: {error}")).hint(format!("run it yourself: {line}"))
    })?;
    Ok(match status.code() {
        Some(0) => ExitStatus::Done,
        Some(code) => ExitStatus::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        None => ExitStatus::Error,
    })
}

/// The named session: from the index, else from the file of that name.
fn resumable(options: &Options) -> Result<Resumable, CommandError> {
    let path = Path::new(&options.session);
    match options.place.session(&options.session) {
        Ok(resolved) => in_index(resolved, &options.place),
        Err(_) if path == Path::new("-") || path.is_file() || databases::is_conversation(path) => in_file(path),
        Err(error) => match options.place.new_file(&options.session) {
            Some(path) => in_file(&path),
            None => Err(error),
        },
    }
}

fn in_index(resolved: ResolvedSession, place: &SessionArgs) -> Result<Resumable, CommandError> {
    let ResolvedSession { session, source, sources, .. } = resolved;
    let short = ShortNames::of_some(&place.store()?.catalogue()?, &[&session])?.name(&session);
    let mut sources: Vec<SourceRow> = std::iter::once(source).chain(sources).collect();
    // A side conversation resumes with its session.
    sources.sort_by_key(|source| (source.thread.is_some(), source.gone == Gone::Gone));
    let found = sources.into_iter().find_map(|source| Some((resume_template(&source)?, source)));
    let (template, source) = found.ok_or_else(|| no_command(&session.agent))?;
    if !databases::is_there(&source.path) {
        let gone = CommandError::not_found(format!("{short}: the file is gone: {}", source.path.display()));
        return Err(match source.archive_copy.is_some() || source.copy_of.is_some() {
            true => gone.hint(format!("restore it first with steno archive restore {short}")),
            false => gone.hint("it was never archived; steno find still searches its indexed text"),
        });
    }
    Ok(Resumable { name: session.name, short, agent: session.agent, cwd: session.cwd, path: source.path, template })
}

/// A session that the index does not know: its file states the id and the folder.
fn in_file(path: &Path) -> Result<Resumable, CommandError> {
    let mut input = input::open(path, None, Passes::Once)?;
    let info = input.format.info();
    let stated = input::stated_session(input.format, &mut input.source)?;
    let short = path.display().to_string();
    let name = stated.session.or_else(|| path_hints(path).session);
    let name = name.ok_or_else(|| CommandError::not_found(format!("{short}: the file states no session id")))?;
    let template = info.resume.ok_or_else(|| no_command(info.agent))?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Resumable { name, short, agent: info.agent.to_owned(), cwd: stated.header.cwd, path, template })
}

fn no_command(agent: &str) -> CommandError {
    CommandError::not_found(format!("{agent} has no command to resume a session"))
        .hint("steno formats lists agents that have one; convert the session with steno convert")
}

/// Whether a source is where its agent looks for it.
fn is_at_home(target: &Resumable, place: &SessionArgs) -> bool {
    let mut places = place.home().places();
    places.projects.extend(target.cwd.iter().map(PathBuf::from));
    let mut is_home = false;
    discover(&places, &mut |found| {
        let agent = found.hints.format.or(found.hints.like).map(|format| format.info().agent);
        let container = databases::split(&target.path).map(|(container, _)| container);
        let is_it = found.path == target.path
            || Some(found.path.as_path()) == container
            || databases::conversation_stated_by(&found.path).is_some_and(|path| path == target.path);
        is_home |= is_it && agent == Some(target.agent.as_str());
    });
    is_home
}
