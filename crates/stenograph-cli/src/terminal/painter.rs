//! Draws one event: a gutter with its number, its heading, and its content, folded where it is long. What precedes the event on the
//! screen decides about rules, gaps and repeated headings; the caller states it, so that events can be drawn in any order.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use stenograph::calls::CallOutcome;
use stenograph::evidence::{CallKind, Todo, TodoProgress};
use stenograph::model::Event;
use stenograph::render::{Block, EventContext, EventView, ViewKind, grouped};

use super::PROSE_WIDTH_MAX;
use super::highlight::Highlighter;
use super::markdown;
use super::styled::{Line, plain_lines, text_width};
use crate::clock;
use crate::output::{Colour, harmless};

/// Whether long content is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// Show the beginning and the number of lines that follow.
    Folded,
    /// Show everything.
    Whole,
}

/// How many lines of folded content are shown.
const OUTPUT_LINES: usize = 4;
const FAILED_FIRST_LINES: usize = 4;
const FAILED_LAST_LINES: usize = 8;
const CODE_LINES: usize = 12;
const DIFF_LINES: usize = 40;
const ASIDE_LINES: usize = 6;

/// More words than fit on a line of a summary.
const SUMMARY_WORDS_MAX: usize = 200;

/// An event to draw: its number, its kind, and its relation to the events before it.
#[derive(Clone, Debug, Default)]
pub struct DrawnEvent {
    pub number: Option<u64>,
    pub kind: PlaceKind,
    pub time_ms: Option<i64>,
    /// The number of the event that made the call which this event answers.
    pub called_at: Option<u64>,
    pub context: EventContext,
}

/// What the next event must know about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlaceKind {
    /// Somebody speaks.
    Speaker(ViewKind, Arc<str>),
    Call,
    Result,
    Compaction,
    #[default]
    Other,
}

impl DrawnEvent {
    /// Whether a result directly follows its call.
    fn answers(&self, before: Option<&DrawnEvent>) -> bool {
        self.kind == PlaceKind::Result
            && before.is_some_and(|before| {
                let is_same = self.context.call.is_none_or(|call| before.context.call == Some(call));
                before.kind == PlaceKind::Call && is_same
            })
    }

    /// The day of the event, if the event before it happened on another day.
    fn new_day(&self, before: Option<&DrawnEvent>) -> Option<String> {
        let day = clock::format_day(self.time_ms?);
        let other = before.and_then(|before| before.time_ms).map(clock::format_day);
        (other.as_ref() != Some(&day)).then_some(day)
    }
}

/// Draws single events.
pub struct Painter {
    highlighter: Highlighter,
    pub colour: Colour,
    pub width: usize,
    pub folding: Folding,
}

impl Painter {
    pub fn new(colour: Colour, width: usize, folding: Folding) -> Painter {
        Painter { highlighter: Highlighter::default(), colour, width, folding }
    }

