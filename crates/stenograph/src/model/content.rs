//! The content of messages, results and summaries: text, and things that are not text.

use std::borrow::Cow;

use super::ExtraFields;
use crate::text::{Raw, Str, Text};

/// The content of a message, a result or a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<'a> {
    /// One text, as a bare string.
    Text(Text<'a>),
    /// A list of pieces. A list of one text differs from a bare string in the source, so both are kept apart.
    Pieces(Vec<Piece<'a>>),
}

/// One element of a content list.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece<'a> {
    /// The element itself.
    pub kind: PieceKind<'a>,
    /// The fields of its source record that the reader did not take.
    pub extra: ExtraFields<'a>,
}

/// The kind of an element of a content list.
#[derive(Clone, Debug, PartialEq)]
pub enum PieceKind<'a> {
    /// Text.
    Text(Text<'a>),
    /// An image, a document or a sound.
    Blob {
        /// The media type, if the source states one.
        media: Option<Str<'a>>,
        /// The data, or where it is.
        data: Data<'a>,
    },
    /// An element of a type that the reader does not interpret: the whole JSON value.
    Other(Raw<'a>),
}

/// The bytes of a blob, or where they are.
#[derive(Clone, Debug, PartialEq)]
pub enum Data<'a> {
    /// Inline, as base64.
    Inline(Text<'a>),
    /// At a URL.
    Url(Text<'a>),
    /// In a file with this path or id.
    File(Text<'a>),
}

/// The input of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<'a> {
    /// A JSON value as spelled.
    Json(Raw<'a>),
    /// Free text, or intended JSON that is invalid.
    Text(Text<'a>),
}

impl<'a> Content<'a> {
    /// A content of one bare text.
    pub fn text(text: impl Into<Text<'a>>) -> Content<'a> {
        Content::Text(text.into())
    }

    /// The texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &Text<'a>> {
        let (one, many) = match self {
            Content::Text(text) => (Some(text), [].as_slice()),
            Content::Pieces(pieces) => (None, pieces.as_slice()),
        };
        one.into_iter().chain(many.iter().filter_map(Piece::as_text))
    }

    /// All texts, joined by a blank line.
    pub fn joined(&self) -> Text<'_> {
        let mut texts = self.texts();
        let Some(first) = texts.next() else { return Text::Plain(Cow::Borrowed("")) };
        let Some(second) = texts.next() else { return first.borrow() };
        let mut json = String::new();
        for (at, text) in [first, second].into_iter().chain(texts).enumerate() {
            if at > 0 {
                json.push_str("\\n\\n");
            }
            let quoted = text.to_json();
            json.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
        Text::Json(Cow::Owned(json))
    }

    /// The elements that are not text.
    pub fn others(&self) -> impl Iterator<Item = &Piece<'a>> {
        let pieces = match self {
            Content::Text(_) => [].as_slice(),
            Content::Pieces(pieces) => pieces.as_slice(),
        };
        pieces.iter().filter(|piece| piece.as_text().is_none())
    }

    /// Whether the content has no text and no other pieces.
    pub fn is_empty(&self) -> bool {
        self.others().next().is_none() && self.texts().all(Text::is_empty)
    }

    /// The same content, borrowing nothing.
    pub fn into_owned(self) -> Content<'static> {
        match self {
            Content::Text(text) => Content::Text(text.into_owned()),
            Content::Pieces(pieces) => Content::Pieces(pieces.into_iter().map(Piece::into_owned).collect()),
        }
    }
}

impl<'a> Piece<'a> {
    /// A piece of text.
    pub fn text(text: impl Into<Text<'a>>) -> Piece<'a> {
        Piece { kind: PieceKind::Text(text.into()), extra: ExtraFields::default() }
    }

    /// The text, if the piece is one.
    pub fn as_text(&self) -> Option<&Text<'a>> {
        match &self.kind {
            PieceKind::Text(text) => Some(text),
            PieceKind::Blob { .. } | PieceKind::Other(_) => None,
        }
    }

    fn into_owned(self) -> Piece<'static> {
        let kind = match self.kind {
            PieceKind::Text(text) => PieceKind::Text(text.into_owned()),
            PieceKind::Blob { media, data } => {
                let data = match data {
                    Data::Inline(text) => Data::Inline(text.into_owned()),
                    Data::Url(text) => Data::Url(text.into_owned()),
                    Data::File(text) => Data::File(text.into_owned()),
                };
                PieceKind::Blob { media: media.map(|media| Cow::Owned(media.into_owned())), data }
            }
            PieceKind::Other(raw) => PieceKind::Other(Cow::Owned(raw.into_owned())),
        };
        Piece { kind, extra: self.extra.into_owned() }
    }
}

impl<'a> Input<'a> {
    /// The input from text that is JSON in most sources and sometimes invalid.
    pub fn from_text(text: Text<'a>) -> Input<'a> {
        match text.borrow().exact() {
            Some(decoded) if crate::json::is_valid(&decoded) => Input::Json(Cow::Owned(decoded.into_owned())),
            _ => Input::Text(text),
        }
    }

    /// The input as text: JSON as spelled.
    pub fn to_text(&self) -> Text<'_> {
        match self {
            Input::Json(raw) => Text::Plain(Cow::Borrowed(raw)),
            Input::Text(text) => text.borrow(),
        }
    }

    /// The input as one JSON value: free text becomes a string.
    pub fn to_json(&self) -> Raw<'_> {
        match self {
            Input::Json(raw) => Cow::Borrowed(raw),
            Input::Text(text) => Cow::Owned(text.to_json()),
        }
    }

    /// The input as a JSON object, for agents that accept nothing else: any other value goes under the key `input`.
    pub fn to_object(&self) -> Raw<'_> {
        let json = self.to_json();
        if json.trim_start().starts_with('{') { json } else { Cow::Owned(format!("{{\"input\":{json}}}")) }
    }

    /// The same input, borrowing nothing.
    pub fn into_owned(self) -> Input<'static> {
        match self {
            Input::Json(raw) => Input::Json(Cow::Owned(raw.into_owned())),
            Input::Text(text) => Input::Text(text.into_owned()),
        }
    }
}
