//! The seal of the index: the stat and hash of each of its files at the end of the last run. Neither engine notices a flipped
//! bit by itself: the catalogue has no checksums, and the text index checks its own only on request. A file that differs from
//! the seal is damaged. This file repairs nothing.
//!
//! The seal names the catalogue commit that it describes, and is removed before the text changes. A killed run leaves no seal,
//! or one of an earlier commit, which proves nothing about the files; then the engines' own checks must suffice.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{private, text};
use crate::files::{Disk, Files as _, replace};

/// The seal's file name in the index's folder.
const NAME: &str = "seal";

/// The catalogue's file name there.
pub(super) const CATALOGUE: &str = "catalogue.db";

/// The first word of a seal.
const MAGIC: &str = "steno-index";

/// How often `index` reads all index files, whatever their stat says: a disk can change bytes silently.
const CONTENT_EVERY_S: i64 = 24 * 60 * 60;

/// Longer than one tick of a file system's clock.
const CLOCK_STEP: std::time::Duration = std::time::Duration::from_millis(12);

/// The files of an index as they were sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// The version of the index.
    pub version: i64,
    /// The catalogue commit that this seal describes.
    pub commit: u64,
    /// When the content of all files was last compared, in seconds since 1970.
    pub compared: i64,
    files: Vec<SealedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SealedFile {
    /// The path relative to the index's folder, with `/`.
    name: String,
    look: SealedStat,
    hash: u64,
}

/// The stat of a file. The time is that of the last change of content or metadata, which no tool can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SealedStat {
    size: u64,
    changed: i64,
    inode: u64,
}

/// Which part of the index to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The catalogue.
    Catalogue,
    /// The text index.
    Text,
}

/// How to compare files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// By stat; by content only if the stat differs.
    Stat,
    /// By their content.
    Content,
}

impl Seal {
    /// Reads the seal of an index. `None` if there is none or it is damaged.
    pub fn read(index: &Path) -> Option<Seal> {
        let text = fs::read_to_string(index.join(NAME)).ok()?;
        let (body, sum) = text.trim_end().rsplit_once('\n')?;
        if u64::from_str_radix(sum.strip_prefix("sum ")?, 16).ok()? != xxh3_64(body.as_bytes()) {
            return None;
        }
        let mut lines = body.lines();
        let mut head = lines.next()?.split(' ');
        if head.next()? != MAGIC {
            return None;
        }
        let (version, commit, compared) =
            (head.next()?.parse().ok()?, head.next()?.parse().ok()?, head.next()?.parse().ok()?);
        let files = lines.map(SealedFile::read).collect::<Option<_>>()?;
        Some(Seal { version, commit, compared, files })
    }

    /// Seals an index that no process writes to. `before` is the previous seal: immutable files are not hashed again.
    pub fn write(index: &Path, version: i64, commit: u64, before: Option<&Seal>, compared: i64) -> io::Result<()> {
        let mut files = Vec::new();
        for name in names(index)? {
            let path = index.join(&name);
            let known = before.and_then(|seal| seal.files.iter().find(|file| file.name == name));
            files.push(match known {
                Some(known) if is_immutable(&name) => known.clone(),
                _ => SealedFile { look: SealedStat::of(&path)?, hash: hash(&path)?, name },
            });
        }
        let mut body = format!("{MAGIC} {version} {commit} {compared}");
        for SealedFile { name, look: SealedStat { size, changed, inode }, hash } in &files {
            body.push_str(&format!("\n{hash:016x} {size} {changed} {inode} {name}"));
        }
        let sum = xxh3_64(body.as_bytes());
        private::file(&index.join(format!(".{NAME}.new")))?;
        replace(&Disk, &index.join(NAME), format!("{body}\nsum {sum:016x}\n").as_bytes())?;
        // Ensures that later writes get another time, because the file system's clock is coarse.
        std::thread::sleep(CLOCK_STEP);
        Ok(())
    }

