//! Reads the files over which a live system spreads a conversation as one: its documents in order, and the journals beside
//! them, which hold more. An event that is in a document and in a journal is given once, in the journal's version.

mod numbers;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Wanted};
use stenograph::loss::twins;
use stenograph::model::{Body, Content, Event, Note};
use stenograph::read::{Collected, Reading, Sink};
use stenograph::redact::{KnownSecrets, RedactionReport, Redactor};

use crate::discover::path_hints;
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, FileMode, Files, create_folder_durably, folder_of};
use crate::identity::is_same;
use crate::journal::{self, Recording};
use crate::layouts::{LAYOUTS, openhands};
use crate::output::{NewFile, Spool};
use crate::recover;
use crate::redaction::redact_into;
use crate::session_files::journals_of;
use crate::source::{Passes, Source};

pub use numbers::EventNumbers;

/// The files that make up a recording.
#[derive(Debug)]
pub struct RecordingParts {
    files: Vec<PathBuf>,
    /// Their format, if the layout determines it.
    format: Option<&'static dyn Format>,
    form: PartsForm,
    /// The private folder of redacted copies, which lives as long as they are read.
    _copies: Option<tempfile::TempDir>,
}

/// How the files form the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartsForm {
    /// Each file has the next records: joined, they are one source.
    Consecutive,
    /// Several files may state the same event.
    Overlapping,
}

/// The files that make up the recording at this path: those of a folder that some layout knows, or a file and its journal.
/// `None` for a single file, or a folder that no layout knows.
pub fn parts(path: &Path) -> Option<RecordingParts> {
    if path.is_dir() {
        if let Some(files) = openhands::files_to_read(path, &Disk) {
            return Some(RecordingParts { files, format: None, form: PartsForm::Consecutive, _copies: None });
        }
        return LAYOUTS.iter().find_map(|layout| {
            let files = layout.files_to_read(path, &Disk).filter(|found| !found.is_empty())?;
            Some(RecordingParts { files, format: layout.format(), form: PartsForm::Overlapping, _copies: None })
        });
    }
    if !path.is_file() || recover::is_journal_name(path) {
        return None;
    }
    let journal = journals_of(path).into_iter().find(|journal| journal.is_file())?;
    if journal == recover::journal_path(path) {
        let files = vec![path.to_owned(), journal];
        return Some(RecordingParts { files, format: None, form: PartsForm::Overlapping, _copies: None });
    }
    let folder = Some(folder_of(&journal)).filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_read_from_journal = || LAYOUTS.iter().any(|layout| layout.is_read_from_journal(path));
    let mut parts = parts(folder).filter(|parts| parts.has(path) || is_read_from_journal())?;
    parts.files.retain(|file| is_same(file, path) || is_same(file, &journal));
    Some(parts).filter(|parts| !parts.files.is_empty())
}

/// The file that names the recording which this file is part of, and all parts of that recording: a journal is named by the
/// document beside it. `None` for a single file.
pub fn recording_of(path: &Path) -> Option<(PathBuf, RecordingParts)> {
    let document = path.with_extension("");
    let is_beside = recover::journal_path(&document) == path;
    let name = if is_beside { document } else { path.to_owned() };
    parts(&name).map(|parts| (name, parts))
}

