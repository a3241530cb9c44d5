//! `steno mark`: pins, names, tags and annotates sessions, and lists what is marked. The store keeps the marks; `mark/view.rs`
//! formats them.

mod view;

use stenograph_store::archive::{EventKey, MarkChange, Marks};
use stenograph_store::index::catalogue::Catalogue;
use stenograph_store::index::{IndexProgress, RunObserver, Store};

use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json};
use crate::store::{ResolvedSession, SessionArgs, ShortNames};
use view::MarkView;

/// Pin, name, tag and annotate sessions
///
/// Marks belong to the session, not to its file: they stay when the file is moved, rewritten or deleted. The archive keeps them, so they
/// also survive a new index. Without a change, steno mark prints the marks of the sessions; without a session, it lists all marked
/// sessions.
///
/// steno list and steno find search marks: is:pinned, is:marked, tag:NAME and tag:BEGINNING*, and the words of titles and notes. A given
/// title replaces that of the agent wherever steno shows one. steno archive prune keeps pinned sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno mark latest --pin --tag api --tag todo
  steno mark 0198f2c4 --title 'The migration that worked'
  steno mark 0198f2c4 --note 'the cause is here' --event 120
  steno mark 0198f2c4                          print its marks
  steno mark                                   list all marked sessions
  steno list is:pinned
  steno find 'tag:api timeout'

Exit codes: 0 success, 1 nothing is marked, 2 error")]
pub struct Options {
    /// Sessions (id prefix, latest or path)
    #[arg(value_name = "SESSION", add = crate::completion::transcript())]
    sessions: Vec<String>,
    /// Pin the session
    #[arg(long, requires = "sessions")]
    pin: bool,
    /// Unpin it
    #[arg(long, requires = "sessions", conflicts_with = "pin")]
    unpin: bool,
    /// Give it this title
    #[arg(long, value_name = "TEXT", requires = "sessions")]
    title: Option<String>,
    /// Remove the given title; the agent's title returns
    #[arg(long, requires = "sessions", conflicts_with = "title")]
    no_title: bool,
    /// Add a tag (repeat for several)
    #[arg(long, value_name = "TAG", requires = "sessions", add = crate::completion::tag())]
    tag: Vec<String>,
    /// Remove a tag (repeat for several)
    #[arg(long, value_name = "TAG", requires = "sessions", add = crate::completion::tag())]
    untag: Vec<String>,
    /// Add a note
    #[arg(long, value_name = "TEXT", requires = "sessions")]
    note: Option<String>,
    /// With --note: the note is about this event, by its number from steno show or steno find
    #[arg(long, value_name = "N", requires = "note", value_parser = clap::value_parser!(u64).range(1..))]
    event: Option<u64>,
    /// Remove the note with this number (repeat for several)
    #[arg(long, value_name = "N", requires = "sessions")]
    remove_note: Vec<u32>,
    #[command(flatten)]
    place: SessionArgs,
    /// Print one JSON object per session
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let store = options.place.store()?;
    if options.sessions.is_empty() {
        return list(options, &store, output);
    }
    let mut sessions = Vec::with_capacity(options.sessions.len());
    for name in &options.sessions {
        let resolved = options.place.session(name)?;
        if !sessions.iter().any(|known: &ResolvedSession| known.session.id == resolved.session.id) {
            sessions.push(resolved);
        }
    }
    let changes = changes(options, &store, &sessions)?;
    if !changes.is_empty() {
        let changes: Vec<_> = sessions.iter().map(|resolved| (resolved.session.id, changes.clone())).collect();
        store.mark(&changes, clock::millis(), &mut WaitMessage { output })?;
    }
    let catalogue = store.catalogue()?;
    let view = MarkView { store: &store, shorts: ShortNames::of(&catalogue)?, catalogue: &catalogue };
    let mut status = ExitStatus::Done;
    for resolved in &sessions {
        let Some(session) = catalogue.session(resolved.session.id)? else { continue };
        if options.json {
            output.line(&harmless_json(&view.json(&session)?))?;
        } else {
            let text = view.text(&session, output.colour())?;
            output.line(&text)?;
        }
        if changes.is_empty() && session.marks.is_empty() {
            status = ExitStatus::No;
        }
    }
    Ok(status)
}

