//! Calls and their results: which belong together, which are told twice, and what a call did once it is known that it worked.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::file::Memory;
use super::step::{self, Act, Opaque, Plan, Step};
use super::told::{Told, told};
use super::unseen::{Place, Why};
use super::{Changes, answer};
use crate::json::Object;
use crate::model::{Content, Event, Pairing};
use crate::text::{Text, beginning};

/// How many bytes of calls are held whose results are still to come.
const OPEN_SIZE_MAX: usize = 64 << 20;

/// How many results are held whose calls were not seen, and how large one may be.
const EARLY_MAX: usize = 32;
const EARLY_SIZE_MAX: usize = 4 << 20;

/// How many calls are remembered, so that one that is told twice counts once.
const CALLS_MAX: usize = 1 << 20;

/// What is open in one source.
#[derive(Debug, Default)]
pub(super) struct Strand {
    /// How many of its events were given.
    pub given: u64,
    /// Its working folder.
    pub cwd: Option<String>,
    pairing: Pairing,
    open: HashMap<String, Open>,
    /// Results whose calls were not seen yet: some agents write them down first.
    early: VecDeque<(String, Answer)>,
}

/// A call whose result is still to come.
#[derive(Debug)]
struct Open {
    plan: Plan,
    told: Option<Told>,
    what: String,
    place: Place,
    size: usize,
    /// A fingerprint of its id, and one of all of it; 0 for a call without an id.
    id: u64,
    print: u64,
    /// Files that another record told about in the meantime.
    told_paths: Vec<String>,
}

/// What a result says of its call.
#[derive(Clone, Debug)]
struct Answer {
    said: String,
    told: Option<Told>,
    /// Whether it failed, where the source says so.
    error: Option<bool>,
}

impl Strand {
    /// The working folder is this one now.
    pub fn moves_to(&mut self, cwd: &str) {
        if self.cwd.as_deref() != Some(cwd) {
            self.cwd = Some(cwd.to_owned());
        }
    }
}

impl Changes {
    pub(super) fn call(&mut self, id: Option<&str>, name: &str, plan: Plan, input: &str) {
        let stated = id.map_or(0, hash);
        // An agent may give an id twice; then another call is another one.
        let print = id.map_or(0, |id| xxh3_64_with_seed(input.as_bytes(), hash(id) ^ hash(name)));
        if id.is_some() && self.done.contains(&print) {
            return;
        }
        let (place, open_size) = (self.place, self.open_size);
        let strand = self.strand();
        let key = strand.pairing.call(id, name);
        if plan.steps.is_empty() {
            return;
        }
        let is_command = plan.steps.iter().all(|step| step.act == Act::Opaque(Opaque::Command));
        let what = if is_command { line_of(input) } else { name.to_owned() };
        let size = input.len();
        let open = Open { plan, told: None, what, place, size, id: stated, print, told_paths: Vec::new() };
        let early = strand.early.iter().position(|(early, _)| Some(early.as_str()) == id);
        if let Some((key, answer)) = early.and_then(|at| strand.early.remove(at)) {
            strand.pairing.result(Some(&key));
            return self.settle(open, answer);
        }
        if open_size + size > OPEN_SIZE_MAX {
            return self.blind(place, None, &open.what, Why::Limit);
        }
        let old = strand.open.insert(key, open);
        self.open_size = open_size + size - old.map_or(0, |old| old.size);
    }

    pub(super) fn result(&mut self, id: Option<&str>, content: &Content<'_>, error: Option<bool>, event: &Event<'_>) {
        let answer = || Answer { said: content.joined().decode().into_owned(), told: told(event), error };
        let is_known = id.is_none_or(|id| self.known.contains(&hash(id)));
        let strand = self.strand();
        match strand.pairing.result(id) {
            Some((key, _)) => {
                if let Some(open) = strand.open.remove(&key) {
                    self.open_size -= open.size;
                    self.settle(open, answer());
                }
            }
            None => {
                let Some(id) = id.filter(|_| !is_known) else { return };
                let answer = answer();
                if answer.said.len() <= EARLY_SIZE_MAX {
                    strand.early.truncate(EARLY_MAX - 1);
                    strand.early.push_front((id.to_owned(), answer));
                }
            }
        }
    }

