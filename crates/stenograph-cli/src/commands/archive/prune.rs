//! `steno archive prune`: removes archived sessions. It never touches an agent's file; without --force it removes only what it
//! has just read, byte for byte, in the agent's own file. This file selects sessions; `prune/verdict.rs` decides which of them
//! may go.

mod verdict;

use stenograph::json::Draft;
use stenograph_store::archive::{Archive, CopyId, Marks};
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SourceRow};
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, Store, remove};

use super::super::list::narrow;
use super::{CopiesBySession, archive, archive_writer, print_warnings};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::filter::parse_query;
use crate::output::{Output, counted, harmless_json, harmless_line, shortened, size};
use crate::progress::SourceProgress;
use crate::store::{self, StoreArgs};
use crate::table::{self, Align};
use stenograph_store::sessions::ShortNames;
use verdict::{PruneDecision, decide};

/// Remove sessions from the archive and the index
///
/// Removes sessions from the archive and the index, oldest first, and frees their space. It never changes or deletes the
/// agents' own files. Pruned sessions no longer appear in steno list, steno find and steno usage, and steno index does not add
/// them again; steno archive unforget reverses that.
///
/// steno prunes a session only if the agent's own files still contain every archived byte of it. For each session that it
/// keeps, it prints the reason. --force also prunes sessions whose only copy is in the archive. Pinned sessions stay until
/// steno mark --unpin unpins them. The marks of a pruned session are removed too.
///
/// QUERY and --older-than select sessions. With --max-size or --max-count, steno removes the oldest of them until the sessions
/// that QUERY selects are within the limit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive prune --older-than 90d --dry-run        only list them
  steno archive prune --older-than 90d
  steno archive prune project:scratch --force           even the only copy
  steno archive prune --max-size 2GB --max-count 5000
  steno archive unforget SESSION                        allow it again

Exit codes: 0 success, 1 nothing to prune, 2 error")]
pub struct Options {
    /// Prune only sessions that match this query, as for steno list
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    place: StoreArgs,
    /// Prune only sessions without events for this long (90d, 12w)
    #[arg(long, value_name = "DURATION", value_parser = span)]
    older_than: Option<i64>,
    /// Keep at most this much, in bytes of the original files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Keep at most N sessions
    #[arg(long, value_name = "N")]
    max_count: Option<u64>,
    /// List the sessions without removing anything
    #[arg(long)]
    dry_run: bool,
    /// Also remove sessions whose only copy is in the archive
    #[arg(long)]
    force: bool,
    /// Print one JSON object per session, and a summary object at the end
    #[arg(long)]
    json: bool,
}

fn span(text: &str) -> Result<i64, String> {
    clock::duration_seconds(text).ok_or_else(|| "expected an age such as 24h, 90d, 3mo or 1y".to_owned())
}

/// A session that may be removed.
struct Candidate {
    session: IndexedSession,
    rows: Vec<SourceRow>,
    copies: Vec<stenograph_store::archive::CopyInfo>,
    /// The time of the last event.
    last_ms: i64,
    bytes: u64,
}

/// The decisions, with totals.
struct Decisions {
    goes: Vec<Candidate>,
    stays: Vec<(Candidate, String)>,
    bytes: u64,
    room: u64,
}

/// The memory limit for removing sessions from the index.
const MEMORY: usize = 256 << 20;

/// The maximum length of a title.
const TITLE_LENGTH_MAX: usize = 60;

