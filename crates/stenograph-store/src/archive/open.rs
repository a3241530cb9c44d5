//! Opens an archive to be written to, and mends what a crash left: half a commit at the end of the log is moved aside, whole frames
//! that no commit speaks of are taken in, half a frame is cut off.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::frame::Header;
use super::history::History;
use super::keeper::{Keeper, known_pieces};
use super::line::{FrameLine, FramePieces, Line};
use super::packs::{log_path, pack_number, pack_path, packs_folder};
use super::stage::{PACK_MAX, Stage};
use super::state::{Need, State};
use crate::error::{Error, Problem};
use crate::files::{Files, cut_off, make_folder, write_again};
use crate::lock::Lock;
use crate::log::{Durability, Log};
use crate::tail::{Remark, Tail, move_aside};

impl Keeper {
    /// Opens the archive in a folder to write to it, and makes it where it is not there. There is one who writes at a time.
    pub fn open(files: Arc<dyn Files>, folder: &Path) -> Result<Keeper, Error> {
        let unwritable = |error| Error::at(folder, Problem::Unwritable, error);
        make_folder(files.as_ref(), &packs_folder(folder)).map_err(unwritable)?;
        hide(folder);
        let path = log_path(folder);
        let lock = Lock::on(&path)?;
        let history = History::load(files.as_ref(), &path)?;
        let mut remarks = history.remarks.clone();
        remarks.extend(settle(files.as_ref(), &path, history.good)?);
        let tail = Tail { length: history.good, ..Tail::default() };
        let log = Log::open(Arc::clone(&files), &path, &tail, Durability::Always)?;
        let stage = Stage::new(Arc::clone(&files), folder.to_owned())?;
        let known = known_pieces(&history.state);
        let (folder, failed) = (folder.to_owned(), None);
        let mut keeper = Keeper {
            files,
            folder,
            history,
            known,
            stage,
            log,
            touched: Vec::new(),
            failed,
            buffer: Vec::new(),
            remarks,
            _lock: lock,
        };
        keeper.take_stock()?;
        Ok(keeper)
    }

    /// Looks through the packs.
    fn take_stock(&mut self) -> Result<(), Error> {
        let folder = packs_folder(&self.folder);
        let unreadable = |error| Error::at(&folder, Problem::Unreadable, error);
        let mut present: Vec<u32> =
            self.files.list(&folder).map_err(unreadable)?.iter().filter_map(|path| pack_number(path)).collect();
        present.sort_unstable();
        let last = present.last().max(self.history.state.packs.keys().last()).copied().unwrap_or(0);
        self.stage.next_pack = last + 1;
        for pack in &present {
            if self.history.state.packs.get(pack).is_some_and(|pack| pack.need == Need::Dropped) {
                // Its replacement is durable; it was about to be removed.
                self.remove_pack(*pack)?;
            } else {
                self.take_in(*pack)?;
            }
        }
        let needed = self.history.state.packs.iter().filter(|(_, pack)| pack.need == Need::Needed);
        for (pack, _) in needed.filter(|(pack, known)| known.length > 0 && !present.contains(pack)) {
            let path = pack_path(&self.folder, *pack);
            self.remarks.push(Remark::new(&path, "is not there, and all that was kept in it is lost"));
        }
        if let Some(pack) = present.last()
            && let Some(known) = self.history.state.packs.get(pack).copied()
            && known.need == Need::Needed
            && known.length < PACK_MAX / 2
        {
            self.go_on_in(*pack, known.length)?;
        }
        Ok(())
    }

    /// Writes on in a pack, unless it is shorter than it should be.
    fn go_on_in(&mut self, pack: u32, length: u64) -> Result<(), Error> {
        let path = pack_path(&self.folder, pack);
        let actual = self.files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        if actual == Some(length) { self.stage.go_on_in(pack, length) } else { Ok(()) }
    }

