//! Measures how the cost of each command grows with the number of sessions and with the size of a single file. Every command
//! runs as a process, as users run it. It flags commands that grow faster than their input, use more memory than promised, or
//! make users wait who expect an immediate answer.

mod commands;
mod table;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::goals::median;
use super::process::{RunCost, run_and_measure, timed};
use super::{again_in_release, cargo};
use crate::{Failure, corpus, measurements, synthetic, tree};
use commands::{Measured, Setup};
use table::{Cell, Row};

/// What to measure.
#[derive(Args, Debug)]
pub struct Options {
    /// The numbers of sessions in the trees
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [400, 2_000, 10_000])]
    sessions: Vec<u64>,
    /// The sizes of the single files
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_values = ["10MB", "100MB", "1GB"], value_parser = corpus::size)]
    sizes: Vec<u64>,
    /// The folder of real files for the trees, as a path from the repository
    #[arg(long, default_value = "../shared/corpus")]
    corpus: PathBuf,
    /// A folder on the disk to measure; needs space for three times the input
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The command to measure, instead of building one
    #[arg(long)]
    steno: Option<PathBuf>,
    /// Measure only commands whose name contains this (indexing is always part of it)
    #[arg(long)]
    only: Option<String>,
    /// Write the tables into docs/measurements.md
    #[arg(long)]
    write: bool,
}

/// The largest session in a tree: the benchmark measures large files separately.
const SESSION_SIZE_MAX: usize = 512 << 10;

/// Commands that take less than this are measured three times.
const QUICK_S: f64 = 1.0;

/// Runs the benchmark on a release build, unless the options name another command.
pub fn scale(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) && options.steno.is_none() {
        return again_in_release();
    }
    let steno = match &options.steno {
        Some(steno) => steno.canonicalize().map_err(|error| format!("{}: {error}", steno.display()))?,
        None => built()?,
    };
    let folder = options.folder.clone().unwrap_or_else(|| tree::root().join("target"));
    fs::create_dir_all(&folder)?;
    let folder = tempfile::tempdir_in(&folder)?;
    let mut text = String::new();
    for (title, shape) in [
        ("Trees of sessions", Shape::Tree),
        ("One file of Claude Code", Shape::Claude),
        ("One file of Codex", Shape::Codex),
    ] {
        let table = measured(options, &steno, folder.path(), shape)?;
        println!("\n{title}\n\n{table}");
        text.push_str(&format!("**{title}**\n\n{table}\n"));
    }
    if options.write { measurements::write("scale", &text) } else { Ok(()) }
}

pub(super) fn built() -> Result<PathBuf, Failure> {
    if !cargo().args(["build", "--release", "--quiet", "--workspace", "--bins"]).status()?.success() {
        return Err("the command does not build".into());
    }
    Ok(std::env::current_exe()?.with_file_name("steno"))
}

/// The property of the input that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The number of sessions.
    Tree,
    /// The size of a Claude Code file.
    Claude,
    /// The size of a Codex file.
    Codex,
}

/// Writes a session of about this many bytes, and returns the number of records.
type WriteSession = fn(u64, &mut dyn std::io::Write) -> std::io::Result<u64>;

impl Shape {
    fn extents(self, options: &Options) -> &[u64] {
        match self {
            Shape::Tree => &options.sessions,
            Shape::Claude | Shape::Codex => &options.sizes,
        }
    }

    /// Makes the input below `root`, and returns the file for commands that take one file.
    fn make(self, options: &Options, extent: u64, root: &Path) -> Result<PathBuf, Failure> {
        let (path, write): (&str, WriteSession) = match self {
            Shape::Tree => {
                let limits =
                    corpus::Limits { files: extent, file_size_max: SESSION_SIZE_MAX, ..corpus::Limits::default() };
                corpus::limited(root, &tree::root().join(&options.corpus), limits, 0)?;
                (SMALL_PATH, synthetic::session)
            }
            Shape::Claude => (CLAUDE_PATH, synthetic::session),
            Shape::Codex => (CODEX_PATH, synthetic::codex),
        };
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = BufWriter::new(File::create_new(&path)?);
        write(if self == Shape::Tree { SMALL_SIZE } else { extent }, &mut file)?;
        file.flush()?;
        Ok(path)
    }
}

