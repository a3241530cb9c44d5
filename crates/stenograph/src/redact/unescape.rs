//! Removes one level of escaping from a text, of JSON, of XML or of a terminal, and remembers where each part came from, so
//! that a range of the result can be found in the original.

use std::ops::Range;

use memchr::memchr3;

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

/// The byte that begins a sequence for a terminal, such as a colour. A sequence may be in or before a secret.
const ESC: u8 = 0x1b;

/// The length of the sequence `[31m` without its first byte.
fn sequence_length(after: &[u8]) -> Option<usize> {
    const PARAMETERS_MAX: usize = 32;
    let parameters = after.strip_prefix(b"[")?;
    let is_parameter = |byte: &&u8| matches!(byte, b'0'..=b'?');
    let length = parameters.iter().take(PARAMETERS_MAX).take_while(is_parameter).count();
    parameters.get(length).filter(|last| last.is_ascii_alphabetic()).map(|_| length + 2)
}

/// The text without one level of escaping; `None` if it has none.
pub(super) fn unescaped(original: &[u8]) -> Option<Unescaped> {
    memchr3(b'\\', b'&', ESC, original)?;
    let (mut text, mut marks) = (Vec::with_capacity(original.len()), Vec::new());
    let mut rest = original;
    while let Some(plain) = memchr3(b'\\', b'&', ESC, rest) {
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
        if let Some(after) = escape.strip_prefix(&[ESC]) {
            match sequence_length(after) {
                Some(length) => {
                    marks.push((text.len(), original.len() - escape.len()));
                    rest = after.get(length..).unwrap_or_default();
                    marks.push((text.len(), original.len() - rest.len()));
                }
                None => {
                    text.push(ESC);
                    rest = after;
                }
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

/// How a text may be spelled in JSON, in JSON in JSON, and in XML; nothing if it is spelled as it is.
pub(super) fn escaped_spellings(text: &[u8]) -> Vec<Vec<u8>> {
    const LEVELS: usize = 3;
    let replaced = |text: &[u8], escapes: &dyn Fn(u8) -> Option<&'static [u8]>| -> Vec<u8> {
        text.iter().flat_map(|byte| escapes(*byte).map_or(vec![*byte], <[u8]>::to_vec)).collect()
    };
    let in_json = |byte: u8| -> Option<&'static [u8]> {
        match byte {
            b'"' => Some(b"\\\""),
            b'\\' => Some(b"\\\\"),
            _ => None,
        }
    };
    let in_xml = |byte: u8| ENTITIES.iter().find(|(_, entity)| *entity == byte).map(|(name, _)| *name);
    let with_slashes = replaced(text, &|byte| if byte == b'/' { Some(b"\\/") } else { in_json(byte) });
    let xml = replaced(text, &in_xml);
    let mut spellings = vec![replaced(&xml, &in_json), xml, with_slashes];
    let mut json = text.to_vec();
    for _ in 0..LEVELS {
        json = replaced(&json, &in_json);
        spellings.push(json.clone());
    }
    spellings.retain(|spelling| spelling != text);
    spellings
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

    /// The offset in the text of a byte of the original; `None` inside an escape, unless it begins there.
    pub fn position(&self, original: usize) -> Option<usize> {
        let after = self.marks.partition_point(|(_, from)| *from <= original);
        match after.checked_sub(1).and_then(|before| self.marks.get(before)) {
            Some((mark, from)) if is_end(after) => (*from == original).then_some(*mark),
            Some((mark, from)) => Some(mark + (original - from)),
            None => Some(original),
        }
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
        let positions: Vec<Option<usize>> = [0, 1, 2, 3, 4, 10, 12].map(|at| unescaped.position(at)).to_vec();
        assert_eq!(positions, [Some(0), Some(1), None, Some(2), Some(3), Some(4), Some(5)]);
    }

    #[test]
    fn sequences_for_a_terminal_are_removed() {
        let original = b"a\x1b[01;31mAK\x1b[KIA\x1b[m \x1b]0;x";
        let unescaped = unescaped(original).unwrap();
        assert_eq!(unescaped.text, b"aAKIA \x1b]0;x");
        assert_eq!(&original[unescaped.original(&(1..5))], b"AK\x1b[KIA");
    }
}
