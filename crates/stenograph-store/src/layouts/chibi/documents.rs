//! The documents of a recording into a context: its window and, if there is one, its transcript; with `--debug` also the logs
//! of requests and responses. The format writes entries; the journal decides what is durable.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use stenograph::format::Format;
use stenograph::formats::{chibi::Chibi, chibi_requests::ChibiRequests, chibi_responses::ChibiResponses};
use stenograph::model::{Body, Event, Outline, Part, Role};
use stenograph::write::{OutputPiece, Writing};

use super::context::Context;
use super::context_lock::{ContextLock, seconds};
use super::entry::ContextEntry;
use super::transcript::{ContextTranscript, KnownEntries, SyncTime};
use crate::document::{ComparedDocument, EventTransform, LineDocument, TransformFactory, measure_part};
use crate::error::{Error, Problem};
use crate::journal::{Recording, RecordingHeader};
use crate::layouts::{DebugLogs, Documents, Environment, ExchangeFilter, FinishedDocuments, JournalNeed, StatedFields};
use crate::tail::Warning;

/// The files that are kept in step.
pub struct ContextDocuments {
    context: Context,
    environment: Environment,
    debug: DebugLogs,
    window: LineDocument,
    /// The logs of requests and responses.
    logs: Vec<LineDocument>,
    transcript: Option<Copy>,
    /// Held while documents are completed by a process that did not begin the recording.
    _hold: Option<ContextLock>,
}

/// A log: its name, its format and its side.
type Log = (&'static str, &'static dyn Format, ExchangeSide);

const LOGS: [Log; 2] = [
    ("requests.jsonl", &ChibiRequests, ExchangeSide::Request),
    ("response_meta.jsonl", &ChibiResponses, ExchangeSide::Response),
];

/// One side of an exchange with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangeSide {
    Request,
    Response,
}

pub const WINDOW: &str = "context.jsonl";

impl ContextDocuments {
    /// Checks the files and records their lengths in a header.
    pub fn begin(
        context: &Context,
        user: &str,
        debug: DebugLogs,
        environment: &Environment,
    ) -> Result<(RecordingHeader, ContextDocuments, Vec<Warning>), Error> {
        let mut header = RecordingHeader { layout: super::NAME.to_owned(), ..RecordingHeader::default() };
        header.settings.insert("context".to_owned(), context.name.clone());
        header.settings.insert("user".to_owned(), user.to_owned());
        let mut names = vec![WINDOW];
        if debug == DebugLogs::Record {
            names.extend(LOGS.map(|(name, _, _)| name));
        }
        let mut warnings = Vec::new();
        for name in names {
            let (base, warning) = LineDocument::base(&environment.files, &context.folder.join(name))?;
            header.documents.insert(name.to_owned(), base);
            warnings.extend(warning);
        }
        let mut documents = ContextDocuments::of(context, &header, environment)?;
        documents.window.begin();
        documents.logs.iter_mut().for_each(LineDocument::begin);
        if let Some(copy) = &mut documents.transcript {
            copy.lines = Some(Lines::new(copy.format, (copy.passes)()));
        }
        Ok((header, documents, warnings))
    }

    /// The documents in a header.
    pub fn of(
        context: &Context,
        header: &RecordingHeader,
        environment: &Environment,
    ) -> Result<ContextDocuments, Error> {
        let setting = |key: &str| header.settings.get(key).cloned();
        let user = setting("user").unwrap_or_else(|| USER.to_owned());
        let base = |name: &str| header.documents.get(name).copied();
        let debug = if base("requests.jsonl").is_some() { DebugLogs::Record } else { DebugLogs::LeaveOut };
        let passes = addressing(&context.name, &user, debug);
        let window = LineDocument::new(&environment.files, &context.window(), &Chibi, base(WINDOW).unwrap_or(0))
            .transformed(Arc::clone(&passes));
        let mut logs = Vec::new();
        for (name, log, side) in LOGS {
            if let Some(base) = base(name) {
                let document = LineDocument::new(&environment.files, &context.folder.join(name), log, base);
                // They come from a log of this kind and return to one.
                let outline = Outline::new(document.format().info().name);
                logs.push(document.with_outline(outline).transformed(logging(side)));
            }
        }
        let transcript = ContextTranscript::of(&context.folder);
        let copies = transcript.holds_window();
        Ok(ContextDocuments {
            context: context.clone(),
            environment: environment.clone(),
            debug,
            window,
            logs,
            transcript: copies.then_some(Copy {
                folder: context.folder.clone(),
                transcript,
                passes,
                format: &Chibi,
                lines: None,
            }),
            _hold: None,
        })
    }

