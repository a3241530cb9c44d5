//! The archive with real files that grow, are rewritten, truncated and deleted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod damage;
mod forget;
mod keep;
mod place;
mod random;
mod random_damage;
