//! `steno status`: states whether runs are running, finished or stuck, from the ends of their files. The library has the rules;
//! this file selects the runs, prints them and chooses the exit code.

mod explain;
mod table;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use stenograph::query::SessionFacts;
use stenograph::status::{Patience, State};
use stenograph_store::discover::{FoundFile, Stat, path_hints};
use stenograph_store::follow::ChangeSignal;
use stenograph_store::index::{SavedStatuses, Store};
use stenograph_store::project::ProjectNames;
use stenograph_store::runs::{self, Look, Need, RunLook, RunsSeen};
use stenograph_store::sessions::SessionDetails;
use stenograph_store::{Error, Problem};

use crate::error::{CommandError, ExitStatus};
use crate::filter::query_of;
use crate::input;
use crate::live;
use crate::output::{Colour, Output, counted, harmless_json};
use crate::store::{SessionArgs, StoreArgs};
use crate::table::screen_width;
use crate::terminal;

/// Show which agents are running, waiting for you, or done
///
/// Agents that need you come first, in this order: those that ask a question, those that ask for permission, idle ones, failed
/// and stuck ones, and stalled ones. Running agents follow, then completed ones. Without a name, steno looks at transcripts
/// that were written within --active-within. Agents that stalled more than a day ago are only counted, and a terminal shows one
/// screen; --all shows everything.
///
/// The last records of a transcript, and their age, decide the state. On Linux an agent also counts as alive if a process has
/// its transcript open, or if its program runs in the folder of the session. If an agent is silent and its program does not run
/// there, the state says so.
///
/// running: the agent is working, or a call waits for permission that no record mentions. idle: the agent waits for you.
/// completed: the run has ended. failed: the run ended without success, was interrupted or was cut off. error: the last record
/// is an error. stalled: the agent was working, but has been silent for too long. stuck: three steps in a row failed, or five
/// of the last ten calls are the same with the same result. unknown: the records do not show the state.
///
/// An error no longer counts once a success follows it. A single failed tool call is not an error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno status                                     agents of the last day
  steno status --active-within 7d --all            all agents of the last week
  steno status session.jsonl
  steno status 0198f2c4                            a session by its id
  steno status --watch
  steno status session.jsonl --wait && notify-send done
  steno status latest --explain                    why it has this state
  steno status --json | jq -r 'select(.state == \"stuck\").path'

Exit codes: 0 running, idle or completed; 1 stalled, unknown or nothing found;
            2 error; 3 failed, error or stuck. The worst agent decides.
            Without a name: 0 agents listed, 1 none found, 2 error")]
pub struct Options {
    /// Files, recording folders, or sessions (id prefix or latest); - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript(), conflicts_with = "active_within")]
    files: Vec<PathBuf>,
    #[arg(skip)]
    standard_input: input::StandardInput,
    #[command(flatten)]
    place: SessionArgs,
    /// Without a name: look only at transcripts written within this time (30m, 24h, 7d)
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = span_ms)]
    active_within: u64,
    /// Show all agents, even if they need more than one screen or stalled more than a day ago
    #[arg(long)]
    all: bool,
    /// Keep running and print changes
    #[arg(long)]
    watch: bool,
    /// Wait until none of the named agents is running
    #[arg(long, requires = "files", conflicts_with = "watch")]
    wait: bool,
    /// Time after which a silent model counts as stalled
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span_ms)]
    silence: u64,
    /// Time after which a silent tool counts as stalled
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = span_ms)]
    call_silence: u64,
    /// Print the rule and the record that decided each state
    #[arg(long)]
    explain: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, alias = "format", value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Print one JSON object per run; with --watch, one per change
    #[arg(long)]
    json: bool,
}

