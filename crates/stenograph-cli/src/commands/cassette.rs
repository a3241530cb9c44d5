//! `steno cassette`: answers an agent from the recording in the model's place. The library chooses answers and finds
//! drift, the server handles requests; this file opens the recording and reports what happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use stenograph::cassette::{Errors, MatchMode, Played, PlayedAnswer, Tape, TapeBuilder};
use stenograph::json::Draft;
use stenograph_web::{Pace, PlaybackSummary, ServerEvent, Until};

use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, OutputForm, counted, harmless_json, harmless_line};
use crate::store::{SessionArgs, on_interrupt};

/// Serve recorded answers to an agent in place of a model
///
/// Starts a server on this machine that implements the APIs of OpenAI and Anthropic. The agent talks to it instead of a model and
/// receives the recorded answers in order. steno reports how each request differs from the recorded one; such a difference is called
/// drift.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno cassette session.jsonl --port 8123         then, in another terminal:
  OPENAI_BASE_URL=http://127.0.0.1:8123/v1 my-agent
  steno cassette session.jsonl --strict --once     in tests

Exit codes: 0 no drift, 1 drift, 2 error")]
pub struct Options {
    /// A file, a recording folder, or a session (id prefix or latest)
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    file: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Local port; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Refuse requests that differ from the recorded ones, and wait for the recorded one
    #[arg(long)]
    strict: bool,
    /// Exit after the last answer, or with --strict after the first refused request
    #[arg(long)]
    once: bool,
    /// Delay answers by the recorded time
    #[arg(long)]
    timing: bool,
    /// Also replay recorded service errors
    #[arg(long)]
    errors: bool,
    /// Serve the answers of this sub-agent
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Print one JSON object per request
    #[arg(long)]
    json: bool,
}

/// How many differences of one request are printed; /steno/drift has all.
const DIFFERENCES_MAX: usize = 8;

/// How many side conversations an error names.
const NAMED_MAX: usize = 8;

/// Serves the named conversation until it is stopped or played.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let mut conversation = Conversation::open(&options.place, &options.file, options.from.as_deref(), output)?;
    let tape = tape(options, &mut conversation, output)?;
    let form = OutputForm::of(options.json);
    serve(options, tape, form, output)
}

fn tape(options: &Options, conversation: &mut Conversation, output: &mut Output<'_>) -> Result<Tape, CommandError> {
    let mut tape_builder = TapeBuilder::new(options.thread.as_deref()).with_errors(match options.errors {
        true => Errors::Played,
        false => Errors::Left,
    });
    conversation.read_with_progress(&mut |event| {
        tape_builder.notice(event);
        Flow::Continue
    })?;
    tape_builder.decide();
    conversation.read_with_progress(&mut |event| {
        tape_builder.add(event);
        if tape_builder.is_full() { Flow::Stop } else { Flow::Continue }
    })?;
    let name = &conversation.name;
    if tape_builder.is_full() {
        output.say(&format!("{name}: too large for a tape; the answers at the end are missing"));
    }
    let threads: Vec<String> = tape_builder.threads().iter().take(NAMED_MAX).cloned().collect();
    let tape = tape_builder.finish();
    if !tape.answers().is_empty() {
        return Ok(tape);
    }
    Err(match &options.thread {
        Some(thread) => {
            let error = CommandError::not_found(format!("{name}: no model answers of a sub-agent {thread}"));
            match threads.is_empty() {
                true => error.hint("it contains no sub-agents; they may have their own files"),
                false => error.hint(format!("sub-agents: {}", threads.join(", "))),
            }
        }
        None => {
            CommandError::not_found(format!("{name}: no model answers")).hint(format!("read it with steno show {name}"))
        }
    })
}

fn serve(options: &Options, tape: Tape, form: OutputForm, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    on_interrupt(&stop);
    let answers = tape.answers().len();
    let served = stenograph_web::Options {
        port: options.port,
        matching: if options.strict { MatchMode::Strict } else { MatchMode::Lenient },
        pace: if options.timing { Pace::AsRecorded } else { Pace::AtOnce },
        until: if options.once { Until::Played } else { Until::Stopped },
        stop,
    };
    let mut printer = ServerEventPrinter { form, answers, output, failed: None };
    let summary = stenograph_web::serve(tape, &served, &mut |event| printer.print(&event));
    let summary = summary.map_err(|error| {
        let port = served.port;
        CommandError::new(format!("cannot listen on 127.0.0.1:{port}: {error}"))
            .hint("use --port 0 to choose a free port")
    })?;
    printer.end(&summary)?;
    // Drift is a no, so that a script notices it.
    Ok(if summary.drifted == 0 { ExitStatus::Done } else { ExitStatus::No })
}

