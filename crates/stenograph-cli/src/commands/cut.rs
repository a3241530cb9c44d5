//! `steno cut`: removes events from a transcript, or splits it. The library knows which events belong together;
//! `cut/split.rs` names the parts.

mod split;

use std::ops::Range;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use serde::Serialize;
use stenograph::edit::cut::{Cut, Selection, cut};
use stenograph::query::SPELLINGS;
use stenograph_store::Spool;
use stenograph_store::undo::EditCommand;

use crate::edit_output::{self, EditTarget, EditedFile, WrittenFiles};
use crate::edit_report::{EditReport, EditResult, ReportCounts, ReportedEvent};
use crate::error::{CommandError, ExitStatus};
use crate::filter::PeriodArgs;
use crate::output::{Output, counted, grouped};
use crate::store::SessionArgs;
use crate::terminal::fitted_in_message;

/// Remove part of a transcript, or split it
///
/// Selects the events to remove by number (the line number in `steno show --json`), by turn or by time; with several options,
/// an event must match all of them. A call is removed together with its result, and a response as a whole. Records that the
/// format requires stay.
///
/// When splitting, steno writes the pieces as NAME.1.EXT, NAME.2.EXT and so on, each with the header and the system prompt.
/// Only --split-at can split within a turn. If a split would separate a call from its result or break up a response, steno
/// splits at the next possible event and says so.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("split").conflicts_with_all(SELECTING), after_help = "\
Ranges: 10..20 includes both 10 and 20; 10.. runs to the end; ..20 starts at the
        beginning; 7 is a single number

Examples:
  steno cut session.jsonl --events 10..20 -o shorter.jsonl
  steno cut session.jsonl --turns ..3 --in-place
  steno cut session.jsonl --until 2026-03-02T12:00:00Z -o afternoon.jsonl
  steno cut session.jsonl --split-every 20            session.1.jsonl, ...
  steno cut session.jsonl --split-tokens 100000 -o part.jsonl

Exit codes: 0 success, 1 nothing selected, or a split is not possible, 2 error")]
pub struct Options {
    /// File to cut; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    input: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Remove the events with these numbers, counted from 1
    #[arg(long, value_name = "RANGE", value_parser = range)]
    events: Option<Range<usize>>,
    /// Remove the turns with these numbers, counted from 1; a turn is a user message with everything that follows
    #[arg(long, value_name = "RANGE", value_parser = range)]
    turns: Option<Range<usize>>,
    /// Remove events since TIME (7d, yesterday, 2026-01-15)
    #[arg(long, value_name = "TIME", long_help = format!("Remove events since TIME: {SPELLINGS}"))]
    since: Option<String>,
    /// Remove events until TIME; a day, week, month or year includes its end
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Split after every N turns
    #[arg(long, value_name = "N", group = "split", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    split_every: Option<usize>,
    /// Split before this event (repeat, or separate with commas)
    #[arg(long, value_name = "EVENT", group = "split", value_delimiter = ',', value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    split_at: Vec<usize>,
    /// Split into pieces of at most N tokens; a longer turn stays whole and is reported
    #[arg(long, value_name = "N", group = "split", value_parser = clap::value_parser!(u64).range(1..))]
    split_tokens: Option<u64>,
    /// Tokenizer for --split-tokens: bytes (four per token), o200k, cl100k, or an OpenAI model [default: bytes]
    #[arg(long, value_name = "NAME", requires = "split_tokens", conflicts_with_all = SELECTING, conflicts_with_all = ["split_every", "split_at"])]
    tokenizer: Option<String>,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    target: EditTarget,
}

/// Options that do not apply to a split.
const SELECTING: [&str; 6] = ["events", "turns", "since", "until", "in_place", "reversible"];

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if options.split_every.is_some() || options.split_tokens.is_some() || !options.split_at.is_empty() {
        return split::run(options, output);
    }
    let range = PeriodArgs::between(options.since.as_ref(), options.until.as_ref()).range()?;
    let timestamp = |ms| jiff::Timestamp::from_millisecond(ms).ok();
    let selection = Selection {
        events: options.events.clone(),
        turns: options.turns.clone(),
        since: range.since.and_then(timestamp),
        until: range.until.and_then(timestamp),
    };
    if let Selection { events: None, turns: None, since: None, until: None } = selection {
        return Err(CommandError::new("say what to cut")
            .hint("remove events with --events 10..20, or split with --split-every 20"));
    }
    options.target.check()?;
    remove(options, &selection, output)
}

