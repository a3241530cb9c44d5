//! Transcripts on disk. This is the only crate that opens files; it prints nothing and reads no environment.
//!
#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! [`Source`] opens what is read; [`source_file`] recognizes its format. [`NewFile`] and [`Spool`] are files that are written once.
//! [`Recorder`] appends what an agent does, in one of the [`layouts`]; [`recover`](mod@recover) completes what a crash left.
//! [`mod@discover`] finds the sources on a machine, [`archive`] keeps copies of them, [`index`] makes them searchable and [`watch`] reports
//! changes; [`follow`] reads a file from its end and goes on as it grows; [`event_cache`] reads single events again;
//! [`file_status`] states how a run is going; [`placement`] puts a session where its agent finds it; [`undo`] keeps what an
//! edit takes away. [`databases`] opens conversations that an agent keeps in a database. [`Error`] is the one error, with
//! the place where it happened and a hint.

pub mod archive;
pub mod archive_sources;
mod completion;
mod confined;
pub mod databases;
mod decode;
pub mod discover;
mod document;
pub mod edit;
mod error;
pub mod event_cache;
pub mod file_status;
pub mod files;
mod fingerprint;
pub mod folder;
pub mod follow;
pub mod history;
pub mod hits;
mod identity;
pub mod index;
pub mod journal;
pub mod layouts;
pub mod lock;
pub mod log;
mod output;
pub mod peer_usage;
pub mod placement;
pub mod project;
pub mod read;
mod recorder;
pub mod recover;
pub mod redaction;
pub mod runs;
pub mod session_events;
pub mod session_files;
pub mod sessions;
mod source;
pub mod source_file;
pub mod subagent_files;
pub mod systems;
pub mod tail;
pub mod undo;
pub mod usage;
pub mod watch;
mod working_folder;
mod writers;

pub use decode::Container;
pub use error::{Error, Place, Problem};
pub use output::{Existing, NewFile, NewFileOptions, Spool, SpooledInput, fresh_folder};
pub use recorder::{Recorder, RecordingFiles, random_id};
pub use source::{Passes, Source};
pub use tail::Warning;
pub use working_folder::working_folder;
