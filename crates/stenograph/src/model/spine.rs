//! The spine: the active conversation of a session, as another agent would receive it. It excludes abandoned branches and
//! turns, records that repeat others, and side conversations, each with a reason. It never excludes an event because a link is
//! broken.

mod event;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use super::message_index::{MessageIndex, Rewind};
use super::recent::Recent;
use super::{Event, FormatInfo, Kind, Role};
use crate::evidence::{UserMessage, nested_events};
pub(crate) use event::{SpineEvent, key};

/// Why an event is not in the spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// It repeats another record.
    Restated,
    /// It is on an abandoned branch.
    Branch,
    /// It belongs to a side conversation.
    Thread,
}

impl LeftOut {
    /// The reason in reports.
    pub fn reason(self) -> &'static str {
        match self {
            LeftOut::Restated => "repeats another record",
            LeftOut::Branch => "on an abandoned branch",
            LeftOut::Thread => "in a side conversation",
        }
    }

    /// Whether another record has the same content, so that excluding this one loses nothing.
    pub fn is_said_elsewhere(self) -> bool {
        match self {
            LeftOut::Restated => true,
            LeftOut::Branch | LeftOut::Thread => false,
        }
    }
}

/// Which records are in the spine. The first pass builds it ([`Spine::add`]), the second queries it ([`Spine::left_out`]). It
/// keeps a few bytes per record during the first pass, and four during the second.
#[derive(Debug, Default)]
pub struct Spine {
    nodes: Vec<Node>,
    by_id: Recent,
    /// For each record its branch: 0 is the active one.
    branch_of: Vec<u32>,
    /// For each abandoned branch, from 1, the record it branches off.
    left_from: Vec<u32>,
    messages: MessageIndex,
    /// Fingerprints of the ids of nested records; after [`Spine::decide`], only of those that are also records of the source.
    nested: HashSet<u64>,
    has_main: bool,
    has_threads: bool,
    /// The record that the second pass has reached.
    asked: u32,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The index of the parent, or its own index for a root.
    parent: u32,
    /// The last record in its subtree, including itself.
    latest: u32,
    /// The fingerprint of the current model response: its own, else that of its parent; or 0. A short fingerprint is enough,
    /// because it only distinguishes neighbours.
    response: u32,
    /// The fingerprint of its side conversation, or 0 for the main one.
    thread: u32,
    /// Whether it belongs to that response itself.
    is_response: bool,
    /// Whether it continues the response that was current at its parent. Half a response is never abandoned.
    continues: bool,
    /// Whether it has a tool result. A result belongs to its call, whatever else is in its record.
    has_result: bool,
    /// The talk in the record.
    own: Talk,
    /// The talk in its subtree.
    below: Talk,
    /// Whether the first talk in its subtree is a user's prompt.
    begins_with_prompt: bool,
}

/// A set of speakers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Talk(u8);

impl Talk {
    const NOBODY: Talk = Talk(0);
    /// A model says or does something.
    const MODEL: Talk = Talk(1);
    /// A user asks for something.
    const PROMPT: Talk = Talk(2);
    /// The agent reports as a user message what happened outside the conversation: a command and its output, the end of a job.
    const REPORT: Talk = Talk(4);

    fn of(event: &impl SpineEvent, message: Option<UserMessage>) -> Talk {
        match (event.kind(), event.role()) {
            _ if event.restates() => Talk::NOBODY,
            (Kind::ToolCall | Kind::Thinking, _) => Talk::MODEL,
            (Kind::Message, Some(Role::Assistant | Role::Unknown)) => Talk::MODEL,
            (Kind::Message, Some(Role::User)) => match message {
                Some(UserMessage::Injected | UserMessage::JobNotice) => Talk::REPORT,
                // Whoever interrupts a run wants something else.
                Some(UserMessage::Typed | UserMessage::Interruption) | None => Talk::PROMPT,
            },
            (Kind::Message, Some(Role::System | Role::Developer | Role::Tool) | None) => Talk::NOBODY,
            (Kind::Fact | Kind::ToolResult | Kind::Compaction, _) => Talk::NOBODY,
            (Kind::Failure | Kind::Stop | Kind::Other, _) => Talk::NOBODY,
        }
    }

    fn and(self, other: Talk) -> Talk {
        Talk(self.0 | other.0)
    }

    fn without(self, other: Talk) -> Talk {
        Talk(self.0 & !other.0)
    }

    fn has(self, one: Talk) -> bool {
        self.0 & one.0 != 0
    }
}

