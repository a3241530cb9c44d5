//! Whether two names mean the same: the same file, however they spell it, or the same session. Nothing here opens a file to read it.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use stenograph::format::{Format, Want};
use stenograph::model::{Event, Note};
use stenograph::read::{Reading, Sink};

/// Whether the name of a session is one of its kind in the world: long, with digits, such as a UUID.
pub(crate) fn is_unique(name: &str) -> bool {
    name.len() >= 16 && name.bytes().filter(u8::is_ascii_hexdigit).count() >= 16
}

/// The session of a source that begins like this: the one that its name says, where that is unique in the world, else the one that its
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
    let mut stated = Stated(None);
    read_head(format, head, &mut stated, |stated| stated.0.is_some());
    stated.0
}

/// Reads the first records of a source until they say enough.
pub fn read_head<S: Sink>(format: &dyn Format, head: &[u8], sink: &mut S, is_enough: impl Fn(&S) -> bool) {
    const PIECE_SIZE: usize = 4 << 10;
    let mut reading = Reading::new(format, Want::All);
    // The reading is not ended: the last record of a head is most likely cut.
    for piece in head.chunks(PIECE_SIZE) {
        reading.feed(piece, sink);
        if is_enough(sink) {
            break;
        }
    }
}

/// The first session that an event states.
struct Stated(Option<String>);

impl Sink for Stated {
    fn event(&mut self, event: &Event<'_>) {
        self.0 = self.0.take().or_else(|| event.session.as_deref().map(str::to_owned));
    }

    fn note(&mut self, _note: Note) {}
}

/// What makes a file the one it is: device and inode where the system has them, else the whole path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    #[cfg(unix)]
    Inode { device: u64, inode: u64 },
    #[cfg(not(unix))]
    Path(std::path::PathBuf),
}

impl Identity {
    /// The identity of the file of that name, through links; `None` when there is none.
    pub(crate) fn of_path(path: &Path) -> Option<Identity> {
        #[cfg(unix)]
        return std::fs::metadata(path).ok().as_ref().and_then(Identity::of_metadata);
        #[cfg(not(unix))]
        return std::fs::canonicalize(path).ok().map(|path| Identity(Kind::Path(path)));
    }

    /// The identity of an open file; only regular files have one worth guarding.
    pub(crate) fn of_metadata(metadata: &Metadata) -> Option<Identity> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let inode = Kind::Inode { device: metadata.dev(), inode: metadata.ino() };
            metadata.is_file().then_some(Identity(inode))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            None
        }
    }

    /// The file that standard input was redirected from.
    pub(crate) fn of_standard_input() -> Option<Identity> {
        of_open(&io::stdin())
    }

    /// The file that standard output was redirected into.
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

/// Whether two names mean the same file. A file that is not there is nobody's.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = Identity::of_path(one);
    identity.is_some() && identity == Identity::of_path(other)
}
