//! Finds everything to mask in a record, at every level of escaping. `prefilter.rs` has decided that the record is worth it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use regex_automata::Input;

use super::own_rules::USER_NAME;
use super::prefilter::{Suspect, Suspects};
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
    /// Everything to mask in a record that may have something at `suspects`.
    pub(super) fn detect(&self, raw: &[u8], syntax: RecordSyntax, mut suspects: Suspects) -> Vec<Detected> {
        let mut found = Vec::new();
        if matches!(&suspects, Suspects::At(at) if at.is_empty()) {
            return found;
        }
        let mut levels: Vec<Unescaped> = Vec::new();
        let without_escapes = |text: &[u8]| unescaped(text).filter(|next| next.text != text);
        let mut next_level = without_escapes(raw);
        // A JSON record with escapes is read without them: `\n` is not a backslash and a letter. A backslash alone is no escape.
        if syntax == RecordSyntax::Text || next_level.is_none() {
            self.scan(raw, &suspects, &mut |detected| found.push(detected));
        }
        while let Some(next) = next_level.take() {
            if let Suspects::At(suspects) = &mut suspects {
                suspects.retain_mut(|suspect| {
                    let position = next.position(suspect.at);
                    suspect.at = position.unwrap_or(suspect.at);
                    position.is_some()
                });
            }
            self.scan(&next.text, &suspects, &mut |mut detected| {
                let at = next.original(&detected.at);
                detected.at = levels.iter().rev().fold(at, |at, level| level.original(&at));
                found.push(detected);
            });
            if levels.len() + 1 < LEVELS_MAX {
                next_level = without_escapes(&next.text);
            }
            levels.push(next);
        }
        found
    }

    /// Everything to mask in a text.
    fn scan(&self, text: &[u8], suspects: &Suspects, each: &mut dyn FnMut(Detected)) {
        let mut take = self.take_in(text, each);
        let mut floating = HashSet::new();
        match suspects {
            Suspects::At(suspects) => {
                suspects.iter().for_each(|suspect| self.scan_rules(text, *suspect, &mut floating, &mut take));
            }
            Suspects::Anywhere => {
                for hit in self.rule_set().finder.iter().flat_map(|finder| finder.find_overlapping_iter(text)) {
                    let suspect = Suspect { at: hit.start(), text: self.rule_set().text_of(hit.pattern()).0 };
                    self.scan_rules(text, suspect, &mut floating, &mut take);
                }
            }
        }
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

    /// Takes a finding unless it is a mask or the user allows it. A mask beside a secret does not hide the secret.
    pub(super) fn take_in<'s>(
        &'s self,
        text: &'s [u8],
        each: &'s mut dyn FnMut(Detected),
    ) -> impl FnMut(Cow<'static, str>, Certainty, Range<usize>) + 's {
        let mut masks: Option<Vec<Range<usize>>> = None;
        move |rule, certainty, at| {
            let masks = masks.get_or_insert_with(|| mask::masks(self.rule_set(), text));
            for at in mask::unmasked(masks, at, text) {
                let secret = text.get(at.clone()).unwrap_or_default();
                if !self.allow.iter().any(|allow| allow.is_match(secret)) {
                    each(Detected { secret: secret.to_vec(), at, rule: rule.clone(), certainty, replacement: None });
                }
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

    /// Whether a text that is masked wherever it occurs may be hidden by escapes.
    pub(super) fn has_escaped_known(&self, raw: &[u8]) -> bool {
        let escaped = self.known.as_ref().and_then(|known| known.escaped.as_ref());
        escaped.is_some_and(|escaped| escaped.is_match(raw))
    }

    /// What the rules find that are searched by a text.
    fn scan_rules(
        &self,
        text: &[u8],
        suspect: Suspect,
        floating: &mut HashSet<usize>,
        take: &mut dyn FnMut(Cow<'static, str>, Certainty, Range<usize>),
    ) {
        let (start, end) = (suspect.at, suspect.at + self.rule_set().length_of(suspect.text));
        for (number, rule) in self.rule_set().searched_by(suspect.text) {
            if !rule.may_match(text, start, end) {
                continue;
            }
            let found = match rule.shape {
                Shape::Floating => {
                    // All its matches are found at once.
                    let mut from = if floating.insert(number) { 0 } else { text.len() };
                    while let Some(found) = rule.match_after(text, from) {
                        from = found.whole.end.max(from + 1);
                        if rule.accepts(text, &found) {
                            take(rule.id.clone(), rule.certainty, found.secret);
                        }
                    }
                    continue;
                }
                Shape::Mail => rule.match_at(text, mail_start(text, start)),
                Shape::Prefix | Shape::Assignment | Shape::Address | Shape::Direct => rule.match_at(text, start),
            };
            if let Some(RuleMatch { secret, .. }) = found.filter(|found| rule.accepts(text, found)) {
                take(rule.id.clone(), rule.certainty, secret);
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
    // The letter of an escape, such as `\n` or the `m` of a colour, is not a part of the word.
    let is_escape = byte(at.start.checked_sub(2)) == Some(&b'\\') || ends_with_sequence(text, at.start);
    let begins = !is_letter(Some(at.start)) || !is_letter(at.start.checked_sub(1)) || is_escape;
    begins && (!is_letter(at.end.checked_sub(1)) || !is_letter(Some(at.end)))
}

/// Whether a sequence for a terminal, such as `[31m`, ends before an offset.
fn ends_with_sequence(text: &[u8], end: usize) -> bool {
    const SEQUENCE_MAX: usize = 16;
    let before = text.get(end.saturating_sub(SEQUENCE_MAX)..end).unwrap_or_default();
    let parameters = before.split_last().map(|(_, parameters)| parameters).unwrap_or_default();
    parameters.iter().rev().find(|byte| !matches!(byte, b'0'..=b'?')) == Some(&b'[')
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
