//! Draws events one after the other: a gutter with the number of each event, its heading, and its content, folded where it is long.

use std::collections::VecDeque;

use anstyle::{AnsiColor, Style};
use stenograph::calls::CallOutcome;
use stenograph::evidence::{CallKind, Todo, TodoProgress};
use stenograph::model::Event;
use stenograph::render::{Block, EventView, EventViewer, ViewKind, grouped};

use super::PROSE_WIDTH_MAX;
use super::highlight::Highlighter;
use super::markdown;
use super::styled::{Line, text_width};
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

/// How many calls are remembered by their event numbers.
const OPEN_CALLS_MAX: usize = 256;

/// Draws the events of one conversation.
pub struct Drawer {
    viewer: EventViewer,
    highlighter: Highlighter,
    colour: Colour,
    width: usize,
    folding: Folding,
    /// Whether bookkeeping and injected text are drawn.
    all: bool,
    /// What was drawn last.
    before: Option<(ViewKind, String)>,
    /// The call that was drawn last, and the event numbers of the last calls.
    last_call: Option<u64>,
    call_events: VecDeque<(u64, u64)>,
    /// The day of the last event with a time.
    day: Option<String>,
    /// Whether the next event is marked: the reader asked for it.
    is_marked: bool,
}

impl Drawer {
    pub fn new(colour: Colour, width: usize, folding: Folding, all: bool) -> Drawer {
        Drawer {
            viewer: EventViewer::default(),
            highlighter: Highlighter::default(),
            colour,
            width,
            folding,
            all,
            before: None,
            last_call: None,
            call_events: VecDeque::new(),
            day: None,
            is_marked: false,
        }
    }

    /// Draws bookkeeping and injected text too.
    pub fn draw_all(&mut self) {
        self.all = true;
    }

    /// Marks the next event, or not.
    pub fn mark(&mut self, is_marked: bool) {
        self.is_marked = is_marked;
    }

    /// Takes notice of an event that is not drawn, so that later ones know their calls.
    pub fn skip(&mut self, event: &Event<'_>) {
        self.viewer.view(event);
    }

    /// The text of the next event, with a newline at its end; `None` for a hidden event.
    pub fn event(&mut self, number: Option<u64>, event: &Event<'_>) -> Option<String> {
        let lines = self.lines(number, event)?;
        Some(lines.iter().map(|line| line.drawn(self.colour) + "\n").collect())
    }

    /// The lines of the next event; `None` for a hidden event.
    pub fn lines(&mut self, number: Option<u64>, event: &Event<'_>) -> Option<Vec<Line>> {
        let view = self.viewer.view(event);
        if view.kind.is_hidden() && !self.all || is_blank(&view) {
            return None;
        }
        let mut lines = self.day_rule(event);
        if let (ViewKind::Call(_), Some(call)) = (view.kind, view.call) {
            self.last_call = Some(call);
            self.call_events.extend(number.map(|number| (call, number)));
            if self.call_events.len() > OPEN_CALLS_MAX {
                self.call_events.pop_front();
            }
        }
        let is_answer = matches!(view.kind, ViewKind::Result(_)) && self.answers_last(&view);
        if self.before.is_some() && lines.is_empty() && !is_answer {
            lines.push(Line::default());
        }
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let mark = if self.is_marked { ">" } else { "" };
        let gutter = Line::of(&format!("{:>5}  ", format!("{mark}{number}")), Style::new().dimmed());
        let blank = Line::of(&" ".repeat(gutter.width()), Style::new());
        let depth = if event.thread.is_some() { Line::of("\u{250a} ", Style::new().dimmed()) } else { Line::default() };
        let room = self.width.saturating_sub(gutter.width() + depth.width()).max(20);
        let mut first = true;
        for line in self.content(&view, event, room) {
            let prefix = if std::mem::take(&mut first) { &gutter } else { &blank };
            lines.push(line.indented(&depth).indented(prefix));
        }
        self.before = Some((view.kind, view.heading));
        Some(lines)
    }

