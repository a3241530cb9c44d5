//! What all commands that edit a file have in common: where the result goes, what is kept so that it can be undone, and how that
//! is told. What is edited is each command's own to say.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stenograph::edit::{self, EditSource, Edited, Plan, Rewritable, Way};
use stenograph::format::Format;
use stenograph::model::Event;
use stenograph::text::quote;
use stenograph_store::edit::{FileEdit, FileState, FileStateBuilder};
use stenograph_store::undo::{self, UndoOutcome, UndoStep};
use stenograph_store::{Passes, Place, Problem, Source, Spool};

use crate::error::{CommandError, Status};
use crate::input::{self, Input};
use crate::output::{Output, grouped, harmless_json, harmless_line};
use crate::output_file::OutputFile;

/// Where the result goes.
#[derive(Debug, clap::Args)]
pub struct Target {
    #[command(flatten)]
    pub output: OutputFile,
    /// Replace the file itself; what it was is kept beside it, to be undone
    #[arg(long, conflicts_with = "output")]
    pub in_place: bool,
    /// Keep what the file was beside the output, to be undone
    #[arg(long)]
    pub reversible: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// When the input itself is changed.
    #[arg(skip)]
    pub own_input: OwnInput,
}

/// When a command changes its input itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnInput {
    /// When --in-place asks for it.
    #[default]
    WhenAsked,
    /// Unless another output is named.
    Usual,
}

/// The file that is edited.
pub struct Subject {
    input: Input,
    /// What keeps others from writing there while the file itself is changed.
    edit: Option<FileEdit>,
}

impl Subject {
    /// Opens a file. A file that is to be changed itself is locked first.
    pub fn open(path: &Path, from: Option<&str>, target: &Target) -> Result<Subject, CommandError> {
        let changed = target.in_place && !target.dry_run;
        if changed && path == Path::new("-") {
            return Err(CommandError::new("standard input cannot be changed in place")
                .hint("name a file, or leave --in-place out"));
        }
        let edit = if changed { Some(FileEdit::begin(path)?) } else { None };
        let input = input::open(path, from, Passes::Many)?;
        if changed && input.source.is_compressed() {
            return Err(CommandError::new(format!("{}: a compressed file cannot be changed in place", input.name()))
                .hint("name another file with -o OUT, or decompress it first"));
        }
        Ok(Subject { input, edit })
    }

    /// Reads it and shows each event.
    pub fn read(&mut self, each: &mut dyn FnMut(&Event<'_>)) -> Result<EditSource<'_>, CommandError> {
        Ok(EditSource::read(self.input.format, &mut self.input.source, each)?)
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn Format {
        self.input.format
    }

    /// What to call it.
    pub fn name(&self) -> String {
        self.input.name()
    }

    /// Its path, if it is a file.
    pub fn path(&self) -> Option<&Path> {
        match self.input.source.place() {
            Place::Path(path) => Some(path),
            Place::StandardInput | Place::StandardOutput | Place::Temporary => None,
        }
    }

    /// The source, which no output may be.
    pub fn source(&self) -> &Source {
        &self.input.source
    }
}

/// Carries out a plan and writes the result to `out`.
pub fn carry_out(
    source: &mut EditSource<'_>,
    plan: &Plan,
    name: &str,
    out: &mut Spool,
) -> Result<Edited, CommandError> {
    edit::carry_out(source, plan, out).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => CommandError::new(format!("{name}: {error}"))
            .hint("steno convert makes a file of lines of it, and such a file may have any size"),
        _ => error.into(),
    })
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// The file, if it is one.
    pub path: Option<PathBuf>,
    /// What brings the file back as it was.
    pub undo: Option<PathBuf>,
}

impl Target {
    /// Whether standard output is free for the report.
    pub fn leaves_output_free(&self) -> bool {
        self.dry_run || self.in_place || self.file().is_some()
    }

    fn file(&self) -> Option<&Path> {
        self.output.path()
    }

    /// Refuses what makes no sense before anything is read.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.reversible && !self.in_place && self.file().is_none() && !self.dry_run {
            return Err(CommandError::new("--reversible has no file to keep anything beside")
                .hint("name the output with -o OUT, or change the file itself with --in-place"));
        }
        Ok(())
    }

    /// Writes the result where it belongs. `by` is the command, for whoever undoes it.
    pub fn write(
        &self,
        subject: &mut Subject,
        result: &mut Spool,
        by: &str,
        output: &mut Output<'_>,
    ) -> Result<Written, CommandError> {
        if self.dry_run {
            return Ok(Written::default());
        }
        if let Some(edit) = &subject.edit {
            return replace(subject, edit, result, by);
        }
        if let Some(path) = self.file().filter(|path| subject.source().is_at(path)) {
            return Err(CommandError::new(format!("{}: is the input itself", path.display())).hint(
                match self.own_input {
                    OwnInput::WhenAsked => "write to another file, or change the file itself with --in-place",
                    OwnInput::Usual => "leave -o out: the file itself is changed then, and --undo gives it back",
                },
            ));
        }
        let file = self.output.create(&[subject.source()])?;
        let Some((path, file)) = self.file().zip(file) else {
            io::copy(&mut *result.reread()?, output.transcript())?;
            output.flush()?;
            return Ok(Written::default());
        };
        let mut file = Stated { out: file, state: FileStateBuilder::default() };
        io::copy(&mut *result.reread()?, &mut file)?;
        let undo = if self.reversible { Some(keep(path, subject, &file.state.state(), by)?) } else { None };
        file.out.commit()?;
        Ok(Written { path: Some(path.to_owned()), undo })
    }

    /// Prints a report: on standard output when that is free, else beside the data.
    pub fn report(&self, json: &str, output: &mut Output<'_>) -> Result<(), CommandError> {
        match self.leaves_output_free() {
            true => output.line(&harmless_json(json)),
            false => {
                output.say(&harmless_json(json));
                Ok(())
            }
        }
    }
}