    /// A call and its result are known: what the call did is done.
    fn settle(&mut self, open: Open, answer: Answer) {
        if open.id != 0 && self.done.len() < CALLS_MAX {
            self.known.insert(open.id);
            if !self.done.insert(open.print) {
                return;
            }
        }
        let Answer { said, told, error } = answer;
        let told = open.told.or(told);
        let stated = error.map(|error| !error).or_else(|| told.as_ref()?.success);
        let worked = stated.unwrap_or_else(|| !answer::is_failure(&said));
        let memory = if open.plan.undoable { Memory::Keeps } else { Memory::None };
        let steps = steps_of(open.plan.steps, told.as_ref());
        let mut first = true;
        for group in grouped(steps) {
            let Group { path, acts } = group;
            if open.told_paths.contains(&path) {
                continue;
            }
            if let [Act::Opaque(blind)] = acts.as_slice() {
                // A program with a patch in it is no riddle where other records tell what it did.
                let is_told = *blind == Opaque::Patch && !open.told_paths.is_empty();
                // What a command did before it failed is done.
                if !is_told && (worked || *blind == Opaque::Command) {
                    let path = Some(path).filter(|path| !path.is_empty());
                    self.blind(open.place, path, &open.what, Why::Opaque(*blind));
                }
            } else if worked {
                // What is told of a call is told of its first file.
                let told = told.as_ref().filter(|_| std::mem::take(&mut first));
                let came = self.acts(&path, acts, told, memory, &said);
                self.came(came, path, &open.what);
            }
        }
    }

    /// A record that is no result tells what a call did.
    pub(super) fn fact(&mut self, mut told: Told) {
        let Some(call) = told.call.take() else { return };
        if let Some(open) = self.strand().open.get_mut(&call) {
            open.told = Some(told);
            return;
        }
        if told.success == Some(false) || self.known.contains(&hash(&call)) {
            return;
        }
        // A call inside of another one, of which only this record tells.
        if self.known.len() < CALLS_MAX {
            self.known.insert(hash(&call));
        }
        for Group { path, acts } in grouped(steps_of(Vec::new(), Some(&told))) {
            self.strand().open.values_mut().for_each(|open| open.told_paths.push(path.clone()));
            let came = self.acts(&path, acts, None, Memory::None, "");
            self.came(came, path, "a call inside of another");
        }
    }

    /// Calls that nobody answered: what they were to do may have been done.
    pub(super) fn unanswered(&mut self) {
        let strands = std::mem::take(&mut self.strands);
        let open = strands.into_values().flat_map(|strand| strand.open.into_values());
        // One that another source tells too may be answered there.
        let mut open: Vec<Open> = open.filter(|open| open.id == 0 || !self.done.contains(&open.print)).collect();
        open.sort_by_key(|open| (open.place.source, open.place.event));
        self.open_size = 0;
        for open in open {
            let step = open.plan.steps.into_iter().find(|step| !matches!(step.act, Act::Look { .. }));
            if let Some(step) = step {
                let path = Some(step.path).filter(|path| !path.is_empty());
                self.blind(open.place, path, &open.what, Why::Unanswered);
            }
        }
        self.unseen.sort_by_key(|unseen| (unseen.place.source, unseen.place.event));
    }

    /// What is open in the source at hand.
    pub(super) fn strand(&mut self) -> &mut Strand {
        self.strands.entry(self.place.source).or_default()
    }
}

fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes()).max(1)
}

/// What a call did, step by step: what its record tells for programs, where it tells all of it, else what it was to do.
fn steps_of(planned: Vec<Step>, told: Option<&Told>) -> Vec<Step> {
    let Some(told) = told else { return planned };
    if !told.files.is_empty() {
        let mut steps = Vec::new();
        step::patched(told.files.clone(), None, &mut steps);
        return steps;
    }
    planned
}

/// What is done to one file, one after the other.
struct Group {
    path: String,
    acts: Vec<Act>,
}

/// Steps by file, as long as they only change its text.
fn grouped(steps: Vec<Step>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let is_text = |act: &Act| matches!(act, Act::Replace { .. } | Act::Insert { .. } | Act::Patch(_) | Act::Append(_));
    for Step { path, act } in steps {
        match groups.last_mut() {
            Some(last) if last.path == path && is_text(&act) && last.acts.iter().all(is_text) => last.acts.push(act),
            Some(_) | None => groups.push(Group { path, acts: vec![act] }),
        }
    }
    groups
}

/// The first line of a command, short enough for a list.
fn line_of(input: &str) -> String {
    const LENGTH_MAX: usize = 200;
    let text = Object::parse(input).and_then(|object| {
        ["command", "cmd", "script"]
            .iter()
            .find_map(|key| Some(Text::from_json(object.peek(key)?)?.decode().into_owned()))
    });
    let text = text.as_deref().unwrap_or(input).trim();
    let line = text.lines().next().unwrap_or_default();
    let short = beginning(line, LENGTH_MAX);
    if short.len() < text.len() { format!("{short}…") } else { short.to_owned() }
}
