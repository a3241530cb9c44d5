//! One run of the recorder, and when it is killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Life {
    /// The lengths of its messages.
    pub lengths: Vec<usize>,
    pub end: End,
}

#[derive(Clone, Copy, Debug)]
pub enum End {
    /// This long after its start.
    Started(Duration),
    /// When it has acknowledged this many messages.
    AtMessage(usize),
    /// This long after the end of its input, while it finishes.
    WhileEnding(Duration),
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

#[derive(Debug)]
pub struct Outcome {
    /// The acknowledged lines of the input.
    pub acknowledged: Vec<usize>,
    /// Its messages, if it ended by itself with an error.
    pub failed: Option<String>,
}

/// Runs a recorder, feeds it these lines and kills it as planned.
pub fn live(mut command: Command, lines: Vec<String>, end: End) -> Outcome {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let count = lines.len();
    let feeding = std::thread::spawn(move || {
        // A killed process reads no further.
        let _ = lines.iter().try_for_each(|line| input.write_all(line.as_bytes()));
        // A process to be killed while it records must not see the end of its input.
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
    // An incomplete line does not count.
    let line = |ack: String| serde_json::from_str::<serde_json::Value>(&ack).ok()?["line"].as_u64();
    let lines = acknowledged.into_iter().filter_map(line).map(|line| usize::try_from(line).unwrap());
    Outcome { acknowledged: lines.collect(), failed }
}
