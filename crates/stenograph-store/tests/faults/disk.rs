//! A disk with planned failures, over a real folder: the folder holds the visible content, and the disk tracks what would be
//! left after a power failure. Nothing outside the folder is touched.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stenograph_store::files::{Files, OpenFile};

use crate::inode::Inode;
use crate::plan::{Call, Fault, Lasts, Planned};

/// The disk. Its clones are the same disk.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    root: PathBuf,
    inodes: Vec<Inode>,
    /// The visible names.
    names: BTreeMap<PathBuf, Node>,
    /// The names on disk.
    durable: BTreeMap<PathBuf, Node>,
    /// Changes of names that are not synced, in order.
    pending: Vec<Rename>,
    calls: Vec<Call>,
    plan: Vec<Planned>,
    /// The call before which the power fails.
    cut_at: Option<usize>,
    /// How many bytes still fit, if the disk is almost full.
    room: Option<usize>,
    /// The failure of every call until the disk is healed.
    broken: Option<Fault>,
    /// Without power nothing has any effect.
    dead: bool,
    /// Handles of an earlier life are invalid.
    life: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(usize),
    Folder,
}

/// A change of names: a new name, another name, or a removed one.
#[derive(Clone, Debug)]
struct Rename {
    from: Option<PathBuf>,
    to: Option<PathBuf>,
    node: Node,
}

/// What happens to a call.
enum Fate {
    Do,
    /// Half of it is done, with this result.
    Half(io::Result<()>),
    DoAndFail(io::Error),
    /// For a sync: pending bytes are lost.
    Lose(Fault),
}

impl FaultyDisk {
    /// A disk over a folder and its content.
    pub fn new(root: &Path) -> FaultyDisk {
        let mut state = State {
            root: root.to_owned(),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            calls: Vec::new(),
            plan: Vec::new(),
            cut_at: None,
            room: None,
            broken: None,
            dead: false,
            life: 0,
        };
        state.take_stock();
        FaultyDisk(Arc::new(Mutex::new(state)))
    }

    /// Plans failures from now on; calls are counted from now on, too.
    pub fn plan(&self, plan: &[Planned]) {
        let mut state = self.state();
        state.calls.clear();
        state.plan = plan.to_vec();
    }

    /// Plans a power failure before a call, counted from the plan on.
    pub fn cut_power_at(&self, call: usize) {
        self.state().cut_at = Some(call);
    }

    /// Ends all failures.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.plan, state.room, state.broken) = (Vec::new(), None, None);
    }

    /// The calls since the plan was made.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Fails the power now, unless it already failed. Later calls have no effect.
    pub fn cut_power(&self) {
        self.state().dead = true;
    }

    /// Restores power: the folder then holds what a disk would hold. No handle may be in use.
    pub fn restart(&self, random: &mut fastrand::Rng) {
        let mut state = self.state();
        state.lose_what_was_not_synced(random);
        (state.dead, state.cut_at) = (false, None);
        (state.plan, state.room, state.broken) = (Vec::new(), None, None);
        state.life += 1;
    }

    /// Treats the planned power failure as a kill of the process: the system continues, and everything written is present.
    pub fn revive(&self) {
        let mut state = self.state();
        (state.dead, state.cut_at) = (false, None);
        state.life += 1;
    }

    /// Files in the folder that were not written through this disk, except locks.
    pub fn strangers(&self) -> Vec<PathBuf> {
        let state = self.state();
        let files = files_below(&state.root).into_iter();
        files.filter(|path| !state.names.contains_key(path) && !is_lock(path)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A temporary folder, in memory if possible: these tests write much and keep nothing.
pub fn memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The same path without `..`.
fn clean(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut clean, step| {
        match step {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            step => clean.push(step),
        }
        clean
    })
}

fn is_lock(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().contains("lock")
}

/// All files and folders below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()));
        }
    }
    found
}

fn failure(fault: Fault) -> io::Error {
    match fault {
        Fault::Full => io::Error::from_raw_os_error(28),
        Fault::Denied => ErrorKind::PermissionDenied.into(),
        Fault::Interrupted => ErrorKind::Interrupted.into(),
        _ => io::Error::from_raw_os_error(5),
    }
}

