//! What a session did to files: the net change of each as a unified diff, rebuilt from the recorded calls, and a list of what cannot
//! be seen from them. A pure fold over events; no format and no tool is named, and no file is looked at.
//!
//! The content of a file is followed as far as calls and results tell it. What was read or told of it gives what it was; every edit is
//! done again on that. A call that failed, or was never answered, changes nothing. Where nothing tells what a file was, the diff has
//! the hunks that are known, without line numbers. Where a result shows something else than what the calls add up to, something that
//! is not recorded changed the file: that is listed, and the diff goes on from what is seen.

mod answer;
mod file;
mod lines;
mod look;
mod parts;
mod patch;
mod report;
mod sheet;
mod shell;
mod step;
mod told;
mod unified;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use xxhash_rust::xxh3::xxh3_64;

use crate::json::Object;
use crate::model::{Body, Content, Event, Pairing};
use crate::text::Text;
use file::{Came, File, Memory};
use sheet::{Before, Sheet};
use step::{Act, Plan, Step};
use told::{Told, told};

pub use report::{BaseKnown, ChangeHow, FileChange};
pub use step::Blind;

/// How many files are followed.
const FILES_MAX: usize = 10_000;

/// How many bytes of texts are held in all, as files were and as they are.
const HELD_SIZE_MAX: usize = 256 << 20;

/// How many bytes of calls are held whose results are still to come.
const OPEN_SIZE_MAX: usize = 64 << 20;

/// How many results are held whose calls were not seen, and how large one may be.
const EARLY_MAX: usize = 32;
const EARLY_SIZE_MAX: usize = 4 << 20;

/// How many things are listed that cannot be seen. The rest is counted.
const UNSEEN_MAX: usize = 10_000;

/// How many calls are remembered, so that one that is told twice counts once.
const CALLS_MAX: usize = 1 << 20;

/// Follows what events do to files. Give it the events of a session in order.
#[derive(Debug, Default)]
pub struct Changes {
    files: BTreeMap<String, File>,
    unseen: Vec<Unseen>,
    unlisted: u64,
    pairing: Pairing,
    open: HashMap<String, Open>,
    /// Results whose calls were not seen yet: some agents write them down first.
    early: VecDeque<(String, Answer)>,
    /// Calls that were answered, by fingerprint.
    done: HashSet<u64>,
    held: usize,
    open_size: usize,
    root: Option<String>,
    cwd: Option<String>,
    place: Place,
}

/// Where something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The source, in the order they were given, from 0.
    pub source: usize,
    /// The number of the event in it, from 1.
    pub event: u64,
    /// The line of its record, where that is known.
    pub line: Option<u64>,
}

/// Something that may have changed files, and cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Where.
    pub place: Place,
    /// The file, where that is known.
    pub path: Option<String>,
    /// The tool or the command.
    pub what: String,
    /// Why it cannot be seen.
    pub why: Why,
}

/// Why a change cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It is in a call that cannot be followed.
    Blind(Blind),
    /// The call was never answered: it may have been done.
    Unanswered,
    /// What is shown or replaced is not what the recorded calls add up to.
    Elsewhere,
    /// There is nothing known to take back.
    Untold,
    /// Its texts are over the limit.
    Limit,
    /// Its record is over the limit, and was not read.
    Oversize,
}

impl Why {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Why::Blind(Blind::Command) => "command",
            Why::Blind(Blind::Shape) => "unknown_shape",
            Why::Blind(Blind::Patch) => "unreadable_patch",
            Why::Blind(Blind::Damaged) => "no_text",
            Why::Unanswered => "unanswered",
            Why::Elsewhere => "changed_elsewhere",
            Why::Untold => "nothing_to_undo",
            Why::Limit => "over_the_limit",
            Why::Oversize => "record_over_the_limit",
        }
    }

    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Why::Blind(Blind::Command) => "a command that may write files",
            Why::Blind(Blind::Shape) => "an edit of a shape that is not known",
            Why::Blind(Blind::Patch) => "a patch that cannot be read",
            Why::Blind(Blind::Damaged) => "the content is no whole text",
            Why::Unanswered => "the call was never answered",
            Why::Elsewhere => "something that is not recorded changed the file before",
            Why::Untold => "what was taken back is not recorded",
            Why::Limit => "there is too much of it to follow",
            Why::Oversize => "a record over the limit was not read",
        }
    }
}

