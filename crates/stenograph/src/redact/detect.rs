//! Finds everything to mask in a record, at every level of escaping. `prefilter.rs` has decided that the record is worth it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use regex_automata::Input;

use super::own_rules::USER_NAME;
use super::rule::{Certainty, FindingClass, RuleMatch, Shape};
use super::unescape::{Unescaped, unescaped};
use super::{Finding, RecordSyntax, Redactor, mask};

/// Something to mask.
#[derive(Clone, Debug)]
pub(super) struct Detected {
    /// Its bytes in the record.
    pub at: Range<usize>,
    pub rule: Cow<'static, str>,
    pub certainty: Certainty,
    /// The secret as text.
    pub secret: Vec<u8>,
    /// The bytes that replace it, if that is not the mask.
    pub replacement: Option<String>,
}

impl Detected {
    pub fn class(&self) -> FindingClass {
        if self.certainty == Certainty::Personal { FindingClass::Personal } else { FindingClass::Secret }
    }

    pub fn finding(self, place: String) -> Finding {
        Finding { class: self.class(), rule: self.rule, at: self.at, place, secret: self.secret }
    }
}

/// How often escaping is removed: a JSON string in a tool call in a carried source is three deep.
const LEVELS_MAX: usize = 5;

/// The name of the rules that the user adds.
pub(super) const CUSTOM: &str = "custom";

impl Redactor {
    /// Everything to mask in a record.
    pub(super) fn detect(&self, raw: &[u8], syntax: RecordSyntax) -> Vec<Detected> {
        let mut found = Vec::new();
        let mut levels: Vec<Unescaped> = Vec::new();
        // A JSON record with escapes is read without them: `\n` is not a backslash and a letter.
        if syntax == RecordSyntax::Text || memchr::memchr(b'\\', raw).is_none() {
            self.scan(raw, &mut |detected| found.push(detected));
        }
        while levels.len() < LEVELS_MAX {
            let text = levels.last().map_or(raw, |level| level.text.as_slice());
            let Some(next) = unescaped(text).filter(|next| next.text != text) else { break };
            self.scan(&next.text, &mut |mut detected| {
                let at = next.original(&detected.at);
                detected.at = levels.iter().rev().fold(at, |at, level| level.original(&at));
                found.push(detected);
            });
            levels.push(next);
        }
        found
    }

    /// Everything to mask in a text.
    fn scan(&self, text: &[u8], each: &mut dyn FnMut(Detected)) {
        let mut take = self.take_in(text, each);
        self.scan_rules(text, &mut take);
        for pattern in &self.patterns {
            for captures in pattern.captures_iter(Input::new(text)) {
                let at = captures.get_group(1).or(captures.get_match().map(|all| all.span()));
                if let Some(at) = at.filter(|at| at.start < at.end) {
                    take(Cow::Borrowed(CUSTOM), Certainty::Form, at.range());
                }
            }
        }
        self.scan_known(text, &mut take);
    }

