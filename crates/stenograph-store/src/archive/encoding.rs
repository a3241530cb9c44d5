//! How the log encodes hashes, sums and paths.

/// A checksum of 64 bits as 16 hexadecimal digits.
pub(super) mod sum_hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(sum: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{sum:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

/// Hashes of any size in hexadecimal digits.
pub(super) mod hash_hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer, const SIZE: usize>(hash: &[u8; SIZE], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::hex(hash))
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const SIZE: usize>(deserializer: D) -> Result<[u8; SIZE], D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = super::unhex(&text).ok_or_else(|| D::Error::custom("not hexadecimal"))?;
        bytes.try_into().map_err(|_| D::Error::custom("a hash of another size"))
    }
}

/// A path as text if it is UTF-8, otherwise its bytes as `{"hex": ...}`.
pub(super) mod path_text {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Encoded {
        Text(String),
        Bytes { hex: String },
    }

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        let encoded = match path.to_str() {
            Some(text) => Encoded::Text(text.to_owned()),
            #[cfg(unix)]
            None => Encoded::Bytes { hex: super::hex(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())) },
            #[cfg(not(unix))]
            None => Encoded::Text(path.to_string_lossy().into_owned()),
        };
        encoded.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let bytes = match Encoded::deserialize(deserializer)? {
            Encoded::Text(text) => return Ok(PathBuf::from(text)),
            Encoded::Bytes { hex } => super::unhex(&hex).ok_or_else(|| D::Error::custom("not hexadecimal"))?,
        };
        #[cfg(unix)]
        return Ok(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)));
        #[cfg(not(unix))]
        return String::from_utf8(bytes).map(PathBuf::from).map_err(D::Error::custom);
    }

    /// The same for a path that may be absent.
    pub mod option {
        use std::path::PathBuf;

        use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

        pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
            #[derive(Serialize)]
            struct Wrapped<'p>(#[serde(with = "super")] &'p std::path::Path);
            path.as_deref().map(Wrapped).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
            #[derive(serde::Deserialize)]
            struct Wrapped(#[serde(with = "super")] PathBuf);
            Ok(Option::<Wrapped>::deserialize(deserializer)?.map(|Wrapped(path)| path))
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| DIGITS.get(usize::from(value & 15)).map_or('0', |digit| char::from(*digit));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let nibble = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let byte = |[high, low]: &[u8; 2]| Some((nibble(*high)? << 4 | nibble(*low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{hex, unhex};

    #[test]
    fn only_bytes_that_were_written_here_are_read() {
        assert_eq!(unhex(&hex(&[0, 7, 0xab, 0xff])), Some(vec![0, 7, 0xab, 0xff]));
        for bad in ["0", "000", "0g", "0A", "é"] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
