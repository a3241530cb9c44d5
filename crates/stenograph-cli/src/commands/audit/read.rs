//! Reads the sources of an audit: a file or a session, with its side conversations.

use std::path::{Path, PathBuf};

use stenograph::audit::{Audit, Auditor};
use stenograph::changes::{Changes, ChangesOutcome};
use stenograph::json::Draft;
use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::repeat::CheckRepeats;
use stenograph::text::quote;
use stenograph_store::index::catalogue::{Catalogue, SessionId};
use stenograph_store::sessions::SessionCost;
use stenograph_store::{Passes, folder, subagent_files};

use super::{Options, cost, merge};
use crate::error::CommandError;
use crate::input::{self, Flow, TranscriptInput};
use crate::output::Output;
use crate::progress::SourceProgress;
use crate::store::{NamedBy, ResolvedSession};

/// The sources and the audit.
pub struct Audited {
    /// The name in messages.
    pub name: String,
    /// The agent that wrote them, if it is known.
    pub agent: Option<String>,
    /// The files that were read, in order; events are numbered within each.
    pub paths: Vec<String>,
    pub audit: Audit,
    /// What its model calls took, if that is reported.
    pub took: Option<SessionCost>,
    /// The changes to files, if requested.
    pub changes: Option<ChangesOutcome>,
}

impl Audited {
    /// Adds the facts beside the audit to an object.
    pub fn put(&self, draft: &mut Draft<'static>) {
        draft.set_opt("agent", self.agent.as_deref());
        draft.set_list("paths", self.paths.iter().map(|path| quote(path)));
        if let Some(took) = &self.took {
            draft.set_number("tokens", Some(took.tokens));
            draft.set("cost", took.cost.map_or_else(|| "null".to_owned(), |cost| cost.to_string()));
        }
    }
}

