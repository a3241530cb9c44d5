//! Decides cheaply whether a record may hold a secret. Almost no record does, so this decides the speed. It looks at the bytes
//! as spelled, at any depth of escaping, and must not miss what `detect.rs` would find.

use memchr::memmem;

use super::Redactor;
use super::detect::Detected;
use super::rule::{Rule, Shape};
use super::unescape::ENTITIES;

impl Redactor {
    /// Whether `raw` may hold something that only a search without escapes finds. Passes to `direct` what is found at once:
    /// almost every record names a home folder, and must not be slow for it.
    pub(super) fn is_suspicious(&self, raw: &[u8], direct: &mut dyn FnMut(Detected)) -> bool {
        let mut is_suspicious = !self.patterns.is_empty() || has_escaped_letters(raw);
        let mut take = self.take_in(raw, direct);
        if let Some(finder) = &self.rules.finder {
            for hit in finder.find_overlapping_iter(raw) {
                let rules = self.rules.by_text.get(hit.pattern().as_usize());
                for rule in rules.into_iter().flatten().filter_map(|number| self.rules.all.get(*number)) {
                    match rule.shape {
                        Shape::Direct => {
                            let found = rule.match_at(raw, hit.start()).filter(|found| rule.accepts(raw, found));
                            found.into_iter().for_each(|found| take(rule.id.clone(), rule.certainty, found.secret));
                        }
                        _ => is_suspicious = is_suspicious || rule.may_match(raw, hit.start(), hit.end()),
                    }
                }
            }
        }
        self.scan_known(raw, &mut take);
        is_suspicious
    }
}

impl Rule {
    /// Whether the rule may match where its text is at `start..end`.
    pub(super) fn may_match(&self, raw: &[u8], start: usize, end: usize) -> bool {
        match self.shape {
            Shape::Prefix if self.is_solid => is_solid(raw, start, self.length),
            Shape::Prefix | Shape::Floating | Shape::Direct => true,
            Shape::Assignment => is_assigned(raw, end),
            Shape::Address => has_password(raw, end),
            Shape::Mail => is_mail(raw, start, end),
        }
    }
}

/// Whether at least `length` bytes without space or quote follow.
fn is_solid(raw: &[u8], start: usize, length: usize) -> bool {
    let Some(run) = raw.get(start..start + length) else { return false };
    // A slash may be spelled with a backslash before it, which makes the run longer, not shorter.
    run.iter().all(|byte| !matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`'))
}

/// The longest name between a keyword and its operator, and the most that quotes and escapes may add.
const NAME_REST_MAX: usize = 20;
const QUOTES_MAX: usize = 24;

/// The shortest value that a rule takes.
const VALUE_MIN: usize = 6;

/// Whether an operator and a value with a letter follow, whatever quotes and backslashes are between.
fn is_assigned(raw: &[u8], end: usize) -> bool {
    let rest = raw.get(end..).unwrap_or_default();
    let name = rest.iter().take(NAME_REST_MAX);
    let name =
        name.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b' ' | b'\t'));
    let rest = without_quotes(rest.get(name.count()..).unwrap_or_default());
    let is_operator = |byte: &&u8| matches!(byte, b'=' | b'>' | b':' | b'|' | b'?' | b',');
    let operators = rest.iter().take(4).take_while(is_operator).count();
    if operators == 0 {
        return false;
    }
    let mut value = without_quotes(rest.get(operators..).unwrap_or_default());
    while let Some(after) = value.strip_prefix(b"=") {
        value = without_quotes(after);
    }
    let is_value =
        |byte: &&u8| !matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`' | b'\\' | b',' | b')' | b'(' | b'{' | b'[');
    let (mut length, mut has_letter) = (0, false);
    for byte in value.iter().take(64).take_while(is_value) {
        length += 1;
        has_letter |= byte.is_ascii_alphabetic();
    }
    length >= VALUE_MIN && has_letter
}

/// The bytes after quotes, white space and their escapes.
fn without_quotes(raw: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(byte) = raw.get(at).filter(|_| at < QUOTES_MAX) {
        match byte {
            b'\\' if matches!(raw.get(at + 1), Some(b'n' | b'r' | b't')) => at += 2,
            b'\\' | b'"' | b'\'' | b'`' | b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'&' => match ENTITIES.iter().find(|(name, _)| raw.get(at..).is_some_and(|rest| rest.starts_with(name))) {
                Some((name, _)) => at += name.len(),
                None => break,
            },
            _ => break,
        }
    }
    raw.get(at..).unwrap_or_default()
}

/// The longest user name and password in an address.
const ADDRESS_MAX: usize = 300;

/// Whether `user:password@` follows.
fn has_password(raw: &[u8], end: usize) -> bool {
    let mut has_colon = false;
    for byte in raw.get(end..).unwrap_or_default().iter().take(ADDRESS_MAX) {
        match byte {
            b':' => has_colon = true,
            b'@' => return has_colon,
            0..=b' ' | b'"' | b'\'' | b'<' | b'>' | b'/' => return false,
            _ => {}
        }
    }
    false
}

/// Whether a name precedes and a domain with a dot follows.
fn is_mail(raw: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| raw.get(at));
    let is_name = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'));
    let after = raw.get(end..).unwrap_or_default();
    let domain = after.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    let (mut dots, mut last) = (0, b'.');
    for byte in domain {
        dots += usize::from(*byte == b'.');
        last = *byte;
    }
    is_name
        && dots > 0
        && (last.is_ascii_alphabetic() || last == b'.')
        && after.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Whether printable ASCII is spelled as `\u00XX`: then the texts that rules are searched by may be hidden.
fn has_escaped_letters(raw: &[u8]) -> bool {
    memmem::find_iter(raw, b"\\u00").any(|at| matches!(raw.get(at + 4), Some(b'2'..=b'7')))
}
