//! Completes recordings after a crash: moves torn lines aside and brings documents up to date with their journal. Running it
//! again changes nothing.

use std::path::{Path, PathBuf};

use stenograph::frame::Framing;
use stenograph::json::Object;
use stenograph::model::{Event, Kind};
use stenograph::wire;
use stenograph::{Detected, Registry};

use crate::confined::Confined;
use crate::error::{Error, Problem};
use crate::files::folder_of;
use crate::journal::{self, Recording, RecordingEnd};
use crate::layouts::{Environment, JournalNeed, LockedJournal, StatedFields, layout_named};
use crate::lock::Lock;
use crate::log::Log;
use crate::tail::{self, LastLineRule, Tail, Warning};

/// The file name extension of a journal.
pub(crate) const JOURNAL_EXTENSION: &str = "steno";

/// The file name ending of a native stream without a journal.
pub(crate) const STREAM_ENDING: &str = ".steno.jsonl";

/// Whether a file is named like a native stream.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(STREAM_ENDING))
}

/// The journal beside a document.
pub fn journal_path(document: &Path) -> PathBuf {
    let mut name = document.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{JOURNAL_EXTENSION}"));
    document.with_file_name(name)
}

/// The result of a recovery.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The journals that were checked.
    pub journals: Vec<PathBuf>,
    /// How many recordings were completed; the others were complete.
    pub completed: u64,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
    /// Whether a recording could not be completed.
    pub failed: bool,
}

/// Completes the recordings at this path: the file or folder that was given to a recorder, or a journal.
pub fn recover(path: &Path, environment: &Environment) -> Result<Recovery, Error> {
    let mut recovery = Recovery::default();
    let journals = journals_at(path, environment)?;
    for journal in journals {
        let named = path.is_dir().then_some(path);
        let is_unfinished = is_unfinished(&journal, environment);
        let ground = match LockedJournal::of_journal_in(&journal, named, environment) {
            // In a folder of many recordings, one that is still active or cannot be completed does not stop the others.
            Err(error) if path.is_dir() => {
                let why = match error.problem {
                    Problem::Locked { .. } => "is still being recorded: not touched".to_owned(),
                    _ => format!("cannot be completed: {error}"),
                };
                recovery.failed |= !matches!(error.problem, Problem::Locked { .. });
                recovery.warnings.push(Warning::new(&journal, why));
                continue;
            }
            ground => ground?,
        };
        // A recording that was cut off before its first line was complete leaves nothing else.
        if ground.tail.length == 0 && environment.files.length(&journal).ok().flatten() == Some(0) {
            environment.files.remove(&journal).map_err(|error| Error::at(&journal, Problem::Unwritable, error))?;
        }
        recovery.warnings.extend(ground.warnings);
        recovery.completed += u64::from(is_unfinished);
        recovery.journals.push(journal);
    }
    if path.is_dir() {
        for stream in found_in(path, &is_stream) {
            match repair_file(&stream, environment) {
                Err(error) if matches!(error.problem, Problem::Locked { .. }) => {
                    recovery.warnings.push(Warning::new(&stream, "is still being recorded: not touched"));
                }
                // The file is not a stream.
                Err(error) if error.problem == Problem::NoLayout => {}
                repaired => recovery.add_stream(repaired?),
            }
        }
    } else if recovery.journals.is_empty() && path.is_file() {
        recovery.add_stream(repair_file(path, environment)?);
    } else if recovery.journals.is_empty() && !path.exists() {
        return Err(Error::about(path, Problem::Missing));
    }
    Ok(recovery)
}

impl Recovery {
    fn add_stream(&mut self, repaired: RepairedFile) {
        self.completed += u64::from(repaired.was_cut_off);
        self.warnings.extend(repaired.warning);
    }
}

/// Whether the last recording in a journal is not complete.
fn is_unfinished(journal: &Path, environment: &Environment) -> bool {
    let recordings = journal::recordings(&environment.files, journal).unwrap_or_default();
    recordings.last().is_some_and(|recorded| !recorded.is_completed)
}

/// A repaired file of lines.
#[derive(Default)]
struct RepairedFile {
    /// Whether its recorder was killed, so that its end had to be recorded.
    was_cut_off: bool,
    warning: Option<Warning>,
}

