//! `steno move`: puts a session where another agent finds it, or where its own agent finds it after its folder moved. The
//! library converts, the store writes; this file decides what happens, and reports it.

mod import;
mod report;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use stenograph::convert::{self, Carry, ConversionMethod, NewSession, Outcome, Reopen as _};
use stenograph::edit::fields::{FieldChanges, FolderChange, SessionFork, replace_fields};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::model::{FormatInfo, Import, Outline, Placement};
use stenograph::status::{Patience, State};
use stenograph_store::discover::Stat;
use stenograph_store::edit::FileEdit;
use stenograph_store::history;
use stenograph_store::index::SavedStatuses;
use stenograph_store::placement::{PlacedSession, SessionPlace, Unplaceable, Versions, find_session, new_session_id};
use stenograph_store::runs::{Look, RunsSeen, look_for_processes};
use stenograph_store::undo::EditCommand;
use stenograph_store::{Passes, Place, Source, Spool, working_folder};

use self::report::MoveKind;
pub use self::report::Moved;
use super::resume::Syntax;
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::input::{self, TranscriptInput};
use crate::output::Output;
use crate::store::SessionArgs;

/// Move a session to another agent or to a renamed folder
///
/// With --to, steno converts the session, embeds the source, and writes the result where the agent looks for its sessions, under
/// a new id. Standard output gets the command that resumes it there. A session that was moved can be moved back: the new turns
/// are appended to the original; if the original has new turns too, steno writes a fork beside it.
///
/// If the agent keeps its sessions in a database, steno runs the agent's own command that imports the session from a file.
///
/// With --cwd alone, the session follows a folder that was renamed: the file goes where its agent looks for sessions of the new
/// folder, and its fields for the working folder name the new one. steno undo takes back a move until the session continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno move latest --to AGENT              continue in another agent
  steno move SESSION --to AGENT --dry-run   print what would happen
  eval \"$(steno move latest --to AGENT)\"    move it and resume it there
  steno move SESSION --cwd ~/work/renamed   follow a renamed folder

Exit codes: 0 success, 1 no such session, 2 error")]
pub struct Options {
    /// A session: the beginning of its id, latest, or the path of a file; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    session: String,
    #[command(flatten)]
    place: SessionArgs,
    /// Agent to move the session to
    #[arg(long, value_name = "AGENT", required_unless_present = "cwd", add = crate::completion::target_agent())]
    to: Option<String>,
    /// Working folder of the moved session [default: the same]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Move a session that its agent still works on
    #[arg(long)]
    force: bool,
    /// Print what would happen without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Quote the command for this shell [default: the usual shell of this system]
    #[arg(long, value_name = "SHELL", value_enum)]
    shell: Option<Syntax>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// A move to another agent.
pub struct MoveRequest<'r> {
    /// The agent; `None` if the session only follows its folder.
    agent: Option<&'r str>,
    session: &'r str,
    place: &'r SessionArgs,
    cwd: Option<&'r Path>,
    from: Option<&'r str>,
    running: RunningSession,
    effect: Effect,
}

/// What happens to a session that its agent still works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningSession {
    Refused,
    Moved,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Write,
    Print,
}