    /// Takes a finding unless it is a mask or the user allows it.
    pub(super) fn take_in<'s>(
        &'s self,
        text: &'s [u8],
        each: &'s mut dyn FnMut(Detected),
    ) -> impl FnMut(Cow<'static, str>, Certainty, Range<usize>) + 's {
        let mut masks: Option<Vec<Range<usize>>> = None;
        move |rule, certainty, at| {
            let masks = masks.get_or_insert_with(|| mask::masks(self.rules, text));
            let secret = text.get(at.clone()).unwrap_or_default();
            // The masks are in order and do not overlap.
            let next = masks.partition_point(|mask| mask.end <= at.start);
            let is_masked = masks.get(next).is_some_and(|mask| mask.start < at.end);
            if !is_masked && !self.allow.iter().any(|allow| allow.is_match(secret)) {
                each(Detected { secret: secret.to_vec(), at, rule, certainty, replacement: None });
            }
        }
    }

    /// The texts that are masked wherever they occur.
    pub(super) fn scan_known(&self, text: &[u8], take: &mut dyn FnMut(Cow<'static, str>, Certainty, Range<usize>)) {
        let Some(known) = &self.known else { return };
        for hit in known.finder.find_iter(text).filter(|hit| is_word(text, &hit.range())) {
            if let Some((rule, class)) = known.rules.get(hit.pattern().as_usize()) {
                let certainty = if *class == FindingClass::Personal { Certainty::Personal } else { Certainty::Form };
                take(rule.clone(), certainty, hit.range());
            }
        }
    }

    fn scan_rules(&self, text: &[u8], take: &mut dyn FnMut(Cow<'static, str>, Certainty, Range<usize>)) {
        let Some(finder) = &self.rules.finder else { return };
        let mut floating = HashSet::new();
        for hit in finder.find_overlapping_iter(text) {
            let numbers = self.rules.by_text.get(hit.pattern().as_usize());
            for number in numbers.into_iter().flatten() {
                let Some(rule) = self.rules.all.get(*number) else { continue };
                if !rule.may_match(text, hit.start(), hit.end()) {
                    continue;
                }
                let found = match rule.shape {
                    Shape::Floating if !floating.insert(*number) => continue,
                    Shape::Floating => {
                        let mut from = 0;
                        while let Some(found) = rule.match_after(text, from) {
                            from = found.whole.end.max(from + 1);
                            if rule.accepts(text, &found) {
                                take(rule.id.clone(), rule.certainty, found.secret);
                            }
                        }
                        continue;
                    }
                    Shape::Mail => rule.match_at(text, mail_start(text, hit.start())),
                    Shape::Prefix | Shape::Assignment | Shape::Address | Shape::Direct => {
                        rule.match_at(text, hit.start())
                    }
                };
                if let Some(RuleMatch { secret, .. }) = found.filter(|found| rule.accepts(text, found)) {
                    take(rule.id.clone(), rule.certainty, secret);
                }
            }
        }
    }
}

/// Where the name before an `@` begins.
fn mail_start(text: &[u8], at: usize) -> usize {
    const NAME_SIZE_MAX: usize = 64;
    let before = text.get(at.saturating_sub(NAME_SIZE_MAX)..at).unwrap_or_default();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
    at - before.iter().rev().take_while(is_name).count()
}

/// Whether a text is not a part of a longer word.
fn is_word(text: &[u8], at: &Range<usize>) -> bool {
    let byte = |at: Option<usize>| at.and_then(|at| text.get(at));
    let is_letter = |at: Option<usize>| byte(at).is_some_and(u8::is_ascii_alphanumeric);
    // The letter of an escape, such as `\n`, is not a part of the word.
    let is_escape = byte(at.start.checked_sub(2)) == Some(&b'\\');
    let begins = !is_letter(Some(at.start)) || !is_letter(at.start.checked_sub(1)) || is_escape;
    begins && (!is_letter(at.end.checked_sub(1)) || !is_letter(Some(at.end)))
}

/// The same without overlaps, in order. Where findings overlap, the surer rule names the mask, which covers both.
pub(super) fn merged(mut found: Vec<Detected>) -> Vec<Detected> {
    found.sort_by(|one, other| (one.at.start, other.at.end, &one.rule).cmp(&(other.at.start, one.at.end, &other.rule)));
    let mut merged: Vec<Detected> = Vec::with_capacity(found.len());
    for next in found {
        match merged.last_mut().filter(|last| next.at.start < last.at.end) {
            None => merged.push(next),
            Some(last) if last.class() != next.class() => {
                // Personal data in a secret goes with the secret.
                if last.class() == FindingClass::Personal {
                    *last = next;
                }
            }
            Some(last) => {
                let at = last.at.start..last.at.end.max(next.at.end);
                let is_surer = (next.certainty, next.at.len()) > (last.certainty, last.at.len());
                let is_same = last.at == next.at;
                if is_surer {
                    *last = next;
                }
                if !is_same || last.at != at {
                    last.replacement.take_if(|_| last.at != at);
                }
                last.at = at;
            }
        }
    }
    merged
}

/// Whether a rule masks only the name of a person, so that the text around it stays valid.
pub(super) fn is_name_rule(rule: &str) -> bool {
    rule == USER_NAME || rule == "home-folder"
}
