//! ccstat 0.6.2: what each event says of the last call counts, told again or not, and what came from the cache is input as well. It looks
//! only at files that stand in `sessions/` itself, where no rollout is put any more.

use super::{Counters, Place, Told, since, told};
use crate::formats::codex::NAME;
use crate::ledger::{Rule, Tallied, Tally, Tokens};

/// Counts as ccstat does.
#[derive(Debug, Default)]
pub struct FirstRow {
    tallied: Tallied,
    sources: u32,
    place: Place,
    total: Counters,
    is_read: bool,
    passed_over: u64,
}

impl Tally for FirstRow {
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
        match told(line) {
            None => {}
            Some(Told::Meta(meta)) => {
                let mut name = |key: &str| meta.peek_str(key).map(|name| self.tallied.name(&name));
                (self.place.session, self.place.cwd) = (self.place.session.or(name("id")), name("cwd"));
            }
            Some(Told::Model(model)) => self.place.model = Some(self.tallied.name(&model)),
            Some(Told::Count { time, total, last }) => {
                let difference = || total.map(|total| since(total, self.total));
                let [input, cached, _, output, reasoning] = last.or_else(difference).unwrap_or_default();
                self.total = total.unwrap_or(self.total);
                if input == 0 && output == 0 {
                    return;
                }
                let tokens = Tokens { input, output, cache_read: cached, reasoning, ..Tokens::default() };
                let time = time.and_then(|time| Rule::FirstRow.moment(&time));
                let mut row = self.tallied.row(NAME, number, time, tokens);
                (row.session, row.cwd, row.model) = (self.place.session, self.place.cwd, self.place.model);
                self.tallied.keep(self.place.source, row);
            }
        }
    }

    fn close(mut self: Box<Self>) -> Tallied {
        if self.passed_over > 0 {
            let files = if self.passed_over == 1 { "file" } else { "files" };
            let warning = format!(
                "{NAME}: ccstat reads only files in sessions/ itself; {} {files} elsewhere count nothing",
                self.passed_over
            );
            self.tallied.warnings.push(warning);
        }
        self.tallied
    }
}
