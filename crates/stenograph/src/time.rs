//! Times as sources spell them, and as instants. This file must not read a clock.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::text::Str;

/// How a source spells a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// RFC 3339 text with its own UTC offset.
    Iso,
    /// A number of seconds since 1970.
    Seconds,
    /// A number of milliseconds since 1970.
    Millis,
}

/// The precision of a time shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// To the day.
    Days,
    /// To the minute.
    Minutes,
    /// To the second.
    Seconds,
}

/// A time for people: the wall clock in this time zone with its UTC offset, such as `2026-03-02 10:14 +01:00`.
pub fn shown(instant: Timestamp, zone: &TimeZone, precision: Precision) -> String {
    let zoned = instant.to_zoned(zone.clone());
    let clock = match precision {
        Precision::Days => "%Y-%m-%d",
        Precision::Minutes => "%Y-%m-%d %H:%M",
        Precision::Seconds => "%Y-%m-%d %H:%M:%S",
    };
    let label = if zoned.offset().is_zero() { "UTC" } else { "%:z" };
    zoned.strftime(&format!("{clock} {label}")).to_string()
}

/// A time in the spelling of its source.
#[derive(Clone, Debug)]
pub struct Time<'a> {
    /// The text, or the digits of the number.
    pub text: Str<'a>,
    /// How to read the text.
    pub unit: TimeUnit,
}

impl<'a> Time<'a> {
    /// A time from RFC 3339 text; `None` for anything else, so that an odd spelling stays in the record.
    pub fn iso(text: Str<'a>) -> Option<Time<'a>> {
        let shape = text.as_bytes().get(..19)?;
        let good = shape.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            10 => matches!(byte, b'T' | b't' | b' '),
            13 | 16 => *byte == b':',
            _ => byte.is_ascii_digit(),
        });
        let time = Time { text, unit: TimeUnit::Iso };
        (good && (time.is_common_valid() || time.instant().is_some())).then_some(time)
    }

    /// Whether the text has the most common spelling, in UTC with every field in range, so that it is valid without parsing.
    /// This check accepts no day after the 28th, because it does not know the lengths of months.
    fn is_common_valid(&self) -> bool {
        let bytes = self.text.as_bytes();
        let number = |at: usize| match bytes.get(at..at + 2) {
            Some([tens @ b'0'..=b'9', ones @ b'0'..=b'9']) => (tens - b'0') * 10 + (ones - b'0'),
            _ => u8::MAX,
        };
        let in_range = (1..=12).contains(&number(5)) && (1..=28).contains(&number(8)) && number(11) < 24;
        let ending_is_valid = match bytes.get(19..) {
            Some([b'Z']) => true,
            Some([b'.', digits @ .., b'Z']) => (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        in_range && number(14) < 60 && number(17) < 60 && ending_is_valid
    }

    /// A time from the digits of a number.
    pub fn number(digits: Str<'a>, unit: TimeUnit) -> Option<Time<'a>> {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let time = Time { text: digits, unit };
        (plain && time.instant().is_some()).then_some(time)
    }

    /// The instant.
    pub fn instant(&self) -> Option<Timestamp> {
        let scale = match self.unit {
            TimeUnit::Iso => return self.text.parse().ok(),
            TimeUnit::Seconds => 1_000_000_000_i128,
            TimeUnit::Millis => 1_000_000,
        };
        let (whole, part) = self.text.split_once('.').unwrap_or((&self.text, ""));
        let mut nanos = whole.parse::<i128>().ok()?.checked_mul(scale)?;
        let mut digit_value = scale;
        for digit in part.bytes().take(9) {
            digit_value /= 10;
            nanos += i128::from(digit.saturating_sub(b'0')) * digit_value;
        }
        Timestamp::from_nanosecond(nanos).ok()
    }

    /// RFC 3339 text, in the spelling of the source if it has one.
    pub fn to_iso(&self) -> Option<Str<'_>> {
        match self.unit {
            TimeUnit::Iso => Some(Cow::Borrowed(&self.text)),
            TimeUnit::Seconds | TimeUnit::Millis => self.to_utc().map(Cow::Owned),
        }
    }

    /// RFC 3339 in UTC, as our own JSON spells times.
    pub fn to_utc(&self) -> Option<String> {
        Some(self.instant()?.to_string())
    }

    /// The time for people: see [`shown`].
    pub fn shown(&self, zone: &TimeZone, precision: Precision) -> Option<String> {
        Some(shown(self.instant()?, zone, precision))
    }

    /// RFC 3339 in UTC with milliseconds, as JavaScript writes it.
    pub fn to_iso_millis(&self) -> Option<String> {
        Some(self.instant()?.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
    }

    /// RFC 3339 in UTC with milliseconds, or with more digits if the time has more; empty for an invalid time.
    pub fn to_iso_exact(&self) -> String {
        let millis = self.to_iso_millis().unwrap_or_default();
        let is_exact = Time::iso(millis.as_str().into()).is_some_and(|short| short == *self);
        if is_exact { millis } else { self.to_utc().unwrap_or(millis) }
    }

    /// Whole seconds since 1970.
    pub fn to_seconds(&self) -> Option<i64> {
        Some(self.instant()?.as_second())
    }

    /// Whole milliseconds since 1970.
    pub fn to_millis(&self) -> Option<i64> {
        Some(self.instant()?.as_millisecond())
    }

    /// Seconds since 1970 as a JSON number: the source's own digits if it counts in seconds, otherwise whole seconds; 0 for an
    /// invalid time.
    pub fn seconds_json(&self) -> String {
        match self.unit {
            TimeUnit::Seconds => self.text.to_string(),
            TimeUnit::Iso | TimeUnit::Millis => self.to_seconds().unwrap_or_default().to_string(),
        }
    }

    /// The wall clock at the UTC offset of the text, or in UTC if it has none, formatted as in `strftime`.
    pub fn wall(&self, format: &str) -> Option<String> {
        let instant = self.instant()?;
        let offset = match self.unit {
            TimeUnit::Iso => {
                jiff::fmt::temporal::Pieces::parse(&*self.text).ok().and_then(|pieces| pieces.to_numeric_offset())
            }
            TimeUnit::Seconds | TimeUnit::Millis => None,
        };
        let zone = offset.map_or(TimeZone::UTC, TimeZone::fixed);
        Some(instant.to_zoned(zone).strftime(format).to_string())
    }

    /// The same time, borrowing nothing.
    pub fn into_owned(self) -> Time<'static> {
        Time { text: Cow::Owned(self.text.into_owned()), unit: self.unit }
    }

    /// The same time, borrowed.
    pub fn borrow(&self) -> Time<'_> {
        Time { text: Cow::Borrowed(&self.text), unit: self.unit }
    }
}

