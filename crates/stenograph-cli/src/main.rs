//! steno
fn main() {}