/// The session of a tree that commands append to and show.
const SMALL_PATH: &str = ".claude/projects/-home-ada-engine/5e551000-0000-4000-8000-000000000000.jsonl";
const SMALL_SIZE: u64 = 100_000;
const CLAUDE_PATH: &str = SMALL_PATH;
const CODEX_PATH: &str =
    ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-5e551000-0000-4000-8000-000000000001.jsonl";

/// The table of one shape.
fn measured(options: &Options, steno: &Path, folder: &Path, shape: Shape) -> Result<String, Failure> {
    let extents = shape.extents(options);
    let mut rows: Vec<Row> = Vec::new();
    let mut inputs = Vec::new();
    for extent in extents {
        let place = folder.join(format!("{shape:?}-{extent}"));
        let root = place.join("root");
        let file = shape.make(options, *extent, &root)?;
        let setup = Setup { steno: steno.to_owned(), home: place.join("steno"), out: place.join("out"), root, file };
        fs::create_dir_all(&setup.out)?;
        let bytes = size_below(&setup.root)?;
        inputs.push((*extent, bytes));
        for measured in commands::all(shape == Shape::Tree) {
            let is_wanted = options.only.as_ref().is_none_or(|only| measured.name.contains(only.as_str()));
            if !is_wanted && !measured.is_needed {
                continue;
            }
            let cell = cell(&measured, &setup);
            match rows.iter_mut().find(|row| row.name == measured.name) {
                Some(row) => row.cells.push(cell),
                None => rows.push(Row { name: measured.name, patience: measured.patience, cells: vec![cell] }),
            }
        }
        fs::remove_dir_all(&place)?;
    }
    Ok(match shape {
        Shape::Tree => {
            table::table(&inputs, &rows, |(sessions, bytes)| format!("{sessions} ({} MB)", bytes / 1_000_000))
        }
        Shape::Claude | Shape::Codex => table::table(&inputs, &rows, |(_, bytes)| format!("{} MB", bytes / 1_000_000)),
    })
}

/// The cost of one command, or its failure.
fn cell(measured: &Measured, setup: &Setup) -> Cell {
    let mut runs: Vec<RunCost> = Vec::new();
    while runs.len() < 3 && runs.last().is_none_or(|cost| cost.wall.as_secs_f64() < QUICK_S && measured.is_repeated) {
        let mut command: Command = match (measured.command)(setup) {
            Ok(command) => command,
            Err(error) => return Cell::Failed(error.to_string()),
        };
        eprintln!("{}: {:?}", measured.name, command.get_args().collect::<Vec<_>>());
        match run_and_measure(&mut command) {
            Ok(cost) => runs.push(cost),
            Err(error) => {
                let message = timed(&mut command).err().map_or_else(|| error.to_string(), |error| error.to_string());
                eprintln!("  {message}");
                return Cell::Failed(message);
            }
        }
    }
    let middle = |figure: fn(&RunCost) -> f64| median(runs.iter().map(figure));
    Cell::Took {
        wall_s: middle(|cost| cost.wall.as_secs_f64()),
        processor_s: middle(|cost| cost.processor.as_secs_f64()),
        peak_mb: runs.iter().map(|cost| cost.peak_kb).max().unwrap_or(0) as f64 / 1000.0,
        own_mb: runs.iter().map(|cost| cost.own_kb).max().unwrap_or(0) as f64 / 1000.0,
    }
}

fn size_below(folder: &Path) -> Result<u64, Failure> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        size += if entry.file_type()?.is_dir() { size_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(size)
}
