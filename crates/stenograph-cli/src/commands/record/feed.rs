//! Receives input: bytes from standard input or from a command, its end, and signals, in one queue. It does not interpret the
//! bytes.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::error::CommandError;

pub struct Feed {
    queue: Receiver<Message>,
    child: Option<Child>,
    signal: Option<i32>,
}

enum Message {
    Bytes(Vec<u8>),
    End,
    Failed(io::Error),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals to catch"))]
    Signal(i32),
}

pub enum Arrival {
    Bytes(Vec<u8>),
    End(Exit),
    /// The input cannot be read any further.
    Failed(io::Error),
}

pub enum Exit {
    Done,
    Failed {
        code: u8,
        /// The message.
        message: String,
    },
    /// The user stopped it.
    Canceled {
        /// The exit code.
        code: u8,
    },
}

const CHUNK_SIZE: usize = 64 << 10;

/// The limit of waiting chunks. If recording is slower than the input, the writer waits.
const QUEUE_LENGTH: usize = 16;

/// The interval between checks whether a stopped command has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl Feed {
    pub fn standard_input() -> Result<Feed, CommandError> {
        let (sender, queue) = sync_channel(QUEUE_LENGTH);
        catch_signals(&sender)?;
        std::thread::spawn(move || read(io::stdin(), &sender));
        Ok(Feed { queue, child: None, signal: None })
    }

    /// Reads the output of a command.
    pub fn command(program: &str, arguments: &[String]) -> Result<Feed, CommandError> {
        let (sender, queue) = sync_channel(QUEUE_LENGTH);
        catch_signals(&sender)?;
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().map_err(|error| {
            CommandError::new(format!("cannot run {program}: {error}")).hint("check that it is installed")
        })?;
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || read(stdout, &sender));
        }
        Ok(Feed { queue, child: Some(child), signal: None })
    }

    /// Whether the bytes are a command's output, which is passed on.
    pub fn passes_on(&self) -> bool {
        self.child.is_some()
    }

    /// Waits for the next arrival.
    pub fn next(&mut self) -> Arrival {
        loop {
            match self.queue.recv_timeout(CHECK_INTERVAL) {
                Ok(Message::Bytes(bytes)) => return Arrival::Bytes(bytes),
                Ok(Message::Signal(signal)) => {
                    self.signal = Some(signal);
                    match &self.child {
                        // The command receives the signal too, and may print more before it ends.
                        Some(child) => pass_signal(child, signal),
                        None => return Arrival::End(canceled(signal)),
                    }
                }
                Ok(Message::Failed(error)) => return Arrival::Failed(error),
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return Arrival::End(self.exit()),
                Err(RecvTimeoutError::Timeout) => {
                    // A grandchild may hold the output open forever; after a signal, do not wait for it.
                    let ended = self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
                    if self.signal.is_some() && ended {
                        return Arrival::End(self.exit());
                    }
                }
            }
        }
    }

    fn exit(&mut self) -> Exit {
        let status = self.child.as_mut().map(Child::wait);
        // A signal may have arrived while waiting for the command.
        while let Ok(message) = self.queue.try_recv() {
            if let Message::Signal(signal) = message {
                self.signal = Some(signal);
            }
        }
        match (self.signal, status) {
            (Some(signal), _) => canceled(signal),
            (None, None) => Exit::Done,
            (None, Some(Ok(status))) if status.success() => Exit::Done,
            (None, Some(Ok(status))) => {
                let code = status.code().or_else(|| ended_by(status).map(|signal| 128 + signal)).unwrap_or(2);
                Exit::Failed {
                    code: u8::try_from(code).unwrap_or(2),
                    message: status.to_string().replace("status: ", "status "),
                }
            }
            (None, Some(Err(error))) => Exit::Failed { code: 2, message: error.to_string() },
        }
    }
}

/// Refuses a command that does not exist, before anything starts.
pub fn check_exists(program: &str) -> Result<(), CommandError> {
    // On Windows, names have implied extensions; starting the command tells whether it exists.
    if cfg!(windows) {
        return Ok(());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
    };
    if found {
        return Ok(());
    }
    Err(CommandError::new(format!("cannot run {program}: command not found")).hint("check that it is installed"))
}

fn canceled(signal: i32) -> Exit {
    Exit::Canceled { code: u8::try_from(128 + signal).unwrap_or(2) }
}

fn read(mut stream: impl Read, sender: &SyncSender<Message>) {
    loop {
        let mut bytes = vec![0; CHUNK_SIZE];
        let message = match stream.read(&mut bytes) {
            Ok(0) => Message::End,
            Ok(length) => {
                bytes.truncate(length);
                Message::Bytes(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Message::Failed(error),
        };
        let last = !matches!(message, Message::Bytes(_));
        if sender.send(message).is_err() || last {
            return;
        }
    }
}

#[cfg(unix)]
fn catch_signals(sender: &SyncSender<Message>) -> Result<(), CommandError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.map_err(|error| CommandError::new(format!("cannot catch signals: {error}")))?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for signal in &mut signals {
            if sender.send(Message::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn catch_signals(_sender: &SyncSender<Message>) -> Result<(), CommandError> {
    // On other systems Ctrl-C ends the process at once, and steno recover completes the recording.
    Ok(())
}

#[cfg(unix)]
fn pass_signal(child: &Child, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    // A terminal sends the signal to the command itself.
    let sent_by_terminal = signal == signal_hook::consts::SIGINT && io::IsTerminal::is_terminal(&io::stdin());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (false, Some(pid), Some(signal)) = (sent_by_terminal, pid, Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
fn pass_signal(_child: &Child, _signal: i32) {}

#[cfg(unix)]
fn ended_by(status: std::process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn ended_by(_status: std::process::ExitStatus) -> Option<i32> {
    None
}
