//! The frame of a JSON document whose items are records: what comes before, between and after them. The writers of such
//! formats share it. It knows no format and no event.

use crate::frame::{Items, is_item, is_prologue};
use crate::json::is_closed;
use crate::write::WriterOutput;

/// A document that is being written.
#[derive(Debug)]
pub struct DocumentFrame {
    items: Items,
    /// The newline and indentation before an item.
    before_item: &'static str,
    /// The newline and indentation before the end of a document that has items.
    before_end: &'static str,
    pub part: DocumentPart,
    /// The number of items written.
    pub written: u64,
}

/// The current part of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentPart {
    Start,
    Items,
    /// It is closed, or its file was cut off.
    Ended,
}

impl DocumentFrame {
    /// A document that has not begun.
    pub fn new(items: Items, before_item: &'static str, before_end: &'static str) -> DocumentFrame {
        DocumentFrame { items, before_item, before_end, part: DocumentPart::Start, written: 0 }
    }

    /// Writes an item.
    pub fn item(&mut self, item: impl Into<Vec<u8>>, out: &mut WriterOutput) {
        out.glue(format!("{}{}", if self.written == 0 { "" } else { "," }, self.before_item));
        out.record(item);
        self.written += 1;
    }

    /// Ends the list of items; the end of the document follows.
    pub fn end(&mut self, out: &mut WriterOutput) {
        if self.written > 0 {
            out.glue(self.before_end);
        }
        self.part = DocumentPart::Ended;
    }

    /// Writes bytes that never were a record back to the file they came from. `head` is the beginning of a document if its
    /// reader passes over it.
    pub fn unread(&mut self, bytes: Vec<u8>, head: Option<&str>, out: &mut WriterOutput) {
        let is_new = self.part == DocumentPart::Start;
        if is_new && is_prologue(self.items, &bytes) {
            self.part = DocumentPart::Items;
            return out.record(bytes);
        }
        if is_new && (head.is_none() || !is_end(&bytes) && !is_item(self.items, &bytes)) {
            // The file ends before its list.
            self.part = DocumentPart::Ended;
            return out.record(bytes);
        }
        if let Some(head) = head.filter(|_| is_new) {
            out.glue(head);
            self.part = DocumentPart::Items;
        }
        if is_end(&bytes) {
            self.end(out);
            return out.record(bytes);
        }
        // A record that was cut off ends its file: a bracket after it would become part of it.
        if !is_closed(&bytes) {
            self.part = DocumentPart::Ended;
        }
        self.item(bytes, out);
    }
}

/// The end of a document: the closing bracket of the list, and the fields of this object after it.
pub fn closed(object: &str) -> String {
    let fields = object.strip_prefix('{').unwrap_or(object);
    let comma = if fields == "}" { "" } else { "," };
    format!("]{comma}{fields}")
}

/// Whether these bytes are the end of a document.
pub fn is_end(bytes: &[u8]) -> bool {
    bytes.starts_with(b"]") || bytes.starts_with(b"}")
}