/// The table of the agents that run or need their user, of those active in the last day; at most `most` of them. The transcripts
/// come newest first.
pub fn attention(
    place: &StoreArgs,
    found: &[FoundFile],
    most: usize,
    width: usize,
    colour: Colour,
) -> Result<Vec<String>, CommandError> {
    let patience = Patience::default();
    let options = Options {
        files: Vec::new(),
        standard_input: input::StandardInput::default(),
        place: place.into(),
        active_within: OLD_MS.unsigned_abs(),
        all: false,
        watch: false,
        wait: false,
        silence: patience.silence_ms,
        call_silence: patience.call_ms,
        explain: false,
        from: None,
        json: false,
    };
    let since_ms = crate::clock::millis() - OLD_MS;
    let recent = found.iter().take_while(|file| file.stat.modified_ns / 1_000_000 >= since_ms).cloned().collect();
    let runs = options.look_around(recent)?;
    let active: Vec<&RunLook> =
        runs.iter().filter(|run| !matches!(Need::of(run), Need::Over | Need::Unknown)).take(most).collect();
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let labels = place.labels(active.iter().filter_map(|run| run.status.session.as_deref()))?;
    Ok(table::lines(&active, &labels, crate::clock::millis(), width, colour))
}

/// A stalled run that has been silent for longer is only counted.
const OLD_MS: i64 = 24 * 60 * 60 * 1000;

/// The lines of the screen beside the rows: the heading, the counts, two remarks and the prompt.
const OTHER_LINES: usize = 5;

/// The time between two looks: silence changes states too, so the change signal alone is not enough.
const SWEEP: Duration = Duration::from_millis(1000);

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if options.watch {
        return watch(options, output);
    }
    let mut printed = HashSet::new();
    let mut runs = options.look()?;
    print_new(&runs.errors, &mut printed, output);
    if options.wait {
        let signal = ChangeSignal::over(&runs.runs.iter().map(|run| run.path.clone()).collect::<Vec<_>>());
        while runs.runs.iter().any(|run| run.status.state == State::Running) {
            signal.wait(SWEEP);
            runs = options.look()?;
            print_new(&runs.errors, &mut printed, output);
        }
    }
    options.show(&runs.runs, output)?;
    if options.files.is_empty() {
        return if runs.runs.is_empty() { Err(options.nothing()?) } else { Ok(ExitStatus::Done) };
    }
    let states = runs.runs.iter().map(|run| code(run.status.state));
    let errors = runs.errors.iter().map(CommandError::status);
    Ok(states.chain(errors).max_by_key(severity).unwrap_or(ExitStatus::No))
}

/// Prints the errors that were not printed before: every round finds the same ones.
fn print_new(errors: &[CommandError], printed: &mut HashSet<String>, output: &mut Output<'_>) {
    errors.iter().filter(|error| printed.insert(error.message().to_owned())).for_each(|error| output.error(error));
}

/// The exit status for a state.
fn code(state: State) -> ExitStatus {
    match state {
        State::Running | State::Idle | State::Completed => ExitStatus::Done,
        State::Stalled | State::Unknown => ExitStatus::No,
        State::Failed | State::Error | State::Stuck => ExitStatus::Code(3),
    }
}

/// An unreadable file is worst, because nothing is known about it.
fn severity(status: &ExitStatus) -> u8 {
    match status {
        ExitStatus::Done => 0,
        ExitStatus::No => 1,
        ExitStatus::Code(_) => 2,
        ExitStatus::Error => 3,
    }
}

struct Runs {
    runs: Vec<RunLook>,
    /// What is wrong with files and sessions that the user named.
    errors: Vec<CommandError>,
}

impl Options {
    fn patience(&self) -> Patience {
        Patience { silence_ms: self.silence, call_ms: self.call_silence, ..Patience::default() }
    }

    /// Looks at all runs. One bad file does not stop the rest.
    fn look(&self) -> Result<Runs, CommandError> {
        if self.files.is_empty() {
            let runs = self.look_around(live::transcripts(&self.place)?)?;
            return Ok(Runs { runs, errors: Vec::new() });
        }
        let saved = self.saved();
        let mut runs = self.look_at_named(self.how(&saved, i64::MIN)?);
        runs::look_for_processes(&mut runs.runs, RunsSeen::Named);
        Ok(runs)
    }

