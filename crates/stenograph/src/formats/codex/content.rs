//! The content of rollouts: a string, or a list of typed elements. Reading and writing are together here, because each must
//! undo the other. This file does not know the record around a content.

use std::borrow::Cow;

use crate::json::{Draft, Object};
use crate::model::{Content, Data, ExtraFields, Piece, PieceKind};
use crate::text::{Raw, Str, Text, quote};
use crate::write::Ownership;

/// Takes the content below `key`: a string or a list. Any other value stays in the object.
pub fn take<'a>(object: &mut Object<'a>, key: &str) -> Option<Content<'a>> {
    if let Some(text) = object.take_text(key) {
        return Some(Content::Text(text));
    }
    object.take_items(key).map(|items| Content::Pieces(items.into_iter().map(piece).collect()))
}

/// Takes a text that is not empty; an empty one stays in the object.
pub fn take_nonempty<'a>(object: &mut Object<'a>, key: &str) -> Option<Text<'a>> {
    object.peek(key).filter(|raw| raw.len() > 2)?;
    object.take_text(key)
}

/// Reads one element. An element without a text or an image stays whole.
fn piece(raw: &str) -> Piece<'_> {
    let other = || Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() };
    let Some(mut object) = Object::parse(raw) else { return other() };
    let kind = match object.peek_str("type").as_deref() {
        Some("input_image") => object.take_text("image_url").map(blob),
        _ => object.take_text("text").map(PieceKind::Text),
    };
    match kind {
        Some(kind) => Piece { kind, extra: object.into_extra() },
        None => other(),
    }
}

/// Reads an image URL. A data URL is split only if joining the parts gives the same text again.
fn blob(url: Text<'_>) -> PieceKind<'_> {
    let (spelled, escaped) = match &url {
        Text::Plain(text) => (text, Escaped::No),
        Text::Json(text) => (text, Escaped::Yes),
    };
    let parts = match spelled {
        Cow::Borrowed(text) => data_url(text).map(|(media, data)| (Cow::Borrowed(media), Cow::Borrowed(data))),
        Cow::Owned(text) => data_url(text).map(|(media, data)| (media.to_owned().into(), data.to_owned().into())),
    };
    let Some((media, data)): Option<(Str<'_>, Str<'_>)> = parts else {
        return PieceKind::Blob { media: None, data: Data::Url(url) };
    };
    let data = match escaped {
        Escaped::No => Text::Plain(data),
        Escaped::Yes => Text::Json(data),
    };
    PieceKind::Blob { media: Some(media), data: Data::Inline(data) }
}

#[derive(Clone, Copy)]
enum Escaped {
    Yes,
    No,
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    let (media, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    (!media.is_empty() && !media.contains('\\')).then_some((media, data))
}

/// The kind of a content; it decides the types of its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContentKind {
    /// Input of the model.
    Input,
    /// Output of the model.
    Output,
    /// A thought of the model.
    Thought,
}

impl ContentKind {
    fn text_type(self) -> &'static str {
        match self {
            ContentKind::Input => "input_text",
            ContentKind::Output => "output_text",
            ContentKind::Thought => "reasoning_text",
        }
    }
}

/// The content as one JSON value: a string stays a string.
pub fn render(content: &Content<'_>, kind: ContentKind, ownership: Ownership) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(_) => array(&elements(content, kind, ownership)),
    }
}

/// The elements of the content as a list.
pub fn elements(content: &Content<'_>, kind: ContentKind, ownership: Ownership) -> Vec<String> {
    match content {
        Content::Text(text) => {
            vec![element(&Piece::text(text.borrow()), kind, Ownership::Foreign)].into_iter().flatten().collect()
        }
        Content::Pieces(pieces) => pieces.iter().filter_map(|piece| element(piece, kind, ownership)).collect(),
    }
}

