//! Power cuts: `steno index` runs on a simulated disk that keeps synced data and loses the rest, wholly or in parts. The power
//! fails at every call that changes something, or at every few of them. `shim.c` wraps the C library and records what was
//! synced. Unsynced file contents are lost block by block, in any order; names in one folder are lost from the last one
//! backwards, as on every journaling file system.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::ground::Ground;
use crate::{expect, number};

/// The approximate number of cuts for each case below. `STENO_CUTS` sets another number; a large one means every call.
const CUTS: u64 = 40;

#[test]
fn a_first_run_survives_power_cuts() {
    sweep(|_, _| {});
}

#[test]
fn a_run_over_changed_files_survives_power_cuts() {
    sweep(|ground, random| {
        begin(ground, random);
        (0..12).for_each(|_| ground.tree.change(random));
    });
}

#[test]
fn a_run_that_rebuilds_the_index_survives_power_cuts() {
    sweep(|ground, random| {
        begin(ground, random);
        ground.lose_index();
    });
}

fn seed() -> u64 {
    number("STENO_SEED").unwrap_or(20_260_405)
}

/// A complete store, with something that only the archive has.
fn begin(ground: &mut Ground, random: &mut fastrand::Rng) {
    for _ in 0..4 {
        expect(seed(), &ground.check(), ground);
        (0..8).for_each(|_| ground.tree.change(random));
    }
    expect(seed(), &ground.check(), ground);
    ground.tree.delete_any();
    expect(seed(), &ground.check(), ground);
}

/// Cuts the power at calls from the first to the last, each time from the same state.
fn sweep(prepare: fn(&mut Ground, &mut fastrand::Rng)) {
    let Some(shim) = Shim::made() else { return };
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    (0..6).for_each(|_| ground.tree.change(&mut random));
    fs::create_dir_all(ground.store()).unwrap();
    prepare(&mut ground, &mut random);
    let before = ground.path.join("before");
    copy_folder(&ground.store(), &before);
    let is_made = ground.is_made;
    let calls = shim.run(&ground, 0);
    assert!(calls > 50, "only {calls} calls were seen");
    let stride = (calls / number("STENO_CUTS").unwrap_or(CUTS)).max(1);
    let mut at = 1 + seed % stride;
    while at <= calls {
        fs::remove_dir_all(ground.store()).unwrap();
        copy_folder(&before, &ground.store());
        let durable = Disk::of(&ground.store());
        shim.run(&ground, at);
        let mut cut = Cut {
            before: durable,
            now: Disk::of(&ground.store()),
            synced: Disk::remembered(&shim),
            random: &mut random,
        };
        let after = ground.path.join("after");
        cut.rebuild(&ground.store(), &after);
        fs::remove_dir_all(ground.store()).unwrap();
        fs::rename(&after, ground.store()).unwrap();
        ground.is_made = is_made;
        ground.tree.story.push(format!("the power goes at call {at} of {calls}"));
        let checked = ground.check();
        expect(seed, &checked, &ground);
        at += stride;
    }
}

/// The simulated disk.
struct Shim {
    folder: TempDir,
}

impl Shim {
    /// Compiled if a compiler exists.
    fn made() -> Option<Shim> {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/index_kills/shim.c");
        let library = folder.path().join("shim.so");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
        match made {
            Ok(made) if made.status.success() => Some(Shim { folder }),
            Ok(made) => panic!("the disk that forgets cannot be compiled: {}", String::from_utf8_lossy(&made.stderr)),
            Err(error) => {
                eprintln!("no power is cut: there is no C compiler here (cc: {error})");
                None
            }
        }
    }

    fn shadow(&self) -> PathBuf {
        self.folder.path().join("shadow")
    }

    /// Runs until the power fails, or to the end. Returns the number of calls.
    fn run(&self, ground: &Ground, at: u64) -> u64 {
        let _ = fs::remove_dir_all(self.shadow());
        fs::create_dir(self.shadow()).unwrap();
        let count = self.folder.path().join("count");
        fs::write(&count, [0; 8]).unwrap();
        let mut command = ground.index();
        command.env("LD_PRELOAD", self.folder.path().join("shim.so")).env("STENO_SHIM_ROOT", ground.store());
        command.env("STENO_SHIM_SHADOW", self.shadow()).env("STENO_SHIM_COUNT", &count);
        command.env("STENO_SHIM_AT", at.to_string());
        let done = command.stdout(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(at > 0 || done.status.success(), "{}: {stderr}", done.status);
        assert!(done.status.success() || done.status.code().is_none(), "{}: {stderr}", done.status);
        u64::from_ne_bytes(fs::read(&count).unwrap().try_into().unwrap())
    }
}

/// The names in a folder, each with the number and the type of its entry.
type Names = BTreeMap<OsString, (u64, What)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    File,
    Folder,
}

