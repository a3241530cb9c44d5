//! `steno usage`: what it does not count, it says: counts that are none, files that nobody reads or that are damaged, calls without a
//! time, and questions that nothing answers.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::runner::Folder;

fn call(id: &str, time: Option<&str>, usage: &Value) -> String {
    json!({"type": "assistant", "uuid": format!("uuid-of-the-record-{id}"), "sessionId": "otter-session", "timestamp": time,
        "cwd": "/work/app", "requestId": format!("req_{id}"), "message": {"id": format!("msg_{id}"),
        "model": "claude-sonnet-4-5-20250929", "role": "assistant", "content": [], "usage": usage}})
    .to_string()
        + "\n"
}

fn good(id: &str) -> String {
    call(id, Some("2026-01-31T12:00:00Z"), &json!({"input_tokens": 1, "output_tokens": 2}))
}

fn usage(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("usage --root home --json {line}")).ends(0).json().remove(0)
}

fn packed(text: &str) -> Vec<u8> {
    let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut gzip.stdin.take().unwrap(), text.as_bytes()).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

#[test]
fn a_count_that_is_none_is_said() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write("home/a.jsonl", good("1"));
    assert_eq!(usage(&folder, "")["odd_counts"], 0);
    let time = Some("2026-01-31T12:00:00Z");
    let odd = call("2", time, &json!({"input_tokens": -4, "output_tokens": 2}))
        + &call("3", time, &json!({"input_tokens": "7", "output_tokens": 1.5}))
        + &call("4", time, &json!({"input_tokens": null, "output_tokens": 2}));
    folder.write("home/a.jsonl", good("1") + &odd);
    let json = usage(&folder, "--explain");
    assert_eq!(
        (&json["odd_counts"], &json["total"]["calls"], &json["total"]["output"]),
        (&json!(2), &json!(3), &json!(6))
    );
    let is_odd = |decision: &&Value| decision["reason"] == "odd";
    let odd = json["decisions"].as_array().unwrap().iter().find(is_odd).unwrap().clone();
    assert_eq!((&odd["count"], &odd["merged"]), (&json!(2), &json!(false)));
    assert_eq!(
        odd["examples"].as_array().unwrap().iter().map(|place| place["line"].clone()).collect::<Vec<_>>(),
        [2, 3]
    );
    folder.run("usage --root home").ends(0).talks("2 records state a count that is none").talks("--explain says where");
    folder.run("usage --root home --explain").ends(0).says("a.jsonl:2").says("negative");
}

#[test]
fn files_that_nobody_reads_and_damage_are_said_and_what_stands_before_it_counts() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/notes")).unwrap();
    folder.write("home/notes/list.json", "{\"milk\":1}\n");
    folder.write("home/a.jsonl", good("1"));
    let whole = packed(&(good("2") + &good("3")));
    folder.write("home/b.jsonl.gz", &whole[..whole.len() - 6]);
    let json = usage(&folder, "");
    assert_eq!((&json["total"]["calls"], &json["unknown_files"]), (&json!(3), &json!(1)));
    let unread = json["unread"].as_array().unwrap();
    assert_eq!(unread.len(), 1);
    let (file, says) = (unread[0]["file"].as_str().unwrap(), unread[0]["says"].as_str().unwrap());
    assert!(file.ends_with("b.jsonl.gz") && !says.contains("b.jsonl.gz") && says.contains("gzip"), "{file}: {says}");
    folder
        .run("usage --root home --explain")
        .ends(0)
        .says("1 file left out: of no format that is read")
        .says("list.json");
    folder.run("index --root home");
    assert_eq!(usage(&folder, ""), json);
}

#[test]
fn a_first_record_of_any_size_hides_no_format() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    let large = format!("{{\"said\":\"{}\"}}\n", "x".repeat(33 << 20));
    folder.write("home/a.jsonl", large.clone() + &good("1"));
    folder.write("home/b.jsonl.gz", packed(&(large + &good("2"))));
    let json = usage(&folder, "--by agent");
    assert_eq!((&json["rows"][0]["key"], &json["total"]["calls"]), (&json!("claude-code"), &json!(2)));
    assert_eq!((&json["unknown_files"], &json["oversize_records"]), (&json!(0), &json!(2)));
    folder.run("usage --root home").ends(0).talks("2 records are too large to be read, and count as nothing");
    folder.run("index --root home").ends(0);
    assert_eq!(usage(&folder, "--by agent"), json);
}

#[test]
fn calls_that_are_not_asked_about_are_told_from_none_at_all() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write("home/a.jsonl", good("1") + &call("2", None, &json!({"input_tokens": 1, "output_tokens": 2})));
    folder.run("usage --root home --since 2026-01").ends(0).talks("1 call is left out for want of a time");
    let none = folder.run("usage --root home --since 2027 --csv");
    none.ends(1).talks("no call is asked about: 2 calls are told of there");
    assert_eq!(none.text().lines().count(), 1);
    folder.run("usage --root home --csv --explain").ends(2);
    fs::remove_file(folder.path("home/a.jsonl")).unwrap();
    folder.run("usage --root home").ends(1).talks("no model call is told of there");
}
