//! The changes between two sessions: what differs is side by side, equal steps are folded.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;
use stenograph::compare::{Class, DiffChange, ShownChange, Side, StepText, TextPart, text_parts};
use stenograph::render::grouped;
use stenograph::render::html::escape;

use super::super::address::Params;
use super::super::comparison::{ComparedPair, TextLength};
use super::super::html::{counted, short, text};
use super::super::state::Viewer;
use super::super::trouble::AnswerProblem;
use super::session_panels::EventLinks;

/// How much of a text is compared and shown. The page of the session has all of it.
const TEXT_SIZE_MAX: usize = 64 << 10;
const TEXT_CHARS_MAX: usize = 1_200;

/// How much of an equal part is shown on each side of a difference.
const AROUND_CHARS: usize = 160;

/// How many equal steps are shown when they are unfolded, and how much of each.
const SAME_SHOWN_MAX: usize = 100;
const SAME_CHARS_MAX: usize = 200;

pub fn changes_html(
    viewer: &Viewer,
    pair: &ComparedPair,
    range: Range<usize>,
    params: &Params,
) -> Result<String, AnswerProblem> {
    let open = params.number("open").and_then(|at| usize::try_from(at).ok());
    let shown = pair.shown(viewer, range.clone(), TextLength::AtMost(TEXT_SIZE_MAX))?;
    let mut html = String::from("<ol class=\"differences\">");
    let mut apart = Apart::default();
    for (at, change) in range.zip(&shown) {
        if !matches!(change, ShownChange::Only { .. }) {
            apart.end(&mut html);
        }
        match change {
            ShownChange::Same { a, b, count } => {
                let places = [(Side::A, a), (Side::B, b)]
                    .map(|(side, step)| step.map(|step| event_link(pair, side, step.number)).unwrap_or_default());
                let is_open = open == Some(at);
                let (value, label) = if is_open { (None, "Fold") } else { (Some(at.to_string()), "Show") };
                let address = format!("{}#c{at}", params.with("/compare", "open", value.as_deref()));
                let _ = write!(
                    html,
                    "<li class=\"difference same\" id=\"c{at}\"><p>{} <span class=\"muted\">from {} and {}</span> <a href=\"{}\">{label}</a></p>",
                    counted(*count as u64, "equal step"),
                    places[0],
                    places[1],
                    text(&address)
                );
                if is_open {
                    html.push_str(&same_html(viewer, pair, at)?);
                }
            }
            ShownChange::Moved { a, b } => {
                let _ = write!(html, "<li class=\"difference moved\" id=\"c{at}\">");
                html.push_str(&step_html(pair, Side::A, a, &plain_html(a)));
                let _ = write!(
                    html,
                    "<div class=\"side none\"><p>The same step is at {}.</p></div>",
                    event_link(pair, Side::B, b.number)
                );
            }
            ShownChange::Changed { a, b } => {
                let _ = write!(html, "<li class=\"difference changed\" id=\"c{at}\">");
                let (one, other) = differing_html(a, b);
                html.push_str(&step_html(pair, Side::A, a, &one));
                html.push_str(&step_html(pair, Side::B, b, &other));
            }
            ShownChange::Only { side, text } => {
                apart.add(at, *side, &step_html(pair, *side, text, &plain_html(text)));
                continue;
            }
        }
        html.push_str("</li>");
    }
    apart.end(&mut html);
    html.push_str("</ol>");
    Ok(html)
}

/// Consecutive steps that only one session has: those of A on the left, those of B on the right.
#[derive(Default)]
struct Apart {
    /// The index of the first.
    first: usize,
    a: String,
    b: String,
}

impl Apart {
    fn add(&mut self, at: usize, side: Side, step: &str) {
        if self.a.is_empty() && self.b.is_empty() {
            self.first = at;
        }
        match side {
            Side::A => self.a.push_str(step),
            Side::B => self.b.push_str(step),
        }
    }

    /// Draws them, if there are any.
    fn end(&mut self, out: &mut String) {
        let Apart { first, a, b } = std::mem::take(self);
        if a.is_empty() && b.is_empty() {
            return;
        }
        let column = |steps: String, side: Side| match steps.is_empty() {
            true => format!("<div class=\"side none\"><p>Not in {}</p></div>", side.name()),
            false => format!("<div class=\"only only-{}\">{steps}</div>", side.name().to_lowercase()),
        };
        let (a, b) = (column(a, Side::A), column(b, Side::B));
        let _ = write!(out, "<li class=\"difference apart\" id=\"c{first}\">{a}{b}</li>");
    }
}

/// A link to an event on the page of its session.
fn event_link(pair: &ComparedPair, side: Side, number: u64) -> String {
    let found = pair.side(side);
    let path = super::super::address::session_path(&found.named.session.name);
    let places = EventLinks { path: &path, agent: found.agent.as_deref() };
    format!("<a href=\"{}\">event {} of {}</a>", places.event(number), grouped(number), side.name())
}

