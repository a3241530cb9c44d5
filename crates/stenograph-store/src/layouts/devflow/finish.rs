//! Ends a run: converts the journal into the transcript as `steno convert` does, plain or compressed by its size; then
//! `metadata.json` states how the run ended, and the index includes it. All of it can be repeated after a crash.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use stenograph::convert::{self, Carry, convert};
use stenograph::format::{Format, Wanted};
use stenograph::formats::devflow::{COMPRESS_SIZE_MIN, Devflow};
use stenograph::json::{Draft, Object, number};
use stenograph::model::{Event, Kind};
use stenograph::read::{Reading, Sink};
use stenograph::time::Time;

use super::account::RunTotals;
use super::metadata::RunMetadata;
use super::record::{DURATION, STARTED};
use super::{Base, METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED, index};
use crate::document::{ComparedDocument, measure};
use crate::error::{Error, Problem};
use crate::files::{folder_of, replace};
use crate::journal::{self, Recording};
use crate::layouts::rewrite::{header_line, temporary_path, write_from_start};
use crate::layouts::{self, Environment, FinishedDocuments, StatedFields};
use crate::tail::Warning;

/// The file of the turns while their header is not known yet.
const TURNS: &str = "turns.json";

/// The documents of a run. They are written when it ends; until then everything is in the journal.
pub struct RunDocuments {
    environment: Environment,
    /// The folder of a run that begins here.
    begun: Option<PathBuf>,
}

impl RunDocuments {
    /// The documents of an existing run.
    pub fn new(environment: &Environment) -> RunDocuments {
        RunDocuments { environment: environment.clone(), begun: None }
    }

    /// The documents of a run that begins in this folder.
    pub fn begun(environment: &Environment, folder: PathBuf) -> RunDocuments {
        RunDocuments { environment: environment.clone(), begun: Some(folder) }
    }

    /// The metadata of a run that ended.
    fn metadata(recorded: &Recording, account: &RunTotals) -> RunMetadata {
        let settings = &recorded.header.settings;
        let folder = folder_of(&recorded.journal);
        // The folder may have been renamed: its name is the id.
        let run = folder.file_name().unwrap_or_default().to_string_lossy();
        let (status, error) = account.status(recorded.ended.as_ref());
        let started = settings.get(STARTED).and_then(|text| Time::iso(text.clone().into()));
        let stated = settings.get(DURATION).and_then(|text| number(text));
        // Events may carry times from before the recording, but no run ends before it starts.
        let is_before_start = |ended: &Time<'_>| {
            started.as_ref().is_some_and(|started| ended.instant().is_some_and(|ended| Some(ended) < started.instant()))
        };
        let ended =
            account.ended.as_ref().map(|ended| started.as_ref().filter(|_| is_before_start(ended)).unwrap_or(ended));
        let took = || {
            let (start, end) = (started.as_ref()?.instant()?, ended?.instant()?);
            u64::try_from(end.as_millisecond() - start.as_millisecond()).ok()
        };
        RunMetadata {
            status,
            error,
            ended: ended.and_then(|time| time.to_iso().map(Cow::into_owned)),
            tokens_in: account.tokens_in(),
            tokens_out: account.tokens_out(),
            cost: account.cost(),
            duration_ms: stated.or_else(took),
            ..RunMetadata::running(&run, settings)
        }
    }

    /// Writes the transcript in the form that its size requires, and removes the other form: two forms could differ. The header
    /// states how many turns follow, so the turns are written to a file of their own first.
    fn write_transcript(
        &self,
        recorded: &Recording,
        metadata: &mut RunMetadata,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let files = self.environment.files.as_ref();
        let unwritable = |path: &Path, error: io::Error| Error::at(path, Problem::Unwritable, error);
        let written = temporary_path(&folder.join(TURNS));
        let mut source = TranscriptSource { head: header(metadata), recorded: recorded.clone() };
        let mut turns = TurnCounter { reading: Reading::new(&Devflow, Wanted::All), count: 0 };
        let length = write_from_start(files, &written, &mut |out| {
            let mut out = Counted { out, turns: &mut turns };
            Ok(convert(journal::NATIVE, &mut source, &Devflow, &mut out, Carry::Omit).map(|_| ())?)
        });
        let length = length.map_err(|error| unwritable(&written, error))?;
        metadata.turn_count = turns.end();
        let opened = |header: &str| opened(header).map_err(|error| unwritable(&written, error));
        let (uncounted, counted) = (opened(&source.head)?, opened(&header(metadata))?);
        let large = length.saturating_sub(uncounted.len() as u64) + counted.len() as u64 > COMPRESS_SIZE_MIN as u64;
        let (name, other) = match large {
            true => (TRANSCRIPT_COMPRESSED, TRANSCRIPT),
            false => (TRANSCRIPT, TRANSCRIPT_COMPRESSED),
        };
        let (path, other) = (folder.join(name), folder.join(other));
        let made = temporary_path(&path);
        let filled = write_from_start(files, &made, &mut |out| {
            let mut transcript = counted.as_slice().chain(files.reader(&written, uncounted.len() as u64)?);
            if !large {
                return io::copy(&mut transcript, out).map(|_| ());
            }
            let mut encoder = GzEncoder::new(out, Compression::default());
            io::copy(&mut transcript, &mut encoder)?;
            encoder.finish().map(|_| ())
        });
        filled.map_err(|error| unwritable(&made, error))?;
        let placed = files.rename(&made, &path).and_then(|()| files.sync_folder(folder));
        placed.map_err(|error| unwritable(&path, error))?;
        for old in [other, written] {
            if files.length(&old).map_err(|error| unwritable(&old, error))?.is_some() {
                files.remove(&old).map_err(|error| unwritable(&old, error))?;
            }
        }
        Ok(path)
    }
}

