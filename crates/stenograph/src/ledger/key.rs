//! What makes a call the one it is: the same key in whatever source and however often it is told of.

/// The key of a call: what kind of name it has, and the name.
pub(super) fn key(kind: &str, parts: &[Option<&str>]) -> u128 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(kind.as_bytes());
    for part in parts {
        match part {
            Some(part) => {
                hasher.update(&[1]);
                hasher.update(&part.len().to_le_bytes());
                hasher.update(part.as_bytes());
            }
            None => hasher.update(&[0]),
        }
    }
    hasher.digest128()
}

/// A short fingerprint of a name, within one source.
pub(super) fn hash(parts: &[&str]) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    for part in parts {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.digest()
}
