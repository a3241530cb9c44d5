//! The shell lexer on any text: it does not panic, and keeps the laws of `laws::shell`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::laws::shell;

fuzz_target!(|data: &[u8]| {
    let Ok(command) = std::str::from_utf8(data) else { return };
    let broken = shell::check(command);
    assert!(broken.is_empty(), "{command:?}: {broken:?}");
});
