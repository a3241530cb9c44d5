//! Where words go: data to standard output, talk to standard error. Transcripts are hostile text, so everything meant for eyes
//! passes through [`harmless`]; colour only repeats what the words say.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

pub use stenograph::render::{grouped, harmless, harmless_json, harmless_line};

use crate::error::{CommandError, Status};

/// The two ways out of the program.
pub struct Output<'a> {
    data: Harmless<'a>,
    talk: Box<dyn Write + 'a>,
    colour: Colour,
}

/// Takes the bytes of a transcript. A program gets every byte; a terminal none that it would obey.
struct Harmless<'a> {
    out: Box<dyn Write + 'a>,
    terminal: bool,
    /// The beginning of a character that is not whole yet.
    rest: Vec<u8>,
}

/// Whether words may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// They may.
    Shown,
    /// They may not.
    Plain,
}

/// What a word is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// A name or a heading.
    Strong,
    /// What matters less.
    Faint,
    /// What is well.
    Good,
    /// What wants to be looked at.
    Warning,
    /// What is gone.
    Gone,
    /// Where something is.
    Place,
}

impl Output<'_> {
    /// Standard output and standard error.
    pub fn standard() -> Output<'static> {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let terminal = io::stdout().is_terminal();
        let colour = if terminal && !plain { Colour::Shown } else { Colour::Plain };
        let data = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let data = Harmless { out: Box::new(data), terminal, rest: Vec::new() };
        Output { data, talk: Box::new(io::stderr()), colour }
    }

    /// Two writers of the caller's own, without colour.
    pub fn to<'a>(data: impl Write + 'a, talk: impl Write + 'a) -> Output<'a> {
        let data = Harmless { out: Box::new(data), terminal: false, rest: Vec::new() };
        Output { data, talk: Box::new(talk), colour: Colour::Plain }
    }

    /// Whether words may be coloured.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// Whether somebody watches what is written.
    pub fn is_terminal(&self) -> bool {
        self.data.terminal
    }

    /// One line of data.
    pub fn line(&mut self, text: &str) -> Result<(), CommandError> {
        Ok(writeln!(self.data.out, "{text}")?)
    }

    /// Data as it comes, without a line's end. What a transcript says in it is harmless already.
    pub fn data(&mut self) -> &mut dyn Write {
        &mut self.data.out
    }

    /// Where a transcript itself goes: as it is into a file or a program, and harmless on a terminal.
    pub fn transcript(&mut self) -> &mut dyn Write {
        &mut self.data
    }

    /// One line of talk. That nobody listens is no reason to stop.
    pub fn say(&mut self, text: &str) {
        // Data first, so that both read in order on a terminal.
        let _ = self.data.flush();
        let _ = writeln!(self.talk, "{}", harmless(text));
    }

    /// An error and its hints.
    pub fn error(&mut self, error: &CommandError) {
        // A name may hold a newline, and what follows it must not look like words of ours.
        let message = harmless_line(error.message());
        match error.status() {
            Status::Done | Status::No | Status::Code(_) => self.say(&message),
            Status::Error => self.say(&format!("error: {message}")),
        }
        for hint in error.hints() {
            self.say(&format!("hint: {}", harmless_line(hint)));
        }
    }

    /// Hands everything on.
    pub fn flush(&mut self) -> Result<(), CommandError> {
        Ok(self.data.flush()?)
    }
}

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let rest = self.rest.split_off(whole);
        let text = std::mem::replace(&mut self.rest, rest);
        self.out.write_all(harmless(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.out.write_all(harmless(&String::from_utf8_lossy(&rest)).as_bytes())?;
        self.out.flush()
    }
}

impl Colour {
    /// The text in that ink.
    pub fn ink(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Strong => "1",
            Ink::Faint => "2",
            Ink::Good => "32",
            Ink::Warning => "33",
            Ink::Gone => "31",
            Ink::Place => "36",
        };
        match self {
            Colour::Shown => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Plain => text.to_owned(),
        }
    }
}

/// The text cut to so many characters, the ellipsis included.
pub fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
            Cow::Owned(kept + "\u{2026}")
        }
    }
}

/// A number of bytes as people write it: `256MB`, `2GiB`, `1000`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1_u64,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err("not a size; write 256MB or 2GiB".to_owned()),
    };
    let number: f64 = digits.trim().parse().map_err(|_| "not a size; write 256MB or 2GiB".to_owned())?;
    let bytes = number * scale as f64;
    if bytes.is_finite() && (0.0..9e18).contains(&bytes) { Ok(bytes as u64) } else { Err("not a size".to_owned()) }
}

/// A number with its word, in the singular or the plural.
pub fn counted(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{} {word}s", grouped(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_a_file_is_called() {
        let mut talk = Vec::new();
        Output::to(Vec::new(), &mut talk).error(&CommandError::new("a\nhint: b: is a folder"));
        assert_eq!(String::from_utf8(talk).unwrap(), "error: a␊hint: b: is a folder\n");
    }

    #[test]
    fn a_transcript_is_harmless_on_a_terminal_and_itself_elsewhere() {
        for (terminal, expected) in [(true, "␛[2J é\\u{9b}\u{fffd}"), (false, "\u{1b}[2J é\u{9b}\u{fffd}")] {
            let mut shown = Vec::new();
            let mut out = Harmless { out: Box::new(&mut shown), terminal, rest: Vec::new() };
            // In pieces that cut characters.
            "\u{1b}[2J é\u{9b}\u{fffd}".as_bytes().chunks(1).for_each(|piece| out.write_all(piece).unwrap());
            out.flush().unwrap();
            drop(out);
            assert_eq!(String::from_utf8(shown).unwrap(), expected);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüx", 3), "äö…");
    }
}
