//! Text as spelled in a source: decoded only on demand, without losing any byte.
//! This file knows string literals and encodings; it must not know what a text is for.
//!
//! JSON sources spell text with escapes, and real ones contain data that a Rust string cannot hold: half of a surrogate pair,
//! or bytes that are not UTF-8. A [`Text`] therefore keeps the spelling. It spells bytes that are not UTF-8 as the escapes
//! `\udc80` to `\udcff` (Python calls this convention *surrogateescape*), so that they survive in every JSON file and become
//! the same bytes again in a plain text file.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

/// A short string that is always decoded: an id, a name, a model.
pub type Str<'a> = Cow<'a, str>;

/// A JSON value as spelled; it is never serialized again.
pub type Raw<'a> = Cow<'a, str>;

/// A text of any length.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Decoded text.
    Plain(Cow<'a, str>),
    /// The content of a JSON string literal, with its escapes.
    Json(Cow<'a, str>),
}

impl<'a> Text<'a> {
    /// A text from bytes that may not be UTF-8.
    pub fn from_bytes(bytes: &'a [u8]) -> Text<'a> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text::Plain(Cow::Borrowed(text)),
            Err(_) => {
                let mut json = String::with_capacity(bytes.len() + 16);
                for chunk in bytes.utf8_chunks() {
                    escape_into(chunk.valid(), &mut json);
                    for byte in chunk.invalid() {
                        let _ = write!(json, "\\udc{byte:02x}");
                    }
                }
                Text::Json(Cow::Owned(json))
            }
        }
    }

    /// A text from a JSON string literal with its quotes; `None` if `raw` is not a string literal.
    pub fn from_json(raw: &'a str) -> Option<Text<'a>> {
        let inside = raw.strip_prefix('"')?.strip_suffix('"')?;
        Some(match memchr(b'\\', inside.as_bytes()) {
            None => Text::Plain(Cow::Borrowed(inside)),
            Some(_) => Text::Json(Cow::Borrowed(inside)),
        })
    }

    /// The text for people: undecodable parts become U+FFFD.
    pub fn decode(&self) -> Cow<'_, str> {
        match self {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Json(json) => match unescape(json) {
                Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default()),
                Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(error) => wtf8_lossy(error.as_bytes()),
                }),
            },
        }
    }

    /// The exact text as WTF-8, which is UTF-8 that also encodes lone surrogates.
    pub fn wtf8(&self) -> Cow<'_, [u8]> {
        match self {
            Text::Plain(text) => Cow::Borrowed(text.as_bytes()),
            Text::Json(json) => unescape(json),
        }
    }

    /// The bytes for a plain text file: escaped raw bytes become themselves again.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let exact = self.wtf8();
        match std::str::from_utf8(&exact) {
            Ok(_) => exact,
            Err(_) => Cow::Owned(unescape_surrogates(&exact)),
        }
    }

    /// The text if it is valid Unicode, for ids and names that must be exact.
    pub fn exact(self) -> Option<Str<'a>> {
        match self {
            Text::Plain(text) => Some(text),
            Text::Json(json) => String::from_utf8(unescape(&json).into_owned()).ok().map(Cow::Owned),
        }
    }

    /// Whether [`Text::decode`] has to replace a part with U+FFFD.
    pub fn is_damaged(&self) -> bool {
        match self {
            Text::Plain(_) => false,
            Text::Json(json) => {
                memchr::memmem::find(json.as_bytes(), b"\\u").is_some() && std::str::from_utf8(&unescape(json)).is_err()
            }
        }
    }

    /// Whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        match self {
            Text::Plain(text) | Text::Json(text) => text.is_empty(),
        }
    }

    /// A fingerprint of the decoded text.
    pub fn hash(&self) -> u64 {
        xxh3_64(&self.wtf8())
    }

    /// Appends the text as a JSON string literal. A text that came from JSON keeps its spelling.
    pub fn write_json(&self, out: &mut String) {
        out.push('"');
        match self {
            Text::Plain(text) => escape_into(text, out),
            Text::Json(json) => out.push_str(json),
        }
        out.push('"');
    }

    /// The text as a JSON string literal.
    pub fn to_json(&self) -> String {
        let (Text::Plain(text) | Text::Json(text)) = self;
        let mut out = String::with_capacity(text.len() + 2);
        self.write_json(&mut out);
        out
    }

    /// The same text, borrowing nothing.
    pub fn into_owned(self) -> Text<'static> {
        match self {
            Text::Plain(text) => Text::Plain(Cow::Owned(text.into_owned())),
            Text::Json(json) => Text::Json(Cow::Owned(json.into_owned())),
        }
    }

    /// The same text, borrowed.
    pub fn borrow(&self) -> Text<'_> {
        match self {
            Text::Plain(text) => Text::Plain(Cow::Borrowed(text)),
            Text::Json(json) => Text::Json(Cow::Borrowed(json)),
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Text::Plain(a), Text::Plain(b)) => a == b,
            _ => self.wtf8() == other.wtf8(),
        }
    }
}

