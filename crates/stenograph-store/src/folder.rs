//! Reading what a live system spread over several files as one conversation: its documents in order, and the journals beside them,
//! which say more. An event that stands in a document and in a journal is given once, in the journal's words.

mod numbers;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Want};
use stenograph::loss::twins;
use stenograph::model::{Body, Content, Event, Note};
use stenograph::read::{Collected, Reading, Sink};

use crate::discover::place_of;
use crate::error::{Error, Problem};
use crate::files::{Disk, Files};
use crate::journal::{self, Recorded};
use crate::layouts::LAYOUTS;
use crate::recover;
use crate::source::{Passes, Source};

pub use numbers::EventNumbers;

/// The files that make up what is recorded somewhere.
#[derive(Debug)]
pub struct Parts {
    files: Vec<PathBuf>,
    /// Their format, where the layout says it.
    format: Option<&'static dyn Format>,
}

/// The files that make up what is recorded at this path: those of a folder some layout knows, or a file and the journal beside it.
/// Nothing when it is just a file, or no layout knows the folder.
pub fn parts(path: &Path) -> Option<Parts> {
    if path.is_dir() {
        return LAYOUTS.iter().find_map(|layout| {
            let files = layout.reads(path, &Disk).filter(|found| !found.is_empty())?;
            Some(Parts { files, format: layout.format() })
        });
    }
    let journal = recover::beside(path);
    (path.is_file() && journal.is_file()).then(|| Parts { files: vec![path.to_owned(), journal], format: None })
}

/// The file by which a recording is named that this file is a part of, and all parts of the recording: that of a journal is the document
/// beside it. Nothing when it is just a file.
pub fn recording_of(path: &Path) -> Option<(PathBuf, Parts)> {
    let document = path.with_extension("");
    let is_beside = recover::beside(&document) == path;
    let name = if is_beside { document } else { path.to_owned() };
    parts(&name).map(|parts| (name, parts))
}

impl Parts {
    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether one of them is the file of that path, under whatever name.
    pub fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|file| crate::identity::is_same(file, path))
    }

    /// Those of them that are among these; nothing when there are none.
    pub(crate) fn only(mut self, paths: &[&Path]) -> Option<Parts> {
        self.files.retain(|file| paths.contains(&file.as_path()));
        Some(self).filter(|parts| !parts.files.is_empty())
    }

    /// Their format, where the layout says it.
    pub fn format(&self) -> Option<&'static dyn Format> {
        self.format
    }
}

/// Reads them as one conversation. What was said twice in two folders side by side was said twice, and so was what stands in a
/// journal that is named after a document which is not among the files.
pub fn read(parts: &Parts, sink: &mut dyn Sink) -> Result<(), Error> {
    read_numbered(parts, sink).map(drop)
}