/// A file with its side conversations, or a recording folder.
pub fn file(options: &Options, path: &Path, output: &mut Output<'_>) -> Result<Audited, CommandError> {
    let mut reading = Folding::of(options);
    let name = path.display().to_string();
    let from = options.from.as_deref();
    let mut paths = vec![name.clone()];
    let mut files = Vec::new();
    let format = match from.is_none().then(|| input::parts(path, output)).flatten() {
        Some(parts) => {
            fold_parts(&parts, &mut reading)?;
            files.extend_from_slice(parts.files());
            parts.format()
        }
        None => {
            let main = input::open(path, from, Passes::Once)?;
            let format = main.format;
            let sides = subagent_files::of_session_file(path, format).into_iter().map(|side| {
                let shown = side.path.display().to_string();
                (shown, move |_: &mut Output<'_>| input::open(&side.path, from, Passes::Once))
            });
            all(main, sides, &mut paths, &mut reading, output)?;
            files.extend(paths.iter().map(PathBuf::from));
            Some(format)
        }
    };
    let agent = format.map(|format| format.info().agent.to_owned()).filter(|agent| !agent.is_empty());
    let (audit, changes) = reading.finish();
    let took = cost::of_files(options, &files)?;
    Ok(Audited { name, agent, paths, audit, took, changes })
}

pub fn session(options: &Options, chosen: &ResolvedSession, output: &mut Output<'_>) -> Result<Audited, CommandError> {
    let store = options.place.store()?;
    let from = options.from.as_deref();
    let mut reading = Folding::of(options);
    let mut paths = vec![chosen.source.path.display().to_string()];
    let mut files = vec![chosen.source.path.clone()];
    files.extend(chosen.other_files().chain(chosen.threads()).map(|row| row.path.clone()));
    if let Some(parts) = chosen.parts().filter(|_| from.is_none()) {
        fold_parts(&parts, &mut reading)?;
        files.extend_from_slice(parts.files());
        for row in chosen.threads() {
            let parts = chosen.parts_of_thread(row);
            // The name of a recording's document means the whole recording.
            let document = parts.as_ref().and_then(|parts| parts.files().first()).unwrap_or(&row.path);
            paths.push(document.display().to_string());
            reading.source(paths.len() - 1);
            let read = match parts {
                Some(parts) => fold_parts(&parts, &mut reading),
                None => input::open_known(&store, row, from, output).and_then(|mut side| fold(&mut side, &mut reading)),
            };
            read.unwrap_or_else(|error| output.error(&error));
        }
    } else {
        let main = input::open_known(&store, &chosen.source, from, output)?;
        let sides = chosen.other_files().chain(chosen.threads()).map(|row| {
            let store = &store;
            let open = move |output: &mut Output<'_>| input::open_known(store, row, from, output);
            (row.path.display().to_string(), open)
        });
        all(main, sides, &mut paths, &mut reading, output)?;
    }
    let agent = Some(chosen.session.agent.clone()).filter(|agent| !agent.is_empty());
    let (audit, changes) = reading.finish();
    let took = cost::of_files(options, &files)?;
    Ok(Audited { name: chosen.session.name.clone(), agent, paths, audit, took, changes })
}

/// How many sources are open at the same time. Some systems allow only some hundreds.
const TOGETHER_MAX: usize = 64;

/// Reads a source and its side conversations, in the order of their times as far as they can be open together. One that cannot
/// be read does not stop the rest.
fn all<O>(
    mut main: TranscriptInput,
    sides: impl Iterator<Item = (String, O)>,
    paths: &mut Vec<String>,
    reading: &mut Folding,
    output: &mut Output<'_>,
) -> Result<(), CommandError>
where
    O: FnOnce(&mut Output<'_>) -> Result<TranscriptInput, CommandError>,
{
    let mut sides = sides.peekable();
    if sides.peek().is_none() {
        return fold(&mut main, reading);
    }
    let mut inputs = vec![main];
    let mut first = 0;
    loop {
        for (name, open) in sides.by_ref() {
            match open(output) {
                Ok(input) => {
                    paths.push(name);
                    inputs.push(input);
                }
                Err(error) => output.error(&error),
            }
            if inputs.len() >= TOGETHER_MAX {
                break;
            }
        }
        let problems = merge::merge(&mut inputs, &mut NumberedSink { first, reading });
        for (source, error) in problems {
            if first + source == 0 {
                return Err(error);
            }
            output.error(&error);
        }
        first += inputs.len();
        inputs.clear();
        if sides.peek().is_none() {
            return Ok(());
        }
    }
}

/// Passes the events of several sources to the folds.
struct NumberedSink<'f> {
    /// The number of the first source.
    first: usize,
    reading: &'f mut Folding,
}

impl merge::MergeSink for NumberedSink<'_> {
    fn event(&mut self, source: usize, event: &Event<'_>) {
        self.reading.source(self.first + source);
        self.reading.event(event);
    }
}

/// A session by its id, with its main source.
pub fn chosen(catalogue: &Catalogue, id: SessionId) -> Result<Option<ResolvedSession>, CommandError> {
    let Some(session) = catalogue.session(id)? else { return Ok(None) };
    match catalogue.source_at(&session.path)? {
        Some(source) => ResolvedSession::of(catalogue, session, source, NamedBy::Session).map(Some),
        None => Ok(None),
    }
}

fn fold(input: &mut TranscriptInput, reading: &mut Folding) -> Result<(), CommandError> {
    let progress = SourceProgress::over(&input.source, 1);
    let mut checked = CheckRepeats::new(reading);
    let read = input.read(&mut checked, &progress, |_| Flow::Continue);
    checked.finish();
    read
}

fn fold_parts(parts: &folder::RecordingParts, reading: &mut Folding) -> Result<(), CommandError> {
    let mut checked = CheckRepeats::new(reading);
    let read = folder::read(parts, &mut checked);
    checked.finish();
    Ok(read?)
}

struct Folding {
    audit: Auditor,
    changes: Option<Changes>,
}

impl Folding {
    fn of(options: &Options) -> Folding {
        Folding { audit: Auditor::default(), changes: options.diff.then(Changes::default) }
    }

    fn source(&mut self, source: usize) {
        self.audit.source(source);
        self.changes.iter_mut().for_each(|changes| changes.source(source));
    }

    fn finish(self) -> (Audit, Option<ChangesOutcome>) {
        (self.audit.finish(), self.changes.map(Changes::finish))
    }
}

impl Sink for Folding {
    fn event(&mut self, event: &Event<'_>) {
        self.audit.add(event);
        self.changes.iter_mut().for_each(|changes| changes.add(event));
    }
}
