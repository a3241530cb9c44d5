//! The recorder and the archive on a disk that fails: every call they make is refused once in every way a disk refuses, and the
//! power goes out at every one of them. What was acknowledged must be there afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod archive;
mod disk;
mod edit;
mod inode;
mod log;
mod plan;
mod recorder;
mod session;
