//! A progress bar on standard error for work that takes longer than a second, if standard error is a terminal. It never touches
//! standard output.

use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stenograph::convert;
use stenograph_store::Source;
use stenograph_store::index::RunObserver;

const SHOW_AFTER: Duration = Duration::from_secs(1);

/// The progress over one source.
pub struct SourceProgress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: Cell<bool>,
}

impl SourceProgress {
    pub fn none() -> SourceProgress {
        SourceProgress { bar: None, started: Instant::now(), shown: Cell::new(false) }
    }

    /// A bar for `passes` passes over a source, if standard error is a terminal.
    pub fn over(source: &Source, passes: u64) -> SourceProgress {
        if !io::stderr().is_terminal() {
            return SourceProgress::none();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(crate::output::harmless_line(&source.place().to_string()));
        let template = match source.length() {
            Some(length) => {
                bar.set_length(length * passes);
                "{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left"
            }
            None => "{msg} {bytes}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        SourceProgress { bar: Some(bar), started: Instant::now(), shown: Cell::new(false) }
    }

    /// A bar for `bytes` bytes of work, with the speed.
    pub fn rate(what: &'static str, bytes: u64) -> SourceProgress {
        if !io::stderr().is_terminal() {
            return SourceProgress::none();
        }
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        bar.set_message(what);
        let template = "{msg} [{bar:30}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        SourceProgress { bar: Some(bar), started: Instant::now(), shown: Cell::new(false) }
    }

    /// Sets the number of bytes done.
    pub fn at(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        if !self.shown.get() && self.started.elapsed() > SHOW_AFTER {
            self.shown.set(true);
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(bytes);
    }
}

impl Drop for SourceProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A source that moves a bar as it is read.
pub struct ProgressSource<'a> {
    pub source: &'a mut Source,
    pub progress: &'a SourceProgress,
}

impl convert::Reopen for ProgressSource<'_> {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        let consumed = self.source.consumed();
        let (inner, progress) = (self.source.pass()?, self.progress);
        Ok(Box::new(ProgressReader { inner, on_read: move || progress.at(consumed()) }))
    }
}

struct ProgressReader<R, F> {
    inner: R,
    on_read: F,
}

impl<R: Read, F: Fn()> Read for ProgressReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        (self.on_read)();
        Ok(length)
    }
}

/// A bar for work on many files, which Ctrl-C can stop.
pub struct IndexProgressBar {
    what: &'static str,
    progress: Option<SourceProgress>,
    stop: Arc<AtomicBool>,
}

impl IndexProgressBar {
    /// A bar that stops the work once the flag is set.
    pub fn new(what: &'static str, stop: &Arc<AtomicBool>) -> IndexProgressBar {
        IndexProgressBar { what, progress: None, stop: Arc::clone(stop) }
    }
}

impl RunObserver for IndexProgressBar {
    fn progress(&mut self, at: &stenograph_store::index::IndexProgress) {
        let bar = self.progress.get_or_insert_with(|| SourceProgress::rate(self.what, at.bytes));
        bar.at(at.bytes_done);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn waiting_for_lock(&mut self, holder: Option<u32>) {
        let holder = holder.map_or_else(|| "another process".to_owned(), |holder| format!("process {holder}"));
        let _ = writeln!(io::stderr(), "note: waiting for {holder}, which is writing to the index");
    }
}
