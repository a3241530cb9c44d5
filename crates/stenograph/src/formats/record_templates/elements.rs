//! The elements of contents: texts, pictures, thoughts and calls, each from its template.

use super::RecordTemplates;
use super::fill::filled;
use crate::model::{Body, Content, Data, Event, Piece, PieceKind};
use crate::text::{Text, quote};

impl RecordTemplates {
    /// The elements of a content that this format has a place for.
    fn content_elements(&self, content: &Content<'_>) -> Vec<String> {
        match content {
            Content::Text(text) => self.text_element(text).into_iter().collect(),
            Content::Pieces(pieces) => pieces.iter().filter_map(|piece| self.piece_element(piece)).collect(),
        }
    }

    fn text_element(&self, text: &Text<'_>) -> Option<String> {
        (!text.is_empty()).then(|| filled(self.text, &|name| (name == "text").then(|| text.to_json())))
    }

    /// A picture at an address, or an element of another service, has no place.
    fn piece_element(&self, piece: &Piece<'_>) -> Option<String> {
        match &piece.kind {
            PieceKind::Text(text) => self.text_element(text),
            PieceKind::Blob { media, data: Data::Inline(data) } if !self.picture.is_empty() => {
                let value = |name: &str| match name {
                    "data" => Some(data.to_json()),
                    "media" => media.as_deref().map(quote),
                    _ => None,
                };
                Some(filled(self.picture, &value))
            }
            PieceKind::Blob { .. } | PieceKind::Other(_) => None,
        }
    }

    /// The element of a thought.
    pub(super) fn thought_element(&self, content: &Content<'_>) -> Option<String> {
        let text = content.joined();
        // A thought without text is encrypted by another vendor, so nothing of it fits here.
        let is_thought = !self.thought.is_empty() && !text.is_empty();
        is_thought.then(|| filled(self.thought, &|name| (name == "text").then(|| text.to_json())))
    }

    /// Whether this format has a place for a thought.
    pub(super) fn can_think(&self, content: &Content<'_>) -> bool {
        !content.joined().is_empty() && (!self.thought.is_empty() || self.answer.contains("\"<thought|>\""))
    }

    /// Whether this format has a place for anything of this content.
    pub(super) fn can_say(&self, content: &Content<'_>) -> bool {
        let is_text_only = !self.user.contains("\"<content>\"");
        if is_text_only { !content.joined().is_empty() } else { !self.content_elements(content).is_empty() }
    }

    /// A list of the elements of a content.
    pub(super) fn content(&self, content: &Content<'_>) -> String {
        format!("[{}]", self.content_elements(content).join(","))
    }

    /// A list of the elements of these events, in their order.
    pub(super) fn elements(&self, events: &[Event<'_>], call: &dyn Fn(&Event<'_>) -> Option<String>) -> String {
        let mut elements: Vec<String> = Vec::new();
        for event in events {
            match &event.body {
                Body::Message { content, .. } => elements.extend(self.content_elements(content)),
                Body::Thinking { content } => elements.extend(self.thought_element(content)),
                Body::ToolCall { .. } => elements.extend(call(event)),
                _ => {}
            }
        }
        format!("[{}]", elements.join(","))
    }
}
