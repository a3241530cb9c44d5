//! `steno audit`: reports what a session did. The library computes the audit; this file selects sessions and the exit code.
//! `audit/view.rs` and `audit/run_parts.rs` format it.

mod cost;
mod diff;
mod explain;
mod merge;
mod read;
mod run_parts;
mod total;
mod view;

use std::path::Path;

use clap::builder::PossibleValuesParser;
use stenograph::audit::{AuditPart, Parts};
use stenograph::json::Draft;
use stenograph_store::databases;
use stenograph_store::index::search::{Order, SearchRequest};

use crate::error::{CommandError, ExitStatus};
use crate::filter::{parse_query, query_of};
use crate::output::{Output, counted, harmless_json};
use crate::store::{ResolvedName, SessionArgs};
use read::Audited;
use total::AuditTotal;

/// Report what a session did
///
/// Reports the tools and their outcomes, the files that were created, changed, deleted and read, the commands with their exit
/// codes, the last message, errors and recoveries, approvals and denials, sub-agents, open to-dos, stuck phases, compactions,
/// the size of the context, and the tokens with their cost. Repeated records count once. steno does not interpret commands, so
/// it does not know which files a command changed.
///
/// Name a file, or a session that steno index has found; sub-agents in files beside it are included. With --query, steno reports
/// every session that matches. A name that looks like a query (tool:bash, or several words in quotes) is taken as one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno audit session.jsonl
  steno audit latest --only failure                why it failed
  steno audit 0198f2c4 --only files                a session by its id
  steno audit 0198f2c4 0198f2c7                    two sessions
  steno audit 'tool:bash since:7d \"rm -rf\"'        every session that matches
  steno audit --query migration                    every session that mentions it
  steno audit latest --json | jq '.commands[] | select(.outcome == \"failed\")'
  steno audit latest --only last > answer.md
  steno audit latest --only failure --explain      with the deciding record
  steno audit latest --diff                        the changes to files
  steno audit 0198f2c4 --diff | git apply --reverse --check

Exit codes: 0 success, 1 nothing to report (with --only failure: it did not
            fail), 2 error")]
pub struct Options {
    /// A file, a recording folder, a session (id prefix or latest), or a query as for steno find; - is standard input
    #[arg(value_name = "SESSION|FILE|QUERY", required_unless_present = "query", add = crate::completion::transcript())]
    what: Vec<String>,
    /// Report every session that matches this query
    #[arg(long, value_name = "QUERY", conflicts_with = "what")]
    query: Option<String>,
    #[command(flatten)]
    place: SessionArgs,
    /// Report only this part, in full
    #[arg(long, value_name = "PART", value_parser = part_name())]
    only: Option<String>,
    /// Print the net change of each file as a diff, and changes that the recorded calls do not show
    #[arg(long, conflicts_with = "only")]
    diff: bool,
    /// Print the rule and the record behind each outcome: failed, denied and interrupted calls, errors, stuck phases, the state
    #[arg(long, conflicts_with = "diff")]
    explain: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Print one JSON object per session, with all fields
    #[arg(long)]
    json: bool,
}

fn part_name() -> PossibleValuesParser {
    PossibleValuesParser::new(AuditPart::ALL.map(AuditPart::name))
}

