//! Reading what a live system spread over several files as one conversation: its documents in order, and the journals beside them,
//! which say more. An event that stands in a document and in a journal is given once, in the journal's words.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Detected, Want, detect};
use stenograph::loss::twins;
use stenograph::model::{Event, Note};
use stenograph::read::{Collected, Reading, Sink};

use crate::error::{Error, Problem};
use crate::files::{Disk, Files};
use crate::journal::{self, Recorded};
use crate::layouts::LAYOUTS;
use crate::recover;
use crate::source::{Passes, Source};

/// The files that make up what is recorded at this path: those of a folder some layout knows, or a file and the journal beside it.
/// Nothing when it is just a file, or no layout knows the folder.
pub fn parts(path: &Path) -> Option<Vec<PathBuf>> {
    if path.is_dir() {
        return LAYOUTS.iter().find_map(|layout| layout.reads(path, &Disk)).filter(|found| !found.is_empty());
    }
    let journal = recover::beside(path);
    (path.is_file() && journal.is_file()).then(|| vec![path.to_owned(), journal])
}

/// Reads them as one conversation. Each folder is one: what was said twice in two of them was said twice.
pub fn read(parts: &[PathBuf], sink: &mut dyn Sink) -> Result<(), Error> {
    parts.chunk_by(|one, next| is_together(one, next)).try_for_each(|parts| conversation(parts, sink))
}

/// Whether two files belong to one folder: one of them lies where the other does, or below.
fn is_together(one: &Path, next: &Path) -> bool {
    let below = |path: &Path, other: &Path| other.parent().is_some_and(|folder| path.starts_with(folder));
    below(one, next) || below(next, one)
}

fn conversation(parts: &[PathBuf], sink: &mut dyn Sink) -> Result<(), Error> {
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
        let mut once = Once::new(sink);
        return documents.into_iter().try_for_each(|path| once.document(path));
    }
    let mut said = Collected::default();
    let mut once = Once::new(&mut said);
    documents.into_iter().try_for_each(|path| once.document(path))?;
    let mut kept: Vec<Event<'static>> = Vec::new();
    for recorded in &recorded {
        recorded.read(&mut |event| kept.push(event.clone().into_owned()))?;
    }
    merge(&said.events, &kept, &mut |event| sink.event(event));
    said.notes.into_iter().for_each(|note| sink.note(note));
    Ok(())
}

/// Both in order: what only one of them has stands where it stood there.
fn merge(said: &[Event<'static>], kept: &[Event<'static>], give: &mut dyn FnMut(&Event<'_>)) {
    let mut next = 0;
    for (event, twin) in said.iter().zip(same(said, kept)) {
        match twin {
            None => give(event),
            // The journal is in order: everything before the twin comes first.
            Some(twin) if twin >= next => {
                kept.get(next..=twin).unwrap_or_default().iter().for_each(&mut *give);
                next = twin + 1;
            }
            Some(_) => {}
        }
    }
    kept.get(next..).unwrap_or_default().iter().for_each(give);
}

/// For each event of the documents, its place in the journal: by its id where both have it, else by what it says.
fn same(said: &[Event<'static>], kept: &[Event<'static>]) -> Vec<Option<usize>> {
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (at, event) in kept.iter().enumerate() {
        if let Some(id) = event.id.as_deref() {
            ids.entry(id).or_insert(at);
        }
    }
    let by_id: Vec<Option<usize>> =
        said.iter().map(|event| event.id.as_deref().and_then(|id| ids.get(id).copied())).collect();
    let claimed: HashSet<usize> = by_id.iter().copied().flatten().collect();
    let by_words = twins(said, kept).into_iter().map(|twin| twin.filter(|twin| !claimed.contains(twin)));
    by_id.into_iter().zip(by_words).map(|(by_id, by_words)| by_id.or(by_words)).collect()
}

/// Gives an event once that stands in several documents under one id, as an archive and a window may have it.
struct Once<'s> {
    sink: &'s mut dyn Sink,
    /// What the documents before this one gave.
    before: HashSet<u64>,
    here: Vec<u64>,
}

impl<'s> Once<'s> {
    fn new(sink: &'s mut dyn Sink) -> Once<'s> {
        Once { sink, before: HashSet::new(), here: Vec::new() }
    }

    fn document(&mut self, path: &Path) -> Result<(), Error> {
        document(path, self)?;
        self.before.extend(self.here.drain(..));
        Ok(())
    }
}

impl Sink for Once<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(id) = &event.id {
            let mut print = DefaultHasher::new();
            let content = event.content().map(|content| content.joined().wtf8().into_owned());
            (id, event.part.index, event.kind(), content).hash(&mut print);
            if self.before.contains(&print.finish()) {
                return;
            }
            self.here.push(print.finish());
        }
        self.sink.event(event);
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

/// Reads one file. What nobody knows is no part of a conversation.
fn document(path: &Path, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut source = Source::open(path, Passes::Once)?;
    let Detected::Format(format) = detect(source.head()) else { return Ok(()) };
    let mut reading = Reading::new(format, Want::All);
    let mut pass = source.pass()?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match pass.read(&mut buffer).map_err(|error| Error::at(path, Problem::Unreadable, error))? {
            0 => break,
            length => reading.feed(buffer.get(..length).unwrap_or_default(), sink),
        }
    }
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

    #[test]
    fn what_a_document_cannot_say_stands_where_the_journal_has_it() {
        let documents = [said("before"), said("one"), said("two"), said("later")];
        let journal = [said("one"), thought("hm"), said("two"), thought("aha")];
        let mut given = Vec::new();
        merge(&documents, &journal, &mut |event| given.push(event.content().unwrap().joined().decode().into_owned()));
        assert_eq!(given, ["before", "one", "hm", "two", "later", "aha"]);
    }

    #[test]
    fn files_in_folders_below_each_other_are_one_conversation() {
        let together = |one: &str, next: &str| is_together(Path::new(one), Path::new(next));
        assert!(
            together("a/x", "a/y") && together("a/b/c/x", "a/b/x") && together("a/x", "a/b/x") && together("x", "y")
        );
        assert!(!together("a/runs/1/x", "a/runs/2/x"));
    }

    #[test]
    fn the_same_words_under_another_id_are_another_event() {
        let with = |id: &'static str| Event { id: Some(id.into()), ..said("yes") };
        let mut given = Vec::new();
        merge(&[with("1"), with("2")], &[with("2")], &mut |event| given.push(event.id.clone().unwrap().into_owned()));
        assert_eq!(given, ["1", "2"]);
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
        read(&paths, &mut found).unwrap();
        let ids: Vec<&str> = found.events.iter().filter_map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, ["1", "2", "2", "1", "3"]);
    }
}
