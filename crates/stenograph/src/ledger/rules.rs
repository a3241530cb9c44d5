//! Rules by which other programs count, so that their totals can be told beside ours. What a rule makes of the lines of a
//! format is in that format's folder; here are its name, what it says, and what all formats need to follow one.

use super::row::{Row, RowKind, Tools};
use super::source_usage::{Name, Names};
use super::{ServiceTier, Tokens};
use crate::time::Time;

/// A rule by which another program counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The daily report of ccusage.
    Ccusage20,
    /// ccstat: of all lines about a call the first one counts.
    FirstRow,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 2] = [Rule::Ccusage20, Rule::FirstRow];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Ccusage20 => "ccusage-20",
            Rule::FirstRow => "first-row",
        }
    }

    /// The program that counts so.
    pub fn program(self) -> &'static str {
        match self {
            Rule::Ccusage20 => "ccusage",
            Rule::FirstRow => "ccstat",
        }
    }

    /// The release of it that was looked at.
    pub fn version(self) -> &'static str {
        match self {
            Rule::Ccusage20 => "20.0.24",
            Rule::FirstRow => "0.6.2",
        }
    }

    /// What it does, in one sentence.
    pub fn says(self) -> &'static str {
        match self {
            Rule::Ccusage20 => {
                "of the lines with one message id and one request id the largest counts; without a request id every \
                 line with a time of its own is a call"
            }
            Rule::FirstRow => {
                "of the lines with one message id and one request id the first counts, though an answer that streams \
                 begins with too small a number"
            }
        }
    }

    /// The moment that a text is for the program, in milliseconds since 1970. Each reads fewer spellings than there are.
    pub fn moment(self, text: &str) -> Option<i64> {
        let bytes = text.as_bytes();
        let (day, rest) = bytes.split_at_checked(19)?;
        let (fraction, offset) = match rest.strip_prefix(b".") {
            Some(rest) => rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
            None => (&b""[..], rest),
        };
        let is_point_alone = rest.first() == Some(&b'.') && fraction.is_empty();
        let is_offset = match offset {
            [b'+' | b'-', hour @ .., b':', tens, ones] => {
                hour.len() == 2 && hour.iter().chain([tens, ones]).all(u8::is_ascii_digit)
            }
            _ => false,
        };
        let is_spelled = match self {
            Rule::Ccusage20 => {
                day.get(10) == Some(&b'T') && matches!(fraction.len(), 0 | 3) && (is_offset || offset == b"Z")
            }
            Rule::FirstRow => is_offset || matches!(offset, b"Z" | b"z"),
        };
        let time = Time::iso(text.into()).filter(|_| is_spelled && !is_point_alone)?;
        Some(time.instant()?.as_millisecond())
    }
}

/// Counts all sources of a format as a rule says. Sources come in the order of their paths, and their lines in theirs.
pub trait Tally: std::fmt::Debug {
    /// The next source; names in its path stand between `/`.
    fn source(&mut self, path: &str);

    /// The next line of it, without its end. Lines are counted from 1.
    fn line(&mut self, number: u64, line: &[u8]);

    /// Nothing more comes.
    fn close(self: Box<Self>) -> Tallied;
}

/// What a rule counts in all sources of a format.
#[derive(Debug, Default)]
pub struct Tallied {
    pub(super) names: Names,
    pub(crate) rows: Vec<(u32, Row)>,
    /// What there is to say about sources that the program does not count as people would think.
    pub warnings: Vec<String>,
}

impl Tallied {
    /// The number of a name in rows.
    pub(crate) fn name(&mut self, name: &str) -> Name {
        self.names.number(name)
    }

    /// The words of a name.
    pub(crate) fn word(&self, name: Name) -> Option<&str> {
        self.names.list.get(name.index()).map(String::as_str)
    }

    /// A call of an agent of which nothing else is known yet.
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
            stated: None,
            kind: RowKind::Own,
            calls: 1,
            records: 1,
            line,
        }
    }

    /// Keeps a call that a source tells of. Sources are counted from 0 as they came.
    pub(crate) fn keep(&mut self, source: u32, row: Row) {
        self.rows.push((source, row));
    }

    /// What was kept, for tests.
    #[cfg(test)]
    pub(crate) fn told(&self) -> Vec<[u64; 4]> {
        let counters = |row: &Row| {
            let Tokens { input, output, cache_read, cache_write, .. } = row.tokens;
            [input, output, cache_read, cache_write]
        };
        self.rows.iter().map(|(_, row)| counters(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_reads_its_own_spellings_of_a_moment() {
        let reads = |rule: Rule, text: &str| rule.moment(text).is_some();
        for text in ["2026-03-02T09:14:05Z", "2026-03-02T09:14:05.123Z", "2026-03-02T09:14:05+01:00"] {
            assert!(Rule::ALL.iter().all(|rule| reads(*rule, text)), "{text}");
        }
        for text in ["2026-03-02T09:14:05.123456Z", "2026-03-02T09:14:05.1Z", "2026-03-02 09:14:05Z"] {
            assert_eq!([reads(Rule::Ccusage20, text), reads(Rule::FirstRow, text)], [false, true], "{text}");
        }
        for text in ["", "2026-03-02", "2026-03-02T09:14:05", "2026-03-02T09:14:05.Z", "2026-02-30T09:14:05Z", "é"] {
            assert!(!Rule::ALL.iter().any(|rule| reads(*rule, text)), "{text}");
        }
        assert_eq!(Rule::FirstRow.moment("1970-01-01T01:00:01.5+01:00"), Some(1500));
    }
}