    /// The same, with the context's lock held until they are complete.
    pub fn holding(mut self, hold: Option<ContextLock>) -> ContextDocuments {
        self._hold = hold;
        self
    }

    /// Whether the documents hold everything that was given.
    fn measure(&self, recorded: &Recording, given: StatedFields) -> Result<JournalNeed, Error> {
        let (mut exchange, debug) = (ExchangeFilter::default(), self.debug);
        let mut of_window = |event: &Event<'_>| !(exchange.has(event) && debug == DebugLogs::Record);
        if self.part(recorded, &self.window, given, &mut of_window)? == JournalNeed::Needed {
            return Ok(JournalNeed::Needed);
        }
        for (document, (_, _, side)) in self.logs.iter().zip(LOGS) {
            let mut exchange = ExchangeFilter::default();
            let mut of_log = |event: &Event<'_>| exchange.has(event) && side_of(event) == side;
            if self.part(recorded, document, given, &mut of_log)? == JournalNeed::Needed {
                return Ok(JournalNeed::Needed);
            }
        }
        Ok(JournalNeed::Redundant)
    }

    /// The warning that some requests and responses state nothing that a log can hold.
    fn unwritten(&self, recorded: &Recording) -> Result<Vec<Warning>, Error> {
        let (mut exchange, mut counts) = (ExchangeFilter::default(), [0_u64; LOGS.len()]);
        recorded.read(&mut |event| {
            let is_fact = exchange.has(event) && matches!(event.body, Body::Fact { .. }) && event.part.index == 0;
            for ((_, log, side), count) in LOGS.iter().zip(&mut counts) {
                let is_written = event.extra.get(log.info().name).is_some()
                    || *side == ExchangeSide::Response && event.usage.is_some();
                *count += u64::from(is_fact && side_of(event) == *side && !is_written);
            }
        })?;
        let warning = |(log, (count, (_, _, side))): (&LineDocument, (u64, &Log))| {
            let needed = match side {
                ExchangeSide::Request => "the request (extra.chibi-requests.request)",
                ExchangeSide::Response => "the usage",
            };
            let text = format!("native facts without {needed} are only in the journal: {count}");
            (count > 0).then(|| Warning::new(log.path(), text))
        };
        Ok(self.logs.iter().zip(counts.into_iter().zip(&LOGS)).filter_map(warning).collect())
    }

    fn part(
        &self,
        recorded: &Recording,
        document: &LineDocument,
        given: StatedFields,
        belongs: &mut dyn FnMut(&Event<'_>) -> bool,
    ) -> Result<JournalNeed, Error> {
        let path = document.path();
        let bytes = self.environment.files.reader(path, document.starts_at());
        let bytes = bytes.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        measure_part(recorded, ComparedDocument { format: document.format(), bytes }, given, belongs)
    }
}

impl Documents for ContextDocuments {
    fn add(&mut self, event: &Event<'_>) {
        // Chibi's own order: the permanent file first.
        if let Some(copy) = &mut self.transcript {
            copy.add(event, &self.environment);
        }
        self.window.add(event);
        self.logs.iter_mut().for_each(|log| log.add(event));
    }

    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error> {
        let mut warnings = Vec::new();
        let mut written = Vec::new();
        if let Some(copy) = &mut self.transcript {
            warnings.extend(copy.finish(recorded, &self.environment)?);
            written.push(ContextTranscript::of(&self.context.folder).path().to_owned());
        }
        warnings.extend(self.window.finish(recorded)?);
        for log in &mut self.logs {
            warnings.extend(log.finish(recorded)?);
        }
        warnings.extend(self.unwritten(recorded)?);
        let journal = self.measure(recorded, given)?;
        written.push(self.context.window());
        for log in &self.logs {
            let empty = self.environment.files.length(log.path()).ok().flatten() == Some(0);
            if empty && self.environment.files.remove(log.path()).is_ok() {
                continue;
            }
            written.push(log.path().to_owned());
        }
        Ok(FinishedDocuments { journal, written, warnings })
    }