    /// Whether a result directly follows its call.
    fn answers_last(&self, view: &EventView) -> bool {
        matches!(self.before, Some((ViewKind::Call(_), _))) && view.call.is_none_or(|call| self.last_call == Some(call))
    }

    /// A rule with the date and the time zone, if the event happened on another day than the one before it.
    fn day_rule(&mut self, event: &Event<'_>) -> Vec<Line> {
        let Some(day) = event.time.as_ref().and_then(clock::format_day) else { return Vec::new() };
        if self.day.as_ref() == Some(&day) {
            return Vec::new();
        }
        let drawn = rule(&day, self.width);
        self.day = Some(day);
        let blank = self.before.is_some().then(Line::default);
        blank.into_iter().chain([drawn]).collect()
    }

    fn content(&mut self, view: &EventView, event: &Event<'_>, room: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let prose = room.min(PROSE_WIDTH_MAX);
        match view.kind {
            ViewKind::Compaction => {
                let remark = view.remark.as_deref().map(|remark| format!(": {remark}")).unwrap_or_default();
                lines.push(rule(&format!("compaction{remark}"), room));
                lines.extend(self.blocks(view, prose, ASIDE_LINES, Style::new().dimmed()));
            }
            ViewKind::Result(outcome) => return self.result(view, outcome, room),
            ViewKind::Call(kind) => {
                lines.extend(call_heading(view, kind, room));
                lines.extend(indented(self.blocks(view, room.saturating_sub(2), CODE_LINES, Style::new()), 2));
            }
            ViewKind::User | ViewKind::Agent => {
                let is_new = self.before != Some((view.kind, view.heading.clone()));
                if is_new {
                    lines.push(speaker(view, event, room));
                }
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

    /// The result of a call: one line about it, and its output.
    fn result(&mut self, view: &EventView, outcome: CallOutcome, room: usize) -> Vec<Line> {
        let texts: Vec<&str> = view.blocks.iter().filter_map(text_of).collect();
        let count: usize = texts.iter().map(|text| text.trim_end_matches('\n').lines().count()).sum();
        let called_at = self.call_events.iter().find(|(call, _)| Some(*call) == view.call);
        let tool = match called_at {
            _ if self.answers_last(view) => String::new(),
            Some((_, number)) => format!("result of {number}"),
            None => format!("result of {}", view.heading),
        };
        let remark = view.remark.as_deref().unwrap_or_default();
        let counted = match count {
            0 => "no output".to_owned(),
            1 => "1 line".to_owned(),
            count => format!("{} lines", grouped(count as u64)),
        };
        let words: Vec<&str> =
            [tool.as_str(), remark, counted.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
        let style = if outcome.is_failure() { failure_style() } else { Style::new().dimmed() };
        let sign = if outcome.is_failure() { "\u{2514} \u{2717} " } else { "\u{2514} " };
        let mut lines = vec![Line::of(&format!("{sign}{}", words.join(", ")), style).fitted(room)];
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
                    Colour::Plain => harmless(text).lines().map(|line| Line::of(line, Style::new())).collect(),
                };
                lines.into_iter().flat_map(|line| line.wrapped(room)).collect()
            }
            Block::Diff { hunks, .. } => diff(hunks).flat_map(|line| self.cut_or_wrapped(line, room)).collect(),
            Block::Output(text) => output(text, (limit, 0), room, self.folding),
            Block::Plan(todos) => todos.iter().flat_map(|todo| self.cut_or_wrapped(plan_item(todo), room)).collect(),
            Block::Blob { media, size, place } => {
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

/// Whether nothing would be drawn but a heading that says nothing.
fn is_blank(view: &EventView) -> bool {
    matches!(view.kind, ViewKind::Thinking | ViewKind::Agent)
        && view.blocks.iter().all(|block| matches!(block, Block::Markdown(text) if text.trim().is_empty()))
}

/// The line that names a speaker, with the time at the right edge.
fn speaker(view: &EventView, event: &Event<'_>, room: usize) -> Line {
    let (sign, colour) = match view.kind {
        ViewKind::User => ("\u{276f} ", AnsiColor::Green),
        _ => ("\u{25cf} ", AnsiColor::Blue),
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let time = event.time.as_ref().and_then(clock::time_of_day).unwrap_or_default();
    let mut line = Line::of(&format!("{sign}{}", view.heading), style).fitted(room.saturating_sub(time.len() + 1));
    let gap = room.saturating_sub(line.width() + text_width(&time));
    line.push(&" ".repeat(gap), Style::new());
    line.push(&time, Style::new().dimmed());
    line
}

fn call_heading(view: &EventView, kind: CallKind, room: usize) -> Vec<Line> {
    let style = Style::new().bold();
    let style = if kind == CallKind::Command { style.fg_color(Some(AnsiColor::Yellow.into())) } else { style };
    let mut line = Line::of(&view.heading, style);
    if let Some(remark) = &view.remark {
        line.push("  ", Style::new());
        line.push(remark, Style::new().dimmed());
    }
    line.wrapped(room)
}

fn plan_item(todo: &Todo) -> Line {
    let (sign, style) = match todo.progress() {
        TodoProgress::Done => ("[x] ", Style::new().dimmed()),
        TodoProgress::Active => ("[>] ", Style::new().bold()),
        TodoProgress::Open => ("[ ] ", Style::new()),
    };
    Line::of(&format!("{sign}{}", todo.text.replace('\n', " ")), style)
}

/// A rule across, with a text in it.
fn rule(text: &str, width: usize) -> Line {
    let style = Style::new().fg_color(Some(AnsiColor::Magenta.into()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::model::{Body, Content, Input, Role};

    fn drawn(events: &[Event<'_>], width: usize) -> String {
        let mut drawer = Drawer::new(Colour::Plain, width, Folding::Folded, false);
        let texts = events.iter().enumerate().filter_map(|(at, event)| drawer.event(Some(at as u64 + 1), event));
        texts.collect()
    }

    fn message(role: Role, text: &str) -> Event<'_> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call<'a>(id: &'a str, tool: &'a str, input: &'a str) -> Event<'a> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: tool.into(), input: Input::Json(input.into()) })
    }

    fn result<'a>(id: &'a str, text: &'a str, error: Option<bool>) -> Event<'a> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text(text), error })
    }

    #[test]
    fn a_conversation_reads_from_top_to_bottom() {
        let output = "a\nb\nc\nd\ne\nf\ng";
        let events = [
            message(Role::User, "Fix **it**"),
            message(Role::Assistant, "I look."),
            call("call-0001", "Bash", r#"{"command":"cargo test"}"#),
            result("call-0001", output, None),
            call("call-0002", "Edit", r#"{"file_path":"/a.rs","old_string":"x\n","new_string":"y\n"}"#),
            result("call-0002", "error: no such file", Some(true)),
            message(Role::Assistant, "Done."),
        ];
        let expected = "    1  ❯ You
       Fix **it**

    2  ● Agent
       I look.

    3  $ cargo test
    4  └ 7 lines
         a
         b
         c
         d
         … 3 more lines

    5  Edit /a.rs  +1 -1
         -x
         +y
    6  └ ✗ failed, 1 line
         error: no such file

    7  ● Agent
       Done.
";
        assert_eq!(drawn(&events, 60), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "word ".repeat(100) + &"漢".repeat(100) + &"x".repeat(300);
        let input = format!("{{\"command\":{}}}", stenograph::text::quote(&long));
        let events = [
            message(Role::User, &long),
            call("call-0001", "Bash", &input),
            result("call-0001", &long, Some(true)),
            Event::new(Body::Compaction { summary: Some(Content::text(long.as_str())) }),
            Event::new(Body::Failure { name: Some(long.as_str().into()), content: None }),
        ];
        for width in [40, 80, 120] {
            for line in drawn(&events, width).lines() {
                assert!(text_width(line) <= width, "{width}: {line}");
            }
        }
    }
}
