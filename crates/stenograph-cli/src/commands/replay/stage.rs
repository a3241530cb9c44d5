//! What is played, and the lines it makes on a screen. Of each event only its place and a few numbers are kept; what it says is read
//! again when it is shown, and the lines of the latest ones are remembered.

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
use super::origin::{Audience, Judge, turned};
use super::view::{self, Narrator, Scene};
use crate::error::CommandError;
use crate::input::Go;
use crate::output::{Colour, Ink};
use crate::table;

/// One line on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    text: String,
    ink: Option<Ink>,
}

impl Line {
    /// The line as it is drawn.
    pub fn inked(self, colour: Colour) -> String {
        match self.ink {
            Some(ink) => colour.ink(ink, &self.text),
            None => self.text,
        }
    }
}

/// An event that can be played.
#[derive(Clone, Copy, Debug)]
struct Item {
    beat: Beat,
    mark: EventRef,
    class: Class,
    /// The tool it is about, as `Stage::tools` numbers them.
    tool: Option<u32>,
    failure: Option<CallOutcome>,
    took_ms: Option<u32>,
    usage: Usage,
}

/// Which modes play an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Assistant,
    Tools,
    Other,
}

/// Whether what an event took is told with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usage {
    Told,
    /// A later event says it again.
    Later,
}

/// How many events' lines are remembered: more than fit on any screen.
const LINES_KEPT_MAX: usize = 256;

/// How many lines of one event are shown: who wants to read more of it wants another tool.
const EVENT_LINES_MAX: usize = 2_000;

/// What is played.
pub struct Stage {
    cache: EventCache,
    judge: Judge,
    range: Range,
    narrator: Narrator,
    heading: String,
    mode: Mode,
    live: bool,
    items: Vec<Item>,
    /// The tools there are, by number.
    tools: Vec<Arc<str>>,
    tool_numbers: HashMap<Arc<str>, u32>,
    /// What is played in this mode, and which item each is.
    timeline: Timeline,
    places: Vec<u32>,
    lines: HashMap<usize, Rc<Vec<Line>>>,
    /// For which width they are.
    width: usize,
    events: u64,
    said: Option<&'static str>,
    anew: bool,
    go: Go,
    failed: Option<CommandError>,
}

impl Stage {
    /// A stage on which nothing was put yet.
    pub fn new(options: &Options, cache: EventCache, heading: String, events: u64, judge: Judge) -> Stage {
        Stage {
            cache,
            judge,
            range: options.range(),
            narrator: Narrator::default(),
            heading,
            mode: options.mode(),
            live: options.follow,
            items: Vec::new(),
            tools: Vec::new(),
            tool_numbers: HashMap::new(),
            timeline: Timeline::default(),
            places: Vec::new(),
            lines: HashMap::new(),
            width: 0,
            events,
            said: None,
            anew: false,
            go: Go::On,
            failed: None,
        }
    }

    /// The line of moments in this mode.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Which events were asked for.
    pub fn range(&self) -> &Range {
        &self.range
    }

    /// What is shown.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many events the source has.
    pub fn events(&self) -> u64 {
        self.events.max(self.range.seen())
    }

