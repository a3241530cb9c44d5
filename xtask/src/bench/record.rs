//! Measures recording: events per second and the time to an acknowledgement at each policy, with one appender and with many,
//! against a bare loop of `write` and `fdatasync` on the same disk. Only ratios from one run mean anything on a shared machine,
//! so the variants take turns.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use stenograph::model::{Body, Content, Event, Role};
use stenograph::wire;
use stenograph_store::Recorder;
use stenograph_store::journal::RecordingEnd;
use stenograph_store::layouts::{Environment, Target, layout_named};
use stenograph_store::log::Durability;

use super::{Failure, again_in_release};
use crate::tree;

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// A folder on the disk to measure; the build folder by default
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How often each variant is measured
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// How many events each appender records per round if it waits for the disk
    #[arg(long, default_value_t = 100)]
    events: usize,
    /// How many events all appenders record per round if they do not wait for the disk
    #[arg(long, default_value_t = 100_000)]
    events_unsynced: usize,
}

const ONE_TARGET: f64 = 0.9;
const MANY_TARGET: f64 = 5.0;
const NEVER_TARGET: f64 = 300_000.0;

/// The number of appenders in the concurrent variants.
const MANY: usize = 16;

/// The approximate length of a line of the journal.
const LINE_SIZE: usize = 1_024;

/// The interval policy that is measured, the default of the command.
const INTERVAL: Durability = Durability::Interval(Duration::from_millis(200));

/// A way of writing events.
#[derive(Clone, Copy)]
enum Way {
    /// A loop that writes, and waits for the disk if the durability is `Always`.
    Bare(Durability),
    Recorder {
        durability: Durability,
        appenders: usize,
    },
}

/// The measurements of a way: the rate of every round, and all times from an append to its acknowledgement.
#[derive(Default)]
struct Measured {
    rates: Vec<f64>,
    waits: Vec<Duration>,
}

/// Runs the benchmark, in a release build.
pub fn record(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let folder = options.folder.clone().unwrap_or_else(|| tree::root().join("target"));
    fs::create_dir_all(&folder)?;
    let folder = tempfile::tempdir_in(&folder)?;
    let way = |durability, appenders| Way::Recorder { durability, appenders };
    let ways: [(&str, Way); 8] = [
        ("bare write, fdatasync", Way::Bare(Durability::Always)),
        ("bare write", Way::Bare(Durability::Never)),
        ("always, 1", way(Durability::Always, 1)),
        ("always, 16", way(Durability::Always, MANY)),
        ("interval, 1", way(INTERVAL, 1)),
        ("interval, 16", way(INTERVAL, MANY)),
        ("never, 1", way(Durability::Never, 1)),
        ("never, 16", way(Durability::Never, MANY)),
    ];
    println!("recording events of {LINE_SIZE} bytes in {}, {} rounds in turn", folder.path().display(), options.rounds);
    let mut measured: [Measured; 8] = Default::default();
    for round in 0..options.rounds.max(1) {
        for (number, ((_, way), measured)) in ways.iter().zip(&mut measured).enumerate() {
            let path = folder.path().join(format!("{round}-{number}.steno.jsonl"));
            one_round(*way, &path, options, measured)?;
            fs::remove_file(path)?;
        }
    }
    let [bare, unsynced, one, many, _, _, never, _] = &measured;
    let figures = [paired(one, bare), paired(many, bare), median(&never.rates), paired(never, unsynced)];
    report(&ways, &mut measured);
    let [one, many, never, allowed] = figures;
    let missed = target("always, 1 / bare", one, ONE_TARGET)
        + target("always, 16 / bare", many, MANY_TARGET)
        + target("never, 1, events/s", never, NEVER_TARGET);
    println!("{:<22} {allowed:>12.2}   for comparison", "never, 1 / bare write");
    if missed == 0 { Ok(()) } else { Err(format!("{missed} targets missed").into()) }
}