impl Eq for Text<'_> {}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::Plain(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Plain(Cow::Owned(text))
    }
}

impl<'a> From<Str<'a>> for Text<'a> {
    fn from(text: Str<'a>) -> Self {
        Text::Plain(text)
    }
}

/// Appends `text` with JSON's escapes, without quotes.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest.as_bytes()));
        out.push_str(plain);
        let Some(byte) = special.bytes().next() else { return };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        rest = special.get(1..).unwrap_or_default();
    }
}

/// The number of leading bytes that need no escape. Most texts have long runs of them, so it checks many bytes at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const STEP: usize = 32;
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let (steps, _) = bytes.as_chunks::<STEP>();
    let plain = steps.iter().take_while(|step| !step.iter().fold(false, |found, byte| found | special(byte))).count();
    let from = plain * STEP;
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(special).unwrap_or(rest.len())
}

/// The longest prefix of whole characters that has at most `size_max` bytes.
pub fn beginning(text: &str, size_max: usize) -> &str {
    let mut end = text.len().min(size_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// At most `length_max` characters from the beginning of a text, on one line.
pub fn one_line(text: &str, length_max: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for char in text.trim_start().chars() {
        let char = if char.is_whitespace() || char.is_control() { ' ' } else { char };
        if char == ' ' && line.ends_with(' ') {
            continue;
        }
        if length == length_max {
            break;
        }
        line.push(char);
        length += 1;
    }
    line.truncate(line.trim_end().len());
    line
}

/// Keeps the last stated value. An empty one states nothing.
pub(crate) fn keep_last<S>(last: &mut Option<S>, stated: Option<&str>)
where
    S: std::ops::Deref<Target = str> + for<'s> From<&'s str>,
{
    if let Some(stated) = stated.filter(|stated| !stated.is_empty() && last.as_deref() != Some(stated)) {
        *last = Some(S::from(stated));
    }
}

/// The longest suffix of whole characters that has at most `size_max` bytes.
pub fn ending(text: &str, size_max: usize) -> &str {
    let mut start = text.len().saturating_sub(size_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// `text` as a JSON string literal.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, &mut out);
    out.push('"');
    out
}

/// Decodes JSON escapes. A lone surrogate becomes three bytes; an invalid escape stays as spelled.
fn unescape(json: &str) -> Cow<'_, [u8]> {
    let bytes = json.as_bytes();
    let Some(first) = memchr(b'\\', bytes) else { return Cow::Borrowed(bytes) };
    let mut out = Vec::with_capacity(bytes.len());
    let (head, mut rest) = bytes.split_at(first);
    out.extend_from_slice(head);
    loop {
        rest = unescape_one(rest, &mut out);
        match memchr(b'\\', rest) {
            Some(next) => {
                let (plain, tail) = rest.split_at(next);
                out.extend_from_slice(plain);
                rest = tail;
            }
            None => {
                out.extend_from_slice(rest);
                return Cow::Owned(out);
            }
        }
    }
}

/// Decodes the escape at the start of `rest` and returns the bytes after it.
pub(crate) fn unescape_one<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let simple = match rest.get(1) {
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
        Some(b'u') => {
            let Some(high) = hex4(rest.get(2..6)) else { return keep_backslash(rest, out) };
            let tail = rest.get(6..).unwrap_or_default();
            if (0xd800..0xdc00).contains(&high)
                && tail.starts_with(b"\\u")
                && let Some(low @ 0xdc00..0xe000) = hex4(tail.get(2..6))
            {
                push_wtf8(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), out);
                return tail.get(6..).unwrap_or_default();
            }
            push_wtf8(high, out);
            return tail;
        }
        _ => return keep_backslash(rest, out),
    };
    out.push(simple);
    rest.get(2..).unwrap_or_default()
}

