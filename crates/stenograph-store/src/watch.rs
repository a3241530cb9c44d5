//! Waits until a source may have changed. The operating system's reports wake the thread; they may be late, missing or
//! spurious, so a sweep over all files follows regularly in any case.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
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
    /// The excluded folders, as the system names them in its reports.
    excluded: Vec<PathBuf>,
    sweep_interval: Duration,
    next_sweep: Instant,
    /// The end of the pause after the last sweep.
    not_before: Instant,
    stop_check_interval: Duration,
    /// Why the system does not report every change.
    trouble: Option<String>,
}

/// How often to ask the caller whether to stop, unless it says so.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Changes that arrive this close together are reported together.
const COLLECT_TIME: Duration = Duration::from_millis(5);

/// More changes than this cause a sweep instead.
const FILES_MAX: usize = 256;

/// The longest sweep interval if the system does not report every change.
const SWEEP_INTERVAL_MAX_UNRELIABLE: Duration = Duration::from_secs(2);

/// The pause after a sweep, as a multiple of its duration, so that sweeps do not take all the time.
const PAUSE_FACTOR: u32 = 10;

impl Watcher {
    /// Watches the places of sources. A sweep happens every `sweep_interval`, and more often if the system does not report every
    /// change; [`Watcher::trouble`] tells why.
    pub fn new(places: &Places, sweep_interval: Duration) -> Watcher {
        let (sender, changes) = channel();
        let system = notify::recommended_watcher(move |change| {
            // If the receiver is gone, the report is not needed.
            let _ = sender.send(change);
        });
        let folders = folders(places);
        let excluded = as_reported(&places.excluded, &folders);
        Watcher { excluded, ..Watcher::with_system(system, changes, &folders, sweep_interval) }
    }

    fn with_system(
        system: notify::Result<RecommendedWatcher>,
        changes: Receiver<notify::Result<Event>>,
        folders: &[PathBuf],
        sweep_interval: Duration,
    ) -> Watcher {
        let (mut system, mut failures) = match system {
            Ok(system) => (Some(system), Vec::new()),
            Err(error) => (None, vec![reason(&error)]),
        };
        for folder in folders {
            if let Some(system) = &mut system
                && let Err(error) = system.watch(folder, RecursiveMode::Recursive)
            {
                failures.push(format!("{}: {}", folder.display(), reason(&error)));
            }
        }
        let now = Instant::now();
        let mut watcher = Watcher {
            _system: system,
            changes,
            excluded: Vec::new(),
            sweep_interval,
            next_sweep: now + sweep_interval,
            not_before: now,
            stop_check_interval: STOP_CHECK_INTERVAL,
            trouble: None,
        };
        failures.into_iter().for_each(|failure| watcher.add_trouble(failure));
        watcher
    }

    /// Asks the caller at another interval whether to stop. A caller that is never stopped saves the wakeups.
    #[must_use]
    pub fn checking_stop_every(self, interval: Duration) -> Watcher {
        Watcher { stop_check_interval: interval, ..self }
    }

    /// Records why the system does not report every change. The first reason is kept.
    fn add_trouble(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
        self.sweep_interval = self.sweep_interval.min(SWEEP_INTERVAL_MAX_UNRELIABLE);
        self.sweep_within(self.sweep_interval);
    }

    /// Why the system does not report every change, if it does not. Then a sweep happens every [`Watcher::interval`].
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The time between sweeps.
    pub fn interval(&self) -> Duration {
        self.sweep_interval
    }

    /// Records how long the last sweep took: the next one comes later after a long one.
    pub fn sweep_took(&mut self, time: Duration) {
        self.not_before = Instant::now() + time * PAUSE_FACTOR;
        self.next_sweep = self.next_sweep.max(self.not_before);
    }

    /// Schedules a sweep within this time, or at the end of the pause after the last one.
    pub fn sweep_within(&mut self, time: Duration) {
        self.next_sweep = self.next_sweep.min(Instant::now() + time).max(self.not_before);
    }

    /// Schedules a sweep at once, even during the pause after the last one: the changes of a failed run are not reported again.
    pub fn sweep_now(&mut self) {
        self.not_before = Instant::now();
        self.next_sweep = self.not_before;
    }

