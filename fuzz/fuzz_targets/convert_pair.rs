//! Any bytes from any format to any other: converting does not panic, what it gives is stable, and the account adds up.
//! The first two bytes pick the pair.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::convert::{Carry, ConversionMethod, convert, rewrite_own};
use stenograph::formats::FORMATS;

fuzz_target!(|data: &[u8]| {
    let [from, to, source @ ..] = data else { return };
    let pick = |byte: u8| FORMATS[usize::from(byte) % FORMATS.len()];
    let (from, to, mut source) = (pick(*from), pick(*to), source);
    let mut out = Vec::new();
    let outcome = convert(from, &mut source, to, &mut out, Carry::Omit).expect("memory can be read and written");
    for (kind, kept) in &outcome.losses.kept {
        let read = outcome.losses.read.get(kind).copied().unwrap_or(0);
        assert!(*kept <= read, "{from:?} to {to:?}: {kept} of {read} {} kept", kind.name());
    }
    if outcome.method == ConversionMethod::Written {
        let mut again = Vec::new();
        rewrite_own(to, &mut out.as_slice(), &mut again).expect("memory can be read and written");
        let (out, again) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&again));
        assert!(out == again, "{from:?} to {to:?} is not stable:\n{out}\n{again}");
    }
});
