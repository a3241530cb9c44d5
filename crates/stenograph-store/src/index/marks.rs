//! Marks sessions: pins, titles, tags and notes. The archive keeps them durably; the catalogue has a copy for queries. This file
//! decides in which order the two are written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::catalogue::{Catalogue, SessionId};
use super::run::RunObserver;
use super::seal::Seal;
use super::{Check, IndexCreation, OpenIndex, Store};
use crate::archive::{Archive, ArchiveWriter, MarkChange, Marks, SessionKey, is_tag};
use crate::files::Disk;
use crate::{Error, Problem};

/// A marked session.
#[derive(Clone, Debug)]
pub struct MarkedSession {
    /// What identifies it.
    pub key: SessionKey,
    /// Its marks.
    pub marks: Marks,
    /// Its number in the catalogue; `None` if the index does not know it.
    pub session: Option<SessionId>,
}

impl Store {
    /// All marked sessions, including those that the index does not know. For sessions of the index, [`Catalogue::marks`] and
    /// [`super::catalogue::IndexedSession::marks`] say the same and read no log.
    pub fn marked_sessions(&self, catalogue: &Catalogue) -> Result<Vec<MarkedSession>, Error> {
        let archive = Archive::open(Arc::new(Disk), &self.archive())?;
        let marked = archive.marks().map(|(key, marks)| {
            Ok(MarkedSession { key: key.clone(), marks: marks.clone(), session: catalogue.session_with_key(key)? })
        });
        marked.collect()
    }

    /// Changes the marks of sessions, all or none, and returns the new marks in the order of the sessions. They are durable when
    /// this returns. It waits while another process writes to the index, until `observer` stops it: then nothing is changed, and
    /// the error is [`Problem::Locked`].
    pub fn mark(
        &self,
        changes: &[(SessionId, Vec<MarkChange>)],
        now_ms: i64,
        observer: &mut dyn RunObserver,
    ) -> Result<Vec<Marks>, Error> {
        // The index's lock first, as every run does.
        let Some(_lock) = self.lock(observer)? else {
            return Err(Error::about(&self.index(), Problem::Locked { holder: None }));
        };
        let before = Seal::read(&self.index());
        let OpenIndex { catalogue, .. } = self.open(Check::Quick)?.map_err(|creation| match creation {
            IndexCreation::First => Error::about(self.folder(), Problem::IndexMissing),
            IndexCreation::Rebuilt(_) => Error::about(&self.index(), Problem::IndexDamaged),
        })?;
        // After a killed run, only the next run proves that the files are intact; a new seal would claim it.
        let sealed = before.filter(|seal| catalogue.commits().is_ok_and(|commits| seal.commit == commits));
        let mut writer = ArchiveWriter::open_when_free(Arc::new(Disk), &self.archive())?;
        let mut changed = Vec::with_capacity(changes.len());
        for (session, changes) in changes {
            changed.push(change(&catalogue, &mut writer, *session, changes, now_ms)?);
        }
        writer.commit(now_ms)?;
        // A process that is killed here leaves the catalogue behind; the next run brings it up to date.
        let commits = catalogue.replace_marks(writer.marks())?;
        drop((writer, catalogue));
        if sealed.is_some() {
            self.seal(sealed.as_ref(), commits, now_ms / 1000, Check::Quick);
        }
        Ok(changed)
    }
}

/// Changes the marks of one session.
fn change(
    catalogue: &Catalogue,
    writer: &mut ArchiveWriter,
    session: SessionId,
    changes: &[MarkChange],
    now_ms: i64,
) -> Result<Marks, Error> {
    let missing = || Error::about(Path::new(&session.to_string()), Problem::Missing);
    let key = catalogue.session_key(session)?.ok_or_else(missing)?;
    // The session may have had another identity when it was marked: before its first question, or under another name.
    let mut known: BTreeMap<SessionKey, Marks> = BTreeMap::new();
    for (other, marks) in writer.marks() {
        if *other == key || catalogue.session_with_key(other)? == Some(session) {
            known.insert(other.clone(), marks.clone());
        }
    }
    let mut marks = Marks::default();
    known.values().for_each(|other| marks.join(other));
    for change in changes {
        marks.apply(change, now_ms).map_err(|problem| Error::about(Path::new(subject(change, &key)), problem))?;
    }
    for other in known.keys().filter(|other| **other != key) {
        writer.set_marks(other, &Marks::default())?;
    }
    writer.set_marks(&key, &marks)?;
    Ok(marks)
}

/// What an invalid change is about: the text or the session.
fn subject<'k>(change: &'k MarkChange, key: &'k SessionKey) -> &'k str {
    match change {
        MarkChange::Tag(tag) if !is_tag(tag) => tag,
        _ => &key.name,
    }
}