    /// Whether more may come.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// What happened to the file last.
    pub fn said(&self) -> Option<&'static str> {
        self.said
    }

    /// Whether what was played before is no more; asked once.
    pub fn begins_anew(&mut self) -> bool {
        std::mem::take(&mut self.anew)
    }

    /// What went wrong while events came.
    pub fn failed(&mut self) -> Result<(), CommandError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Goes on with the next mode.
    pub fn next_mode(&mut self) {
        let at = Mode::ALL.iter().position(|mode| *mode == self.mode).unwrap_or(0);
        self.mode = Mode::ALL.into_iter().cycle().nth(at + 1).unwrap_or_default();
        (self.timeline, self.places) = (Timeline::default(), Vec::new());
        self.lines.clear();
        for at in 0..self.items.len() {
            self.place(at);
        }
    }

    /// Puts an item into the line of moments, if this mode plays it.
    fn place(&mut self, at: usize) {
        let Some(item) = self.items.get(at) else { return };
        let is_played = match self.mode {
            Mode::Full | Mode::Summary => true,
            Mode::Assistant => item.class == Class::Assistant,
            Mode::Tools => item.class == Class::Tools,
        };
        if is_played {
            self.timeline.push(item.beat);
            self.places.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }

    /// How many lines stand below a page that nobody scrolled: of an event that is longer than a page its beginning is shown.
    pub fn below(&mut self, at: Option<usize>, width: usize, page: usize) -> Result<usize, CommandError> {
        match at {
            Some(at) => Ok(self.lines_of(at, width)?.len().saturating_sub(page)),
            None => Ok(0),
        }
    }

    /// How many lines the event at this place has.
    pub fn height(&mut self, at: usize, width: usize) -> Result<usize, CommandError> {
        Ok(self.lines_of(at, width)?.len())
    }

    /// How far one can scroll, where that is less than `wanted`.
    pub fn scroll_max(
        &mut self,
        at: Option<usize>,
        width: usize,
        page: usize,
        wanted: usize,
    ) -> Result<usize, CommandError> {
        let all = self.upwards(at, width, wanted.saturating_add(page))?.len();
        Ok(all.saturating_sub(page))
    }

    /// The lines of a page that ends `below` lines above the end of the event at this place.
    pub fn page(
        &mut self,
        at: Option<usize>,
        width: usize,
        page: usize,
        below: usize,
    ) -> Result<Vec<Line>, CommandError> {
        let mut lines = self.upwards(at, width, page.saturating_add(below))?;
        lines.truncate(lines.len().saturating_sub(below).max(page.min(lines.len())));
        Ok(lines.split_off(lines.len().saturating_sub(page)))
    }

    /// At least so many lines up to the end of the event at this place, as far as there are.
    fn upwards(&mut self, at: Option<usize>, width: usize, least: usize) -> Result<Vec<Line>, CommandError> {
        let mut blocks: Vec<Rc<Vec<Line>>> = Vec::new();
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

    /// The lines of the event at this place.
    fn lines_of(&mut self, at: usize, width: usize) -> Result<Rc<Vec<Line>>, CommandError> {
        if self.width != width || self.lines.len() >= LINES_KEPT_MAX {
            self.width = width;
            self.lines.clear();
        }
        if let Some(lines) = self.lines.get(&at) {
            return Ok(Rc::clone(lines));
        }
        let lines = Rc::new(self.made(at, width)?);
        self.lines.insert(at, Rc::clone(&lines));
        Ok(lines)
    }

    fn made(&mut self, at: usize, width: usize) -> Result<Vec<Line>, CommandError> {
        let item = self.places.get(at).and_then(|place| self.items.get(*place as usize)).copied();
        let Some(item) = item else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        if let Some(skipped) = self.timeline.wait(at).skipped() {
            let text = format!("\u{2026} {} later", view::stretch(skipped));
            lines.push(Line { text: table::cut(&text, width), ink: Some(Ink::Faint) });
            if self.mode != Mode::Summary {
                lines.push(Line { text: String::new(), ink: None });
            }
        }
        let Some(event) = self.cache.event(item.mark)? else {
            let text = format!("[{}] is not in the file any more", item.beat.number);
            lines.push(Line { text: table::cut(&text, width), ink: Some(Ink::Warning) });
            return Ok(lines);
        };
        let scene = Scene {
            number: item.beat.number,
            tool: item.tool.and_then(|tool| self.tools.get(tool as usize)).cloned(),
            failure: item.failure,
            took_ms: item.took_ms.map(u64::from),
            usage: event.usage.filter(|_| item.usage == Usage::Told),
        };
        lines.extend(wrapped(&view::event(self.mode, &scene, &event, Colour::Plain), width, Some(Ink::Strong)));
        if lines.len() > EVENT_LINES_MAX {
            let more = lines.len() - EVENT_LINES_MAX;
            lines.truncate(EVENT_LINES_MAX);
            let text = format!("\u{2026} {more} more lines: steno show --event {} --text shows them", item.beat.number);
            lines.push(Line { text: table::cut(&text, width), ink: Some(Ink::Faint) });
            lines.push(Line { text: String::new(), ink: None });
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

/// The lines of a text, none wider than the screen; the first one in this ink.
fn wrapped(text: &str, width: usize, first: Option<Ink>) -> Vec<Line> {
    let mut ink = first;
    let mut lines = Vec::new();
    for line in text.lines() {
        // A rule is as long as there is room.
        let is_rule = line.len() > width && line.bytes().all(|byte| matches!(byte, b'-' | b'='));
        let line = if is_rule { line.get(..width).unwrap_or(line) } else { line };
        for text in table::wrapped(&line.replace('\t', "    "), width) {
            lines.push(Line { text, ink });
        }
        ink = None;
    }
    lines
}

impl Sink for Stage {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let verdict = self.judge.next(event);
        let Some(scene) = self.narrator.scene(number, event, verdict) else { return };
        if within == Within::After {
            self.go = Go::NoFurther;
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
        let tool = scene.tool.map(|tool| self.number_of(tool));
        let took_ms = scene.took_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
        let usage = if scene.usage.is_some() { Usage::Told } else { Usage::Later };
        self.items.push(Item {
            beat: Beat::of(number, event),
            mark,
            class,
            tool,
            failure: scene.failure,
            took_ms,
            usage,
        });
        self.place(self.items.len() - 1);
    }

    /// What is odd about a source is told by steno check.
    fn note(&mut self, _note: Note) {}
}

impl Listener for Stage {
    fn file_change(&mut self, change: FollowChange) {
        self.said = Some(turned(change));
        if change == FollowChange::Gone {
            return;
        }
        self.judge.anew();
        self.narrator = Narrator::default();
        self.range = Range::new(None, None);
        self.anew = true;
        self.items.clear();
        self.places.clear();
        self.lines.clear();
        self.timeline = Timeline::default();
        self.events = 0;
    }
}

impl Audience for Stage {
    fn go(&self) -> Go {
        if self.failed.is_some() { Go::NoFurther } else { self.go }
    }
}
