//! Writes events: one recorder for every `--to`, and an acknowledgement once all of them have the event.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stenograph::json::Draft;
use stenograph::model::Event;
use stenograph::read::{Collected, Sink};
use stenograph_store::files::Disk;
use stenograph_store::journal::{RecordingEnd, Settings};
use stenograph_store::layouts::{
    self, ContinuedConversation, DebugLogs, Environment, ExchangeFilter, LAYOUTS, Layout, Target,
};
use stenograph_store::{Passes, Problem, Recorder, Warning};

use super::Options;
use super::limits::LimitWatch;
use crate::commands::archive::warnings_json;
use crate::config::{AUTO_SAVE_CHAT_HISTORY, AUTO_SAVE_TRAJECTORY, Config};
use crate::error::CommandError;
use crate::home::Root;
use crate::input::{self, Flow};
use crate::output::{Output, counted, grouped, harmless_json};
use crate::progress::SourceProgress;
use stenograph_store::sessions::path_json;

pub struct Recorders {
    recorders: Vec<Recorder>,
    exchange: ExchangeFilter,
    debug: DebugLogs,
    ack: Ack,
    recorded: u64,
    left_out: u64,
    /// The number of notes about the input.
    notes: u64,
    /// Whether any recorder has received an event, even one that it refused.
    touched: bool,
    /// The limits of a continued conversation, and its file.
    limit_watch: Option<(LimitWatch, Option<PathBuf>)>,
}

/// The number of notes about the input to print: a file that is not a transcript causes one for every line.
const NOTES_PRINTED_MAX: u64 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ack {
    No,
    Stdout,
    /// On standard error, because a command's output goes to standard output.
    Stderr,
}

/// How long to wait for space on a full disk.
const FULL_DISK_WAIT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

impl Recorders {
    pub fn open(options: &Options) -> Result<Recorders, CommandError> {
        let parse_target = options.to.iter().map(|to| parse_target(to)).collect::<Result<Vec<_>, _>>()?;
        let settings = settings(&options.set)?;
        check_keys(&parse_target, &settings)?;
        let debug = if options.debug { DebugLogs::Record } else { DebugLogs::LeaveOut };
        let mut recorders = Vec::new();
        let mut seen_layouts: Vec<&str> = Vec::new();
        for (layout, path) in parse_target {
            let mut settings = settings.clone();
            let name = layout.info().name;
            add_configured(
                layout,
                if seen_layouts.contains(&name) { TargetOrder::Later } else { TargetOrder::First },
                &mut settings,
            )?;
            seen_layouts.push(name);
            let place = if path.is_none() { layout.default_path(&settings) } else { None };
            let path = place.map(|place| Root::default().resolve(&place)).transpose()?.or(path);
            let target = Target { path, settings, debug, load: options.load.clone() };
            recorders.push(Recorder::open(layout, &target, environment(options.sync)).map_err(open_error)?);
        }
        let ack = match (options.ack, options.command.is_empty()) {
            (false, _) => Ack::No,
            (true, true) => Ack::Stdout,
            (true, false) => Ack::Stderr,
        };
        Ok(Recorders {
            recorders,
            exchange: ExchangeFilter::default(),
            debug,
            ack,
            recorded: 0,
            left_out: 0,
            notes: 0,
            touched: false,
            limit_watch: None,
        })
    }

    /// Records the loaded conversation for recorders that do not have it yet.
    pub fn load(&mut self, load: Option<&Path>, output: &mut Output<'_>) -> Result<(), CommandError> {
        let Some(load) = load else { return Ok(()) };
        if let Some(mut limit_watch) = LimitWatch::configured()? {
            input::open(load, None, Passes::Once)?
                .read(&mut limit_watch, &SourceProgress::none(), |_| Flow::Continue)?;
            limit_watch.loaded();
            let is_in_place =
                self.recorders.iter().any(|recorder| recorder.continued() == ContinuedConversation::InPlace);
            let file = is_in_place.then(|| load.to_owned());
            limit_watch.report(Some(load), output);
            self.limit_watch = Some((limit_watch, file));
        }
        let without_loaded: Vec<&Recorder> = self
            .recorders
            .iter()
            .filter(|recorder| recorder.continued() == ContinuedConversation::ToBeRecorded)
            .collect();
        if without_loaded.is_empty() {
            return Ok(());
        }
        let mut input = input::open(load, None, Passes::Once)?;
        self.touched = true;
        let mut loading = LoadingSink { recorders: without_loaded, batch: Vec::new(), failed: None };
        input.read(&mut loading, &SourceProgress::none(), |loading| match loading.failed {
            Some(_) => Flow::Stop,
            None => Flow::Continue,
        })?;
        loading.flush();
        loading.failed.map_or(Ok(()), Err)
    }

