//! Turns arriving bytes into events. The first lines decide the format, without guessing: standard input of an unknown format
//! is an error; a command's output of an unknown format is kept as it is.

use stenograph::format::{Format, Head};
use stenograph::frame::Framing;
use stenograph::model::{Body, Event, Note, Span};
use stenograph::read::{Collected, Sink};
use stenograph::text::Text;
use stenograph::{Detected, Registry};

use super::known_input::{FormatOrigin, KnownInput};
use crate::error::CommandError;
use crate::input;

pub struct Intake {
    state: IntakeState,
    unknown: Unknown,
    arrived: Collected,
}

enum IntakeState {
    /// The first lines, before the format is known.
    Undecided(Vec<u8>),
    Read(KnownInput),
    /// Lines of an unknown format, kept as they are.
    Kept(RawLines),
}

/// How to treat input of an unknown format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Kept,
}

impl Intake {
    /// Input of the named or a detected format. A command's output is always kept, because the command has already run.
    pub fn new(from: Option<&str>, command: &[String]) -> Result<Intake, CommandError> {
        let unknown = if command.is_empty() { Unknown::Refused } else { Unknown::Kept };
        let state = match from {
            None => IntakeState::Undecided(Vec::new()),
            Some(name) => IntakeState::Read(known_input(input::format_named(name)?, FormatOrigin::Named)?),
        };
        Ok(Intake { state, unknown, arrived: Collected::default() })
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        match &mut self.state {
            IntakeState::Undecided(held) => {
                held.extend_from_slice(bytes);
                let enough = Head::is_whole(held);
                if enough || held.contains(&b'\n') {
                    self.decide(if enough { Certainty::Required } else { Certainty::Optional })?;
                }
            }
            IntakeState::Read(known_input) => known_input.feed(bytes, &mut self.arrived),
            IntakeState::Kept(lines) => lines.feed(bytes, &mut self.arrived),
        }
        Ok(())
    }

    /// Ends the input.
    pub fn end(&mut self) -> Result<(), CommandError> {
        if let IntakeState::Undecided(held) = &self.state
            && !held.is_empty()
        {
            self.decide(Certainty::Required)?;
        }
        match std::mem::replace(&mut self.state, IntakeState::Undecided(Vec::new())) {
            IntakeState::Undecided(_) => {}
            IntakeState::Read(known_input) => known_input.end(&mut self.arrived),
            IntakeState::Kept(lines) => lines.end(&mut self.arrived),
        }
        Ok(())
    }

    /// The events and notes since the last call.
    pub fn arrived(&mut self) -> Collected {
        std::mem::take(&mut self.arrived)
    }

    fn decide(&mut self, certainty: Certainty) -> Result<(), CommandError> {
        let IntakeState::Undecided(held) = &mut self.state else { return Ok(()) };
        // The first line decides if it can: later lines of a live stream may be of another format.
        let line = held.split_inclusive(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let detected = match Registry::built_in().detect(line.unwrap_or_default()) {
            Detected::Tie(_) | Detected::Unknown => Registry::built_in().detect(held),
            known_input @ Detected::Format(_) => known_input,
        };
        let state = match (detected, self.unknown, certainty) {
            (Detected::Format(format), _, _) => IntakeState::Read(known_input(format, FormatOrigin::Detected)?),
            (_, _, Certainty::Optional) => return Ok(()),
            (Detected::Tie(_) | Detected::Unknown, Unknown::Kept, _) => IntakeState::Kept(RawLines::default()),
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
    Optional,
    Required,
}

fn known_input(format: &'static dyn Format, how: FormatOrigin) -> Result<KnownInput, CommandError> {
    match format.info().framing {
        Framing::Lines | Framing::LinesOrItems(_) => Ok(KnownInput::new(format, how)),
        Framing::Items(_) => {
            let name = format.info().name;
            Err(CommandError::new(format!("{name} is a document, which says nothing before it ends"))
                .hint("convert it: steno convert FILE --to FORMAT"))
        }
    }
}

/// Lines of an unknown format.
#[derive(Default)]
struct RawLines {
    open: Vec<u8>,
    offset: u64,
    line: u64,
}

impl RawLines {
    fn feed(&mut self, bytes: &[u8], out: &mut dyn Sink) {
        self.open.extend_from_slice(bytes);
        while let Some(newline) = self.open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.open.drain(..=newline).collect();
            self.add_line(line.strip_suffix(b"\n").unwrap_or(&line), out);
        }
        if self.open.len() >= stenograph::frame::RECORD_SIZE_MAX {
            let line = std::mem::take(&mut self.open);
            self.add_line(&line, out);
        }
    }

    fn end(mut self, out: &mut dyn Sink) {
        let line = std::mem::take(&mut self.open);
        if !line.is_empty() {
            self.add_line(&line, out);
        }
    }

    fn add_line(&mut self, line: &[u8], out: &mut dyn Sink) {
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
    fn the_first_line_decides_the_format() {
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
    fn unknown_input_is_refused_and_unknown_output_is_kept() {
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
