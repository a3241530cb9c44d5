//! Opens a name from the command line as a source and detects its format by content; `--from` overrides detection.

use std::cell::OnceCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::carry::Carried;
use stenograph::convert::Reopen;
use stenograph::evidence::HistoryBase;
use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Outline, Span};
use stenograph::read::{Reading, Sink};
use stenograph_store::discover::{self, path_hints};
use stenograph_store::folder::{self, RecordingParts};
use stenograph_store::history;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::{SourceLocation, Store};
use stenograph_store::layouts::replaced_files;
pub use stenograph_store::read::Flow;
use stenograph_store::source_file::{Confidence, Recognized};
use stenograph_store::{Passes, Place, Problem, Source, Spool, SpooledInput, read, working_folder};

use crate::error::CommandError;
use crate::output::{Output, counted, harmless_line};
use crate::progress::SourceProgress;
use crate::store::{ResolvedName, SessionArgs};

/// An open source and its format.
pub struct TranscriptInput {
    pub source: Source,
    pub format: &'static dyn Format,
}

/// Standard input for commands that need the path of a file: `-` becomes a private file, which is removed with this value.
#[derive(Debug, Default)]
pub struct StandardInput(OnceCell<SpooledInput>);

impl StandardInput {
    /// The path to read for a name.
    pub fn path(&self, name: &Path) -> Result<PathBuf, CommandError> {
        if name != Path::new("-") {
            return Ok(name.to_owned());
        }
        let spooled = match self.0.get() {
            Some(spooled) => spooled,
            None => {
                let read = SpooledInput::read()?;
                self.0.get_or_init(|| read)
            }
        };
        Ok(spooled.path().to_owned())
    }
}

/// Opens a path (`-` is standard input) and detects its format.
pub fn open(path: &Path, from: Option<&str>, passes: Passes) -> Result<TranscriptInput, CommandError> {
    from_source(
        if path == Path::new("-") { Source::standard_input(passes)? } else { Source::open(path, passes)? },
        from,
    )
}

/// Opens a transcript by its path, `-`, a session id or `latest`. A session is its main file, or the archived copy of it.
pub fn open_named(
    place: &SessionArgs,
    name: &Path,
    from: Option<&str>,
    passes: Passes,
    output: &mut Output<'_>,
) -> Result<TranscriptInput, CommandError> {
    match place.resolve(name)? {
        ResolvedName::File(path) => {
            let parts = Some(&path).filter(|path| path.is_dir()).and_then(|path| folder::parts(path));
            match parts.map(|parts| parts.joined()).transpose()?.flatten() {
                Some(source) => from_source(source, from),
                None => open(&path, from, passes),
            }
        }
        ResolvedName::Session(session) => {
            if let Some(source) = session.parts().map(|parts| parts.joined()).transpose()?.flatten() {
                return Ok(TranscriptInput { source, format: format_of(&session.source, from)? });
            }
            let others = session.other_files().count() as u64;
            if others > 0 {
                let (path, others) = (session.source.path.display(), counted(others, "other file"));
                output.say(&format!("note: using {path}; the session has {others}"));
            }
            open_known(&place.store()?, &session.source, from, output)
        }
    }
}

/// The files of a recording, if the path is a folder or the recording has several files. Mentions each damaged file that
/// another file replaces.
pub fn parts(path: &Path, output: &mut Output<'_>) -> Option<RecordingParts> {
    let parts = folder::parts(path)?;
    for warning in replaced_files(path) {
        output.say(&format!("note: {}: {}", warning.path.display(), warning.text));
    }
    Some(parts)
}

/// Detects the format of an open source.
pub fn from_source(source: Source, from: Option<&str>) -> Result<TranscriptInput, CommandError> {
    let format = match from {
        Some(name) => format_named(name)?,
        None => recognized(&source)?.format,
    };
    Ok(TranscriptInput { source, format })
}

/// Opens a source that the index knows. If only the archive still has it, says so.
pub fn open_known(
    store: &Store,
    row: &SourceRow,
    from: Option<&str>,
    output: &mut Output<'_>,
) -> Result<TranscriptInput, CommandError> {
    let name = row.path.display().to_string();
    let (source, held) = store.open_source(row).map_err(|error| match error.problem {
        Problem::Missing | Problem::NoSuchConversation => {
            CommandError::not_found(format!("{name}: the file is gone and was never archived"))
                .hint("run steno index: it archives every transcript it reads")
        }
        _ => error.into(),
    })?;
    if held == SourceLocation::InArchive {
        output.say(&format!("{name} is gone; reading the archived copy"));
    }
    Ok(TranscriptInput { source, format: format_of(row, from)? })
}

/// Opens an earlier version of a source that the index knows.
pub fn open_version(
    store: &Store,
    row: &SourceRow,
    version: u32,
    from: Option<&str>,
) -> Result<TranscriptInput, CommandError> {
    let name = row.path.display().to_string();
    let source = store.open_version(row, version).map_err(|error| match error.problem {
        Problem::NotKept => CommandError::not_found(format!("{name}: version {version} is not in the archive"))
            .hint("list the versions with steno archive list --json"),
        _ => error.into(),
    })?;
    Ok(TranscriptInput { source, format: format_of(row, from)? })
}

/// The format that the user names, or else the one that the index knows.
fn format_of(row: &SourceRow, from: Option<&str>) -> Result<&'static dyn Format, CommandError> {
    let unknown = || CommandError::new(format!("{}: unknown format", row.path.display()));
    from.map_or_else(|| Registry::built_in().named(&row.format).ok_or_else(unknown), format_named)
}

