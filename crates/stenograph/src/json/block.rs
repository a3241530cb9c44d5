//! Finds the end of a run of plain characters in a JSON string: a quote, a backslash, or a control character (which JSON
//! forbids in strings). Compares eight bytes at a time, packed into one integer, and more of a long run.

/// The number of bytes compared at once.
const SIZE: usize = 8;

/// The number of bytes of a long run compared at once. The compiler turns the comparison into vector instructions.
const LONG_SIZE: usize = 32;

/// Every byte is 1.
const ONES: u64 = u64::MAX / 255;

/// The offset of the first byte at or after `at` that ends a run; `None` if `bytes` ends first.
#[inline]
pub fn ends(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut rest = bytes.get(at..)?;
    // Most runs end here: keys and ids.
    for _ in 0..2 {
        let Some((block, more)) = rest.split_first_chunk::<SIZE>() else { break };
        let found = marks(u64::from_le_bytes(*block));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        (rest, at) = (more, at + SIZE);
    }
    while let Some((_, more)) = rest.split_first_chunk::<LONG_SIZE>().filter(|(block, _)| !has_end(block)) {
        (rest, at) = (more, at + LONG_SIZE);
    }
    while let Some((block, more)) = rest.split_first_chunk::<SIZE>() {
        let found = marks(u64::from_le_bytes(*block));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        (rest, at) = (more, at + SIZE);
    }
    rest.iter().position(|byte| is_end(*byte)).map(|found| at + found)
}

/// Looks at all bytes, because a loop without an early end becomes vector instructions.
#[inline]
fn has_end(block: &[u8; LONG_SIZE]) -> bool {
    block.iter().fold(false, |has_end, byte| has_end | is_end(*byte))
}

#[inline]
fn is_end(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Sets the highest bit of each byte that ends a run. Only the lowest set bit is reliable: the subtraction borrows from higher
/// bytes.
#[inline]
fn marks(bytes: u64) -> u64 {
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes;
    let is = |byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
    (below(bytes, b' ') | is(b'"') | is(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_ends_a_run_is_found_at_every_offset() {
        for byte in 0..=u8::MAX {
            for filler in [b'x', b'!', b'#', b'[', b']', b' ', 0x7f, 0x80, 0xff] {
                for at in 0_usize..60 {
                    for from in at.saturating_sub(50)..at {
                        let mut bytes = [filler; 60];
                        bytes[at] = byte;
                        assert_eq!(ends(&bytes, from), is_end(byte).then_some(at), "{byte} at {at} from {from}");
                    }
                }
            }
        }
        assert_eq!(ends(b"abc", 3), None);
        assert_eq!(ends(b"abc", 4), None);
        assert_eq!(ends(&[b'"'; 40], 7), Some(7));
    }
}
