//! A query whose words may be in different events of one session.

use super::expr::{Expr, Query, all_of};

/// The parts of a query that may match in different events of one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpreadQuery {
    /// Each must match an event of the session.
    pub wanted: Vec<Query>,
    /// None may match an event of the session.
    pub excluded: Vec<Query>,
}

impl Query {
    /// Splits a query into one query for each of its words, phrases, patterns and groups of them. Each has all conditions that
    /// are not about texts.
    pub fn spread(&self) -> SpreadQuery {
        let parts = match &self.expr {
            Expr::All(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let (texts, conditions): (Vec<&Expr>, Vec<&Expr>) = parts.iter().partition(|part| part.seeks_text());
        let with = |part: Option<&Expr>| {
            let all = conditions.iter().copied().chain(part).cloned().collect();
            all_of(all).map(|expr| Query { expr })
        };
        let mut spread = SpreadQuery::default();
        for part in texts {
            match part {
                Expr::Not(inner) => spread.excluded.extend(with(Some(inner))),
                other => spread.wanted.extend(with(Some(other))),
            }
        }
        if spread.wanted.is_empty() {
            // Nothing but exclusions excludes events, not sessions.
            spread = match with(None) {
                Some(conditions) => SpreadQuery { wanted: vec![conditions], ..spread },
                None => SpreadQuery { wanted: vec![self.clone()], excluded: Vec::new() },
            };
        }
        spread
    }
}

impl Expr {
    /// Whether it looks for anything in texts, or for its absence.
    fn seeks_text(&self) -> bool {
        match self {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().any(Expr::seeks_text),
            Expr::Not(inner) => inner.seeks_text(),
            Expr::Phrase(_) | Expr::Pattern(_) => true,
            Expr::Field(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Today;
    use jiff::Timestamp;

    #[test]
    fn each_word_of_a_spread_query_has_all_conditions() {
        let spread = |text: &str| {
            let today = Today { now: Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
            let spread = Query::parse(text, &today).unwrap_or_else(|mistake| panic!("{mistake}")).spread();
            let texts = |queries: Vec<Query>| queries.iter().map(Query::to_string).collect::<Vec<_>>().join(" | ");
            (texts(spread.wanted), texts(spread.excluded))
        };
        let both = |wanted: &str, excluded: &str| (wanted.to_owned(), excluded.to_owned());
        assert_eq!(spread("role:user flaky \"the test\""), both("role:user flaky | role:user \"the test\"", ""));
        assert_eq!(spread("flaky (a OR b) -slow"), both("flaky | (a OR b)", "slow"));
        assert_eq!(spread("tool:bash -slow"), both("tool:bash", "tool:bash slow"));
        assert_eq!(spread("-slow"), both("-slow", ""));
    }
}
