//! Texts inside base64. A run that decodes to text is searched like any text and encoded again; a run that is an image or
//! another attachment is only counted.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::detect::{Detected, merged};
use super::{RecordSyntax, Redactor, replaced};

/// The shortest run worth decoding.
const RUN_MIN: usize = 32;

/// The longest run that is decoded. Longer ones are counted as unchecked.
const RUN_MAX: usize = 16 << 20;

/// How often the text of a run is searched for base64: twice encoded is common, more is not.
pub(super) const DEPTH_MAX: usize = 2;

/// How much of a run shows whether it is text.
const HEAD: usize = 64;

/// The runs of base64 in a record.
#[derive(Default)]
pub(super) struct Runs {
    /// Those that begin like a text.
    pub text: Vec<Range<usize>>,
    /// How many are images or other attachments.
    pub binary: u64,
}

/// Finds the runs. The last byte that a run could have decides first: most of the bytes are not looked at.
pub(super) fn runs(bytes: &[u8]) -> Runs {
    let mut runs = Runs::default();
    let mut start = 0;
    while let Some(shortest) = bytes.get(start..start + RUN_MIN) {
        if let Some(other) = shortest.iter().rposition(|byte| !is_digit(*byte)) {
            start += other + 1;
            continue;
        }
        let after = bytes.get(start + RUN_MIN..).unwrap_or_default();
        let end = start + RUN_MIN + after.iter().take_while(|byte| is_digit(**byte)).count();
        runs.add(bytes, start..end);
        start = end;
    }
    runs
}

impl Runs {
    fn add(&mut self, bytes: &[u8], run: Range<usize>) {
        // The letter of an escape, such as `\n`, is not a part of the run.
        let is_escape = run.start.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\\');
        let run = if is_escape { run.start + 1..run.end } else { run };
        let digits = bytes.get(run.clone()).unwrap_or_default();
        let Some(head) = digits.get(..digits.len().min(HEAD) & !3).and_then(|head| engine(head).decode(head).ok())
        else {
            return;
        };
        const SIGNATURES: [&[u8]; 8] =
            [b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"PK\x03\x04", b"\x1f\x8b", b"ID3"];
        if SIGNATURES.iter().any(|signature| head.starts_with(signature)) || digits.len() > RUN_MAX {
            self.binary += 1;
        } else if is_text(&head) {
            self.text.push(run);
        }
    }
}

/// Whether bytes are text: ASCII, or the beginning of UTF-8 without control characters.
fn is_text(bytes: &[u8]) -> bool {
    let is_plain = bytes.iter().all(|byte| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\r' | b'\t'));
    is_plain && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[expect(clippy::indexing_slicing, reason = "the table is computed by the compiler")]
fn is_digit(byte: u8) -> bool {
    const DIGITS: [bool; 256] = {
        let (mut digits, mut byte) = ([false; 256], 0);
        while byte < 256 {
            digits[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'+' | b'/' | b'-' | b'_');
            byte += 1;
        }
        digits
    };
    DIGITS.get(usize::from(byte)) == Some(&true)
}

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true)
    .with_encode_padding(false);

fn engine(digits: &[u8]) -> &'static GeneralPurpose {
    static USUAL: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    static URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
    if memchr::memchr2(b'-', b'_', digits).is_some() { &URL } else { &USUAL }
}

impl Redactor {
    /// The run with the secrets in its text masked, if it has any. The padding after the run is replaced with it. A text may
    /// hold base64 again, `depth` times at most.
    pub(super) fn inside_base64(&self, bytes: &[u8], run: Range<usize>, depth: usize) -> Option<Detected> {
        let digits = bytes.get(run.clone())?;
        let engine = engine(digits);
        let text = engine.decode(digits).ok().filter(|text| is_text(text))?;
        let mut found = Vec::new();
        let suspects = self.suspects(&text, &mut |detected| found.push(detected));
        found.extend(self.detect(&text, RecordSyntax::Text, suspects));
        if let Some(depth) = depth.checked_sub(1) {
            found.extend(runs(&text).text.into_iter().filter_map(|inner| self.inside_base64(&text, inner, depth)));
        }
        let found = merged(found);
        let first = found.iter().max_by_key(|detected| detected.certainty)?.clone();
        let edits: Vec<_> = found.iter().map(|detected| (detected.at.clone(), self.replacement(detected))).collect();
        let mut encoded = engine.encode(replaced(&text, &edits));
        let padding = bytes.get(run.end..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=').count();
        if padding > 0 {
            encoded.push_str("==".get(..(4 - encoded.len() % 4) % 4).unwrap_or_default());
        }
        Some(Detected { at: run.start..run.end + padding, replacement: Some(encoded), ..first })
    }
}
