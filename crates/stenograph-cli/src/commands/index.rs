//! `steno index`: finds what agents wrote on this machine, archives it, and makes it searchable.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stenograph::json::Draft;
use stenograph_store::discover::Places;
use stenograph_store::index::catalogue::Unknown;
use stenograph_store::index::{
    Archiving, IndexCreation, IndexPlan, IndexReport, IndexScope, PassedOver, Store, run as bring_up_to_date,
};
use stenograph_store::{Error, Problem};

use super::archive::{print_continued, warnings_json};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::index_loop::{FirstRun, IndexLoop, IndexRunner};
use crate::output::{Output, counted, harmless_json, size};
use crate::progress::IndexProgressBar;
use crate::store::{self, StoreArgs};
use crate::table;
use crate::terminal::fitted_path;

/// Find, archive and index the transcripts of agents
///
/// Looks where agents keep their transcripts (see steno formats), in folders added with steno config folder, and in the FOLDERs named
/// here. Each transcript is copied into the archive and its text is indexed. Later runs skip
/// files whose size and time are unchanged, and parse only the new records of files that have grown. Ctrl-C stops the run; the next one
/// continues where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno index                          everything on this machine
  steno index --watch                  keep indexing while agents write
  steno index --root /mnt/backup/home  another home folder
  steno index ~/transcripts            also this folder, once
  steno index --unknown                what steno does not understand
  steno config folder add ~/transcripts
                                       also this folder, always

The store is the folder that STENO_HOME names, or else stenograph in the usual
folder for data (~/.local/share on Linux, ~/Library/Application Support on
macOS, %LOCALAPPDATA% on Windows). You can delete the folder index in it at any
time; the next run rebuilds it. The folder archive in it holds the copies.

Exit codes: 0 success, 2 error; with --unknown: 0 none, 1 some, 2 error")]
pub struct Options {
    /// Also index all transcripts in these folders
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    place: StoreArgs,
    /// Keep running and index transcripts as agents write them
    #[arg(long)]
    watch: bool,
    /// Index the files without copying them into the archive
    #[arg(long)]
    no_keep: bool,
    /// With --watch: archive growing files at most every SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = 5, requires = "watch")]
    keep_every: u64,
    /// Use at most this much memory
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = size)]
    memory: u64,
    /// Number of CPU threads to use [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: Option<u64>,
    /// List the indexed records of unknown types, and files of unknown formats in the agents' folders; index nothing
    #[arg(long, conflicts_with_all = ["watch", "folders"])]
    unknown: bool,
    /// Print one JSON object per run
    #[arg(long)]
    json: bool,
}

impl Options {
    fn archiving(&self) -> Archiving {
        if self.no_keep { Archiving::No } else { Archiving::Yes }
    }
}

/// Less memory is not enough for a record of the maximum size.
const MEMORY_MIN: u64 = 128 << 20;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    if options.unknown {
        return list_unknown(&store, options, output);
    }
    if options.memory < MEMORY_MIN {
        let least = store::bytes(MEMORY_MIN);
        return Err(CommandError::new(format!("--memory is less than {least}")).hint(format!("use {least} or more")));
    }
    crate::memory::bound_heaps();
    let stop = Arc::new(AtomicBool::new(false));
    store::on_interrupt(&stop);
    if let Some(missing) = options.folders.iter().find(|folder| !folder.exists()) {
        return Err(CommandError::new(format!("{}: no such file or folder", missing.display()))
            .hint("check the spelling; steno index without a name searches the agents' folders"));
    }
    let mut places = options.place.places(&store)?;
    places.folders.extend(options.folders.iter().map(|folder| std::path::absolute(folder).unwrap_or(folder.clone())));
    let full = match run_once(&store, &places, IndexScope::All, options.archiving(), options, &stop, output) {
        Ok(report) => {
            report_run(&report, options, output)?;
            if !options.json {
                report_passed_over(&report.passed_over, output);
            }
            None
        }
        // Somebody may free space on the disk.
        Err(error) if options.watch && error.problem == Problem::Full => Some(error),
        Err(error) => return Err(error.into()),
    };
    if options.watch && !stop.load(Ordering::Relaxed) {
        watch(&store, &places, options, full, &stop, output)?;
    }
    Ok(ExitStatus::Done)
}

fn run_once(
    store: &Store,
    places: &Places,
    scope: IndexScope,
    archiving: Archiving,
    options: &Options,
    stop: &Arc<AtomicBool>,
    output: &mut Output<'_>,
) -> Result<IndexReport, Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = IndexPlan {
        places,
        scope,
        archiving,
        memory: usize::try_from(options.memory).unwrap_or(usize::MAX),
        threads: options.threads.map_or(cores, |threads| usize::try_from(threads).unwrap_or(cores)),
        now: clock::nanoseconds(),
    };
    let mut bar = IndexProgressBar::new("indexing", stop);
    let report = bring_up_to_date(store, &plan, &mut bar)?;
    drop(bar);
    if let Some(IndexCreation::Rebuilt(reason)) = &report.made {
        output.say(&format!("note: rebuilding the index: {reason}"));
    }
    Ok(report)
}

