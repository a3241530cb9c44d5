//! Agents that were given a task, and what goes on behind a call: later calls ask after it by a name that its answer gave. Which of them
//! has which side conversation is settled at the end.

use crate::text::beginning;
use std::collections::HashMap;

use super::answer::Answer;
use super::report::{Agent, AgentState, CallOutcome, Capped, Place};
use super::thread::Course;
use crate::evidence::Task;

/// Agents and other work that goes on.
#[derive(Debug, Default)]
pub(super) struct Agents {
    pub kept: Capped<Agent>,
    /// The conversations that gave them their tasks, one for each.
    givers: Vec<usize>,
    /// Fingerprints of their tasks, one for each.
    prints: Vec<u64>,
    by_call: HashMap<u64, usize>,
    by_thread: HashMap<String, usize>,
    works: Vec<Work>,
    names: HashMap<String, usize>,
}

/// Work that goes on behind a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub agent: Option<usize>,
    pub event: u64,
}

/// How many agents are kept.
const AGENTS_MAX: usize = 10_000;

/// How many works that go on are known by name.
const WORKS_MAX: usize = 10_000;

/// How often an agent is asked after until nobody counts any more.
const LATER_MAX: usize = 100;

/// How much of a task and an answer is kept.
const TEXT_SIZE_MAX: usize = 2000;

impl Agents {
    /// A task is given.
    pub fn begin(&mut self, task: &Task, giver: usize, call: u64, place: Place) -> Option<usize> {
        let agent = Agent {
            place: Some(place),
            kind: task.kind.clone(),
            title: task.title.clone(),
            task: Some(beginning(&task.prompt, TEXT_SIZE_MAX).to_owned()).filter(|task| !task.is_empty()),
            state: AgentState::Running,
            ..Agent::default()
        };
        let at = self.kept.push(agent, AGENTS_MAX)?;
        self.givers.push(giver);
        self.prints.push(if task.prompt.trim().is_empty() { 0 } else { Course::print(&task.prompt) });
        if call != 0 {
            self.by_call.insert(call, at);
        }
        if let Some(name) = &task.name {
            self.work(name, Work { agent: Some(at), event: place.event });
        }
        Some(at)
    }

    /// The agent that a call began.
    pub fn of_call(&self, call: u64) -> Option<usize> {
        self.by_call.get(&call).copied()
    }

    /// An agent has this side conversation.
    pub fn thread(&mut self, agent: usize, thread: &str) {
        self.by_thread.entry(thread.to_owned()).or_insert(agent);
        if let Some(agent) = self.kept.items.get_mut(agent) {
            agent.id.get_or_insert_with(|| thread.to_owned());
        }
    }

    /// Something goes on, and can be asked after by this name.
    pub fn work(&mut self, name: &str, work: Work) {
        if self.works.len() < WORKS_MAX && !name.is_empty() {
            self.works.push(work);
            self.names.insert(name.to_owned(), self.works.len() - 1);
        }
    }

    /// The work that one of these names means.
    pub fn asked_for(&self, names: &[String]) -> Option<usize> {
        names.iter().find_map(|name| self.names.get(name).copied())
    }

    /// The work of that number.
    pub fn get(&self, work: usize) -> Option<Work> {
        self.works.get(work).copied()
    }

    /// The call that gave a task was answered.
    pub fn answered(&mut self, agent: usize, answer: &Answer, outcome: CallOutcome) {
        let Some(held) = self.kept.items.get_mut(agent) else { return };
        held.kind = held.kind.take().or_else(|| answer.kind.clone());
        held.state = match outcome {
            CallOutcome::Failed | CallOutcome::Interrupted => AgentState::Failed,
            CallOutcome::Denied => AgentState::Denied,
            CallOutcome::Ok | CallOutcome::Running | CallOutcome::Unknown => {
                told(answer).unwrap_or(AgentState::Completed)
            }
        };
        if held.state != AgentState::Running {
            held.answer = Some(beginning(&answer.beginning, TEXT_SIZE_MAX).to_owned()).filter(|text| !text.is_empty());
        }
        for name in answer.handles.clone() {
            self.thread(agent, &name);
        }
    }

