//! The preview of a session: its header, and its events from the beginning or around a hit. It reads a limited part of a source.

use anstyle::{AnsiColor, Style};
use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::repeat::CheckRepeats;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::index::search::ReadStart;

use super::model::PreviewRequest;
use crate::commands::show::header;
use crate::error::CommandError;
use crate::input::{self, Flow, TranscriptInput};
use crate::output::{Colour, Output};
use crate::progress::SourceProgress;
use crate::store::StoreArgs;
use crate::terminal::{Drawer, Folding, Line};
use stenograph_store::hits::ShownHit;

/// The most lines of a preview.
const LINES_MAX: usize = 400;

/// The most bytes that are read for a preview. A hit beyond them is only reached if the index knows its position.
const BYTES_MAX: u64 = 16 << 20;

/// How many lines of a found event are shown before the words that were found.
const LINES_BEFORE: usize = 2;

/// How many events before a hit are read, so that repeats are recognized.
const CHECKED_BEFORE: u64 = 16;

/// The lines of a preview; if it cannot be read, the reason.
pub fn lines(place: &StoreArgs, request: &PreviewRequest, colour: Colour) -> Vec<Line> {
    let width = request.key.width;
    let mut lines = Vec::new();
    let read = place.store().and_then(|store| read(&store, request, colour, &mut lines));
    if let Err(error) = read {
        let texts = std::iter::once(error.message()).chain(error.hints().iter().map(String::as_str));
        lines.extend(texts.flat_map(|text| Line::of(text, Style::new().dimmed()).wrapped(width)));
    }
    lines
}

/// What a search found, on one line; matches are visible without colour too.
pub fn snippet(hit: &ShownHit) -> Line {
    let found = match &hit.read {
        Ok(found) => &found.snippet,
        Err(reason) => return Line::of(&format!("({reason})"), Style::new().dimmed()),
    };
    let mark = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let mut line = Line::of(if found.is_cut_before { "\u{2026}" } else { "" }, Style::new());
    let mut at = 0;
    for range in &found.marks {
        line.push(found.text.get(at..range.start).unwrap_or_default(), Style::new());
        line.push(&format!("\u{ab}{}\u{bb}", found.text.get(range.clone()).unwrap_or_default()), mark);
        at = range.end;
    }
    line.push(found.text.get(at..).unwrap_or_default(), Style::new());
    line
}

/// The first words that a search found, as the event spells them.
pub fn found_words(hit: &ShownHit) -> Option<String> {
    let snippet = &hit.read.as_ref().ok()?.snippet;
    snippet.text.get(snippet.marks.first()?.clone()).map(str::to_owned)
}

/// The lines of an event from the words that were found: its heading, how many lines are left out, and the rest.
fn from_words(mut lines: Vec<Line>, words: &str) -> Vec<Line> {
    let words = words.to_lowercase();
    let found = lines.iter().position(|line| line.text().to_lowercase().contains(&words));
    let Some(first) = found.and_then(|at| at.checked_sub(LINES_BEFORE)) else { return lines };
    // The rule of a day and the heading stay.
    let heading = lines.iter().position(|line| line.text().contains('>')).map_or(1, |at| at + 1);
    if first > heading + 1 {
        let left_out = format!("       \u{2026} {} lines above", first - heading);
        lines.splice(heading..first, [Line::of(&left_out, Style::new().dimmed())]);
    }
    lines
}

fn read(store: &Store, request: &PreviewRequest, colour: Colour, lines: &mut Vec<Line>) -> Result<(), CommandError> {
    let (session, width) = (&request.session, request.key.width);
    let mut head = header::of_session(session, store)?.lines(width);
    // The header ends with a blank line.
    head.pop();
    head.push(Line::of(&session.name, Style::new().dimmed()).fitted(width));
    head.push(Line::default());
    lines.append(&mut head);
    let catalogue = store.catalogue()?;
    let source = match &request.hit {
        Some(hit) => catalogue.source(hit.source)?,
        None => catalogue.source_at(&session.path)?,
    };
    let Some(source) = source else {
        return Err(CommandError::new("the index no longer knows the file").hint("update it with steno index"));
    };
    let mut messages = Vec::new();
    let mut silent = Output::to(std::io::sink(), &mut messages);
    let version = request.hit.as_ref().and_then(|hit| hit.version);
    let mut input = match version {
        Some(version) => input::open_version(store, &source, version, None)?,
        None => input::open_known(store, &source, None, &mut silent)?,
    };
    drop(silent);
    for message in String::from_utf8_lossy(&messages).lines() {
        lines.extend(Line::of(message, Style::new().dimmed()).wrapped(width));
    }
    let mut sink = PreviewSink::new(request, colour);
    let read = read_events(&mut input, &mut sink, start(store, &source, request));
    lines.append(&mut sink.lines);
    if let (Some(wanted), true) = (sink.wanted, sink.next <= sink.wanted.unwrap_or(0)) {
        let text = format!("event {} is too far into the file for a preview; enter shows it", wanted + 1);
        lines.extend(Line::of(&text, Style::new().dimmed()).wrapped(width));
    }
    read
}

