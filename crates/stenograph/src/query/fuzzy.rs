//! The distance between two words: the number of inserted, deleted, replaced and swapped letters (the restricted Damerau-Levenshtein
//! distance, which changes no letter twice).

/// Whether the distance between two words is at most `most`.
pub fn is_near(a: &str, b: &str, most: u8) -> bool {
    distance(a, b, usize::from(most)).is_some()
}

/// The distance that a query allows by default: a short word with two changes is another word.
pub(super) fn usual(length: usize) -> u8 {
    if length <= 5 { 1 } else { 2 }
}

/// The distance between two words; `None` if it is over `most`.
pub(super) fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    if a == b {
        return Some(0);
    }
    if a.chars().count().abs_diff(b.chars().count()) > most {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_put_in_left_out_exchanged_and_swapped_cost_one() {
        for (a, b) in [("word", "words"), ("word", "wrd"), ("word", "ward"), ("word", "wrod"), ("", "a"), ("题", "問")]
        {
            assert_eq!(distance(a, b, 2), Some(1), "{a} {b}");
            assert!(is_near(b, a, 1) && !is_near(a, b, 0), "{a} {b}");
        }
    }

    #[test]
    fn no_letter_is_touched_twice() {
        assert_eq!(distance("ca", "abc", 3), Some(3));
        assert!(!is_near("ca", "abc", 2));
    }
}
