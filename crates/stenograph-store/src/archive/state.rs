//! What the log leads to: which pieces are where, which copies are made of them, what is forgotten and which folders are known.
//! Every change goes through a line of the log, so that what is in memory is what will be read again. No file is opened here.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Label;
use super::frame::Hash;
use super::line::{FrameLine, FramePieces, Head, KeepLine, Known, Line};

/// All that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// By number.
    pub pieces: Vec<Piece>,
    pub frames: Vec<Frame>,
    pub packs: BTreeMap<u32, Pack>,
    pub copies: BTreeMap<u32, Held>,
    /// By the spelling of the path: paths compare and hash slowly.
    pub by_path: HashMap<OsString, u32>,
    pub folders: Vec<PathBuf>,
    pub forgotten: Forgotten,
    /// How many commits there were.
    pub commits: u64,
    /// The number of the next copy.
    pub next_copy: u32,
}

/// A piece of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub hash: Hash,
    pub size: u32,
    /// The frame it is in; [`NOWHERE`] when it is in none.
    pub frame: u32,
    /// Where it begins in the frame's raw bytes.
    pub at: u32,
}

/// The frame of a piece that is in none.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The time of what is not committed yet.
pub(super) const UNSTAMPED_MS: i64 = i64::MIN;

/// Where a frame is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub pack: u32,
    pub at: u64,
    pub size: u64,
    pub raw_size: u32,
}

/// A file of frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pack {
    /// Where its last frame ends.
    pub length: u64,
    pub need: Need,
}

/// Whether a pack is still needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Need {
    #[default]
    Needed,
    Dropped,
}

/// A copy of a source.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub path: PathBuf,
    pub format: String,
    pub session: Option<String>,
    pub head: Option<Head>,
    pub modified_ns: i64,
    pub first_ms: i64,
    pub last_ms: i64,
    /// Oldest first; the last one is what the source was when it was last seen. Never empty.
    pub versions: Vec<Version>,
    /// How many pieces at the end of the last version were not cut by content.
    pub loose: usize,
}

/// What a source was at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Version {
    pub number: u32,
    pub length: u64,
    pub pieces: Vec<u32>,
    pub first_ms: i64,
    pub last_ms: i64,
}

/// What must not come back.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgotten {
    labels: HashSet<(String, String)>,
    /// How they begin, and which session that was.
    heads: HashMap<Head, HashSet<Option<String>>>,
    head_lengths: BTreeMap<u32, usize>,
}

/// A damaged number must not fill the memory.
const HOLE_MAX: usize = 1 << 20;

impl State {
    /// Follows a line; `None` where it makes no sense here.
    pub fn apply(&mut self, line: Line, time_ms: i64) -> Option<()> {
        match line {
            Line::Begin(_) => {}
            Line::Frame(frame) => return self.add_frame(&frame),
            Line::Keep(keep) => return self.keep(keep, time_ms),
            Line::Thin { copy, versions } => {
                let held = self.copies.get_mut(&copy)?;
                let last = held.versions.last()?.number;
                held.versions.retain(|version| version.number == last || !versions.contains(&version.number));
            }
            Line::Forget { copies, .. } => copies.into_iter().for_each(|copy| self.forget(copy)),
            Line::Recall { format, session, head } => self.forgotten.recall(&format, session.as_deref(), head.as_ref()),
            Line::Folder { path, known } => {
                self.folders.retain(|folder| *folder != path);
                if known == Known::Added {
                    self.folders.push(path);
                }
            }
            Line::Drop { pack } => self.drop_pack(pack),
            Line::Commit { number, .. } => self.commits = number,
        }
        Some(())
    }

    fn add_frame(&mut self, line: &FrameLine) -> Option<()> {
        let frame = u32::try_from(self.frames.len()).ok().filter(|frame| *frame != NOWHERE)?;
        let mut at = 0_u32;
        match &line.pieces {
            FramePieces::New { first, pieces } => {
                let first = *first as usize;
                if first < self.pieces.len() || first > self.pieces.len() + HOLE_MAX {
                    return None;
                }
                self.pieces.resize(first, Piece { hash: [0; 32], size: 0, frame: NOWHERE, at: 0 });
                for (hash, size) in pieces {
                    self.pieces.push(Piece { hash: *hash, size: *size, frame, at });
                    at = at.checked_add(*size)?;
                }
            }
            FramePieces::Moved(numbers) => {
                for number in numbers {
                    let piece = self.pieces.get_mut(*number as usize)?;
                    (piece.frame, piece.at) = (frame, at);
                    at = at.checked_add(piece.size)?;
                }
            }
        }
        self.frames.push(Frame { pack: line.pack, at: line.at, size: line.size, raw_size: at });
        let pack = self.packs.entry(line.pack).or_default();
        pack.length = pack.length.max(line.at.checked_add(line.size)?);
        Some(())
    }

