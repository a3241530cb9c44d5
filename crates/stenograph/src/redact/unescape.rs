//! Removes one level of escaping from a text, of JSON or of XML, and remembers where each part came from, so that a range of the result can be
//! found in the original.

use std::ops::Range;

use memchr::memchr2;

use crate::text::unescape_one;

/// A text with one level of escaping removed.
pub(super) struct Unescaped {
    pub text: Vec<u8>,
    /// After each escape: the offset in the text, and the offset in the original.
    marks: Vec<(usize, usize)>,
}

/// What some formats for people spell quotes as.
pub(super) const ENTITIES: [(&[u8], u8); 7] = [
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
    (b"&#34;", b'"'),
    (b"&#39;", b'\''),
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
];

/// The text without one level of escaping; `None` if it has none.
pub(super) fn unescaped(original: &[u8]) -> Option<Unescaped> {
    memchr2(b'\\', b'&', original)?;
    let (mut text, mut marks) = (Vec::with_capacity(original.len()), Vec::new());
    let mut rest = original;
    while let Some(plain) = memchr2(b'\\', b'&', rest) {
        let (before, escape) = rest.split_at(plain);
        text.extend_from_slice(before);
        if let Some(after) = escape.strip_prefix(b"&") {
            let entity = ENTITIES.iter().find(|(name, _)| escape.starts_with(name));
            if let Some((name, byte)) = entity {
                marks.push((text.len(), original.len() - escape.len()));
                text.push(*byte);
                rest = escape.get(name.len()..).unwrap_or_default();
                marks.push((text.len(), original.len() - rest.len()));
            } else {
                text.push(b'&');
                rest = after;
            }
            continue;
        }
        // The start of an escape is marked too: what it becomes may be longer than one byte.
        marks.push((text.len(), original.len() - escape.len()));
        rest = unescape_one(escape, &mut text);
        marks.push((text.len(), original.len() - rest.len()));
    }
    text.extend_from_slice(rest);
    Some(Unescaped { text, marks })
}

impl Unescaped {
    /// The range of the original that became this range. An end inside an escape takes the whole escape.
    pub fn original(&self, range: &Range<usize>) -> Range<usize> {
        let next = self.marks.partition_point(|(at, _)| *at < range.end);
        let end = match self.marks.get(next) {
            Some((at, from)) if *at == range.end || is_end(next) => *from,
            _ => self.offset(range.end),
        };
        self.offset(range.start)..end
    }

    fn offset(&self, at: usize) -> usize {
        let after = self.marks.partition_point(|(mark, _)| *mark <= at);
        match after.checked_sub(1).and_then(|before| self.marks.get(before)) {
            Some((_, from)) if is_end(after) => *from,
            Some((mark, from)) => from + (at - mark),
            None => at,
        }
    }
}

/// Whether the mark with this number ends an escape: starts and ends alternate.
fn is_end(mark: usize) -> bool {
    mark % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_in_the_original() {
        let original = br#"a\"b\u0041\\n c"#;
        let unescaped = unescaped(original).unwrap();
        assert_eq!(unescaped.text, br#"a"bA\n c"#);
        let spelled = |range: Range<usize>| String::from_utf8(original[unescaped.original(&range)].to_vec()).unwrap();
        assert_eq!(spelled(0..1), "a");
        assert_eq!(spelled(1..2), "\\\"");
        assert_eq!(spelled(2..4), "b\\u0041");
        assert_eq!(spelled(4..5), "\\\\");
        assert_eq!(spelled(6..8), " c");
    }
}
