//! Reads Chibi's `transcript.md`. Nothing in it is escaped: a line is only taken for a marker after a blank line, where Chibi
//! would write one, and a text with such a line in that place is read as two.

use super::{INFO, marker, write};
use crate::formats::blocks::{
    Block, Blockwise, Ending, Step, emit_stray, is_blank, leave_blank, leftover, without_returns,
};
use crate::model::{Body, Content, Event, Extra, Note, NoteKind};
use crate::read::Sink;
use crate::text::Text;

/// Reads one file.
#[derive(Debug)]
pub struct Archive;

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What a marker begins.
    Message,
    /// Text that no marker stands before.
    Stray,
}

impl Blockwise for Archive {
    type Kind = Kind;

    fn step(&mut self, open: Option<&mut Block<Kind>>, line: &[u8]) -> Step<Kind> {
        let marked = marker(line).is_some();
        match open {
            None if is_blank(line) => Step::Passes,
            None => Step::Begins(if marked { Kind::Message } else { Kind::Stray }),
            Some(open) if marked && (open.kind == Kind::Stray || open.line(open.len() - 1).is_empty()) => {
                Step::Begins(Kind::Message)
            }
            Some(_) => Step::GoesOn,
        }
    }

    fn block(&mut self, block: &Block<Kind>, _ending: Ending, out: &mut dyn Sink) {
        // Chibi ends every message with a blank line, the last one too.
        let separated = block.len() > 1 && block.line(block.len() - 1).is_empty();
        let end = if separated { block.len() - 1 } else { block.len() };
        let source = block.text(0, end);
        let Some(body) = body(source).filter(|_| block.kind == Kind::Message) else { return emit_stray(block, out) };
        for index in (1..end).filter(|index| marker(block.line(*index)).is_some()) {
            let said = "looks like a marker, but no blank line stands before it; read as text";
            out.note(Note::new(NoteKind::Ambiguous, block.span(index, index + 1), said));
        }
        let mut event = Event { at: Some(block.span(0, end)), ..Event::new(body) };
        let mut left = leftover(source, write::message(&event).as_deref());
        leave_blank(block, end, &mut left);
        if !left.is_empty() {
            event.extra = Extra::of(&INFO, left);
        }
        out.event(&event);
    }
}

/// What a message says.
pub fn body(source: &[u8]) -> Option<Body<'static>> {
    // Pasted text may have carriage returns as well, but not at its very end: there the file is spelled so.
    let source = if source.ends_with(b"\r") { without_returns(source) } else { source.into() };
    let (role, text) = marker(&source)?;
    Some(Body::Message { role, content: Content::Text(Text::from_bytes(text).into_owned()) })
}

#[cfg(test)]
mod tests {
    use crate::formats::chibi_markdown::ChibiMarkdown;
    use crate::model::{Body, NoteKind, Outline};
    use crate::{read, write};

    #[test]
    fn text_before_the_first_marker_is_not_silent() {
        let found = read::all(&ChibiMarkdown, b"An old heading\n[USER]: hi\n");
        assert!(
            matches!(&found.events[0].body, Body::Other { bytes: Some(text), .. } if text.decode() == "An old heading")
        );
        assert!(matches!(&found.events[1].body, Body::Message { .. }));
        assert_eq!(found.notes[0].kind, NoteKind::NotARecord);
        let outline = Outline::of("chibi-markdown", &found.events);
        assert_eq!(write::all(&ChibiMarkdown, &outline, &found.events), b"An old heading\n\n[USER]: hi\n\n");
    }

    #[test]
    fn a_blank_line_returns_as_it_is_spelled() {
        let source = b"[USER]: hi\r\n\r\n[USER]: there\n\r\n[ASSISTANT]: yes\n \n[USER]: no\n\n";
        let found = read::all(&ChibiMarkdown, source);
        let outline = Outline::of("chibi-markdown", &found.events);
        assert_eq!(found.events.len(), 3);
        assert_eq!(write::all(&ChibiMarkdown, &outline, &found.events), source);
    }
}
