//! The output of all commands that edit a file: where the result goes, and which undo data is kept. Each command decides what to
//! edit; `edit_report.rs` reports it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stenograph::edit::{self, EditSource, Edited, Plan, Rewritable};
use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::model::Event;
use stenograph_store::databases;
use stenograph_store::edit::{FileEdit, FileState, FileStateBuilder};
use stenograph_store::undo::{self, EditCommand, UndoOutcome, UndoStep};
use stenograph_store::{Passes, Place, Problem, Source, Spool};

use crate::error::{CommandError, ExitStatus};
use crate::input::{self, TranscriptInput};
use crate::output::{Output, grouped, harmless_json};
use crate::output_file::OutputFile;
use crate::store::{ResolvedName, SessionArgs};

/// Where the result goes.
#[derive(Clone, Debug, clap::Args)]
pub struct EditTarget {
    #[command(flatten)]
    pub output: OutputFile,
    /// Replace the file itself and keep an undo file beside it
    #[arg(long, conflicts_with = "output")]
    pub in_place: bool,
    /// Keep an undo file beside the output
    #[arg(long)]
    pub reversible: bool,
    /// Print the changes without writing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The file to edit.
pub struct EditedFile {
    input: TranscriptInput,
    /// Keeps other programs from writing to the file while it is replaced.
    edit: Option<FileEdit>,
}

/// Refuses a format whose sources are never edited.
fn refuse_never_edited(input: &TranscriptInput) -> Result<(), CommandError> {
    let info = input.format.info();
    if !info.is_never_edited {
        return Ok(());
    }
    let what = format!(
        "{}: {} sources cannot be edited: a record holds a whole conversation, or repeats others",
        input.name(),
        info.name
    );
    Err(CommandError::new(what).hint("convert it to another format first, such as steno convert FILE --to steno"))
}

impl EditedFile {
    /// Opens a file or a session. Locks the file first if it will be replaced.
    pub fn open(
        place: &SessionArgs,
        name: &Path,
        from: Option<&str>,
        target: &EditTarget,
        output: &mut Output<'_>,
    ) -> Result<EditedFile, CommandError> {
        let changed = target.in_place && !target.dry_run;
        if !changed {
            let input = input::open_named(place, name, from, Passes::Many, output)?;
            refuse_never_edited(&input)?;
            return Ok(EditedFile { input, edit: None });
        }
        let path = &match place.resolve(name)? {
            ResolvedName::File(path) => path,
            ResolvedName::Session(session) => session.source.path.clone(),
        };
        if path == Path::new("-") {
            return Err(
                CommandError::new("cannot edit standard input in place").hint("name a file, or omit --in-place")
            );
        }
        let edit = Some(FileEdit::begin(path)?);
        let input = input::open(path, from, Passes::Many)?;
        refuse_never_edited(&input)?;
        if input.source.is_compressed() {
            return Err(CommandError::new(format!("{}: cannot edit a compressed file in place", input.name()))
                .hint("write to another file with -o OUT, or decompress it first"));
        }
        Ok(EditedFile { input, edit })
    }

    /// Reads the file and passes each event to `each`.
    pub fn read(&mut self, each: &mut dyn FnMut(&Event<'_>)) -> Result<EditSource<'_>, CommandError> {
        Ok(EditSource::read(self.input.format, &mut self.input.source, each)?)
    }

    pub fn format(&self) -> &'static dyn Format {
        self.input.format
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        self.input.name()
    }

    /// The path, if the input is a file.
    pub fn path(&self) -> Option<&Path> {
        match self.input.source.place() {
            Place::Path(path) => Some(path),
            Place::StandardInput | Place::StandardOutput | Place::Temporary => None,
        }
    }

    /// The source, which must not be the output.
    pub fn source(&self) -> &Source {
        &self.input.source
    }
}

/// Applies a plan and writes the result to `out`.
pub fn carry_out(
    source: &mut EditSource<'_>,
    plan: &Plan,
    name: &str,
    out: &mut Spool,
) -> Result<Edited, CommandError> {
    edit::carry_out(source, plan, out).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => CommandError::new(format!("{name}: {error}"))
            .hint("convert it to a line format with steno convert; those files have no size limit"),
        _ => error.into(),
    })
}