/// Indexes changes until the user stops it. `failed` is the error of the first run.
fn watch(
    store: &Store,
    places: &Places,
    options: &Options,
    failed: Option<Error>,
    stop: &Arc<AtomicBool>,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    const STOP_CHECK: Duration = Duration::from_millis(100);
    const SWEEP: Duration = Duration::from_secs(15);
    let watching = IndexLoop {
        places,
        archiving: options.archiving(),
        archive_every: Duration::from_secs(options.keep_every),
        sweep_every: SWEEP,
        stop_check_every: STOP_CHECK,
        stop,
    };
    if !options.json {
        output.say("watching; stop with Ctrl-C");
    }
    watching
        .run(failed.map_or(FirstRun::Done, FirstRun::Failed), &mut Watching { store, places, options, stop, output })
}

/// Prints what a watching index does.
struct Watching<'w, 'o> {
    store: &'w Store,
    places: &'w Places,
    options: &'w Options,
    stop: &'w Arc<AtomicBool>,
    output: &'w mut Output<'o>,
}

impl IndexRunner for Watching<'_, '_> {
    fn run(&mut self, scope: IndexScope, archiving: Archiving) -> Result<IndexReport, Error> {
        run_once(self.store, self.places, scope, archiving, self.options, self.stop, self.output)
    }

    fn changed(&mut self, report: &IndexReport) -> Result<(), CommandError> {
        report_run(report, self.options, self.output)?;
        self.output.flush()
    }

    fn failed(&mut self, error: &CommandError) {
        self.output.retried_error(error);
        self.output.say("note: retrying, at growing intervals");
    }

    fn recovered(&mut self) {
        self.output.say("indexing again");
    }

    fn unreliable(&mut self, reason: &str, every: Duration) {
        let every = every.as_secs();
        self.output
            .say(&format!("note: the system does not report every change: {reason}; checking every {every} s instead"));
    }
}

/// How many file extensions and folders of skipped files are named.
const PASSED_OVER_MAX: usize = 5;

fn report_passed_over(passed_over: &PassedOver, output: &mut Output<'_>) {
    if passed_over.count() == 0 {
        return;
    }
    let first_few = |names: Vec<String>| {
        let more = names.len().saturating_sub(PASSED_OVER_MAX);
        let mut text = names.into_iter().take(PASSED_OVER_MAX).collect::<Vec<_>>().join(", ");
        if more > 0 {
            text.push_str(&format!(" and {more} more"));
        }
        text
    };
    let endings = passed_over.by_ending().into_iter().map(|(ending, count)| match ending.as_str() {
        "" => format!("{count} without an extension"),
        ending => format!("{count} .{ending}"),
    });
    let folders = passed_over
        .by_folder()
        .into_iter()
        .map(|(folder, count)| format!("{} ({count})", fitted_path(&folder, table::screen_width())));
    let (count, endings, folders) = (passed_over.count(), first_few(endings.collect()), first_few(folders.collect()));
    let files = counted(count, "file");
    let are = if count == 1 { "is not a transcript" } else { "are not transcripts" };
    let text = format!("skipped {files} that {are}: {endings}; in {folders}");
    output.say(&crate::output::harmless_line(&text));
}

fn passed_over_json(passed_over: &PassedOver) -> String {
    let groups = passed_over.groups().map(|(folder, ending, reason, count)| {
        let draft = Draft::new().with("folder", folder.display().to_string()).with("ending", ending);
        draft.with("reason", reason.name()).with("count", count).render(None)
    });
    Draft::new().with("count", passed_over.count()).with_list("groups", groups).render(None)
}

