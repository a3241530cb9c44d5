//! Measures redaction: its speed on the real files against a plain read of the same bytes, in one run on one thread.

use std::hint::black_box;
use std::io::{Cursor, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use stenograph::redact::{RecordSyntax, RedactionSettings, Redactor, SourceRedactor};

use super::{again_in_release, corpus};
use crate::{Failure, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The folder of real files to redact
    #[arg(long, default_value = "../shared/corpus/claude-code")]
    corpus: PathBuf,
    /// How often each way is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

const TARGET_MB: f64 = 200.0;

/// The size of the chunks that the redactor gets, the same as in commands.
const CHUNK_SIZE: usize = 256 << 10;

/// Runs the benchmark, in a release build.
pub fn redact(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let bytes = corpus(&tree::root().join(&options.corpus))?;
    let megabytes = bytes.len() as f64 / 1e6;
    println!("redacting {megabytes:.1} MB, one thread, {} interleaved rounds", options.rounds);
    let redactor = Redactor::new(&RedactionSettings::default(), [0; 32])?;
    let ways: [(&str, &dyn Fn() -> u64); 2] =
        [("plain read", &|| plain(&bytes)), ("redact", &|| redacted(&redactor, &bytes))];
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..options.rounds.max(1) {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(way());
            times.push(start.elapsed());
        }
    }
    println!("{:<12} {:>12} {:>12}", "", "best MB/s", "median MB/s");
    let mut best = 0.0;
    for ((name, _), times) in ways.iter().zip(&mut times) {
        times.sort();
        let rate = |time: Option<&Duration>| megabytes / time.map_or(f64::NAN, Duration::as_secs_f64);
        best = rate(times.first());
        println!("{name:<12} {best:>12.0} {:>12.0}", rate(times.get(times.len() / 2)));
    }
    println!("{} findings", redacted(&redactor, &bytes));
    if best >= TARGET_MB { Ok(()) } else { Err(format!("below the goal of {TARGET_MB} MB/s").into()) }
}

fn plain(bytes: &[u8]) -> u64 {
    let (mut input, mut buffer, mut sum) = (Cursor::new(bytes), vec![0; CHUNK_SIZE], 0);
    while let Ok(length) = input.read(&mut buffer) {
        if length == 0 {
            break;
        }
        sum += length as u64;
        black_box(&buffer);
    }
    sum
}

fn redacted(redactor: &Redactor, bytes: &[u8]) -> u64 {
    let mut pass = SourceRedactor::new(redactor, RecordSyntax::Json);
    bytes.chunks(CHUNK_SIZE).for_each(|chunk| pass.feed(chunk, &mut ()));
    pass.end(&mut ()).0.total()
}
