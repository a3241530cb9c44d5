//! Formats a comparison for people and for programs. Text from transcripts passes through [`harmless_line`].

use std::fmt::Write as _;

use stenograph::compare::{Class, Comparison, DiffChange, DiffStep, Side, differing};
use stenograph::json::Draft;
use stenograph::text::quote;

use super::facts::DiffFact;
use crate::output::{Colour, TextStyle, counted, grouped, harmless_line, shortened};
use crate::table;

/// The maximum length of the text of a step, and of a difference.
const TEXT_LENGTH_MAX: usize = 160;

/// The length of equal text around a difference.
const AROUND_LENGTH: usize = 24;

/// The maximum width of A's column in the table of facts.
const FACT_LENGTH_MAX: usize = 60;

/// A step with its text.
pub struct StepText<'t> {
    pub step: &'t DiffStep,
    /// The tool of a call or a result.
    pub tool: Option<String>,
    pub text: String,
}

/// One change, ready to print.
pub enum ShownChange<'t> {
    /// `count` equal steps from here on.
    Same { a: Option<&'t DiffStep>, b: Option<&'t DiffStep>, count: usize },
    /// The step is at another position.
    Moved { a: StepText<'t>, b: &'t DiffStep },
    /// The steps are similar.
    Changed { a: StepText<'t>, b: StepText<'t> },
    /// Only one run has the step.
    Only { side: Side, text: StepText<'t> },
}

/// Formats the facts of both runs.
pub fn facts(a: &str, b: &str, facts: &[DiffFact], colour: Colour) -> String {
    let mut out = String::new();
    for (side, name) in [("A", a), ("B", b)] {
        let _ = writeln!(out, "{side}  {}", colour.paint(TextStyle::Strong, &harmless_line(name)));
    }
    out.push('\n');
    let cell = |text: &Option<String>| {
        let text = text.as_deref().map_or_else(|| "-".to_owned(), harmless_line);
        shortened(&text, FACT_LENGTH_MAX).into_owned()
    };
    let rows: Vec<(&DiffFact, String, String)> =
        facts.iter().map(|fact| (fact, cell(&fact.a), cell(&fact.b))).collect();
    let beside = rows.iter().filter(|(fact, ..)| fact.a != fact.b);
    let width = beside.map(|(_, a, _)| table::display_width(a)).max().unwrap_or(0);
    for (fact, a, b) in rows {
        let mark = if fact.differs() { "*" } else { " " };
        let gap = " ".repeat(width.saturating_sub(table::display_width(&a)));
        let line = if fact.a == fact.b { a } else { format!("{a}{gap}  {b}") };
        let line = format!("{mark} {:<14}{line}", fact.name);
        let _ = writeln!(out, "{}", if fact.differs() { colour.paint(TextStyle::Warning, &line) } else { line });
    }
    out.push('\n');
    out
}

/// States where the runs diverge.
pub fn divergence(found: &Comparison) -> String {
    let shared = found.shared();
    let at = |steps: &[DiffStep]| shared.checked_sub(1).and_then(|at| steps.get(at)).map_or(0, |step| step.number);
    let place = format!("event {} of A, event {} of B", grouped(at(&found.a)), grouped(at(&found.b)));
    match shared {
        _ if found.a.is_empty() && found.b.is_empty() => "both are empty".to_owned(),
        _ if found.is_equal() => format!("equal: {}", counted(shared as u64, "step")),
        0 => "different from the first step".to_owned(),
        _ => format!("equal up to step {} ({place})\n", grouped(shared as u64)),
    }
}

