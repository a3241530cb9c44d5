//! Makes a large tree of sessions from a small one: real files, repeated under new ids, times and words, in folders shaped like
//! a home folder. The same seed produces the same bytes. It must not overwrite files, and its output must not be committed.

mod copy;
mod homes;
mod slots;

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use crate::{Failure, synthetic, tree};
use copy::Copy;
use slots::Vocabulary;

/// The options of `cargo xtask corpus`.
#[derive(Args, Debug)]
pub struct Options {
    /// The folder to make the tree in; it must be empty or must not exist
    folder: PathBuf,
    /// The folder of real files, as a path from the repository
    #[arg(long, default_value = "../shared/corpus")]
    from: PathBuf,
    /// How large the tree becomes, such as 500MB or 20GB
    #[arg(long, default_value = "500MB", value_parser = size)]
    size: u64,
    /// The seed for ids, times and words
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// How many files.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// The number of repetitions of the real files; the last one may be incomplete.
    pub copies: u64,
}

/// Trees of at least this size also contain one very large session, a twentieth of the tree.
const LARGE_FROM: u64 = 4_000_000_000;
const LARGE_SHARE: u64 = 20;
const LARGE_PATH: &str = ".claude/projects/-home-ada-engine/5e551000-0000-4000-8000-000000000000.jsonl";

/// Makes a tree from the options of the command line, in a release build.
pub fn make(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return crate::bench::again_in_release();
    }
    let start = Instant::now();
    let made = tree(&options.folder, &tree::root().join(&options.from), options.size, options.seed)?;
    let (megabytes, seconds) = (made.bytes as f64 / 1e6, start.elapsed().as_secs_f64());
    println!(
        "{} files, {megabytes:.0} MB, {} copies in {seconds:.1} s ({:.0} MB/s)",
        made.files,
        made.copies,
        megabytes / seconds
    );
    Ok(())
}

/// The limits of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The approximate size in bytes.
    pub bytes: u64,
    /// The largest number of files.
    pub files: u64,
    /// The largest size of a file, in bytes.
    pub file_size_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: u64::MAX, files: u64::MAX, file_size_max: usize::MAX }
    }
}

/// Makes a tree of about `size` bytes from the files in `from`.
pub fn tree(folder: &Path, from: &Path, size: u64, seed: u64) -> Result<Made, Failure> {
    limited(folder, from, Limits { bytes: size, ..Limits::default() }, seed)
}

/// Makes a tree within limits from the files in `from`.
pub fn limited(folder: &Path, from: &Path, limits: Limits, seed: u64) -> Result<Made, Failure> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{}: something is here already", folder.display()).into());
    }
    let mut vocabulary = Vocabulary::default();
    let mut sources = homes::sources(from, &mut vocabulary)?;
    sources.retain(|source| source.bytes.len() <= limits.file_size_max);
    if sources.is_empty() {
        return Err(format!("{}: no file here has a home", from.display()).into());
    }
    let mut made = Made::default();
    if limits.bytes >= LARGE_FROM && limits.bytes < u64::MAX {
        made = large(&folder.join(LARGE_PATH), limits.bytes / LARGE_SHARE)?;
    }
    let mut bytes = Vec::new();
    for number in 0.. {
        let copy = Copy::new(seed, number, &vocabulary);
        made.copies += 1;
        for source in &sources {
            if made.bytes >= limits.bytes || made.files >= limits.files {
                return Ok(made);
            }
            let path = folder.join(source.path(&copy, &vocabulary));
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            bytes.clear();
            copy.write(source.salt, &source.bytes, &source.slots, &mut bytes);
            fs::File::create_new(&path).map_err(|error| format!("{}: {error}", path.display()))?.write_all(&bytes)?;
            made.bytes += bytes.len() as u64;
            made.files += 1;
        }
    }
    Ok(made)
}

/// Writes one session that is too large to hold in memory.
fn large(path: &Path, size: u64) -> Result<Made, Failure> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = BufWriter::new(fs::File::create_new(path)?);
    synthetic::session(size, &mut file)?;
    let file = file.into_inner()?;
    Ok(Made { files: 1, bytes: file.metadata()?.len(), copies: 0 })
}

/// Reads a size such as `500MB`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err("a size is a number and B, KB, MB or GB".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a size begins with a number".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "this is too large".to_owned())
}
