//! `steno usage`: reports the usage and cost of model calls. The library counts; this file asks, and `usage/view.rs` formats
//! the answer.

mod explain;
mod peers;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stenograph::ledger::{
    self, By, CallDetail, Ledger, LedgerBuilder, LedgerEntry, Prices, UncountedReason, UsageQuery, UsageReport,
};
use stenograph::query::{Query, SessionFacts};
use stenograph_store::databases;
use stenograph_store::discover::{Machine, Places};
use stenograph_store::folder;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SourceRow;
use stenograph_store::project::ProjectNames;
use stenograph_store::tail::Warning;
use stenograph_store::usage::{UnrecognizedFiles, UsageRequest, UseIndex, pages};
use stenograph_store::{Error, Problem};

use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::filter::{FilterArgs, TimeRange, query_of};
use crate::input;
use crate::output::{Output, counted, harmless_line};
use crate::prices;
use crate::progress::IndexProgressBar;
use crate::store::{ResolvedName, SessionArgs, SessionLabels, StoreArgs, on_interrupt};
use crate::table;
use stenograph_store::sessions::SessionDetails;

/// Count the tokens of model calls, and their cost
///
/// Counts the tokens of every model call in the transcripts on this machine, and computes the cost from a dated price list. A
/// call counts once, even if several records, files or copies mention it. With an index, steno reads only the files that have
/// changed; without one it reads all files. Sessions whose files are gone count if the archive has a copy; sessions that steno
/// archive prune removed do not count. A model without a price is reported and never counts as free. --explain shows which
/// records were merged or left out, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno usage                                      by day
  steno usage --by model --since 7d
  steno usage --project . --since last-month       this project
  steno usage --by project,model                   models within projects
  steno usage --watch                              refresh until you stop it
  steno usage --by project --since 2026-01 --until 2026-03
  steno usage --by hour-block --utc                by blocks of five hours
  steno usage session.jsonl --by tool              one file, by tool
  steno usage --json | jq .total
  steno usage --explain                            what was merged, and why
  steno usage --as ccusage-20 --explain            compare with another program

Exit codes: 0 success, 1 nothing counted, or with --strict a model without a
            price, 2 error")]
pub struct Options {
    /// Count these files, folders and sessions instead of all transcripts on this machine; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    files: Vec<PathBuf>,
    #[arg(skip)]
    standard_input: input::StandardInput,
    /// Group calls by this, or by two of these (project,model)
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = by_name(), default_value = "day")]
    by: Vec<By>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only sessions whose id begins with ID
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    place: StoreArgs,
    /// Show what was merged or left out, why, and where
    #[arg(long)]
    explain: bool,
    /// Count by the rules of another program, with steno's prices
    #[arg(long = "as", value_name = "RULE", value_enum)]
    rule: Option<peers::As>,
    /// Refresh the table in place until you stop it
    #[arg(long, conflicts_with_all = ["json", "csv", "explain", "rule", "strict"])]
    watch: bool,
    /// Exit with 1 if a model has no price
    #[arg(long)]
    strict: bool,
    /// Read all files instead of using the index
    #[arg(long)]
    no_index: bool,
    /// Print one JSON object, with all fields
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the rows as CSV
    #[arg(long, conflicts_with = "explain")]
    csv: bool,
}

/// Parses the name of a grouping; help and completions list all of them.
fn by_name() -> impl TypedValueParser<Value = By> {
    let values = By::ALL.map(|by| PossibleValue::new(by.name()).help(by.says()));
    PossibleValuesParser::new(values).map(|name| By::named(&name).unwrap_or(By::Day))
}

/// How calls are grouped: by one property, or by two.
#[derive(Clone, Copy)]
struct Grouping {
    by: By,
    then_by: Option<By>,
}

/// The time between two refreshes, and how often a signal is checked in between.
const REFRESH: Duration = Duration::from_secs(5);
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    on_interrupt(&stop);
    if !options.watch {
        return count(options, &stop, output);
    }
    if !output.is_terminal() {
        return Err(CommandError::new("--watch needs a terminal").hint("run steno usage again, or use --json"));
    }
    while !stop.load(Ordering::Relaxed) {
        // Moves to the top and clears the screen; the scrollback stays.
        write!(output.data(), "\x1b[H\x1b[2J")?;
        output.flush()?;
        count(options, &stop, output)?;
        output.flush()?;
        let drawn = Instant::now();
        while drawn.elapsed() < REFRESH && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(SIGNAL_CHECK);
        }
    }
    Ok(ExitStatus::Done)
}

