//! Where events go: one recorder for every `--to`, and an acknowledgement when all of them have it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stenograph::model::{Event, Note};
use stenograph::read::{Collected, Sink};
use stenograph::text::quote;
use stenograph_store::files::Disk;
use stenograph_store::journal::{RecordingEnd, Settings};
use stenograph_store::layouts::{
    self, ContinuedConversation, DebugLogs, Environment, ExchangeFilter, LAYOUTS, Layout, Target,
};
use stenograph_store::{Passes, Problem, Recorder, Warning};

use super::Options;
use super::limits::LimitWatch;
use crate::config::{AUTO_SAVE_CHAT_HISTORY, AUTO_SAVE_TRAJECTORY, Config};
use crate::error::CommandError;
use crate::home::Root;
use crate::input::{self, Go};
use crate::output::{Output, counted, harmless_json};
use crate::progress::Progress;

/// The recorders of this process, and what they have recorded.
pub struct Recorders {
    recorders: Vec<Recorder>,
    exchange: ExchangeFilter,
    debug: DebugLogs,
    ack: Ack,
    recorded: u64,
    left_out: u64,
    /// How many warnings there were about the input.
    notes: u64,
    /// Whether anything was given to a recorder, if only to be refused.
    touched: bool,
    /// The limits of a conversation that goes on, and its file.
    watch: Option<(LimitWatch, Option<PathBuf>)>,
}

/// How many warnings about the input are said as they come: something else than a transcript has one for every line.
const NOTES_SAID_MAX: u64 = 20;

/// Where acknowledgements are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ack {
    No,
    /// On standard output.
    Data,
    /// On standard error, where standard output belongs to a command.
    Talk,
}

/// How long a full disk is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(250);