impl RecordingParts {
    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether one of them is the file at this path, under any name.
    pub fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|file| is_same(file, path))
    }

    /// The format of one of them.
    fn format_of(&self, source: &Source, path: &Path) -> Result<&'static dyn Format, Error> {
        let found = self.format.or_else(|| source.recognize(&path_hints(path)).map(|found| found.format));
        found.ok_or_else(|| Error::about(path, Problem::NoFormat))
    }

    /// Finds what a redactor would mask in them.
    pub fn find_secrets(&self, redactor: &Redactor) -> Result<(RedactionReport, KnownSecrets), Error> {
        let (mut report, mut known) = (RedactionReport::default(), KnownSecrets::default());
        for path in &self.files {
            let mut source = Source::open(path, Passes::Many)?;
            let format = self.format_of(&source, path)?;
            let found = source.find_secrets(format, redactor, &mut |_, _| {})?;
            report.merge(&found.0);
            known.extend(found.1);
        }
        Ok((report, known))
    }

    /// Private copies of them with their secrets masked, and what was masked.
    pub fn redacted(&self, redactor: &Redactor) -> Result<(RecordingParts, RedactionReport), Error> {
        let folder =
            tempfile::tempdir().map_err(|error| Error::from_system(&Place::Temporary, Problem::Unwritable, error))?;
        let above = common_folder(&self.files);
        let (mut files, mut report) = (Vec::new(), RedactionReport::default());
        for path in &self.files {
            let mut source = Source::open(path, Passes::Many)?;
            let format = self.format_of(&source, path)?;
            let copy = folder.path().join(path.strip_prefix(&above).unwrap_or(path));
            create_folder_durably(&Disk, folder_of(&copy))
                .map_err(|error| Error::at(&copy, Problem::Unwritable, error))?;
            let mut out = NewFile::options().mode(FileMode::PRIVATE).create(&copy, [])?;
            report.merge(&redact_into(&mut source, format, redactor, &mut out)?);
            out.commit()?;
            files.push(copy);
        }
        Ok((RecordingParts { files, format: self.format, form: self.form, _copies: Some(folder) }, report))
    }

    /// The files as one source, at the place of the last one; `None` if they are not simply consecutive.
    pub fn joined(&self) -> Result<Option<Source>, Error> {
        let Some(last) = self.files.last().filter(|_| self.form == PartsForm::Consecutive) else { return Ok(None) };
        let place = Place::Path(last.clone());
        let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
        let mut joined = Spool::new()?;
        for path in &self.files {
            let mut source = Source::open(path, Passes::Once)?;
            io::copy(&mut source.pass()?, &mut joined).map_err(unreadable)?;
            // The last record of a file need not end with a newline.
            joined.write_all(b"\n").map_err(unreadable)?;
        }
        Source::of_content(last, joined).map(Some)
    }

    /// Those that are among these paths; `None` if there are none.
    pub(crate) fn only(mut self, paths: &[&Path]) -> Option<RecordingParts> {
        self.files.retain(|file| paths.contains(&file.as_path()));
        Some(self).filter(|parts| !parts.files.is_empty())
    }

    /// Their format, if the layout determines it.
    pub fn format(&self) -> Option<&'static dyn Format> {
        self.format
    }
}

/// The deepest folder that all files are in.
fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut above = files.first().map(|file| folder_of(file).to_owned()).unwrap_or_default();
    while !files.iter().all(|file| file.starts_with(&above)) && above.pop() {}
    above
}

/// Reads them as one conversation. Equal events in two sibling folders both count, and so do events of a journal whose document
/// is not among the files.
pub fn read(parts: &RecordingParts, sink: &mut dyn Sink) -> Result<(), Error> {
    read_numbered(parts, sink).map(drop)
}

/// The same, and also returns the number in the conversation for each event of each file.
pub(crate) fn read_numbered(parts: &RecordingParts, sink: &mut dyn Sink) -> Result<EventNumbers, Error> {
    let alone = |path: &Path| {
        let journal = path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION);
        let document = path.with_extension("");
        journal && document.extension().is_some() && !parts.files.contains(&document)
    };
    let near = |one: &Path, next: &Path| match (one.parent(), next.parent()) {
        (Some(one), Some(next)) => one.starts_with(next) || next.starts_with(one),
        _ => false,
    };
    let together = |one: &PathBuf, next: &PathBuf| near(one, next) && !alone(one) && !alone(next);
    let mut numbers = EventNumbers::default();
    for files in parts.files.chunk_by(together) {
        conversation(files, parts.format, sink, &mut numbers)?;
    }
    Ok(numbers)
}

