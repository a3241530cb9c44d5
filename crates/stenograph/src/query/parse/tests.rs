//! What people may write, and how it is parsed.

use super::*;
use crate::query::Field;

fn today() -> Today {
    Today { now: "2026-03-10T12:00:00Z".parse().unwrap(), zone: jiff::tz::TimeZone::UTC }
}

/// The printed query, which must parse to the same query.
fn read(text: &str) -> String {
    let query = Query::parse(text, &today()).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    let printed = query.to_string();
    assert_eq!(Query::parse(&printed, &today()).as_ref(), Ok(&query), "{text} is printed as {printed}");
    printed
}

fn mistake(text: &str) -> Mistake {
    Query::parse(text, &today()).err().unwrap_or_else(|| panic!("{text}: {}", read(text)))
}

#[test]
fn words_phrases_beginnings_and_near_words() {
    assert_eq!(read("Fix  the\tbug"), "fix the bug");
    assert_eq!(read("\"fix the bug\" now"), "\"fix the bug\" now");
    assert_eq!(read("sort_by_field"), "\"sort by field\"");
    assert_eq!(read("seri* \"to be or n\"*"), "seri* \"to be or n\"*");
    assert_eq!(read("word~ longword~ longer~1 abc~2"), "word~1 longword~2 longer~1 abc~2");
    assert_eq!(read("题 问题 修复a题"), "题* 问题 \"修复 a 题\"*");
    assert_eq!(read("foo/* foo => bar"), "foo foo bar");
}

#[test]
fn not_or_and_parentheses() {
    assert_eq!(read("a -b -\"c d\" NOT e"), "a -b -\"c d\" -e");
    assert_eq!(read("a b OR c d"), "a (b OR c) d");
    assert_eq!(read("(a b) OR (c -(d OR e))"), "((a b) OR (c -(d OR e)))");
    assert_eq!(read("a AND (b OR (c OR d))"), "a (b OR c OR d)");
    assert_eq!(read("a OR b OR a OR (a OR b)"), "(a OR b)");
    assert_eq!(read("-(-a)"), "a");
    assert_eq!(read("-a"), "-a");
    assert_eq!(read("(a OR b"), "(a OR b)");
    assert_eq!(read("main() f(x) (g(y))"), "main \"f x\" \"g y\"");
    assert_eq!(read("or and not"), "or and not");
}

#[test]
fn what_is_not_closed_reaches_to_the_end() {
    assert_eq!(read("a \"b c"), "a \"b c\"");
    assert_eq!(read("project:\"my app"), "project:\"my app\"");
    assert_eq!(read(r#""say \"hi\" now""#), "\"say hi now\"");
}

#[test]
fn fields_have_values() {
    assert_eq!(read("tag:Team/* tag:a,b* tag:\"to do\""), "tag:\"team/\"* (tag:\"a\" OR tag:\"b\"*) tag:\"to do\"");
    assert_eq!(read("is:pinned -is:marked"), "is:pinned -is:marked");
    assert_eq!(read("agent:Foo project:\"My App\" session:AB-1"), "agent:\"foo\" project:\"my app\" session:\"ab-1\"");
    assert_eq!(read("tool:read_file model:x-4* branch:feat/x"), "tool:\"read file\" model:\"x 4\"* branch:\"feat x\"");
    assert_eq!(
        read("role:User is:error is:call has:thinking has:image has:error"),
        "role:user is:error is:call has:thinking has:attachment is:error"
    );
    assert_eq!(read("since:2026-01-15 until:yesterday"), "since:2026-01-15T00:00:00Z until:2026-03-10T00:00:00Z");
    assert_eq!(read("-role:user -file:\"a b.rs\""), "-role:user -file:\"a b rs\"");
    assert_eq!(read("FILE:main.rs"), "file:\"main rs\"");
}

#[test]
fn what_an_event_has_once_and_is_asked_for_twice_is_one_or_the_other() {
    assert_eq!(read("tool:bash,read x tool:edit"), "(tool:bash OR tool:read OR tool:edit) x");
    assert_eq!(read("is:error is:result"), "is:error is:result");
    assert_eq!(read("-tool:a -tool:b"), "-tool:a -tool:b");
    assert_eq!(read("file:src/*.rs"), "file:src file:rs");
    assert_eq!(read("file:src/ma*.rs"), "file:\"src ma\"* file:rs");
}

#[test]
fn what_only_looks_like_a_field_is_words() {
    assert_eq!(read("foo::bar"), "\"foo bar\"");
    assert_eq!(read("http://example.org/x"), "\"http example org x\"");
    assert_eq!(read("C:\\temp error:42 id:7 mode:fast"), "\"c temp\" \"error 42\" \"id 7\" \"mode fast\"");
    assert_eq!(read("--json -- \"-v\""), "json v");
    assert_eq!(read("/usr/bin ~/x a~b"), "\"usr bin\" x \"a b\"");
}

#[test]
fn patterns_stand_between_slashes() {
    assert_eq!(read(r"/fn \w+_test/ x"), r"/fn \w+_test/ x");
    assert_eq!(read(r"-/A\/b/i"), r"-/A\/b/i");
    assert_eq!(read(r"(/a b/ OR /c\\\/d/)"), r"(/a b/ OR /c\\\/d/)");
}

#[test]
fn mistakes_say_where_and_what_to_do() {
    for (text, at, word, hint) in [
        ("", 0, "empty", "is:error"),
        ("  ", 0, "empty", "is:error"),
        ("=> {}", 0, "no words", "/=> \\{\\}/"),
        ("a - b", 2, "follows `-`", "-word"),
        ("a OR", 4, "follows `OR`", "quotes"),
        ("OR a", 0, "precedes `OR`", "quotes"),
        ("projct:x", 0, "unknown field `projct:`", "project:x"),
        ("a tools:bash", 2, "unknown field", "tool:bash"),
        ("after:7d", 0, "unknown field", "since:7d"),
        ("x role: y", 2, "follows `role:`", "role:user"),
        ("role:usr", 5, "unknown value of `role:`: `usr`", "role:user"),
        ("is:purple", 3, "unknown value", "error, pinned, marked, message"),
        ("since:soon", 6, "not a time", "7d"),
        ("tool:*", 5, "`tool:` needs a word", "tool:bash"),
        ("a_b~", 0, "one word", "\"a_b\""),
        ("\"a b\"~", 5, "one word", "sort~"),
        ("word~3", 0, "1 or 2", "word~2"),
        ("ab~2", 0, "too short", "longer"),
        ("题~", 0, "one word", "题"),
        ("x /(/", 2, "invalid pattern", "quotes"),
        ("/(a{500}){500}/", 0, "invalid pattern", "quotes"),
    ] {
        let found = mistake(text);
        assert_eq!(found.at, at, "{text}: {found:?}");
        assert!(found.message.contains(word) && found.hint.contains(hint), "{text}: {found:?}");
    }
    assert!(mistake(&"x ".repeat(5000)).message.contains("at most"));
    assert!(mistake(&"(".repeat(100)).message.contains("nested"));
    assert!(mistake(&"-NOT ".repeat(100)).message.contains("nested"));
    assert!(mistake(&format!("\"{}\"", "x ".repeat(200))).message.contains("at most"));
}

#[test]
fn how_a_field_is_kept() {
    let query = Query::parse("project:ÄB", &today()).unwrap();
    assert_eq!(query.expr(), &Expr::Field(Field::Project("äb".into())));
}
