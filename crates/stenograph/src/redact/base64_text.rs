//! Texts inside base64. A run that decodes to text is searched like any text and encoded again; a run that is an image or
//! another attachment is only counted.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::detect::{Detected, merged};
use super::{RecordSyntax, Redactor, replaced};

/// The shortest run worth decoding, which is also the step in which runs are looked for.
const RUN_MIN: usize = 32;

/// The longest run that is decoded. Longer ones are counted as unchecked.
const RUN_MAX: usize = 16 << 20;

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

/// Finds the runs. It looks at one byte in [`RUN_MIN`] unless that byte may be part of a run.
pub(super) fn runs(bytes: &[u8]) -> Runs {
    let mut runs = Runs::default();
    let (mut at, mut done) = (RUN_MIN - 1, 0);
    while let Some(byte) = bytes.get(at) {
        if !is_digit(*byte) {
            at += RUN_MIN;
            continue;
        }
        let before = bytes.get(done..at).unwrap_or_default();
        let start = at - before.iter().rev().take_while(|byte| is_digit(**byte)).count();
        let after = bytes.get(at..).unwrap_or_default();
        let end = at + after.iter().take_while(|byte| is_digit(**byte)).count();
        done = end;
        at = end + RUN_MIN;
        if end - start >= RUN_MIN {
            runs.add(bytes, start..end);
        }
    }
    runs
}

impl Runs {
    fn add(&mut self, bytes: &[u8], run: Range<usize>) {
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

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

fn engine(digits: &[u8]) -> GeneralPurpose {
    let is_url = digits.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true)
        .with_encode_padding(false);
    GeneralPurpose::new(if is_url { &URL_SAFE } else { &STANDARD }, config)
}

impl Redactor {
    /// The run with the secrets in its text masked, if it has any. The padding after the run is replaced with it.
    pub(super) fn inside_base64(&self, bytes: &[u8], run: Range<usize>) -> Option<Detected> {
        let digits = bytes.get(run.clone())?;
        let engine = engine(digits);
        let text = engine.decode(digits).ok().filter(|text| is_text(text))?;
        let mut found = Vec::new();
        if self.is_suspicious(&text, &mut |detected| found.push(detected)) {
            found.extend(self.detect(&text, RecordSyntax::Text));
        }
        let found = merged(found);
        let first = found.iter().max_by_key(|detected| detected.certainty)?.clone();
        let edits: Vec<_> = found.iter().map(|detected| (detected.at.clone(), self.mask(detected))).collect();
        let mut encoded = engine.encode(replaced(&text, &edits));
        let padding = bytes.get(run.end..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=').count();
        if padding > 0 {
            encoded.push_str("==".get(..(4 - encoded.len() % 4) % 4).unwrap_or_default());
        }
        Some(Detected { at: run.start..run.end + padding, replacement: Some(encoded), ..first })
    }
}
