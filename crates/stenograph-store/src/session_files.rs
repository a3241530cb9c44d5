//! The session resolver: which files tell one session, and which of them is read. The index asks it after each run, and puts the answer
//! into the catalogue, where `list`, `show`, `resume`, `usage` and the archive find it. It looks at rows and names, never into a file.

use std::path::{Path, PathBuf};

use stenograph::format::{Format, named};

use crate::folder::{self, Parts};
use crate::index::catalogue::{SourceId, SourceRow};
use crate::recover;

/// How much of a session a source tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The conversation.
    #[default]
    Session,
    /// The conversation as text for people, without all that was said and done.
    Text,
    /// What happened beside conversations, of one session or of many: such a file is no session by itself.
    Log,
}

impl Coverage {
    /// What sources of a format tell.
    pub fn of(format: &dyn Format) -> Coverage {
        match (format.info().traits.log, format.info().traits.lossy) {
            (true, _) => Coverage::Log,
            (false, true) => Coverage::Text,
            (false, false) => Coverage::Session,
        }
    }
}

/// What a source is to the other sources of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRole {
    /// The source.
    pub source: SourceId,
    /// The source that tells the same and more, where there is one: this one is neither read nor counted.
    pub by: Option<SourceId>,
}

/// The name of a journal that tells all that happens in its folder.
const FOLDER_JOURNAL: &str = "journal.steno";

/// The journals that may tell what this document tells: the one beside it, and the one of its folder or of one above.
pub(crate) fn journals_of(document: &Path) -> Vec<PathBuf> {
    const FOLDERS_MAX: usize = 3;
    let folders = document.ancestors().skip(1).take(FOLDERS_MAX).map(|folder| folder.join(FOLDER_JOURNAL));
    std::iter::once(recover::beside(document)).chain(folders).collect()
}

/// What each source of a session is to the others. Copies, byte for byte, are not asked about.
pub(crate) fn resolve(rows: &[SourceRow]) -> Vec<SourceRole> {
    let rows: Vec<&SourceRow> = rows.iter().filter(|row| row.copy_of.is_none()).collect();
    let mut told: Vec<SourceRole> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let others = rows.iter().enumerate().filter(|(other, _)| *other != at);
        let tellers = others.map(|(_, other)| *other).filter(|other| tells_more(other, row));
        // Whoever tells it is told by nobody: of several, the best one.
        let by = tellers.min_by_key(|other| order(other)).map(|other| other.id);
        told.push(SourceRole { source: row.id, by });
    }
    told
}

/// The best source of a session comes first.
fn order(row: &SourceRow) -> (Coverage, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, i64, SourceId) {
    use std::cmp::Reverse;
    let events = row.doc_group_events + row.tail_events;
    (row.coverage, Reverse(row.summary.messages), Reverse(events), row.stamp.changed, row.id)
}

/// Whether one source tells all that another does.
fn tells_more(one: &SourceRow, other: &SourceRow) -> bool {
    // A log tells of all agents of its session, and of nothing that they do not tell themselves.
    if other.coverage == Coverage::Log && one.coverage != Coverage::Log {
        return true;
    }
    if one.thread != other.thread {
        return false;
    }
    if agent(one) != agent(other) && !recover::is_journal_name(&one.path) && !recover::is_journal_name(&other.path) {
        let is_older = (one.stamp.changed, one.id) < (other.stamp.changed, other.id);
        return is_older && is_conversion(one, other);
    }
    if one.coverage != other.coverage {
        // A journal tells what its own documents tell, and nothing of what other recordings of the session left behind.
        let is_of_another = recover::is_journal_name(&one.path) && !is_journal_of(&one.path, &other.path);
        return one.coverage < other.coverage && !is_of_another;
    }
    let related = is_journal_of(&one.path, &other.path) || is_journal_of(&other.path, &one.path);
    (related || begins_alike(one, other)) && order(one) < order(other)
}

/// The agent whose format a source has.
pub(crate) fn agent(row: &SourceRow) -> Option<&'static str> {
    named(&row.format).map(|format| format.info().agent)
}

/// Whether a file is the journal of a document.
fn is_journal_of(journal: &Path, document: &Path) -> bool {
    recover::is_journal_name(journal) && journals_of(document).iter().any(|path| path == journal)
}

/// Whether two sources begin with the same words of a user, at the same moment where both state one.
fn begins_alike(one: &SourceRow, other: &SourceRow) -> bool {
    let by_key = one.first_key.is_some() && one.first_key == other.first_key;
    by_key || (one.summary.query.is_some() && one.summary.query == other.summary.query && is_same_start(one, other))
}

fn is_same_start(one: &SourceRow, other: &SourceRow) -> bool {
    let (one, other) = (one.summary.started, other.summary.started);
    one.is_none() || other.is_none() || one == other
}

