//! Plays a conversation in a terminal: waits, reads keys, searches, and puts lines on the screen. The library keeps the position;
//! `playback.rs` draws events.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event as Input, KeyEventKind};
use stenograph::replay::{Changed, Command, PlayState, ReplayClock};
use stenograph_store::follow::{SWEEP, Wake};

use super::keys::{HELP, KeyAction, Keys, Scroll, Typed};
use super::playback::Playback;
use super::search::{Direction, SearchQuery, SearchRun};
use super::source::{Live, ReplayOverview, ReplaySource};
use super::{Options, nothing_to_play};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Colour, Output, grouped, harmless_line};
use crate::table;
use crate::terminal::{Screen, ScreenStream, SignalRequest};

/// How long to wait for a key before checking signals and the file.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// The minimum wait at any speed: without waiting, no key is read.
const KEY_WAIT_MIN: Duration = Duration::from_millis(1);

/// How long a search runs before keys are read again.
const SEARCH_STEP: Duration = Duration::from_millis(30);

pub fn run(
    options: &Options,
    mut source: ReplaySource,
    overview: ReplayOverview,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let name = source.name();
    let ReplayOverview { header, events, filter, .. } = overview;
    let mut stage = Playback::new(options, source.event_cache(), header, events, filter, output.colour());
    source.play(&mut stage)?;
    stage.failed()?;
    if stage.timeline().is_empty() && !options.follow {
        return Err(nothing_to_play(options, stage.range(), &name));
    }
    output.flush()?;
    let Ok(screen) = Screen::enter(ScreenStream::Stdout) else {
        return Err(
            CommandError::new("cannot take over the terminal").hint("print it instead: steno replay FILE | less")
        );
    };
    let mut playback = PlaybackScreen {
        screen,
        stage,
        player: ReplayClock::new(options.speed),
        keys: Keys::default(),
        colour: output.colour(),
        scroll: None,
        width: 0,
        help: Help::Hidden,
        search: Search::default(),
        looked: Instant::now(),
    };
    let ended = playback.run(&mut source);
    let PlaybackScreen { screen, stage, player, .. } = playback;
    // Restores the terminal before printing anything.
    drop(screen);
    let ended = ended?;
    if let Some(place) = stage.range().missing().filter(|_| !options.follow) {
        output.say(&format!("no {place}; played to the end"));
    }
    if let Some(number) = player.at().and_then(|at| stage.timeline().beat(at)).map(|beat| beat.number)
        && !player.is_at_end(stage.timeline())
    {
        let events = grouped(stage.events());
        let name = options.file.display();
        output.say(&format!("stopped at event {number} of {events}"));
        output.say(&format!("continue with: steno replay {name} --start {number}"));
    }
    Ok(ended)
}

/// Whether the keys are shown instead of the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Help {
    Shown,
    Hidden,
}

/// The search of the user.
#[derive(Default)]
struct Search {
    query: Option<SearchQuery>,
    /// The search that is not finished yet.
    run: Option<SearchRun>,
    /// What came of it, if nothing was found.
    message: Option<String>,
}

struct PlaybackScreen {
    screen: Screen,
    stage: Playback,
    player: ReplayClock,
    keys: Keys,
    colour: Colour,
    /// How many lines are below the visible ones; `None` if the user has not scrolled.
    scroll: Option<usize>,
    /// The width of the screen at that time.
    width: usize,
    help: Help,
    search: Search,
    /// When a followed file was last read.
    looked: Instant,
}

/// The result of a key or a signal.
enum InputResult {
    Nothing,
    Redraw,
    End(ExitStatus),
}

impl PlaybackScreen {
    fn run(&mut self, source: &mut ReplaySource) -> Result<ExitStatus, CommandError> {
        let mut before = Instant::now();
        let mut changed = Changed::Yes;
        loop {
            if changed == Changed::Yes {
                self.draw()?;
            }
            let wait = match self.search.run {
                Some(_) => Duration::ZERO,
                None => self.player.due(self.stage.timeline()).unwrap_or(KEY_WAIT).clamp(KEY_WAIT_MIN, KEY_WAIT),
            };
            changed = match self.listen(wait)? {
                InputResult::Nothing => Changed::No,
                InputResult::Redraw => Changed::Yes,
                InputResult::End(status) => return Ok(status),
            };
            if let ReplaySource::Live(live) = source
                && self.look(live)? == Changed::Yes
            {
                changed = Changed::Yes;
            }
            if self.search_on()? == Changed::Yes {
                changed = Changed::Yes;
            }
            let now = Instant::now();
            if self.player.pass(now.duration_since(before), self.stage.timeline()) == Changed::Yes {
                self.scroll = None;
                changed = Changed::Yes;
            }
            before = now;
        }
    }