impl<'r> MoveRequest<'r> {
    pub fn to(agent: &'r str, session: &'r str, place: &'r SessionArgs) -> MoveRequest<'r> {
        let (running, effect) = (RunningSession::Refused, Effect::Write);
        MoveRequest { agent: Some(agent), session, place, cwd: None, from: None, running, effect }
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let running = if options.force { RunningSession::Moved } else { RunningSession::Refused };
    let effect = if options.dry_run { Effect::Print } else { Effect::Write };
    let (session, from, cwd) = (options.session.as_str(), options.from.as_deref(), options.cwd.as_deref());
    let request =
        MoveRequest { agent: options.to.as_deref(), session, place: &options.place, cwd, from, running, effect };
    let moved = match (request.agent, cwd) {
        (None, Some(folder)) => to_folder(&request, folder, output)?,
        _ => to_agent(&request, output)?,
    };
    moved.print(options.shell.unwrap_or(Syntax::HERE), options.json, output)
}

/// The source of a move.
struct MovedSource {
    input: TranscriptInput,
    /// What its first records state.
    outline: Outline,
}

impl MovedSource {
    fn open(request: &MoveRequest<'_>, output: &mut Output<'_>) -> Result<MovedSource, CommandError> {
        let mut input =
            input::open_named(request.place, Path::new(request.session), request.from, Passes::Many, output)?;
        if let (Place::Path(path), RunningSession::Refused) = (input.source.place(), request.running) {
            refuse_running(path, input.format)?;
        }
        if request.agent.is_some() {
            input.source = history::joined(input.source, input.format, &request.place.home().places())?;
        }
        let outline = input::stated_session(input.format, &mut input.source)?;
        Ok(MovedSource { input, outline })
    }

    fn agent(&self) -> &'static str {
        self.input.format.info().agent
    }

    /// The folder in which the moved session works.
    fn folder(&self, request: &MoveRequest<'_>) -> Result<String, CommandError> {
        if let Some(folder) = request.cwd {
            return existing_folder(folder);
        }
        let folder = self.outline.header.cwd.clone().filter(|folder| !folder.is_empty());
        folder.ok_or_else(|| {
            CommandError::new(format!("{}: the session does not state its working folder", request.session))
                .hint("name the folder in which the agent continues: --cwd DIR")
        })
    }
}

/// Refuses to move a session that its agent works on: the copy would lack what comes next.
fn refuse_running(path: &Path, format: &'static dyn Format) -> Result<(), CommandError> {
    let Ok(stat) = Stat::of(path) else { return Ok(()) };
    let saved = SavedStatuses::default();
    let (now_ms, patience) = (clock::millis(), Patience::default());
    let look = Look { format: Some(format), saved: &saved, now_ms, since_ms: i64::MIN, patience };
    let Some(run) = look.at(path, &stat, |_| Ok::<_, CommandError>(Some(format)))? else { return Ok(()) };
    let mut runs = [run];
    look_for_processes(&mut runs, RunsSeen::Named);
    let [run] = runs;
    if run.status.state != State::Running || run.process == Some(false) {
        return Ok(());
    }
    Err(CommandError::new(format!("{}: its agent is still working on it", path.display()))
        .hint("wait until its turn has ended (see steno status), or move it as it is with --force"))
}

fn existing_folder(folder: &Path) -> Result<String, CommandError> {
    // Agents resolve links in the path of their working folder.
    let real = std::fs::canonicalize(folder).ok().filter(|folder| folder.is_dir());
    let named = real.as_deref().and_then(Path::to_str).map(str::to_owned);
    named.ok_or_else(|| {
        CommandError::new(format!("{}: no such folder", folder.display()))
            .hint("create it first, or check the spelling; the agent resumes a session in its folder")
    })
}

/// How a session gets to an agent.
enum Way {
    /// As a file where the agent looks for it.
    Placed(&'static Placement),
    /// Through the agent's own command.
    Imported(&'static Import),
}

impl Way {
    fn to(info: &'static FormatInfo) -> Option<Way> {
        info.placement.as_ref().map(Way::Placed).or(info.import.as_ref().map(Way::Imported))
    }
}

/// The format in which an agent resumes sessions that steno writes.
fn target(agent: &str) -> Result<(&'static dyn Format, Way), CommandError> {
    let is_named = |info: &FormatInfo| info.agent.eq_ignore_ascii_case(agent) || info.name.eq_ignore_ascii_case(agent);
    let named = || FORMATS.iter().filter(move |format| is_named(format.info()));
    let placed = named().find_map(|format| Some((*format, Way::to(format.info())?)));
    placed.ok_or_else(|| {
        let hint =
            match target_agents().iter().find(|known| known.split('-').any(|word| word.eq_ignore_ascii_case(agent))) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("steno moves sessions to: {}", target_agents().join(", ")),
            };
        let what = match named().next() {
            Some(format) => {
                format!("{}: steno reads its sessions, but cannot write one that it resumes", format.info().agent)
            }
            None => format!("unknown agent: {agent}"),
        };
        CommandError::new(what).hint(hint)
    })
}

/// The error for a session that came from an agent to which nothing can be moved.
fn one_way(request: &MoveRequest<'_>, agent: &str, output: &mut Output<'_>) -> Option<CommandError> {
    let mut input =
        input::open_named(request.place, Path::new(request.session), request.from, Passes::Many, output).ok()?;
    let origin = input::embedded_format(input.format, &mut input.source).ok()??;
    let info = FORMATS.iter().map(|format| format.info()).find(|info| info.name == origin)?;
    let is_origin = info.agent.eq_ignore_ascii_case(agent) || info.name.eq_ignore_ascii_case(agent);
    let what = format!("{}: steno cannot write new turns for {}", request.session, info.agent);
    let hint = format!(
        "the original session is unchanged; steno convert {} --to {} -o FILE restores it as it was when it moved",
        request.session, info.name
    );
    is_origin.then(|| CommandError::new(what).hint(hint))
}

/// The agents that resume sessions which steno writes.
fn target_agents() -> Vec<&'static str> {
    let targets = FORMATS.iter().map(|format| format.info()).filter(|info| Way::to(info).is_some());
    targets.map(|info| info.agent).collect()
}

/// Moves a session to another agent.
pub fn to_agent(request: &MoveRequest<'_>, output: &mut Output<'_>) -> Result<Moved, CommandError> {
    let agent = request.agent.unwrap_or_default();
    let (to, way) = match target(agent) {
        Ok(target) => target,
        Err(error) => return Err(one_way(request, agent, output).unwrap_or(error)),
    };
    let mut source = MovedSource::open(request, output)?;
    if source.agent() == to.info().agent {
        let hint =
            format!("resume it with steno resume {}; --cwd DIR alone makes it follow its folder", request.session);
        return Err(
            CommandError::new(format!("{}: already a session of {}", request.session, to.info().agent)).hint(hint)
        );
    }
    let placement = match way {
        Way::Placed(placement) => placement,
        Way::Imported(command) => return import::import(request, to, command, source, output),
    };
    let now = clock::now();
    let id = new_session_id(placement.id, &now);
    let folder = source.folder(request);
    let change = request.cwd.and(folder.as_ref().ok()).cloned();
    let change = change.map(|to| FolderChange { from: source.outline.header.cwd.clone(), to });
    let original = request.place.session_name(source.input.source.place())?;
    let new = NewSession { id: id.clone(), folder: change, original };
    let mut result = Spool::new()?;
    let (from, carry) = (source.input.format, Carry::Embed);
    let outcome = convert::convert_as(from, &mut source.input.source, to, &mut result, carry, Some(&new));
    let outcome = outcome.map_err(|error| super::convert::conversion_error(error, source.input.source.place()))?;
    if outcome.method != ConversionMethod::Written {
        return back(request, &source, to, placement, outcome, result);
    }
    let folder = folder?;
    let place = place_of(request, placement, &id, &folder)?;
    let mut moved = Moved::new(request.session, from, to, MoveKind::Placed, id, place.path.clone(), outcome);
    moved.set_folder(Some(folder), source.outline.session.take());
    // A session that no safe command resumes is not written.
    moved.command(Syntax::HERE)?;
    write(request, &place, &mut result, to, &mut moved)?;
    Ok(moved)
}

fn place_of(
    request: &MoveRequest<'_>,
    placement: &Placement,
    id: &str,
    folder: &str,
) -> Result<SessionPlace, CommandError> {
    let (machine, now) = (request.place.home().machine(), clock::now());
    SessionPlace::of(placement, &machine, &PlacedSession { id, folder, now: &now })
        .map_err(|error| unplaceable(request, &error))
}

fn unplaceable(request: &MoveRequest<'_>, error: &Unplaceable) -> CommandError {
    let hint = match error {
        Unplaceable::NoHome => "set the home folder with --root DIR",
        Unplaceable::RelativeFolder(_) | Unplaceable::LongFolder => "name another working folder with --cwd DIR",
        Unplaceable::UnnamedFolder(_) => "start the agent once in that folder, then move the session",
        _ => "convert it with steno convert -o FILE instead",
    };
    CommandError::new(format!("{}: {error}", request.session)).hint(hint)
}

/// Writes the session to its place and checks that it is one which the agent recognizes.
fn write(
    request: &MoveRequest<'_>,
    place: &SessionPlace,
    result: &mut Spool,
    to: &'static dyn Format,
    moved: &mut Moved,
) -> Result<(), CommandError> {
    if request.effect == Effect::Print {
        moved.is_dry_run = true;
        return Ok(());
    }
    moved.undo = Some(place.create(result)?);
    let mut written = Source::open(&place.path, Passes::Many)?;
    let found = input::format_so_far(&written, None)?.map(|format| format.info().name);
    let session = input::stated_session(to, &mut written)?.session;
    if found != Some(to.info().name) || session.as_deref() != Some(moved.id.as_str()) {
        let _ = stenograph_store::undo::undo(&place.path);
        return Err(CommandError::new(format!("{}: the written session cannot be read back", place.path.display()))
            .hint("nothing was kept; convert it with steno convert -o FILE to see what was written"));
    }
    Ok(())
}

/// Moves a session back to the agent that it came from: the result of the conversion is the original with the new turns.
fn back(
    request: &MoveRequest<'_>,
    source: &MovedSource,
    to: &'static dyn Format,
    placement: &Placement,
    outcome: Outcome,
    mut result: Spool,
) -> Result<Moved, CommandError> {
    let restored = input::stated_session(to, &mut result)?;
    let unknown = || {
        CommandError::new(format!("{}: the embedded source does not state its session or its folder", request.session))
            .hint("restore it with steno convert -o FILE instead")
    };
    let Some(id) = restored.session else { return Err(unknown()) };
    let original = find_session(&request.place.home().places(), to, &id);
    let beside = || original.as_deref().and_then(|original| working_folder(original, to));
    let Some(cwd) = restored.header.cwd.or_else(beside).or_else(|| source.outline.header.cwd.clone()) else {
        return Err(unknown());
    };
    let (from, path) = (source.input.format, original.clone().unwrap_or_default());
    let mut moved = Moved::new(request.session, from, to, MoveKind::Restored, id.clone(), path, outcome);
    moved.set_folder(Some(cwd.clone()), source.outline.session.clone());
    let Some(path) = original else {
        let place = place_of(request, placement, &id, &cwd)?;
        moved.path.clone_from(&place.path);
        write(request, &place, &mut result, to, &mut moved)?;
        return Ok(moved);
    };
    if request.running == RunningSession::Refused {
        refuse_running(&path, to)?;
    }
    let edit = FileEdit::begin(&path)?;
    let mut original = Source::open(&path, Passes::Many)?;
    if original.is_compressed() {
        return Err(CommandError::new(format!("{}: cannot append to a compressed file", path.display()))
            .hint("decompress it first"));
    }
    // The embedded source of a fork has the records before it too.
    let mut whole = history::joined(Source::open(&path, Passes::Many)?, to, &request.place.home().places())?;
    let versions = Versions::compare(&mut *whole.open()?, &mut *result.open()?)?;
    moved.kind = match versions {
        Versions::Same | Versions::Behind => MoveKind::Unchanged,
        Versions::Continued => MoveKind::Appended,
        Versions::Diverged => MoveKind::Forked,
    };
    moved.is_dry_run = request.effect == Effect::Print;
    match (moved.kind, request.effect) {
        (MoveKind::Appended, Effect::Write) => {
            let mut out = edit.output()?;
            std::io::copy(&mut *original.open()?, &mut out)?;
            let mut restored = result.open()?;
            std::io::copy(&mut restored.by_ref().take(whole.length().unwrap_or(0)), &mut std::io::sink())?;
            std::io::copy(&mut restored, &mut out)?;
            drop(restored);
            moved.undo = edit.finish(out, EditCommand::Move)?;
        }
        (MoveKind::Forked, _) => {
            let new = new_session_id(placement.id, &clock::now());
            let fork = SessionFork { from: id, to: new.clone() };
            let mut forked = Spool::new()?;
            replace_fields(to, &mut result, &FieldChanges { folder: None, session: Some(fork) }, &mut forked)?;
            let place = place_of(request, placement, &new, &cwd)?;
            (moved.id, moved.original) = (new, Some(path));
            moved.path.clone_from(&place.path);
            write(request, &place, &mut forked, to, &mut moved)?;
        }
        _ => {}
    }
    Ok(moved)
}

/// Makes a session follow its working folder.
fn to_folder(request: &MoveRequest<'_>, folder: &Path, output: &mut Output<'_>) -> Result<Moved, CommandError> {
    let to = existing_folder(folder)?;
    let mut source = MovedSource::open(request, output)?;
    let format = source.input.format;
    if format.info().placement.is_none() {
        let what = format!("{}: steno does not know where {} looks for it", request.session, source.agent());
        return Err(CommandError::new(what).hint(format!("steno moves sessions of: {}", target_agents().join(", "))));
    }
    let Place::Path(path) = source.input.source.place().clone() else {
        return Err(CommandError::new("cannot move standard input to another folder").hint("name a file or a session"));
    };
    let (Some(id), Some(cwd)) = (source.outline.session.clone(), source.outline.header.cwd.clone()) else {
        return Err(CommandError::new(format!("{}: the session does not state its id and its folder", path.display()))
            .hint("only a session that names its folder can follow it"));
    };
    if source.input.source.is_compressed() {
        return Err(
            CommandError::new(format!("{}: cannot move a compressed file", path.display())).hint("decompress it first")
        );
    }
    let change = FolderChange { from: Some(cwd), to: to.clone() };
    let changes = FieldChanges { folder: Some(change), session: None };
    let edit = FileEdit::begin(&path)?;
    let mut result = Spool::new()?;
    let count = replace_fields(format, &mut source.input.source, &changes, &mut result)?;
    let (machine, now) = (request.place.home().machine(), clock::now());
    let session = PlacedSession { id: &id, folder: &to, now: &now };
    let place = SessionPlace::following(format, &machine, edit.path(), &session);
    let place = place.map_err(|error| unplaceable(request, &error))?.filter(|place| place.path != edit.path());
    let kind = MoveKind::Followed { fields: count as u64 };
    let to_path = place.as_ref().map_or(edit.path(), |place| &place.path).to_owned();
    let mut moved = Moved::new(request.session, format, format, kind, id.clone(), to_path, Outcome::default());
    moved.set_folder(Some(to), Some(id));
    moved.original = Some(path);
    moved.left_behind = left_behind(edit.path()).filter(|_| place.is_some());
    moved.is_dry_run = request.effect == Effect::Print;
    match (place, request.effect) {
        (_, Effect::Print) => {}
        (Some(place), Effect::Write) => moved.undo = Some(place.follow(&edit, &mut result)?),
        (None, Effect::Write) => {
            let mut out = edit.output()?;
            std::io::copy(&mut *result.open()?, &mut out)?;
            moved.undo = edit.finish(out, EditCommand::Move)?;
        }
    }
    Ok(moved)
}

/// The folder of a session's sub-agents, which lies beside its file.
fn left_behind(path: &Path) -> Option<PathBuf> {
    Some(path.with_extension("")).filter(|folder| folder.is_dir())
}
