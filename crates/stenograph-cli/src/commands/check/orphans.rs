//! Results without their call. Agents write several records at once, so a result may stand before its call: it is only an orphan
//! when the call does not come at all. Memory is bounded; it must not grow with the file.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stenograph::model::{Body, Event, Note, NoteKind};
use stenograph::synthesizer::CallIds;

/// Finds them.
#[derive(Default)]
pub struct Orphans {
    pairing: CallIds,
    /// Results seen, so that one said twice is no orphan.
    answered: HashSet<u64>,
    /// Results whose call may still come, oldest first.
    waiting: VecDeque<(u64, Note)>,
}

/// How many results are remembered.
const ANSWERED_MAX: usize = 1 << 18;

/// How many results wait for their call.
const WAITING_MAX: usize = 1024;

impl Orphans {
    /// Takes an event. Gives an orphan as soon as it is certain that one was found.
    pub fn event(&mut self, event: &Event<'_>) -> Option<Note> {
        if event.restates {
            return None;
        }
        match &event.body {
            Body::ToolCall { call, name, .. } => {
                match call.as_deref().and_then(|id| self.called(id)) {
                    Some(waited) => drop(self.waiting.remove(waited)),
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

    /// The orphans that are left when the file ends.
    pub fn finish(&mut self) -> Vec<Note> {
        self.waiting.drain(..).map(|(_, note)| note).collect()
    }

    /// Which waiting result this call belongs to.
    fn called(&self, id: &str) -> Option<usize> {
        let id = fingerprint(id);
        self.waiting.iter().position(|(waiting, _)| *waiting == id)
    }

    /// Lets a result wait; gives the oldest when too many do.
    fn wait(&mut self, id: &str, note: Note) -> Option<Note> {
        self.waiting.push_back((fingerprint(id), note));
        if self.waiting.len() > WAITING_MAX { self.waiting.pop_front().map(|(_, note)| note) } else { None }
    }

    /// Whether a result with this id was seen; it is remembered from now on.
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