impl PartialEq for Time<'_> {
    /// Two spellings of the same instant are equal.
    fn eq(&self, other: &Self) -> bool {
        (self.unit == other.unit && self.text == other.text)
            || matches!((self.instant(), other.instant()), (Some(a), Some(b)) if a == b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_instant_are_equal() {
        let iso = Time::iso("2024-01-13T05:24:16Z".into()).unwrap();
        assert_eq!(iso, Time::number("1705123456".into(), TimeUnit::Seconds).unwrap());
        assert_eq!(iso, Time::number("1705123456000".into(), TimeUnit::Millis).unwrap());
        assert_eq!(iso, Time::iso("2024-01-13T13:24:16+08:00".into()).unwrap());
        assert_eq!(
            Time::number("1705123456.5".into(), TimeUnit::Seconds).unwrap().to_iso_millis().unwrap(),
            "2024-01-13T05:24:16.500Z"
        );
    }

    #[test]
    fn the_wall_clock_uses_the_offset_of_the_text() {
        let time = Time::iso("2026-02-08T14:30:00+08:00".into()).unwrap();
        assert_eq!(time.wall("%Y%m%d-%H%M").unwrap(), "20260208-1430");
    }

    #[test]
    fn a_time_for_people_shows_its_offset() {
        let time = Time::iso("2026-02-08T14:30:05+08:00".into()).unwrap();
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(time.shown(&east, Precision::Minutes).unwrap(), "2026-02-08 08:30 +02:00");
        assert_eq!(time.shown(&TimeZone::UTC, Precision::Seconds).unwrap(), "2026-02-08 06:30:05 UTC");
        assert_eq!(time.to_utc().unwrap(), "2026-02-08T06:30:05Z");
    }

    #[test]
    fn invalid_times_are_rejected() {
        assert!(Time::iso("yesterday".into()).is_none());
        assert!(Time::iso("2024-99-99T99:99:99Z".into()).is_none());
        assert!(Time::iso("2024-01-13T05:24:16 <script> Z".into()).is_none());
        assert!(Time::iso("2024-02-30T05:24:16Z".into()).is_none());
        assert!(Time::iso("2024-01-13T05:24:16.Z".into()).is_none());
        assert!(Time::iso("2024-02-29T05:24:16.123Z".into()).is_some());
        assert!(Time::number("12e4".into(), TimeUnit::Seconds).is_none());
    }
}
