//! What each call did to files, once the fold [`Calls`] has decided its outcome. A call that several sources contain counts
//! once.

use std::collections::{BTreeMap, VecDeque};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Changes;
use super::answer::says_nothing_changed;
use super::file::Memory;
use super::file_report::{FileReport, file_report};
use super::step::{self, Act, Opaque, Plan, Step};
use super::unseen::UnseenReason;
use crate::calls::{CallOutcome, CallStep, Calls};
use crate::json::Object;
use crate::model::{Body, Content, Event};
use crate::run_state::EventPlace;
use crate::text::{Text, beginning};

/// The most bytes of held calls without a result.
const OPEN_SIZE_MAX: usize = 64 << 20;

/// The most held results without a call, and the size limit of one.
const EARLY_MAX: usize = 32;
const EARLY_SIZE_MAX: usize = 4 << 20;

/// How many calls are remembered, so that a call that several sources contain counts once.
const CALLS_MAX: usize = 1 << 20;

/// The calls of one source.
#[derive(Debug, Default)]
pub(super) struct SourceCalls {
    /// The number of its events so far.
    pub given: u64,
    /// Its working folder.
    pub cwd: Option<String>,
    /// Decides which result belongs to which call, and whether the call failed.
    pub calls: Calls,
    /// Calls without a result that may change files, by the number that `calls` assigns to them.
    open: BTreeMap<u64, OpenCall>,
    /// Results that precede their calls, by the number of the call.
    early: VecDeque<(u64, CallResult)>,
}

/// A call without a result so far.
#[derive(Debug)]
struct OpenCall {
    plan: Plan,
    report: Option<FileReport>,
    what: String,
    place: EventPlace,
    size: usize,
    /// A fingerprint of its id, and one of the whole call; 0 for a call without an id.
    id: u64,
    fingerprint: u64,
    /// Files that another record has reported in the meantime.
    reported_paths: Vec<String>,
}

/// The result of a call.
#[derive(Clone, Debug)]
struct CallResult {
    output: String,
    report: Option<FileReport>,
    /// Whether the record states that the call did not fail.
    is_stated_ok: bool,
}

impl SourceCalls {
    /// Changes the working folder.
    pub fn moves_to(&mut self, cwd: &str) {
        if self.cwd.as_deref() != Some(cwd) {
            self.cwd = Some(cwd.to_owned());
        }
    }
}

impl Changes {
    pub(super) fn call(&mut self, step: &CallStep, id: Option<&str>, name: &str, plan: Plan, input: &str) {
        let Some(number) = step.call.filter(|_| !step.is_again) else { return };
        // An agent may use an id twice: a different call with the same id is another call.
        let fingerprint = id.map_or(0, |id| xxh3_64_with_seed(input.as_bytes(), Calls::id(Some(id)) ^ hash(name)));
        if plan.steps.is_empty() || fingerprint != 0 && self.done.contains(&fingerprint) {
            return;
        }
        let is_command = plan.steps.iter().all(|step| step.act == Act::Opaque(Opaque::Command));
        let what = if is_command { line_of(input) } else { name.to_owned() };
        let (place, size, id) = (self.place, input.len(), Calls::id(id));
        let open = OpenCall { plan, report: None, what, place, size, id, fingerprint, reported_paths: Vec::new() };
        let source = self.source_calls();
        let early = source.early.iter().position(|(early, _)| *early == number);
        if let Some((_, result)) = early.and_then(|at| source.early.remove(at)) {
            let outcome = step.early.map_or(CallOutcome::Unknown, |decision| decision.outcome);
            return self.apply_call(open, result, outcome);
        }
        if self.open_size + size > OPEN_SIZE_MAX {
            return self.add_unseen(place, None, &open.what, UnseenReason::Limit);
        }
        self.open_size += size;
        self.source_calls().open.insert(number, open);
    }

    pub(super) fn result(&mut self, step: &CallStep, content: &Content<'_>, event: &Event<'_>) {
        let Some(decision) = step.decision.filter(|_| !step.is_again) else { return };
        let is_stated_ok = matches!(event.body, Body::ToolResult { error: Some(false), .. });
        let result =
            || CallResult { output: content.joined().decode().into_owned(), report: file_report(event), is_stated_ok };
        let source = self.source_calls();
        if let Some(open) = source.open.remove(&decision.call) {
            self.open_size -= open.size;
            self.apply_call(open, result(), decision.outcome);
        } else if step.has_no_call {
            let result = result();
            if result.output.len() <= EARLY_SIZE_MAX {
                source.early.truncate(EARLY_MAX - 1);
                source.early.push_front((decision.call, result));
            }
        }
    }

