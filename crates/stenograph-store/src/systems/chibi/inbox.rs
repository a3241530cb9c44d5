//! The inbox of a context: messages from other contexts. Exactly one reader takes each message, or at least one after a crash:
//! a message is removed only after it was delivered. Everything happens under the lock that Chibi also takes.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::formats::chibi_inbox::ChibiInbox;
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::json::{Draft, Object};

use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, replace};
use crate::layouts::chibi::entry::{self, ContextEntry, EntryStamp};
use crate::layouts::chibi::inbox_lock::InboxLock;
use crate::layouts::chibi::transcript::{SyncTime, append_lines};
use crate::tail::Warning;

/// The format of an inbox.
pub const INBOX_FORMAT: &dyn Format = &ChibiInbox;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// The sender.
    pub from: String,
    /// The text.
    pub content: String,
    /// Its line.
    pub line: String,
}

/// The messages in an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxBatch {
    /// The messages, in order of arrival.
    pub messages: Vec<InboxMessage>,
    /// Whether more wait than are taken at once.
    pub more: bool,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// How many bytes are taken at once.
const MAIL_SIZE_MAX: u64 = 64 << 20;

fn path_in(folder: &Path) -> PathBuf {
    folder.join("inbox.jsonl")
}

fn locked(folder: &Path) -> Result<InboxLock, Error> {
    InboxLock::wait(&folder.join(".inbox.lock"))
}

/// Adds a message and returns when it is on disk.
pub fn send(
    files: &dyn Files,
    folder: &Path,
    (from, to): (&str, &str),
    content: &str,
    stamp: &EntryStamp,
) -> Result<Vec<Warning>, Error> {
    create_folder_durably(files, folder).map_err(|error| Error::at(folder, Problem::Unwritable, error))?;
    let _latch = locked(folder)?;
    append_lines(
        files,
        &path_in(folder),
        &[&ContextEntry::new(line((from, to), content, stamp).as_bytes())],
        SyncTime::Now,
    )
}

/// The line of a message.
pub fn line((from, to): (&str, &str), content: &str, stamp: &EntryStamp) -> String {
    let mut draft = Draft::new();
    draft.set_str("id", &stamp.id);
    draft.set("timestamp", stamp.seconds.to_string());
    draft.set_str("from", from);
    draft.set_str("to", to);
    draft.set_str("content", content);
    draft.render(None)
}

/// Reads the messages and leaves them there.
pub fn peek(files: &dyn Files, folder: &Path) -> Result<InboxBatch, Error> {
    Ok(read(files, folder)?.batch)
}

/// Delivers the messages and removes them once `hand_over` succeeds. If it fails, they stay.
pub fn take<E: From<Error>>(
    files: &dyn Files,
    folder: &Path,
    hand_over: impl FnOnce(&InboxBatch) -> Result<(), E>,
) -> Result<InboxBatch, E> {
    let path = path_in(folder);
    let length = files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
    if length.unwrap_or(0) == 0 {
        return Ok(InboxBatch::default());
    }
    let _latch = locked(folder)?;
    let mut found = read(files, folder)?;
    let aside = found.save_other_lines(files, folder)?;
    found.batch.warnings.extend(aside);
    if !found.batch.messages.is_empty() {
        hand_over(&found.batch)?;
    }
    found.clear(files, &path)?;
    Ok(found.batch)
}

/// The number of waiting messages.
pub fn count(files: &dyn Files, folder: &Path) -> Result<u64, Error> {
    let mut count = 0;
    entry::each(files, &path_in(folder), &mut |entry| {
        count += u64::from(message(&entry.line).is_some());
        Ok(())
    })?;
    Ok(count)
}

/// The messages as Chibi puts them before a prompt.
pub fn block(messages: &[InboxMessage]) -> String {
    let lines: String =
        messages.iter().map(|message| format!("[From: {}] {}\n", message.from, message.content)).collect();
    format!("--- INBOX MESSAGES ---\n{lines}--- END INBOX ---\n\n")
}

/// The content of an inbox.
#[derive(Debug, Default)]
struct InboxContent {
    batch: InboxBatch,
    /// Lines that are not messages.
    other_lines: Vec<ContextEntry>,
    /// The number of bytes read.
    length: u64,
}

fn read(files: &dyn Files, folder: &Path) -> Result<InboxContent, Error> {
    let path = path_in(folder);
    let unreadable = |error| Error::at(&path, Problem::Unreadable, error);
    let mut found = InboxContent::default();
    if files.length(&path).map_err(unreadable)?.is_none() {
        return Ok(found);
    }
    let mut reader = BufReader::new(files.reader(&path, 0).map_err(unreadable)?);
    let mut line = Vec::new();
    while found.length < MAIL_SIZE_MAX {
        line.clear();
        let limit = RECORD_SIZE_MAX as u64;
        let length = reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        if length == 0 {
            return Ok(found);
        }
        if length == limit && !line.ends_with(b"\n") {
            return Err(Error::about(&path, Problem::TooLarge { size_max: limit }));
        }
        found.length += length;
        let bytes = line.trim_ascii();
        match message(bytes) {
            _ if bytes.is_empty() => {}
            Some(message) => found.batch.messages.push(message),
            None => found.other_lines.push(ContextEntry::new(bytes)),
        }
    }
    found.batch.more = !reader.fill_buf().map_err(unreadable)?.is_empty();
    Ok(found)
}

/// Parses a message. Chibi requires all five fields, but delivery needs only these two.
fn message(line: &[u8]) -> Option<InboxMessage> {
    let line = std::str::from_utf8(line).ok()?.trim_start_matches('\u{feff}');
    let mut object = Object::parse(line)?;
    let content = object.take_text("content")?.decode().into_owned();
    let from = object.take_str("from").map_or_else(|| "unknown".to_owned(), Cow::into_owned);
    Some(InboxMessage { from, content, line: line.to_owned() })
}

