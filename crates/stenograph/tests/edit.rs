//! Trimming and cutting every fixture, and every file of the corpus if it is available: one test for every file. Whatever is
//! removed, the rest stays as it was: no new note, no call without its result, no forgotten record.

mod every_file;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use stenograph::edit::cut::{Selection, Split, cut, split};
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::trim::{Limits, Manner, Moment, Rule, Trim, trim};
use stenograph::edit::units::{Units, bonds};
use stenograph::edit::{Applied, Fate, Original, Plan, Way, apply};
use stenograph::format::Format;
use stenograph::frame::Framing;
use stenograph::model::{Content, Event, Kind};
use stenograph::{Detected, Registry};

fn main() {
    every_file::run(file);
}

fn file(format: &'static dyn Format, path: &Path) -> Result<(), Failed> {
    let bytes = fs::read(path)?;
    let original = Original::read(format, &bytes)?;
    let about = |what: &str| {
        let what = what.to_owned();
        move |failed: Failed| Failed::from(format!("{what}: {}", failed.message().unwrap_or_default()))
    };
    let whole = trim(&original.events, Moment::Load, &Trim::default()).account.before;
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
    let splits = [Split::Every(1), Split::At(vec![count / 2]), Split::Tokens(whole / 3 + 1, &tokens)];
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
    let newest = units.units.last().map_or(original.events.len(), |unit| unit.events.start);
    for went in &found.account.went {
        // After the newest question, only results are shortened.
        if went.event >= newest && went.how != Manner::Snipped {
            return Err(format!("event {} of the newest turn was {}", went.event, went.how.name()).into());
        }
        if went.how == Manner::Snipped && went.kind != Kind::ToolResult {
            return Err(format!("a {} was snipped", went.kind.name()).into());
        }
    }
    let given: u64 = found.account.went.iter().map(|went| went.tokens).sum();
    if found.account.before - given != found.account.after {
        return Err(format!("{given} tokens went, but {:?}", found.account).into());
    }
    let left = trim(&applied.events, Moment::Load, &Trim::default()).account.before;
    if left > found.account.after {
        return Err(format!("{left} tokens are left, not {}", found.account.after).into());
    }
    let fixed = |(number, event): (usize, &Event<'_>)| {
        let stays = number >= newest || !units.is_movable(number);
        if stays && units.is_told(number) { Tokenizer::default().event(event) } else { 0 }
    };
    let least: u64 = original.events.iter().enumerate().map(fixed).sum();
    if least <= target && !found.account.is_reached() {
        return Err(format!("{least} would be possible, but {} are left", found.account.after).into());
    }
    Ok(())
}

fn divided(original: &Original<'_>, how: &Split<'_>) -> Result<(), Failed> {
    let pieces = split(&original.events, how);
    let mut covered = 0;
    // If there are very many pieces, only a few are tried.
    let step = (pieces.pieces.len() / 4).max(1);
    for (index, piece) in pieces.pieces.iter().enumerate() {
        if piece.events.start != covered {
            return Err(format!("piece {} begins at {}, not {covered}", index + 1, piece.events.start).into());
        }
        covered = piece.events.end;
        if index % step == 0 {
            let applied = checked(original, &pieces.plan(&original.events, piece))
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
    if covered == original.events.len() { Ok(()) } else { Err(format!("the pieces end at {covered}").into()) }
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
        return Err(format!("{:?}: {}", applied.way, applied.differs.to_json()).into());
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
    let paired: HashSet<usize> = bonds(events).into_iter().flat_map(|(one, other)| [one, other]).collect();
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
    if !matches!(applied.way, Way::Spliced | Way::Copied) {
        return Err(format!("{:?}, though it has lines", applied.way).into());
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
    let touched = |number: &usize| plan.fate(*number) != Fate::Stays;
    let planned = (0..original.events.len()).filter(touched).count() as u64;
    if new > planned + applied.followed {
        return Err(format!("{new} new lines, of which {planned} and {} were to change", applied.followed).into());
    }
    Ok(())
}

/// Events that were in the conversation and stay are still in it: no agent forgets them because of a broken link.
fn remembered(original: &Original<'_>, plan: &Plan, applied: &Applied) -> Result<(), Failed> {
    let (before, after) = (Units::of(&original.events), Units::of(&applied.events));
    let told = |events: &[Event<'_>], units: &Units, number: usize| {
        units.is_told(number) && events.get(number).is_some_and(is_talk)
    };
    let stays = |number: &usize| plan.fate(*number) != Fate::Goes && told(&original.events, &before, *number);
    let (was, is) = (
        (0..original.events.len()).filter(stays).count(),
        (0..applied.events.len()).filter(|number| told(&applied.events, &after, *number)).count(),
    );
    if is < was {
        let shown = |content: Option<&Content<'_>>| content.map(|content| content.joined().decode().into_owned());
        let lost = (0..original.events.len()).filter(stays).find_map(|number| {
            let event = original.events.get(number)?;
            let again = applied.events.iter().enumerate().any(|(at, found)| {
                told(&applied.events, &after, at) && found.id == event.id && found.body == event.body
            });
            (!again).then(|| format!("event {number}: {:?}", shown(event.content())))
        });
        return Err(format!("{was} events were to stay in the conversation, {is} did: {lost:?}").into());
    }
    Ok(())
}
