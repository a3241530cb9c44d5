//! A terminal that is taken over and always given back: when the replay ends, when it is suspended, when a signal ends it and when it
//! panics. Nothing here knows what is drawn.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};

/// A terminal that was taken over.
pub struct Screen {
    signals: Signals,
}

/// What signals asked for.
#[derive(Clone, Default)]
struct Signals {
    /// The signal that came, or 0.
    stop: Arc<AtomicUsize>,
    suspend: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end; the signal's number says how.
    Stop(u8),
    /// To let go of the terminal for a while.
    Suspend,
    /// To draw everything again.
    Redraw,
}

impl Screen {
    /// Takes the terminal over.
    pub fn enter() -> io::Result<Screen> {
        let signals = Signals::default();
        signals.listen();
        // What a panic says must be seen, and not on a screen that goes away.
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
        let screen = Screen { signals };
        take_over()?;
        Ok(screen)
    }

    /// What a signal asked for since the last time.
    pub fn asked(&self) -> Option<Asked> {
        let was = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
        let signal = self.signals.stop.swap(0, Ordering::Relaxed);
        if signal > 0 {
            return Some(Asked::Stop(u8::try_from(signal).unwrap_or(u8::MAX)));
        }
        if was(&self.signals.suspend) {
            return Some(Asked::Suspend);
        }
        was(&self.signals.resumed).then_some(Asked::Redraw)
    }

    /// Gives the terminal back, stops until somebody lets the process go on, and takes it over again.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        #[cfg(unix)]
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.take_again()
    }

    /// Takes the terminal over again: whoever had it may have changed it.
    pub fn take_again(&mut self) -> io::Result<()> {
        self.signals.resumed.store(false, Ordering::Relaxed);
        take_over()
    }

    /// How many columns and lines there are.
    pub fn size(&self) -> (usize, usize) {
        let (columns, lines) = size().unwrap_or((80, 24));
        (usize::from(columns.max(1)), usize::from(lines.max(1)))
    }

    /// Draws these lines from the top, and the last one at the bottom. Lines are no wider than the screen.
    pub fn draw(&mut self, lines: &[String], last: &str) -> io::Result<()> {
        let (_, height) = self.size();
        let mut out = io::stdout().lock();
        for row in 0..height.saturating_sub(1) {
            let line = lines.get(row).map_or("", String::as_str);
            queue!(out, MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX)))?;
            write!(out, "{line}")?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, MoveTo(0, u16::try_from(height - 1).unwrap_or(u16::MAX)))?;
        write!(out, "{last}")?;
        queue!(out, Clear(ClearType::UntilNewLine))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
    }
}

impl Signals {
    /// Signals only set flags, which are looked at many times a second: nothing is left half drawn.
    fn listen(&self) {
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
            for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
                let number = usize::try_from(signal).unwrap_or(1);
                let _ = signal_hook::flag::register_usize(signal, Arc::clone(&self.stop), number);
            }
            for (signal, flag) in [(SIGTSTP, &self.suspend), (SIGCONT, &self.resumed)] {
                let _ = signal_hook::flag::register(signal, Arc::clone(flag));
            }
        }
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide, Clear(ClearType::All))
}

/// Gives the terminal back. That it is gone is no reason to fail.
fn give_back() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Takes a real terminal over and panics, as only a mistake would. It is the part of the test below that runs in that terminal.
    #[test]
    #[ignore = "needs a terminal of its own"]
    fn somebody_panics() {
        let mut screen = Screen::enter().unwrap();
        screen.draw(&["something is drawn".to_owned()], "the last line").unwrap();
        panic!("this is why");
    }

    #[test]
    #[cfg(unix)]
    fn a_panic_gives_the_terminal_back_and_is_seen() {
        let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/drive.py");
        let own = std::env::current_exe().unwrap();
        let mut python = Command::new("python3");
        python.arg(drive).arg("[]").arg(own).env("TERM", "xterm").env("RUST_BACKTRACE", "0");
        // What is not captured is neither held back nor written by somebody else later.
        python.args(["--exact", "commands::replay::screen::tests::somebody_panics", "--ignored", "--nocapture"]);
        let Ok(done) = python.output() else {
            eprintln!("no python3: the terminal is not tried");
            return;
        };
        let text = String::from_utf8(done.stdout).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["failed"], serde_json::Value::Null, "{text}");
        assert_eq!((&found["restored"], &found["code"]), (&true.into(), &101.into()), "{text}");
        // Said on the screen that stays, and not on the one that went away.
        assert!(found["said"].as_str().unwrap().contains("this is why"), "{text}");
    }
}
