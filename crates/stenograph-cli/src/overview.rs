//! `steno` without a command on a terminal: what there is, which agents need the user, the latest sessions, and what to type
//! next. Without a store it says what it would keep.

use std::collections::BTreeMap;

use stenograph::format::{Format, FormatInfo};
use stenograph_store::Problem;
use stenograph_store::discover::FoundFile;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::Catalogue;

use crate::commands::{list, status};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, TextStyle, counted, grouped};
use crate::store::StoreArgs;
use crate::{clock, live, table, terminal};

/// How many sessions it lists, if the terminal has room for them.
const SESSIONS_MAX: usize = 10;

/// How many agents it lists.
const AGENTS_MAX: usize = 4;

/// The lines of the terminal that are not for sessions and agents.
const OTHER_LINES: usize = 13;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What to type next.
const NEXT: [(&str, &str); 5] = [
    ("steno pick", "find a session as you type"),
    ("steno show latest", "read the newest session"),
    ("steno find WORDS", "search everything that was said and done"),
    ("steno usage", "tokens and cost by day"),
    ("steno --help", "all commands"),
];

pub fn run(place: &StoreArgs, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = place.store()?;
    let found = live::transcripts(place)?;
    match store.catalogue() {
        Ok(catalogue) => show(place, &store, &catalogue, &found, output)?,
        Err(error) if error.problem == Problem::IndexMissing => introduce(&found, output)?,
        Err(error) => return Err(error.into()),
    }
    Ok(ExitStatus::Done)
}

/// Explains `steno` to a new user.
fn introduce(found: &[FoundFile], output: &mut Output<'_>) -> Result<(), CommandError> {
    output.line("steno keeps, searches and converts the transcripts of AI agents.")?;
    output.line("")?;
    let mut agents: BTreeMap<&str, u64> = BTreeMap::new();
    for file in found {
        if let Some(info) = info(file) {
            *agents.entry(info.agent).or_default() += 1;
        }
    }
    if agents.is_empty() {
        output.line("No transcripts found in the folders of the agents (steno formats lists them).")?;
    }
    for (agent, count) in agents {
        output.line(&format!("  {agent:<14} {} found", counted(count, "transcript")))?;
    }
    output.line("")?;
    next(&[("steno index", "keep them, and make them searchable"), ("steno demo", "try it on sample files")], output)?;
    next(&[("steno --help", "all commands")], output)
}

fn show(
    place: &StoreArgs,
    store: &Store,
    catalogue: &Catalogue,
    found: &[FoundFile],
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let agents = status::attention(place, found, AGENTS_MAX, table::screen_width(), output.colour())?;
    if !agents.is_empty() {
        heading("Agents", "steno status", output)?;
        agents.iter().try_for_each(|line| output.line(line))?;
        output.line("")?;
    }
    let count = catalogue.session_count()?;
    if count == 0 {
        return introduce(found, output);
    }
    let name = if catalogue.pinned_sessions()?.is_empty() { "Latest sessions" } else { "Pinned and latest sessions" };
    let taken = OTHER_LINES + if agents.is_empty() { 0 } else { agents.len() + 2 };
    let room = terminal::height().unwrap_or(24).saturating_sub(taken).clamp(3, SESSIONS_MAX);
    let sessions = list::newest(catalogue, room, output)?;
    // The first line is the heading of the table.
    heading(name, &format!("{} of {}", sessions.len().saturating_sub(1), grouped(count)), output)?;
    for line in sessions {
        output.line(&line)?;
    }
    output.line("")?;
    let missing = not_kept(store, found)?;
    if !missing.is_empty() {
        missing.iter().try_for_each(|line| output.line(&output.colour().paint(TextStyle::Warning, line)))?;
        output.line("")?;
    }
    next(&NEXT, output)
}

/// What is not in the archive yet, and when agents would delete it.
fn not_kept(store: &Store, found: &[FoundFile]) -> Result<Vec<String>, CommandError> {
    let missing = store.not_archived(found)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let count = missing.len() as u64;
    let verb = if count == 1 { "is" } else { "are" };
    let mut lines = vec![format!("{} {verb} not kept yet: run steno index", counted(count, "transcript"))];
    // Per agent, the transcript that is deleted first.
    let mut first: BTreeMap<&str, i64> = BTreeMap::new();
    for file in missing {
        let Some((agent, days)) = info(&file).and_then(|info| Some((info.agent, info.retention_days?))) else {
            continue;
        };
        let deleted = file.stat.modified_ns / 1_000_000 + i64::from(days) * DAY_MS;
        let known = first.entry(agent).or_insert(deleted);
        *known = (*known).min(deleted);
    }
    let now = clock::millis();
    lines.extend(first.into_iter().map(|(agent, deleted)| match deleted - now {
        left if left <= 0 => format!("{agent} may delete the oldest of them at any moment"),
        left => format!("{agent} deletes the oldest of them in {} (its default)", table::span(left)),
    }));
    Ok(lines)
}

fn info(file: &FoundFile) -> Option<&'static FormatInfo> {
    file.hints.format.or(file.hints.like).map(Format::info)
}

fn heading(name: &str, remark: &str, output: &mut Output<'_>) -> Result<(), CommandError> {
    let (colour, remark) = (output.colour(), format!("({remark})"));
    output.line(&format!("{} {}", colour.paint(TextStyle::Strong, name), colour.paint(TextStyle::Faint, &remark)))
}

fn next(commands: &[(&str, &str)], output: &mut Output<'_>) -> Result<(), CommandError> {
    for (command, purpose) in commands {
        let command = output.colour().paint(TextStyle::Strong, &format!("{command:<18}"));
        output.line(&format!("  {command} {purpose}"))?;
    }
    Ok(())
}