/// How many of the sessions that stay are listed.
const STAYS_MAX: usize = 50;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let text = options.query.join(" ");
    let has_limit = options.max_size.is_some() || options.max_count.is_some();
    if text.trim().is_empty() && options.older_than.is_none() && !has_limit {
        return Err(CommandError::new("say what to prune")
            .hint("give a query, --older-than 90d, --max-size 2GB or --max-count N; try it with --dry-run"));
    }
    let store = options.place.store()?;
    let catalogue = store.catalogue()?;
    // Other writers of the archive wait until this run is done.
    let writer = if options.dry_run { None } else { Some(archive_writer(&store)?) };
    let archive = archive(&store)?;
    let candidates =
        candidates(options, &text, &store, &catalogue, &CopiesBySession::new(&archive, &catalogue)?, output)?;
    let mut decisions = decide_each(options, &archive, candidates);
    if decisions.goes.is_empty() && decisions.stays.is_empty() {
        return Err(CommandError::not_found("no sessions to prune").hint("list sessions with steno list"));
    }
    let copies: Vec<CopyId> =
        decisions.goes.iter().flat_map(|candidate| &candidate.copies).map(|copy| copy.id).collect();
    decisions.bytes = decisions.goes.iter().map(|candidate| candidate.bytes).sum();
    decisions.room = archive.freed_bytes(&copies);
    report_sessions(options, &decisions, &ShortNames::of(&catalogue)?, output)?;
    let marked = store.marked_sessions(&catalogue)?;
    let before = archive.size().stored;
    let mut after = before;
    if let Some(mut writer) = writer.filter(|_| !decisions.goes.is_empty()) {
        // The archive records what is forgotten before anything is removed.
        writer.forget(&copies, "pruned")?;
        for candidate in &decisions.goes {
            for marked in marked.iter().filter(|marked| marked.session == Some(candidate.session.id)) {
                writer.set_marks(&marked.key, &Marks::default())?;
            }
        }
        writer.commit(clock::millis())?;
        drop(catalogue);
        unindex(options, &store, &decisions)?;
        let reclaimed = writer.reclaim(clock::millis())?;
        print_warnings(&reclaimed.warnings, output);
        after = super::archive(&store)?.size().stored;
    }
    report_totals(options, &decisions, before.saturating_sub(after), output)?;
    Ok(if decisions.goes.is_empty() { ExitStatus::No } else { ExitStatus::Done })
}

/// The sessions that match the query, the oldest first.
fn candidates(
    options: &Options,
    text: &str,
    store: &Store,
    catalogue: &Catalogue,
    copies_by_session: &CopiesBySession,
    output: &mut Output<'_>,
) -> Result<Vec<Candidate>, CommandError> {
    let mut sessions = catalogue.sessions()?;
    if let Some(root) = options.place.root() {
        let inside = catalogue.sessions_below(&root)?;
        sessions.retain(|session| inside.contains(&session.id));
    }
    if !text.trim().is_empty() {
        narrow(&mut sessions, store, &parse_query(text)?, output)?;
    }
    let mut candidates = Vec::with_capacity(sessions.len());
    for session in sessions {
        let rows = catalogue.sources_of(session.id)?;
        let copies_of_session = copies_by_session.of(&session, &rows);
        let copies: Vec<_> = copies_of_session.own.into_iter().chain(copies_of_session.others).collect();
        let last_ms = session.ended.unwrap_or(0);
        let bytes = copies.iter().map(|copy| copy.length).sum();
        candidates.push(Candidate { session, rows, copies, last_ms, bytes });
    }
    candidates.sort_by_key(|candidate| (candidate.last_ms, candidate.session.id));
    Ok(candidates)
}

/// Decides about one candidate after the other, the oldest first, until what is left is within the limits. A session that stays is left,
/// so it counts; a session without a copy takes no place in the archive, so it does not.
fn decide_each(options: &Options, archive: &Archive, mut candidates: Vec<Candidate>) -> Decisions {
    let mut bytes: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    let mut count = candidates.iter().filter(|candidate| !candidate.copies.is_empty()).count() as u64;
    let has_limit = options.max_size.is_some() || options.max_count.is_some();
    if let Some(seconds) = options.older_than {
        let until_ms = clock::millis().saturating_sub(seconds.saturating_mul(1000));
        candidates.truncate(candidates.partition_point(|candidate| candidate.last_ms < until_ms));
    }
    let bar = SourceProgress::rate("comparing", candidates.iter().map(|candidate| candidate.bytes).sum());
    let mut decisions = Decisions { goes: Vec::new(), stays: Vec::new(), bytes: 0, room: 0 };
    let mut done = 0;
    for candidate in candidates {
        let is_too_much =
            options.max_size.is_some_and(|most| bytes > most) || options.max_count.is_some_and(|most| count > most);
        if has_limit && !is_too_much {
            break;
        }
        done += candidate.bytes;
        match decide(archive, &candidate, options.force.into()) {
            PruneDecision::Goes => {
                bytes -= candidate.bytes;
                count -= u64::from(!candidate.copies.is_empty());
                decisions.goes.push(candidate);
            }
            PruneDecision::Stays(why) => decisions.stays.push((candidate, why)),
        }
        bar.at(done);
    }
    decisions
}

