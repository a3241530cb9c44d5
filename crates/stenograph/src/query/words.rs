//! The tokenizer: what counts as a word, in texts and in queries alike. Both engines split with it, so that they cannot differ.
//! It knows nothing of events or of the grammar of queries.
//!
//! A word is a run of letters and digits with their marks, in lower case. Everything else separates words, so that
//! `sort_by_field` is the phrase *sort by field*. Chinese, Japanese and Korean have no spaces: each run of their characters
//! gives its overlapping pairs, and its last character alone. So two characters or more are found as a phrase of pairs, and
//! one character as the start of a pair or as that last one.

use std::ops::Range;

use unicode_general_category::{GeneralCategory, get_general_category};

/// The number of characters of a word that count. Longer runs are hashes and encoded bytes, and nobody searches for their
/// end.
pub(super) const WORD_LENGTH_MAX: usize = 64;

/// One word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word in lower case, cut to `WORD_LENGTH_MAX` characters.
    pub text: &'a str,
    /// Its range of bytes in the text. Two pairs of characters may overlap.
    pub at: Range<usize>,
    /// The number of words before it.
    pub position: u32,
}

/// Calls `each` with every word of a text, in order.
pub fn words(text: &str, each: &mut dyn FnMut(Word<'_>)) {
    let mut splitter = Splitter { text, each, lower: String::new(), position: 0 };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at = match class(*byte) {
            ByteClass::Separator => at + 1,
            ByteClass::Lower | ByteClass::Upper => splitter.ascii(at),
            ByteClass::NonAscii => splitter.non_ascii(at),
        };
    }
}

/// What one byte says about the character that it begins.
#[derive(Clone, Copy, PartialEq)]
enum ByteClass {
    Separator,
    Lower,
    Upper,
    /// Not ASCII: the character must be decoded.
    NonAscii,
}

static CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Separator; 256];
    let mut byte = 0;
    #[expect(clippy::indexing_slicing, reason = "the table is made while compiling")]
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => ByteClass::Lower,
            b'A'..=b'Z' => ByteClass::Upper,
            0x80.. => ByteClass::NonAscii,
            _ => ByteClass::Separator,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> ByteClass {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(ByteClass::Separator)
}

/// The role of a non-ASCII character in a word.
#[derive(Clone, Copy, PartialEq)]
enum CharClass {
    Separator,
    Letter,
    /// It belongs to the character before it.
    Mark,
    /// It is of a script without spaces.
    Pair,
}

fn char_class(char: char) -> CharClass {
    if char.is_ascii() {
        return if char.is_ascii_alphanumeric() { CharClass::Letter } else { CharClass::Separator };
    }
    if is_pairwise(char) {
        return CharClass::Pair;
    }
    if char.is_alphanumeric() {
        return CharClass::Letter;
    }
    match get_general_category(char) {
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => {
            CharClass::Mark
        }
        _ => CharClass::Separator,
    }
}

/// Whether a character belongs to a word.
pub(super) fn is_word_char(char: char) -> bool {
    char_class(char) != CharClass::Separator
}

/// What a star after these words means: it completes the last word, so after a separator it adds nothing.
pub(super) fn end_of_words(text: &str, end: End) -> End {
    if text.ends_with(is_word_char) { end } else { End::Whole }
}

/// Whether a character is of a script that is split into pairs: Han, Hiragana, Katakana, Hangul, Bopomofo.
pub(super) fn is_pairwise(char: char) -> bool {
    matches!(u32::from(char),
        0x1100..=0x11ff
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035 | 0x3038..=0x303c
        | 0x3041..=0x309a | 0x309d..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff
        | 0x3105..=0x312f | 0x3131..=0x318e | 0x31a0..=0x31bf | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff | 0xf900..=0xfaff
        | 0xff66..=0xff9f | 0xffa0..=0xffdc
        | 0x1aff0..=0x1b16f | 0x20000..=0x3ffff)
}

struct Splitter<'a> {
    text: &'a str,
    each: &'a mut dyn FnMut(Word<'_>),
    /// Handles words that are not already in lower case.
    lower: String,
    position: u32,
}

