//! `steno audit --diff`: prints how files changed. The library computes the changes.

use stenograph::changes::ChangesOutcome;
use stenograph::json::Draft;

use super::Options;
use super::read::Audited;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Colour, Output, TextStyle, counted, harmless, harmless_json, harmless_line};

pub fn report(
    options: &Options,
    audited: &Audited,
    changes: &ChangesOutcome,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let is_nothing = changes.files.is_empty() && changes.unseen.is_empty();
    if options.json {
        let mut draft = Draft::new();
        audited.put(&mut draft);
        changes.put(&mut draft);
        output.line(&harmless_json(&draft.render(None)))?;
    } else if !is_nothing {
        let colour = output.colour();
        for file in &changes.files {
            // A program receives every byte; a terminal receives no control sequence.
            let diff = if output.is_terminal() { harmless(&file.diff) } else { file.diff.as_str().into() };
            let mut is_in_hunk = false;
            let shown: String = diff.split_inclusive('\n').map(|line| painted(line, &mut is_in_hunk, colour)).collect();
            output.data().write_all(shown.as_bytes())?;
        }
        for line in unseen_lines(changes, audited) {
            output.line(&colour.paint(TextStyle::Faint, &line))?;
        }
    }
    if is_nothing {
        output.say("no recorded call changed a file");
        return Ok(ExitStatus::No);
    }
    Ok(ExitStatus::Done)
}

/// A line of a diff in git's colours. Header lines come before the first hunk only: a removed line may look like one.
fn painted(line: &str, is_in_hunk: &mut bool, colour: Colour) -> String {
    let bare = line.strip_suffix('\n').unwrap_or(line);
    *is_in_hunk |= bare.starts_with("@@ ");
    let is_header =
        ["diff ", "--- ", "+++ ", "new file", "deleted file", "rename "].iter().any(|head| bare.starts_with(head));
    let paint = match bare.chars().next() {
        _ if is_header && !*is_in_hunk => TextStyle::Strong,
        Some('@') => TextStyle::Place,
        Some('+') => TextStyle::Good,
        Some('-') => TextStyle::Gone,
        _ => return line.to_owned(),
    };
    format!("{}\n", colour.paint(paint, bare))
}

/// The changes that cannot be seen. The sign before each line makes programs that read diffs ignore it.
fn unseen_lines(changes: &ChangesOutcome, audited: &Audited) -> Vec<String> {
    let number = changes.unseen.len() as u64 + changes.unlisted;
    if number == 0 {
        return Vec::new();
    }
    let mut lines = vec![format!("# {} not visible in the recorded calls:", counted(number, "possible change"))];
    for unseen in &changes.unseen {
        let mut line = format!("#   event {}", unseen.place.event);
        if let Some(path) = audited.paths.get(unseen.place.source).filter(|_| unseen.place.source > 0) {
            line += &format!(" of {path}");
        }
        line += &format!(": {}: {}", unseen.why.sentence(), unseen.what);
        if let Some(path) = unseen.path.as_ref().filter(|path| !unseen.what.contains(path.as_str())) {
            line += &format!(" ({path})");
        }
        lines.push(harmless_line(&line));
    }
    if changes.unlisted > 0 {
        lines.push(format!("#   and {} more", changes.unlisted));
    }
    lines
}
