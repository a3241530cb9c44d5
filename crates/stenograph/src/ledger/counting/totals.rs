//! Running totals: the increase over the previous total is a call, and the part that a source replays belongs to another
//! session.

use super::Counting;
use crate::evidence::RunningTotal;
use crate::ledger::Tokens;
use crate::ledger::key::key;
use crate::ledger::row::{How, Row};
use crate::ledger::source_usage::Reason;
use crate::model::{Body, Event, Fact};

/// The longest pause in a replayed history, which the agent writes at once.
const REPLAY_GAP_MS: i64 = 1000;

impl Counting {
    /// A running total: what it has more than the last one is a call.
    pub(super) fn total(&mut self, event: &Event<'_>, total: &RunningTotal) {
        let line = event.at.map_or(0, |at| at.line);
        // The header of a running run states zeros; its turns state the usage.
        let is_header = matches!(&event.body, Body::Fact { name: Fact::Session | Fact::SessionEnd, .. });
        if is_header && total.tokens.is_zero() && total.cost.is_none() {
            return;
        }
        let is_first = self.state.total.is_none();
        let mut before = self.state.total.replace(total.tokens).unwrap_or_default();
        if before.exceeds(&total.tokens) {
            // A counter that goes down began anew, and may come by the same totals again.
            self.state.beginnings = self.state.beginnings.saturating_add(1);
            before = Tokens::default();
        }
        if before == total.tokens {
            return self.aside(Reason::RepeatedTotal, line);
        }
        let mut taken = total.tokens.less(&before);
        // The numbers of a source need not add up: if the cache's share exceeds the input, nothing is left beside it.
        taken.input = taken.input.saturating_sub(taken.cache_read).saturating_sub(taken.cache_write);
        // The total before the first one may stand in another source; then the answer says itself what it took.
        if let Some(usage) = event.usage.as_ref().filter(|_| is_first && self.state.apart) {
            taken = Tokens::of(usage);
        }
        // What comes with an answer is a difference; what stands in the header is all of a run.
        let how = if is_header { How::Run } else { How::Difference };
        let mut row = self.row(event, how, taken);
        (row.stated, row.tools) = (total.cost, std::mem::take(&mut self.tools));
        let own = self.session(event).map(str::to_owned);
        row.key = self.total_key(own.as_deref(), &row, total);
        let lineage = self.replayed(row.time);
        if let Some((parent, older)) = lineage.split_first() {
            let key = self.total_key(Some(parent), &row, total);
            self.origins.push((std::mem::replace(&mut row.key, key), key));
            for session in older {
                let older = self.total_key(Some(session), &row, total);
                self.kin.push((key, older));
            }
            (row.session, row.how) = (Some(self.names.number(parent)), How::Replayed);
        }
        self.put(row);
    }

    /// The key of a call that is identified by the total after it. A run has only one total, which grows.
    fn total_key(&self, session: Option<&str>, row: &Row, total: &RunningTotal) -> u128 {
        let time = row.time.filter(|_| session.is_none()).map(|time| time.to_string());
        if row.how == How::Run {
            return key("run", &[session, time.as_deref()]);
        }
        let counters = total.tokens.counters().map(|counter| counter.to_string()).join(",");
        let beginnings = self.state.beginnings.to_string();
        key("total", &[session, time.as_deref(), Some(&beginnings), Some(&counters)])
    }

    /// The session whose history a record at this time still belongs to, and those that one's may have come from.
    fn replayed(&mut self, time: Option<i64>) -> Vec<String> {
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

    /// In a source that states what the whole run took, what its turns took is told within it.
    pub(super) fn leave_to_total(&mut self) {
        let mut within = Vec::new();
        self.rows.retain(|row| {
            let stays = matches!(row.how, How::Difference | How::Replayed | How::Run | How::Cost | How::Search);
            if !stays {
                within.push((row.line, row.tokens.output > 0));
            }
            stays
        });
        if let [run] = self.rows.as_mut_slice()
            && run.how == How::Run
        {
            let answers = within.iter().filter(|(_, answers)| *answers).count();
            run.calls = u32::try_from(answers.max(1)).unwrap_or(u32::MAX);
        }
        for (line, _) in within {
            self.aside(Reason::WithinTotal, line);
        }
    }
}
