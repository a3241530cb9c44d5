//! Lists the public API of the library crates. `docs/api` holds the list, so that each change to the API is visible in review.
//! The list comes from the source text and needs no nightly compiler; it must not judge what it lists.

mod modules;
mod spell;

use std::fs;
use std::path::PathBuf;

use crate::{Failure, tree};

/// The library crates, by the names that Rust code uses.
const CRATES: [&str; 3] = ["stenograph", "stenograph_store", "stenograph_web"];

/// Prints the list of every library crate.
pub fn print() -> Result<(), Failure> {
    for name in CRATES {
        print!("{}", list(name)?);
    }
    Ok(())
}

/// Writes the lists.
pub fn write() -> Result<(), Failure> {
    for name in CRATES {
        let (path, text) = (kept(name), list(name)?);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        println!("{}: {} lines", path.display(), text.lines().count());
        fs::write(path, text)?;
    }
    Ok(())
}

/// Fails if the public API differs from the list in `docs/api`.
pub fn check() -> Result<(), Failure> {
    let mut differs = Vec::new();
    for name in CRATES {
        let (now, kept) = (list(name)?, fs::read_to_string(kept(name)).unwrap_or_default());
        differs.extend(difference("-", &kept, &now));
        differs.extend(difference("+", &now, &kept));
    }
    match differs.is_empty() {
        true => Ok(()),
        false => {
            differs.iter().for_each(|line| eprintln!("{line}"));
            let hint = "if that is meant, run cargo xtask api --write and name the change in CHANGELOG.md";
            Err(format!("the public API changed: {} lines differ\nhint: {hint}", differs.len()).into())
        }
    }
}

fn difference(sign: &str, one: &str, other: &str) -> Vec<String> {
    let other: Vec<&str> = other.lines().collect();
    one.lines().filter(|line| other.binary_search(line).is_err()).map(|line| format!("{sign} {line}")).collect()
}

fn kept(name: &str) -> PathBuf {
    tree::root().join("docs/api").join(name).with_extension("txt")
}

/// One line for each item that another crate can name, sorted.
fn list(name: &str) -> Result<String, Failure> {
    let source = tree::root().join("crates").join(name.replace('_', "-")).join("src/lib.rs");
    let mut lines = modules::Modules::read(name, &source)?.lines();
    lines.sort();
    lines.dedup();
    Ok(lines.concat())
}
