//! Measures reading: its speed against building a `serde_json::Value` per line, in one run on one thread, and the peak memory
//! of the command on a large file. Only ratios from one run mean anything on a shared machine. Recording is in
//! `bench/record.rs`, databases in `bench/database.rs`, the store in `bench/store.rs`, counting in `bench/usage.rs`, growth in `bench/scale.rs`, redaction in `bench/redact.rs`, the first screen in `bench/terminal.rs`.

pub mod database;
mod goals;
mod process;
pub mod record;
pub mod redact;
pub mod scale;
pub mod store;
pub mod terminal;
pub mod usage;
pub mod view;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use stenograph::Registry;
use stenograph::format::{Format, Wanted};
use stenograph::model::{Body, Content, Event, Input};
use stenograph::read::{Reading, Sink};

use crate::{Failure, synthetic, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The folder of real files to read
    #[arg(long, default_value = "../shared/corpus/claude-code")]
    corpus: PathBuf,
    /// The format of the files
    #[arg(long, default_value = "claude-code")]
    format: String,
    /// How often each way of reading is measured
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The size of the large file for peak memory, in MB; 0 leaves it out
    #[arg(long, default_value_t = 2048)]
    large_mb: u64,
    /// The format the large file is converted to
    #[arg(long, default_value = "codex")]
    to: String,
}

const FULL_TARGET: f64 = 1.5;
const USAGE_TARGET: f64 = 4.0;
const PEAK_TARGET_MB: u64 = 150;

/// Runs the benchmark, in a release build.
pub fn read(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let format = Registry::built_in()
        .named(&options.format)
        .ok_or_else(|| format!("there is no format {} yet", options.format))?;
    let missed = speed(format, options)? + memory(options)?;
    if missed == 0 { Ok(()) } else { Err(format!("{missed} targets missed").into()) }
}

/// Runs this task again in a release build: times of a debug build are meaningless.
pub fn again_in_release() -> Result<(), Failure> {
    let status = cargo()
        .args(["run", "--release", "--quiet", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()?;
    if status.success() { Ok(()) } else { Err("the benchmark did not end well".into()) }
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(tree::root());
    cargo
}

fn speed(format: &'static dyn Format, options: &Options) -> Result<u64, Failure> {
    let bytes = corpus(&tree::root().join(&options.corpus))?;
    let megabytes = bytes.len() as f64 / 1e6;
    println!("reading {megabytes:.1} MB as {}, one thread, {} interleaved rounds", options.format, options.rounds);
    let ways: [(&str, &dyn Fn() -> u64); 3] = [
        ("a value per line", &|| values(&bytes)),
        ("full, text decoded", &|| full(format, &bytes)),
        ("usage only", &|| usage(format, &bytes)),
    ];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..options.rounds.max(1) {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(way());
            times.push(start.elapsed());
        }
    }
    let mut rates = Vec::new();
    println!("{:<20} {:>12} {:>12}", "", "best MB/s", "median MB/s");
    for ((name, _), times) in ways.iter().zip(&mut times) {
        times.sort();
        let rate = |time: Option<&Duration>| megabytes / time.map_or(f64::NAN, Duration::as_secs_f64);
        let (best, median) = (rate(times.first()), rate(times.get(times.len() / 2)));
        println!("{name:<20} {best:>12.0} {median:>12.0}");
        rates.push((best, median));
    }
    let [base, full, usage] = rates.as_slice() else { return Err("no round was run".into()) };
    Ok(ratio("full / value", *full, *base, FULL_TARGET) + ratio("usage / value", *usage, *base, USAGE_TARGET))
}

/// Prints a ratio and its target, and returns 1 if the median misses it.
fn ratio(name: &str, way: (f64, f64), base: (f64, f64), target: f64) -> u64 {
    let (best, median) = (way.0 / base.0, way.1 / base.1);
    let missed = median < target;
    let verdict = if missed { "MISSED" } else { "met" };
    println!("{name:<20} {best:>11.2}x {median:>11.2}x   target {target}: {verdict}");
    u64::from(missed)
}

/// The contents of all files of a folder, concatenated.
fn corpus(folder: &Path) -> Result<Vec<u8>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut bytes = Vec::new();
    for file in files {
        bytes.extend(fs::read(file)?);
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
    }
    if bytes.is_empty() { Err(format!("no files in {}", folder.display()).into()) } else { Ok(bytes) }
}