/// Whether `copy`, which has the session's id too, is `one`, converted, and nothing came after it: what goes on in another agent is work
/// of its own. Formats state the beginning of a session in different records, so that the moments need not be equal.
pub(crate) fn is_conversion(one: &SourceRow, copy: &SourceRow) -> bool {
    const APART_MAX_MS: u64 = 60_000;
    let is_near = match (one.summary.started, copy.summary.started) {
        (Some(one), Some(copy)) => one.abs_diff(copy) <= APART_MAX_MS,
        _ => true,
    };
    let asks_the_same = one.summary.query.is_some() && one.summary.query == copy.summary.query && is_near;
    (begins_alike(one, copy) || asks_the_same) && copy.summary.ended <= one.summary.ended
}

/// The files that tell a conversation together with this source, in the order in which they are read: the documents of a recording and
/// its journal. `sources` are those of its session; files of other sessions that lie in the same folder are left out.
pub fn parts_of(main: &SourceRow, sources: &[SourceRow]) -> Option<Parts> {
    const FOLDERS_MAX: usize = 3;
    let is_recorded_with = |row: &SourceRow, teller: SourceId| {
        let teller = sources.iter().find(|other| other.id == teller);
        teller.is_some_and(|teller| is_journal_of(&teller.path, &row.path) || is_journal_of(&row.path, &teller.path))
    };
    let is_part = |row: &&SourceRow| {
        row.copy_of.is_none()
            && row.thread == main.thread
            && row.covered_by.is_none_or(|teller| is_recorded_with(row, teller))
            && !row.path.as_os_str().is_empty()
    };
    let paths: Vec<&Path> = sources.iter().filter(is_part).map(|row| row.path.as_path()).collect();
    if paths.len() < 2 {
        return None;
    }
    let document = main.path.with_extension("");
    let file = if recover::is_journal_name(&main.path) && document.is_file() { document } else { main.path.clone() };
    let folders = main.path.ancestors().skip(1).take(FOLDERS_MAX).map(Path::to_owned);
    // A layout whose session is a folder knows the order of the files in it.
    let found = folders.chain([file]).filter_map(|path| folder::parts(&path)).filter_map(|parts| parts.only(&paths));
    found.into_iter().find(|parts| parts.files().contains(&main.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::catalogue::SourceSummary;

    fn row(id: SourceId, path: &str, format: &str, messages: u64) -> SourceRow {
        let summary = SourceSummary {
            query: Some("find the walrus".to_owned()),
            started: Some(1000),
            ended: Some(9000),
            messages,
            ..SourceSummary::default()
        };
        let coverage = Coverage::of(named(format).unwrap());
        let mut row = SourceRow { id, format: format.to_owned(), coverage, summary, ..SourceRow::new(Path::new(path)) };
        row.stamp.changed = id;
        row
    }

    fn told(rows: &[SourceRow]) -> Vec<Option<SourceId>> {
        resolve(rows).into_iter().map(|told| told.by).collect()
    }

    #[test]
    fn a_text_for_people_and_a_log_are_told_by_the_conversation() {
        let rows = [
            row(1, "/c/transcript.md", "chibi-markdown", 9),
            row(2, "/c/transcript.jsonl", "chibi", 4),
            row(3, "/c/inbox.jsonl", "chibi-inbox", 7),
        ];
        assert_eq!(told(&rows), [Some(2), None, Some(2)]);
    }

    #[test]
    fn a_journal_and_its_document_are_one_and_the_fuller_one_tells() {
        let mut journal = row(1, "/runs/r/journal.steno", "steno", 6);
        let document = row(2, "/runs/r/transcript.json", "devflow", 6);
        journal.doc_group_events = 10;
        assert_eq!(told(&[journal.clone(), document.clone()]), [None, Some(1)]);
        let longer = row(2, "/runs/r/transcript.json", "devflow", 8);
        assert_eq!(told(&[journal, longer]), [Some(2), None]);
    }

    #[test]
    fn a_conversion_is_told_by_the_older_file_until_it_goes_on() {
        let (one, copy) = (row(1, "/a.jsonl", "claude-code", 6), row(2, "/b.jsonl", "codex", 7));
        assert_eq!(told(&[one.clone(), copy.clone()]), [None, Some(1)]);
        let mut on = copy;
        on.summary.ended = Some(10_000);
        assert_eq!(told(&[one, on]), [None, None]);
    }

    #[test]
    fn a_conversion_may_state_its_beginning_a_moment_later() {
        let (one, mut copy) = (row(1, "/a.jsonl", "codex", 6), row(2, "/b.jsonl", "claude-code", 6));
        copy.summary.started = Some(1001);
        assert_eq!(told(&[one, copy]), [None, Some(1)]);
    }

    #[test]
    fn files_that_follow_each_other_are_all_counted() {
        let (one, mut next) = (row(1, "/c/p/1.jsonl", "chibi", 6), row(2, "/c/p/2.jsonl", "chibi", 7));
        next.summary.started = Some(2000);
        assert_eq!(told(&[one, next]), [None, None]);
    }
}
