//! Counts the model calls of one source: one row for each call, however many records state it. `builder.rs` does what requires
//! other sources.

mod totals;

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::key::{hash, key};
use super::row::{Row, RowKind, Tools};
use super::source_usage::{CountingState, LastAnswer, Name, Names, Replay, SourceUsage, Uncounted, UncountedReason};
use super::{ServiceTier, Tokens};
use crate::evidence::{
    NotACall, do_forks_rename, forwarded_calls, has_invalid_count, is_history_elsewhere, is_search, not_a_call,
    repeated_session, request, running_total, stated_calls,
};
use crate::model::{Body, Event, Fact, Usage, is_global_id};
use crate::read::{Sink, is_counted};
use crate::text::keep_last;
use crate::time::Time;

/// How much detail of calls to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallDetail {
    /// Only tokens and cost. Events read with [`crate::model::Wanted::Usage`] are enough.
    Numbers,
    /// Also the tools that the answers call. This requires every event.
    Tools,
}

/// The most older sessions remembered for a replayed history.
const LINEAGE_MAX: usize = 16;

/// The most lines kept as examples of uncounted records.
const EXAMPLES_MAX: usize = 3;

/// Counts the calls of one source.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallCounter {
    agent: Cow<'static, str>,
    detail: CallDetail,
    names: Names,
    rows: Vec<Row>,
    by_key: HashMap<u128, usize, Xxh3DefaultBuilder>,
    uncounted: Vec<Uncounted>,
    /// For each replayed call: its key in the source's own session, and its key in the session it comes from. For a call whose
    /// copies have other ids: their key, and its own.
    origins: Vec<(u128, u128)>,
    /// For each replayed call: its key in that session, and its key in an older session that it may come from.
    older_origins: Vec<(u128, u128)>,
    state: CountingState,
    /// Tools called since the last row of an answer without an id.
    tools: Tools,
    /// For each answer its row, and the tools called before it had one.
    answers: HashMap<u64, Answer, Xxh3DefaultBuilder>,
    /// The last answer.
    last_answer: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Answer {
    row: Option<usize>,
    /// The key of its row, which may be in an earlier part.
    key: Option<u128>,
    tools: Tools,
}

/// The session that the source of this record was copied from, as the embedded source or the record itself states.
fn copied_from(event: &Event<'_>) -> Option<String> {
    let embedded = || Some(crate::carry::stated_source(event.carried.as_deref()?)?.1);
    let session = event.forked_from.as_ref().map(|fork| fork.session.to_string()).or_else(embedded)?;
    Some(session).filter(|session| !session.is_empty() && event.session.as_deref() != Some(session))
}

impl CallCounter {
    /// Counts for an agent from the beginning of a source.
    pub fn new(agent: &'static str, detail: CallDetail) -> CallCounter {
        CallCounter::resumed(agent, detail, CountingState::default())
    }

    /// Continues after another part of the source.
    pub fn resumed(agent: &'static str, detail: CallDetail, state: CountingState) -> CallCounter {
        CallCounter::continued(Cow::Borrowed(agent), detail, state)
    }

    fn continued(agent: Cow<'static, str>, detail: CallDetail, state: CountingState) -> CallCounter {
        let mut names = Names::default();
        let mut numbers = |tools: &[String]| tools.iter().map(|tool| names.number(tool)).collect();
        let tools = numbers(&state.tools);
        let answer = |last: &LastAnswer| (last.group, Answer { row: None, key: last.key, tools: numbers(&last.tools) });
        let answers: HashMap<u64, Answer, Xxh3DefaultBuilder> = state.answer.iter().map(answer).collect();
        CallCounter {
            agent,
            detail,
            names,
            rows: Vec::new(),
            by_key: HashMap::default(),
            uncounted: Vec::new(),
            origins: Vec::new(),
            older_origins: Vec::new(),
            state,
            tools,
            last_answer: answers.keys().next().copied(),
            answers,
        }
    }

