//! Runs a command of the shell that reads on standard input and prints a summary. It may read and print in any order and amount;
//! one that fails, takes too long or is stopped gives an error, and nothing of it runs on.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use stenograph_store::Spool;

use crate::error::CommandError;

/// How often the time and signals are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What the command prints when it reads `input`.
pub fn run(command: &str, input: Spool, patience: Duration, size_max: u64) -> Result<Vec<u8>, CommandError> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped());
    // It and all that it starts can be ended together.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let stop = Stop::caught()?;
    let mut child = shell.spawn().map_err(|error| {
        CommandError::new(format!("sh: cannot be run: {error}")).hint("give the summary itself with --summary TEXT")
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read all of it may still know what to say.
        std::thread::spawn(move || drop(input.copy_to(&mut stdin)));
    }
    let (sender, printed) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(size_max + 1).read_to_end(&mut bytes);
            let _ = sender.send(read.map(|_| bytes));
        });
    }
    let waiting = Waiting { deadline: Instant::now() + patience, stop, size_max };
    let ended = waiting.end(&mut child, &printed);
    if ended.is_err() {
        kill(&mut child);
    }
    match ended? {
        (bytes, status) if status.success() => Ok(bytes),
        (_, status) => {
            let said = format!("the command that summarises ended with {status}; nothing was changed");
            Err(CommandError::new(said).hint("try it by hand: steno show FILE --json | CMD"))
        }
    }
}

struct Waiting {
    deadline: Instant,
    stop: Stop,
    size_max: u64,
}

impl Waiting {
    /// Waits for everything that is printed, and then for the end.
    fn end(
        &self,
        child: &mut Child,
        printed: &Receiver<std::io::Result<Vec<u8>>>,
    ) -> Result<(Vec<u8>, ExitStatus), CommandError> {
        let lost = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("the command that summarises cannot be heard: {error}"))
        };
        let bytes = loop {
            match printed.recv_timeout(LOOK) {
                Ok(read) => break read.map_err(|error| lost(&error))?,
                Err(RecvTimeoutError::Timeout) => self.go_on()?,
                Err(error @ RecvTimeoutError::Disconnected) => return Err(lost(&error)),
            }
        };
        if bytes.len() as u64 > self.size_max {
            let said = format!("the summary is larger than {} MiB; nothing was changed", self.size_max >> 20);
            return Err(CommandError::new(said).hint("a summary is shorter than what it sums up"));
        }
        loop {
            match child.try_wait().map_err(|error| lost(&error))? {
                Some(status) => return Ok((bytes, status)),
                None => {
                    self.go_on()?;
                    std::thread::sleep(LOOK);
                }
            }
        }
    }

    fn go_on(&self) -> Result<(), CommandError> {
        if self.stop.came() {
            return Err(CommandError::new("stopped; nothing was changed"));
        }
        if Instant::now() >= self.deadline {
            return Err(CommandError::new("the command that summarises took too long; nothing was changed")
                .hint("give it more time with --timeout SECONDS"));
        }
        Ok(())
    }
}

/// Whether somebody asked this process to end: the command, in a group of its own, does not hear of that by itself.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn caught() -> Result<Stop, CommandError> {
        let stop = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| CommandError::new(format!("signals cannot be caught: {error}")))?;
        }
        Ok(Stop(stop))
    }

    fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

fn kill(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}
