//! One run as its folder describes it: from `metadata.json`, otherwise from the transcript. Reading cannot fail: an unreadable
//! run is listed as such. This file writes nothing.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::UNIX_EPOCH;

use stenograph::format::{Format, Wanted};
use stenograph::formats::devflow::Devflow;
use stenograph::json::{Draft, Object, number};
use stenograph::model::{Body, Event, Kind, Role};
use stenograph::read::{Reading, Sink};
use stenograph::time::Time;

use super::{Base, METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED};
use crate::discover::path_hints;
use crate::layouts::RunSummary;
use crate::source::{Passes, Source};
use crate::source_file::is_same;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It is active, or was cut off without a final status.
    Running,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Canceled,
    /// Its folder does not state it.
    Unreadable,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 5] =
        [RunStatus::Running, RunStatus::Completed, RunStatus::Failed, RunStatus::Canceled, RunStatus::Unreadable];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Canceled => "canceled",
            RunStatus::Unreadable => "unreadable",
        }
    }

    /// The status with this name.
    pub fn named(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// A summary of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct DevflowRun {
    /// Its id: the name of its folder.
    pub id: String,
    /// The flow of the run.
    pub flow: String,
    /// The node of the flow.
    pub node: Option<String>,
    /// Its status.
    pub status: RunStatus,
    /// When it began.
    pub started: Option<Time<'static>>,
    /// When it ended.
    pub ended: Option<Time<'static>>,
    /// Tokens of users and system prompts.
    pub tokens_in: u64,
    /// Tokens of the assistant.
    pub tokens_out: u64,
    /// Its cost in US dollars, as written.
    pub cost: Option<String>,
    /// The number of turns.
    pub turn_count: Option<u64>,
    /// Its duration, if stated.
    pub(crate) stated_ms: Option<u64>,
    /// Its error.
    pub error: Option<String>,
    /// The beginning of the user's first message.
    pub query: Option<String>,
    /// Why its folder cannot be read.
    pub problem: Option<String>,
    /// A stamp that changes when its files change.
    pub(crate) stamp: String,
}

/// The maximum size of `metadata.json`.
pub(crate) const METADATA_SIZE_MAX: u64 = 16 << 20;

/// How far into a transcript the first question is searched.
const QUERY_SIZE_MAX: u64 = 4 << 20;

/// How many characters of a question are stored.
const QUERY_LENGTH_MAX: usize = 200;

impl DevflowRun {
    /// Reads the folder of a run.
    pub fn read(base: &Base, id: &str) -> DevflowRun {
        DevflowRun::at(&base.run(id), id)
    }

    /// Reads the run in this folder.
    pub(crate) fn at(folder: &Path, id: &str) -> DevflowRun {
        let stamp = DevflowRun::stamp_of(folder);
        let stated = stated_at(&folder.join(METADATA));
        let mut look = TranscriptScan { fields: stated.as_ref().ok().cloned(), ..TranscriptScan::default() };
        // devflow prefers the compressed form, and takes the other one if that is damaged.
        for name in [TRANSCRIPT_COMPRESSED, TRANSCRIPT] {
            if look.is_enough() {
                break;
            }
            look.turns = 0;
            look.at(&folder.join(name));
        }
        let turns = (look.turns > 0).then_some(look.turns);
        let run = DevflowRun::of(id, look.fields, stated.err());
        DevflowRun { turn_count: run.turn_count.or(turns), query: look.query, stamp, ..run }
    }

    /// The run of a transcript at any path.
    pub(crate) fn of_transcript(path: &Path) -> Option<DevflowRun> {
        let source = Source::open(path, Passes::Once).ok()?;
        let recognized = source.recognize(&path_hints(path))?;
        if !is_same(recognized.format, &Devflow) {
            return None;
        }
        let mut look = TranscriptScan::default();
        look.at(path);
        let id = look.run.clone().unwrap_or_default();
        Some(DevflowRun { query: look.query, ..DevflowRun::of(&id, Some(look.fields?), None) })
    }

    /// Its duration: as stated, otherwise from start to end.
    pub fn duration_ms(&self) -> Option<u64> {
        let took = || {
            let (start, end) = (self.started.as_ref()?.instant()?, self.ended.as_ref()?.instant()?);
            u64::try_from(end.as_millisecond().saturating_sub(start.as_millisecond())).ok()
        };
        self.stated_ms.or_else(took)
    }

    /// What devflow states about it.
    pub(crate) fn summary(&self) -> RunSummary {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        RunSummary {
            agent: Devflow.info().name,
            run: self.id.clone(),
            flow: text(&self.flow),
            node: self.node.clone(),
            status: self.status.name(),
            started: self.started.clone(),
            duration_ms: self.duration_ms(),
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            cost: self.cost.as_deref().and_then(|cost| cost.parse().ok()),
            error: self.error.clone(),
        }
    }

