//! Measures counting: `steno usage` from files and with an index, in turn with other installed counters and with `grep -rc`,
//! which only searches for a word. The files are in the page cache for all programs. The result must equal the independent
//! count of the tests, because the speed of a wrong count is meaningless.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;

use super::goals::{Goals, median};
use super::process::{run_and_measure, timed};
use super::{again_in_release, cargo};
use crate::{Failure, corpus, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// An existing tree of sessions to use as the home folder, instead of a new one made from the real files
    tree: Option<PathBuf>,
    /// The folder of real files to repeat under new ids, as a path from the repository
    #[arg(long, default_value = "../shared/corpus")]
    corpus: PathBuf,
    /// How large the tree becomes
    #[arg(long, default_value = "500MB", value_parser = corpus::size)]
    size: u64,
    /// How often each program counts
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The program `ccusage`, instead of the one on the path
    #[arg(long)]
    ccusage: Option<PathBuf>,
    /// The program `ccstat`, instead of the one on the path
    #[arg(long)]
    ccstat: Option<PathBuf>,
}

const TIME_OF_PEER: f64 = 0.5;
const TIME_OF_GREP: f64 = 1.5;
const PEAK_MB: f64 = 100.0;
const WARM_MS: f64 = 50.0;

/// A program that counts, and its times.
struct Counter {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    seconds: Vec<f64>,
}

/// Runs the benchmark, in a release build.
pub fn usage(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    if !cargo().args(["build", "--release", "--quiet", "--package", "stenograph-cli"]).status()?.success() {
        return Err("the command does not build".into());
    }
    let folder = tempfile::tempdir_in(tree::root().join("target"))?;
    let home = match &options.tree {
        Some(tree) => tree.canonicalize().map_err(|error| format!("{}: {error}", tree.display()))?,
        None => {
            let home = folder.path().join("tree");
            corpus::tree(&home, &tree::root().join(&options.corpus), options.size, 0)?;
            home
        }
    };
    let mut counters = counters(options, &home, folder.path());
    let [without, with] = [folder.path().join("none"), folder.path().join("store")];
    let mut index = steno(&with);
    index.args(["index", "--no-keep", "--root"]).arg(&home);
    // The index does not trust a file that changed within two seconds before it was read; real files are older.
    std::thread::sleep(std::time::Duration::from_secs(3));
    timed(&mut index)?;
    agree(&mut count(&without, &home), &home)?;
    for _ in 0..options.rounds.max(1) {
        for counter in &mut counters {
            counter.seconds.push(timed(&mut (counter.command)())?.1.as_secs_f64());
        }
    }
    let cost = run_and_measure(&mut count(&without, &home))?;
    report(&counters, f64::from(u32::try_from(cost.peak_kb)?) / 1000.0)
}

/// Prints the figures and their goals.
fn report(counters: &[Counter], peak_mb: f64) -> Result<(), Failure> {
    let mut goals = Goals::default();
    for counter in counters {
        Goals::print(counter.name, median(counter.seconds.iter().copied()) * 1e3, "ms");
    }
    let seconds = |name: &str| counters.iter().find(|counter| counter.name == name).map(|counter| &counter.seconds);
    let Some(ours) = seconds(FROM_FILES) else { return Err("nothing was counted".into()) };
    // Take the median of the ratios of each round, because noise in a round affects both programs.
    let ratio = |other: &Vec<f64>| median(ours.iter().zip(other).map(|(ours, other)| ours / other));
    for (name, most) in [(CCUSAGE, TIME_OF_PEER), (CCSTAT, TIME_OF_PEER), (GREP, TIME_OF_GREP)] {
        match seconds(name) {
            Some(other) => goals.at_most(&format!("time of {name}"), ratio(other), most, ""),
            None => println!("{name} is left out"),
        }
    }
    goals.at_most("peak memory", peak_mb, PEAK_MB, "MB");
    if let Some(warm) = seconds(FROM_INDEX) {
        goals.at_most(FROM_INDEX, median(warm.iter().copied()) * 1e3, WARM_MS, "ms");
    }
    goals.end()
}

const FROM_FILES: &str = "steno usage, from files";
const FROM_INDEX: &str = "steno usage, with an index";
const CCUSAGE: &str = "ccusage";
const CCSTAT: &str = "ccstat";
const GREP: &str = "grep -rc";

fn counters(options: &Options, home: &Path, folder: &Path) -> Vec<Counter> {
    let mut counters: Vec<Counter> = Vec::new();
    let mut add = |name: &'static str, command: Box<dyn Fn() -> Command>| {
        counters.push(Counter { name, command, seconds: Vec::new() });
    };
    let at = |folder: &Path, name: &str| (folder.join(name), home.to_owned());
    let (store, tree) = at(folder, "none");
    add(FROM_FILES, Box::new(move || count(&store, &tree)));
    let (store, tree) = at(folder, "store");
    add(FROM_INDEX, Box::new(move || count(&store, &tree)));
    let tree = home.to_owned();
    add(
        GREP,
        Box::new(move || {
            let mut command = Command::new("grep");
            command.args(["-rc", "\"usage\""]).arg(&tree);
            command
        }),
    );
    if let Some(program) = options.ccusage.clone().or_else(|| on_path("ccusage")) {
        let tree = home.to_owned();
        add(
            CCUSAGE,
            Box::new(move || {
                let mut command = peer(&program, &tree);
                command
                    .args(["daily", "--json", "--offline", "--by-agent"])
                    .env("CLAUDE_CONFIG_DIR", tree.join(".claude"));
                command
            }),
        );
    }
    if let Some(program) = options.ccstat.clone().or_else(|| on_path("ccstat")) {
        let tree = home.to_owned();
        add(
            CCSTAT,
            Box::new(move || {
                let mut command = peer(&program, &tree);
                // It requests prices over the network; a proxy that does not exist makes that fail immediately.
                command
                    .args(["daily", "--json", "--utc"])
                    .env("HTTPS_PROXY", "http://127.0.0.1:9")
                    .env("RUST_LOG", "off");
                command
            }),
        );
    }
    counters
}

fn peer(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("CODEX_HOME", home.join(".codex")).env("TZ", "UTC").env("NO_COLOR", "1");
    command
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn steno(store: &Path) -> Command {
    let mut command = Command::new(tree::root().join("target/release/steno"));
    command.env("STENO_HOME", store);
    command
}

fn count(store: &Path, home: &Path) -> Command {
    let mut command = steno(store);
    command.args(["usage", "--by", "agent", "--json", "--root"]).arg(home);
    command
}

/// Fails if the independent count differs by a token.
fn agree(ours: &mut Command, home: &Path) -> Result<(), Failure> {
    let script = tree::root().join("crates/stenograph-cli/tests/count/independent.py");
    let ours: Value = serde_json::from_slice(&timed(ours)?.0)?;
    let theirs: Value = serde_json::from_slice(&timed(Command::new("python3").arg(script).arg(home))?.0)?;
    let rows = ours.get("rows").and_then(Value::as_array).ok_or("steno usage says nothing")?;
    for (agent, counted) in theirs.as_object().into_iter().flatten() {
        let row = rows.iter().find(|row| row.get("agent").and_then(Value::as_str) == Some(agent));
        for (name, number) in counted.as_object().into_iter().flatten() {
            let own = row.and_then(|row| row.get(name)).and_then(Value::as_u64).unwrap_or(0);
            if Some(own) != number.as_u64() {
                return Err(format!("{agent}: {name} is {own} here and {number} by the independent count").into());
            }
        }
    }
    println!("the independent count says the same, to the token");
    Ok(())
}
