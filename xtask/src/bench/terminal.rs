//! Measures the time to the first screen of a command in a real terminal: `show` of a large session, `list` and the catalogue
//! of the finder with many sessions, `status` with hundreds of files. A program that does nothing runs in the same terminal, as
//! a baseline for comparisons between machines.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::goals::{Goals, median};
use super::{again_in_release, scale};
use crate::{Failure, corpus, synthetic, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// How many sessions the store has
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    sessions: u64,
    /// The size of the large session
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = corpus::size)]
    size: u64,
    /// How often each command is measured
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// The command to measure, instead of building one
    #[arg(long)]
    steno: Option<PathBuf>,
}

/// The number of sessions from today, which `status` reads.
const RECENT: u64 = 400;

const SCRIPT: &str = include_str!("first_screen.py");

/// Runs the benchmark on a release build, unless the options name another command.
pub fn terminal(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) && options.steno.is_none() {
        return again_in_release();
    }
    let steno = match &options.steno {
        Some(steno) => steno.canonicalize().map_err(|error| format!("{}: {error}", steno.display()))?,
        None => scale::built()?,
    };
    let folder = tempfile::tempdir_in(tree::root().join("target"))?;
    let ground = Ground { steno, home: folder.path().join("home"), store: folder.path().join("store") };
    ground.fill(options)?;
    ground.run(&["index"])?;
    let script = folder.path().join("first_screen.py");
    fs::write(&script, SCRIPT)?;
    let mut goals = Goals::default();
    let idle = ground.first_screen(&script, options.rounds, &["--version"])?;
    Goals::print("steno --version", idle, "ms");
    let large = ground.home.join(".claude/projects/-large/5e551000-0000-4000-8000-000000000000.jsonl");
    let large = large.display().to_string();
    for (name, arguments, most) in [
        ("show, an indexed session of 100 MB", vec!["show", "5e551000", "--no-pager"], 30.0),
        ("show, the same file by its path", vec!["show", large.as_str(), "--no-pager"], 30.0),
        ("list, 10,000 sessions", vec!["list", "--no-pager"], 30.0),
        ("status, 400 sessions of today", vec!["status"], 100.0),
        ("steno alone", vec![], 100.0),
    ] {
        goals.at_most(name, ground.first_screen(&script, options.rounds, &arguments)?, most, "ms");
    }
    goals.end()
}

struct Ground {
    steno: PathBuf,
    home: PathBuf,
    store: PathBuf,
}

impl Ground {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", &self.home).env("STENO_HOME", &self.store).env("TERM", "xterm").env("TZ", "UTC");
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<(), Failure> {
        let done = self.command(&self.steno).args(arguments).output()?;
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
        }
    }

    /// Writes many small sessions, a few of them new, and a large one.
    fn fill(&self, options: &Options) -> Result<(), Failure> {
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 60 * 60);
        for number in 0..options.sessions {
            let folder = self.home.join(format!(".claude/projects/-home-ada-{}", number % 50));
            fs::create_dir_all(&folder)?;
            let (id, text) = synthetic::small_session(number)?;
            let path = folder.join(format!("{id}.jsonl"));
            fs::write(&path, text)?;
            if number >= RECENT {
                File::options().write(true).open(&path)?.set_modified(old)?;
            }
        }
        let folder = self.home.join(".claude/projects/-large");
        fs::create_dir_all(&folder)?;
        let path = folder.join("5e551000-0000-4000-8000-000000000000.jsonl");
        let mut out = BufWriter::new(File::create(&path)?);
        synthetic::session(options.size, &mut out)?;
        out.flush()?;
        Ok(File::options().write(true).open(&path)?.set_modified(old)?)
    }

    /// The median time to the first screen, in milliseconds.
    fn first_screen(&self, script: &Path, rounds: usize, arguments: &[&str]) -> Result<f64, Failure> {
        let mut python = self.command(Path::new("python3"));
        python.arg(script).arg(rounds.to_string()).arg("24").arg(&self.steno).args(arguments);
        let done = python.output()?;
        let printed = String::from_utf8(done.stdout)?;
        let times: Vec<f64> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        if times.len() < rounds {
            return Err(format!("{}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr)).into());
        }
        Ok(median(times.into_iter()))
    }
}
