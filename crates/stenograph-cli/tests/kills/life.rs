//! How one run of the recorder goes, and where it is cut off.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What is done with a recorder.
#[derive(Clone, Debug)]
pub struct Life {
    /// The lengths of the messages it is given.
    pub lengths: Vec<usize>,
    pub end: End,
}

/// When it is killed.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// So long after its start.
    Started(Duration),
    /// When it has acknowledged so many messages.
    AtMessage(usize),
    /// So long after the end of its input: while it finishes.
    WhileEnding(Duration),
    /// Not at all.
    Peaceful,
}

impl Life {
    pub fn chosen(random: &mut fastrand::Rng) -> Life {
        let count = random.usize(1..30);
        let length = |random: &mut fastrand::Rng| match random.u8(..40) {
            0 => random.usize(10_000..400_000),
            1..5 => random.usize(1_000..10_000),
            _ => random.usize(..200),
        };
        let lengths = (0..count).map(|_| length(random)).collect();
        let end = match random.u8(..20) {
            0 => End::Peaceful,
            1..6 => End::Started(Duration::from_micros(random.u64(..12_000))),
            6..15 => End::AtMessage(random.usize(..count)),
            _ => End::WhileEnding(Duration::from_micros(random.u64(..5_000))),
        };
        Life { lengths, end }
    }

    pub fn is_killed(&self) -> bool {
        !matches!(self.end, End::Peaceful)
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The lines of the input that were acknowledged.
    pub acknowledged: Vec<usize>,
    /// What it said, where it ended by itself and not well.
    pub failed: Option<String>,
}

/// Runs a recorder, feeds it these lines and kills it as it was decided.
pub fn live(mut command: Command, lines: Vec<String>, end: End) -> Outcome {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let count = lines.len();
    let feeding = std::thread::spawn(move || {
        // Whoever is killed reads no further.
        let _ = lines.iter().try_for_each(|line| input.write_all(line.as_bytes()));
        // What is to be killed while it goes on must not see the end of its input.
        matches!(end, End::Started(_) | End::AtMessage(_)).then_some(input)
    });
    let mut acks = BufReader::new(output).lines().map_while(Result::ok);
    let mut acknowledged = Vec::new();
    match end {
        End::Started(wait) => std::thread::sleep(wait),
        End::AtMessage(count) => acknowledged.extend(acks.by_ref().take(count)),
        End::WhileEnding(wait) => {
            acknowledged.extend(acks.by_ref().take(count));
            std::thread::sleep(wait);
        }
        End::Peaceful => acknowledged.extend(acks.by_ref()),
    }
    if !matches!(end, End::Peaceful) {
        let _ = child.kill();
    }
    acknowledged.extend(acks);
    drop(feeding.join().unwrap());
    let done = child.wait_with_output().unwrap();
    let failed = done.status.code().filter(|code| *code != 0);
    let failed = failed.map(|code| format!("exit {code}: {}", String::from_utf8_lossy(&done.stderr)));
    // A line that is not whole was not said.
    let line = |ack: String| serde_json::from_str::<serde_json::Value>(&ack).ok()?["line"].as_u64();
    let lines = acknowledged.into_iter().filter_map(line).map(|line| usize::try_from(line).unwrap());
    Outcome { acknowledged: lines.collect(), failed }
}
