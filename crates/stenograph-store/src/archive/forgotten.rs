//! Forgotten sessions, which must not be archived again. A tombstone names a session and holds fingerprints of its decompressed
//! content, so that a file is recognised under any name and in any container. This file reads no copy.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Label;
use super::encoding::hash_hex;
use crate::databases;
use crate::decode::{ByteCounter, Container, DecodeGuard, decode};
use crate::error::Place;
use crate::identity::is_unique;

/// The record of a forgotten source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tombstone {
    pub format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// One fingerprint for each version.
    pub contents: Vec<ContentFingerprint>,
}

/// The fingerprint of a source: its length and hashes of its first and last bytes, all decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContentFingerprint {
    pub length: u64,
    #[serde(with = "hash_hex")]
    head: [u8; 16],
    #[serde(with = "hash_hex")]
    tail: [u8; 16],
}

/// How many bytes at each end a fingerprint covers.
const END_SIZE: u64 = 4096;

/// A shorter source may be the beginning of many others, so only one of the same session continues it.
const PREFIX_SIZE_MIN: u64 = 512;

/// What the tombstones say about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgottenState {
    /// It was not forgotten.
    Unknown,
    /// It was forgotten.
    Forgotten,
    /// It was forgotten and has grown since.
    Continued {
        /// The forgotten session, if it has a name.
        session: Option<String>,
    },
}

/// All tombstones.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgotten {
    tombstones: Vec<Tombstone>,
    /// By session, if its name is globally unique.
    by_session: HashMap<String, Vec<usize>>,
    by_head: HashMap<[u8; 16], Vec<usize>>,
    head_sizes: BTreeSet<usize>,
}

impl ContentFingerprint {
    /// The fingerprint of a stream.
    pub fn of(mut input: impl Read) -> io::Result<ContentFingerprint> {
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
        Ok(ContentFingerprint { length, head: hash(&head), tail: hash(&tail) })
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
        for fingerprint in tombstone.contents.iter().filter(|fingerprint| fingerprint.length > 0) {
            self.by_head.entry(fingerprint.head).or_default().push(number);
            self.head_sizes.insert(fingerprint.head_size());
        }
        self.tombstones.push(tombstone);
    }

    /// Removes the tombstones of a session.
    pub fn remove(&mut self, format: &str, session: Option<&str>) {
        let tombstones = std::mem::take(self).tombstones;
        let stays = |tombstone: &Tombstone| tombstone.format != format || tombstone.session.as_deref() != session;
        tombstones.into_iter().filter(stays).for_each(|tombstone| self.add(tombstone));
    }

    /// The sessions, unordered.
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        let label =
            |tombstone: &Tombstone| Label { format: tombstone.format.clone(), session: tombstone.session.clone() };
        self.tombstones.iter().filter(|tombstone| tombstone.session.is_some()).map(label)
    }

    /// Whether the session of this label was forgotten. Its name must be globally unique.
    pub fn has_session(&self, label: &Label) -> bool {
        self.of_session(label).next().is_some()
    }

    /// The tombstones of a session in any format: a conversion has the session of its original.
    fn of_session<'f>(&'f self, label: &'f Label) -> impl Iterator<Item = &'f Tombstone> {
        let numbers = label.session.as_ref().and_then(|session| self.by_session.get(session));
        numbers.into_iter().flatten().filter_map(|number| self.tombstones.get(*number))
    }

    /// Whether the source at a path was forgotten. `is_kept` tells whether the archive has copies of its session in its format.
    /// If so, a tombstone of another format does not apply: the session was continued in this format.
    pub fn state_of(&self, label: &Label, path: &Path, is_kept: impl Fn() -> bool) -> io::Result<ForgottenState> {
        if self.tombstones.is_empty() {
            return Ok(ForgottenState::Unknown);
        }
        let mut source = SourceRanges::open(path)?;
        let head = source.read(&[(0, END_SIZE)])?.pop().unwrap_or_default();
        let hashes = self.head_sizes.iter().filter_map(|size| head.get(..*size)).map(|head| (head.len(), hash(head)));
        let mut alike: Vec<(&Tombstone, &ContentFingerprint)> = Vec::new();
        for (size, hash) in hashes {
            let tombstones = self.by_head.get(&hash).into_iter().flatten();
            for tombstone in tombstones.filter_map(|number| self.tombstones.get(*number)) {
                let fingerprints = tombstone.contents.iter();
                alike.extend(
                    fingerprints
                        .filter(|fingerprint| fingerprint.head == hash && fingerprint.head_size() == size)
                        .map(|fingerprint| (tombstone, fingerprint)),
                );
            }
        }
        let is_about = |tombstone: &&Tombstone| tombstone.format == label.format || !is_kept();
        let by_session: Vec<&Tombstone> = self.of_session(label).filter(is_about).collect();
        if alike.is_empty() && by_session.is_empty() {
            return Ok(ForgottenState::Unknown);
        }
        let tails: Vec<(u64, u64)> = alike
            .iter()
            .map(|(_, fingerprint)| (fingerprint.length.saturating_sub(END_SIZE), fingerprint.length))
            .collect();
        let tails = source.read(&tails)?;
        let mut forgotten_state = ForgottenState::Unknown;
        for ((tombstone, fingerprint), tail) in alike.into_iter().zip(tails) {
            let is_longer = source.length > fingerprint.length;
            let is_same_session = label.session.is_some() && tombstone.session == label.session;
            // A session with its own globally unique name and the same beginning is a fork.
            let is_fork =
                label.session.as_deref().is_some_and(is_unique) && tombstone.session.is_some() && !is_same_session;
            let begins_alike = source.length >= fingerprint.length && hash(&tail) == fingerprint.tail;
            if begins_alike && !is_longer {
                return Ok(ForgottenState::Forgotten);
            }
            let continues = begins_alike && !is_fork && fingerprint.length >= PREFIX_SIZE_MIN;
            if (continues || is_same_session) && forgotten_state == ForgottenState::Unknown {
                forgotten_state = if is_longer { tombstone.continued() } else { ForgottenState::Forgotten };
            }
        }
        let longest =
            by_session.iter().flat_map(|tombstone| &tombstone.contents).map(|fingerprint| fingerprint.length).max();
        Ok(match (forgotten_state, by_session.first()) {
            (ForgottenState::Unknown, Some(tombstone)) if longest.is_some_and(|longest| source.length > longest) => {
                tombstone.continued()
            }
            (ForgottenState::Unknown, Some(_)) => ForgottenState::Forgotten,
            (forgotten_state, _) => forgotten_state,
        })
    }
}

impl Tombstone {
    fn continued(&self) -> ForgottenState {
        ForgottenState::Continued { session: self.session.clone() }
    }
}

/// A source whose decompressed ranges can be read.
struct SourceRanges {
    file: File,
    path: std::path::PathBuf,
    container: Container,
    /// Its decompressed length, as far as it was read.
    length: u64,
}

impl SourceRanges {
    fn open(path: &Path) -> io::Result<SourceRanges> {
        let mut file = databases::open_file(path)?;
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first)?;
        let (container, length) = (Container::of(&first), file.metadata()?.len());
        Ok(SourceRanges { file, path: path.to_owned(), container, length })
    }

    /// Reads ranges. A compressed source must be decoded for that, and its length is known only after reading it to its end.
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
        let mut stream = decode(&mut self.file, &place, &ByteCounter::default(), DecodeGuard::USUAL)?;
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
