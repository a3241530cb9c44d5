//! Texts: any bytes become a text and the same bytes again; any text has a JSON spelling that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stenograph::json;
use stenograph::text::{Text, quote};

fuzz_target!(|data: &[u8]| {
    let text = Text::from_bytes(data);
    assert_eq!(text.bytes().as_ref(), data, "bytes do not come back");
    let spelled = text.to_json();
    assert!(json::is_valid(&spelled), "not JSON: {spelled}");
    let back = Text::from_json(&spelled).expect("a string literal");
    assert_eq!(back, text);
    assert_eq!(back.hash(), text.hash());
    assert_eq!(back.is_damaged(), text.is_damaged());
    assert_eq!(back.is_empty(), text.is_empty());
    if let Ok(plain) = std::str::from_utf8(data) {
        assert_eq!(Text::from_json(&quote(plain)).expect("a string literal").decode(), plain);
        assert!(!text.is_damaged());
        // The same bytes as the inside of a literal, where they happen to be one.
        let literal = format!("\"{plain}\"");
        if json::is_valid(&literal) {
            let text = Text::from_json(&literal).expect("a string literal");
            assert_eq!(text.to_json(), literal, "the spelling is kept");
            assert_eq!(Text::from_bytes(text.decode().as_bytes()).decode(), text.decode());
            assert!(text.is_damaged() || text.clone().exact().is_some());
            let canonical = json::canonical(&literal).into_owned();
            assert_eq!(Text::from_json(&canonical).expect("a string literal"), text, "{canonical}");
        }
        let _ = json::values(plain);
        if json::is_valid(plain) {
            let (compact, canonical) = (json::compact(plain).into_owned(), json::canonical(plain).into_owned());
            assert!(json::is_valid(&compact) && json::is_valid(&canonical));
            assert_eq!(json::canonical(&compact), canonical);
        }
    }
});
