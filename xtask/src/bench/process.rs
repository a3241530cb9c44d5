//! Runs a program and tells what it took: time on the clock, time of the processors, the most memory it held. It must not judge.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
const LOOK_MS: u64 = 2;

/// The kernel counts processor time in hundredths of a second for everybody who asks.
const TICK_MS: u64 = 10;

/// Runs a program to its end, looking at it all the while. Exit 1 means no, and is no failure.
pub fn watched(command: &mut Command) -> Result<Ran, Failure> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let folder = format!("/proc/{}", child.id());
    let mut ran = Ran::default();
    // A process that ended stays readable until somebody waits for it, and only then its time is complete.
    while let Some((state, processor)) = stat(&folder) {
        (ran.wall, ran.processor) = (start.elapsed(), processor);
        if state == "Z" {
            break;
        }
        if let Ok(status) = fs::read_to_string(format!("{folder}/status")) {
            ran.peak_kb = figure(&status, "VmHWM:").max(ran.peak_kb);
            ran.own_kb = figure(&status, "RssAnon:").max(ran.own_kb);
        }
        std::thread::sleep(Duration::from_millis(LOOK_MS));
    }
    let status = child.wait()?;
    if ran.wall.is_zero() {
        return Err("this system does not tell what a process took".into());
    }
    match status.code() {
        Some(0 | 1) => Ok(ran),
        _ => Err(format!("{} ended with {status}", command.get_program().display()).into()),
    }
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

/// The state of a process and its time on processors.
fn stat(folder: &str) -> Option<(String, Duration)> {
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // The name of the program stands in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(((*fields.first()?).to_owned(), Duration::from_millis(ticks * TICK_MS)))
}

fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
