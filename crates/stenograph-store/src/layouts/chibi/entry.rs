//! One entry of a context: a line, byte for byte, and the fields needed to move it. The format interprets its content.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::json::{Draft, Object};
use stenograph::model::Role;
use stenograph::text::{Text, quote};

use crate::error::{Error, Problem};
use crate::files::Files;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextEntry {
    /// The line without its newline.
    pub line: Vec<u8>,
    /// Its id; `None` if the line is not an entry.
    pub id: Option<String>,
    /// Its type.
    pub entry_type: Option<String>,
    /// Its time, in seconds since 1970.
    pub seconds: Option<u64>,
    /// The call that it is or answers.
    pub call: Option<String>,
    /// The speaker, if it is a message.
    pub role: Option<Role>,
    /// The size of its content in bytes.
    pub content_size: usize,
    /// A hash of its content without its id.
    content_hash: u64,
}

/// The types of entries at which a window begins.
const ANCHORS: [&str; 3] = ["context_created", "compaction", "archival"];

impl ContextEntry {
    /// Parses a line.
    pub fn new(line: &[u8]) -> ContextEntry {
        let object = std::str::from_utf8(line).ok().and_then(Object::parse);
        let text = |key: &str| object.as_ref().and_then(|object| object.peek_str(key)).map(Cow::into_owned);
        let content = object.as_ref().and_then(|object| object.peek("content")).and_then(Text::from_json);
        let (entry_type, call) = (text("entry_type"), text("tool_call_id"));
        let mut content_hash = DefaultHasher::new();
        match (&content, &entry_type) {
            (Some(content), Some(_)) => (&entry_type, &call, content.wtf8()).hash(&mut content_hash),
            _ => line.hash(&mut content_hash),
        }
        ContextEntry {
            line: line.to_owned(),
            id: text("id"),
            seconds: object.as_ref().and_then(|object| object.peek("timestamp")).and_then(stenograph::json::number),
            role: match entry_type.as_deref() {
                Some("message") => Some(role(text("role").as_deref(), text("to").as_deref())),
                _ => None,
            },
            content_size: content.map_or(0, |content| content.wtf8().len()),
            entry_type,
            call,
            content_hash: content_hash.finish(),
        }
    }

    /// Whether a window begins with it.
    pub(crate) fn is_anchor(&self) -> bool {
        self.entry_type.as_deref().is_some_and(|entry_type| ANCHORS.contains(&entry_type))
    }

    /// A hash of what it anchors, if it is an anchor.
    pub fn anchor(&self) -> Option<u64> {
        let mut anchor = DefaultHasher::new();
        (&self.entry_type, self.summary()).hash(&mut anchor);
        self.is_anchor().then(|| anchor.finish())
    }

    /// Whether entries before it may belong to the window that it begins.
    pub(crate) fn may_keep(&self) -> bool {
        self.entry_type.as_deref() == Some("compaction")
    }

    fn summary(&self) -> Option<String> {
        self.metadata()?.take_text("summary").map(|text| text.decode().into_owned())
    }

    /// A hash of its content without its id, which identifies entries that were rewritten with other ids.
    pub(crate) fn content_hash(&self) -> u64 {
        self.content_hash
    }

    /// Its identity: its id and its content, so that nothing is lost if an id occurs twice.
    pub(crate) fn identity(&self) -> (u64, u64) {
        let mut id = DefaultHasher::new();
        self.id.hash(&mut id);
        (id.finish(), self.content_hash)
    }

    /// Whether a summary in one of them would equal a summary in the other.
    pub(crate) fn sums_up_like(&self, other: &ContextEntry) -> bool {
        match (self.summary(), other.summary()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    fn metadata(&self) -> Option<Object<'_>> {
        Object::parse(std::str::from_utf8(&self.line).ok()?)?.open("metadata")
    }

    /// The ids that its metadata lists as kept after it.
    pub fn kept_ids(&self) -> Vec<String> {
        let items = self.metadata().and_then(|mut metadata| metadata.take_items(KEPT)).unwrap_or_default();
        items.into_iter().filter_map(|raw| Some(Text::from_json(raw)?.exact()?.into_owned())).collect()
    }
}

/// Chibi's own rule: the field, otherwise the recipient of the message.
fn role(role: Option<&str>, to: Option<&str>) -> Role {
    match (role, to) {
        (Some("user"), _) => Role::User,
        (Some("agent"), _) => Role::Assistant,
        (Some("system"), _) => Role::System,
        (_, Some("user")) => Role::Assistant,
        _ => Role::User,
    }
}

/// The key under which a marker lists the entries before it that stay in the window.
const KEPT: &str = "kept";

/// The beginning of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// A conversation begins.
    Created,
    /// Everything before was archived without a replacement.
    Archival,
    /// Everything before was archived and replaced by this summary.
    Compaction(String),
}

/// The id and time of a new entry.
#[derive(Clone, Debug)]
pub struct EntryStamp {
    /// Its id.
    pub id: String,
    /// Seconds since 1970.
    pub seconds: u64,
}

impl EntryStamp {
    /// A stamp with a random id.
    pub fn random(seconds: u64) -> EntryStamp {
        EntryStamp { id: uuid::Uuid::new_v4().to_string(), seconds }
    }
}

impl Anchor {
    /// The anchor of an entry that is one.
    pub fn of(entry: &ContextEntry) -> Anchor {
        match entry.entry_type.as_deref() {
            Some("compaction") => Anchor::Compaction(entry.summary().unwrap_or_default()),
            Some("archival") => Anchor::Archival,
            _ => Anchor::Created,
        }
    }

