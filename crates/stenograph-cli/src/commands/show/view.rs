//! The contents of an event as plain text, for `--text`. All text passes through [`harmless`].

use stenograph::model::{Body, Content, Data, Event, Input, PieceKind};

use crate::output::{harmless, shortened};

/// The contents of an event only; `None` if it has none.
pub fn contents(event: &Event<'_>) -> Option<String> {
    let text = match &event.body {
        Body::ToolCall { input, .. } => input_text(input),
        Body::Other { bytes, .. } => bytes.as_ref()?.decode().into_owned(),
        _ => content_text(event.content()?),
    };
    let text = harmless(&text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    (!text.is_empty()).then(|| format!("{text}{end}"))
}

/// A tool's input, on one line if it is JSON.
pub fn input_text(input: &Input<'_>) -> String {
    match input {
        Input::Json(raw) => stenograph::json::compact(raw).into_owned(),
        Input::Text(text) => text.decode().into_owned(),
    }
}

/// The texts of a content, with a description of pieces that are not text.
pub fn content_text(content: &Content<'_>) -> String {
    let pieces = match content {
        Content::Text(text) => return text.decode().into_owned(),
        Content::Pieces(pieces) => pieces,
    };
    let texts = pieces.iter().map(|piece| match &piece.kind {
        PieceKind::Text(text) => text.decode().into_owned(),
        PieceKind::Blob { media, data } => {
            let media = media.as_deref().unwrap_or("data");
            match data {
                Data::Inline(text) => format!("[{media}, {} bytes of base64]", text.decode().len()),
                Data::Url(text) | Data::File(text) => format!("[{media} at {}]", shortened(&text.decode(), 200)),
            }
        }
        PieceKind::Other(raw) => stenograph::json::compact(raw).into_owned(),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
