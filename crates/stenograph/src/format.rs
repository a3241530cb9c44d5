//! What a format is: how bytes spell events. A [`Registry`](crate::Registry) finds the format of a name or of a source.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io;

use crate::json::Object;
use crate::model::Outline;
pub use crate::model::{FormatInfo, Traits, Wanted};
use crate::read::Reader;
use crate::write::Writer;

/// A format. To add one, see `formats/README.md`.
pub trait Format: Sync {
    /// What people and programs need to know about it.
    fn info(&self) -> &'static FormatInfo;

    /// How sure the format is that this is the beginning of one of its sources. It looks at content only.
    fn sniff(&self, head: &Head<'_>) -> Sniff;

    /// A reader. `want` is a hint: whatever the reader gives beyond it is passed over.
    fn reader(&self, want: Wanted) -> Box<dyn Reader>;

    /// A writer for a session of which `outline` is known beforehand.
    fn writer(&self, outline: &Outline) -> Box<dyn Writer>;
}

/// How sure a format is about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sniff {
    /// It is not one of its own.
    No,
    /// Nothing speaks against it.
    Maybe,
    /// It looks like one.
    Likely,
    /// Only this format has what was seen.
    Certain,
}

/// The beginning of a source: [`Head::SIZE_MAX`] bytes, and more where the first line is longer.
#[derive(Debug)]
pub struct Head<'a> {
    /// The bytes, without a byte order mark.
    pub bytes: &'a [u8],
    text: Cow<'a, str>,
    mended: OnceCell<String>,
}

impl<'a> Head<'a> {
    /// How much of a source is looked at.
    pub const SIZE_MAX: usize = 64 << 10;

    /// How much of a first line is looked at: a prompt may begin with a whole log file, and the type of the record may be at
    /// its end.
    pub const LINE_SIZE_MAX: usize = 4 << 20;

    /// Reads as much as is looked at. After a failure `head` has what could be read.
    pub fn read(source: &mut dyn io::Read, head: &mut Vec<u8>) -> io::Result<()> {
        while !Head::is_whole(head) {
            let before = head.len();
            io::Read::read_to_end(&mut io::Read::take(&mut *source, Head::SIZE_MAX as u64), head)?;
            if head.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// A second head, for a source whose first line is longer than the head and may hide the format: the lines after it. `rest` is the
    /// source after the head. `None` if the head has the end of its first line, or nothing follows that line.
    pub fn after_long_line(head: &[u8], rest: &mut dyn io::Read) -> io::Result<Option<Vec<u8>>> {
        if head.len() < Head::LINE_SIZE_MAX || Head::first_line(head).is_some() {
            return Ok(None);
        }
        let mut piece = Vec::new();
        loop {
            piece.clear();
            io::Read::read_to_end(&mut io::Read::take(&mut *rest, Head::SIZE_MAX as u64), &mut piece)?;
            match memchr::memchr(b'\n', &piece) {
                Some(newline) => {
                    piece.drain(..=newline);
                    Head::read(rest, &mut piece)?;
                    return Ok((!piece.is_empty()).then_some(piece));
                }
                None if piece.is_empty() => return Ok(None),
                None => {}
            }
        }
    }

    /// Whether detection uses no byte after these.
    pub fn is_whole(head: &[u8]) -> bool {
        head.len() >= Head::LINE_SIZE_MAX || (head.len() >= Head::SIZE_MAX && Head::first_line(head).is_some())
    }

    /// How long the first line is that is not blank, with all before it.
    fn first_line(head: &[u8]) -> Option<usize> {
        let blank = head.len() - head.trim_ascii_start().len();
        memchr::memchr(b'\n', head.get(blank..)?).map(|newline| blank + newline + 1)
    }

    /// The head of a source.
    pub fn new(bytes: &'a [u8]) -> Head<'a> {
        let length = Head::first_line(bytes).unwrap_or(Head::LINE_SIZE_MAX).clamp(Head::SIZE_MAX, Head::LINE_SIZE_MAX);
        let bytes = bytes.get(..length).unwrap_or(bytes);
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        Head { bytes, text: visible(bytes), mended: OnceCell::new() }
    }

    /// The head as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The objects of the first lines: those that are whole, and the first one if it is longer than the head. A document on
    /// many lines has no objects of this kind, for none of its lines is a record.
    pub fn objects(&self) -> Vec<Object<'_>> {
        let mut found: Vec<Object<'_>> = Vec::new();
        let lines = self.text.split_inclusive('\n').filter(|line| !line.trim().is_empty());
        for (at, line) in lines.take(32).enumerate() {
            let (values, _) = crate::json::values(line);
            if values.is_empty() && at == 0 && !line.ends_with('\n') {
                found.extend(self.document());
                break;
            }
            found.extend(values.into_iter().filter_map(|(_, value)| Object::parse(value)));
        }
        found
    }

    /// Whether the first line is longer than the head, so that only some of its keys can be seen.
    pub fn is_first_line_cut(&self) -> bool {
        self.bytes.len() + 3 >= Head::LINE_SIZE_MAX && !self.text.trim_start().contains('\n')
    }

    /// The source as one JSON document, closed where the head ends.
    pub fn document(&self) -> Option<Object<'_>> {
        // A first record longer than the head, or a document: close what is open, so that its first keys can be seen.
        let start = self.text.trim_start();
        let mended = self.mended(start, '{')?;
        let (values, _) = crate::json::values(mended);
        Object::parse(values.first()?.1)
    }

    /// The first objects of a source that is one JSON array, which is closed where the head ends.
    pub fn elements(&self) -> Vec<Object<'_>> {
        const ELEMENTS_MAX: usize = 32;
        let start = self.text.trim_start();
        let found = self.mended(start, '[').map(crate::json::values);
        let first = found.and_then(|(values, _)| crate::json::items(values.first()?.1)).unwrap_or_default();
        first.into_iter().take(ELEMENTS_MAX).filter_map(Object::parse).collect()
    }