/// The files that an edit wrote.
#[derive(Debug, Default)]
pub struct WrittenFiles {
    /// The output; `None` for standard output.
    pub path: Option<PathBuf>,
    /// The undo file.
    pub undo: Option<PathBuf>,
}

impl EditTarget {
    /// Whether the report lists each event.
    pub fn lists_events(&self) -> bool {
        self.json || self.dry_run
    }

    /// Whether standard output is free for the report.
    pub fn is_stdout_free(&self) -> bool {
        self.dry_run || self.in_place || self.file().is_some()
    }

    fn file(&self) -> Option<&Path> {
        self.output.path()
    }

    /// Refuses contradictory options before anything is read.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.reversible && !self.in_place && self.file().is_none() && !self.dry_run {
            return Err(CommandError::new("--reversible needs an output file")
                .hint("write to a file with -o OUT, or edit the file itself with --in-place"));
        }
        Ok(())
    }

    /// Writes the result to its destination. The undo file records the command `by`.
    pub fn write(
        &self,
        edited: &mut EditedFile,
        result: &mut Spool,
        by: EditCommand,
        output: &mut Output<'_>,
    ) -> Result<WrittenFiles, CommandError> {
        if self.dry_run {
            return Ok(WrittenFiles::default());
        }
        if let Some(edit) = &edited.edit {
            return replace(edited, edit, result, by);
        }
        if let Some(path) = self.file().filter(|path| edited.source().is_at(path)) {
            return Err(CommandError::new(format!("{}: is the input itself", path.display()))
                .hint("write to another file, or edit the file itself with --in-place"));
        }
        let file = self.output.create(&[edited.source()])?;
        let Some((path, file)) = self.file().zip(file) else {
            io::copy(&mut *result.reread()?, output.transcript())?;
            output.flush()?;
            return Ok(WrittenFiles::default());
        };
        let mut file = Fingerprinted { out: file, state: FileStateBuilder::default() };
        io::copy(&mut *result.reread()?, &mut file)?;
        let undo = if self.reversible { Some(write_undo_file(path, edited, &file.state.state(), by)?) } else { None };
        file.out.commit()?;
        Ok(WrittenFiles { path: Some(path.to_owned()), undo })
    }

    /// Prints a report: on standard output if it is free, else on standard error.
    pub fn report(&self, json: &str, output: &mut Output<'_>) -> Result<(), CommandError> {
        match self.is_stdout_free() {
            true => output.line(&harmless_json(json)),
            false => {
                output.say(&harmless_json(json));
                Ok(())
            }
        }
    }
}

/// A writer that computes the fingerprint of its data.
struct Fingerprinted<W> {
    out: W,
    state: FileStateBuilder,
}

impl<W: Write> Write for Fingerprinted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.state.add(bytes.get(..length).unwrap_or_default());
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the source to an undo file beside the output.
fn write_undo_file(
    path: &Path,
    file: &mut EditedFile,
    after: &FileState,
    by: EditCommand,
) -> Result<PathBuf, CommandError> {
    let source = &mut file.input.source;
    let before = FileState::of(&mut *source.pass()?)?;
    let step = UndoStep { before: &before, after, by };
    Ok(undo::save_undo(path, &step, &mut *source.pass()?)?)
}

