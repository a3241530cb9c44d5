//! Finds results without a call. Agents write several records at once, so a result may precede its call; it is an orphan only
//! if the call never comes. Memory does not grow with the file.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stenograph::model::{Body, Event, Note, NoteKind};
use stenograph::synthesizer::CallIds;

#[derive(Default)]
pub struct Orphans {
    pairing: CallIds,
    /// Results seen, so that a repeated one is not an orphan.
    answered: HashSet<u64>,
    /// Results whose call may still come, oldest first.
    waiting: VecDeque<(u64, Note)>,
}

/// How many results are remembered.
const ANSWERED_MAX: usize = 1 << 18;

/// How many results may wait for their call.
const WAITING_MAX: usize = 1024;

impl Orphans {
    /// Adds an event. Returns a note as soon as a result is certainly an orphan.
    pub fn event(&mut self, event: &Event<'_>) -> Option<Note> {
        if event.restates {
            return None;
        }
        match &event.body {
            Body::ToolCall { call, name, .. } => {
                match call.as_deref().and_then(|id| self.waiting_result_of(id)) {
                    Some(position) => drop(self.waiting.remove(position)),
                    None => drop(self.pairing.call(call.as_deref(), name)),
                }
                None
            }
            Body::ToolResult { call, .. } => {
                let paired = self.pairing.result(call.as_deref()).is_some();
                let before = call.as_deref().is_some_and(|id| self.answered_before(id));
                let note = |said: String| Note::new(NoteKind::OrphanResult, event.at.unwrap_or_default(), said);
                match call {
                    _ if paired || before => None,
                    Some(id) => self.wait(id, note(format!("a result of call {id}, which is not in this file"))),
                    None => Some(note("a result without a call before it".to_owned())),
                }
            }
            _ => None,
        }
    }

    /// The orphans that remain at the end of the file.
    pub fn finish(&mut self) -> Vec<Note> {
        self.waiting.drain(..).map(|(_, note)| note).collect()
    }

    /// The waiting result that this call belongs to.
    fn waiting_result_of(&self, id: &str) -> Option<usize> {
        let id = fingerprint(id);
        self.waiting.iter().position(|(waiting, _)| *waiting == id)
    }

    /// Adds a waiting result; returns the oldest if there are too many.
    fn wait(&mut self, id: &str, note: Note) -> Option<Note> {
        self.waiting.push_back((fingerprint(id), note));
        if self.waiting.len() > WAITING_MAX { self.waiting.pop_front().map(|(_, note)| note) } else { None }
    }

    /// Whether a result with this id was seen before; remembers the id.
    fn answered_before(&mut self, id: &str) -> bool {
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.clear();
        }
        !self.answered.insert(fingerprint(id))
    }
}

fn fingerprint(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
