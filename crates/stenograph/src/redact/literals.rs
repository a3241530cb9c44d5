//! The string literals of a JSON record that findings are in: where each begins and ends, the field that it is, and the
//! signature beside it. It accepts parts of a document and torn records; it must not check JSON.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::{memchr3, memmem};

use super::detect::Detected;
use super::own_rules::USER_NAME;
use super::rule::Certainty;
use super::unescape::unescaped;

/// Whether a record is JSON, or a line of a JSON document.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[' | b'"' | b'}' | b']' | b','))
}

/// A string literal with a finding.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    /// Its content, without the quotes.
    pub at: Range<usize>,
    /// Its path.
    pub place: String,
    /// The last key of the path.
    key: String,
    /// The number of its object.
    object: usize,
    is_key: bool,
}

#[derive(Debug, Default)]
pub(super) struct Literals {
    found: Vec<Literal>,
    /// The signatures by the numbers of their objects, and whether their key alone says what they sign.
    signatures: HashMap<usize, (Range<usize>, bool)>,
    /// The numbers of the objects that are thoughts of a model.
    thoughts: HashSet<usize>,
    /// Whether the record is a thought of the native format, whose signature is among its extra fields.
    is_thought: bool,
}

/// Keys of signatures. A changed signature is worthless, and one that covers a changed text too.
const SIGNATURES: [&str; 4] = ["signature", "thoughtSignature", "thought_signature", "encrypted_content"];

/// Keys that sign a text beside them: in a thought, or wherever they are.
const SIGNING: [(&str, bool); 3] = [("signature", false), ("thoughtSignature", true), ("thought_signature", true)];

/// Types of blocks that hold a thought of a model, signed or encrypted.
const THOUGHTS: [&[u8]; 5] = [b"thinking", b"redacted_thinking", b"reasoning", b"thought", b"compaction"];

/// Keys whose values are words of the format and never a person: they say what a record is.
const FORMAT_KEYS: [&str; 14] = [
    "type",
    "subtype",
    "kind",
    "role",
    "model",
    "name",
    "status",
    "stop_reason",
    "operation",
    "event",
    "method",
    "version",
    "agent",
    "provider",
];

/// The number of the outermost object.
const OUTERMOST: usize = 1;

/// An open bracket.
struct Open {
    object: usize,
    key: Range<usize>,
    /// The number of the current element; `None` in an object.
    element: Option<usize>,
}

