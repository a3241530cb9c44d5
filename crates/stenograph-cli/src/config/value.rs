//! The types of setting values. This file does not know where settings are stored.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// On or off.
    Switch,
    /// A number of tokens.
    Tokens,
    /// Regular expressions.
    Patterns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A number of tokens.
    Tokens(u64),
    /// Regular expressions.
    Patterns(Vec<String>),
}

/// The largest number that a file can hold: TOML integers are signed.
const TOKENS_MAX: u64 = i64::MAX as u64;

impl SettingKind {
    /// Parses a value; the error describes the expected form.
    pub fn parse(self, text: &str) -> Result<Value, &'static str> {
        let value = match self {
            SettingKind::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Some(Value::Switch(false)),
                _ => None,
            },
            SettingKind::Tokens => {
                let tokens = text.trim().replace('_', "").parse().ok();
                tokens.filter(|tokens| *tokens <= TOKENS_MAX).map(Value::Tokens)
            }
            SettingKind::Patterns => {
                let patterns = text.split_whitespace().map(str::to_owned);
                Some(Value::Patterns(patterns.collect()))
            }
        };
        value.ok_or(self.wanted())
    }

    /// Describes the expected form of a value.
    pub fn wanted(self) -> &'static str {
        match self {
            SettingKind::Switch => "true or false",
            SettingKind::Tokens => "a whole number",
            SettingKind::Patterns => "regular expressions, separated by spaces (in a file: a list of strings)",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(formatter, "{on}"),
            Value::Tokens(tokens) => write!(formatter, "{tokens}"),
            Value::Patterns(patterns) => formatter.write_str(&patterns.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_of_switches_and_numbers_are_accepted() {
        assert_eq!(SettingKind::Switch.parse(" True"), Ok(Value::Switch(true)));
        assert_eq!(SettingKind::Switch.parse("0"), Ok(Value::Switch(false)));
        assert_eq!(SettingKind::Switch.parse("maybe"), Err("true or false"));
        assert_eq!(SettingKind::Tokens.parse("160_000"), Ok(Value::Tokens(160_000)));
        assert_eq!(SettingKind::Tokens.parse("-1"), Err("a whole number"));
        assert_eq!(SettingKind::Tokens.parse("99999999999999999999"), Err("a whole number"));
        assert_eq!(SettingKind::Tokens.parse("18446744073709551615"), Err("a whole number"));
    }
}
