//! The session resolver: decides which files belong to one session and which of them is read. The index calls it after each run
//! and stores the answer in the catalogue for `list`, `show`, `resume`, `usage` and the archive. It uses rows and names and
//! opens no file.

use std::path::{Path, PathBuf};

use stenograph::format::Format;

use crate::discover::path_hints;
use crate::files::folder_of;
use crate::folder::{self, RecordingParts};
use crate::identity::stem;
use crate::index::catalogue::{Gone, SourceId, SourceRow};
use crate::journal::RecordingHeader;
use crate::layouts;
use crate::recover;

/// How much of a session a source records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The conversation.
    #[default]
    Session,
    /// The conversation without all details: rendered as text, or without times and usage.
    Abridged,
    /// Events beside conversations, of one session or of many: such a file is not a session by itself.
    Log,
}

impl Coverage {
    /// The coverage of a format's sources.
    pub fn of(format: &dyn Format) -> Coverage {
        let info = format.info();
        match (info.traits.log, info.traits.lossy || info.abridged) {
            (true, _) => Coverage::Log,
            (false, true) => Coverage::Abridged,
            (false, false) => Coverage::Session,
        }
    }
}

/// The role of a source in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRole {
    /// The source.
    pub source: SourceId,
    /// The source that covers this one, if there is one: then this one is neither read nor counted.
    pub by: Option<SourceId>,
}

/// The name of a journal that records everything in its folder.
const FOLDER_JOURNAL: &str = "journal.steno";

/// The journals that may cover this document: the one beside it, and the one of its folder or of one above.
pub(crate) fn journals_of(document: &Path) -> Vec<PathBuf> {
    const FOLDERS_MAX: usize = 3;
    let folders = document.ancestors().skip(1).take(FOLDERS_MAX).map(|folder| folder.join(FOLDER_JOURNAL));
    std::iter::once(recover::journal_path(document)).chain(folders).collect()
}

/// The name of the session that a path suggests.
pub fn suggested_name(path: &Path) -> Option<String> {
    let named = path_hints(path).session.or_else(|| recording_name(path));
    Some(named.unwrap_or_else(|| stem(path))).filter(|name| !name.is_empty())
}

/// The name of the recording that fills the folder of this file: the name of the folder. `None` for a file that is not part of
/// such a recording.
pub(crate) fn recording_name(path: &Path) -> Option<String> {
    let folder = folder_of(path);
    let journal = folder.join(FOLDER_JOURNAL);
    let is_document = || {
        let name = path.file_name()?.to_str()?;
        RecordingHeader::at(&journal)?.documents.contains_key(name).then_some(())
    };
    if path != journal && is_document().is_none() {
        return None;
    }
    let folder = std::path::absolute(folder).ok()?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// The roles of a session's sources. Byte-for-byte copies are excluded by the caller.
pub(crate) fn resolve(rows: &[SourceRow]) -> Vec<SourceRole> {
    let rows: Vec<&SourceRow> = rows.iter().filter(|row| row.copy_of.is_none()).collect();
    let mut roles: Vec<SourceRole> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let others = rows.iter().enumerate().filter(|(other, _)| *other != at);
        let tellers = others.map(|(_, other)| *other).filter(|other| covers(other, row));
        // A covering source is not covered itself: of several, the best one is chosen.
        let by = tellers.min_by_key(|other| preference(other)).map(|other| other.id);
        roles.push(SourceRole { source: row.id, by });
    }
    roles
}

/// The sort key; the best source of a session comes first. Of two with the same content, one that is there is better than one that
/// is gone: the session followed its folder.
fn preference(row: &SourceRow) -> impl Ord + use<> {
    use std::cmp::Reverse;
    let is_gone = row.gone != Gone::There;
    (row.coverage, Reverse(row.summary.messages), Reverse(events(row)), is_gone, row.stamp.changed, row.id)
}

/// The sort key of the files in which several agents have one conversation; the original comes first. It was written first, or
/// has the most content if several were written at once.
pub(crate) fn by_age(row: &SourceRow) -> impl Ord + use<> {
    use std::cmp::Reverse;
    let (header, messages) = (&row.summary.header, row.summary.messages);
    let content = (row.coverage, header.started_ms, Reverse(header.ended_ms), Reverse(messages), Reverse(events(row)));
    (row.stamp.changed, content, row.path.clone())
}

/// Whether one source covers another.
fn covers(one: &SourceRow, other: &SourceRow) -> bool {
    // A log mentions all agents of its session, but nothing that they do not record themselves.
    if other.coverage == Coverage::Log && one.coverage != Coverage::Log {
        return true;
    }
    if one.thread != other.thread {
        return false;
    }
    if agent(one) != agent(other) && !recover::is_journal_name(&one.path) && !recover::is_journal_name(&other.path) {
        return by_age(one) < by_age(other) && is_conversion(one, other);
    }
    if one.coverage != other.coverage {
        // A journal covers its own documents, but not files of other recordings of the session.
        let is_of_another = recover::is_journal_name(&one.path) && !is_journal_of(&one.path, &other.path);
        return one.coverage < other.coverage && !is_of_another;
    }
    if layouts::contains(&one.path, &other.path) || layouts::contains(&other.path, &one.path) {
        return layouts::contains(&one.path, &other.path);
    }
    let is_journal_of_other = is_journal_of(&one.path, &other.path);
    let is_document_of_other = is_journal_of(&other.path, &one.path);
    // The documents are made from the journal and may state an event as another one: their messages do not count against it.
    if is_journal_of_other && is_within(other, one) || is_document_of_other && is_within(one, other) {
        return is_journal_of_other;
    }
    (is_journal_of_other || is_document_of_other || begins_alike(one, other)) && preference(one) < preference(other)
}

