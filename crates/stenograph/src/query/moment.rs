//! Dates and times in a query: `2026-01-15`, `yesterday`, `7d`. This file reads no clock: the caller passes the current
//! time.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// The current time and time zone of the user.
#[derive(Clone, Debug)]
pub struct Today {
    /// The current time.
    pub now: Timestamp,
    /// The time zone of days.
    pub zone: TimeZone,
}

/// The accepted spellings of a time, for hints and help.
pub const SPELLINGS: &str = "a day (2026-01-15), a month (2026-01), a year (2026), today, yesterday, last-week, \
                             last-month, an age (30m, 12h, 7d, 2w, 3mo, 1y), or a timestamp (2026-01-15T10:30)";

/// A period of time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first moment.
    pub start: i64,
    /// The first moment after it. A text that names a single moment has no length: its end is its start.
    pub end: i64,
}

/// The period that a text names: a day, a week, a month, a year, or a single moment.
pub fn period(text: &str, today: &Today) -> Option<Period> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let day = today.now.to_zoned(today.zone.clone()).date();
    let month = day.first_of_month();
    let (first, length) = match lower.as_str() {
        "today" => (day, Span::new().days(1)),
        "yesterday" => (day.yesterday().ok()?, Span::new().days(1)),
        "last-week" => {
            let monday = day.checked_sub(Span::new().days(day.weekday().to_monday_zero_offset())).ok()?;
            (monday.checked_sub(Span::new().weeks(1)).ok()?, Span::new().weeks(1))
        }
        "last-month" => (month.checked_sub(Span::new().months(1)).ok()?, Span::new().months(1)),
        _ => match date(&lower) {
            Some(found) => found,
            None => {
                let moment =
                    if lower == "now" { Some(today.now) } else { ago(&lower, today).or_else(|| exact(text, today)) };
                let moment = moment?.as_millisecond();
                return Some(Period { start: moment, end: moment });
            }
        },
    };
    let end = first.checked_add(length).ok()?;
    Some(Period { start: start(first, today)?.as_millisecond(), end: start(end, today)?.as_millisecond() })
}

fn start(day: Date, today: &Today) -> Option<Timestamp> {
    Some(day.to_zoned(today.zone.clone()).ok()?.timestamp())
}

fn ago(text: &str, today: &Today) -> Option<Timestamp> {
    let span = text.parse().ok().filter(|span: &Span| !span.is_negative())?;
    Some(today.now.to_zoned(today.zone.clone()).checked_sub(span).ok()?.timestamp())
}

/// A year, a month or a day: its first day and its length.
fn date(text: &str) -> Option<(Date, Span)> {
    let (whole, length) = match text.len() {
        4 => (format!("{text}-01-01"), Span::new().years(1)),
        7 => (format!("{text}-01"), Span::new().months(1)),
        _ => (text.to_owned(), Span::new().days(1)),
    };
    let plain = whole.len() == 10 && whole.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Some((whole.parse().ok().filter(|_| plain)?, length))
}

/// A time with its offset, or without one in the local time zone.
fn exact(text: &str, today: &Today) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let wall: DateTime = text.parse().ok()?;
    Some(wall.to_zoned(today.zone.clone()).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn today() -> Today {
        Today { now: "2026-03-10T12:00:00Z".parse().unwrap(), zone: TimeZone::fixed(jiff::tz::offset(2)) }
    }

    fn said(text: &str) -> Option<String> {
        period(text, &today()).map(|period| Timestamp::from_millisecond(period.start).unwrap().to_string())
    }

    fn ends(text: &str) -> String {
        Timestamp::from_millisecond(period(text, &today()).unwrap().end).unwrap().to_string()
    }

    #[test]
    fn a_day_a_week_a_month_and_a_year_have_an_end() {
        assert_eq!(ends("2026-01-15"), "2026-01-15T22:00:00Z");
        assert_eq!(ends("2026-01"), "2026-01-31T22:00:00Z");
        assert_eq!(ends("2025"), "2025-12-31T22:00:00Z");
        assert_eq!(
            (said("last-week").unwrap(), ends("last-week")),
            ("2026-03-01T22:00:00Z".to_owned(), "2026-03-08T22:00:00Z".to_owned())
        );
        assert_eq!(
            (said("last-month").unwrap(), ends("last-month")),
            ("2026-01-31T22:00:00Z".to_owned(), "2026-02-28T22:00:00Z".to_owned())
        );
        assert_eq!(ends("7d"), said("7d").unwrap());
    }

    #[test]
    fn days_begin_where_the_asker_is() {
        assert_eq!(said("2026-01-15").as_deref(), Some("2026-01-14T22:00:00Z"));
        assert_eq!(said("2026-01").as_deref(), Some("2025-12-31T22:00:00Z"));
        assert_eq!(said("2025").as_deref(), Some("2024-12-31T22:00:00Z"));
        assert_eq!(said("today").as_deref(), Some("2026-03-09T22:00:00Z"));
        assert_eq!(said("Yesterday").as_deref(), Some("2026-03-08T22:00:00Z"));
    }

    #[test]
    fn how_long_ago_is_counted_from_now() {
        assert_eq!(said("90m").as_deref(), Some("2026-03-10T10:30:00Z"));
        assert_eq!(said("7d").as_deref(), Some("2026-03-03T12:00:00Z"));
        assert_eq!(said("1mo").as_deref(), Some("2026-02-10T12:00:00Z"));
        assert_eq!(said("1y").as_deref(), Some("2025-03-10T12:00:00Z"));
        assert_eq!(said("1h30m").as_deref(), Some("2026-03-10T10:30:00Z"));
        assert_eq!(said("2 weeks").as_deref(), Some("2026-02-24T12:00:00Z"));
    }

    #[test]
    fn a_time_of_day_may_have_an_offset() {
        assert_eq!(said("2026-01-15T10:00:00Z").as_deref(), Some("2026-01-15T10:00:00Z"));
        assert_eq!(said("2026-01-15T10:00").as_deref(), Some("2026-01-15T08:00:00Z"));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in ["", "soon", "7", "7x", "-7d", "2026-13-01", "99999999999d", "200000y", "d"] {
            assert_eq!(said(text), None, "{text}");
        }
    }
}