/// Repairs a file of lines without a journal: it may end in half a line, and the recorder of a native stream may have been killed
/// before it recorded an end.
fn repair_file(path: &Path, environment: &Environment) -> Result<RepairedFile, Error> {
    let files = environment.files.as_ref();
    let mut head = Vec::new();
    let mut reader = environment.files.reader(path, 0).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    stenograph::format::Head::read(&mut reader, &mut head)
        .map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    if head.trim_ascii().is_empty() {
        // A recording that was cut off before its first event leaves an empty file.
        return Ok(RepairedFile::default());
    }
    let was_killed = Lock::is_left(path);
    match Registry::built_in().detect(&head) {
        Detected::Format(format) if matches!(format.info().framing, Framing::Lines) && !format.info().traits.lossy => {
            let _lock = Lock::on(path)?;
            let tail = tail::repair_tail(files, path, LastLineRule::MayLackNewline)?;
            let is_native = format.info().name == wire::NAME;
            let was_cut_off = was_killed && is_native && tail.length > 0 && !ends_with_stop(path, environment)?;
            if was_cut_off {
                append_stop(path, &tail, environment)?;
            }
            Ok(RepairedFile { was_cut_off, warning: tail.warning })
        }
        // A recording of the native stream that was cut off in its first line.
        _ if is_begun(&head) => {
            let _lock = Lock::on(path)?;
            let warning = tail::repair_tail(files, path, LastLineRule::EndsWithNewline)?.warning;
            Ok(RepairedFile { was_cut_off: false, warning })
        }
        _ => Err(Error::about(path, Problem::NoLayout)),
    }
}

/// Whether the last line of a stream is the end of a run. A recorder's own end is short.
fn ends_with_stop(path: &Path, environment: &Environment) -> Result<bool, Error> {
    const LINE_SIZE_MAX: u64 = 64 << 10;
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let length = environment.files.length(path).map_err(unreadable)?.unwrap_or(0);
    let end = environment.files.read(path, length.saturating_sub(LINE_SIZE_MAX)).map_err(unreadable)?;
    let last = end.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let object = std::str::from_utf8(last).ok().and_then(Object::parse);
    Ok(object.is_some_and(|object| object.peek_str("kind").as_deref() == Some(Kind::Stop.name())))
}

/// Records at the end of a stream that its recording was cut off.
fn append_stop(path: &Path, tail: &Tail, environment: &Environment) -> Result<(), Error> {
    let log: Log<()> = Log::open(environment.files.clone(), path, tail, environment.durability)?;
    let stop = wire::event(&RecordingEnd::Interrupted.stop((environment.clock)()));
    let newline = if tail.lacks_newline { "\n" } else { "" };
    log.append(format!("{newline}{stop}\n").as_bytes(), (), &|_| {})?;
    log.sync()
}

/// Whether this may be the beginning of a native stream's first line, or what a power failure makes of it.
fn is_begun(head: &[u8]) -> bool {
    let start = format!("{{\"v\":{}", wire::VERSION);
    let length = head.len().min(start.len());
    let begins = head.get(..length) == start.as_bytes().get(..length);
    !head.contains(&b'\n') && (begins || head.iter().all(|byte| *byte == 0))
}

/// Limits for the search: no layout is deeper, and no tree is endless.
const DEPTH_MAX: usize = 8;
const ENTRIES_MAX: usize = 1_000_000;

/// Whether a file is named like a journal.
pub(crate) fn is_journal_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == JOURNAL_EXTENSION)
}

fn journals_at(path: &Path, environment: &Environment) -> Result<Vec<PathBuf>, Error> {
    let aside = journal_path(path);
    if path.is_dir() {
        let mut journals = Vec::new();
        for path in found_in(path, &is_journal_name) {
            if !journal::recordings(&environment.files, &path)?.is_empty() {
                journals.push(path);
            }
        }
        Ok(journals)
    } else if is_journal_name(path) && path.is_file() && !journal::recordings(&environment.files, path)?.is_empty() {
        Ok(vec![path.to_owned()])
    } else if aside.is_file() {
        Ok(vec![aside])
    } else {
        Ok(Vec::new())
    }
}

/// The matching files below a folder, in order.
fn found_in(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), ENTRIES_MAX);
    search(folder, DEPTH_MAX, &mut left, &mut |path| {
        if wanted(path) {
            found.push(path.to_owned());
        }
    });
    found.sort();
    found
}

fn search(folder: &Path, depth: usize, left: &mut usize, found: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        // A link may form a cycle or lead to other people's files.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => search(&entry.path(), depth - 1, left, found),
            Ok(kind) if kind.is_file() => found(&entry.path()),
            _ => {}
        }
    }
}

