//! Reading what an audit is about: one file, or a session with its side conversations. What comes of it is the library's.

use std::path::Path;

use stenograph::audit::{Audit, Auditor};
use stenograph::changes::{Changes, Outcome};
use stenograph::json::Draft;
use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph_store::index::catalogue::{Catalogue, SessionId};
use stenograph_store::{Passes, folder};

use super::Options;
use crate::error::CommandError;
use crate::input::{self, Go, Input};
use crate::output::Output;
use crate::progress::Progress;
use crate::store::Chosen;

/// What was read, and what came of it.
pub struct Audited {
    /// What to call it.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The files that were read, in order; events are numbered in each.
    pub paths: Vec<String>,
    /// What it did.
    pub audit: Audit,
    /// What it did to files, if that was asked for.
    pub changes: Option<Outcome>,
}

impl Audited {
    /// Puts what is known beside the audit into an object.
    pub fn put(&self, draft: &mut Draft<'static>) {
        draft.set_str("agent", &self.agent);
        let paths: Vec<String> = self.paths.iter().map(|path| stenograph::text::quote(path)).collect();
        draft.set("paths", format!("[{}]", paths.join(",")));
    }
}

/// A file, or a folder that was recorded into.
pub fn file(options: &Options, path: &Path) -> Result<Audited, CommandError> {
    let mut reading = Folding::of(options);
    let name = path.display().to_string();
    let agent = match folder::parts(path).filter(|_| options.from.is_none()) {
        Some(parts) => {
            folder::read(&parts, &mut reading)?;
            String::new()
        }
        None => {
            let mut input = input::open(path, options.from.as_deref(), Passes::Once)?;
            fold(&mut input, &mut reading)?;
            input.format.info().agent.to_owned()
        }
    };
    let (audit, changes) = reading.finish();
    Ok(Audited { name: name.clone(), agent, paths: vec![name], audit, changes })
}

/// A session: its main source, then its side conversations.
pub fn session(options: &Options, chosen: &Chosen, output: &mut Output<'_>) -> Result<Audited, CommandError> {
    let store = options.place.store()?;
    let from = options.from.as_deref();
    let mut reading = Folding::of(options);
    let mut input = input::open_known(&store, &chosen.source, from, output)?;
    fold(&mut input, &mut reading)?;
    let mut paths = vec![chosen.source.path.display().to_string()];
    // Who names a side conversation by its file means that one.
    let mut others = match chosen.source.thread {
        Some(_) => Vec::new(),
        None => store.catalogue()?.sources_of(chosen.session.id)?,
    };
    others.retain(|source| source.id != chosen.source.id && source.copy_of.is_none() && source.thread.is_some());
    for source in &others {
        let read = input::open_known(&store, source, from, output).and_then(|mut input| {
            reading.source();
            paths.push(source.path.display().to_string());
            fold(&mut input, &mut reading)
        });
        // One that cannot be read does not stop the rest.
        if let Err(error) = read {
            output.error(&error);
        }
    }
    let agent = chosen.session.agent.clone();
    let (audit, changes) = reading.finish();
    Ok(Audited { name: chosen.session.name.clone(), agent, paths, audit, changes })
}

/// The session of that number, by its main source.
pub fn chosen(catalogue: &Catalogue, id: SessionId) -> Result<Option<Chosen>, CommandError> {
    let Some(session) = catalogue.session(id)? else { return Ok(None) };
    let source = catalogue.source_at(&session.path)?;
    Ok(source.map(|source| Chosen { session, source }))
}

fn fold(input: &mut Input, reading: &mut Folding) -> Result<(), CommandError> {
    let progress = Progress::over(&input.source, 1);
    input.read(reading, &progress, |_| Go::On)
}

/// Hands events to the folds.
struct Folding {
    audit: Auditor,
    changes: Option<Changes>,
}

impl Folding {
    fn of(options: &Options) -> Folding {
        Folding { audit: Auditor::default(), changes: options.diff.then(Changes::default) }
    }

    fn source(&mut self) {
        self.audit.source();
        self.changes.iter_mut().for_each(Changes::next_source);
    }

    fn finish(self) -> (Audit, Option<Outcome>) {
        (self.audit.finish(), self.changes.map(Changes::finish))
    }
}

impl Sink for Folding {
    fn event(&mut self, event: &Event<'_>) {
        self.audit.add(event);
        self.changes.iter_mut().for_each(|changes| changes.add(event));
    }

    fn note(&mut self, _note: Note) {}
}
