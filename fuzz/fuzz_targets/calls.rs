//! The fold `Calls` on any bytes: it does not panic, and saving and restoring it after any event equals one pass. The first byte picks the
//! format, the second one how many events are between two restarts. The bytes are also a saved fold, which may say anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::calls::Calls;
use stenograph::formats::FORMATS;
use stenograph::read;

fuzz_target!(|data: &[u8]| {
    let [pick, step, source @ ..] = data else { return };
    let format = FORMATS[usize::from(*pick) % FORMATS.len()];
    let step = usize::from(*step) % 8 + 1;
    let (mut one_pass, mut restarted) = (Calls::default(), Calls::default());
    let mut hostile = Calls::restore(&String::from_utf8_lossy(source));
    for (at, event) in read::all(format, source).events.iter().enumerate() {
        if at % step == 0 {
            restarted = Calls::restore(&restarted.save());
        }
        let expected = one_pass.add(event);
        assert_eq!(restarted.add(event), expected, "{format:?}: event {at}, a restart every {step} events");
        hostile.add(event);
        hostile = Calls::restore(&hostile.save());
    }
});
