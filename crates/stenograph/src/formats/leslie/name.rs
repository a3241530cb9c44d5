//! The names of Leslie's files: the start of a conversation, and its question. This module does not use the disk.

use unicode_general_category::{GeneralCategory, get_general_category};

use crate::time::Time;

/// How many characters of a question a name has.
pub const QUERY_LENGTH_MAX: usize = 50;

/// The file name of a conversation that began at `start` with the question `query`. It uses the UTC offset of `start`.
pub fn file_name(start: &Time<'_>, query: &str) -> String {
    let clock = start.wall("%Y%m%d-%H%M").unwrap_or_else(|| "19700101-0000".to_owned());
    format!("{clock}-{}.txt", sanitize(query))
}

/// Whether a file name follows these rules, or those of Leslie itself: a valid minute and a question.
pub fn is_file_name(name: &str) -> bool {
    let Some((clock, query)) = name.strip_suffix(".txt").and_then(|name| name.split_at_checked(14)) else {
        return false;
    };
    let number = |from: usize| {
        let digits = clock.get(from..from + 2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<u8>().ok()
    };
    let is =
        |from: usize, range: std::ops::RangeInclusive<u8>| number(from).is_some_and(|number| range.contains(&number));
    let day = is(0, 0..=99) && is(2, 0..=99) && is(4, 1..=12) && is(6, 1..=31);
    let minute = is(9, 0..=23) && is(11, 0..=59);
    let dashes = clock.get(8..9) == Some("-") && clock.ends_with('-');
    day && minute && dashes && !query.is_empty() && query.chars().all(is_allowed)
}

/// A question as part of a name: letters, marks and digits of every script, `-` and `_`. Every run of other characters, or of
/// hyphens, becomes one hyphen.
fn sanitize(query: &str) -> String {
    let mut name = String::new();
    for char in query.chars() {
        let char = if is_allowed(char) { char } else { '-' };
        if char != '-' || !name.ends_with('-') {
            name.push(char);
        }
    }
    let cut: String = name.chars().take(QUERY_LENGTH_MAX).collect();
    match cut.trim_matches('-') {
        "" => "task".to_owned(),
        name => name.to_owned(),
    }
}

fn is_allowed(char: char) -> bool {
    use GeneralCategory as Is;
    match get_general_category(char) {
        Is::UppercaseLetter | Is::LowercaseLetter | Is::TitlecaseLetter | Is::ModifierLetter | Is::OtherLetter => true,
        Is::NonspacingMark | Is::SpacingMark | Is::EnclosingMark => true,
        Is::DecimalNumber => true,
        _ => char == '-' || char == '_',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(query: &str) -> String {
        file_name(&Time::iso("2026-02-08T15:45:00+08:00".into()).unwrap(), query)
    }

    #[test]
    fn the_clock_has_the_offset_of_the_start() {
        assert_eq!(named("fix login bug"), "20260208-1545-fix-login-bug.txt");
        let number = Time::number("1770536700".into(), crate::time::TimeUnit::Seconds).unwrap();
        assert_eq!(file_name(&number, "x"), "20260208-0745-x.txt");
    }

    #[test]
    fn a_long_question_is_cut_at_fifty_characters() {
        let name = named("帮我修复这个bug：TypeError: Cannot read property 'name' of undefined!!!");
        assert_eq!(name, "20260208-1545-帮我修复这个bug-TypeError-Cannot-read-property-name-of-u.txt");
        let query = name.strip_prefix("20260208-1545-").unwrap().strip_suffix(".txt").unwrap();
        assert_eq!(query.chars().count(), QUERY_LENGTH_MAX);
    }

    #[test]
    fn every_script_has_letters_and_marks() {
        assert_eq!(sanitize("über café"), "über-café");
        assert_eq!(sanitize("e\u{301}té"), "e\u{301}té");
        assert_eq!(sanitize("हिन्दी में"), "हिन्दी-में");
        assert_eq!(sanitize("ログイン 수정 ١٢"), "ログイン-수정-١٢");
    }

    #[test]
    fn other_characters_become_one_hyphen_and_none_at_the_ends() {
        assert_eq!(sanitize("../etc/passwd?"), "etc-passwd");
        assert_eq!(sanitize("a - b_c"), "a-b_c");
        assert_eq!(sanitize("1½ or ① Ⅳ x"), "1-or-x");
        assert_eq!(sanitize(&format!("{} tail", "x".repeat(49))), "x".repeat(49));
    }

    #[test]
    fn other_names_are_not_leslies() {
        for name in ["20260208-1430-fix-login-bug.txt", "20260208-1430-帮我.txt", "20260208-2359-x-2.txt"] {
            assert!(is_file_name(name), "{name}");
        }
        let others = "notes.txt|2026-02-08-1430-x.txt|20260208-143-x.txt|20260208_1430-x.txt|é0260208-1430-x.txt|20260208-1430-.txt|\
                      20250101-0001-has space.txt|20250101-9999-bad.txt|20251301-0001-x.txt|20260208-1430-x.txt.bak";
        for name in others.split('|') {
            assert!(!is_file_name(name), "{name}");
        }
    }

    #[test]
    fn an_empty_question_becomes_task() {
        assert_eq!(sanitize(""), "task");
        assert_eq!(sanitize("?!…\n🎉"), "task");
    }
}
