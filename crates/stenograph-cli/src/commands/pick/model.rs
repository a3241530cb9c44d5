//! The state of the finder, and what each key does to it. It reads nothing and draws nothing: the loop asks it what it needs, and
//! gives it the answers.

use std::collections::{HashMap, VecDeque};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stenograph_store::index::catalogue::{IndexedSession, SessionId};
use stenograph_store::index::search::Hit;

use super::action::{PickAction, PickTask, PickedEvent};
use super::edit::{LineChange, LineEdit};
use super::layout::PickLayout;
use super::matching::SearchedSessions;
use crate::terminal::Line;
use stenograph_store::hits::ShownHit;

/// The state of the finder.
#[derive(Default)]
pub struct Picker {
    /// The sessions, newest first. Sessions that only a full-text search knows follow the others.
    known: SearchedSessions,
    loading: Loading,
    input: LineEdit,
    scope: Scope,
    rows: Vec<PickRow>,
    /// The hits of the last search, and its query.
    hits: Vec<ShownHit>,
    searched: Option<String>,
    selected: usize,
    /// The first visible row.
    top: usize,
    marked: Vec<SessionId>,
    overlay: Overlay,
    notice: Option<String>,
    costs: HashMap<SessionId, String>,
    previews: VecDeque<(PreviewKey, Vec<Line>)>,
    preview_top: usize,
    layout: PickLayout,
    enter: Enter,
}

/// Whether the list is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    #[default]
    Newest,
    Complete,
}

/// What the query searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Titles, questions, projects and other facts about sessions.
    #[default]
    Sessions,
    /// Every word of every session.
    Text,
}

/// What Enter does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enter {
    #[default]
    Shows,
    Prints,
}

/// What takes the keys instead of the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    #[default]
    None,
    Help,
    /// The next letter is an action.
    Actions,
    /// The user chooses a target for the action.
    Target {
        action: PickAction,
        typed: LineEdit,
    },
}

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickRow {
    /// The position of the session.
    pub session: usize,
    /// The position of the best hit in it, and the number of further hits.
    pub hit: Option<(usize, usize)>,
}

/// What a preview shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewKey {
    pub session: SessionId,
    /// The source, the version and the number of an event.
    pub event: Option<(i64, Option<u32>, u64)>,
    pub width: usize,
}

/// A request for a preview.
#[derive(Clone, Debug)]
pub struct PreviewRequest {
    pub key: PreviewKey,
    pub session: IndexedSession,
    pub hit: Option<Hit>,
    /// The number of the hit as `steno show` counts it.
    pub number: Option<u64>,
    /// The first words that were found.
    pub found: Option<String>,
}

/// What the loop does after a key.
#[derive(Debug)]
pub enum PickEffect {
    Nothing,
    Redraw,
    Suspend,
    /// Ends without a choice.
    Cancel,
    /// Ends as a signal ends a program.
    Interrupt,
    Perform(Box<PickTask>),
}

/// How many previews are kept.
const PREVIEWS_MAX: usize = 64;

/// How many lines of a preview a page key scrolls, at least.
const PAGE_MIN: usize = 1;

impl Picker {
    pub fn new(query: &str, enter: Enter) -> Picker {
        Picker { input: LineEdit::new(query), enter, ..Picker::default() }
    }

    pub fn input(&self) -> &LineEdit {
        &self.input
    }

    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    pub fn layout(&self) -> PickLayout {
        self.layout
    }

    pub fn loading(&self) -> Loading {
        self.loading
    }

    pub fn enter(&self) -> Enter {
        self.enter
    }

