//! The runs of agents as they are now: what each of them needs, and whether a process works on it. The library has the rules for
//! one run; this module finds the runs.

mod look;
mod need;
mod processes;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use stenograph::format::Format;
use stenograph::status::State;

pub use look::{Look, RunLook};
pub use need::Need;
pub use processes::Processes;

use crate::databases;
use crate::discover::{FoundFile, Places, discover, registry_path_hints};
use crate::source_file::Confidence;
use crate::{Error, Source};

/// Which runs of this machine are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsSeen {
    /// All recent ones, so that the newest one of a folder is known.
    All,
    /// Those that the user named.
    Named,
}

/// The transcripts that agents have written, the newest first.
pub fn transcripts(places: &Places) -> Vec<FoundFile> {
    let mut found = Vec::new();
    discover(places, &mut |file| found.push(file));
    found.sort_by_key(|file| Reverse(file.stat.modified_ns));
    found
}

/// Looks at everything written since [`Look::since_ms`], one run for each agent. The files come newest first. A file that cannot be
/// read was not requested by name, and is left out.
pub fn look_around(found: Vec<FoundFile>, look: Look<'_>) -> Vec<RunLook> {
    let mut agents: HashMap<AgentKey, RunLook> = HashMap::new();
    // An agent may have several files: those with older records still say what a file without times does not.
    let of_any_age = Look { since_ms: i64::MIN, ..look };
    // A file not written recently has no new records.
    let is_recent = |found: &FoundFile| found.stat.modified_ns / 1_000_000 >= look.since_ms;
    let recent: Vec<FoundFile> = found.into_iter().take_while(is_recent).collect();
    let mut recent = databases::expanded(recent, &HashMap::new(), &HashMap::new(), &mut Vec::new());
    recent.retain(is_recent);
    for found in recent {
        let Ok(Some(mut run)) = of_any_age.at(&found.path, &found.stat, |source| recognize(source, &found)) else {
            continue;
        };
        let is_log = run.format.is_some_and(|format| format.info().traits.log);
        let is_telling = run.status.state != State::Unknown || run.format.is_some();
        if is_log || !is_telling {
            continue;
        }
        run.place(&found.hints);
        let key = AgentKey::of(&run, found.hints.session, found.hints.within);
        match agents.get(&key) {
            Some(known) if !run.tells_more_than(known) => {}
            Some(_) | None => drop(agents.insert(key, run)),
        }
    }
    let mut runs: Vec<RunLook> = agents.into_values().filter(|run| run.active_ms() >= look.since_ms).collect();
    look_for_processes(&mut runs, RunsSeen::All);
    sort(&mut runs);
    runs
}

/// A file that is left out.
struct LeftOut;

impl From<Error> for LeftOut {
    fn from(_error: Error) -> LeftOut {
        LeftOut
    }
}

/// The format of a source; an empty source has none yet.
fn recognize(source: &Source, found: &FoundFile) -> Result<Option<&'static dyn Format>, LeftOut> {
    if source.head().is_empty() {
        return Ok(None);
    }
    let hints = registry_path_hints(found.hints.registry, &found.path);
    let recognized = source.recognize(&hints).filter(|found| found.confidence != Confidence::Tied);
    recognized.map(|found| Some(found.format)).ok_or(LeftOut)
}

/// Looks whether processes work on the runs, if that can change what is known about them.
pub fn look_for_processes(runs: &mut [RunLook], seen: RunsSeen) {
    if !runs.iter().any(RunLook::needs_process) {
        return;
    }
    let processes = Processes::now();
    let mut newest: Vec<&mut RunLook> = runs.iter_mut().collect();
    newest.sort_by_key(|run| Reverse(run.active_ms()));
    let mut folders = HashSet::new();
    for run in newest {
        let program = run.format.and_then(|format| format.info().resume).unwrap_or_default();
        let program = program.split_whitespace().next().unwrap_or_default();
        let cwd = run.status.cwd.clone().unwrap_or_default();
        // A program in a folder works on the newest of its sessions there. Among named files, the newest session is
        // unknown.
        let is_newest = folders.insert((program, cwd.clone())) && seen == RunsSeen::All;
        if !run.needs_process() {
            continue;
        }
        // A run may not state its folder.
        let is_placed = !cwd.is_empty();
        let may_run = if is_placed { processes.run_in(program, &cwd) } else { processes.run(program) };
        let is_seen = processes.have_open(run.file) || is_newest && is_placed && may_run;
        // If the program does not run at all, it works on none of its sessions.
        let can_tell = processes.are_visible() && !program.is_empty() && (!may_run || is_newest && is_placed);
        run.set_process((is_seen || can_tell).then_some(is_seen));
    }
}

/// The identity of an agent: several files may describe it.
#[derive(PartialEq, Eq, Hash)]
struct AgentKey {
    agent: String,
    session: String,
    thread: Option<String>,
    within: Option<Arc<Path>>,
}

impl AgentKey {
    /// The location of a file best identifies its session; a file without a session is an agent of its own.
    fn of(run: &RunLook, named: Option<String>, within: Option<Arc<Path>>) -> AgentKey {
        let session = named.or_else(|| run.status.session.clone());
        AgentKey {
            agent: run.agent().unwrap_or_default().to_owned(),
            session: session.unwrap_or_else(|| run.path.display().to_string()),
            thread: run.status.thread.clone(),
            within,
        }
    }
}

/// Sorts runs: active ones come first, then the newest.
pub fn sort(runs: &mut [RunLook]) {
    let rank = |state: State| match state {
        State::Running | State::Stuck => 0,
        State::Error | State::Failed | State::Stalled | State::Idle | State::Completed | State::Unknown => 1,
    };
    runs.sort_by_key(|run| (rank(run.status.state), Reverse(run.active_ms()), run.path.clone()));
}