    /// Records and acknowledges what arrived.
    pub fn take(&mut self, arrived: Collected, output: &mut Output<'_>) -> Result<(), CommandError> {
        for note in arrived.notes {
            self.notes += 1;
            if self.notes > NOTES_PRINTED_MAX {
                continue;
            }
            output.say(&format!("note: line {} of the input: {}", note.at.line, note.text));
        }
        let mut events = arrived.events;
        let before = events.len();
        let (exchange, debug) = (&mut self.exchange, self.debug);
        events.retain(|event| !exchange.has(event) || debug == DebugLogs::Record);
        self.left_out += (before - events.len()) as u64;
        if events.is_empty() {
            return Ok(());
        }
        self.touched = true;
        for recorder in &self.recorders {
            append(recorder, &events, output)?;
        }
        if let Some((limit_watch, file)) = &mut self.limit_watch {
            events.iter().for_each(|event| limit_watch.add(event));
            limit_watch.report(file.as_deref(), output);
        }
        for event in &events {
            self.recorded += 1;
            self.acknowledge(event, output);
        }
        Ok(())
    }

    /// Acknowledges an event. If nobody reads acknowledgements any more, the recording continues.
    fn acknowledge(&self, event: &Event<'_>, output: &mut Output<'_>) {
        let line = event.at.map_or(0, |at| at.line);
        let ack = || Draft::new().with("ack", self.recorded).with("line", line).with("kind", event.kind()).render(None);
        match self.ack {
            Ack::No => {}
            Ack::Stdout => {
                let _ = output.line(&ack()).and_then(|()| output.flush());
            }
            Ack::Stderr => output.say(&ack()),
        }
    }

    /// Prints the recorders' warnings.
    pub fn print_warnings(&self, output: &mut Output<'_>) {
        self.recorders.iter().flat_map(Recorder::warnings).for_each(|warning| print_warning(warning, output));
    }

    pub fn is_untouched(&self) -> bool {
        !self.touched
    }

    /// Discards all recordings.
    pub fn discard(self) -> Result<(), CommandError> {
        let discarded: Vec<_> = self.recorders.into_iter().map(Recorder::discard).collect();
        discarded.into_iter().collect::<Result<(), _>>().map_err(CommandError::from)
    }

    pub fn finish(self, end: &RecordingEnd) -> Result<RecordingResult, CommandError> {
        let mut done = RecordingResult {
            end: end.clone(),
            recorded: self.recorded,
            left_out: self.left_out,
            notes: self.notes,
            files: Vec::new(),
            said: self.recorders.iter().flat_map(Recorder::warnings).cloned().collect(),
            warnings: Vec::new(),
        };
        let mut failed = None;
        for recorder in self.recorders {
            match recorder.finish(end) {
                Ok(kept) => {
                    done.files.extend(kept.files);
                    done.warnings.extend(kept.warnings);
                }
                // One failing recording does not keep the others from finishing.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(done), |error| Err(error.into()))
    }
}

/// The result of a recording.
pub struct RecordingResult {
    end: RecordingEnd,
    recorded: u64,
    left_out: u64,
    notes: u64,
    files: Vec<PathBuf>,
    /// The warnings printed at the beginning.
    said: Vec<Warning>,
    warnings: Vec<Warning>,
}

impl RecordingResult {
    /// Reports how much was recorded, and where.
    pub fn report(&self, options: &Options, output: &mut Output<'_>) -> Result<(), CommandError> {
        if let Some(more @ 1..) = self.notes.checked_sub(NOTES_PRINTED_MAX) {
            output.say(&format!("{} more about the input", counted(more, "note")));
        }
        if self.left_out > 0 {
            output.say(&match self.left_out {
                1 => "1 request or response was not recorded; add --debug to record it".to_owned(),
                count => {
                    format!("{} requests and responses were not recorded; add --debug to record them", grouped(count))
                }
            });
        }
        if options.json {
            let report = self.to_json();
            let report = harmless_json(&report);
            if options.command.is_empty() {
                output.line(&report)?;
            } else {
                output.say(&report);
            }
            return Ok(());
        }
        self.warnings
            .iter()
            .filter(|warning| !self.said.contains(warning))
            .for_each(|warning| print_warning(warning, output));
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        let (events, end) = (counted(self.recorded, "event"), self.end.name());
        output.say(&format!("{events} recorded, {end}: {}", files.join(", ")));
        Ok(())
    }

    fn to_json(&self) -> String {
        Draft::new()
            .with("recorded", self.recorded)
            .with("end", self.end.name())
            .with_list("files", self.files.iter().map(|path| path_json(path)))
            .with_json("remarks", warnings_json(&self.warnings))
            .render(None)
    }
}

fn open_error(error: stenograph_store::Error) -> CommandError {
    match error.problem {
        Problem::Locked { holder: Some(holder) } if holder == std::process::id() => {
            CommandError::new(format!("{}: given twice", error.place)).hint("name each file or folder once")
        }
        _ => error.into(),
    }
}

/// Waits while the disk is full, without acknowledging; the input waits too. Every other error is returned.
fn append(recorder: &Recorder, events: &[Event<'_>], output: &mut Output<'_>) -> Result<(), CommandError> {
    let started = Instant::now();
    let mut is_reported = false;
    loop {
        match recorder.append_all(events) {
            Err(error) if error.problem == Problem::Full && started.elapsed() < FULL_DISK_WAIT => {
                if !is_reported {
                    output.say(&format!("warning: {error}: waiting for free space"));
                    is_reported = true;
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) => return Err(error.into()),
            Ok(()) => return Ok(()),
        }
    }
}

/// Records the loaded events in large batches.
struct LoadingSink<'r> {
    recorders: Vec<&'r Recorder>,
    batch: Vec<Event<'static>>,
    failed: Option<CommandError>,
}

const LOADED_AT_ONCE: usize = 1024;

impl LoadingSink<'_> {
    fn flush(&mut self) {
        for recorder in &self.recorders {
            if let Err(error) = recorder.append_all(&self.batch) {
                self.failed = Some(error.into());
            }
        }
        self.batch.clear();
    }
}

impl Sink for LoadingSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.batch.push(event.clone().into_owned());
        if self.batch.len() >= LOADED_AT_ONCE {
            self.flush();
        }
    }
}

