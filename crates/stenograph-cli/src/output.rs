//! Output: data goes to standard output, messages go to standard error. Transcripts are hostile text, so all text for people
//! passes through [`harmless`]; colour only repeats what the words say.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

pub use stenograph::render::{dollars, grouped, harmless, harmless_json, harmless_line, stated_dollars};

use crate::error::{CommandError, ExitStatus};
use crate::terminal::{self, Pager, wrapped_text};

/// Standard output and standard error.
pub struct Output<'a> {
    data: Harmless<'a>,
    talk: Box<dyn Write + 'a>,
    choice: ColourChoice,
    colour: Colour,
    /// Whether a pager may be started.
    may_page: bool,
    pager: Option<Pager>,
    /// The width of the terminal that messages go to.
    message_width: Option<usize>,
    /// Messages that wait until the reader leaves the pager.
    waiting: Vec<String>,
    /// Whether a message with the word *error* was printed.
    has_error: bool,
}

/// Which colours the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// Color on a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always color
    Always,
    /// Never color
    Never,
}

impl ColourChoice {
    fn on_terminal(self) -> Colour {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if self == ColourChoice::Auto && !is_plain { Colour::Shown } else { self.elsewhere() }
    }

    fn elsewhere(self) -> Colour {
        if self == ColourChoice::Always { Colour::Shown } else { Colour::Plain }
    }
}

/// A writer for transcripts. A program receives every byte; a terminal receives no control sequence.
struct Harmless<'a> {
    out: Box<dyn Write + 'a>,
    terminal: bool,
    /// The bytes of an incomplete character.
    partial: Vec<u8>,
}

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    People,
    Json,
}

impl OutputForm {
    pub fn of(json: bool) -> OutputForm {
        if json { OutputForm::Json } else { OutputForm::People }
    }
}

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Shown,
    Plain,
}

/// The meaning of a text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// A name or a heading.
    Strong,
    /// Less important text.
    Faint,
    /// Success.
    Good,
    /// Something that needs attention.
    Warning,
    /// Something removed.
    Gone,
    /// A location.
    Place,
}

