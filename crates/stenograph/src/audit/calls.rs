//! Calls and which answer belongs to which: tools are tallied, and a call counts once however often it is told. What an answer means is
//! not decided here.

use std::collections::{HashMap, HashSet, VecDeque};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::answer::Answer;
use super::keys::Keys;
use super::report::{Call, Kept, Outcome, Place, Tool};
use crate::model::Input;
use crate::query::Touch;
use crate::text::beginning;

/// The calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub tools: Vec<Tool>,
    pub kept: Kept<Call>,
    names: HashMap<String, usize>,
    /// How many bytes the kept calls have.
    size: usize,
    open: VecDeque<Open>,
    early: VecDeque<(u64, Answer, Place)>,
    seen: HashSet<u64>,
    /// Ids of calls that were made, to know an answer that is told again.
    ids: HashSet<u64>,
    failed: HashSet<u64>,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Open {
    /// A fingerprint of what ties call and result; 0 for a call without.
    pub id: u64,
    pub thread: usize,
    pub tool: usize,
    /// A fingerprint of the tool and its input.
    pub print: u64,
    pub place: Place,
    /// Where it is kept, if it is.
    pub at: Option<usize>,
    pub keys: Keys,
    pub touches: Vec<Touch>,
    /// Whether its answer may state an exit code.
    pub may_exit: bool,
    /// The step that it was made in.
    pub step: u64,
    /// Its number in what stands before the model.
    pub number: u64,
    /// The work that it asks after, if it asks for some.
    pub after: Option<usize>,
    /// What it adds to the list of what is to do.
    pub todo: Option<String>,
    /// The agent that it gives a task.
    pub agent: Option<usize>,
}

/// How many calls are kept one by one. A session of a week has some thousands.
const CALLS_MAX: usize = 50_000;

/// How many bytes of their inputs are kept.
const SIZE_MAX: usize = 32 << 20;

/// How many tools are told apart; a session has dozens.
const TOOLS_MAX: usize = 4096;

/// How many calls may wait for an answer.
const OPEN_MAX: usize = 4096;

/// How many answers may stand before their calls.
const EARLY_MAX: usize = 64;

/// How many calls are remembered to know them again.
const SEEN_MAX: usize = 4 << 20;

/// An id that is shorter than this may be given twice.
const ID_LENGTH_MIN: usize = 8;

/// The name under which tools are counted that are too many.
const OTHER_TOOLS: &str = "(other tools)";

impl Calls {
    /// The fingerprint of what ties a call and its result.
    pub fn id(id: Option<&str>) -> u64 {
        id.filter(|id| !id.is_empty()).map_or(0, |id| xxh3_64(id.as_bytes()).max(1))
    }

    /// The fingerprint of a tool and its input.
    pub fn print(name: &str, input: &Input<'_>) -> u64 {
        xxh3_64_with_seed(input.to_text().decode().as_bytes(), xxh3_64(name.as_bytes()))
    }

    /// Whether a call was told already. Where one of two that say the same has no id, the other's counts.
    pub fn is_known(&mut self, stated: Option<&str>, thread: usize, print: u64) -> bool {
        let id = Calls::id(stated);
        let alike = self
            .open
            .iter_mut()
            .find(|open| open.print == print && open.thread == thread && (open.id == id || open.id == 0 || id == 0));
        let is_open = alike.is_some();
        if let Some(open) = alike.filter(|open| open.id == 0) {
            open.id = id;
        }
        if self.seen.len() >= SEEN_MAX {
            return is_open;
        }
        if id != 0 {
            self.ids.insert(id);
        }
        let is_lasting = stated.is_some_and(|id| id.len() >= ID_LENGTH_MIN);
        is_lasting && !self.seen.insert(print ^ id.rotate_left(17)) || is_open
    }

