//! The differing part of two texts, without their common words at both ends.

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
}
