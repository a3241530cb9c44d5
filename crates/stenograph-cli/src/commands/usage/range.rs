//! The time range of `steno usage`.

use jiff::tz::TimeZone;
use stenograph::ledger::LedgerEntry;
use stenograph::query::{SPELLINGS, Today, moment};

use crate::clock;
use crate::error::CommandError;

/// The requested time range.
pub struct TimeRange {
    pub since: Option<i64>,
    pub until: Option<i64>,
}

impl TimeRange {
    /// Parses `--since` and `--until`; a day, a month or a year as the end is included.
    pub fn parse(since: Option<&str>, until: Option<&str>, zone: &TimeZone) -> Result<TimeRange, CommandError> {
        let today =
            Today { now: jiff::Timestamp::from_millisecond(clock::millis()).unwrap_or_default(), zone: zone.clone() };
        let read = |text: &str| {
            moment(text, &today)
                .ok_or_else(|| CommandError::new(format!("{text}: not a time")).hint(format!("write {SPELLINGS}")))
        };
        let since = since.map(read).transpose()?;
        let until = until.map(|text| Ok::<i64, CommandError>(end_of_period(read(text)?, text, zone))).transpose()?;
        Ok(TimeRange { since, until })
    }

    /// Whether the range includes an entry; an entry without a time is only in the unlimited range.
    pub fn has(&self, entry: &LedgerEntry) -> bool {
        let Some(time) = entry.row.time else { return self.since.is_none() && self.until.is_none() };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

/// The end of the day, month or year that a text names; of any other time, the time itself.
fn end_of_period(start: i64, text: &str, zone: &TimeZone) -> i64 {
    let text = text.trim();
    let is_date = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let span = match text.len() {
        4 if is_date => jiff::Span::new().years(1),
        7 if is_date => jiff::Span::new().months(1),
        10 if is_date => jiff::Span::new().days(1),
        _ if matches!(text, "today" | "yesterday") => jiff::Span::new().days(1),
        _ => return start,
    };
    let zoned = jiff::Timestamp::from_millisecond(start).map(|start| start.to_zoned(zone.clone()));
    zoned.and_then(|start| start.checked_add(span)).map_or(start, |end| end.timestamp().as_millisecond())
}
