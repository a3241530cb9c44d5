//! Whatever a file contains: a note or a clear error with a hint, nothing lost, no panic.

use crate::runner::{Done, Folder, NATIVE};

/// Puts bytes between good records and checks the reaction of every command.
fn between(bytes: &[u8], note: &str) -> Done {
    let (first, rest) = NATIVE.split_once('\n').unwrap();
    let text = [first.as_bytes(), b"\n", bytes, b"\n", rest.as_bytes()].concat();
    let folder = Folder::with("a", &text);
    let done = folder.run("check a --laws");
    match note {
        "" => done.ends(0),
        note => done.ends(1).says(&format!(": {note}: ")),
    };
    done.says("laws hold");
    folder.run("show a").ends(0).says("Fix the test.").says("└ 1 line");
    folder.run("show a --text").ends(0);
    // A lone surrogate is valid JSON, though not every parser accepts it.
    let json = folder.run("show a --json");
    assert!(json.ends(0).text().lines().all(stenograph::json::is_valid));
    assert_eq!(folder.run("convert a --to steno").ends(0).out, text);
    folder.run("convert a --to chibi --carry -o b").ends(0);
    folder.run("convert b --to steno -o c").ends(0);
    assert_eq!(folder.read("c"), text);
    done
}

fn message(content: &str) -> String {
    format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"{content}\"}}")
}

#[test]
fn bytes_that_are_not_utf8() {
    between(b"{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"caf\xe9\"}", "bad_utf8");
    between(b"\xff\xfe\xfd", "bad_utf8");
}

#[test]
fn half_a_surrogate_pair() {
    between(message("cut \\ud83d.").as_bytes(), "lone_surrogate");
}

#[test]
fn raw_control_characters() {
    between(message("a\u{1}\u{1b}[31m").as_bytes(), "control_character");
}

#[test]
fn the_same_key_twice() {
    between(b"{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}", "duplicate_key");
}

#[test]
fn json_cut_short() {
    between(b"{\"v\":1,\"kind\":\"message\",\"role\":\"us", "not_a_record");
    let folder = Folder::with("a", &NATIVE[..NATIVE.len() - 20]);
    folder.run("check a").ends(1).says(": torn: ");
}

#[test]
fn depth_ten_thousand() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    between(deep.as_bytes(), "not_a_record");
    let held = format!("{{\"v\":1,\"kind\":\"stop\",\"deep\":{deep}}}");
    between(held.as_bytes(), "");
    between("{\"a\":".repeat(10_000).as_bytes(), "not_a_record");
}

#[test]
fn numbers_beyond_64_bits() {
    let big = "123456789012345678901234567890.5e400";
    let line = format!("{{\"v\":1,\"kind\":\"stop\",\"usage\":{{\"input\":{big}}},\"n\":-{big}}}");
    between(line.as_bytes(), "");
}

#[test]
fn nul_bytes() {
    between(b"\0\0\0\0", "not_a_record");
    between(message("a\0b").as_bytes(), "control_character");
}

#[test]
fn carriage_returns_and_a_byte_order_mark() {
    let text = format!("\u{feff}{}", NATIVE.replace('\n', "\r\n"));
    let folder = Folder::with("a", &text);
    folder.run("check a --laws").ends(0).says("4 records");
    assert_eq!(folder.run("convert a --to steno").ends(0).text(), text);
}

#[test]
fn a_line_over_the_limit_is_copied_and_noted() {
    let long = message(&"x".repeat(40 << 20));
    let (first, rest) = NATIVE.split_once('\n').unwrap();
    let text = format!("{first}\n{long}\n{rest}");
    let folder = Folder::with("a", &text);
    folder.run("check a").ends(1).says("line 2, byte ").says(": oversize: ");
    folder.run("convert a --to steno -o copy").ends(0);
    assert!(folder.read("copy") == text.as_bytes());
    folder.run("show a --last 1").ends(0).says("result of Bash, 1 line");
}

#[test]

fn a_line_over_the_limit_is_carried_or_refused() {
    let long = message(&"x".repeat(33 << 20));
    let folder = Folder::with("a", format!("{NATIVE}{long}\n"));
    let done = folder.run("convert a --to chibi --carry -o b");
    if done.code == 0 {
        folder.run("convert b --to steno -o c").ends(0);
        assert!(folder.read("c") == folder.read("a"));
    } else {
        done.ends(2);
        assert_eq!(folder.names(), ["a"]);
    }
}

#[test]
fn a_file_that_is_not_a_transcript_is_a_plain_error() {
    let folder = Folder::with("empty", "");
    folder.write("binary", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0");
    folder.write("text", "Dear diary,\n");
    folder.write("other", "{\"hello\":\"world\"}\n");
    std::fs::create_dir(folder.path("folder")).unwrap();
    for command in ["check", "show"] {
        folder.run(&format!("{command} empty")).fails("empty: the file is empty");
        folder.run(&format!("{command} binary")).fails("looks like a binary file");
        folder.run(&format!("{command} text")).fails("text: unknown format").talks("steno formats").talks("--from");
        folder.run(&format!("{command} other")).fails("unknown format");
        folder.run(&format!("{command} folder")).fails("folder: is a folder");
    }
    folder.run("check empty --from steno").ends(0).says("0 records, 0 events");
    folder.run("check binary --from steno").ends(1);
    assert_eq!(folder.run("convert empty --from steno --to chibi").ends(0).text(), "");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with("a", NATIVE);
    std::fs::set_permissions(folder.path("a"), std::fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything.
    if std::fs::File::open(folder.path("a")).is_err() {
        folder.run("check a").fails("a: permission denied");
    }
}
