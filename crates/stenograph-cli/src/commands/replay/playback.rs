//! The played events and their lines on the screen. Only the position and a few numbers of each event are in memory; its text
//! is read again when it is shown, and the lines of recent events are cached.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use stenograph::calls::CallOutcome;
use stenograph::model::{Body, Event, Note, Role};
use stenograph::read::Sink;
use stenograph::replay::{Beat, Mode, Range, Timeline, Within};
use stenograph_store::event_cache::{EventCache, EventRef};
use stenograph_store::follow::{FollowChange, Listener};

use super::Options;
use super::source::{EventFilter, EventReceiver, describe_change};
use super::view::{self, EventFacts, FactTracker};
use crate::error::CommandError;
use crate::input::Flow;
use crate::output::{Colour, TextStyle};
use crate::table;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLine {
    text: String,
    paint: Option<TextStyle>,
}

impl ScreenLine {
    pub fn painted(self, colour: Colour) -> String {
        match self.paint {
            Some(paint) => colour.paint(paint, &self.text),
            None => self.text,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Item {
    beat: Beat,
    mark: EventRef,
    class: Class,
    /// The index of its tool in `tools`.
    tool: Option<u32>,
    failure: Option<CallOutcome>,
    took_ms: Option<u32>,
    usage: UsageShown,
}

/// Which modes play an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Assistant,
    Tools,
    Other,
}

/// Whether an event shows its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageShown {
    Shown,
    /// A later event repeats it.
    Later,
}

/// How many events' lines are cached: more than fit on any screen.
const LINES_CACHED_MAX: usize = 256;

/// How many lines of one event are shown; `steno show` has the rest.
const EVENT_LINES_MAX: usize = 2_000;

pub struct Playback {
    cache: EventCache,
    filter: EventFilter,
    range: Range,
    fact_tracker: FactTracker,
    heading: String,
    mode: Mode,
    live: bool,
    items: Vec<Item>,
    /// The names of tools, by index.
    tools: Vec<Arc<str>>,
    tool_numbers: HashMap<Arc<str>, u32>,
    /// The events of the current mode, and the item of each.
    timeline: Timeline,
    item_indexes: Vec<u32>,
    lines: HashMap<usize, Rc<Vec<ScreenLine>>>,
    /// The width that the cached lines fit.
    width: usize,
    events: u64,
    notice: Option<&'static str>,
    restarted: bool,
    flow: Flow,
    failed: Option<CommandError>,
}

impl Playback {
    pub fn new(options: &Options, cache: EventCache, heading: String, events: u64, filter: EventFilter) -> Playback {
        Playback {
            cache,
            filter,
            range: options.range(),
            fact_tracker: FactTracker::default(),
            heading,
            mode: options.mode(),
            live: options.follow,
            items: Vec::new(),
            tools: Vec::new(),
            tool_numbers: HashMap::new(),
            timeline: Timeline::default(),
            item_indexes: Vec::new(),
            lines: HashMap::new(),
            width: 0,
            events,
            notice: None,
            restarted: false,
            flow: Flow::Continue,
            failed: None,
        }
    }

    /// The timeline of the current mode.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The requested events.
    pub fn range(&self) -> &Range {
        &self.range
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The number of events in the source.
    pub fn events(&self) -> u64 {
        self.events.max(self.range.seen())
    }

    /// Whether more events may arrive.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The last change of the file.
    pub fn notice(&self) -> Option<&'static str> {
        self.notice
    }

    /// Whether the replay has restarted; resets the flag.
    pub fn take_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }

    /// The error of the last event, if any.
    pub fn failed(&mut self) -> Result<(), CommandError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Switches to the next mode.
    pub fn next_mode(&mut self) {
        let at = Mode::ALL.iter().position(|mode| *mode == self.mode).unwrap_or(0);
        self.mode = Mode::ALL.into_iter().cycle().nth(at + 1).unwrap_or_default();
        (self.timeline, self.item_indexes) = (Timeline::default(), Vec::new());
        self.lines.clear();
        for at in 0..self.items.len() {
            self.add_to_timeline(at);
        }
    }