/// Where to start reading to reach a hit, if the index knows it.
fn start(store: &Store, source: &SourceRow, request: &PreviewRequest) -> Option<ReadStart> {
    let hit = request.hit.as_ref().filter(|hit| hit.version.is_none() && source.copy_of.is_none())?;
    let first = hit.event.saturating_sub(CHECKED_BEFORE);
    store.searcher().ok()?.start_before(source, first).ok()?
}

fn read_events(
    input: &mut TranscriptInput,
    sink: &mut PreviewSink,
    start: Option<ReadStart>,
) -> Result<(), CommandError> {
    sink.next = start.map_or(0, |start| start.event);
    sink.first_byte = start.map_or(0, |start| start.at.offset);
    let mut checked = CheckRepeats::new(sink);
    let read = match start {
        Some(start) => input.read_from(start.at, &mut checked, |checked| checked.sink.flow()),
        None => input.read(&mut checked, &SourceProgress::none(), |checked| checked.sink.flow()),
    };
    checked.finish();
    read
}

/// Draws events until there are enough lines.
struct PreviewSink {
    drawer: Drawer,
    lines: Vec<Line>,
    /// The number of the next event, from 0.
    next: u64,
    /// The event that was found, from 0.
    wanted: Option<u64>,
    /// The first words that were found in it.
    found: Option<String>,
    /// What is added to an event's number in the source to get the number in the session; `None` if it is unknown.
    number_offset: Option<u64>,
    first_byte: u64,
    is_full: bool,
}

impl PreviewSink {
    fn new(request: &PreviewRequest, colour: Colour) -> PreviewSink {
        let mut drawer = Drawer::new(colour, request.key.width, Folding::Folded, false);
        let wanted = request.hit.as_ref().map(|hit| hit.event);
        if wanted.is_some() {
            drawer.draw_all();
        }
        let number_offset = match (request.number, wanted) {
            (Some(number), Some(wanted)) => number.checked_sub(wanted),
            // Several files may form a session, with other numbers.
            (None, None) if request.session.sources == 1 => Some(1),
            _ => None,
        };
        let (found, lines) = (request.found.clone(), Vec::new());
        PreviewSink { drawer, lines, next: 0, wanted, found, number_offset, first_byte: 0, is_full: false }
    }

    fn flow(&self) -> Flow {
        if self.is_full { Flow::Stop } else { Flow::Continue }
    }
}

impl Sink for PreviewSink {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.next;
        self.next += 1;
        let end = event.at.map_or(0, |at| at.offset);
        self.is_full |= self.lines.len() >= LINES_MAX || end.saturating_sub(self.first_byte) > BYTES_MAX;
        if self.is_full {
            return;
        }
        let is_wanted = self.wanted == Some(number);
        let is_before = self.wanted.is_some_and(|wanted| number < wanted);
        if is_before || event.restates && !is_wanted {
            return self.drawer.skip(event);
        }
        self.drawer.mark(is_wanted);
        let number = self.number_offset.map(|offset| number + offset);
        let lines = self.drawer.lines(number, event).unwrap_or_default();
        let lines = match &self.found {
            Some(words) if is_wanted => from_words(lines, words),
            _ => lines,
        };
        self.lines.extend(lines.into_iter().take(LINES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| Line::of(text, Style::new())).collect()
    }

    #[test]
    fn a_preview_of_a_long_event_starts_at_the_words_that_were_found() {
        let texts = |lines: Vec<Line>| lines.iter().map(Line::text).collect::<Vec<_>>();
        let event = ["   >7  $ cargo test", "a", "b", "c", "d", "The Walrus", "e"];
        let shown = texts(from_words(lines(&event), "walrus"));
        assert_eq!(shown, ["   >7  $ cargo test", "       \u{2026} 2 lines above", "c", "d", "The Walrus", "e"]);
        assert_eq!(texts(from_words(lines(&event), "b")).len(), event.len());
        assert_eq!(texts(from_words(lines(&event), "absent")).len(), event.len());
    }
}
