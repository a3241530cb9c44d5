//! The tokenizer: what counts as a word, in texts and in queries alike. Both engines split with it, so that they cannot differ.
//! It knows nothing of events or of the grammar of queries.
//!
//! A word is a run of letters and digits with their marks, in lower case. Everything else separates, so that `sort_by_field` is
//! the phrase *sort by field*. Chinese, Japanese and Korean have no spaces: each run of theirs gives its overlapping pairs of
//! characters, and its last character alone. So two characters or more are found as a phrase of pairs, and one character as the
//! beginning of a pair or as that last one.

use std::ops::Range;

use unicode_general_category::{GeneralCategory, get_general_category};

/// How many characters of a run count. Longer ones are hashes and encoded bytes, which nobody looks for by their end.
pub(super) const WORD_LENGTH_MAX: usize = 64;

/// One word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word in lower case; of a very long run its beginning.
    pub text: &'a str,
    /// The bytes of the text it stands for. Two pairs of characters may overlap.
    pub at: Range<usize>,
    /// How many words stand before it.
    pub position: u32,
}

/// Gives every word of a text, in order.
pub fn words(text: &str, each: &mut dyn FnMut(Word<'_>)) {
    let mut split = Split { text, each, lower: String::new(), position: 0 };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at = match class(*byte) {
            Class::Separator => at + 1,
            Class::Lower | Class::Upper => split.ascii(at),
            Class::Beyond => split.beyond(at),
        };
    }
}

/// What one byte says of the character it begins.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Separator,
    Lower,
    Upper,
    /// No ASCII: the character has to be looked at.
    Beyond,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Separator; 256];
    let mut byte = 0;
    #[expect(clippy::indexing_slicing, reason = "the table is made while compiling")]
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            0x80.. => Class::Beyond,
            _ => Class::Separator,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Separator)
}

/// What a character beyond ASCII is to a word.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Separator,
    Letter,
    /// Belongs to the character before it.
    Mark,
    /// Of a script without spaces.
    Pair,
}

fn part(char: char) -> Part {
    if char.is_ascii() {
        return if char.is_ascii_alphanumeric() { Part::Letter } else { Part::Separator };
    }
    if is_pairwise(char) {
        return Part::Pair;
    }
    if char.is_alphanumeric() {
        return Part::Letter;
    }
    match get_general_category(char) {
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => Part::Mark,
        _ => Part::Separator,
    }
}

/// Whether a character belongs to a word.
pub(super) fn is_of_word(char: char) -> bool {
    part(char) != Part::Separator
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

struct Split<'a> {
    text: &'a str,
    each: &'a mut dyn FnMut(Word<'_>),
    /// Takes words that are not in lower case already.
    lower: String,
    position: u32,
}

impl Split<'_> {
    /// A run that begins with ASCII. Gives where it ends.
    fn ascii(&mut self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut to, mut upper) = (from, false);
        while let Some(byte) = bytes.get(to) {
            match class(*byte) {
                Class::Lower => {}
                Class::Upper => upper = true,
                Class::Separator => break,
                // A mark or a letter may follow; what does not belong to the word ends it there as well.
                Class::Beyond => return self.letters(from),
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

    /// Whatever begins with a character beyond ASCII. Gives where it ends.
    fn beyond(&mut self, from: usize) -> usize {
        let Some(first) = self.text.get(from..).and_then(|rest| rest.chars().next()) else { return from + 1 };
        match part(first) {
            // A mark without a letter before it marks nothing.
            Part::Separator | Part::Mark => from + first.len_utf8(),
            Part::Letter => self.letters(from),
            Part::Pair => self.pairs(from),
        }
    }

    /// A run of letters of any kind. Gives where it ends.
    fn letters(&mut self, from: usize) -> usize {
        self.lower.clear();
        let (mut to, mut length) = (from, 0);
        for char in self.text.get(from..).unwrap_or_default().chars() {
            match part(char) {
                Part::Letter | Part::Mark => {}
                Part::Separator | Part::Pair => break,
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

    /// A run without spaces: its pairs, then its last character. Gives where it ends.
    fn pairs(&mut self, from: usize) -> usize {
        let mut last: Option<Range<usize>> = None;
        let mut end = from;
        for (offset, char) in self.text.get(from..).unwrap_or_default().char_indices() {
            let at = from + offset..from + offset + char.len_utf8();
            match part(char) {
                // A mark that chooses between forms of a character is no character.
                Part::Mark => {
                    end = at.end;
                    continue;
                }
                Part::Separator | Part::Letter => break,
                Part::Pair => {}
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

/// What somebody looks for, as words that stand next to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// At least one word, as [`words`] splits them.
    pub words: Vec<String>,
    /// How they are compared.
    pub how: How,
}

/// How words are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Every word as it is.
    Exact,
    /// The last word is only the beginning of one.
    Prefix,
    /// One word, with so many letters put in, left out, exchanged or swapped with their neighbour at most.
    Fuzzy(u8),
}

/// Whether the last word of a text that is looked for is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Open,
}

/// What the last word of a text is.
#[derive(Clone, Copy)]
enum Tail {
    Word,
    /// A run without spaces of one character.
    Alone,
    /// The last character of a longer one.
    EndOfRun,
}

impl Words {
    /// The words of a text as they are looked for; `None` when there are none.
    ///
    /// Where a text ends in a run without spaces, its last character alone is not asked for: the run may go on where it is found.
    pub fn of(text: &str) -> Option<Words> {
        Words::ending(text, End::Whole)
    }

    pub(super) fn ending(text: &str, end: End) -> Option<Words> {
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
                How::Exact
            }
            (Tail::Alone, _) | (Tail::Word, End::Open) => How::Prefix,
            (Tail::Word, End::Whole) => How::Exact,
        };
        (!found.is_empty()).then_some(Words { words: found, how })
    }

    /// A text that gives these words again.
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

    fn sought(text: &str) -> (Vec<String>, How) {
        let words = Words::of(text).unwrap();
        (words.words, words.how)
    }

    #[test]
    fn signs_separate_and_letters_are_small() {
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
    fn what_is_sought_may_go_on_where_it_is_found() {
        assert_eq!(sought("修复了"), (vec!["修复".into(), "复了".into()], How::Exact));
        assert_eq!(sought("修"), (vec!["修".into()], How::Prefix));
        assert_eq!(sought("a修"), (vec!["a".into(), "修".into()], How::Prefix));
        assert_eq!(sought("修复a"), (vec!["修复".into(), "复".into(), "a".into()], How::Exact));
        assert_eq!(Words::of("-- !"), None);
    }
}
