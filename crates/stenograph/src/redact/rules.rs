//! Loads the rules and finds where one of them may match. The patterns are compiled when they are first needed.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::check::Check;
use super::own_rules;
use super::rule::{AllowList, AllowTarget, Certainty, FindingClass, Rule, Shape};
use crate::json::{Object, items};
use crate::text::Text;

/// The rules of gitleaks, one a line, after a line about all of them. `LICENSE-gitleaks` is their licence.
const GITLEAKS: &str = include_str!("rules/gitleaks.jsonl");

pub(super) struct Rules {
    pub all: Vec<Rule>,
    /// Texts that no rule of gitleaks takes.
    pub allow: Vec<AllowList>,
    /// Finds the texts that rules are searched by.
    pub finder: Option<AhoCorasick>,
    /// For each of these texts the rules that it may begin.
    pub by_text: Vec<Vec<usize>>,
}

impl Rules {
    pub fn built_in() -> &'static Rules {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(Rules::load)
    }

    fn load() -> Rules {
        let (mut all, mut allow) = (own_rules::all(), Vec::new());
        for line in GITLEAKS.lines() {
            match rule(line) {
                // A rule of our own replaces the one of the same name.
                Some(rule) if all.iter().any(|own: &Rule| own.id == rule.id) => {}
                Some(rule) => all.push(rule),
                None => allow.extend(Object::parse(line).map(|mut line| allow_lists(&mut line)).unwrap_or_default()),
            }
        }
        let (mut texts, mut by_text): (Vec<&str>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        for (number, rule) in all.iter().enumerate() {
            for text in &rule.begins {
                match texts.iter().position(|known| known == text) {
                    Some(at) => by_text.get_mut(at).into_iter().for_each(|rules| rules.push(number)),
                    None => {
                        texts.push(text);
                        by_text.push(vec![number]);
                    }
                }
            }
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&texts);
        Rules { finder: finder.ok(), by_text, all, allow }
    }
}

/// A rule; `None` for the line about all rules.
fn rule(line: &str) -> Option<Rule> {
    let mut line = Object::parse(line)?;
    let id = line.take_str("id")?.into_owned();
    let shape = line.take_word("shape", |word| match word {
        "prefix" => Some(Shape::Prefix),
        "assignment" => Some(Shape::Assignment),
        "floating" => Some(Shape::Floating),
        _ => None,
    })?;
    Some(Rule {
        id: id.into(),
        class: FindingClass::Secret,
        shape,
        certainty: if shape == Shape::Prefix { Certainty::Form } else { Certainty::Context },
        begins: strings(&mut line, "begins"),
        length: line.take_number("length").unwrap_or(0) as usize,
        is_solid: line.take_bool("solid") == Some(true),
        pattern: line.take_str("regex")?.into_owned(),
        regex: OnceLock::new(),
        entropy_min: line.take("entropy").and_then(|raw| raw.parse().ok()).unwrap_or(0.0),
        group: line.take_number("group").map(|group| group as usize),
        allow: allow_lists(&mut line),
        check: Check::Gitleaks,
    })
}

fn allow_lists(line: &mut Object<'_>) -> Vec<AllowList> {
    let lists = line.take_items("allow").unwrap_or_default().into_iter().filter_map(Object::parse);
    let list = |mut list: Object<'_>| AllowList {
        target: match list.take_str("target").as_deref() {
            Some("match") => AllowTarget::Match,
            Some("line") => AllowTarget::Line,
            _ => AllowTarget::Secret,
        },
        patterns: strings(&mut list, "regexes"),
        stopwords: strings(&mut list, "stopwords"),
        regexes: OnceLock::new(),
        finder: OnceLock::new(),
    };
    lists.map(list).collect()
}

fn strings(line: &mut Object<'_>, key: &str) -> Vec<String> {
    let array = line.take(key).and_then(items).unwrap_or_default();
    array.into_iter().filter_map(|raw| Some(Text::from_json(raw)?.exact()?.into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rule::regex;
    use super::*;

    #[test]
    fn every_pattern_compiles_and_every_rule_can_be_found() {
        let rules = Rules::built_in();
        assert!(rules.all.len() > 200, "{}", rules.all.len());
        assert!(rules.finder.is_some() && !rules.allow.is_empty());
        for rule in &rules.all {
            assert!(regex(&rule.pattern, None).is_ok(), "{}", rule.id);
            assert!(!rule.begins.is_empty(), "{}", rule.id);
            for list in &rule.allow {
                let bad = list.patterns.iter().find(|pattern| regex(pattern, None).is_err());
                assert_eq!(bad, None, "{}", rule.id);
            }
        }
    }
}
