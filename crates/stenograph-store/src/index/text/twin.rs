//! Encodes twins, the keys that a record shares with its restatements, as numbers. The two lowest bits are flags.

/// The bits of the key itself.
const PRINT: u64 = !3;
const RESTATES: u64 = 1;
const PIECE: u64 = 2;

/// The twin of a record that states something new.
pub fn stated(twin: u64) -> u64 {
    twin & PRINT
}

/// The twin of a record that restates another.
pub fn restated(twin: u64) -> u64 {
    (twin & PRINT) | RESTATES
}

/// The twin of one text of a record.
pub fn piece(twin: u64) -> u64 {
    (twin & PRINT) | PIECE
}

/// The key without its flags.
pub fn fingerprint(number: u64) -> u64 {
    number & PRINT
}

/// Whether it belongs to one text.
pub fn is_piece(number: u64) -> bool {
    number & PIECE != 0
}

/// Whether it belongs to a restatement.
pub fn restates(number: u64) -> bool {
    number & RESTATES != 0
}
