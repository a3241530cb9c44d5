//! Calls that another program counts, which the ledger takes as they are. The rules are in `formats/peers/`.

use super::row::{Row, RowKind, Tools};
use super::source_usage::{Name, Names};
use super::{ServiceTier, Tokens};

/// The calls that the rule of another program counts in all sources of a format.
#[derive(Debug, Default)]
pub struct PeerRows {
    pub(super) names: Names,
    pub(crate) rows: Vec<(u32, Row)>,
    /// Warnings about sources that the program does not count as its users expect.
    pub warnings: Vec<String>,
}

impl PeerRows {
    /// The number of a name in rows.
    pub(crate) fn name(&mut self, name: &str) -> Name {
        self.names.number(name)
    }

    /// The words of a name.
    pub(crate) fn word(&self, name: Name) -> Option<&str> {
        self.names.list.get(name.index()).map(String::as_str)
    }

    /// A call with the tokens of one line; the caller fills in the other fields.
    pub(crate) fn row(&mut self, agent: &str, line: u64, time: Option<i64>, tokens: Tokens) -> Row {
        Row {
            key: 0,
            agent: self.name(agent),
            session: None,
            thread: None,
            model: None,
            cwd: None,
            branch: None,
            tools: Tools::default(),
            time,
            stated_at: time.unwrap_or(i64::MAX),
            tokens,
            service_tier: ServiceTier::Standard,
            stated_cost: None,
            kind: RowKind::Own,
            calls: 1,
            records: 1,
            line,
        }
    }

    /// Adds a call. `source` counts the sources from 0, in the order in which they were read.
    pub(crate) fn keep(&mut self, source: u32, row: Row) {
        self.rows.push((source, row));
    }

    /// Input, output, cache read and cache write of each call.
    #[cfg(test)]
    pub(crate) fn token_counts(&self) -> Vec<[u64; 4]> {
        let counters = |row: &Row| {
            let Tokens { input, output, cache_read, cache_write, .. } = row.tokens;
            [input, output, cache_read, cache_write]
        };
        self.rows.iter().map(|(_, row)| counters(row)).collect()
    }
}
