//! Locks against concurrent writers: a lock file beside the guarded file, never on a file that a rename replaces. The operating
//! system releases it when the process ends, however it ends; the content of the lock file only names the holder.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Problem};
use crate::files::resolve_links;
use crate::identity::Identity;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

/// How long to wait for a holder that needs only a moment.
const WAIT_STEPS: u32 = 2_000;
const WAIT_STEP: Duration = Duration::from_millis(5);

/// How often to look for the holder's number.
const LOOKS_MAX: u32 = 20;
const LOOK_STEP: Duration = Duration::from_millis(1);

impl Lock {
    /// Takes the lock, or fails with its holder.
    pub fn take(path: &Path) -> Result<Lock, Error> {
        let mut looked = 0;
        loop {
            let mut file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    // The process that just took it is about to write its number.
                    if holder.is_none() && looked < LOOKS_MAX {
                        looked += 1;
                        std::thread::sleep(LOOK_STEP);
                        continue;
                    }
                    return Err(Error::about(path, Problem::Locked { holder }));
                }
                Err(fs::TryLockError::Error(error)) => return Err(Error::at(path, Problem::Unwritable, error)),
            }
            // The last holder may have removed the file between opening and locking: then this lock guards nothing.
            if !is_at(&file, path) {
                continue;
            }
            // The lock works without the holder's number, so a full disk must not prevent anyone from freeing space.
            let _ = file.set_len(0).and_then(|()| writeln!(file, "{SIGN}{}", std::process::id()));
            return Ok(Lock { path: path.to_owned(), file });
        }
    }

    /// Takes the lock beside a file, or fails with the process that writes to it. Through a link it is the lock of the file
    /// itself.
    pub fn on(path: &Path) -> Result<Lock, Error> {
        Lock::take(&lock_path(&resolve_links(path))).map_err(|error| error.about_path(path))
    }

    /// Takes the lock beside a file as [`Lock::on`] does, and waits for a holder that needs only a moment.
    pub(crate) fn wait_on(path: &Path) -> Result<Lock, Error> {
        Lock::wait(&lock_path(&resolve_links(path))).map_err(|error| error.about_path(path))
    }

    /// Whether a process holds the lock.
    pub(crate) fn is_held(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Whether a process that held the lock of a file was killed: it left the lock behind, and no process holds it.
    pub(crate) fn is_left(path: &Path) -> bool {
        let path = lock_path(&resolve_links(path));
        Lock::holder_of(&path).is_some() && !Lock::is_held(&path)
    }

    /// The process that a lock names.
    pub(crate) fn holder_of(path: &Path) -> Option<u32> {
        holder(&mut File::open(path).ok()?)
    }

    /// Waits for a lock that is only ever held for a moment.
    pub fn wait(path: &Path) -> Result<Lock, Error> {
        for _ in 1..WAIT_STEPS {
            match Lock::take(path) {
                Err(Error { problem: Problem::Locked { .. }, .. }) => std::thread::sleep(WAIT_STEP),
                taken => return taken,
            }
        }
        Lock::take(path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the lock is held, no other process can create another file of that name. If an open file cannot be removed, it
        // stays and does no harm.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// The beginning of a lock file; the number of the holding process follows.
const SIGN: &str = "steno ";

/// Opens a lock file. Existing content is overwritten only if it is a lock: a link is not followed, and a file that does not
/// begin like a lock belongs to someone else.
fn open(path: &Path) -> Result<File, Error> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    #[cfg(target_os = "linux")]
    if let Ok(flag) = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()) {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flag);
    }
    if path.is_symlink() {
        return Err(Error::about(path, Problem::Odd));
    }
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    let mut file = options.open(path).map_err(unwritable)?;
    let mut text = Vec::new();
    let is_file = file.metadata().map_err(unwritable)?.is_file();
    if is_file {
        (&file).take(TEXT_SIZE_MAX).read_to_end(&mut text).map_err(unwritable)?;
        file.rewind().map_err(unwritable)?;
    }
    // A power failure may leave zeros instead of the bytes.
    let is_blank = text.iter().all(|byte| *byte == 0);
    let begins = is_blank || text.starts_with(SIGN.as_bytes()) || SIGN.as_bytes().starts_with(&text);
    if is_file && begins && (text.len() as u64) < TEXT_SIZE_MAX {
        Ok(file)
    } else {
        Err(Error::about(path, Problem::LockNameTaken))
    }
}

/// The maximum size of a lock file.
const TEXT_SIZE_MAX: u64 = 64;

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(TEXT_SIZE_MAX).read_to_string(&mut text).ok()?;
    text.strip_prefix(SIGN)?.trim().parse().ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    let open = file.metadata().ok().as_ref().and_then(Identity::of_metadata);
    cfg!(not(unix)) || (open.is_some() && open == Identity::of_path(path))
}

/// The path of the lock that guards a file: beside it, and named after it.
pub fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    path.with_file_name(name)
}

/// Whether a file is a lock, held or left behind.
pub(crate) fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
}

/// Checks that a name is a single path component: an id must not lead out of its folder.
pub(crate) fn safe_component(name: &str) -> Result<&str, Error> {
    const LENGTH_MAX: usize = 200;
    let harmless = |char: char| !char.is_control() && !matches!(char, '/' | '\\' | ':' | '\0');
    let good = !name.is_empty()
        && name.len() <= LENGTH_MAX
        && !name.starts_with('.')
        && name.trim() == name
        && name.chars().all(harmless);
    if good { Ok(name) } else { Err(Error::about(Path::new(name), Problem::BadName)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_gets_the_process_id_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = lock_path(&folder.path().join("a.jsonl"));
        let lock = Lock::take(&path).unwrap();
        let refused = Lock::take(&path).unwrap_err();
        assert_eq!(refused.problem, Problem::Locked { holder: Some(std::process::id()) });
        assert!(refused.to_string().contains(&std::process::id().to_string()) && refused.hint().is_some());
        drop(lock);
        assert!(!path.exists());
        Lock::take(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_not_a_lock_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, path) = (folder.path().join("mine"), folder.path().join("a.lock"));
        let text = "export PATH=/usr/bin:/bin:/usr/local/bin\n";
        fs::write(&mine, text).unwrap();
        std::os::unix::fs::symlink(&mine, &path).unwrap();
        assert_eq!(Lock::take(&path).unwrap_err().problem, Problem::Odd);
        fs::remove_file(&path).unwrap();
        fs::hard_link(&mine, &path).unwrap();
        assert_eq!(Lock::take(&path).unwrap_err().problem, Problem::LockNameTaken);
        assert_eq!(fs::read_to_string(&mine).unwrap(), text);
        fs::remove_file(&path).unwrap();
        for short in ["my notes\n", "12345\n"] {
            fs::write(&path, short).unwrap();
            assert_eq!(Lock::take(&path).unwrap_err().problem, Problem::LockNameTaken);
            assert_eq!(fs::read_to_string(&path).unwrap(), short);
        }
    }

    #[test]
    fn a_lock_for_a_moment_is_waited_for_and_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let counter = std::sync::Mutex::new(());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _lock = Lock::wait(&path).unwrap();
                        let _alone = counter.try_lock().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn an_id_cannot_lead_out_of_its_folder() {
        for bad in ["", ".", "..", "a/b", "a\\b", "C:", "a\0", "a\nb", " a", ".hidden"] {
            assert_eq!(safe_component(bad).unwrap_err().problem, Problem::BadName, "{bad:?}");
        }
        for good in ["2025-01-15-ticket-to-pr-TK421", "run 1", "größe", "a.b"] {
            safe_component(good).unwrap();
        }
    }
}