fn conversation(
    parts: &[PathBuf],
    format: Option<&'static dyn Format>,
    sink: &mut dyn Sink,
    numbers: &mut EventNumbers,
) -> Result<(), Error> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let mut recorded: Vec<Recording> = Vec::new();
    let mut documents: Vec<&PathBuf> = Vec::new();
    for path in parts {
        let found = match path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION) {
            true => journal::recordings(&files, path)?,
            false => Vec::new(),
        };
        if found.is_empty() {
            documents.push(path);
        }
        recorded.extend(found);
    }
    if recorded.is_empty() {
        let mut once = OncePerId::new(format, sink, numbers.given);
        for path in documents {
            let places = once.document(path)?;
            numbers.add_document(path, places);
        }
        numbers.given = once.given;
        return Ok(());
    }
    let (mut document_events, mut since, mut places) = (Collected::default(), Vec::new(), Vec::new());
    let mut before = HashMap::new();
    for path in documents {
        let given = document_events.events.len() as u64;
        let mut once = OncePerId { before, ..OncePerId::new(format, &mut document_events, given) };
        places.push((path, once.document(path)?));
        before = once.before;
        let base = base(path, &recorded);
        let news = document_events.events.iter().enumerate().skip(since.len());
        let news = news.map(|(at, event)| event.at.is_none_or(|span| span.offset >= base).then_some(at));
        since.extend(news.collect::<Vec<_>>());
    }
    let (mut journal_events, mut journal_positions): (Vec<Event<'static>>, Vec<(&Path, u64)>) =
        (Vec::new(), Vec::new());
    for recorded in &recorded {
        recorded.read_numbered(&mut |number, event| {
            journal_events.push(event.clone().into_owned());
            journal_positions.push((&recorded.journal, number));
        })?;
    }
    let since: Vec<usize> = since.into_iter().flatten().collect();
    let merged = Merged::of(&document_events.events, &since, &journal_events);
    merged.each(&document_events.events, &journal_events, &mut |event| sink.event(event));
    numbers.add_merged(&merged, places, &journal_positions);
    document_events.notes.into_iter().for_each(|note| sink.note(note));
    Ok(())
}

/// The length of a document before the recordings in the journals.
fn base(path: &Path, recorded: &[Recording]) -> u64 {
    let lengths = recorded.iter().flat_map(|recorded| {
        let is_here = |name: &str| recorded.document(name) == path;
        recorded.header.documents.iter().filter(move |(name, _)| is_here(name)).map(|(_, length)| *length)
    });
    lengths.min().unwrap_or(0)
}

/// An event of a document or of a journal, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MergedEvent {
    Document(usize),
    Journal(usize),
}

/// The events of documents and journals as one conversation.
struct Merged {
    /// The events to give, in order.
    order: Vec<MergedEvent>,
    /// The events of documents that are also in a journal, and their number there.
    twins: HashMap<usize, usize>,
}

impl Merged {
    /// Merges both in order: an event that only one side has keeps its place.
    fn of(document_events: &[Event<'static>], since: &[usize], journal_events: &[Event<'static>]) -> Merged {
        let twins = match_journal(document_events, since, journal_events);
        let (mut order, mut next) = (Vec::new(), 0);
        let shared: HashSet<usize> = twins.values().copied().collect();
        for (at, event) in document_events.iter().enumerate() {
            match twins.get(&at).copied() {
                None => {
                    // An event that only the journal has comes first if its time is earlier.
                    let earlier = journal_events.iter().enumerate().skip(next);
                    let earlier = earlier
                        .take_while(|(at, journal_events)| !shared.contains(at) && is_before(journal_events, event));
                    let until = next + earlier.count();
                    order.extend((next..until).map(MergedEvent::Journal));
                    next = until;
                    order.push(MergedEvent::Document(at));
                }
                // The journal is in order: everything before the twin comes first.
                Some(twin) if twin >= next => {
                    order.extend((next..=twin).map(MergedEvent::Journal));
                    next = twin + 1;
                }
                Some(_) => {}
            }
        }
        order.extend((next..journal_events.len()).map(MergedEvent::Journal));
        Merged { order, twins }
    }