    /// Adds an item to the timeline if the mode plays it.
    fn add_to_timeline(&mut self, at: usize) {
        let Some(item) = self.items.get(at) else { return };
        let is_played = match self.mode {
            Mode::Full | Mode::Summary => true,
            Mode::Assistant => item.class == Class::Assistant,
            Mode::Tools => item.class == Class::Tools,
        };
        if is_played {
            self.timeline.push(item.beat);
            self.item_indexes.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }

    /// How many lines are below an unscrolled page: a long event shows its beginning.
    pub fn below(&mut self, at: Option<usize>, width: usize, page: usize) -> Result<usize, CommandError> {
        match at {
            Some(at) => Ok(self.lines_of(at, width)?.len().saturating_sub(page)),
            None => Ok(0),
        }
    }

    /// How many lines an event has.
    pub fn height(&mut self, at: usize, width: usize) -> Result<usize, CommandError> {
        Ok(self.lines_of(at, width)?.len())
    }

    /// How far one can scroll, at most `wanted`.
    pub fn scroll_max(
        &mut self,
        at: Option<usize>,
        width: usize,
        page: usize,
        wanted: usize,
    ) -> Result<usize, CommandError> {
        let all = self.lines_up_to(at, width, wanted.saturating_add(page))?.len();
        Ok(all.saturating_sub(page))
    }

    /// The lines of a page that ends `below` lines above the end of an event.
    pub fn page(
        &mut self,
        at: Option<usize>,
        width: usize,
        page: usize,
        below: usize,
    ) -> Result<Vec<ScreenLine>, CommandError> {
        let mut lines = self.lines_up_to(at, width, page.saturating_add(below))?;
        lines.truncate(lines.len().saturating_sub(below).max(page.min(lines.len())));
        Ok(lines.split_off(lines.len().saturating_sub(page)))
    }

    /// At least `least` lines up to the end of an event, if there are as many.
    fn lines_up_to(&mut self, at: Option<usize>, width: usize, least: usize) -> Result<Vec<ScreenLine>, CommandError> {
        let mut blocks: Vec<Rc<Vec<ScreenLine>>> = Vec::new();
        let mut count = 0;
        let mut next = at;
        while let Some(at) = next.filter(|_| count < least) {
            let lines = self.lines_of(at, width)?;
            count += lines.len();
            blocks.push(lines);
            next = at.checked_sub(1);
        }
        if next.is_none() && count < least {
            blocks.push(Rc::new(wrapped(&self.heading, width, None)));
        }
        Ok(blocks.iter().rev().flat_map(|block| block.iter().cloned()).collect())
    }

    /// The lines of an event.
    fn lines_of(&mut self, at: usize, width: usize) -> Result<Rc<Vec<ScreenLine>>, CommandError> {
        if self.width != width || self.lines.len() >= LINES_CACHED_MAX {
            self.width = width;
            self.lines.clear();
        }
        if let Some(lines) = self.lines.get(&at) {
            return Ok(Rc::clone(lines));
        }
        let lines = Rc::new(self.build_lines(at, width)?);
        self.lines.insert(at, Rc::clone(&lines));
        Ok(lines)
    }

    fn build_lines(&mut self, at: usize, width: usize) -> Result<Vec<ScreenLine>, CommandError> {
        let item =
            self.item_indexes.get(at).and_then(|add_to_timeline| self.items.get(*add_to_timeline as usize)).copied();
        let Some(item) = item else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        if let Some(skipped) = self.timeline.wait(at).skipped() {
            let text = format!("\u{2026} {} later", view::stretch(skipped));
            lines.push(ScreenLine { text: table::truncated(&text, width), paint: Some(TextStyle::Faint) });
            if self.mode != Mode::Summary {
                lines.push(ScreenLine { text: String::new(), paint: None });
            }
        }
        let Some(event) = self.cache.event(item.mark)? else {
            let text = format!("[{}] is no longer in the file", item.beat.number);
            lines.push(ScreenLine { text: table::truncated(&text, width), paint: Some(TextStyle::Warning) });
            return Ok(lines);
        };
        let event_facts = EventFacts {
            number: item.beat.number,
            tool: item.tool.and_then(|tool| self.tools.get(tool as usize)).cloned(),
            failure: item.failure,
            took_ms: item.took_ms.map(u64::from),
            usage: event.usage.filter(|_| item.usage == UsageShown::Shown),
        };
        lines.extend(wrapped(
            &view::event(self.mode, &event_facts, &event, Colour::Plain),
            width,
            Some(TextStyle::Strong),
        ));
        if lines.len() > EVENT_LINES_MAX {
            let more = lines.len() - EVENT_LINES_MAX;
            lines.truncate(EVENT_LINES_MAX);
            let text = format!("\u{2026} {more} more lines: see steno show --event {} --text", item.beat.number);
            lines.push(ScreenLine { text: table::truncated(&text, width), paint: Some(TextStyle::Faint) });
            lines.push(ScreenLine { text: String::new(), paint: None });
        }
        Ok(lines)
    }

    fn number_of(&mut self, tool: Arc<str>) -> u32 {
        let next = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        *self.tool_numbers.entry(Arc::clone(&tool)).or_insert_with(|| {
            self.tools.push(tool);
            next
        })
    }
}

/// Wraps a text to the width of the screen; `first` is the style of the first line.
fn wrapped(text: &str, width: usize, first: Option<TextStyle>) -> Vec<ScreenLine> {
    let mut paint = first;
    let mut lines = Vec::new();
    for line in text.lines() {
        // A rule is as wide as the screen.
        let is_rule = line.len() > width && line.bytes().all(|byte| matches!(byte, b'-' | b'='));
        let line = if is_rule { line.get(..width).unwrap_or(line) } else { line };
        for text in table::wrapped(&line.replace('\t', "    "), width) {
            lines.push(ScreenLine { text, paint });
        }
        paint = None;
    }
    lines
}

impl Sink for Playback {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let decision = self.filter.next(event);
        let Some(event_facts) = self.fact_tracker.event_facts(number, event, decision) else { return };
        if within == Within::After {
            self.flow = Flow::Stop;
        }
        if within != Within::Inside || !Mode::Full.shows(event) || self.failed.is_some() {
            return;
        }
        let mark = match self.cache.event_ref(event) {
            Ok(mark) => mark,
            Err(error) => {
                self.failed = Some(error.into());
                return;
            }
        };
        let class = match &event.body {
            Body::Message { role: Role::Assistant, .. } => Class::Assistant,
            Body::ToolCall { .. } | Body::ToolResult { .. } => Class::Tools,
            _ => Class::Other,
        };
        let tool = event_facts.tool.map(|tool| self.number_of(tool));
        let took_ms = event_facts.took_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
        let usage = if event_facts.usage.is_some() { UsageShown::Shown } else { UsageShown::Later };
        self.items.push(Item {
            beat: Beat::of(number, event),
            mark,
            class,
            tool,
            failure: event_facts.failure,
            took_ms,
            usage,
        });
        self.add_to_timeline(self.items.len() - 1);
    }

    /// `steno check` reports notes.
    fn note(&mut self, _note: Note) {}
}

impl Listener for Playback {
    fn file_change(&mut self, change: FollowChange) {
        self.notice = Some(describe_change(change));
        if change == FollowChange::Gone {
            return;
        }
        self.filter.restart();
        self.fact_tracker = FactTracker::default();
        self.range = Range::new(None, None);
        self.restarted = true;
        self.items.clear();
        self.item_indexes.clear();
        self.lines.clear();
        self.timeline = Timeline::default();
        self.events = 0;
    }
}

impl EventReceiver for Playback {
    fn flow(&self) -> Flow {
        if self.failed.is_some() { Flow::Stop } else { self.flow }
    }
}