    /// An agent was asked after, or told of itself, later.
    pub fn later(&mut self, agent: usize, answer: &Answer, outcome: CallOutcome, place: Place) {
        let Some(held) = self.kept.items.get_mut(agent) else { return };
        if held.later.len() < LATER_MAX {
            held.later.push(place);
        }
        let state = told(answer).or_else(|| state_of(&answer.beginning));
        if let Some(state) = state.filter(|_| !outcome.is_failure()) {
            held.state = state;
        }
        if !outcome.is_failure() && held.state != AgentState::Running {
            held.answer = Some(beginning(&answer.beginning, TEXT_SIZE_MAX).to_owned());
        }
    }

    /// Gives each agent its side conversation, by its name or by its task, and each its parent. Conversations that nobody began are agents
    /// of whom no more is known.
    pub fn settle(&mut self, courses: &[Course], main: usize) {
        let mut of_thread: HashMap<usize, usize> = HashMap::new();
        for (at, course) in courses.iter().enumerate().filter(|(at, course)| *at != main && course.has_begun()) {
            let Some(id) = &course.id else { continue };
            let by_task = || {
                let print = course.asked?;
                let taken = |agent: &usize| of_thread.values().any(|other| other == agent);
                (0..self.prints.len()).find(|agent| self.prints.get(*agent) == Some(&print) && !taken(agent))
            };
            let known = self.by_thread.get(id).copied().or_else(by_task);
            let agent = known.or_else(|| {
                self.givers.push(main);
                self.prints.push(0);
                self.kept.push(Agent::default(), AGENTS_MAX)
            });
            let Some(agent) = agent else { continue };
            of_thread.insert(at, agent);
            let Some(held) = self.kept.items.get_mut(agent) else { continue };
            held.thread = Some(at);
            held.id = Some(id.clone());
            held.calls = course.calls;
            held.failed = course.failed;
        }
        for (agent, giver) in self.givers.iter().enumerate() {
            let parent = of_thread.get(giver).copied().filter(|parent| *parent != agent);
            if let Some(held) = self.kept.items.get_mut(agent) {
                held.parent = parent;
            }
        }
        self.break_rings();
    }

    /// A source may say of two agents that each began the other; then the later one has no parent.
    fn break_rings(&mut self) {
        for at in 0..self.kept.items.len() {
            let parent = |at: usize| self.kept.items.get(at).and_then(|agent| agent.parent);
            let mut above = parent(at);
            for _ in 0..self.kept.items.len() {
                match above {
                    Some(agent) if agent == at => break,
                    Some(agent) => above = parent(agent),
                    None => break,
                }
            }
            if above.is_some()
                && let Some(held) = self.kept.items.get_mut(at)
            {
                held.parent = None;
            }
        }
    }
}

/// How far an agent has come, as a field of the answer tells.
fn told(answer: &Answer) -> Option<AgentState> {
    answer.state.as_deref().and_then(|word| state_of_word(&word.to_ascii_lowercase()))
}

/// How far an agent has come, as an answer tells that lists agents with their states.
fn state_of(text: &str) -> Option<AgentState> {
    let text = beginning(text.trim_start(), TEXT_SIZE_MAX).to_ascii_lowercase();
    let is_record = text.starts_with(['{', '[', '<']);
    let has = |words: &[&str]| is_record && words.iter().any(|word| text.contains(word));
    match () {
        () if has(&["\"errored\"", "\"failed\"", "<status>failed", "not_found"]) => Some(AgentState::Failed),
        () if has(&["\"running\"", "<status>running", "\"pending_init\""]) => Some(AgentState::Running),
        () if has(&["\"completed\"", "<status>completed", "\"shutdown\""]) => Some(AgentState::Completed),
        () => None,
    }
}

fn state_of_word(word: &str) -> Option<AgentState> {
    let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    match () {
        () if has(&["fail", "error", "kill", "cancel", "abort"]) => Some(AgentState::Failed),
        () if has(&["launch", "running", "pending", "progress", "started", "not_ready", "timeout"]) => {
            Some(AgentState::Running)
        }
        () if has(&["complet", "success", "done", "finish"]) => Some(AgentState::Completed),
        () => None,
    }
}
