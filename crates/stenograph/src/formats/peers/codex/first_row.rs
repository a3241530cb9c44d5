//! ccstat 0.6.2: the last call of every event counts, repeated or not, and cache reads count as input, too. It reads only files
//! directly in `sessions/`, where Codex no longer writes rollouts.

use super::{Counters, Place, RolloutLine, rollout_line, since};
use crate::formats::codex::NAME;
use crate::formats::peers::{PeerCounter, PeerRule};
use crate::ledger::{PeerRows, Tokens};

#[derive(Debug, Default)]
pub(super) struct FirstRow {
    counted: PeerRows,
    sources: u32,
    place: Place,
    total: Counters,
    is_read: bool,
    passed_over: u64,
}

impl PeerCounter for FirstRow {
    fn source(&mut self, path: &str) {
        self.place = Place { source: self.sources, ..Place::default() };
        self.sources += 1;
        self.total = Counters::default();
        self.is_read = path.rsplit('/').nth(1) == Some("sessions");
        self.passed_over += u64::from(!self.is_read);
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        if !self.is_read {
            return;
        }
        match rollout_line(line) {
            None => {}
            Some(RolloutLine::Meta(meta)) => {
                let mut name = |key: &str| meta.peek_str(key).map(|name| self.counted.name(&name));
                (self.place.session, self.place.cwd) = (self.place.session.or(name("id")), name("cwd"));
            }
            Some(RolloutLine::Model(model)) => self.place.model = Some(self.counted.name(&model)),
            Some(RolloutLine::Count { time, total, last }) => {
                let difference = || total.map(|total| since(total, self.total));
                let [input, cached, _, output, reasoning] = last.or_else(difference).unwrap_or_default();
                self.total = total.unwrap_or(self.total);
                if input == 0 && output == 0 {
                    return;
                }
                let tokens = Tokens { input, output, cache_read: cached, reasoning, ..Tokens::default() };
                let time = time.and_then(|time| PeerRule::FirstRow.moment(&time));
                let mut row = self.counted.row(NAME, number, time, tokens);
                (row.session, row.cwd, row.model) = (self.place.session, self.place.cwd, self.place.model);
                self.counted.keep(self.place.source, row);
            }
        }
    }

    fn finish(mut self: Box<Self>) -> PeerRows {
        if self.passed_over > 0 {
            let files = if self.passed_over == 1 { "file" } else { "files" };
            let warning = format!(
                "{NAME}: ccstat reads only files directly in sessions/; {} {files} elsewhere not counted",
                self.passed_over
            );
            self.counted.warnings.push(warning);
        }
        self.counted
    }
}