/// Removes the sources from the index.
fn unindex(options: &Options, store: &Store, decisions: &Decisions) -> Result<(), CommandError> {
    let sources: Vec<_> = decisions.goes.iter().flat_map(|candidate| &candidate.rows).map(|row| row.id).collect();
    let places = options.place.places(store)?;
    let (scope, archiving, now) = (IndexScope::All, Archiving::No, clock::nanoseconds());
    Ok(remove(store, &sources, &IndexPlan { places: &places, scope, archiving, memory: MEMORY, threads: 1, now })?)
}

const HEADINGS: [(&str, Align); 5] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("LAST", Align::Right),
    ("ARCHIVED", Align::Right),
    ("TITLE", Align::Left),
];

fn report_sessions(
    options: &Options,
    decisions: &Decisions,
    short_names: &ShortNames,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    if options.json {
        for candidate in &decisions.goes {
            output.line(&harmless_json(&json(candidate, None)))?;
        }
        for (candidate, why) in &decisions.stays {
            output.line(&harmless_json(&json(candidate, Some(why))))?;
        }
        return Ok(());
    }
    let now = clock::millis();
    let cells = |candidate: &Candidate| {
        let session = &candidate.session;
        let title = session.about();
        [
            harmless_line(&short_names.name(session)),
            harmless_line(&session.agent),
            table::ago(now - candidate.last_ms),
            store::bytes(candidate.bytes),
            shortened(&harmless_line(&title), TITLE_LENGTH_MAX).into_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = decisions.goes.iter().map(cells).collect();
    if !rows.is_empty() {
        for line in table::lines(HEADINGS, &rows, table::screen_width()) {
            output.line(&line)?;
        }
    }
    for (candidate, why) in decisions.stays.iter().take(STAYS_MAX) {
        let (short, why) = (harmless_line(&short_names.name(&candidate.session)), harmless_line(why));
        output.say(&format!("kept: {short}: {why}"));
    }
    if decisions.stays.len() > STAYS_MAX {
        output.say(&format!("kept: {} more; list all with --json", decisions.stays.len() - STAYS_MAX));
    }
    Ok(())
}

/// Reports the totals.
fn report_totals(
    options: &Options,
    decisions: &Decisions,
    freed: u64,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let Decisions { goes, stays, bytes, room } = decisions;
    if options.json {
        let mut draft = Draft::new();
        draft.set("dry_run", options.dry_run.to_string());
        draft.set_number("goes", Some(goes.len() as u64));
        draft.set_number("stays", Some(stays.len() as u64));
        draft.set_number("bytes", Some(*bytes));
        draft.set_number("room", Some(*room));
        draft.set_number("freed", Some(freed));
        return output.line(&harmless_json(&draft.render(None)));
    }
    let (count, bytes, room) = (counted(goes.len() as u64, "session"), store::bytes(*bytes), store::bytes(*room));
    let verb = if options.dry_run { "would be pruned" } else { "pruned" };
    output.say(&format!("{count} {verb}: {bytes} of transcripts, about {room} in the archive"));
    if !options.dry_run && freed < decisions.room {
        let freed = store::bytes(freed);
        output.say(&format!("{freed} freed now; the rest is freed when more than half of its pack is unused"));
    }
    if !stays.is_empty() {
        let is_pinned = stays.iter().all(|(candidate, _)| candidate.session.marks.pinned);
        let hint = if is_pinned { "" } else { "; --force also removes the only copy" };
        output.say(&format!("{} kept{hint}", counted(stays.len() as u64, "session")));
    }
    Ok(())
}

fn json(candidate: &Candidate, why: Option<&str>) -> String {
    let mut draft = Draft::new();
    draft.set_str("session", &candidate.session.name);
    draft.set_str("agent", &candidate.session.agent);
    draft.set_str("path", &candidate.session.path.display().to_string());
    draft.set_opt("last", clock::iso(Some(candidate.last_ms)).as_deref());
    draft.set_number("copies", Some(candidate.copies.len() as u64));
    draft.set_number("bytes", Some(candidate.bytes));
    draft.set("goes", why.is_none().to_string());
    draft.set_opt("why", why);
    draft.render(None)
}
