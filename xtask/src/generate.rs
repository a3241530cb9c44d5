//! Generates documents from code, so that they cannot be out of date. Each document is a pure function of the code; writing and
//! checking differ only in the last step.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use stenograph::Registry;
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::frame::{Framing, Items};
use stenograph::laws::pairs::{Conversions, Sample, sample_name};
use stenograph_store::layouts::LAYOUTS;

use crate::{Failure, lines, tree};

const DO_NOT_EDIT: &str = "<!-- Written by `cargo xtask gen` and checked by the tests: do not edit. -->\n\n";

/// The page of all formats, and the folder with a page of each.
const FORMATS_PAGE: &str = "docs/formats";

/// Line counts are rounded up to a multiple of this, so that small changes to the code do not change the page.
const LINES_STEP: usize = 10;

/// Writes all documents.
pub fn write() -> Result<(), Failure> {
    let documents = documents()?;
    for name in left_over(&documents) {
        fs::remove_file(tree::root().join(&name))?;
        println!("removed {name}");
    }
    for (name, text) in documents {
        let path = tree::root().join(&name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            fs::write(&path, text)?;
            println!("wrote {name}");
        }
    }
    Ok(())
}

/// Fails if a document is out of date.
pub fn check() -> Result<(), Failure> {
    let documents = documents()?;
    let mut stale = left_over(&documents);
    for (name, text) in documents {
        let found = fs::read_to_string(tree::root().join(&name)).unwrap_or_default();
        if found != text {
            let line = found.lines().zip(text.lines()).take_while(|(a, b)| a == b).count() + 1;
            stale.push(format!("{name} (line {line})"));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("out of date: {}\nhint: run `cargo xtask gen` to update them", stale.join(", ")).into())
}

fn documents() -> Result<Vec<(String, String)>, Failure> {
    let samples = samples()?;
    let conversions = Conversions::measure(&samples, &Registry::built_in().targets().collect::<Vec<_>>());
    let mut documents = vec![
        (format!("{FORMATS_PAGE}.md"), formats()?),
        ("docs/layouts.md".to_owned(), layouts()),
        ("docs/openapi.json".to_owned(), stenograph_web::openapi()),
        ("docs/losses.md".to_owned(), conversions.page()),
    ];
    for format in FORMATS {
        let name = format!("{FORMATS_PAGE}/{}.md", format.info().name);
        documents.push((name, format_page(*format, &conversions)));
    }
    match command_line()? {
        Some(text) => documents.push(("docs/cli.md".to_owned(), text)),
        None => eprintln!("warning: the command has no help yet; docs/cli.md is left as it is"),
    }
    Ok(documents)
}

/// Pages of formats that no longer exist.
fn left_over(documents: &[(String, String)]) -> Vec<String> {
    let names = tree::names(&tree::root().join(FORMATS_PAGE)).into_iter().map(|name| format!("{FORMATS_PAGE}/{name}"));
    names.filter(|name| documents.iter().all(|(document, _)| document != name)).collect()
}

/// The example fixture of each format.
fn samples() -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for format in FORMATS {
        let folder = tree::format(*format).join("fixtures");
        let mut names = tree::names(&folder);
        names.retain(|name| !tree::is_golden(name));
        if let Some(name) = sample_name(&names) {
            samples.push(Sample { format: *format, name: name.clone(), bytes: fs::read(folder.join(name))? });
        }
    }
    Ok(samples)
}

/// The page of all layouts.
fn layouts() -> String {
    let mut page = format!(
        "{DO_NOT_EDIT}# Layouts\n\nA layout is the way a system arranges its files. `steno record --to LAYOUT:PATH` writes \
         these layouts. [The guide](guide/recording.md) explains recording.\n"
    );
    for layout in LAYOUTS {
        let info = layout.info();
        let _ = writeln!(page, "\n## {}\n\n{}\n\nPATH: {}", info.name, info.title, info.path);
        if !info.keys.is_empty() {
            page.push_str("\n| `--set` | meaning |\n|---|---|\n");
        }
        for (key, meaning) in info.keys {
            let _ = writeln!(page, "| `{key}=…` | {meaning} |");
        }
    }
    page
}

/// The page of all formats.
fn formats() -> Result<String, Failure> {
    let mut page = format!("{DO_NOT_EDIT}# Formats\n\n`steno` reads all of these formats and writes some of them.\n\n");
    page.push_str(
        "| format | what it is | `record` | `convert --to` | `--carry` | `move --to` | `resume` | code |\n|---|---|---|---|---|---|---|---:|\n",
    );
    let mark = |is: bool| if is { "yes" } else { "" };
    for format in FORMATS {
        let info = format.info();
        let written = match (info.own_only, info.traits.lossy) {
            (true, _) => "",
            (false, true) => "text",
            (false, false) => "yes",
        };
        let (carries, moved) =
            (mark(info.traits.carries && !info.own_only), mark(info.placement.is_some() || info.import.is_some()));
        let (recorded, resumed) = (mark(matches!(info.framing, Framing::Lines)), mark(info.resume.is_some()));
        let code = lines::of_format(*format)?.next_multiple_of(LINES_STEP);
        let name = info.name;
        let _ = writeln!(
            page,
            "| [`{name}`](formats/{name}.md) | {} | {recorded} | {written} | {carries} | {moved} | {resumed} | {code} |",
            info.title
        );
    }
    page.push_str(
        "\n- `record`: one record per line, so that `steno record` can read it from a pipe.\n\
         - `convert --to`: sessions of other formats can be written in it; *text* cannot express everything. A session of any \
         format can be written back as it was. [losses.md](losses.md) lists what each conversion loses.\n\
         - `--carry`: a conversion can embed its source, and loses nothing.\n\
         - `move --to`: `steno move` puts a session where the agent resumes it, or has the agent import it. [agents.md](agents.md) says which real programs were \
         tried.\n\
         - `resume`: `steno resume` knows the command that resumes a session.\n\
         - *code*: lines of code in its folder, rounded up to tens, without tests and comments.\n",
    );
    Ok(page)
}

