//! The loop of the finder: waits for keys, signals and answers, and draws.

use std::io;
use std::io::BufWriter;
use std::time::Duration;

use crossterm::event::{self, Event as Input, KeyEventKind};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::action::PickTask;
use super::model::{PickEffect, Picker};
use super::screen::{self, PickLook};
use super::workers::{Arrived, Workers};
use crate::clock;
use crate::error::CommandError;
use crate::output::Output;
use crate::store::SessionArgs;
use crate::terminal::{Screen, ScreenStream, SignalRequest};

/// How long to wait for a key before signals are checked, and before answers are, while some are missing.
const WAIT: Duration = Duration::from_millis(100);
const WAIT_FOR_ANSWER: Duration = Duration::from_millis(8);

/// How many keys are handled before the screen is drawn again: pasted text arrives at once.
const KEYS_AT_ONCE: usize = 64;

/// The exit code after ctrl-c, as if the signal had ended the program.
const INTERRUPTED: u8 = 130;

/// How the finder ended.
pub enum Picked {
    Task(Box<PickTask>),
    Nothing,
    /// With this exit code.
    Stopped(u8),
}

pub fn run(
    mut picker: Picker,
    place: &SessionArgs,
    stream: ScreenStream,
    output: &mut Output<'_>,
) -> Result<Picked, CommandError> {
    output.flush()?;
    let colour = output.colour_on_terminal();
    let Ok(mut screen) = Screen::enter(stream) else {
        return Err(CommandError::new("cannot take over the terminal").hint("use steno list or steno find instead"));
    };
    let mut terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(64 << 10, stream)))?;
    let (columns, lines) = screen.size();
    picker.resize(columns, lines);
    let mut workers = Workers::start(place, colour);
    let mut is_stale = true;
    loop {
        if is_stale {
            workers.ask(&picker);
            let look = PickLook { colour, now: clock::millis() };
            terminal.draw(|frame| screen::draw(frame, &picker, look))?;
        }
        is_stale = false;
        match screen.take_request() {
            Some(SignalRequest::Stop(code)) => return Ok(Picked::Stopped(code)),
            Some(SignalRequest::Suspend) => {
                screen.suspend()?;
                is_stale = redraw(&screen, &mut terminal, &mut picker)?;
            }
            Some(SignalRequest::Redraw) => {
                screen.reenter()?;
                is_stale = redraw(&screen, &mut terminal, &mut picker)?;
            }
            None => {}
        }
        let mut wait = if workers.is_busy() { WAIT_FOR_ANSWER } else { WAIT };
        if is_stale {
            wait = Duration::ZERO;
        }
        for _ in 0..KEYS_AT_ONCE {
            match next_input(wait) {
                Read::Key(key) => match picker.update(key) {
                    PickEffect::Nothing => {}
                    PickEffect::Redraw => is_stale = true,
                    PickEffect::Suspend => {
                        screen.suspend()?;
                        is_stale = redraw(&screen, &mut terminal, &mut picker)?;
                    }
                    PickEffect::Cancel => return Ok(Picked::Nothing),
                    PickEffect::Interrupt => return Ok(Picked::Stopped(INTERRUPTED)),
                    PickEffect::Perform(task) => return Ok(Picked::Task(task)),
                },
                Read::Resize => {
                    let (columns, lines) = screen.size();
                    picker.resize(columns, lines);
                    is_stale = true;
                }
                Read::Other => {}
                Read::Nothing => break,
                // The terminal is gone, and so is the user.
                Read::Gone => return Ok(Picked::Nothing),
            }
            wait = Duration::ZERO;
        }
        is_stale |= workers.deliver(&mut picker) == Arrived::Something;
    }
}

/// Prepares for a complete redraw: another program may have changed the screen.
fn redraw<W: io::Write>(
    screen: &Screen,
    terminal: &mut Terminal<CrosstermBackend<W>>,
    picker: &mut Picker,
) -> io::Result<bool> {
    let (columns, lines) = screen.size();
    picker.resize(columns, lines);
    let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    terminal.resize(Rect::new(0, 0, number(columns), number(lines)))?;
    Ok(true)
}

/// What the terminal sent.
enum Read {
    Key(event::KeyEvent),
    Resize,
    Other,
    Nothing,
    Gone,
}

fn next_input(wait: Duration) -> Read {
    let is_interrupted = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
    match event::poll(wait) {
        Ok(true) => {}
        Ok(false) => return Read::Nothing,
        Err(error) if is_interrupted(&error) => return Read::Nothing,
        Err(_) => return Read::Gone,
    }
    match event::read() {
        Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => Read::Key(key),
        Ok(Input::Resize(..)) => Read::Resize,
        Ok(_) => Read::Other,
        Err(error) if is_interrupted(&error) => Read::Nothing,
        Err(_) => Read::Gone,
    }
}
