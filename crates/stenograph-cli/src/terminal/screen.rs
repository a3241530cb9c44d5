//! Enters the alternate screen of a terminal, and restores the terminal at the end, on suspension, on signals and on panics.
//! It does not know what is drawn.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};

pub struct Screen {
    stream: ScreenStream,
    signals: Signals,
    /// The panic hook from before, which this screen's hook calls.
    previous_hook: Arc<PanicHook>,
}

type PanicHook = dyn Fn(&std::panic::PanicHookInfo<'_>) + Sync + Send;

/// The exit code after a signal is this plus the signal's number.
const SIGNAL_EXIT_BASE: u8 = 128;

/// The stream that leads to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenStream {
    Stdout,
    /// Leaves standard output to a program that reads it.
    Stderr,
}

impl Write for ScreenStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ScreenStream::Stdout => io::stdout().write(bytes),
            ScreenStream::Stderr => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ScreenStream::Stdout => io::stdout().flush(),
            ScreenStream::Stderr => io::stderr().flush(),
        }
    }
}

/// The signals received.
#[derive(Clone, Default)]
struct Signals {
    /// The signal's number, or 0.
    stop: Arc<AtomicUsize>,
    suspend: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    /// Set when the terminal is restored; signals then have their default action.
    is_restored: Arc<AtomicBool>,
}

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// To end with this exit code.
    Stop(u8),
    /// To release the terminal for a while.
    Suspend,
    Redraw,
}

impl Screen {
    pub fn enter(stream: ScreenStream) -> io::Result<Screen> {
        let signals = Signals::of_process();
        // A panic message must not appear on the alternate screen, which disappears. A panic of another thread does not end
        // the program, so the screen stays.
        let previous_hook: Arc<PanicHook> = std::panic::take_hook().into();
        let (hook, owner) = (Arc::clone(&previous_hook), std::thread::current().id());
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == owner {
                restore(stream);
                hook(panic);
            }
        }));
        let screen = Screen { stream, signals, previous_hook };
        take_over(stream)?;
        Ok(screen)
    }

    /// The request of a signal since the last call.
    pub fn take_request(&self) -> Option<SignalRequest> {
        let take = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
        let signal = self.signals.stop.swap(0, Ordering::Relaxed);
        if signal > 0 {
            let signal = u8::try_from(signal).unwrap_or(u8::MAX);
            return Some(SignalRequest::Stop(SIGNAL_EXIT_BASE.saturating_add(signal)));
        }
        if take(&self.signals.suspend) {
            return Some(SignalRequest::Suspend);
        }
        take(&self.signals.resumed).then_some(SignalRequest::Redraw)
    }

    /// Restores the terminal, stops the process until it is resumed, and enters the screen again.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore(self.stream);
        #[cfg(unix)]
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.reenter()
    }

    /// Enters the screen again: another program may have changed the terminal.
    pub fn reenter(&mut self) -> io::Result<()> {
        self.signals.resumed.store(false, Ordering::Relaxed);
        take_over(self.stream)
    }

    /// The number of columns and lines.
    pub fn size(&self) -> (usize, usize) {
        let (columns, lines) = size().unwrap_or((80, 24));
        (usize::from(columns.max(1)), usize::from(lines.max(1)))
    }

    /// Draws lines from the top, and `last` at the bottom. No line is wider than the screen.
    pub fn draw(&mut self, lines: &[String], last: &str) -> io::Result<()> {
        let (_, height) = self.size();
        let mut out = io::BufWriter::new(self.stream);
        for row in 0..height {
            let line = if row + 1 == height { last } else { lines.get(row).map_or("", String::as_str) };
            // Cleared first: after a line of full width, the cursor of many terminals is still on its last column.
            queue!(out, MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX)), Clear(ClearType::UntilNewLine))?;
            write!(out, "{line}")?;
        }
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(self.stream);
        self.signals.is_restored.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            let previous_hook = Arc::clone(&self.previous_hook);
            std::panic::set_hook(Box::new(move |panic| previous_hook(panic)));
        }
    }
}

impl Signals {
    /// The flags of this process. Handlers cannot be removed, so all screens share them.
    fn of_process() -> Signals {
        static SIGNALS: OnceLock<Signals> = OnceLock::new();
        let signals = SIGNALS.get_or_init(|| {
            let signals = Signals::default();
            signals.listen();
            signals
        });
        signals.is_restored.store(false, Ordering::Relaxed);
        signals.clone()
    }

    /// Signals only set flags, which the main loop polls, so that no signal interrupts drawing.
    fn listen(&self) {
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
            use signal_hook::flag::{register, register_conditional_default, register_usize};
            for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
                let number = usize::try_from(signal).unwrap_or(1);
                let _ = register_conditional_default(signal, Arc::clone(&self.is_restored));
                let _ = register_usize(signal, Arc::clone(&self.stop), number);
            }
            let _ = register_conditional_default(SIGTSTP, Arc::clone(&self.is_restored));
            let _ = register(SIGTSTP, Arc::clone(&self.suspend));
            let _ = register(SIGCONT, Arc::clone(&self.resumed));
        }
    }
}

fn take_over(mut stream: ScreenStream) -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stream, EnterAlternateScreen, Hide, Clear(ClearType::All))
}

/// Restores the terminal. Ignores errors: the terminal may be gone.
fn restore(mut stream: ScreenStream) {
    let _ = execute!(stream, Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Enters a screen on a real terminal and panics. The test below runs this in a terminal of its own.
    #[test]
    #[ignore = "needs a terminal of its own"]
    fn fixture_panic_on_screen() {
        let mut screen = Screen::enter(ScreenStream::Stdout).unwrap();
        screen.draw(&["something is drawn".to_owned()], "the last line").unwrap();
        panic!("this is why");
    }

    #[test]
    #[cfg(unix)]
    fn a_panic_restores_the_terminal_and_shows_its_message() {
        let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/drive.py");
        let test_binary = std::env::current_exe().unwrap();
        let mut python = Command::new("python3");
        python.arg(drive).arg("[]").arg(test_binary).env("TERM", "xterm").env("RUST_BACKTRACE", "0");
        // With captured output, the message would appear elsewhere or later.
        python.args(["--exact", "terminal::screen::tests::fixture_panic_on_screen", "--ignored", "--nocapture"]);
        let Ok(finished) = python.output() else {
            eprintln!("python3 not found; skipping the terminal test");
            return;
        };
        let text = String::from_utf8(finished.stdout).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["failed"], serde_json::Value::Null, "{text}");
        assert_eq!((&found["restored"], &found["code"]), (&true.into(), &101.into()), "{text}");
        // The message is on the normal screen.
        assert!(found["said"].as_str().unwrap().contains("this is why"), "{text}");
    }
}
