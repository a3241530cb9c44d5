//! Loads the rules and finds where one of them may match. The patterns are compiled when they are first needed.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, PatternID};

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
    /// Finds the texts that rules are searched by, also with escapes before their slashes.
    pub finder: Option<AhoCorasick>,
    /// For each pattern of the finder the number of its text, and whether the pattern has escapes.
    patterns: Vec<(usize, bool)>,
    texts: Vec<RuleText>,
}

/// A text that rules are searched by.
struct RuleText {
    length: usize,
    /// The numbers of the rules.
    rules: Vec<usize>,
}

/// How a slash is spelled in JSON, and in JSON in JSON, by programs that escape it.
const ESCAPED_SLASHES: [&str; 2] = ["\\/", "\\\\/"];

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
        let (mut spelled, mut patterns): (Vec<String>, Vec<(usize, bool)>) = (Vec::new(), Vec::new());
        let mut texts: Vec<RuleText> = Vec::new();
        for (number, rule) in all.iter().enumerate() {
            for text in &rule.begins {
                let known = spelled.iter().position(|known| known == text).and_then(|at| patterns.get(at));
                match known.and_then(|(known, _)| texts.get_mut(*known)) {
                    Some(known) => known.rules.push(number),
                    None => {
                        let slashes = ESCAPED_SLASHES.iter().filter(|_| text.contains('/'));
                        let escaped = slashes.map(|slash| (text.replace('/', slash), (texts.len(), true)));
                        let all = std::iter::once((text.clone(), (texts.len(), false))).chain(escaped);
                        (spelled, patterns) = spelled.into_iter().zip(patterns).chain(all).unzip();
                        texts.push(RuleText { length: text.len(), rules: vec![number] });
                    }
                }
            }
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&spelled);
        Rules { finder: finder.ok(), patterns, texts, all, allow }
    }

    /// The number of the text that a pattern of the finder stands for, and whether the pattern has escapes.
    pub fn text_of(&self, pattern: PatternID) -> (usize, bool) {
        self.patterns.get(pattern.as_usize()).copied().unwrap_or_default()
    }

    /// The rules that are searched by a text, with their numbers.
    pub fn searched_by(&self, text: usize) -> impl Iterator<Item = (usize, &Rule)> {
        let rules = self.texts.get(text).map(|text| text.rules.as_slice()).unwrap_or_default();
        rules.iter().filter_map(|number| Some((*number, self.all.get(*number)?)))
    }

    /// The length of a text without escapes.
    pub fn length_of(&self, text: usize) -> usize {
        self.texts.get(text).map_or(0, |text| text.length)
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
