//! Trimming and cutting every fixture, and every file of the corpus if it is available: one test for every file. Whatever is
//! removed, the rest stays as it was: no new note, no call without its result, no forgotten record.

mod every_file;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use stenograph::edit::cut::{Selection, SplitBy, cut, split};
use stenograph::edit::links::Links;
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::trim::{Limits, Moment, Rule, Trim, TrimAction, trim};
use stenograph::edit::units::Units;
use stenograph::edit::{Applied, EditMethod, Fate, Original, Plan, apply};
use stenograph::format::Format;
use stenograph::frame::Framing;
use stenograph::model::{Content, Event, Kind};
use stenograph::{Detected, Registry};

fn main() {
    every_file::run(file);
}

fn file(format: &'static dyn Format, path: &Path) -> Result<(), Failed> {
    let bytes = fs::read(path)?;
    if format.info().is_never_edited {
        let is_refused = Original::read(format, &bytes).is_err();
        return if is_refused { Ok(()) } else { Err("it is not refused".into()) };
    }
    let original = Original::read(format, &bytes)?;
    let about = |what: &str| {
        let what = what.to_owned();
        move |failed: Failed| Failed::from(format!("{what}: {}", failed.message().unwrap_or_default()))
    };
    let whole = trim(&original.events, Moment::Load, &Trim::default()).report.before;
    let parts: &[u64] = if bytes.len() > 256 << 10 { &[1, 6] } else { &[1, 3, 6, 9, 10] };
    for part in parts {
        let target = (whole * part / 10).max(1);
        trimmed(&original, target).map_err(about(&format!("trimmed to {target} of {whole}")))?;
    }
    let limits = Limits { chat: whole / 2 + 1, prompt: 20, tool: 30 };
    let how = Trim { rule: Rule::Cycod, limits, ..Trim::default() };
    let plan = trim(&original.events, Moment::Load, &how).plan;
    checked(&original, &plan).map_err(about("trimmed as CycoD does"))?;
    let count = original.events.len();
    let ranges = [count / 3..2 * count / 3, 0..count / 2, count / 2..count];
    for range in ranges.into_iter().take(if bytes.len() > 256 << 10 { 1 } else { 3 }) {
        let what = format!("cut {range:?}");
        let plan = cut(&original.events, &Selection { events: Some(range), ..Selection::default() }).plan;
        checked(&original, &plan).map_err(about(&what))?;
    }
    let tokenizer = Tokenizer::default();
    let tokens: Vec<u64> = original.events.iter().map(|event| tokenizer.event(event)).collect();
    let splits = [SplitBy::Turns(1), SplitBy::Events(vec![count / 2]), SplitBy::Tokens(whole / 3 + 1, &tokens)];
    let names = ["every turn", "in the middle", "by tokens"];
    for (how, name) in splits.iter().zip(names).take(if bytes.len() > 256 << 10 { 1 } else { 3 }) {
        divided(&original, how).map_err(about(&format!("divided {name}")))?;
    }
    Ok(())
}

/// Checks the promises of our trimming rule.
fn trimmed(original: &Original<'_>, target: u64) -> Result<(), Failed> {
    let how = Trim { limits: Limits { chat: target, ..Limits::NONE }, ..Trim::default() };
    let found = trim(&original.events, Moment::Load, &how);
    let applied = checked(original, &found.plan)?;
    let units = Units::of(&original.events);
    let newest = units.newest().map_or(original.events.len(), |unit| unit.events.start);
    for event in &found.report.trimmed {
        // After the newest question, only results are shortened.
        if event.event >= newest && event.action != TrimAction::Snipped {
            return Err(format!("event {} of the newest turn was {}", event.event, event.action.name()).into());
        }
        if event.action == TrimAction::Snipped && event.kind != Kind::ToolResult {
            return Err(format!("a {} was snipped", event.kind.name()).into());
        }
    }
    let saved: i64 = found.report.trimmed.iter().map(|event| event.saved).sum();
    if found.report.before.checked_sub_signed(saved) != Some(found.report.after) {
        return Err(format!("{saved} tokens saved, but {:?}", found.report).into());
    }
    let left = trim(&applied.events, Moment::Load, &Trim::default()).report.before;
    if left > found.report.after {
        return Err(format!("{left} tokens are left, not {}", found.report.after).into());
    }
    let fixed = |(number, event): (usize, &Event<'_>)| {
        let stays = number >= newest || !units.is_removable(number);
        if stays && units.is_in_spine(number) { Tokenizer::default().event(event) } else { 0 }
    };
    let least: u64 = original.events.iter().enumerate().map(fixed).sum();
    if least <= target && !found.report.is_reached() {
        return Err(format!("{least} would be possible, but {} are left", found.report.after).into());
    }
    Ok(())
}

