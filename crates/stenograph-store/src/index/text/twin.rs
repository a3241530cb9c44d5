//! How twins are spelled as numbers: the two lowest bits say what the rest is.

/// What is left of a fingerprint.
const PRINT: u64 = !3;
const RESTATES: u64 = 1;
const PIECE: u64 = 2;

/// The twin of a record that says something of its own.
pub fn stated(twin: u64) -> u64 {
    twin & PRINT
}

/// The twin of a record that says again what another says.
pub fn restated(twin: u64) -> u64 {
    (twin & PRINT) | RESTATES
}

/// The twin of one of its texts.
pub fn piece(twin: u64) -> u64 {
    (twin & PRINT) | PIECE
}

/// The fingerprint.
pub fn print(number: u64) -> u64 {
    number & PRINT
}

/// Whether it is that of one text.
pub fn is_piece(number: u64) -> bool {
    number & PIECE != 0
}

/// Whether it is that of a restatement.
pub fn restates(number: u64) -> bool {
    number & RESTATES != 0
}