/// The changes that the options ask for.
fn changes(options: &Options, store: &Store, sessions: &[ResolvedSession]) -> Result<Vec<MarkChange>, CommandError> {
    let is_of_one = options.title.is_some() || options.event.is_some() || !options.remove_note.is_empty();
    if is_of_one && sessions.len() > 1 {
        return Err(CommandError::new("--title, --event and --remove-note take one session")
            .hint("name one session; --pin, --tag and --note without --event take several"));
    }
    let event = match (options.event, sessions.first()) {
        (Some(number), Some(session)) => Some(event_key(store, session, number)?),
        _ => None,
    };
    let mut changes = Vec::new();
    changes.extend(options.pin.then_some(MarkChange::Pin));
    changes.extend(options.unpin.then_some(MarkChange::Unpin));
    changes.extend(options.title.clone().map(MarkChange::Title));
    changes.extend(options.no_title.then_some(MarkChange::NoTitle));
    // Removals first, so that they make room.
    changes.extend(options.untag.iter().cloned().map(MarkChange::Untag));
    changes.extend(options.tag.iter().cloned().map(MarkChange::Tag));
    changes.extend(options.remove_note.iter().copied().map(MarkChange::RemoveNote));
    changes.extend(options.note.clone().map(|text| MarkChange::Note { text, event }));
    Ok(changes)
}

/// The key of the event that `steno show` shows under a number.
fn event_key(store: &Store, session: &ResolvedSession, number: u64) -> Result<EventKey, CommandError> {
    let searcher = store.searcher()?;
    for (source, event) in session.events_numbered(number) {
        if let Some(key) = searcher.event_key(source, event)? {
            return Ok(key);
        }
    }
    Err(CommandError::new(format!("{}: event {number} is not in the index", session.session.name)).hint(
        "check the number with steno show; run steno index if the event is new; an event without text cannot have a note",
    ))
}

fn list(options: &Options, store: &Store, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let catalogue = store.catalogue()?;
    let inside = options.place.root().map(|root| catalogue.sessions_below(&root)).transpose()?;
    let view = MarkView { store, shorts: ShortNames::of(&catalogue)?, catalogue: &catalogue };
    let mut sessions = Vec::new();
    for id in catalogue.marks()?.into_keys().filter(|id| inside.as_ref().is_none_or(|inside| inside.contains(id))) {
        sessions.extend(catalogue.session(id)?);
    }
    if let Some(query) = crate::filter::query_of(&[("project", options.place.project())], "")? {
        sessions.retain(|session| stenograph_store::sessions::matches_session(&query, session));
    }
    sessions.sort_by_key(|session| std::cmp::Reverse((session.marks.pinned, session.ended, session.id)));
    let is_limited = inside.is_some() || options.place.project().is_some();
    let unknown = if is_limited { Vec::new() } else { unknown(store, &catalogue)? };
    if sessions.is_empty() && unknown.is_empty() {
        return Err(CommandError::not_found("no sessions are marked").hint("mark one: steno mark latest --pin"));
    }
    if options.json {
        for session in &sessions {
            output.line(&harmless_json(&view.json(session)?))?;
        }
        for (name, marks) in &unknown {
            output.line(&harmless_json(&view::unknown_json(name, marks)))?;
        }
        return Ok(ExitStatus::Done);
    }
    output.page();
    for line in view.table(&sessions, output.colour()) {
        output.line(&line)?;
    }
    if !unknown.is_empty() {
        let count = counted(unknown.len() as u64, "marked session");
        let names: Vec<&str> = unknown.iter().take(UNKNOWN_MAX).map(|(name, _)| name.as_str()).collect();
        output.say(&format!("{count} not in the index, marks kept: {}", names.join(", ")));
    }
    Ok(ExitStatus::Done)
}

/// How many marked sessions that are not in the index are named.
const UNKNOWN_MAX: usize = 8;

/// Marked sessions that the index does not know, with their names.
fn unknown(store: &Store, catalogue: &Catalogue) -> Result<Vec<(String, Marks)>, CommandError> {
    let marked = store.marked_sessions(catalogue)?;
    let unknown = marked.into_iter().filter(|marked| marked.session.is_none());
    Ok(unknown.map(|marked| (marked.key.name, marked.marks)).collect())
}

/// Says that another process writes to the index.
struct WaitMessage<'w, 'o> {
    output: &'w mut Output<'o>,
}

impl RunObserver for WaitMessage<'_, '_> {
    fn progress(&mut self, _progress: &IndexProgress) {}

    fn is_stopped(&self) -> bool {
        false
    }

    fn waiting_for_lock(&mut self, holder: Option<u32>) {
        let process = holder.map_or_else(|| "another process".to_owned(), |holder| format!("process {holder}"));
        self.output.say(&format!("waiting for {process}, which is writing to the index"));
    }
}
