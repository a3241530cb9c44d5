//! Runs a program and measures its wall time, CPU time and peak memory. It must not judge them.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::Failure;

/// The cost of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunCost {
    /// The time from start to end.
    pub wall: Duration,
    /// The CPU time of all threads and of the children that the process waited for, in user and kernel mode.
    pub processor: Duration,
    /// The peak memory including mapped files, in KB.
    pub peak_kb: u64,
    /// The peak of the anonymous memory in the samples, in KB.
    pub own_kb: u64,
}

/// The time between two samples of a process's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(2);

/// Runs a program to its end. The kernel reports its CPU time; a thread samples its memory. Exit code 1 means "no" and is not a
/// failure.
pub fn run_and_measure(command: &mut Command) -> Result<RunCost, Failure> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let has_ended = AtomicBool::new(false);
    let (ended, wall, (peak_kb, own_kb)) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| memory(&status_file, &has_ended));
        let ended = child.wait4();
        let wall = start.elapsed();
        has_ended.store(true, Ordering::Relaxed);
        (ended, wall, sampler.join().unwrap_or_default())
    });
    let ended = ended?;
    let took = ended.rusage;
    match ended.status.code() {
        Some(0 | 1) => Ok(RunCost { wall, processor: took.utime + took.stime, peak_kb, own_kb }),
        _ => Err(format!("{} ended with {}", command.get_program().display(), ended.status).into()),
    }
}

/// The peak memory of a process, and the peak of its anonymous memory, in KB. The kernel's figure at the end (`ru_maxrss`)
/// cannot be used: it includes the memory of the parent at the start of the process.
fn memory(status_file: &str, has_ended: &AtomicBool) -> (u64, u64) {
    let (mut peak, mut own) = (0, 0);
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(status) = fs::read_to_string(status_file) {
            peak = figure(&status, "VmHWM:").max(peak);
            own = figure(&status, "RssAnon:").max(own);
        }
        std::thread::sleep(SAMPLE_INTERVAL);
    }
    (peak, own)
}

/// Runs a program to its end without sampling, and returns its output and wall time.
pub fn timed(command: &mut Command) -> Result<(Vec<u8>, Duration), Failure> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let wall = start.elapsed();
    match output.status.code() {
        Some(0 | 1) => Ok((output.stdout, wall)),
        _ => {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("{} ended with {}: {stderr}", command.get_program().display(), output.status).into())
        }
    }
}

/// A figure of a status file of the kernel.
pub fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
