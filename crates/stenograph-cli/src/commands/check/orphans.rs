//! Finds results without a call. Agents write several records at once, so a result may precede its call; it is an orphan only
//! if the call never comes. [`Calls`] pairs calls and results. Memory does not grow with the file.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stenograph::calls::Calls;
use stenograph::model::{Body, Event, Note, NoteKind};

#[derive(Default)]
pub struct Orphans {
    calls: Calls,
    /// The ids of results seen, so that a repeated one is not an orphan.
    answered: HashSet<u64>,
    /// Results whose call may still come, oldest first, each with the number of its call.
    waiting: VecDeque<(u64, Note)>,
}

/// How many results are remembered.
const ANSWERED_MAX: usize = 1 << 18;

/// How many results may wait for their call.
const WAITING_MAX: usize = 1024;

impl Orphans {
    /// Adds an event. Returns a note as soon as a result is certainly an orphan.
    pub fn event(&mut self, event: &Event<'_>) -> Option<Note> {
        let step = self.calls.add(event);
        let note = |text: String| Note::new(NoteKind::OrphanResult, event.at.unwrap_or_default(), text);
        match &event.body {
            Body::ToolCall { .. } => {
                self.waiting.retain(|(number, _)| Some(*number) != step.call);
                None
            }
            Body::ToolResult { call, .. } => {
                let is_repeat = call.as_deref().is_some_and(|id| self.is_repeat(id));
                match (call, step.call.filter(|_| step.has_no_call && !is_repeat)) {
                    (Some(id), Some(number)) => {
                        self.waiting
                            .push_back((number, note(format!("a result of call {id}, which is not in this file"))));
                        let oldest = if self.waiting.len() > WAITING_MAX { self.waiting.pop_front() } else { None };
                        oldest.map(|(_, note)| note)
                    }
                    (None, Some(_)) => Some(note("a result without a call before it".to_owned())),
                    (_, None) => None,
                }
            }
            _ => None,
        }
    }

    /// The orphans that remain at the end of the file.
    pub fn finish(&mut self) -> Vec<Note> {
        self.waiting.drain(..).map(|(_, note)| note).collect()
    }

    /// Whether a result with this id was seen before; remembers the id.
    fn is_repeat(&mut self, id: &str) -> bool {
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
