//! Waiting until a source may have changed. The system's word wakes; it may be late, missing or about nothing, so that a look at
//! everything follows now and then whatever it says.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::discover::Places;

/// Why somebody was woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Woken {
    /// These files changed.
    Files(Vec<PathBuf>),
    /// It is time to look at everything.
    Sweep,
    /// Nobody wants to wait any longer.
    Stopped,
}

/// Watches places.
#[derive(Debug)]
pub struct Watcher {
    /// Must live as long as somebody waits.
    _system: Option<RecommendedWatcher>,
    changes: Receiver<notify::Result<Event>>,
    sweep: Duration,
    next: Instant,
}

/// How often the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(100);

/// Changes that come this close together are told together.
const GATHER: Duration = Duration::from_millis(5);

/// More changes than this are a reason to look at everything.
const FILES_MAX: usize = 256;

impl Watcher {
    /// Watches the places where sources are found. Everything is looked at every `sweep`.
    pub fn new(places: &Places, sweep: Duration) -> Watcher {
        let (sender, changes) = channel();
        let mut system = notify::recommended_watcher(move |change| {
            // Who does not wait any longer does not want to know.
            let _ = sender.send(change);
        })
        .ok();
        if let Some(system) = &mut system {
            for folder in folders(places) {
                // What cannot be watched, for there are too many or on another machine, is still swept.
                let _ = system.watch(&folder, RecursiveMode::Recursive);
            }
        }
        Watcher { _system: system, changes, sweep, next: Instant::now() + sweep }
    }

    /// Has everything looked at before long.
    pub fn sweep_within(&mut self, time: Duration) {
        self.next = self.next.min(Instant::now() + time);
    }

    /// Waits until something may have changed, or `is_stopped`.
    pub fn wait(&mut self, is_stopped: &dyn Fn() -> bool) -> Woken {
        let mut files = BTreeSet::new();
        let mut until = self.next;
        loop {
            let now = Instant::now();
            if is_stopped() {
                return Woken::Stopped;
            }
            if now >= until {
                if files.is_empty() {
                    self.next = now + self.sweep;
                    return Woken::Sweep;
                }
                return Woken::Files(files.into_iter().collect());
            }
            match self.changes.recv_timeout((until - now).min(PATIENCE)) {
                Ok(Ok(change)) if matters(&change.kind) => {
                    if files.is_empty() {
                        until = until.min(Instant::now() + GATHER);
                    }
                    files.extend(change.paths);
                    if change.attrs.flag() == Some(notify::event::Flag::Rescan) || files.len() > FILES_MAX {
                        self.next = Instant::now() + self.sweep;
                        return Woken::Sweep;
                    }
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep((until - now).min(PATIENCE)),
            }
        }
    }
}

/// The folders to watch: where homes begin to be patterns, and what is walked whole. What is not there yet is found by a sweep.
fn folders(places: &Places) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = places.folders.clone();
    for home in stenograph::formats::FORMATS.iter().flat_map(|format| format.info().homes) {
        let pattern = home.find(['*', '<']).unwrap_or(home.len());
        let Some((literal, _)) = home.get(..pattern).and_then(|literal| literal.rsplit_once('/')) else { continue };
        if home.starts_with(['~', '{']) {
            found.extend(places.machine.resolve_all(literal));
        } else {
            found.extend(places.projects.iter().map(|project| project.join(literal)));
        }
    }
    found.retain(|folder| folder.is_dir());
    found.sort();
    // A folder is watched with all below it.
    found.dedup_by(|folder, above| folder.starts_with(above));
    found
}

/// Whether a change may be one of content. That somebody reads a file is none.
fn matters(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(notify::event::ModifyKind::Metadata(_)) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}
