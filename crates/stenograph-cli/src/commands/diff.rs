//! `steno diff`: compares two runs, whatever their formats. The library aligns them; this file prints the result.

mod facts;
mod view;

use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::compare::{
    Comparison, DiffChange, DiffStep, DiffSteps, DiffStepsBuilder, ShownChange, Side, StepText, Vocabulary, compare,
};
use stenograph::model::Outline;
use stenograph::time::Time;
use stenograph_store::event_cache::{EventCache, EventRef};

use crate::clock;
use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, harmless_json};
use crate::store::SessionArgs;
use crate::table::screen_width;
use crate::terminal::wrapped_text;

/// Compare two sessions step by step
///
/// Prints facts about both sessions, the first difference, and then all differences. A step is a message, thinking, a call or a
/// result; a turn is a message of the user with everything that follows. Steps are aligned by content, so an added or removed
/// step does not affect the rest.
///
/// The formats may differ: different spellings of the same content are equal, and steps that one format cannot express are
/// counted but not compared. Only repeated records are ignored; abandoned branches and sub-agents are compared too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno diff monday.jsonl tuesday.jsonl
  steno diff 0198f2c4 0198f2c7 --summary           two sessions by their ids
  steno diff session.jsonl converted.jsonl && echo nothing was lost
  steno diff a.jsonl b.jsonl --json | jq 'select(.change == \"changed\")'

Exit codes: 0 equal, 1 different, 2 error")]
pub struct Options {
    /// First session: a file, a recording folder, or a session (id prefix or latest)
    #[arg(value_name = "A", add = crate::completion::transcript())]
    a: PathBuf,
    /// Second session
    #[arg(value_name = "B", add = crate::completion::transcript())]
    b: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Print only the facts and the first difference
    #[arg(long)]
    summary: bool,
    /// Print one JSON object per line, with all fields
    #[arg(long)]
    json: bool,
}

/// One of the two runs.
struct ComparedRun {
    name: String,
    format: &'static str,
    outline: Outline,
    steps: Vec<DiffStep>,
    /// How many turns the conversation has.
    turns: u64,
    cache: EventCache,
    /// How to read each step again, in the order of their numbers.
    marks: Vec<(u64, EventRef)>,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut a = ComparedRun::read(options, &options.a, output)?;
    let mut b = ComparedRun::read(options, &options.b, output)?;
    let is_one_format = a.format == b.format;
    let vocabularies = [&a, &b].map(|one| {
        if is_one_format { Vocabulary::all() } else { Vocabulary::of(Registry::built_in().named(one.format)) }
    });
    let found =
        compare(std::mem::take(&mut a.steps), std::mem::take(&mut b.steps), [&vocabularies[0], &vocabularies[1]]);
    let time = if options.json { |time: &Time<'_>| time.to_iso_millis() } else { clock::format_second };
    let facts = facts::of([(&a, &found.a), (&b, &found.b)], time);
    if !options.json {
        output.page();
    }
    if options.json {
        for fact in &facts {
            output.line(&harmless_json(&fact.json()))?;
        }
    } else {
        let text = view::facts(&a.name, &b.name, &facts, output.colour(), screen_width());
        write!(output.data(), "{text}")?;
        output.line(&view::divergence(&found))?;
    }
    if !options.summary {
        print_changes(options, &found, &mut a, &mut b, output)?;
    }
    match options.json {
        true => output.line(&found.summary_json())?,
        false => found.summary().iter().try_for_each(|line| output.line(&wrapped_text(line, screen_width())))?,
    }
    Ok(if found.is_equal() { ExitStatus::Done } else { ExitStatus::No })
}

/// Prints the differences one by one; at most one pair of texts is in memory.
fn print_changes(
    options: &Options,
    found: &Comparison,
    a: &mut ComparedRun,
    b: &mut ComparedRun,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    // The summary above has stated how far both are equal.
    let skipped = usize::from(found.shared() > 0 && !options.json);
    let mut same = 0;
    for change in found.changes.iter().skip(skipped) {
        if let DiffChange::Same { count, .. } = change
            && !options.json
        {
            // A step that moved to elsewhere in B is not printed here, so the equal steps before and after it count together.
            same += count;
            continue;
        }
        print_same(&mut same, output)?;
        let shown_change = match change {
            DiffChange::Same { a, b, count } => {
                ShownChange::Same { a: found.a.get(*a), b: found.b.get(*b), count: *count }
            }
            DiffChange::Moved { a: at_a, b: at_b } => match (found.a.get(*at_a), found.b.get(*at_b)) {
                (Some(one), Some(other)) => ShownChange::Moved { a: a.text(one)?, b: other },
                _ => continue,
            },
            DiffChange::Changed { a: at_a, b: at_b } => match (found.a.get(*at_a), found.b.get(*at_b)) {
                (Some(one), Some(other)) => ShownChange::Changed { a: a.text(one)?, b: b.text(other)? },
                _ => continue,
            },
            DiffChange::Only { side: Side::A, at } => match found.a.get(*at) {
                Some(step) => ShownChange::Only { side: Side::A, text: a.text(step)? },
                None => continue,
            },
            DiffChange::Only { side: Side::B, at } => match found.b.get(*at) {
                Some(step) => ShownChange::Only { side: Side::B, text: b.text(step)? },
                None => continue,
            },
        };
        match options.json {
            true => output.line(&harmless_json(&shown_change.json()))?,
            false => {
                let text = view::change(&shown_change, output.colour(), screen_width());
                write!(output.data(), "{text}")?;
            }
        }
    }
    print_same(&mut same, output)?;
    if !options.json && !found.changes.is_empty() {
        output.line("")?;
    }
    Ok(())
}

/// Prints how many steps are equal since the last difference.
fn print_same(same: &mut usize, output: &mut Output<'_>) -> Result<(), CommandError> {
    match std::mem::take(same) {
        0 => Ok(()),
        count => {
            let text = view::change(&ShownChange::Same { a: None, b: None, count }, output.colour(), screen_width());
            Ok(write!(output.data(), "{text}")?)
        }
    }
}

impl ComparedRun {
    fn read(options: &Options, name: &Path, output: &mut Output<'_>) -> Result<ComparedRun, CommandError> {
        let mut conversation = Conversation::open(&options.place, name, None, output)?;
        let mut overview = conversation.overview();
        if let Some(damage) = overview.damage.take() {
            return Err(damage);
        }
        let mut cache = conversation.event_cache();
        let (mut marks, mut failed) = (Vec::new(), None);
        let mut steps = DiffStepsBuilder::new(overview.spine);
        conversation.read_quietly(&mut |event| {
            let Some(number) = steps.add(event) else { return Flow::Continue };
            match cache.event_ref(event) {
                Ok(mark) => marks.push((number, mark)),
                Err(error) => {
                    failed = Some(error);
                    return Flow::Stop;
                }
            }
            Flow::Continue
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let format = conversation.format().map_or("", |format| format.info().name);
        let (name, outline) = (conversation.name, overview.outline);
        let DiffSteps { steps, turns } = steps.finish();
        Ok(ComparedRun { name, format, outline, steps, turns, cache, marks })
    }

    /// A step with its text.
    fn text<'t>(&mut self, step: &'t DiffStep) -> Result<StepText<'t>, CommandError> {
        let mark = self.marks.binary_search_by_key(&step.number, |(number, _)| *number).ok();
        let event = match mark.and_then(|at| self.marks.get(at)) {
            Some((_, mark)) => self.cache.event(*mark)?,
            None => None,
        };
        Ok(StepText::of(step, event.as_ref()))
    }
}