fn one_round(way: Way, path: &Path, options: &Options, measured: &mut Measured) -> Result<(), Failure> {
    let text = "x".repeat(LINE_SIZE - EVENT_OVERHEAD);
    let event = Event::new(Body::Message { role: Role::Assistant, content: Content::text(text.as_str()) });
    match way {
        Way::Bare(durability) => {
            let count = count(durability, 1, options);
            // Write the same bytes as a recorder, which adds the time to the event.
            let stamped = Event { time: Some((Environment::default().clock)()), ..event.clone() };
            let line = wire::event(&stamped) + "\n";
            let mut file = File::options().create_new(true).append(true).open(path)?;
            let start = Instant::now();
            for _ in 0..count {
                let append_start = Instant::now();
                file.write_all(line.as_bytes())?;
                if durability == Durability::Always {
                    file.sync_data()?;
                }
                measured.waits.push(append_start.elapsed());
            }
            measured.rates.push(count as f64 / start.elapsed().as_secs_f64());
        }
        Way::Recorder { durability, appenders } => {
            let layout = layout_named(wire::NAME).ok_or("there is no native layout")?;
            let target = Target { path: Some(path.to_owned()), ..Target::default() };
            let recorder = Recorder::open(layout, &target, Environment { durability, ..Environment::default() })?;
            let count = count(durability, appenders, options);
            let start = Instant::now();
            let waits = appended(&recorder, &event, appenders, count)?;
            measured.rates.push(waits.len() as f64 / start.elapsed().as_secs_f64());
            measured.waits.extend(waits);
            recorder.finish(&RecordingEnd::Completed)?;
        }
    }
    Ok(())
}

/// How many events each appender records in a round.
fn count(durability: Durability, appenders: usize, options: &Options) -> usize {
    match durability {
        Durability::Always => options.events,
        Durability::Interval(_) | Durability::Never => options.events_unsynced / appenders,
    }
}

/// The bytes of a line without the text of the event.
const EVENT_OVERHEAD: usize = 80;

/// Appends in several threads, and returns the duration of each append.
fn appended(recorder: &Recorder, event: &Event<'_>, appenders: usize, count: usize) -> Result<Vec<Duration>, Failure> {
    let one = || {
        let mut waits = Vec::with_capacity(count);
        for _ in 0..count {
            let append_start = Instant::now();
            recorder.append(event)?;
            waits.push(append_start.elapsed());
        }
        Ok::<_, stenograph_store::Error>(waits)
    };
    if appenders == 1 {
        return Ok(one()?);
    }
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..appenders).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut waits = Vec::new();
    for thread in all {
        waits.extend(thread.map_err(|_| "an appender panicked")??);
    }
    Ok(waits)
}

/// The ratio of two rates: the median over the rounds, because two variants in one round see the same load of the machine.
fn paired(way: &Measured, base: &Measured) -> f64 {
    let ratios: Vec<f64> = way.rates.iter().zip(&base.rates).map(|(way, base)| way / base).collect();
    median(&ratios)
}

fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the measurements.
fn report(ways: &[(&str, Way)], measured: &mut [Measured]) {
    println!("{:<22} {:>12} {:>12} {:>12} {:>12}", "", "best /s", "median /s", "p50 µs", "p99 µs");
    for ((name, _), Measured { rates, waits }) in ways.iter().zip(measured) {
        waits.sort();
        let (best, median) = (rates.iter().copied().fold(f64::NAN, f64::max), median(rates));
        let micros = |percent: usize| {
            let wait = waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)));
            wait.map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e6)
        };
        println!("{name:<22} {best:>12.0} {median:>12.0} {:>12.1} {:>12.1}", micros(50), micros(99));
    }
}

/// Prints a figure and its target, and returns 1 if it misses the target.
fn target(name: &str, figure: f64, target: f64) -> u64 {
    let missed = figure < target;
    let verdict = if missed { "MISSED" } else { "met" };
    println!("{name:<22} {figure:>12.2}   target {target}: {verdict}");
    u64::from(missed)
}
