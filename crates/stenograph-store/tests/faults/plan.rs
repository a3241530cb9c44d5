//! Which calls of a disk fail, and how.

use std::fmt;

/// A call of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Open,
    CreateNew,
    Overwrite,
    Read,
    Length,
    List,
    CreateFolder,
    Rename,
    Remove,
    SyncFolder,
    Write,
    Sync,
    Truncate,
    IsLinked,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done.
    Refused,
    /// Everything is done, but reported as failed.
    DoneAndRefused,
    /// Half is written, and reported as failed.
    Torn,
    /// Half is written, and reported as such.
    Short,
    /// Permission is denied.
    Denied,
    /// A signal interrupts the call.
    Interrupted,
    /// Half still fits; until the disk is healed, only freed space can be used.
    Full,
    /// Unsynced bytes will never be on disk, although they are still readable: Linux with most file systems.
    DroppedBehind,
    /// Unsynced bytes are gone at once: Linux with btrfs.
    Reverted,
}

/// How long it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    Once,
    /// Also all later calls of any kind, until the disk is healed.
    UntilWell,
}

/// A failure at a call, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    pub at: usize,
    pub fault: Fault,
    pub lasts: Lasts,
}

impl Planned {
    /// Whether it loses unsynced bytes.
    pub fn loses(&self) -> bool {
        matches!(self.fault, Fault::DroppedBehind | Fault::Reverted)
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call {} {:?} {:?}", self.at, self.fault, self.lasts)
    }
}

impl Call {
    /// The ways in which this call can fail.
    pub fn faults(self) -> &'static [Fault] {
        use Fault::{Denied, DoneAndRefused, DroppedBehind, Full, Interrupted, Refused, Reverted, Short, Torn};
        match self {
            Call::Open | Call::CreateNew | Call::CreateFolder => &[Refused, DoneAndRefused, Denied, Full],
            Call::Read | Call::Length | Call::List | Call::IsLinked => &[Refused],
            Call::Rename | Call::Remove | Call::SyncFolder | Call::Truncate => &[Refused, DoneAndRefused],
            Call::Write => &[Refused, DoneAndRefused, Torn, Short, Interrupted, Full],
            Call::Overwrite => &[Refused, DoneAndRefused, Torn],
            Call::Sync => &[DroppedBehind, Reverted, DoneAndRefused],
        }
    }
}

/// Every way in which one of these calls fails once, and in which all fail from one on.
pub fn every_failure(calls: &[Call]) -> Vec<Planned> {
    let mut planned = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        planned.extend(call.faults().iter().map(|fault| Planned { at, fault: *fault, lasts: Lasts::Once }));
        let first = call.faults()[0];
        planned.push(Planned { at, fault: first, lasts: Lasts::UntilWell });
    }
    planned
}

/// A few random failures.
pub fn some_failures(calls: &[Call], random: &mut fastrand::Rng) -> Vec<Planned> {
    let count = random.usize(1..5);
    let one = |random: &mut fastrand::Rng| {
        let at = random.usize(..calls.len());
        let fault = random.choice(calls[at].faults()).copied().unwrap();
        let lasts = if random.u8(..4) == 0 { Lasts::UntilWell } else { Lasts::Once };
        Planned { at, fault, lasts }
    };
    (0..count).map(|_| one(random)).collect()
}

/// The random seed: `STENO_SEED`, or a fixed one.
pub fn seed() -> u64 {
    std::env::var("STENO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_302)
}

/// The number of random rounds: `STENO_ROUNDS`, or a quick default.
pub fn rounds(usual: usize) -> usize {
    std::env::var("STENO_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}
