//! The output of a command as HTML: colours of the terminal become classes, and all other escape sequences are removed. The
//! page has sixteen colours that are legible in both of its themes; other colours become the nearest of them.

use super::escape::escape;

/// The longest sequence that is recognized. A longer one is text.
const SEQUENCE_LENGTH_MAX: usize = 4 << 10;

/// The number of coloured spans in one text. Later text has no colour: a page of only escape sequences must not become slow.
const SPANS_MAX: usize = 20_000;

/// Writes text with escape sequences. Colours last from one text to the next.
#[derive(Clone, Debug, Default)]
pub struct AnsiWriter {
    style: AnsiStyle,
    spans: usize,
}

/// What a terminal would draw the next character with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnsiStyle {
    foreground: Option<u8>,
    background: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    inverse: bool,
}

impl AnsiWriter {
    /// Appends a text.
    pub fn write(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(at) = memchr::memchr(0x1b, rest.as_bytes()) {
            let (before, from) = rest.split_at(at);
            self.plain(before, out);
            let length = match sequence(from) {
                Some((length, Some(parameters))) => {
                    self.style.select(parameters);
                    length
                }
                Some((length, None)) => length,
                None => {
                    // Not a sequence: the character is made visible.
                    self.plain("\u{1b}", out);
                    1
                }
            };
            rest = from.get(length..).unwrap_or_default();
        }
        self.plain(rest, out);
    }

    fn plain(&mut self, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        if self.style == AnsiStyle::default() || self.spans >= SPANS_MAX {
            return escape(text, out);
        }
        self.spans += 1;
        out.push_str("<span class=\"");
        self.style.classes(out);
        out.push_str("\">");
        escape(text, out);
        out.push_str("</span>");
    }
}

/// The length of the escape sequence at the start of a text, and its parameters if it selects a style.
fn sequence(text: &str) -> Option<(usize, Option<&str>)> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..SEQUENCE_LENGTH_MAX).unwrap_or(bytes);
    let rest = bytes.get(2..).unwrap_or_default();
    match bytes.get(1)? {
        b'[' => {
            let end = rest.iter().position(|byte| !matches!(byte, 0x20..=0x3f))?;
            let last = rest.get(end).filter(|byte| matches!(byte, 0x40..=0x7e))?;
            let parameters = text.get(2..end + 2).filter(|_| *last == b'm');
            Some((end + 3, parameters))
        }
        // Titles, links and data for the terminal, up to their terminator.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let end = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
            match (rest.get(end)?, rest.get(end + 1)) {
                (0x07, _) => Some((end + 3, None)),
                (_, Some(b'\\')) => Some((end + 4, None)),
                _ => None,
            }
        }
        0x20..=0x2f => {
            let end = rest.iter().position(|byte| !matches!(byte, 0x20..=0x2f))?;
            rest.get(end).filter(|byte| matches!(byte, 0x30..=0x7e))?;
            Some((end + 3, None))
        }
        0x30..=0x7e => Some((2, None)),
        _ => None,
    }
}

impl AnsiStyle {
    /// Applies the parameters of one sequence.
    fn select(&mut self, parameters: &str) {
        if !parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')) {
            return;
        }
        let mut codes = parameters.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = AnsiStyle::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.strike = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.strike = false,
                30..=37 => self.foreground = u8::try_from(code - 30).ok(),
                90..=97 => self.foreground = u8::try_from(code - 82).ok(),
                40..=47 => self.background = u8::try_from(code - 40).ok(),
                100..=107 => self.background = u8::try_from(code - 92).ok(),
                38 => self.foreground = extended(&mut codes),
                48 => self.background = extended(&mut codes),
                39 => self.foreground = None,
                49 => self.background = None,
                _ => {}
            }
        }
    }

    fn classes(self, out: &mut String) {
        let (mut foreground, mut background) = (self.foreground, self.background);
        if self.inverse {
            (foreground, background) = (background, foreground);
        }
        let mut classes: Vec<String> = Vec::new();
        classes.extend(foreground.map(|colour| format!("f{colour}")));
        classes.extend(background.map(|colour| format!("b{colour}")));
        let is_inverse = self.inverse && self.foreground.is_none() && self.background.is_none();
        for (is_on, class) in [
            (is_inverse, "ar"),
            (self.bold, "ab"),
            (self.dim, "ad"),
            (self.italic, "ai"),
            (self.underline, "au"),
            (self.strike, "as"),
        ] {
            classes.extend(is_on.then(|| class.to_owned()));
        }
        out.push_str(&classes.join(" "));
    }
}

/// The colour of `38;5;N` or `38;2;R;G;B`: the nearest of the sixteen.
fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match codes.next()? {
        5 => {
            let number = codes.next()?;
            match number {
                0..=15 => u8::try_from(number).ok(),
                16..=231 => {
                    let level = |step: u16| if step == 0 { 0 } else { 55 + 40 * step };
                    let cube = number - 16;
                    Some(nearest([level(cube / 36), level(cube / 6 % 6), level(cube % 6)]))
                }
                232..=255 => Some(nearest([8 + 10 * (number - 232); 3])),
                _ => None,
            }
        }
        2 => Some(nearest([codes.next()?, codes.next()?, codes.next()?])),
        _ => None,
    }
}

/// The colour with the same strong channels: red, yellow, green, cyan, blue, magenta, or a grey.
fn nearest(channels: [u16; 3]) -> u8 {
    let (highest, lowest) = (channels.iter().max().copied().unwrap_or(0), channels.iter().min().copied().unwrap_or(0));
    if highest - lowest < 40 {
        return match highest {
            0..=50 => 0,
            51..=140 => 8,
            141..=215 => 7,
            _ => 15,
        };
    }
    let middle = highest.midpoint(lowest);
    let hue = channels.iter().enumerate().fold(0, |hue, (at, level)| hue | u8::from(*level > middle) << at);
    if highest > 215 { hue + 8 } else { hue }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        AnsiWriter::default().write(text, &mut out);
        out
    }

    #[test]
    fn colours_become_classes() {
        assert_eq!(written("\x1b[1;31mFAILED\x1b[0m ok"), "<span class=\"f1 ab\">FAILED</span> ok");
        assert_eq!(
            written("\x1b[38;5;196ma\x1b[48;2;0;0;200mb"),
            "<span class=\"f9\">a</span><span class=\"f9 b4\">b</span>"
        );
        assert_eq!(written("\x1b[7mx\x1b[27my"), "<span class=\"ar\">x</span>y");
        assert_eq!(written("\x1b[32m<b>\x1b[m&"), "<span class=\"f2\">&lt;b&gt;</span>&amp;");
    }

    #[test]
    fn other_sequences_are_removed() {
        assert_eq!(written("a\x1b[2J\x1b[10;20Hb\x1b[?25lc\x1b(Bd\x1bMe"), "abcde");
        assert_eq!(written("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "alink");
    }

    #[test]
    fn what_is_not_a_sequence_is_shown() {
        assert_eq!(written("a\x1b"), "a␛");
        assert_eq!(written("\x1b]0;never closed"), "␛]0;never closed");
        assert_eq!(written("\x1b[31"), "␛[31");
        assert_eq!(written("\x1b[é"), "␛[é");
    }

    #[test]
    fn a_text_of_escape_sequences_stays_small() {
        let text = "\x1b[31mx\x1b[32my".repeat(100_000);
        assert!(written(&text).len() < SPANS_MAX * 40 + text.len());
    }
}
