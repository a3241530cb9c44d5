//! The elements of a content list: text, refusals, images, sounds and files, to pieces and back.

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
            let media = sound_media(&audio);
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

/// The sounds the API knows, and their media types.
const SOUNDS: [(&str, &str); 2] = [("wav", "audio/wav"), ("mp3", "audio/mpeg")];

fn sound_media(audio: &Object<'_>) -> Option<&'static str> {
    let format = audio.peek_str("format")?;
    SOUNDS.iter().find(|(name, _)| *name == format).map(|(_, media)| *media)
}

/// An address: a `data:` URI holds the thing itself.
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

/// What the content of a message may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Everything: what a user says.
    Anything,
    /// Text alone: what anybody else says, and what a tool answers.
    Text,
}

/// Writes a content that was read from such a message: a bare string, or a list.
pub fn own(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) => text.to_json(),
        Content::Pieces(pieces) => {
            let pieces: Vec<String> = pieces.iter().filter_map(|piece| element(piece, Ownership::Own)).collect();
            format!("[{}]", pieces.join(","))
        }
    }
}

/// Writes another system's content. What a message of the API cannot hold is left out; what is one text then is a bare string,
/// as CycoD has it.
pub fn foreign(content: &Content<'_>, takes: Takes) -> String {
    let Content::Pieces(pieces) = content else { return content.joined().to_json() };
    let elements: Vec<(&Piece<'_>, String)> = pieces
        .iter()
        .filter(|piece| takes == Takes::Anything || piece.as_text().is_some())
        .filter_map(|piece| Some((piece, element(piece, Ownership::Foreign)?)))
        .collect();
    match elements.as_slice() {
        [] => placeholder::joined(content).to_json(),
        [(piece, _)] if piece.as_text().is_some() => placeholder::joined(content).to_json(),
        elements => format!("[{}]", elements.iter().map(|(_, json)| json.as_str()).collect::<Vec<_>>().join(",")),
    }
}

fn element(piece: &Piece<'_>, whose: Ownership) -> Option<String> {
    let rest = match whose {
        Ownership::Own => Some(&piece.extra),
        Ownership::Foreign => None,
    };
    let stated = rest.and_then(|rest| rest.text("type"));
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
        PieceKind::Other(raw) => return rest.map(|_| raw.to_string()),
    }
    Some(draft.render(rest))
}

/// The type of element that another system's blob becomes: `None` where the API has no place for it.
fn blob_type(media: Option<&str>, data: &Data<'_>) -> Option<&'static str> {
    let is_image = media.is_none_or(|media| media.starts_with("image/"));
    match data {
        Data::Inline(_) if SOUNDS.iter().any(|(_, sound)| media == Some(sound)) => Some("input_audio"),
        Data::Inline(_) | Data::Url(_) if is_image => Some("image_url"),
        Data::Inline(_) => Some("file"),
        Data::Url(_) => None,
        // A file of the API has an id of this shape; the path of a file on somebody's disk says nothing to it.
        Data::File(id) => id.decode().starts_with("file-").then_some("file"),
    }
}

fn blob<'d>(kind: &str, media: Option<&str>, data: &Data<'_>) -> Draft<'d> {
    let mut draft = Draft::new();
    match (kind, data) {
        ("input_audio", Data::Inline(data)) => {
            draft.set_text("data", data);
            if let Some((format, _)) = SOUNDS.iter().find(|(_, sound)| media == Some(sound)) {
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
        // Only a picture gets here without a media type, and the API wants one.
        Data::Inline(base64) => Text::from(format!("data:{};base64,{}", media.unwrap_or("image/png"), base64.decode())),
        Data::Url(address) | Data::File(address) => address.borrow(),
    }
}
