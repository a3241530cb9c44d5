//! The user's prices of models, which override the table. Where they come from is not known here.

use super::price::Tier;
use super::row::Row;
use crate::ledger::ServiceTier;

/// The user's prices of one model, or of all models that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The name of the model; `*` matches anything, `?` one character.
    pub model: String,
    /// The model of the table whose prices apply where `prices` states none.
    pub same_as: Option<String>,
    /// Prices by service tier and context size.
    pub prices: Vec<(ServiceTier, Tier)>,
}

impl Override {
    /// Whether it applies to several models.
    fn is_pattern(&self) -> bool {
        self.model.contains(['*', '?'])
    }

    /// The row of the model it refers to, with its own prices.
    pub(super) fn row(&self, base: Option<Row>) -> Row {
        let mut row = base.unwrap_or_default();
        row.last = None;
        for (service_tier, tier) in &self.prices {
            match row.blocks.iter_mut().find(|(at, own)| at == service_tier && own.over == tier.over) {
                Some((_, own)) => own.rates = own.rates.overridden_by(&tier.rates),
                None => row.blocks.push((*service_tier, *tier)),
            }
        }
        row
    }
}

/// The override for a model. Names come before patterns, the most exact spelling first; patterns come in order and are matched
/// against the name as written.
pub(super) fn find<'o>(overrides: &'o [Override], model: &str, spellings: &[String]) -> Option<&'o Override> {
    let (patterns, exact): (Vec<&Override>, Vec<&Override>) = overrides.iter().partition(|entry| entry.is_pattern());
    let named = spellings.iter().find_map(|name| exact.iter().find(|entry| entry.model.eq_ignore_ascii_case(name)));
    let lower = model.to_ascii_lowercase();
    let matching = || patterns.iter().find(|entry| matches_pattern(&lower, &entry.model.to_ascii_lowercase()));
    named.or_else(matching).copied()
}

/// Whether a name matches a pattern. It backtracks to the last `*` only, so its time does not grow with their number.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut in_pattern) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(char) = name.get(at) {
        match pattern.get(in_pattern) {
            Some('*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == char => {
                at += 1;
                in_pattern += 1;
            }
            Some(_) | None => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, in_pattern) = (taken + 1, star_at + 1);
            }
        }
    }
    pattern.get(in_pattern..).is_some_and(|rest| rest.iter().all(|char| *char == '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_right_names() {
        for (name, pattern) in
            [("abc", "abc"), ("abc", "*"), ("abc", "a*c"), ("abc", "a?c"), ("abc", "*b*"), ("abcbc", "a*bc"), ("", "*")]
        {
            assert!(matches_pattern(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("abc", "ab"), ("abc", "a?"), ("abc", "*b"), ("", "?"), ("abc", "")] {
            assert!(!matches_pattern(name, pattern), "{name} {pattern}");
        }
    }

    #[test]
    fn a_pattern_with_many_stars_does_not_take_exponential_time() {
        assert!(!matches_pattern(&"a".repeat(200), &format!("{}b", "a*".repeat(100))));
    }
}