fn values(bytes: &[u8]) -> u64 {
    let values = bytes.split(|byte| *byte == b'\n').map(serde_json::from_slice::<serde_json::Value>);
    values.flatten().inspect(|value| _ = black_box(value)).count() as u64
}

fn full(format: &dyn Format, bytes: &[u8]) -> u64 {
    let mut sink = Hashing(0);
    drive(format, Wanted::All, bytes, &mut sink);
    sink.0
}

fn usage(format: &dyn Format, bytes: &[u8]) -> u64 {
    let mut sink = CallCounter(0);
    drive(format, Wanted::Usage, bytes, &mut sink);
    sink.0
}

/// The size of the chunks that the reader gets, the same as in the command.
const CHUNK_SIZE: usize = 256 << 10;

fn drive(format: &dyn Format, want: Wanted, bytes: &[u8], sink: &mut dyn Sink) {
    let mut reading = Reading::new(format, want);
    bytes.chunks(CHUNK_SIZE).for_each(|chunk| reading.feed(chunk, sink));
    reading.end(sink);
}

/// Decodes and hashes every text.
struct Hashing(u64);

impl Sink for Hashing {
    fn event(&mut self, event: &Event<'_>) {
        let texts = event.content().into_iter().flat_map(Content::texts);
        texts.for_each(|text| self.0 ^= text.hash());
        match &event.body {
            Body::ToolCall { input: Input::Text(text), .. } | Body::Other { bytes: Some(text), .. } => {
                self.0 ^= text.hash();
            }
            Body::ToolCall { input, .. } => self.0 ^= input.to_text().hash(),
            _ => {}
        }
    }
}

/// Adds up tokens.
struct CallCounter(u64);

impl Sink for CallCounter {
    fn event(&mut self, event: &Event<'_>) {
        self.0 += event.usage.and_then(|usage| usage.output).unwrap_or(0);
    }
}

fn memory(options: &Options) -> Result<u64, Failure> {
    if options.large_mb == 0 {
        return Ok(0);
    }
    let built = cargo().args(["build", "--release", "--quiet", "--package", "stenograph-cli"]).status()?;
    if !built.success() {
        return Err("the command does not build".into());
    }
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("large.jsonl"), folder.path().join("converted.jsonl"));
    let mut file = BufWriter::new(File::create(&input)?);
    let records = synthetic::session(options.large_mb << 20, &mut file)?;
    file.flush()?;
    drop(file);
    println!("\npeak memory on a file of {} MB, {records} records", options.large_mb);
    let (input, output) = (input.as_os_str(), output.as_os_str());
    let check = [["check"].as_ref().iter().map(std::ffi::OsStr::new).collect::<Vec<_>>(), vec![input]].concat();
    let mut convert = vec![std::ffi::OsStr::new("convert"), input];
    convert.extend(["--to", &options.to, "-o"].map(std::ffi::OsStr::new));
    convert.push(output);
    Ok(peak("check", &check)? + peak("convert", &convert)?)
}

/// Runs the command and prints its peak memory. Returns 1 if that exceeds the target.
fn peak(name: &str, arguments: &[&std::ffi::OsStr]) -> Result<u64, Failure> {
    let command = std::env::current_exe()?.with_file_name("steno");
    let start = Instant::now();
    let mut child = Command::new(command).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kb = 0;
    let status = loop {
        // The kernel's high-water mark never decreases, so the last sample before the process ends is the peak.
        peak_kb = high_water(&status_file).unwrap_or(0).max(peak_kb);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if status.code().is_none_or(|code| code > 1) {
        return Err(format!("steno {name} ended with {status}").into());
    }
    if peak_kb == 0 {
        return Err("this system does not tell how much memory a process held".into());
    }
    let peak_mb = peak_kb.div_ceil(1024);
    let missed = peak_mb > PEAK_TARGET_MB;
    let verdict = if missed { "MISSED" } else { "met" };
    println!(
        "{name:<20} {peak_mb:>9} MB {:>11.1} s   target {PEAK_TARGET_MB} MB: {verdict}",
        start.elapsed().as_secs_f64()
    );
    Ok(u64::from(missed))
}

fn high_water(status_file: &str) -> Option<u64> {
    let status = fs::read_to_string(status_file).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
