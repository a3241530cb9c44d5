//! Sessions that must not come back. A tombstone names a session and fingerprints what was forgotten of it, decompressed, so that a
//! file is recognised under any name and in any container. No copy is read here.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Label;
use super::encoding::hash_hex;
use crate::decode::{Container, Counter, Guard, decode};
use crate::error::Place;
use crate::identity::is_unique;

/// A forgotten source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tombstone {
    pub format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Every version of it.
    pub contents: Vec<Print>,
}

/// The fingerprint of a source: its length, its first bytes and its last ones, all of them decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Print {
    pub length: u64,
    #[serde(with = "hash_hex")]
    head: [u8; 16],
    #[serde(with = "hash_hex")]
    tail: [u8; 16],
}

/// How many bytes at each end a fingerprint covers.
const END_SIZE: u64 = 4096;

/// A shorter source may begin many others, so only one of its own session continues it.
const PREFIX_SIZE_MIN: u64 = 512;

/// What the archive remembers of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It was not forgotten.
    Unknown,
    /// It was forgotten.
    Forgotten,
    /// It was forgotten, and has grown since.
    Continued {
        /// The forgotten session, where it has a name.
        session: Option<String>,
    },
}

/// All tombstones.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgotten {
    tombstones: Vec<Tombstone>,
    /// By the session, where its name is unique in the world.
    by_session: HashMap<String, Vec<usize>>,
    by_head: HashMap<[u8; 16], Vec<usize>>,
    head_sizes: BTreeSet<usize>,
}

impl Print {
    /// The fingerprint of everything that can be read.
    pub fn of(mut input: impl Read) -> io::Result<Print> {
        let mut head = Vec::new();
        input.by_ref().take(END_SIZE).read_to_end(&mut head)?;
        let (mut length, mut tail) = (head.len() as u64, head.clone());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            length += read as u64;
            tail.extend_from_slice(buffer.get(..read).unwrap_or_default());
            let surplus = tail.len().saturating_sub(END_SIZE as usize);
            tail.drain(..surplus);
        }
        Ok(Print { length, head: hash(&head), tail: hash(&tail) })
    }

    fn head_size(&self) -> usize {
        self.length.min(END_SIZE) as usize
    }
}

fn hash(bytes: &[u8]) -> [u8; 16] {
    blake3::hash(bytes).as_bytes().first_chunk::<16>().copied().unwrap_or_default()
}

impl Forgotten {
    pub fn add(&mut self, tombstone: Tombstone) {
        let number = self.tombstones.len();
        if let Some(session) = tombstone.session.as_ref().filter(|session| is_unique(session)) {
            self.by_session.entry(session.clone()).or_default().push(number);
        }
        for print in tombstone.contents.iter().filter(|print| print.length > 0) {
            self.by_head.entry(print.head).or_default().push(number);
            self.head_sizes.insert(print.head_size());
        }
        self.tombstones.push(tombstone);
    }

    /// Lets a session come back.
    pub fn remove(&mut self, format: &str, session: Option<&str>) {
        let tombstones = std::mem::take(self).tombstones;
        let stays = |tombstone: &Tombstone| tombstone.format != format || tombstone.session.as_deref() != session;
        tombstones.into_iter().filter(stays).for_each(|tombstone| self.add(tombstone));
    }

