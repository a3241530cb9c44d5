//! The header of a conversation: from the index if it knows the session, else from its events.

use std::path::Path;

use stenograph::ledger::{CountedOutline, Ledger};
use stenograph::model::{Event, Outline, SessionHeader};
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatCheck};
use stenograph_store::Passes;
use stenograph_store::archive::Marks;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{IndexedSession, SourceRow};
use stenograph_store::project::Project;

use crate::error::CommandError;
use crate::input::{self, Flow};
use crate::output::counted;
use crate::progress::SourceProgress;
use crate::terminal::Header;
use crate::{clock, prices};
use stenograph_store::sessions::SessionCost;

/// The largest file that is read once more for its header.
const SIZE_MAX: u64 = 8 << 20;

/// The header of a session that the index knows.
pub(in crate::commands) fn of_session(session: &IndexedSession, store: &Store) -> Result<Header, CommandError> {
    Ok(header(session, &SessionCost::of(session, &store.catalogue()?, &prices::load()?)))
}

/// The header of one file of a session that the index knows: what [`of_file`] reads in it, and the marks of the session.
pub(super) fn of_source(session: &IndexedSession, source: &SourceRow, store: &Store) -> Result<Header, CommandError> {
    let took = SessionCost::of_source(session, source, &store.catalogue()?, &prices::load()?);
    let SessionHeader { title, query, cwd, branch, model, started_ms, ended_ms, .. } = source.summary.header.clone();
    let marks = if source.thread.is_none() { session.marks.clone() } else { Marks::default() };
    let title = marks.title.clone().or(title);
    let (name, started, ended) = (file_name(&source.path), started_ms, ended_ms);
    let of_file = IndexedSession { title, query, cwd, branch, model, started, ended, name, marks, ..session.clone() };
    Ok(header(&of_file, &took))
}

fn header(session: &IndexedSession, took: &SessionCost) -> Header {
    let span = span(session.started.map(clock::format_minute), session.ended.map(clock::format_minute));
    let mut facts = vec![span, took.tokens(), took.money()];
    facts.extend(session.marks.pinned.then(|| "pinned".to_owned()));
    facts.extend(session.marks.tags.iter().map(|tag| format!("#{tag}")));
    let notes = session.marks.notes.len() as u64;
    facts.extend((notes > 0).then(|| counted(notes, "note")));
    Header {
        title: session.about(),
        place: vec![
            session.agent.clone(),
            session.project.as_ref().map(|project| project.name.clone()).or(session.cwd.clone()).unwrap_or_default(),
            session.branch.clone().unwrap_or_default(),
            session.model.clone().unwrap_or_default(),
        ],
        facts,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The header of a file that the index does not know; `None` if it is too large to be read twice.
pub(super) fn of_file(path: &Path, from: Option<&str>) -> Option<Header> {
    if std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len() > SIZE_MAX {
        return None;
    }
    let mut input = input::open(path, from, Passes::Once).ok()?;
    let repeats = RepeatCheck::for_format(input.format);
    let mut sink = HeaderSink { outline: CountedOutline::new(Some(input.format)), repeats };
    input.read(&mut sink, &SourceProgress::none(), |_| Flow::Continue).ok()?;
    let (outline, ledger) = sink.outline.finish_with_ledger();
    of_outline(&outline, &ledger, input.format.info().agent, &file_name(path)).ok()
}

/// The header of a conversation that was read: its title, or what was asked first, or its name.
pub(in crate::commands) fn of_outline(
    outline: &Outline,
    ledger: &Ledger,
    agent: &str,
    name: &str,
) -> Result<Header, CommandError> {
    let took = SessionCost::of_ledger(ledger, &prices::load()?);
    let SessionHeader { title, query, cwd, branch, model, started_ms, ended_ms, .. } = outline.header.clone();
    let span = span(started_ms.map(clock::format_minute), ended_ms.map(clock::format_minute));
    let project = cwd.as_deref().and_then(|cwd| Project::of(Path::new(cwd))).map(|project| project.name());
    let project = project.or(cwd).unwrap_or_default();
    Ok(Header {
        title: title.or(query).unwrap_or_else(|| name.to_owned()),
        place: vec![agent.to_owned(), project, branch.unwrap_or_default(), model.unwrap_or_default()],
        facts: vec![span, took.tokens(), took.money()],
    })
}

/// The span between two times; the time zone and, on the same day, the date are stated once.
fn span(started: Option<String>, ended: Option<String>) -> String {
    match (started, ended) {
        (Some(started), Some(ended)) if started != ended => {
            let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
            let (from, to) = (words(&started), words(&ended));
            match (from.as_slice(), to.as_slice()) {
                ([day, time, zone], [other, until, other_zone]) if zone == other_zone => {
                    let until = if day == other { until.clone() } else { format!("{other} {until}") };
                    format!("{day} {time} to {until} {zone}")
                }
                _ => format!("{started} to {ended}"),
            }
        }
        (Some(time), _) | (None, Some(time)) => time,
        (None, None) => String::new(),
    }
}

/// Collects the header of a file. It counts the same events as the index: a message that claims to repeat one that is not there
/// counts, except in a log, which repeats whole conversations.
struct HeaderSink {
    outline: CountedOutline,
    repeats: Option<RepeatCheck>,
}

impl Sink for HeaderSink {
    fn event(&mut self, event: &Event<'_>) {
        let is_repeat = self.repeats.as_mut().map(|repeats| repeats.is_repeat(event, &mut |_| {}));
        match is_repeat {
            Some(IsRepeat::No) => self.outline.add(&event.as_original()),
            Some(IsRepeat::Yes) | None => self.outline.add(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_states_the_day_and_the_zone_once() {
        let span = |from: &str, to: &str| span(Some(from.to_owned()), Some(to.to_owned()));
        assert_eq!(span("2026-03-02 09:14 UTC", "2026-03-02 10:00 UTC"), "2026-03-02 09:14 to 10:00 UTC");
        assert_eq!(span("2026-03-02 09:14 UTC", "2026-03-03 10:00 UTC"), "2026-03-02 09:14 to 2026-03-03 10:00 UTC");
        assert_eq!(span("2026-03-02 09:14 UTC", "2026-03-02 09:14 UTC"), "2026-03-02 09:14 UTC");
    }
}