    /// Takes a new call. What waits too long is given back as unanswered.
    pub fn begin(&mut self, mut open: Open, name: &str) -> (usize, Option<Open>) {
        open.tool = self.tool(name);
        let is_retry = self.failed.contains(&open.print);
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.calls += 1;
            tool.retries += u64::from(is_retry);
        }
        let call = Call {
            place: open.place,
            thread: open.thread,
            tool: Some(open.tool),
            keys: open.keys.fields.clone(),
            is_cut: open.keys.is_cut,
            command: open.keys.command.clone(),
            outcome: Outcome::Unanswered,
            exit: None,
            took_ms: None,
            is_retry,
            answer: None,
            said: None,
            asks_after: None,
        };
        open.at = self.keep(call);
        let tool = open.tool;
        let oldest = if self.open.len() >= OPEN_MAX { self.open.pop_front() } else { None };
        self.open.push_back(open);
        (tool, oldest)
    }

    /// Keeps a call, if there is room.
    pub fn keep(&mut self, call: Call) -> Option<usize> {
        let size = call.keys.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
            + call.command.as_ref().map_or(0, String::len);
        if self.size + size > SIZE_MAX {
            self.kept.more += 1;
            return None;
        }
        self.size += size;
        self.kept.push(call, CALLS_MAX)
    }

    /// The answer to the call that was made last, if it stood before it.
    pub fn early(&mut self) -> Option<(Open, Answer, Place)> {
        let id = self.open.back()?.id;
        let at = self.early.iter().position(|(early, ..)| *early == id && id != 0)?;
        let (_, answer, place) = self.early.remove(at)?;
        Some((self.open.pop_back()?, answer, place))
    }

    /// The call that an answer belongs to. One that is told again belongs to none.
    pub fn answered(&mut self, id: Option<&str>, thread: usize) -> Option<Open> {
        let id = Calls::id(id);
        let at = match id {
            0 => {
                let mine = |open: &Open| open.thread == thread;
                let nameless = self.open.iter().position(|open| open.id == 0 && mine(open));
                nameless.or_else(|| self.open.iter().position(mine))
            }
            id => self.open.iter().position(|open| open.id == id),
        };
        self.open.remove(at?)
    }

    /// Keeps an answer whose call may follow.
    pub fn keep_early(&mut self, id: Option<&str>, answer: Answer, place: Place) {
        let id = Calls::id(id);
        if id == 0 || self.ids.contains(&id) {
            return;
        }
        if self.early.len() >= EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((id, answer, place));
    }

    /// Whether a call with this id was made.
    pub fn is_made(&self, id: Option<&str>) -> bool {
        self.ids.contains(&Calls::id(id))
    }

    /// The call with this id, if it still waits.
    pub fn waiting(&mut self, id: Option<&str>) -> Option<&mut Open> {
        let id = Calls::id(id);
        self.open.iter_mut().find(|open| open.id == id && id != 0)
    }

    /// Writes down what came of a call.
    pub fn settle(&mut self, open: &Open, answer: &Answer, place: Place, outcome: Outcome) {
        let took_ms = match (open.place.time_ms, place.time_ms) {
            (Some(from), Some(to)) => u64::try_from(to.saturating_sub(from)).ok(),
            _ => None,
        };
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.failed += u64::from(outcome == Outcome::Failed);
            tool.denied += u64::from(outcome == Outcome::Denied);
            if let Some(took_ms) = took_ms {
                tool.timed += 1;
                tool.time_ms = tool.time_ms.saturating_add(took_ms);
                tool.longest_ms = tool.longest_ms.max(took_ms);
            }
        }
        match outcome {
            Outcome::Good => {
                self.failed.remove(&open.print);
            }
            Outcome::Failed | Outcome::Denied if self.failed.len() < SEEN_MAX => {
                self.failed.insert(open.print);
            }
            Outcome::Failed | Outcome::Denied | Outcome::Unanswered => {}
        }
        let is_bad = matches!(outcome, Outcome::Failed | Outcome::Denied);
        if let Some(call) = open.at.and_then(|at| self.kept.items.get_mut(at)) {
            call.outcome = outcome;
            call.exit = answer.exit.filter(|_| open.may_exit).or(call.exit);
            call.took_ms = took_ms;
            call.answer = Some(place);
            call.said = is_bad.then(|| answer.beginning.clone()).filter(|said| !said.is_empty());
        }
    }

    /// Gives back what never was answered.
    pub fn unanswered(&mut self, open: &Open) {
        if let Some(tool) = self.tools.get_mut(open.tool) {
            tool.unanswered += 1;
        }
    }

    /// Everything that still waits.
    pub fn rest(&mut self) -> Vec<Open> {
        self.open.drain(..).collect()
    }

    /// The name of a tool.
    pub fn name(&self, tool: usize) -> &str {
        self.tools.get(tool).map(|tool| tool.name.as_str()).unwrap_or_default()
    }

    fn tool(&mut self, name: &str) -> usize {
        let name = if self.tools.len() + 1 >= TOOLS_MAX && !self.names.contains_key(name) { OTHER_TOOLS } else { name };
        if let Some(tool) = self.names.get(name) {
            return *tool;
        }
        self.tools.push(Tool { name: beginning(name, 1024).to_owned(), ..Tool::default() });
        self.names.insert(name.to_owned(), self.tools.len() - 1);
        self.tools.len() - 1
    }
}
