//! Joins a fork with its history: the source of such a fork has only its new records, and its header names the source with the
//! earlier ones. [`HistoryBase`] reads and writes headers; this file finds the other sources.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use stenograph::evidence::HistoryBase;
use stenograph::format::Format;
use stenograph::model::Event;
use stenograph::read::Sink;

use crate::discover::Places;
use crate::error::{Error, Problem};
use crate::identity::read_head;
use crate::output::Spool;
use crate::placement::find_session;
use crate::source::{Passes, Source};

/// The most forks of forks that are followed: sources may name each other in a cycle.
const FORKS_MAX: usize = 64;

/// The records that come before those of this source, if its header names another one.
pub fn base(source: &Source, format: &dyn Format) -> Option<HistoryBase> {
    format.info().usage.history?;
    let mut found = Header(None);
    read_head(format, source.head(), &mut found, |header| header.0.is_some());
    found.0?
}

/// The same source with the records that come before its own. The other sources must be where their agent keeps them.
pub fn joined(mut source: Source, format: &dyn Format, places: &Places) -> Result<Source, Error> {
    let Some(first) = base(&source, format) else { return Ok(source) };
    let place = source.place().clone();
    let missing = |session: &str| {
        Error::from_system(&place, Problem::HistoryMissing, io::Error::other(format!("session {session}")))
    };
    let mut histories = Vec::new();
    let mut next = Some(first);
    while let Some(HistoryBase { session, length }) = next {
        let path = find_session(places, format, &session).filter(|_| histories.len() < FORKS_MAX);
        let history = Source::open(&path.ok_or_else(|| missing(&session))?, Passes::Many)?;
        next = base(&history, format);
        histories.push((history, length, session));
    }
    let unreadable = |error| Error::from_system(&place, Problem::Unreadable, error);
    let mut joined = Spool::new()?;
    let mut own = BufReader::new(source.pass()?);
    let mut header = Vec::new();
    own.read_until(b'\n', &mut header).map_err(unreadable)?;
    let header = String::from_utf8_lossy(&header);
    let header = HistoryBase::removed_from(format.info(), header.trim_end()).unwrap_or_else(|| header.into_owned());
    writeln!(joined, "{}", header.trim_end()).map_err(unreadable)?;
    for (history, length, session) in histories.iter_mut().rev() {
        let mut records = BufReader::new(history.pass()?);
        let header_length = records.read_until(b'\n', &mut Vec::new()).map_err(unreadable)? as u64;
        let rest = length.saturating_sub(header_length);
        // The other source may have been cut, or replaced.
        if io::copy(&mut records.take(rest), &mut joined).map_err(unreadable)? < rest {
            return Err(missing(session));
        }
    }
    io::copy(&mut own, &mut joined).map_err(unreadable)?;
    drop(own);
    source.with_content(joined)
}

/// Takes what the first record states.
struct Header(Option<Option<HistoryBase>>);

impl Sink for Header {
    fn event(&mut self, event: &Event<'_>) {
        self.0.get_or_insert_with(|| HistoryBase::of(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::Registry;

    #[test]
    fn a_fork_of_a_fork_gets_the_records_before_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".codex/sessions/2026/03/02");
        std::fs::create_dir_all(&folder).unwrap();
        let id = |number: usize| format!("01a1e18a-0000-7000-8000-00000000000{number}");
        let path = |number: usize| folder.join(format!("rollout-2026-03-02T09-14-05-{}.jsonl", id(number)));
        let line = |ordinal: usize, kind: &str, payload: &str| {
            format!(
                "{{\"timestamp\":\"2026-03-02T09:14:05.000Z\",\"ordinal\":{ordinal},\"type\":\"{kind}\",\"payload\":{{{payload}}}}}\n"
            )
        };
        let said = |ordinal: usize, text: &str| {
            line(
                ordinal,
                "response_item",
                &format!(
                    "\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]"
                ),
            )
        };
        let header = |number: usize, ordinal: usize, base: Option<(usize, usize)>| {
            let base = base.map(|(of, length)| {
                format!(",\"forked_from_id\":\"{0}\",\"history_base\":{{\"thread_id\":\"{0}\",\"end_ordinal_exclusive\":{ordinal},\"end_byte_offset\":{length}}}", id(of))
            });
            line(
                ordinal,
                "session_meta",
                &format!("\"id\":\"{}\",\"cwd\":\"/w\"{}", id(number), base.unwrap_or_default()),
            )
        };
        let first = header(1, 0, None) + &said(1, "one");
        let second = header(2, 2, Some((1, first.len()))) + &said(3, "two");
        let third = header(3, 4, Some((2, second.len()))) + &said(5, "three");
        for (number, text) in [(1, first.clone() + &said(2, "later")), (2, second), (3, third)] {
            std::fs::write(path(number), text).unwrap();
        }
        let format = Registry::built_in().named("codex").unwrap();
        let places = Places::below(home.path().to_owned());
        let open = || Source::open(&path(3), Passes::Many).unwrap();
        let whole = joined(open(), format, &places).unwrap().read_whole(9999).unwrap();
        let whole = String::from_utf8(whole).unwrap();
        let head = header(3, 0, Some((2, 0)));
        let head = head.split(",\"history_base\"").next().unwrap().to_owned() + "}}\n";
        assert_eq!(whole, head + &said(1, "one") + &said(3, "two") + &said(5, "three"));
        std::fs::remove_file(path(1)).unwrap();
        let missing = joined(open(), format, &places).unwrap_err();
        assert!(missing.problem == Problem::HistoryMissing && missing.to_string().ends_with(&id(1)), "{missing}");
    }
}
