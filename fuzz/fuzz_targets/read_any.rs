//! Laws *silent*, *hurt* and *chunks*: whatever the bytes, reading does not panic, and no byte is silent.
//! The first byte picks the format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::formats::FORMATS;
use stenograph::laws::{Effort, check};

fuzz_target!(|data: &[u8]| {
    let Some((pick, source)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*pick) % FORMATS.len()];
    let wanted = ["silent", "hurt", "chunks", "growth", "pieces", "projection"];
    for broken in check(format, source, Effort { places: 2 }) {
        assert!(!wanted.contains(&broken.law), "{format:?}: {}: {} at {:?}", broken.law, broken.what, broken.at);
    }
});
