//! An entry: the searchable parts of an event. The scan and the index both see events only as entries. `entry_builder.rs`
//! makes them.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use super::Touch;
use crate::json::{Leaf, leaves};
use crate::model::{Body, Content, Data, Event, Input, Kind, PieceKind, Role};
use crate::text::{Text, beginning};

/// The searchable parts of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'e> {
    /// The kind of the event.
    pub kind: Kind,
    /// The speaker: thinking and calls belong to the assistant, results to a tool.
    pub role: Option<Role>,
    /// The tool that was called or that answered.
    pub tool: Option<Cow<'e, str>>,
    /// The model that answered or was asked; if the event names none, the last one named before it.
    pub model: Option<Arc<str>>,
    /// The git branch, likewise.
    pub branch: Option<Arc<str>>,
    /// The working folder, likewise.
    pub cwd: Option<Arc<str>>,
    /// The files that a call reads or changes.
    pub files: Vec<Touch>,
    /// Whether this event shows that a call or the run failed.
    pub error: bool,
    /// Whether it has an image, a document or a sound.
    pub attachment: bool,
    /// The time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// A fingerprint that copies of one record in several sources share. It must never change, because notes about events keep
    /// it.
    pub key: u64,
    /// A fingerprint that records with the same content share.
    pub twin: u64,
    /// The fingerprints of its texts, if it has several; another record may repeat one of them alone. For a call or result: the
    /// fingerprint of its words without the id.
    pub piece_twins: Vec<u64>,
    /// Whether it repeats another record of its session, or may.
    pub restates: bool,
    pub(super) texts: Vec<Cow<'e, str>>,
}

impl<'e> Entry<'e> {
    /// An entry for a text that a person wrote about a session: a title or a note. It is no event of the session, so conditions
    /// on events other than its words and its time exclude it.
    pub fn about_session(text: &'e str, time: Option<i64>) -> Entry<'e> {
        Entry {
            kind: Kind::Fact,
            role: None,
            tool: None,
            model: None,
            branch: None,
            cwd: None,
            files: Vec::new(),
            error: false,
            attachment: false,
            time,
            key: 0,
            twin: 0,
            piece_twins: Vec::new(),
            restates: false,
            texts: vec![Cow::Borrowed(text)],
        }
    }
}

impl Entry<'_> {
    /// The searched text, piece by piece. A phrase does not extend from one piece into the next.
    pub fn texts(&self, each: &mut dyn FnMut(&str)) {
        self.texts.iter().for_each(|text| each(text));
    }

    /// The texts, for display.
    pub fn pieces(&self) -> &[Cow<'_, str>] {
        &self.texts
    }
}

/// How many bytes of a record of unknown type are searched.
const OTHER_SIZE_MAX: usize = 64 << 10;

/// A shorter text is never treated as encoded bytes.
const BLOB_SIZE_MIN: usize = 512;

/// The texts of an event; `None` if it has nothing to find.
pub(super) fn texts_of<'e>(event: &'e Event<'_>) -> Option<Vec<Cow<'e, str>>> {
    let mut found = Texts(Vec::new());
    let keep_empty = match &event.body {
        Body::Message { content, .. } | Body::Thinking { content } => {
            found.content(content);
            has_attachment(content)
        }
        Body::ToolCall { name, input, .. } => {
            found.add(Cow::Borrowed(name));
            match input {
                Input::Json(raw) => leaves(raw, &mut |_, leaf| found.leaf(leaf)),
                Input::Text(text) => found.add(text.decode()),
            }
            true
        }
        Body::ToolResult { content, .. } => {
            found.content(content);
            true
        }
        Body::Compaction { summary } => {
            summary.iter().for_each(|content| found.content(content));
            true
        }
        Body::Failure { name, content } => {
            name.iter().for_each(|name| found.add(Cow::Borrowed(name)));
            content.iter().for_each(|content| found.content(content));
            true
        }
        Body::Stop { content, success, .. } => {
            content.iter().for_each(|content| found.content(content));
            *success == Some(false)
        }
        Body::Fact { content, .. } => {
            content.iter().for_each(|content| found.content(content));
            false
        }
        Body::Other { bytes, .. } => {
            found.other(event, bytes.as_ref());
            false
        }
    };
    (keep_empty || !found.0.is_empty()).then_some(found.0)
}

/// Whether a content has an image, a document or a sound.
pub(super) fn has_attachment(content: &Content<'_>) -> bool {
    content.others().any(|piece| matches!(piece.kind, PieceKind::Blob { .. }))
}

struct Texts<'e>(Vec<Cow<'e, str>>);

impl<'e> Texts<'e> {
    fn add(&mut self, text: Cow<'e, str>) {
        self.add_counted(text);
    }

    /// Adds a text unless it is blank or encoded bytes. Returns how many bytes it added.
    fn add_counted(&mut self, text: Cow<'e, str>) -> usize {
        if text.trim().is_empty() || is_blob(&text) {
            return 0;
        }
        let size = text.len();
        self.0.push(text);
        size
    }

    fn content(&mut self, content: &'e Content<'_>) {
        match content {
            Content::Text(text) => self.add(text.decode()),
            Content::Pieces(pieces) => {
                for piece in pieces {
                    match &piece.kind {
                        PieceKind::Text(text) => self.add(text.decode()),
                        PieceKind::Blob { data: Data::Url(place) | Data::File(place), .. } => self.add(place.decode()),
                        PieceKind::Blob { data: Data::Inline(_), .. } => {}
                        PieceKind::Other(raw) => leaves(raw, &mut |_, leaf| self.leaf(leaf)),
                    }
                }
            }
        }
    }

    fn leaf(&mut self, leaf: Leaf<'e>) {
        match leaf {
            Leaf::Text(Text::Plain(text)) => self.add(text),
            Leaf::Text(text) => self.add(Cow::Owned(text.decode().into_owned())),
            Leaf::Number(digits) => self.add(Cow::Borrowed(digits)),
        }
    }

    /// Adds the texts of a record of unknown type, up to a limit.
    fn other(&mut self, event: &Event<'_>, bytes: Option<&'e Text<'_>>) {
        let mut left = OTHER_SIZE_MAX;
        if let Some(bytes) = bytes {
            let text = bytes.decode();
            let kept = beginning(&text, left);
            left -= self.add_counted(if kept.len() == text.len() { text } else { Cow::Owned(kept.to_owned()) });
        }
        for (_, extra) in event.extra.iter() {
            extra.each("", &mut |_, raw| {
                leaves(raw, &mut |_, leaf| {
                    let text = match leaf {
                        Leaf::Text(text) => text.decode().into_owned(),
                        Leaf::Number(digits) => digits.to_owned(),
                    };
                    if text.len() <= left {
                        left -= self.add_counted(Cow::Owned(text));
                    }
                });
            });
        }
    }
}

/// Whether a text is encoded bytes such as Base64: from its start, it has only long lines of that alphabet, with many
/// capitals. Lists of paths have few capitals.
fn is_blob(text: &str) -> bool {
    const LINE_LENGTH_MIN: usize = 60;
    let is_base64_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let Some(head) = text.as_bytes().get(..BLOB_SIZE_MIN) else { return false };
    if head.starts_with(b"data:") && memmem::find(head, b";base64,").is_some() {
        return true;
    }
    // The last line of the head may be cut.
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).rev();
    lines.next().is_some_and(|line| line.iter().all(is_base64_byte))
        && lines.all(|line| line.len() >= LINE_LENGTH_MIN && line.iter().all(is_base64_byte))
        && head.iter().filter(|byte| byte.is_ascii_uppercase()).count() * 8 > BLOB_SIZE_MIN
}
