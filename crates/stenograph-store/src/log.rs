//! An append-only file of lines in which acknowledged means durable. Whoever comes first writes for all who wait (group commit),
//! and a failure reaches every append it covers. What the lines say is not known here.

mod tape;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::files::Files;
use crate::tail::Tail;
use tape::Tape;

/// How durable a record is when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk.
    Always,
    /// It is with the system, and on disk within this time.
    Interval(Duration),
    /// It is with the system, which writes it to disk when it likes: it survives the process, not the machine.
    Never,
}

/// The file. `T` is what an append brings along for whoever follows what is written, in its order.
#[derive(Debug)]
pub struct Log<T> {
    shared: Arc<Shared<T>>,
    flusher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T> {
    durability: Durability,
    queue: Mutex<Queue<T>>,
    /// Rung when a batch is settled and somebody waits for that.
    bell: Condvar,
    /// Rung when the log is closed.
    closing: Condvar,
    tape: Mutex<Tape>,
}

#[derive(Debug)]
struct Queue<T> {
    bytes: Vec<u8>,
    items: Vec<T>,
    /// The number of the next append.
    next: u64,
    /// All appends before this one are decided.
    settled: u64,
    /// Whether somebody writes for all right now.
    led: bool,
    /// How many are likely to write together.
    expected: u64,
    /// How many wait for a batch to be settled. Ringing for nobody takes a call to the system, which is as long as a write.
    waiting: usize,
    failures: Vec<Failure>,
    /// A failure that nobody waited for: the next append hears of it.
    late: Option<Error>,
    closed: bool,
}

/// Appends that failed together, and how many of them have not heard of it yet.
#[derive(Debug)]
struct Failure {
    first: u64,
    last: u64,
    unheard: u64,
    error: Error,
}

impl<T: Send + 'static> Log<T> {
    /// Opens a file whose end was looked at.
    pub fn open(files: Arc<dyn Files>, path: &Path, tail: &Tail, durability: Durability) -> Result<Log<T>, Error> {
        let tape = Tape::open(files, path, tail)?;
        let queue = Queue {
            bytes: Vec::new(),
            items: Vec::new(),
            next: 0,
            settled: 0,
            led: false,
            expected: 1,
            waiting: 0,
            failures: Vec::new(),
            late: None,
            closed: false,
        };
        let shared = Arc::new(Shared {
            durability,
            queue: Mutex::new(queue),
            bell: Condvar::new(),
            closing: Condvar::new(),
            tape: Mutex::new(tape),
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

    /// Appends lines, and returns when they are as durable as was asked for. `follow` is told what every append brought along,
    /// in the order of the file, once it is there.
    pub fn append(&self, lines: &[u8], item: T, follow: &dyn Fn(Vec<T>)) -> Result<(), Error> {
        let shared = &self.shared;
        let mut queue = shared.queue();
        if let Some(late) = queue.late.take() {
            return Err(late);
        }
        let ticket = queue.next;
        queue.next += 1;
        queue.bytes.extend_from_slice(lines);
        queue.items.push(item);
        while queue.led && queue.settled <= ticket {
            queue.waiting += 1;
            queue = shared.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        if queue.settled > ticket {
            return queue.outcome(ticket);
        }
        queue.led = true;
        if shared.durability == Durability::Always {
            queue = shared.gather(queue);
        }
        let (bytes, items) = (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.items));
        let (first, end) = (queue.settled, queue.next);
        queue.expected = (end - first).max(queue.expected / 2);
        drop(queue);
        let written = shared.tape().commit(&bytes, shared.durability);
        // Who follows may fail as badly as it likes: the others must not wait for it for ever.
        let followed = match &written {
            Ok(()) => catch_unwind(AssertUnwindSafe(|| follow(items))),
            Err(_) => Ok(()),
        };
        let mut queue = shared.queue();
        if let Err(error) = written {
            queue.failures.push(Failure { first, last: end - 1, unheard: end - first, error });
        }
        // The room is kept for the next batch, unless it was an unusually large one.
        if queue.bytes.is_empty() && bytes.capacity() <= ROOM_MAX {
            queue.bytes = bytes;
            queue.bytes.clear();
        }
        queue.settled = end;
        queue.led = false;
        if queue.waiting > 0 {
            shared.bell.notify_all();
        }
        let outcome = queue.outcome(ticket);
        drop(queue);
        followed.unwrap_or_else(|panic| resume_unwind(panic));
        outcome
    }

    /// Makes durable what is not yet.
    pub fn sync(&self) -> Result<(), Error> {
        if let Some(late) = self.shared.queue().late.take() {
            return Err(late);
        }
        self.shared.tape().sync()
    }

    /// How long the file is: every acknowledged record ends before.
    pub fn length(&self) -> u64 {
        self.shared.tape().length()
    }
}

const ROOM_MAX: usize = 4 << 20;

/// How often others are let go first, at most: about as long as a quick disk takes for a sync.
const PATIENCE_STEPS: u32 = 256;

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
    /// A panic elsewhere leaves no half-done state behind: every change here is made in one go.
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs once in every interval, counted from the last sync.
    /// Whoever wrote together the last time is likely to write together again: for them a moment of patience costs less than a sync of
    /// their own. Who is alone waits for nobody.
    fn gather<'q>(&'q self, mut queue: MutexGuard<'q, Queue<T>>) -> MutexGuard<'q, Queue<T>> {
        for _ in 0..PATIENCE_STEPS {
            if queue.next - queue.settled >= queue.expected {
                break;
            }
            drop(queue);
            std::thread::yield_now();
            queue = self.queue();
        }
        queue
    }

    /// Syncs once in every interval: the bell rings at every append, so what counts is the time of the last sync.
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
                let synced = self.tape().sync();
                synced_at = Instant::now();
                queue = self.queue();
                if let Err(error) = synced {
                    queue.late = Some(error);
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
        failure.unheard -= 1;
        let error = failure.error.again();
        if failure.unheard == 0 {
            self.failures.swap_remove(at);
        }
        Err(error)
    }
}
