//! JSON without a value tree. Only this folder uses the JSON parser. Formats take fields from an [`Object`], put them into a
//! [`Draft`], and pass raw values along without serializing them again.

mod block;
mod draft;
mod extra_fields;
mod leaves;
mod object;
mod scan;
mod spell;

pub use draft::Draft;
pub use extra_fields::{ExtraFields, Held};
pub(crate) use leaves::nulls;
pub use leaves::{Leaf, leaves};
pub use object::Object;
pub use spell::{canonical, compact, indent, one_line};

use serde_json::value::RawValue;

use crate::text::{Str, Text};
use scan::{Escapes, Scan};

/// Whether `text` is one JSON value and nothing else.
pub fn is_valid(text: &str) -> bool {
    let scan = Scan::new(text);
    scan.value(scan.start()).is_some_and(|end| scan.ends(end))
}

/// The elements of an array; `None` if `raw` is not an array.
pub fn items(raw: &str) -> Option<Vec<&str>> {
    Scan::new(raw).elements()
}

/// The value at a path in an object. Dots separate the keys of the path; a number selects an element of a list.
pub(crate) fn value_at<'a>(raw: &'a str, path: &str) -> Option<&'a str> {
    path.split('.').try_fold(raw, |raw, key| match raw.starts_with('[') {
        true => items(raw)?.get(key.parse::<usize>().ok()?).copied(),
        false => Object::parse(raw)?.peek(key),
    })
}

/// A string without its quotes, or a number or boolean as spelled.
pub(crate) fn word(raw: &str) -> Option<Str<'_>> {
    match raw.as_bytes().first()? {
        b'"' => Text::from_json(raw)?.exact(),
        b'{' | b'[' | b'n' => None,
        _ => Some(Str::Borrowed(raw)),
    }
}

/// The raw values of some fields of an object; faster than parsing the whole object.
pub fn fields<'a, const N: usize>(raw: &'a str, keys: [&str; N]) -> [Option<&'a str>; N] {
    let scan = Scan::new(raw);
    let (mut found, mut plain) = ([None; N], true);
    let end = scan.members(scan.start(), |name, from| {
        let to = scan.value(from)?;
        plain &= name.escapes == Escapes::None;
        if let Some((_, found)) = keys.iter().zip(&mut found).find(|(key, _)| **key == name.spelled) {
            *found = scan.text(from, to);
        }
        Some(to)
    });
    match end {
        Some(end) if plain && scan.ends(end) => found,
        // The scan does not decode escaped keys.
        _ => keys.map(|key| Object::parse(raw)?.peek(key)),
    }
}

/// A number in the range of `u64`, without sign, decimal point or exponent.
pub fn number(raw: &str) -> Option<u64> {
    let plain = raw.bytes().all(|byte| byte.is_ascii_digit()) && (raw.len() == 1 || !raw.starts_with('0'));
    if plain { raw.parse().ok() } else { None }
}

/// Whether `bytes` closes every bracket and string that it opens, so that the next byte begins something new.
pub fn is_closed(bytes: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_i64, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    depth <= 0 && !in_string
}

/// The consecutive JSON values in `text`, each with its offset, and the offset where the last one ends. The text after that
/// offset is not JSON.
pub fn values(text: &str) -> (Vec<(usize, &str)>, usize) {
    // Almost always there is exactly one value.
    let scan = Scan::new(text);
    let start = scan.start();
    if let Some(end) = scan.value(start).filter(|end| scan.ends(*end)) {
        return (scan.text(start, end).map(|value| (start, value)).into_iter().collect(), end);
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut found = Vec::with_capacity(1);
    let mut good = 0;
    while let Some(Ok(value)) = stream.next() {
        good = stream.byte_offset();
        found.push((good - value.get().len(), value.get()));
    }
    (found, good)
}
