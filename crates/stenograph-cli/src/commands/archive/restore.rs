//! `steno archive restore`: restores sources byte for byte. It overwrites no existing file without --force, and checks all
//! destinations before it writes the first file.

use std::path::{Component, Path, PathBuf};

use stenograph::Registry;
use stenograph::json::Draft;
use stenograph::model::{DatabaseTables, Import};
use stenograph_store::archive::{Archive, CopyInfo, IfExists, SourceCheck, WhichVersion};
use stenograph_store::databases;
use stenograph_store::files::{Disk, create_folder_durably};
use stenograph_store::{Existing, NewFile};

use super::{archive, copies_named};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::store::{self, SessionArgs};

/// Restore the files of a session, byte for byte
///
/// Writes the archived copies to their original paths, or to -o. A session with several files is restored completely; below -o
/// the files keep their relative paths. Existing files are not changed unless --force is given.
///
/// steno never writes to the database of an agent. A conversation of one becomes the file that its agent imports, or a new database
/// in the current folder. With -o, the extension decides: .json for the former, .db for the latter, .jsonl for its rows as
/// archived.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive restore 0198f2c4                         to the original path
  steno archive restore 0198f2c4 -o rescued/
  steno archive restore ~/old/session.jsonl -o session.jsonl --version 2
  steno archive restore ses_e0aed -o rows.db             as a new database

