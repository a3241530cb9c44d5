//! Runs the examples of the README and the guides as written.

use std::path::Path;
use std::process::Command;

use crate::runner::{Folder, names};

/// A command and its output, on both streams.
struct Example {
    command: String,
    printed: String,
}

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    std::fs::read_to_string(path).unwrap()
}

/// The commands of all `console` blocks.
fn examples(readme: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => examples.push(Example { command: command.to_owned(), printed: String::new() }),
                None => examples.last_mut().unwrap().printed.push_str(&format!("{line}\n")),
            },
        }
    }
    examples
}

/// Runs all examples of a page, in order, in a new folder that `steno demo` wrote.
fn run_examples(page: &str, examples: Vec<Example>) {
    let folder = Folder::new();
    folder.run("demo").ends(0);
    let demo = folder.path(&folder.names()[0]);
    assert!(names(&demo).len() > 10);
    let binaries = Path::new(env!("CARGO_BIN_EXE_steno")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    for example in examples {
        let shell = format!("{{ {}; }} 2>&1", example.command);
        let done = Command::new("sh")
            .arg("-c")
            .arg(&shell)
            .current_dir(&demo)
            .env("PATH", &path)
            .env("TZ", "UTC")
            .env("STENO_HOME", folder.path("store"))
            .output()
            .unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        assert_eq!(printed, example.printed, "{page}: $ {}", example.command);
    }
}

#[test]
fn the_examples_of_the_readme_are_true() {
    let examples = examples(&readme());
    assert!(examples.len() >= 5);
    run_examples("README.md", examples);
}

#[test]
fn the_examples_of_the_guides_are_true() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut pages = 0;
    for name in names(&guides) {
        let examples = examples(&std::fs::read_to_string(guides.join(&name)).unwrap());
        if !examples.is_empty() {
            pages += 1;
            run_examples(&name, examples);
        }
    }
    assert!(pages >= 4);
}

#[test]
fn every_format_is_in_the_readme() {
    let readme = readme();
    for format in stenograph::formats::FORMATS {
        assert!(readme.contains(&format!("`{}`", format.info().name)), "{}", format.info().name);
    }
}
