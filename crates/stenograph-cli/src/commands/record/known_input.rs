//! Input of a known format. A detected format may change: a line that only another format recognises is read as that format,
//! and so are the lines after it.

use stenograph::format::{Format, Wanted};
use stenograph::frame::{LinePiece, LineSplitter, RECORD_SIZE_MAX};
use stenograph::model::NoteKind;
use stenograph::read::{self, Collected, Reading};
use stenograph::{Detected, Registry};

pub struct KnownInput {
    reading: Reading,
    format: &'static dyn Format,
    origin: FormatOrigin,
    lines: LineSplitter,
}

/// How the format is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FormatOrigin {
    /// `--from` names it.
    Named,
    /// Detected in the first lines.
    Detected,
}

impl KnownInput {
    pub fn new(format: &'static dyn Format, origin: FormatOrigin) -> KnownInput {
        let reading = Reading::new(format, Wanted::All);
        KnownInput { reading, format, origin, lines: LineSplitter::new(RECORD_SIZE_MAX) }
    }

    pub fn feed(&mut self, bytes: &[u8], out: &mut Collected) {
        if self.origin == FormatOrigin::Named || !self.format.info().traits.pieces {
            return self.reading.feed(bytes, out);
        }
        let KnownInput { reading, format, lines, .. } = self;
        lines.feed(bytes, &mut |line| read_line(reading, format, line, out));
    }

    /// Ends the input.
    pub fn end(mut self, out: &mut Collected) {
        let KnownInput { reading, lines, .. } = &mut self;
        // An incomplete line does not change the format.
        lines.end(&mut |line| reading.feed(line.bytes, out));
        self.reading.end(out);
    }
}

/// Reads a line, and changes the format if only another one recognises the line.
fn read_line(reading: &mut Reading, format: &mut &'static dyn Format, line: LinePiece<'_>, out: &mut Collected) {
    // No record is as long as a line that is cut: the reader receives it in pieces.
    if line.is_cut || !line.begins_line {
        return reading.feed(line.bytes, out);
    }
    let mut found = Collected::default();
    reading.feed(line.bytes, &mut found);
    let is_unknown = found.notes.iter().any(|note| note.kind == NoteKind::UnknownType);
    if let Some(other) = is_unknown.then(|| other_format(line.bytes, *format)).flatten() {
        (*reading, *format) = (Reading::from_line(other, Wanted::All, line.at), other);
        found = Collected::default();
        reading.feed(line.bytes, &mut found);
    }
    out.events.append(&mut found.events);
    out.notes.append(&mut found.notes);
}

/// The other format that knows this line, if it can be read from there on.
fn other_format(line: &[u8], format: &'static dyn Format) -> Option<&'static dyn Format> {
    let Detected::Format(other) = Registry::built_in().detect(line) else { return None };
    let another = other.info().name != format.info().name && other.info().traits.pieces;
    (another && read::all(other, line).notes.is_empty()).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::Kind;

    #[test]
    fn input_that_turns_out_to_be_another_format_continues_as_that_one() {
        let lines = [
            "{\"role\":\"user\",\"content\":\"Fix it.\"}\n",
            "{\"type\":\"text\",\"text\":\"I look.\"}\n",
            "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Read\",\"input\":{\"file_path\":\"a\"}}\n",
            "{\"type\":\"stop\",\"stop_reason\":\"end_turn\"}\n",
        ];
        let Detected::Format(first) = Registry::built_in().detect(lines[0].as_bytes()) else {
            panic!("the first line is known")
        };
        let (mut known, mut found) = (KnownInput::new(first, FormatOrigin::Detected), Collected::default());
        lines.iter().for_each(|line| known.feed(line.as_bytes(), &mut found));
        known.end(&mut found);
        let kinds: Vec<Kind> = found.events.iter().map(stenograph::model::Event::kind).collect();
        assert_eq!(kinds, [Kind::Message, Kind::Message, Kind::ToolCall, Kind::Stop]);
        assert_eq!(found.events.iter().map(|event| event.at.unwrap().line).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}