/// The agent of a source's format.
pub(crate) fn agent(row: &SourceRow) -> Option<&'static str> {
    row.known_format().map(|format| format.info().agent)
}

/// Whether a file is the journal of a document.
pub(crate) fn is_journal_of(journal: &Path, document: &Path) -> bool {
    recover::is_journal_name(journal) && journals_of(document).iter().any(|path| path == journal)
}

/// Whether everything in a document happened during its journal, to the second: some systems have no finer times. A document
/// without times is compared by size, and must not have been written after its journal.
fn is_within(document: &SourceRow, journal: &SourceRow) -> bool {
    let seconds = |row: &SourceRow| {
        Some((row.summary.header.started_ms?.div_euclid(1000), row.summary.header.ended_ms?.div_euclid(1000)))
    };
    match (seconds(document), seconds(journal)) {
        (Some((first, last)), Some((started, ended))) => first >= started && last <= ended,
        (Some(_), None) => false,
        (None, _) => document.stamp.changed <= journal.stamp.changed && events(document) <= events(journal),
    }
}

fn events(row: &SourceRow) -> u64 {
    row.doc_group_events + row.tail_events
}

/// Whether two sources begin with the same user message, at the same time if both state one.
fn begins_alike(one: &SourceRow, other: &SourceRow) -> bool {
    let by_key = one.first_key.is_some() && one.first_key == other.first_key;
    by_key
        || (one.summary.header.query.is_some()
            && one.summary.header.query == other.summary.header.query
            && is_same_start(one, other))
}

fn is_same_start(one: &SourceRow, other: &SourceRow) -> bool {
    let (one, other) = (one.summary.header.started_ms, other.summary.header.started_ms);
    one.is_none() || other.is_none() || one == other
}

/// Whether a copy begins like this source. Formats state the beginning of a session in different records, so the times need not
/// be equal.
pub(crate) fn is_begun_by(copy: &SourceRow, one: &SourceRow) -> bool {
    const APART_MAX_MS: u64 = 60_000;
    let is_near = match (one.summary.header.started_ms, copy.summary.header.started_ms) {
        (Some(one), Some(copy)) => one.abs_diff(copy) <= APART_MAX_MS,
        _ => true,
    };
    let asks_the_same =
        one.summary.header.query.is_some() && one.summary.header.query == copy.summary.header.query && is_near;
    begins_alike(one, copy) || asks_the_same
}

/// Whether `copy`, which has the same session id, is a conversion of `one` without later events: a conversation that another
/// agent continues is separate work.
pub(crate) fn is_conversion(one: &SourceRow, copy: &SourceRow) -> bool {
    is_begun_by(copy, one) && copy.summary.header.ended_ms <= one.summary.header.ended_ms
}

