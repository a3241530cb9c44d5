//! Finds the parts of a file that must differ between two copies: ids, times and rare words. It recognizes them by their shape,
//! not by the format, and must not touch what a reader depends on: keys, names of types, escapes.

use std::collections::HashMap;
use std::ops::Range;

/// A range of a file that differs in every copy.
#[derive(Clone, Debug)]
pub struct Slot {
    pub at: Range<usize>,
    pub kind: Kind,
}

/// The kind of text in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hexadecimal digits: a hash, a short id, the first or last digits of a UUID.
    Hex,
    /// The end of an id that consists of digits and letters.
    Mixed,
    /// Encoded bytes after the first [`BLOB_HEAD`].
    Blob,
    /// The date of a timestamp.
    Day,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// A rare word, by its number in the vocabulary.
    Word(u32),
}

/// The words of all files, in lower case.
#[derive(Debug, Default)]
pub struct Vocabulary {
    numbers: HashMap<String, u32>,
    counts: Vec<u32>,
}

/// A word that occurs more often than this is common; it is the same in all copies.
const RARE_MAX: u32 = 40;

/// The count that each occurrence as a possible key or type name adds, so that the word is never rare.
const RESERVED: u32 = RARE_MAX + 1;

impl Vocabulary {
    /// Counts the words of a file.
    pub fn learn(&mut self, bytes: &[u8]) {
        scan(bytes, &mut |at, found| match found {
            Found::Word(reserved) => {
                let word = text(bytes, &at).to_ascii_lowercase();
                let next = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
                let number = *self.numbers.entry(word).or_insert(next);
                if number == next {
                    self.counts.push(0);
                }
                if let Some(count) = self.counts.get_mut(number as usize) {
                    let more = match reserved {
                        Reserved::Yes => RESERVED,
                        Reserved::No => 1,
                    };
                    *count = count.saturating_add(more);
                }
            }
            Found::Other(_) => {}
        });
    }

    /// The rare words, with their numbers.
    pub fn rare(&self) -> impl Iterator<Item = (u32, &str)> {
        let rare = |number: u32| self.counts.get(number as usize).is_some_and(|count| *count <= RARE_MAX);
        self.numbers.iter().filter(move |(_, number)| rare(**number)).map(|(word, number)| (*number, word.as_str()))
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// The slots of a file, or of a path, in order.
    pub fn slots(&self, bytes: &[u8]) -> Vec<Slot> {
        let mut slots = Vec::new();
        scan(bytes, &mut |at, found| {
            let kind = match found {
                Found::Other(kind) => kind,
                Found::Word(_) => {
                    let number = self.numbers.get(&text(bytes, &at).to_ascii_lowercase());
                    let rare = number
                        .filter(|number| self.counts.get(**number as usize).is_some_and(|count| *count <= RARE_MAX));
                    match rare {
                        Some(number) => Kind::Word(*number),
                        None => return,
                    }
                }
            };
            slots.push(Slot { at, kind });
        });
        slots
    }
}

fn text<'a>(bytes: &'a [u8], at: &Range<usize>) -> &'a str {
    bytes.get(at.clone()).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default()
}

/// What a scan finds.
enum Found {
    Word(Reserved),
    Other(Kind),
}

/// Whether a word is part of a short quoted name, as keys and the names of types and tools are.
#[derive(Clone, Copy)]
enum Reserved {
    Yes,
    No,
}

const WORD_LENGTH: std::ops::RangeInclusive<usize> = 5..=32;
const QUOTED_LENGTH_MAX: usize = 40;
const BLOB_LENGTH_MIN: usize = 100;
/// The first bytes identify the type of encoded data, so they do not change.
const BLOB_HEAD: usize = 64;
const HEX_LENGTH: std::ops::RangeInclusive<usize> = 7..=128;
const MIXED_LENGTH: std::ops::RangeInclusive<usize> = 16..=99;
/// The number of characters at the end of an id that change.
const MIXED_TAIL: usize = 10;

fn scan(bytes: &[u8], each: &mut impl FnMut(Range<usize>, Found)) {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'\\' => after_escape(bytes, at),
            byte if is_word(*byte) => scan_run(bytes, at, each),
            _ => at + 1,
        };
    }
}

/// The end of an escape. An escape within an escaped text (`\\n`) counts as one, so that no copy changes it.
fn after_escape(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'u') => at + 6,
        Some(b'\\') => match bytes.get(at + 2) {
            Some(b'n' | b'r' | b't' | b'b' | b'f') => at + 3,
            Some(b'u') => at + 7,
            _ => at + 2,
        },
        _ => at + 2,
    }
}