impl Node {
    /// Whether a branch that begins here competes with its siblings: it has a prompt or an answer, and it does not begin in the
    /// middle of a turn. A user who runs commands asks nothing, so a branch of commands is never abandoned.
    fn competes(&self) -> bool {
        let asks = self.below.has(Talk::PROMPT) && !self.below.has(Talk::REPORT);
        !self.has_result && !self.continues && (self.below.has(Talk::MODEL) || asks)
    }

    /// Whether the branch that begins here was abandoned for a later sibling.
    fn is_abandoned_for(&self, later: &Node) -> bool {
        // If the later branch begins with an answer, the user asked this meanwhile and did not take it back.
        let asked_meanwhile = !self.below.has(Talk::MODEL) && !later.begins_with_prompt;
        let one_response = self.is_response && later.is_response && later.response == self.response;
        later.latest > self.latest && !one_response && !asked_meanwhile
    }
}

impl Spine {
    /// The decided spine of these events.
    pub fn of<'e, 'a: 'e>(events: impl IntoIterator<Item = &'e Event<'a>>) -> Spine {
        let mut spine = Spine::default();
        events.into_iter().for_each(|event| spine.add(event));
        spine.decide();
        spine
    }

    /// Adds one event and the events of its nested record. Call it for every event of the source, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        self.add_any(event);
        nested_events(event).iter().for_each(|inner| self.add_nested(inner));
    }

    fn add_nested(&mut self, inner: &Event<'_>) {
        self.nested.extend(SpineEvent::id(inner));
    }

    /// Whether the source has the record of this event only nested in another record.
    pub(crate) fn is_only_nested(&self, inner: &Event<'_>) -> bool {
        SpineEvent::id(inner).is_none_or(|id| !self.nested.contains(&id))
    }

    /// [`Spine::add`] for an event or a summary of one.
    pub(crate) fn add_any(&mut self, event: &impl SpineEvent) {
        let talks = matches!(event.kind(), Kind::Message | Kind::ToolCall | Kind::Thinking);
        if event.thread().is_none() && talks {
            self.has_main = true;
        }
        self.has_threads |= event.thread().is_some();
        let index =
            if event.part_index() == 0 || self.nodes.is_empty() { self.start(event) } else { self.nodes.len() - 1 };
        let message = event.user_message();
        self.messages.add(event, message, number(index));
        // A record that is unknown here is not in this source.
        if let Some(Rewind::To(id)) = event.rewinds()
            && let Some(first) = self.by_id.get(id)
        {
            self.messages.take_back(first..number(index).saturating_add(1));
        }
        if let Some(node) = self.nodes.get_mut(index) {
            node.own = node.own.and(Talk::of(event, message));
            node.has_result |= event.kind() == Kind::ToolResult && !event.restates();
        }
    }

    fn start(&mut self, event: &impl SpineEvent) -> usize {
        let index = self.nodes.len();
        let parent = event.parent().and_then(|parent| self.by_id.get(parent));
        let own = number(index);
        // Results, progress reports and user messages may come between two records of one response.
        let before = parent.and_then(|parent| self.nodes.get(parent as usize)).map_or(0, |parent| parent.response);
        let group = event.group().map_or(0, fingerprint);
        self.nodes.push(Node {
            parent: parent.unwrap_or(own),
            latest: own,
            response: if group == 0 { before } else { group },
            is_response: group != 0,
            thread: event.thread().map_or(0, fingerprint),
            continues: group != 0 && group == before,
            has_result: false,
            own: Talk::default(),
            below: Talk::default(),
            begins_with_prompt: false,
        });
        if let Some(id) = event.id().filter(|id| self.by_id.get(*id).is_none()) {
            self.by_id.insert(id, own);
        }
        index
    }

    /// Decides which branches were abandoned: where several branches compete, the one that was extended last is active. A
    /// missing or later parent makes its record a root, which is never abandoned.
    pub fn decide(&mut self) {
        self.nested.retain(|id| self.by_id.get(*id).is_some());
        self.by_id = Recent::default();
        let mut nodes = std::mem::take(&mut self.nodes);
        summarize_subtrees(&mut nodes);
        let newest = newest_rivals(&nodes);
        self.branch_of = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let parent = node.parent as usize;
            let newest = newest.get(&(node.parent, node.thread)).and_then(|newest| nodes.get(*newest as usize));
            let branch = match parent != index {
                true if node.competes() && newest.is_some_and(|newest| node.is_abandoned_for(newest)) => {
                    self.leave(node.parent)
                }
                true => self.branch_of.get(parent).copied().unwrap_or(0),
                false => 0,
            };
            self.branch_of.push(branch);
        }
        self.messages.sort();
        for run in self.messages.rewound() {
            let branch = self.leave(run.start.saturating_sub(1));
            let run = run.start as usize..(run.end as usize).min(self.branch_of.len());
            let records = self.branch_of.get_mut(run).unwrap_or_default();
            records.iter_mut().filter(|record| **record == 0).for_each(|record| *record = branch);
        }
        self.rewind();
    }

    /// Starts a branch that branches off this record.
    fn leave(&mut self, record: u32) -> u32 {
        self.left_from.push(record);
        number(self.left_from.len())
    }

    /// Whether it excludes events other than repetitions.
    pub(crate) fn leaves_out(&self) -> bool {
        (self.has_main && self.has_threads) || self.branch_of.iter().any(|branch| *branch != 0)
    }

    /// Returns to the first event, to query all of them again.
    pub fn rewind(&mut self) {
        self.asked = 0;
    }

    /// Why this event is not in the spine; `None` if it is. Call it for every event again, in the same order.
    pub fn left_out(&mut self, event: &Event<'_>) -> Option<LeftOut> {
        self.left_out_any(event)
    }

    /// Why a conversion to this format leaves this event out. [`Spine::left_out`] for a target that may hold sub-agents.
    pub(crate) fn left_out_of(&mut self, target: &FormatInfo, event: &Event<'_>) -> Option<LeftOut> {
        match self.left_out(event) {
            Some(LeftOut::Thread) if target.holds_subagents => (self.branch() != 0).then_some(LeftOut::Branch),
            left_out => left_out,
        }
    }

    /// [`Spine::left_out`] for an event or a summary of one.
    pub(crate) fn left_out_any(&mut self, event: &impl SpineEvent) -> Option<LeftOut> {
        // As in `add`: a stream may begin in the middle of a record.
        if event.part_index() == 0 || self.asked == 0 {
            self.asked += 1;
        }
        // If the repeated record is missing, keep the repetition.
        if event.restates() && !self.messages.is_alone(event) {
            return Some(LeftOut::Restated);
        }
        if event.thread().is_some() && self.has_main && event.kind() != Kind::Fact {
            return Some(LeftOut::Thread);
        }
        (self.branch() != 0).then_some(LeftOut::Branch)
    }

    /// The record of the last queried event, from 0.
    pub fn record(&self) -> u32 {
        self.asked.saturating_sub(1)
    }

    /// The branch of the last queried event: 0 is the active one. Call it after [`Spine::left_out`].
    pub fn branch(&self) -> u32 {
        self.branch_of.get(self.record() as usize).copied().unwrap_or(0)
    }

    /// The record that each abandoned branch branches off; the first one is that of branch 1.
    pub(crate) fn left_from(&self) -> &[u32] {
        &self.left_from
    }
}

