//! Masks: what replaces a secret. The same secret has the same mask wherever it occurs, and nobody without the key can test a
//! guess. A mask is ASCII without quotes, so it fits into every string, and no rule matches it.

use std::ops::Range;

use memchr::memmem;

use super::Redactor;
use super::check::is_random;
use super::detect::{CUSTOM, Detected, is_name_rule};
use super::own_rules::USER_NAME;
use super::rules::Rules;

/// How every mask of a secret begins.
const OPENING: &[u8] = b"[redacted:";

/// How the mask of a user name begins: a path with it stays a path.
const USER: &str = "user-";

/// The digits of the keyed hash in a mask: few enough to read, enough to tell secrets apart.
const DIGITS: usize = 8;

/// The mask of a thought whose signature covers a secret.
const SIGNED: &str = "signed-thought";

impl Redactor {
    /// What replaces a finding: its mask, unless it has a replacement of its own.
    pub(super) fn replacement(&self, detected: &Detected) -> String {
        detected.replacement.clone().unwrap_or_else(|| self.mask_of(&detected.rule, &detected.secret))
    }

    pub(super) fn mask_of(&self, rule: &str, secret: &[u8]) -> String {
        let hash = blake3::keyed_hash(&self.key, secret).to_hex();
        let digits = hash.get(..DIGITS).unwrap_or_default();
        if is_name_rule(rule) { format!("{USER}{digits}") } else { format!("[redacted:{rule}:{digits}]") }
    }
}

/// Whether a user name is a mask.
pub(super) fn is_user_mask(name: &[u8]) -> bool {
    name.strip_prefix(USER.as_bytes()).is_some_and(|digits| digits.len() == DIGITS && is_hex(digits))
}

/// The masks in a text. Only names of rules count: a mask must not hide a secret.
pub(super) fn masks(rules: &Rules, text: &[u8]) -> Vec<Range<usize>> {
    let is_rule = |name: &[u8]| {
        let own = [CUSTOM, SIGNED, USER_NAME];
        own.iter().any(|own| own.as_bytes() == name) || rules.all.iter().any(|rule| rule.id.as_bytes() == name)
    };
    let end = |start: usize| {
        let rest = text.get(start + OPENING.len()..)?;
        let name = rest.get(..memchr::memchr(b':', rest.get(..64).unwrap_or(rest))?)?;
        let digits = rest.get(name.len() + 1..name.len() + 1 + DIGITS)?;
        let is_mask = is_rule(name) && is_hex(digits) && rest.get(name.len() + 1 + DIGITS) == Some(&b']');
        is_mask.then_some(start + OPENING.len() + name.len() + DIGITS + 2)
    };
    memmem::find_iter(text, OPENING).filter_map(|start| Some(start..end(start)?)).collect()
}

/// The parts of a finding that no mask covers: all of it, or what looks random beside a mask.
pub(super) fn unmasked(masks: &[Range<usize>], at: Range<usize>, text: &[u8]) -> Vec<Range<usize>> {
    /// Shorter parts are brackets and names around a mask.
    const PART_MIN: usize = 8;
    // The masks are in order and do not overlap.
    let first = masks.partition_point(|mask| mask.end <= at.start);
    let inside = masks.iter().skip(first).take_while(|mask| mask.start < at.end);
    let (mut parts, mut start, mut is_masked) = (Vec::new(), at.start, false);
    for mask in inside {
        parts.push(start..mask.start.max(start));
        (start, is_masked) = (mask.end, true);
    }
    parts.push(start..at.end.max(start));
    let is_secret = |part: &Range<usize>| {
        let part = text.get(part.clone()).unwrap_or_default();
        part.len() >= PART_MIN && is_random(part)
    };
    parts.retain(|part| !is_masked || is_secret(part));
    parts
}

fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}