    fn discard(&mut self) -> Result<(), Error> {
        self.window.discard()?;
        self.logs.iter_mut().try_for_each(LineDocument::discard)?;
        // A folder that is not empty stays.
        let _ = self.environment.files.remove_folder(&self.context.folder);
        Ok(())
    }
}

/// The default name of the person who speaks to a context.
pub const USER: &str = "user";

/// The copy of the entries for a transcript.
struct Copy {
    folder: PathBuf,
    transcript: ContextTranscript,
    passes: TransformFactory,
    format: &'static dyn Format,
    /// `None` if it is out of step: then it is completed at the end, by id.
    lines: Option<Lines>,
}

/// How many bytes of entries are added at once when a transcript is completed.
const BATCH_SIZE: usize = 1 << 20;

impl Copy {
    fn add(&mut self, event: &Event<'_>, environment: &Environment) {
        let Some(lines) = &mut self.lines else { return };
        let entries = lines.event(event);
        let entries: Vec<&ContextEntry> = entries.iter().collect();
        let now = seconds(&environment.clock);
        if !entries.is_empty()
            && self.transcript.append(environment.files.as_ref(), &entries, now, SyncTime::Later).is_err()
        {
            self.lines = None;
        }
    }

    /// Adds what the transcript lacks. Chibi may have written there too, so entries are matched by id.
    fn finish(&mut self, recorded: &Recording, environment: &Environment) -> Result<Vec<Warning>, Error> {
        let (files, now) = (environment.files.as_ref(), seconds(&environment.clock));
        if let Some(lines) = self.lines.take() {
            let last = lines.finish();
            let last: Vec<&ContextEntry> = last.iter().collect();
            if let Ok(warnings) = self.transcript.append(files, &last, now, SyncTime::Now) {
                return Ok(warnings);
            }
        }
        let held = self.transcript.held(files)?;
        let (mut ours, mut missed) = (HashSet::new(), false);
        self.again(recorded, &mut |entry| {
            ours.insert(entry.identity());
            missed |= !held.has(&entry);
        })?;
        let mut warnings = self.transcript.append(files, &[], now, SyncTime::Now)?;
        if !missed {
            return Ok(warnings);
        }
        warnings.extend(self.fill_gaps(recorded, &held, &ours, environment)?);
        let held = self.transcript.held(files)?;
        let (mut missing, mut failed) = (Vec::new(), None);
        let mut transcript = ContextTranscript::of(&self.folder);
        let mut flush = |missing: &mut Vec<ContextEntry>, most: usize| {
            let size: usize = missing.iter().map(|entry: &ContextEntry| entry.line.len()).sum();
            if size > most {
                let entries: Vec<&ContextEntry> = missing.iter().collect();
                match transcript.append(files, &entries, now, SyncTime::Now) {
                    Ok(more) => warnings.extend(more),
                    Err(error) => failed = failed.take().or(Some(error)),
                }
                missing.clear();
            }
        };
        self.again(recorded, &mut |entry| {
            if !held.has(&entry) {
                missing.push(entry);
                flush(&mut missing, BATCH_SIZE);
            }
        })?;
        flush(&mut missing, 0);
        failed.map_or(Ok(warnings), Err)
    }

    /// Passes all entries of a recording again.
    fn again(&self, recorded: &Recording, visit: &mut dyn FnMut(ContextEntry)) -> Result<(), Error> {
        let mut lines = Lines::new(self.format, (self.passes)());
        recorded.read(&mut |event| lines.event(event).into_iter().for_each(&mut *visit))?;
        lines.finish().into_iter().for_each(visit);
        Ok(())
    }

