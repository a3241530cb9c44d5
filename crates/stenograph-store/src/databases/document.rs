//! Conversations in one JSON document: the items of the list that `FormatInfo::document` describes. The document is only read, and
//! one item at a time is in memory.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stenograph::format::Head;
use stenograph::formats::FORMATS;
use stenograph::frame::{Frame, Framer, Framing, Items, RecordPlace};
use stenograph::json::Object;
use stenograph::model::{DocumentMembers, Span};
use xxhash_rust::xxh3::xxh3_64;

use super::{DatabaseConversation, changed_ns};
use crate::discover::Stat;
use crate::error::{Error, Problem};
use crate::output::Spool;

/// The largest item. The largest samples of evaluations have some ten megabytes.
const ITEM_SIZE_MAX: usize = 256 << 20;

/// How many bytes are read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// A document with conversations.
pub(super) struct Document {
    path: PathBuf,
    file: File,
    conversations: Arc<Vec<Item>>,
    changed_ms: i64,
}

/// The items of the last document: its conversations are opened one after the other.
static LAST: Mutex<Option<KnownDocument>> = Mutex::new(None);

/// A document as it was when its items were found.
struct KnownDocument {
    path: PathBuf,
    stat: Stat,
    items: Arc<Vec<Item>>,
}

/// An item that is a conversation.
struct Item {
    name: String,
    at: Span,
    hash: u64,
}

/// What describes the conversations of an open document; `None` if it has none.
pub(super) fn members(path: &Path, file: &mut File) -> Option<DocumentMembers> {
    if path.extension().is_none_or(|ending| ending != super::DOCUMENT_EXTENSION) || !super::begins_with(file, b"{") {
        return None;
    }
    let mut head = Vec::new();
    let read = file.take(Head::SIZE_MAX as u64).read_to_end(&mut head).and_then(|_| file.rewind());
    let head = Head::new(&head);
    let document = read.ok().and_then(|()| head.document())?;
    let described = FORMATS.iter().filter_map(|format| format.info().document);
    described.into_iter().find(|members| members.marks.iter().all(|key| document.has(key)))
}

impl Document {
    /// Finds the conversations of a document.
    pub fn open(path: &Path, mut file: File, members: &DocumentMembers) -> Result<Document, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let stat = Stat::of(path).map_err(unreadable)?;
        let changed_ms = stat.modified_ns / 1_000_000;
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.path == path && known.stat == stat) {
            return Ok(Document { path: path.to_owned(), file, conversations: known.items.clone(), changed_ms });
        }
        let mut framer = Framer::new(Framing::Items(Items::Array(members.list)), ITEM_SIZE_MAX);
        let (mut conversations, mut large): (Vec<Item>, bool) = (Vec::new(), false);
        let mut each = |frame: Frame<'_>| match frame {
            Frame::Record(record) if record.place == RecordPlace::Item => {
                let text = String::from_utf8_lossy(record.bytes);
                let object = Object::parse(&text);
                let words = object.map(|object| members.name.map(|key| word(&object, key)));
                let name = words.map(|words| words.join(members.between)).unwrap_or_default();
                conversations.push(Item { name, at: record.at, hash: xxh3_64(record.bytes) });
            }
            Frame::Record(_) => {}
            Frame::Oversize(_) => large = true,
        };
        let mut chunk = vec![0; CHUNK_SIZE];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(size) => framer.feed(chunk.get(..size).unwrap_or_default(), &mut each),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        framer.end(&mut each);
        if large {
            return Err(Error::about(path, Problem::LargeConversation));
        }
        let mut names = HashSet::new();
        if !conversations.iter().all(|item| names.insert(item.name.as_str())) {
            return Err(Error::about(path, Problem::AmbiguousConversations));
        }
        let conversations = Arc::new(conversations);
        *last = Some(KnownDocument { path: path.to_owned(), stat, items: conversations.clone() });
        Ok(Document { path: path.to_owned(), file, conversations, changed_ms })
    }

    /// The conversations.
    pub fn conversations(&self) -> impl Iterator<Item = DatabaseConversation> {
        self.conversations.iter().map(|item| DatabaseConversation {
            name: item.name.clone(),
            title: None,
            changed_ns: changed_ns(self.changed_ms, &item.hash.to_le_bytes()),
            size: item.at.length,
        })
    }

    /// Writes the bytes of a conversation. Nothing is written if the document does not have it.
    pub fn copy(&self, name: &str, to: &mut Spool) -> Result<(), Error> {
        let Some(item) = self.conversations.iter().find(|item| item.name == name) else { return Ok(()) };
        let unreadable = |error| Error::at(&self.path, Problem::Unreadable, error);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(item.at.offset)).map_err(unreadable)?;
        io::copy(&mut file.take(item.at.length), to).map_err(|error| match error.downcast::<Error>() {
            Ok(inside) => inside,
            Err(error) => unreadable(error),
        })?;
        Ok(())
    }
}

/// A text or a number.
fn word(object: &Object<'_>, key: &str) -> String {
    let text = object.peek_str(key).map(std::borrow::Cow::into_owned);
    text.or_else(|| object.peek(key).map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::{conversation_path, conversations};
    use crate::{Passes, Source};

    const SAMPLE: &str = r#"{"id": "a/b", "epoch": 1, "input": "Why?", "target": "", "messages": []}"#;

    fn log(samples: &[&str]) -> String {
        format!(
            "{{\n \"version\": 2, \"status\": \"success\", \"eval\": {{}},\n \"samples\": [\n{}\n ]\n}}",
            samples.join(",\n")
        )
    }

    #[test]
    fn the_samples_of_a_log_are_conversations() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.json");
        let other = SAMPLE.replace("\"a/b\"", "7").replace("Why?", "How?");
        std::fs::write(&path, log(&[SAMPLE, &other])).unwrap();
        let found = conversations(&path).unwrap().unwrap();
        let mut names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["7_epoch_1", "a/b_epoch_1"]);
        for (name, content) in [("a/b_epoch_1", SAMPLE), ("7_epoch_1", other.as_str())] {
            let mut source = Source::open(&conversation_path(&path, name), Passes::Once).unwrap();
            assert_eq!(source.read_whole(1 << 20).unwrap(), content.as_bytes());
        }
    }

    #[test]
    fn samples_of_one_name_are_reported_and_other_documents_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.json");
        std::fs::write(&path, log(&[SAMPLE, SAMPLE])).unwrap();
        assert_eq!(conversations(&path).unwrap_err().problem, Problem::AmbiguousConversations);
        std::fs::write(&path, SAMPLE).unwrap();
        assert!(conversations(&path).unwrap().is_none());
    }
}