/// Counts and prints once.
fn count(options: &Options, stop: &Arc<AtomicBool>, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let grouping = options.grouping()?;
    let wanted = WantedCalls::new(options)?;
    let prices = prices::load()?;
    let ask = |ledger: &Ledger, by: Grouping| wanted.ask(ledger, by, &prices);
    let answer = |ledger: Ledger, left: NotCounted, peer: Option<peers::Peer>| {
        let report = ask(&ledger, grouping);
        UsageAnswer { report, grouping, ledger, prices: &prices, left, peer }
    };
    let answer = match options.rule {
        Some(rule) => peers::count(rule, options, stop, output)?
            .map(|(ledger, peer)| answer(ledger, NotCounted::default(), Some(peer))),
        None => options.ledger(stop, output)?.map(|(ledger, left)| answer(ledger, left, None)),
    };
    let Some(mut answer) = answer else { return Ok(ExitStatus::No) };
    if let (Some(peer), true) = (&mut answer.peer, options.explain) {
        let Some((ours, _)) = options.ledger(stop, output)? else { return Ok(ExitStatus::No) };
        let by_agent = Grouping { by: By::Agent, then_by: None };
        peer.compare(&ask(&ours, by_agent), &ask(&answer.ledger, by_agent));
    }
    answer.report_not_counted(options, &wanted, output);
    let total = &answer.report.total;
    if total.calls == 0 && total.stated.is_none() {
        match answer.ledger.entries.len() {
            0 => match options.files.as_slice() {
                [] => {
                    output.say("no model calls found");
                    output.say("hint: steno formats lists where steno looks; search elsewhere with --root DIR");
                }
                named => {
                    let names: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
                    output.say(&format!("{}: contains no token counts", names.join(", ")));
                    output.say("hint: steno show prints what a file contains; steno check explains what it lacks");
                }
            },
            calls => {
                output.say(&format!("no calls match: {} excluded by your filters", calls_are(calls as u64)));
                output.say("hint: change --since, --until, --agent, --model, --session or --project");
            }
        }
        if options.json {
            output.line(&answer.json(options))?;
        } else if options.csv {
            answer.show(options, output)?;
        } else if options.explain && answer.peer.is_none() {
            explain::print(&answer.ledger, &answer.report, &prices, &answer.left.strangers, output)?;
        }
        return Ok(ExitStatus::No);
    }
    answer.show(options, output)?;
    Ok(if options.strict && !answer.report.unpriced.is_empty() { ExitStatus::No } else { ExitStatus::Done })
}

struct UsageAnswer<'p> {
    report: UsageReport,
    grouping: Grouping,
    ledger: Ledger,
    prices: &'p Prices,
    /// What was not counted.
    left: NotCounted,
    /// The program whose counting rules are used.
    peer: Option<peers::Peer>,
}

/// What was not counted.
#[derive(Default)]
struct NotCounted {
    /// Files of sessions that the user has forgotten.
    forgotten: u64,
    /// Files of no known format.
    strangers: UnrecognizedFiles,
    /// What could not be read.
    unread: Vec<Warning>,
}

fn calls_are(calls: u64) -> String {
    match calls {
        1 => "1 call is".to_owned(),
        calls => format!("{} are", counted(calls, "call")),
    }
}