    /// Looks at those of these transcripts that were active lately.
    fn look_around(&self, found: Vec<FoundFile>) -> Result<Vec<RunLook>, CommandError> {
        let saved = self.saved();
        let since_ms = crate::clock::millis().saturating_sub_unsigned(self.active_within);
        let mut runs = runs::look_around(found, self.how(&saved, since_ms)?);
        if let Some(query) = query_of(&[("project", self.place.project())], "")? {
            let catalogue = self.place.store()?.catalogue().ok();
            let mut names = catalogue.and_then(|known| ProjectNames::of(&known).ok()).unwrap_or_default();
            runs.retain(|run| {
                let (folder, session) = (run.status.cwd.as_deref(), run.status.session.as_deref());
                let projects = folder.map(|folder| names.names(folder, session)).unwrap_or_default();
                let facts = SessionFacts { projects: &projects, ..SessionFacts::default() };
                SessionDetails { facts, ..SessionDetails::default() }.match_expr(query.expr())
            });
        }
        Ok(runs)
    }

    fn saved(&self) -> SavedStatuses {
        self.place.store().as_ref().map(Store::saved_statuses).unwrap_or_default()
    }

    fn how<'s>(&self, saved: &'s SavedStatuses, since_ms: i64) -> Result<Look<'s>, CommandError> {
        let format = self.from.as_deref().map(input::format_named).transpose()?;
        Ok(Look { format, saved, now_ms: crate::clock::millis(), since_ms, patience: self.patience() })
    }

    /// Looks at the named runs: all agents of a session, or one file.
    fn look_at_named(&self, look: Look<'_>) -> Runs {
        let mut runs = Runs { runs: Vec::new(), errors: Vec::new() };
        for path in &self.files {
            let agents = self.standard_input.path(path).and_then(|path| live::agents(&self.place, &path));
            let looked = agents.and_then(|agents| {
                let one = |agent| look_at_agent(agent, look).transpose();
                agents.into_iter().filter_map(one).collect::<Result<Vec<RunLook>, _>>()
            });
            match looked {
                Ok(mut found) => {
                    runs::sort(&mut found);
                    runs.runs.append(&mut found);
                }
                Err(error) => runs.errors.push(error),
            }
        }
        runs
    }

    fn show(&self, runs: &[RunLook], output: &mut Output<'_>) -> Result<(), CommandError> {
        if self.json {
            let json = |run: &RunLook| if self.explain { explain::run_json(run) } else { run.json() };
            return runs.iter().try_for_each(|run| output.line(&harmless_json(&json(run))));
        }
        let (now_ms, is_terminal) = (crate::clock::millis(), output.is_terminal());
        let mut shown: Vec<&RunLook> = runs.iter().collect();
        let mut remarks = Vec::new();
        // Named runs stay in the order of their names; lines of changes stay in the order of the changes.
        if self.files.is_empty() && (is_terminal || !self.watch) {
            shown.sort_by_key(|run| (Need::of(run), Reverse(run.active_ms())));
            let is_old = |run: &&RunLook| {
                Need::of(run) == Need::Stalled && now_ms.saturating_sub(run.active_ms()) > OLD_MS && !self.all
            };
            let old = shown.iter().filter(|run| is_old(run)).count();
            shown.retain(|run| !is_old(run));
            if is_terminal && shown.len() > 1 {
                remarks.push(counts(&shown));
            }
            if old > 0 {
                let old = counted(old as u64, "agent");
                remarks.push(format!("{old} stalled more than a day ago: show with --all"));
            }
        }
        let rows = terminal::height().filter(|_| !self.all && !self.explain);
        let rows = rows.map_or(usize::MAX, |lines| lines.saturating_sub(OTHER_LINES).max(5));
        if shown.len() > rows {
            remarks.push(format!("{} more: show with --all", shown.len() - rows));
            shown.truncate(rows);
        }
        let labels = self.place.labels(shown.iter().filter_map(|run| run.status.session.as_deref()))?;
        let lines = table::lines(&shown, &labels, now_ms, screen_width(), output.colour());
        lines.iter().try_for_each(|line| output.line(line))?;
        for remark in remarks {
            match is_terminal {
                true => output.line(&remark)?,
                false => output.say(&remark),
            }
        }
        if self.explain {
            return shown.into_iter().flat_map(explain::lines).try_for_each(|line| output.line(&line));
        }
        Ok(())
    }

    /// The error for a look that found no agent.
    fn nothing(&self) -> Result<CommandError, CommandError> {
        const FURTHER: &str = "look further back with --active-within 30d";
        let transcripts = live::transcripts(&self.place)?.len() as u64;
        Ok(match transcripts {
            0 => live::no_transcripts(self.place.home()),
            count => CommandError::not_found(format!(
                "no agent was active in the last {} (of {}{})",
                crate::clock::format_duration(self.active_within),
                counted(count, "transcript"),
                self.place.project().map(|project| format!(", project {project}")).unwrap_or_default()
            ))
            .hint(FURTHER)
            .hint("list all sessions with steno list"),
        })
    }
}