/// Summarises the comparison.
pub fn summary(found: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = found
        .uncompared
        .iter()
        .map(|uncompared| {
            let other = if uncompared.side == Side::A { Side::B } else { Side::A };
            let (count, class) = (counted(uncompared.count, "step"), uncompared.class.name());
            format!("not compared: {count} of kind {class} in {}; {} has none", uncompared.side.name(), other.name())
        })
        .collect();
    if let Some((side, count)) = found.failed_only {
        let other = if side == Side::A { Side::B } else { Side::A };
        let (side, other) = (side.name(), other.name());
        let count = counted(count, "failed call");
        lines.push(format!("not compared: {count} in {side}; {other} does not record failures"));
    }
    for (side, other, steps) in [(Side::A, Side::B, &found.a), (Side::B, Side::A, &found.b)] {
        let is_missing = |change: &&DiffChange| match change {
            DiffChange::Only { side: only, at } => {
                *only == side && steps.get(*at).is_some_and(|step| step.is_in_side_conversation)
            }
            DiffChange::Same { .. } | DiffChange::Moved { .. } | DiffChange::Changed { .. } => false,
        };
        let count = found.changes.iter().filter(is_missing).count() as u64;
        if count > 0 {
            let (count, side, other) = (counted(count, "step"), side.name(), other.name());
            lines.push(format!("{other} lacks {count} of sub-agents in {side}"));
        }
    }
    let counts = found.counts();
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

/// The summary for programs.
pub fn summary_json(found: &Comparison) -> String {
    let counts = found.counts();
    let mut draft = Draft::new();
    draft.set("equal", found.is_equal().to_string());
    let event = |steps: &[DiffStep], at: Option<usize>| {
        at.and_then(|at| steps.get(at)).map_or_else(|| "null".to_owned(), |step| step.number.to_string())
    };
    let shared = found.shared();
    let mut parted = Draft::new();
    parted.set("steps", shared.to_string());
    parted.set("a", event(&found.a, shared.checked_sub(1)));
    parted.set("b", event(&found.b, shared.checked_sub(1)));
    draft.set("same_up_to", parted.render(None));
    let numbers = [
        ("same", counts.same),
        ("moved", counts.moved),
        ("changed", counts.changed),
        ("only_a", counts.only_a),
        ("only_b", counts.only_b),
    ];
    numbers.into_iter().for_each(|(key, number)| draft.set(key, number.to_string()));
    let uncompared = found.uncompared.iter().map(|uncompared| {
        let (side, class) = (quote(&uncompared.side.name().to_lowercase()), quote(uncompared.class.name()));
        format!("{{\"side\":{side},\"kind\":{class},\"count\":{}}}", uncompared.count)
    });
    draft.set("not_compared", format!("[{}]", uncompared.collect::<Vec<_>>().join(",")));
    if let Some((side, count)) = found.failed_only {
        draft.set(
            "failures_not_compared",
            format!("{{\"side\":{},\"count\":{count}}}", quote(&side.name().to_lowercase())),
        );
    }
    draft.render(None)
}

impl ShownChange<'_> {
    /// For people.
    pub fn text(&self, colour: Colour) -> String {
        match self {
            ShownChange::Same { count, .. } => {
                colour.paint(TextStyle::Faint, &format!("  {} equal", counted(*count as u64, "step"))) + "\n"
            }
            ShownChange::Moved { a, b } => {
                let place = format!("event {} of A, event {} of B", grouped(a.step.number), grouped(b.number));
                let head = format!("> {}, {place}: moved", description(a));
                let text = one_line(&a.text);
                format!("{}\n    {}\n", colour.paint(TextStyle::Strong, &head), shortened(&text, TEXT_LENGTH_MAX))
            }
            ShownChange::Changed { a, b } => {
                let (length_a, length_b) = (a.text.chars().count() as u64, b.text.chars().count() as u64);
                let place = format!("event {} of A, event {} of B", grouped(a.step.number), grouped(b.step.number));
                let size = format!("{} and {} characters", grouped(length_a), grouped(length_b));
                let head = colour.paint(TextStyle::Strong, &format!("~ {}, {place}: {size}", description(a)));
                let (one, other) = match a.text == b.text {
                    true => (String::new(), String::new()),
                    false => parts(&a.text, &b.text),
                };
                let (one, other) = match a.step.has_failed == b.step.has_failed {
                    true => (one, other),
                    false => (format!("{}  {one}", outcome(a.step)), format!("{}  {other}", outcome(b.step))),
                };
                format!("{head}\n    A  {}\n    B  {}\n", one.trim_end(), other.trim_end())
            }
            ShownChange::Only { side, text } => {
                let sign = if *side == Side::A { "-" } else { "+" };
                let head =
                    format!("{sign} {}, event {} of {}", description(text), grouped(text.step.number), side.name());
                let text = one_line(&text.text);
                format!("{}\n    {}\n", colour.paint(TextStyle::Strong, &head), shortened(&text, TEXT_LENGTH_MAX))
            }
        }
    }

    /// For programs, with the complete texts.
    pub fn json(&self) -> String {
        let mut draft = Draft::new();
        let step = |text: &StepText<'_>| {
            let mut draft = Draft::new();
            draft.set("event", text.step.number.to_string());
            draft.set("kind", quote(text.step.class.name()));
            if text.step.class == Class::Result {
                draft.set("failed", text.step.has_failed.to_string());
            }
            if text.step.is_in_side_conversation {
                draft.set("uncompared", "true");
            }
            if let Some(tool) = &text.tool {
                draft.set("name", quote(tool));
            }
            draft.set("text", quote(&text.text));
            draft.render(None)
        };
        match self {
            ShownChange::Same { a, b, count } => {
                draft.set("change", quote("same"));
                let event = |step: &Option<&DiffStep>| step.map_or(0, |step| step.number);
                draft.set("a", format!("{{\"event\":{}}}", event(a)));
                draft.set("b", format!("{{\"event\":{}}}", event(b)));
                draft.set("steps", count.to_string());
            }
            ShownChange::Moved { a, b } => {
                draft.set("change", quote("moved"));
                draft.set("a", step(a));
                draft.set("b", format!("{{\"event\":{}}}", b.number));
            }
            ShownChange::Changed { a, b } => {
                draft.set("change", quote("changed"));
                draft.set("a", step(a));
                draft.set("b", step(b));
            }
            ShownChange::Only { side, text } => {
                draft.set("change", quote(if *side == Side::A { "only_a" } else { "only_b" }));
                draft.set(if *side == Side::A { "a" } else { "b" }, step(text));
            }
        }
        draft.render(None)
    }
}

