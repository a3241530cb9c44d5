//! `steno demo`: writes a small conversation in every format and walks through the commands. It runs them and shows their real
//! output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anstyle::Style;
use stenograph::Registry;
use stenograph::convert::{Carry, Outcome, convert};
use stenograph::format::{Format, FormatInfo};
use stenograph::loss::{LossKind, LossReport};
use stenograph::model::Kind;
use stenograph::wire;
use stenograph_store::{Existing, NewFile, Passes, Source, fresh_folder};

use crate::error::{CommandError, ExitStatus};
use crate::input::format_named;
use crate::output::{Output, TextStyle, shortened};
use crate::terminal::{self, Line, wrapped_text};

/// Create a sample conversation and a short tour
///
/// Writes a small conversation in every format into a new temporary folder, prints the path of the folder, and runs a few
/// commands on the files. The folder stays, so that you can experiment with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno demo")]
pub struct Options {}

/// An agent fixes a failing test.
const CONVERSATION: &str = include_str!("demo/conversation.steno.jsonl");

/// The widest line of the tour, and the indent of what commands print.
const WIDTH_MAX: usize = 100;
const INDENT: usize = 2;

/// The width of the tour.
fn width() -> usize {
    terminal::width().min(WIDTH_MAX)
}

pub fn run(_options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let folder = fresh_folder("steno-demo-")?;
    let mut tour = Tour { folder, output };
    let samples = write_samples(&tour.folder)?;
    tour.introduce(&samples)?;
    tour.walk(&samples)?;
    Ok(ExitStatus::Done)
}

/// The conversation in one format.
struct Sample {
    info: &'static FormatInfo,
    file: String,
    outcome: Outcome,
}

fn write_samples(folder: &Path) -> Result<Vec<Sample>, CommandError> {
    let native = format_named(wire::NAME)?;
    Registry::built_in().targets().map(|format| write_sample(folder, native, format)).collect()
}

fn write_sample(folder: &Path, native: &dyn Format, format: &'static dyn Format) -> Result<Sample, CommandError> {
    let info = format.info();
    let own = info.extension.strip_prefix(info.name).is_some();
    let file = if own { format!("demo.{}", info.extension) } else { format!("demo.{}.{}", info.name, info.extension) };
    let mut out = NewFile::options().existing(Existing::Replaced).create(&folder.join(&file), [])?;
    let outcome =
        convert(native, &mut CONVERSATION.as_bytes(), format, &mut out, Carry::Omit).map_err(std::io::Error::from)?;
    out.commit()?;
    if info.name == native.info().name {
        // The other files derive from this one, and programs that find all of them take the oldest for the original.
        let before = SystemTime::now() - Duration::from_secs(1);
        let _ = File::options().write(true).open(folder.join(&file)).and_then(|file| file.set_modified(before));
    }
    Ok(Sample { info, file, outcome })
}

struct Tour<'a, 'o> {
    folder: PathBuf,
    output: &'a mut Output<'o>,
}

impl Tour<'_, '_> {
    fn introduce(&mut self, samples: &[Sample]) -> Result<(), CommandError> {
        let colour = self.output.colour();
        let events = CONVERSATION.lines().count();
        self.say(&format!(
            "A user asks an agent to fix a failing test. The conversation has {events} events: messages, thinking,"
        ))?;
        self.say("tool calls, an error, token counts and a compaction. It is now in this folder in every format:")?;
        self.say("")?;
        self.say(&format!("  {}", colour.paint(TextStyle::Strong, &self.folder.display().to_string())))?;
        self.say("")?;
        let name_width = samples.iter().map(|sample| sample.file.len()).max().unwrap_or(0);
        let head = format!("  {:<name_width$}  {:>8}  lost, because the format has no place for it", "file", "kept");
        self.say(&colour.paint(TextStyle::Faint, &head))?;
        for sample in samples {
            let report = &sample.outcome.losses;
            let kept = format!("{} of {}", report.kept.values().sum::<u64>(), report.read.values().sum::<u64>());
            let begin = format!("  {:<name_width$}  {kept:>8}  ", sample.file);
            let room = width().saturating_sub(begin.len()).max(ROOM_MIN);
            for (at, line) in Line::of(&missing(report), Style::new()).wrapped(room).iter().enumerate() {
                let begin = if at == 0 { begin.clone() } else { " ".repeat(begin.len()) };
                self.say(&format!("{begin}{}", line.text()))?;
            }
        }
        self.say("")?;
        self.say("steno reads each file back and compares it, so every loss is measured. Try it yourself:")?;
        self.say("")?;
        let cd = format!("  $ cd {}", self.folder.display());
        self.say(&colour.paint(TextStyle::Strong, &cd))
    }

