//! Administration of other systems: what their own commands do with contexts, inboxes, runs and conversations. None of it is recording:
//! `layouts/` records, and must not use anything here.

pub mod chibi;
pub mod cycod;
pub mod devflow;