/// One step on its side.
fn step_html(pair: &ComparedPair, side: Side, step: &StepText<'_>, body: &str) -> String {
    let class = step.step.class;
    let tool = step.tool.as_deref().filter(|_| matches!(class, Class::Call | Class::Result));
    let failed = if step.step.has_failed { " <em>failed</em>" } else { "" };
    format!(
        "<div class=\"side {}\"><header><b>{}</b>{}{failed} {}</header><pre class=\"text\">{body}</pre></div>",
        class.name(),
        class.name(),
        tool.map(|tool| format!(" {}", short(tool, 60))).unwrap_or_default(),
        event_link(pair, side, step.step.number),
    )
}

/// The input of a call as lines for people; any other text as it is.
fn readable(step: &StepText<'_>) -> String {
    let input = match step.step.class {
        Class::Call => serde_json::from_str::<Value>(&step.text).ok(),
        _ => None,
    };
    let Some(Value::Object(fields)) = input else { return step.text.clone() };
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match (fields.len(), fields.values().next()) {
        (1, Some(only)) => value(only),
        _ => fields.iter().map(|(name, field)| format!("{name}: {}", value(field))).collect::<Vec<_>>().join("\n"),
    }
}

fn plain_html(step: &StepText<'_>) -> String {
    let mut html = String::new();
    cut(&readable(step), TEXT_CHARS_MAX, &mut html);
    html
}

/// The beginning of a text.
fn cut(text: &str, chars_max: usize, out: &mut String) {
    let end = text.char_indices().nth(chars_max).map(|(at, _)| at);
    escape(text.get(..end.unwrap_or(text.len())).unwrap_or_default(), out);
    if let Some(end) = end {
        let rest = text.get(end..).unwrap_or_default().chars().count() as u64;
        let _ = write!(out, "<span class=\"muted\"> … {} more</span>", counted(rest, "character"));
    }
}

/// Both texts, with their differing words marked. Long equal parts are shortened.
fn differing_html(a: &StepText<'_>, b: &StepText<'_>) -> (String, String) {
    let (text_a, text_b) = (readable(a), readable(b));
    let parts = text_parts(&text_a, &text_b);
    let (mut one, mut other) = (String::new(), String::new());
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().enumerate() {
        match part {
            TextPart::Same(text) => {
                let html = shortened(text, at == 0, at == last);
                one.push_str(&html);
                other.push_str(&html);
            }
            TextPart::Differs { a, b } => {
                for (text, tag, out) in [(a, "del", &mut one), (b, "ins", &mut other)] {
                    if !text.is_empty() {
                        let _ = write!(out, "<{tag}>");
                        cut(text, TEXT_CHARS_MAX, out);
                        let _ = write!(out, "</{tag}>");
                    }
                }
            }
        }
        if one.len().max(other.len()) > TEXT_SIZE_MAX {
            let rest = "<span class=\"muted\"> … more differences</span>";
            one.push_str(rest);
            other.push_str(rest);
            break;
        }
    }
    (one, other)
}

/// An equal part without its middle. At an end of the text, only the side of the difference is kept.
fn shortened(text: &str, is_first: bool, is_last: bool) -> String {
    let chars = text.chars().count();
    let (head, tail) = match (is_first, is_last) {
        (true, true) => (2 * AROUND_CHARS, 0),
        (true, false) => (0, AROUND_CHARS),
        (false, true) => (AROUND_CHARS, 0),
        (false, false) => (AROUND_CHARS, AROUND_CHARS),
    };
    let mut html = String::new();
    if chars <= head + tail + AROUND_CHARS {
        escape(text, &mut html);
        return html;
    }
    let byte = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    escape(text.get(..byte(head)).unwrap_or_default(), &mut html);
    let _ =
        write!(html, "<span class=\"muted\"> … {} … </span>", counted((chars - head - tail) as u64, "equal character"));
    escape(text.get(byte(chars - tail)..).unwrap_or_default(), &mut html);
    html
}

/// The equal steps of one change, one line each.
fn same_html(viewer: &Viewer, pair: &ComparedPair, at: usize) -> Result<String, AnswerProblem> {
    let Some(DiffChange::Same { a, b, count }) = pair.found.changes.get(at) else { return Ok(String::new()) };
    let texts = pair.same_texts(viewer, *a..a + count.min(&SAME_SHOWN_MAX), TextLength::AtMost(4 * SAME_CHARS_MAX))?;
    let mut html = String::from("<ul>");
    for (step, other) in texts.iter().zip(pair.found.b.iter().skip(*b)) {
        let _ = write!(
            html,
            "<li><b>{}</b> {} <small>{}, {}</small></li>",
            step.step.class.name(),
            short(&readable(step), SAME_CHARS_MAX),
            event_link(pair, Side::A, step.step.number),
            event_link(pair, Side::B, other.number)
        );
    }
    html.push_str("</ul>");
    let more = count.saturating_sub(SAME_SHOWN_MAX) as u64;
    if more > 0 {
        let _ = write!(html, "<p class=\"muted\">{} more</p>", counted(more, "equal step"));
    }
    Ok(html)
}