impl UsageAnswer<'_> {
    /// How many records were left out for a reason.
    fn left_out(&self, reason: UncountedReason) -> u64 {
        let decision = self.ledger.decisions.iter().find(|decision| decision.reason == reason);
        decision.map_or(0, |decision| decision.count)
    }

    /// Reports what the numbers do not include.
    fn report_not_counted(&self, options: &Options, wanted: &WantedCalls, output: &mut Output<'_>) {
        let hint = if options.explain { "" } else { "; --explain shows where" };
        for (reason, one, many) in [
            (
                UncountedReason::InvalidCount,
                "1 record has an invalid token count, counted",
                "have an invalid token count, counted",
            ),
            (UncountedReason::Oversize, "1 record is too large to read, counted", "are too large to read, counted"),
        ] {
            match self.left_out(reason) {
                0 => {}
                1 => output.say(&format!("note: {one} as 0{hint}")),
                count => output.say(&format!("note: {} {many} as 0{hint}", counted(count, "record"))),
            }
        }
        let forgotten = match self.left.forgotten {
            0 => None,
            1 => Some("1 file of a pruned session is not counted".to_owned()),
            count => Some(format!("{} of pruned sessions are not counted", counted(count, "file"))),
        };
        if let Some(forgotten) = forgotten {
            output.say(&format!("note: {forgotten}; steno archive unforget SESSION restores one"));
        }
        let mut projects = wanted.projects();
        let is_timeless =
            |entry: &&LedgerEntry| entry.row.time.is_none() && wanted.has_names(&self.ledger, entry, &mut projects);
        let timeless: u64 = match wanted.range.is_unlimited() {
            true => 0,
            false => self.ledger.entries.iter().filter(is_timeless).map(|entry| u64::from(entry.row.calls)).sum(),
        };
        if timeless > 0 {
            output.say(&format!("note: {} not counted because no time is recorded", calls_are(timeless)));
        }
    }

    fn json(&self, options: &Options) -> String {
        let fields = self.peer.as_ref().map_or_else(
            || {
                view::not_counted(
                    [UncountedReason::InvalidCount, UncountedReason::Oversize].map(|reason| self.left_out(reason)),
                    &self.left,
                )
            },
            peers::Peer::json,
        );
        view::json(&self.report, &self.ledger, self.grouping, self.prices, options.explain, &fields)
    }

    fn show(&self, options: &Options, output: &mut Output<'_>) -> Result<(), CommandError> {
        let UsageAnswer { report, grouping, ledger, prices, left, peer } = self;
        if !(options.json || options.csv || options.watch) {
            output.page();
        }
        if options.json {
            output.line(&self.json(options))?;
        } else if options.csv {
            for line in view::rows(report, *grouping) {
                output.line(&line)?;
            }
        } else {
            let keys = report.groups.iter().flat_map(|group| [group.key.as_deref(), group.then_key.as_deref()]);
            let labels = match grouping.by == By::Session || grouping.then_by == Some(By::Session) {
                true => options.place.labels(keys.flatten())?,
                false => SessionLabels::new(),
            };
            for line in view::table(report, *grouping, &labels, table::screen_width(), output.colour()) {
                output.line(&line)?;
            }
            match (options.explain, peer) {
                (true, None) => explain::print(ledger, report, prices, &left.strangers, output)?,
                (true, Some(peer)) => peer.print(output)?,
                (false, _) => {}
            }
        }
        for unpriced in &report.unpriced {
            output.say(&format!("note: {}", view::unpriced(unpriced)));
        }
        if !report.unpriced.is_empty() {
            let place = prices::own_path().map_or("prices.toml".to_owned(), |path| path.display().to_string());
            output.say(&format!("hint: calls without a price are not in the sums; add prices in {place}"));
        }
        Ok(())
    }
}

/// The calls that the options select.
struct WantedCalls {
    range: TimeRange,
    /// The conditions on names.
    names: Option<Query>,
    /// The store that knows the projects of sessions.
    store: Store,
}

impl WantedCalls {
    fn new(options: &Options) -> Result<WantedCalls, CommandError> {
        let mut names = options.filter.names().to_vec();
        names.push(("session", options.session.as_deref()));
        let store = options.place.store()?;
        Ok(WantedCalls { range: options.filter.period.range()?, names: query_of(&names, "")?, store })
    }

    /// The names of projects, as `steno list` states them.
    fn projects(&self) -> ProjectNames {
        let known = self.store.catalogue().ok().and_then(|catalogue| ProjectNames::of(&catalogue).ok());
        known.unwrap_or_default()
    }

    /// Asks a ledger.
    fn ask(&self, ledger: &Ledger, grouping: Grouping, prices: &Prices) -> UsageReport {
        let (mut projects, mut others) = (self.projects(), self.projects());
        let mut keep =
            |entry: &LedgerEntry| self.range.has(entry.row.time) && self.has_names(ledger, entry, &mut others);
        let mut question = UsageQuery {
            by: grouping.by,
            then_by: grouping.then_by,
            zone: clock::zone(),
            prices,
            project: &mut |folder, session| projects.name(folder, session),
            keep: &mut keep,
        };
        ledger::report(ledger, &mut question)
    }

    /// Whether a call has the requested agent, model, session and project.
    fn has_names(&self, ledger: &Ledger, entry: &LedgerEntry, projects: &mut ProjectNames) -> bool {
        let Some(query) = &self.names else { return true };
        let (row, name) = (&entry.row, |name| ledger.name(name));
        let sessions: Vec<String> = name(row.session).map(str::to_owned).into_iter().collect();
        let projects = name(row.cwd).map(|folder| projects.names(folder, name(row.session))).unwrap_or_default();
        let facts = SessionFacts {
            agent: name(Some(row.agent)).unwrap_or_default(),
            projects: &projects,
            sessions: &sessions,
            ..SessionFacts::default()
        };
        SessionDetails { facts, model: name(row.model), ..SessionDetails::default() }.match_expr(query.expr())
    }
}

