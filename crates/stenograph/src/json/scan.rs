//! Finds where JSON values begin and end. It validates every byte as the JSON parser does, and decodes and allocates nothing.
//! Most of a transcript is strings that the caller never reads, so it skips them a block at a time. Invalid input returns
//! `None` and never panics.

use super::block;

/// The text to scan.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
}

/// A key of an object.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// The key as spelled, without quotes.
    pub spelled: &'a str,
    /// Whether `spelled` differs from the decoded key.
    pub escapes: Escapes,
}

/// Whether a string has escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    None,
    Some,
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a str) -> Scan<'a> {
        Scan { text, bytes: text.as_bytes() }
    }

    /// The offset of the first value.
    pub fn start(&self) -> usize {
        blank(self.bytes, 0)
    }

    /// Whether only white space follows `at`.
    pub fn ends(&self, at: usize) -> bool {
        blank(self.bytes, at) == self.bytes.len()
    }

    /// The text between two offsets.
    pub fn text(&self, from: usize, to: usize) -> Option<&'a str> {
        self.text.get(from..to)
    }

    /// Whether an object begins at `at`.
    pub fn is_object(&self, at: usize) -> bool {
        self.bytes.get(at) == Some(&b'{')
    }

    /// Calls `each` with each member of the object that begins at `at`: its key and the offset of its value. `each` returns the
    /// offset where the value ends. Returns the offset where the object ends.
    pub fn members(&self, at: usize, mut each: impl FnMut(Key<'a>, usize) -> Option<usize>) -> Option<usize> {
        if !self.is_object(at) {
            return None;
        }
        let mut at = blank(self.bytes, at + 1);
        if self.bytes.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        loop {
            let (end, escapes) = self.quoted(at)?;
            let key = Key { spelled: self.text.get(at + 1..end - 1)?, escapes };
            at = blank(self.bytes, each(key, self.colon(end)?)?);
            match self.bytes.get(at)? {
                b',' => at = blank(self.bytes, at + 1),
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// The elements of the array that makes up the whole text.
    pub fn elements(&self) -> Option<Vec<&'a str>> {
        let mut at = self.start();
        if self.bytes.get(at) != Some(&b'[') {
            return None;
        }
        let mut found = Vec::new();
        at = blank(self.bytes, at + 1);
        if self.bytes.get(at) == Some(&b']') {
            return self.ends(at + 1).then_some(found);
        }
        loop {
            let to = self.value(at)?;
            found.push(self.text.get(at..to)?);
            at = blank(self.bytes, to);
            match self.bytes.get(at)? {
                b',' => at = blank(self.bytes, at + 1),
                b']' => return self.ends(at + 1).then_some(found),
                _ => return None,
            }
        }
    }

    /// The end of the value that begins at `at`.
    pub fn value(&self, mut at: usize) -> Option<usize> {
        let mut open = Open::default();
        loop {
            at = match self.bytes.get(at)? {
                b'"' => self.string(at)?,
                b'{' => {
                    let inner = blank(self.bytes, at + 1);
                    if self.bytes.get(inner) == Some(&b'}') {
                        inner + 1
                    } else {
                        open.push(Bracket::Object);
                        at = self.colon(self.string(inner)?)?;
                        continue;
                    }
                }
                b'[' => {
                    let inner = blank(self.bytes, at + 1);
                    if self.bytes.get(inner) == Some(&b']') {
                        inner + 1
                    } else {
                        open.push(Bracket::Array);
                        at = inner;
                        continue;
                    }
                }
                b't' => self.word(at, b"true")?,
                b'f' => self.word(at, b"false")?,
                b'n' => self.word(at, b"null")?,
                _ => self.number(at)?,
            };
            // The next byte closes the innermost bracket or continues in it.
            loop {
                let Some(innermost) = open.innermost() else { return Some(at) };
                at = blank(self.bytes, at);
                match (innermost, self.bytes.get(at)?) {
                    (Bracket::Object, b',') => {
                        at = self.colon(self.string(blank(self.bytes, at + 1))?)?;
                        break;
                    }
                    (Bracket::Array, b',') => {
                        at = blank(self.bytes, at + 1);
                        break;
                    }
                    (Bracket::Object, b'}') | (Bracket::Array, b']') => {
                        open.pop();
                        at += 1;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// The start of the value after the colon that follows a key.
    fn colon(&self, at: usize) -> Option<usize> {
        let at = blank(self.bytes, at);
        (self.bytes.get(at) == Some(&b':')).then(|| blank(self.bytes, at + 1))
    }

    /// The end of the string that begins at `at`.
    pub fn string(&self, at: usize) -> Option<usize> {
        Some(self.quoted(at)?.0)
    }

    /// The end of the string that begins at `at`, and whether it has escapes.
    #[inline]
    fn quoted(&self, at: usize) -> Option<(usize, Escapes)> {
        if self.bytes.get(at) != Some(&b'"') {
            return None;
        }
        let (mut at, mut escapes) = (at + 1, Escapes::None);
        loop {
            at = block::ends(self.bytes, at)?;
            match self.bytes.get(at)? {
                b'"' => return Some((at + 1, escapes)),
                b'\\' => escapes = Escapes::Some,
                // A control character.
                _ => return None,
            }
            match self.bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if self.bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            }
        }
    }

    fn word(&self, at: usize, word: &[u8]) -> Option<usize> {
        self.bytes.get(at..)?.starts_with(word).then_some(at + word.len())
    }

    fn number(&self, at: usize) -> Option<usize> {
        let digits = |at: usize| {
            let rest = self.bytes.get(at..).unwrap_or_default();
            at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let some_digits = |at: usize| Some(digits(at)).filter(|end| *end > at);
        let at = if self.bytes.get(at) == Some(&b'-') { at + 1 } else { at };
        let mut end = some_digits(at)?;
        if self.bytes.get(at) == Some(&b'0') && end > at + 1 {
            return None;
        }
        if self.bytes.get(end) == Some(&b'.') {
            end = some_digits(end + 1)?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(end) {
            let sign = usize::from(matches!(self.bytes.get(end + 1), Some(b'+' | b'-')));
            end = some_digits(end + 1 + sign)?;
        }
        Some(end)
    }
}

#[inline]
pub(super) fn blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The kind of an open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Array,
    Object,
}

/// The open brackets, one bit each. `full` holds further words for values nested more than 64 deep, which real files do not
/// contain.
#[derive(Default)]
struct Open {
    word: u64,
    depth: usize,
    full: Vec<u64>,
}

impl Open {
    const BITS: usize = 64;

    fn push(&mut self, bracket: Bracket) {
        if self.depth > 0 && self.depth.is_multiple_of(Open::BITS) {
            self.full.push(std::mem::take(&mut self.word));
        }
        self.word = self.word << 1 | u64::from(bracket == Bracket::Object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.word >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 && self.depth.is_multiple_of(Open::BITS) {
            self.word = self.full.pop().unwrap_or_default();
        }
    }

    fn innermost(&self) -> Option<Bracket> {
        (self.depth > 0).then_some(if self.word & 1 == 1 { Bracket::Object } else { Bracket::Array })
    }
}

#[cfg(test)]
mod tests;