impl Output<'_> {
    pub fn standard(choice: ColourChoice, may_page: bool) -> Output<'static> {
        let terminal = io::stdout().is_terminal();
        let colour = if terminal { choice.on_terminal() } else { choice.elsewhere() };
        let data = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let data = Harmless { out: Box::new(data), terminal, partial: Vec::new() };
        Output {
            data,
            talk: Box::new(io::stderr()),
            choice,
            colour,
            may_page,
            pager: None,
            message_width: terminal::message_width(),
            waiting: Vec::new(),
            has_error: false,
        }
    }

    /// Two given writers, without colour.
    pub fn to<'a>(data: impl Write + 'a, talk: impl Write + 'a) -> Output<'a> {
        let data = Harmless { out: Box::new(data), terminal: false, partial: Vec::new() };
        let talk = Box::new(talk);
        let (choice, colour) = (ColourChoice::Never, Colour::Plain);
        Output {
            data,
            talk,
            choice,
            colour,
            may_page: false,
            pager: None,
            message_width: None,
            waiting: Vec::new(),
            has_error: false,
        }
    }

    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// The colour of what is drawn on a terminal, even if standard output goes elsewhere.
    pub fn colour_on_terminal(&self) -> Colour {
        self.choice.on_terminal()
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.data.terminal
    }

    /// Whether a pager shows the output of this command if a person reads it.
    pub fn may_page(&self) -> bool {
        self.may_page && Pager::is_enabled()
    }

    /// Passes data to a pager from now on, if a person reads it.
    pub fn page(&mut self) {
        if !self.data.terminal || !self.may_page || self.pager.is_some() {
            return;
        }
        if let Some((pager, input)) = Pager::start() {
            let _ = self.data.flush();
            self.data.out = Box::new(BufWriter::with_capacity(16 << 10, input));
            self.pager = Some(pager);
        }
    }

    /// Waits until the reader leaves the pager, and prints the messages that waited for it.
    pub fn finish(&mut self) -> Result<(), CommandError> {
        let flushed = self.flush();
        if let Some(pager) = self.pager.take() {
            // The pager reads until its input is closed.
            self.data.out = Box::new(io::stdout());
            pager.wait();
        }
        for text in std::mem::take(&mut self.waiting) {
            self.say(&text);
        }
        flushed
    }

    /// Writes one line of data.
    pub fn line(&mut self, text: &str) -> Result<(), CommandError> {
        let text = if self.data.terminal { wrapped_text(text, terminal::width()) } else { text.into() };
        Ok(writeln!(self.data.out, "{text}")?)
    }

    /// The data writer, for text without a line end. The caller makes transcript text harmless.
    pub fn data(&mut self) -> &mut dyn Write {
        &mut self.data.out
    }

    /// The writer for a transcript: unchanged to a file or a program, harmless on a terminal.
    pub fn transcript(&mut self) -> &mut dyn Write {
        &mut self.data
    }

    /// Writes one line to standard error. A failure to write is ignored.
    pub fn say(&mut self, text: &str) {
        if self.pager.is_some() {
            return self.waiting.push(text.to_owned());
        }
        // Flushes data first, so that both appear in order on a terminal.
        let _ = self.data.flush();
        let text = harmless(text);
        let text = self.message_width.map_or(Cow::Borrowed(text.as_ref()), |width| wrapped_text(&text, width));
        let _ = writeln!(self.talk, "{text}");
    }

    /// The exit status of a command that ends with `status`. A printed error raises it.
    pub fn raised(&self, status: ExitStatus) -> ExitStatus {
        if self.has_error { status.max(ExitStatus::Error) } else { status }
    }

    /// Prints an error and its hints. The command may go on; its exit status is then at least [`ExitStatus::Error`].
    pub fn error(&mut self, error: &CommandError) {
        self.has_error |= error.status() == ExitStatus::Error;
        self.retried_error(error);
    }

    /// Prints an error after which the command tries again, so its exit status stays.
    pub fn retried_error(&mut self, error: &CommandError) {
        // A file name may contain a newline; the text after it must not look like a message of steno.
        let message = harmless_line(error.message());
        match error.status() {
            ExitStatus::Done | ExitStatus::No | ExitStatus::Code(_) => self.say(&message),
            ExitStatus::Error => self.say(&format!("error: {message}")),
        }
        for hint in error.hints() {
            self.say(&format!("hint: {}", harmless_line(hint)));
        }
    }

    pub fn flush(&mut self) -> Result<(), CommandError> {
        Ok(self.data.flush()?)
    }
}

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.partial.len(),
        };
        let partial = self.partial.split_off(whole);
        let text = std::mem::replace(&mut self.partial, partial);
        self.out.write_all(harmless(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let partial = std::mem::take(&mut self.partial);
        self.out.write_all(harmless(&String::from_utf8_lossy(&partial)).as_bytes())?;
        self.out.flush()
    }
}

impl Colour {
    /// Colours a text.
    pub fn paint(self, paint: TextStyle, text: &str) -> String {
        let code = match paint {
            TextStyle::Strong => "1",
            TextStyle::Faint => "2",
            TextStyle::Good => "32",
            TextStyle::Warning => "33",
            TextStyle::Gone => "31",
            TextStyle::Place => "36",
        };
        match self {
            Colour::Shown => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Plain => text.to_owned(),
        }
    }
}

/// Cuts a text to `chars_max` characters, including the ellipsis.
pub fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
            Cow::Owned(kept + "\u{2026}")
        }
    }
}

/// Parses a number of bytes: `256MB`, `2GiB`, `1000`.
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

/// A number with its noun, in the singular or the plural.
pub fn counted(number: u64, word: &str) -> String {
    match word.strip_suffix("ry") {
        _ if number == 1 => format!("1 {word}"),
        Some(stem) => format!("{} {stem}ries", grouped(number)),
        None => format!("{} {word}s", grouped(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_takes_one_line_whatever_the_file_name() {
        let mut talk = Vec::new();
        Output::to(Vec::new(), &mut talk).error(&CommandError::new("a\nhint: b: is a folder"));
        assert_eq!(String::from_utf8(talk).unwrap(), "error: a␊hint: b: is a folder\n");
    }

    #[test]
    fn a_transcript_is_harmless_on_a_terminal_and_unchanged_elsewhere() {
        for (terminal, expected) in [(true, "␛[2J é\\u{9b}\u{fffd}"), (false, "\u{1b}[2J é\u{9b}\u{fffd}")] {
            let mut shown = Vec::new();
            let mut out = Harmless { out: Box::new(&mut shown), terminal, partial: Vec::new() };
            // In pieces that split characters.
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
