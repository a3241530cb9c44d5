//! The recorder on a disk that fails: every call it makes is refused once in every way a disk refuses, and the power goes out at
//! every one of them. What was acknowledged must be there afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod disk;
mod inode;
mod log;
mod plan;
mod recorder;
mod session;