Exit codes: 0 success, 1 not in the archive, 2 error")]
pub struct Options {
    /// A session (id prefix or latest), or the original path of a file
    #[arg(value_name = "SESSION|PATH", add = crate::completion::transcript())]
    session: String,
    #[command(flatten)]
    place: SessionArgs,
    /// Write to this file, or into this folder
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Restore this version of a rewritten file (steno archive list --json lists them)
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

/// A copy and its destination.
struct Destination {
    copy: CopyInfo,
    to: PathBuf,
    form: RestoredForm,
    /// Whether the destination already has the archived content.
    is_up_to_date: bool,
}

/// What a copy becomes.
#[derive(Clone, Copy)]
enum RestoredForm {
    /// The same bytes.
    Bytes,
    /// A document that the agent of its rows imports.
    Document(&'static Import),
    /// A new database with its rows.
    Database(DatabaseTables),
}

impl RestoredForm {
    fn name(self) -> &'static str {
        match self {
            RestoredForm::Bytes => "bytes",
            RestoredForm::Document(_) => "import",
            RestoredForm::Database(_) => "database",
        }
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    let archive = archive(&store)?;
    let copies = copies_named(&options.place, &store, &archive, &options.session)?;
    let version_to_restore = version_to_restore(options, &copies)?;
    let mut destinations = destinations(copies, options.output.as_deref())?;
    for destination in &mut destinations {
        destination.is_up_to_date = is_up_to_date(destination, version_to_restore, &archive, options)?;
    }
    for destination in &destinations {
        let restored = if destination.is_up_to_date {
            None
        } else {
            Some(write(destination, version_to_restore, &archive, options, output)?)
        };
        if options.json {
            output.line(&harmless_json(&json(destination, restored)))?;
        } else {
            let what = restored.map_or("already up to date".to_owned(), store::bytes);
            output.line(&harmless_line(&format!("{}: {what}", destination.to.display())))?;
        }
    }
    // The line of one file that is up to date says everything.
    let is_said = matches!(destinations.as_slice(), [only] if only.is_up_to_date);
    if !options.json && !is_said {
        let written = destinations.iter().filter(|destination| !destination.is_up_to_date).count() as u64;
        output.say(&format!("{} restored", counted(written, "file")));
    }
    Ok(ExitStatus::Done)
}

/// The version to restore, if the copy has it.
fn version_to_restore(options: &Options, copies: &[CopyInfo]) -> Result<WhichVersion, CommandError> {
    let Some(number) = options.version else { return Ok(WhichVersion::Last) };
    let [copy] = copies else {
        let count = counted(copies.len() as u64, "file");
        return Err(CommandError::new(format!("--version needs one file, but {} has {count}", options.session))
            .hint("name the file by its path; list the paths with steno archive list"));
    };
    if copy.versions.iter().any(|version| version.number == number) {
        return Ok(WhichVersion::Number(number));
    }
    let existing: Vec<String> = copy.versions.iter().map(|version| version.number.to_string()).collect();
    Err(CommandError::not_found(format!("{}: version {number} is not in the archive", copy.path.display()))
        .hint(format!("available versions: {}", existing.join(", "))))
}

/// The destination of each copy.
fn destinations(copies: Vec<CopyInfo>, output: Option<&Path>) -> Result<Vec<Destination>, CommandError> {
    let is_one = copies.len() == 1;
    let shared = shared_folder(&copies);
    let destination = |copy: CopyInfo| {
        let (by_default, extension) = default_form(&copy);
        let to = match output {
            // Only the agent writes to its database: the conversation goes to a file in the present folder.
            _ if let Some((_, name)) = databases::split(&copy.path)
                && output.is_none_or(|output| !is_one || output.is_dir() || ends_as_folder(output)) =>
            {
                let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
                let name: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
                output.unwrap_or(Path::new("")).join(format!("{name}.{extension}"))
            }
            None => copy.path.clone(),
            Some(output) if is_one && !output.is_dir() && !ends_as_folder(output) => output.to_owned(),
            Some(output) => {
                let inside = copy.path.strip_prefix(&shared).unwrap_or(&copy.path);
                // The path comes from the archive's log, which must not lead out of the folder.
                let plain = inside.components().filter(|part| matches!(part, Component::Normal(_)));
                output.join(plain.collect::<PathBuf>())
            }
        };
        let form = form_of(&copy, &to).unwrap_or(by_default);
        Destination { copy, to, form, is_up_to_date: false }
    };
    if let Some(output) = output.filter(|output| !is_one && output.exists() && !output.is_dir()) {
        return Err(CommandError::new(format!("{}: is a file, but the session has several", output.display()))
            .hint("name a folder"));
    }
    Ok(copies.into_iter().map(destination).collect())
}

/// What a copy becomes if the user does not say it, and the extension of that.
fn default_form(copy: &CopyInfo) -> (RestoredForm, &'static str) {
    let is_inside = databases::split(&copy.path).is_some();
    let info =
        Registry::built_in().named(&copy.label.format).map(stenograph::format::Format::info).filter(|_| is_inside);
    match info.map(|info| (info.import.as_ref(), info.database)) {
        Some((Some(import), Some(_))) => (RestoredForm::Document(import), "json"),
        Some((None, Some(tables))) => (RestoredForm::Database(tables), "db"),
        Some((_, None)) | None => (RestoredForm::Bytes, "jsonl"),
    }
}

/// What the extension of the destination says about a conversation of a database.
fn form_of(copy: &CopyInfo, to: &Path) -> Option<RestoredForm> {
    let info = Registry::built_in().named(&copy.label.format)?.info();
    let tables = info.database.filter(|_| databases::split(&copy.path).is_some())?;
    match to.extension().and_then(|ending| ending.to_str())? {
        "db" | "sqlite" | "sqlite3" => Some(RestoredForm::Database(tables)),
        "json" => info.import.as_ref().map(RestoredForm::Document),
        "jsonl" => Some(RestoredForm::Bytes),
        _ => None,
    }
}

fn ends_as_folder(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with(std::path::is_separator)
}

/// The deepest folder that contains all copies.
fn shared_folder(copies: &[CopyInfo]) -> PathBuf {
    let mut folders = copies.iter().map(|copy| copy.path.parent().unwrap_or(Path::new("")));
    let first = folders.next().unwrap_or(Path::new("")).to_owned();
    folders.fold(first, |shared, folder| {
        shared
            .components()
            .zip(folder.components())
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one)
            .collect()
    })
}

/// Whether the destination is already up to date; different content there is an error.
fn is_up_to_date(
    destination: &Destination,
    version_to_restore: WhichVersion,
    archive: &Archive,
    options: &Options,
) -> Result<bool, CommandError> {
    let Ok(metadata) = destination.to.symlink_metadata() else { return Ok(false) };
    let is_database = matches!(destination.form, RestoredForm::Database(_));
    if options.force && !metadata.is_dir() && !is_database {
        return Ok(false);
    }
    if is_database {
        return Err(CommandError::new(format!(
            "{}: exists; steno adds nothing to a database",
            destination.to.display()
        ))
        .hint("name a new file: -o FILE.db"));
    }
    let is_same = matches!(destination.form, RestoredForm::Bytes)
        && version_to_restore == WhichVersion::Last
        && metadata.is_file()
        && metadata.len() == destination.copy.length
        && archive.check_source(destination.copy.id, &destination.to)? == SourceCheck::Whole;
    if is_same {
        return Ok(true);
    }
    Err(CommandError::new(format!("{}: exists with different content", destination.to.display()))
        .hint("write elsewhere with -o FILE, or overwrite with --force"))
}

fn write(
    destination: &Destination,
    version_to_restore: WhichVersion,
    archive: &Archive,
    options: &Options,
    output: &mut Output<'_>,
) -> Result<u64, CommandError> {
    if let Some(folder) = destination.to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder_durably(&Disk, folder).map_err(|error| {
            CommandError::new(format!("{}: cannot create: {error}", folder.display()))
                .hint("write elsewhere with -o FILE")
        })?;
    }
    let present = if options.force { IfExists::Replace } else { IfExists::Fail };
    let (copy, to) = (destination.copy.id, &destination.to);
    match destination.form {
        RestoredForm::Bytes => Ok(archive.restore(copy, version_to_restore, to, present)?),
        RestoredForm::Database(tables) => {
            databases::restore(&tables, &mut archive.read(copy, version_to_restore, 0)?, to)?;
            Ok(to.metadata().map_or(0, |metadata| metadata.len()))
        }
        RestoredForm::Document(import) => {
            let existing = if options.force { Existing::Replaced } else { Existing::Refused };
            let mut file = NewFile::options().existing(existing).create(to, [])?;
            let mut rows = std::io::BufReader::new(archive.read(copy, version_to_restore, 0)?);
            let left_out = (import.of_rows)(&mut rows, &mut file)
                .map_err(|error| CommandError::new(format!("{}: cannot write: {error}", to.display())))?;
            file.commit()?;
            if left_out > 0 {
                let rows = counted(left_out, "row");
                output.say(&format!(
                    "{}: {rows} left out, which the agent does not import; -o FILE.jsonl has all",
                    to.display()
                ));
            }
            output.say(&format!("import it with: {}", import.command.replace("{file}", &to.display().to_string())));
            Ok(to.metadata().map_or(0, |metadata| metadata.len()))
        }
    }
}

fn json(destination: &Destination, restored: Option<u64>) -> String {
    let mut draft = Draft::new();
    draft.set_str("path", &destination.to.display().to_string());
    draft.set_str("from", &destination.copy.path.display().to_string());
    draft.set_str("form", destination.form.name());
    draft.set_number("copy", Some(u64::from(destination.copy.id.0)));
    draft.set_number("length", Some(restored.unwrap_or(destination.copy.length)));
    draft.set("restored", restored.is_some().to_string());
    draft.render(None)
}