impl Literals {
    /// The literals that findings are in.
    pub fn around(bytes: &[u8], found: &[Detected]) -> Literals {
        let mut literals =
            Literals { is_thought: memmem::find(bytes, b"\"kind\":\"thinking\"").is_some(), ..Literals::default() };
        let wanted = joined(found.iter().map(|detected| detected.at.clone()).collect());
        let (mut open, mut objects, mut at, mut next): (Vec<Open>, _, _, _) = (Vec::new(), 0, 0, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' => {
                    objects += 1;
                    open.push(Open { object: objects, key: 0..0, element: None });
                }
                b'[' => {
                    let object = open.last().map_or(0, |open| open.object);
                    open.push(Open { object, key: 0..0, element: Some(0) });
                }
                b'}' | b']' => _ = open.pop(),
                b',' => {
                    if let Some(element) = open.last_mut().and_then(|open| open.element.as_mut()) {
                        *element += 1;
                    }
                }
                b'"' => {
                    let content = at + 1..string_end(bytes, at + 1);
                    at = content.end;
                    let after = bytes.get(at + 1..).unwrap_or_default().trim_ascii_start().first();
                    let is_key = after == Some(&b':') && open.last().is_none_or(|open| open.element.is_none());
                    if is_key {
                        match open.last_mut() {
                            Some(open) => open.key = content.clone(),
                            // A line of a document begins inside its brackets.
                            None => open.push(Open { object: 0, key: content.clone(), element: None }),
                        }
                    }
                    while wanted.get(next).is_some_and(|range| range.end <= content.start) {
                        next += 1;
                    }
                    let is_wanted = wanted.iter().skip(next).take_while(|range| range.start < content.end);
                    let is_wanted = is_wanted.clone().any(|range| range.end > content.start);
                    literals.add(bytes, &open, content, is_key, if is_wanted { &wanted } else { &[] });
                }
                _ => {}
            }
            at += 1;
        }
        literals
    }

    /// Adds the next literal. `wanted` has all findings if one of them is in it, else none.
    fn add(&mut self, bytes: &[u8], open: &[Open], at: Range<usize>, is_key: bool, wanted: &[Range<usize>]) {
        let keyed = open.iter().rev().find(|open| open.element.is_none());
        let key = || keyed.map(|open| text(bytes, &open.key)).unwrap_or_default();
        let object = open.last().map_or(0, |open| open.object);
        if !wanted.is_empty() {
            self.found.push(Literal { at, place: place(bytes, open, wanted), key: key(), object, is_key });
            return;
        }
        if is_key {
            return;
        }
        let (key, value) = (key(), bytes.get(at.clone()).unwrap_or_default());
        if key == "type" && THOUGHTS.contains(&value) {
            self.thoughts.insert(object);
        } else if let Some((_, is_sure)) = SIGNING.iter().find(|(signing, _)| *signing == key)
            && is_signature(value)
        {
            self.signatures.insert(object, (at, *is_sure));
        }
    }

    /// The literal at an offset.
    pub fn at(&self, offset: usize) -> Option<&Literal> {
        let after = self.found.partition_point(|literal| literal.at.start <= offset);
        let literal = self.found.get(after.checked_sub(1)?)?;
        (offset < literal.at.end).then_some(literal)
    }

    /// The parts of a finding that are inside literals, if those may change: ids and signatures may not. Only a secret whose form
    /// proves it, such as the lines of a key, continues in the next literal.
    pub fn clip(&self, bytes: &[u8], detected: &Detected) -> Vec<Detected> {
        let before = self.found.partition_point(|literal| literal.at.end <= detected.at.start);
        let overlapping = self.found.iter().skip(before).take_while(|literal| literal.at.start < detected.at.end);
        let most = if detected.certainty == Certainty::Form { usize::MAX } else { 1 };
        overlapping.take(most).filter_map(|literal| self.clip_to(bytes, literal, detected.clone())).collect()
    }

    fn clip_to(&self, bytes: &[u8], literal: &Literal, mut detected: Detected) -> Option<Detected> {
        let at = detected.at.start.max(literal.at.start)..detected.at.end.min(literal.at.end);
        let is_cut = at != detected.at;
        if at.is_empty() || (is_cut && detected.replacement.is_some()) {
            return None;
        }
        let value = bytes.get(literal.at.clone()).unwrap_or_default();
        // Elsewhere than in a thought, a field may be called a signature and hold a token.
        let may_be_token =
            detected.certainty == Certainty::Form && !self.is_thought && !self.thoughts.contains(&literal.object);
        let is_fixed = SIGNATURES.contains(&literal.key.as_str()) && is_signature(value) && !may_be_token;
        let is_id = is_reference(&literal.key) && detected.certainty == Certainty::Context;
        // A name may also be a word of the format: a home folder may be called `assistant`.
        let is_format_word = detected.rule == USER_NAME && FORMAT_KEYS.contains(&literal.key.as_str());
        let is_kept = match literal.is_key {
            true => detected.rule == USER_NAME,
            false => is_fixed || is_id || is_format_word,
        };
        if is_cut {
            let spelled = bytes.get(at.clone()).unwrap_or_default();
            detected.secret = unescaped(spelled).map_or_else(|| spelled.to_vec(), |unescaped| unescaped.text);
        }
        detected.at = at;
        (!is_kept).then_some(detected)
    }

    /// The signature that covers a literal.
    pub fn signature_of(&self, literal: &Literal) -> Option<Range<usize>> {
        let beside = self.signatures.get(&literal.object);
        let beside = beside.filter(|(_, is_sure)| *is_sure || self.thoughts.contains(&literal.object));
        let of_thought = || self.signatures.values().next().filter(|_| self.is_thought && literal.object == OUTERMOST);
        beside.or_else(of_thought).filter(|_| !literal.is_key).map(|(at, _)| at.clone())
    }
}

/// Whether a value can be a signature or a ciphertext: one long word of base64.
fn is_signature(value: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\\');
    value.len() > 8 && value.iter().all(is_digit)
}

/// The ranges in order, with those joined that overlap.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|at| (at.start, at.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for next in ranges {
        match joined.last_mut().filter(|last| next.start < last.end) {
            Some(last) => last.end = last.end.max(next.end),
            None => joined.push(next),
        }
    }
    joined
}

/// Whether a key names a record, a call or a session. What pairs records is not a secret, unless its form proves it.
fn is_reference(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    key == "id" || lower.ends_with("_id") || lower.ends_with("uuid") || key.ends_with("Id") || key.ends_with("ID")
}

/// The offset of the quote that ends a string, or the end of a torn one: no string continues on another line.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(next) = memchr3(b'"', b'\\', b'\n', bytes.get(at..).unwrap_or_default()) {
        at += next;
        match bytes.get(at..at + 2) {
            Some([b'\\', b'\n']) => return at + 1,
            Some([b'\\', _]) => at += 2,
            _ => return at,
        }
    }
    bytes.len()
}

/// How many keys of a path are shown: a record may be nested as deeply as it likes.
const PLACE_DEPTH_MAX: usize = 12;

/// The path of the current value. Elements of arrays have no number: places are counted. A key with a finding is not shown.
fn place(bytes: &[u8], open: &[Open], wanted: &[Range<usize>]) -> String {
    let has_finding = |key: &Range<usize>| {
        let before = wanted.partition_point(|range| range.end <= key.start);
        wanted.get(before).is_some_and(|range| range.start < key.end)
    };
    let mut place = String::new();
    for open in open.iter().skip(open.len().saturating_sub(PLACE_DEPTH_MAX)) {
        match open.element {
            Some(_) => place.push_str("[]"),
            None => {
                if !place.is_empty() {
                    place.push('.');
                }
                match has_finding(&open.key) {
                    true => place.push_str("[redacted]"),
                    false => place.push_str(&text(bytes, &open.key)),
                }
            }
        }
    }
    place
}

fn text(bytes: &[u8], at: &Range<usize>) -> String {
    const KEY_SIZE_MAX: usize = 64;
    let key = String::from_utf8_lossy(bytes.get(at.clone()).unwrap_or_default());
    crate::text::beginning(&key, KEY_SIZE_MAX).to_owned()
}
