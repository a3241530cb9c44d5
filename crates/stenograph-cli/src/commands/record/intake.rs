//! Turns arriving bytes into events. The first lines decide the format, without guessing: standard input of an unknown format
//! is an error; a command's output of an unknown format is kept as it is.

use stenograph::format::{Format, Head};
use stenograph::frame::{LinePiece, LineSplitter, RECORD_SIZE_MAX};
use stenograph::model::{Body, Event, Note, NoteKind};
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
            detected @ Detected::Format(_) => detected,
        };
        let state = match (detected, self.unknown, certainty) {
            (Detected::Format(format), unknown, _) => match (known_input(format, FormatOrigin::Detected), unknown) {
                (Ok(known), _) => IntakeState::Read(known),
                (Err(_), Unknown::Kept) => IntakeState::Kept(RawLines::new(format!(
                    "the output of the command is a {} document; recording its lines as plain text",
                    format.info().name
                ))),
                (Err(error), Unknown::Refused) => return Err(error),
            },
            (_, _, Certainty::Optional) => return Ok(()),
            (Detected::Tie(_) | Detected::Unknown, Unknown::Kept, _) => IntakeState::Kept(RawLines::new(
                "the output of the command has no known format; recording its lines as plain text".to_owned(),
            )),
            (Detected::Tie(formats), Unknown::Refused, _) => {
                let names: Vec<&str> = formats.iter().map(|format| format.info().name).collect();
                return Err(CommandError::new(format!("standard input: ambiguous format: {}", names.join(" or ")))
                    .hint("choose one with --from FORMAT"));
            }
            (Detected::Unknown, Unknown::Refused, _) => {
                return Err(CommandError::new("standard input: unknown format; nothing was recorded")
                    .hint("list the formats with steno formats; choose one with --from FORMAT"));
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

fn known_input(format: &'static dyn Format, origin: FormatOrigin) -> Result<KnownInput, CommandError> {
    if format.info().framing.allows_lines() {
        return Ok(KnownInput::new(format, origin));
    }
    let name = format.info().name;
    Err(CommandError::new(format!("cannot record {name}: it is a document, not a line format"))
        .hint("convert it with steno convert FILE --to FORMAT"))
}

/// Lines that are kept as they are.
struct RawLines {
    lines: LineSplitter,
    /// Why they are kept as they are.
    reason: String,
}

impl RawLines {
    fn new(reason: String) -> RawLines {
        RawLines { lines: LineSplitter::new(RECORD_SIZE_MAX), reason }
    }

    fn feed(&mut self, bytes: &[u8], out: &mut dyn Sink) {
        let RawLines { lines, reason } = self;
        lines.feed(bytes, &mut |line| keep_line(line, reason, out));
    }

    fn end(mut self, out: &mut dyn Sink) {
        self.lines.end(&mut |line| keep_line(line, &self.reason, out));
    }
}

fn keep_line(line: LinePiece<'_>, reason: &str, out: &mut dyn Sink) {
    if line.at.offset == 0 {
        out.note(Note::new(NoteKind::NotARecord, line.at, reason));
    }
    if line.begins_line && line.is_cut {
        let message = format!("a line has more than {RECORD_SIZE_MAX} bytes; recorded as several events");
        out.note(Note::new(NoteKind::Oversize, line.at, message));
    }
    let body = Body::Other { name: Some("output".into()), bytes: Some(Text::from_bytes(line.text())) };
    out.event(&Event { at: Some(line.at), ..Event::new(body) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::Span;

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

    #[test]
    fn a_document_is_refused_as_input_and_kept_as_output() {
        let document = include_bytes!("../../../../stenograph/src/formats/devflow/fixtures/empty.json");
        let mut input = Intake::new(None, &[]).unwrap();
        assert!(input.feed(document).and_then(|()| input.end()).is_err());
        let mut command = Intake::new(None, &["cat".to_owned()]).unwrap();
        command.feed(document).unwrap();
        command.end().unwrap();
        let arrived = command.arrived();
        assert_eq!((arrived.events.len(), arrived.notes.len()), (13, 1));
        assert!(arrived.notes[0].text.contains("devflow document"));
    }

    #[test]
    fn a_line_over_the_limit_stays_one_line_of_several_events_with_a_note() {
        let mut command = Intake::new(None, &["cat".to_owned()]).unwrap();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..=RECORD_SIZE_MAX / chunk.len() {
            command.feed(&chunk).unwrap();
        }
        command.feed(b"\nnext\n").unwrap();
        command.end().unwrap();
        let arrived = command.arrived();
        let spans: Vec<Span> = arrived.events.iter().filter_map(|event| event.at).collect();
        assert_eq!(spans.iter().map(|at| at.line).collect::<Vec<_>>(), [1, 1, 2]);
        assert_eq!(spans.iter().map(|at| at.length).collect::<Vec<_>>(), [32 << 20, 1 << 20, 4]);
        assert_eq!(spans[2].offset, (33 << 20) + 1);
        assert_eq!(arrived.notes.len(), 2);
    }
}
