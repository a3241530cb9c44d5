//! How far two words are apart, in letters put in, left out, exchanged or swapped with their neighbour (the restricted distance of
//! Damerau, where no letter is touched twice). Nothing here knows what the words are for.

/// Whether the distance between two words is at most `most`.
pub fn is_near(a: &str, b: &str, most: u8) -> bool {
    distance(a, b, usize::from(most)).is_some()
}

/// How many changes are allowed for when nobody says: a short word with two changes is another word.
pub(super) fn usual(length: usize) -> u8 {
    if length <= 5 { 1 } else { 2 }
}

/// The distance between two words; `None` when it is over `most`.
pub(super) fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    if a == b {
        return Some(0);
    }
    let b: Vec<char> = b.chars().collect();
    let length = a.chars().count();
    if length.abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last: Option<char> = None;
    for (row, char) in a.chars().enumerate() {
        let mut current = Vec::with_capacity(b.len() + 1);
        current.push(row + 1);
        let (mut left, mut least) = (row + 1, row + 1);
        for (column, other) in b.iter().enumerate() {
            let at = |line: &[usize], column: usize| line.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut cost = at(&above, column) + usize::from(char != *other);
            cost = cost.min(at(&above, column + 1) + 1).min(left + 1);
            let swapped = column > 0 && last == Some(*other) && b.get(column - 1) == Some(&char);
            if swapped && row > 0 {
                cost = cost.min(at(&before, column - 1) + 1);
            }
            current.push(cost);
            least = least.min(cost);
            left = cost;
        }
        // A swap reaches back two rows, so that one row over the limit is not the end yet; two are.
        if least > most && above.iter().min().is_none_or(|least| *least > most) {
            return None;
        }
        before = std::mem::replace(&mut above, current);
        last = Some(char);
    }
    above.last().copied().filter(|distance| *distance <= most)
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
