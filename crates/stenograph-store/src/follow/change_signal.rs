//! Wakes a thread when the operating system reports that a file may have changed. The report only saves waiting: the thread
//! still checks its files regularly, because some file systems report nothing and the system limits the number of watchers.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// The longest wait between two looks.
pub const SWEEP: Duration = Duration::from_millis(500);

/// Wakes a waiting thread when something may have changed.
pub struct ChangeSignal {
    changes: Receiver<()>,
    /// Keeps the channel open, so that a wait without a watcher ends by timeout.
    _sender: SyncSender<()>,
    _watcher: Option<RecommendedWatcher>,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something may have changed.
    Yes,
    /// The time is over.
    No,
}

impl std::fmt::Debug for ChangeSignal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ChangeSignal").field("listens", &self._watcher.is_some()).finish_non_exhaustive()
    }
}

impl ChangeSignal {
    /// Watches these files by watching their folders, so that it notices a file that takes another's name.
    pub fn over(paths: &[PathBuf]) -> ChangeSignal {
        let (sender, changes) = sync_channel(1);
        let names: HashSet<OsString> = paths.iter().filter_map(|path| path.file_name().map(Into::into)).collect();
        let report = sender.clone();
        let heard = move |event: notify::Result<notify::Event>| {
            // Read access changes nothing; most often the follower itself reads.
            let is_ours = event.is_ok_and(|event| {
                let named = |path: &PathBuf| path.file_name().is_some_and(|name| names.contains(name));
                !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(named)
            });
            if is_ours {
                // One pending report is enough: the waiting thread checks all files.
                let _ = report.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(heard).ok().map(|mut watcher| {
            let folders: HashSet<&Path> = paths.iter().map(|path| folder(path)).collect();
            for folder in folders {
                let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
            }
            watcher
        });
        ChangeSignal { changes, _sender: sender, _watcher: watcher }
    }

    /// Waits for a change, at most this long.
    pub fn wait(&self, most: Duration) -> Wake {
        match self.changes.recv_timeout(most) {
            Ok(()) => Wake::Yes,
            Err(_) => Wake::No,
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