    /// The lines of an event that follows `before` on the screen.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        view: &EventView,
        place: &DrawnEvent,
        before: Option<&DrawnEvent>,
        mark: &str,
    ) -> Vec<Line> {
        let mut lines = self.rule_of_day(place, before);
        if before.is_some() && lines.is_empty() && !place.answers(before) {
            lines.push(Line::default());
        }
        let (gutter, blank) = gutter(place.number, mark);
        let depth = depth(event);
        let room = self.width.saturating_sub(gutter.width() + depth.width()).max(20);
        let mut first = true;
        for line in self.content(view, event, room, place, before) {
            let prefix = if std::mem::take(&mut first) { &gutter } else { &blank };
            lines.push(line.indented(&depth).indented(prefix));
        }
        lines
    }

    /// An event on one line, below a rule where a day begins.
    pub fn summary(
        &mut self,
        event: &Event<'_>,
        view: &EventView,
        place: &DrawnEvent,
        before: Option<&DrawnEvent>,
    ) -> Vec<Line> {
        let mut lines = self.rule_of_day(place, before);
        let (gutter, _) = gutter(place.number, "");
        let depth = depth(event);
        let room = self.width.saturating_sub(gutter.width() + depth.width()).max(20);
        let mut line = match view.kind {
            ViewKind::Result(outcome) => self.result_heading(view, outcome, place, before),
            ViewKind::User | ViewKind::Agent => speaker(view),
            ViewKind::Call(kind) => call_heading(view, kind),
            ViewKind::Failure => Line::of(&format!("\u{2717} {}", view.heading), failure_style()),
            ViewKind::Compaction => Line::of(&compaction_heading(view), rule_style()),
            ViewKind::Thinking | ViewKind::Injected | ViewKind::Bookkeeping | ViewKind::Notice => {
                Line::of(&format!("({})", view.heading), Style::new().dimmed())
            }
        };
        // A call is complete without its content.
        let text = if matches!(view.kind, ViewKind::Call(_)) { None } else { view.blocks.iter().find_map(text_of) };
        let text = anstream::adapter::strip_str(text.unwrap_or_default()).to_string();
        let words: Vec<&str> = text.split_whitespace().take(SUMMARY_WORDS_MAX).collect();
        if !words.is_empty() {
            let style = if view.kind == ViewKind::Thinking { Style::new().dimmed() } else { Style::new() };
            line.push("  ", Style::new());
            line.push(&words.join(" "), style);
        }
        lines.push(line.fitted(room).indented(&depth).indented(&gutter));
        lines
    }

    /// A rule with the date and the time zone, if the event happened on another day than the one before it.
    fn rule_of_day(&self, place: &DrawnEvent, before: Option<&DrawnEvent>) -> Vec<Line> {
        let Some(day) = place.new_day(before) else { return Vec::new() };
        let blank = before.is_some().then(Line::default);
        blank.into_iter().chain([rule(&day, self.width)]).collect()
    }

    fn content(
        &mut self,
        view: &EventView,
        event: &Event<'_>,
        room: usize,
        place: &DrawnEvent,
        before: Option<&DrawnEvent>,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        let prose = room.min(PROSE_WIDTH_MAX);
        match view.kind {
            ViewKind::Compaction => {
                // An agent may write the place and the summary as two records.
                let is_summary = view.remark.is_none() && before.is_some_and(|it| it.kind == PlaceKind::Compaction);
                if !is_summary {
                    lines.push(rule(&compaction_heading(view), room));
                }
                lines.extend(self.blocks(view, prose, ASIDE_LINES, Style::new().dimmed()));
            }
            ViewKind::Result(outcome) => return self.result(view, outcome, room, place, before),
            ViewKind::Call(kind) => {
                lines.extend(call_heading(view, kind).wrapped(room));
                lines.extend(indented(self.blocks(view, room.saturating_sub(2), CODE_LINES, Style::new()), 2));
            }
            ViewKind::User | ViewKind::Agent => {
                lines.push(speaker_at(view, event, room));
                lines.extend(self.blocks(view, prose, usize::MAX, Style::new()));
            }
            ViewKind::Thinking | ViewKind::Injected | ViewKind::Bookkeeping | ViewKind::Notice => {
                lines.push(Line::of(&format!("({})", view.heading), Style::new().dimmed()).fitted(room));
                let shown = if view.kind == ViewKind::Thinking { CODE_LINES } else { ASIDE_LINES };
                lines.extend(self.blocks(view, prose, shown, Style::new().dimmed()));
            }
            ViewKind::Failure => {
                lines.push(Line::of(&format!("\u{2717} {}", view.heading), failure_style()).fitted(room));
                lines.extend(self.blocks(view, room, CODE_LINES, Style::new()));
            }
        }
        lines
    }

    /// One line about the result of a call.
    fn result_heading(
        &self,
        view: &EventView,
        outcome: CallOutcome,
        place: &DrawnEvent,
        before: Option<&DrawnEvent>,
    ) -> Line {
        let texts = view.blocks.iter().filter_map(text_of);
        let count: usize = texts.map(|text| text.trim_end_matches('\n').lines().count()).sum();
        let tool = match place.called_at {
            _ if place.answers(before) => String::new(),
            Some(number) => format!("result of {number}"),
            None => format!("result of {}", view.heading),
        };
        let remark = view.remark.as_deref().unwrap_or_default();
        let has_more = view.blocks.iter().any(|block| text_of(block).is_none());
        let counted = match count {
            0 if has_more => String::new(),
            0 => "no output".to_owned(),
            1 => "1 line".to_owned(),
            count => format!("{} lines", grouped(count as u64)),
        };
        let words: Vec<&str> =
            [tool.as_str(), remark, counted.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
        let style = if outcome.is_failure() { failure_style() } else { Style::new().dimmed() };
        let sign = if outcome.is_failure() { "\u{2514} \u{2717} " } else { "\u{2514} " };
        Line::of(format!("{sign}{}", words.join(", ")).trim_end(), style)
    }

    /// The result of a call: one line about it, and its output.
    fn result(
        &mut self,
        view: &EventView,
        outcome: CallOutcome,
        room: usize,
        place: &DrawnEvent,
        before: Option<&DrawnEvent>,
    ) -> Vec<Line> {
        let mut lines = vec![self.result_heading(view, outcome, place, before).fitted(room)];
        let inner = room.saturating_sub(2);
        let limits = match (self.folding, outcome.is_failure()) {
            (Folding::Whole, _) => (usize::MAX, 0),
            (Folding::Folded, true) => (FAILED_FIRST_LINES, FAILED_LAST_LINES),
            (Folding::Folded, false) => (OUTPUT_LINES, 0),
        };
        for block in &view.blocks {
            match text_of(block) {
                Some(text) => lines.extend(indented(output(text, limits, inner, self.folding), 2)),
                None => lines.extend(indented(self.block(block, inner, usize::MAX), 2)),
            }
        }
        lines
    }

    /// The blocks of an event, at most `limit` lines each.
    fn blocks(&mut self, view: &EventView, room: usize, limit: usize, style: Style) -> Vec<Line> {
        let limit = if self.folding == Folding::Whole { usize::MAX } else { limit };
        let mut lines = Vec::new();
        for block in &view.blocks {
            let limit = if matches!(block, Block::Diff { .. }) && limit != usize::MAX { DIFF_LINES } else { limit };
            let mut drawn = self.block(block, room, limit);
            let more = drawn.len().saturating_sub(limit);
            if more > 1 {
                drawn.truncate(limit);
                drawn.push(more_lines(more));
            }
            if style != Style::new() {
                drawn = drawn.into_iter().map(|line| Line::of(&line.text(), style)).collect();
            }
            lines.extend(drawn);
        }
        lines
    }

    /// A line that is cut at the edge where content is folded, and wrapped where all of it is shown.
    fn cut_or_wrapped(&self, line: Line, room: usize) -> Vec<Line> {
        match self.folding {
            Folding::Folded => vec![line.fitted(room)],
            Folding::Whole => line.wrapped(room),
        }
    }

    fn block(&mut self, block: &Block, room: usize, limit: usize) -> Vec<Line> {
        match block {
            Block::Markdown(text) => markdown::lines(text, room, self.colour, &mut self.highlighter),
            Block::Code { language, text } => {
                let lines = match self.colour {
                    Colour::Shown => self.highlighter.lines(language, text),
                    Colour::Plain => plain_lines(text),
                };
                lines.into_iter().flat_map(|line| line.wrapped(room)).collect()
            }
            Block::Diff { hunks, .. } => diff(hunks).flat_map(|line| self.cut_or_wrapped(line, room)).collect(),
            Block::Output(text) => output(text, (limit, 0), room, self.folding),
            Block::Plan(todos) => todos.iter().flat_map(|todo| self.cut_or_wrapped(plan_item(todo), room)).collect(),
            Block::Blob { media, size, place, data: _ } => {
                let media = media.as_deref().unwrap_or("data");
                let text = match (size, place) {
                    (_, Some(place)) => format!("[{media}: {place}]"),
                    (Some(size), None) => format!("[{media}, {} bytes]", grouped(*size)),
                    (None, None) => format!("[{media}]"),
                };
                vec![Line::of(&text, Style::new().dimmed()).fitted(room)]
            }
        }
    }
}

