//! Waits until a source may have changed. The operating system's reports wake the thread; they may be late, missing or
//! spurious, so a sweep over all files follows regularly in any case.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::discover::Places;

/// Why a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Woken {
    /// These files changed.
    Files(Vec<PathBuf>),
    /// It is time to check all files.
    Sweep,
    /// The caller asked to stop.
    Stopped,
}

/// Watches the places of sources for changes.
#[derive(Debug)]
pub struct Watcher {
    /// Must live as long as the receiver.
    _system: Option<RecommendedWatcher>,
    changes: Receiver<notify::Result<Event>>,
    sweep: Duration,
    next: Instant,
    /// Why the system does not report every change.
    trouble: Option<String>,
}

/// How often to ask the caller whether to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Changes that arrive this close together are reported together.
const COLLECT_TIME: Duration = Duration::from_millis(5);

/// More changes than this cause a sweep instead.
const FILES_MAX: usize = 256;

/// The sweep interval if the system does not report every change.
const POLL: Duration = Duration::from_secs(2);

/// The pause after a sweep, as a multiple of its duration, so that sweeps do not take all the time.
const PAUSE_FACTOR: u32 = 10;

impl Watcher {
    /// Watches the places of sources. A sweep happens every `sweep`, and more often if the system does not report every change;
    /// [`Watcher::trouble`] tells why.
    pub fn new(places: &Places, sweep: Duration) -> Watcher {
        let (sender, changes) = channel();
        let made = notify::recommended_watcher(move |change| {
            // If the receiver is gone, the report is not needed.
            let _ = sender.send(change);
        });
        Watcher::over(made, changes, &folders(places), sweep)
    }

    fn over(
        made: notify::Result<RecommendedWatcher>,
        changes: Receiver<notify::Result<Event>>,
        folders: &[PathBuf],
        sweep: Duration,
    ) -> Watcher {
        let (mut system, mut trouble) = match made {
            Ok(system) => (Some(system), None),
            Err(error) => (None, Some(reason(&error))),
        };
        for folder in folders {
            if let Some(system) = &mut system
                && let Err(error) = system.watch(folder, RecursiveMode::Recursive)
            {
                trouble.get_or_insert(format!("{}: {}", folder.display(), reason(&error)));
            }
        }
        let sweep = if trouble.is_some() { sweep.min(POLL) } else { sweep };
        Watcher { _system: system, changes, sweep, next: Instant::now() + sweep, trouble }
    }

    /// Why the system does not report every change, if it does not. Then a sweep happens every [`Watcher::interval`].
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The time between sweeps.
    pub fn interval(&self) -> Duration {
        self.sweep
    }

    /// Records how long the last sweep took: the next one comes later after a long one.
    pub fn sweep_took(&mut self, time: Duration) {
        self.next = self.next.max(Instant::now() + time * PAUSE_FACTOR);
    }

    /// Schedules a sweep within this time.
    pub fn sweep_within(&mut self, time: Duration) {
        self.next = self.next.min(Instant::now() + time);
    }

    /// Waits until a source may have changed, or `is_stopped`.
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
            match self.changes.recv_timeout((until - now).min(STOP_CHECK_INTERVAL)) {
                Ok(Ok(change)) if may_change_content(&change.kind) => {
                    if files.is_empty() {
                        until = until.min(Instant::now() + COLLECT_TIME);
                    }
                    files.extend(change.paths);
                    if change.attrs.flag() == Some(notify::event::Flag::Rescan) || files.len() > FILES_MAX {
                        self.next = Instant::now() + self.sweep;
                        return Woken::Sweep;
                    }
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep((until - now).min(STOP_CHECK_INTERVAL)),
            }
        }
    }
}

/// The folders to watch: the fixed prefixes of homes, and the folders that are walked whole. A sweep finds folders that appear
/// later.
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
    // Watching a folder includes everything below it.
    found.dedup_by(|folder, above| folder.starts_with(above));
    found
}

/// Why the system cannot watch, for people.
fn reason(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the limit of watched folders is reached (fs.inotify.max_user_watches)".to_owned()
        }
        notify::ErrorKind::Io(source)
            if source.kind() == std::io::ErrorKind::QuotaExceeded || source.raw_os_error() == Some(24) =>
        {
            "the limit of watchers is reached (fs.inotify.max_user_instances)".to_owned()
        }
        notify::ErrorKind::Io(source) => source.to_string(),
        _ => error.to_string(),
    }
}

/// Whether an event may change content. Read access does not.
fn may_change_content(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(notify::event::ModifyKind::Metadata(_)) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_system_reports_sweeps_are_frequent_and_the_reason_is_stated() {
        let folder = tempfile::tempdir().unwrap();
        let (_sender, changes) = channel();
        let none = Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch));
        let mut watcher = Watcher::over(none, changes, &[folder.path().to_owned()], Duration::from_secs(15));
        assert!(watcher.trouble().is_some_and(|trouble| trouble.contains("max_user_watches")));
        assert_eq!(watcher.interval(), POLL);
        watcher.sweep_within(Duration::ZERO);
        assert_eq!(watcher.wait(&|| false), Woken::Sweep);
    }

    #[test]
    fn a_folder_that_cannot_be_watched_is_trouble() {
        let places = Places { folders: vec![], ..Places::below(PathBuf::from("/nowhere/at/all")) };
        assert_eq!(Watcher::new(&places, Duration::from_secs(15)).trouble(), None);
        let (sender, changes) = channel();
        let made = notify::recommended_watcher(move |change| drop(sender.send(change)));
        let watcher = Watcher::over(made, changes, &[PathBuf::from("/nowhere/at/all")], Duration::from_secs(15));
        assert!(watcher.trouble().is_some_and(|trouble| trouble.starts_with("/nowhere/at/all: ")));
    }
}
