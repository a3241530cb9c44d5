//! Measures the store: the time to index a tree of sessions and the size of the index, the time to index an unchanged tree and
//! one more line, and the time of queries in process and as whole commands. The same run measures `rg` and other installed
//! programs. Only ratios from one run mean anything on a shared machine, so the programs take turns.

mod in_process;
mod peers;
pub mod queries;
mod query_times;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use super::goals::{Goals, median, percentile};
use super::process::{RunCost, run_and_measure, timed};
use super::{again_in_release, cargo};
use crate::{Failure, corpus, tree};
use in_process::Order;
use peers::{Installed, Peer};
use queries::{Kind, Query};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The folder of real files to repeat under new ids, as a path from the repository
    #[arg(default_value = "../shared/corpus")]
    corpus: PathBuf,
    /// How large the tree becomes
    #[arg(long, default_value = "500MB", value_parser = corpus::size)]
    size: u64,
    /// An existing tree, such as `cargo xtask corpus` makes, instead of a new one
    #[arg(long)]
    tree: Option<PathBuf>,
    /// A folder on the disk to measure; the build folder by default
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How often the whole tree is indexed from an empty store
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How often each query runs as a whole command; in process it runs more often
    #[arg(long, default_value_t = 5)]
    asks: usize,
    /// The memory `steno index` may use, in MB
    #[arg(long, default_value_t = 256)]
    memory_mb: u64,
    /// Measure no other programs
    #[arg(long)]
    alone: bool,
}

const TIME_OF_AGENTSVIEW: f64 = 1.0 / 3.0;
const INDEX_OF_SOURCE: f64 = 0.35;
const ARCHIVE_OF_SOURCE: f64 = 0.15;
const UNCHANGED_S: f64 = 0.1;
const APPEND_MS: f64 = 50.0;

/// The program, the input and the folders of the benchmark.
struct Setup {
    steno: PathBuf,
    home: PathBuf,
    tree: PathBuf,
    bytes: u64,
    memory_mb: u64,
    /// A session that the benchmark adds to the tree, and appends lines to.
    session: PathBuf,
}

/// Runs the benchmark, in a release build.
pub fn store(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    if !cargo().args(["build", "--release", "--quiet", "--package", "stenograph-cli"]).status()?.success() {
        return Err("the command does not build".into());
    }
    let folder = options.folder.clone().unwrap_or_else(|| tree::root().join("target"));
    fs::create_dir_all(&folder)?;
    let folder = tempfile::tempdir_in(&folder)?;
    let setup = Setup::new(options, folder.path())?;
    let measured = measure(&setup, options, folder.path());
    fs::remove_file(&setup.session)?;
    setup.session.parent().map_or(Ok(()), fs::remove_dir)?;
    measured
}

fn measure(setup: &Setup, options: &Options, folder: &Path) -> Result<(), Failure> {
    let peers: Vec<Installed> = match options.alone {
        true => Vec::new(),
        false => Peer::ALL.iter().filter_map(|peer| peer.installed(&setup.tree, folder)).collect(),
    };
    for peer in Peer::ALL.iter().filter(|peer| !peers.iter().any(|installed| installed.peer == **peer)) {
        println!("{} is left out", peer.name());
    }
    let mut goals = Goals::default();
    full(setup, &peers, options, &mut goals)?;
    unchanged(setup, &peers, &mut goals)?;
    appended(setup, &mut goals)?;
    query_times::measure(setup, &peers, options, &mut goals)?;
    goals.end()
}

impl Setup {
    fn new(options: &Options, folder: &Path) -> Result<Setup, Failure> {
        let tree = match &options.tree {
            Some(tree) => tree.canonicalize().map_err(|error| format!("{}: {error}", tree.display()))?,
            None => {
                let tree = folder.join("tree");
                corpus::tree(&tree, &tree::root().join(&options.corpus), options.size, 0)?;
                tree
            }
        };
        let session = tree.join(".claude/projects/-home-ada-measured/5e55100b-0000-4000-8000-000000000000.jsonl");
        if let Some(parent) = session.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = File::create_new(&session).map_err(|error| format!("{}: {error}", session.display()))?;
        (0..64).try_for_each(|number| file.write_all(line(number, "wheel").as_bytes()))?;
        let mut files = Vec::new();
        queries::files_below(&tree, &mut files)?;
        let bytes = warm(&files)?;
        println!("a tree of {:.1} MB in {} files", bytes as f64 / 1e6, files.len());
        let steno = std::env::current_exe()?.with_file_name("steno");
        Ok(Setup { steno, home: folder.join("steno"), tree, bytes, memory_mb: options.memory_mb, session })
    }

    fn megabytes(&self) -> f64 {
        self.bytes as f64 / 1e6
    }

