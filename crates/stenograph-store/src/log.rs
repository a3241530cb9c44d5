//! An append-only file of lines in which acknowledged means durable. The first appending thread writes for all that wait (group
//! commit), and a failure reaches every append that it covers. This file does not interpret the lines.

mod append_file;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::files::Files;
use crate::tail::Tail;
use append_file::AppendFile;

/// How durable a record is when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk.
    Always,
    /// The operating system has it, and it is on disk within this time.
    Interval(Duration),
    /// The operating system has it and writes it to disk at any time: it survives the process, not the machine.
    Never,
}

/// The log. `T` is an item that accompanies each append; the follower receives the items in file order.
#[derive(Debug)]
pub struct Log<T> {
    shared: Arc<Shared<T>>,
    flusher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T> {
    durability: Durability,
    queue: Mutex<Queue<T>>,
    /// Signalled when a batch is decided and threads wait for it.
    batch_decided: Condvar,
    /// Signalled when the log is closed.
    closing: Condvar,
    append_file: Mutex<AppendFile>,
}

#[derive(Debug)]
struct Queue<T> {
    bytes: Vec<u8>,
    items: Vec<T>,
    /// The number of the next append.
    next: u64,
    /// All appends before this one are decided.
    decided: u64,
    /// Whether a thread currently writes for all.
    has_leader: bool,
    /// How many threads are likely to write together.
    expected: u64,
    /// How many threads wait for a batch. Signalling without a waiter costs a system call, which takes as long as a write.
    waiting: usize,
    failures: Vec<Failure>,
    /// A failure that no thread waited for; the next append reports it.
    late_failure: Option<Error>,
    closed: bool,
}

/// Appends that failed together, and how many of them have not reported it yet.
#[derive(Debug)]
struct Failure {
    first: u64,
    last: u64,
    unreported: u64,
    error: Error,
}

impl<T: Send + 'static> Log<T> {
    /// Opens a file whose end was checked.
    pub fn open(files: Arc<dyn Files>, path: &Path, tail: &Tail, durability: Durability) -> Result<Log<T>, Error> {
        let append_file = AppendFile::open(files, path, tail)?;
        let queue = Queue {
            bytes: Vec::new(),
            items: Vec::new(),
            next: 0,
            decided: 0,
            has_leader: false,
            expected: 1,
            waiting: 0,
            failures: Vec::new(),
            late_failure: None,
            closed: false,
        };
        let shared = Arc::new(Shared {
            durability,
            queue: Mutex::new(queue),
            batch_decided: Condvar::new(),
            closing: Condvar::new(),
            append_file: Mutex::new(append_file),
        });
        let flusher = match durability {
            Durability::Interval(interval) => {
                let shared = Arc::clone(&shared);
                Some(std::thread::spawn(move || shared.flush_every(interval)))
            }
            Durability::Always | Durability::Never => None,
        };
        Ok(Log { shared, flusher })
    }

    /// Appends lines and returns when they are as durable as requested. `follow` receives the items of all appends in file
    /// order, once they are written.
    pub fn append(&self, lines: &[u8], item: T, follow: &dyn Fn(Vec<T>)) -> Result<(), Error> {
        let shared = &self.shared;
        let mut queue = shared.queue();
        if let Some(late_failure) = queue.late_failure.take() {
            return Err(late_failure);
        }
        let ticket = queue.next;
        queue.next += 1;
        queue.bytes.extend_from_slice(lines);
        queue.items.push(item);
        while queue.has_leader && queue.decided <= ticket {
            queue.waiting += 1;
            queue = shared.batch_decided.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        if queue.decided > ticket {
            return queue.outcome(ticket);
        }
        queue.has_leader = true;
        if shared.durability == Durability::Always {
            queue = shared.wait_for_others(queue);
        }
        let (bytes, items) = (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.items));
        let (first, end) = (queue.decided, queue.next);
        queue.expected = (end - first).max(queue.expected / 2);
        drop(queue);
        let written = shared.append_file().commit(&bytes, shared.durability);
        // A panic in `follow` must not block the waiting threads for ever.
        let followed = match &written {
            Ok(()) => catch_unwind(AssertUnwindSafe(|| follow(items))),
            Err(_) => Ok(()),
        };
        let mut queue = shared.queue();
        if let Err(error) = written {
            queue.failures.push(Failure { first, last: end - 1, unreported: end - first, error });
        }
        // The buffer is reused for the next batch, unless it was unusually large.
        if queue.bytes.is_empty() && bytes.capacity() <= BUFFER_SIZE_MAX {
            queue.bytes = bytes;
            queue.bytes.clear();
        }
        queue.decided = end;
        queue.has_leader = false;
        if queue.waiting > 0 {
            shared.batch_decided.notify_all();
        }
        let outcome = queue.outcome(ticket);
        drop(queue);
        followed.unwrap_or_else(|panic| resume_unwind(panic));
        outcome
    }

    /// Syncs everything to disk.
    pub fn sync(&self) -> Result<(), Error> {
        if let Some(late_failure) = self.shared.queue().late_failure.take() {
            return Err(late_failure);
        }
        self.shared.append_file().sync()
    }

    /// The length of the file: every acknowledged record ends before it.
    pub fn length(&self) -> u64 {
        self.shared.append_file().length()
    }
}

const BUFFER_SIZE_MAX: usize = 4 << 20;

/// How often a thread yields to others at most: about as long as a fast disk takes for a sync.
const YIELDS_MAX: u32 = 256;

impl<T> Drop for Log<T> {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.closing.notify_all();
        if let Some(flusher) = self.flusher.take() {
            let _ = flusher.join();
        }
    }
}

impl<T> Shared<T> {
    /// A panic elsewhere leaves no inconsistent state: every change here is a single step.
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_file(&self) -> MutexGuard<'_, AppendFile> {
        self.append_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits briefly for other appends. Threads that wrote together last time are likely to do so again, and for them a short
    /// wait costs less than a sync of their own. A single thread does not wait.
    fn wait_for_others<'q>(&'q self, mut queue: MutexGuard<'q, Queue<T>>) -> MutexGuard<'q, Queue<T>> {
        for _ in 0..YIELDS_MAX {
            if queue.next - queue.decided >= queue.expected {
                break;
            }
            drop(queue);
            std::thread::yield_now();
            queue = self.queue();
        }
        queue
    }

    /// Syncs once in every interval. The condition variable also wakes at every append, so the time of the last sync decides.
    fn flush_every(&self, interval: Duration) {
        let mut queue = self.queue();
        let mut synced_at = Instant::now();
        while !queue.closed {
            let wait = interval.saturating_sub(synced_at.elapsed());
            if !wait.is_zero() {
                queue = self.closing.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            if queue.closed || synced_at.elapsed() >= interval {
                drop(queue);
                let synced = self.append_file().sync();
                synced_at = Instant::now();
                queue = self.queue();
                if let Err(error) = synced {
                    queue.late_failure = Some(error);
                }
            }
        }
    }
}

impl<T> Queue<T> {
    fn outcome(&mut self, ticket: u64) -> Result<(), Error> {
        let covers = |failure: &Failure| (failure.first..=failure.last).contains(&ticket);
        let Some(at) = self.failures.iter().position(covers) else { return Ok(()) };
        let Some(failure) = self.failures.get_mut(at) else { return Ok(()) };
        failure.unreported -= 1;
        let error = failure.error.again();
        if failure.unreported == 0 {
            self.failures.swap_remove(at);
        }
        Err(error)
    }
}