/// Replaces the file itself. The undo file is on disk before the file changes.
fn replace(
    file: &EditedFile,
    edit: &FileEdit,
    result: &mut Spool,
    by: EditCommand,
) -> Result<WrittenFiles, CommandError> {
    let name = file.name();
    let mut out = edit.output()?;
    io::copy(&mut *result.reread()?, &mut out)?;
    let undo = edit.finish(out, by).map_err(|error| match error.problem {
        // An agent may have written meanwhile; its lines must survive.
        Problem::Changed => {
            CommandError::new(format!("{name}: the file changed while steno read it; nothing was written"))
                .hint("try again when the agent has stopped writing")
        }
        _ => error.into(),
    })?;
    Ok(WrittenFiles { path: file.path().map(Path::to_owned), undo })
}

/// Restores a file to its state before the last edit.
pub fn undo_last_edit(path: &Path, json: bool, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let name = path.display();
    if databases::is_conversation(path) {
        // The usual hint names an option that undo does not have.
        let error = stenograph_store::Error::about(path, Problem::InDatabase);
        return Err(CommandError::new(error.to_string()).hint("use the agent itself to change its sessions"));
    }
    match undo::undo(path)? {
        UndoOutcome::Restored { size, appended, by } => {
            if json {
                let draft = Draft::new().with("file", name.to_string()).with("undone", by.name());
                output.line(&harmless_json(&draft.with("size", size).with("appended", appended).render(None)))?;
            } else {
                let by = by.name();
                output.say(&format!(
                    "{name}: restored to the state before steno {by}, byte for byte ({} bytes)",
                    grouped(size)
                ));
                if appended > 0 {
                    output.say(&format!("  kept {} bytes that were appended since", grouped(appended)));
                }
            }
            Ok(ExitStatus::Done)
        }
        UndoOutcome::Removed => {
            if json {
                let draft = Draft::new().with("file", name.to_string()).with("undone", EditCommand::Move.name());
                output.line(&harmless_json(&draft.with("removed", true).render(None)))?;
            } else {
                output.say(&format!("{name}: removed; steno move had written it"));
            }
            Ok(ExitStatus::Done)
        }
        UndoOutcome::MovedBack { path } => {
            if json {
                let draft = Draft::new().with("file", name.to_string()).with("undone", EditCommand::Move.name());
                output.line(&harmless_json(&draft.with("moved_to", path.to_string_lossy()).render(None)))?;
            } else {
                output.say(&format!("{name}: moved back to {}, byte for byte as before", path.display()));
            }
            Ok(ExitStatus::Done)
        }
        UndoOutcome::Continued => {
            Err(CommandError::new(format!("{name}: the session has new turns since it was moved; nothing was undone"))
                .hint("move it back with steno move, or remove the file yourself"))
        }
        UndoOutcome::AlreadyRestored => {
            if json {
                output.line(&nothing_undone(path))?;
            } else {
                output.say(&format!("{name}: unchanged; the edit was never finished"));
            }
            Ok(ExitStatus::Done)
        }
        UndoOutcome::Nothing if path.symlink_metadata().is_err() => {
            Err(CommandError::new(format!("{name}: no such file or folder")).hint("check the spelling of the path"))
        }
        UndoOutcome::Nothing => {
            if json {
                output.line(&nothing_undone(path))?;
            }
            Err(CommandError::not_found(format!("{name}: nothing to undo"))
                .hint("edits with --in-place or --reversible can be undone; they leave an undo file beside the file"))
        }
        UndoOutcome::Changed => Err(CommandError::new(format!(
            "{name}: the file changed after the edit; nothing was undone"
        ))
        .hint(
            "undo works only if lines were appended; the undo file has the old content: tail -n +2 UNDO-FILE | zstd -d",
        )),
        UndoOutcome::Damaged { path } => {
            Err(CommandError::new(format!("{}: the undo file is damaged; nothing was undone", path.display()))
                .hint("look for another copy of the file"))
        }
    }
}

/// The report of an undo that restored nothing; the exit code says whether that is an error.
pub fn nothing_undone(path: &Path) -> String {
    let draft = Draft::new().with("file", path.to_string_lossy()).with_json("undone", "null");
    harmless_json(&draft.render(None)).into_owned()
}
