//! `steno replay`: plays a conversation again. On a terminal it is played (`replay/play.rs`), else printed at once
//! (`replay/print.rs`); `terminal/` draws events as for `steno show`. The library decides which event is due when.

pub(super) mod header;
mod keys;
mod play;
mod playback;
mod print;
mod search;
mod source;

use std::path::PathBuf;

use stenograph::model::Event;
use stenograph::replay::{EventPosition, Mode, Range, Speed};

use crate::error::{CommandError, ExitStatus};
use crate::output::{Colour, Output, counted};
use crate::store::SessionArgs;
use crate::terminal::{DrawArgs, DrawForm, Drawer, Visibility};
use source::ReplaySource;

/// Replay a session in the terminal
///
/// Plays the conversation as it happened, in the form of steno show, without repeated records, abandoned branches and
/// sub-agents. Pauses longer than three seconds are shortened. If the output is not a terminal, everything is printed at once.
/// To let an agent talk to a recording, see steno cassette.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: space      pause or continue
      n b        next event, previous event
      u U        next or previous message of the user
      g G        beginning, end
      g NUMBER   go to an event
      /TEXT      search; n N: next match, previous match; esc: end the search
      j k        scroll down, up (also the arrows, page up and page down)
      + -        faster, slower
      m          next mode
      f          show long calls and results in full, or folded
      ? q        help, quit

Examples:
  steno replay session.jsonl
  steno replay latest --speed 8x --mode summary
  steno replay 0198f2c4 --start 120 --end 180      a range of events
  steno replay latest --follow                     a running session
  steno replay session.jsonl --mode assistant | less

Exit codes: 0 success, 1 nothing to play, 2 error")]
pub struct Options {
    /// A file, a recording folder, or a session (id prefix or latest); - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    file: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Playback speed: 4x is four times as fast
    #[arg(long, value_name = "SPEED", default_value = "1x", value_parser = speed)]
    speed: Speed,
    /// What to play: full (everything), summary (one line per event), assistant (its messages), tools (calls and results)
    #[arg(long, value_name = "MODE", default_value = "full", value_parser = mode())]
    mode: String,
    /// Start at this event: its number (as in steno show) or its record id
    #[arg(long, value_name = "EVENT")]
    start: Option<String>,
    /// Stop after this event
    #[arg(long, value_name = "EVENT")]
    end: Option<String>,
    /// Keep playing new events until you stop it
    #[arg(short, long, conflicts_with = "end")]
    follow: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    draw: DrawArgs,
    /// Print one JSON object per event, with all fields
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<Speed, String> {
    Speed::parse(text).ok_or_else(|| "expected a speed from 0.0625x to 1024x, such as 4x or 0.5x".to_owned())
}

fn mode() -> clap::builder::PossibleValuesParser {
    Mode::ALL.map(Mode::name).into()
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut source = ReplaySource::open(options, output)?;
    let mut overview = source.overview()?;
    let damage = overview.damage.take();
    let is_watched =
        output.is_terminal() && !options.json && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let status = match is_watched {
        true => play::run(options, source, overview, output)?,
        false => print::run(options, source, overview, output)?,
    };
    damage.map_or(Ok(status), Err)
}

impl Options {
    fn mode(&self) -> Mode {
        Mode::named(&self.mode).unwrap_or_default()
    }

    fn drawer(&self, colour: Colour) -> Drawer {
        let mut drawer = self.draw.drawer(colour);
        if self.mode() == Mode::Summary {
            drawer.set_form(DrawForm::Summary);
        }
        drawer
    }

    fn range(&self) -> Range {
        let place = |text: &Option<String>| text.as_deref().map(EventPosition::parse);
        Range::new(place(&self.start), place(&self.end))
    }
}

/// Whether a mode plays an event. With `--all`, the modes for everything also play bookkeeping and injected text.
fn is_played(mode: Mode, all: bool, visibility: Visibility, event: &Event<'_>) -> bool {
    match mode {
        Mode::Full | Mode::Summary if all => true,
        mode => mode.shows(event) && (visibility == Visibility::Shown || all),
    }
}

/// The error if no event can be played.
fn nothing_to_play(options: &Options, range: &Range, name: &str) -> CommandError {
    if let (None, Some((end, start))) = (range.missing(), range.backwards()) {
        return CommandError::not_found(format!("{name}: the end ({end}) is before the start ({start})"))
            .hint("swap --start and --end");
    }
    match range.missing() {
        Some(place) => CommandError::not_found(format!("{name}: no {place}")).hint(format!(
            "the transcript has {}; steno find and steno show print event numbers",
            counted(range.seen(), "event")
        )),
        None => CommandError::not_found(format!("{name}: no events to play with --mode {}", options.mode))
            .hint("play all messages and calls with --mode full; show everything with steno show FILE"),
    }
}