/// The files that form a conversation together with this source, in reading order: the documents of a recording and its
/// journal. `sources` are those of its session; files of other sessions in the same folder are left out.
pub fn parts_of(main: &SourceRow, sources: &[SourceRow]) -> Option<RecordingParts> {
    const FOLDERS_MAX: usize = 3;
    let is_recorded_with = |row: &SourceRow, teller: SourceId| {
        let teller = sources.iter().find(|other| other.id == teller);
        teller.is_some_and(|teller| {
            is_journal_of(&teller.path, &row.path)
                || is_journal_of(&row.path, &teller.path)
                || layouts::contains(&teller.path, &row.path)
        })
    };
    let is_part = |row: &&SourceRow| {
        row.copy_of.is_none()
            && row.thread == main.thread
            && row.covered_by.is_none_or(|covering| is_recorded_with(row, covering))
            && !row.path.as_os_str().is_empty()
    };
    let paths: Vec<&Path> = sources.iter().filter(is_part).map(|row| row.path.as_path()).collect();
    if paths.len() < 2 {
        return None;
    }
    let document = main.path.with_extension("");
    let file = if recover::is_journal_name(&main.path) && document.is_file() { document } else { main.path.clone() };
    let folders = main.path.ancestors().skip(1).take(FOLDERS_MAX).map(Path::to_owned);
    // A layout whose session is a folder knows the order of its files.
    let found = folders.chain([file]).filter_map(|path| folder::parts(&path)).filter_map(|parts| parts.only(&paths));
    found.into_iter().find(|parts| parts.files().contains(&main.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::catalogue::SourceSummary;
    use stenograph::Registry;
    use stenograph::model::SessionHeader;

    fn row(id: SourceId, path: &str, format: &str, messages: u64) -> SourceRow {
        let header = SessionHeader {
            query: Some("find the walrus".to_owned()),
            started_ms: Some(1000),
            ended_ms: Some(9000),
            ..SessionHeader::default()
        };
        let summary = SourceSummary { header, messages, ..SourceSummary::default() };
        let coverage = Coverage::of(Registry::built_in().named(format).unwrap());
        let mut row = SourceRow {
            id,
            format: format.to_owned(),
            coverage,
            summary,
            ..SourceRow::new(Path::new(path), Registry::built_in())
        };
        row.stamp.changed = id;
        row
    }

    fn covered_by(rows: &[SourceRow]) -> Vec<Option<SourceId>> {
        resolve(rows).into_iter().map(|role| role.by).collect()
    }

    #[test]
    fn the_conversation_covers_a_rendered_text_and_a_log() {
        let rows = [
            row(1, "/c/transcript.md", "chibi-markdown", 9),
            row(2, "/c/transcript.jsonl", "chibi", 4),
            row(3, "/c/inbox.jsonl", "chibi-inbox", 7),
        ];
        assert_eq!(covered_by(&rows), [Some(2), None, Some(2)]);
    }

    #[test]
    fn a_journal_covers_its_document_unless_the_document_goes_beyond_it_and_is_fuller() {
        let journal = row(1, "/runs/r/journal.steno", "steno", 6);
        let document = row(2, "/runs/r/transcript.json", "devflow", 8);
        assert_eq!(covered_by(&[journal.clone(), document.clone()]), [None, Some(1)]);
        for header in [
            SessionHeader { ended_ms: Some(10_000), ..document.summary.header.clone() },
            SessionHeader { started_ms: Some(0), ..document.summary.header.clone() },
            SessionHeader { started_ms: None, ended_ms: None, ..document.summary.header.clone() },
        ] {
            let mut longer = document.clone();
            longer.summary.header = header;
            assert_eq!(covered_by(&[journal.clone(), longer]), [Some(2), None]);
        }
    }

    #[test]
    fn the_older_file_covers_a_conversion_until_the_conversion_continues() {
        let (one, copy) = (row(1, "/a.jsonl", "claude-code", 6), row(2, "/b.jsonl", "codex", 7));
        assert_eq!(covered_by(&[one.clone(), copy.clone()]), [None, Some(1)]);
        let mut on = copy;
        on.summary.header.ended_ms = Some(10_000);
        assert_eq!(covered_by(&[one, on]), [None, None]);
    }

    #[test]
    fn a_file_that_is_gone_does_not_cover_its_copy_in_another_folder() {
        let (mut old, new) = (row(1, "/a/s.jsonl", "claude-code", 6), row(2, "/b/s.jsonl", "claude-code", 6));
        old.gone = Gone::Gone;
        assert_eq!(covered_by(&[old.clone(), new.clone()]), [Some(2), None]);
        old.summary.messages = 7;
        assert_eq!(covered_by(&[old, new]), [None, Some(1)]);
    }

    #[test]
    fn of_an_original_and_a_conversion_written_at_once_the_one_with_more_messages_covers_the_other() {
        let (mut copy, mut one) = (row(1, "/b.jsonl", "codex", 6), row(2, "/a.jsonl", "claude-code", 7));
        (copy.tail_events, one.tail_events) = (20, 10);
        copy.stamp.changed = one.stamp.changed;
        assert_eq!(covered_by(&[copy, one]), [Some(2), None]);
    }

    #[test]
    fn a_conversion_may_state_its_beginning_a_moment_later() {
        let (one, mut copy) = (row(1, "/a.jsonl", "codex", 6), row(2, "/b.jsonl", "claude-code", 6));
        copy.summary.header.started_ms = Some(1001);
        assert_eq!(covered_by(&[one, copy]), [None, Some(1)]);
    }

    #[test]
    fn a_transcript_covers_the_window_whatever_it_begins_with() {
        for transcript in ["/c/transcript/active.jsonl", "/c/transcript.jsonl"] {
            let (mut window, transcript) = (row(1, "/c/context.jsonl", "chibi", 9), row(2, transcript, "chibi", 6));
            window.summary.header.query = Some("a summary".to_owned());
            assert_eq!(covered_by(&[window.clone(), transcript.clone()]), [Some(2), None]);
            assert_eq!(covered_by(&[transcript, window]), [None, Some(2)]);
        }
        let archive = row(2, "/c/transcript_archive.jsonl", "chibi", 6);
        let mut window = row(1, "/c/context.jsonl", "chibi", 9);
        window.summary.header.started_ms = Some(2000);
        assert_eq!(covered_by(&[window, archive]), [None, None]);
    }

    #[test]
    fn files_that_follow_each_other_are_all_counted() {
        let (one, mut next) = (row(1, "/c/p/1.jsonl", "chibi", 6), row(2, "/c/p/2.jsonl", "chibi", 7));
        next.summary.header.started_ms = Some(2000);
        assert_eq!(covered_by(&[one, next]), [None, None]);
    }
}
