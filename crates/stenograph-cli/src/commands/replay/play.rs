//! A conversation played in a terminal: waits, listens to keys, and draws. Where a replay has come to is the library's part; how events
//! look is in `view.rs`.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event as Input, KeyEventKind};
use stenograph::replay::{Changed, Command, Player, State};
use stenograph_store::follow::{SWEEP, Wake};

use super::keys::{HELP, Keys, Scroll, Wish};
use super::origin::{Live, Overview, ReplaySource};
use super::screen::{Asked, Screen};
use super::stage::Stage;
use super::{Options, nothing, view};
use crate::error::{CommandError, Status};
use crate::output::{Colour, Output, grouped};
use crate::table;

/// How long to listen for a key before looking at everything else: signals, and what was written meanwhile.
const LISTEN: Duration = Duration::from_millis(100);

/// However fast it plays: whoever listens for no time at all hears nothing.
const LISTEN_MIN: Duration = Duration::from_millis(1);

/// The exit code of whoever is ended by a signal is this and the signal's number.
const SIGNALLED: u8 = 128;

/// Plays it.
pub fn run(
    options: &Options,
    mut origin: ReplaySource,
    overview: Overview,
    output: &mut Output<'_>,
) -> Result<Status, CommandError> {
    let name = origin.name();
    let heading = view::heading(&name, &overview.outline, overview.summary.as_ref());
    let mut stage = Stage::new(options, origin.event_cache(), heading, overview.outline.events, overview.judge);
    origin.play(&mut stage)?;
    stage.failed()?;
    if stage.timeline().is_empty() && !options.follow {
        return Err(nothing(options, stage.range(), &name));
    }
    output.flush()?;
    let Ok(screen) = Screen::enter() else {
        return Err(CommandError::new("the terminal cannot be taken over").hint("steno replay FILE | less prints it"));
    };
    let mut playing = Playing {
        screen,
        stage,
        player: Player::new(options.speed),
        keys: Keys::default(),
        colour: output.colour(),
        scroll: None,
        width: 0,
        help: Help::Hidden,
        looked: Instant::now(),
    };
    let ended = playing.run(&mut origin);
    let Playing { screen, stage, player, .. } = playing;
    // The terminal is given back before anything is said.
    drop(screen);
    let ended = ended?;
    if let Some(place) = stage.range().missing().filter(|_| !options.follow) {
        output.say(&format!("there is no {place}; this goes to the end"));
    }
    if let Some(number) = player.at().and_then(|at| stage.timeline().beat(at)).map(|beat| beat.number)
        && !player.is_at_end(stage.timeline())
    {
        let events = grouped(stage.events());
        output.say(&format!("stopped at event {number} of {events}: --start {number} goes on from there"));
    }
    Ok(ended)
}

/// Whether the keys are shown instead of the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Help {
    Shown,
    Hidden,
}

struct Playing {
    screen: Screen,
    stage: Stage,
    player: Player,
    keys: Keys,
    colour: Colour,
    /// How many lines are below what is shown; where nobody scrolled, that depends on the event.
    scroll: Option<usize>,
    /// How wide the screen was when that was so.
    width: usize,
    help: Help,
    /// When the file was looked at last, if it is followed.
    looked: Instant,
}

/// What came of a key or a signal.
enum Came {
    Nothing,
    /// Something that has to be drawn.
    News,
    End(Status),
}

impl Playing {
    fn run(&mut self, origin: &mut ReplaySource) -> Result<Status, CommandError> {
        let mut before = Instant::now();
        let mut news = Changed::Yes;
        loop {
            if news == Changed::Yes {
                self.draw()?;
            }
            let wait = self.player.due(self.stage.timeline()).unwrap_or(LISTEN).clamp(LISTEN_MIN, LISTEN);
            news = match self.listen(wait)? {
                Came::Nothing => Changed::No,
                Came::News => Changed::Yes,
                Came::End(status) => return Ok(status),
            };
            if let ReplaySource::Live(live) = origin
                && self.look(live)? == Changed::Yes
            {
                news = Changed::Yes;
            }
            let now = Instant::now();
            if self.player.pass(now.duration_since(before), self.stage.timeline()) == Changed::Yes {
                self.scroll = None;
                news = Changed::Yes;
            }
            before = now;
        }
    }

    /// Looks for what was written meanwhile, when something says so and now and then.
    fn look(&mut self, live: &mut Live) -> Result<Changed, CommandError> {
        if live.signal.wait(Duration::ZERO) == Wake::No && self.looked.elapsed() < SWEEP {
            return Ok(Changed::No);
        }
        self.looked = Instant::now();
        let had = self.stage.timeline().len();
        live.look(&mut self.stage)?;
        self.stage.failed()?;
        if self.stage.begins_anew() {
            self.player = Player::new(self.player.speed());
            return Ok(Changed::Yes);
        }
        Ok(if self.stage.timeline().len() == had { Changed::No } else { Changed::Yes })
    }

