//! Adapts the project's tokenizer to the engine: [`stenograph::query::words`] pushes words, the engine pulls them one by one.

use stenograph::query::words;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The tokenizer's registered name.
pub(super) const NAME: &str = "steno";

/// How much text is split at a time.
const PIECE_SIZE: usize = 4 << 10;

/// Splits texts into words.
#[derive(Clone, Debug, Default)]
pub(super) struct WordTokenizer {
    /// The words of the current piece, concatenated.
    lower: String,
    /// For each word: its end in `lower`, its start in the text, its end in the text, and its position.
    found: Vec<(usize, usize, usize, u32)>,
    token: Token,
}

/// The words of one text.
pub(super) struct WordStream<'a> {
    splitter: &'a mut WordTokenizer,
    text: &'a str,
    /// Where the next piece begins.
    at: usize,
    /// The number of words before it.
    before: u32,
    next: usize,
    start: usize,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.lower.clear();
        self.found.clear();
        WordStream { splitter: self, text, at: 0, before: 0, next: 0, start: 0 }
    }
}

impl WordStream<'_> {
    /// Splits the next piece. Words never span white space, so a text may be cut there.
    fn refill(&mut self) -> bool {
        let WordTokenizer { lower, found, .. } = &mut *self.splitter;
        (self.next, self.start) = (0, 0);
        loop {
            lower.clear();
            found.clear();
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                return false;
            }
            let beyond = rest.get(PIECE_SIZE..).unwrap_or_default();
            let cut = beyond.iter().position(u8::is_ascii_whitespace).map_or(rest.len(), |space| PIECE_SIZE + space);
            let piece = self.text.get(self.at..self.at + cut).unwrap_or_default();
            let (at, before) = (self.at, self.before);
            words(piece, &mut |word| {
                lower.push_str(word.text);
                found.push((lower.len(), at + word.at.start, at + word.at.end, before + word.position));
            });
            self.at += cut;
            if let Some((.., last)) = found.last() {
                self.before = last + 1;
                return true;
            }
        }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        if self.next >= self.splitter.found.len() && !self.refill() {
            return false;
        }
        let WordTokenizer { lower, found, token } = &mut *self.splitter;
        let Some((end, from, to, position)) = found.get(self.next).copied() else { return false };
        token.text.clear();
        token.text.push_str(lower.get(self.start..end).unwrap_or_default());
        (token.offset_from, token.offset_to, token.position) = (from, to, position as usize);
        token.position_length = 1;
        self.next += 1;
        self.start = end;
        true
    }

    fn token(&self) -> &Token {
        &self.splitter.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.splitter.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_split_as_a_whole() {
        let text = "One two_three 中文字 café ".repeat(1000) + &"x".repeat(9000) + " end";
        let mut whole = Vec::new();
        words(&text, &mut |word| whole.push((word.text.to_owned(), word.at.clone(), word.position as usize)));
        let mut splitter = WordTokenizer::default();
        let mut stream = splitter.token_stream(&text);
        let mut pieces = Vec::new();
        while stream.advance() {
            let token = stream.token();
            pieces.push((token.text.clone(), token.offset_from..token.offset_to, token.position));
        }
        assert!(whole.len() > 5000);
        assert_eq!(pieces, whole);
    }
}
