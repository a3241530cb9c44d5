//! Measures pages: the time of `steno export --to html` for a real session, in turn with other installed programs that write
//! pages, the size of the page, and the memory that a very large session takes. `server.rs` measures the viewer.

mod client;
mod server;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::goals::{Goals, median};
use super::process::{run_and_measure, timed};
use super::{again_in_release, scale};
use crate::{Failure, corpus, synthetic, tree};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The session to export, as a path from the repository
    #[arg(
        long,
        default_value = "../shared/corpus/claude-code/entireio+git-sync/d0406407-d612-489d-b375-1372d062af82.jsonl"
    )]
    session: PathBuf,
    /// The size of the very large session
    #[arg(long, value_name = "SIZE", default_value = "300MB", value_parser = corpus::size)]
    size: u64,
    /// How often each program writes
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The command to measure, instead of building one
    #[arg(long)]
    steno: Option<PathBuf>,
    /// The program `claude-replay`, instead of the one on the path
    #[arg(long, default_value = "claude-replay")]
    claude_replay: PathBuf,
    /// The program `claude-code-log`, instead of the one on the path
    #[arg(long, default_value = "claude-code-log")]
    claude_code_log: PathBuf,
    /// The program `claude-code-transcripts`, instead of the one on the path
    #[arg(long, default_value = "claude-code-transcripts")]
    claude_code_transcripts: PathBuf,
    /// Measure only the viewer, or only pages
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// The size of the tree that the viewer searches
    #[arg(long, value_name = "SIZE", default_value = "500MB", value_parser = corpus::size)]
    tree_size: u64,
    /// The size of the session that the viewer opens
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = corpus::size)]
    session_size: u64,
    /// How many sessions the viewer lists
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    sessions: u64,
    /// How long the viewer is idle
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u64,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Pages,
    Viewer,
}

/// The largest time of `steno`, as a fraction of the time of the fastest other program: without and with `--redact`.
const TIME_OF_PEER: f64 = 1.0 / 6.0;
const REDACTED_TIME_OF_PEER: f64 = 1.0 / 3.0;

/// The largest memory for a session of any size: the largest page in one file, its outline, and a sample of each event.
const PEAK_MB: f64 = 120.0;

/// Runs the benchmark on a release build, unless the options name another command.
pub fn view(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) && options.steno.is_none() {
        return again_in_release();
    }
    let steno = match &options.steno {
        Some(steno) => steno.canonicalize().map_err(|error| format!("{}: {error}", steno.display()))?,
        None => scale::built()?,
    };
    let folder = tempfile::tempdir_in(tree::root().join("target"))?;
    let mut goals = Goals::default();
    if options.only != Some(Only::Viewer) {
        pages(options, &steno, folder.path(), &mut goals)?;
    }
    if options.only != Some(Only::Pages) {
        server::measure(options, &steno, folder.path(), &mut goals)?;
    }
    goals.end()
}

/// Measures the pages that `steno export` writes.
fn pages(options: &Options, steno: &Path, folder: &Path, goals: &mut Goals) -> Result<(), Failure> {
    let session = tree::root().join(&options.session);
    let source = fs::metadata(&session).map_err(|error| format!("{}: {error}", session.display()))?.len();
    let out = folder.join("page.html");
    let ours = || export(steno, &session, &out);
    let redacted = || {
        let mut command = export(steno, &session, &folder.join("redacted.html"));
        command.arg("--redact");
        command
    };
    let peers = [
        ("claude-replay", peer(&options.claude_replay, &session, &["-o"], &folder.join("replay.html"))),
        ("claude-code-log", peer(&options.claude_code_log, &session, &["-o"], &folder.join("log.html"))),
        (
            "claude-code-transcripts",
            peer(&options.claude_code_transcripts, Path::new("json"), &[], &session).with_output(folder),
        ),
    ];
    let (mut own, mut own_redacted): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut others: Vec<(&str, Vec<f64>)> = Vec::new();
    for (name, peer) in &peers {
        match timed(&mut peer.command()) {
            Ok(_) => others.push((*name, Vec::new())),
            Err(failure) => println!("{name} is left out: {failure}"),
        }
    }
    timed(&mut ours())?;
    timed(&mut redacted())?;
    for _ in 0..options.rounds.max(1) {
        own.push(timed(&mut ours())?.1.as_secs_f64());
        own_redacted.push(timed(&mut redacted())?.1.as_secs_f64());
        for (name, seconds) in &mut others {
            let Some((_, peer)) = peers.iter().find(|(peer, _)| peer == name) else { continue };
            seconds.push(timed(&mut peer.command())?.1.as_secs_f64());
        }
    }
    Goals::print("steno export --to html", median(own.iter().copied()) * 1e3, "ms");
    Goals::print("steno export --to html --redact", median(own_redacted.iter().copied()) * 1e3, "ms");
    for (name, seconds) in &others {
        Goals::print(name, median(seconds.iter().copied()) * 1e3, "ms");
        let ratio = |own: &[f64]| median(own.iter().zip(seconds).map(|(own, other)| own / other));
        goals.at_most(&format!("time of {name}"), ratio(&own), TIME_OF_PEER, "");
        goals.at_most(&format!("time of {name}, redacted"), ratio(&own_redacted), REDACTED_TIME_OF_PEER, "");
    }
    let size = |path: &Path| fs::metadata(path).map_or(0.0, |found| found.len() as f64);
    Goals::print("size of the page, to its source", size(&out) / source as f64, "");
    large(options, steno, folder, goals)
}

/// Measures the memory and time of a very large session.
fn large(options: &Options, steno: &Path, folder: &Path, goals: &mut Goals) -> Result<(), Failure> {
    let path = folder.join("large.jsonl");
    let mut file = BufWriter::new(File::create(&path)?);
    synthetic::session(options.size, &mut file)?;
    file.flush()?;
    let ran = run_and_measure(&mut export(steno, &path, &folder.join("large.html")))?;
    Goals::print("a very large session", ran.wall.as_secs_f64(), "s");
    goals.at_most("its peak memory", ran.own_kb as f64 / 1e3, PEAK_MB, "MB");
    Ok(())
}

fn export(steno: &Path, session: &Path, out: &Path) -> Command {
    let mut command = Command::new(steno);
    command.args(["export", "--to", "html", "--force", "-o"]).arg(out).arg(session);
    command
}

/// Another program that writes a page.
struct Peer {
    program: PathBuf,
    arguments: Vec<PathBuf>,
}

fn peer(program: &Path, first: &Path, options: &[&str], last: &Path) -> Peer {
    let arguments = std::iter::once(first.to_owned()).chain(options.iter().map(PathBuf::from));
    Peer { program: program.to_owned(), arguments: arguments.chain([last.to_owned()]).collect() }
}

impl Peer {
    fn with_output(mut self, folder: &Path) -> Peer {
        self.arguments.extend([PathBuf::from("-o"), folder.join("transcripts")]);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}