    pub(super) fn remove_pack(&mut self, pack: u32) -> Result<(), Error> {
        let path = pack_path(&self.folder, pack);
        let removed = match self.files.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let removed = removed.and_then(|()| self.files.sync_folder(&packs_folder(&self.folder)));
        removed.map_err(|error| Error::at(&path, Problem::Unwritable, error))
    }

    /// Takes in the frames that a pack has and no commit speaks of.
    fn take_in(&mut self, pack: u32) -> Result<(), Error> {
        let path = pack_path(&self.folder, pack);
        let unreadable = |error| Error::at(&path, Problem::Unreadable, error);
        let known = self.history.state.packs.get(&pack).map_or(0, |pack| pack.length);
        let length = self.files.length(&path).map_err(unreadable)?.unwrap_or(0);
        if length < known {
            let text = format!("has {length} bytes and should have {known}");
            self.remarks.push(Remark::new(&path, text));
        }
        if length <= known {
            return Ok(());
        }
        let (frames, end) = self.scan(pack, known).map_err(unreadable)?;
        let is_new = |frame: &FrameLine| match &frame.pieces {
            FramePieces::New { pieces, .. } => pieces.iter().any(|(hash, _)| !self.known.contains_key(hash)),
            FramePieces::Moved(_) => false,
        };
        let end = if frames.iter().any(is_new) { end } else { known };
        if end < length {
            let text = format!("{} bytes at the end that were never committed were cut off", length - end);
            self.remarks.push(Remark::new(&path, text));
            cut_off(self.files.as_ref(), &path, end).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        }
        if end > known {
            // Whether it ever came to disk is not known: a sync may have failed.
            write_again(self.files.as_ref(), &path, known)
                .and_then(|()| self.files.sync_folder(&packs_folder(&self.folder)))
                .map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
            frames.into_iter().for_each(|frame| self.adopt(frame));
        }
        Ok(())
    }

    /// The whole frames of a pack from an offset on, and where they end.
    fn scan(&self, pack: u32, from: u64) -> io::Result<(Vec<FrameLine>, u64)> {
        let path = pack_path(&self.folder, pack);
        let (mut frames, mut at) = (Vec::new(), from);
        let mut input = io::BufReader::with_capacity(256 << 10, self.files.reader(&path, from)?);
        // Where no whole frame begins, none follows either.
        while let Ok(header) = Header::read(&mut input)? {
            if header.body(&mut input)?.is_err() {
                break;
            }
            let size = header.frame_size();
            frames.push(FrameLine { pack, at, size, pieces: FramePieces::New { first: 0, pieces: header.pieces } });
            at += size;
        }
        Ok((frames, at))
    }

    fn adopt(&mut self, mut frame: FrameLine) {
        let state: &mut State = &mut self.history.state;
        if let FramePieces::New { first, pieces } = &mut frame.pieces {
            *first = state.pieces.len() as u32;
            for (step, (hash, _)) in pieces.iter().enumerate() {
                self.known.entry(*hash).or_insert(*first + step as u32);
            }
        }
        let line = Line::Frame(frame);
        let spelled = line.spell();
        if state.apply(line, 0).is_some() {
            self.stage.frame_lines.push_str(&spelled);
        }
    }
}

/// Lets nobody else look into the archive: the sources in it may have been hidden from others.
fn hide(folder: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Moves what follows the last commit aside: it was never acknowledged.
fn settle(files: &dyn Files, path: &Path, good: u64) -> Result<Option<Remark>, Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let length = files.length(path).map_err(unreadable)?.unwrap_or(0);
    if length <= good {
        return Ok(None);
    }
    let rest = files.read(path, good).map_err(unreadable)?;
    let moved = move_aside(files, path, &rest).and_then(|aside| {
        files.open(path)?.truncate(good)?;
        Ok(aside)
    });
    let aside = moved.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    let text = format!("half a commit of {} bytes at the end was moved to {}", rest.len(), aside.display());
    Ok(Some(Remark::new(path, text)))
}