    /// Waits for a key, but no longer than this.
    fn listen(&mut self, most: Duration) -> Result<Came, CommandError> {
        match self.screen.asked() {
            Some(Asked::Stop(signal)) => return Ok(Came::End(Status::Code(SIGNALLED.saturating_add(signal)))),
            Some(Asked::Suspend) => {
                self.screen.suspend()?;
                return Ok(Came::News);
            }
            Some(Asked::Redraw) => {
                self.screen.take_again()?;
                return Ok(Came::News);
            }
            None => {}
        }
        if !heard(event::poll(most))? {
            return Ok(Came::Nothing);
        }
        let input = match event::read() {
            Ok(input) => input,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Came::Nothing),
            // The terminal is gone, and so is whoever watched.
            Err(_) => return Ok(Came::End(Status::Done)),
        };
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => match self.keys.wish(key) {
                Some(wish) => self.grant(wish),
                None => Ok(Came::Nothing),
            },
            Input::Resize(..) => Ok(Came::News),
            _ => Ok(Came::Nothing),
        }
    }

    fn grant(&mut self, wish: Wish) -> Result<Came, CommandError> {
        let help = std::mem::replace(&mut self.help, Help::Hidden);
        match wish {
            Wish::Player(command) => {
                self.player.obey(command, self.stage.timeline());
                self.scroll = None;
            }
            Wish::Scroll(scroll) => self.scroll(scroll)?,
            Wish::Mode => {
                let number =
                    self.player.at().and_then(|at| self.stage.timeline().beat(at)).map_or(0, |beat| beat.number);
                self.stage.next_mode();
                self.player.obey(Command::Go(number), self.stage.timeline());
                self.scroll = None;
            }
            Wish::Help => self.help = if help == Help::Hidden { Help::Shown } else { Help::Hidden },
            Wish::Typing => {}
            Wish::Suspend => self.screen.suspend()?,
            Wish::Quit => return Ok(Came::End(Status::Done)),
        }
        Ok(Came::News)
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
            Scroll::LineUp => here + 1,
            Scroll::LineDown => here.saturating_sub(1),
            Scroll::PageUp => here + page,
            Scroll::PageDown => here.saturating_sub(page),
        };
        let most = self.stage.scroll_max(self.player.at(), width, page, there)?;
        self.scroll = Some(there.min(most));
        Ok(())
    }

    /// Keeps about the same words in sight when the screen gets another width, and the event another number of lines.
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
            Help::Shown => HELP.lines().map(|line| table::cut(line, width)).collect(),
            Help::Hidden => {
                let below = match self.scroll {
                    Some(scroll) => scroll,
                    None => self.stage.below(self.player.at(), width, page)?,
                };
                let lines = self.stage.page(self.player.at(), width, page, below)?;
                lines.into_iter().map(|line| line.inked(self.colour)).collect()
            }
        };
        let status = table::cut(&self.status(), width);
        let status = match self.colour {
            Colour::Shown => {
                format!("\x1b[7m{status}{}\x1b[0m", " ".repeat(width.saturating_sub(table::columns(&status))))
            }
            Colour::Plain => status,
        };
        Ok(self.screen.draw(&lines, &status)?)
    }

    /// Where the replay has come to.
    fn status(&self) -> String {
        if let Some(typed) = self.keys.typed() {
            return format!("go to event: {typed}_  (enter goes, esc does not)");
        }
        let timeline = self.stage.timeline();
        let at = self.player.at();
        let number = at.and_then(|at| timeline.beat(at)).map_or(0, |beat| beat.number);
        let time = |at: Option<usize>| at.and_then(|at| timeline.since_start(at)).map(view::clock);
        let last = timeline.len().checked_sub(1);
        let time = match (time(at), time(last)) {
            (Some(here), Some(all)) => format!("  {here} of {all}"),
            _ => String::new(),
        };
        let state = match (self.player.is_at_end(timeline), self.player.state()) {
            (true, _) if self.stage.is_live() => "waiting for more",
            (true, _) => "end",
            (false, State::Playing) => "playing",
            (false, State::Paused) => "paused",
        };
        let (events, speed, mode) = (grouped(self.stage.events()), self.player.speed(), self.stage.mode().name());
        let number = grouped(number);
        let said = self.stage.said().map(|said| format!("  {said}")).unwrap_or_default();
        format!("event {number} of {events}  {state}{time}  {speed}  {mode}{said}  | space n b g + - ? q")
    }
}

/// Whether a key was pressed. A signal that comes in between is seen to elsewhere.
fn heard(poll: io::Result<bool>) -> Result<bool, CommandError> {
    match poll {
        Ok(heard) => Ok(heard),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => {
            Err(CommandError::new(format!("the keys cannot be read: {error}"))
                .hint("steno replay FILE | less prints it"))
        }
    }
}