    /// Applies what a call with this outcome did to the files.
    fn apply_call(&mut self, open: OpenCall, result: CallResult, outcome: CallOutcome) {
        if open.id != 0 && self.done.len() < CALLS_MAX {
            self.known.insert(open.id);
            if !self.done.insert(open.fingerprint) {
                return;
            }
        }
        let CallResult { output, report, is_stated_ok } = result;
        let report = open.report.or(report);
        // A result without a stated outcome may still say in its first words that the tool changed nothing.
        let is_stated = is_stated_ok || report.as_ref().is_some_and(|report| report.success == Some(true));
        let worked = !outcome.is_failure()
            && report.as_ref().is_none_or(|report| report.success != Some(false))
            && (is_stated || !says_nothing_changed(&output));
        let memory = if open.plan.undoable { Memory::Keeps } else { Memory::None };
        let steps = steps_of(open.plan.steps, report.as_ref());
        let mut first = true;
        for group in grouped(steps) {
            let Group { path, acts } = group;
            if open.reported_paths.contains(&path) {
                continue;
            }
            if let [Act::Opaque(opaque)] = acts.as_slice() {
                // A program that contains a patch can be tracked if other records report what it did.
                let is_reported = *opaque == Opaque::Patch && !open.reported_paths.is_empty();
                // A command may change files before it fails.
                if !is_reported && (worked || *opaque == Opaque::Command) {
                    let path = Some(path).filter(|path| !path.is_empty());
                    self.add_unseen(open.place, path, &open.what, UnseenReason::Opaque(*opaque));
                }
            } else if worked {
                // A report on a call applies to its first file.
                let report = report.as_ref().filter(|_| std::mem::take(&mut first));
                let applied = self.acts(&path, acts, report, memory, &output);
                self.record_applied(applied, path, &open.what);
            }
        }
    }

    /// Applies a record other than a result that reports what a call did.
    pub(super) fn fact(&mut self, step: &CallStep, mut report: FileReport) {
        let Some(call) = report.call.take() else { return };
        let id = Calls::id(Some(&call));
        if let Some(open) = step.call.and_then(|number| self.source_calls().open.get_mut(&number)) {
            open.report = Some(report);
            return;
        }
        if report.success == Some(false) || self.known.contains(&id) {
            return;
        }
        // A call inside another call, which only this record reports.
        if self.known.len() < CALLS_MAX {
            self.known.insert(id);
        }
        for Group { path, acts } in grouped(steps_of(Vec::new(), Some(&report))) {
            self.source_calls().open.values_mut().for_each(|open| open.reported_paths.push(path.clone()));
            let applied = self.acts(&path, acts, None, Memory::None, "");
            self.record_applied(applied, path, "a call inside another call");
        }
    }

    /// Lists the calls without a result: they may have been carried out.
    pub(super) fn unanswered(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        let open = sources.into_values().flat_map(|source| source.open.into_values());
        // Another source with the same call may have its result.
        let mut open: Vec<OpenCall> =
            open.filter(|open| open.id == 0 || !self.done.contains(&open.fingerprint)).collect();
        open.sort_by_key(|open| (open.place.source, open.place.event));
        self.open_size = 0;
        for open in open {
            let step = open.plan.steps.into_iter().find(|step| !matches!(step.act, Act::Look { .. }));
            if let Some(step) = step {
                let path = Some(step.path).filter(|path| !path.is_empty());
                self.add_unseen(open.place, path, &open.what, UnseenReason::Unanswered);
            }
        }
        self.unseen.sort_by_key(|unseen| (unseen.place.source, unseen.place.event));
    }

    /// The calls of the source that the next event belongs to.
    pub(super) fn source_calls(&mut self) -> &mut SourceCalls {
        self.sources.entry(self.place.source).or_default()
    }
}

fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes()).max(1)
}

/// The steps of a call: those that its record reports for programs, if the report is complete, otherwise those it
/// requested.
fn steps_of(planned: Vec<Step>, report: Option<&FileReport>) -> Vec<Step> {
    let Some(report) = report else { return planned };
    if !report.files.is_empty() {
        let mut steps = Vec::new();
        step::patched(report.files.clone(), None, &mut steps);
        return steps;
    }
    planned
}

/// The steps on one file, in order.
struct Group {
    path: String,
    acts: Vec<Act>,
}

/// Groups steps by file, as long as they only change its text.
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