impl Splitter<'_> {
    /// A run that begins with ASCII. Returns its end.
    fn ascii(&mut self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut to, mut upper) = (from, false);
        while let Some(byte) = bytes.get(to) {
            match class(*byte) {
                ByteClass::Lower => {}
                ByteClass::Upper => upper = true,
                ByteClass::Separator => break,
                // A mark or a non-ASCII letter may continue the word; `letters` reads it again from its start.
                ByteClass::NonAscii => return self.letters(from),
            }
            to += 1;
        }
        let word = self.text.get(from..to.min(from + WORD_LENGTH_MAX)).unwrap_or_default();
        let at = from..to;
        if upper {
            self.lower.clear();
            self.lower.push_str(word);
            self.lower.make_ascii_lowercase();
            (self.each)(Word { text: &self.lower, at, position: self.position });
        } else {
            (self.each)(Word { text: word, at, position: self.position });
        }
        self.position += 1;
        to
    }

    /// Text that begins with a non-ASCII character. Returns its end.
    fn non_ascii(&mut self, from: usize) -> usize {
        let Some(first) = self.text.get(from..).and_then(|rest| rest.chars().next()) else { return from + 1 };
        match char_class(first) {
            // A mark without a letter before it is ignored.
            CharClass::Separator | CharClass::Mark => from + first.len_utf8(),
            CharClass::Letter => self.letters(from),
            CharClass::Pair => self.pairs(from),
        }
    }

    /// A run of letters of any kind. Returns its end.
    fn letters(&mut self, from: usize) -> usize {
        self.lower.clear();
        let (mut to, mut length) = (from, 0);
        for char in self.text.get(from..).unwrap_or_default().chars() {
            match char_class(char) {
                CharClass::Letter | CharClass::Mark => {}
                CharClass::Separator | CharClass::Pair => break,
            }
            to += char.len_utf8();
            for low in char.to_lowercase().take(WORD_LENGTH_MAX - length) {
                // The one letter that has another form at the end of a word.
                self.lower.push(if low == 'ς' { 'σ' } else { low });
                length += 1;
            }
        }
        (self.each)(Word { text: &self.lower, at: from..to, position: self.position });
        self.position += 1;
        to
    }

    /// A run without spaces: its pairs, then its last character. Returns its end.
    fn pairs(&mut self, from: usize) -> usize {
        let mut last: Option<Range<usize>> = None;
        let mut end = from;
        for (offset, char) in self.text.get(from..).unwrap_or_default().char_indices() {
            let at = from + offset..from + offset + char.len_utf8();
            match char_class(char) {
                // A variation selector is not a character of its own.
                CharClass::Mark => {
                    end = at.end;
                    continue;
                }
                CharClass::Separator | CharClass::Letter => break,
                CharClass::Pair => {}
            }
            if let Some(last) = last {
                self.pair(last, at.clone());
            }
            end = at.end;
            last = Some(at);
        }
        let at = last.unwrap_or(from..from);
        let text = self.text.get(at.clone()).unwrap_or_default();
        (self.each)(Word { text, at, position: self.position });
        self.position += 1;
        end
    }

    fn pair(&mut self, first: Range<usize>, second: Range<usize>) {
        let at = first.start..second.end;
        let text = if first.end == second.start {
            self.text.get(at.clone()).unwrap_or_default()
        } else {
            self.lower.clear();
            self.lower.extend([first, second].into_iter().filter_map(|char| self.text.get(char)));
            &self.lower
        };
        (self.each)(Word { text, at, position: self.position });
        self.position += 1;
    }
}

/// Search words that must be adjacent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phrase {
    /// At least one word, as [`words`] splits them.
    pub words: Vec<String>,
    /// How they are compared.
    pub how: PhraseMatch,
}

/// How words are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhraseMatch {
    /// Every word exactly.
    Exact,
    /// The last word is a prefix.
    Prefix,
    /// One word with at most this many letters inserted, removed, replaced or swapped with a neighbour.
    Fuzzy(u8),
}

/// Whether the last word of a search text is complete or only a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Open,
}

/// The role of the last word of a text.
#[derive(Clone, Copy)]
enum Tail {
    Word,
    /// A run without spaces of one character.
    Alone,
    /// The last character of a longer one.
    EndOfRun,
}