/// A JSON array of rendered elements.
pub fn array(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

/// One element, if this format has a place for it.
pub fn element(piece: &Piece<'_>, kind: ContentKind, ownership: Ownership) -> Option<String> {
    let mut draft = Draft::new();
    match (&piece.kind, ownership) {
        (PieceKind::Text(text), _) => {
            draft.default_str("type", kind.text_type());
            draft.set_text("text", text);
        }
        (PieceKind::Blob { media, data }, Ownership::Own) => draft.set("image_url", url(media.as_deref(), data)),
        (PieceKind::Blob { media, data }, Ownership::Foreign) => {
            // Images are the only elements besides text that every release reads.
            if kind == ContentKind::Thought {
                return None;
            }
            draft.set_str("type", "input_image");
            draft.set("image_url", image_url(media.as_deref(), data, &piece.extra)?);
        }
        (PieceKind::Other(raw), Ownership::Own) => return Some(raw.to_string()),
        (PieceKind::Other(_), Ownership::Foreign) => return None,
    }
    Some(draft.render((ownership == Ownership::Own).then_some(&piece.extra)))
}

/// The URLs of the images in another system's content, as JSON strings.
pub fn image_urls(content: &Content<'_>) -> Vec<String> {
    let url_of = |piece: &Piece<'_>| match &piece.kind {
        PieceKind::Blob { media, data } => image_url(media.as_deref(), data, &piece.extra).map(Cow::into_owned),
        PieceKind::Text(_) | PieceKind::Other(_) => None,
    };
    content.others().filter_map(url_of).collect()
}

/// The first base64 characters of common image formats.
const IMAGE_PREFIXES: &[(&str, &str)] =
    &[("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];

/// The file extensions of images.
const IMAGE_EXTENSIONS: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The URL of another system's blob, if the blob certainly is an image: by its media type, by the type of its element, or by
/// its URL or first bytes.
fn image_url<'a>(media: Option<&str>, data: &Data<'_>, element: &ExtraFields<'_>) -> Option<Raw<'a>> {
    let stated = media.is_some_and(|media| media.starts_with("image/"));
    match data {
        Data::Inline(text) if media.is_none() => {
            let text_start = text.decode();
            let (_, media) = IMAGE_PREFIXES.iter().find(|(start, _)| text_start.starts_with(start))?;
            Some(url(Some(media), data))
        }
        Data::Inline(_) => stated.then(|| url(media, data)),
        Data::Url(address) => {
            let address = address.decode().to_ascii_lowercase();
            let (path, _) = address.split_once(['?', '#']).unwrap_or((&address, ""));
            let named = || element.text("type").is_some_and(|kind| kind.contains("image"));
            let seen =
                || address.starts_with("data:image/") || IMAGE_EXTENSIONS.iter().any(|ending| path.ends_with(ending));
            (stated || media.is_none() && (named() || seen())).then(|| url(media, data))
        }
        // A file of one system does not exist in another.
        Data::File(_) => None,
    }
}

/// The URL of a blob, as a JSON string.
fn url<'a>(media: Option<&str>, data: &Data<'_>) -> Raw<'a> {
    match data {
        Data::Url(text) | Data::File(text) => text.to_json().into(),
        Data::Inline(text) => {
            let mut json = quote(&format!("data:{};base64,", media.unwrap_or("image/png")));
            json.pop();
            json.push_str(text.to_json().get(1..).unwrap_or_default());
            json.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_unchanged(json: &str) {
        let source = format!("{{\"content\":{json}}}");
        let content = take(&mut Object::parse(&source).unwrap(), "content").unwrap();
        assert_eq!(render(&content, ContentKind::Input, Ownership::Own), json);
    }

    #[test]
    fn a_content_is_written_as_it_was_read() {
        assert_unchanged(r#""a\nb""#);
        assert_unchanged(r#"[]"#);
        assert_unchanged(
            r#"[{"type":"input_text","text":"a","x":1},7,{"type":"encrypted_content","encrypted_content":"gAAA"}]"#,
        );
        assert_unchanged(r#"[{"type":"input_image","image_url":"data:image/png;base64,iVBOR\/w0","detail":"high"}]"#);
        assert_unchanged(r#"[{"type":"input_image","image_url":"https://example.com/a.png"}]"#);
        assert_unchanged(r#"[{"type":"input_image","image_url":"data:image\/png;base64,iVBOR"}]"#);
    }
}