/// The format of a source that may still be empty; an empty source has none.
pub fn format_so_far(source: &Source, from: Option<&str>) -> Result<Option<&'static dyn Format>, CommandError> {
    Ok(recognized_so_far(source, from)?.map(|recognized| recognized.format))
}

/// Recognises a source that may still be empty.
pub fn recognized_so_far(source: &Source, from: Option<&str>) -> Result<Option<Recognized>, CommandError> {
    match from {
        Some(name) => Ok(Some(Recognized::certain(format_named(name)?))),
        None if source.head().is_empty() => Ok(None),
        None => recognized(source).map(Some),
    }
}

/// Finds a format by its name.
pub fn format_named(name: &str) -> Result<&'static dyn Format, CommandError> {
    Registry::built_in()
        .named(name)
        .ok_or_else(|| CommandError::new(format!("unknown format: {name}")).hint("list the formats with steno formats"))
}

fn recognized(source: &Source) -> Result<Recognized, CommandError> {
    let place = source.place();
    let named = if let Place::Path(path) = place { path_hints(path) } else { discover::PathHints::default() };
    match source.recognize(&named) {
        Some(Recognized { confidence: Confidence::Tied, .. }) => {
            let names: Vec<&str> =
                Registry::built_in().claims(source.head()).1.iter().map(|format| format.info().name).collect();
            Err(CommandError::new(format!("{place}: ambiguous format: {}", names.join(" or ")))
                .hint("choose one with --from FORMAT"))
        }
        Some(recognized) => Ok(recognized),
        None => {
            const LIST: &str = "list the formats with steno formats; choose one with --from FORMAT";
            let (what, hint) = match source.head() {
                [] => ("the file is empty", "an agent may still write to it; try again later"),
                [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => (
                    "the file is UTF-16, which no supported format uses",
                    "convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW",
                ),
                head if head.contains(&0) => ("unknown format; this looks like a binary file", LIST),
                _ => ("unknown format", LIST),
            };
            Err(CommandError::new(format!("{place}: {what}")).hint(hint))
        }
    }
}

impl TranscriptInput {
    /// Reads the source once, in chunks, until `flow` stops the read.
    pub fn read<S: Sink>(
        &mut self,
        sink: &mut S,
        progress: &SourceProgress,
        flow: impl Fn(&S) -> Flow,
    ) -> Result<(), CommandError> {
        Ok(read::source(&mut self.source, self.format, sink, |consumed| progress.at(consumed), flow)?)
    }

    /// Reads a plain file from a record on, until `flow` stops the read.
    pub fn read_from<S: Sink>(&self, at: Span, sink: &mut S, flow: impl Fn(&S) -> Flow) -> Result<(), CommandError> {
        let Place::Path(path) = self.source.place() else { return Ok(()) };
        Ok(read::file_from(path, self.format, at, sink, flow)?)
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self.source.place() {
            Place::Path(path) => path.display().to_string(),
            _ => "-".to_owned(),
        }
    }
}

/// Bytes that may be those of a file.
pub trait MaybeFile: Reopen {
    /// The path of the file.
    fn path(&self) -> Option<&Path>;
}

impl MaybeFile for Source {
    fn path(&self) -> Option<&Path> {
        match self.place() {
            Place::Path(path) => Some(path),
            _ => None,
        }
    }
}

impl MaybeFile for Spool {
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Says which session has the records before those of a fork, which its own file does not have.
pub fn say_history(input: &TranscriptInput, output: &mut Output<'_>) {
    if let Some(HistoryBase { session, .. }) = history::base(&input.source, input.format) {
        let session = harmless_line(&session);
        output.say(&format!("note: the records before the fork are in the session {session}, not in this file"));
    }
}

/// The format of the source that a file embeds, if it embeds one.
pub fn embedded_format(format: &'static dyn Format, source: &mut Source) -> Result<Option<String>, CommandError> {
    struct Embedded(Option<String>);
    impl Sink for Embedded {
        fn event(&mut self, event: &Event<'_>) {
            let of = || Some(Carried::parse(event.carried.as_deref()?)?.of);
            self.0 = self.0.take().or_else(of);
        }
    }
    let mut found = Embedded(None);
    read::source(
        source,
        format,
        &mut found,
        |_| {},
        |found| if found.0.is_some() { Flow::Stop } else { Flow::Continue },
    )?;
    Ok(found.0)
}

/// What the first records of a source state about its session, up to its id and its folder.
///
/// A file beside the source may state the folder instead.
pub fn stated_session(format: &'static dyn Format, source: &mut impl MaybeFile) -> Result<Outline, CommandError> {
    struct Stated(Outline);
    impl Sink for Stated {
        fn event(&mut self, event: &Event<'_>) {
            self.0.add(event);
        }
    }
    const CHUNK_SIZE: usize = 64 << 10;
    let mut stated = Stated(Outline::new(format.info().name));
    let mut reading = Reading::new(format, Wanted::All);
    let beside = source.path().and_then(|path| working_folder(path, format));
    let (mut input, mut buffer) = (source.open()?, vec![0; CHUNK_SIZE]);
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            reading.end(&mut stated);
            break;
        }
        reading.feed(buffer.get(..length).unwrap_or_default(), &mut stated);
        if stated.0.session.is_some() && stated.0.header.cwd.is_some() {
            break;
        }
    }
    stated.0.header.cwd = stated.0.header.cwd.or(beside);
    Ok(stated.0)
}
