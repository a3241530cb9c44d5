//! Checks the style of the repository. Violations of rules are failures; files and functions that are too long are warnings.

use std::fs;
use std::path::Path;

use stenograph::formats::FORMATS;

use crate::scaffold::TEMPLATE;
use crate::{Failure, code, layers, names, tree};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// The failures and warnings of all checks.
#[derive(Default)]
struct Findings {
    failures: Vec<String>,
    warnings: Vec<String>,
}

/// Checks the repository.
pub fn tidy() -> Result<(), Failure> {
    let mut findings = Findings::default();
    for file in tree::files()? {
        let Ok(text) = fs::read_to_string(tree::root().join(&file)) else { continue };
        private_words(&file, &text, &mut findings);
        if file.extension().is_some_and(|ending| ending == "rs") {
            head(&file, &text, &mut findings);
            lengths(&file, &text, &mut findings);
            format_names(&file, &text, &mut findings);
        }
    }
    fixtures(&mut findings);
    commands(&mut findings);
    findings.failures.extend(names::check()?);
    findings.failures.extend(layers::check()?);
    for warning in &findings.warnings {
        eprintln!("warning: {warning}");
    }
    for failure in &findings.failures {
        eprintln!("error: {failure}");
    }
    match findings.failures.len() {
        0 => {
            println!("tidy: all is well, {} warnings", findings.warnings.len());
            Ok(())
        }
        count => Err(format!("tidy: {count} failures").into()),
    }
}

/// Checks that a file begins with a description.
fn head(file: &Path, text: &str, findings: &mut Findings) {
    if !text.starts_with("//!") {
        findings
            .failures
            .push(format!("{}: does not open with `//!`: what is it, what must it not do?", file.display()));
    }
}

fn lengths(file: &Path, text: &str, findings: &mut Findings) {
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.warnings.push(format!("{}: {lines} lines; around {FILE_LINES_MAX} is the measure", file.display()));
    }
    for (line, name, length) in code::functions(text) {
        if length > FUNCTION_LINES_MAX {
            let warning = format!(
                "{}:{line}: `{name}` has {length} lines; around {FUNCTION_LINES_MAX} is the measure",
                file.display()
            );
            findings.warnings.push(warning);
        }
    }
}

/// Checks that only the folder of a format names it: other code uses `FORMATS`.
fn format_names(file: &Path, text: &str, findings: &mut Findings) {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let free = ["formats", "layouts", "systems", "tests", "tests.rs", "docs", "xtask", "fuzz"];
    // These commands are named after the systems that they manage.
    let free_files = ["args.rs", "context.rs", "chibi.rs", "chibi", "devflow.rs", "devflow", "cycod.rs", "cycod"];
    if parts.contains(&"stenograph-cli") && parts.iter().any(|part| free_files.contains(part)) {
        return;
    }
    if parts.iter().any(|part| free.contains(part)) {
        return;
    }
    for (line, literal) in code::string_literals(code::without_tests(text)) {
        for format in FORMATS {
            let name = format.info().name;
            // The native name is also the name of the command and of the wire format, which are not in a format's folder.
            // Continue's name is an English word.
            let is_ambiguous = name == stenograph::wire::NAME || name == "continue";
            if !is_ambiguous && code::holds_word(&literal, name) {
                findings.failures.push(format!("{}:{line}: names the format `{name}`; go by FORMATS", file.display()));
            }
        }
    }
}

/// Text that must not be in the repository: root's home folder, and the markers of an unfinished merge. Each is split in two
/// here, so that this file passes the check.
const PRIVATE: [&str; 3] = [concat!("/ro", "ot/"), concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

fn private_words(file: &Path, text: &str, findings: &mut Findings) {
    for (at, line) in text.lines().enumerate() {
        for word in PRIVATE {
            let alone = |at: usize| {
                let before = line.get(..at).and_then(|head| head.chars().next_back());
                !before.is_some_and(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '~'))
            };
            if line.match_indices(word).any(|(at, _)| alone(at)) {
                findings.failures.push(format!("{}:{}: `{word}` does not belong here", file.display(), at + 1));
            }
        }
    }
}

/// Checks that every format has a README and fixtures, every fixture a golden, every golden a fixture, and that every folder is
/// a format.
fn fixtures(findings: &mut Findings) {
    for format in FORMATS {
        let (name, folder) = (format.info().name, tree::format(*format));
        if !folder.join("README.md").is_file() {
            findings.failures.push(format!("formats: `{name}` has no README.md"));
        }
        let names = tree::names(&folder.join("fixtures"));
        if names.is_empty() {
            findings.failures.push(format!("formats: `{name}` has no fixture"));
        }
        for file in &names {
            let problem = match file.strip_suffix(".golden").or_else(|| file.strip_suffix(".losses")) {
                Some(fixture) if names.iter().any(|name| name == fixture) => continue,
                Some(_) => "is a golden without its fixture",
                None if !names.contains(&format!("{file}.golden")) => "is a fixture without its golden",
                None if format.info().traits.lossy && !names.contains(&format!("{file}.losses")) => {
                    "is a fixture of a lossy format without its losses"
                }
                None => continue,
            };
            findings.failures.push(format!("formats: `{name}`: fixtures/{file} {problem}"));
        }
    }
    for name in tree::names(&tree::formats()) {
        let known = name == TEMPLATE.1 || FORMATS.iter().any(|format| format.info().name.replace('-', "_") == name);
        if tree::formats().join(&name).join("fixtures").is_dir() && !known {
            findings.failures.push(format!("formats: the folder {name} is not a format in FORMATS"));
        }
    }
}

/// Checks that every command is documented.
fn commands(findings: &mut Findings) {
    let page = fs::read_to_string(tree::root().join("docs/cli.md")).unwrap_or_default();
    for name in tree::names(&tree::root().join("crates/stenograph-cli/src/commands")) {
        let command = name.trim_end_matches(".rs").replace('_', "-");
        if command != "mod" && !page.lines().any(|line| line == format!("## steno {command}")) {
            findings.failures.push(format!("docs/cli.md: no page for `steno {command}`"));
        }
    }
}
