//! steno
fn main(){}