/// The environment of a recording.
pub fn environment(durability: stenograph_store::log::Durability) -> Environment {
    Environment {
        files: Arc::new(Disk),
        clock: Arc::new(crate::clock::now),
        durability,
        home: crate::home::from_environment(),
    }
}

pub fn print_warning(warning: &Warning, output: &mut Output<'_>) {
    output.say(&format!("note: {}: {}", warning.path.display(), warning.text));
}

fn parse_target(to: &str) -> Result<(&'static dyn Layout, Option<PathBuf>), CommandError> {
    let (name, path) = to.split_once(':').map_or((to, None), |(name, path)| (name, Some(path)));
    let layout = layouts::layout_named(name).ok_or_else(|| {
        let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.info().name).collect();
        CommandError::new(format!("unknown layout: {name}")).hint(format!("available layouts: {}", names.join(", ")))
    })?;
    let path = path.filter(|path| !path.is_empty()).map(|path| match (path.strip_prefix("~/"), std::env::home_dir()) {
        // The shell does not expand `~` after a colon.
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    });
    Ok((layout, path))
}

fn settings(set: &[String]) -> Result<Settings, CommandError> {
    let mut settings = Settings::new();
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(
                CommandError::new(format!("--set {pair}: expected KEY=VALUE")).hint("for example --set flow=review")
            );
        };
        let value = match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(file) => {
                let bytes =
                    stenograph_store::Source::open(Path::new(file), Passes::Once)?.read_whole(VALUE_SIZE_MAX)?;
                String::from_utf8(bytes)
                    .map_err(|_| CommandError::new(format!("{file}: not UTF-8 text")).hint("name a text file"))?
            }
        };
        settings.insert(key.to_owned(), value);
    }
    Ok(settings)
}

const VALUE_SIZE_MAX: u64 = 16 << 20;

/// Whether this layout is the first or a further target of the same layout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetOrder {
    First,
    Later,
}

/// Adds the configured settings that the layout uses and the command line does not set. Only the first target of a layout saves
/// automatically.
fn add_configured(layout: &dyn Layout, order: TargetOrder, settings: &mut Settings) -> Result<(), CommandError> {
    let switches = [&AUTO_SAVE_CHAT_HISTORY, &AUTO_SAVE_TRAJECTORY];
    let wanted = |key: &str| layout.info().keys.iter().any(|(known, _)| *known == key);
    let wanted: Vec<_> = switches.into_iter().filter(|setting| wanted(&setting.layout_key())).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let config = Config::load()?;
    for setting in wanted {
        let key = setting.layout_key();
        match settings.get(&key) {
            Some(value) => {
                let checked = setting.kind.parse(value).map_err(|wanted| {
                    CommandError::new(format!("--set {key}={value}: must be {wanted}"))
                        .hint(format!("for example --set {key}=false"))
                });
                checked?;
            }
            None => {
                let on = order == TargetOrder::First && config.is_on(setting)?;
                settings.insert(key, on.to_string());
            }
        }
    }
    Ok(())
}

fn check_keys(
    parse_target: &[(&'static dyn Layout, Option<PathBuf>)],
    settings: &Settings,
) -> Result<(), CommandError> {
    let known: Vec<&str> =
        parse_target.iter().flat_map(|(layout, _)| layout.info().keys).map(|(key, _)| *key).collect();
    match settings.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if known.is_empty() => {
            Err(CommandError::new(format!("--set {key}: this layout has no settings")).hint("omit --set"))
        }
        Some(key) => Err(CommandError::new(format!("--set {key}: unknown key for these layouts"))
            .hint(format!("valid keys: {}", known.join(", ")))),
    }
}
