//! Locks a context: Chibi's own lock, `.lock`, states when its holder was last alive, so that Chibi and a recorder respect each
//! other. Beside it is our own lock, which the operating system releases when its process dies, so that no process waits for a
//! dead recorder. This file does not touch the content of a context.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Problem};
use crate::files::{FileMode, with_mode};
use crate::layouts::Clock;
use crate::lock::Lock;
use crate::tail::Warning;

/// How often a holder updates its lock, unless Chibi is configured otherwise.
pub(crate) const HEARTBEAT_SECONDS: u64 = 30;

/// How often an existing lock is checked: another process may remove it in between.
const LOOKS: usize = 3;

/// The lock of a context, held until it is dropped.
#[derive(Debug)]
pub struct ContextLock {
    path: PathBuf,
    heartbeat: Arc<Heartbeat>,
    heartbeat_thread: Option<JoinHandle<()>>,
    /// A warning about a stale lock that was removed.
    pub warning: Option<Warning>,
    _own: Lock,
}

/// State that the heartbeat thread shares with the holder.
#[derive(Debug, Default)]
struct Heartbeat {
    stopped: Mutex<bool>,
    bell: Condvar,
}

/// The state of a context's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextLockStatus {
    /// A process holds it.
    Active,
    /// Its holder was last alive too long ago.
    Stale,
}

impl ContextLock {
    /// Locks a context, or fails with its holder.
    pub fn take(folder: &Path, clock: &Clock, heartbeat_seconds: u64) -> Result<ContextLock, Error> {
        let own = Lock::take(&folder.join(OWN)).map_err(|error| error.about_path(folder))?;
        let path = folder.join(".lock");
        let mut warning = None;
        for look in 1..=LOOKS {
            match create(&path, seconds(clock)) {
                Ok(()) => break,
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::at(&path, Problem::Unwritable, error));
                }
                Err(_) => {}
            }
            let content = match fs::read_to_string(&path) {
                // Its holder released it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound && look < LOOKS => continue,
                content => content.unwrap_or_default(),
            };
            let text = if is_ours(&content) {
                // We hold the lock that its holder held while it was alive.
                "was left by a recorder that was killed; taken over"
            } else if is_stale(&content, seconds(clock), heartbeat_seconds) {
                "is stale, because its holder stopped renewing it; taken over"
            } else {
                return Err(Error::about(folder, Problem::Locked { holder: None }));
            };
            if look == LOOKS {
                return Err(Error::about(folder, Problem::Locked { holder: None }));
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::at(&path, Problem::Unwritable, error));
                }
                _ => warning = Some(Warning::new(&path, text)),
            }
        }
        let heartbeat = Arc::new(Heartbeat::default());
        let heartbeat_thread = {
            let (heartbeat, path, clock) = (Arc::clone(&heartbeat), path.clone(), Arc::clone(clock));
            let interval = Duration::from_secs(heartbeat_seconds.max(1));
            std::thread::spawn(move || heartbeat.run(&path, &clock, interval))
        };
        Ok(ContextLock { path, heartbeat, heartbeat_thread: Some(heartbeat_thread), warning, _own: own })
    }

    /// Locks a context unless this process already holds it.
    pub(crate) fn take_unless_held(folder: &Path, clock: &Clock) -> Result<Option<ContextLock>, Error> {
        match ContextLock::take(folder, clock, HEARTBEAT_SECONDS) {
            Ok(hold) => Ok(Some(hold)),
            Err(Error { problem: Problem::Locked { holder: Some(holder) }, .. }) if holder == std::process::id() => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for ContextLock {
    fn drop(&mut self) {
        *self.heartbeat.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heartbeat.bell.notify_all();
        if let Some(heartbeat_thread) = self.heartbeat_thread.take() {
            let _ = heartbeat_thread.join();
        }
        // A holder that slept too long may have lost it to Chibi.
        if fs::read_to_string(&self.path).is_ok_and(|text| is_ours(&text)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Heartbeat {
    fn run(&self, path: &Path, clock: &Clock, interval: Duration) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let (woken, wait) = self.bell.wait_timeout(stopped, interval).unwrap_or_else(PoisonError::into_inner);
            stopped = woken;
            let lost = || fs::read_to_string(path).is_ok_and(|text| !is_ours(&text));
            if wait.timed_out() && !*stopped {
                if lost() {
                    return;
                }
                // A full disk now may have room at the next beat.
                let _ = renew(path, seconds(clock));
            }
        }
    }
}

/// The name of our own lock.
const OWN: &str = ".steno.lock";

/// Chibi writes only the seconds and ignores surrounding white space when it reads them: a newline after them marks the lock as
/// ours.
fn lock_text(seconds: u64) -> String {
    format!("{seconds}\n")
}

fn is_ours(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|text| text.parse::<u64>().is_ok())
}

fn create(path: &Path, seconds: u64) -> io::Result<()> {
    // Write the lock to a temporary file and link it, so that no process reads half a number and considers the lock stale.
    let made = write_temporary(path, seconds)?;
    let linked = fs::hard_link(&made, path);
    let _ = fs::remove_file(&made);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // Not every file system has links.
            let mut file = with_mode(FileMode::PRIVATE).write(true).create_new(true).open(path)?;
            file.write_all(lock_text(seconds).as_bytes())
        }
        linked => linked,
    }
}

fn renew(path: &Path, seconds: u64) -> io::Result<()> {
    fs::rename(write_temporary(path, seconds)?, path)
}

