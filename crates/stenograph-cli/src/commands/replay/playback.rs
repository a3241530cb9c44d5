//! The played events and their lines on the screen. Only the position and a few numbers of each event are in memory; its text
//! is read again when it is shown, and the lines of recent events are cached.

use std::collections::HashMap;
use std::num::{NonZeroI32, NonZeroU32};
use std::rc::Rc;
use std::sync::Arc;

use anstyle::Style;
use stenograph::calls::CallOutcome;
use stenograph::model::{Body, Event, Role, Usage};
use stenograph::read::Sink;
use stenograph::render::{EventContext, EventView, ViewKind};
use stenograph::replay::{Beat, Mode, Range, Timeline, Within};
use stenograph_store::event_cache::{EventCache, EventRef};
use stenograph_store::follow::{FollowChange, Listener};

use super::search::SearchQuery;
use super::source::{EventFilter, EventReceiver, FilterDecision, describe_change};
use super::{Options, header, is_played};
use crate::clock;
use crate::error::CommandError;
use crate::input::Flow;
use crate::output::Colour;
use crate::terminal::{DrawnEvent, Folding, Header, Line, Painter, PlaceKind, PlaceTracker};

/// What is kept of an event: everything that drawing it needs beside its record.
#[derive(Clone, Copy, Debug)]
struct Item {
    beat: Beat,
    mark: EventRef,
    class: Class,
    kind: ItemKind,
    /// Its tool and its working folder, as positions in `names`, from 1.
    tool: Option<NonZeroU32>,
    cwd: Option<NonZeroU32>,
    call: Option<NonZeroU32>,
    called_at: Option<NonZeroU32>,
    outcome: Option<CallOutcome>,
    exit: Option<NonZeroI32>,
    took_ms: Option<NonZeroU32>,
    usage: UsageShown,
}

/// A [`PlaceKind`] with the position of the speaker's name.
#[derive(Clone, Copy, Debug)]
enum ItemKind {
    Speaker(ViewKind, Option<NonZeroU32>),
    Call,
    Result,
    Compaction,
    Other,
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

/// A drawn event.
struct DrawnItem {
    lines: Vec<Line>,
    /// Its tokens.
    usage: String,
}

/// How many events' lines are cached: more than fit on any screen.
const LINES_CACHED_MAX: usize = 256;

/// How many lines of one event are shown; `steno show` has the rest.
const EVENT_LINES_MAX: usize = 2_000;

pub struct Playback {
    cache: EventCache,
    filter: EventFilter,
    range: Range,
    tracker: PlaceTracker,
    /// The time of the event before, for durations.
    before_ms: Option<i64>,
    header: Header,
    painter: Painter,
    mode: Mode,
    all: bool,
    live: bool,
    items: Vec<Item>,
    /// Names of tools, speakers and folders, by index.
    names: Vec<Arc<str>>,
    name_positions: HashMap<Arc<str>, Option<NonZeroU32>>,
    /// The events of the current mode, and the item of each.
    timeline: Timeline,
    item_indexes: Vec<u32>,
    drawn: HashMap<usize, Rc<DrawnItem>>,
    /// An event that is drawn in full, because a search found something in it.
    opened: Option<usize>,
    events: u64,
    notice: Option<&'static str>,
    restarted: bool,
    flow: Flow,
    failed: Option<CommandError>,
}

impl Playback {
    pub fn new(
        options: &Options,
        cache: EventCache,
        header: Header,
        events: u64,
        filter: EventFilter,
        colour: Colour,
    ) -> Playback {
        Playback {
            cache,
            filter,
            range: options.range(),
            tracker: PlaceTracker::default(),
            before_ms: None,
            header,
            painter: Painter::new(colour, 0, options.draw.folding()),
            mode: options.mode(),
            all: options.draw.all(),
            live: options.follow,
            items: Vec::new(),
            names: Vec::new(),
            name_positions: HashMap::new(),
            timeline: Timeline::default(),
            item_indexes: Vec::new(),
            drawn: HashMap::new(),
            opened: None,
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
        self.forget_drawn();
        for at in 0..self.items.len() {
            self.add_to_timeline(at);
        }
    }

    /// Folds long content, or shows all of it.
    pub fn toggle_folding(&mut self) {
        self.painter.folding = match self.painter.folding {
            Folding::Folded => Folding::Whole,
            Folding::Whole => Folding::Folded,
        };
        self.forget_drawn();
    }

    fn forget_drawn(&mut self) {
        self.drawn.clear();
        self.opened = None;
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
            Some(at) => Ok(self.drawn_at(at, width)?.lines.len().saturating_sub(page)),
            None => Ok(0),
        }
    }

    /// How many lines an event has.
    pub fn height(&mut self, at: usize, width: usize) -> Result<usize, CommandError> {
        Ok(self.drawn_at(at, width)?.lines.len())
    }

