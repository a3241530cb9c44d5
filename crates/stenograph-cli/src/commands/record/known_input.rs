//! Input of a known format. A detected format may change: a line that only another format recognises is read as that format,
//! and so are the lines after it.

use stenograph::format::{Format, Want};
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::model::{NoteKind, Span};
use stenograph::read::{self, Collected, Reading};
use stenograph::{Detected, Registry};

pub struct KnownInput {
    reading: Reading,
    format: &'static dyn Format,
    origin: FormatOrigin,
    /// An incomplete line.
    open: Vec<u8>,
    offset: u64,
    line: u64,
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
        KnownInput { reading: Reading::new(format, Want::All), format, origin, open: Vec::new(), offset: 0, line: 1 }
    }

    pub fn feed(&mut self, bytes: &[u8], out: &mut Collected) {
        if self.origin == FormatOrigin::Named || !self.format.info().traits.pieces {
            return self.reading.feed(bytes, out);
        }
        self.open.extend_from_slice(bytes);
        while let Some(newline) = self.open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.open.drain(..=newline).collect();
            self.line(&line, out);
        }
        if self.open.len() > RECORD_SIZE_MAX {
            // No record is that long: the reader receives it in pieces.
            let part = std::mem::take(&mut self.open);
            self.offset += part.len() as u64;
            self.reading.feed(&part, out);
        }
    }

    /// Says that nothing more comes.
    pub fn end(mut self, out: &mut Collected) {
        let last = std::mem::take(&mut self.open);
        self.reading.feed(&last, out);
        self.reading.end(out);
    }

    fn line(&mut self, line: &[u8], out: &mut Collected) {
        let mut said = Collected::default();
        self.reading.feed(line, &mut said);
        let unknown = said.notes.iter().any(|note| note.kind == NoteKind::UnknownType);
        if let Some(other) = unknown.then(|| other_format(line, self.format)).flatten() {
            let at = Span { offset: self.offset, length: 0, line: self.line };
            (self.reading, self.format) = (Reading::from_line(other, Want::All, at), other);
            said = Collected::default();
            self.reading.feed(line, &mut said);
        }
        self.offset += line.len() as u64;
        self.line += 1;
        out.events.append(&mut said.events);
        out.notes.append(&mut said.notes);
    }
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
    fn what_turns_out_to_be_another_format_goes_on_as_that_one() {
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
