//! The beginning of a document, which concerns all of it: the `_meta` line of a chat history, the header of a trajectory. It is
//! parsed, created and changed here; this file opens no file.

use stenograph::formats::openai_chat::TITLE_LOCKED;
use stenograph::json::{Draft, Object};
use stenograph::model::{Body, Content, Event, Outline, Part};
use stenograph::text::Text;
use stenograph::{read, write};

use super::DocumentKind;

/// What is known about a conversation as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationTitle {
    /// The title, as a JSON string.
    text: Option<String>,
    lock: Lock,
    /// Further keys of a `_meta` line, as a JSON object.
    rest: Option<String>,
}

/// Whether a title must not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lock {
    Locked,
    #[default]
    Unlocked,
}

/// A longer text is not a title and stays in the journal.
const TITLE_SIZE_MAX: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const META_OPENS: &[u8] = b"{\"_meta\":";
const TITLE_OPENS: &[u8] = b"# Title: ";
const RULE: &[u8] = b"---";

impl ConversationTitle {
    /// Whether an event concerns the conversation as a whole: it does not belong among the messages.
    pub fn is_about(event: &Event<'_>) -> bool {
        match &event.body {
            Body::Fact { fact: name, content } => match name.as_ref() {
                "title" => content.is_some(),
                "_meta" => event.extra.get(DocumentKind::Chat.format_name()).is_some(),
                name => name == TITLE_LOCKED,
            },
            _ => false,
        }
    }

    /// Applies such an event.
    pub fn take(&mut self, event: &Event<'_>) {
        let Body::Fact { fact: name, content } = &event.body else { return };
        if name == TITLE_LOCKED {
            self.lock = Lock::Locked;
            return;
        }
        if let Some(content) = content {
            let text = content.joined().to_json();
            if text.len() <= TITLE_SIZE_MAX {
                self.text = Some(text);
            }
        }
        // CycoD's own line replaces everything.
        if let Some(extra) = event.extra.get(DocumentKind::Chat.format_name()) {
            let mut rest = String::new();
            match (extra.raw("_meta"), extra.object("_meta")) {
                (Some(raw), _) => rest.push_str(raw),
                (None, Some(object)) => object.write_json(&mut rest),
                (None, None) => {}
            }
            self.rest = Some(rest).filter(|rest| rest.len() > 2 && rest.len() <= TITLE_SIZE_MAX);
            self.lock = Lock::Unlocked;
        }
    }

    /// The head of a document; empty if nothing is known and the document does not need one.
    pub fn bytes(&self, kind: DocumentKind) -> Vec<u8> {
        match kind {
            DocumentKind::Chat => self.meta_line(),
            DocumentKind::Trajectory => self.header(kind),
        }
    }

    fn meta_line(&self) -> Vec<u8> {
        if *self == ConversationTitle::default() {
            return Vec::new();
        }
        let mut meta = Draft::new();
        if let Some(text) = &self.text {
            meta.set("title", text.clone());
        }
        meta.set("titleLocked", if self.lock == Lock::Locked { "true" } else { "false" });
        let rest = self.rest.as_deref().and_then(Object::parse).map(|mut rest| {
            rest.take("title");
            rest.take("titleLocked");
            rest.into_extra()
        });
        let rest = rest.filter(|rest| !rest.is_empty());
        format!("{{\"_meta\":{}}}\n", meta.render(rest.as_ref())).into_bytes()
    }

    fn header(&self, kind: DocumentKind) -> Vec<u8> {
        let text = self.text.as_deref().and_then(Text::from_json).map(|text| text.decode().into_owned());
        let fact = |name: &'static str, content| Event::new(Body::Fact { fact: name.into(), content });
        let mut facts = vec![fact("title", text.clone().map(Content::text))];
        if self.lock == Lock::Locked {
            facts.push(fact(TITLE_LOCKED, None));
        }
        let of = u32::try_from(facts.len()).unwrap_or(1);
        for (index, fact) in (0..).zip(&mut facts) {
            fact.part = Part { index, of };
        }
        let outline = Outline { stated_title: text, ..Outline::default() };
        write::all(kind.format(), &outline, &facts)
    }
}

/// The beginning of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentHead {
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// Its title data.
    pub title: ConversationTitle,
}

/// How much of a document is read.
pub const HEAD_SIZE_MAX: u64 = 1 << 20;

