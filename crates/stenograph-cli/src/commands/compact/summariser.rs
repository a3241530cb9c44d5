//! Runs a shell command that reads standard input and prints a summary, in any order and amount. If it fails, takes too long or
//! is stopped, the result is an error and all its processes end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use stenograph_store::Spool;

use crate::error::CommandError;

/// The interval between checks of the time and of signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The output of the command for `input`.
pub fn run(command: &str, input: Spool, timeout: Duration, size_max: u64) -> Result<Vec<u8>, CommandError> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped());
    // A process group, so that everything it starts can be killed together.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let stop = SignalFlag::install()?;
    let mut child = shell.spawn().map_err(|error| {
        CommandError::new(format!("cannot run sh: {error}")).hint("give the summary itself with --summary TEXT")
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read all its input may still print a summary.
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
    let supervisor = Supervisor { deadline: Instant::now() + timeout, stop, size_max };
    let ended = supervisor.end(&mut child, &printed);
    if ended.is_err() {
        kill(&mut child);
    }
    match ended? {
        (bytes, status) if status.success() => Ok(bytes),
        (_, status) => {
            let message = format!("the --summarise command ended with {status}; nothing was changed");
            Err(CommandError::new(message).hint("test it with steno show FILE --json | CMD"))
        }
    }
}

struct Supervisor {
    deadline: Instant,
    stop: SignalFlag,
    size_max: u64,
}

impl Supervisor {
    /// Waits for all output, then for the end.
    fn end(
        &self,
        child: &mut Child,
        printed: &Receiver<std::io::Result<Vec<u8>>>,
    ) -> Result<(Vec<u8>, ExitStatus), CommandError> {
        let lost = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("cannot read from the --summarise command: {error}"))
        };
        let bytes = loop {
            match printed.recv_timeout(CHECK_INTERVAL) {
                Ok(read) => break read.map_err(|error| lost(&error))?,
                Err(RecvTimeoutError::Timeout) => self.check_limits()?,
                Err(error @ RecvTimeoutError::Disconnected) => return Err(lost(&error)),
            }
        };
        if bytes.len() as u64 > self.size_max {
            let message = format!("the summary is larger than {} MiB; nothing was changed", self.size_max >> 20);
            return Err(CommandError::new(message).hint("make the summary shorter"));
        }
        loop {
            match child.try_wait().map_err(|error| lost(&error))? {
                Some(status) => return Ok((bytes, status)),
                None => {
                    self.check_limits()?;
                    std::thread::sleep(CHECK_INTERVAL);
                }
            }
        }
    }

    fn check_limits(&self) -> Result<(), CommandError> {
        if self.stop.is_set() {
            return Err(CommandError::new("stopped; nothing was changed"));
        }
        if Instant::now() >= self.deadline {
            return Err(CommandError::new("the --summarise command took too long; nothing was changed")
                .hint("allow more time with --timeout SECONDS"));
        }
        Ok(())
    }
}

/// Whether this process received a signal to end. The command runs in a group of its own and does not receive it.
struct SignalFlag(Arc<AtomicBool>);

impl SignalFlag {
    fn install() -> Result<SignalFlag, CommandError> {
        let stop = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| CommandError::new(format!("cannot catch signals: {error}")))?;
        }
        Ok(SignalFlag(stop))
    }

    fn is_set(&self) -> bool {
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