    /// The sessions, in no order.
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        let label =
            |tombstone: &Tombstone| Label { format: tombstone.format.clone(), session: tombstone.session.clone() };
        self.tombstones.iter().filter(|tombstone| tombstone.session.is_some()).map(label)
    }

    /// Whether the session of this label was forgotten; its name must be unique in the world.
    pub fn has_session(&self, label: &Label) -> bool {
        self.of_session(label).next().is_some()
    }

    /// The tombstones of a session, in whatever format: a conversion has the session of its original.
    fn of_session<'f>(&'f self, label: &'f Label) -> impl Iterator<Item = &'f Tombstone> {
        let numbers = label.session.as_ref().and_then(|session| self.by_session.get(session));
        numbers.into_iter().flatten().filter_map(|number| self.tombstones.get(*number))
    }

    /// What is remembered of the source at a path. `is_kept` says whether the archive holds copies of its session in its format: then a
    /// tombstone of another format is not about them, for the session went on in this one.
    pub fn recall(&self, label: &Label, path: &Path, is_kept: impl Fn() -> bool) -> io::Result<Memory> {
        if self.tombstones.is_empty() {
            return Ok(Memory::Unknown);
        }
        let mut source = Ends::open(path)?;
        let head = source.read(&[(0, END_SIZE)])?.pop().unwrap_or_default();
        let hashes = self.head_sizes.iter().filter_map(|size| head.get(..*size)).map(|head| (head.len(), hash(head)));
        let mut alike: Vec<(&Tombstone, &Print)> = Vec::new();
        for (size, hash) in hashes {
            let tombstones = self.by_head.get(&hash).into_iter().flatten();
            for tombstone in tombstones.filter_map(|number| self.tombstones.get(*number)) {
                let prints = tombstone.contents.iter();
                alike.extend(
                    prints
                        .filter(|print| print.head == hash && print.head_size() == size)
                        .map(|print| (tombstone, print)),
                );
            }
        }
        let is_about = |tombstone: &&Tombstone| tombstone.format == label.format || !is_kept();
        let by_session: Vec<&Tombstone> = self.of_session(label).filter(is_about).collect();
        if alike.is_empty() && by_session.is_empty() {
            return Ok(Memory::Unknown);
        }
        let tails: Vec<(u64, u64)> =
            alike.iter().map(|(_, print)| (print.length.saturating_sub(END_SIZE), print.length)).collect();
        let tails = source.read(&tails)?;
        let mut memory = Memory::Unknown;
        for ((tombstone, print), tail) in alike.into_iter().zip(tails) {
            let goes_on = source.length > print.length;
            let is_same_session = label.session.is_some() && tombstone.session == label.session;
            // A session with a unique name of its own that begins alike is a fork.
            let is_fork =
                label.session.as_deref().is_some_and(is_unique) && tombstone.session.is_some() && !is_same_session;
            let begins_alike = source.length >= print.length && hash(&tail) == print.tail;
            if begins_alike && !goes_on {
                return Ok(Memory::Forgotten);
            }
            let continues = begins_alike && !is_fork && print.length >= PREFIX_SIZE_MIN;
            if (continues || is_same_session) && memory == Memory::Unknown {
                memory = if goes_on { tombstone.continued() } else { Memory::Forgotten };
            }
        }
        let longest = by_session.iter().flat_map(|tombstone| &tombstone.contents).map(|print| print.length).max();
        Ok(match (memory, by_session.first()) {
            (Memory::Unknown, Some(tombstone)) if longest.is_some_and(|longest| source.length > longest) => {
                tombstone.continued()
            }
            (Memory::Unknown, Some(_)) => Memory::Forgotten,
            (memory, _) => memory,
        })
    }
}

impl Tombstone {
    fn continued(&self) -> Memory {
        Memory::Continued { session: self.session.clone() }
    }
}

/// A source of which some ranges are read, decompressed.
struct Ends {
    file: File,
    path: std::path::PathBuf,
    container: Container,
    /// How long it is, as far as it was read.
    length: u64,
}

impl Ends {
    fn open(path: &Path) -> io::Result<Ends> {
        let mut file = File::open(path)?;
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first)?;
        let (container, length) = (Container::of(&first), file.metadata()?.len());
        Ok(Ends { file, path: path.to_owned(), container, length })
    }

    /// Reads ranges. What is compressed has to be decoded for that, and its length is known only when it was read to its end.
    fn read(&mut self, ranges: &[(u64, u64)]) -> io::Result<Vec<Vec<u8>>> {
        let mut found = vec![Vec::new(); ranges.len()];
        if self.container == Container::Plain {
            for ((start, end), bytes) in ranges.iter().zip(&mut found) {
                self.file.seek(SeekFrom::Start(*start))?;
                self.file.by_ref().take(end - start).read_to_end(bytes)?;
            }
            return Ok(found);
        }
        self.file.rewind()?;
        let place = Place::Path(self.path.clone());
        let mut stream = decode(&mut self.file, &place, &Counter::default(), Guard::USUAL)?;
        let is_head = ranges == [(0, END_SIZE)];
        let mut buffer = vec![0; 64 << 10];
        let mut at = 0;
        loop {
            let read = stream.read(&mut buffer)? as u64;
            if read == 0 || (is_head && at >= END_SIZE) {
                break;
            }
            for ((start, end), bytes) in ranges.iter().zip(&mut found) {
                let from = start.saturating_sub(at).min(read) as usize;
                let until = end.saturating_sub(at).min(read) as usize;
                bytes.extend_from_slice(buffer.get(from..until).unwrap_or_default());
            }
            at += read;
        }
        self.length = at;
        Ok(found)
    }
}