impl DocumentHead {
    /// The head of a document with this beginning.
    pub fn of(beginning: &[u8], kind: DocumentKind) -> DocumentHead {
        let mark = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let after = beginning.get(mark..).unwrap_or_default();
        let length = match kind {
            DocumentKind::Chat => meta_length(after),
            DocumentKind::Trajectory => header_length(after),
        };
        let own = after.get(..length).unwrap_or_default();
        let mut title = ConversationTitle::default();
        for event in read::all(kind.format(), own).events.iter().filter(|event| ConversationTitle::is_about(event)) {
            title.take(event);
        }
        DocumentHead { bytes: beginning.get(..mark + length).unwrap_or_default().to_vec(), title }
    }

    /// The head of the same document with this title data.
    pub fn saying(&self, title: &ConversationTitle, kind: DocumentKind) -> Vec<u8> {
        let mark = if self.bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { b"" };
        [mark, &title.bytes(kind)].concat()
    }
}

fn meta_length(bytes: &[u8]) -> usize {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(newline) if bytes.starts_with(META_OPENS) => newline + 1,
        _ => 0,
    }
}

fn header_length(bytes: &[u8]) -> usize {
    if !bytes.starts_with(TITLE_OPENS) {
        return 0;
    }
    let mut length = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        length += line.len();
        if line.trim_ascii_end() == RULE && line.ends_with(b"\n") {
            return length;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title_from(facts: &[(&'static str, Option<&'static str>)]) -> ConversationTitle {
        let mut title = ConversationTitle::default();
        for (name, content) in facts {
            let event = Event::new(Body::Fact { fact: (*name).into(), content: content.map(Content::text) });
            assert!(ConversationTitle::is_about(&event));
            title.take(&event);
        }
        title
    }

    #[test]
    fn a_title_is_written_as_cycod_writes_it() {
        let title = title_from(&[("title", Some("Tall \"trees\""))]);
        let line = "{\"_meta\":{\"title\":\"Tall \\\"trees\\\"\",\"titleLocked\":false}}\n";
        assert_eq!(String::from_utf8(title.bytes(DocumentKind::Chat)).unwrap(), line);
        let header = "# Title: \"Tall \"trees\"\"\n**Status:** Unlocked\n\n---\n";
        assert_eq!(String::from_utf8(title.bytes(DocumentKind::Trajectory)).unwrap(), header);
        let locked = title_from(&[("title", Some("Oak")), (TITLE_LOCKED, None)]);
        assert!(String::from_utf8(locked.bytes(DocumentKind::Chat)).unwrap().contains("\"titleLocked\":true"));
        assert!(String::from_utf8(locked.bytes(DocumentKind::Trajectory)).unwrap().contains("**Status:** Locked"));
        assert!(ConversationTitle::default().bytes(DocumentKind::Chat).is_empty());
        assert!(ConversationTitle::default().bytes(DocumentKind::Trajectory).starts_with(b"# Title: \"Untitled\"\n"));
    }

    #[test]
    fn a_head_is_found_and_changed_and_its_unknown_keys_stay() {
        let source = "\u{feff}{\"_meta\":{\"title\":\"Oak\",\"titleLocked\":true,\"colour\":3}}\n{\"role\":\"user\"}\n";
        let head = DocumentHead::of(source.as_bytes(), DocumentKind::Chat);
        assert_eq!(head.bytes.len(), source.find('\n').unwrap() + 1);
        assert_eq!(head.saying(&head.title, DocumentKind::Chat), head.bytes);
        let mut title = head.title.clone();
        title.take(&Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text("Elm")) }));
        let changed = "\u{feff}{\"_meta\":{\"title\":\"Elm\",\"titleLocked\":true,\"colour\":3}}\n";
        assert_eq!(String::from_utf8(head.saying(&title, DocumentKind::Chat)).unwrap(), changed);

        let source = "# Title: \"Oak\"\n**Status:** Locked\n\n---\n\n\n> a\n";
        let head = DocumentHead::of(source.as_bytes(), DocumentKind::Trajectory);
        assert!(head.bytes.ends_with(b"\n---\n") && source.as_bytes().starts_with(&head.bytes));
        assert_eq!(head.saying(&head.title, DocumentKind::Trajectory), head.bytes);
    }

    #[test]
    fn text_that_is_not_a_head_is_not_parsed_as_one() {
        for (source, kind) in [
            ("{\"_meta\":{\"ti", DocumentKind::Chat),
            ("{\"role\":\"user\"}\n", DocumentKind::Chat),
            ("# Title: \"Oak\"\n**Sta", DocumentKind::Trajectory),
            ("> a\n---\n", DocumentKind::Trajectory),
        ] {
            assert_eq!(DocumentHead::of(source.as_bytes(), kind), DocumentHead::default(), "{source}");
        }
    }
}