    /// Passes each event to `give`.
    fn each(
        &self,
        document_events: &[Event<'static>],
        journal_events: &[Event<'static>],
        give: &mut dyn FnMut(&Event<'_>),
    ) {
        let event = |merged: &MergedEvent| match merged {
            MergedEvent::Document(at) => document_events.get(*at),
            MergedEvent::Journal(at) => journal_events.get(*at),
        };
        self.order.iter().filter_map(event).for_each(give);
    }
}

/// Whether one event came before another, to the second: some systems have no finer times.
fn is_before(one: &Event<'_>, other: &Event<'_>) -> bool {
    let seconds = |event: &Event<'_>| event.time.as_ref().and_then(stenograph::time::Time::to_seconds);
    matches!((seconds(one), seconds(other)), (Some(one), Some(other)) if one <= other)
}

/// The number in the journal of each document event that is there: by id if both have one, otherwise by content. Content is
/// compared only for events added since the recordings began, even if earlier ones look the same.
fn match_journal(
    document_events: &[Event<'static>],
    since: &[usize],
    journal_events: &[Event<'static>],
) -> HashMap<usize, usize> {
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (at, event) in journal_events.iter().enumerate() {
        if let Some(id) = event.id.as_deref() {
            ids.entry(id).or_insert(at);
        }
    }
    let is_edited = |at: usize, twin: usize| {
        document_events.get(at).zip(journal_events.get(twin)).is_some_and(|(one, other)| is_edit(one, other))
    };
    let by_id =
        document_events.iter().enumerate().filter_map(|(at, event)| Some((at, *ids.get(event.id.as_deref()?)?)));
    let anchors: Vec<(usize, usize)> = by_id.collect();
    let unedited = anchors.iter().copied().filter(|(at, twin)| !is_edited(*at, *twin));
    let mut matched: HashMap<usize, usize> = unedited.collect();
    let claimed: HashSet<usize> = matched.values().copied().collect();
    // Events with an id on both sides are fixed; content is compared only between such positions.
    let (mut first, mut next) = (0, 0);
    for (at, twin) in anchors.into_iter().chain([(document_events.len(), journal_events.len())]) {
        if twin < next {
            continue;
        }
        let place = |end: usize| since.partition_point(|place| *place < end);
        let places = since.get(place(first)..place(at)).unwrap_or_default();
        let news: Vec<Event<'static>> =
            places.iter().filter_map(|place| document_events.get(*place)).cloned().collect();
        for (place, by_words) in
            places.iter().copied().zip(twins(&news, journal_events.get(next..twin).unwrap_or_default()))
        {
            let twin = by_words.map(|by_words| next + by_words).filter(|twin| !claimed.contains(twin));
            if let Some(twin) = twin.filter(|twin| !is_edited(place, *twin)) {
                matched.entry(place).or_insert(twin);
            }
        }
        (first, next) = (at + 1, twin + 1);
    }
    matched
}

/// Whether a user changed a message of a document since it was recorded: then both versions count. A format for people cuts and
/// joins texts by itself, which is not an edit.
fn is_edit(document_event: &Event<'static>, journal_event: &Event<'static>) -> bool {
    let (Body::Message { role, content }, Body::Message { role: kept_role, content: kept_content }) =
        (&document_event.body, &journal_event.body)
    else {
        return false;
    };
    let is_for_people = document_event.extra.known().any(|(info, _)| info.traits.lossy);
    let words = |content: &Content<'_>| content.joined().decode().trim().to_owned();
    !is_for_people && role == kept_role && words(content) != words(kept_content)
}

/// Gives an event once that several documents have under one id, such as an archive and a window.
struct OncePerId<'s> {
    format: Option<&'static dyn Format>,
    sink: &'s mut dyn Sink,
    /// The events of earlier documents, with their numbers.
    before: HashMap<u64, u64>,
    here: Vec<(u64, u64)>,
    /// The number of the next event to give.
    given: u64,
    /// For each event of this document its number among those given.
    places: Vec<u64>,
}

impl<'s> OncePerId<'s> {
    fn new(format: Option<&'static dyn Format>, sink: &'s mut dyn Sink, given: u64) -> OncePerId<'s> {
        OncePerId { format, sink, before: HashMap::new(), here: Vec::new(), given, places: Vec::new() }
    }

    /// Reads a document. Returns for each of its events the number among those given.
    fn document(&mut self, path: &Path) -> Result<Vec<u64>, Error> {
        // A journal without events is not a document of the layout.
        let journal = path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION);
        document(path, self.format.filter(|_| !journal), self)?;
        self.before.extend(self.here.drain(..));
        Ok(std::mem::take(&mut self.places))
    }
}

impl Sink for OncePerId<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(id) = &event.id {
            let mut fingerprint = DefaultHasher::new();
            let content = event.content().map(|content| content.joined().wtf8().into_owned());
            (id, event.part.index, event.kind(), content).hash(&mut fingerprint);
            if let Some(number) = self.before.get(&fingerprint.finish()) {
                self.places.push(*number);
                return;
            }
            self.here.push((fingerprint.finish(), self.given));
        }
        self.places.push(self.given);
        self.given += 1;
        self.sink.event(event);
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

/// Reads one file. A file of unknown format is not part of a conversation.
fn document(path: &Path, format: Option<&'static dyn Format>, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut source = Source::open(path, Passes::Once)?;
    let recognized = || source.recognize(&path_hints(path)).map(|recognized| recognized.format);
    let Some(format) = format.or_else(recognized) else { return Ok(()) };
    let mut reading = Reading::new(format, Wanted::All);
    let mut pass = source.pass()?;
    reading.feed_all(&mut pass, sink).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    reading.end(sink);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::{Body, Content, Role};

    fn message(text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role: Role::User, content: Content::text(text) })
    }

