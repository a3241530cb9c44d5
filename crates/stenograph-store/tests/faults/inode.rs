//! The content of a file: the visible bytes, the bytes on disk, and those that will never be on disk.

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// The visible bytes.
    pub visible: Vec<u8>,
    /// The bytes on disk.
    durable: Vec<u8>,
    /// The state of each visible byte.
    ways: Vec<Way>,
    /// Changes since the last sync, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    OnDisk,
    Waiting,
    /// A sync failed: the system assumes that it is on disk, but it is not.
    Doomed,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Inode {
    /// A file whose content is durable.
    pub fn settled(bytes: Vec<u8>) -> Inode {
        let ways = vec![Way::OnDisk; bytes.len()];
        Inode { visible: bytes.clone(), durable: bytes, ways, pending: Vec::new() }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.overwrite(self.visible.len(), bytes);
    }

    pub fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.visible.len() < end {
            self.visible.resize(end, 0);
            self.ways.resize(end, Way::Waiting);
        }
        self.visible[at..end].copy_from_slice(bytes);
        self.ways[at..end].fill(Way::Waiting);
        self.pending.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    pub fn truncate(&mut self, length: usize) {
        self.pending.push(Change::Truncate { length });
        self.visible.resize(length, 0);
        self.ways.resize(length, Way::Waiting);
    }

    /// Moves all pending bytes to disk, if they can still get there.
    pub fn sync(&mut self) {
        self.durable.resize(self.visible.len(), 0);
        for ((durable, visible), way) in self.durable.iter_mut().zip(&self.visible).zip(&mut self.ways) {
            if *way == Way::Waiting {
                (*durable, *way) = (*visible, Way::OnDisk);
            }
        }
        self.pending.clear();
    }

    /// A sync fails: pending bytes never get to disk, but look as if they had.
    pub fn drop_behind(&mut self) {
        self.ways.iter_mut().filter(|way| **way == Way::Waiting).for_each(|way| *way = Way::Doomed);
        self.pending.clear();
    }

    /// A sync fails: pending bytes are gone.
    pub fn revert(&mut self) {
        *self = Inode::settled(std::mem::take(&mut self.durable));
    }

    /// The content after a power failure now: of each unsynced change all, some or nothing.
    pub fn after_power_cut(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let in_order = random.bool();
        for change in &self.pending {
            if random.bool() {
                if in_order {
                    break;
                }
                continue;
            }
            match change {
                Change::Truncate { length } => bytes.resize(*length, 0),
                Change::Write { at, bytes: written } => {
                    let kept = if random.bool() { written.len() } else { random.usize(..=written.len()) };
                    if bytes.len() < at + kept {
                        bytes.resize(at + kept, 0);
                    }
                    bytes[*at..at + kept].copy_from_slice(&written[..kept]);
                }
            }
        }
        bytes
    }
}
