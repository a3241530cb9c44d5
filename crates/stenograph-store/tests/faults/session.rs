//! A session that is recorded into a layout on a failing disk, its reported results, and how it is found again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use stenograph::format::Wanted;
use stenograph::model::{Body, Content, Event, Input, Role};
use stenograph::read::{Collected, Reading};
use stenograph::time::{Time, TimeUnit};
use stenograph::{Detected, Registry};
use stenograph_store::files::Files;
use stenograph_store::journal::RecordingEnd;
use stenograph_store::layouts::{Environment, Layout, Target};
use stenograph_store::log::Durability;
use stenograph_store::{Error, Problem, Recorder, folder};

use crate::disk::{FaultyDisk, files_below};

/// The results that the recorder reported.
#[derive(Debug, Default)]
pub struct Reported {
    /// Every attempted event, in order, and whether it was acknowledged.
    pub events: Vec<(usize, bool)>,
    /// Refused events that may be present, according to the error.
    pub doubtful: BTreeSet<usize>,
}

impl Reported {
    pub fn acknowledged(&self) -> Vec<usize> {
        self.events.iter().filter(|(_, good)| *good).map(|(event, _)| *event).collect()
    }

    /// The events after the last acknowledged one: their outcome is open if the power fails.
    pub fn open(&self) -> BTreeSet<usize> {
        self.events.iter().rev().take_while(|(_, good)| !good).map(|(event, _)| *event).collect()
    }
}

/// A session and its recorder.
pub struct Session {
    layout: &'static dyn Layout,
    target: Target,
    environment: Environment,
    pub recorder: Option<Recorder>,
    pub reported: Reported,
}

/// Where everything is recorded, below the root of a disk.
pub fn place(root: &Path) -> PathBuf {
    root.join("a/recording")
}

/// A clock that is set back now and then.
pub fn unsteady(start_ms: i64) -> impl Fn() -> Time<'static> + Send + Sync {
    let ticks = AtomicI64::new(0);
    move || {
        let tick = ticks.fetch_add(1, Ordering::Relaxed);
        let back = if tick % 7 == 6 { 3_600_000 } else { 0 };
        Time { text: (start_ms + tick * 1_000 - back).to_string().into(), unit: TimeUnit::Millis }
    }
}

pub fn environment(disk: &FaultyDisk, durability: Durability) -> Environment {
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    Environment { files, clock: Arc::new(unsteady(1_772_442_845_000)), durability, home: None }
}

impl Session {
    pub fn new(layout: &'static dyn Layout, root: &Path, environment: Environment) -> Session {
        let target = Target { path: Some(place(root)), ..Target::default() };
        Session { layout, target, environment, recorder: None, reported: Reported::default() }
    }

    /// Records an event; opens the recorder if that failed before.
    pub fn append(&mut self, number: usize) -> Result<(), Error> {
        let recorder = match self.recorder.take() {
            Some(recorder) => recorder,
            None => Recorder::open(self.layout, &self.target, self.environment.clone()).inspect_err(|error| {
                // The recorder's own first event, which no test checks.
                if error.problem == Problem::InDoubt {
                    self.reported.doubtful.insert(usize::MAX);
                }
            })?,
        };
        let recorder = self.recorder.insert(recorder);
        let appended = recorder.append(&event(number));
        self.reported.events.push((number, appended.is_ok()));
        if appended.as_ref().is_err_and(|error| error.problem == Problem::InDoubt) {
            self.reported.doubtful.insert(number);
        }
        appended
    }

    /// Two consecutive recordings in the same place.
    pub fn script(&mut self, count: usize) {
        for number in 0..count {
            let _ = self.append(number);
            if number == count / 2 {
                self.finish();
            }
        }
        self.finish();
    }

    pub fn finish(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            let finished = recorder.finish(&RecordingEnd::Completed);
            if finished.is_err_and(|error| error.problem == Problem::InDoubt) {
                // The recorder's own last event, which no test checks.
                self.reported.doubtful.insert(usize::MAX);
            }
        }
    }
}

/// Question and answer in turn, with a tool in between.
pub fn event(number: usize) -> Event<'static> {
    let text = format!("event {number}. {}", "word ".repeat(number * 7 % 30));
    let call = || Some(format!("call-{}", number / 4).into());
    let body = match number % 4 {
        0 => Body::Message { role: Role::User, content: Content::text(text) },
        1 => {
            let input = Input::Json(format!("{{\"said\":\"{text}\"}}").into());
            Body::ToolCall { call: call(), name: "look".into(), input }
        }
        2 => {
            let (name, content) = (Some("look".into()), Content::text(text));
            Body::ToolResult { call: call(), name, content, error: Some(false) }
        }
        _ => Body::Message { role: Role::Assistant, content: Content::text(text) },
    };
    Event::new(body)
}

/// The number in an event's text.
fn number(event: &Event<'_>) -> Option<usize> {
    let text = match &event.body {
        Body::ToolCall { input, .. } => input.to_text().decode().into_owned(),
        _ => event.content()?.joined().decode().into_owned(),
    };
    let after = text.split("event ").nth(1)?;
    after.split('.').next()?.parse().ok()
}

/// The layouts in which all recordings in one place form one conversation. The others have a conversation for each.
const ONE_CONVERSATION: [&str; 3] = ["chibi", "cycod", "steno"];

/// Our events in a place, in order, however its layout spreads them. Conversations are sorted.
pub fn found(layout: &'static dyn Layout, path: &Path) -> Vec<usize> {
    let mut found: Vec<usize> = read(path).iter().filter(|event| !event.restates).filter_map(number).collect();
    if !ONE_CONVERSATION.contains(&layout.info().name) {
        found.sort_unstable();
    }
    found
}

/// All events in a place.
pub fn read(path: &Path) -> Vec<Event<'static>> {
    let mut read = Collected::default();
    if let Some(parts) = folder::parts(path) {
        folder::read(&parts, &mut read).unwrap();
    } else if path.is_dir() {
        let mut paths: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| path.is_dir() || is_document(path));
        paths.iter().for_each(|path| read.events.extend(self::read(path)));
    } else if let Ok(bytes) = fs::read(path)
        && let Detected::Format(format) = Registry::built_in().detect(&bytes)
    {
        let mut reading = Reading::new(format, Wanted::All);
        reading.feed(&bytes, &mut read);
        reading.end(&mut read);
    }
    read.events
}

fn is_document(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    !name.starts_with('.') && !name.contains(".torn-") && !name.contains("lock")
}

/// The largest number of torn ends that were moved aside for one file.
pub fn torn(folder: &Path) -> usize {
    let names = files_below(folder).into_iter().map(|path| path.to_string_lossy().into_owned());
    let torn: Vec<String> = names.filter_map(|name| Some(name.rsplit_once(".torn-")?.0.to_owned())).collect();
    torn.iter().map(|one| torn.iter().filter(|other| *other == one).count()).max().unwrap_or(0)
}

/// The results reported to many threads.
pub type Heard = Mutex<Vec<(usize, bool)>>;
