//! Moves a session through the agent's own import command: only the agent writes to its database. The session is written to a file
//! for that command. If the command does not work, the file stays for the user.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output as Finished, Stdio};

use stenograph::Registry;
use stenograph::convert::{self, Carry, NewSession};
use stenograph::edit::fields::FolderChange;
use stenograph::format::Format;
use stenograph::model::Import;
use stenograph::resume::{self, ResumeTarget};
use stenograph_store::placement::{find_session, new_session_id};
use stenograph_store::{NewFile, Spool, fresh_folder};

use super::report::{ImportCommands, MoveKind, Moved};
use super::{Effect, MoveRequest, MovedSource};
use crate::clock;
use crate::commands::convert::conversion_error;
use crate::commands::resume::Syntax;
use crate::error::CommandError;
use crate::output::{Output, harmless_line};

/// The variables that name folders of an agent instead of the home folder.
const FOLDERS: [&str; 4] = ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];

/// Has an agent import a session.
pub(super) fn import(
    request: &MoveRequest<'_>,
    to: &'static dyn Format,
    import: &Import,
    mut source: MovedSource,
    output: &mut Output<'_>,
) -> Result<Moved, CommandError> {
    let id = new_session_id(import.id, &clock::now());
    let folder = source.folder(request)?;
    let change = FolderChange { from: source.outline.header.cwd.clone(), to: folder.clone() };
    let original = request.place.session_name(source.input.source.place())?;
    let new = NewSession { id: id.clone(), folder: request.cwd.map(|_| change), original };
    let mut result = Spool::new()?;
    let from = source.input.format;
    let unknown = || CommandError::new(format!("{}: unknown format", import.format));
    let document = Registry::built_in().named(import.format).ok_or_else(unknown)?;
    let outcome = convert::convert_as(from, &mut source.input.source, document, &mut result, Carry::Omit, Some(&new));
    let outcome = outcome.map_err(|error| conversion_error(error, source.input.source.place()))?;
    let name = format!("{id}.{}", document.info().extension);
    let mut moved =
        Moved::new(request.session, from, to, MoveKind::Imported, id.clone(), Path::new(&name).to_owned(), outcome);
    moved.set_folder(Some(folder.clone()), source.outline.session.take());
    let line = |template: &str, file: &Path| {
        let file = file.display().to_string();
        let target = ResumeTarget { session: Some(&id), file: Some(&file), folder: Some(&folder) };
        resume::line(template, &target, Syntax::HERE.quoting())
            .map_err(|refused| CommandError::new(format!("{}: no safe command: {refused}", request.session)))
    };
    if request.effect == Effect::Print {
        moved.is_dry_run = true;
        moved.import = Some(ImportCommands { import: line(import.command, Path::new(&name))?, remove: None });
        return Ok(moved);
    }
    let kept = fresh_folder("steno-move-")?;
    let file = kept.join(&name);
    let unwritable = |error| CommandError::new(format!("{}: cannot write: {error}", file.display()));
    let mut new = NewFile::options().create(&file, [])?;
    result.copy_to(&mut new).map_err(unwritable)?;
    new.commit()?;
    let command = line(import.command, &file)?;
    output.say(&format!("running: {command}"));
    let again = format!("the converted session is in {}; import it with: {command}", file.display());
    let program = import.command.split(' ').next().unwrap_or_default();
    let finished = run(request, import.command, &file, Path::new(&folder)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CommandError::new(format!("{program}: the program is not installed, or not in PATH")),
        _ => CommandError::new(format!("{program}: cannot be started: {error}")),
    });
    let finished = finished.map_err(|error| error.hint(again.clone()))?;
    let imported = find_session(&request.place.home().places(), to, &id);
    if !finished.status.success() || imported.is_none() {
        let said = String::from_utf8_lossy(&finished.stdout);
        let words = String::from_utf8_lossy(&finished.stderr).into_owned() + &said;
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        return Err(CommandError::new(format!("{program} did not import the session: {}", harmless_line(last.trim())))
            .hint(again));
    }
    let _ = fs::remove_dir_all(&kept);
    moved.path = imported.unwrap_or_default();
    moved.import = Some(ImportCommands { import: command, remove: Some(line(import.remove, &file)?) });
    Ok(moved)
}

fn run(request: &MoveRequest<'_>, template: &str, file: &Path, folder: &Path) -> std::io::Result<Finished> {
    let mut words = template.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    for word in words {
        match word {
            "{file}" => command.arg(file),
            word => command.arg(word),
        };
    }
    if let Some(root) = request.place.home().given() {
        command.env("HOME", std::path::absolute(root)?);
        for name in FOLDERS {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).stdin(Stdio::null()).output()
}
