//! Counts lines of code, so that the effect of a change on them is visible. It must not judge.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Args;
use stenograph::format::Format;

use crate::{Failure, code, measurements, tree};

/// What to do with the count.
#[derive(Args, Debug)]
pub struct Options {
    /// Write the table into docs/measurements.md
    #[arg(long)]
    write: bool,
}

/// The lines of some files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    files: usize,
    code: usize,
    tests: usize,
    comments: usize,
}

/// Counts the lines of each crate and prints them.
pub fn lines(options: &Options) -> Result<(), Failure> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for file in tree::files()? {
        let Some(name) = crate_of(&file).filter(|_| is_rust(&file)) else {
            continue;
        };
        let text = fs::read_to_string(tree::root().join(&file))?;
        crates.entry(name).or_default().add(&counted(&file, &text));
    }
    let table = table(&crates);
    print!("{table}");
    if options.write { measurements::write("lines", &table) } else { Ok(()) }
}

/// The lines of code of one format: its folder without tests, comments and blank lines.
pub fn of_format(format: &dyn Format) -> Result<usize, Failure> {
    let folder = tree::format(format);
    let folder = folder.strip_prefix(tree::root())?;
    let mut sum = Lines::default();
    for file in tree::files()?.iter().filter(|file| is_rust(file) && file.starts_with(folder)) {
        sum.add(&counted(file, &fs::read_to_string(tree::root().join(file))?));
    }
    Ok(sum.code)
}

fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "rs")
}

fn crate_of(file: &Path) -> Option<String> {
    let mut parts = file.iter().filter_map(|part| part.to_str());
    match parts.next()? {
        "crates" => parts.next().map(str::to_owned),
        name @ ("xtask" | "fuzz") => Some(name.to_owned()),
        _ => None,
    }
}

/// The lines of one file, without blank lines.
fn counted(file: &Path, text: &str) -> Lines {
    let mut lines = Lines { files: 1, ..Lines::default() };
    let product = if tree::is_test(file) { "" } else { code::without_tests(text) };
    for line in text.get(product.len()..).unwrap_or_default().lines().map(str::trim) {
        lines.tests += usize::from(!line.is_empty());
    }
    for line in product.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.starts_with("//") {
            true => lines.comments += 1,
            false => lines.code += 1,
        }
    }
    lines
}

impl Lines {
    fn add(&mut self, other: &Lines) {
        self.files += other.files;
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
    }
}

fn table(crates: &BTreeMap<String, Lines>) -> String {
    let mut text = "| crate | files | code | comments | tests |\n|---|---:|---:|---:|---:|\n".to_owned();
    let mut total = Lines::default();
    let mut row = |name: &str, lines: &Lines| {
        text.push_str(&format!(
            "| {name} | {} | {} | {} | {} |\n",
            lines.files, lines.code, lines.comments, lines.tests
        ));
    };
    for (name, lines) in crates {
        row(name, lines);
        total.add(lines);
    }
    row("all", &total);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_tests_are_counted_separately() {
        let text = "//! What it is.\n\nfn one() {\n    // Why.\n    two();\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        let expected = Lines { files: 1, code: 3, tests: 4, comments: 2 };
        assert_eq!(counted(Path::new("crates/a/src/one.rs"), text), expected);
        assert_eq!(counted(Path::new("crates/a/tests/one.rs"), text), Lines { files: 1, tests: 9, ..Lines::default() });
    }
}