    fn keep(&mut self, line: KeepLine, time_ms: i64) -> Option<()> {
        self.next_copy = self.next_copy.max(line.copy.checked_add(1)?);
        let held = match self.copies.entry(line.copy) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = line.path.clone()?;
                self.by_path.insert(path.clone().into_os_string(), line.copy);
                entry.insert(Held::new(path, time_ms))
            }
        };
        held.last_ms = time_ms;
        held.modified_ns = line.modified_ns;
        if let Some(path) = line.path.as_ref().filter(|path| path.as_os_str() != held.path.as_os_str()) {
            self.by_path.remove(held.path.as_os_str());
            self.by_path.insert(path.clone().into_os_string(), line.copy);
            held.path.clone_from(path);
        }
        held.grow(line, time_ms);
        Some(())
    }

    /// Says when what was done to a copy was committed.
    pub fn stamp(&mut self, copy: u32, time_ms: i64) {
        let Some(held) = self.copies.get_mut(&copy) else { return };
        let versions = held.versions.iter_mut().flat_map(|version| [&mut version.first_ms, &mut version.last_ms]);
        let times = versions.chain([&mut held.first_ms, &mut held.last_ms]);
        times.filter(|time| **time == UNSTAMPED_MS).for_each(|time| *time = time_ms);
    }

    /// Lets go of a copy and keeps in mind that it must not come back.
    fn forget(&mut self, copy: u32) {
        let Some(held) = self.copies.remove(&copy) else { return };
        self.by_path.remove(held.path.as_os_str());
        self.forgotten.add(&held);
    }

    /// What is still in a pack that goes is nowhere.
    fn drop_pack(&mut self, pack: u32) {
        let frames = &self.frames;
        let is_in = |frame: u32| frames.get(frame as usize).is_some_and(|frame| frame.pack == pack);
        self.pieces.iter_mut().filter(|piece| is_in(piece.frame)).for_each(|piece| piece.frame = NOWHERE);
        self.packs.entry(pack).or_default().need = Need::Dropped;
    }

    /// A piece that is somewhere, and the frame it is in.
    pub fn piece(&self, number: u32) -> Option<(&Piece, &Frame)> {
        let piece = self.pieces.get(number as usize)?;
        Some((piece, self.frames.get(piece.frame as usize)?))
    }

    /// For every piece whether a copy is made of it.
    pub fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.pieces.len()];
        for number in self.copies.values().flat_map(|held| &held.versions).flat_map(|version| &version.pieces) {
            if let Some(used) = used.get_mut(*number as usize) {
                *used = true;
            }
        }
        used
    }

    /// The copy of a source.
    pub fn copy_at(&self, path: &Path) -> Option<(u32, &Held)> {
        let copy = *self.by_path.get(path.as_os_str())?;
        Some((copy, self.copies.get(&copy)?))
    }
}

impl Held {
    fn new(path: PathBuf, time_ms: i64) -> Held {
        let (format, session, head, versions) = (String::new(), None, None, Vec::new());
        let (first_ms, last_ms, modified_ns, loose) = (time_ms, time_ms, 0, 0);
        Held { path, format, session, head, modified_ns, first_ms, last_ms, versions, loose }
    }

    fn grow(&mut self, line: KeepLine, time_ms: i64) {
        if let Some(format) = line.format {
            self.format = format;
        }
        self.session = line.session.or(self.session.take());
        self.head = line.head.or(self.head);
        self.loose = line.loose as usize;
        let same = line.same as usize;
        match self.versions.last_mut() {
            Some(last) if last.number == line.version => {
                last.pieces.truncate(same);
                last.pieces.extend_from_slice(&line.pieces);
                (last.length, last.last_ms) = (line.length, time_ms);
            }
            None if same == 0 => {
                let (number, length, pieces) = (line.version, line.length, line.pieces);
                self.versions.push(Version { number, length, pieces, first_ms: time_ms, last_ms: time_ms });
            }
            last => {
                let mut pieces = last.map_or(Vec::new(), |last| last.pieces.iter().take(same).copied().collect());
                pieces.extend_from_slice(&line.pieces);
                let (number, length) = (line.version, line.length);
                self.versions.push(Version { number, length, pieces, first_ms: time_ms, last_ms: time_ms });
            }
        }
    }
}

impl Forgotten {
    fn add(&mut self, held: &Held) {
        if let Some(session) = &held.session {
            self.labels.insert((held.format.clone(), session.clone()));
        }
        if let Some(head) = held.head {
            let is_new = self.heads.entry(head).or_default().insert(held.session.clone());
            *self.head_lengths.entry(head.length).or_default() += usize::from(is_new);
        }
    }

    fn recall(&mut self, format: &str, session: Option<&str>, head: Option<&Head>) {
        if let Some(session) = session {
            self.labels.remove(&(format.to_owned(), session.to_owned()));
            // However its sources begin, they are of that session.
            let session = Some(session.to_owned());
            for (head, sessions) in &mut self.heads {
                let count = self.head_lengths.entry(head.length).or_default();
                *count = count.saturating_sub(usize::from(sessions.remove(&session)));
            }
            self.heads.retain(|_, sessions| !sessions.is_empty());
        }
        let matching = |head: &Head| self.heads.contains_key(head);
        if let Some(head) = head.copied().filter(matching) {
            let gone = self.heads.remove(&head).map_or(0, |sessions| sessions.len());
            if let Some(count) = self.head_lengths.get_mut(&head.length) {
                *count = count.saturating_sub(gone);
            }
        }
    }

    /// The head by which a source that begins so is forgotten; the same session is so whatever it begins with.
    pub fn by_head(&self, session: Option<&str>, begin: &[u8]) -> Option<Head> {
        let lengths = self.head_lengths.iter().filter(|(_, count)| **count > 0).map(|(length, _)| *length as usize);
        let mut heads = lengths.filter_map(|length| Some(Head::of(begin.get(..length)?)));
        // Sessions that are known to be different may begin alike: one is a fork of the other.
        heads.find(|head| {
            self.heads.get(head).is_some_and(|sessions| {
                session.is_none() || sessions.iter().any(|other| other.is_none() || other.as_deref() == session)
            })
        })
    }

    /// The sessions, in no order.
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        self.labels.iter().map(|(format, session)| Label { format: format.clone(), session: Some(session.clone()) })
    }

    pub fn by_label(&self, format: &str, session: Option<&str>) -> bool {
        // Many sessions are called main, and only one of them was forgotten: that one is known by how it begins.
        let is_one = |session: &&str| crate::identity::is_unique(session);
        session.filter(is_one).is_some_and(|session| self.labels.contains(&(format.to_owned(), session.to_owned())))
    }
}