impl State {
    /// Counts a call and decides what happens to it.
    fn enter(&mut self, call: Call) -> io::Result<Fate> {
        let at = self.calls.len();
        self.calls.push(call);
        if self.cut_at.is_some_and(|cut| cut <= at) {
            self.dead = true;
        }
        if self.dead {
            return Err(failure(Fault::Refused));
        }
        let planned = self.plan.iter().find(|planned| planned.at == at).copied();
        if let Some(planned) =
            planned.filter(|planned| planned.lasts == Lasts::UntilWell && planned.fault != Fault::Interrupted)
        {
            self.broken = Some(planned.fault);
        }
        // A lasting failure affects each kind of call in its own way.
        let lasting = self.broken.and_then(|fault| match call.faults().contains(&fault) {
            true => Some(fault),
            // A file that may not be written may be read.
            false => (fault != Fault::Denied).then(|| call.faults()[0]),
        });
        let Some(fault) = lasting.or(planned.map(|planned| planned.fault)) else { return Ok(Fate::Do) };
        Ok(match fault {
            Fault::Refused | Fault::Denied | Fault::Interrupted => return Err(failure(fault)),
            Fault::DoneAndRefused => Fate::DoAndFail(failure(fault)),
            Fault::Torn => Fate::Half(Err(failure(fault))),
            Fault::Short => Fate::Half(Ok(())),
            Fault::Full if call == Call::Write => {
                self.room = Some(0);
                Fate::Half(Err(failure(fault)))
            }
            Fault::Full => {
                self.room = Some(0);
                return Err(failure(fault));
            }
            Fault::DroppedBehind | Fault::Reverted => Fate::Lose(fault),
        })
    }