    /// A run of which only the metadata is available.
    pub(crate) fn stated(id: &str, metadata: Option<&str>, problem: Option<String>) -> DevflowRun {
        let missing = || Some(format!("no readable {METADATA}"));
        DevflowRun::of(id, metadata.and_then(MetadataFields::of), problem.or_else(missing))
    }

    /// A run from its stated fields, or the reason why there are none.
    fn of(id: &str, fields: Option<MetadataFields>, unread: Option<String>) -> DevflowRun {
        let problem = match &fields {
            None => unread,
            Some(MetadataFields { status: Err(word), .. }) => Some(format!("unknown status {word:?}")),
            Some(_) => None,
        };
        let fields = fields.unwrap_or_default();
        DevflowRun {
            id: id.to_owned(),
            flow: fields.flow,
            node: fields.node,
            status: if problem.is_some() {
                RunStatus::Unreadable
            } else {
                fields.status.unwrap_or(RunStatus::Unreadable)
            },
            started: fields.started,
            ended: fields.ended,
            tokens_in: fields.tokens_in,
            tokens_out: fields.tokens_out,
            cost: fields.cost,
            turn_count: fields.turn_count,
            stated_ms: fields.duration_ms,
            error: fields.error,
            query: None,
            problem,
            stamp: String::new(),
        }
    }

    /// A stamp of a run's files: lengths, times and identities.
    pub(crate) fn stamp_of(folder: &Path) -> String {
        let mut stamp = String::new();
        for name in [METADATA, TRANSCRIPT, TRANSCRIPT_COMPRESSED] {
            let Ok(metadata) = fs::metadata(folder.join(name)) else {
                stamp.push('-');
                continue;
            };
            let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let _ = write!(stamp, "{:x}.{:x}", metadata.len(), changed.map_or(0, |changed| changed.as_nanos()));
            #[cfg(unix)]
            let _ = write!(stamp, ".{:x}", std::os::unix::fs::MetadataExt::ino(&metadata));
            stamp.push('/');
        }
        stamp
    }

    /// The sort key of runs: the newest first, those without a start last.
    pub fn order(&self) -> impl Ord + use<> {
        std::cmp::Reverse((self.started.as_ref().and_then(Time::instant), self.id.clone()))
    }

    /// The time from which its age counts, in seconds since 1970: its end, otherwise its start, otherwise the date in its id.
    pub fn moment(&self) -> Option<i64> {
        let stated = self.ended.as_ref().or(self.started.as_ref()).and_then(Time::to_seconds);
        let by_id = || Time::iso(format!("{}T00:00:00Z", super::date_of(&self.id)?).into())?.to_seconds();
        stated.or_else(by_id)
    }

    /// The run as one line of JSON, with devflow's keys.
    pub fn to_json(&self) -> String {
        self.draft().render(None)
    }

    pub(crate) fn draft(&self) -> Draft<'static> {
        let iso = |time: &Option<Time<'_>>| time.as_ref().and_then(|time| time.to_iso().map(Cow::into_owned));
        let mut draft = Draft::new();
        draft.set_str("runId", &self.id);
        draft.set_str("flowId", &self.flow);
        draft.set_opt("nodeId", self.node.as_deref());
        draft.set_str("status", self.status.name());
        draft.set_opt("startedAt", iso(&self.started).as_deref());
        draft.set_opt("endedAt", iso(&self.ended).as_deref());
        draft.set("totalTokensIn", self.tokens_in.to_string());
        draft.set("totalTokensOut", self.tokens_out.to_string());
        draft.set("totalCost", self.cost.clone().unwrap_or_else(|| "0".to_owned()));
        draft.set_number("turnCount", self.turn_count);
        draft.set_number("durationMs", self.duration_ms());
        draft.set_opt("error", self.error.as_deref());
        draft.set_opt("firstQuery", self.query.as_deref());
        draft.set_opt("problem", self.problem.as_deref());
        draft
    }

    /// The run in an entry of the index.
    pub(crate) fn of_entry(entry: &str) -> Option<DevflowRun> {
        let object = Object::parse(entry)?;
        let text = |key: &str| object.peek_str(key).map(Cow::into_owned);
        let fields = MetadataFields::of(entry)?;
        let (query, problem, stamp) = (text("firstQuery"), text("problem"), text("stamp")?);
        let status = RunStatus::named(&text("status")?)?;
        Some(DevflowRun { status, query, problem, stamp, ..DevflowRun::of(&text("runId")?, Some(fields), None) })
    }
}

