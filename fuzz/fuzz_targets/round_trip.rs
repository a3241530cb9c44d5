//! Laws *echo*, *return* and *carry*: whatever the bytes, what is written is read back the same and written again the same.
//! The first byte picks the format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::formats::FORMATS;
use stenograph::laws::{Effort, check};

fuzz_target!(|data: &[u8]| {
    let Some((pick, source)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*pick) % FORMATS.len()];
    for broken in check(format, source, Effort { places: 2 }) {
        let wanted = ["echo", "return", "carry"].contains(&broken.law);
        assert!(!wanted, "{format:?}: {}: {} at {:?}", broken.law, broken.what, broken.at);
    }
});