/// What is known when all events were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The files that changed, by path.
    pub files: Vec<FileChange>,
    /// What cannot be seen, in order.
    pub unseen: Vec<Unseen>,
    /// How much more of it there is than is listed.
    pub unlisted: u64,
}

/// A call whose result is still to come.
#[derive(Debug)]
struct Open {
    plan: Plan,
    told: Option<Told>,
    what: String,
    place: Place,
    size: usize,
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

impl Changes {
    /// The next events are those of another source.
    pub fn next_source(&mut self) {
        self.unanswered();
        self.early.clear();
        self.pairing = Pairing::default();
        self.cwd = None;
        self.place = Place { source: self.place.source + 1, event: 0, line: None };
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.place.event += 1;
        self.place.line = event.at.map(|at| at.line).filter(|line| *line > 0);
        self.take(event);
    }

    fn take(&mut self, event: &Event<'_>) {
        if let Some(cwd) = event.cwd.as_deref().filter(|cwd| !cwd.is_empty() && self.cwd.as_deref() != Some(cwd)) {
            self.cwd = Some(cwd.to_owned());
            self.root.get_or_insert_with(|| cwd.to_owned());
        }
        match &event.body {
            Body::ToolCall { call, name, input } if !event.restates => {
                let plan = step::plan(name, input, self.cwd.as_deref());
                self.call(call.as_deref(), name, plan, &input.to_text().decode());
            }
            Body::ToolResult { call, content, error, .. } if !event.restates => {
                self.result(call.as_deref(), content, *error, event);
            }
            Body::Fact { .. } => {
                told::nested(event).iter().for_each(|inner| self.take(inner));
                if let Some(told) = told(event).filter(|told| told.call.is_some() && !told.files.is_empty()) {
                    self.fact(told);
                }
            }
            Body::Other { .. } if event.is_oversize() => {
                self.blind(self.place, None, "a record", Why::Oversize);
            }
            Body::ToolCall { .. }
            | Body::ToolResult { .. }
            | Body::Message { .. }
            | Body::Thinking { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }

    /// What is known now.
    pub fn finish(mut self) -> Outcome {
        self.unanswered();
        let root = self.root.as_deref();
        let files = self.files.iter().filter_map(|(path, file)| report::change(path, file, root)).collect();
        Outcome { files, unseen: self.unseen, unlisted: self.unlisted }
    }

    fn call(&mut self, id: Option<&str>, name: &str, plan: Plan, input: &str) {
        if id.is_some_and(|id| self.done.contains(&xxh3_64(id.as_bytes()))) {
            return;
        }
        let key = self.pairing.call(id, name);
        if plan.steps.is_empty() {
            return;
        }
        let is_command = plan.steps.iter().all(|step| step.act == Act::Blind(Blind::Command));
        let what = if is_command { line_of(input) } else { name.to_owned() };
        let open = Open { plan, told: None, what, place: self.place, size: input.len(), told_paths: Vec::new() };
        let early = self.early.iter().position(|(early, _)| Some(early.as_str()) == id);
        if let Some((key, answer)) = early.and_then(|at| self.early.remove(at)) {
            self.pairing.result(Some(&key));
            return self.settle(&key, open, answer);
        }
        if self.open_size + open.size > OPEN_SIZE_MAX {
            return self.blind(self.place, None, &open.what, Why::Limit);
        }
        self.open_size += open.size;
        if let Some(old) = self.open.insert(key, open) {
            self.open_size -= old.size;
        }
    }

    fn result(&mut self, id: Option<&str>, content: &Content<'_>, error: Option<bool>, event: &Event<'_>) {
        let answer = || Answer { said: content.joined().decode().into_owned(), told: told(event), error };
        match self.pairing.result(id) {
            Some((key, _)) => {
                if let Some(open) = self.open.remove(&key) {
                    self.open_size -= open.size;
                    self.settle(&key, open, answer());
                }
            }
            None => {
                let Some(id) = id.filter(|id| !self.done.contains(&xxh3_64(id.as_bytes()))) else { return };
                let answer = answer();
                if answer.said.len() <= EARLY_SIZE_MAX {
                    self.early.truncate(EARLY_MAX - 1);
                    self.early.push_front((id.to_owned(), answer));
                }
            }
        }
    }

    /// A call and its result are known: what the call did is done.
    fn settle(&mut self, id: &str, open: Open, answer: Answer) {
        if self.done.len() < CALLS_MAX && !self.done.insert(xxh3_64(id.as_bytes())) {
            return;
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
            if let [Act::Blind(blind)] = acts.as_slice() {
                // A program with a patch in it is no riddle where other records tell what it did.
                let is_told = *blind == Blind::Patch && !open.told_paths.is_empty();
                // What a command did before it failed is done.
                if !is_told && (worked || *blind == Blind::Command) {
                    let path = Some(path).filter(|path| !path.is_empty());
                    self.blind(open.place, path, &open.what, Why::Blind(*blind));
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
    fn fact(&mut self, mut told: Told) {
        let Some(call) = told.call.take() else { return };
        if self.done.contains(&xxh3_64(call.as_bytes())) {
            return;
        }
        if let Some(open) = self.open.get_mut(&call) {
            open.told = Some(told);
            return;
        }
        if told.success == Some(false) {
            return;
        }
        // A call inside of another one, of which only this record tells.
        if self.done.len() < CALLS_MAX {
            self.done.insert(xxh3_64(call.as_bytes()));
        }
        for Group { path, acts } in grouped(steps_of(Vec::new(), Some(&told))) {
            self.open.values_mut().for_each(|open| open.told_paths.push(path.clone()));
            let came = self.acts(&path, acts, None, Memory::None, "");
            self.came(came, path, "a call inside of another");
        }
    }

    /// Does to one file what a call did to it.
    fn acts(&mut self, path: &str, mut acts: Vec<Act>, told: Option<&Told>, memory: Memory, said: &str) -> Came {
        if let [Act::Move(to)] = acts.as_slice() {
            self.rename(path, to.clone());
            return Came::Followed;
        }
        if !self.files.contains_key(path) && self.files.len() >= FILES_MAX {
            return Came::TooLarge;
        }
        let file = self.files.entry(path.to_owned()).or_default();
        let before = file.size();
        if let [Act::Write { before, .. }] = acts.as_mut_slice()
            && answer::is_creation(said)
        {
            *before = Before::Absent;
        }
        let came = match acts.as_slice() {
            [Act::Look { all }] => match told.and_then(|told| told.shown.as_ref()) {
                Some(shown) if shown.all => file.see(&shown.text),
                Some(shown) => file.see_lines(shown.at, &shown.text),
                None => file.look(said, *all),
            },
            acts => file.act(acts, told, memory),
        };
        self.held = self.held + file.size() - before;
        if self.held > HELD_SIZE_MAX {
            // What was only read is the first to go.
            self.files.retain(|_, file| !file.is_unchanged());
            self.held = self.files.values().map(File::size).sum();
        }
        if self.held > HELD_SIZE_MAX {
            let gone = self.files.remove(path);
            self.held -= gone.map_or(0, |file| file.size());
            return Came::TooLarge;
        }
        came
    }

    /// A file gets another path. One that is there already is written over, and the other one goes.
    fn rename(&mut self, path: &str, to: String) {
        let mut file = self.files.remove(path).unwrap_or_default();
        let origin = file.from.clone().unwrap_or_else(|| path.to_owned());
        if let (Some(target), Sheet::Whole { now: Some(now), .. }) = (self.files.get_mut(&to), &mut file.sheet) {
            target.sheet.write(std::mem::take(now), Before::Unknown);
            file.sheet.delete();
            self.files.insert(path.to_owned(), file);
            return;
        }
        // A file that was made here and then moved was made there.
        let is_new = matches!(file.sheet, Sheet::Whole { base: sheet::Base::Absent, .. }) && file.closed.is_empty();
        file.from = Some(origin).filter(|origin| !is_new && *origin != to);
        self.files.insert(to, file);
    }

    fn came(&mut self, came: Came, path: String, what: &str) {
        let why = match came {
            Came::Followed => return,
            Came::Elsewhere => Why::Elsewhere,
            Came::Untold => Why::Untold,
            Came::TooLarge => Why::Limit,
        };
        self.blind(self.place, Some(path), what, why);
    }

    fn blind(&mut self, place: Place, path: Option<String>, what: &str, why: Why) {
        if self.unseen.len() < UNSEEN_MAX {
            self.unseen.push(Unseen { place, path, what: what.to_owned(), why });
        } else {
            self.unlisted += 1;
        }
    }

    /// Calls that nobody answered: what they were to do may have been done.
    fn unanswered(&mut self) {
        let mut open: Vec<Open> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|open| open.place.event);
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
    let short = crate::text::beginning(line, LENGTH_MAX);
    if short.len() < text.len() { format!("{short}…") } else { short.to_owned() }
}

#[cfg(test)]
mod tests;
