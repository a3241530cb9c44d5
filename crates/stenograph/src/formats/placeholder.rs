//! Placeholders for content that is not text, in formats that hold only text. Text beside such content is written alone: a
//! placeholder appears only where the content would be empty otherwise, because an empty message would be wrong.

use std::borrow::Cow;

use crate::model::{Content, Piece, PieceKind};
use crate::text::Text;

/// All texts of a content, or a placeholder if it has other pieces and no text.
pub fn joined<'c>(content: &'c Content<'_>) -> Text<'c> {
    let others: Vec<&Piece<'_>> = content.others().collect();
    if others.is_empty() || content.texts().any(|text| !text.is_empty()) {
        return content.joined();
    }
    let images = others.iter().all(|piece| is_image(piece));
    let placeholder = match (images, others.len()) {
        (true, 1) => "[image]".to_owned(),
        (true, many) => format!("[{many} images]"),
        (false, 1) => "[1 item that is not text]".to_owned(),
        (false, many) => format!("[{many} items that are not text]"),
    };
    Text::Plain(Cow::Owned(placeholder))
}

fn is_image(piece: &Piece<'_>) -> bool {
    match &piece.kind {
        PieceKind::Blob { media: Some(media), .. } => media.starts_with("image/"),
        PieceKind::Blob { media: None, .. } | PieceKind::Text(_) | PieceKind::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Data, ExtraFields};

    fn blob(media: &'static str) -> Piece<'static> {
        let kind = PieceKind::Blob { media: Some(media.into()), data: Data::Inline("AAAA".into()) };
        Piece { kind, extra: ExtraFields::default() }
    }

    #[test]
    fn only_content_without_text_gets_a_placeholder() {
        let shown = |pieces: Vec<Piece<'static>>| joined(&Content::Pieces(pieces)).decode().into_owned();
        assert_eq!(shown(vec![blob("image/png")]), "[image]");
        assert_eq!(shown(vec![blob("image/png"), Piece::text(""), blob("image/gif")]), "[2 images]");
        assert_eq!(shown(vec![blob("application/pdf")]), "[1 item that is not text]");
        assert_eq!(shown(vec![blob("image/png"), Piece::text("a cat")]), "a cat");
        assert_eq!(shown(vec![]), "");
        assert_eq!(joined(&Content::text("")).decode(), "");
    }
}
