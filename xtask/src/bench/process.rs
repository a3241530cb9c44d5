//! Runs a program and tells what it took: time on the clock, time of the processors, the most memory it held. It must not judge.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::Failure;

/// What a run took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// From its start to its end.
    pub wall: Duration,
    /// What all its threads and the children it waited for computed, for itself and in the kernel.
    pub processor: Duration,
    /// The most memory it held, files it mapped included, in KB.
    pub peak_kb: u64,
    /// The most memory of its own it was seen to hold, in KB.
    pub own_kb: u64,
}

/// How often a running process is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Runs a program to its end. The kernel tells the time it took; its memory is looked at all the while. Exit 1 means no, and is no
/// failure.
pub fn watched(command: &mut Command) -> Result<Ran, Failure> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let has_ended = AtomicBool::new(false);
    let (ended, wall, (peak_kb, own_kb)) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| memory(&status_file, &has_ended));
        let ended = child.wait4();
        let wall = start.elapsed();
        has_ended.store(true, Ordering::Relaxed);
        (ended, wall, looking.join().unwrap_or_default())
    });
    let ended = ended?;
    let took = ended.rusage;
    match ended.status.code() {
        Some(0 | 1) => Ok(Ran { wall, processor: took.utime + took.stime, peak_kb, own_kb }),
        _ => Err(format!("{} ended with {}", command.get_program().display(), ended.status).into()),
    }
}

/// The most memory that a process is seen to hold until it ends, and of its own, in KB. What the kernel tells at the end (`ru_maxrss`)
/// is no use: it counts what the parent held when it started the process.
fn memory(status_file: &str, has_ended: &AtomicBool) -> (u64, u64) {
    let (mut peak, mut own) = (0, 0);
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(status) = fs::read_to_string(status_file) {
            peak = figure(&status, "VmHWM:").max(peak);
            own = figure(&status, "RssAnon:").max(own);
        }
        std::thread::sleep(LOOK);
    }
    (peak, own)
}

/// Runs a program to its end, undisturbed, and gives what it printed and how long it took.
pub fn timed(command: &mut Command) -> Result<(Vec<u8>, Duration), Failure> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let wall = start.elapsed();
    match output.status.code() {
        Some(0 | 1) => Ok((output.stdout, wall)),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("{} ended with {}: {said}", command.get_program().display(), output.status).into())
        }
    }
}

fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
