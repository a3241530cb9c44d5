//! The last visible events of a file, without events that repeat others, and their numbers.

use std::collections::VecDeque;
use std::path::Path;

use stenograph::format::Format;
use stenograph::model::{Event, Span};
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatQueue, SpokenWords};
use stenograph_store::folder;
use stenograph_store::follow::{Follow, Last, LastLine};
use stenograph_store::index::search::ReadStart;
use stenograph_store::read::{Flow, file_from};

use crate::error::CommandError;
use crate::store::StoreArgs;

/// How many events before the first visible one are checked for repeats: agents write the records of one message next to each
/// other.
const CHECKED_BEFORE: usize = 16;

/// How many bytes are read only to count their events.
const COUNTED_SIZE_MAX: u64 = 8 << 20;

/// The words of an event and what to show for it, as it appears if no other event repeats it.
pub fn unless_repeated<T>(event: &Event<'_>, shown: impl Fn(&Event<'_>) -> Option<T>) -> Option<(SpokenWords, T)> {
    Some((SpokenWords::of(event), shown(&event.as_original())?))
}

/// Something to show, and how many events of the window precede its event.
pub type InWindow<T> = (u64, T);

/// The last events of a file.
pub struct LastShown<T> {
    pub last: Last<InWindow<T>>,
    /// If the file is followed, the events that may still turn out to be repeats.
    pub queue: RepeatQueue<InWindow<T>>,
    pub window: EndWindow,
}

/// The last `most` visible events, without repeats.
pub fn last_shown<T>(
    follow: &mut Follow,
    most: usize,
    last_line: LastLine,
    shown: &mut dyn FnMut(&Event<'_>) -> Option<(SpokenWords, T)>,
) -> Result<LastShown<T>, CommandError> {
    let mut wanted = most.saturating_add(CHECKED_BEFORE);
    let mut window = EndWindow { start: follow.reads_from_end().then_some(WindowStart::default()), count: 0 };
    loop {
        window.restart();
        let Last { events, notes, torn, gave_up } = follow.last(wanted, last_line, &mut |event| {
            let before = window.next(event);
            let (words, shown) = shown(event)?;
            Some((words, (before, shown)))
        })?;
        let is_all = events.len() < wanted || gave_up.is_some();
        let (mut queue, mut texts, mut first) = (RepeatQueue::default(), VecDeque::new(), 0);
        for (number, (words, text)) in events.into_iter().enumerate() {
            if number == CHECKED_BEFORE {
                first = texts.len();
            }
            queue.add(words, text);
            while let Some((text, is_repeat)) = queue.next_decided() {
                texts.extend((is_repeat == IsRepeat::No).then_some(text));
            }
        }
        while last_line == LastLine::Include
            && let Some((text, is_repeat)) = queue.take()
        {
            texts.extend((is_repeat == IsRepeat::No).then_some(text));
        }
        if is_all || texts.len() - first >= most {
            texts.drain(..texts.len().saturating_sub(most));
            let gave_up = gave_up.filter(|_| texts.len() < most);
            return Ok(LastShown { last: Last { events: texts, notes, torn, gave_up }, queue, window });
        }
        wanted = wanted.saturating_mul(2);
    }
}

/// The events at the end of a file that were read.
#[derive(Debug, Default)]
pub struct EndWindow {
    /// Where it starts; `None` if the whole file was read.
    start: Option<WindowStart>,
    /// How many events it has.
    count: u64,
}

/// The start of a window, and the last event so far: the offsets of their records, and their parts in them.
#[derive(Clone, Copy, Debug, Default)]
struct WindowStart {
    first: Option<Span>,
    last: Option<(u64, u32)>,
}

impl EndWindow {
    fn restart(&mut self) {
        self.count = 0;
        self.start = self.start.map(|_| WindowStart::default());
    }

    /// How many events it has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Counts an event; returns how many of the window precede it. A larger window begins with an earlier event.
    fn next(&mut self, event: &Event<'_>) -> u64 {
        if let (Some(start), Some(at)) = (self.start, event.at) {
            let place = (at.offset, event.part.index);
            if start.last.is_some_and(|last| place <= last) {
                self.restart();
            }
            let first = self.start.and_then(|start| start.first).or(Some(at));
            self.start = Some(WindowStart { first, last: Some(place) });
        }
        self.count += 1;
        self.count - 1
    }

    /// How many events of the file precede the window; `None` if they are too many to count them. Events are numbered as by
    /// `steno show`: a recording of several files is numbered as a whole, so its files alone have no numbers.
    pub fn events_before(&self, path: &Path, format: Option<&'static dyn Format>, place: &StoreArgs) -> Option<u64> {
        let Some(first) = self.start.and_then(|start| start.first) else { return Some(0) };
        if folder::parts(path).is_some() {
            return None;
        }
        if first.offset == 0 {
            return Some(0);
        }
        let nearest = nearest_record(path, first.offset, place);
        let from = nearest.unwrap_or(ReadStart { at: Span { offset: 0, length: 0, line: 1 }, event: 0 });
        if first.offset.saturating_sub(from.at.offset) > COUNTED_SIZE_MAX {
            return None;
        }
        let mut counter = EventCounter { end: first.offset, count: 0, is_past: false };
        let flow = |counter: &EventCounter| if counter.is_past { Flow::Stop } else { Flow::Continue };
        file_from(path, format?, from.at, &mut counter, flow).ok()?;
        Some(from.event + counter.count)
    }
}

/// The last record before an offset that the index knows, with the number of its first event.
fn nearest_record(path: &Path, offset: u64, place: &StoreArgs) -> Option<ReadStart> {
    let (store, row) = place.known(path)?;
    if row.copy_of.is_some() {
        return None;
    }
    let searcher = store.searcher().ok()?;
    let mut event = u64::MAX;
    // Each step goes back at least one event, and further with every step: the window is short.
    for step in 0..STEPS_MAX {
        let start = searcher.start_before(&row, event).ok()??;
        if start.at.offset <= offset {
            return Some(start);
        }
        event = start.event.checked_sub(1 << step)?;
    }
    None
}

/// How often a step back is tried. The last one is longer than any file.
const STEPS_MAX: u32 = 48;

/// Counts the events before an offset.
struct EventCounter {
    end: u64,
    count: u64,
    is_past: bool,
}

impl Sink for EventCounter {
    fn event(&mut self, event: &Event<'_>) {
        self.is_past |= event.at.is_some_and(|at| at.offset >= self.end);
        self.count += u64::from(!self.is_past);
    }
}