fn failure_style() -> Style {
    Style::new().bold().fg_color(Some(AnsiColor::Red.into()))
}

/// The number of an event, and the same room without it.
fn gutter(number: Option<u64>, mark: &str) -> (Line, Line) {
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    let gutter = Line::of(&format!("{:>5}  ", format!("{mark}{number}")), Style::new().dimmed());
    let blank = Line::of(&" ".repeat(gutter.width()), Style::new());
    (gutter, blank)
}

/// The indentation of a sub-agent.
fn depth(event: &Event<'_>) -> Line {
    if event.thread.is_some() { Line::of("\u{250a} ", Style::new().dimmed()) } else { Line::default() }
}

fn compaction_heading(view: &EventView) -> String {
    let remark = view.remark.as_deref().map(|remark| format!(": {remark}")).unwrap_or_default();
    format!("compaction{remark}")
}

/// The name of a speaker.
fn speaker(view: &EventView) -> Line {
    let (sign, colour) = match view.kind {
        ViewKind::User => ("\u{276f} ", AnsiColor::Green),
        _ => ("\u{25cf} ", AnsiColor::Blue),
    };
    Line::of(&format!("{sign}{}", view.heading), Style::new().bold().fg_color(Some(colour.into())))
}

/// The line that names a speaker, with the time at the right edge.
fn speaker_at(view: &EventView, event: &Event<'_>, room: usize) -> Line {
    let time = event.time.as_ref().and_then(clock::time_of_day).unwrap_or_default();
    let mut line = speaker(view).fitted(room.saturating_sub(time.len() + 1));
    let gap = room.saturating_sub(line.width() + text_width(&time));
    line.push(&" ".repeat(gap), Style::new());
    line.push(&time, Style::new().dimmed());
    line
}

