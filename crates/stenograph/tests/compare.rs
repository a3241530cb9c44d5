//! Comparison of every fixture and every file of the corpus: a conversation equals itself, and a converted copy differs only
//! where the loss report says so.

mod every_file;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use stenograph::compare::{
    Class, ConversationBuilder, ConversationSteps, DiffStep, IsInSpine, RelationEvidence, Vocabulary, compare, relate,
};
use stenograph::convert::{Carry, convert};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::loss::{Count, LossKind};
use stenograph::model::{Event, Kind, LeftOut, Spine};
use stenograph::read::all;

/// Larger files are not converted to every format.
const SIZE_MAX: usize = 1 << 20;

fn main() {
    every_file::run(file);
}

fn file(format: &'static dyn Format, path: &Path) -> Result<(), Failed> {
    let bytes = fs::read(path)?;
    let events = all(format, &bytes).events;
    let (turns, strand) = seen(&events);
    let whole = Vocabulary::all();
    let same = compare(turns.clone(), turns.clone(), [&whole, &whole]);
    if !same.is_equal() || same.shared() != turns.len() {
        return Err("a conversation is not the same as itself".into());
    }
    let is_answered =
        strand.steps.iter().any(|step| matches!(step.class, Class::Assistant | Class::Call | Class::Result));
    let found = relate(&[strand.clone(), strand]);
    let copy = found
        .get(1)
        .and_then(Option::as_ref)
        .is_some_and(|found| found.how == RelationEvidence::Copy && found.parent == 0);
    if is_answered && !copy {
        return Err("a copy is not known for one".into());
    }
    if bytes.len() > SIZE_MAX {
        return Ok(());
    }
    for to in FORMATS.iter().filter(|to| to.info().name != format.info().name) {
        let (mut out, mut source) = (Vec::new(), bytes.as_slice());
        let Ok(outcome) = convert(format, &mut source, *to, &mut out, Carry::Omit) else { continue };
        let written = all(*to, &out).events;
        let unanswered = lost_answers(&events, &written);
        let dropped = |(key, count): (&(Kind, String, LossKind), &Count)| match key {
            (Kind::ToolResult, field, LossKind::Dropped { .. }) if field.is_empty() => count.times,
            _ => 0,
        };
        let dropped: u64 = outcome.losses.losses.iter().map(dropped).sum();
        if unanswered.len() as u64 > dropped {
            return Err(format!("{}: unreported loss of results: {unanswered:?}", to.info().name).into());
        }
        let (copied, _) = seen(&written);
        let words = [format, *to].map(|format| Vocabulary::of(Some(format)));
        let found = compare(turns.clone(), copied, [&words[0], &words[1]]);
        let has_invented =
            outcome.losses.losses.keys().any(|(_, field, lost)| field.is_empty() && *lost == LossKind::Invented);
        let is_reported = outcome.losses.is_lossy() || outcome.losses.is_reordered() || has_invented;
        if !found.is_equal() && !is_reported {
            return Err(
                format!("{}: differs, and the loss report says nothing: {:?}", to.info().name, found.counts()).into()
            );
        }
    }
    Ok(())
}

/// The calls that have a result in the source and none in the copy.
fn lost_answers(source: &[Event<'_>], copy: &[Event<'_>]) -> Vec<String> {
    let ids = |events: &[Event<'_>], kind: Kind| -> BTreeSet<String> {
        let of_kind = events.iter().filter(|event| !event.restates && event.kind() == kind);
        of_kind.filter_map(|event| event.call().map(str::to_owned)).collect()
    };
    let answered: BTreeSet<String> =
        ids(source, Kind::ToolCall).intersection(&ids(source, Kind::ToolResult)).cloned().collect();
    let (asked, answers) = (ids(copy, Kind::ToolCall), ids(copy, Kind::ToolResult));
    answered.into_iter().filter(|call| asked.contains(call) && !answers.contains(call)).collect()
}

fn seen(events: &[Event<'_>]) -> (Vec<DiffStep>, ConversationSteps) {
    let mut spine = Spine::of(events);
    let mut weaving = ConversationBuilder::new(&spine);
    let mut turns = Vec::new();
    for (number, event) in (1..).zip(events) {
        let left_out = spine.left_out(event);
        let is_in_spine = if left_out.is_none() { IsInSpine::Yes } else { IsInSpine::No };
        weaving.add(event, &spine, is_in_spine);
        turns.extend(DiffStep::of(number, event).filter(|_| !left_out.is_some_and(LeftOut::is_said_elsewhere)));
    }
    (turns, weaving.finish())
}
