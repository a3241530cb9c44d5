//! Whether two names mean the same file, under any path, or the same session. This file reads no content.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use stenograph::format::{Format, Wanted};
use stenograph::model::Event;
use stenograph::read::{Reading, Sink};
use stenograph::time::Time;

/// Whether a session name is globally unique: long, with digits, such as a UUID.
pub(crate) fn is_unique(name: &str) -> bool {
    name.len() >= 16 && name.bytes().filter(u8::is_ascii_hexdigit).count() >= 16
}

/// The session of a source with this beginning: the one in its name if that is globally unique, otherwise the one that its
/// first records state.
pub(crate) fn session_of(named: Option<&str>, format: Option<&dyn Format>, head: &[u8]) -> Option<String> {
    let named = named.map(str::to_owned);
    match named.as_deref().is_some_and(is_unique) {
        true => named,
        false => format.and_then(|format| stated_session(format, head)).or(named),
    }
}

/// The session that the first records of a source state.
pub(crate) fn stated_session(format: &dyn Format, head: &[u8]) -> Option<String> {
    let mut stated = StatedSession(None);
    read_head(format, head, &mut stated, |stated| stated.0.is_some());
    stated.0
}

/// The time of the first record that states one.
pub(crate) fn first_time(format: &dyn Format, head: &[u8]) -> Option<Time<'static>> {
    let mut stated = StatedTime(None);
    read_head(format, head, &mut stated, |stated| stated.0.is_some());
    stated.0
}

/// The name of a session whose source and place state none: the name of its file without extensions.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.trim_start_matches('.').split('.').next().unwrap_or_default().to_owned()
}

/// Reads the first records of a source until `is_enough`.
pub(crate) fn read_head<S: Sink>(format: &dyn Format, head: &[u8], sink: &mut S, is_enough: impl Fn(&S) -> bool) {
    const PIECE_SIZE: usize = 4 << 10;
    let mut reading = Reading::new(format, Wanted::All);
    // The reading is not ended: the last record of a head is most likely cut off.
    for piece in head.chunks(PIECE_SIZE) {
        reading.feed(piece, sink);
        if is_enough(sink) {
            break;
        }
    }
}

/// Takes the first session that an event states.
struct StatedSession(Option<String>);

impl Sink for StatedSession {
    fn event(&mut self, event: &Event<'_>) {
        self.0 = self.0.take().or_else(|| event.session.as_deref().map(str::to_owned));
    }
}

/// Takes the first time that an event states.
struct StatedTime(Option<Time<'static>>);

impl Sink for StatedTime {
    fn event(&mut self, event: &Event<'_>) {
        self.0 = self.0.take().or_else(|| event.time.clone().map(Time::into_owned));
    }
}

/// The identity of a file: device and inode if the system has them, otherwise the whole path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity(IdentityKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum IdentityKind {
    #[cfg(unix)]
    Inode { device: u64, inode: u64 },
    #[cfg(not(unix))]
    Path(std::path::PathBuf),
}

impl Identity {
    /// The identity of the file at this path, through links; `None` if there is none.
    pub(crate) fn of_path(path: &Path) -> Option<Identity> {
        #[cfg(unix)]
        return std::fs::metadata(path).ok().as_ref().and_then(Identity::of_metadata);
        #[cfg(not(unix))]
        return std::fs::canonicalize(path).ok().map(|path| Identity(IdentityKind::Path(path)));
    }

    /// The identity of an open file; only regular files have one.
    pub(crate) fn of_metadata(metadata: &Metadata) -> Option<Identity> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let inode = IdentityKind::Inode { device: metadata.dev(), inode: metadata.ino() };
            metadata.is_file().then_some(Identity(inode))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            None
        }
    }

    /// The file that standard input is redirected from.
    pub(crate) fn of_standard_input() -> Option<Identity> {
        of_open(&io::stdin())
    }

    /// The file that standard output is redirected to.
    pub(crate) fn of_standard_output() -> Option<Identity> {
        of_open(&io::stdout())
    }
}

#[cfg(unix)]
fn of_open(open: &impl std::os::fd::AsFd) -> Option<Identity> {
    let file = File::from(open.as_fd().try_clone_to_owned().ok()?);
    Identity::of_metadata(&file.metadata().ok()?)
}

#[cfg(not(unix))]
fn of_open<T>(_open: &T) -> Option<Identity> {
    None
}

/// Whether two paths mean the same file. A missing file equals none.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = Identity::of_path(one);
    identity.is_some() && identity == Identity::of_path(other)
}
