//! UUIDs as sessions and records spell them.

/// Whether a name is a UUID with hyphens, the only spelling that agents use.
pub(crate) fn is_uuid(name: &str) -> bool {
    let fits =
        |(at, byte): (usize, u8)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    name.len() == 36 && name.bytes().enumerate().all(fits)
}

/// A UUID with these bits, of version 8, which is for custom use.
pub(crate) fn uuid_of(bits: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x8 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let piece = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [piece(0, 8), piece(8, 12), piece(12, 16), piece(16, 20), piece(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_uuid_is_recognized() {
        assert!(is_uuid(&uuid_of(0)) && is_uuid(&uuid_of(u128::MAX)));
        assert!(!is_uuid("") && !is_uuid("session-1") && !is_uuid(&uuid_of(7).replace('-', "0")));
    }
}