    fn thought(text: &'static str) -> Event<'static> {
        Event::new(Body::Thinking { content: Content::text(text) })
    }

    /// The merged events.
    fn merged<'e>(
        documents: &'e [Event<'static>],
        since: &[usize],
        journal: &'e [Event<'static>],
        word: impl Fn(&Event<'_>) -> String,
    ) -> Vec<String> {
        let mut given = Vec::new();
        Merged::of(documents, since, journal).each(documents, journal, &mut |event| given.push(word(event)));
        given
    }

    fn text(event: &Event<'_>) -> String {
        event.content().unwrap().joined().decode().into_owned()
    }

    #[test]
    fn an_event_that_only_the_journal_has_keeps_its_place() {
        let documents = [message("before"), message("one"), message("two"), message("later")];
        let journal = [message("one"), thought("hm"), message("two"), thought("aha")];
        assert_eq!(merged(&documents, &[0, 1, 2, 3], &journal, text), ["before", "one", "hm", "two", "later", "aha"]);
    }

    #[test]
    fn earlier_content_of_a_document_is_not_matched_with_recorded_events() {
        let (documents, journal) = ([message("ask 1"), message("ask 2")], [message("ask 3"), message("ask 4")]);
        assert_eq!(merged(&documents, &[], &journal, text), ["ask 1", "ask 2", "ask 3", "ask 4"]);
    }

    #[test]
    fn later_events_follow_events_that_only_the_journal_has() {
        let at = |seconds: &'static str, event: Event<'static>| Event {
            time: stenograph::time::Time::number(seconds.into(), stenograph::time::TimeUnit::Seconds),
            ..event
        };
        let documents = [at("1", message("before")), at("5", message("one")), at("9", message("cleared"))];
        let journal = [at("5.1", message("one")), at("5.2", thought("aha"))];
        assert_eq!(merged(&documents, &[0, 1, 2], &journal, text), ["before", "one", "aha", "cleared"]);
    }

    #[test]
    fn the_same_words_under_another_id_are_another_event() {
        let with = |id: &'static str| Event { id: Some(id.into()), ..message("yes") };
        let id = |event: &Event<'_>| event.id.clone().unwrap().into_owned();
        assert_eq!(merged(&[with("1"), with("2")], &[0, 1], &[with("2")], id), ["1", "2"]);
    }

    #[test]
    fn the_same_conversation_twice_is_not_mixed_up() {
        let with = |id: &'static str, text| Event { id: Some(id.into()), ..message(text) };
        let documents = [with("1", "look"), with("2", "ls"), with("r", "look"), with("r-1", "ls")];
        let journal = [with("r", "look"), with("r", "ls")];
        assert_eq!(merged(&documents, &[0, 1, 2, 3], &journal, text), ["look", "ls", "look", "ls"]);
    }

    #[test]
    fn an_event_in_an_archive_and_in_a_window_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str, text: &str| {
            format!("{{\"v\":1,\"kind\":\"message\",\"id\":\"{id}\",\"role\":\"user\",\"content\":\"{text}\"}}\n")
        };
        let paths = [folder.path().join("a"), folder.path().join("b")];
        std::fs::write(&paths[0], line("1", "x") + &line("2", "y") + &line("2", "y")).unwrap();
        std::fs::write(&paths[1], line("2", "y") + &line("1", "z") + &line("3", "y")).unwrap();
        let mut found = Collected::default();
        let numbers = read_numbered(
            &RecordingParts { files: paths.to_vec(), format: None, form: PartsForm::Overlapping, _copies: None },
            &mut found,
        )
        .unwrap();
        let ids: Vec<&str> = found.events.iter().filter_map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, ["1", "2", "2", "1", "3"]);
        let number = |path: usize, event| numbers.of(&paths[path], event);
        assert_eq!([0, 1, 2, 3].map(|event| number(0, event)), [Some(0), Some(1), Some(2), None]);
        assert_eq!([0, 1, 2].map(|event| number(1, event)), [Some(2), Some(3), Some(4)]);
    }
}
