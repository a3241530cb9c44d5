//! `steno replay`: plays a conversation again. On a terminal it is played (`replay/play.rs`), else printed at once
//! (`replay/print.rs`); `replay/view.rs` formats events.  The library decides which
//! event is due when.

mod keys;
mod play;
mod playback;
mod print;
mod screen;
mod source;
pub(super) mod view;

use std::path::PathBuf;

use stenograph::replay::{Mode, Place, Range, Speed};

use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted};
use crate::store::StoreArgs;
use source::ReplaySource;

/// Play a conversation again
///
/// Plays the conversation as it happened, without repeats, abandoned branches and side conversations. Pauses longer than three seconds are
/// shortened. If the output is not a terminal, everything is printed at once. To let an agent talk to a recording, see steno cassette.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: space pause and go on; n, right or enter one event; b or left one back; u and U the next and the last message of a user;
      g and a number that event; < and > the beginning and the end; + and - twice and half as fast; m another mode;
      up, down and page keys within a long event; q or Ctrl-C quit

Examples:
  steno replay session.jsonl
  steno replay latest --speed 8x --mode summary
  steno replay 0198f2c4 --start 120 --end 180      the numbers are those of steno find and steno show --event
  steno replay latest --follow                     a run that is still going
  steno replay session.jsonl --mode assistant | less

Exit codes: 0 done, 1 there is nothing to play, 2 error")]
pub struct Options {
    /// The file, or a folder that was recorded into, or a session: the beginning of its id, or latest; - is standard input
    #[arg(value_name = "FILE|SESSION")]
    file: PathBuf,
    #[command(flatten)]
    place: StoreArgs,
    /// How fast: 4x is four times as fast as it was
    #[arg(long, value_name = "SPEED", default_value = "1x", value_parser = speed)]
    speed: Speed,
    /// What is shown: full, summary (a line each), assistant (what it says), tools (calls and results)
    #[arg(long, value_name = "MODE", default_value = "full", value_parser = mode())]
    mode: String,
    /// Begin with this event: its number, or the id of its record
    #[arg(long, value_name = "EVENT")]
    start: Option<String>,
    /// End with this event
    #[arg(long, value_name = "EVENT")]
    end: Option<String>,
    /// Go on with what is still being written, until you stop it
    #[arg(short, long, conflicts_with = "end")]
    follow: bool,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Print the events as JSON, one a line, with everything
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<Speed, String> {
    Speed::parse(text).ok_or_else(|| "a speed is a number from 0.0625 to 1024, such as 4x or 0.5x".to_owned())
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

    fn range(&self) -> Range {
        let place = |text: &Option<String>| text.as_deref().map(Place::parse);
        Range::new(place(&self.start), place(&self.end))
    }
}

/// The error if no event can be played.
fn nothing_to_play(options: &Options, range: &Range, name: &str) -> CommandError {
    if let (None, Some((end, start))) = (range.missing(), range.backwards()) {
        return CommandError::not_found(format!("{name}: {end} comes before {start}"))
            .hint("--start is where it begins, --end where it stops");
    }
    match range.missing() {
        Some(place) => CommandError::not_found(format!("{name}: there is no {place}")).hint(format!(
            "there are {}; steno find and steno show give their numbers and ids",
            counted(range.seen(), "event")
        )),
        None => CommandError::not_found(format!("{name}: nothing of it can be played with --mode {}", options.mode))
            .hint("--mode full plays everything that was said and done; steno show FILE shows all there is"),
    }
}
