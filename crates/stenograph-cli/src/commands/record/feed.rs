//! What arrives: bytes from standard input or from a command, its end, and signals, in one queue. What the bytes mean is not
//! known here.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::error::CommandError;

/// Where bytes come from.
pub struct Feed {
    queue: Receiver<Message>,
    child: Option<Child>,
    /// The signal that came, if any.
    signal: Option<i32>,
}

enum Message {
    Bytes(Vec<u8>),
    End,
    Failed(io::Error),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals to catch"))]
    Signal(i32),
}

/// What arrived.
pub enum Arrival {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end.
    End(Exit),
    /// Nothing more can be read.
    Failed(io::Error),
}

/// How it ended.
pub enum Exit {
    /// Well.
    Done,
    /// The command failed.
    Failed {
        /// Its exit code.
        code: u8,
        /// What to say of it.
        said: String,
    },
    /// Somebody stopped it.
    Canceled {
        /// What to say to whoever waits.
        code: u8,
    },
}

const CHUNK_SIZE: usize = 64 << 10;

/// How many chunks wait: what cannot be recorded as fast as it comes holds up whoever writes it.
const QUEUE_LENGTH: usize = 16;

/// How often it is looked whether a command that was told to stop has ended.
const STEP: Duration = Duration::from_millis(500);

impl Feed {
    /// Standard input.
    pub fn standard_input() -> Result<Feed, CommandError> {
        let (sender, queue) = sync_channel(QUEUE_LENGTH);
        catch_signals(&sender)?;
        std::thread::spawn(move || read(io::stdin(), &sender));
        Ok(Feed { queue, child: None, signal: None })
    }

    /// What a command prints.
    pub fn command(program: &str, arguments: &[String]) -> Result<Feed, CommandError> {
        let (sender, queue) = sync_channel(QUEUE_LENGTH);
        catch_signals(&sender)?;
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().map_err(|error| {
            CommandError::new(format!("{program}: cannot be run: {error}")).hint("is it installed?")
        })?;
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || read(stdout, &sender));
        }
        Ok(Feed { queue, child: Some(child), signal: None })
    }

    /// Whether the bytes are somebody's output, to be passed on.
    pub fn passes_on(&self) -> bool {
        self.child.is_some()
    }

    /// Waits for what comes next.
    pub fn next(&mut self) -> Arrival {
        loop {
            match self.queue.recv_timeout(STEP) {
                Ok(Message::Bytes(bytes)) => return Arrival::Bytes(bytes),
                Ok(Message::Signal(signal)) => {
                    self.signal = Some(signal);
                    match &self.child {
                        // The command hears of it too, and may still have something to say before it ends.
                        Some(child) => pass_signal(child, signal),
                        None => return Arrival::End(canceled(signal)),
                    }
                }
                Ok(Message::Failed(error)) => return Arrival::Failed(error),
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return Arrival::End(self.exit()),
                Err(RecvTimeoutError::Timeout) => {
                    // What a command started may hold its output open for ever: who was told to stop does not wait for that.
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
        // A signal may have come while the command was waited for.
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
                Exit::Failed { code: u8::try_from(code).unwrap_or(2), said: format!("the command ended with {status}") }
            }
            (None, Some(Err(error))) => Exit::Failed { code: 2, said: error.to_string() },
        }
    }
}

/// Refuses a command that is nowhere to be found, before anything is begun.
pub fn look_for(program: &str) -> Result<(), CommandError> {
    // There names have endings that need not be said; the attempt to run it tells.
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
    Err(CommandError::new(format!("{program}: cannot be run: there is no such command")).hint("is it installed?"))
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
    let mut signals = signals.map_err(|error| CommandError::new(format!("signals cannot be caught: {error}")))?;
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
    // There Ctrl-C ends the process at once, and steno recover completes what is there.
    Ok(())
}

#[cfg(unix)]
fn pass_signal(child: &Child, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    // On a terminal the command is asked by the terminal itself.
    let asked = signal == signal_hook::consts::SIGINT && io::IsTerminal::is_terminal(&io::stdin());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (false, Some(pid), Some(signal)) = (asked, pid, Signal::from_named_raw(signal)) {
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