    fn steno(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.steno);
        command.args(arguments).arg("--root").arg(&self.tree).env("STENO_HOME", &self.home);
        command
    }

    /// Deletes the index and the archive.
    fn empty(&self) -> Result<(), Failure> {
        if self.home.exists() {
            fs::remove_dir_all(&self.home)?;
        }
        Ok(())
    }

    fn find(&self, kind: &Kind, query: &Query) -> Command {
        let mut command = self.steno(&["find", "--limit", "20"]);
        match kind.order {
            Order::Best => {}
            Order::Newest => _ = command.arg("--newest"),
        }
        command.args(["--", &query.text]);
        command
    }

    fn index(&self) -> Command {
        self.steno(&["index", "--memory", &format!("{}MB", self.memory_mb)])
    }
}

/// Reads all files once to fill the page cache, and returns their total size in bytes.
fn warm(files: &[PathBuf]) -> Result<u64, Failure> {
    let (mut total, mut part) = (0, vec![0; 1 << 20]);
    for file in files {
        let mut file = File::open(file)?;
        loop {
            match file.read(&mut part)? {
                0 => break,
                count => total += count as u64,
            }
        }
    }
    Ok(total)
}

/// A line for the session of the benchmark.
fn line(number: u64, word: &str) -> String {
    let (minutes, seconds) = (number / 60 % 60, number % 60);
    format!(
        "{{\"parentUuid\":null,\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/ada/measured\",\
         \"sessionId\":\"5e55100b-0000-4000-8000-000000000000\",\"version\":\"2.1.0\",\"gitBranch\":\"main\",\"type\":\"user\",\
         \"message\":{{\"role\":\"user\",\"content\":\"Turn the {word} once more, {number}.\"}},\
         \"uuid\":\"5e55100b-0000-4000-8001-{number:012x}\",\"timestamp\":\"2026-01-01T00:{minutes:02}:{seconds:02}.000Z\"}}\n"
    )
}

/// Measures indexing the whole tree from an empty store, with all programs in turn.
fn full(setup: &Setup, peers: &[Installed], options: &Options, goals: &mut Goals) -> Result<(), Failure> {
    let (mut own, mut bare) = (Vec::new(), Vec::new());
    let mut theirs: Vec<Vec<RunCost>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.rounds.max(1) {
        setup.empty()?;
        bare.push(run_and_measure(setup.index().arg("--no-keep"))?);
        setup.empty()?;
        own.push(run_and_measure(&mut setup.index())?);
        for (peer, cost) in peers.iter().zip(&mut theirs) {
            cost.push(peer.full()?);
        }
    }
    println!(
        "\n{:<24} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "everything, from nothing", "s", "CPU s", "MB/s", "peak MB", "own MB"
    );
    row("steno index", &own, setup.megabytes());
    row("steno index --no-keep", &bare, setup.megabytes());
    for (peer, cost) in peers.iter().zip(&theirs) {
        row(peer.peer.name(), cost, setup.megabytes());
    }
    println!();
    for (peer, cost) in peers.iter().zip(&theirs) {
        let ratio = |time: fn(&RunCost) -> Duration| {
            median(own.iter().zip(cost).map(|(own, cost)| time(own).as_secs_f64() / time(cost).as_secs_f64()))
        };
        let name = format!("time of steno / {}", peer.peer.name());
        match peer.peer {
            Peer::Agentsview => goals.at_most(&name, ratio(|cost| cost.wall), TIME_OF_AGENTSVIEW, "x"),
            Peer::Agtrace => Goals::print(&name, ratio(|cost| cost.wall), "x"),
        }
        Goals::print(&format!("CPU time of steno / {}", peer.peer.name()), ratio(|cost| cost.processor), "x");
        Goals::print(
            &format!("what {} keeps / source", peer.peer.name()),
            peer.size()? as f64 / setup.bytes as f64,
            "x",
        );
    }
    let share = |part: &str| Ok::<_, Failure>(size_below(&setup.home.join(part))? as f64 / setup.bytes as f64);
    goals.at_most("index / source", share("index")?, INDEX_OF_SOURCE, "x");
    goals.at_most("archive / source", share("archive")?, ARCHIVE_OF_SOURCE, "x");
    let own_mb = own.iter().map(|cost| cost.own_kb).max().unwrap_or(0) as f64 / 1024.0;
    goals.at_most("memory of its own while indexing", own_mb, setup.memory_mb as f64, "MB");
    Ok(())
}

