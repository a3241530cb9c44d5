//! Exact amounts of money: US dollars as an integer number of their smallest unit, so that sums do not depend on their order.
//! Nothing here uses binary floating point, and only amounts for display are rounded. Decimal floating-point types round
//! silently when they run out of digits; an integer overflows detectably.

use std::fmt;

/// Digits after the decimal point. Prices of one token have up to ten, and the output of programs that use binary floating
/// point (`4e-07` as `4.0000000000000003e-07`) has up to 24.
const DECIMALS: u32 = 24;

/// The number of units in one dollar.
const DOLLAR: i128 = 10_i128.pow(DECIMALS);

/// The longest spelling that is parsed: real amounts have fewer digits.
const SPELLING_LEN_MAX: usize = 100;

/// Exact US dollars, up to 170 trillion. Every operation that exceeds this returns `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Money(i128);

impl Money {
    /// No money.
    pub const ZERO: Money = Money(0);

    /// The amount of a JSON or TOML number, exactly as spelled: `3e-06`, `0.25`, `-1`. `None` if it is not a number, too large,
    /// or too precise.
    pub fn parse(text: &str) -> Option<Money> {
        if text.len() > SPELLING_LEN_MAX {
            return None;
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || mantissa.ends_with('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mut units = 0_i128;
        for digit in whole.bytes().chain(fraction.bytes()) {
            units = units.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        if units == 0 {
            return Some(Money::ZERO);
        }
        // Trailing zeros of the whole part may compensate for a very small exponent: 1000e-26 is valid.
        let mut shift =
            exponent.checked_add(i32::try_from(DECIMALS).ok()?)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        while shift < 0 && units % 10 == 0 {
            units /= 10;
            shift += 1;
        }
        let units = units.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?;
        Some(Money(if negative { -units } else { units }))
    }

    /// The sum.
    pub fn plus(self, other: Money) -> Option<Money> {
        self.0.checked_add(other.0).map(Money)
    }

    /// The difference; negative if the other amount is larger.
    pub fn less(self, other: Money) -> Option<Money> {
        self.0.checked_sub(other.0).map(Money)
    }

    /// The product.
    pub fn times(self, count: u64) -> Option<Money> {
        self.0.checked_mul(i128::from(count)).map(Money)
    }

    /// The amount divided by `parts`; `None` if the result is not exact.
    pub fn shared_by(self, parts: u64) -> Option<Money> {
        let parts = i128::from(parts);
        if self.0.checked_rem(parts)? == 0 { self.0.checked_div(parts).map(Money) } else { None }
    }

    /// Equal shares; the first one also gets the remainder.
    pub fn split(self, parts: usize) -> Vec<Money> {
        let divisor = i128::try_from(parts.max(1)).unwrap_or(i128::MAX);
        let (share, rest) = (self.0 / divisor, self.0 % divisor);
        (0..parts.max(1)).map(|at| Money(if at == 0 { share + rest } else { share })).collect()
    }

    /// The sum of all amounts.
    pub fn sum(amounts: impl IntoIterator<Item = Money>) -> Option<Money> {
        amounts.into_iter().try_fold(Money::ZERO, Money::plus)
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The amount for people, rounded to `places` decimal places, half away from zero.
    pub fn rounded(self, places: u32) -> String {
        let places = places.min(DECIMALS);
        let grain = 10_u128.pow(DECIMALS - places);
        let units = self.0.unsigned_abs();
        let (grains, rest) = (units / grain, units % grain);
        let grains = if rest >= grain.div_ceil(2) && rest > 0 { grains + 1 } else { grains };
        let per_dollar = 10_u128.pow(places);
        let sign = if self.0 < 0 && grains > 0 { "-" } else { "" };
        let (whole, fraction) = (grains / per_dollar, grains % per_dollar);
        if places == 0 {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{fraction:0width$}", width = places as usize)
        }
    }
}

/// The exact amount as a JSON number, without trailing zeros.
impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.0.unsigned_abs();
        let dollar = DOLLAR.unsigned_abs();
        if self.0 < 0 {
            out.write_str("-")?;
        }
        write!(out, "{}", units / dollar)?;
        let fraction = format!("{:0width$}", units % dollar, width = DECIMALS as usize);
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { Ok(()) } else { write!(out, ".{fraction}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap_or_else(|| panic!("{text} is an amount"))
    }

    #[test]
    fn an_amount_is_parsed_as_spelled() {
        for (spelled, exact) in [
            ("3e-06", "0.000003"),
            ("3E-6", "0.000003"),
            ("1.25e+2", "125"),
            ("0.10", "0.1"),
            ("-0.5", "-0.5"),
            ("-0", "0"),
            ("0e99999", "0"),
            ("1000e-26", "0.00000000000000000000001"),
            ("5.0000000000000004e-08", "0.000000050000000000000004"),
            ("170000000000000", "170000000000000"),
        ] {
            assert_eq!(money(spelled).to_string(), exact, "{spelled}");
        }
    }

    #[test]
    fn invalid_amounts_are_rejected() {
        for wrong in [
            "",
            "-",
            ".5",
            "5.",
            "1e",
            "1e1.5",
            "0x10",
            "1 ",
            "NaN",
            "inf",
            "1_000",
            "--1",
            "1e400",
            "1e-25",
            "1e99999999999",
        ] {
            assert_eq!(Money::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Money::parse(&"1".repeat(1000)), None);
        assert_eq!(Money::parse(&format!("0.{}", "0".repeat(1000))), None);
    }

    #[test]
    fn decimal_fractions_add_up_exactly() {
        let sum = Money::sum([money("0.1"), money("0.2")]);
        assert_eq!(sum, Some(money("0.3")));
        assert_eq!(money("0.1").less(money("0.3")).map(|left| left.to_string()).as_deref(), Some("-0.2"));
    }

    #[test]
    fn overflow_is_detected() {
        let most = Money(i128::MAX);
        assert_eq!(most.plus(money("1e-24")), None);
        assert_eq!(Money(i128::MIN).less(money("1e-24")), None);
        assert_eq!(money("1").times(u64::MAX), None);
        assert_eq!(
            money("1e-6").times(u64::MAX).map(|cost| cost.to_string()).as_deref(),
            Some("18446744073709.551615")
        );
        assert_eq!(Money::parse("1e15"), None);
    }

    #[test]
    fn a_share_is_exact_or_none() {
        assert_eq!(money("3").shared_by(1_000_000), Some(money("3e-6")));
        assert_eq!(money("1").shared_by(3), None);
        assert_eq!(money("1").shared_by(0), None);
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        for (exact, places, shown) in [
            ("1.005", 2, "1.01"),
            ("1.00499999999", 2, "1.00"),
            ("-1.005", 2, "-1.01"),
            ("-0.001", 2, "0.00"),
            ("0.5", 0, "1"),
            ("0.4", 0, "0"),
            ("12", 2, "12.00"),
            ("999.999", 2, "1000.00"),
            ("0.000003", 6, "0.000003"),
            ("1e-24", 99, "0.000000000000000000000001"),
        ] {
            assert_eq!(money(exact).rounded(places), shown, "{exact}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_amount_survives_display_and_parse(units in any::<i128>()) {
            prop_assert_eq!(Money::parse(&Money(units).to_string()), Some(Money(units)));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "[-+0-9.eE]{0,12}") {
            if let Some(amount) = Money::parse(&text) {
                prop_assert_eq!(Money::parse(&amount.to_string()), Some(amount));
            }
        }
    }
}
