//! Agents that calls start, and background jobs. Later calls poll a job by a name that the result of its first call states. At the end,
//! each agent gets its side conversation and its parent.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::conversation::ConversationState;
use super::report::{Agent, AgentState, CallOutcome, Capped, EventPlace};
use crate::evidence::Task;
use crate::text::beginning;

/// The agents and the background jobs of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Agents {
    pub list: Capped<Agent>,
    /// One for each agent in the list.
    origins: Vec<AgentOrigin>,
    by_call: HashMap<u64, usize>,
    by_thread: HashMap<String, usize>,
    jobs: HashMap<String, Job>,
    /// The number of jobs beyond the limit.
    pub jobs_more: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct AgentOrigin {
    /// The conversation that started the agent.
    parent_conversation: usize,
    task_hash: Option<u64>,
}

/// A background job: an agent or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub agent: Option<usize>,
    /// The number of the event that started it.
    pub event: u64,
}

/// The most agents in a report. The largest known sessions start some hundreds.
const AGENTS_MAX: usize = 10_000;

/// The most jobs, and side conversations of agents, that are known by name. As many as agents.
const NAMES_MAX: usize = 10_000;

/// The most later reports on one agent. A loop may poll for hours.
const LATER_MAX: usize = 100;

/// The most bytes of a task and of an answer.
const TEXT_SIZE_MAX: usize = 2000;

impl Agents {
    /// Adds the agent that a call starts.
    pub fn start(&mut self, task: &Task, parent_conversation: usize, call: u64, place: EventPlace) -> Option<usize> {
        let agent = Agent {
            place: Some(place),
            kind: task.kind.clone(),
            title: task.title.clone(),
            task: shortened(&task.prompt),
            state: AgentState::Running,
            ..Agent::default()
        };
        let task_hash = (!task.prompt.trim().is_empty()).then(|| ConversationState::hash(&task.prompt));
        let index = self.push(agent, AgentOrigin { parent_conversation, task_hash })?;
        if call != 0 {
            self.by_call.insert(call, index);
        }
        if let Some(name) = &task.name {
            self.add_job(name, Job { agent: Some(index), event: place.event });
        }
        Some(index)
    }

    fn push(&mut self, agent: Agent, origin: AgentOrigin) -> Option<usize> {
        let index = self.list.push(agent, AGENTS_MAX)?;
        self.origins.push(origin);
        Some(index)
    }

    /// The agent that a call started.
    pub fn started_by(&self, call: u64) -> Option<usize> {
        self.by_call.get(&call).copied()
    }

    /// Records that an agent has this side conversation.
    pub fn set_thread(&mut self, agent: usize, thread: &str) {
        if self.by_thread.len() < NAMES_MAX {
            self.by_thread.entry(thread.to_owned()).or_insert(agent);
        }
        if let Some(agent) = self.list.items.get_mut(agent) {
            agent.id.get_or_insert_with(|| thread.to_owned());
        }
    }

    /// Adds a job, or replaces the one that had its name.
    pub fn add_job(&mut self, name: &str, job: Job) {
        if name.is_empty() {
            return;
        }
        if self.jobs.len() < NAMES_MAX || self.jobs.contains_key(name) {
            self.jobs.insert(name.to_owned(), job);
        } else {
            self.jobs_more += 1;
        }
    }

    /// The job of this name.
    pub fn job(&self, name: &str) -> Option<Job> {
        self.jobs.get(name).copied()
    }

    /// Records the result of the call that started an agent.
    pub fn add_result(&mut self, agent: usize, answer: &Answer, outcome: CallOutcome) {
        let Some(started) = self.list.items.get_mut(agent) else { return };
        started.kind = started.kind.take().or_else(|| answer.agents.kind.clone());
        started.state = match outcome {
            CallOutcome::Failed | CallOutcome::Interrupted => AgentState::Failed,
            CallOutcome::Denied => AgentState::Denied,
            CallOutcome::Ok | CallOutcome::Running | CallOutcome::Unknown => {
                // A JSON object that names the agent comes from a call that does not wait for it. A text is the answer of the agent,
                // even if it ends with the name.
                let is_name = !answer.handles.is_empty() && answer.beginning.starts_with('{');
                answer.agents.state.unwrap_or(if is_name { AgentState::Running } else { AgentState::Completed })
            }
        };
        if started.state != AgentState::Running {
            started.answer = shortened(&answer.beginning);
        }
        for name in &answer.handles {
            self.set_thread(agent, name);
        }
    }

    /// Records a later report on the agent with this name: the result of a poll, or a notice.
    pub fn add_report(&mut self, agent: usize, name: &str, answer: &Answer, outcome: CallOutcome, place: EventPlace) {
        let Some(agent) = self.list.items.get_mut(agent) else { return };
        agent.later.push(place, LATER_MAX);
        if outcome.is_failure() {
            return;
        }
        let listed = answer.agents.listed.iter().find(|listed| listed.name == name);
        let (state, text) = match listed {
            Some(listed) => (Some(listed.state), listed.message.as_deref()),
            None if answer.agents.listed.is_empty() => (answer.agents.state, Some(answer.beginning.as_str())),
            None => return,
        };
        agent.state = state.unwrap_or(agent.state);
        if let Some(text) = text.filter(|_| agent.state != AgentState::Running) {
            agent.answer = shortened(text);
        }
    }

