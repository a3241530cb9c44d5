//! Costs as sources spell them: `1.0` and `1` are the same amount and different bytes.

use crate::json::Object;
use std::fmt;

/// US dollars in the spelling of a JSON number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dollars {
    spelling: [u8; SIZE_MAX],
    length: u8,
}

/// The longest spelling accepted.
const SIZE_MAX: usize = 40;

impl Dollars {
    /// The amount of a JSON number; `None` if the spelling is longer or the number is not finite.
    pub fn spelled(raw: &str) -> Option<Dollars> {
        let begins = raw.starts_with(|char: char| char.is_ascii_digit() || char == '-');
        if !begins || !crate::json::is_valid(raw) || !raw.parse::<f64>().is_ok_and(f64::is_finite) {
            return None;
        }
        let mut spelling = [0; SIZE_MAX];
        spelling.get_mut(..raw.len())?.copy_from_slice(raw.as_bytes());
        Some(Dollars { spelling, length: u8::try_from(raw.len()).ok()? })
    }

    /// A computed amount, in its shortest spelling.
    pub fn of(value: f64) -> Option<Dollars> {
        Dollars::spelled(&value.to_string())
    }

    /// The amount as spelled.
    pub fn as_str(&self) -> &str {
        let bytes = self.spelling.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The nearest number.
    pub fn value(&self) -> f64 {
        self.as_str().parse().unwrap_or(0.0)
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Dollars {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Object<'_> {
    /// Takes an amount of money in any spelling.
    pub fn take_dollars(&mut self, key: &str) -> Option<Dollars> {
        self.take_as(key, Dollars::spelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_keeps_its_spelling() {
        for raw in ["1.0", "5e-05", "0.00005", "1", "-2.50", "1E3"] {
            assert_eq!(Dollars::spelled(raw).unwrap().to_string(), raw);
        }
        assert!((Dollars::spelled("5e-05").unwrap().value() - 0.00005).abs() < f64::EPSILON);
        for raw in ["", "null", "\"1\"", "1e999", "01", ".5", &"1".repeat(50)] {
            assert_eq!(Dollars::spelled(raw), None, "{raw}");
        }
    }
}
