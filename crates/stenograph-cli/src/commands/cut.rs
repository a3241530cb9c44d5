//! `steno cut`: removes a range of events from a transcript, or splits it. The library knows which events belong together;
//! `cut/split.rs` names the pieces.

mod split;

use std::ops::Range;
use std::path::PathBuf;

use stenograph::edit::cut::{Cut, Selection, cut};
use stenograph::query::SPELLINGS;
use stenograph::text::quote;
use stenograph_store::Spool;

use crate::edit_output::{self, EditTarget, EditedFile, WrittenFiles};
use crate::error::{CommandError, ExitStatus};
use crate::filter::PeriodArgs;
use crate::output::{Output, counted, grouped};
use crate::store::SessionArgs;

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
#[command(after_help = "\
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
    #[arg(long, value_name = "N", value_parser = from_one::<usize>, conflicts_with_all = SELECTING)]
    split_every: Option<usize>,
    /// Split before this event (repeat, or separate with commas)
    #[arg(long, value_name = "EVENT", value_delimiter = ',', value_parser = from_one::<usize>, conflicts_with_all = SELECTING)]
    split_at: Vec<usize>,
    /// Split into pieces of at most N tokens; a longer turn stays whole and is reported
    #[arg(long, value_name = "N", value_parser = from_one::<u64>, conflicts_with_all = SELECTING)]
    split_tokens: Option<u64>,
    /// Tokenizer for --split-tokens: bytes (four per token), o200k, cl100k, or an OpenAI model
    #[arg(long, value_name = "NAME", default_value = "bytes")]
    tokenizer: String,
    /// Read as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    #[command(flatten)]
    target: EditTarget,
}

/// Options that do not apply when a transcript is split or restored.
const SELECTING: [&str; 6] = ["events", "turns", "since", "until", "in_place", "reversible"];

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let split_options = [options.split_every.is_some(), !options.split_at.is_empty(), options.split_tokens.is_some()];
    match split_options.iter().filter(|given| **given).count() {
        0 => select_and_remove(options, output),
        1 => split::run(options, output),
        _ => Err(CommandError::new("several ways to split given")
            .hint("use only one of --split-every, --split-at and --split-tokens")),
    }
}

fn select_and_remove(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let range = PeriodArgs::between(options.since.as_ref(), options.until.as_ref()).range()?;
    let timestamp = |ms| jiff::Timestamp::from_millisecond(ms).ok();
    let selection = Selection {
        events: options.events.clone(),
        turns: options.turns.clone(),
        since: range.since.and_then(timestamp),
        until: range.until.and_then(timestamp),
    };
    let Selection { events: None, turns: None, since: None, until: None } = selection else {
        options.target.check()?;
        return remove(options, &selection, output);
    };
    Err(CommandError::new("say what to cut").hint("remove events with --events 10..20, or split with --split-every 20"))
}

fn remove(options: &Options, selection: &Selection, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut file = EditedFile::open(&options.place, &options.input, options.from.as_deref(), &options.target, output)?;
    let name = file.name();
    let mut original = file.read(&mut |_| {})?;
    let (events, format) = (original.sketches.len(), original.format.info().name);
    let found = cut(&original.sketches, selection);
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut original, &found.plan, &name, &mut result)?;
    drop(original);
    if edited.count == 0 && !found.went.is_empty() {
        // A file without events is not a transcript.
        return Err(CommandError::new(format!("{name}: this would remove everything"))
            .hint("keep at least one turn, or delete the file instead"));
    }
    let written = match found.went.is_empty() {
        // If the selection matches nothing, a copy would not help.
        true => WrittenFiles::default(),
        false => options.target.write(&mut file, &mut result, "cut", output)?,
    };
    if options.target.json {
        let list = |numbers: &[usize]| {
            let numbers: Vec<String> = numbers.iter().map(|number| (number + 1).to_string()).collect();
            numbers.join(",")
        };
        let (file, format) = (quote(&name), quote(format));
        let json = format!(
            "{{\"file\":{file},\"format\":{format},\"events\":{},\"went\":[{}],\"drawn_in\":[{}],\"kept\":[{}],{}}}",
            events,
            list(&found.went),
            list(&found.drawn_in),
            list(&found.kept),
            edit_output::json_fields(&edited, &written)
        );
        options.target.report(&json, output)?;
    } else {
        report_removed(&name, events, &found, output);
        edit_output::report_differences(&edited, &written, output);
    }
    Ok(if found.went.is_empty() { ExitStatus::No } else { ExitStatus::Done })
}

fn report_removed(name: &str, events: usize, found: &Cut, output: &mut Output<'_>) {
    if found.went.is_empty() {
        let events = counted(events as u64, "event");
        output.say(&format!("{name}: none of {events} selected; nothing was written"));
    } else {
        let went = grouped(found.went.len() as u64);
        output.say(&format!("{name}: removed {went} of {}", counted(events as u64, "event")));
    }
    if !found.drawn_in.is_empty() {
        let count = counted(found.drawn_in.len() as u64, "event");
        output.say(&format!(
            "  {count} removed in addition: the results of removed calls and the rest of removed responses"
        ));
    }
    if !found.kept.is_empty() {
        let count = counted(found.kept.len() as u64, "event");
        let them = if found.kept.len() == 1 { "it" } else { "them" };
        output.say(&format!("  {count} kept because the format requires {them}"));
    }
}

/// Parses a number of at least 1.
fn from_one<N: std::str::FromStr + PartialEq + From<u8>>(text: &str) -> Result<N, String> {
    match text.trim().parse::<N>() {
        Ok(number) if number == N::from(0) => Err("numbers begin with 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{text:?} is not a number")),
    }
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
