//! Reads Chibi's `transcript.md`. The format escapes nothing: a line is a marker only after a blank line, where Chibi would
//! write one, and a message that contains such a line there is read as two.

use super::{INFO, marker, write};
use crate::formats::blocks::{
    BlockReader, Ending, LineBlock, LineRole, emit_stray, is_blank, keep_blank, spelling_extra, without_returns,
};
use crate::model::{Body, Content, Event, Extra, Note, NoteKind};
use crate::read::Sink;
use crate::text::Text;

/// Reads one file.
#[derive(Debug)]
pub struct ChibiMarkdownReader;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkdownBlockKind {
    /// A marker and its message.
    Message,
    /// Text without a marker before it.
    Stray,
}

impl BlockReader for ChibiMarkdownReader {
    type Kind = MarkdownBlockKind;

    fn line_role(
        &mut self,
        open: Option<&mut LineBlock<MarkdownBlockKind>>,
        line: &[u8],
    ) -> LineRole<MarkdownBlockKind> {
        let marked = marker(line).is_some();
        match open {
            None if is_blank(line) => LineRole::Between,
            None => LineRole::Begins(if marked { MarkdownBlockKind::Message } else { MarkdownBlockKind::Stray }),
            Some(open) if marked && (open.kind == MarkdownBlockKind::Stray || open.line(open.len() - 1).is_empty()) => {
                LineRole::Begins(MarkdownBlockKind::Message)
            }
            Some(_) => LineRole::Continues,
        }
    }

    fn block(&mut self, block: &LineBlock<MarkdownBlockKind>, _ending: Ending, out: &mut dyn Sink) {
        // Chibi writes a blank line after every message, including the last one.
        let separated = block.len() > 1 && block.line(block.len() - 1).is_empty();
        let end = if separated { block.len() - 1 } else { block.len() };
        let source = block.text(0, end);
        let Some(body) = body(source).filter(|_| block.kind == MarkdownBlockKind::Message) else {
            return emit_stray(block, out);
        };
        for index in (1..end).filter(|index| marker(block.line(*index)).is_some()) {
            let text = "looks like a marker without a blank line before it; read as text";
            out.note(Note::new(NoteKind::Ambiguous, block.span(index, index + 1), text));
        }
        let mut event = Event { at: Some(block.span(0, end)), ..Event::new(body) };
        let mut extra = spelling_extra(source, write::message(&event).as_deref());
        keep_blank(block, end, &mut extra);
        if !extra.is_empty() {
            event.extra = Extra::of(&INFO, extra);
        }
        out.event(&event);
    }
}

/// The body of a message.
pub fn body(source: &[u8]) -> Option<Body<'static>> {
    // Pasted text may contain carriage returns too, but not at its very end: there they are the file's line ends.
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
    fn text_before_the_first_marker_is_not_lost() {
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
    fn a_blank_line_returns_with_its_original_bytes() {
        let source = b"[USER]: hi\r\n\r\n[USER]: there\n\r\n[ASSISTANT]: yes\n \n[USER]: no\n\n";
        let found = read::all(&ChibiMarkdown, source);
        let outline = Outline::of("chibi-markdown", &found.events);
        assert_eq!(found.events.len(), 3);
        assert_eq!(write::all(&ChibiMarkdown, &outline, &found.events), source);
    }
}
