//! `steno check`.

use crate::runner::{CHIBI, Folder, NATIVE};

#[test]
fn a_file_that_is_well_gives_one_line_and_0() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("check a");
    done.ends(0);
    assert_eq!(
        done.text(),
        "a: steno, 4 records, 4 events (1 message, 1 thinking, 1 tool_call, 1 tool_result), no notes\n"
    );
    assert_eq!(done.talk, "");
}

#[test]
fn notes_have_line_and_byte_and_give_1() {
    let folder = Folder::with("a", format!("{NATIVE}not json\n"));
    let byte = NATIVE.len();
    folder.run("check a").ends(1).says("1 note\n").says(&format!("line 5, byte {byte}: not_a_record: "));
}

#[test]
fn a_result_without_its_call_is_noted_and_a_repeated_one_is_not() {
    let result = NATIVE.lines().last().unwrap();
    let folder = Folder::with("orphan", format!("{result}\n"));
    folder.run("check orphan").ends(1).says("line 1, byte 0: orphan_result: a result of call c1");
    folder.write("twice", format!("{NATIVE}{result}\n"));
    folder.run("check twice").ends(0);
    let without = CHIBI.lines().last().unwrap();
    folder.write("position", format!("{without}\n"));
    folder.run("check position").ends(1).says("a result without a call before it");
    folder.write("paired", CHIBI);
    folder.run("check paired").ends(0);
}

#[test]
fn a_result_may_stand_before_its_call() {
    let lines: Vec<&str> = NATIVE.lines().collect();
    let folder = Folder::with("a", [lines[0], lines[3], lines[2], ""].join("\n"));
    folder.run("check a").ends(0).says("3 records");
}

#[test]
fn people_see_twenty_notes_and_programs_all_of_them() {
    let folder = Folder::with("a", format!("{NATIVE}{}", "junk\n".repeat(50)));
    let done = folder.run("check a");
    done.ends(1).says("50 notes").says("and 30 more; --json shows all");
    assert_eq!(done.text().matches("not_a_record").count(), 20);
    let done = folder.run("check a --json");
    let json = &done.ends(1).json()[0];
    assert_eq!(json["notes"].as_array().unwrap().len(), 50);
    assert_eq!(json["notes_count"], 50);
    assert_eq!(json["format"], "steno");
    assert_eq!(json["events"]["message"], 1);
    assert_eq!(json["notes"][0]["at"]["line"], 5);
}

#[test]
fn one_bad_file_does_not_stop_the_rest_and_the_worst_counts() {
    let folder = Folder::with("good", NATIVE);
    folder.write("noted", format!("{NATIVE}junk\n"));
    let done = folder.run("check missing noted good");
    done.ends(2).says("noted: steno").says("good: steno").talks("error: missing: no such file");
    let done = folder.run("check missing good --json");
    let json = done.ends(2).json();
    assert!(json[0]["error"].as_str().unwrap().starts_with("missing: no such file or folder"));
    assert_eq!(json[1]["records"], 4);
}

#[test]
fn the_laws_hold_and_are_named() {
    let folder = Folder::with("a", NATIVE);
    folder.write("b", CHIBI);
    folder.run("check --laws a b").ends(0).says("14 laws hold: silent, echo, return");
    let done = folder.run("check --laws --json a");
    assert_eq!(done.ends(0).json()[0]["laws_broken"].as_array().unwrap().len(), 0);
}

#[test]
fn the_format_can_be_given() {
    let folder = Folder::with("a", NATIVE);
    folder.run("check a --from chibi").says("a: chibi, 4 records");
    folder.run("check a --from nonsense").ends(2).talks("nonsense");
}

#[test]
fn standard_input_is_a_file_too() {
    let folder = Folder::new();
    folder.run_with("check -", NATIVE.as_bytes()).ends(0).says("-: steno, 4 records");
    folder.run_with("check - --laws", NATIVE.as_bytes()).ends(0).says("laws hold");
    assert!(folder.names().is_empty());
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_read_like_standard_input() {
    let folder = Folder::new();
    folder.run_with("check /dev/stdin", NATIVE.as_bytes()).ends(0).says("4 records");
    folder.run_with("convert /dev/stdin --to chibi", NATIVE.as_bytes()).ends(0).says("cargo test");
}

#[test]
fn the_laws_refuse_a_file_larger_than_memory_allows() {
    let folder = Folder::new();
    std::fs::File::create(folder.path("large")).unwrap().set_len(257 << 20).unwrap();
    folder.run("check --laws --from steno large").fails("is larger than 256 MiB").says("large: steno, 1 record");
}

#[test]
fn a_file_name_cannot_turn_the_text_of_a_terminal_around() {
    let name = "c\u{202e}.jsonl";
    let folder = Folder::with(name, NATIVE);
    let done = folder.run(&format!("check --json {name}"));
    assert_eq!(done.ends(0).json()[0]["file"], name);
    assert!(!done.text().contains('\u{202e}') && done.text().contains("\\u202e"), "{}", done.text());
    let done = folder.run("check --json missing\u{202e}.jsonl");
    done.ends(2);
    assert!(!done.text().contains('\u{202e}') && !done.talk.contains('\u{202e}'), "{} {}", done.text(), done.talk);
}
