//! `steno archive prune`: lets go of kept sessions. It never touches a file of an agent's; unless forced it lets go only of what was just
//! read, byte for byte, in the agent's own file. What is chosen is decided here, what may go in `prune/verdict.rs`.

mod verdict;

use stenograph::json::Draft;
use stenograph_store::archive::CopyId;
use stenograph_store::index::catalogue::{Catalogue, Session, SourceRow};
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, Store, remove};

use super::super::find::parsed;
use super::super::list::narrow;
use super::{Shelf, archive, archive_writer, tell_remarks};
use crate::clock;
use crate::error::{CommandError, Status};
use crate::output::{Output, counted, harmless_json, harmless_line, shortened, size};
use crate::progress::Progress;
use crate::store::{self, Shorts, Where};
use crate::table::{self, Side};
use verdict::{Verdict, verdict};

/// Forget kept sessions, the oldest first
///
/// Takes sessions out of the archive and the index and gives their room back. The archive's log remembers that they were forgotten, so that
/// they do not come back when they are found again; steno archive unforget takes that back. The files of agents are never touched.
///
/// A session goes only if everything that is kept of it was just read in the agent's own files, byte for byte; for each that stays it is
/// said why. With --force the only copy goes too.
///
/// QUERY and --older-than say which sessions may go. With --max-size or --max-count only as many of them go, the oldest first, as it
/// takes for what QUERY names to come down to that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive prune --older-than 90d --dry-run        what would go, and how much room that gives
  steno archive prune --older-than 90d
  steno archive prune project:scratch --force           even where it is the only copy
  steno archive prune --max-size 2GB --max-count 5000
  steno archive unforget SESSION                     let one come back

Exit codes: 0 done, 1 nothing goes, 2 error")]
pub struct Options {
    /// Only sessions that are so, or in which this is found, as for steno list
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// Only sessions in which nothing happened for so long (90d, 12w)
    #[arg(long, value_name = "TIME", value_parser = span)]
    older_than: Option<i64>,
    /// Leave so much at most, counted as agents wrote it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Leave so many sessions at most
    #[arg(long, value_name = "N")]
    max_count: Option<u64>,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// Let go of the only copy too
    #[arg(long)]
    force: bool,
    /// Print one JSON object a session, and one at the end
    #[arg(long)]
    json: bool,
}

fn span(text: &str) -> Result<i64, String> {
    clock::span_seconds(text).ok_or_else(|| "not a stretch of time; write 90d, 12w or 24h".to_owned())
}

/// A session that may be let go of.
struct Candidate {
    session: Session,
    rows: Vec<SourceRow>,
    copies: Vec<stenograph_store::archive::CopyInfo>,
    /// When something happened last.
    last_ms: i64,
    bytes: u64,
}

/// What was decided, and what it comes to.
struct Decided {
    goes: Vec<Candidate>,
    stays: Vec<(Candidate, String)>,
    bytes: u64,
    room: u64,
}

/// How much memory taking sessions out of the index may use.
const MEMORY: usize = 256 << 20;

/// How much of a title is shown.
const TITLE_LENGTH_MAX: usize = 60;

/// How many sessions that stay are told of one by one.
const STAYS_MAX: usize = 50;

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let text = options.query.join(" ");
    let has_limit = options.max_size.is_some() || options.max_count.is_some();
    if text.trim().is_empty() && options.older_than.is_none() && !has_limit {
        return Err(CommandError::new("it is not said what shall go")
            .hint("give a query, --older-than 90d, --max-size 2GB or --max-count N; --dry-run only looks"));
    }
    let store = options.place.store()?;
    let catalogue = store.catalogue()?;
    // Who writes to the archive waits until what is decided here is done.
    let writer = if options.dry_run { None } else { Some(archive_writer(&store)?) };
    let archive = archive(&store)?;
    let candidates = candidates(options, &text, &store, &catalogue, &Shelf::new(&archive, &catalogue)?, output)?;
    let chosen = chosen(options, candidates);
    if chosen.is_empty() {
        return Err(
            CommandError::nothing("no session is to go").hint("steno list shows the sessions, the newest first")
        );
    }
    let bar = Progress::rate("comparing", chosen.iter().map(|candidate| candidate.bytes).sum());
    let mut decided = Decided { goes: Vec::new(), stays: Vec::new(), bytes: 0, room: 0 };
    let mut done = 0;
    for candidate in chosen {
        done += candidate.bytes;
        match verdict(&archive, &candidate, options.force.into()) {
            Verdict::Goes => decided.goes.push(candidate),
            Verdict::Stays(why) => decided.stays.push((candidate, why)),
        }
        bar.at(done);
    }
    drop(bar);
    let copies: Vec<CopyId> = decided.goes.iter().flat_map(|candidate| &candidate.copies).map(|copy| copy.id).collect();
    decided.bytes = decided.goes.iter().map(|candidate| candidate.bytes).sum();
    decided.room = archive.freed_bytes(&copies);
    tell(options, &decided, &Shorts::of(&catalogue)?, output)?;
    let before = archive.size().stored;
    let mut after = before;
    if let Some(mut writer) = writer.filter(|_| !decided.goes.is_empty()) {
        // What must not come back is known before anything is taken away.
        writer.forget(&copies, "pruned")?;
        writer.commit(clock::millis())?;
        drop(catalogue);
        unindex(options, &store, &decided)?;
        let reclaimed = writer.reclaim(clock::millis())?;
        tell_remarks(&reclaimed.warnings, output);
        after = super::archive(&store)?.size().stored;
    }
    end(options, &decided, before.saturating_sub(after), output)?;
    Ok(if decided.goes.is_empty() { Status::No } else { Status::Done })
}