fn report_run(report: &IndexReport, options: &Options, output: &mut Output<'_>) -> Result<(), CommandError> {
    if options.json {
        return output.line(&harmless_json(&json(report)));
    }
    for warning in report.warnings.iter().take(WARNINGS_MAX) {
        output.say(&format!("note: {}: {}", warning.path.display(), warning.text));
    }
    if report.warnings.len() > WARNINGS_MAX {
        output.say(&format!("note: and {} more", report.warnings.len() - WARNINGS_MAX));
    }
    print_continued(&report.continued, output);
    let counts = [
        (report.added, "new"),
        (report.grown, "grown"),
        (report.rewritten, "rewritten"),
        (report.moved, "moved"),
        (report.copies, "copies"),
        (report.gone, "gone"),
        (report.unchanged, "unchanged"),
        (report.forgotten, "pruned earlier"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let counts = if counts.is_empty() { "no transcripts found".to_owned() } else { counts.join(", ") };
    let read = match report.bytes {
        0 => String::new(),
        bytes => format!("; {} read, {}", store::bytes(bytes), counted(report.events, "event")),
    };
    let kept = match report.archived_bytes {
        0 => String::new(),
        kept => format!(", {} archived", store::bytes(kept)),
    };
    output.say(&format!("{counts}{read}{kept}"));
    report_unknown(&report.unknown, &report.unrecognised, options, output)?;
    if report.stopped {
        output.say("stopped: the next run continues from here");
    }
    if counts.starts_with("no transcripts") {
        output.say("hint: steno formats lists where steno looks; name another folder, or use --root DIR");
    }
    Ok(())
}

/// The number of warnings to print.
const WARNINGS_MAX: usize = 20;

/// The number of unknown record types and files to print after a run.
const UNKNOWN_MAX: usize = 5;

fn report_unknown(
    unknown: &[Unknown],
    unrecognised: &[(PathBuf, String)],
    options: &Options,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    // A run prints only the first record types; `--unknown` lists all of them.
    let width = table::screen_width();
    let most = if options.unknown { usize::MAX } else { UNKNOWN_MAX };
    let hidden = (unknown.len() + unrecognised.len()).saturating_sub(most);
    let unknown = unknown.iter().map(|Unknown { format, name, count, sources, path, line, .. }| {
        let (records, files) = (counted(*count, "record"), counted(*sources, "file"));
        (format!("{format}: {records} of type \"{name}\" in {files}, first at"), path, format!(":{line}"))
    });
    let unrecognised = unrecognised.iter().map(|(path, expected)| {
        (format!("no format claims this file, in a folder of {expected}:"), path, String::new())
    });
    for (text, path, line) in unknown.chain(unrecognised).take(most) {
        let text = crate::output::harmless_line(&text);
        let text = if options.unknown { text } else { format!("unknown: {text}") };
        // On a terminal, the path has a line of its own.
        let text = match width {
            usize::MAX => format!("{text} {}{line}", fitted_path(path, width)),
            _ => format!("{text}\n  {}{line}", fitted_path(path, width.saturating_sub(2 + line.len()))),
        };
        match options.unknown {
            true => output.line(&text)?,
            false => output.say(&text),
        }
    }
    if hidden > 0 {
        output.say(&format!("unknown: {hidden} more; steno index --unknown lists them"));
    }
    Ok(())
}

/// Prints the unknown records that the index has found, without a run.
fn list_unknown(store: &Store, options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let catalogue = store.catalogue()?;
    let (unknown, unrecognised) = (catalogue.unknown(0)?, catalogue.unrecognised()?);
    if options.json {
        output.line(&harmless_json(&with_unknown(Draft::new(), &unknown, &unrecognised).render(None)))?;
    } else if unknown.is_empty() && unrecognised.is_empty() {
        output.say("all records are of known types");
    } else {
        report_unknown(&unknown, &unrecognised, options, output)?;
    }
    Ok(if unknown.is_empty() && unrecognised.is_empty() { ExitStatus::Done } else { ExitStatus::No })
}

fn json(report: &IndexReport) -> String {
    let made = match &report.made {
        None => None,
        Some(IndexCreation::First) => Some("first"),
        Some(IndexCreation::Rebuilt(reason)) => Some(reason.as_str()),
    };
    let draft = Draft::new()
        .with("found", report.found)
        .with("new", report.added)
        .with("grown", report.grown)
        .with("rewritten", report.rewritten)
        .with("moved", report.moved)
        .with("copies", report.copies)
        .with("gone", report.gone)
        .with("unchanged", report.unchanged)
        .with("strangers", report.non_transcripts)
        .with("forgotten", report.forgotten)
        .with("continued", &report.continued)
        .with("bytes", report.bytes)
        .with("events", report.events)
        .with("kept", report.archived_bytes)
        .with("made", made)
        .with("stopped", report.stopped);
    with_unknown(draft, &report.unknown, &report.unrecognised)
        .with_json("passed_over", passed_over_json(&report.passed_over))
        .with_json("remarks", warnings_json(&report.warnings))
        .render(None)
}

fn with_unknown<'a>(draft: Draft<'a>, unknown: &[Unknown], unrecognised: &[(PathBuf, String)]) -> Draft<'a> {
    let unknown = unknown.iter().map(|Unknown { format, name, count, sources, path, line, .. }| {
        let draft = Draft::new().with("format", format).with("type", name).with("count", count);
        draft.with("sources", sources).with("path", path.display().to_string()).with("line", line).render(None)
    });
    let unrecognised = unrecognised.iter().map(|(path, expected)| {
        Draft::new().with("path", path.display().to_string()).with("expected", expected).render(None)
    });
    draft.with_list("unknown", unknown).with_list("unrecognised", unrecognised)
}