/// The same, and which number in the conversation each event of each file has.
pub fn read_numbered(parts: &Parts, sink: &mut dyn Sink) -> Result<EventNumbers, Error> {
    let alone = |path: &Path| {
        let journal = path.extension().is_some_and(|ending| ending == recover::ENDING);
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
    let mut recorded: Vec<Recorded> = Vec::new();
    let mut documents: Vec<&PathBuf> = Vec::new();
    for path in parts {
        let found = match path.extension().is_some_and(|ending| ending == recover::ENDING) {
            true => journal::recordings(&files, path)?,
            false => Vec::new(),
        };
        if found.is_empty() {
            documents.push(path);
        }
        recorded.extend(found);
    }
    if recorded.is_empty() {
        let mut once = Once::new(format, sink, numbers.given);
        for path in documents {
            let places = once.document(path)?;
            numbers.add_document(path, places);
        }
        numbers.given = once.given;
        return Ok(());
    }
    let (mut said, mut since, mut places) = (Collected::default(), Vec::new(), Vec::new());
    let mut before = HashMap::new();
    for path in documents {
        let given = said.events.len() as u64;
        let mut once = Once { before, ..Once::new(format, &mut said, given) };
        places.push((path, once.document(path)?));
        before = once.before;
        let base = base(path, &recorded);
        let news = said.events.iter().enumerate().skip(since.len());
        let news = news.map(|(at, event)| event.at.is_none_or(|span| span.offset >= base).then_some(at));
        since.extend(news.collect::<Vec<_>>());
    }
    let (mut kept, mut kept_at): (Vec<Event<'static>>, Vec<(&Path, u64)>) = (Vec::new(), Vec::new());
    for recorded in &recorded {
        recorded.read_numbered(&mut |number, event| {
            kept.push(event.clone().into_owned());
            kept_at.push((&recorded.journal, number));
        })?;
    }
    let since: Vec<usize> = since.into_iter().flatten().collect();
    let merged = Merged::of(&said.events, &since, &kept);
    merged.each(&said.events, &kept, &mut |event| sink.event(event));
    numbers.add_merged(&merged, places, &kept_at);
    said.notes.into_iter().for_each(|note| sink.note(note));
    Ok(())
}

/// How long a document was before the recordings in the journals.
fn base(path: &Path, recorded: &[Recorded]) -> u64 {
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
    /// What is given, in order.
    order: Vec<MergedEvent>,
    /// The events of documents that stand in a journal too, and where.
    twins: HashMap<usize, usize>,
}

impl Merged {
    /// Both in order: what only one of them has stands where it stood there.
    fn of(said: &[Event<'static>], since: &[usize], kept: &[Event<'static>]) -> Merged {
        let twins = same(said, since, kept);
        let (mut order, mut next) = (Vec::new(), 0);
        let shared: HashSet<usize> = twins.values().copied().collect();
        for (at, event) in said.iter().enumerate() {
            match twins.get(&at).copied() {
                None => {
                    // What only the journal has was there before it, if the clock says so.
                    let earlier = kept.iter().enumerate().skip(next);
                    let earlier = earlier.take_while(|(at, kept)| !shared.contains(at) && is_before(kept, event));
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
        order.extend((next..kept.len()).map(MergedEvent::Journal));
        Merged { order, twins }
    }

    /// Gives each event.
    fn each(&self, said: &[Event<'static>], kept: &[Event<'static>], give: &mut dyn FnMut(&Event<'_>)) {
        let event = |merged: &MergedEvent| match merged {
            MergedEvent::Document(at) => said.get(*at),
            MergedEvent::Journal(at) => kept.get(*at),
        };
        self.order.iter().filter_map(event).for_each(give);
    }
}

/// Whether one event came before another, to the second: some systems count no finer.
fn is_before(one: &Event<'_>, other: &Event<'_>) -> bool {
    let seconds = |event: &Event<'_>| event.time.as_ref().and_then(stenograph::time::Time::to_seconds);
    matches!((seconds(one), seconds(other)), (Some(one), Some(other)) if one <= other)
}

/// The place in the journal of each event of the documents that is there: by its id where both have it, else by what it says. Only
/// what came into the documents since the recordings began can be meant by the latter, however alike the rest looks.
fn same(said: &[Event<'static>], since: &[usize], kept: &[Event<'static>]) -> HashMap<usize, usize> {
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (at, event) in kept.iter().enumerate() {
        if let Some(id) = event.id.as_deref() {
            ids.entry(id).or_insert(at);
        }
    }
    let is_edited =
        |at: usize, twin: usize| said.get(at).zip(kept.get(twin)).is_some_and(|(one, other)| is_edit(one, other));
    let by_id = said.iter().enumerate().filter_map(|(at, event)| Some((at, *ids.get(event.id.as_deref()?)?)));
    let anchors: Vec<(usize, usize)> = by_id.collect();
    let unedited = anchors.iter().copied().filter(|(at, twin)| !is_edited(*at, *twin));
    let mut same: HashMap<usize, usize> = unedited.collect();
    let claimed: HashSet<usize> = same.values().copied().collect();
    // What has an id on both sides is where it is: words are only compared between such places.
    let (mut first, mut next) = (0, 0);
    for (at, twin) in anchors.into_iter().chain([(said.len(), kept.len())]) {
        if twin < next {
            continue;
        }
        let place = |end: usize| since.partition_point(|place| *place < end);
        let places = since.get(place(first)..place(at)).unwrap_or_default();
        let news: Vec<Event<'static>> = places.iter().filter_map(|place| said.get(*place)).cloned().collect();
        for (place, by_words) in places.iter().copied().zip(twins(&news, kept.get(next..twin).unwrap_or_default())) {
            let twin = by_words.map(|by_words| next + by_words).filter(|twin| !claimed.contains(twin));
            if let Some(twin) = twin.filter(|twin| !is_edited(place, *twin)) {
                same.entry(place).or_insert(twin);
            }
        }
        (first, next) = (at + 1, twin + 1);
    }
    same
}

/// Whether somebody changed a message of a document since it was recorded: then both count, for both were said. A format for people cuts
/// and joins texts by itself.
fn is_edit(said: &Event<'static>, kept: &Event<'static>) -> bool {
    let (Body::Message { role, content }, Body::Message { role: kept_role, content: kept_content }) =
        (&said.body, &kept.body)
    else {
        return false;
    };
    let is_for_people = said.extra.known().any(|(info, _)| info.traits.lossy);
    let words = |content: &Content<'_>| content.joined().decode().trim().to_owned();
    !is_for_people && role == kept_role && words(content) != words(kept_content)
}

/// Gives an event once that stands in several documents under one id, as an archive and a window may have it.
struct Once<'s> {
    format: Option<&'static dyn Format>,
    sink: &'s mut dyn Sink,
    /// What the documents before this one gave, with its number.
    before: HashMap<u64, u64>,
    here: Vec<(u64, u64)>,
    /// The number of the next event that is given.
    given: u64,
    /// For each event of this document its number among those that were given.
    places: Vec<u64>,
}

impl<'s> Once<'s> {
    fn new(format: Option<&'static dyn Format>, sink: &'s mut dyn Sink, given: u64) -> Once<'s> {
        Once { format, sink, before: HashMap::new(), here: Vec::new(), given, places: Vec::new() }
    }

    /// Reads a document, and says for each event of it which number it has among those that are given.
    fn document(&mut self, path: &Path) -> Result<Vec<u64>, Error> {
        // A journal that says nothing yet is no document of the layout.
        let journal = path.extension().is_some_and(|ending| ending == recover::ENDING);
        document(path, self.format.filter(|_| !journal), self)?;
        self.before.extend(self.here.drain(..));
        Ok(std::mem::take(&mut self.places))
    }
}

impl Sink for Once<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(id) = &event.id {
            let mut print = DefaultHasher::new();
            let content = event.content().map(|content| content.joined().wtf8().into_owned());
            (id, event.part.index, event.kind(), content).hash(&mut print);
            if let Some(number) = self.before.get(&print.finish()) {
                self.places.push(*number);
                return;
            }
            self.here.push((print.finish(), self.given));
        }
        self.places.push(self.given);
        self.given += 1;
        self.sink.event(event);
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

/// Reads one file. What nobody knows is no part of a conversation.
fn document(path: &Path, format: Option<&'static dyn Format>, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut source = Source::open(path, Passes::Once)?;
    let recognized = || source.recognize(&place_of(path)).map(|recognized| recognized.format);
    let Some(format) = format.or_else(recognized) else { return Ok(()) };
    let mut reading = Reading::new(format, Want::All);
    let mut pass = source.pass()?;
    reading.feed_all(&mut pass, sink).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    reading.end(sink);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::{Body, Content, Role};

    fn said(text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role: Role::User, content: Content::text(text) })
    }

    fn thought(text: &'static str) -> Event<'static> {
        Event::new(Body::Thinking { content: Content::text(text) })
    }

    /// What is given of documents and journals.
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
    fn what_a_document_cannot_say_stands_where_the_journal_has_it() {
        let documents = [said("before"), said("one"), said("two"), said("later")];
        let journal = [said("one"), thought("hm"), said("two"), thought("aha")];
        assert_eq!(merged(&documents, &[0, 1, 2, 3], &journal, text), ["before", "one", "hm", "two", "later", "aha"]);
    }

    #[test]
    fn what_a_document_held_before_is_not_taken_for_what_was_recorded() {
        let (documents, journal) = ([said("ask 1"), said("ask 2")], [said("ask 3"), said("ask 4")]);
        assert_eq!(merged(&documents, &[], &journal, text), ["ask 1", "ask 2", "ask 3", "ask 4"]);
    }

    #[test]
    fn what_came_later_stands_after_what_only_the_journal_has() {
        let at = |seconds: &'static str, event: Event<'static>| Event {
            time: stenograph::time::Time::number(seconds.into(), stenograph::time::TimeUnit::Seconds),
            ..event
        };
        let documents = [at("1", said("before")), at("5", said("one")), at("9", said("cleared"))];
        let journal = [at("5.1", said("one")), at("5.2", thought("aha"))];
        assert_eq!(merged(&documents, &[0, 1, 2], &journal, text), ["before", "one", "aha", "cleared"]);
    }

    #[test]
    fn the_same_words_under_another_id_are_another_event() {
        let with = |id: &'static str| Event { id: Some(id.into()), ..said("yes") };
        let id = |event: &Event<'_>| event.id.clone().unwrap().into_owned();
        assert_eq!(merged(&[with("1"), with("2")], &[0, 1], &[with("2")], id), ["1", "2"]);
    }

    #[test]
    fn the_same_conversation_twice_is_not_mixed_up() {
        let with = |id: &'static str, text| Event { id: Some(id.into()), ..said(text) };
        let documents = [with("1", "look"), with("2", "ls"), with("r", "look"), with("r-1", "ls")];
        let journal = [with("r", "look"), with("r", "ls")];
        assert_eq!(merged(&documents, &[0, 1, 2, 3], &journal, text), ["look", "ls", "look", "ls"]);
    }

    #[test]
    fn what_stands_in_an_archive_and_in_a_window_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str, text: &str| {
            format!("{{\"v\":1,\"kind\":\"message\",\"id\":\"{id}\",\"role\":\"user\",\"content\":\"{text}\"}}\n")
        };
        let paths = [folder.path().join("a"), folder.path().join("b")];
        std::fs::write(&paths[0], line("1", "x") + &line("2", "y") + &line("2", "y")).unwrap();
        std::fs::write(&paths[1], line("2", "y") + &line("1", "z") + &line("3", "y")).unwrap();
        let mut found = Collected::default();
        let numbers = read_numbered(&Parts { files: paths.to_vec(), format: None }, &mut found).unwrap();
        let ids: Vec<&str> = found.events.iter().filter_map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, ["1", "2", "2", "1", "3"]);
        let number = |path: usize, event| numbers.of(&paths[path], event);
        assert_eq!([0, 1, 2, 3].map(|event| number(0, event)), [Some(0), Some(1), Some(2), None]);
        assert_eq!([0, 1, 2].map(|event| number(1, event)), [Some(2), Some(3), Some(4)]);
    }
}
