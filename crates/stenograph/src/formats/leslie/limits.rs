//! Leslie's limits, and cutting to them. A cut never splits a character.

use std::borrow::Cow;

/// How many characters of a tool's parameters or result are shown, including the ellipsis.
pub const TOOL_LENGTH_MAX: usize = 200;

/// The largest size of a file, in bytes.
pub const FILE_SIZE_MAX: usize = 20 * 1024;

/// The mark at the end of a cut text.
pub const ELLIPSIS: &[u8] = b"...";

/// Cuts to `length_max` characters, including the ellipsis. An invalid byte counts as one character.
pub fn cut_length(text: &[u8], length_max: usize) -> Cow<'_, [u8]> {
    let mut ends = character_ends(text);
    let Some(end) = length_max.checked_sub(ELLIPSIS.len() + 1).and_then(|last| ends.nth(last)) else {
        return Cow::Borrowed(text);
    };
    if ends.nth(ELLIPSIS.len()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shortened(text, end))
}

/// Cuts to `size_max` bytes, including the ellipsis; `None` if not even the ellipsis fits.
pub fn cut_size(text: &[u8], size_max: usize) -> Option<Cow<'_, [u8]>> {
    if text.len() <= size_max {
        return Some(Cow::Borrowed(text));
    }
    let room = size_max.checked_sub(ELLIPSIS.len())?;
    let end = character_ends(text).take_while(|end| *end <= room).last().unwrap_or(0);
    Some(Cow::Owned(shortened(text, end)))
}

fn shortened(text: &[u8], end: usize) -> Vec<u8> {
    let mut kept = text.get(..end).unwrap_or(text).to_vec();
    kept.extend_from_slice(ELLIPSIS);
    kept
}

/// The byte positions at which characters end.
fn character_ends(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    text.utf8_chunks()
        .flat_map(|chunk| {
            let characters = chunk.valid().chars().map(char::len_utf8);
            characters.chain(chunk.invalid().iter().map(|_| 1))
        })
        .map(move |length| {
            end += length;
            end
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, length_max: usize) -> String {
        String::from_utf8(cut_length(text.as_bytes(), length_max).into_owned()).unwrap()
    }

    #[test]
    fn the_ellipsis_is_inside_the_limit() {
        assert_eq!(cut("abcdefgh", 8), "abcdefgh");
        assert_eq!(cut("abcdefghi", 8), "abcde...");
        assert_eq!(cut("", 8), "");
    }

    #[test]
    fn characters_are_counted_and_never_split() {
        assert_eq!(cut("éééééééé", 8), "éééééééé");
        assert_eq!(cut("ééééééééé", 8), "ééééé...");
        assert_eq!(cut_size("ééé".as_bytes(), 6).unwrap().as_ref(), "ééé".as_bytes());
        assert_eq!(cut_size("éééé".as_bytes(), 7).unwrap().as_ref(), "éé...".as_bytes());
        assert_eq!(cut_size("éééé".as_bytes(), 4).unwrap().as_ref(), b"...");
        assert!(cut_size(b"abcd", 2).is_none());
    }

    #[test]
    fn an_invalid_byte_counts_as_one_character() {
        assert_eq!(cut_length(b"\xff\xfe\xfd\xfc\xfb", 4).as_ref(), b"\xff...");
        assert_eq!(cut_length(b"\xff\xfe\xfd\xfc", 4).as_ref(), b"\xff\xfe\xfd\xfc");
    }
}
