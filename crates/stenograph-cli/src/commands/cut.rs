//! `steno cut`: removes a range of events from a transcript, or splits it. The library knows which events belong together;
//! `cut/split.rs` names the pieces.

mod split;

use std::ops::Range;
use std::path::PathBuf;

use stenograph::edit::cut::{Cut, Selection, cut};
use stenograph::text::quote;
use stenograph::time::Time;
use stenograph_store::Spool;

use crate::edit_output::{self, EditTarget, EditedFile, WrittenFiles};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped};

/// Take a stretch out of a transcript, or divide it into several
///
/// What is taken out is said by numbers of events (as the lines of `steno show --json` are counted), by turns or by time; where several
/// are given, all have to hold. A call goes with its result and a response as a whole; what the file needs to be one stays.
///
/// Divided, the pieces are written as NAME.1.EXT, NAME.2.EXT and so on, each with the header and the system prompt of the whole.
/// No piece begins in the middle of a turn, unless --split-at says so; where that would part a call from its result or tear a response,
/// the next place is taken where it does not, and that is said.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ranges: 10..20 is from 10 to 20, both included; 10.. to the end; ..20 from the beginning; 7 is 7

Examples:
  steno cut session.jsonl --events 10..20 -o shorter.jsonl
  steno cut session.jsonl --turns ..3 --in-place                 steno undo session.jsonl takes it back
  steno cut session.jsonl --before 2026-03-02T12:00:00Z -o afternoon.jsonl
  steno cut session.jsonl --split-every 20                       session.1.jsonl, session.2.jsonl, ...
  steno cut session.jsonl --split-tokens 100000 -o part.jsonl    part.1.jsonl, part.2.jsonl, ...

Exit codes: 0 done, 1 nothing was meant, or it could not be divided as asked, 2 error")]
pub struct Options {
    /// The file to cut; - is standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Take out the events with these numbers, from 1
    #[arg(long, value_name = "RANGE", value_parser = range)]
    events: Option<Range<usize>>,
    /// Take out the turns with these numbers, from 1; a turn is what a user said and all that followed
    #[arg(long, value_name = "RANGE", value_parser = range)]
    turns: Option<Range<usize>>,
    /// Take out what happened before this moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<Time<'static>>,
    /// Take out what happened at this moment or later
    #[arg(long, value_name = "TIME", value_parser = moment)]
    after: Option<Time<'static>>,
    /// Divide after every N turns
    #[arg(long, value_name = "N", value_parser = from_one::<usize>, conflicts_with_all = SELECTING)]
    split_every: Option<usize>,
    /// Divide before the event with this number (can be repeated, or separated by commas)
    #[arg(long, value_name = "EVENT", value_delimiter = ',', value_parser = from_one::<usize>, conflicts_with_all = SELECTING)]
    split_at: Vec<usize>,
    /// Divide so that no piece has more than N tokens, unless a single turn has, which is said
    #[arg(long, value_name = "N", value_parser = from_one::<u64>, conflicts_with_all = SELECTING)]
    split_tokens: Option<u64>,
    /// Who counts for --split-tokens: bytes (four make a token), o200k, cl100k, or a model of OpenAI's
    #[arg(long, value_name = "NAME", default_value = "bytes")]
    tokenizer: String,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    #[command(flatten)]
    target: EditTarget,
}

/// Options that do not apply when a transcript is split or restored.
const SELECTING: [&str; 6] = ["events", "turns", "before", "after", "in_place", "reversible"];

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let split_options = [options.split_every.is_some(), !options.split_at.is_empty(), options.split_tokens.is_some()];
    match split_options.iter().filter(|given| **given).count() {
        0 => select_and_remove(options, output),
        1 => split::run(options, output),
        _ => Err(CommandError::new("a transcript is divided in one way only")
            .hint("choose one of --split-every, --split-at and --split-tokens")),
    }
}

fn select_and_remove(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let selection = Selection {
        events: options.events.clone(),
        turns: options.turns.clone(),
        before: options.before.clone(),
        after: options.after.clone(),
    };
    let Selection { events: None, turns: None, before: None, after: None } = selection else {
        options.target.check()?;
        return remove(options, &selection, output);
    };
    Err(CommandError::new("nothing says what to cut")
        .hint("take something out with --events 10..20, or divide with --split-every 20"))
}

fn remove(options: &Options, selection: &Selection, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut file = EditedFile::open(&options.input, options.from.as_deref(), &options.target)?;
    let name = file.name();
    let mut original = file.read(&mut |_| {})?;
    let (events, format) = (original.sketches.len(), original.format.info().name);
    let found = cut(&original.sketches, selection);
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut original, &found.plan, &name, &mut result)?;
    drop(original);
    if edited.count == 0 && !found.went.is_empty() {
        // A file without events is not a transcript.
        return Err(CommandError::new(format!("{name}: nothing would be left of it"))
            .hint("leave something, for example the last turn; to be rid of all of it, remove the file"));
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
        output.say(&format!("{name}: none of its {events} was meant: nothing was written"));
    } else {
        let went = grouped(found.went.len() as u64);
        output.say(&format!("{name}: {went} of {} taken out", counted(events as u64, "event")));
    }
    if !found.drawn_in.is_empty() {
        let count = counted(found.drawn_in.len() as u64, "event");
        output.say(&format!("  {count} more than was asked: a call goes with its result, a response as a whole"));
    }
    if !found.kept.is_empty() {
        let count = counted(found.kept.len() as u64, "event");
        output.say(&format!("  {count} stayed: the file would be none without"));
    }
}

/// Parses a number of at least 1.
fn from_one<N: std::str::FromStr + PartialEq + From<u8>>(text: &str) -> Result<N, String> {
    match text.trim().parse::<N>() {
        Ok(number) if number == N::from(0) => Err("numbers begin with 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{text:?} is no number")),
    }
}

/// Parses a range that counts from 1 and includes both ends; the result counts from 0.
fn range(text: &str) -> Result<Range<usize>, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(0) => Err("numbers begin with 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{text:?} is no number; a range is 10..20, 10.., ..20 or 7")),
    };
    let (first, last) = match text.split_once("..") {
        None => (number(text)?, number(text)?),
        Some((first, last)) => {
            let first = if first.trim().is_empty() { 1 } else { number(first)? };
            let last = last.strip_prefix('=').unwrap_or(last);
            (first, if last.trim().is_empty() { usize::MAX } else { number(last)? })
        }
    };
    if last < first { Err(format!("{last} comes before {first}")) } else { Ok(first - 1..last) }
}

/// Parses a time, or a day, which begins at midnight UTC.
fn moment(text: &str) -> Result<Time<'static>, String> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let time = Time::iso(whole.into()).filter(|time| time.instant().is_some());
    time.ok_or_else(|| "a moment is 2026-03-02T12:00:00Z, with an offset such as +01:00, or a day".to_owned())
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

    #[test]
    fn a_moment_may_be_a_day() {
        assert!(moment("2026-03-02").is_ok() && moment("2026-03-02T12:00:00+01:00").is_ok());
        assert!(moment("noon").is_err() && moment("2026-03-99").is_err());
    }
}
