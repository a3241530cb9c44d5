//! JSON by pieces. This folder is the only place that knows the JSON parser; formats see [`Object`]s from which they take
//! fields, [`Draft`]s into which they put them, and raw values that are never re-serialised.

mod draft;
mod leaves;
mod lines;
mod object;
mod scan;
mod spell;

pub use draft::Draft;
pub use leaves::{Leaf, leaves, nulls};
pub use lines::{At, JsonLines, JsonRecord, Objects};
pub use object::Object;
pub use spell::{canonical, compact, indent, one_line};

use serde_json::value::RawValue;

/// Whether `text` is one JSON value and nothing else.
pub fn is_valid(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The elements of an array; `None` when `raw` is not one.
pub fn items(raw: &str) -> Option<Vec<&str>> {
    if !raw.trim_start().starts_with('[') {
        return None;
    }
    let items = serde_json::from_str::<Vec<&RawValue>>(raw).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The elements of an array that stands inside a value that was parsed: they are not checked again.
pub fn items_within(raw: &str) -> Option<Vec<&str>> {
    scan::items(raw)
}

/// A number in the range of `u64`, spelled without sign, point or exponent.
pub fn number(raw: &str) -> Option<u64> {
    let plain = raw.bytes().all(|byte| byte.is_ascii_digit()) && (raw.len() == 1 || !raw.starts_with('0'));
    if plain { raw.parse().ok() } else { None }
}

/// Whether every bracket and string that is opened in `bytes` is closed again, so that what follows is no part of it.
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

/// The JSON values that stand one after the other in `text`, each with its offset, and the offset where they end.
/// What follows that offset is not JSON.
pub fn values(text: &str) -> (Vec<(usize, &str)>, usize) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut found = Vec::with_capacity(1);
    let mut good = 0;
    while let Some(Ok(value)) = stream.next() {
        good = stream.byte_offset();
        found.push((good - value.get().len(), value.get()));
    }
    (found, good)
}