fn call_heading(view: &EventView, kind: CallKind) -> Line {
    let style = Style::new().bold();
    let style = if kind == CallKind::Command { style.fg_color(Some(AnsiColor::Yellow.into())) } else { style };
    let mut line = Line::of(&view.heading, style);
    if let Some(remark) = &view.remark {
        line.push("  ", Style::new());
        line.push(remark, Style::new().dimmed());
    }
    line
}

fn plan_item(todo: &Todo) -> Line {
    let (sign, style) = match todo.progress() {
        TodoProgress::Done => ("[x] ", Style::new().dimmed()),
        TodoProgress::Active => ("[>] ", Style::new().bold()),
        TodoProgress::Open => ("[ ] ", Style::new()),
    };
    Line::of(&format!("{sign}{}", todo.text.replace('\n', " ")), style)
}

fn rule_style() -> Style {
    Style::new().fg_color(Some(AnsiColor::Magenta.into()))
}

/// A rule across, with a text in it.
fn rule(text: &str, width: usize) -> Line {
    let style = rule_style();
    let mut line = Line::of("\u{2500}\u{2500} ", style);
    line.push(text, style.bold());
    line.push(" ", style);
    let line = line.fitted(width);
    let left = width.saturating_sub(line.width());
    let mut line = line;
    line.push(&"\u{2500}".repeat(left), style);
    line
}

/// A remark about at least two lines that are not shown.
fn more_lines(count: usize) -> Line {
    Line::of(&format!("\u{2026} {} more lines", grouped(count as u64)), Style::new().dimmed())
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Output(text) | Block::Markdown(text) => Some(text),
        Block::Code { text, .. } => Some(text),
        Block::Diff { .. } | Block::Plan(_) | Block::Blob { .. } => None,
    }
}

fn indented(lines: Vec<Line>, columns: usize) -> Vec<Line> {
    let prefix = Line::of(&" ".repeat(columns), Style::new());
    lines.into_iter().map(|line| line.indented(&prefix)).collect()
}

/// The lines of a tool's output: its first and its last ones, without the escape sequences that would colour it.
fn output(text: &str, (first, last): (usize, usize), room: usize, folding: Folding) -> Vec<Line> {
    let text = anstream::adapter::strip_str(text).to_string();
    let text = harmless(text.trim_end_matches('\n')).into_owned();
    let all: Vec<&str> = text.lines().collect();
    let line = |text: &str| -> Vec<Line> {
        let line = Line::of(text, Style::new());
        if folding == Folding::Whole { line.wrapped(room) } else { vec![line.fitted(room)] }
    };
    let hidden = all.len().saturating_sub(first.saturating_add(last));
    // One hidden line takes as much room as the remark about it.
    if hidden <= 1 {
        return all.into_iter().flat_map(line).collect();
    }
    let mut lines: Vec<Line> = all.iter().take(first).flat_map(|text| line(text)).collect();
    lines.push(more_lines(hidden));
    lines.extend(all.iter().skip(first + hidden).flat_map(|text| line(text)));
    lines
}

fn diff(hunks: &str) -> impl Iterator<Item = Line> {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let lines: Vec<String> = harmless(hunks).lines().map(str::to_owned).collect();
    // A hunk without line numbers needs its header only to separate it from the one before it.
    let lines = lines.into_iter().enumerate().filter(|(at, line)| *at > 0 || !line.starts_with("@@ -?"));
    lines.map(move |(_, line)| {
        let line = if line.starts_with("@@ -?") { "\u{22ee}" } else { line.as_str() };
        let style = match line.as_bytes().first() {
            Some(b'+') => colour(AnsiColor::Green),
            Some(b'-') => colour(AnsiColor::Red),
            Some(b'@' | 0xe2) => Style::new().dimmed(),
            _ => Style::new(),
        };
        Line::of(line, style)
    })
}
