//! The counting rules of other programs: their names, what they do, and the timestamps they read. How a rule counts the lines of a
//! format is in the folder of that format beside this file.

use crate::time::Time;

/// A rule by which another program counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRule {
    /// The daily report of ccusage.
    Ccusage20,
    /// ccstat: of all lines about a call the first one counts.
    FirstRow,
}

impl PeerRule {
    /// Every rule.
    pub const ALL: [PeerRule; 2] = [PeerRule::Ccusage20, PeerRule::FirstRow];

    /// The name that `--as` takes.
    pub fn name(self) -> &'static str {
        match self {
            PeerRule::Ccusage20 => "ccusage-20",
            PeerRule::FirstRow => "first-row",
        }
    }

    /// The program that counts by this rule.
    pub fn program(self) -> &'static str {
        match self {
            PeerRule::Ccusage20 => "ccusage",
            PeerRule::FirstRow => "ccstat",
        }
    }

    /// The release of the program that the rule reproduces.
    pub fn version(self) -> &'static str {
        match self {
            PeerRule::Ccusage20 => "20.0.24",
            PeerRule::FirstRow => "0.6.2",
        }
    }

    /// What the rule does, in one sentence.
    pub fn says(self) -> &'static str {
        match self {
            PeerRule::Ccusage20 => {
                "among lines with the same message id and request id, the largest counts; without a request id, every \
                 line with its own time is a call"
            }
            PeerRule::FirstRow => {
                "among lines with the same message id and request id, the first counts, although a streamed answer \
                 starts with too small a number"
            }
        }
    }

    /// The moment that the program reads from a timestamp, in milliseconds since 1970. Each program reads only some ISO 8601 spellings.
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
            PeerRule::Ccusage20 => {
                day.get(10) == Some(&b'T') && matches!(fraction.len(), 0 | 3) && (is_offset || offset == b"Z")
            }
            PeerRule::FirstRow => is_offset || matches!(offset, b"Z" | b"z"),
        };
        Time::iso(text.into()).filter(|_| is_spelled && !is_point_alone)?.to_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_reads_its_own_spellings_of_a_moment() {
        let reads = |rule: PeerRule, text: &str| rule.moment(text).is_some();
        for text in ["2026-03-02T09:14:05Z", "2026-03-02T09:14:05.123Z", "2026-03-02T09:14:05+01:00"] {
            assert!(PeerRule::ALL.iter().all(|rule| reads(*rule, text)), "{text}");
        }
        for text in ["2026-03-02T09:14:05.123456Z", "2026-03-02T09:14:05.1Z", "2026-03-02 09:14:05Z"] {
            assert_eq!([reads(PeerRule::Ccusage20, text), reads(PeerRule::FirstRow, text)], [false, true], "{text}");
        }
        for text in ["", "2026-03-02", "2026-03-02T09:14:05", "2026-03-02T09:14:05.Z", "2026-02-30T09:14:05Z", "é"] {
            assert!(!PeerRule::ALL.iter().any(|rule| reads(*rule, text)), "{text}");
        }
        assert_eq!(PeerRule::FirstRow.moment("1970-01-01T01:00:01.5+01:00"), Some(1500));
    }
}
