//! How numbers, bytes and paths are spelled in the log. What they mean is not known here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use stenograph::json::Object;

/// Numbers as ranges: `3-17,20`.
pub(super) fn spell_numbers(numbers: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let follows = |(step, number): &(usize, &u32)| u64::from(**number) == u64::from(*first) + *step as u64;
        let count = rest.iter().enumerate().take_while(follows).count().max(1);
        let gap = if text.is_empty() { "" } else { "," };
        let _ = match count {
            1 => write!(text, "{gap}{first}"),
            _ => write!(text, "{gap}{first}-{}", u64::from(*first) + count as u64 - 1),
        };
        rest = rest.get(count..).unwrap_or_default();
    }
    text
}

pub(super) fn read_numbers(text: &str) -> Option<Vec<u32>> {
    // A damaged range must not fill the memory: more pieces than that are no single source.
    const COUNT_MAX: usize = 1 << 24;
    let mut numbers = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if last < first || (last - first) as usize >= COUNT_MAX - numbers.len() {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes as [`hex`] spells them. Most of the log is that, and all of it is read each time.
pub(super) fn unhex<const SIZE: usize>(text: &str) -> Option<[u8; SIZE]> {
    let pairs = text.as_bytes().as_chunks::<2>().0;
    if text.len() != 2 * SIZE {
        return None;
    }
    let (mut bytes, mut all) = ([0; SIZE], 0);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = (nibble(*high), nibble(*low));
        all |= high | low;
        *byte = high << 4 | low & 0xf;
    }
    (all < 16).then_some(bytes)
}

fn nibble(char: u8) -> u8 {
    match char {
        b'0'..=b'9' => char - b'0',
        b'a'..=b'f' => char - b'a' + 10,
        _ => 0xff,
    }
}

fn unhex_all(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| unhex::<1>(std::str::from_utf8(pair).ok()?).map(|[byte]| byte)).collect()
}

/// A path as text where it is text, else its bytes.
pub(super) fn spell_path(path: &Path) -> (&'static str, String) {
    match path.to_str() {
        Some(text) => ("path", text.to_owned()),
        #[cfg(unix)]
        None => ("path_hex", hex(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))),
        #[cfg(not(unix))]
        None => ("path", path.to_string_lossy().into_owned()),
    }
}

pub(super) fn read_path(object: &mut Object<'_>) -> Option<PathBuf> {
    if let Some(text) = object.take_str("path") {
        return Some(PathBuf::from(text.into_owned()));
    }
    let bytes = unhex_all(&object.take_str("path_hex")?)?;
    #[cfg(unix)]
    return Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)));
    #[cfg(not(unix))]
    return String::from_utf8(bytes).ok().map(PathBuf::from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_a_damaged_range_fills_no_memory() {
        assert_eq!(spell_numbers(&[1, 2, 3, 7, 5, 6]), "1-3,7,5-6");
        assert_eq!(read_numbers("1-3,7,5-6").unwrap(), [1, 2, 3, 7, 5, 6]);
        assert_eq!(read_numbers("0-4294967295"), None);
        assert_eq!(read_numbers("5-3"), None);
    }

    #[test]
    fn only_what_was_spelled_here_is_read_as_bytes() {
        assert_eq!(unhex(&hex(&[0, 7, 0xab, 0xff])), Some([0, 7, 0xab, 0xff]));
        for bad in ["", "0", "000", "0g", "0A", "é"] {
            assert_eq!(unhex::<1>(bad), None, "{bad}");
        }
    }
}