/// The limits of hits that are searched for sessions, and of sessions that are reported.
const HITS_MAX: usize = 100_000;
const SESSIONS_MAX: usize = 1000;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if let Some(all) = several(options)? {
        return report_several(options, &all, output);
    }
    if let Some(text) = &options.query {
        return query(options, text, output);
    }
    if let [one] = options.what.as_slice() {
        match options.place.resolve(Path::new(one)) {
            Ok(ResolvedName::File(path)) if !is_query(&path) => {
                return options.report(&read::file(options, &path, output)?, output);
            }
            Ok(ResolvedName::Session(chosen)) => {
                return options.report(&read::session(options, &chosen, output)?, output);
            }
            Ok(ResolvedName::File(_)) => {}
            Err(error @ CommandError::NotFound { .. }) if !is_query(Path::new(one)) => {
                return Err(or_query(error, one));
            }
            Err(CommandError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if !options.what.iter().any(|word| is_query(Path::new(word))) {
        // The word that names nothing.
        for word in &options.what {
            options.place.resolve(Path::new(word)).map_err(|error| or_query(error, &options.what.join(" ")))?;
        }
    }
    query(options, &options.what.join(" "), output)
}

/// The error for an unknown name. A query would report sessions that the user did not name.
fn or_query(error: CommandError, words: &str) -> CommandError {
    error.hint(format!("report all sessions that mention it with steno audit --query '{words}'"))
}

/// Whether a name that looks like a path is a query: no such file exists, and it has the syntax of a query.
fn is_query(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_there = text == "-" || databases::is_there(path);
    // One letter before a colon is the drive of a path.
    !is_there && (text.contains([' ', '"']) || text.find(':').is_some_and(|at| at > 1))
}

/// The files and sessions, if every word names one; a query of several words has words that name none.
fn several(options: &Options) -> Result<Option<Vec<ResolvedName>>, CommandError> {
    /// A shorter word may be the prefix of an id by chance.
    const NAME_LENGTH_MIN: usize = 4;
    if options.what.len() < 2 {
        return Ok(None);
    }
    let mut all = Vec::new();
    for name in &options.what {
        match options.place.resolve(Path::new(name)) {
            Ok(ResolvedName::File(path)) if databases::is_there(&path) => all.push(ResolvedName::File(path)),
            Ok(ResolvedName::Session(chosen)) if name.len() >= NAME_LENGTH_MIN => {
                all.push(ResolvedName::Session(chosen));
            }
            Ok(_) | Err(CommandError::NotFound { .. }) => return Ok(None),
            Err(error) if all.is_empty() => {
                // Without an index there is nothing to query either; with one, this is a word of a query.
                return if options.place.store()?.catalogue().is_err() { Err(error) } else { Ok(None) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(all))
}

/// Reports several files and sessions, each under its name, and their total.
fn report_several(
    options: &Options,
    all: &[ResolvedName],
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let mut reports = SeveralReports::new();
    for name in all {
        let audited = match name {
            ResolvedName::File(path) => read::file(options, path, output),
            ResolvedName::Session(chosen) => read::session(options, chosen, output),
        };
        reports.add(options, audited, output)?;
    }
    reports.end(options, output)
}

/// Reports several sessions, one after the other.
struct SeveralReports {
    total: AuditTotal,
    status: ExitStatus,
}

impl SeveralReports {
    fn new() -> SeveralReports {
        SeveralReports { total: AuditTotal::default(), status: ExitStatus::Done }
    }

    /// Reports the next session. One that cannot be read does not stop the rest.
    fn add(
        &mut self,
        options: &Options,
        audited: Result<Audited, CommandError>,
        output: &mut Output<'_>,
    ) -> Result<(), CommandError> {
        match audited {
            Ok(audited) => {
                if self.total.sessions > 0 && !options.json {
                    output.line("")?;
                }
                // A part alone does not name its session. A diff is for programs, and names its files.
                if options.only.is_some() && !options.json {
                    let name = view::name(&audited, output.colour());
                    output.line(&name)?;
                }
                options.report(&audited, output)?;
                self.total.add(&audited);
            }
            Err(error) => {
                output.error(&error);
                self.status = self.status.max(error.status());
            }
        }
        Ok(())
    }

    /// Reports the total.
    fn end(self, options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        match options.json {
            true => output.line(&harmless_json(&self.total.json()))?,
            false => output.line(&format!("\n{}", self.total.line()))?,
        }
        Ok(self.status)
    }
}

/// Reports every session that a query matches, and their total.
fn query(options: &Options, text: &str, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    parse_query(text)?;
    let Some(query) = query_of(&[("project", options.place.project())], text)? else { return Ok(ExitStatus::No) };
    let store = options.place.store()?;
    let mut searcher = store.searcher()?;
    let root = options.place.root();
    let request =
        SearchRequest { query: &query, order: Order::Newest, offset: 0, limit: HITS_MAX, within: root.as_deref() };
    let answer = searcher.find(&request)?;
    let mut sessions = Vec::new();
    for hit in &answer.hits {
        if !sessions.contains(&hit.session) {
            sessions.push(hit.session);
        }
    }
    if sessions.is_empty() {
        return Err(CommandError::not_found(format!("nothing found for {query}"))
            .hint("name a file or a session from steno list, or use fewer words; find new sessions with steno index"));
    }
    let more = sessions.len().saturating_sub(SESSIONS_MAX);
    let mut reports = SeveralReports::new();
    for id in sessions.into_iter().take(SESSIONS_MAX) {
        let Some(chosen) = read::chosen(searcher.catalogue(), id)? else { continue };
        let audited = read::session(options, &chosen, output);
        reports.add(options, audited, output)?;
    }
    let status = reports.end(options, output)?;
    if more > 0 {
        output.say(&format!("{} more match: narrow the query", counted(more as u64, "session")));
    }
    Ok(status)
}

impl Options {
    fn parts(&self) -> Parts {
        self.only.as_deref().and_then(AuditPart::named).map_or(Parts::All, Parts::Only)
    }

    /// Reports one session.
    fn report(&self, audited: &Audited, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        if !self.json {
            output.page();
        }
        if let Some(changes) = &audited.changes {
            return diff::report(self, audited, changes, output);
        }
        let parts = self.parts();
        let is_there = match parts {
            Parts::All => true,
            Parts::Only(part) => view::has(&audited.audit, part),
        };
        if self.json {
            let mut draft = Draft::new();
            audited.put(&mut draft);
            audited.audit.put(parts, &mut draft);
            if self.explain {
                audited.audit.put_explanations(&mut draft);
            }
            output.line(&harmless_json(&draft.render(None)))?;
        } else {
            let mut text = view::text(audited, parts, output.colour());
            if self.explain {
                explain::text(&audited.audit, output.colour(), &mut text);
            }
            output.line(text.trim_end())?;
        }
        if let (Parts::Only(part), false) = (parts, is_there) {
            output.say(view::nothing(part));
            return Ok(ExitStatus::No);
        }
        Ok(ExitStatus::Done)
    }
}