    /// Inserts missing entries before existing ones, and moves damaged remains of them to another file: a power failure may
    /// lose any entry.
    fn fill_gaps(
        &mut self,
        recorded: &Recording,
        held: &KnownEntries,
        ours: &HashSet<(u64, u64)>,
        environment: &Environment,
    ) -> Result<Vec<Warning>, Error> {
        let mut gaps: HashMap<(u64, u64), Vec<ContextEntry>> = HashMap::new();
        let mut open = Vec::new();
        self.again(recorded, &mut |entry| {
            if !held.has(&entry) {
                open.push(entry);
            } else if !open.is_empty() {
                gaps.insert(entry.identity(), std::mem::take(&mut open));
            }
        })?;
        self.transcript.insert(environment.files.as_ref(), &gaps, ours)
    }
}

/// Turns events into entries.
struct Lines {
    writing: Writing,
    pass: EventTransform,
}

impl Lines {
    fn new(format: &dyn Format, pass: EventTransform) -> Lines {
        Lines { writing: Writing::new(format, &Outline::default()), pass }
    }

    fn event(&mut self, event: &Event<'_>) -> Vec<ContextEntry> {
        (self.pass)(event).map(|event| entries(self.writing.event(&event))).unwrap_or_default()
    }

    fn finish(self) -> Vec<ContextEntry> {
        entries(self.writing.finish())
    }
}

fn entries(pieces: Vec<OutputPiece>) -> Vec<ContextEntry> {
    let records = pieces.into_iter().filter_map(|piece| match piece {
        OutputPiece::Record(line) => Some(line),
        OutputPiece::Glue(_) => None,
    });
    records.map(|line| ContextEntry::new(&line)).collect()
}

/// Sets the sender and recipient of entries, and gives every entry its own id. Drops events that repeat others.
fn addressing(context: &str, user: &str, debug: DebugLogs) -> TransformFactory {
    let (context, user) = (context.to_owned(), user.to_owned());
    Arc::new(move || {
        let (context, user) = (context.clone(), user.clone());
        let mut exchange = ExchangeFilter::default();
        let mut last: Option<String> = None;
        Box::new(move |event| {
            let logged = exchange.has(event) && debug == DebugLogs::Record;
            let same = event.id.is_some() && event.id.as_deref() == last.as_deref() && event.part.index > 0;
            if !same {
                last = event.id.as_deref().map(str::to_owned);
            }
            if logged || event.restates {
                return None;
            }
            let mut event = event.clone().into_owned();
            if same {
                // The parts of one record share an id; entries must not.
                event.id = last.as_ref().map(|id| format!("{id}-{}", event.part.index).into());
            }
            event.part = Part::default();
            let (from, to) = address(&event, &context, &user);
            event.from = event.from.or(from.map(|from| from.to_owned().into()));
            event.to = event.to.or(to.map(|to| to.to_owned().into()));
            Some(event)
        })
    })
}

/// The sender and recipient. In the document an assistant writes to `user`, by which Chibi recognises it.
fn address<'n>(event: &Event<'_>, context: &'n str, user: &'n str) -> (Option<&'n str>, Option<&'n str>) {
    match &event.body {
        Body::Message { role: Role::Assistant, .. } => (Some(context), Some("user")),
        Body::Message { role: Role::System | Role::Developer, .. } => (Some("system"), Some(context)),
        Body::Message { role: Role::User | Role::Tool | Role::Unknown, .. } => (Some(user), Some(context)),
        Body::ToolCall { .. } => (Some(context), None),
        Body::ToolResult { .. } => (None, Some(context)),
        Body::Compaction { .. } => (Some("system"), Some(context)),
        Body::Fact { .. } | Body::Thinking { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => {
            (None, None)
        }
    }
}

/// Selects the events of one log.
fn logging(side: ExchangeSide) -> TransformFactory {
    Arc::new(move || {
        let mut exchange = ExchangeFilter::default();
        Box::new(move |event| (exchange.has(event) && side_of(event) == side).then(|| event.clone().into_owned()))
    })
}

fn side_of(event: &Event<'_>) -> ExchangeSide {
    let response = matches!(&event.body, Body::Fact { fact: name, .. } if name == "response");
    if response || event.extra.get("chibi-responses").is_some() {
        ExchangeSide::Response
    } else {
        ExchangeSide::Request
    }
}