fn divided(original: &Original<'_>, by: &SplitBy<'_>) -> Result<(), Failed> {
    let parts = split(&original.events, by);
    let mut covered = 0;
    // If there are very many parts, only a few are tried.
    let step = (parts.parts.len() / 4).max(1);
    for (index, part) in parts.parts.iter().enumerate() {
        if part.events.start != covered {
            return Err(format!("part {} begins at {}, not {covered}", index + 1, part.events.start).into());
        }
        covered = part.events.end;
        if index % step == 0 {
            let applied = checked(original, &parts.plan(&original.events, part))
                .map_err(|failed| format!("piece {}: {}", index + 1, failed.message().unwrap_or_default()))?;
            // One or two records of a format without a header may look like anything.
            if let Detected::Format(found) = Registry::built_in().detect(&applied.bytes)
                && applied.events.len() > 2
                && found.info().name != original.format.info().name
                && !original.format.info().traits.lossy
            {
                return Err(format!("piece {} is taken for {}", index + 1, found.info().name).into());
            }
        }
    }
    if covered == original.events.len() { Ok(()) } else { Err(format!("the parts end at {covered}").into()) }
}

fn is_talk(event: &Event<'_>) -> bool {
    !event.restates && matches!(event.kind(), Kind::Message | Kind::ToolCall | Kind::ToolResult)
}

/// Applies a plan and checks the result.
fn checked(original: &Original<'_>, plan: &Plan) -> Result<Applied, Failed> {
    let applied = apply(original, plan)?;
    let lossy = original.format.info().traits.lossy;
    if let Some(note) = applied.notes.first().filter(|_| !lossy) {
        return Err(format!("a new note: {} (line {})", note.text, note.at.line).into());
    }
    if !applied.is_exact() && !lossy {
        return Err(format!("{:?}: {}", applied.method, applied.differences.to_json()).into());
    }
    if !lossy && separated(&applied.events) > separated(&original.events) {
        return Err("a call lost its result".into());
    }
    untouched(original, plan, &applied)?;
    // In formats whose records depend on earlier ones, only the text identifies a repetition.
    if original.format.info().traits.pieces {
        remembered(original, plan, &applied)?;
    }
    Ok(applied)
}

/// The number of calls and results without a partner.
fn separated(events: &[Event<'_>]) -> usize {
    let paired: HashSet<usize> = Links::of(events).iter().flat_map(|link| [link.from, link.to]).collect();
    let single = |(number, event): &(usize, &Event<'_>)| {
        matches!(event.kind(), Kind::ToolCall | Kind::ToolResult) && !event.restates && !paired.contains(number)
    };
    events.iter().enumerate().filter(single).count()
}

/// Lines of unchanged records are copied: there are at most as many new lines as rewritten records.
fn untouched(original: &Original<'_>, plan: &Plan, applied: &Applied) -> Result<(), Failed> {
    let lines_only = original.format.info().framing == Framing::Lines && !original.format.info().traits.lossy;
    if !lines_only {
        return Ok(());
    }
    if !matches!(applied.method, EditMethod::Spliced | EditMethod::Copied) {
        return Err(format!("{:?}, though it has lines", applied.method).into());
    }
    let mut before: HashMap<&[u8], usize> = HashMap::new();
    for line in original.bytes.split(|byte| *byte == b'\n') {
        *before.entry(line).or_default() += 1;
    }
    let mut new = 0_u64;
    for line in applied.bytes.split(|byte| *byte == b'\n') {
        match before.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new += 1,
        }
    }
    let touched = |number: &usize| plan.fate(*number) != Fate::Kept;
    let planned = (0..original.events.len()).filter(touched).count() as u64;
    if new > planned + applied.also_changed {
        return Err(format!("{new} new lines, of which {planned} and {} were to change", applied.also_changed).into());
    }
    Ok(())
}

/// Events that were in the conversation and stay are still in it: no agent forgets them because of a broken link.
fn remembered(original: &Original<'_>, plan: &Plan, applied: &Applied) -> Result<(), Failed> {
    let (before, after) = (Units::of(&original.events), Units::of(&applied.events));
    let is_visible = |events: &[Event<'_>], units: &Units, number: usize| {
        units.is_in_spine(number) && events.get(number).is_some_and(is_talk)
    };
    let stays = |number: &usize| plan.fate(*number) != Fate::Removed && is_visible(&original.events, &before, *number);
    let (was, is) = (
        (0..original.events.len()).filter(stays).count(),
        (0..applied.events.len()).filter(|number| is_visible(&applied.events, &after, *number)).count(),
    );
    if is < was {
        let shown = |content: Option<&Content<'_>>| content.map(|content| content.joined().decode().into_owned());
        let lost = (0..original.events.len()).filter(stays).find_map(|number| {
            let event = original.events.get(number)?;
            let again = applied.events.iter().enumerate().any(|(at, found)| {
                is_visible(&applied.events, &after, at) && found.id == event.id && found.body == event.body
            });
            (!again).then(|| format!("event {number}: {:?}", shown(event.content())))
        });
        return Err(format!("{was} events were to stay in the conversation, {is} did: {lost:?}").into());
    }
    Ok(())
}
