//! Text that does nothing to a terminal or to a reader's eyes: control characters are shown instead of done. What a text
//! means in some markup is not known here.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What a character does to a terminal or to a reader's eyes.
enum Mischief {
    None,
    /// It has a picture.
    Pictured(char),
    /// It has none, and is spelled out.
    Spelled,
}

fn mischief(char: char) -> Mischief {
    match char {
        '\n' | '\t' => Mischief::None,
        '\0'..='\x1f' => Mischief::Pictured(char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}')),
        '\x7f' => Mischief::Pictured('\u{2421}'),
        // C1, what turns the direction of writing, line ends that are none, and letters nobody sees.
        '\u{80}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{e0000}'..='\u{e007f}' => Mischief::Spelled,
        _ => Mischief::None,
    }
}

fn is_harmless(text: &str) -> bool {
    // Almost every text is plain ASCII, which is told apart much faster byte by byte.
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'));
    plain || text.chars().all(|char| matches!(mischief(char), Mischief::None))
}

/// The text with control characters shown instead of done: newlines and tabs stay, and CRLF is a newline.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_harmless(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match mischief(char) {
            _ if char == '\r' && chars.peek() == Some(&'\n') => {}
            Mischief::None => out.push(char),
            Mischief::Pictured(picture) => out.push(picture),
            Mischief::Spelled => out.extend(char.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Like [`harmless`], for what has to stay on one line.
pub fn harmless_line(text: &str) -> String {
    harmless(text).replace('\n', "\u{240a}").replace('\t', " ")
}

/// A line of JSON that says the same and holds no character that would do something to a terminal.
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    if is_harmless(json) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match mischief(char) {
            Mischief::None => out.push(char),
            Mischief::Pictured(_) | Mischief::Spelled => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

/// A number with a comma after every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn control_characters_are_shown_and_not_done() {
        assert_eq!(harmless("a\x1b[31m\tb\r\nc\x07\u{9b}\u{202e}\r"), "a␛[31m\tb\nc␇\\u{9b}\\u{202e}␍");
        assert_eq!(harmless_line("a\nb"), "a␊b");
        assert_eq!(harmless_json("{\"a\":\"\u{9b}\u{e0041}\"}"), "{\"a\":\"\\u009b\\udb40\\udc41\"}");
        assert!(matches!(harmless("plain é 漢\n"), Cow::Borrowed(_)));
    }
}
