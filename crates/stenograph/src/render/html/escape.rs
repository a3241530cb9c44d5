//! Text of a transcript as text of an HTML document. Every text passes through here, so it can neither begin markup nor end
//! an attribute, and its control characters are visible.

use super::super::harmless::harmless;

/// Appends a text, as content or inside a quoted attribute.
pub fn escape(text: &str, out: &mut String) {
    let harmless = harmless(text);
    let mut rest: &str = &harmless;
    while let Some((at, entity)) = next_entity(rest) {
        out.push_str(rest.get(..at).unwrap_or_default());
        out.push_str(entity);
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// The first byte that has a meaning in HTML, and its entity.
fn next_entity(text: &str) -> Option<(usize, &'static str)> {
    let entity = |byte: u8| match byte {
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'&' => Some("&amp;"),
        b'"' => Some("&quot;"),
        b'\'' => Some("&#39;"),
        _ => None,
    };
    /// The compiler turns the comparison of this many bytes into vector instructions.
    const BLOCK_SIZE: usize = 32;
    let is_special = |byte: &u8| matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\'');
    let mut rest = text.as_bytes();
    while let Some((block, more)) = rest.split_first_chunk::<BLOCK_SIZE>() {
        if block.iter().fold(false, |special, byte| special | is_special(byte)) {
            break;
        }
        rest = more;
    }
    let before = text.len() - rest.len();
    rest.iter().enumerate().find_map(|(at, byte)| Some((before + at, entity(*byte)?)))
}

/// A text on one line, as content or inside a quoted attribute.
pub fn escaped_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for (at, line) in text.lines().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        escape(line, &mut out);
    }
    out
}

/// The first characters of a text, with an ellipsis if there are more, on one line and without surplus white space.
pub fn first_words(text: &str, chars_max: usize) -> String {
    let mut short = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let space = usize::from(count > 0);
        let length = word.chars().count();
        if count + space + length > chars_max {
            // A single long word is cut; otherwise the cut is between words.
            if count == 0 {
                short.extend(word.chars().take(chars_max));
            }
            short.push('\u{2026}');
            break;
        }
        if space > 0 {
            short.push(' ');
        }
        short.push_str(word);
        count += space + length;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_begins_markup_or_ends_an_attribute() {
        let mut out = String::new();
        escape("<script>'\"&amp;\u{202e}\x1b[2J\r\n", &mut out);
        assert_eq!(out, "&lt;script&gt;&#39;&quot;&amp;amp;\\u{202e}␛[2J\n");
        assert_eq!(escaped_line("a\r\n<b>"), "a &lt;b&gt;");
    }

    #[test]
    fn a_text_is_cut_between_words() {
        assert_eq!(first_words("one  two\nthree", 8), "one two…");
        assert_eq!(first_words("one two", 7), "one two");
        assert_eq!(first_words("漢字漢字", 3), "漢字漢…");
    }
}