/// Something that is written, with its fingerprint.
struct Stated<W> {
    out: W,
    state: FileStateBuilder,
}

impl<W: Write> Write for Stated<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.state.add(bytes.get(..length).unwrap_or_default());
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Keeps the source beside what was made of it.
fn keep(path: &Path, subject: &mut Subject, after: &FileState, by: &str) -> Result<PathBuf, CommandError> {
    let source = &mut subject.input.source;
    let before = FileState::of(&mut *source.pass()?)?;
    let step = UndoStep { before: &before, after, by };
    Ok(undo::save_undo(path, &step, &mut *source.pass()?)?)
}

/// Changes the file itself. What it was is on disk before the file is touched.
fn replace(subject: &Subject, edit: &FileEdit, result: &mut Spool, by: &str) -> Result<Written, CommandError> {
    let name = subject.name();
    let mut out = edit.output()?;
    io::copy(&mut *result.reread()?, &mut out)?;
    let undo = edit.finish(out, by).map_err(|error| match error.problem {
        // An agent may have written meanwhile: its lines must not be lost.
        Problem::Changed => CommandError::new(format!("{name}: the file changed while it was read: nothing was done"))
            .hint("try again when the agent that writes it is at rest"),
        _ => error.into(),
    })?;
    Ok(Written { path: subject.path().map(Path::to_owned), undo })
}

/// Brings a file back as it was before the last edit.
pub fn bring_back(path: &Path, json: bool, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let name = path.display();
    match undo::undo(path)? {
        UndoOutcome::Restored { size, appended, by } => {
            if json {
                let path = quote(&name.to_string());
                let by = quote(&by);
                output.line(&harmless_json(&format!(
                    "{{\"file\":{path},\"undone\":{by},\"size\":{size},\"appended\":{appended}}}"
                )))?;
            } else {
                output.say(&format!("{name}: as it was before steno {by}, byte for byte ({} bytes)", grouped(size)));
                if appended > 0 {
                    output.say(&format!("  {} bytes that were appended since stay at its end", grouped(appended)));
                }
            }
            Ok(Status::Done)
        }
        UndoOutcome::AlreadyRestored => {
            if json {
                output.line(&nothing_undone(path))?;
            } else {
                output.say(&format!("{name}: is as it was; the edit never came to its end"));
            }
            Ok(Status::Done)
        }
        UndoOutcome::Nothing if path.symlink_metadata().is_err() => {
            Err(CommandError::new(format!("{name}: no such file or folder")).hint("check the spelling of the path"))
        }
        UndoOutcome::Nothing => {
            if json {
                output.line(&nothing_undone(path))?;
            }
            Err(CommandError::nothing(format!("{name}: nothing is kept that could be undone"))
                .hint("what was edited with --in-place or --reversible can be undone; the undo file stands beside it"))
        }
        UndoOutcome::Changed => Err(CommandError::new(format!(
            "{name}: was changed since it was edited: nothing was done"
        ))
        .hint("lines appended since would have been kept; zstd -d reads what follows the first line of the undo file")),
        UndoOutcome::Damaged { path } => {
            Err(CommandError::new(format!("{}: is damaged: nothing was done", path.display()))
                .hint("look for another copy of the file"))
        }
    }
}

/// The report that nothing had to be undone, or could be: the exit code tells which.
pub fn nothing_undone(path: &Path) -> String {
    let json = format!("{{\"file\":{},\"undone\":null}}", quote(&path.to_string_lossy()));
    harmless_json(&json).into_owned()
}

/// Says what is not as it was planned, and where what went can be had back.
pub fn tell(edited: &Edited, written: &Written, verb: &str, output: &mut Output<'_>) {
    for line in edited.differs.summary().iter().filter(|line| !line.ends_with("; whole")) {
        output.say(&format!("warning: the format cannot say all that was planned: {line}"));
    }
    if let Some(note) = edited.notes.first() {
        output.say(&format!("warning: line {}: {}", note.at.line, harmless_line(&note.text)));
    }
    if !edited.untouched_totals.is_empty() {
        let fields = edited.untouched_totals.join(", ");
        output.say(&format!("note: {fields}: as before, for they tell of the whole session"));
    }
    if let (Some(path), Some(undo)) = (&written.path, &written.undo) {
        let (path, undo) = (path.display(), undo.display());
        output.say(&format!("what it was is kept in {undo}: steno {verb} --undo {path} brings it back"));
    }
}

/// The fields of a report that every edit has, without braces.
pub fn json_fields(edited: &Edited, written: &Written) -> String {
    let way = match edited.way {
        Way::Copied => "copied",
        Way::Spliced => "spliced",
        Way::Rewritten => "rewritten",
    };
    let path = |path: &Option<PathBuf>| path.as_ref().map_or("null".to_owned(), |path| quote(&path.to_string_lossy()));
    format!(
        "\"way\":{},\"followed\":{},\"exact\":{},\"differs\":{},\"untouched_totals\":[{}],\"output\":{},\"undo\":{}",
        quote(way),
        edited.followed,
        edited.is_exact(),
        edited.differs.to_json(),
        edited.untouched_totals.iter().map(|field| quote(field)).collect::<Vec<_>>().join(","),
        path(&written.path),
        path(&written.undo)
    )
}
