//! The identity of a call: the same key in every source and for every record that states it.

/// The key of a call, from the kind of its name and the parts of the name.
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
