//! Completing what a crash left: torn lines are moved aside, and documents are brought up to what their journal says. Running it
//! again changes nothing.

use std::path::{Path, PathBuf};

use stenograph::frame::Framing;
use stenograph::model::Event;
use stenograph::wire;
use stenograph::{Detected, Registry};

use crate::confined::Confined;
use crate::error::{Error, Problem};
use crate::files::folder_of;
use crate::journal::{self, End, Recorded};
use crate::layouts::{Environment, Journal, LockedJournal, StatedFields, layout_named};
use crate::lock::Lock;
use crate::log::Log;
use crate::tail::{self, LastLine, Warning};

/// How the name of a journal ends.
pub(crate) const ENDING: &str = "steno";

/// How the name of a native stream ends that has no journal beside it.
pub(crate) const STREAM_ENDING: &str = ".steno.jsonl";

/// Whether a file is named like a native stream.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(STREAM_ENDING))
}

/// The journal beside a document.
pub fn beside(document: &Path) -> PathBuf {
    let mut name = document.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ENDING}"));
    document.with_file_name(name)
}

/// What was found and done.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The journals that were looked at.
    pub journals: Vec<PathBuf>,
    /// What there is to say.
    pub warnings: Vec<Warning>,
    /// Whether a recording could not be completed.
    pub failed: bool,
}

/// Completes what was recorded at this path: the file or folder that was given to a recorder, or a journal.
pub fn recover(path: &Path, site: &Environment) -> Result<Recovery, Error> {
    let mut recovery = Recovery::default();
    let journals = journals_at(path, site)?;
    for journal in journals {
        let named = path.is_dir().then_some(path);
        let ground = match LockedJournal::of_journal_in(&journal, named, site) {
            // In a folder of many, one recording that goes on, or cannot be completed, does not keep the others from their end.
            Err(error) if path.is_dir() => {
                let why = match error.problem {
                    Problem::Locked { .. } => "is being recorded, and left alone".to_owned(),
                    _ => format!("is not completed: {error}"),
                };
                recovery.failed |= !matches!(error.problem, Problem::Locked { .. });
                recovery.warnings.push(Warning::new(&journal, why));
                continue;
            }
            ground => ground?,
        };
        // A recording that was cut off before its first line was whole leaves nothing else.
        if ground.tail.length == 0 && site.files.length(&journal).ok().flatten() == Some(0) {
            site.files.remove(&journal).map_err(|error| Error::at(&journal, Problem::Unwritable, error))?;
        }
        recovery.warnings.extend(ground.warnings);
        recovery.journals.push(journal);
    }
    if path.is_dir() {
        for stream in found_in(path, &is_stream) {
            match settle_file(&stream, site) {
                Err(error) if matches!(error.problem, Problem::Locked { .. }) => {
                    recovery.warnings.push(Warning::new(&stream, "is being recorded, and left alone"));
                }
                // Whatever it is, it is no stream.
                Err(error) if error.problem == Problem::NoLayout => {}
                settled => recovery.warnings.extend(settled?),
            }
        }
    } else if recovery.journals.is_empty() && path.is_file() {
        recovery.warnings.extend(settle_file(path, site)?);
    } else if recovery.journals.is_empty() && !path.exists() {
        return Err(Error::about(path, Problem::Missing));
    }
    Ok(recovery)
}

/// A file of lines without a journal: all that can be left in it is half a line.
fn settle_file(path: &Path, site: &Environment) -> Result<Option<Warning>, Error> {
    let mut head = Vec::new();
    let mut reader = site.files.reader(path, 0).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    stenograph::format::Head::read(&mut reader, &mut head)
        .map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    if head.trim_ascii().is_empty() {
        // A recording that was cut off before its first event leaves a file in which nothing stands.
        return Ok(None);
    }
    match Registry::built_in().detect(&head) {
        Detected::Format(format) if matches!(format.info().framing, Framing::Lines) && !format.info().traits.lossy => {
            let _lock = Lock::on(path)?;
            Ok(tail::settle(site.files.as_ref(), path, LastLine::MayLackNewline)?.warning)
        }
        // A recording of the native stream that was cut off at its first line.
        _ if is_begun(&head) => {
            let _lock = Lock::on(path)?;
            Ok(tail::settle(site.files.as_ref(), path, LastLine::EndsWithNewline)?.warning)
        }
        _ => Err(Error::about(path, Problem::NoLayout)),
    }
}

/// Whether this may be how the first line of a native stream begins, or what a power cut makes of it.
fn is_begun(head: &[u8]) -> bool {
    let start = format!("{{\"v\":{}", wire::VERSION);
    let length = head.len().min(start.len());
    let begins = head.get(..length) == start.as_bytes().get(..length);
    !head.contains(&b'\n') && (begins || head.iter().all(|byte| *byte == 0))
}

/// How deep folders are searched, and how many files are looked at: no layout is deeper, and no tree is endless.
const DEPTH_MAX: usize = 8;
const ENTRIES_MAX: usize = 1_000_000;

/// Whether a file is named like a journal.
pub fn is_journal_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}