    fn walk(&mut self, samples: &[Sample]) -> Result<(), CommandError> {
        let native = samples.iter().find(|sample| sample.info.name == wire::NAME);
        // A format that keeps much but not everything, and can carry the rest.
        let other = samples
            .iter()
            .filter(|sample| sample.info.traits.carries && sample.outcome.losses.is_lossy())
            .max_by_key(|sample| sample.outcome.losses.kept.values().sum::<u64>());
        let (Some(native), Some(other)) = (native, other) else { return Ok(()) };
        let (name, file) = (other.info.name, other.file.as_str());

        self.heading("Check a file. steno detects the format by content.")?;
        self.run(&format!("steno check {file}"))?;
        self.heading("Show the last messages.")?;
        self.run(&format!("steno show {file} --kind user,assistant --last 2"))?;
        self.heading("Print a tool result as JSON, for programs.")?;
        self.run(&format!("steno show {} --kind tool_result --first 1 --json", native.file))?;
        self.heading("Convert a file. steno reports losses, one line per kind of event.")?;
        self.run(&format!("steno convert {} --to {name} -o out.{}", native.file, other.info.extension))?;
        self.heading("Convert without loss: embed the source, and restore it later.")?;
        let carried = format!("carried.{}", other.info.extension);
        self.run_for_last(&format!("steno convert {} --to {name} --carry -o {carried}", native.file))?;
        self.run(&format!("steno convert {carried} --to {} -o back.jsonl", wire::NAME))?;
        self.compare(&native.file, "back.jsonl")?;
        self.heading("Index everything in this folder. The store is in this folder too.")?;
        self.run_for_last("steno index --root .")?;
        self.heading("Search all sessions.")?;
        self.run_for_first("steno find leap --root . --limit 3", 8)?;
        self.heading("Count tokens and cost.")?;
        self.run(&format!("steno usage {file} --by model"))?;
        self.heading("See what the agent did.")?;
        self.run_for_first(&format!("steno audit {file}"), 12)?;
        self.heading("Replay the session; on a terminal, keys pause it and move in it.")?;
        self.run_for_first(&format!("steno replay {file}"), 8)?;
        self.say("")?;
        self.say("Now try your own file: steno check FILE. For all formats and their folders: steno formats")
    }

    fn say(&mut self, text: &str) -> Result<(), CommandError> {
        self.output.line(text)
    }

    /// A line that a command printed.
    fn indented(&mut self, line: &str) -> Result<(), CommandError> {
        let room = width() - INDENT;
        // JSON has no place to break a line.
        let lines = wrapped_text(line, room).into_owned();
        lines.split('\n').try_for_each(|line| self.say(format!("  {}", shortened(line, room)).trim_end()))
    }

    fn heading(&mut self, text: &str) -> Result<(), CommandError> {
        self.say("")?;
        self.say(text)
    }

    fn command(&mut self, line: &str) -> Result<(), CommandError> {
        let line = self.output.colour().paint(TextStyle::Strong, &format!("  $ {line}"));
        self.say(&line)
    }

    /// Runs a command in the folder and shows its output.
    fn run(&mut self, line: &str) -> Result<(), CommandError> {
        let printed = self.print(line)?;
        printed.lines().try_for_each(|line| self.indented(line))
    }

    /// Runs a command in the folder and shows the last line of its output.
    fn run_for_last(&mut self, line: &str) -> Result<(), CommandError> {
        let printed = self.print(line)?;
        let last = printed.lines().last().unwrap_or_default();
        self.say("  \u{2026}")?;
        self.indented(last)
    }

    /// Runs a command in the folder and shows the first lines of its output.
    fn run_for_first(&mut self, line: &str, count: usize) -> Result<(), CommandError> {
        let printed = self.print(line)?;
        printed.lines().take(count).try_for_each(|line| self.indented(line))?;
        if printed.lines().count() > count {
            self.say("  \u{2026}")?;
        }
        Ok(())
    }

    /// Runs a command in the folder, with a store below the folder.
    fn print(&mut self, line: &str) -> Result<String, CommandError> {
        self.command(line)?;
        let mut steno = Command::new(std::env::current_exe()?);
        steno.args(line.split(' ').skip(1)).current_dir(&self.folder).env_remove("STENO_HOME").env("NO_COLOR", "1");
        steno.env("COLUMNS", (width() - INDENT).to_string());
        let done = steno.stdin(Stdio::null()).output()?;
        // What a command tells its user comes after what it found.
        let printed = [done.stdout, done.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        if done.status.code() == Some(2) {
            return Err(CommandError::new(printed.trim_end().to_owned()));
        }
        Ok(printed.replace(&format!("{}/", self.folder.display()), ""))
    }

    /// Compares two files byte by byte.
    fn compare(&mut self, one: &str, other: &str) -> Result<(), CommandError> {
        self.command(&format!("cmp {one} {other} && echo identical"))?;
        let read = |file: &str| Source::open(&self.folder.join(file), Passes::Once)?.read_whole(1 << 20);
        if read(one)? != read(other)? {
            return Err(CommandError::new(format!("{one} and {other} differ, but should be identical")));
        }
        let good = self.output.colour().paint(TextStyle::Good, "  identical");
        self.say(&good)
    }
}

/// The least width of the last column of the table.
const ROOM_MIN: usize = 20;

/// How many kinds or fields the table names; it counts the rest.
const NAMED_MAX: usize = 4;

/// A short description of what a format could not keep.
fn missing(report: &LossReport) -> String {
    let mut events: BTreeMap<Kind, u64> = BTreeMap::new();
    let mut fields: BTreeSet<&str> = BTreeSet::new();
    for ((kind, field, how), count) in report.losses.iter().filter(|((_, _, how), _)| how.is_loss()) {
        match (field.as_str(), how) {
            ("", LossKind::Dropped { .. }) => *events.entry(*kind).or_default() += count.times,
            ("", _) => {}
            (field, _) => drop(fields.insert(field)),
        }
    }
    let mut losses: Vec<String> = Vec::new();
    if events.len() > NAMED_MAX {
        losses.push(format!("{} events of {} kinds", events.values().sum::<u64>(), events.len()));
    } else {
        losses.extend(events.iter().map(|(kind, times)| format!("{times} {}", kind.name())));
    }
    if fields.len() > NAMED_MAX {
        losses.push(format!("{} fields", fields.len()));
    } else {
        losses.extend(fields.into_iter().map(str::to_owned));
    }
    if losses.is_empty() { "nothing".to_owned() } else { losses.join(", ") }
}