/// The sessions that the query names, the oldest first.
fn candidates(
    options: &Options,
    text: &str,
    store: &Store,
    catalogue: &Catalogue,
    shelf: &Shelf,
    output: &mut Output<'_>,
) -> Result<Vec<Candidate>, CommandError> {
    let mut sessions = catalogue.sessions()?;
    if let Some(root) = options.place.root() {
        let inside = catalogue.sessions_below(&root)?;
        sessions.retain(|session| inside.contains(&session.id));
    }
    if !text.trim().is_empty() {
        narrow(&mut sessions, store, &parsed(text)?, output)?;
    }
    let mut candidates = Vec::with_capacity(sessions.len());
    for session in sessions {
        let rows = catalogue.sources_of(session.id)?;
        let held = shelf.of(&session, &rows);
        let copies: Vec<_> = held.own.into_iter().chain(held.others).collect();
        // Where no event has a time, its file has.
        let changed = rows.iter().map(|row| row.stamp.changed / 1_000_000).max().unwrap_or(0);
        let last_ms = session.ended.unwrap_or(changed);
        let bytes = copies.iter().map(|copy| copy.length).sum();
        candidates.push(Candidate { session, rows, copies, last_ms, bytes });
    }
    candidates.sort_by_key(|candidate| (candidate.last_ms, candidate.session.id));
    Ok(candidates)
}

/// Those of them that are to go.
fn chosen(options: &Options, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut bytes: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    let mut count = candidates.len() as u64;
    let has_limit = options.max_size.is_some() || options.max_count.is_some();
    let until_ms = options.older_than.map(|seconds| clock::millis().saturating_sub(seconds.saturating_mul(1000)));
    let mut chosen = Vec::new();
    for candidate in candidates {
        let is_too_much =
            options.max_size.is_some_and(|most| bytes > most) || options.max_count.is_some_and(|most| count > most);
        if (has_limit && !is_too_much) || until_ms.is_some_and(|until| candidate.last_ms >= until) {
            break;
        }
        bytes -= candidate.bytes;
        count -= 1;
        chosen.push(candidate);
    }
    chosen
}

/// Takes the sources out of the index.
fn unindex(options: &Options, store: &Store, decided: &Decided) -> Result<(), CommandError> {
    let sources: Vec<_> = decided.goes.iter().flat_map(|candidate| &candidate.rows).map(|row| row.id).collect();
    let places = options.place.places(store)?;
    let (scope, archiving, now) = (IndexScope::All, Archiving::No, clock::nanoseconds());
    Ok(remove(store, &sources, &IndexPlan { places: &places, scope, archiving, memory: MEMORY, threads: 1, now })?)
}

const HEADINGS: [(&str, Side); 5] = [
    ("SESSION", Side::Left),
    ("AGENT", Side::Left),
    ("LAST", Side::Right),
    ("KEPT", Side::Right),
    ("TITLE", Side::Left),
];

fn tell(options: &Options, decided: &Decided, shorts: &Shorts, output: &mut Output<'_>) -> Result<(), CommandError> {
    if options.json {
        for candidate in &decided.goes {
            output.line(&harmless_json(&json(candidate, None)))?;
        }
        for (candidate, why) in &decided.stays {
            output.line(&harmless_json(&json(candidate, Some(why))))?;
        }
        return Ok(());
    }
    let now = clock::millis();
    let cells = |candidate: &Candidate| {
        let session = &candidate.session;
        let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or_default();
        [
            harmless_line(&shorts.name(session)),
            harmless_line(&session.agent),
            table::ago(now - candidate.last_ms),
            store::bytes(candidate.bytes),
            shortened(&harmless_line(title), TITLE_LENGTH_MAX).into_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = decided.goes.iter().map(cells).collect();
    if !rows.is_empty() {
        for line in table::lines(HEADINGS, &rows, table::screen_width()) {
            output.line(&line)?;
        }
    }
    for (candidate, why) in decided.stays.iter().take(STAYS_MAX) {
        let (short, why) = (harmless_line(&shorts.name(&candidate.session)), harmless_line(why));
        output.say(&format!("stays: {short}: {why}"));
    }
    if decided.stays.len() > STAYS_MAX {
        output.say(&format!("stays: and {} more; --json names all", decided.stays.len() - STAYS_MAX));
    }
    Ok(())
}

/// What it came to.
fn end(options: &Options, decided: &Decided, freed: u64, output: &mut Output<'_>) -> Result<(), CommandError> {
    let Decided { goes, stays, bytes, room } = decided;
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
    let verb = if options.dry_run { "would go" } else { "went" };
    output.say(&format!("{count} {verb}: {bytes} as agents wrote it, about {room} in the archive"));
    if !options.dry_run && freed < decided.room {
        let freed = store::bytes(freed);
        output.say(&format!("{freed} is given back now, the rest when more than half of its pack is not needed"));
    }
    if !stays.is_empty() {
        output.say(&format!(
            "{} stays or stay; --force lets go of the only copy too",
            counted(stays.len() as u64, "session")
        ));
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
