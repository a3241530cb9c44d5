//! Decides cheaply whether a record may hold a secret. Almost no record does, so this decides the speed. It looks at the bytes
//! as spelled, at any depth of escaping, and must not miss what `detect.rs` would find.

use memchr::memmem;

use super::Redactor;
use super::detect::Detected;
use super::rule::{Rule, Shape};
use super::unescape::ENTITIES;

/// Where a record may hold something that only a search without escapes finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Suspects {
    /// Anywhere: the user has patterns, or escapes hide letters.
    Anywhere,
    /// At these texts of rules, in order.
    At(Vec<Suspect>),
}

/// A text that rules are searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    /// Where it begins.
    pub at: usize,
    /// Its number in [`Rules::texts`](super::rules::Rules).
    pub text: usize,
}

impl Redactor {
    /// Where `raw` may hold something that only a search without escapes finds. Passes to `direct` what is found at once:
    /// almost every record names a home folder, and must not be slow for it.
    pub(super) fn suspects(&self, raw: &[u8], direct: &mut dyn FnMut(Detected)) -> Suspects {
        let is_anywhere = !self.patterns.is_empty() || has_escaped_letters(raw) || self.has_escaped_known(raw);
        let mut suspects = Vec::new();
        let mut take = self.take_in(raw, direct);
        for hit in self.rule_set().finder.iter().flat_map(|finder| finder.find_overlapping_iter(raw)) {
            let (number, is_escaped) = self.rule_set().text_of(hit.pattern());
            let mut is_suspect = is_escaped;
            for (_, rule) in self.rule_set().searched_by(number) {
                match rule.shape {
                    Shape::Direct if is_escaped => {}
                    Shape::Direct => {
                        let found = rule.match_at(raw, hit.start()).filter(|found| rule.accepts(raw, found));
                        found.into_iter().for_each(|found| take(rule.id.clone(), rule.certainty, found.secret));
                    }
                    _ => is_suspect = is_suspect || rule.may_match_escaped(raw, hit.start(), hit.end()),
                }
            }
            if is_suspect && !is_anywhere {
                suspects.push(Suspect { at: hit.start(), text: number });
            }
        }
        self.scan_known(raw, &mut take);
        if is_anywhere { Suspects::Anywhere } else { Suspects::At(suspects) }
    }
}

impl Rule {
    /// Whether the rule may match where its text is at `start..end`.
    pub(super) fn may_match(&self, text: &[u8], start: usize, end: usize) -> bool {
        match self.shape {
            Shape::Prefix if self.is_solid => is_solid(text, start, self.length),
            Shape::Prefix | Shape::Floating | Shape::Direct => true,
            Shape::Assignment => is_assigned(text, end),
            Shape::Address => has_password(text, end),
            Shape::Mail => is_mail(text, start, end),
        }
    }

    /// The same for bytes that may have escapes.
    fn may_match_escaped(&self, raw: &[u8], start: usize, end: usize) -> bool {
        let may_match = self.may_match(raw, start, end);
        let is_spelled_out = self.shape == Shape::Prefix && self.is_solid && is_spelled_out(raw, start);
        may_match && (!is_spelled_out || self.is_match_at(raw, start))
    }
}

/// Whether no escape is in or before the text at `start` up to the next space or quote, so that a pattern finds it as it is.
fn is_spelled_out(raw: &[u8], start: usize) -> bool {
    const SIZE_MAX: usize = 512;
    let before = |count| start.checked_sub(count).and_then(|at| raw.get(at));
    // Sequences for a terminal end with these letters.
    let is_after_escape = before(2) == Some(&b'\\') || matches!(before(1), Some(b'm' | b'K'));
    let rest = raw.get(start..).unwrap_or_default();
    let is_end = |byte: &u8| matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`' | b'\\' | b'&');
    let end = rest.iter().take(SIZE_MAX).position(is_end);
    !is_after_escape
        && end.is_some_and(|end| match rest.get(end..).unwrap_or_default() {
            [b'&', ..] => false,
            [b'\\', next, ..] => matches!(next, b'n' | b'r' | b't' | b'"'),
            _ => true,
        })
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
    let (mut length, mut has_letter, mut bytes) = (0, false, value.iter().take(64).peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            // An escaped slash is a slash.
            b'\\' if matches!(bytes.peek(), Some(b'\\' | b'/')) => continue,
            0..=b' ' | b'"' | b'\'' | b'`' | b'\\' | b',' | b')' | b'(' | b'{' | b'[' => break,
            _ => {}
        }
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
