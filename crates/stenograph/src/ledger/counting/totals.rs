//! Running totals: the increase over the previous total is a call, and the part that a source replays belongs to another
//! session.

use super::CallCounter;
use crate::evidence::RunningTotal;
use crate::ledger::Tokens;
use crate::ledger::key::key;
use crate::ledger::row::{Row, RowKind};
use crate::ledger::source_usage::UncountedReason;
use crate::model::{Body, Event, Fact};

/// The longest pause in a replayed history, which the agent writes at once.
const REPLAY_GAP_MS: i64 = 1000;

impl CallCounter {
    /// Adds a running total: its increase over the previous one is a call.
    pub(super) fn add_total(&mut self, event: &Event<'_>, total: &RunningTotal) {
        let line = event.at.map_or(0, |at| at.line);
        // The header of a running run states zeros; its turns state the usage.
        let is_header = matches!(&event.body, Body::Fact { fact: Fact::Session | Fact::SessionEnd, .. });
        if is_header && total.tokens.is_zero() && total.cost.is_none() {
            return;
        }
        let is_first = self.state.total.is_none();
        let mut before = self.state.total.replace(total.tokens).unwrap_or_default();
        if before.exceeds(&total.tokens) {
            // A counter that decreases was reset, and may reach the same totals again.
            self.state.resets = self.state.resets.saturating_add(1);
            before = Tokens::default();
        }
        if before == total.tokens {
            return self.add_uncounted(UncountedReason::RepeatedTotal, line);
        }
        let mut used = total.tokens.less(&before);
        // The numbers of a source need not be consistent: if the cache's share exceeds the input, the rest is 0.
        used.input = used.input.saturating_sub(used.cache_read).saturating_sub(used.cache_write);
        // The previous total may be in another source; then the answer states its own usage.
        if let Some(usage) = event.usage.as_ref().filter(|_| is_first && self.state.is_history_elsewhere) {
            used = Tokens::of(usage);
        }
        // A total with an answer gives a difference; a total in the header is that of a run.
        let kind = if is_header { RowKind::Run } else { RowKind::Difference };
        let mut row = self.row(event, kind, used);
        (row.stated_cost, row.tools) = (total.cost, std::mem::take(&mut self.tools));
        let own = self.session(event).map(str::to_owned);
        row.key = self.total_key(own.as_deref(), &row, total);
        let lineage = self.replayed_sessions(row.time);
        if let Some((parent, older)) = lineage.split_first() {
            let key = self.total_key(Some(parent), &row, total);
            self.origins.push((std::mem::replace(&mut row.key, key), key));
            for session in older {
                let older = self.total_key(Some(session), &row, total);
                self.older_origins.push((key, older));
            }
            (row.session, row.kind) = (Some(self.names.number(parent)), RowKind::Replayed);
        }
        self.put(row);
    }

    /// The key of a call that is identified by the total after it. A run has only one total, which grows.
    fn total_key(&self, session: Option<&str>, row: &Row, total: &RunningTotal) -> u128 {
        let time = row.time.filter(|_| session.is_none()).map(|time| time.to_string());
        if row.kind == RowKind::Run {
            return key("run", &[session, time.as_deref()]);
        }
        let counters = total.tokens.counters().map(|counter| counter.to_string()).join(",");
        let resets = self.state.resets.to_string();
        key("total", &[session, time.as_deref(), Some(&resets), Some(&counters)])
    }

    /// The session whose replayed history a record at this time belongs to, and the older sessions it may come from.
    fn replayed_sessions(&mut self, time: Option<i64>) -> Vec<String> {
        match (&mut self.state.replay, time) {
            (Some(replay), Some(time)) if time.saturating_sub(replay.last) <= REPLAY_GAP_MS => {
                replay.last = time.max(replay.last);
                replay.of.clone()
            }
            (replay, _) => {
                *replay = None;
                Vec::new()
            }
        }
    }

    /// Excludes the total of a run whose rows state the same tokens, with times that the total does not have.
    fn exclude_equal_run(&mut self) -> bool {
        let mut sum = Tokens::default();
        let mut run = None;
        let mut costs = false;
        let beside = self.are_subagents_beside_total();
        for row in &self.rows {
            match row.kind {
                RowKind::Run if run.is_none() && row.time.is_none() => run = Some((row.line, row.tokens)),
                RowKind::Run | RowKind::Difference | RowKind::Replayed => return false,
                _ if row.time.is_none() => return false,
                _ if beside && row.thread.is_some() => {}
                _ => sum = sum.plus(&row.tokens),
            }
            costs |= row.kind != RowKind::Run && row.stated_cost.is_some();
        }
        let Some((line, total)) = run else { return false };
        // A total may count what is written to a cache as input.
        let sent = |tokens: &Tokens| tokens.input.saturating_add(tokens.cache_write);
        if sent(&sum) != sent(&total) || sum.output != total.output || sum.cache_read != total.cache_read {
            return false;
        }
        // The cost of the run is not in the rows if none of them states one.
        self.rows.retain(|row| row.kind != RowKind::Run || (row.stated_cost.is_some() && !costs));
        for run in self.rows.iter_mut().filter(|row| row.kind == RowKind::Run) {
            (run.kind, run.tokens, run.calls) = (RowKind::Cost, Tokens::default(), 0);
        }
        self.add_uncounted(UncountedReason::Sum, line);
        true
    }

    /// Whether the total of a run leaves out the calls of its sub-agents: all calls of the source together exceed it.
    fn are_subagents_beside_total(&self) -> bool {
        let is_run = |row: &&Row| row.kind == RowKind::Run;
        let Some(total) = self.rows.iter().find(is_run).map(|run| run.tokens) else { return false };
        let calls = self.rows.iter().filter(|row| !is_run(row));
        let all = calls.fold(Tokens::default(), |sum, row| sum.plus(&row.tokens));
        self.rows.iter().any(|row| row.thread.is_some())
            && (all.all_input() > total.all_input() || all.output > total.output)
    }

    /// Excludes the rows of turns in a source that states the total of the whole run.
    pub(super) fn exclude_rows_within_total(&mut self) {
        if self.exclude_equal_run() {
            return;
        }
        let mut within = Vec::new();
        let beside = self.are_subagents_beside_total();
        self.rows.retain(|row| {
            let stays = (beside && row.thread.is_some())
                || matches!(
                    row.kind,
                    RowKind::Difference | RowKind::Replayed | RowKind::Run | RowKind::Cost | RowKind::Search
                );
            if !stays {
                within.push((row.line, row.tokens.output > 0));
            }
            stays
        });
        if let [run] = self.rows.as_mut_slice()
            && run.kind == RowKind::Run
        {
            let answers = within.iter().filter(|(_, answers)| *answers).count();
            run.calls = u32::try_from(answers).unwrap_or(u32::MAX).max(run.calls);
        }
        for (line, _) in within {
            self.add_uncounted(UncountedReason::WithinTotal, line);
        }
    }
}