    /// How many rows the list has, and how many sessions there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.rows.len(), self.known.len())
    }

    /// The visible rows, each with whether it is selected.
    pub fn visible(&self) -> impl Iterator<Item = (&PickRow, bool)> {
        let rows = self.rows.iter().enumerate().skip(self.top).take(self.layout.list_lines());
        rows.map(|(at, row)| (row, at == self.selected))
    }

    pub fn session(&self, row: &PickRow) -> Option<&IndexedSession> {
        self.known.sessions.get(row.session)
    }

    pub fn hit(&self, row: &PickRow) -> Option<(&ShownHit, usize)> {
        row.hit.and_then(|(at, more)| Some((self.hits.get(at)?, more)))
    }

    pub fn is_marked(&self, session: &IndexedSession) -> bool {
        self.marked.contains(&session.id)
    }

    pub fn cost(&self, session: &IndexedSession) -> Option<&str> {
        self.costs.get(&session.id).map(String::as_str)
    }

    /// The lines of the preview, from the first visible one; `None` while it is being read.
    pub fn preview(&self) -> Option<&[Line]> {
        let key = self.preview_key()?;
        let lines = self.previews.iter().find_map(|(known, lines)| (*known == key).then_some(lines))?;
        lines.get(self.preview_top.min(lines.len())..)
    }

    /// The query for the full-text search; `None` if the query searches facts about sessions.
    pub fn text_query(&self) -> Option<&str> {
        match self.scope {
            Scope::Text => Some(self.input.text().trim()),
            Scope::Sessions => self.input.text().strip_prefix('/').map(str::trim),
        }
    }

    /// Whether an answer to the full-text search is missing.
    pub fn is_searching(&self) -> bool {
        self.text_query().is_some_and(|query| !query.is_empty() && self.searched.as_deref() != Some(query))
    }

    /// The search to run.
    pub fn wanted_search(&self) -> Option<&str> {
        self.text_query().filter(|_| self.is_searching())
    }

    /// The preview to read.
    pub fn wanted_preview(&self) -> Option<PreviewRequest> {
        let key = self.preview_key()?;
        if self.previews.iter().any(|(known, _)| *known == key) {
            return None;
        }
        let row = self.rows.get(self.selected)?;
        // A title or a note about the session has no event.
        let hit = self.hit(row).map(|(hit, _)| hit).filter(|hit| hit.open.is_some());
        let number = hit.and_then(|hit| hit.open.as_ref()).map(|open| open.event);
        let found = hit.and_then(super::preview::found_words);
        let (session, hit) = (self.session(row)?.clone(), hit.map(|hit| hit.hit.clone()));
        Some(PreviewRequest { key, session, hit, number, found })
    }

    /// The visible sessions without a known cost.
    pub fn wanted_costs(&self) -> Vec<IndexedSession> {
        let sessions = self.visible().filter_map(|(row, _)| self.session(row));
        sessions.filter(|session| !self.costs.contains_key(&session.id)).cloned().collect()
    }

    /// Takes sessions, newest first. What was selected stays selected.
    pub fn take_sessions(&mut self, known: SearchedSessions, loading: Loading) {
        let selected = self.rows.get(self.selected).and_then(|row| self.session(row)).map(|session| session.id);
        // The newest session is selected until the user moves.
        let selected = selected.filter(|_| self.selected > 0);
        (self.known, self.loading) = (known, loading);
        self.list();
        let is_selected = |row: &PickRow| self.session(row).map(|session| session.id) == selected;
        let at = selected.and_then(|_| self.rows.iter().position(is_selected));
        self.select(at.unwrap_or(0));
    }

    /// Takes the answer to a search, unless the user has changed the query.
    pub fn take_hits(&mut self, query: &str, found: Result<Vec<ShownHit>, String>) {
        if self.text_query() != Some(query) {
            return;
        }
        self.searched = Some(query.to_owned());
        match found {
            Ok(hits) => {
                self.hits = hits;
                self.list();
                self.select(0);
            }
            // The list stays: the user is still typing.
            Err(reason) => self.notice = Some(reason),
        }
    }

    pub fn take_preview(&mut self, key: PreviewKey, lines: Vec<Line>) {
        if self.previews.len() >= PREVIEWS_MAX {
            self.previews.pop_front();
        }
        self.previews.push_back((key, lines));
    }

    pub fn take_costs(&mut self, costs: Vec<(SessionId, String)>) {
        self.costs.extend(costs);
    }

    pub fn take_problem(&mut self, reason: String) {
        self.notice = Some(reason);
    }

    pub fn resize(&mut self, columns: usize, lines: usize) {
        let layout = PickLayout::of(columns, lines);
        if self.layout.preview_width() != layout.preview_width() {
            self.preview_top = 0;
        }
        self.layout = layout;
        self.select(self.selected);
    }

    pub fn update(&mut self, key: KeyEvent) -> PickEffect {
        self.notice = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return PickEffect::Interrupt,
            KeyCode::Char('z') if is_control => return PickEffect::Suspend,
            _ => {}
        }
        match std::mem::take(&mut self.overlay) {
            Overlay::None => self.list_key(key),
            Overlay::Help => PickEffect::Redraw,
            Overlay::Actions => match key.code {
                KeyCode::Enter => self.choose(PickAction::Show),
                KeyCode::Char(letter) => {
                    PickAction::of_letter(letter).map_or(PickEffect::Redraw, |action| self.choose(action))
                }
                _ => PickEffect::Redraw,
            },
            Overlay::Target { action, typed } => self.target_key(action, typed, key),
        }
    }

    fn list_key(&mut self, key: KeyEvent) -> PickEffect {
        let is = |modifier: KeyModifiers| key.modifiers.contains(modifier);
        let (is_control, is_alt) = (is(KeyModifiers::CONTROL), is(KeyModifiers::ALT));
        let page = self.layout.list_lines().max(PAGE_MIN);
        let preview_page = self.layout.preview_lines().saturating_sub(1).max(PAGE_MIN);
        match key.code {
            KeyCode::Enter => return self.choose(PickAction::Show),
            KeyCode::Esc => return PickEffect::Cancel,
            KeyCode::Char('g') if is_control => return PickEffect::Cancel,
            KeyCode::Char('d') if is_control && self.input.text().is_empty() => return PickEffect::Cancel,
            KeyCode::Char('o') if is_control => self.overlay = Overlay::Actions,
            KeyCode::Char('t') if is_control => self.switch_scope(),
            KeyCode::F(1) => self.overlay = Overlay::Help,
            KeyCode::Char('?') if !is_alt && self.input.text().is_empty() => self.overlay = Overlay::Help,
            KeyCode::Up if is_alt || is(KeyModifiers::SHIFT) => self.scroll(self.preview_top.saturating_sub(1)),
            KeyCode::Down if is_alt || is(KeyModifiers::SHIFT) => self.scroll(self.preview_top + 1),
            KeyCode::Char('b') if is_control => self.scroll(self.preview_top.saturating_sub(preview_page)),
            KeyCode::Char('f') if is_control => self.scroll(self.preview_top + preview_page),
            KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('p' | 'k') if is_control => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char('n' | 'j') if is_control => self.select(self.selected + 1),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(page)),
            KeyCode::PageDown => self.select(self.selected + page),
            KeyCode::Tab => self.toggle_mark(),
            KeyCode::Char(letter) if is_alt => {
                return PickAction::of_letter(letter).map_or(PickEffect::Nothing, |action| self.choose(action));
            }
            _ => match self.input.edit(key) {
                LineChange::Text => self.query_changed(),
                LineChange::Cursor => {}
                LineChange::No => return PickEffect::Nothing,
            },
        }
        PickEffect::Redraw
    }

    fn target_key(&mut self, action: PickAction, mut typed: LineEdit, key: KeyEvent) -> PickEffect {
        match key.code {
            KeyCode::Esc => return PickEffect::Redraw,
            KeyCode::Enter => {
                let candidates = target_candidates(action, typed.text());
                if let (Some(target), Some(session)) = (candidates.into_iter().next(), self.current()) {
                    let task = PickTask { action, sessions: vec![session.clone()], event: None, target: Some(target) };
                    return PickEffect::Perform(Box::new(task));
                }
                self.notice = Some(format!("no such target: {}", typed.text()));
            }
            KeyCode::Tab => {
                if let Some(first) = target_candidates(action, typed.text()).first() {
                    typed = LineEdit::new(first);
                }
            }
            _ => {
                typed.edit(key);
            }
        }
        self.overlay = Overlay::Target { action, typed };
        PickEffect::Redraw
    }

    /// Starts an action, asks for its target, or says why it is not possible.
    fn choose(&mut self, action: PickAction) -> PickEffect {
        let Some(session) = self.current().cloned() else {
            return self.refuse("no session is selected");
        };
        let is_gone = session.gone > 0 && session.gone == session.sources;
        let sessions = match action {
            PickAction::Show if self.enter == Enter::Prints && !self.marked.is_empty() => self.marked_sessions(),
            PickAction::Diff => {
                let mut pair = self.marked_sessions();
                if let [only] = pair.as_slice()
                    && only.id != session.id
                {
                    pair.push(session);
                }
                if pair.len() != 2 {
                    return self.refuse("mark two sessions with tab to compare them");
                }
                pair
            }
            PickAction::Restore if session.gone == 0 => return self.refuse("the file exists: nothing to restore"),
            PickAction::Restore if session.lost == session.sources => {
                return self.refuse("the file is gone and was never archived");
            }
            PickAction::Convert if is_gone => return self.refuse("the file is gone: restore it first with alt-R"),
            PickAction::Convert | PickAction::Export => {
                self.overlay = Overlay::Target { action, typed: LineEdit::default() };
                return PickEffect::Redraw;
            }
            PickAction::Show | PickAction::Resume | PickAction::CopyId | PickAction::Restore => vec![session],
        };
        let event = self.current_event().filter(|_| action == PickAction::Show);
        PickEffect::Perform(Box::new(PickTask { action, sessions, event, target: None }))
    }

    fn refuse(&mut self, reason: &str) -> PickEffect {
        self.notice = Some(reason.to_owned());
        PickEffect::Redraw
    }

    fn current(&self) -> Option<&IndexedSession> {
        self.rows.get(self.selected).and_then(|row| self.session(row))
    }

    fn current_event(&self) -> Option<PickedEvent> {
        let (hit, _) = self.hit(self.rows.get(self.selected)?)?;
        let open = hit.open.as_ref()?;
        Some(PickedEvent { name: open.name.clone(), number: open.event, version: hit.hit.version })
    }

    /// The marked sessions, in the order in which they were marked.
    fn marked_sessions(&self) -> Vec<IndexedSession> {
        let session = |id: &SessionId| self.known.sessions.iter().find(|session| session.id == *id).cloned();
        self.marked.iter().filter_map(session).collect()
    }

    fn toggle_mark(&mut self) {
        let Some(id) = self.current().map(|session| session.id) else { return };
        match self.marked.iter().position(|marked| *marked == id) {
            Some(at) => {
                self.marked.remove(at);
            }
            None => self.marked.push(id),
        }
        self.select(self.selected + 1);
    }

    fn switch_scope(&mut self) {
        self.scope = match (self.scope, self.input.text().strip_prefix('/')) {
            // A slash already means the full text.
            (Scope::Sessions, Some(rest)) => {
                self.input = LineEdit::new(rest);
                Scope::Sessions
            }
            (Scope::Sessions, None) => Scope::Text,
            (Scope::Text, _) => Scope::Sessions,
        };
        self.query_changed();
    }

    fn query_changed(&mut self) {
        // Until the answer to a search arrives, the list stays.
        if !self.is_searching() {
            self.list();
            self.select(0);
        }
    }

    /// Makes the list: the sessions that match, or those with hits.
    fn list(&mut self) {
        match self.text_query().map(str::to_owned) {
            Some(query) if !query.is_empty() => self.list_hits(),
            Some(_) => self.rows = plain_rows(0..self.known.len()),
            None => {
                let matches = self.known.matches(self.input.text());
                self.rows = plain_rows(matches);
            }
        }
    }

    /// One row for each session with hits, in the order of the best ones.
    fn list_hits(&mut self) {
        let mut positions: HashMap<SessionId, usize> =
            self.known.sessions.iter().enumerate().map(|(at, session)| (session.id, at)).collect();
        let mut rows: Vec<PickRow> = Vec::new();
        let mut row_of: HashMap<usize, usize> = HashMap::new();
        for (at, hit) in self.hits.iter().enumerate() {
            let Some(session) = &hit.session else { continue };
            let position = *positions.entry(session.id).or_insert_with(|| {
                self.known.sessions.push(session.clone());
                self.known.sessions.len() - 1
            });
            match row_of.get(&position).and_then(|row| rows.get_mut(*row)) {
                Some(row) => row.hit = row.hit.map(|(first, more)| (first, more + 1)),
                None => {
                    row_of.insert(position, rows.len());
                    rows.push(PickRow { session: position, hit: Some((at, 0)) });
                }
            }
        }
        self.rows = rows;
    }

    fn preview_key(&self) -> Option<PreviewKey> {
        let row = self.rows.get(self.selected)?;
        let event = self.hit(row).map(|(hit, _)| (hit.hit.source, hit.hit.version, hit.hit.event));
        Some(PreviewKey { session: self.session(row)?.id, event, width: self.layout.preview_width()? })
    }

    /// Selects a row, or the last one, and scrolls the list so that it is visible.
    fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        if row != self.selected {
            self.preview_top = 0;
        }
        self.selected = row;
        let lines = self.layout.list_lines().max(1);
        self.top = self.top.clamp((row + 1).saturating_sub(lines), row).min(self.rows.len().saturating_sub(lines));
    }

    fn scroll(&mut self, top: usize) {
        let key = self.preview_key();
        let lines =
            self.previews.iter().find(|(known, _)| Some(known) == key.as_ref()).map_or(0, |(_, lines)| lines.len());
        self.preview_top = top.min(lines.saturating_sub(self.layout.preview_lines()));
    }
}

/// The targets whose names contain what was typed; those that begin with it come first.
pub fn target_candidates(action: PickAction, typed: &str) -> Vec<String> {
    let typed = typed.trim().to_lowercase();
    let mut targets = action.targets();
    targets.retain(|target| target.contains(&typed));
    targets.sort_by_key(|target| (target.as_str() != typed, !target.starts_with(&typed)));
    targets
}

fn plain_rows(sessions: impl IntoIterator<Item = usize>) -> Vec<PickRow> {
    sessions.into_iter().map(|session| PickRow { session, hit: None }).collect()
}

#[cfg(test)]
mod tests;
