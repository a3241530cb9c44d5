//! Development tasks.
fn main(){}