fn row(name: &str, cost: &[RunCost], megabytes: f64) {
    let middle = |figure: &dyn Fn(&RunCost) -> f64| median(cost.iter().map(figure));
    let wall = middle(&|cost| cost.wall.as_secs_f64());
    let most = |figure: fn(&RunCost) -> u64| cost.iter().map(figure).max().unwrap_or(0).div_ceil(1024);
    println!(
        "{name:<24} {wall:>9.2} {:>9.2} {:>9.1} {:>9} {:>9}",
        middle(&|cost| cost.processor.as_secs_f64()),
        megabytes / wall,
        most(|cost| cost.peak_kb),
        most(|cost| cost.own_kb)
    );
}

/// The size of the files of a folder in bytes; 0 if the folder does not exist.
fn size_below(folder: &Path) -> Result<u64, Failure> {
    let mut files = Vec::new();
    if folder.is_dir() {
        queries::files_below(folder, &mut files)?;
    }
    let sizes = files.iter().map(|file| file.metadata().map(|metadata| metadata.len()));
    Ok(sizes.sum::<Result<u64, _>>()?)
}

/// How often short operations are measured.
const QUICK_ROUNDS: usize = 15;

/// Measures indexing when nothing changed.
fn unchanged(setup: &Setup, peers: &[Installed], goals: &mut Goals) -> Result<(), Failure> {
    let mut own = Vec::new();
    let mut theirs: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for round in 0..QUICK_ROUNDS {
        own.push(timed(&mut setup.index())?.1.as_secs_f64());
        for (peer, times) in peers.iter().zip(&mut theirs).filter(|_| round < PEER_ROUNDS) {
            times.push(peer.again()?.wall.as_secs_f64());
        }
    }
    println!();
    Goals::print("steno index, nothing changed, at best", own.iter().copied().fold(f64::NAN, f64::min), "s");
    goals.at_most("steno index, nothing changed", median(own.into_iter()), UNCHANGED_S, "s");
    for (peer, times) in peers.iter().zip(theirs) {
        Goals::print(&format!("{}, nothing changed", peer.peer.name()), median(times.into_iter()), "s");
    }
    Ok(())
}

const PEER_ROUNDS: usize = 3;

/// Measures the time from appending a line until a search finds it.
fn appended(setup: &Setup, goals: &mut Goals) -> Result<(), Failure> {
    let mut session = File::options().append(true).open(&setup.session)?;
    let mut write = |number: u64| {
        let word = format!("lever{number:05}");
        session.write_all(line(number, &word).as_bytes()).map(|()| word)
    };
    println!();
    Goals::print("a bare write and sync on this disk", percentile(&synced(&setup.home)?, 50), "ms");
    let in_process = in_process::appended(&setup.home, &setup.tree, &setup.session, QUICK_ROUNDS, &mut write)?;
    Goals::print("one line more to found, in process, at best", percentile(&in_process, 0), "ms");
    goals.at_most("one line more to found, in process", percentile(&in_process, 50), APPEND_MS, "ms");
    let watched = watching(setup, &mut write)?;
    goals.at_most("one line more to found, with --watch", percentile(&watched, 50), APPEND_MS, "ms");
    let mut commands = Vec::new();
    for number in 0..QUICK_ROUNDS as u64 {
        let word = write(10_000 + number)?;
        let (_, indexed) = timed(&mut setup.index())?;
        let (found, searched) = timed(setup.steno(&["find", "--json"]).arg(&word))?;
        if found.is_empty() {
            return Err(format!("{word} was added and is not found").into());
        }
        commands.push(indexed + searched);
    }
    Goals::print("one line more, steno index and steno find", percentile(&commands, 50), "ms");
    Ok(())
}

/// Measures the minimum cost of waiting for the disk: writing and syncing one line.
fn synced(folder: &Path) -> Result<Vec<Duration>, Failure> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::new();
    for number in 0..QUICK_ROUNDS as u64 {
        let start = Instant::now();
        file.write_all(line(number, "wheel").as_bytes())?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Measures the time from appending a line until a search finds it, while another process watches the tree.
fn watching(setup: &Setup, write: &mut dyn FnMut(u64) -> std::io::Result<String>) -> Result<Vec<Duration>, Failure> {
    let mut index = setup.index();
    let quiet = index.arg("--watch").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn()?;
    let mut times = Vec::new();
    let mut measured = || {
        for number in 0..=QUICK_ROUNDS as u64 {
            let word = write(5_000 + number)?;
            let start = Instant::now();
            while !in_process::is_found(&setup.home, &word)? {
                if start.elapsed() > TIMEOUT {
                    return Err(format!("{word} was added and is not found").into());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // The first line includes the time until the watch starts, so do not count it.
            if number > 0 {
                times.push(start.elapsed());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    };
    let measured: Result<(), Failure> = measured();
    child.kill()?;
    child.wait()?;
    measured.map(|()| times)
}

/// The longest time until a watcher indexes a line, and the pause between two lines.
const TIMEOUT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(300);