/// The page of one format.
fn format_page(format: &dyn Format, conversions: &Conversions<'_>) -> String {
    let info = format.info();
    let folder = info.name.replace('-', "_");
    let title = info.title.trim_end_matches('.');
    let mut page = format!("{DO_NOT_EDIT}# `{}`\n\n{title}.\n\n", info.name);
    let _ = writeln!(page, "- Specified by: {}", info.spec);
    let _ = writeln!(page, "- Records: {}; files end in `.{}`", framing(info.framing), info.extension);
    if let Some(resume) = info.resume {
        let _ = writeln!(page, "- Resumed with: `{resume}`");
    }
    if let Some(placement) = &info.placement {
        let _ = writeln!(page, "- `steno move` writes sessions to: `{}`", placement.path);
    }
    if info.traits.pieces {
        let _ = writeln!(page, "- Can be read from any record on");
    }
    let _ = writeln!(
        page,
        "- How it is read and written: [README](../../crates/stenograph/src/formats/{folder}/README.md)"
    );
    page.push_str("\n## Where sources are found\n\n");
    match info.homes {
        [] => page.push_str("Only where you put them.\n"),
        homes => {
            homes.iter().for_each(|home| page.push_str(&format!("- `{home}`\n")));
            page.push_str(PLACES);
        }
    }
    let losses = conversions.of(format);
    if !losses.is_empty() {
        let _ = write!(page, "\n## What conversions from it lose\n\n{losses}");
    }
    page
}

const PLACES: &str = "
`~` is the home folder, and `{A|B}` is the value of the environment variable `A` (one folder, or several separated by commas), or
else `B`. Other paths are relative to the folder of a project. `<session>`, `<thread>` and `<project>` stand for the names of a
session, a sub-agent and a project. Compressed files (`.gz`, `.zst`) are found too.
";

fn framing(framing: Framing) -> String {
    let items = |items: Items| match items {
        Items::Array(key) => format!("the items of `{key}` in one document"),
        Items::Members => "the members of one document".to_owned(),
        Items::Elements => "the elements of one array".to_owned(),
    };
    match framing {
        Framing::Lines => "lines".to_owned(),
        Framing::Items(of) => items(of),
        Framing::LinesOrItems(of) => format!("lines, or {}", items(of)),
    }
}

/// The page of all commands, from the help of `steno`. `None` if it has no help.
fn command_line() -> Result<Option<String>, Failure> {
    let Some(overview) = help(&[])? else { return Ok(None) };
    let commands = commands(&overview);
    if commands.is_empty() {
        return Ok(None);
    }
    let mut page = format!("{DO_NOT_EDIT}# The command `steno`\n\n```text\n{}\n```\n", overview.trim_end());
    for command in commands {
        add_page(&[&command], &mut page)?;
    }
    Ok(Some(page))
}

/// Adds the help of a command and of the commands below it.
fn add_page(command: &[&str], page: &mut String) -> Result<(), Failure> {
    let text = help(command)?.unwrap_or_default();
    let heading = if command.len() == 1 { "##" } else { "###" };
    let _ = writeln!(page, "\n{heading} steno {}\n\n```text\n{}\n```", command.join(" "), text.trim_end());
    for action in commands(&text) {
        add_page(&[command, &[&action]].concat(), page)?;
    }
    Ok(())
}

/// The commands that a help text lists, in one group or several.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Usage:")).take_while(|line| *line != "Options:");
    let mut heading = "";
    let mut names = Vec::new();
    for line in lines {
        match line.strip_prefix("  ") {
            Some(entry) if heading != "Arguments:" && !entry.starts_with(' ') => {
                names.extend(entry.split_whitespace().next().filter(|name| *name != "help").map(str::to_owned));
            }
            Some(_) => {}
            // A blank line separates the entries below one heading.
            None if line.is_empty() => {}
            None => heading = line,
        }
    }
    names
}

fn help(command: &[&str]) -> Result<Option<String>, Failure> {
    // STENO names a command that was just built; otherwise it is built here.
    let mut steno = match std::env::var_os("STENO") {
        Some(steno) => Command::new(std::path::absolute(steno)?),
        None => {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["run", "--quiet", "--package", "stenograph-cli", "--"]);
            cargo
        }
    };
    // Use a fixed width: the page must be the same on every machine.
    let output = steno
        .args(command)
        .arg("--help")
        .current_dir(tree::root())
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(format!("steno --help failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(Some(lines.join("\n")).filter(|text| !text.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_off_the_help() {
        let help = "Usage: x\n\nArguments:\n  FILE\n\n  OTHER\n\nLook:\n  one   does\n          more of it\n\nEdit:\n  two   does\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["one", "two"]);
    }
}
