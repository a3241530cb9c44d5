//! A comparison for readers: each change with the texts of its steps, and its spelling for programs. `steno diff` and the viewer
//! use it.

use super::align::{Comparison, DiffChange, Side};
use super::diff_step::{Class, DiffStep, display_text};
use crate::evidence::nested_events;
use crate::json::Draft;
use crate::model::Event;
use crate::render::{counted, grouped};
use crate::text::quote;

/// A step with its text.
#[derive(Clone, Debug)]
pub struct StepText<'t> {
    /// The step.
    pub step: &'t DiffStep,
    /// The tool of a call or a result.
    pub tool: Option<String>,
    /// The text for people.
    pub text: String,
}

/// One change with its texts.
#[derive(Clone, Debug)]
pub enum ShownChange<'t> {
    /// `count` equal steps from here on.
    Same {
        /// The first in A.
        a: Option<&'t DiffStep>,
        /// The first in B.
        b: Option<&'t DiffStep>,
        /// The number of steps.
        count: usize,
    },
    /// The step is at another position.
    Moved {
        /// The step in A.
        a: StepText<'t>,
        /// The equal step in B.
        b: &'t DiffStep,
    },
    /// The steps are similar.
    Changed {
        /// The step in A.
        a: StepText<'t>,
        /// The step in B.
        b: StepText<'t>,
    },
    /// Only one conversation has the step.
    Only {
        /// The conversation.
        side: Side,
        /// The step.
        text: StepText<'t>,
    },
}

impl<'t> StepText<'t> {
    /// The text of a step, from the event with its number. Without the event, the text is empty.
    pub fn of(step: &'t DiffStep, event: Option<&Event<'_>>) -> StepText<'t> {
        let text = |event: &Event<'_>| (display_text(event).trim().to_owned(), event.name().map(str::to_owned));
        // The step of a nested record has the number of the enclosing record.
        let nested = event.filter(|event| !step.is_of(event)).map(nested_events).unwrap_or_default();
        let (text, tool) = match (nested.iter().find(|inner| step.is_of(inner)), event) {
            (Some(inner), _) => text(inner),
            (None, Some(event)) => text(event),
            (None, None) => (String::new(), None),
        };
        StepText { step, tool, text }
    }

    fn draft(&self) -> Draft<'static> {
        let mut draft = Draft::new();
        draft.set("event", self.step.number.to_string());
        draft.set("kind", quote(self.step.class.name()));
        if self.step.class == Class::Result {
            draft.set("failed", self.step.has_failed.to_string());
        }
        if self.step.is_in_side_conversation {
            draft.set("uncompared", "true");
        }
        if let Some(tool) = &self.tool {
            draft.set("name", quote(tool));
        }
        draft.set("text", quote(&self.text));
        draft
    }
}

impl ShownChange<'_> {
    /// For programs, with the complete texts.
    pub fn json(&self) -> String {
        let mut draft = Draft::new();
        match self {
            ShownChange::Same { a, b, count } => {
                draft.set("change", quote("same"));
                let event = |step: &Option<&DiffStep>| Draft::new().with("event", step.map_or(0, |step| step.number));
                draft.nest("a", event(a));
                draft.nest("b", event(b));
                draft.set("steps", count.to_string());
            }
            ShownChange::Moved { a, b } => {
                draft.set("change", quote("moved"));
                draft.nest("a", a.draft());
                draft.nest("b", Draft::new().with("event", b.number));
            }
            ShownChange::Changed { a, b } => {
                draft.set("change", quote("changed"));
                draft.nest("a", a.draft());
                draft.nest("b", b.draft());
            }
            ShownChange::Only { side, text } => {
                draft.set("change", quote(if *side == Side::A { "only_a" } else { "only_b" }));
                draft.nest(if *side == Side::A { "a" } else { "b" }, text.draft());
            }
        }
        draft.render(None)
    }
}

impl Comparison {
    /// The summary for programs.
    pub fn summary_json(&self) -> String {
        let counts = self.counts();
        let mut draft = Draft::new();
        draft.set("equal", self.is_equal().to_string());
        let event = |steps: &[DiffStep], at: Option<usize>| {
            at.and_then(|at| steps.get(at)).map_or_else(|| "null".to_owned(), |step| step.number.to_string())
        };
        let shared = self.shared();
        let mut parted = Draft::new();
        parted.set("steps", shared.to_string());
        parted.set("a", event(&self.a, shared.checked_sub(1)));
        parted.set("b", event(&self.b, shared.checked_sub(1)));
        draft.set("same_up_to", parted.render(None));
        let numbers = [
            ("same", counts.same),
            ("moved", counts.moved),
            ("changed", counts.changed),
            ("only_a", counts.only_a),
            ("only_b", counts.only_b),
        ];
        numbers.into_iter().for_each(|(key, number)| draft.set(key, number.to_string()));
        let uncompared = self.uncompared.iter().map(|uncompared| {
            let draft = Draft::new().with("side", uncompared.side.name().to_lowercase());
            draft.with("kind", uncompared.class.name()).with("count", uncompared.count).render(None)
        });
        draft.set_list("not_compared", uncompared);
        if let Some((side, count)) = self.failed_only {
            let failures = Draft::new().with("side", side.name().to_lowercase()).with("count", count);
            draft.nest("failures_not_compared", failures);
        }
        draft.render(None)
    }

    /// What was not compared, and how many steps are equal, moved, changed, or in one conversation only; one sentence each.
    pub fn summary(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .uncompared
            .iter()
            .map(|uncompared| {
                let other = uncompared.side.other().name();
                let (count, class) = (counted(uncompared.count, "step"), uncompared.class.name());
                format!("not compared: {count} of kind {class} in {}; {other} has none", uncompared.side.name())
            })
            .collect();
        if let Some((side, count)) = self.failed_only {
            let (count, other) = (counted(count, "failed call"), side.other().name());
            lines.push(format!("not compared: {count} in {}; {other} does not record failures", side.name()));
        }
        for (side, steps) in [(Side::A, &self.a), (Side::B, &self.b)] {
            let is_missing = |change: &&DiffChange| match change {
                DiffChange::Only { side: only, at } => {
                    *only == side && steps.get(*at).is_some_and(|step| step.is_in_side_conversation)
                }
                DiffChange::Same { .. } | DiffChange::Moved { .. } | DiffChange::Changed { .. } => false,
            };
            let count = self.changes.iter().filter(is_missing).count() as u64;
            if count > 0 {
                lines.push(format!(
                    "{} lacks {} of sub-agents in {}",
                    side.other().name(),
                    counted(count, "step"),
                    side.name()
                ));
            }
        }
        let counts = self.counts();
        let parts = [
            (counts.same, "equal"),
            (counts.moved, "moved"),
            (counts.changed, "changed"),
            (counts.only_a, "only in A"),
            (counts.only_b, "only in B"),
        ];
        let parts = parts.into_iter().map(|(count, description)| format!("{} {description}", grouped(count)));
        lines.push(format!("steps: {}", parts.collect::<Vec<_>>().join(", ")));
        lines
    }
}