    /// Assigns each side conversation to its agent, by its name or by its task, and each agent to its parent. A conversation that no
    /// known call started gets an agent of its own.
    pub fn assign_conversations(&mut self, conversations: &[ConversationState], main: usize) {
        let mut by_task: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for (agent, origin) in self.origins.iter().enumerate() {
            by_task.entry(origin.task_hash.unwrap_or_default()).or_default().push_back(agent);
        }
        let mut agent_of: HashMap<usize, usize> = HashMap::new();
        for (at, conversation) in conversations.iter().enumerate() {
            let Some(id) = conversation.id.as_ref().filter(|_| at != main && conversation.has_begun()) else {
                continue;
            };
            let agents = &self.list.items;
            let is_free = |agent: &usize| agents.get(*agent).is_some_and(|agent| agent.thread.is_none());
            let with_task = || {
                let agents = by_task.get_mut(&conversation.first_message_hash?)?;
                std::iter::from_fn(|| agents.pop_front()).find(is_free)
            };
            let known = self.by_thread.get(id).copied().or_else(with_task);
            let unknown = AgentOrigin { parent_conversation: main, task_hash: None };
            let Some(index) = known.or_else(|| self.push(Agent::default(), unknown)) else { continue };
            agent_of.insert(at, index);
            let Some(agent) = self.list.items.get_mut(index) else { continue };
            agent.thread = Some(at);
            agent.id = Some(id.clone());
            agent.calls = conversation.calls;
            agent.failed = conversation.failed;
            if known.is_none() {
                // No call states how it ended: its own records may.
                agent.state = conversation.agent_state();
            }
        }
        for (index, (agent, origin)) in self.list.items.iter_mut().zip(&self.origins).enumerate() {
            agent.parent = agent_of.get(&origin.parent_conversation).copied().filter(|parent| *parent != index);
        }
        break_cycles(&mut self.list.items);
    }
}

/// Removes one parent from each cycle: a source may state that two agents started each other. The first agent of the cycle loses
/// its parent, because it cannot have been started by a later one.
fn break_cycles(agents: &mut [Agent]) {
    // The walk that visited each agent first; every agent is visited once.
    let mut visited_by: Vec<Option<usize>> = vec![None; agents.len()];
    for start in 0..agents.len() {
        let mut next = Some(start);
        while let Some(at) = next {
            match visited_by.get_mut(at) {
                Some(walk @ None) => *walk = Some(start),
                // This walk meets itself: `at` is on a cycle.
                Some(Some(walk)) if *walk == start => {
                    let parent = |at: &usize| agents.get(*at).and_then(|agent| agent.parent);
                    let others = std::iter::successors(parent(&at), parent).take_while(|other| *other != at);
                    let first = others.fold(at, usize::min);
                    if let Some(agent) = agents.get_mut(first) {
                        agent.parent = None;
                    }
                    break;
                }
                Some(Some(_)) | None => break,
            }
            next = agents.get(at).and_then(|agent| agent.parent);
        }
    }
}

fn shortened(text: &str) -> Option<String> {
    Some(beginning(text, TEXT_SIZE_MAX).to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(parents: &[Option<usize>]) -> Vec<Option<usize>> {
        let mut agents: Vec<Agent> =
            parents.iter().map(|parent| Agent { parent: *parent, ..Agent::default() }).collect();
        break_cycles(&mut agents);
        agents.into_iter().map(|agent| agent.parent).collect()
    }

    #[test]
    fn the_first_agent_of_a_cycle_loses_its_parent_and_no_other_agent() {
        assert_eq!(parents(&[Some(1), Some(0)]), [None, Some(0)]);
        assert_eq!(parents(&[Some(1), Some(2), Some(1)]), [Some(1), None, Some(1)]);
        assert_eq!(parents(&[Some(2), Some(0), Some(1), Some(2)]), [None, Some(0), Some(1), Some(2)]);
        assert_eq!(parents(&[None, Some(0), Some(3), Some(2)]), [None, Some(0), None, Some(2)]);
    }

    #[test]
    fn agents_beyond_the_limit_are_counted_and_displace_none() {
        let mut agents = Agents::default();
        let task = Task { prompt: "look".to_owned(), ..Task::default() };
        for call in 1..=AGENTS_MAX as u64 + 2 {
            agents.start(&task, 0, call, EventPlace::default());
        }
        let conversation = |at: usize| ConversationState {
            id: Some(format!("side {at}")),
            first_message_hash: Some(ConversationState::hash("look")),
            ..ConversationState::default()
        };
        let conversations: Vec<ConversationState> = (0..=AGENTS_MAX + 1).map(conversation).collect();
        agents.assign_conversations(&conversations, 0);
        assert_eq!((agents.list.items.len(), agents.origins.len(), agents.list.more), (AGENTS_MAX, AGENTS_MAX, 3));
        assert!(agents.list.items.iter().enumerate().all(|(at, agent)| agent.thread == Some(at + 1)));
    }
}
