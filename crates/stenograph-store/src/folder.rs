//! Reading what a live system spread over several files as one conversation: its documents in order, and the journals beside them,
//! which say more. An event that stands in a document and in a journal is given once, in the journal's words.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Detected, Want, detect};
use stenograph::loss::twins;
use stenograph::model::Event;
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

/// Reads them as one conversation.
pub fn read(parts: &[PathBuf], sink: &mut dyn Sink) -> Result<(), Error> {
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
        return documents.into_iter().try_for_each(|path| document(path, sink));
    }
    let mut said = Collected::default();
    documents.into_iter().try_for_each(|path| document(path, &mut said))?;
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
    for (event, twin) in said.iter().zip(twins(said, kept)) {
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
}