impl Phrase {
    /// The search words of a text; `None` if there are none.
    ///
    /// If the text ends in a run without spaces, the word for its last character is omitted, because the run may continue in
    /// the searched text.
    pub fn of(text: &str) -> Option<Phrase> {
        Phrase::ending(text, End::Whole)
    }

    pub(super) fn ending(text: &str, end: End) -> Option<Phrase> {
        let mut found: Vec<String> = Vec::new();
        let (mut last_end, mut tail) = (None, Tail::Word);
        words(text, &mut |word| {
            let is_alone = word.text.chars().next().is_some_and(is_pairwise) && word.text.chars().nth(1).is_none();
            tail = match is_alone {
                true if last_end == Some(word.at.end) => Tail::EndOfRun,
                true => Tail::Alone,
                false => Tail::Word,
            };
            last_end = Some(word.at.end);
            found.push(word.text.to_owned());
        });
        let how = match (tail, end) {
            (Tail::EndOfRun, _) => {
                found.pop();
                PhraseMatch::Exact
            }
            (Tail::Alone, _) | (Tail::Word, End::Open) => PhraseMatch::Prefix,
            (Tail::Word, End::Whole) => PhraseMatch::Exact,
        };
        (!found.is_empty()).then_some(Phrase { words: found, how })
    }

    /// A text that gives the same words.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let mut run: Option<char> = None;
        for word in &self.words {
            let first = word.chars().next().filter(|char| is_pairwise(*char));
            let second = word.chars().nth(1);
            match (run, first, second) {
                // The next pair of the same run, or its end.
                (Some(_), Some(_), Some(second)) => out.push(second),
                (Some(_), Some(_), None) => {}
                _ => {
                    if !out.is_empty() {
                        out.push(' ');
                    }
                    out.push_str(word);
                }
            }
            run = first.and(second);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, &mut |word| {
            assert_eq!(word.position as usize, found.len());
            found.push(word.text.to_owned());
        });
        found
    }

    fn sought(text: &str) -> (Vec<String>, PhraseMatch) {
        let words = Phrase::of(text).unwrap();
        (words.words, words.how)
    }

    #[test]
    fn punctuation_separates_and_letters_are_lowercased() {
        assert_eq!(split("sort_by-Field(a.b/c) ÉCOLE\n42x"), ["sort", "by", "field", "a", "b", "c", "école", "42x"]);
        assert_eq!(split("caf\u{65}\u{301} ΟΔΟΣ οδος हिन्दी"), ["cafe\u{301}", "οδοσ", "οδοσ", "हिन्दी"]);
        assert!(split(" \u{301}—…\u{fffd}").is_empty());
    }

    #[test]
    fn scripts_without_spaces_give_pairs_and_their_last_character() {
        assert_eq!(split("修复bug了"), ["修复", "复", "bug", "了"]);
        assert_eq!(split("カタ한국𠀀"), ["カタ", "タ한", "한국", "국𠀀", "𠀀"]);
        assert_eq!(split("葛\u{e0100}城"), ["葛城", "城"]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "aÉ 修复了 Z";
        let mut found = Vec::new();
        words(text, &mut |word| found.push(&text[word.at]));
        assert_eq!(found, ["aÉ", "修复", "复了", "了", "Z"]);
    }

    #[test]
    fn a_very_long_run_is_cut_and_stays_one_word() {
        for letter in ["a", "A", "é", "İ"] {
            let long = letter.repeat(200);
            let mut found = Vec::new();
            words(&long, &mut |word| found.push((word.text.chars().count(), word.at)));
            assert_eq!(found, [(WORD_LENGTH_MAX, 0..long.len())], "{letter}");
        }
    }

    #[test]
    fn a_searched_run_may_continue_in_the_text() {
        assert_eq!(sought("修复了"), (vec!["修复".into(), "复了".into()], PhraseMatch::Exact));
        assert_eq!(sought("修"), (vec!["修".into()], PhraseMatch::Prefix));
        assert_eq!(sought("a修"), (vec!["a".into(), "修".into()], PhraseMatch::Prefix));
        assert_eq!(sought("修复a"), (vec!["修复".into(), "复".into(), "a".into()], PhraseMatch::Exact));
        assert_eq!(Phrase::of("-- !"), None);
    }
}
