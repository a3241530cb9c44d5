//! The differing parts of two texts: one part, without the common words at both ends, or all parts, word by word.

use std::collections::HashMap;

use imara_diff::{Algorithm, Diff, Token};

/// The parts of two texts that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differing<'t> {
    /// The common beginning.
    pub before: &'t str,
    /// The differing part of the first text.
    pub a: &'t str,
    /// The differing part of the second text.
    pub b: &'t str,
    /// The common end.
    pub after: &'t str,
}

/// Splits two texts into their common and differing parts.
pub fn differing<'t>(a: &'t str, b: &'t str) -> Differing<'t> {
    let same = a.bytes().zip(b.bytes()).take_while(|(one, other)| one == other).count();
    let start = word_start(a, b, same);
    let (rest_a, rest_b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let same = rest_a.bytes().rev().zip(rest_b.bytes().rev()).take_while(|(one, other)| one == other).count();
    let end = word_end(rest_a, rest_b, same);
    let cut = |rest: &'t str| rest.get(..rest.len() - end).unwrap_or_default();
    Differing {
        before: a.get(..start).unwrap_or_default(),
        a: cut(rest_a),
        b: cut(rest_b),
        after: rest_a.get(rest_a.len() - end..).unwrap_or_default(),
    }
}

/// The last position up to `at` where a word begins in both texts.
fn word_start(a: &str, b: &str, at: usize) -> usize {
    let begins = |text: &str, at: usize| {
        at == 0
            || text.get(..at).is_some_and(|before| {
                let is_open = |char: char| char.is_alphanumeric();
                let next = text.get(at..).and_then(|rest| rest.chars().next());
                !(before.chars().next_back().is_some_and(is_open) && next.is_some_and(is_open))
            })
    };
    (0..=at).rev().find(|at| begins(a, *at) && begins(b, *at)).unwrap_or(0)
}

/// The largest number of final bytes, up to `length`, that begin with a word in both texts.
fn word_end(a: &str, b: &str, length: usize) -> usize {
    let begins = |text: &str, length: usize| {
        let at = text.len() - length;
        text.is_char_boundary(at)
            && (length == 0
                || !(text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric)
                    && text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric)))
    };
    (0..=length).rev().find(|length| begins(a, *length) && begins(b, *length)).unwrap_or(0)
}

/// Two texts that are longer together differ in one part only: the comparison of words would take too long.
const WORDS_SIZE_MAX: usize = 400 << 10;

/// A part of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPart<'t> {
    /// Both texts have it.
    Same(&'t str),
    /// The texts differ here; one of them may have nothing.
    Differs {
        /// In the first text.
        a: &'t str,
        /// In the second text.
        b: &'t str,
    },
}

/// Two texts as a list of common and differing parts, compared word by word.
pub fn text_parts<'t>(a: &'t str, b: &'t str) -> Vec<TextPart<'t>> {
    let found = differing(a, b);
    let mut parts = vec![TextPart::Same(found.before)];
    if found.a.len() + found.b.len() > WORDS_SIZE_MAX {
        parts.push(TextPart::Differs { a: found.a, b: found.b });
    } else {
        word_parts(found.a, found.b, &mut parts);
    }
    parts.push(TextPart::Same(found.after));
    parts.retain(|part| !matches!(part, TextPart::Same("") | TextPart::Differs { a: "", b: "" }));
    parts
}

fn word_parts<'t>(a: &'t str, b: &'t str, parts: &mut Vec<TextPart<'t>>) {
    let (words_a, words_b) = (words(a), words(b));
    let mut ids: HashMap<&str, u32> = HashMap::new();
    let mut tokens = |text: &'t str, ends: &[usize]| -> Vec<Token> {
        let mut start = 0;
        let word = |end: &usize| {
            let word = text.get(start..*end).unwrap_or_default();
            start = *end;
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            Token(*ids.entry(word).or_insert(next))
        };
        ends.iter().map(word).collect()
    };
    let (before, after) = (tokens(a, &words_a), tokens(b, &words_b));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &before, &after, u32::try_from(ids.len()).unwrap_or(u32::MAX));
    // The byte at which a word begins.
    let start =
        |ends: &[usize], word: u32| (word as usize).checked_sub(1).and_then(|at| ends.get(at)).map_or(0, |end| *end);
    let mut done = 0;
    for hunk in diff.hunks() {
        let (from, to) = (start(&words_a, hunk.before.start), start(&words_a, hunk.before.end));
        let in_b = start(&words_b, hunk.after.start)..start(&words_b, hunk.after.end);
        let same = a.get(done..from).unwrap_or_default();
        let differs = TextPart::Differs { a: a.get(from..to).unwrap_or_default(), b: b.get(in_b).unwrap_or_default() };
        parts.extend([TextPart::Same(same), differs]);
        done = to;
    }
    parts.push(TextPart::Same(a.get(done..).unwrap_or_default()));
}

/// The ends of the words of a text. Every character that is not part of a word is one of its own.
fn words(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut is_in_word = false;
    for (at, char) in text.char_indices() {
        let is_word = char.is_alphanumeric() || char == '_';
        if at > 0 && !(is_word && is_in_word) {
            ends.push(at);
        }
        is_in_word = is_word;
    }
    if !text.is_empty() {
        ends.push(text.len());
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole() {
        let found = differing("the parser fails on an empty file", "the printer fails on an empty file");
        assert_eq!(found, Differing { before: "the ", a: "parser", b: "printer", after: " fails on an empty file" });
    }

    #[test]
    fn one_text_may_be_part_of_the_other() {
        assert_eq!(differing("one", "one two"), Differing { before: "one", a: "", b: " two", after: "" });
        assert_eq!(differing("", "x"), Differing { before: "", a: "", b: "x", after: "" });
        assert_eq!(differing("a a", "a a a").a, "");
        assert_eq!(differing("same", "same"), Differing { before: "same", a: "", b: "", after: "" });
    }

    #[test]
    fn characters_are_never_cut() {
        let found = differing("größe 数据", "große 数学");
        assert_eq!((found.a, found.b), ("größe 数据", "große 数学"));
        assert_eq!(differing("aé", "aè").before, "");
    }

    #[test]
    fn all_differing_words_are_found() {
        use TextPart::{Differs, Same};
        let parts = text_parts("run the fast tests now", "run all fast checks now");
        let expected = [
            Same("run "),
            Differs { a: "the", b: "all" },
            Same(" fast "),
            Differs { a: "tests", b: "checks" },
            Same(" now"),
        ];
        assert_eq!(parts, expected);
        assert_eq!(text_parts("same", "same"), [Same("same")]);
        assert_eq!(text_parts("", ""), []);
        assert_eq!(text_parts("", "new"), [Differs { a: "", b: "new" }]);
    }

    #[test]
    fn the_parts_of_any_two_texts_are_these_texts() {
        let long = "größe ".repeat(80_000);
        for (a, b) in
            [("größe 数据 a", "große 数学 a"), ("a b c", "c b a"), (" ", ""), (&long, "größe"), ("x_1 y", "x_2 y")]
        {
            let (mut in_a, mut in_b) = (String::new(), String::new());
            for part in text_parts(a, b) {
                let (one, other) = match part {
                    TextPart::Same(text) => (text, text),
                    TextPart::Differs { a, b } => (a, b),
                };
                in_a += one;
                in_b += other;
            }
            assert_eq!((in_a.as_str(), in_b.as_str()), (a, b));
        }
    }
}