fn outcome(step: &DiffStep) -> &'static str {
    if step.has_failed { "failed" } else { "ok" }
}

fn description(text: &StepText<'_>) -> String {
    let is_of_tool = matches!(text.step.class, Class::Call | Class::Result);
    match text.tool.as_deref().filter(|_| is_of_tool) {
        Some(tool) => format!("{} {}", text.step.class.name(), harmless_line(tool)),
        None => text.step.class.name().to_owned(),
    }
}

/// The differing part of two texts, with a little of the text around it.
fn parts(a: &str, b: &str) -> (String, String) {
    let found = differing(a, b);
    let before: String = {
        let kept: Vec<char> = found.before.chars().rev().take(AROUND_LENGTH).collect();
        let cut = if found.before.chars().nth(AROUND_LENGTH).is_some() { "\u{2026}" } else { "" };
        format!("{cut}{}", kept.into_iter().rev().collect::<String>())
    };
    let after = shortened(found.after, AROUND_LENGTH);
    let part = |middle: &str| {
        let middle = shortened(middle, TEXT_LENGTH_MAX);
        one_line(&format!("{before}[{middle}]{after}"))
    };
    (part(found.a), part(found.b))
}

fn one_line(text: &str) -> String {
    harmless_line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_mark_the_differing_part() {
        let (a, b) = parts("the parser fails on an empty file", "the printer fails on an empty file");
        assert_eq!(a, "the [parser] fails on an empty file");
        assert_eq!(b, "the [printer] fails on an empty file");
    }

    #[test]
    fn two_empty_runs_do_not_differ() {
        assert_eq!(divergence(&Comparison::default()), "both are empty");
    }
}
