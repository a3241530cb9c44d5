//! The recorder and the archive on a failing disk: every call is refused once in every way a disk can refuse, and the power
//! fails at every one of them. Acknowledged content must be present afterwards.

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
