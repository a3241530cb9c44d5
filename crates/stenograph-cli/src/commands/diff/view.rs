//! Formats a comparison for people. Text from transcripts passes through [`harmless_line`].

use std::fmt::Write as _;
use std::path::Path;

use stenograph::compare::{Class, Comparison, DiffStep, ShownChange, Side, StepText, differing};

use super::facts::DiffFact;
use crate::output::{Colour, TextStyle, counted, grouped, harmless_line, shortened};
use crate::table;
use crate::terminal::{fitted_path, wrapped_text};

/// The maximum length of the text of a step, and of a difference.
const TEXT_LENGTH_MAX: usize = 160;

/// The indent of the text of a step.
const TEXT_INDENT: usize = 4;

/// The length of equal text around a difference.
const AROUND_LENGTH: usize = 24;

/// The maximum width of A's column in the table of facts.
const FACT_LENGTH_MAX: usize = 60;

/// The width of the names of the facts, with the mark before them.
const NAME_WIDTH: usize = 16;

/// Formats the facts of both runs. If two values do not fit beside each other, B's is below A's.
pub fn facts(a: &str, b: &str, facts: &[DiffFact], colour: Colour, width: usize) -> String {
    let mut out = String::new();
    for (side, name) in [("A", a), ("B", b)] {
        let name = fitted_path(Path::new(name), width.saturating_sub(if width == usize::MAX { 0 } else { 3 }));
        let _ = writeln!(out, "{side}  {}", colour.paint(TextStyle::Strong, &name));
    }
    out.push('\n');
    let room = FACT_LENGTH_MAX.min(width.saturating_sub(NAME_WIDTH)).max(20);
    let cell = |text: &Option<String>| {
        let text = text.as_deref().map_or_else(|| "-".to_owned(), harmless_line);
        table::truncated(&text, room)
    };
    let rows: Vec<(&DiffFact, String, String)> =
        facts.iter().map(|fact| (fact, cell(&fact.a), cell(&fact.b))).collect();
    let column = width.saturating_sub(NAME_WIDTH + 2) / 2;
    let fits = |a: &str, b: &str| table::display_width(a) <= column && table::display_width(b) <= column;
    let beside = rows.iter().filter(|(fact, a, b)| fact.a != fact.b && fits(a, b));
    let width = beside.map(|(_, a, _)| table::display_width(a)).max().unwrap_or(0);
    for (fact, a, b) in rows {
        let mark = if fact.differs() { "*" } else { " " };
        let gap = " ".repeat(width.saturating_sub(table::display_width(&a)));
        let value = match fact.a == fact.b {
            true => a,
            false if fits(&a, &b) => format!("{a}{gap}  {b}"),
            false => format!("{a}\n{:NAME_WIDTH$}{b}", ""),
        };
        for line in format!("{mark} {:<14}{value}", fact.name).lines() {
            let line = if fact.differs() { colour.paint(TextStyle::Warning, line) } else { line.to_owned() };
            let _ = writeln!(out, "{line}");
        }
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

/// One change, for people, in lines that fit the terminal.
pub fn change(change: &ShownChange<'_>, colour: Colour, width: usize) -> String {
    wrapped_text(&change_text(change, colour, width), width).into_owned()
}

/// The text of a step on one line. JSON is cut instead of wrapped.
fn step_line(text: &str, width: usize) -> String {
    let text = one_line(text);
    let length = if text.starts_with(['{', '[']) { width.saturating_sub(TEXT_INDENT) } else { TEXT_LENGTH_MAX };
    table::truncated(&text, length.min(TEXT_LENGTH_MAX))
}

fn change_text(change: &ShownChange<'_>, colour: Colour, width: usize) -> String {
    match change {
        ShownChange::Same { count, .. } => {
            colour.paint(TextStyle::Faint, &format!("  {} equal", counted(*count as u64, "step"))) + "\n"
        }
        ShownChange::Moved { a, b } => {
            let place = format!("event {} of A, event {} of B", grouped(a.step.number), grouped(b.number));
            let head = format!("> {}, {place}: moved", description(a));
            format!("{}\n    {}\n", colour.paint(TextStyle::Strong, &head), step_line(&a.text, width))
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
            let head = format!("{sign} {}, event {} of {}", description(text), grouped(text.step.number), side.name());
            format!("{}\n    {}\n", colour.paint(TextStyle::Strong, &head), step_line(&text.text, width))
        }
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