/// Scans a run of letters, digits and underscores, and returns where to continue.
fn scan_run(bytes: &[u8], start: usize, each: &mut impl FnMut(Range<usize>, Found)) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let before = start.checked_sub(1).and_then(|before| bytes.get(before)).copied();
    if !before.is_some_and(is_encoded) {
        let length = length(rest, is_encoded);
        if length >= BLOB_LENGTH_MIN && is_blob(rest.get(..length).unwrap_or_default()) {
            each(start + BLOB_HEAD..start + length, Found::Other(Kind::Blob));
            return start + length;
        }
    }
    let end = start + length(rest, is_word);
    let (mut at, mut ids) = (start, false);
    while at < end {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.first() == Some(&b'_') {
            at += 1;
            continue;
        }
        if let Some((slot, kind, length)) = id(rest) {
            each(at + slot.start..at + slot.end, Found::Other(kind));
            ids = true;
            at += length;
        } else {
            at += length(rest, |byte| byte.is_ascii_alphanumeric()).max(1);
        }
    }
    let word = bytes.get(start..end).unwrap_or_default();
    let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    if !ids && WORD_LENGTH.contains(&word.len()) && letters >= 4 && word.first().is_some_and(u8::is_ascii_alphabetic) {
        each(start..end, Found::Word(reserved(bytes, start)));
    }
    at.max(end)
}

/// The id or time at the start of `rest`: the range that changes, its kind, and the whole length.
fn id(rest: &[u8]) -> Option<(Range<usize>, Kind, usize)> {
    let run = rest.get(..length(rest, |byte| byte.is_ascii_alphanumeric()))?;
    if run.len() == 4 && matches_shape(rest, b"20dd-dd-ddT") {
        return Some((0..10, Kind::Day, 10));
    }
    if run.len() == 8 && matches_shape(rest, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        // A version 7 UUID begins with a time, which does not change. The scan finds the last digits of other UUIDs separately.
        let timed = rest.get(14) == Some(&b'7');
        return Some(if timed { (24..36, Kind::Hex, 36) } else { (0..8, Kind::Hex, 24) });
    }
    let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
    let whole = 0..run.len();
    if digits == run.len() {
        let recent = run.starts_with(b"16") || run.starts_with(b"17");
        return match run.len() {
            10 if recent => Some((whole, Kind::Seconds, run.len())),
            13 if recent => Some((whole, Kind::Millis, run.len())),
            _ => None,
        };
    }
    let hex = run.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hex && digits > 0 && HEX_LENGTH.contains(&run.len()) {
        return Some((whole, Kind::Hex, run.len()));
    }
    if digits >= 2 && MIXED_LENGTH.contains(&run.len()) {
        return Some((run.len() - MIXED_TAIL..run.len(), Kind::Mixed, run.len()));
    }
    None
}

/// Whether the text begins with this shape: `d` is a digit, `x` a hexadecimal digit, other characters are literal.
fn matches_shape(text: &[u8], shape: &[u8]) -> bool {
    text.len() >= shape.len()
        && text.iter().zip(shape).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            shape => byte == shape,
        })
}

fn reserved(bytes: &[u8], start: usize) -> Reserved {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let before = bytes.get(..start).unwrap_or_default().iter().rev().take(QUOTED_LENGTH_MAX);
    let quoted = before.copied().find(|byte| !is_name(*byte)) == Some(b'"');
    let rest = bytes.get(start..).unwrap_or_default();
    let name = length(rest, is_name);
    let closed = matches!(rest.get(name), Some(b'"' | b'\\')) && name <= QUOTED_LENGTH_MAX;
    if quoted && closed { Reserved::Yes } else { Reserved::No }
}

/// Whether the text is encoded bytes: unlike a long path, they contain many digits and capital letters.
fn is_blob(bytes: &[u8]) -> bool {
    let count = |test: fn(&u8) -> bool| bytes.iter().filter(|byte| test(byte)).count();
    count(u8::is_ascii_digit) >= bytes.len() / 64 && count(u8::is_ascii_uppercase) >= bytes.len() / 8
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_encoded(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'+' | b'/' | b'-' | b'=')
}

fn length(bytes: &[u8], test: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !test(*byte)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{Kind, Vocabulary};

    fn found(text: &str) -> Vec<(Kind, String)> {
        let mut vocabulary = Vocabulary::default();
        vocabulary.learn(text.as_bytes());
        let slots = vocabulary.slots(text.as_bytes());
        slots.into_iter().map(|slot| (slot.kind, text[slot.at].to_owned())).collect()
    }

    #[test]
    fn ids_and_times_are_found_by_their_shape() {
        let text = r#"{"uuid":"019f5ccd-3d12-7ee2-b82d-f7e03a3a735b","timestamp":"2026-07-13T18:46:22Z","id":"msg_01AbCdEfGhIjKlMn22","at":1767225600}"#;
        let ids = [
            (Kind::Hex, "f7e03a3a735b"),
            (Kind::Day, "2026-07-13"),
            (Kind::Mixed, "GhIjKlMn22"),
            (Kind::Seconds, "1767225600"),
        ];
        assert_eq!(found(text), ids.map(|(kind, text)| (kind, text.to_owned())));
    }

    #[test]
    fn escapes_and_keys_are_not_parts_of_words() {
        let text = r#"{"command":"echo \\nwheels and \tlevers","kind":"lever-count"}"#;
        let words: Vec<String> = found(text).into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, ["wheels", "levers"]);
    }

    #[test]
    fn encoded_bytes_keep_their_beginning() {
        let text = "iVBORw0KGgoAAAANSUhEUgAA".repeat(10);
        let expected = vec![(Kind::Blob, text[64..].to_owned())];
        assert_eq!(found(&text), expected);
    }
}