/// How many runs need what.
fn counts(runs: &[&RunLook]) -> String {
    let counts = Need::ALL.map(|need| (need, runs.iter().filter(|run| Need::of(run) == need).count()));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0).map(|(need, count)| need.counted(count));
    counts.collect::<Vec<_>>().join(", ")
}

/// Looks at the files of one agent; the file that describes its run best decides.
fn look_at_agent(agent: live::AgentFiles, look: Look<'_>) -> Result<Option<RunLook>, CommandError> {
    let (mut best, mut failed): (Option<RunLook>, _) = (None, None);
    for path in agent.paths.iter().filter(|path| agent.paths.len() == 1 || path.is_file()) {
        let looked = match Stat::of(path) {
            Ok(stat) => look.at(path, &stat, |source| input::format_so_far(source, None)),
            Err(error) => Err(Error::at(path, Problem::Unreadable, error).into()),
        };
        match looked {
            Ok(Some(run)) if best.as_ref().is_none_or(|known| run.tells_more_than(known)) => best = Some(run),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
    }
    let Some(mut run) = best else { return failed.map_or(Ok(None), Err) };
    run.place(&path_hints(&run.path));
    run.status.session = agent.session.or(run.status.session);
    run.status.thread = run.status.thread.or(agent.thread);
    Ok(Some(run))
}

/// Prints runs repeatedly: as a table on a terminal, else a line whenever one changes.
fn watch(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let redraws = !options.json && output.is_terminal();
    let mut before: Vec<RunLook> = Vec::new();
    let mut printed = HashSet::new();
    loop {
        let Runs { runs, errors } = options.look()?;
        if redraws {
            // Moves to the top and clears the screen, with the errors on it; the scrollback stays.
            write!(output.data(), "\x1b[H\x1b[2J")?;
            output.flush()?;
            printed.clear();
        }
        print_new(&errors, &mut printed, output);
        if redraws {
            options.show(&runs, output)?;
            if runs.is_empty() {
                output.line("no agents are running")?;
            }
        } else {
            let is_new = |run: &&RunLook| !before.iter().any(|before| before.says_the_same(run));
            let news: Vec<RunLook> = runs.iter().filter(is_new).cloned().collect();
            options.show(&news, output)?;
        }
        output.flush()?;
        let signal = ChangeSignal::over(&runs.iter().map(|run| run.path.clone()).collect::<Vec<_>>());
        signal.wait(SWEEP);
        before = runs;
    }
}

/// Parses a duration: `90s`, `30m`, `24h`, `7d`, `3mo`.
fn span_ms(text: &str) -> Result<u64, String> {
    let seconds = crate::clock::duration_seconds(text).and_then(|seconds| u64::try_from(seconds).ok());
    let bad = || "expected a number with a unit: 90s, 30m, 24h, 7d, 2w, 3mo, 1y".to_owned();
    seconds.and_then(|seconds| seconds.checked_mul(1000)).ok_or_else(bad)
}