    fn file(&self, path: &Path) -> Option<usize> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Some(*inode),
            _ => None,
        }
    }

    fn rename(&mut self, from: Option<&Path>, to: Option<&Path>, node: Node) {
        if let Some(from) = from {
            self.names.remove(from);
        }
        if let Some(to) = to {
            self.names.insert(to.to_owned(), node);
        }
        self.pending.push(Rename { from: from.map(Path::to_owned), to: to.map(Path::to_owned), node });
    }

    /// Registers a file that was created without this disk.
    fn know(&mut self, path: &Path) {
        if !self.names.contains_key(path) && path.exists() {
            self.take_stock();
        }
    }

    /// Treats everything in the folder as durable.
    fn take_stock(&mut self) {
        let here = files_below(&self.root);
        for path in &here {
            if !self.names.contains_key(path) && !is_lock(path) {
                let node = if path.is_dir() {
                    Node::Folder
                } else {
                    self.inodes.push(Inode::settled(fs::read(path).unwrap()));
                    Node::File(self.inodes.len() - 1)
                };
                self.names.insert(path.clone(), node);
                self.durable.insert(path.clone(), node);
            }
        }
    }

    fn make(&mut self, path: &Path) -> io::Result<usize> {
        if self.room == Some(0) {
            return Err(failure(Fault::Full));
        }
        fs::File::create_new(path)?;
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.rename(None, Some(path), Node::File(inode));
        Ok(inode)
    }

    /// Writes the visible content of a file to the folder.
    fn show(&self, inode: usize) {
        let is_it = |node: &Node| *node == Node::File(inode);
        if let Some((path, _)) = self.names.iter().find(|(_, node)| is_it(node)) {
            // The folder may have been removed meanwhile.
            let _ = fs::write(path, &self.inodes[inode].visible);
        }
    }

    fn append(&mut self, inode: usize, bytes: &[u8]) {
        self.inodes[inode].append(bytes);
        self.show(inode);
    }

    fn write(&mut self, inode: usize, bytes: &[u8]) -> io::Result<usize> {
        let fate = self.enter(Call::Write)?;
        let fits = self.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        match fate {
            Fate::Do | Fate::Lose(_) if fits == 0 && !bytes.is_empty() => Err(failure(Fault::Full)),
            Fate::Do | Fate::Lose(_) => {
                self.append(inode, &bytes[..fits]);
                self.room = self.room.map(|room| room - fits);
                Ok(fits)
            }
            Fate::Half(result) => {
                let half = bytes.len().div_ceil(2);
                self.append(inode, &bytes[..half]);
                result.map(|()| half)
            }
            Fate::DoAndFail(error) => {
                self.append(inode, bytes);
                Err(error)
            }
        }
    }

    fn sync(&mut self, inode: usize) -> io::Result<()> {
        match self.enter(Call::Sync)? {
            Fate::Do | Fate::Half(_) => self.inodes[inode].sync(),
            Fate::DoAndFail(error) => {
                self.inodes[inode].sync();
                return Err(error);
            }
            Fate::Lose(fault) => {
                if fault == Fault::Reverted {
                    self.inodes[inode].revert();
                    self.show(inode);
                } else {
                    self.inodes[inode].drop_behind();
                }
                return Err(failure(fault));
            }
        }
        Ok(())
    }

    fn truncate(&mut self, inode: usize, length: u64) {
        let length = usize::try_from(length).unwrap();
        let freed = self.inodes[inode].visible.len().saturating_sub(length);
        self.room = self.room.map(|room| room + freed);
        self.inodes[inode].truncate(length);
        self.show(inode);
    }

    fn lose_what_was_not_synced(&mut self, random: &mut fastrand::Rng) {
        let mut names = self.durable.clone();
        let in_order = random.bool();
        for change in std::mem::take(&mut self.pending) {
            if random.bool() {
                if in_order {
                    break;
                }
                continue;
            }
            apply(&mut names, &change);
        }
        let mut inodes = Vec::new();
        let mut kept: BTreeMap<PathBuf, Node> = BTreeMap::new();
        // The content of a missing folder is missing too. A folder comes before its content.
        for (path, node) in names {
            let folder = path.parent().unwrap();
            if folder != self.root && kept.get(folder) != Some(&Node::Folder) {
                continue;
            }
            let node = match node {
                Node::Folder => Node::Folder,
                Node::File(inode) => {
                    inodes.push(Inode::settled(self.inodes[inode].after_power_cut(random)));
                    Node::File(inodes.len() - 1)
                }
            };
            kept.insert(path, node);
        }
        fs::remove_dir_all(&self.root).unwrap();
        fs::create_dir_all(&self.root).unwrap();
        for (path, node) in &kept {
            match node {
                Node::Folder => fs::create_dir(path).unwrap(),
                Node::File(inode) => fs::write(path, &inodes[*inode].visible).unwrap(),
            }
        }
        (self.inodes, self.names, self.durable) = (inodes, kept.clone(), kept);
    }
}

fn apply(names: &mut BTreeMap<PathBuf, Node>, change: &Rename) {
    if let Some(from) = &change.from {
        names.remove(from);
    }
    if let Some(to) = &change.to {
        names.insert(to.clone(), change.node);
    }
}

/// Does something unless it is to fail, and fails afterwards if that is planned.
fn done<T>(fate: Fate, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let acted = act()?;
    match fate {
        Fate::DoAndFail(error) => Err(error),
        Fate::Do | Fate::Half(_) | Fate::Lose(_) => Ok(acted),
    }
}

