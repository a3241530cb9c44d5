//! A row of the ledger: one model call as one source states it, and how two rows of the same call are merged.

use serde::{Deserialize, Serialize};

use super::source_usage::Name;
use super::{ServiceTier, Tokens};

/// One model call as one source states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The identity of the call: equal for every row of it.
    pub key: u128,
    /// The agent that made the call.
    pub agent: Name,
    /// The session.
    pub session: Option<Name>,
    /// The sub-agent.
    pub thread: Option<Name>,
    /// The model.
    pub model: Option<Name>,
    /// The working folder.
    pub cwd: Option<Name>,
    /// The branch in version control.
    pub branch: Option<Name>,
    /// The tools that the answer calls, each once; empty unless [`super::CallDetail::Tools`] was requested.
    pub tools: Tools,
    /// The time of its first record, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The time of the record that states whose call it is, and not before its source began; `i64::MAX` if it has no time.
    pub stated_at: i64,
    /// The tokens.
    pub tokens: Tokens,
    /// The service tier.
    pub service_tier: ServiceTier,
    /// The cost in US dollars that the source states.
    pub stated_cost: Option<f64>,
    /// How the source states the call.
    pub kind: RowKind,
    /// The number of calls in the row.
    pub calls: u32,
    /// The number of records that state it.
    pub records: u32,
    /// The line of the first record.
    pub line: u64,
}

impl Row {
    /// The same row with its names renumbered.
    pub(super) fn renamed(self, numbers: &[Name]) -> Row {
        let new = |name: Name| numbers.get(name.index()).copied().unwrap_or(Name::UNKNOWN);
        Row {
            agent: new(self.agent),
            session: self.session.map(new),
            thread: self.thread.map(new),
            model: self.model.map(new),
            cwd: self.cwd.map(new),
            branch: self.branch.map(new),
            tools: self.tools.iter().map(new).collect(),
            ..self
        }
    }
}

/// How a source states a call. An earlier variant is the better evidence of whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RowKind {
    /// With the answer.
    Own,
    /// As the difference of two running totals.
    Difference,
    /// As the total of a run.
    Run,
    /// Only the cost of a whole session.
    Cost,
    /// As a difference, in the replayed history of another session at the start of the source.
    Replayed,
    /// In a record of another agent that forwards it.
    Forwarded,
    /// Not a call: a web search by the vendor's servers, in a separate record.
    Search,
}

impl Row {
    /// Merges the numbers of another row of the same call. The owner of the call stays.
    pub(super) fn join(&mut self, other: &Row) {
        self.tokens = match self.kind {
            // Of two differences up to one total, the smaller one knows the previous total better.
            RowKind::Difference | RowKind::Replayed => self.tokens.min(&other.tokens),
            RowKind::Own | RowKind::Run | RowKind::Cost | RowKind::Forwarded | RowKind::Search => {
                self.tokens.max(&other.tokens)
            }
        };
        self.records = self.records.saturating_add(other.records);
        self.time = match (self.time, other.time) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.stated_cost = match (self.stated_cost, other.stated_cost) {
            (Some(own), Some(other)) => Some(own.max(other)),
            (own, other) => own.or(other),
        };
        self.service_tier = self.service_tier.max(other.service_tier);
        self.calls = self.calls.max(other.calls);
        self.model = self.model.or(other.model);
        other.tools.iter().for_each(|tool| self.tools.add(tool));
    }

    /// How good the evidence is of whose call it is, the best first: by its kind, and then by its time.
    pub(super) fn evidence(&self) -> (RowKind, i64) {
        (self.kind, self.stated_at)
    }

    /// Takes the owner of the call from another row of it.
    pub(super) fn take_owner(&mut self, other: &Row) {
        let Row { agent, kind, session, thread, model, cwd, branch, line, stated_at, .. } = *other;
        (self.agent, self.kind, self.session, self.thread) = (agent, kind, session, thread);
        (self.line, self.stated_at) = (line, stated_at);
        (self.model, self.cwd, self.branch) = (model.or(self.model), cwd, branch);
    }
}

/// Tools, each once. Most rows have none; the empty set takes one word, because a ledger has millions of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::box_collection, reason = "a box is a word, a vector three")]
pub struct Tools(Option<Box<Vec<Name>>>);

impl Tools {
    /// Adds a tool unless it is in the set.
    pub(super) fn add(&mut self, tool: Name) {
        let tools = self.0.get_or_insert_default();
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }

    /// Sorts the tools.
    pub(super) fn sort_by_key<'k, K: Ord>(&mut self, key: impl Fn(Name) -> K + 'k) {
        if let Some(tools) = &mut self.0 {
            tools.sort_by_key(|tool| key(*tool));
        }
    }

    /// Iterates over the tools.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Name> {
        self.0.as_deref().map(Vec::as_slice).unwrap_or_default().iter().copied()
    }
}

impl FromIterator<Name> for Tools {
    fn from_iter<I: IntoIterator<Item = Name>>(tools: I) -> Tools {
        let mut found = Tools::default();
        tools.into_iter().for_each(|tool| found.add(tool));
        found
    }
}