    /// States the time of the source's first record. A copy of an earlier session states calls from before that time.
    pub fn begin(&mut self, time: &Time<'_>) {
        if self.state.began.is_none() {
            self.state.began = time.to_millis();
        }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        if self.detail == CallDetail::Tools && !event.restates {
            self.add_tool(event);
        }
        // A reduced reading has only these events.
        if !is_counted(event) {
            return;
        }
        if self.state.copied_from.is_none() {
            self.state.copied_from = copied_from(event);
        }
        // A header states the fork of a whole source.
        if event.carried.is_some() || event.forked_from.is_some() && event.usage.is_some() {
            self.state.copied_until = event.at.map_or(0, |at| at.line).max(self.state.copied_until);
        }
        let line = event.at.map_or(0, |at| at.line);
        if event.is_oversize() {
            return self.add_uncounted(UncountedReason::Oversize, line);
        }
        self.update_state(event);
        match not_a_call(event) {
            Some(NotACall::Synthetic) => return self.add_uncounted(UncountedReason::Synthetic, line),
            Some(NotACall::Sum) => self.add_uncounted(UncountedReason::Sum, line),
            None => {}
        }
        for call in forwarded_calls(event) {
            self.add_forwarded(event, &call);
        }
        let is_invalid = has_invalid_count(event);
        if is_invalid {
            self.add_uncounted(UncountedReason::InvalidCount, line);
        }
        match (running_total(event), &event.usage) {
            // A total with an invalid count would look like a reset. The next total corrects it.
            (Some(_), _) if is_invalid => {}
            (Some(total), _) => self.add_total(event, &total),
            (None, Some(usage)) => self.add_usage(event, usage),
            (None, None) if is_search(event) => self.add_search(event),
            (None, None) => {}
        }
    }

