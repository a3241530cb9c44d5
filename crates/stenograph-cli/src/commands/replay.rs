//! `steno replay`: a conversation played again. Where somebody watches it is played (`replay/play.rs`), else it is printed at once
//! (`replay/print.rs`); how an event looks is in `replay/view.rs`. An agent may be answered from it (`replay/serve.rs`). Which event comes when is the library's part.

mod keys;
mod origin;
mod play;
mod print;
mod screen;
mod serve;
mod stage;
pub(super) mod view;

use std::path::PathBuf;

use stenograph::replay::{Mode, Place, Range, Speed};

use crate::error::{CommandError, Status};
use crate::output::{Output, counted};
use crate::store::Where;
use origin::ReplaySource;

/// Play a conversation again
///
/// Plays what was said and done, in the time it took then, without what was taken back, repeated or said in side conversations. Pauses
/// longer than three seconds are cut short, and told. Where nobody watches, because the output goes into a file or another program,
/// everything is printed at once. Nothing is ever changed. With --serve it answers an agent in the model's place: the agent asks as ever,
/// gets the recorded answers in order, and what it asks otherwise than recorded is told.
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
  steno replay session.jsonl --serve 8123          OPENAI_BASE_URL=http://127.0.0.1:8123/v1 my-agent
  steno replay session.jsonl --serve 0 --strict --once

Exit codes: 0 done, 1 there is nothing to play, or with --serve something drifted, 2 error")]
pub struct Options {
    /// The file, or a folder that was recorded into, or a session: the beginning of its id, or latest; - is standard input
    #[arg(value_name = "FILE|SESSION")]
    file: PathBuf,
    #[command(flatten)]
    place: Where,
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
    /// Print the events as JSON, one a line, with everything; with --serve one object for each request
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    serve: serve::Serving,
}

fn speed(text: &str) -> Result<Speed, String> {
    Speed::parse(text).ok_or_else(|| "a speed is a number from 0.0625 to 1024, such as 4x or 0.5x".to_owned())
}

fn mode() -> clap::builder::PossibleValuesParser {
    Mode::ALL.map(Mode::name).into()
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    if options.serve.serve.is_some() {
        return serve::run(options, output);
    }
    let mut origin = ReplaySource::open(options, output)?;
    let mut overview = origin.overview()?;
    let damage = overview.damage.take();
    let is_watched =
        output.is_terminal() && !options.json && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let status = match is_watched {
        true => play::run(options, origin, overview, output)?,
        false => print::run(options, origin, overview, output)?,
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

/// That there is nothing to be played, and why.
fn nothing(options: &Options, range: &Range, name: &str) -> CommandError {
    if let (None, Some((end, start))) = (range.missing(), range.backwards()) {
        return CommandError::nothing(format!("{name}: {end} comes before {start}"))
            .hint("--start is where it begins, --end where it stops");
    }
    match range.missing() {
        Some(place) => CommandError::nothing(format!("{name}: there is no {place}")).hint(format!(
            "there are {}; steno find and steno show give their numbers and ids",
            counted(range.seen(), "event")
        )),
        None => CommandError::nothing(format!("{name}: nothing of it can be played with --mode {}", options.mode))
            .hint("--mode full plays everything that was said and done; steno show FILE shows all there is"),
    }
}
