//! Indexes what agents write until the user stops it: the loop of `steno index --watch` and of `steno serve`. It must not print;
//! its caller reports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stenograph_store::Error;
use stenograph_store::discover::Places;
use stenograph_store::index::{Archiving, IndexReport, IndexScope};
use stenograph_store::watch::{Watcher, Woken};

use crate::error::CommandError;

/// When to index, and when to archive.
#[derive(Clone, Copy, Debug)]
pub struct IndexLoop<'l> {
    pub places: &'l Places,
    /// Whether to archive at all.
    pub archiving: Archiving,
    /// How long new events may wait until they are archived: each archive run adds a line to its log.
    pub archive_every: Duration,
    /// How often to look at all files. The system reports changes; a look at all files finds what it missed.
    pub sweep_every: Duration,
    /// How often to look whether the loop is stopped, while nothing changes.
    pub stop_check_every: Duration,
    pub stop: &'l AtomicBool,
}

/// Runs the index and reports what happened.
pub trait IndexRunner {
    fn run(&mut self, scope: IndexScope, archiving: Archiving) -> Result<IndexReport, Error>;

    /// A run has found changes.
    fn changed(&mut self, report: &IndexReport) -> Result<(), CommandError>;

    /// A run has failed, with another error than the one before. It is tried again, at growing intervals.
    fn failed(&mut self, error: &CommandError);

    /// A run has succeeded after failures.
    fn recovered(&mut self);

    /// The system does not report every change, so all files are looked at after this time.
    fn unreliable(&mut self, reason: &str, every: Duration);
}

/// What the loop does first.
#[derive(Debug)]
pub enum FirstRun {
    /// Waits for changes: everything is indexed.
    Done,
    /// Looks at all files.
    Wanted,
    /// A run has failed just now.
    Failed(Error),
}

impl IndexLoop<'_> {
    /// Indexes changes until it is stopped.
    pub fn run(self, first: FirstRun, runner: &mut dyn IndexRunner) -> Result<(), CommandError> {
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut watcher = Watcher::new(self.places, self.sweep_every).checking_stop_every(self.stop_check_every);
        let (mut archived, mut failure) = (Instant::now(), RepeatedFailure::default());
        let mut is_trouble_told = tell_trouble(&watcher, runner);
        match first {
            FirstRun::Done => {}
            FirstRun::Wanted => watcher.sweep_now(),
            FirstRun::Failed(error) => failure.wait_after(error, &mut watcher, runner, &is_stopped),
        }
        while !is_stopped() {
            // New events are searchable at once and archived a little later.
            let woken = watcher.wait(&is_stopped);
            is_trouble_told = is_trouble_told || tell_trouble(&watcher, runner);
            let (scope, archiving) = match woken {
                Woken::Files(paths) if archived.elapsed() >= self.archive_every => {
                    (IndexScope::Files(paths), self.archiving)
                }
                Woken::Files(paths) => {
                    watcher.sweep_within(self.archive_every);
                    (IndexScope::Files(paths), Archiving::No)
                }
                Woken::Sweep => (IndexScope::All, self.archiving),
                Woken::Stopped => break,
            };
            if archiving == Archiving::Yes {
                archived = Instant::now();
            }
            let (is_sweep, began) = (matches!(scope, IndexScope::All), Instant::now());
            match runner.run(scope, archiving) {
                Ok(report) => {
                    if failure.clear() {
                        runner.recovered();
                    }
                    if is_sweep {
                        watcher.sweep_took(began.elapsed());
                    }
                    if report.events > 0 || report.gone + report.moved + report.copies > 0 || !report.unknown.is_empty()
                    {
                        runner.changed(&report)?;
                    }
                }
                Err(error) => failure.wait_after(error, &mut watcher, runner, &is_stopped),
            }
        }
        Ok(())
    }
}

/// Tells why the system does not report every change; returns whether there is a reason.
fn tell_trouble(watcher: &Watcher, runner: &mut dyn IndexRunner) -> bool {
    let Some(trouble) = watcher.trouble() else { return false };
    runner.unreliable(trouble, watcher.interval());
    true
}

/// Repeated failures: each message is printed once, and the pauses grow.
#[derive(Debug, Default)]
struct RepeatedFailure {
    message: Option<String>,
    pause: Duration,
}

impl RepeatedFailure {
    const PAUSE_MIN: Duration = Duration::from_secs(1);
    const PAUSE_MAX: Duration = Duration::from_secs(60);

    /// Tells a failure unless it was the last one too, and waits until the next attempt. The changes will still be there.
    fn wait_after(
        &mut self,
        error: Error,
        watcher: &mut Watcher,
        runner: &mut dyn IndexRunner,
        is_stopped: &dyn Fn() -> bool,
    ) {
        let error = CommandError::from(error);
        if self.message.as_deref() != Some(error.message()) {
            self.message = Some(error.message().to_owned());
            runner.failed(&error);
        }
        self.pause = match self.pause.is_zero() {
            true => RepeatedFailure::PAUSE_MIN,
            false => (self.pause * 2).min(RepeatedFailure::PAUSE_MAX),
        };
        let until = Instant::now() + self.pause;
        while Instant::now() < until && !is_stopped() {
            std::thread::sleep(Duration::from_millis(100).min(self.pause));
        }
        watcher.sweep_now();
    }

    /// Records a success; returns whether failures preceded it.
    fn clear(&mut self) -> bool {
        self.pause = Duration::ZERO;
        self.message.take().is_some()
    }
}