impl Recorders {
    /// Opens a recorder for every target.
    pub fn open(options: &Options) -> Result<Recorders, CommandError> {
        let chosen = options.to.iter().map(|to| chosen(to)).collect::<Result<Vec<_>, _>>()?;
        let settings = settings(&options.set)?;
        check_keys(&chosen, &settings)?;
        let debug = if options.debug { DebugLogs::Record } else { DebugLogs::LeaveOut };
        let mut recorders = Vec::new();
        let mut begun: Vec<&str> = Vec::new();
        for (layout, path) in chosen {
            let mut settings = settings.clone();
            let name = layout.info().name;
            add_configured(layout, if begun.contains(&name) { Turn::Later } else { Turn::First }, &mut settings)?;
            begun.push(name);
            let place = if path.is_none() { layout.default_path(&settings) } else { None };
            let path = place.map(|place| Root::default().resolve(&place)).transpose()?.or(path);
            let target = Target { path, settings, debug, load: options.load.clone() };
            recorders.push(Recorder::open(layout, &target, site(options.sync)).map_err(refused)?);
        }
        let ack = match (options.ack, options.command.is_empty()) {
            (false, _) => Ack::No,
            (true, true) => Ack::Data,
            (true, false) => Ack::Talk,
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
            watch: None,
        })
    }

    /// Records the conversation that goes on, where it does not stand there already.
    pub fn load(&mut self, load: Option<&Path>, output: &mut Output<'_>) -> Result<(), CommandError> {
        let Some(load) = load else { return Ok(()) };
        if let Some(mut watch) = LimitWatch::configured()? {
            input::open(load, None, Passes::Once)?.read(&mut watch, &Progress::none(), |_| Go::On)?;
            watch.loaded();
            let is_in_place =
                self.recorders.iter().any(|recorder| recorder.continued() == ContinuedConversation::InPlace);
            let file = is_in_place.then(|| load.to_owned());
            watch.say(Some(load), output);
            self.watch = Some((watch, file));
        }
        let wanting: Vec<&Recorder> = self
            .recorders
            .iter()
            .filter(|recorder| recorder.continued() == ContinuedConversation::ToBeRecorded)
            .collect();
        if wanting.is_empty() {
            return Ok(());
        }
        let mut input = input::open(load, None, Passes::Once)?;
        self.touched = true;
        let mut loading = Loading { recorders: wanting, held: Vec::new(), failed: None };
        input.read(&mut loading, &Progress::none(), |loading| match loading.failed {
            Some(_) => Go::NoFurther,
            None => Go::On,
        })?;
        loading.flush();
        loading.failed.map_or(Ok(()), Err)
    }

    /// Records what arrived, and acknowledges it.
    pub fn take(&mut self, arrived: Collected, output: &mut Output<'_>) -> Result<(), CommandError> {
        for note in arrived.notes {
            self.notes += 1;
            if self.notes > NOTES_SAID_MAX {
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
        if let Some((watch, file)) = &mut self.watch {
            events.iter().for_each(|event| watch.add(event));
            watch.say(file.as_deref(), output);
        }
        for event in &events {
            self.recorded += 1;
            self.acknowledge(event, output);
        }
        Ok(())
    }

    /// Says that an event is recorded. That nobody listens any more is no reason to stop recording.
    fn acknowledge(&self, event: &Event<'_>, output: &mut Output<'_>) {
        let line = event.at.map_or(0, |at| at.line);
        let ack = || format!("{{\"ack\":{},\"line\":{line},\"kind\":{}}}", self.recorded, quote(event.kind().name()));
        match self.ack {
            Ack::No => {}
            Ack::Data => {
                let _ = output.line(&ack()).and_then(|()| output.flush());
            }
            Ack::Talk => output.say(&ack()),
        }
    }

    /// Says what there is to say about what was found.
    pub fn say_remarks(&self, output: &mut Output<'_>) {
        self.recorders.iter().flat_map(Recorder::warnings).for_each(|warning| say(warning, output));
    }

    /// Whether nothing was given to any recorder yet.
    pub fn is_untouched(&self) -> bool {
        !self.touched
    }

    /// Takes all recordings back.
    pub fn discard(self) -> Result<(), CommandError> {
        let discarded: Vec<_> = self.recorders.into_iter().map(Recorder::discard).collect();
        discarded.into_iter().collect::<Result<(), _>>().map_err(CommandError::from)
    }

    /// Ends all recordings.
    pub fn finish(self, end: &RecordingEnd) -> Result<Done, CommandError> {
        let mut done = Done {
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
                // One recording that fails does not keep the others from their end.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(done), |error| Err(error.into()))
    }
}

/// What came of it.
pub struct Done {
    end: RecordingEnd,
    recorded: u64,
    left_out: u64,
    notes: u64,
    files: Vec<PathBuf>,
    /// What was remarked, and said, at the beginning.
    said: Vec<Warning>,
    warnings: Vec<Warning>,
}

impl Done {
    /// Says how much was recorded, and where it is.
    pub fn report(&self, options: &Options, output: &mut Output<'_>) -> Result<(), CommandError> {
        if let Some(more @ 1..) = self.notes.checked_sub(NOTES_SAID_MAX) {
            output.say(&format!("{} more about the input", counted(more, "note")));
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "event");
            output.say(&format!("{left_out} of requests and responses left out: --debug keeps them"));
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
        self.warnings.iter().filter(|warning| !self.said.contains(warning)).for_each(|warning| say(warning, output));
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        let (events, end) = (counted(self.recorded, "event"), self.end.name());
        output.say(&format!("{events} recorded, {end}: {}", files.join(", ")));
        Ok(())
    }

    fn to_json(&self) -> String {
        let text = |path: &PathBuf| quote(&path.display().to_string());
        let files: Vec<String> = self.files.iter().map(text).collect();
        let warning =
            |warning: &Warning| format!("{{\"path\":{},\"text\":{}}}", text(&warning.path), quote(&warning.text));
        let warnings: Vec<String> = self.warnings.iter().map(warning).collect();
        format!(
            "{{\"recorded\":{},\"end\":{},\"files\":[{}],\"remarks\":[{}]}}",
            self.recorded,
            quote(self.end.name()),
            files.join(","),
            warnings.join(",")
        )
    }
}

fn refused(error: stenograph_store::Error) -> CommandError {
    match error.problem {
        Problem::Locked { holder: Some(holder) } if holder == std::process::id() => {
            CommandError::new(format!("{}: is given twice", error.place)).hint("name each place once")
        }
        _ => error.into(),
    }
}

/// A full disk may have room again: whoever writes is held up as long, and nothing is acknowledged. Everything else is told.
fn append(recorder: &Recorder, events: &[Event<'_>], output: &mut Output<'_>) -> Result<(), CommandError> {
    let started = Instant::now();
    let mut told = false;
    loop {
        match recorder.append_all(events) {
            Err(error) if error.problem == Problem::Full && started.elapsed() < PATIENCE => {
                if !told {
                    output.say(&format!("warning: {error}: waiting for room"));
                    told = true;
                }
                std::thread::sleep(STEP);
            }
            Err(error) => return Err(error.into()),
            Ok(()) => return Ok(()),
        }
    }
}

/// Records what is loaded in large steps.
struct Loading<'r> {
    recorders: Vec<&'r Recorder>,
    held: Vec<Event<'static>>,
    failed: Option<CommandError>,
}

const LOADED_AT_ONCE: usize = 1024;

impl Loading<'_> {
    fn flush(&mut self) {
        for recorder in &self.recorders {
            if let Err(error) = recorder.append_all(&self.held) {
                self.failed = Some(error.into());
            }
        }
        self.held.clear();
    }
}

impl Sink for Loading<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.held.push(event.clone().into_owned());
        if self.held.len() >= LOADED_AT_ONCE {
            self.flush();
        }
    }

    fn note(&mut self, _note: Note) {}
}

