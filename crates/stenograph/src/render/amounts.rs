//! Amounts for people: counts with their nouns, durations and sizes in the unit that fits.

use super::grouped;

/// A number with its noun, in the singular or the plural.
pub fn counted(number: u64, noun: &str) -> String {
    match noun.strip_suffix("ry") {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{} {stem}ries", grouped(number)),
        None => format!("{} {noun}s", grouped(number)),
    }
}

/// A duration before now, in the largest unit that fits.
pub fn ago(ms: i64) -> String {
    format!("{} ago", span(ms))
}

/// A duration, in the largest unit that fits.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (number, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "m"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{number}{unit}")
}

/// Formats a number of bytes for people.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 || value >= 99.5 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_rounded_down_to_its_largest_unit() {
        assert_eq!(
            [0, 59_999, 60_000, 7_200_000, 200_000_000].map(ago),
            ["0s ago", "59s ago", "1m ago", "2h ago", "2d ago"]
        );
    }
}