impl InboxContent {
    /// Saves lines that are not messages in a file beside the inbox. Chibi loses them.
    fn save_other_lines(&self, files: &dyn Files, folder: &Path) -> Result<Vec<Warning>, Error> {
        if self.other_lines.is_empty() {
            return Ok(Vec::new());
        }
        let aside = folder.join("inbox.unread.jsonl");
        // After a crash they may already be there.
        let kept: Vec<Vec<u8>> = entry::all(files, &aside)?.into_iter().map(|entry| entry.line).collect();
        let missing: Vec<&ContextEntry> = self.other_lines.iter().filter(|entry| !kept.contains(&entry.line)).collect();
        let mut warnings = append_lines(files, &aside, &missing, SyncTime::Now)?;
        let (count, noun) = (
            self.other_lines.len(),
            if self.other_lines.len() == 1 { "line is not a message" } else { "lines are not messages" },
        );
        let text = format!("{count} {noun}: saved in {}", aside.display());
        warnings.push(Warning::new(&path_in(folder), text));
        Ok(warnings)
    }

    /// Removes what was read. Lines added without the lock stay.
    fn clear(&self, files: &dyn Files, path: &Path) -> Result<(), Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        let length = files.length(path).map_err(unwritable)?.unwrap_or(0);
        if length > self.length {
            let rest = files.read(path, self.length).map_err(unwritable)?;
            return replace(files, path, &rest).map_err(unwritable);
        }
        if length > 0 {
            let mut file = files.open(path).map_err(unwritable)?;
            file.truncate(0).and_then(|()| file.sync()).map_err(unwritable)?;
            files.sync_folder(folder_of(path)).map_err(unwritable)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    fn sent(folder: &Path, content: &str) {
        let stamp = EntryStamp { id: format!("id of {content}"), seconds: 5 };
        assert_eq!(send(&Disk, folder, ("main", "research"), content, &stamp).unwrap(), []);
    }

    fn contents(batch: &InboxBatch) -> Vec<&str> {
        batch.messages.iter().map(|message| message.content.as_str()).collect()
    }

    #[test]
    fn a_message_is_sent_looked_at_and_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("new");
        sent(folder, "one");
        sent(folder, "two\nlines");
        let line = std::fs::read_to_string(folder.join("inbox.jsonl")).unwrap();
        let first =
            "{\"id\":\"id of one\",\"timestamp\":5,\"from\":\"main\",\"to\":\"research\",\"content\":\"one\"}\n";
        assert!(line.starts_with(first), "{line}");
        assert_eq!(contents(&peek(&Disk, folder).unwrap()), ["one", "two\nlines"]);
        let batch = take::<Error>(&Disk, folder, |_| Ok(())).unwrap();
        assert_eq!(
            block(&batch.messages),
            "--- INBOX MESSAGES ---\n[From: main] one\n[From: main] two\nlines\n--- END INBOX ---\n\n"
        );
        assert_eq!(take::<Error>(&Disk, folder, |_| Ok(())).unwrap(), InboxBatch::default());
        assert_eq!(std::fs::read(folder.join("inbox.jsonl")).unwrap(), b"");
    }

    #[test]
    fn messages_that_could_not_be_delivered_stay() {
        let folder = tempfile::tempdir().unwrap();
        sent(folder.path(), "one");
        let failed = take(&Disk, folder.path(), |_| Err(Error::about(folder.path(), Problem::Unwritable)));
        assert!(failed.is_err());
        assert_eq!(contents(&peek(&Disk, folder.path()).unwrap()), ["one"]);
    }

    #[test]
    fn lines_that_are_not_messages_are_saved_aside_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.jsonl");
        std::fs::write(&path, "oops\n{\"content\":\"a\"}\n\n{\"from\":1}\n{\"content\":").unwrap();
        let failed = take(&Disk, folder.path(), |_| Err(Error::about(folder.path(), Problem::Unwritable)));
        assert!(failed.is_err());
        let batch = take::<Error>(&Disk, folder.path(), |_| Ok(())).unwrap();
        assert_eq!((contents(&batch), batch.messages[0].from.as_str()), (vec!["a"], "unknown"));
        assert!(batch.warnings[0].text.contains("3 lines are not messages"));
        let aside = std::fs::read_to_string(folder.path().join("inbox.unread.jsonl")).unwrap();
        assert_eq!(aside, "oops\n{\"from\":1}\n{\"content\":\n");
    }

    #[test]
    fn a_message_added_without_the_lock_stays() {
        let folder = tempfile::tempdir().unwrap();
        sent(folder.path(), "one");
        let path = folder.path().join("inbox.jsonl");
        let add = |_: &InboxBatch| {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.extend_from_slice(b"{\"content\":\"two\"}\n");
            std::fs::write(&path, bytes).unwrap();
            Ok::<(), Error>(())
        };
        take(&Disk, folder.path(), add).unwrap();
        assert_eq!(contents(&peek(&Disk, folder.path()).unwrap()), ["two"]);
    }

    #[test]
    fn concurrent_readers_get_every_message_once() {
        let folder = tempfile::tempdir().unwrap();
        let taken = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100).for_each(|number| sent(folder.path(), &number.to_string())));
            for _ in 0..3 {
                scope.spawn(|| {
                    while taken.lock().unwrap().len() < 100 {
                        let batch = take::<Error>(&Disk, folder.path(), |_| Ok(())).unwrap();
                        taken.lock().unwrap().extend(batch.messages.into_iter().map(|message| message.content));
                    }
                });
            }
        });
        let mut taken: Vec<u32> = taken.into_inner().unwrap().iter().map(|content| content.parse().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }
}
