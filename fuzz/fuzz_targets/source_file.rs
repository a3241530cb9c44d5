//! Which format a file has, by any beginning: nothing panics, a place that agrees with the content changes nothing, and bytes after a whole
//! head change nothing. The first bytes pick the place of the file and where its head is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::format::Head;
use stenograph::formats::FORMATS;
use stenograph_store::Container;
use stenograph_store::discover::PathHints;
use stenograph_store::source_file::{Access, recognize};

fuzz_target!(|data: &[u8]| {
    let [place, high, low, source @ ..] = data else { return };
    let name = |head: &[u8], place: &PathHints| recognize(head, place).map(|found| found.format.info().name);
    let format = FORMATS[usize::from(*place) % FORMATS.len()];
    let (at_home, like) = (
        PathHints { format: Some(format), ..PathHints::default() },
        PathHints { like: Some(format), ..PathHints::default() },
    );
    let (at_home_name, like_name) = (name(source, &at_home), name(source, &like));
    if let Some(found) = recognize(source, &PathHints::default()) {
        Access::of(found.format, Container::Plain, source);
        if found.format.info().name == format.info().name {
            let expected = Some(format.info().name);
            assert_eq!(
                (at_home_name, like_name),
                (expected, expected),
                "the place changes an answer that it agrees with"
            );
        }
    }
    let cut = (usize::from(*high) << 16 | usize::from(*low) << 8).min(source.len());
    if Head::is_whole(&source[..cut]) {
        let (part, whole) = (name(&source[..cut], &at_home), name(source, &at_home));
        assert_eq!(part, whole, "{cut} bytes are a whole head, and more of {} change the answer", source.len());
    }
});