    /// Waits until a source may have changed, or `is_stopped`.
    pub fn wait(&mut self, is_stopped: &dyn Fn() -> bool) -> Woken {
        let mut files = BTreeSet::new();
        let mut until = self.next_sweep;
        loop {
            let now = Instant::now();
            if is_stopped() {
                return Woken::Stopped;
            }
            if now >= until {
                // Nothing arrived: the sweep is due.
                if files.is_empty() {
                    self.next_sweep = now + self.sweep_interval;
                    return Woken::Sweep;
                }
                return Woken::Files(files.into_iter().collect());
            }
            match self.changes.recv_timeout((until - now).min(self.stop_check_interval)) {
                Ok(Ok(change)) if may_change_content(&change.kind) => {
                    let is_first = files.is_empty();
                    files.extend(change.paths.into_iter().filter(|path| !self.is_excluded(path)));
                    if is_first && !files.is_empty() {
                        until = until.min(Instant::now() + COLLECT_TIME);
                    }
                    if change.attrs.flag() == Some(notify::event::Flag::Rescan) || files.len() > FILES_MAX {
                        self.next_sweep = Instant::now() + self.sweep_interval;
                        return Woken::Sweep;
                    }
                }
                Ok(Err(error)) => {
                    self.add_trouble(reason(&error));
                    until = until.min(self.next_sweep);
                }
                Ok(Ok(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep((until - now).min(self.stop_check_interval)),
            }
        }
    }

    /// Whether a path is in an excluded folder. The store's own files change with every run.
    fn is_excluded(&self, path: &Path) -> bool {
        self.excluded.iter().any(|folder| path.starts_with(folder))
    }
}

/// The excluded folders as the system names them: below the path of the watched folder, which may have symbolic links.
fn as_reported(excluded: &[PathBuf], folders: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let below = |excluded: &PathBuf, folder: &PathBuf| {
        real(excluded).strip_prefix(real(folder)).ok().map(|inside| folder.join(inside))
    };
    excluded.iter().flat_map(|excluded| folders.iter().filter_map(move |folder| below(excluded, folder))).collect()
}

/// The folders to watch: the fixed prefixes of homes, and the folders that are walked whole. A sweep finds folders that appear
/// later. Homes without a folder, such as `trajectory-<session>.md`, are not watched: that would watch whole projects. A sweep
/// finds their files too.
fn folders(places: &Places) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = places.folders.clone();
    for home in places.registry.formats().flat_map(|format| format.info().homes) {
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

/// The error number of Linux for too many open files.
const EMFILE: i32 = 24;

/// Why the system cannot watch, for people.
fn reason(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => "too many watched folders (fs.inotify.max_user_watches)".to_owned(),
        notify::ErrorKind::Io(source)
            if source.kind() == std::io::ErrorKind::QuotaExceeded || source.raw_os_error() == Some(EMFILE) =>
        {
            "too many watchers (fs.inotify.max_user_instances)".to_owned()
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

    const INTERVAL: Duration = Duration::from_secs(15);

    /// A watcher whose reports the test sends.
    fn watcher() -> (std::sync::mpsc::Sender<notify::Result<Event>>, Watcher) {
        let (sender, changes) = channel();
        let system = notify::recommended_watcher(|_| {});
        (sender, Watcher::with_system(system, changes, &[], INTERVAL))
    }

    fn changed(path: &str) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Any).add_path(PathBuf::from(path)))
    }

    #[test]
    fn without_system_reports_sweeps_are_frequent_and_the_reason_is_stated() {
        let folder = tempfile::tempdir().unwrap();
        let (_sender, changes) = channel();
        let none = Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch));
        let mut watcher = Watcher::with_system(none, changes, &[folder.path().to_owned()], INTERVAL);
        assert!(watcher.trouble().is_some_and(|trouble| trouble.contains("max_user_watches")));
        assert_eq!(watcher.interval(), SWEEP_INTERVAL_MAX_UNRELIABLE);
        watcher.sweep_within(Duration::ZERO);
        assert_eq!(watcher.wait(&|| false), Woken::Sweep);
    }

    #[test]
    fn a_missing_folder_is_not_watched() {
        let places = Places { folders: vec![], ..Places::below(PathBuf::from("/nowhere/at/all")) };
        assert_eq!(Watcher::new(&places, INTERVAL).trouble(), None);
    }

    #[test]
    fn a_folder_that_cannot_be_watched_is_trouble() {
        let (_sender, changes) = channel();
        let system = notify::recommended_watcher(|_| {});
        let watcher = Watcher::with_system(system, changes, &[PathBuf::from("/nowhere/at/all")], INTERVAL);
        assert!(watcher.trouble().is_some_and(|trouble| trouble.starts_with("/nowhere/at/all: ")));
    }

    #[test]
    fn changes_in_an_excluded_folder_do_not_wake() {
        let (sender, mut watcher) = watcher();
        watcher.excluded = vec![PathBuf::from("/home/store")];
        sender.send(changed("/home/store/index.lock")).unwrap();
        sender.send(changed("/home/a.jsonl")).unwrap();
        sender.send(changed("/home/store/index.lock")).unwrap();
        assert_eq!(watcher.wait(&|| false), Woken::Files(vec![PathBuf::from("/home/a.jsonl")]));
    }

    #[cfg(unix)]
    #[test]
    fn an_excluded_folder_is_known_by_the_name_that_reports_have() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/store")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let reported = as_reported(&[root.join("real/store")], &[root.join("link"), root.join("real/store/deep")]);
        assert_eq!(reported, [root.join("link/store")]);
    }

    #[test]
    fn an_error_of_the_system_is_trouble() {
        let (sender, mut watcher) = watcher();
        sender.send(Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch))).unwrap();
        let asked = std::cell::Cell::new(0);
        let stopped = watcher.wait(&|| asked.replace(asked.get() + 1) > 0);
        assert_eq!(stopped, Woken::Stopped);
        assert!(watcher.trouble().is_some_and(|trouble| trouble.contains("max_user_watches")));
        assert_eq!(watcher.interval(), SWEEP_INTERVAL_MAX_UNRELIABLE);
        assert!(watcher.next_sweep <= Instant::now() + SWEEP_INTERVAL_MAX_UNRELIABLE);
    }

    #[test]
    fn the_pause_after_a_long_sweep_lasts_unless_a_run_failed() {
        let (_sender, mut watcher) = watcher();
        watcher.sweep_took(Duration::from_secs(60));
        let pause = watcher.not_before;
        watcher.sweep_within(Duration::from_secs(5));
        assert_eq!(watcher.next_sweep, pause);
        watcher.sweep_now();
        assert_eq!(watcher.wait(&|| false), Woken::Sweep);
    }
}