    /// The duration and the tokens of an event, for the status line.
    pub fn took(&mut self, at: usize, width: usize) -> Result<[String; 2], CommandError> {
        let usage = self.drawn_at(at, width)?.usage.clone();
        let took = self.item(at).and_then(|item| item.took_ms);
        let took = took.map(|ms| format!("took {}", clock::format_duration(u64::from(ms.get())))).unwrap_or_default();
        Ok([took, usage])
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
    ) -> Result<Vec<Line>, CommandError> {
        let mut lines = self.lines_up_to(at, width, page.saturating_add(below))?;
        lines.truncate(lines.len().saturating_sub(below).max(page.min(lines.len())));
        Ok(lines.split_off(lines.len().saturating_sub(page)))
    }

    /// Whether the query is in the event at this place.
    pub fn has(&mut self, at: usize, query: &SearchQuery) -> Result<bool, CommandError> {
        let Some(item) = self.item(at) else { return Ok(false) };
        let Some(event) = self.cache.event(item.mark)? else { return Ok(false) };
        Ok(query.is_in(&EventView::of(&event, &self.place(&item).context)))
    }

    /// The first line of an event that has the query. The event is drawn in full if the query is in its folded part.
    pub fn line_with(&mut self, at: usize, width: usize, query: &SearchQuery) -> Result<Option<usize>, CommandError> {
        let has = |line: &Line| !query.ranges(&line.text()).is_empty();
        let found = self.drawn_at(at, width)?.lines.iter().position(has);
        if found.is_some() || self.mode == Mode::Summary || self.painter.folding == Folding::Whole {
            return Ok(found);
        }
        let opened = self.opened.replace(at);
        opened.into_iter().chain([at]).for_each(|at| drop(self.drawn.remove(&at)));
        Ok(self.drawn_at(at, width)?.lines.iter().position(has))
    }

    /// At least `least` lines up to the end of an event, if there are as many.
    fn lines_up_to(&mut self, at: Option<usize>, width: usize, least: usize) -> Result<Vec<Line>, CommandError> {
        let mut blocks: Vec<Rc<DrawnItem>> = Vec::new();
        let mut count = 0;
        let mut next = at;
        while let Some(at) = next.filter(|_| count < least) {
            let drawn = self.drawn_at(at, width)?;
            count += drawn.lines.len();
            blocks.push(drawn);
            next = at.checked_sub(1);
        }
        let mut lines = if next.is_none() && count < least { self.header.lines(width) } else { Vec::new() };
        lines.extend(blocks.iter().rev().flat_map(|block| block.lines.iter().cloned()));
        Ok(lines)
    }

    /// The lines of an event.
    fn drawn_at(&mut self, at: usize, width: usize) -> Result<Rc<DrawnItem>, CommandError> {
        if self.painter.width != width || self.drawn.len() >= LINES_CACHED_MAX {
            self.painter.width = width;
            self.drawn.clear();
        }
        if let Some(drawn) = self.drawn.get(&at) {
            return Ok(Rc::clone(drawn));
        }
        let drawn = Rc::new(self.draw(at, width)?);
        self.drawn.insert(at, Rc::clone(&drawn));
        Ok(drawn)
    }

    fn item(&self, at: usize) -> Option<Item> {
        self.items.get(*self.item_indexes.get(at)? as usize).copied()
    }

    /// The place of an event in the conversation, as the tracker stated it.
    fn place(&self, item: &Item) -> DrawnEvent {
        let name = |position: Option<NonZeroU32>| self.names.get(position?.get() as usize - 1).cloned();
        let number = |number: Option<NonZeroU32>| number.map(|number| u64::from(number.get()));
        DrawnEvent {
            number: Some(item.beat.number),
            kind: match item.kind {
                ItemKind::Speaker(kind, speaker) => PlaceKind::Speaker(kind, name(speaker).unwrap_or_default()),
                ItemKind::Call => PlaceKind::Call,
                ItemKind::Result => PlaceKind::Result,
                ItemKind::Compaction => PlaceKind::Compaction,
                ItemKind::Other => PlaceKind::Other,
            },
            time_ms: item.beat.time,
            called_at: number(item.called_at),
            context: EventContext {
                call: number(item.call),
                tool: name(item.tool),
                outcome: item.outcome,
                exit: item.exit.map(|exit| i64::from(exit.get())),
                cwd: name(item.cwd),
            },
        }
    }