    /// The entry. `kept` lists the ids of earlier entries that stay in the window.
    pub fn entry(&self, context: &str, stamp: &EntryStamp, kept: &[&str]) -> ContextEntry {
        let (entry_type, content, summary) = match self {
            Anchor::Created => ("context_created", "Context created", None),
            Anchor::Archival => ("archival", "Context archived/cleared", None),
            Anchor::Compaction(summary) => ("compaction", "Context compacted", Some(summary)),
        };
        let mut draft = Draft::new();
        draft.set_str("id", &stamp.id);
        draft.set("timestamp", stamp.seconds.to_string());
        draft.set_str("from", "system");
        draft.set_str("to", context);
        draft.set_str("content", content);
        draft.set_str("entry_type", entry_type);
        let mut metadata = Draft::new();
        metadata.set_opt("summary", summary.map(String::as_str));
        if !kept.is_empty() {
            let ids: Vec<String> = kept.iter().map(|id| quote(id)).collect();
            metadata.set(KEPT, format!("[{}]", ids.join(",")));
        }
        if !metadata.is_empty() {
            draft.nest("metadata", metadata);
        }
        ContextEntry::new(draft.render(None).as_bytes())
    }
}

/// Reads all non-blank lines of a file; a missing file has none.
pub fn each(
    files: &dyn Files,
    path: &Path,
    visit: &mut dyn FnMut(ContextEntry) -> Result<(), Error>,
) -> Result<(), Error> {
    each_at(files, path, &mut |entry, _| visit(entry))
}

/// The same, with the offset at which each line ends, including its newline.
pub(crate) fn each_at(
    files: &dyn Files,
    path: &Path,
    visit: &mut dyn FnMut(ContextEntry, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    if files.length(path).map_err(unreadable)?.is_none() {
        return Ok(());
    }
    let mut reader = BufReader::with_capacity(64 << 10, files.reader(path, 0).map_err(unreadable)?);
    let mut line = Vec::new();
    let (mut first, mut offset) = (true, 0);
    loop {
        line.clear();
        let limit = RECORD_SIZE_MAX as u64 + 1;
        let length = reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(unreadable)?;
        if length == 0 {
            return Ok(());
        }
        if length as u64 == limit && !line.ends_with(b"\n") {
            return Err(Error::about(path, Problem::TooLarge { size_max: RECORD_SIZE_MAX as u64 }));
        }
        offset += length as u64;
        let bytes = line.strip_suffix(b"\n").unwrap_or(&line);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let bytes = if first { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        first = false;
        if !bytes.trim_ascii().is_empty() {
            visit(ContextEntry::new(bytes), offset)?;
        }
    }
}

/// The entries as lines of a file.
pub fn lines(entries: &[&ContextEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(&entry.line);
        bytes.push(b'\n');
    }
    bytes
}

/// The largest window that is held in memory. A window is the input of a model, and no model accepts as much.
pub(crate) const WINDOW_SIZE_MAX: u64 = 512 << 20;

/// All entries of a file that fits into memory.
pub fn all(files: &dyn Files, path: &Path) -> Result<Vec<ContextEntry>, Error> {
    let length = files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    if length.unwrap_or(0) > WINDOW_SIZE_MAX {
        return Err(Error::about(path, Problem::TooLarge { size_max: WINDOW_SIZE_MAX }));
    }
    let mut entries = Vec::new();
    each(files, path, &mut |entry| {
        entries.push(entry);
        Ok(())
    })?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn an_entry_is_identified_by_its_id_and_its_content() {
        let line = r#"{"id":"1","timestamp":7,"from":"a","to":"b","content":"h\u00e4","entry_type":"message","x":1}"#;
        let entry = ContextEntry::new(line.as_bytes());
        assert_eq!((entry.id.as_deref(), entry.seconds, entry.content_size), (Some("1"), Some(7), 3));
        assert_eq!(entry.role, Some(Role::User));
        let again = ContextEntry::new(line.replace("\"1\"", "\"2\"").replace("\\u00e4", "ä").as_bytes());
        assert_eq!(entry.content_hash(), again.content_hash());
        assert_ne!(entry.identity(), again.identity());
        let torn = ContextEntry::new(b"{\"id\":\"1\"");
        assert_eq!((torn.id, torn.entry_type), (None, None));
    }

    #[test]
    fn an_anchor_is_written_as_chibi_writes_it() {
        let stamp = EntryStamp { id: "u".into(), seconds: 5 };
        let entry = Anchor::Archival.entry("default", &stamp, &[]);
        let expected = r#"{"id":"u","timestamp":5,"from":"system","to":"default","content":"Context archived/cleared","entry_type":"archival"}"#;
        assert_eq!(String::from_utf8(entry.line.clone()).unwrap(), expected);
        assert!(entry.is_anchor());
        let marker = Anchor::Compaction("sum".into()).entry("default", &stamp, &["a", "b\""]);
        assert_eq!(marker.kept_ids(), ["a", "b\""]);
        assert!(String::from_utf8(marker.line).unwrap().contains(r#""metadata":{"summary":"sum","kept":["a","b\""]}"#));
    }

    #[test]
    fn blank_lines_and_a_missing_newline_are_not_entries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        assert_eq!(all(&Disk, &path).unwrap(), []);
        std::fs::write(&path, "\u{feff}{\"id\":\"1\"}\r\n\n  \n{\"id\":\"2\"}").unwrap();
        let ids: Vec<_> = all(&Disk, &path).unwrap().into_iter().map(|entry| entry.id.unwrap()).collect();
        assert_eq!(ids, ["1", "2"]);
    }
}
