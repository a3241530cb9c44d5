//! A bar on standard error for work that takes longer than a second, where somebody watches. It never touches standard output.

use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stenograph::convert;
use stenograph_store::Source;
use stenograph_store::index::RunObserver;

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of one source.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: Cell<bool>,
}

impl Progress {
    /// No bar, whatever happens.
    pub fn none() -> Progress {
        Progress { bar: None, started: Instant::now(), shown: Cell::new(false) }
    }

    /// A bar for so many passes over a source, if somebody watches and data does not fill the screen.
    pub fn over(source: &Source, passes: u64) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::none();
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
        Progress { bar: Some(bar), started: Instant::now(), shown: Cell::new(false) }
    }

    /// A bar for so many bytes of work, with how fast it goes.
    pub fn rate(what: &'static str, bytes: u64) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::none();
        }
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        bar.set_message(what);
        let template = "{msg} [{bar:30}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar: Some(bar), started: Instant::now(), shown: Cell::new(false) }
    }

    /// So many bytes are done.
    pub fn at(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        if !self.shown.get() && self.started.elapsed() > PATIENCE {
            self.shown.set(true);
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A source that moves a bar as it is read.
pub struct Watched<'a> {
    /// The source.
    pub source: &'a mut Source,
    /// The bar.
    pub progress: &'a Progress,
}

impl convert::Reopen for Watched<'_> {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        let consumed = self.source.consumed();
        let (inner, progress) = (self.source.pass()?, self.progress);
        Ok(Box::new(Moving { inner, moved: move || progress.at(consumed()) }))
    }
}

struct Moving<R, F> {
    inner: R,
    moved: F,
}

impl<R: Read, F: Fn()> Read for Moving<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        (self.moved)();
        Ok(length)
    }
}

/// A bar for work on many files, and an ear for Ctrl-C.
pub struct Bar {
    what: &'static str,
    progress: Option<Progress>,
    stop: Arc<AtomicBool>,
}

impl Bar {
    /// A bar for what is done, which ends when somebody sets the flag.
    pub fn new(what: &'static str, stop: &Arc<AtomicBool>) -> Bar {
        Bar { what, progress: None, stop: Arc::clone(stop) }
    }
}

impl RunObserver for Bar {
    fn progress(&mut self, at: &stenograph_store::index::IndexProgress) {
        let bar = self.progress.get_or_insert_with(|| Progress::rate(self.what, at.bytes));
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
