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
    /// Why the system does not tell of every change.
    trouble: Option<String>,
}

/// How often the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(100);

/// Changes that come this close together are told together.
const GATHER: Duration = Duration::from_millis(5);

/// More changes than this are a reason to look at everything.
const FILES_MAX: usize = 256;

/// How often everything is looked at where the system does not tell of every change.
const POLL: Duration = Duration::from_secs(2);

/// A sweep is followed by a pause of so many times as long as it took, so that looking does not become all that is done.
const REST_TIMES: u32 = 10;

impl Watcher {
    /// Watches the places where sources are found. Everything is looked at every `sweep`, and more often where the system does not
    /// tell of every change; [`Watcher::trouble`] says so.
    pub fn new(places: &Places, sweep: Duration) -> Watcher {
        let (sender, changes) = channel();
        let made = notify::recommended_watcher(move |change| {
            // Who does not wait any longer does not want to know.
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

    /// Why the system does not tell of every change, if it does not. Then everything is looked at every [`Watcher::interval`].
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// How often everything is looked at.
    pub fn interval(&self) -> Duration {
        self.sweep
    }

    /// Says how long the last look at everything took: the next one comes later when it took long.
    pub fn took(&mut self, time: Duration) {
        self.next = self.next.max(Instant::now() + time * REST_TIMES);
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

/// Whether a change may be one of content. That somebody reads a file is none.
fn matters(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(notify::event::ModifyKind::Metadata(_)) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_system_that_watches_everything_is_looked_at_often_and_said_so() {
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
