//! The clock on the wall, with the offset of this place: the only file that reads it.

use jiff::{Unit, Zoned, ZonedRound};
use stenograph::time::Time;

/// This moment, to the millisecond.
pub fn now() -> Time<'static> {
    let now = Zoned::now();
    let now = now.round(ZonedRound::new().smallest(Unit::Millisecond)).unwrap_or(now);
    let zone = if now.offset().is_zero() { "Z" } else { "%:z" };
    let text = now.strftime(&format!("%Y-%m-%dT%H:%M:%S%.3f{zone}")).to_string();
    Time { text: text.into(), unit: stenograph::time::Unit::Iso }
}

/// Whole seconds since 1970.
pub fn seconds() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0)
}

/// A moment in milliseconds since 1970, as people here read it.
pub fn local(millis: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_millisecond(millis) else { return String::new() };
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A moment in milliseconds since 1970, as programs read it.
pub fn iso(millis: Option<i64>) -> Option<String> {
    jiff::Timestamp::from_millisecond(millis?).ok().map(|time| time.to_string())
}

/// Nanoseconds since 1970.
pub fn nanoseconds() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// Whole milliseconds since 1970.
pub fn millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The first moment of a day here, from its date: `2025-01-15`.
pub fn start_of_day(date: &str) -> Option<Time<'static>> {
    let date: jiff::civil::Date = date.parse().ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::system()).ok()?;
    Time::iso(start.timestamp().to_string().into())
}

/// How many seconds a stretch of time has: `90s`, `30m`, `24h`, `7d`, `2w`.
pub fn span_seconds(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let scale = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<i64>().ok().filter(|_| plain)?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_time_is_a_number_and_a_unit() {
        assert_eq!(span_seconds("90m"), Some(5400));
        assert_eq!(span_seconds("2w"), Some(14 * 24 * 60 * 60));
        for bad in ["", "d", "7", "-7d", "7y", "7 d", "99999999999999999999d", "+7d", "7é"] {
            assert_eq!(span_seconds(bad), None, "{bad}");
        }
    }
}