/// The fields that only cuts report.
#[derive(Serialize)]
struct Details {
    events: ReportCounts,
    /// Removed events that were not selected, by number from 1.
    removed_with: Vec<usize>,
    /// Selected events that stay because the format requires them.
    kept: Vec<usize>,
}

fn remove(options: &Options, selection: &Selection, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut file = EditedFile::open(&options.place, &options.input, options.from.as_deref(), &options.target, output)?;
    let name = file.name();
    let mut original = file.read(&mut |_| {})?;
    let (count, format) = (original.sketches.len(), original.format.info().name);
    let found = cut(&original.sketches, selection);
    let listed: &[usize] = if options.target.lists_events() { &found.removed } else { &[] };
    let removed = listed.iter().filter_map(|number| ReportedEvent::of(&original.sketches, *number, "removed", None));
    let removed = removed.collect();
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut original, &found.plan, &name, &mut result)?;
    drop(original);
    if edited.count == 0 && !found.removed.is_empty() {
        // A file without events is not a transcript.
        return Err(CommandError::new(format!("{name}: this would remove everything"))
            .hint("keep at least one turn, or delete the file instead"));
    }
    let written = match found.removed.is_empty() {
        // If the selection matches nothing, a copy would not help.
        true => WrittenFiles::default(),
        false => options.target.write(&mut file, &mut result, EditCommand::Cut, output)?,
    };
    let from_one = |numbers: &[usize]| numbers.iter().map(|number| number + 1).collect();
    let removed_count = found.removed.len() as u64;
    let details = Details {
        events: ReportCounts { removed: removed_count, kept: count as u64 - removed_count },
        removed_with: from_one(&found.also_removed),
        kept: from_one(&found.protected),
    };
    let (dry_run, result) = (options.target.dry_run, Some(EditResult::new(&edited, written)));
    let report = EditReport { file: &name, format, dry_run, details, removed, result };
    report.print(&options.target, &sentences(&fitted_in_message(&name), count, &found, &options.target), output)?;
    Ok(if found.removed.is_empty() { ExitStatus::No } else { ExitStatus::Done })
}

fn sentences(name: &str, count: usize, found: &Cut, target: &EditTarget) -> Vec<String> {
    let events = counted(count as u64, "event");
    let protected = counted(found.protected.len() as u64, "event");
    if found.removed.is_empty() {
        return vec![match found.protected.len() {
            0 => format!("{name}: none of {events} selected; nothing was written"),
            1 => format!("{name}: the format requires the selected event; nothing was written"),
            _ => format!("{name}: the format requires the {protected} selected; nothing was written"),
        }];
    }
    let (action, removed) =
        (if target.dry_run { "would remove" } else { "removed" }, grouped(found.removed.len() as u64));
    let mut sentences = vec![format!("{name}: {action} {removed} of {events}")];
    if !found.also_removed.is_empty() {
        let events = counted(found.also_removed.len() as u64, "event");
        let were = if target.dry_run { "would be removed" } else { "removed" };
        sentences.push(format!(
            "  {events} {were} in addition: calls are removed with their results, and responses as a whole"
        ));
    }
    if !found.protected.is_empty() {
        let them = if found.protected.len() == 1 { "it" } else { "them" };
        sentences.push(format!("  {protected} kept because the format requires {them}"));
    }
    sentences
}

/// Parses a range that counts from 1 and includes both ends; the result counts from 0.
fn range(text: &str) -> Result<Range<usize>, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(0) => Err("numbers begin with 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{text:?} is not a number; a range is 10..20, 10.., ..20 or 7")),
    };
    let (first, last) = match text.split_once("..") {
        None => (number(text)?, number(text)?),
        Some((first, last)) => {
            let first = if first.trim().is_empty() { 1 } else { number(first)? };
            let last = last.strip_prefix('=').unwrap_or(last);
            (first, if last.trim().is_empty() { usize::MAX } else { number(last)? })
        }
    };
    if last < first { Err(format!("{last} is before {first}")) } else { Ok(first - 1..last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_counts_from_one_and_includes_both_ends() {
        assert_eq!(range("10..20"), Ok(9..20));
        assert_eq!(range("7"), Ok(6..7));
        assert_eq!(range("..3"), Ok(0..3));
        assert_eq!(range("5.."), Ok(4..usize::MAX));
        assert!(range("0..3").is_err() && range("5..2").is_err() && range("a").is_err());
    }
}