    /// Reads new events of a followed file when it changes, and periodically.
    fn look(&mut self, live: &mut Live) -> Result<Changed, CommandError> {
        if live.signal.wait(Duration::ZERO) == Wake::No && self.looked.elapsed() < SWEEP {
            return Ok(Changed::No);
        }
        self.looked = Instant::now();
        let had = self.stage.timeline().len();
        live.look(&mut self.stage)?;
        self.stage.failed()?;
        if self.stage.take_restarted() {
            self.player = ReplayClock::new(self.player.speed());
            self.search.run = None;
            return Ok(Changed::Yes);
        }
        Ok(if self.stage.timeline().len() == had { Changed::No } else { Changed::Yes })
    }

    /// Waits for a key for at most `most`.
    fn listen(&mut self, most: Duration) -> Result<InputResult, CommandError> {
        match self.screen.take_request() {
            Some(SignalRequest::Stop(code)) => return Ok(InputResult::End(ExitStatus::Code(code))),
            Some(SignalRequest::Suspend) => {
                self.screen.suspend()?;
                return Ok(InputResult::Redraw);
            }
            Some(SignalRequest::Redraw) => {
                self.screen.reenter()?;
                return Ok(InputResult::Redraw);
            }
            None => {}
        }
        if !is_key_pressed(event::poll(most))? {
            return Ok(InputResult::Nothing);
        }
        let input = match event::read() {
            Ok(input) => input,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(InputResult::Nothing),
            // The terminal is gone, and so is the user.
            Err(_) => return Ok(InputResult::End(ExitStatus::Done)),
        };
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => match self.keys.action(key) {
                Some(action) => self.perform(action),
                None => Ok(InputResult::Nothing),
            },
            Input::Resize(..) => Ok(InputResult::Redraw),
            _ => Ok(InputResult::Nothing),
        }
    }

    fn perform(&mut self, action: KeyAction) -> Result<InputResult, CommandError> {
        let help = std::mem::replace(&mut self.help, Help::Hidden);
        (self.search.run, self.search.message) = (None, None);
        match action {
            KeyAction::ReplayClock(command) => {
                self.player.obey(command, self.stage.timeline());
                self.scroll = None;
            }
            KeyAction::Scroll(scroll) => self.scroll(scroll)?,
            KeyAction::Search(text) => {
                self.search.query = Some(SearchQuery::new(&text));
                self.start_search(Direction::Forward);
            }
            KeyAction::Match(direction) => self.start_search(direction),
            KeyAction::EndSearch => self.search = Search::default(),
            KeyAction::Mode => {
                let number =
                    self.player.at().and_then(|at| self.stage.timeline().beat(at)).map_or(0, |beat| beat.number);
                self.stage.next_mode();
                self.player.obey(Command::Go(number), self.stage.timeline());
                self.scroll = None;
            }
            KeyAction::Fold => {
                self.stage.toggle_folding();
                self.scroll = None;
            }
            KeyAction::Help => {
                self.pause();
                self.help = if help == Help::Hidden { Help::Shown } else { Help::Hidden };
            }
            KeyAction::Typing => {}
            KeyAction::Suspend => self.screen.suspend()?,
            KeyAction::Quit => return Ok(InputResult::End(ExitStatus::Done)),
        }
        Ok(InputResult::Redraw)
    }

    fn pause(&mut self) {
        if self.player.state() == PlayState::Playing {
            self.player.obey(Command::Pause, self.stage.timeline());
        }
    }

    /// Starts a search beside the visible event. Who searches wants to read, so the replay pauses.
    fn start_search(&mut self, direction: Direction) {
        self.pause();
        let count = self.stage.timeline().len();
        self.search.run = (count > 0).then(|| SearchRun::beside(self.player.at(), direction, count));
    }

    /// Searches for a moment, and shows the event that was found.
    fn search_on(&mut self) -> Result<Changed, CommandError> {
        let (Some(mut run), Some(query)) = (self.search.run.take(), self.search.query.clone()) else {
            return Ok(Changed::No);
        };
        let started = Instant::now();
        loop {
            if self.stage.has(run.at, &query)? {
                let number = self.stage.timeline().beat(run.at).map_or(0, |beat| beat.number);
                self.player.obey(Command::Go(number), self.stage.timeline());
                self.show_match(run.at, &query)?;
                return Ok(Changed::Yes);
            }
            let Some(next) = run.next() else {
                self.search.message = Some("not found".to_owned());
                return Ok(Changed::Yes);
            };
            run = next;
            if started.elapsed() >= SEARCH_STEP {
                self.search.run = Some(run);
                return Ok(Changed::Yes);
            }
        }
    }

    /// Scrolls to the first line of an event that has the query: it is in the upper part of the screen.
    fn show_match(&mut self, at: usize, query: &SearchQuery) -> Result<(), CommandError> {
        let (width, height) = self.screen.size();
        let page = height.saturating_sub(1).max(1);
        self.width = width;
        let line = self.stage.line_with(at, width, query)?.unwrap_or(0);
        let below = self.stage.height(at, width)?.saturating_sub(line + page * 2 / 3);
        let unscrolled = self.stage.below(Some(at), width, page)?;
        self.scroll = Some(below.min(unscrolled));
        Ok(())
    }

    fn scroll(&mut self, scroll: Scroll) -> Result<(), CommandError> {
        let (width, height) = self.screen.size();
        let page = height.saturating_sub(1).max(1);
        self.fit(width)?;
        let here = match (self.scroll, self.player.at()) {
            (Some(here), _) => here,
            (None, at) => self.stage.below(at, width, page)?,
        };
        let there = match scroll {
            // Below the last line is the next event.
            Scroll::LineDown | Scroll::PageDown if here == 0 => {
                self.player.obey(Command::Step, self.stage.timeline());
                self.scroll = None;
                return Ok(());
            }
            Scroll::LineDown => here.saturating_sub(1),
            Scroll::PageDown => here.saturating_sub(page),
            // The next event would move the text away that the user goes back to.
            Scroll::LineUp | Scroll::PageUp => {
                self.pause();
                here + if scroll == Scroll::LineUp { 1 } else { page }
            }
        };
        let most = self.stage.scroll_max(self.player.at(), width, page, there)?;
        self.scroll = Some(there.min(most));
        Ok(())
    }

    /// Keeps about the same words visible when the width of the screen changes.
    fn fit(&mut self, width: usize) -> Result<(), CommandError> {
        let before = std::mem::replace(&mut self.width, width);
        if let (Some(below), Some(at)) = (self.scroll, self.player.at())
            && before != width
        {
            let (old, new) = (self.stage.height(at, before)?, self.stage.height(at, width)?);
            self.scroll = Some(below.saturating_mul(new) / old.max(1));
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), CommandError> {
        let (width, height) = self.screen.size();
        let page = height.saturating_sub(1);
        self.fit(width)?;
        let lines: Vec<String> = match self.help {
            Help::Shown => HELP.lines().map(|line| table::truncated(line, width)).collect(),
            Help::Hidden => {
                let below = match self.scroll {
                    Some(scroll) => scroll,
                    None => self.stage.below(self.player.at(), width, page)?,
                };
                let lines = self.stage.page(self.player.at(), width, page, below)?.into_iter();
                let marked = lines.map(|line| match &self.search.query {
                    Some(query) => {
                        let ranges = query.ranges(&line.text());
                        line.marked(&ranges)
                    }
                    None => line,
                });
                marked.map(|line| line.drawn(self.colour)).collect()
            }
        };
        let status = table::truncated(&self.status(width)?, width);
        let status = match self.colour {
            Colour::Shown => {
                format!("\x1b[7m{status}{}\x1b[0m", " ".repeat(width.saturating_sub(table::display_width(&status))))
            }
            Colour::Plain => status,
        };
        Ok(self.screen.draw(&lines, &status)?)
    }

    /// The status line.
    fn status(&mut self, width: usize) -> Result<String, CommandError> {
        match self.keys.typed() {
            Some(Typed::Number(typed)) => {
                return Ok(format!("go to event: {typed}_  (type its number; enter: go, esc: cancel)"));
            }
            Some(Typed::Query(typed)) => {
                return Ok(format!("/{}_  (enter: search, esc: cancel)", harmless_line(typed)));
            }
            None => {}
        }
        let at = self.player.at();
        let [took, usage] = at.map(|at| self.stage.took(at, width)).transpose()?.unwrap_or_default();
        let timeline = self.stage.timeline();
        let number = at.and_then(|at| timeline.beat(at)).map_or(0, |beat| beat.number);
        let time = |at: Option<usize>| at.and_then(|at| timeline.since_start(at)).map(clock::format_clock);
        let last = timeline.len().checked_sub(1);
        let time = match (time(at), time(last)) {
            (Some(here), Some(all)) => format!("{here} of {all}"),
            _ => String::new(),
        };
        let state = match (self.player.is_at_end(timeline), self.player.state()) {
            (true, PlayState::Playing) if self.stage.is_live() => "waiting for new events",
            (true, _) if !self.stage.is_live() => "end",
            (false, PlayState::Playing) => "playing",
            (_, _) => "paused",
        };
        let (events, speed, mode) = (grouped(self.stage.events()), self.player.speed(), self.stage.mode().name());
        let number = grouped(number);
        let notice = self.stage.notice().map(ToString::to_string).unwrap_or_default();
        let search = match (&self.search.query, &self.search.run, &self.search.message) {
            (Some(query), Some(run), _) => {
                let at = timeline.beat(run.at).map_or(0, |beat| beat.number);
                format!("/{}: searching event {}", harmless_line(&query.text), grouped(at))
            }
            (Some(query), None, Some(message)) => format!("/{}: {message}", harmless_line(&query.text)),
            (Some(query), None, None) => format!("/{} (n N)", harmless_line(&query.text)),
            (None, _, _) => String::new(),
        };
        let event = format!("event {number} of {events}");
        let mode = mode.to_owned();
        Ok(fitted_fields([search, event, state.to_owned(), time, speed.to_string(), mode, took, usage, notice], width))
    }
}

