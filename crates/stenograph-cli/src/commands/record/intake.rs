//! How bytes that arrive become events. The format is looked for in the first lines, and nothing is guessed: input that nobody
//! knows is an error, and what a command prints that nobody knows is kept as it is.

use stenograph::format::{Format, Head};
use stenograph::frame::Framing;
use stenograph::model::{Body, Event, Note, Span};
use stenograph::read::{Collected, Sink};
use stenograph::text::Text;
use stenograph::{Detected, Registry};

use super::known::{How, Known};
use crate::error::CommandError;
use crate::input;

/// Bytes on their way to become events.
pub struct Intake {
    state: State,
    unknown: Unknown,
    arrived: Collected,
}

enum State {
    /// The first lines, of which the format is not known yet.
    Held(Vec<u8>),
    Read(Known),
    /// Lines of no format, kept as they are.
    Kept(Lines),
}

/// What is done with input of no format we know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Kept,
}

impl Intake {
    /// Input of this format, or of one to be found; what a command prints is kept in any case, for it was run already.
    pub fn new(from: Option<&str>, command: &[String]) -> Result<Intake, CommandError> {
        let unknown = if command.is_empty() { Unknown::Refused } else { Unknown::Kept };
        let state = match from {
            None => State::Held(Vec::new()),
            Some(name) => State::Read(known(input::format_named(name)?, How::Told)?),
        };
        Ok(Intake { state, unknown, arrived: Collected::default() })
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        match &mut self.state {
            State::Held(held) => {
                held.extend_from_slice(bytes);
                let enough = Head::is_whole(held);
                if enough || held.contains(&b'\n') {
                    self.decide(if enough { Certainty::Needed } else { Certainty::Hoped })?;
                }
            }
            State::Read(known) => known.feed(bytes, &mut self.arrived),
            State::Kept(lines) => lines.feed(bytes, &mut self.arrived),
        }
        Ok(())
    }

    /// Says that nothing more comes.
    pub fn end(&mut self) -> Result<(), CommandError> {
        if let State::Held(held) = &self.state
            && !held.is_empty()
        {
            self.decide(Certainty::Needed)?;
        }
        match std::mem::replace(&mut self.state, State::Held(Vec::new())) {
            State::Held(_) => {}
            State::Read(known) => known.end(&mut self.arrived),
            State::Kept(lines) => lines.end(&mut self.arrived),
        }
        Ok(())
    }

    /// The events and notes since it was asked last.
    pub fn arrived(&mut self) -> Collected {
        std::mem::take(&mut self.arrived)
    }

    fn decide(&mut self, certainty: Certainty) -> Result<(), CommandError> {
        let State::Held(held) = &mut self.state else { return Ok(()) };
        // The first line decides where it can: what comes later in a live stream may be of another kind.
        let line = held.split_inclusive(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let detected = match Registry::built_in().detect(line.unwrap_or_default()) {
            Detected::Tie(_) | Detected::Unknown => Registry::built_in().detect(held),
            known @ Detected::Format(_) => known,
        };
        let state = match (detected, self.unknown, certainty) {
            (Detected::Format(format), _, _) => State::Read(known(format, How::Seen)?),
            (_, _, Certainty::Hoped) => return Ok(()),
            (Detected::Tie(_) | Detected::Unknown, Unknown::Kept, _) => State::Kept(Lines::default()),
            (Detected::Tie(formats), Unknown::Refused, _) => {
                let names: Vec<&str> = formats.iter().map(|format| format.info().name).collect();
                return Err(CommandError::new(format!("standard input could be {}", names.join(" or ")))
                    .hint("say which with --from FORMAT"));
            }
            (Detected::Unknown, Unknown::Refused, _) => {
                return Err(CommandError::new("standard input is in no format that is known: nothing was recorded")
                    .hint("steno formats lists what can be read; --from FORMAT says what this is"));
            }
        };
        let held = std::mem::take(held);
        self.state = state;
        self.feed(&held)
    }
}

/// Whether the format must be known now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Hoped,
    Needed,
}

fn known(format: &'static dyn Format, how: How) -> Result<Known, CommandError> {
    match format.info().framing {
        Framing::Lines | Framing::LinesOrItems(_) => Ok(Known::new(format, how)),
        Framing::Items(_) => {
            let name = format.info().name;
            Err(CommandError::new(format!("{name} is a document, which says nothing before it ends"))
                .hint("convert it: steno convert FILE --to FORMAT"))
        }
    }
}

/// Lines that nobody understands.
#[derive(Default)]
struct Lines {
    open: Vec<u8>,
    offset: u64,
    line: u64,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8], out: &mut dyn Sink) {
        self.open.extend_from_slice(bytes);
        while let Some(newline) = self.open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.open.drain(..=newline).collect();
            self.put(line.strip_suffix(b"\n").unwrap_or(&line), out);
        }
        if self.open.len() >= stenograph::frame::RECORD_SIZE_MAX {
            let line = std::mem::take(&mut self.open);
            self.put(&line, out);
        }
    }

    fn end(mut self, out: &mut dyn Sink) {
        let line = std::mem::take(&mut self.open);
        if !line.is_empty() {
            self.put(&line, out);
        }
    }

    fn put(&mut self, line: &[u8], out: &mut dyn Sink) {
        self.line += 1;
        let at = Span { offset: self.offset, length: line.len() as u64, line: self.line };
        self.offset += line.len() as u64 + 1;
        if self.line == 1 {
            let said = "the command prints nothing that is known: its lines are kept as they are";
            out.note(Note::new(stenograph::model::NoteKind::NotARecord, at, said));
        }
        let body = Body::Other { name: Some("output".into()), bytes: Some(Text::from_bytes(line)) };
        out.event(&Event { at: Some(at), ..Event::new(body) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"a\"}\n";

    #[test]
    fn the_format_is_known_with_the_first_line() {
        let mut intake = Intake::new(None, &[]).unwrap();
        let (first, second) = LINE.split_at(20);
        intake.feed(first.as_bytes()).unwrap();
        assert!(intake.arrived().events.is_empty());
        intake.feed(second.as_bytes()).unwrap();
        assert_eq!(intake.arrived().events.len(), 1);
        intake.feed(LINE.trim_end().as_bytes()).unwrap();
        intake.end().unwrap();
        assert_eq!(intake.arrived().events.len(), 1);
    }

    #[test]
    fn what_nobody_knows_is_refused_or_kept() {
        let mut input = Intake::new(None, &[]).unwrap();
        input.feed(b"hello\n").unwrap();
        assert!(input.end().is_err());
        let mut command = Intake::new(None, &["echo".to_owned()]).unwrap();
        command.feed(b"hello\nwor").unwrap();
        command.feed(b"ld").unwrap();
        command.end().unwrap();
        let arrived = command.arrived();
        assert_eq!((arrived.events.len(), arrived.notes.len()), (2, 1));
    }
}
