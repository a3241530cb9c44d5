//! The clock, and the one rule for times: people see the local time zone, or the one that `--utc` or `--timezone` names, always labelled; programs get
//! UTC. Only this file reads the clock or the time zone.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit, Zoned, ZonedRound};
use stenograph::time::{Precision, Time, shown};
pub use stenograph_store::sessions::iso;

static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows all times in this time zone. Call it once, before showing any time.
pub fn use_zone(zone: TimeZone) {
    let _ = ZONE.set(zone);
}

/// The time zone for showing times and reading dates.
pub fn zone() -> TimeZone {
    ZONE.get_or_init(TimeZone::system).clone()
}

/// The current time, to the millisecond.
pub fn now() -> Time<'static> {
    let now = Zoned::now();
    let now = now.round(ZonedRound::new().smallest(Unit::Millisecond)).unwrap_or(now);
    let zone = if now.offset().is_zero() { "Z" } else { "%:z" };
    let text = now.strftime(&format!("%Y-%m-%dT%H:%M:%S%.3f{zone}")).to_string();
    Time { text: text.into(), unit: stenograph::time::TimeUnit::Iso }
}

/// Whole seconds since 1970.
pub fn seconds() -> u64 {
    u64::try_from(Timestamp::now().as_second()).unwrap_or(0)
}

/// Formats milliseconds since 1970 for people, to the minute.
pub fn format_minute(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |time| shown(time, &zone(), Precision::Minutes))
}

/// Formats a transcript's time for people, to the second.
pub fn format_second(time: &Time<'_>) -> Option<String> {
    time.shown(&zone(), Precision::Seconds)
}

/// Formats the time of day, for output that has stated the date and the time zone.
pub fn time_of_day(time: &Time<'_>) -> Option<String> {
    Some(time.instant()?.to_zoned(zone()).strftime("%H:%M:%S").to_string())
}

/// Formats the date of milliseconds since 1970 for people.
pub fn format_day(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |time| shown(time, &zone(), Precision::Days))
}

/// Formats a duration as a clock shows it.
pub fn format_clock(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

/// Formats a duration for people, in its two largest units.
pub fn format_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let two = |one: u64, unit: &str, other: u64, smaller: &str| match other {
        0 => format!("{one} {unit}"),
        other => format!("{one} {unit} {other} {smaller}"),
    };
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// Nanoseconds since 1970.
pub fn nanoseconds() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The current time.
pub fn timestamp() -> Timestamp {
    Timestamp::now()
}

/// Whole milliseconds since 1970.
pub fn millis() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The seconds of an age, spelled as for `--since`: `90s`, `30m`, `24h`, `7d`, `2w`, `3mo`, `1y`.
pub fn duration_seconds(text: &str) -> Option<i64> {
    let span = text.parse().ok().filter(|span: &Span| !span.is_negative())?;
    // A month and a year count back from now, in a time zone whose days have 24 hours.
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let before = now.checked_sub(span).ok()?;
    Some(now.timestamp().as_second() - before.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_duration_has_two_units() {
        assert_eq!(
            [250, 59_999, 61_000, 3_600_000, 30_000_000, 200_000_000].map(format_duration),
            ["250 ms", "59 s", "1 min 1 s", "1 h", "8 h 20 min", "2 d 7 h"]
        );
    }

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(duration_seconds("90m"), Some(5400));
        assert_eq!(duration_seconds("2w"), Some(14 * 24 * 60 * 60));
        assert!(duration_seconds("1y").is_some_and(|year| (365..=366).contains(&(year / 86_400))));
        assert!(duration_seconds("3mo").is_some_and(|months| (89..=92).contains(&(months / 86_400))));
        for bad in ["", "d", "7", "-7d", "99999999999999999999d", "7é"] {
            assert_eq!(duration_seconds(bad), None, "{bad}");
        }
    }
}