/// Prints the server's events.
struct ServerEventPrinter<'a, 'o> {
    form: OutputForm,
    answers: usize,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl ServerEventPrinter<'_, '_> {
    fn print(&mut self, event: &ServerEvent) {
        let printed = match event {
            ServerEvent::Listening(address) => self.listening(&format!("http://{address}")),
            ServerEvent::Played(played) => self.played(played),
            ServerEvent::Rejected { status, message } => {
                self.output.say(&format!("refused a request with {status}: {}", harmless_line(message)));
                Ok(())
            }
            ServerEvent::Cut { request } => {
                self.output.say(&format!("request {request}: the client disconnected before the end of the answer"));
                Ok(())
            }
        };
        // Nobody may read the output any more; the agent still gets its answers.
        self.failed = self.failed.take().or(printed.err());
    }

    fn listening(&mut self, address: &str) -> Result<(), CommandError> {
        match self.form {
            OutputForm::People => self.output.line(address)?,
            OutputForm::Json => {
                let mut draft = Draft::new();
                draft.set_str("listening", address);
                draft.set_number("answers", Some(self.answers as u64));
                self.output.line(&draft.render(None))?;
            }
        }
        self.output.flush()?;
        let count = counted(self.answers as u64, "answer");
        self.output.say(&format!("{count} ready; point the agent here:"));
        self.output.say(&format!("  OPENAI_BASE_URL={address}/v1  ANTHROPIC_BASE_URL={address}"));
        Ok(())
    }

    fn played(&mut self, played: &Played) -> Result<(), CommandError> {
        let request = played.request;
        for drift in played.news.iter().take(DIFFERENCES_MAX) {
            self.output.say(&harmless_line(&format!("request {request}: drift: {}", drift.line())));
        }
        if played.news.len() > DIFFERENCES_MAX {
            let more = counted((played.news.len() - DIFFERENCES_MAX) as u64, "difference");
            self.output.say(&format!("request {request}: drift: {more} more"));
        }
        for warning in &played.remarks {
            self.output.say(&harmless_line(&format!("request {request}: {}", warning.line())));
        }
        if self.form == OutputForm::Json {
            self.output.line(&harmless_json(&played_json(played)))?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn end(&mut self, summary: &PlaybackSummary) -> Result<(), CommandError> {
        if self.form == OutputForm::Json {
            self.output.line(&harmless_json(&summary.json))?;
        }
        let PlaybackSummary { answers, given, requests, drifted, side_requests, differences, .. } = summary;
        let drift = match drifted {
            0 => "no drift".to_owned(),
            1 => format!("1 drifted, with {}", counted(*differences, "difference")),
            _ => format!("{drifted} drifted, with {}", counted(*differences, "difference")),
        };
        let requests = counted(*requests, "request");
        let outside = match side_requests {
            0 => String::new(),
            _ => format!(", {side_requests} outside the conversation"),
        };
        self.output.say(&format!("{requests}, {given} of {answers} answers given, {drift}{outside}"));
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// The result of a request as a JSON object.
fn played_json(played: &Played) -> String {
    let (verdict, answer) = match played.verdict {
        PlayedAnswer::Answer(index) => ("answered", Some(index)),
        PlayedAnswer::Refused(index) => ("refused", Some(index)),
        PlayedAnswer::SideRequest => ("side_request", None),
        PlayedAnswer::Ended => ("ended", None),
    };
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let mut draft = Draft::new();
    draft.set_number("request", Some(played.request));
    draft.set_str("verdict", verdict);
    draft.set_number("answer", answer.map(|index| index as u64 + 1));
    draft.set_number("differences", Some(played.count as u64));
    draft.set("drift", list(played.news.iter().map(stenograph::cassette::Drift::json).collect()));
    let warnings = played.remarks.iter().map(|warning| stenograph::text::quote(&warning.line())).collect();
    draft.set("remarks", list(warnings));
    draft.render(None)
}
