//! Two conversations, aligned by content. The alignment is that of `steno diff`; a page of changes reads only the texts in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use stenograph::compare::{
    Comparison, DiffChange, DiffStep, DiffStepsBuilder, ShownChange, Side, StepText, Vocabulary, compare,
};
use stenograph::model::Spine;
use stenograph_store::session_events::SessionEvents;

use super::address::Params;
use super::pages::{NamedConversation, conversation};
use super::state::Viewer;
use super::trouble::AnswerProblem;

/// The two conversations that a request names, and their comparison.
pub struct ComparedPair {
    pub a: NamedConversation,
    pub b: NamedConversation,
    pub found: Arc<Comparison>,
}

/// How much of a text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLength {
    Whole,
    /// At most this many bytes.
    AtMost(usize),
}

impl ComparedPair {
    /// Compares the conversations that `a`, `b`, `agent_a` and `agent_b` name.
    pub fn of(viewer: &Viewer, params: &Params) -> Result<ComparedPair, AnswerProblem> {
        let side = |name: &str, agent: &str| {
            let session = params.value(name).ok_or_else(|| {
                AnswerProblem::bad("two sessions are needed")
                    .hint("the parameters a and b name the sessions to compare")
            })?;
            conversation(viewer, session, params.value(agent))
        };
        let (a, b) = (side("a", "agent_a")?, side("b", "agent_b")?);
        let found = viewer.comparison(&a.events, &b.events, || compared(viewer, [&a.events, &b.events]))?;
        Ok(ComparedPair { a, b, found })
    }

    pub fn side(&self, side: Side) -> &NamedConversation {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// The changes of a range with their texts.
    pub fn shown(
        &self,
        viewer: &Viewer,
        range: Range<usize>,
        length: TextLength,
    ) -> Result<Vec<ShownChange<'_>>, AnswerProblem> {
        let found = self.found.as_ref();
        let changes = found.changes.get(range.start.min(found.changes.len())..range.end.min(found.changes.len()));
        let changes = changes.unwrap_or_default();
        let mut wanted: [Vec<usize>; 2] = Default::default();
        let [in_a, in_b] = &mut wanted;
        for change in changes {
            match change {
                DiffChange::Same { .. } => {}
                DiffChange::Moved { a, .. } | DiffChange::Only { side: Side::A, at: a } => in_a.push(*a),
                DiffChange::Only { side: Side::B, at } => in_b.push(*at),
                DiffChange::Changed { a, b } => {
                    in_a.push(*a);
                    in_b.push(*b);
                }
            }
        }
        let mut texts_a = texts(viewer, &self.a.events, &found.a, in_a, length)?;
        let mut texts_b = texts(viewer, &self.b.events, &found.b, in_b, length)?;
        let shown = changes.iter().filter_map(|change| {
            Some(match change {
                DiffChange::Same { a, b, count } => {
                    ShownChange::Same { a: found.a.get(*a), b: found.b.get(*b), count: *count }
                }
                DiffChange::Moved { a, b } => ShownChange::Moved { a: texts_a.remove(a)?, b: found.b.get(*b)? },
                DiffChange::Changed { a, b } => ShownChange::Changed { a: texts_a.remove(a)?, b: texts_b.remove(b)? },
                DiffChange::Only { side: Side::A, at } => {
                    ShownChange::Only { side: Side::A, text: texts_a.remove(at)? }
                }
                DiffChange::Only { side: Side::B, at } => {
                    ShownChange::Only { side: Side::B, text: texts_b.remove(at)? }
                }
            })
        });
        Ok(shown.collect())
    }

    /// The texts of equal steps, as the first conversation has them.
    pub fn same_texts(
        &self,
        viewer: &Viewer,
        range: Range<usize>,
        length: TextLength,
    ) -> Result<Vec<StepText<'_>>, AnswerProblem> {
        let wanted: Vec<usize> = range.collect();
        Ok(texts(viewer, &self.a.events, &self.found.a, &wanted, length)?.into_values().collect())
    }
}

/// The texts of some steps of a conversation, by the index of the step. A step whose event is gone has no text.
fn texts<'s>(
    viewer: &Viewer,
    events: &SessionEvents,
    steps: &'s [DiffStep],
    wanted: &[usize],
    length: TextLength,
) -> Result<BTreeMap<usize, StepText<'s>>, AnswerProblem> {
    let mut texts = BTreeMap::new();
    // An event may have several steps: its own, and those of nested records.
    let mut by_number: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for at in wanted {
        if let Some(step) = steps.get(*at) {
            by_number.entry(step.number).or_default().push(*at);
            texts.insert(*at, StepText::of(step, None));
        }
    }
    let numbers: BTreeSet<u64> = by_number.keys().copied().collect();
    let searcher = viewer.store.searcher().ok();
    events.numbered(&viewer.store, searcher.as_ref(), &numbers, &mut |number, event| {
        for at in by_number.get(&number).into_iter().flatten() {
            let Some(step) = steps.get(*at) else { continue };
            let mut text = StepText::of(step, Some(event));
            if let TextLength::AtMost(size_max) = length {
                let end = (0..=size_max.min(text.text.len())).rev().find(|end| text.text.is_char_boundary(*end));
                text.text.truncate(end.unwrap_or(0));
                text.text.shrink_to_fit();
            }
            texts.insert(*at, text);
        }
    })?;
    Ok(texts)
}

fn compared(viewer: &Viewer, [a, b]: [&SessionEvents; 2]) -> Result<Comparison, AnswerProblem> {
    let is_one_format = a.format().info().name == b.format().info().name;
    let vocabulary = |events: &SessionEvents| match is_one_format {
        true => Vocabulary::all(),
        false => Vocabulary::of(Some(events.format())),
    };
    let (steps_a, steps_b) = (steps(viewer, a)?, steps(viewer, b)?);
    Ok(compare(steps_a, steps_b, [&vocabulary(a), &vocabulary(b)]))
}

fn steps(viewer: &Viewer, events: &SessionEvents) -> Result<Vec<DiffStep>, AnswerProblem> {
    let mut spine = Spine::default();
    events.as_stated(&viewer.store, &mut |event| spine.add(event))?;
    spine.decide();
    let mut steps = DiffStepsBuilder::new(spine);
    events.as_stated(&viewer.store, &mut |event| _ = steps.add(event))?;
    Ok(steps.finish().steps)
}
