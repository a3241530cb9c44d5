//! What a file is, by any beginning: the answer does not depend on the source before it, a certain answer stays when the source grows, and
//! the first bytes pick the place of the file and where its head is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::formats::FORMATS;
use stenograph_store::Container;
use stenograph_store::discover::Named;
use stenograph_store::source_file::{Access, Confidence, recognize};

fuzz_target!(|data: &[u8]| {
    let [place, high, low, source @ ..] = data else { return };
    let format = FORMATS.get(usize::from(*place) % (FORMATS.len() + 1)).copied();
    let place = match place < &128 {
        true => Named { format, ..Named::default() },
        false => Named { like: format, ..Named::default() },
    };
    let cut = usize::from(u16::from_be_bytes([*high, *low])).min(source.len());
    let whole = recognize(source, &place);
    if let Some(found) = whole {
        Access::of(found.format, Container::Plain, source);
    }
    // Only whole lines: a certain answer may rest on the keys that half a line shows.
    let lines = source[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if let Some(part) = recognize(&source[..lines], &place).filter(|part| part.confidence == Confidence::Certain) {
        let whole = whole.map(|whole| whole.format.info().name);
        assert_eq!(whole, Some(part.format.info().name), "certain after {lines} bytes of {}", source.len());
    }
});
