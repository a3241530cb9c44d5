//! Formats a played conversation: a heading, and each event with a line that states its kind, time and duration. Text from
//! transcripts passes through [`harmless`].

use std::fmt::Write as _;
use std::sync::Arc;

use stenograph::calls::{CallOutcome, Calls};
use stenograph::json::indent;
use stenograph::model::{Body, Event, Input, Outline, Role, Usage};
use stenograph::render::failure;
use stenograph::replay::Mode;
use stenograph::time::Time;
use stenograph_store::layouts::RunSummary;

use super::source::FilterDecision;
use crate::clock;
use crate::commands::show::view::{content_text, input_text};
use crate::output::{Colour, TextStyle, grouped, harmless, harmless_line, shortened};

/// The width of rules.
const RULE_WIDTH: usize = 60;

/// The maximum length of an event's text in a summary.
const SUMMARY_LENGTH_MAX: usize = 100;

/// How many lines of a tool's input and result are shown, and how long each may be.
const INPUT_LINES_MAX: usize = 24;
const RESULT_LINES_MAX: usize = 8;
const LINE_LENGTH_MAX: usize = 200;

/// Facts about an event that the event itself does not state.
#[derive(Clone, Debug, Default)]
pub struct EventFacts {
    pub number: u64,
    pub tool: Option<Arc<str>>,
    /// How a call failed, if the event decides that it did.
    pub failure: Option<CallOutcome>,
    /// The time since the event before it, in milliseconds.
    pub took_ms: Option<u64>,
    /// Its usage, unless a later event repeats it.
    pub usage: Option<Usage>,
}

/// Tracks the tool of each result whether its call failed, and the time between events.
#[derive(Default)]
pub struct FactTracker {
    calls: Calls,
    before: Option<i64>,
}

impl FactTracker {
    /// The facts about the next event; `None` for an event that is not played.
    pub fn event_facts(&mut self, number: u64, event: &Event<'_>, decision: FilterDecision) -> Option<EventFacts> {
        // Records that are not played may state how a call ended.
        let step = self.calls.add(event);
        let FilterDecision::Played(usage) = decision else { return None };
        let (tool, failure) = (step.tool.clone(), failure(&step));
        let time = event.time.as_ref().and_then(stenograph::time::Time::to_millis);
        // The time that a user takes is not working time.
        let is_work = event.role() != Some(Role::User);
        let took = self.before.zip(time).filter(|_| is_work);
        let took = took.and_then(|(before, time)| u64::try_from(time.saturating_sub(before)).ok());
        self.before = time.or(self.before);
        Some(EventFacts { number, tool, failure, took_ms: took, usage })
    }
}

/// The heading of a conversation. What the agent's system states about the whole run precedes the sums of events.
pub fn heading(name: &str, outline: &Outline, summary: Option<&RunSummary>) -> String {
    let rule = "=".repeat(RULE_WIDTH);
    let mut out = format!("{rule}\n");
    let mut line = |key: &str, values: Vec<Option<String>>| {
        let parts_stated: Vec<String> = values.into_iter().flatten().collect();
        if !parts_stated.is_empty() {
            let _ = writeln!(out, "{key:<10}{}", harmless_line(&parts_stated.join(" | ")));
        }
    };
    let run = summary.map(|summary| summary.run.clone()).filter(|run| !run.is_empty());
    line("Session", vec![Some(outline.session.clone().or(run).unwrap_or_else(|| name.to_owned()))]);
    line("Title", vec![outline.title.clone()]);
    let agent = summary.map_or(outline.origin, |summary| summary.agent);
    let agent = Some(agent).filter(|agent| !agent.is_empty()).map(str::to_owned);
    let model = outline.model.as_ref().map(|model| format!("Model: {model}"));
    let status = ended(outline).or_else(|| summary.map(|summary| summary.status.to_owned()));
    line("Agent", vec![agent, model, status.map(|status| format!("Status: {status}"))]);
    let node = summary.and_then(|summary| summary.node.as_ref()).map(|node| format!("Node: {node}"));
    line("Flow", vec![summary.and_then(|summary| summary.flow.clone()), node]);
    let started = summary.and_then(|summary| summary.started.as_ref()).or(outline.started.as_ref());
    let took = outline.started.as_ref().and_then(Time::instant).zip(outline.ended.as_ref().and_then(Time::instant));
    let took = took.map(|(start, end)| end.as_millisecond().saturating_sub(start.as_millisecond()));
    let took = summary.and_then(|summary| summary.duration_ms).or_else(|| took.and_then(|ms| u64::try_from(ms).ok()));
    let took = took.map(|ms| format!("Duration: {}", stretch(ms)));
    line("Started", vec![started.and_then(clock::format_second), took]);
    let stated = summary.filter(|summary| summary.tokens_in > 0 || summary.tokens_out > 0);
    let total = stated.map_or(outline.total, |summary| Usage {
        input: Some(summary.tokens_in),
        output: Some(summary.tokens_out),
        ..Usage::default()
    });
    let cost = summary
        .and_then(|summary| summary.cost)
        .filter(|cost| *cost > 0.0)
        .or(outline.total.cost.map(|cost| cost.value()));
    let cost = cost.map(|cost| format!("Cost: ${cost:.2}"));
    line("Tokens", vec![Some(tokens(&total)).filter(|tokens| !tokens.is_empty()), cost]);
    let failure = outline.failure.as_ref().or(summary.and_then(|summary| summary.error.as_ref()));
    line("Error", vec![failure.map(|failure| shortened(failure, LINE_LENGTH_MAX).into_owned())]);
    let _ = writeln!(out, "{rule}\n");
    out
}

