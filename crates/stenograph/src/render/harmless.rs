//! Text that cannot affect a terminal or mislead a reader: control characters are shown instead of executed. This module
//! knows nothing of markup.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::ledger::Money;

/// The effect of a character on a terminal or a reader.
enum TerminalEffect {
    None,
    /// A visible character.
    Pictured(char),
    /// An invisible or active character, which is spelled out.
    Spelled,
}

/// `before` is the preceding character.
fn effect_of(char: char, before: Option<char>) -> TerminalEffect {
    match char {
        '\n' | '\t' => TerminalEffect::None,
        '\0'..='\x1f' => TerminalEffect::Pictured(char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}')),
        '\x7f' => TerminalEffect::Pictured('\u{2421}'),
        // Joiners belong in some scripts and in emoji sequences. Elsewhere they only hide text.
        '\u{200c}' | '\u{200d}' if before.is_some_and(joins) => TerminalEffect::None,
        char if is_unseen(char) => TerminalEffect::Spelled,
        _ => TerminalEffect::None,
    }
}

/// Whether a joiner after this character has a meaning.
fn joins(char: char) -> bool {
    !char.is_ascii() && !is_unseen(char)
}

/// C1 controls, bidirectional controls, unusual line separators, and zero-width characters.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn is_harmless(text: &str) -> bool {
    plain_length(text) == text.len() || looked_at(text).all(|(_, effect)| matches!(effect, TerminalEffect::None))
}

/// The length of the plain ASCII at the beginning of a text, perhaps a little less. Almost all text is plain, and checking bytes
/// is much faster.
fn plain_length(text: &str) -> usize {
    /// The compiler turns the comparison of this many bytes into vector instructions.
    const BLOCK_SIZE: usize = 32;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let mut rest = text.as_bytes();
    while let Some((block, more)) = rest.split_first_chunk::<BLOCK_SIZE>() {
        if !block.iter().fold(true, |plain, byte| plain & is_plain(byte)) {
            break;
        }
        rest = more;
    }
    text.len() - rest.len() + rest.iter().take_while(|byte| is_plain(byte)).count()
}

/// Every character with its effect.
fn looked_at(text: &str) -> impl Iterator<Item = (char, TerminalEffect)> {
    let mut before = None;
    text.chars().map(move |char| (char, effect_of(char, before.replace(char))))
}

/// The text with control characters made visible. Newlines and tabs stay, and CRLF becomes a newline.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_harmless(text) {
        return Cow::Borrowed(text);
    }
    let (plain, text) = text.split_at_checked(plain_length(text)).unwrap_or(("", text));
    let mut out = String::with_capacity(plain.len() + text.len() + 16);
    out.push_str(plain);
    let mut chars = looked_at(text).peekable();
    while let Some((char, effect)) = chars.next() {
        match effect {
            _ if char == '\r' && chars.peek().is_some_and(|(next, _)| *next == '\n') => {}
            TerminalEffect::None => out.push(char),
            TerminalEffect::Pictured(picture) => out.push(picture),
            TerminalEffect::Spelled => out.extend(char.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Like [`harmless`], for text that must stay on one line.
pub fn harmless_line(text: &str) -> String {
    harmless(text).replace('\n', "\u{240a}").replace('\t', " ")
}

/// An equivalent line of JSON without characters that affect a terminal.
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    if is_harmless(json) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for (char, effect) in looked_at(json) {
        match effect {
            TerminalEffect::None => out.push(char),
            TerminalEffect::Pictured(_) | TerminalEffect::Spelled => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

/// A number with thousands separators.
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

/// An amount in dollars. Most sessions cost less than a dollar, so such an amount has four decimals: rounded to cents, the parts of a
/// table would not add up to its total.
pub fn dollars(amount: Money) -> String {
    let sign = if amount.is_negative() { "-" } else { "" };
    let exact = amount.rounded(4);
    let exact = exact.strip_prefix('-').unwrap_or(&exact);
    let rounded = amount.rounded(2);
    let rounded = rounded.strip_prefix('-').unwrap_or(&rounded);
    match rounded.split_once('.') {
        _ if amount.is_zero() => "$0.00".to_owned(),
        _ if exact == "0.0000" => format!("<{sign}$0.0001"),
        _ if exact.starts_with("0.") => format!("{sign}${exact}"),
        Some((whole, cents)) => {
            format!("{sign}${}.{cents}", whole.parse().map_or_else(|_| whole.to_owned(), grouped))
        }
        None => format!("{sign}${rounded}"),
    }
}

/// The cost that a source states, in dollars; `None` if it is not an amount.
pub fn stated_dollars(cost: f64) -> Option<String> {
    Money::parse(&cost.to_string()).map(dollars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_below_a_dollar_have_four_decimals() {
        let shown = |text| dollars(Money::parse(text).unwrap());
        assert_eq!(
            ["0", "0.00001", "0.0042", "0.5", "0.99999", "1.5", "1234567.891", "-0.5", "-2"].map(shown),
            ["$0.00", "<$0.0001", "$0.0042", "$0.5000", "$1.00", "$1.50", "$1,234,567.89", "-$0.5000", "-$2.00"]
        );
        assert_eq!(stated_dollars(0.12).as_deref(), Some("$0.1200"));
        assert_eq!(stated_dollars(f64::NAN), None);
    }

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

    #[test]
    fn what_turns_writing_around_or_takes_no_room_is_spelled() {
        for char in [
            '\u{34f}',
            '\u{61c}',
            '\u{200b}',
            '\u{200e}',
            '\u{200f}',
            '\u{202e}',
            '\u{2060}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0100}',
        ] {
            assert_eq!(harmless(&format!("a{char}b")), format!("a\\u{{{:x}}}b", u32::from(char)));
            assert!(!harmless_json(&format!("\"{char}\"")).contains(char));
        }
    }

    #[test]
    fn a_joiner_stays_where_a_script_or_a_picture_needs_it() {
        for text in ["\u{645}\u{6cc}\u{200c}\u{62e}", "\u{1f469}\u{200d}\u{1f680}", "\u{2764}\u{fe0f}\u{200d}\u{1f525}"]
        {
            assert!(matches!(harmless(text), Cow::Borrowed(_)), "{text:?}");
        }
        assert_eq!(harmless("pass\u{200d}word \u{200c}"), "pass\\u{200d}word \\u{200c}");
    }
}