impl Options {
    fn grouping(&self) -> Result<Grouping, CommandError> {
        match self.by.as_slice() {
            [by] => Ok(Grouping { by: *by, then_by: None }),
            [by, then_by] if by != then_by => Ok(Grouping { by: *by, then_by: Some(*then_by) }),
            _ => Err(CommandError::new("--by takes one or two different names, such as project,model")
                .hint("steno usage --help lists the names")),
        }
    }

    /// The ledger of everything requested; `None` if the user stopped it.
    fn ledger(
        &self,
        stop: &Arc<AtomicBool>,
        output: &mut Output<'_>,
    ) -> Result<Option<(Ledger, NotCounted)>, CommandError> {
        let store = self.place.store()?;
        let (files, places) = self.sources(&store)?;
        let below = match &places {
            Some(places) if !self.files.is_empty() => places.folders.clone(),
            Some(_) | None => self.place.root().into_iter().collect(),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let is_looked_into = self.no_index || self.explain;
        let asked = UsageRequest {
            places: places.as_ref(),
            files: &files,
            below: &below,
            store: &store,
            index: if is_looked_into { UseIndex::No } else { UseIndex::Yes },
            calls: if self.by.contains(&By::Tool) { CallDetail::Tools } else { CallDetail::Numbers },
            threads: cores,
        };
        let mut book = LedgerBuilder::default();
        let mut bar = IndexProgressBar::new("counting", stop);
        let report = pages(&asked, &mut bar, &mut |page| page.add_to(&mut book))?;
        drop(bar);
        let warnings = report.warnings.iter().map(|warning| format!("{}: {}", warning.path.display(), warning.text));
        print_first(warnings, output);
        if report.stopped {
            output.say(STOPPED);
            return Ok(None);
        }
        Ok(Some((
            book.finish(),
            NotCounted { forgotten: report.forgotten, strangers: report.unrecognized, unread: report.warnings },
        )))
    }

    /// The files and places to read.
    fn sources(&self, store: &stenograph_store::index::Store) -> Result<(Vec<PathBuf>, Option<Places>), CommandError> {
        if self.files.is_empty() {
            return Ok((Vec::new(), Some(self.place.places(store)?)));
        }
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let names = SessionArgs::from(&self.place);
        for path in &self.files {
            let path = match names.resolve(path)? {
                ResolvedName::File(path) => self.standard_input.path(&path)?,
                ResolvedName::Session(session) => {
                    let is_there = |row: &&SourceRow| databases::is_there(&row.path) || row.archive_copy.is_some();
                    let there: Vec<PathBuf> =
                        session.sources.iter().filter(is_there).map(|row| row.path.clone()).collect();
                    if there.is_empty() {
                        let text = format!("{}: the files of the session are gone and not archived", path.display());
                        return Err(CommandError::not_found(text)
                            .hint("run steno index: it archives every transcript it reads"));
                    }
                    files.extend(there);
                    continue;
                }
            };
            let real = databases::canonical(&path)
                .map_err(|error| CommandError::from(Error::at(&path, Problem::Unreadable, error)))?;
            if real.is_dir() {
                folders.push(real);
            } else {
                // A file and its journal are one recording.
                let parts = folder::parts(&real);
                let others =
                    parts.iter().flat_map(folder::RecordingParts::files).filter(|file| **file != real).cloned();
                files.extend(others);
                files.push(real);
            }
        }
        let machine = || Machine::rooted(folders.first().cloned().unwrap_or_default());
        let places = (!folders.is_empty()).then(|| Places { folders: folders.clone(), ..Places::of(machine()) });
        Ok((files, places))
    }
}

/// The message if the user stopped it.
const STOPPED: &str = "stopped before all files were counted";

/// The number of warnings to print.
const WARNINGS_MAX: usize = 5;

/// Prints the first warnings, and how many follow.
fn print_first(warnings: impl ExactSizeIterator<Item = String>, output: &mut Output<'_>) {
    let more = warnings.len().saturating_sub(WARNINGS_MAX);
    for warning in warnings.take(WARNINGS_MAX) {
        output.say(&format!("note: {}", harmless_line(&warning)));
    }
    if more > 0 {
        output.say(&format!("note: and {more} more"));
    }
}
