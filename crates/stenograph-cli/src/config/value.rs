//! What a setting can be: a switch or a number of tokens. Nothing here knows where settings are kept.

use std::fmt;

/// What kind of value a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A number of tokens.
    Tokens,
}

/// What a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A number of tokens.
    Tokens(u64),
}

/// What a file can hold: its numbers have a sign.
const TOKENS_MAX: u64 = i64::MAX as u64;

impl Kind {
    /// The value that a text spells, or what it should have been.
    pub fn parse(self, text: &str) -> Result<Value, &'static str> {
        let value = match self {
            Kind::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Tokens => {
                let tokens = text.trim().replace('_', "").parse().ok();
                tokens.filter(|tokens| *tokens <= TOKENS_MAX).map(Value::Tokens)
            }
        };
        value.ok_or(self.wanted())
    }

    /// What a value of this kind looks like.
    pub fn wanted(self) -> &'static str {
        match self {
            Kind::Switch => "true or false",
            Kind::Tokens => "a whole number",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(formatter, "{on}"),
            Value::Tokens(tokens) => write!(formatter, "{tokens}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_and_numbers_are_taken_as_people_spell_them() {
        assert_eq!(Kind::Switch.parse(" True"), Ok(Value::Switch(true)));
        assert_eq!(Kind::Switch.parse("0"), Ok(Value::Switch(false)));
        assert_eq!(Kind::Switch.parse("maybe"), Err("true or false"));
        assert_eq!(Kind::Tokens.parse("160_000"), Ok(Value::Tokens(160_000)));
        assert_eq!(Kind::Tokens.parse("-1"), Err("a whole number"));
        assert_eq!(Kind::Tokens.parse("99999999999999999999"), Err("a whole number"));
        assert_eq!(Kind::Tokens.parse("18446744073709551615"), Err("a whole number"));
    }
}