/// Completes the documents of the last recording in a journal whose lock is held, unless that was done: later changes to them
/// must not be undone. Earlier recordings were completed when the last one began. Whatever the journal says, nothing outside
/// the layout's folders and the one that the user named is read or written.
pub(crate) fn complete_journal(
    journal: &Path,
    named: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<Warning>, Error> {
    let mut warnings = Vec::new();
    let last = journal::recordings(&environment.files, journal)?.pop();
    let Some(recorded) = last.filter(|recorded| !recorded.is_completed) else { return Ok(warnings) };
    let Some(layout) = layout_named(&recorded.header.layout) else {
        let text = format!("recorded in the unknown layout {}", recorded.header.layout);
        return Ok(vec![Warning::new(journal, text)]);
    };
    let was_cut_off = recorded.ended.is_none();
    let recorded = if was_cut_off { record_interruption(&recorded, environment)? } else { recorded };
    let folders = layout.folders(journal, named, environment);
    let environment = &Environment { files: Confined::to(&environment.files, &folders), ..environment.clone() };
    let finished = layout.resume(&recorded, environment)?.finish(&recorded, StatedFields::UNKNOWN)?;
    if was_cut_off {
        let documents: Vec<String> = finished.written.iter().map(|path| path.display().to_string()).collect();
        let text = format!("completed an interrupted recording: {}", documents.join(", "));
        warnings.push(Warning::new(journal, text));
    }
    warnings.extend(finished.warnings);
    match needed_journal(finished.journal, &recorded, environment) {
        JournalNeed::Needed => {
            append_marks(&recorded, environment, &[journal::completed_line((environment.clock)())]).map(|_| ())?;
        }
        JournalNeed::Unfinished => {}
        JournalNeed::Redundant => remove_recording(&recorded, environment)?,
    }
    Ok(warnings)
}

/// Records at the end of a journal that its last recording was cut off.
fn record_interruption(recorded: &Recording, environment: &Environment) -> Result<Recording, Error> {
    let (end, time) = (RecordingEnd::Interrupted, (environment.clock)());
    let lengths = append_marks(recorded, environment, &[end.stop(time.clone()), journal::end_line(&end, time)])?;
    let until = lengths.first().copied().unwrap_or(recorded.end);
    Ok(recorded.clone().ended_at(until, end))
}

/// Appends lines to a journal. Returns its length after each.
fn append_marks(recorded: &Recording, environment: &Environment, events: &[Event<'_>]) -> Result<Vec<u64>, Error> {
    let tail = tail::repair_tail(environment.files.as_ref(), &recorded.journal, LastLineRule::EndsWithNewline)?;
    let log: Log<()> = Log::open(environment.files.clone(), &recorded.journal, &tail, environment.durability)?;
    let mut lengths = Vec::new();
    for event in events {
        log.append(format!("{}\n", wire::event(event)).as_bytes(), (), &|_| {})?;
        lengths.push(log.length());
    }
    log.sync()?;
    Ok(lengths)
}

/// Whether the journal is still needed if others must detect the documents' format. A document whose format cannot be detected,
/// because its first line is too long or other content comes first, needs its journal.
pub(crate) fn needed_journal(journal: JournalNeed, recorded: &Recording, environment: &Environment) -> JournalNeed {
    let is_known = |name: &String| {
        let mut head = Vec::new();
        let limit = stenograph::format::Head::SIZE_MAX as u64;
        let reader = environment.files.reader(&recorded.document(name), 0);
        let read =
            reader.and_then(|reader| std::io::Read::read_to_end(&mut std::io::Read::take(reader, limit), &mut head));
        // A missing document holds nothing; it was removed on purpose.
        read.is_err() || head.is_empty() || matches!(Registry::built_in().detect(&head), Detected::Format(_))
    };
    match journal {
        JournalNeed::Redundant if !recorded.header.documents.keys().all(is_known) => JournalNeed::Needed,
        journal => journal,
    }
}

/// Removes a recording from a journal: the documents hold everything and are durable.
pub(crate) fn remove_recording(recorded: &Recording, environment: &Environment) -> Result<(), Error> {
    let (files, journal) = (&environment.files, &recorded.journal);
    let gone = if recorded.begin == 0 {
        files.remove(journal).and_then(|()| files.sync_folder(folder_of(journal)))
    } else {
        files.open(journal).and_then(|mut file| file.truncate(recorded.begin).and_then(|()| file.sync()))
    };
    gone.map_err(|error| Error::at(journal, Problem::Unwritable, error))
}
