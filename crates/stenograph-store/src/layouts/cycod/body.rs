//! The messages of a document as bytes: everything after its head. Both a live recording and its completion use this file, so
//! that both produce the same. It opens no file.

use stenograph::model::{Event, Outline};
use stenograph::write::{OutputPiece, Writing};

use super::DocumentKind;

/// Turns events into the bytes of a document, one by one.
#[derive(Debug)]
pub struct DocumentBody {
    writing: Writing,
    /// The writer's pieces before the first message, which are dropped: the head is written elsewhere.
    head: HeadPieces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPieces {
    ToCome,
    Gone,
}

/// A header comes with a piece before it and one after it.
const HEADER_PIECES: usize = 3;

/// The maximum size of held-back bytes, which are written again with every event.
const HELD_SIZE_MAX: usize = 1 << 20;

impl DocumentBody {
    /// The beginning.
    pub fn new(kind: DocumentKind) -> DocumentBody {
        let head = match kind {
            DocumentKind::Chat => HeadPieces::Gone,
            DocumentKind::Trajectory => HeadPieces::ToCome,
        };
        // Without an outline: facts that are unknown while events arrive must not be known when they are written again.
        DocumentBody { writing: Writing::new(kind.format(), &Outline::default()), head }
    }

    /// The bytes that an event completes.
    pub fn event(&mut self, event: &Event<'_>) -> Vec<u8> {
        self.head.off(self.writing.event(event))
    }

    /// The bytes that are still held back, as they would be if nothing followed.
    pub fn held_back(&self) -> Vec<u8> {
        let held_back = joined(self.writing.held());
        if held_back.len() <= HELD_SIZE_MAX { held_back } else { Vec::new() }
    }

    /// The last bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.head.off(self.writing.finish())
    }
}

impl HeadPieces {
    /// The bytes of these pieces without the head.
    fn off(&mut self, mut pieces: Vec<OutputPiece>) -> Vec<u8> {
        if *self == HeadPieces::ToCome && pieces.len() >= HEADER_PIECES {
            pieces.drain(..HEADER_PIECES);
            *self = HeadPieces::Gone;
        }
        joined(pieces)
    }
}

fn joined(pieces: Vec<OutputPiece>) -> Vec<u8> {
    pieces.into_iter().fold(Vec::new(), |mut bytes, piece| {
        let (OutputPiece::Record(piece) | OutputPiece::Glue(piece)) = piece;
        bytes.extend_from_slice(&piece);
        bytes
    })
}
