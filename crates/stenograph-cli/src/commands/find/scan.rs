//! The plain scan: reads files from beginning to end and matches every entry. It needs no index and finds what the index would
//! find.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use stenograph::model::Event;
use stenograph::query::{Entry, EntryBuilder, Query, Same, SessionFacts, collapse};
use stenograph::read::Sink;
use stenograph_store::Passes;
use stenograph_store::index::catalogue::{IndexedSession, SourceRow};
use stenograph_store::index::search::Hit;
use stenograph_store::project::Project;

use stenograph_store::hits::{EventAddresses, HitContent, ShownAnswer, ShownHit};

use super::{Options, snippet_length};
use crate::error::{CommandError, ExitStatus};
use crate::input::{self, Flow};
use crate::output::{Output, shortened};
use crate::progress::SourceProgress;

/// The maximum length of a session's name.
const NAME_LENGTH_MAX: usize = 36;

pub(super) fn answer(
    options: &Options,
    query: &Query,
    files: &[PathBuf],
    output: &mut Output<'_>,
) -> Result<(ShownAnswer, ExitStatus), CommandError> {
    let (mut found, mut status) = (Vec::new(), ExitStatus::Done);
    let mut sessions = HashMap::new();
    for (number, path) in (0_i64..).zip(files) {
        // One bad file does not stop the rest.
        if let Err(error) = scan(query, path, number, &mut sessions, &mut found) {
            output.error(&error);
            status = ExitStatus::Error;
        }
    }
    // Without an index there is no ranking.
    found.sort_by_key(|shown| shown.hit.newest_first());
    let same: Vec<Same<i64>> = found
        .iter()
        .map(|ShownHit { hit, .. }| Same { session: hit.session, key: hit.key, twin: hit.twin, restates: hit.restates })
        .collect();
    let stating = found.iter().filter(|shown| !shown.hit.restates);
    let pieces = stating.flat_map(|shown| shown.hit.pieces.iter().map(|piece| (shown.hit.session, *piece)));
    let kept = collapse(&same, pieces);
    let total = kept.len() as u64;
    let offset = super::offset(options.cursor.as_deref())?;
    let mut hits = Vec::new();
    let mut found: Vec<Option<ShownHit>> = found.into_iter().map(Some).collect();
    for (rank, kept) in kept.iter().enumerate().skip(offset).take(options.limit()) {
        if let Some(mut shown) = found.get_mut(kept.hit).and_then(Option::take) {
            (shown.hit.rank, shown.hit.copies) = (rank, kept.copies.len());
            hits.push(shown);
        }
    }
    let next = (offset + hits.len() < kept.len()).then(|| (offset + hits.len()).to_string());
    Ok((ShownAnswer { hits, total, is_exact: true, next }, status))
}

/// Scans one file. `sessions` has the number of each session so far: files that state the same one are one session, as in the
/// index.
fn scan(
    query: &Query,
    path: &Path,
    number: i64,
    sessions: &mut HashMap<(&'static str, String), i64>,
    found: &mut Vec<ShownHit>,
) -> Result<(), CommandError> {
    let passes = if query.depends_on_session() { Passes::Many } else { Passes::Once };
    let mut input = input::open(path, None, passes)?;
    let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = stem.split('.').next().unwrap_or_default().to_owned();
    let agent = input.format.info().agent;
    let progress = SourceProgress::over(&input.source, if passes == Passes::Many { 2 } else { 1 });
    let mut facts = ScannedSession::default();
    if passes == Passes::Many {
        input.read(&mut facts, &progress, |_| Flow::Continue)?;
    }
    let file_time = || jiff::Timestamp::try_from(std::fs::metadata(path).ok()?.modified().ok()?).ok();
    let mut scanner = Scanner {
        query,
        agent,
        name,
        projects: facts.projects,
        file_time: if facts.has_times { None } else { file_time().map(jiff::Timestamp::as_millisecond) },
        entry_builder: EntryBuilder::default().through(input.format),
        event: 0,
        number,
        session: None,
        found: Vec::new(),
    };
    input.read(&mut scanner, &progress, |_| Flow::Continue)?;
    let Scanner { found: more, name, session, .. } = scanner;
    let session_number = session.map_or(number, |session| *sessions.entry((agent, session)).or_insert(number));
    let row = SourceRow {
        format: input.format.info().name.to_owned(),
        ..SourceRow::new(path, stenograph::Registry::built_in())
    };
    let session = IndexedSession::bare(agent, &name, path);
    let mut addresses = EventAddresses::default();
    found.extend(more.into_iter().map(|(hit, seen)| ShownHit {
        session: Some(session.clone()),
        short: shortened(&name, NAME_LENGTH_MAX).into_owned(),
        is_named: false,
        source: Some(row.clone()),
        open: Some(addresses.by_path(path, hit.event)),
        hit: Hit { session: session_number, ..hit },
        read: Ok(seen),
    }));
    Ok(())
}

/// What a whole file says about its session.
#[derive(Default)]
struct ScannedSession {
    /// The working folders, and the names of their projects.
    projects: Vec<String>,
    has_times: bool,
}

impl Sink for ScannedSession {
    fn event(&mut self, event: &Event<'_>) {
        self.has_times |= event.time.as_ref().is_some_and(|time| time.instant().is_some());
        if let Some(cwd) = event.cwd.as_deref()
            && !self.projects.iter().any(|known| known == cwd)
        {
            self.projects.push(cwd.to_owned());
            self.projects.extend(Project::of(Path::new(cwd)).into_iter().flat_map(|project| project.names()));
        }
    }
}

struct Scanner<'q> {
    query: &'q Query,
    agent: &'static str,
    name: String,
    projects: Vec<String>,
    /// The time of the file, if no record states a time.
    file_time: Option<i64>,
    entry_builder: EntryBuilder,
    event: u64,
    number: i64,
    /// The first session that an event states.
    session: Option<String>,
    found: Vec<(Hit, HitContent)>,
}

impl Sink for Scanner<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.event;
        self.event += 1;
        if let Some(session) = event.session.as_deref().filter(|session| self.session.is_none() && !session.is_empty())
        {
            if number == 0 {
                session.clone_into(&mut self.name);
            }
            self.session = Some(session.to_owned());
        }
        let mut entry_builder = std::mem::take(&mut self.entry_builder);
        entry_builder.entries(event, &mut |event, entry| self.match_entry(number, event, entry));
        self.entry_builder = entry_builder;
    }
}

impl Scanner<'_> {
    fn match_entry(&mut self, number: u64, event: &Event<'_>, entry: &Entry<'_>) {
        let sessions = [self.name.clone()];
        let facts = SessionFacts {
            agent: self.agent,
            projects: &self.projects,
            sessions: &sessions,
            file_time: self.file_time,
            ..SessionFacts::default()
        };
        if !self.query.matches(entry, &facts) {
            return;
        }
        let hit = Hit {
            rank: 0,
            score: 0.0,
            source: self.number,
            session: self.number,
            version: None,
            event: number,
            at: event.at.unwrap_or_default(),
            part: event.part.index,
            time: entry.time,
            key: entry.key,
            twin: entry.twin,
            restates: entry.restates,
            is_covered: false,
            pieces: entry.piece_twins.clone(),
            tool: entry.tool.as_deref().map(str::to_owned),
            has_failed: entry.error,
            copies: 0,
        };
        self.found.push((hit, HitContent::of(entry, self.query, snippet_length(), None)));
    }
}