impl Files for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let path = &clean(path);
        let mut state = self.state();
        let fate = state.enter(Call::Open)?;
        state.know(path);
        let inode = match state.file(path).filter(|_| path.exists()) {
            Some(inode) => inode,
            None => state.make(path)?,
        };
        let life = state.life;
        done(fate, || Ok(Box::new(Handle { disk: self.clone(), inode, life }) as Box<dyn OpenFile>))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let path = &clean(path);
        let mut state = self.state();
        let fate = state.enter(Call::CreateNew)?;
        let inode = state.make(path)?;
        let life = state.life;
        done(fate, || Ok(Box::new(Handle { disk: self.clone(), inode, life }) as Box<dyn OpenFile>))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let path = &clean(path);
        let mut state = self.state();
        let fate = state.enter(Call::Overwrite)?;
        let inode = state.file(path).ok_or(ErrorKind::NotFound)?;
        let offset = usize::try_from(offset).unwrap();
        let half = if matches!(fate, Fate::Half(_)) { bytes.len() / 2 } else { bytes.len() };
        state.inodes[inode].overwrite(offset, &bytes[..half]);
        state.show(inode);
        match fate {
            Fate::Half(_) => Err(failure(Fault::Torn)),
            fate => done(fate, || Ok(())),
        }
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>> {
        let fate = self.state().enter(Call::Read)?;
        let offset = usize::try_from(offset).unwrap();
        done(fate, || {
            let bytes = fs::read(path)?.get(offset..).unwrap_or_default().to_vec();
            Ok(Box::new(io::Cursor::new(bytes)) as Box<dyn Read>)
        })
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        let fate = self.state().enter(Call::Length)?;
        done(fate, || Ok(fs::metadata(path).ok().map(|metadata| metadata.len())))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let fate = self.state().enter(Call::List)?;
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        done(fate, || Ok(paths))
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = &clean(folder);
        let mut state = self.state();
        let fate = state.enter(Call::CreateFolder)?;
        let missing: Vec<&Path> = folder.ancestors().take_while(|path| !path.exists()).collect();
        if state.room == Some(0) && !missing.is_empty() {
            return Err(failure(Fault::Full));
        }
        fs::create_dir_all(folder)?;
        missing.iter().rev().for_each(|folder| state.rename(None, Some(folder), Node::Folder));
        done(fate, || Ok(()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (clean(from), clean(to));
        let (from, to) = (from.as_path(), to.as_path());
        let mut state = self.state();
        let fate = state.enter(Call::Rename)?;
        state.know(from);
        fs::rename(from, to)?;
        if let Some(node) = state.names.get(from).copied() {
            let below: Vec<PathBuf> =
                state.names.keys().filter(|path| path.starts_with(from) && *path != from).cloned().collect();
            state.rename(Some(from), Some(to), node);
            for path in below {
                let node = state.names[&path];
                state.rename(Some(&path), Some(&to.join(path.strip_prefix(from).unwrap())), node);
            }
        }
        done(fate, || Ok(()))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if to.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = &clean(path);
        let mut state = self.state();
        let fate = state.enter(Call::Remove)?;
        fs::remove_file(path)?;
        if let Some(inode) = state.file(path) {
            let freed = state.inodes[inode].visible.len();
            state.room = state.room.map(|room| room + freed);
            state.rename(Some(path), None, Node::File(inode));
        }
        done(fate, || Ok(()))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = clean(folder);
        let mut state = self.state();
        let fate = state.enter(Call::SyncFolder)?;
        if !folder.is_dir() {
            return Err(ErrorKind::NotFound.into());
        }
        let is_here = |path: &Option<PathBuf>| path.as_deref().and_then(Path::parent) == Some(folder.as_path());
        let (here, elsewhere) = std::mem::take(&mut state.pending)
            .into_iter()
            .partition(|it: &Rename| is_here(&it.from) || is_here(&it.to));
        state.pending = elsewhere;
        let changes: Vec<Rename> = here;
        changes.iter().for_each(|change| apply(&mut state.durable, change));
        done(fate, || Ok(()))
    }
}

#[derive(Debug)]
struct Handle {
    disk: FaultyDisk,
    inode: usize,
    life: u32,
}

impl Handle {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.life == self.life { Ok(state) } else { Err(failure(Fault::Refused)) }
    }
}

impl OpenFile for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state()?.write(self.inode, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.state()?.sync(self.inode)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let fate = state.enter(Call::Truncate)?;
        state.truncate(self.inode, length);
        done(fate, || Ok(()))
    }

    fn is_linked(&self) -> io::Result<bool> {
        let mut state = self.state()?;
        let fate = state.enter(Call::IsLinked)?;
        let is_it = |(path, node): (&PathBuf, &Node)| *node == Node::File(self.inode) && path.exists();
        let linked = state.names.iter().any(is_it);
        done(fate, || Ok(linked))
    }
}