/// Writes the lock to a temporary file in the same folder.
fn write_temporary(path: &Path, seconds: u64) -> io::Result<PathBuf> {
    let made = path.with_file_name(format!(".lock.{}", std::process::id()));
    let mut file = with_mode(FileMode::PRIVATE).write(true).create(true).truncate(true).open(&made)?;
    file.write_all(lock_text(seconds).as_bytes())?;
    Ok(made)
}

/// Chibi's rule: older than one and a half heartbeats, or unreadable.
fn is_stale(text: &str, now: u64, heartbeat_seconds: u64) -> bool {
    match text.trim().parse::<u64>() {
        Ok(seen) => now.saturating_sub(seen) > heartbeat_seconds.saturating_mul(3) / 2,
        Err(_) => true,
    }
}

/// The state of a context's lock; `None` if no process holds it.
pub fn status(folder: &Path, now: u64, heartbeat_seconds: u64) -> Option<ContextLockStatus> {
    let path = folder.join(".lock");
    if !path.exists() {
        return None;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let dead = is_ours(&text) && is_free(&folder.join(OWN));
    Some(if dead || is_stale(&text, now, heartbeat_seconds) {
        ContextLockStatus::Stale
    } else {
        ContextLockStatus::Active
    })
}

/// Whether this process holds a context.
pub(crate) fn is_own(folder: &Path) -> bool {
    let own = folder.join(OWN);
    // A file left by a killed process may name our number, and Chibi may have taken its lock while we slept.
    Lock::is_held(&own)
        && Lock::holder_of(&own) == Some(std::process::id())
        && fs::read_to_string(folder.join(".lock")).is_ok_and(|text| is_ours(&text))
}

/// Whether no process holds our own lock. Creates and removes nothing.
fn is_free(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whole seconds since 1970.
pub fn seconds(clock: &Clock) -> u64 {
    clock().to_seconds().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use stenograph::time::{Time, TimeUnit};

    use super::*;

    fn at(now: &Arc<AtomicU64>) -> Clock {
        let now = Arc::clone(now);
        Arc::new(move || Time { text: now.load(Ordering::SeqCst).to_string().into(), unit: TimeUnit::Seconds })
    }

    fn taken(folder: &Path, now: u64) -> Result<ContextLock, Error> {
        ContextLock::take(folder, &at(&Arc::new(AtomicU64::new(now))), HEARTBEAT_SECONDS)
    }

    #[test]
    fn a_context_is_locked_as_chibi_locks_it_and_released() {
        let folder = tempfile::tempdir().unwrap();
        let hold = taken(folder.path(), 1_000).unwrap();
        let text = fs::read_to_string(folder.path().join(".lock")).unwrap();
        assert_eq!(text.trim().parse::<u64>(), Ok(1_000));
        assert_eq!(status(folder.path(), 1_010, HEARTBEAT_SECONDS), Some(ContextLockStatus::Active));
        let refused = taken(folder.path(), 1_010).unwrap_err();
        assert_eq!(refused.problem, Problem::Locked { holder: Some(std::process::id()) });
        drop(hold);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(status(folder.path(), 1_010, HEARTBEAT_SECONDS), None);
    }

    #[test]
    fn a_chibi_that_is_alive_is_respected_and_a_stale_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        fs::write(&path, "1000").unwrap();
        for now in [1_000, 1_045, 900] {
            let refused = taken(folder.path(), now).unwrap_err();
            assert_eq!(refused.problem, Problem::Locked { holder: None });
            assert_eq!(status(folder.path(), now, HEARTBEAT_SECONDS), Some(ContextLockStatus::Active));
        }
        assert_eq!(status(folder.path(), 1_046, HEARTBEAT_SECONDS), Some(ContextLockStatus::Stale));
        assert!(taken(folder.path(), 1_046).unwrap().warning.is_some());
        for unreadable in ["", "soon", "-1"] {
            fs::write(&path, unreadable).unwrap();
            taken(folder.path(), 1_000).unwrap();
        }
    }

    #[test]
    fn a_dead_recorder_blocks_nobody() {
        let folder = tempfile::tempdir().unwrap();
        // What a kill leaves behind: both files, and no holder of the second one.
        fs::write(folder.path().join(".lock"), lock_text(1_000)).unwrap();
        fs::write(folder.path().join(OWN), "steno 4194304\n").unwrap();
        assert_eq!(status(folder.path(), 1_001, HEARTBEAT_SECONDS), Some(ContextLockStatus::Stale));
        let hold = taken(folder.path(), 1_001).unwrap();
        assert!(hold.warning.as_ref().unwrap().text.contains("killed"));
    }

    #[test]
    fn a_lock_that_another_process_took_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let hold = taken(folder.path(), 1_000).unwrap();
        fs::write(folder.path().join(".lock"), "2000").unwrap();
        drop(hold);
        assert_eq!(fs::read_to_string(folder.path().join(".lock")).unwrap(), "2000");
    }

    #[test]
    fn the_heartbeat_updates_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicU64::new(1_000));
        let hold = ContextLock::take(folder.path(), &at(&now), 1).unwrap();
        now.store(2_000, Ordering::SeqCst);
        let path = folder.path().join(".lock");
        while fs::read_to_string(&path).unwrap() != lock_text(2_000) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(hold);
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_file_that_names_our_number_is_not_our_lock() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(OWN), std::process::id().to_string()).unwrap();
        fs::write(folder.path().join(".lock"), lock_text(7)).unwrap();
        assert!(!is_own(folder.path()));
    }
}