/// The end of a conversation, in its own words.
pub fn ended(outline: &Outline) -> Option<String> {
    let outcome = outline.success.map(|success| if success { "success" } else { "no success" });
    let parts_stated: Vec<&str> = [outline.stop.as_deref(), outcome].into_iter().flatten().collect();
    (!parts_stated.is_empty()).then(|| parts_stated.join(", "))
}

pub fn tokens(usage: &Usage) -> String {
    let cached = match (usage.cache_read, usage.cache_write) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0).saturating_add(write.unwrap_or(0))),
    };
    let parts = [(usage.input, "in"), (usage.output, "out"), (cached, "cached")];
    let parts_stated = parts.into_iter().filter_map(|(number, word)| Some(format!("{} {word}", grouped(number?))));
    parts_stated.collect::<Vec<_>>().join(" / ")
}

pub fn event(mode: Mode, event_facts: &EventFacts, event: &Event<'_>, colour: Colour) -> String {
    let head = head(event_facts, event);
    let head = match head.split_once(' ') {
        Some((number, rest)) => {
            format!("{} {}", colour.paint(TextStyle::Faint, number), colour.paint(TextStyle::Strong, rest))
        }
        None => head,
    };
    if mode == Mode::Summary {
        let text = harmless_line(&text(event).split_whitespace().collect::<Vec<_>>().join(" "));
        return format!("{head} {}", shortened(&text, SUMMARY_LENGTH_MAX)).trim_end().to_owned() + "\n";
    }
    let aside = aside(event_facts);
    let aside = if aside.is_empty() { aside } else { format!(" {}", colour.paint(TextStyle::Faint, &aside)) };
    let mut out = format!("{head}{aside}\n{}\n", "-".repeat(RULE_WIDTH));
    let lines_max = match &event.body {
        Body::ToolCall { .. } => INPUT_LINES_MAX,
        Body::ToolResult { .. } => RESULT_LINES_MAX,
        _ => usize::MAX,
    };
    let text = text(event);
    let text = harmless(&text);
    let text = text.trim_matches('\n');
    for line in text.lines().take(lines_max) {
        let line = if lines_max == usize::MAX { line.into() } else { shortened(line, LINE_LENGTH_MAX) };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let more = text.lines().skip(lines_max).count();
    if more > 0 {
        let _ = writeln!(out, "\u{2026} {} more lines", grouped(more as u64));
    }
    out.push('\n');
    out
}

/// The first line of an event: number, kind, time.
fn head(event_facts: &EventFacts, event: &Event<'_>) -> String {
    let time = event.time.as_ref().and_then(clock::time_of_day);
    let time = time.map(|time| format!(" ({time})")).unwrap_or_default();
    format!("[{}] {}{time}", event_facts.number, harmless_line(&kind_and_name(event_facts, event)))
}

/// The role or the kind in capitals, with a name.
fn kind_and_name(event_facts: &EventFacts, event: &Event<'_>) -> String {
    let named = |kind: &str, name: Option<&str>| match name {
        Some(name) if !name.is_empty() => format!("{kind} {name}"),
        _ => kind.to_owned(),
    };
    match &event.body {
        Body::Message { role, .. } => {
            named(&role.name().to_uppercase(), event.from.as_deref().filter(|from| *from != role.name()))
        }
        Body::Thinking { .. } => "THINKING".to_owned(),
        Body::ToolCall { name, .. } => named("CALL", Some(name)),
        Body::ToolResult { .. } => {
            let failure = event_facts.failure.map(|outcome| format!(", {}", outcome.name())).unwrap_or_default();
            format!("{}{failure}", named("RESULT", event_facts.tool.as_deref()))
        }
        Body::Compaction { .. } => "COMPACTION".to_owned(),
        Body::Failure { name, .. } => named("FAILURE", name.as_deref()),
        Body::Stop { reason, success, .. } => {
            let outcome = match success {
                Some(true) => ", success",
                Some(false) => ", no success",
                None => "",
            };
            format!("{}{outcome}", named("STOP", reason.as_deref()))
        }
        Body::Fact { fact: name, .. } => named("FACT", Some(name)),
        Body::Other { name, .. } => named("OTHER", name.as_deref()),
    }
}

/// Usage and duration, beside the first line.
fn aside(event_facts: &EventFacts) -> String {
    let usage = event_facts.usage.unwrap_or_default();
    let number = |number: Option<u64>, word: &str| number.map(|number| format!("[{} {word}]", grouped(number)));
    let parts = [
        number(usage.input, "tokens in"),
        number(usage.cache_read, "tokens cached"),
        number(usage.output, "tokens out"),
        number(event_facts.took_ms, "ms"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What an event says, whole. The last word of a run that went well was said before.
fn text(event: &Event<'_>) -> String {
    match &event.body {
        Body::ToolCall { input: Input::Json(raw), .. } => indent(raw, 0),
        Body::ToolCall { input, .. } => input_text(input),
        Body::Stop { success, .. } if *success != Some(false) => String::new(),
        Body::Other { bytes, .. } => bytes.as_ref().map(|bytes| bytes.decode().into_owned()).unwrap_or_default(),
        _ => event.content().map(content_text).unwrap_or_default(),
    }
}

/// A stretch of time as a clock shows it.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

/// A stretch of time for people, in its two largest units.
pub fn stretch(ms: u64) -> String {
    let seconds = ms / 1000;
    let two = |one: u64, unit: &str, other: u64, smaller: &str| match other {
        0 => format!("{one} {unit}"),
        other => format!("{one} {unit} {other} {smaller}"),
    };
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::Content;

    #[test]
    fn a_summary_is_one_line_cut_between_characters() {
        let content = Content::text(format!("{}\n\n{}", "ä".repeat(60), "ö".repeat(60)));
        let parts_stated = Event::new(Body::Message { role: Role::User, content });
        let event_facts = EventFacts { number: 7, ..EventFacts::default() };
        let line = event(Mode::Summary, &event_facts, &parts_stated, Colour::Plain);
        assert_eq!(line, format!("[7] USER {} {}…\n", "ä".repeat(60), "ö".repeat(38)));
    }

    #[test]
    fn control_characters_are_shown_and_not_done() {
        let parts_stated = Event::new(Body::Message { role: Role::User, content: Content::text("a\x1b[2Jb") });
        for mode in Mode::ALL {
            assert!(!event(mode, &EventFacts::default(), &parts_stated, Colour::Plain).contains('\x1b'));
        }
    }

    #[test]
    fn a_stretch_of_time_has_two_units() {
        assert_eq!(
            [250, 59_999, 61_000, 3_600_000, 30_000_000, 200_000_000].map(stretch),
            ["250 ms", "59 s", "1 min 1 s", "1 h", "8 h 20 min", "2 d 7 h"]
        );
    }
}