    /// Removes the seal durably. From here on the files change, and a killed run must not leave a seal that they break.
    pub fn remove(index: &Path) -> io::Result<()> {
        match fs::remove_file(index.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| Disk.sync_folder(index)),
        }
    }

    /// The first file that differs from the seal. The caller knows that no process wrote to the index since.
    pub fn first_changed(&self, index: &Path, part: Part, compare: Compare) -> Option<PathBuf> {
        let is_part = |file: &&SealedFile| (file.name == CATALOGUE) == (part == Part::Catalogue);
        let first_changed = self.files.iter().filter(is_part).find(|file| {
            let path = index.join(&file.name);
            let is_same = |look: SealedStat| match compare {
                Compare::Stat if look == file.look => true,
                Compare::Stat | Compare::Content => {
                    look.size == file.look.size && hash(&path).is_ok_and(|hash| hash == file.hash)
                }
            };
            !SealedStat::of(&path).is_ok_and(is_same)
        });
        first_changed.map(|file| index.join(&file.name))
    }

    /// Whether the index has exactly these files, with the stats that they had.
    pub fn has_stats_of(&self, index: &Path) -> bool {
        let has_stat = |file: &SealedFile| SealedStat::of(&index.join(&file.name)).is_ok_and(|look| look == file.look);
        let sealed = self.files.iter().map(|file| &file.name);
        names(index).is_ok_and(|names| names.iter().eq(sealed)) && self.files.iter().all(has_stat)
    }

    /// Whether it is time to compare the content of all files.
    pub fn is_content_due(&self, now_s: i64) -> bool {
        now_s.saturating_sub(self.compared) > CONTENT_EVERY_S
    }
}

impl SealedFile {
    fn read(line: &str) -> Option<SealedFile> {
        let mut words = line.splitn(5, ' ');
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        let (size, changed, inode) =
            (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(SealedFile { name: words.next()?.to_owned(), look: SealedStat { size, changed, inode }, hash })
    }
}

impl SealedStat {
    fn of(path: &Path) -> io::Result<SealedStat> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let changed = metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec());
            Ok(SealedStat { size: metadata.len(), changed, inode: metadata.ino() })
        }
        #[cfg(not(unix))]
        {
            let since = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let changed = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
            Ok(SealedStat { size: metadata.len(), changed, inode: 0 })
        }
    }
}

/// The files that answers depend on. The text engine's list of its own files is excluded: it is written without a sync.
fn names(index: &Path) -> io::Result<Vec<String>> {
    let mut names = vec![CATALOGUE.to_owned()];
    let folder = text::folder(index);
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        names.push(format!("{}/{name}", text::FOLDER));
    }
    names.sort();
    Ok(names)
}

/// Whether a file of that name never changes: the text engine names its segments by random ids.
fn is_immutable(name: &str) -> bool {
    name != CATALOGUE && !name.ends_with(".json")
}

fn hash(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut state, mut buffer) = (Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(state.digest()),
            Ok(length) => state.update(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> (tempfile::TempDir, Seal) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("text")).unwrap();
        fs::write(folder.path().join(CATALOGUE), "the catalogue").unwrap();
        fs::write(folder.path().join("text/0123.pos"), "positions").unwrap();
        Seal::write(folder.path(), 9, 3, None, 100).unwrap();
        let seal = Seal::read(folder.path()).unwrap();
        (folder, seal)
    }

    #[test]
    fn a_changed_truncated_or_missing_file_breaks_the_seal() {
        let (folder, seal) = sealed();
        let first_changed = |part| seal.first_changed(folder.path(), part, Compare::Stat);
        assert_eq!((seal.commit, seal.version), (3, 9));
        assert_eq!((first_changed(Part::Catalogue), first_changed(Part::Text)), (None, None));
        // Rewritten with the same content: only the stat differs.
        fs::write(folder.path().join(CATALOGUE), "the catalogue").unwrap();
        assert_eq!(first_changed(Part::Catalogue), None);
        fs::write(folder.path().join(CATALOGUE), "the katalogue").unwrap();
        assert!(first_changed(Part::Catalogue).is_some());
        assert_eq!(first_changed(Part::Text), None);
        fs::remove_file(folder.path().join("text/0123.pos")).unwrap();
        assert!(first_changed(Part::Text).unwrap().ends_with("text/0123.pos"));
    }

    #[test]
    fn a_damaged_seal_is_ignored() {
        let (folder, seal) = sealed();
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() - 1 {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            assert!(Seal::read(folder.path()).is_none_or(|read| read == seal), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(Seal::read(folder.path()).is_none_or(|read| read == seal), "{at} bytes");
        }
    }
}