/// The end of the status line.
const STATUS_END: &str = "  | ? help, q quit";

/// On a narrower terminal, the end gives way.
const STATUS_END_FROM: usize = 40;

/// The fields of the status line that fit a terminal: search, event, state, time, speed, mode, duration, tokens, notice. On a narrow
/// terminal the less important ones are left out.
fn fitted_fields(mut fields: [String; 9], width: usize) -> String {
    const LEFT_OUT: [usize; 6] = [6, 3, 4, 5, 7, 2];
    let room = width.saturating_sub(STATUS_END.len());
    let joined = |fields: &[String]| {
        let stated: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
        stated.join("  ")
    };
    if width < STATUS_END_FROM {
        return table::truncated(&(joined(&fields) + STATUS_END), width);
    }
    for at in LEFT_OUT {
        if table::display_width(&joined(&fields)) <= room {
            break;
        }
        if let Some(field) = fields.get_mut(at) {
            field.clear();
        }
    }
    table::truncated(&joined(&fields), room) + STATUS_END
}

/// Whether a key was pressed. Signals are handled elsewhere.
fn is_key_pressed(poll: io::Result<bool>) -> Result<bool, CommandError> {
    match poll {
        Ok(is_key_pressed) => Ok(is_key_pressed),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => {
            Err(CommandError::new(format!("cannot read keys: {error}"))
                .hint("print it instead: steno replay FILE | less"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_keeps_the_keys_on_a_narrow_terminal() {
        let (event, time) = ("event 17 of 1,204", "0:12 of 1:10:00");
        let fields = ["/walrus (n N)", event, "playing", time, "1x", "full", "took 1 ms", "3 in / 4 out", ""];
        let fields = |width| fitted_fields(fields.map(str::to_owned), width);
        assert!(fields(120).ends_with("playing  0:12 of 1:10:00  1x  full  took 1 ms  3 in / 4 out  | ? help, q quit"));
        assert_eq!(fields(80), "/walrus (n N)  event 17 of 1,204  playing  full  3 in / 4 out  | ? help, q quit");
        for width in [40, 60, 80] {
            assert!(fields(width).ends_with("q quit") && table::display_width(&fields(width)) <= width);
        }
        assert_eq!(fields(20), "/walrus (n N)  even\u{2026}");
    }
}