/// What a recording of this command stands on.
pub fn site(durability: stenograph_store::log::Durability) -> Environment {
    Environment { files: Arc::new(Disk), clock: Arc::new(crate::clock::now), durability, home: crate::home::named() }
}

/// Something to be known about a recording.
pub fn say(warning: &Warning, output: &mut Output<'_>) {
    output.say(&format!("note: {}: {}", warning.path.display(), warning.text));
}

fn chosen(to: &str) -> Result<(&'static dyn Layout, Option<PathBuf>), CommandError> {
    let (name, path) = to.split_once(':').map_or((to, None), |(name, path)| (name, Some(path)));
    let layout = layouts::layout_named(name).ok_or_else(|| {
        let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.info().name).collect();
        CommandError::new(format!("no layout is called {name}")).hint(format!("these are: {}", names.join(", ")))
    })?;
    let path = path.filter(|path| !path.is_empty()).map(|path| match (path.strip_prefix("~/"), std::env::home_dir()) {
        // The shell does not look behind the colon.
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
                CommandError::new(format!("--set {pair}: is no KEY=VALUE")).hint("for example --set flow=review")
            );
        };
        let value = match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(file) => {
                let bytes =
                    stenograph_store::Source::open(Path::new(file), Passes::Once)?.read_whole(VALUE_SIZE_MAX)?;
                String::from_utf8(bytes)
                    .map_err(|_| CommandError::new(format!("{file}: is not UTF-8 text")).hint("name a text file"))?
            }
        };
        settings.insert(key.to_owned(), value);
    }
    Ok(settings)
}

const VALUE_SIZE_MAX: u64 = 16 << 20;

/// Whether a layout is recorded into for the first time, or once more beside that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Later,
}

/// Tells a layout what is configured, where it wants to know and nobody said it on the command line. What is saved without being
/// asked for is saved once.
fn add_configured(layout: &dyn Layout, turn: Turn, settings: &mut Settings) -> Result<(), CommandError> {
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
                let on = turn == Turn::First && config.is_on(setting)?;
                settings.insert(key, on.to_string());
            }
        }
    }
    Ok(())
}

fn check_keys(chosen: &[(&'static dyn Layout, Option<PathBuf>)], settings: &Settings) -> Result<(), CommandError> {
    let known: Vec<&str> = chosen.iter().flat_map(|(layout, _)| layout.info().keys).map(|(key, _)| *key).collect();
    match settings.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if known.is_empty() => {
            Err(CommandError::new(format!("--set {key}: this layout takes no settings")).hint("leave it out"))
        }
        Some(key) => Err(CommandError::new(format!("--set {key}: is not known to the layouts chosen"))
            .hint(format!("these are: {}", known.join(", ")))),
    }
}