/// Propagates the talk of each record to its ancestors, from the last record to the first.
fn summarize_subtrees(nodes: &mut [Node]) {
    for index in (0..nodes.len()).rev() {
        let Some(node) = nodes.get_mut(index) else { continue };
        // Children come later and have already added theirs; a prompt in the record of a result belongs to that call.
        if node.own.has(Talk::MODEL.and(Talk::PROMPT)) {
            node.begins_with_prompt = !node.own.has(Talk::MODEL) && !node.has_result;
        }
        // A continued response does not answer prompts that came after it began.
        let own = if node.continues { node.own.without(Talk::MODEL) } else { node.own };
        node.below = node.below.and(own);
        let node = *node;
        if node.parent as usize != index
            && let Some(parent) = nodes.get_mut(node.parent as usize)
        {
            parent.latest = parent.latest.max(node.latest);
            parent.below = parent.below.and(node.below);
            if node.below.has(Talk::MODEL.and(Talk::PROMPT)) {
                parent.begins_with_prompt = node.begins_with_prompt;
            }
        }
    }
}

/// For each record and side conversation with competing branches, the branch that was extended last.
fn newest_rivals(nodes: &[Node]) -> HashMap<(u32, u32), u32> {
    let rivals = || nodes.iter().enumerate().filter(|(index, node)| node.parent as usize != *index && node.competes());
    let mut branches = vec![0_u8; nodes.len()];
    for (_, node) in rivals() {
        if let Some(count) = branches.get_mut(node.parent as usize) {
            *count = count.saturating_add(1);
        }
    }
    let mut newest: HashMap<(u32, u32), u32> = HashMap::new();
    for (index, node) in rivals().filter(|(_, node)| branches.get(node.parent as usize) > Some(&1)) {
        let found = newest.entry((node.parent, node.thread)).or_insert(number(index));
        if nodes.get(*found as usize).is_none_or(|other| node.latest > other.latest) {
            *found = number(index);
        }
    }
    newest
}

/// A short fingerprint; never 0, which means none.
fn fingerprint(key: u64) -> u32 {
    u32::try_from(key >> 32).unwrap_or_default().max(1)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