    fn draw(&mut self, at: usize, width: usize) -> Result<DrawnItem, CommandError> {
        let Some(item) = self.item(at) else { return Ok(DrawnItem { lines: Vec::new(), usage: String::new() }) };
        let Some(event) = self.cache.event(item.mark)? else {
            let text = format!("event {} is no longer in the file", item.beat.number);
            let lines = vec![Line::of(&text, Style::new().bold()).fitted(width)];
            return Ok(DrawnItem { lines, usage: String::new() });
        };
        let place = self.place(&item);
        let mut before = at.checked_sub(1).and_then(|before| self.item(before)).map(|before| self.place(&before));
        if let Some(before) = &mut before {
            let mut earlier = (0..at).rev().filter_map(|at| self.timeline.beat(at));
            before.time_ms = earlier.find_map(|beat| beat.time);
        }
        let view = EventView::of(&event, &place.context);
        let folding = self.painter.folding;
        if self.opened == Some(at) {
            self.painter.folding = Folding::Whole;
        }
        let mut lines = match self.mode {
            Mode::Summary => self.painter.summary(&event, &view, &place, before.as_ref()),
            Mode::Full | Mode::Assistant | Mode::Tools => {
                self.painter.event(&event, &view, &place, before.as_ref(), "")
            }
        };
        self.painter.folding = folding;
        if let Some(skipped) = self.timeline.wait(at).skipped() {
            let later = Line::of(&format!("\u{2026} {} later", clock::format_duration(skipped)), Style::new().dimmed());
            let gap = usize::from(lines.first().is_some_and(Line::is_empty));
            lines.insert(gap, later.fitted(width));
        }
        if lines.len() > EVENT_LINES_MAX {
            let more = lines.len() - EVENT_LINES_MAX;
            lines.truncate(EVENT_LINES_MAX);
            let text = format!("\u{2026} {more} more lines: see steno show --event {} --text", item.beat.number);
            lines.push(Line::of(&text, Style::new().dimmed()).fitted(width));
        }
        // The screen may be narrower than the narrowest room for content.
        let lines = lines.into_iter().map(|line| line.fitted(width)).collect();
        let usage = event.usage.filter(|_| item.usage == UsageShown::Shown).unwrap_or_default();
        Ok(DrawnItem { lines, usage: header::tokens(&usage) })
    }

    fn position_of(&mut self, name: &Arc<str>) -> Option<NonZeroU32> {
        if let Some(position) = self.name_positions.get(name) {
            return *position;
        }
        self.names.push(Arc::clone(name));
        let position = u32::try_from(self.names.len()).ok().and_then(NonZeroU32::new);
        self.name_positions.insert(Arc::clone(name), position);
        position
    }

    /// What is kept of an event.
    fn item_of(&mut self, place: &DrawnEvent, event: &Event<'_>, usage: Option<Usage>, mark: EventRef) -> Item {
        // The time that a user takes is not working time.
        let is_work = event.role() != Some(Role::User);
        let took = self.before_ms.zip(place.time_ms).filter(|_| is_work);
        let took = took.and_then(|(before, time)| u64::try_from(time.saturating_sub(before)).ok());
        let small = |number: u64| NonZeroU32::new(u32::try_from(number).unwrap_or(u32::MAX));
        Item {
            beat: Beat::of(place.number.unwrap_or(0), event),
            mark,
            class: match &event.body {
                Body::Message { role: Role::Assistant, .. } => Class::Assistant,
                Body::ToolCall { .. } | Body::ToolResult { .. } => Class::Tools,
                _ => Class::Other,
            },
            kind: match &place.kind {
                PlaceKind::Speaker(kind, name) => ItemKind::Speaker(*kind, self.position_of(name)),
                PlaceKind::Call => ItemKind::Call,
                PlaceKind::Result => ItemKind::Result,
                PlaceKind::Compaction => ItemKind::Compaction,
                PlaceKind::Other => ItemKind::Other,
            },
            tool: place.context.tool.as_ref().and_then(|tool| self.position_of(tool)),
            cwd: place.context.cwd.as_ref().and_then(|cwd| self.position_of(cwd)),
            call: place.context.call.and_then(small),
            called_at: place.called_at.and_then(small),
            outcome: place.context.outcome,
            exit: place.context.exit.and_then(|exit| NonZeroI32::new(i32::try_from(exit).unwrap_or(i32::MAX))),
            took_ms: took.and_then(small),
            usage: if usage.is_some() { UsageShown::Shown } else { UsageShown::Later },
        }
    }
}

impl Sink for Playback {
    fn event(&mut self, event: &Event<'_>) {
        let (number, within) = self.range.next(event);
        let decision = self.filter.next(event);
        // Records that are not played may state how a call ended.
        let (place, visibility) = self.tracker.next(Some(number), event);
        let FilterDecision::Played(usage) = decision else { return };
        if within == Within::After {
            self.flow = Flow::Stop;
        }
        let is_wanted = within == Within::Inside && is_played(Mode::Full, self.all, visibility, event);
        if is_wanted && self.failed.is_none() {
            match self.cache.event_ref(event) {
                Ok(mark) => {
                    let item = self.item_of(&place, event, usage, mark);
                    self.items.push(item);
                    self.add_to_timeline(self.items.len() - 1);
                }
                Err(error) => self.failed = Some(error.into()),
            }
        }
        self.before_ms = place.time_ms.or(self.before_ms);
    }
}

impl Listener for Playback {
    fn file_change(&mut self, change: FollowChange) {
        self.notice = Some(describe_change(change));
        if change == FollowChange::Gone {
            return;
        }
        self.filter.restart();
        (self.tracker, self.before_ms) = (PlaceTracker::default(), None);
        self.range = Range::new(None, None);
        self.restarted = true;
        self.items.clear();
        self.item_indexes.clear();
        self.forget_drawn();
        self.timeline = Timeline::default();
        self.events = 0;
    }
}

impl EventReceiver for Playback {
    fn flow(&self) -> Flow {
        if self.failed.is_some() { Flow::Stop } else { self.flow }
    }
}