    fn mended(&self, start: &str, opens: char) -> Option<&str> {
        start.starts_with(opens).then(|| self.mended.get_or_init(|| mend(start)).as_str())
    }
}

/// The bytes as text. Raw control characters must not hide what a record is: readers take them as escapes, and here a space will do.
fn visible(bytes: &[u8]) -> Cow<'_, str> {
    // Every byte is looked at, for that is done many at a time; stopping at the first one is not.
    let is_plain = |text: &&str| {
        let control = |byte: u8| u8::from(byte < b' ' && byte != b'\n' && byte != b'\r');
        text.bytes().fold(0, |found, byte| found | control(byte)) == 0
    };
    let good = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The head ends within a character.
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok())
        }
        Err(_) => None,
    };
    if let Some(text) = good.filter(is_plain) {
        return Cow::Borrowed(text);
    }
    let seen = |char: char| if char < ' ' && !matches!(char, '\n' | '\r') { ' ' } else { char };
    Cow::Owned(String::from_utf8_lossy(bytes).chars().map(seen).collect())
}

/// Closes JSON that was cut: drops what is half said and closes the brackets.
fn mend(text: &str) -> String {
    let mut closers: Vec<char> = Vec::new();
    let mut safe = (0, String::new());
    let (mut in_string, mut escaped) = (false, false);
    for (at, char) in text.char_indices() {
        if in_string {
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        let close = |closers: &[char]| closers.iter().rev().collect::<String>();
        match char {
            '"' => in_string = true,
            '{' | '[' => {
                closers.push(if char == '{' { '}' } else { ']' });
                safe = (at + 1, close(&closers));
            }
            '}' | ']' => {
                closers.pop();
                safe = (at + 1, close(&closers));
                if closers.is_empty() {
                    break;
                }
            }
            ',' => safe = (at, close(&closers)),
            _ => {}
        }
        if closers.len() > 128 {
            break;
        }
    }
    format!("{}{}", text.get(..safe.0).unwrap_or_default(), safe.1)
}

impl std::fmt::Debug for dyn Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.info().name)
    }
}

/// Whether the first records of a source prove that it has this format. It looks at less than
/// [`Registry::claims`](crate::Registry::claims) and asks no other format.
pub fn is_proven(format: &dyn Format, head: &[u8]) -> bool {
    let first = Head::new(head.get(..first_size(head)).unwrap_or(head));
    crate::carry::carrier(&first.text).is_none() && format.sniff(&first) == Sniff::Certain
}

/// How many bytes usually hold the first records.
const FIRST_SIZE: usize = 4 << 10;

/// The end of the line in which those bytes end.
fn first_size(head: &[u8]) -> usize {
    let rest = head.get(FIRST_SIZE..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(head.len(), |newline| FIRST_SIZE + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_on_many_lines_is_no_list_of_records() {
        assert!(Head::new(b"{\n  \"type\": \"user\",\n  \"uuid\": \"1\"\n}\n").objects().is_empty());
        assert_eq!(Head::new(br#"{"type": "user", "text": "longer than the he"#).objects().len(), 1);
    }

    #[test]
    fn raw_control_characters_hide_nothing() {
        let objects = Head::new(b"{\"type\":\"us\x1ber\tx\"}\n");
        assert_eq!(objects.objects().len(), 1);
    }

    #[test]
    fn a_cut_document_shows_its_first_keys() {
        let head = Head::new(br#"{"a": {"b": [1, 2, {"c": "half a str"#);
        let keys: Vec<String> = head.document().unwrap().keys().map(str::to_owned).collect();
        assert_eq!(keys, ["a"]);
        assert!(head.elements().is_empty());
    }

    #[test]
    fn a_cut_array_shows_its_first_objects() {
        let head = Head::new(br#"[{"a": 1}, 7, {"b": {"c": "half a str"#);
        let keys: Vec<String> = head.elements().iter().flat_map(Object::keys).map(str::to_owned).collect();
        assert_eq!(keys, ["a", "b"]);
        assert!(head.document().is_none());
    }
}