    /// Adds a web search that has a separate record. It is not a model call.
    fn add_search(&mut self, event: &Event<'_>) {
        let mut row = self.row(event, RowKind::Search, Tokens { searches: 1, ..Tokens::default() });
        row.calls = 0;
        row.key = self.key_by_id("search", event.call().or(event.id.as_deref()), &row, event);
        self.put(row);
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The usage so far. Counting continues with another part.
    pub fn take_part(&mut self) -> SourceUsage {
        let (agent, detail) = (self.agent.clone(), self.detail);
        let usage = std::mem::replace(self, CallCounter::new("", detail)).finish();
        *self = CallCounter::continued(agent, detail, usage.state.clone());
        usage
    }

    /// The usage at the end of the source.
    pub fn finish(mut self) -> SourceUsage {
        if self.state.total.is_some() {
            self.exclude_rows_within_total();
        }
        let tool = |name: Name| self.names.list.get(name.index()).cloned();
        self.state.tools = self.tools.iter().filter_map(tool).collect();
        let last = self.last_answer.and_then(|group| self.answers.get(&group).map(|answer| (group, answer)));
        self.state.answer = last.map(|(group, Answer { key, tools, .. })| {
            let tools = tools.iter().filter_map(tool).collect();
            LastAnswer { group, key: *key, tools }
        });
        let CallCounter { names, rows, uncounted, origins, older_origins, state, .. } = self;
        SourceUsage { names: names.list, rows, uncounted, origins, older_origins, state }
    }

    /// Remembers what the next records belong to.
    fn update_state(&mut self, event: &Event<'_>) {
        // The model of an answer applies to no other call: a call that names no model has an unknown one.
        if event.usage.is_none() {
            keep_last(&mut self.state.model, event.model.as_deref());
            keep_last(&mut self.state.cwd, event.cwd.as_deref());
            keep_last(&mut self.state.branch, event.branch.as_deref());
        }
        if !matches!(event.body, Body::Fact { fact: Fact::Session, .. }) {
            return;
        }
        let time = event.time.as_ref().and_then(Time::to_millis).unwrap_or(i64::MIN);
        match (self.state.session.as_deref(), event.session.as_deref()) {
            // The first header is the source's own; it may name a parent whose history comes first.
            (None, session) => {
                self.state.session = session.map(str::to_owned);
                self.state.is_history_elsewhere = is_history_elsewhere(event);
                // A history in another source is not replayed here.
                let parent = repeated_session(event).filter(|_| !self.state.is_history_elsewhere);
                self.state.replay = parent.map(|parent| Replay { of: vec![parent.to_string()], last: time });
            }
            // A second header is the head of the replayed history, which may itself begin with an older one.
            (Some(own), Some(other)) if own != other && self.state.total.is_none() => {
                let replay = self.state.replay.get_or_insert_with(|| Replay { of: Vec::new(), last: time });
                for session in [Some(other), repeated_session(event).as_deref()].into_iter().flatten() {
                    if session != own && replay.of.len() < LINEAGE_MAX && !replay.of.iter().any(|of| of == session) {
                        replay.of.push(session.to_owned());
                    }
                }
            }
            (Some(_), _) => {}
        }
    }

    fn add_tool(&mut self, event: &Event<'_>) {
        let Body::ToolCall { name, .. } = &event.body else { return };
        let tool = self.names.number(name);
        let Some(group) = &event.group else {
            return self.tools.add(tool);
        };
        let group = hash(&[group]);
        self.last_answer = Some(group);
        let answer = self.answers.entry(group).or_default();
        match (answer.row.and_then(|row| self.rows.get_mut(row)), answer.key) {
            (Some(row), _) => row.tools.add(tool),
            (None, Some(key)) => self.put_tool(event, group, key, tool),
            (None, None) => answer.tools.add(tool),
        }
    }

    /// Adds a tool of an answer whose row is in an earlier part: as a row with only the tool, which the builder merges with
    /// that row.
    fn put_tool(&mut self, event: &Event<'_>, group: u64, key: u128, tool: Name) {
        let mut row = self.row(event, RowKind::Forwarded, Tokens::default());
        (row.key, row.tools, row.calls, row.records) = (key, Tools::from_iter([tool]), 0, 0);
        // The weakest evidence, so that the real row keeps the owner.
        (row.time, row.stated_at) = (None, i64::MAX);
        let at = self.put(row);
        self.answers.entry(group).or_default().row = Some(at);
    }

    /// Adds a call that is stated with its answer.
    fn add_usage(&mut self, event: &Event<'_>, usage: &Usage) {
        let tokens = Tokens::of(usage);
        let is_cost_only = usage.cost.is_some() && Usage { cost: None, ..*usage }.is_empty();
        let kind = match (is_cost_only, event.restates) {
            (true, _) => RowKind::Cost,
            (false, true) => RowKind::Forwarded,
            (false, false) => RowKind::Own,
        };
        let mut row = self.row(event, kind, tokens);
        (row.service_tier, row.stated_cost) = (usage.tier(), usage.cost.map(|cost| cost.value()));
        row.calls = if kind == RowKind::Cost { 0 } else { row.calls };
        row.key = match (&event.group, &event.id) {
            (_, None) if kind == RowKind::Cost && self.session(event).is_none() => self.key_by_content(&row, event),
            (_, id) if kind == RowKind::Cost => key("cost", &[id.as_deref(), self.session(event)]),
            (Some(group), _) => key("answer", &[Some(group), request(event).as_deref()]),
            (None, id) => self.key_by_id("record", id.as_deref(), &row, event),
        };
        if kind == RowKind::Own && row.time.is_some() && do_forks_rename(event) {
            let by_time = self.key_by_time(&row);
            match row.time < self.state.began {
                // Another agent made the call, and its session counts it.
                true if row.tokens.counters().iter().all(|counter| *counter == 0) => return,
                true => {
                    self.origins.push((row.key, by_time));
                    (row.key, row.kind) = (by_time, RowKind::Replayed);
                }
                false => self.origins.push((by_time, row.key)),
            }
        }
        let key = row.key;
        let at = self.put(row);
        if let (Some(group), CallDetail::Tools) = (&event.group, self.detail) {
            let group = hash(&[group]);
            self.last_answer = Some(group);
            let answer = self.answers.entry(group).or_default();
            (answer.row, answer.key) = (Some(at), Some(key));
            let tools = std::mem::take(&mut answer.tools);
            if let Some(row) = self.rows.get_mut(at) {
                tools.iter().for_each(|tool| row.tools.add(tool));
            }
        }
    }

    /// Adds a call of a sub-agent that a record forwards, or its invalid count.
    fn add_forwarded(&mut self, event: &Event<'_>, call: &Event<'_>) {
        if has_invalid_count(call) {
            self.add_uncounted(UncountedReason::InvalidCount, event.at.map_or(0, |at| at.line));
        }
        let Some(usage) = &call.usage else { return };
        let mut row = self.row(event, RowKind::Forwarded, Tokens::of(usage));
        row.service_tier = usage.tier();
        row.thread = self.name(call.thread.as_deref()).or(row.thread);
        row.model = self.name(call.model.as_deref());
        row.time = call.time.as_ref().and_then(Time::to_millis).or(row.time);
        row.stated_at = row.time.unwrap_or(i64::MAX);
        row.key = match (&call.group, &call.id) {
            (Some(group), _) => key("answer", &[Some(group), request(call).as_deref()]),
            (None, id) => self.key_by_id("record", id.as_deref(), &row, event),
        };
        self.put(row);
    }

    fn row(&mut self, event: &Event<'_>, kind: RowKind, tokens: Tokens) -> Row {
        let origin = event.extra.iter().next().and_then(|(origin, _)| origin.info());
        let agent = self.names.number(origin.map_or(&*self.agent, |info| info.agent));
        let session = self.state.session_of(event);
        let (names, state) = (&mut self.names, &self.state);
        let mut number =
            |own: Option<&str>, last: Option<&String>| own.or(last.map(String::as_str)).map(|name| names.number(name));
        let time = event.time.as_ref().and_then(Time::to_millis);
        Row {
            key: 0,
            agent,
            session: number(session, None),
            thread: number(event.thread.as_deref(), None),
            model: number(event.model.as_deref(), state.model.as_ref()),
            cwd: number(event.cwd.as_deref(), state.cwd.as_ref()),
            branch: number(event.branch.as_deref(), state.branch.as_ref()),
            tools: Tools::default(),
            time,
            stated_at: time.map_or(i64::MAX, |time| time.max(state.began.unwrap_or(time))),
            tokens,
            service_tier: ServiceTier::Standard,
            stated_cost: None,
            kind,
            calls: stated_calls(event).unwrap_or(1),
            records: 1,
            line: event.at.map_or(0, |at| at.line),
        }
    }

    fn session<'e>(&'e self, event: &'e Event<'_>) -> Option<&'e str> {
        self.state.session_of(event)
    }

    fn name(&mut self, name: Option<&str>) -> Option<Name> {
        name.map(|name| self.names.number(name))
    }

    /// The key of a row whose only id is that of its record or call.
    fn key_by_id(&self, kind: &str, id: Option<&str>, row: &Row, event: &Event<'_>) -> u128 {
        match (id, self.session(event)) {
            (Some(id), _) if is_global_id(id) => key(kind, &[Some(id)]),
            // Sub-agents may number their records as the main conversation does.
            (Some(id), Some(session)) => match event.thread.as_deref() {
                Some(thread) => key(kind, &[Some(id), Some(session), Some(thread)]),
                None => key(kind, &[Some(id), Some(session)]),
            },
            (Some(_), None) | (None, _) => self.key_by_content(row, event),
        }
    }

    /// The key of a copied row whose original has another id.
    fn key_by_time(&self, row: &Row) -> u128 {
        let numbers = row.tokens.counters().map(|counter| counter.to_string()).join(",");
        let (time, model) =
            (row.time.map(|time| time.to_string()), row.model.and_then(|name| self.names.list.get(name.index())));
        key("time", &[time.as_deref(), model.map(String::as_str), Some(&numbers)])
    }

    /// The key of a row without any id: a copy of its record has the same content at the same position. The position of a sum
    /// does not matter: a session does not state it twice.
    fn key_by_content(&self, row: &Row, event: &Event<'_>) -> u128 {
        let name = |name: Option<Name>| name.and_then(|name| self.names.list.get(name.index()));
        let numbers = match row.stated_cost.filter(|_| row.kind == RowKind::Cost) {
            Some(cost) => cost.to_string(),
            None => row.tokens.counters().map(|counter| counter.to_string()).join(","),
        };
        let time = row.time.map(|time| time.to_string());
        let [session, model] = [name(row.session), name(row.model)].map(|name| name.map(String::as_str));
        let is_sum = session.is_some() && time.is_some() && stated_calls(event).is_some();
        let [line, part] = [row.line, u64::from(event.part.index)].map(|at| (!is_sum).then(|| at.to_string()));
        key("content", &[session, model, time.as_deref(), line.as_deref(), part.as_deref(), Some(&numbers)])
    }

    /// Adds a row, or merges it into the row of the same call.
    fn put(&mut self, row: Row) -> usize {
        let Some(known) = self.by_key.get(&row.key).copied() else {
            self.by_key.insert(row.key, self.rows.len());
            self.rows.push(row);
            return self.rows.len() - 1;
        };
        let Some(into) = self.rows.get_mut(known) else { return known };
        let reason = match (into.kind == RowKind::Forwarded) != (row.kind == RowKind::Forwarded) {
            true => UncountedReason::Forwarded,
            false => UncountedReason::Streamed,
        };
        let (is_first, mut line) = (into.records == 0, row.line);
        if row.evidence() < into.evidence() {
            line = into.line;
            into.take_owner(&row);
        }
        into.join(&row);
        if !is_first {
            self.add_uncounted(reason, line);
        }
        known
    }

    fn add_uncounted(&mut self, reason: UncountedReason, line: u64) {
        let uncounted = match self.uncounted.iter_mut().position(|uncounted| uncounted.reason == reason) {
            Some(at) => self.uncounted.get_mut(at),
            None => {
                self.uncounted.push(Uncounted { reason, count: 0, lines: Vec::new() });
                self.uncounted.last_mut()
            }
        };
        if let Some(uncounted) = uncounted {
            uncounted.count += 1;
            if uncounted.lines.len() < EXAMPLES_MAX {
                uncounted.lines.push(line);
            }
        }
    }
}

impl Sink for CallCounter {
    fn event(&mut self, event: &Event<'_>) {
        self.add(event);
    }
}