fn keep_backslash<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    out.push(b'\\');
    rest.get(1..).unwrap_or_default()
}

fn hex4(digits: Option<&[u8]>) -> Option<u32> {
    let digits = std::str::from_utf8(digits?).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

fn push_wtf8(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(&[
            0xe0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3f) as u8,
            0x80 | (code & 0x3f) as u8,
        ]),
    }
}

/// WTF-8 for people: each lone surrogate becomes one U+FFFD.
fn wtf8_lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    each_surrogate(bytes, &mut out, |_, out| out.push('\u{fffd}'), |text, out| out.push_str(text));
    out
}

fn unescape_surrogates(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    each_surrogate(
        bytes,
        &mut out,
        |code, out| match code {
            0xdc80..=0xdcff => out.push((code & 0xff) as u8),
            // UTF-8 cannot spell half a pair: like every other tool, write the replacement character.
            _ => out.extend_from_slice("\u{fffd}".as_bytes()),
        },
        |text, out| out.extend_from_slice(text.as_bytes()),
    );
    out
}

fn each_surrogate<O>(bytes: &[u8], out: &mut O, surrogate: impl Fn(u32, &mut O), valid: impl Fn(&str, &mut O)) {
    let mut pending: Vec<u8> = Vec::new();
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            pending.clear();
            valid(chunk.valid(), out);
        }
        // A surrogate's three bytes arrive as up to three invalid chunks: ED, then Ax or Bx, then xx.
        pending.extend_from_slice(chunk.invalid());
        while let [a, b, c, ..] = *pending.as_slice() {
            surrogate((u32::from(a) & 0x0f) << 12 | (u32::from(b) & 0x3f) << 6 | u32::from(c) & 0x3f, out);
            pending.drain(..3);
        }
    }
}

/// The words of a name in lower case, however they are joined: `read_file`, `ReadFile`.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for char in name.chars().take(128) {
        let begins = !char.is_alphanumeric() || char.is_uppercase() && before.is_lowercase();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| char.is_alphanumeric()) {
            word.extend(char.to_lowercase());
        }
        before = char;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_decode() {
        let text = Text::from_json(r#""a\n\u00e9\ud83d\ude00\/""#).unwrap();
        assert_eq!(text.decode(), "a\né😀/");
        assert!(!text.is_damaged());
    }

    #[test]
    fn a_lone_surrogate_keeps_its_spelling_and_shows_once() {
        let text = Text::from_json(r#""cut \ud83d.""#).unwrap();
        assert_eq!(text.decode(), "cut \u{fffd}.");
        assert!(text.is_damaged());
        assert_eq!(text.to_json(), r#""cut \ud83d.""#);
        assert_ne!(text.hash(), Text::from_json(r#""cut \ud83e.""#).unwrap().hash());
    }

    #[test]
    fn bytes_that_are_not_utf8_survive_json() {
        let bytes = b"ok \xff\xfe\xe4 end";
        let text = Text::from_bytes(bytes);
        assert_eq!(text.bytes().as_ref(), bytes);
        assert_eq!(text.decode(), "ok \u{fffd}\u{fffd}\u{fffd} end");
        let json = text.to_json();
        assert_eq!(Text::from_json(&json).unwrap(), text);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quote("a\u{1}\"\\\n"), r#""a\u0001\"\\\n""#);
    }
}
