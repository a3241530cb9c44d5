//! Content as rollouts spell it: a string, or a list of typed elements. Reading and writing stand side by side here, for each
//! must undo the other. This file must not know in which record a content stands.

use std::borrow::Cow;

use crate::json::{Draft, Object};
use crate::model::{Content, Data, ExtraFields, Piece, PieceKind};
use crate::text::{Raw, Str, Text, quote};

/// Takes the content below `key`: a string or a list. Anything else stays.
pub fn take<'a>(object: &mut Object<'a>, key: &str) -> Option<Content<'a>> {
    if let Some(text) = object.take_text(key) {
        return Some(Content::Text(text));
    }
    object.take_items(key).map(|items| Content::Pieces(items.into_iter().map(piece).collect()))
}

/// Takes a text that says something; an empty one stays.
pub fn said<'a>(object: &mut Object<'a>, key: &str) -> Option<Text<'a>> {
    object.peek(key).filter(|raw| raw.len() > 2)?;
    object.take_text(key)
}

/// One element. What has no text and is no image stays whole.
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

/// An image: a data URL is taken apart when putting it together gives the same text again.
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

/// Whose words the leftovers of the pieces are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words {
    /// This format's: the leftovers go back to their places.
    Ours,
    /// Another's: the leftovers have no place here, and an element nobody understood has none either.
    Theirs,
}

/// Who says a content; it decides the types of its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Voice {
    /// What the model was given.
    Input,
    /// What the model said.
    Output,
    /// What the model thought.
    Thought,
}

impl Voice {
    fn text_type(self) -> &'static str {
        match self {
            Voice::Input => "input_text",
            Voice::Output => "output_text",
            Voice::Thought => "reasoning_text",
        }
    }
}

/// The content as one JSON value: a string stays a string.
pub fn render(content: &Content<'_>, voice: Voice, words: Words) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(_) => array(&elements(content, voice, words)),
    }
}

/// The elements of a list that says the same.
pub fn elements(content: &Content<'_>, voice: Voice, words: Words) -> Vec<String> {
    match content {
        Content::Text(text) => {
            vec![element(&Piece::text(text.borrow()), voice, Words::Theirs)].into_iter().flatten().collect()
        }
        Content::Pieces(pieces) => pieces.iter().filter_map(|piece| element(piece, voice, words)).collect(),
    }
}

/// A JSON array of rendered elements.
pub fn array(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

/// One element, if this format has a place for it.
pub fn element(piece: &Piece<'_>, voice: Voice, words: Words) -> Option<String> {
    let mut draft = Draft::new();
    match (&piece.kind, words) {
        (PieceKind::Text(text), _) => {
            draft.default_str("type", voice.text_type());
            draft.set_text("text", text);
        }
        (PieceKind::Blob { media, data }, Words::Ours) => draft.set("image_url", url(media.as_deref(), data)),
        (PieceKind::Blob { media, data }, Words::Theirs) => {
            // Pictures are the only things besides text that every release reads.
            if voice == Voice::Thought {
                return None;
            }
            draft.set_str("type", "input_image");
            draft.set("image_url", picture(media.as_deref(), data, &piece.extra)?);
        }
        (PieceKind::Other(raw), Words::Ours) => return Some(raw.to_string()),
        (PieceKind::Other(_), Words::Theirs) => return None,
    }
    Some(draft.render((words == Words::Ours).then_some(&piece.extra)))
}

/// The addresses of the pictures of another system's content, as JSON strings.
pub fn pictures(content: &Content<'_>) -> Vec<String> {
    let address = |piece: &Piece<'_>| match &piece.kind {
        PieceKind::Blob { media, data } => picture(media.as_deref(), data, &piece.extra).map(Cow::into_owned),
        PieceKind::Text(_) | PieceKind::Other(_) => None,
    };
    content.others().filter_map(address).collect()
}

/// How the base64 of common pictures begins.
const BEGINNINGS: &[(&str, &str)] =
    &[("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];

/// How the address of a picture ends.
const ENDINGS: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The address of another system's blob if it is a picture for sure: stated by its type or its element's, or plain to see.
fn picture<'a>(media: Option<&str>, data: &Data<'_>, element: &ExtraFields<'_>) -> Option<Raw<'a>> {
    let stated = media.is_some_and(|media| media.starts_with("image/"));
    match data {
        Data::Inline(text) if media.is_none() => {
            let text_start = text.decode();
            let (_, media) = BEGINNINGS.iter().find(|(start, _)| text_start.starts_with(start))?;
            Some(url(Some(media), data))
        }
        Data::Inline(_) => stated.then(|| url(media, data)),
        Data::Url(address) => {
            let address = address.decode().to_ascii_lowercase();
            let (path, _) = address.split_once(['?', '#']).unwrap_or((&address, ""));
            let named = || element.text("type").is_some_and(|kind| kind.contains("image"));
            let seen = || address.starts_with("data:image/") || ENDINGS.iter().any(|ending| path.ends_with(ending));
            (stated || media.is_none() && (named() || seen())).then(|| url(media, data))
        }
        // A file of one system is none of another's.
        Data::File(_) => None,
    }
}

/// The address of a blob, as a JSON string.
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

    fn returns(json: &str) {
        let source = format!("{{\"content\":{json}}}");
        let content = take(&mut Object::parse(&source).unwrap(), "content").unwrap();
        assert_eq!(render(&content, Voice::Input, Words::Ours), json);
    }

    #[test]
    fn what_is_read_is_written() {
        returns(r#""a\nb""#);
        returns(r#"[]"#);
        returns(
            r#"[{"type":"input_text","text":"a","x":1},7,{"type":"encrypted_content","encrypted_content":"gAAA"}]"#,
        );
        returns(r#"[{"type":"input_image","image_url":"data:image/png;base64,iVBOR\/w0","detail":"high"}]"#);
        returns(r#"[{"type":"input_image","image_url":"https://example.com/a.png"}]"#);
        returns(r#"[{"type":"input_image","image_url":"data:image\/png;base64,iVBOR"}]"#);
    }
}
