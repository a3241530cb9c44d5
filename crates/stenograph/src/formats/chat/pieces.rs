//! The elements of a content list: text, refusals, images, audio and files, to pieces and back.

use std::borrow::Cow;

use crate::formats::placeholder;
use crate::json::{Draft, Object};
use crate::model::{Content, Data, ExtraFields, Piece, PieceKind};
use crate::text::{Str, Text};
use crate::write::Ownership;

/// Reads a content list.
pub fn read<'a>(items: Vec<&'a str>) -> Content<'a> {
    Content::Pieces(items.into_iter().map(|raw| piece(raw).unwrap_or_else(|| other(raw))).collect())
}

fn other(raw: &str) -> Piece<'_> {
    Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() }
}

fn piece(raw: &str) -> Option<Piece<'_>> {
    let mut object = Object::parse(raw)?;
    let kind = match object.peek_str("type")?.as_ref() {
        "text" => PieceKind::Text(object.take_text("text")?),
        "refusal" => PieceKind::Text(object.take_text("refusal")?),
        "image_url" => {
            let mut image = object.open("image_url")?;
            let (media, data) = address(image.take_text("url")?);
            object.close("image_url", image);
            PieceKind::Blob { media, data }
        }
        "input_audio" => {
            let mut audio = object.open("input_audio")?;
            let data = Data::Inline(audio.take_text("data")?);
            let media = audio_media(&audio);
            if media.is_some() {
                audio.take("format");
            }
            object.close("input_audio", audio);
            PieceKind::Blob { media: media.map(Cow::Borrowed), data }
        }
        "file" => {
            let mut file = object.open("file")?;
            let (media, data) = match file.take_text("file_data") {
                Some(data) => address(data),
                None => (None, Data::File(file.take_text("file_id")?)),
            };
            object.close("file", file);
            PieceKind::Blob { media, data }
        }
        _ => return None,
    };
    Some(Piece { kind, extra: object.into_extra() })
}

/// The audio formats of the API, and their media types.
const AUDIO_FORMATS: [(&str, &str); 2] = [("wav", "audio/wav"), ("mp3", "audio/mpeg")];

fn audio_media(audio: &Object<'_>) -> Option<&'static str> {
    let format = audio.peek_str("format")?;
    AUDIO_FORMATS.iter().find(|(name, _)| *name == format).map(|(_, media)| *media)
}

/// Reads a URL. A `data:` URL holds the data itself.
pub fn address(text: Text<'_>) -> (Option<Str<'_>>, Data<'_>) {
    let inline = text.clone().exact().and_then(|address| match address {
        Cow::Borrowed(address) => {
            let (media, data) = inline(address)?;
            Some((Cow::Borrowed(media), Text::Plain(Cow::Borrowed(data))))
        }
        Cow::Owned(address) => {
            let (media, data) = inline(&address)?;
            Some((Cow::Owned(media.to_owned()), Text::Plain(Cow::Owned(data.to_owned()))))
        }
    });
    match inline {
        Some((media, data)) => (Some(media), Data::Inline(data)),
        None => (None, Data::Url(text)),
    }
}

fn inline(address: &str) -> Option<(&str, &str)> {
    let (media, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    (!media.is_empty()).then_some((media, data))
}

/// The pieces that the API accepts in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// All pieces: the message is a user's.
    Anything,
    /// Only text: the message is anybody else's, or a tool result.
    Text,
}

/// Writes a content that was read from a message of this kind: a bare string, or a list.
pub fn write_own(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(pieces) => {
            let pieces: Vec<String> = pieces.iter().filter_map(|piece| element(piece, Ownership::Own)).collect();
            format!("[{}]", pieces.join(","))
        }
    }
}

/// Writes another system's content without the pieces that a message of the API cannot hold. A single text becomes a bare
/// string, as in CycoD.
pub fn write_foreign(content: &Content<'_>, accepts: Accepts) -> String {
    let Content::Pieces(pieces) = content else { return content.joined().to_json() };
    let elements: Vec<(&Piece<'_>, String)> = pieces
        .iter()
        .filter(|piece| accepts == Accepts::Anything || piece.as_text().is_some())
        .filter_map(|piece| Some((piece, element(piece, Ownership::Foreign)?)))
        .collect();
    match elements.as_slice() {
        [] => placeholder::joined(content).to_json(),
        [(piece, _)] if piece.as_text().is_some() => placeholder::joined(content).to_json(),
        elements => format!("[{}]", elements.iter().map(|(_, json)| json.as_str()).collect::<Vec<_>>().join(",")),
    }
}

fn element(piece: &Piece<'_>, ownership: Ownership) -> Option<String> {
    let extra = match ownership {
        Ownership::Own => Some(&piece.extra),
        Ownership::Foreign => None,
    };
    let stated = extra.and_then(|extra| extra.text("type"));
    let mut draft = Draft::new();
    match &piece.kind {
        PieceKind::Text(text) => {
            draft.default_str("type", "text");
            draft.set_text(if stated.as_deref() == Some("refusal") { "refusal" } else { "text" }, text);
        }
        PieceKind::Blob { media, data } => {
            let media = media.as_deref();
            let kind = match stated.as_deref() {
                Some("image_url") => "image_url",
                Some("input_audio") => "input_audio",
                Some(_) => "file",
                None => blob_type(media, data)?,
            };
            draft.default_str("type", kind);
            draft.nest(kind, blob(kind, media, data));
        }
        PieceKind::Other(raw) => return extra.map(|_| raw.to_string()),
    }
    Some(draft.render(extra))
}

/// The element type for another system's blob; `None` if the API has none.
fn blob_type(media: Option<&str>, data: &Data<'_>) -> Option<&'static str> {
    let is_image = media.is_none_or(|media| media.starts_with("image/"));
    match data {
        Data::Inline(_) if AUDIO_FORMATS.iter().any(|(_, known)| media == Some(known)) => Some("input_audio"),
        Data::Inline(_) | Data::Url(_) if is_image => Some("image_url"),
        Data::Inline(_) => Some("file"),
        Data::Url(_) => None,
        // The API's file ids have this form; a path on somebody's disk means nothing to the API.
        Data::File(id) => id.decode().starts_with("file-").then_some("file"),
    }
}

fn blob<'d>(kind: &str, media: Option<&str>, data: &Data<'_>) -> Draft<'d> {
    let mut draft = Draft::new();
    match (kind, data) {
        ("input_audio", Data::Inline(data)) => {
            draft.set_text("data", data);
            if let Some((format, _)) = AUDIO_FORMATS.iter().find(|(_, known)| media == Some(known)) {
                draft.set_str("format", format);
            }
        }
        ("file", Data::File(id)) => draft.set_text("file_id", id),
        ("file", _) => {
            draft.default_str("filename", "file");
            draft.set_text("file_data", &to_address(media, data));
        }
        _ => draft.set_text("url", &to_address(media, data)),
    }
    draft
}

fn to_address<'t>(media: Option<&str>, data: &'t Data<'_>) -> Text<'t> {
    match data {
        // Only an image can lack a media type here, and the API requires one.
        Data::Inline(base64) => Text::from(format!("data:{};base64,{}", media.unwrap_or("image/png"), base64.decode())),
        Data::Url(address) | Data::File(address) => address.borrow(),
    }
}
