//! The scan and the JSON parser accept the same texts.

use proptest::prelude::*;

use super::*;

fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let scan = Scan::new(text);
    let mut found = Vec::new();
    let end = scan.members(scan.start(), |key, from| {
        let to = scan.value(from)?;
        found.push((key.spelled, scan.text(from, to)?));
        Some(to)
    })?;
    scan.ends(end).then_some(found)
}

fn is_valid(text: &str) -> bool {
    let scan = Scan::new(text);
    scan.value(scan.start()).is_some_and(|end| scan.ends(end))
}

fn parser_accepts(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

#[test]
fn members_and_elements_are_found() {
    let text = r#" { "a" : "x\"}" , "b":[1,{"c":"]"}],"d":{} ,"e":-1.5e3} "#;
    let expected = [("a", r#""x\"}""#), ("b", r#"[1,{"c":"]"}]"#), ("d", "{}"), ("e", "-1.5e3")];
    assert_eq!(members(text).unwrap(), expected);
    assert_eq!(members("{}").unwrap(), []);
    let items = |text| Scan::new(text).elements();
    assert_eq!(items(r#"["a",{"b":2}, null]"#).unwrap(), [r#""a""#, r#"{"b":2}"#, "null"]);
    assert_eq!(items("[ ]").unwrap(), Vec::<&str>::new());
}

#[test]
fn a_truncated_object_is_invalid() {
    let text = r#"{"a":"x\\","b":[1,{"c":true}]}"#;
    for end in 0..text.len() {
        assert_eq!(members(&text[..end]), None);
    }
    assert_eq!(members("{\"a\":1}x"), None);
}

#[test]
fn brackets_match_at_every_depth() {
    for depth in [1, 63, 64, 65, 128, 129, 1000] {
        let open: String = (0..depth).map(|at| if at % 3 == 0 { "[" } else { "{\"k\":" }).collect();
        let close: String = (0..depth).rev().map(|at| if at % 3 == 0 { "]" } else { "}" }).collect();
        assert!(is_valid(&format!("{open}1{close}")));
        assert!(!is_valid(&format!("{open}1{}", &close[1..])));
        let wrong = if close.starts_with(']') { "}" } else { "]" };
        assert!(!is_valid(&format!("{open}1{wrong}{}", &close[1..])));
    }
}

#[test]
fn a_control_character_in_a_string_is_found_at_every_offset() {
    for length in 0..200 {
        for control in ["\u{1f}", "\n", "\t"] {
            let text = format!("\"{}{control}{}\"", "x".repeat(length), "é".repeat(3));
            assert!(!is_valid(&text), "{length}");
            assert!(is_valid(&format!("{}\n\t", text.replace(control, " "))));
        }
    }
}

/// Valid and invalid fragments of JSON.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        " ",
        "\n",
        "\t",
        "\"",
        "\"a\"",
        "\"k\":",
        "\\",
        "\\\"",
        "\\u",
        "\\u00e9",
        "\\ud800",
        "\\u12",
        "\\n",
        "\\x",
        "\u{0}",
        "\u{1f}",
        "é",
        "0",
        "01",
        "-",
        "-0",
        "12",
        ".",
        ".5",
        "e",
        "E+1",
        "e-",
        "1e5",
        "true",
        "false",
        "null",
        "nul",
        "tru",
        "{}",
        "[]",
        "{\"a\":1}",
        "[1,2]",
        "a long piece of text without anything in it",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn scan_and_parser_accept_the_same_texts(text in pieces()) {
        prop_assert_eq!(is_valid(&text), parser_accepts(&text));
        let wrapped = format!("{{\"k\":[{text}],\"s\":\"{text}\"}}");
        prop_assert_eq!(is_valid(&wrapped), parser_accepts(&wrapped));
    }

    #[test]
    fn scan_and_parser_agree_about_one_wrong_byte(at in 0_usize..170, byte in 0_u8..128) {
        let mut text = br#"{"type":"assistant","uuid":"a\"b","n":[-1.5e+3,0,true,null,{}],"m":{"content":[{"t":"x\\n\u00e9"}],"usage":{"in":12,"out":3}}, "end" : "a long string at the end of it all"}"#.to_vec();
        let at = at % text.len();
        text[at] = byte;
        let text = String::from_utf8(text).unwrap();
        prop_assert_eq!(is_valid(&text), parser_accepts(&text), "{}", text);
    }
}