/// The fields of a metadata object.
#[derive(Clone, Debug)]
struct MetadataFields {
    flow: String,
    node: Option<String>,
    status: Result<RunStatus, String>,
    started: Option<Time<'static>>,
    ended: Option<Time<'static>>,
    tokens_in: u64,
    tokens_out: u64,
    cost: Option<String>,
    turn_count: Option<u64>,
    duration_ms: Option<u64>,
    error: Option<String>,
}

impl Default for MetadataFields {
    fn default() -> MetadataFields {
        MetadataFields {
            flow: String::new(),
            node: None,
            status: Err(String::new()),
            started: None,
            ended: None,
            tokens_in: 0,
            tokens_out: 0,
            cost: None,
            turn_count: None,
            duration_ms: None,
            error: None,
        }
    }
}

impl MetadataFields {
    /// Parses a metadata object. An object with neither a flow nor a status is rejected.
    fn of(json: &str) -> Option<MetadataFields> {
        let object = Object::parse(json)?;
        let text = |key: &str| object.peek_str(key).map(Cow::into_owned).filter(|text: &String| !text.is_empty());
        // Go writes the first moment of its calendar for a missing time.
        let moment = |key: &str| Time::iso(text(key)?.into()).filter(|time| !time.text.starts_with("0001-01-01T"));
        let count = |key: &str| object.peek(key).and_then(number);
        if !object.has("flowId") && !object.has("status") {
            return None;
        }
        let word = text("status").unwrap_or_default();
        Some(MetadataFields {
            flow: text("flowId").unwrap_or_default(),
            node: text("nodeId"),
            status: RunStatus::named(&word).ok_or(word),
            started: moment("startedAt"),
            ended: moment("endedAt"),
            tokens_in: count("totalTokensIn").unwrap_or(0),
            tokens_out: count("totalTokensOut").unwrap_or(0),
            cost: object.peek("totalCost").filter(|raw| raw.parse::<f64>().is_ok()).map(str::to_owned),
            turn_count: count("turnCount"),
            duration_ms: count("durationMs"),
            error: text("error"),
        })
    }
}

fn stated_at(path: &Path) -> Result<MetadataFields, String> {
    let read = Source::open(path, Passes::Once).and_then(|mut source| source.read_whole(METADATA_SIZE_MAX));
    let bytes = read.map_err(|error| error.to_string())?;
    let fields = std::str::from_utf8(&bytes).ok().and_then(MetadataFields::of);
    fields.ok_or_else(|| format!("{}: is not what devflow writes", path.display()))
}

/// Searches a transcript for the header, if `metadata.json` is missing, and for the first question.
#[derive(Default)]
struct TranscriptScan {
    fields: Option<MetadataFields>,
    query: Option<String>,
    turns: u64,
    /// The id in the header.
    run: Option<String>,
}

impl TranscriptScan {
    fn is_enough(&self) -> bool {
        self.query.is_some() && self.fields.as_ref().is_some_and(|fields| fields.turn_count.is_some())
    }

    /// Reads as much of a transcript as is needed. A damaged one counts up to the damage.
    fn at(&mut self, path: &Path) {
        let headless = self.fields.as_ref().is_none_or(|fields| fields.turn_count.is_none());
        let size_max = if headless { u64::MAX } else { QUERY_SIZE_MAX };
        let Ok(mut source) = Source::open(path, Passes::Once) else { return };
        let Ok(pass) = source.pass() else { return };
        let mut pass = pass.take(size_max);
        let mut reading = Reading::new(&Devflow, Wanted::All);
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = pass.read(&mut buffer) {
            reading.feed(buffer.get(..length).unwrap_or_default(), self);
            if self.is_enough() {
                return;
            }
        }
        reading.end(self);
    }
}

impl Sink for TranscriptScan {
    fn event(&mut self, event: &Event<'_>) {
        match &event.body {
            Body::Fact { .. } if self.fields.is_none() => {
                self.run = event.session.as_deref().map(str::to_owned);
                let own = event.extra.get(Devflow.info().name).and_then(|own| own.object("metadata"));
                let mut json = String::new();
                if let Some(metadata) = own {
                    metadata.write_json(&mut json);
                    let fields = MetadataFields::of(&json);
                    self.fields = fields
                        .map(|fields| MetadataFields { started: event.time.clone().map(Time::into_owned), ..fields });
                }
            }
            Body::Message { role: Role::User, content } if self.query.is_none() => {
                self.query = Some(content.joined().decode().chars().take(QUERY_LENGTH_MAX).collect());
            }
            _ => {}
        }
        if event.part.index == 0 && !matches!(event.kind(), Kind::Fact | Kind::Stop | Kind::Other) {
            self.turns += 1;
        }
    }
}
