//! `steno formats`: lists the formats, for people and for programs.

use anstyle::Style;
use stenograph::format::FormatInfo;
use stenograph::formats::FORMATS;
use stenograph::json::Draft;

use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, TextStyle};
use crate::table;
use crate::terminal::Line;

/// List the formats that steno reads and writes
///
/// For each format: its name and title; whether it is a line format, which steno record can read, or a document; the usual file
/// extension; whether it can embed a source (see `steno convert --carry`); the folders where the agent keeps its files; and the command
/// that resumes a session.
///
/// On a terminal, steno prints these folders; elsewhere it prints the patterns of the files in them. `{A|B}` is the environment
/// variable A, or B if A is not set; `<session>`, `<thread>` and `<project>` stand for names. Paths that begin with neither `~`
/// nor `{` are relative to a project.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno formats
  steno formats --json | jq -r 'select(.lines).name'   formats for steno record")]
pub struct Options {
    /// Print one JSON object per format
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if !options.json {
        output.page();
    }
    let width = FORMATS.iter().map(|format| format.info().name.len()).max().unwrap_or(0);
    for format in FORMATS {
        let info = format.info();
        if options.json {
            output.line(&json(info))?;
            continue;
        }
        let name = output.colour().paint(TextStyle::Strong, &format!("{:<width$}", info.name));
        let room = table::screen_width().saturating_sub(width + 2);
        let mut first = Some(name);
        for line in Line::of(info.title, Style::new()).wrapped(room) {
            let name = first.take().unwrap_or_else(|| " ".repeat(width));
            output.line(&format!("{name}  {}", line.text()))?;
        }
        let shape = if info.framing.allows_lines() { "line format" } else { "document" };
        let read_only = if info.own_only { "; read-only" } else { "" };
        let carries = if info.traits.carries && !info.own_only { "; can embed a source" } else { "" };
        let blank = "";
        output.line(&format!("{blank:<width$}  {shape}, .{}{carries}{read_only}", info.extension))?;
        for home in homes_for(info, table::screen_width()) {
            output.line(&output.colour().paint(TextStyle::Faint, &format!("{blank:<width$}  {home}")))?;
        }
        if let Some(resume) = info.resume {
            output.line(&format!("{blank:<width$}  resumes with {resume}"))?;
        }
    }
    Ok(ExitStatus::Done)
}

/// Where the agent keeps its files: every pattern, or on a terminal the folders above them, which fit its width.
fn homes_for(info: &FormatInfo, screen: usize) -> Vec<&'static str> {
    if screen == usize::MAX {
        return info.homes.to_vec();
    }
    let mut homes: Vec<&str> = Vec::new();
    for home in info.homes {
        let folder = folder_of(home);
        if !homes.contains(&folder) {
            homes.push(folder);
        }
    }
    homes
}

/// The folder of a pattern, before its first placeholder; the whole pattern if it begins with one.
fn folder_of(home: &'static str) -> &'static str {
    // A variable is in braces.
    let path = home.find('}').unwrap_or(0);
    let placeholder = home.get(path..).and_then(|rest| rest.find(['<', '*', '?'])).map(|at| at + path);
    let end = placeholder.map_or(home.rfind('/'), |at| home.get(..at).and_then(|before| before.rfind('/')));
    end.and_then(|end| home.get(..end)).filter(|folder| !folder.is_empty()).unwrap_or(home)
}

fn json(info: &FormatInfo) -> String {
    Draft::new()
        .with("name", info.name)
        .with("title", info.title)
        .with("reads", true)
        .with("writes", !info.own_only)
        .with("extension", info.extension)
        .with("homes", info.homes)
        .with("resume", info.resume)
        .with("spec", info.spec)
        .with("carries", info.traits.carries)
        .with("lines", info.framing.allows_lines())
        .render(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_pattern_is_before_its_first_placeholder() {
        let folders = ["{A|~/.a}/logs/*/<session>.jsonl", "~/.b/c/x.md", "<session>.jsonl", ".d/*.txt", "e.json"];
        assert_eq!(folders.map(folder_of), ["{A|~/.a}/logs", "~/.b/c", "<session>.jsonl", ".d", "e.json"]);
    }
}
