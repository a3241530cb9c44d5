//! `steno serve --redact`: masks the secrets of everything that the server answers. All sources are searched once, so that a secret
//! found in one place is masked in all; then only what is sent is masked. `docs/design/018-redaction.md` explains why.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use stenograph::redact::{RecordSyntax, Redactor};
use stenograph_store::Error;
use stenograph_store::hits::{self, ShownAnswer};
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{IndexedSession, SourceRow};
use stenograph_store::index::search::SearchRequest;
use stenograph_store::redaction::SearchedSources;
use stenograph_store::session_events::SessionEvents;

use super::state::Viewer;
use super::trouble::AnswerProblem;

/// The redactor, and which sources it knows the secrets of.
pub struct PageRedaction {
    /// The number of changes of the redactor, and the redactor.
    current: RwLock<(u64, Arc<Redactor>)>,
    searched: Mutex<SearchedSources>,
}

impl PageRedaction {
    pub fn new(redactor: Redactor) -> PageRedaction {
        PageRedaction { current: RwLock::new((0, Arc::new(redactor))), searched: Mutex::default() }
    }

    fn current(&self) -> (u64, Arc<Redactor>) {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Searches the sources that have changed since they were searched.
    fn search(&self, store: &Store, rows: &[SourceRow]) {
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        let (changes, redactor) = self.current();
        let found = searched.search(store, rows, &redactor);
        if !redactor.knows(&found) {
            let mut more = Redactor::clone(&redactor);
            more.learn(found);
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = (changes + 1, Arc::new(more));
        }
    }
}

impl Viewer {
    pub fn is_redacted(&self) -> bool {
        self.redaction.is_some()
    }

    fn redactor(&self) -> Option<Arc<Redactor>> {
        self.redaction.as_ref().map(|redaction| redaction.current().1)
    }

    /// How often the known secrets have changed: what was made before may show one.
    pub fn masks_version(&self) -> u64 {
        self.redaction.as_ref().map_or(0, |redaction| redaction.current().0)
    }

    /// Learns the secrets of these sources, before anything of them is shown.
    pub fn learn_secrets(&self, rows: impl FnOnce() -> Result<Vec<SourceRow>, Error>) -> Result<(), Error> {
        if let Some(redaction) = &self.redaction {
            redaction.search(&self.store, &rows()?);
        }
        Ok(())
    }

    /// A text that may be cut, such as a title.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor() {
            Some(redactor) => Cow::Owned(redactor.beginning(text).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// An answer for programs.
    pub fn masked_json(&self, json: String) -> String {
        let Some(redactor) = self.redactor() else { return json };
        let masked = redactor.record(json.as_bytes(), RecordSyntax::Json).bytes.into_owned();
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Masks what people read about a session. Its name and its path stay, because requests and files need them.
    pub fn mask_session(&self, session: &mut IndexedSession) {
        let Some(redactor) = self.redactor() else { return };
        let mask = |text: &mut String| *text = redactor.beginning(text).into_owned();
        let IndexedSession { title, agent_title, query, cwd, branch, model, project, marks, .. } = session;
        [title, agent_title, query, cwd, branch, model].into_iter().flatten().for_each(mask);
        if let Some(project) = project {
            mask(&mut project.name);
            mask(&mut project.root);
            project.remote.iter_mut().for_each(mask);
        }
        marks.title.iter_mut().for_each(mask);
        marks.tags.iter_mut().for_each(mask);
        marks.notes.iter_mut().for_each(|note| mask(&mut note.text));
    }

    /// Masks what people read about a source.
    pub fn mask_source(&self, row: &mut SourceRow) {
        let Some(redactor) = self.redactor() else { return };
        let header = &mut row.summary.header;
        let texts = [&mut header.title, &mut header.query, &mut header.cwd, &mut header.branch];
        texts.into_iter().flatten().for_each(|text| *text = redactor.beginning(text).into_owned());
    }

    /// One conversation of a session.
    pub fn events(
        &self,
        session: &IndexedSession,
        sources: &[SourceRow],
        agent: Option<&str>,
    ) -> Option<SessionEvents> {
        let events = SessionEvents::of(session, sources, agent)?;
        Some(match self.redactor() {
            Some(redactor) => events.redacted(redactor),
            None => events,
        })
    }

    /// The places that match a query.
    pub fn hits(&self, request: &SearchRequest<'_>, snippet_length: usize) -> Result<ShownAnswer, AnswerProblem> {
        // The secrets of all sources are known after the list was read.
        let redactor = match self.is_redacted() {
            true => self.listing().map(|_| self.redactor())?,
            false => None,
        };
        let mut found = hits::find_masked(&mut self.store.searcher()?, request, snippet_length, redactor.as_deref())?;
        let Some(redactor) = redactor else { return Ok(found) };
        for hit in &mut found.hits {
            hit.session.iter_mut().for_each(|session| self.mask_session(session));
            hit.source.iter_mut().for_each(|source| self.mask_source(source));
            let Ok(content) = &mut hit.read else { continue };
            // The text of a title or a note.
            if let Cow::Owned(masked) = redactor.beginning(&content.snippet.text) {
                content.snippet.text = masked;
                content.snippet.marks.clear();
            }
        }
        Ok(found)
    }
}