fn journals_at(path: &Path, site: &Environment) -> Result<Vec<PathBuf>, Error> {
    let aside = beside(path);
    if path.is_dir() {
        let mut journals = Vec::new();
        for path in found_in(path, &is_journal_name) {
            if !journal::recordings(&site.files, &path)?.is_empty() {
                journals.push(path);
            }
        }
        Ok(journals)
    } else if is_journal_name(path) && path.is_file() && !journal::recordings(&site.files, path)?.is_empty() {
        Ok(vec![path.to_owned()])
    } else if aside.is_file() {
        Ok(vec![aside])
    } else {
        Ok(Vec::new())
    }
}

/// The files below a folder that are looked for, in order.
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
        // A link may lead in a circle, or to somebody else's files.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => search(&entry.path(), depth - 1, left, found),
            Ok(kind) if kind.is_file() => found(&entry.path()),
            _ => {}
        }
    }
}

/// Completes the documents of the last recording in a journal whose lock is held, unless that was done: what was done to them
/// since must not be undone. Those before it were completed when it began. Whatever the journal says, nothing outside of the
/// layout's folders and the one that the user named is read or written.
pub(crate) fn complete_journal(
    journal: &Path,
    named: Option<&Path>,
    site: &Environment,
) -> Result<Vec<Warning>, Error> {
    let mut warnings = Vec::new();
    let last = journal::recordings(&site.files, journal)?.pop();
    let Some(recorded) = last.filter(|recorded| !recorded.settled) else { return Ok(warnings) };
    let Some(layout) = layout_named(&recorded.header.layout) else {
        let text = format!("recorded into the layout {}, which is not known here", recorded.header.layout);
        return Ok(vec![Warning::new(journal, text)]);
    };
    let cut_off = recorded.ended.is_none();
    let recorded = if cut_off { mark_end(&recorded, site)? } else { recorded };
    let folders = layout.folders(journal, named, site);
    let site = &Environment { files: Confined::to(&site.files, &folders), ..site.clone() };
    let finished = layout.resume(&recorded, site)?.finish(&recorded, StatedFields::UNKNOWN)?;
    if cut_off {
        let documents: Vec<String> = finished.written.iter().map(|path| path.display().to_string()).collect();
        let text = format!("a recording that was cut off is completed: {}", documents.join(", "));
        warnings.push(Warning::new(journal, text));
    }
    warnings.extend(finished.warnings);
    match kept_of(finished.journal, &recorded, site) {
        Journal::Needed => mark(&recorded, site, &[journal::settled_line((site.clock)())]).map(|_| ())?,
        Journal::Unfinished => {}
        Journal::Redundant => let_go(&recorded, site)?,
    }
    Ok(warnings)
}

/// Says at the end of a journal that its last recording was cut off.
fn mark_end(recorded: &Recorded, site: &Environment) -> Result<Recorded, Error> {
    let (end, time) = (End::Interrupted, (site.clock)());
    let lengths = mark(recorded, site, &[end.stop(time.clone()), journal::end_line(&end, time)])?;
    let until = lengths.first().copied().unwrap_or(recorded.end);
    Ok(recorded.clone().ending(until, end))
}

/// Adds lines to a journal, and says how long it was after each.
fn mark(recorded: &Recorded, site: &Environment, events: &[Event<'_>]) -> Result<Vec<u64>, Error> {
    let tail = tail::settle(site.files.as_ref(), &recorded.journal, LastLine::EndsWithNewline)?;
    let log: Log<()> = Log::open(site.files.clone(), &recorded.journal, &tail, site.durability)?;
    let mut lengths = Vec::new();
    for event in events {
        log.append(format!("{}\n", wire::event(event)).as_bytes(), (), &|_| {})?;
        lengths.push(log.length());
    }
    log.sync()?;
    Ok(lengths)
}

/// What the journal is good for when others have to find out what the documents are: one that nobody knows for what it is, because
/// its first line is too long or something else stands before, does not speak for itself.
pub(crate) fn kept_of(journal: Journal, recorded: &Recorded, site: &Environment) -> Journal {
    let is_known = |name: &String| {
        let mut head = Vec::new();
        let limit = stenograph::format::Head::SIZE_MAX as u64;
        let reader = site.files.reader(&recorded.document(name), 0);
        let read =
            reader.and_then(|reader| std::io::Read::read_to_end(&mut std::io::Read::take(reader, limit), &mut head));
        // A document that is not there says nothing, and whoever let it go knows why.
        read.is_err() || head.is_empty() || matches!(Registry::built_in().detect(&head), Detected::Format(_))
    };
    match journal {
        Journal::Redundant if !recorded.header.documents.keys().all(is_known) => Journal::Needed,
        journal => journal,
    }
}

/// Lets go of a recording in a journal: the documents say it all, and are durable.
pub(crate) fn let_go(recorded: &Recorded, site: &Environment) -> Result<(), Error> {
    let (files, journal) = (&site.files, &recorded.journal);
    let gone = if recorded.begin == 0 {
        files.remove(journal).and_then(|()| files.sync_folder(folder_of(journal)))
    } else {
        files.open(journal).and_then(|mut file| file.truncate(recorded.begin).and_then(|()| file.sync()))
    };
    gone.map_err(|error| Error::at(journal, Problem::Unwritable, error))
}