/// Files and folders by number.
#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<u64, Vec<u8>>,
    folders: BTreeMap<u64, Names>,
    /// The names in folders after each unsynced change.
    changes: BTreeMap<u64, BTreeMap<u64, Names>>,
    /// The files and folders that the interrupted process created.
    made: BTreeSet<u64>,
}

impl Disk {
    fn of(folder: &Path) -> Disk {
        let mut disk = Disk::default();
        disk.look(folder);
        disk
    }

    fn look(&mut self, folder: &Path) {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let what = if metadata.is_dir() { What::Folder } else { What::File };
            names.insert(entry.file_name(), (metadata.ino(), what));
            if metadata.is_dir() {
                self.look(&entry.path());
            } else {
                self.files.insert(metadata.ino(), fs::read(entry.path()).unwrap());
            }
        }
        self.folders.insert(fs::metadata(folder).unwrap().ino(), names);
    }

    /// What the shim recorded as synced.
    fn remembered(shim: &Shim) -> Disk {
        let mut disk = Disk::default();
        let mut synced: BTreeMap<u64, BTreeMap<u64, Names>> = BTreeMap::new();
        for entry in fs::read_dir(shim.shadow()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let (kind, inode) = name.split_once('-').unwrap();
            // An incomplete record does not count.
            let Ok(inode) = inode.split('.').next().unwrap_or_default().parse() else { continue };
            if name.ends_with(".part") {
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            match kind {
                "n" => drop(disk.made.insert(inode)),
                "f" => drop(disk.files.insert(inode, bytes)),
                _ => {
                    let (call, names) = names(&bytes);
                    let list = if kind == "v" { disk.changes.entry(inode) } else { synced.entry(inode) };
                    list.or_default().insert(call, names);
                }
            }
        }
        for (inode, lists) in synced {
            let Some((call, names)) = lists.into_iter().next_back() else { continue };
            disk.changes.entry(inode).or_default().retain(|change, _| *change > call);
            disk.folders.insert(inode, names);
        }
        disk
    }
}

/// A list of names, and the number of the call that produced it.
fn names(bytes: &[u8]) -> (u64, Names) {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let split = |line: &[u8]| {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let mut part = || parts.next().unwrap();
        let inode = std::str::from_utf8(part()).unwrap().parse().unwrap();
        let what = if part() == b"folder" { What::Folder } else { What::File };
        (OsString::from_vec(part().to_vec()), (inode, what))
    };
    let call = std::str::from_utf8(lines.next().unwrap()).unwrap().parse().unwrap();
    (call, lines.map(split).collect())
}

/// The state of a store after a power cut.
struct Cut<'c> {
    before: Disk,
    now: Disk,
    synced: Disk,
    random: &'c mut fastrand::Rng,
}

/// How unsynced data is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsynced {
    Dropped,
    Torn,
}

impl Cut<'_> {
    fn rebuild(&mut self, store: &Path, to: &Path) {
        let unsynced = if self.random.u8(..3) == 0 { Unsynced::Dropped } else { Unsynced::Torn };
        self.folder(fs::metadata(store).unwrap().ino(), to, unsynced);
    }

    fn folder(&mut self, inode: u64, to: &Path, unsynced: Unsynced) {
        fs::create_dir(to).unwrap();
        let old = if self.synced.made.contains(&inode) { None } else { self.before.folders.get(&inode) };
        let durable = self.synced.folders.get(&inode).or(old).cloned().unwrap_or_default();
        let mut lists = vec![durable];
        lists.extend(self.synced.changes.get(&inode).into_iter().flat_map(BTreeMap::values).cloned());
        lists.extend(self.now.folders.get(&inode).cloned());
        let chosen = if unsynced == Unsynced::Dropped { 0 } else { self.random.usize(..lists.len()) };
        for (name, (inode, what)) in lists.swap_remove(chosen) {
            let path = to.join(name);
            match what {
                What::Folder => self.folder(inode, &path, unsynced),
                What::File => fs::write(&path, self.file(inode, unsynced)).unwrap(),
            }
        }
    }

    fn file(&mut self, inode: u64, unsynced: Unsynced) -> Vec<u8> {
        let old = if self.synced.made.contains(&inode) { None } else { self.before.files.get(&inode) };
        let durable = self.synced.files.get(&inode).or(old).cloned().unwrap_or_default();
        let now = self.now.files.get(&inode).cloned().unwrap_or_else(|| durable.clone());
        if unsynced == Unsynced::Dropped {
            return durable;
        }
        match self.random.u8(..3) {
            0 => durable,
            1 => now,
            _ => {
                // Each block reached the disk, or did not.
                const BLOCK: usize = 512;
                let length = if self.random.bool() { now.len() } else { durable.len() };
                let mut torn = vec![0; length];
                for (at, block) in torn.chunks_mut(BLOCK).enumerate() {
                    let from = if self.random.bool() { &now } else { &durable };
                    let bytes = from.get(at * BLOCK..).unwrap_or_default();
                    let size = block.len().min(bytes.len());
                    block[..size].copy_from_slice(&bytes[..size]);
                }
                torn
            }
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.metadata().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}
