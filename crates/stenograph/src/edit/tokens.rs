//! Counts the tokens of events. One token is four bytes, as in most systems, unless the caller provides a vocabulary: the library
//! has none, because it would be larger than the library itself.

use crate::model::{Body, Content, Event, PieceKind};

/// The estimated bytes per token.
pub const BYTES_PER_TOKEN: u64 = 4;

/// The estimated tokens of an image, a sound or a document. Services count by its size on a screen, which transcripts do not state.
pub(crate) const BLOB_TOKENS: u64 = 1600;

/// Counts tokens.
pub struct Tokenizer<'a> {
    name: String,
    count: Box<dyn Fn(&str) -> u64 + 'a>,
}

impl std::fmt::Debug for Tokenizer<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tokenizer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Default for Tokenizer<'_> {
    fn default() -> Self {
        Tokenizer::new("bytes/4", |text| (text.len() as u64).div_ceil(BYTES_PER_TOKEN))
    }
}

impl<'a> Tokenizer<'a> {
    /// Creates a tokenizer from a name for reports and a function that counts.
    pub fn new(name: impl Into<String>, count: impl Fn(&str) -> u64 + 'a) -> Tokenizer<'a> {
        Tokenizer { name: name.into(), count: Box::new(count) }
    }

    /// A tokenizer that borrows this one.
    pub fn borrowed(&self) -> Tokenizer<'_> {
        Tokenizer::new(self.name.clone(), |text: &str| (self.count)(text))
    }

    /// The name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        if text.is_empty() { 0 } else { (self.count)(text) }
    }

    /// The tokens of an event. Events that a model never receives have none.
    pub fn event(&self, event: &Event<'_>) -> u64 {
        match &event.body {
            Body::ToolCall { name, input, .. } => self.text(name) + self.text(&input.to_text().decode()),
            Body::Message { content, .. } | Body::Thinking { content } | Body::ToolResult { content, .. } => {
                self.content(content)
            }
            Body::Compaction { summary: content } | Body::Failure { content, .. } => {
                content.as_ref().map_or(0, |content| self.content(content))
            }
            Body::Fact { .. } | Body::Stop { .. } | Body::Other { .. } => 0,
        }
    }

    fn content(&self, content: &Content<'_>) -> u64 {
        match content {
            Content::Text(text) => self.text(&text.decode()),
            Content::Pieces(pieces) => pieces
                .iter()
                .map(|piece| match &piece.kind {
                    PieceKind::Text(text) => self.text(&text.decode()),
                    PieceKind::Blob { .. } => BLOB_TOKENS,
                    PieceKind::Other(raw) => self.text(raw),
                })
                .sum(),
        }
    }

    /// The longest beginning of a text, in whole characters, that together with `mark` has at most this many tokens.
    pub fn cut<'t>(&self, text: &'t str, tokens_max: u64, mark: &str) -> &'t str {
        let fits = |end: usize| {
            let head = text.get(..end).unwrap_or_default();
            self.text(&format!("{head}{mark}")) <= tokens_max
        };
        let (mut low, mut high) = (0, text.len());
        while low < high {
            let middle = (low + (high - low).div_ceil(2)..=high).find(|at| text.is_char_boundary(*at)).unwrap_or(high);
            if fits(middle) {
                low = middle;
            } else {
                high = (low..middle).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(low);
            }
        }
        text.get(..low).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_has_at_most_the_limit() {
        let tokenizer = Tokenizer::default();
        assert_eq!(tokenizer.cut("abcdefghijklmnop", 3, "..."), "abcdefghi");
        assert_eq!(tokenizer.cut("ab", 3, "..."), "ab");
        assert_eq!(tokenizer.cut("ééééééé", 3, "..."), "éééé");
        assert_eq!(tokenizer.cut("abc", 0, "..."), "");
    }
}
