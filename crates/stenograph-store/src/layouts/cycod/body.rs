//! The messages of a document, as bytes: what follows its head. Both for a recording under way and for its completion, so that
//! both come to the same. Nothing here opens a file.

use stenograph::model::{Event, Outline};
use stenograph::write::{OutputPiece, Writing};

use super::Kind;

/// Turns events into the bytes of a document, one by one.
#[derive(Debug)]
pub struct Body {
    writing: Writing,
    /// What the writer puts before the first message, to be left out: the head is somebody else's.
    head: HeadPieces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPieces {
    ToCome,
    Gone,
}

/// A header comes with what stands before and after it.
const HEADER_PIECES: usize = 3;

/// What is held back is written again with every event: no more than this.
const HELD_SIZE_MAX: usize = 1 << 20;

impl Body {
    /// The beginning.
    pub fn new(kind: Kind) -> Body {
        let head = match kind {
            Kind::Chat => HeadPieces::Gone,
            Kind::Trajectory => HeadPieces::ToCome,
        };
        // No outline: what is not known while events come must not be known when they are written again.
        Body { writing: Writing::new(kind.format(), &Outline::default()), head }
    }

    /// The bytes that an event completes.
    pub fn event(&mut self, event: &Event<'_>) -> Vec<u8> {
        self.head.off(self.writing.event(event))
    }

    /// The bytes that are still held back, as they would be if nothing followed.
    pub fn held(&self) -> Vec<u8> {
        let held = joined(self.writing.held());
        if held.len() <= HELD_SIZE_MAX { held } else { Vec::new() }
    }

    /// The last bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.head.off(self.writing.finish())
    }
}

impl HeadPieces {
    /// The bytes of these pieces, the head taken off.
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