impl layouts::Documents for RunDocuments {
    fn add(&mut self, _event: &Event<'_>) {}

    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error> {
        let files = self.environment.files.as_ref();
        let folder = folder_of(&recorded.journal);
        let account = RunTotals::of(recorded)?;
        let mut metadata = RunDocuments::metadata(recorded, &account);
        let transcript = self.write_transcript(recorded, &mut metadata, folder)?;
        let path = folder.join(METADATA);
        replace(files, &path, metadata.document().as_bytes())
            .map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        let mut warnings = account.warnings(&transcript);
        let base = folder.parent().and_then(Path::parent).map(Base::at);
        if let Some(Err(error)) = base.map(|base| index::update(files, &base, &(self.environment.clock)())) {
            let text = "is out of date; steno rebuilds it when it lists runs";
            let index = match &error.place {
                crate::Place::Path(index) => index.clone(),
                _ => path.clone(),
            };
            warnings.push(Warning::new(&index, text));
        }
        let unreadable = |error| Error::at(&transcript, Problem::Unreadable, error);
        let bytes = files.reader(&transcript, 0).map_err(unreadable)?;
        let bytes: Box<dyn Read> = match transcript.ends_with(TRANSCRIPT_COMPRESSED) {
            true => Box::new(MultiGzDecoder::new(bytes)),
            false => bytes,
        };
        let journal = measure(recorded, ComparedDocument { format: &Devflow, bytes }, given)?;
        Ok(FinishedDocuments { journal, written: vec![transcript, path], warnings })
    }

    /// Frees the id of the run.
    fn discard(&mut self) -> Result<(), Error> {
        let Some(folder) = &self.begun else { return Ok(()) };
        let (files, path) = (self.environment.files.as_ref(), folder.join(METADATA));
        let removed = files.remove(&path).and_then(|()| files.remove_folder(folder));
        removed
            .and_then(|()| files.sync_folder(folder_of(folder)))
            .map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        match folder.parent().and_then(Path::parent) {
            Some(base) => index::update(files, &Base::at(base), &(self.environment.clock)()).map(drop),
            None => Ok(()),
        }
    }
}

/// The header of the transcript as an event, which the format writes unchanged.
fn header(metadata: &RunMetadata) -> String {
    let json = metadata.json();
    let run = Object::parse(&json).and_then(|metadata| metadata.peek("runId").map(str::to_owned));
    let mut own = Draft::new();
    own.set("runId", run.unwrap_or_else(|| "\"\"".to_owned()));
    own.set("metadata", json);
    own.set("turns", "[]");
    header_line(&Devflow, own)
}

/// The beginning of a transcript with this header, up to its first turn.
fn opened(header: &str) -> io::Result<Vec<u8>> {
    let mut document = Vec::new();
    convert(journal::NATIVE, &mut header.as_bytes(), &Devflow, &mut document, Carry::Omit)?;
    document.truncate(document.len().saturating_sub("]\n}".len()));
    Ok(document)
}

/// The input of the conversion: our header and the events of the journal.
struct TranscriptSource {
    head: String,
    recorded: Recording,
}

impl convert::Reopen for TranscriptSource {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        let events = convert::Reopen::open(&mut self.recorded)?;
        let events = JournalEvents { inner: BufReader::with_capacity(256 << 10, events), line: Vec::new(), at: 0 };
        Ok(Box::new(self.head.as_bytes().chain(events)))
    }
}

/// The lines of a journal without headers of other devflow transcripts: a document has one.
struct JournalEvents<R> {
    inner: BufReader<R>,
    line: Vec<u8>,
    at: usize,
}

impl<R: Read> Read for JournalEvents<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.line.len() {
            self.line.clear();
            self.at = 0;
            if self.inner.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(0);
            }
            if is_header(&self.line) {
                self.line.clear();
            }
        }
        let mut left = self.line.get(self.at..).unwrap_or_default();
        let length = left.read(buffer)?;
        self.at += length;
        Ok(length)
    }
}

fn is_header(line: &[u8]) -> bool {
    let Some(object) = std::str::from_utf8(line).ok().and_then(Object::parse) else { return false };
    let own = || object.peek("extra").and_then(Object::parse).is_some_and(|extra| extra.has(Devflow.info().name));
    object.peek_str("kind").as_deref() == Some(Kind::Fact.name()) && own()
}

/// Writes a transcript and counts its turns.
struct Counted<'a> {
    out: &'a mut dyn Write,
    turns: &'a mut TurnCounter,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.turns.reading.feed(bytes.get(..length).unwrap_or(bytes), &mut TurnSink(&mut self.turns.count));
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Counts the turns of a transcript.
struct TurnCounter {
    reading: Reading,
    count: u64,
}

impl TurnCounter {
    fn end(mut self) -> u64 {
        self.reading.end(&mut TurnSink(&mut self.count));
        self.count
    }
}

struct TurnSink<'a>(&'a mut u64);

impl Sink for TurnSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if event.part.index == 0 && !matches!(event.kind(), Kind::Fact | Kind::Stop) {
            *self.0 += 1;
        }
    }
}
