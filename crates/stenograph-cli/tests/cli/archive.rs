//! `steno archive` and `steno archive prune`.

use std::fs;
use std::path::PathBuf;

use crate::list::{home, index, path, said};
use crate::runner::{Folder, NATIVE};

const ONE: &str = "0198aaaa-1111-4222-8333-444455556666";
const TWO: &str = "0198aaaa-9999-4222-8333-444455556666";
const THREE: &str = "ffff0000-1111-4222-8333-444455556666";

fn sessions(folder: &Folder) -> usize {
    let done = folder.run("list --json");
    if done.code == 0 { done.json().len() } else { 0 }
}

fn packs(folder: &Folder) -> Vec<PathBuf> {
    let packs = fs::read_dir(folder.path("store/archive/packs")).unwrap();
    packs.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_was_kept_comes_back_byte_for_byte() {
    let folder = home();
    let before = folder.read(&path(THREE));
    fs::remove_dir_all(folder.path("home/.claude/projects/-work-shop")).unwrap();
    folder.run("archive restore ffff").ends(0).says(THREE).talks("1 file restored");
    assert_eq!(folder.read(&path(THREE)), before);
    // What is there is not written over, unless it is asked for.
    folder.run("archive restore ffff").ends(0).says("is there already");
    folder.write(&path(THREE), "mine");
    folder.run("archive restore ffff").fails("says something else");
    assert_eq!(folder.read(&path(THREE)), b"mine");
    folder.run("archive restore ffff -o elsewhere/back.jsonl").ends(0);
    assert_eq!(folder.read("elsewhere/back.jsonl"), before);
    folder.run("archive restore ffff --force").ends(0);
    assert_eq!(folder.read(&path(THREE)), before);
    folder.run("archive restore 5555").finds_nothing("nothing of it is kept");
    folder.run("archive restore 0198").fails("2 sessions can be meant");
}

#[test]
fn a_session_of_several_files_comes_back_whole_and_without_an_index() {
    let folder = home();
    let side = format!("home/.claude/projects/-work-app/{ONE}/subagents/agent-a1b2.jsonl");
    let (main_bytes, side_bytes) = (folder.read(&path(ONE)), folder.read(&side));
    fs::remove_dir_all(folder.path("home/.claude")).unwrap();
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    let done = folder.run("archive restore 0198aaaa-1 -o back --json");
    assert_eq!(done.ends(0).json().len(), 2);
    assert_eq!(folder.read(&format!("back/{ONE}.jsonl")), main_bytes);
    assert_eq!(folder.read(&format!("back/{ONE}/subagents/agent-a1b2.jsonl")), side_bytes);
    folder.run("archive restore 0198aaaa-1 -o back --version 1").fails("--version is of one file");
}

#[test]
fn keeping_alone_indexes_nothing_and_costs_what_is_new() {
    let folder = Folder::with("mine.jsonl", NATIVE);
    folder.run("archive add mine.jsonl").ends(0).talks("1 new");
    assert!(!folder.path("store/index").exists());
    let json = folder.run("archive add mine.jsonl --json").ends(0).json();
    assert_eq!((&json[0]["new"], &json[0]["unchanged"], &json[0]["added"]), (&0.into(), &1.into(), &0.into()));
    folder.write("mine.jsonl", NATIVE.replace("Fix", "Mend"));
    folder.run("archive add mine.jsonl").ends(0).talks("1 rewritten");
    let list = folder.run("archive list --json").ends(0).json();
    assert_eq!(list[0]["versions"].as_array().unwrap().len(), 2);
    folder.run("archive restore mine.jsonl --version 1 -o old.jsonl").ends(0);
    assert_eq!(folder.read("old.jsonl"), NATIVE.as_bytes());
    folder.run("archive restore mine.jsonl --version 7 -o x.jsonl").finds_nothing("version 7 is not kept");
    folder.write("stranger.bin", [0, 1, 2, 3]);
    folder.run("archive add stranger.bin").ends(1).talks("of no known format");
    folder.run("archive add missing.jsonl").fails("missing.jsonl");
}

#[test]
fn keeping_finds_what_the_index_would() {
    let folder = home();
    fs::remove_dir_all(folder.path("store")).unwrap();
    folder.run("archive list").finds_nothing("nothing is kept yet");
    folder.run("archive add --root home").ends(0).talks("4 new");
    let listed = folder.run("archive list").ends(0).text().to_owned();
    assert!(listed.contains(THREE) && listed.starts_with("SESSION"), "{listed}");
    // What was kept and is gone is found once there is an index.
    fs::remove_file(folder.path(&path(THREE))).unwrap();
    folder.run("archive list").ends(0).says("[gone] ");
    index(&folder);
    folder.run("find walrus session:ffff").ends(0).says("ffff00");
}

#[test]
fn damage_is_found_and_named() {
    let folder = home();
    folder.run("archive verify").ends(0).talks("4 copies").talks("everything is what it was");
    for pack in packs(&folder) {
        let mut bytes = fs::read(&pack).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 0x40;
        fs::write(&pack, bytes).unwrap();
    }
    let done = folder.run("archive verify --json");
    let damaged = &done.ends(1).json()[0]["damaged"];
    assert!(damaged.as_array().unwrap().iter().any(|damaged| damaged["session"] == THREE), "{damaged}");
    folder.run("archive verify").ends(1).says(".jsonl: ").says("from byte 0 on").talks("damaged");
    folder.run("archive restore ffff -o out.jsonl").fails("damaged");
    assert!(!folder.path("out.jsonl").exists());
}

#[test]
fn folders_are_remembered() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("more/deep")).unwrap();
    fs::create_dir(folder.path("home")).unwrap();
    folder.write("more/deep/mine.jsonl", NATIVE);
    folder.run("config folder add none").fails("is no folder");
    folder.run("config folder add more").ends(0);
    let listed = folder.run("config folder list").ends(0).text().trim().to_owned();
    assert_eq!(PathBuf::from(listed), fs::canonicalize(folder.path("more")).unwrap());
    folder.run("index --root home").ends(0).talks("1 new");
    folder.run("config folder remove more").ends(0);
    folder.run("config folder remove more").finds_nothing("was not added");
    assert_eq!(folder.run("config folder list --json").ends(0).text(), "");
}

#[test]
fn pruning_wants_to_be_told_what_and_a_dry_run_does_nothing() {
    let folder = home();
    folder.run("archive prune").fails("it is not said what shall go");
    folder.run("archive prune --older-than soon").ends(2).talks("90d");
    folder.run("archive prune project:none").finds_nothing("no session is to go");
    let log = folder.read("store/archive/log.jsonl");
    let done = folder.run("archive prune --max-count 1 --dry-run");
    done.ends(0).says("0198aaaa-1").says("0198aaaa-9").talks("2 sessions would go");
    assert!(!done.text().contains("ffff0000"));
    assert_eq!((folder.read("store/archive/log.jsonl"), sessions(&folder)), (log, 3));
    let json = folder.run("archive prune --max-size 1 --older-than 1d --dry-run --json").ends(0).json();
    assert_eq!((&json[3]["goes"], &json[3]["dry_run"]), (&3.into(), &true.into()));
    assert!(json[3]["room"].as_u64().unwrap() > 0);
}

#[test]
fn the_only_copy_stays_unless_forced() {
    let folder = home();
    fs::remove_file(folder.path(&path(TWO))).unwrap();
    folder.write(&path(THREE), said(THREE, 1, "user", "Something else"));
    let done = folder.run("archive prune --older-than 1d");
    done.ends(0).says("0198aaaa-1").talks("1 session went");
    done.talks("stays: 0198aaaa-9").talks("is gone, so this is the only copy").talks("says something else now");
    assert!(folder.path(&path(ONE)).exists());
    assert_eq!(sessions(&folder), 2);
    folder.run("archive restore 0198aaaa-9").ends(0);
    assert!(folder.path(&path(TWO)).exists());
    folder.run("archive prune session:ffff").ends(1).talks("0 sessions went");
    folder.run("archive prune session:ffff --force").ends(0).talks("1 session went");
    folder.run("archive restore ffff -o x.jsonl").finds_nothing("nothing of it is kept");
    assert_eq!(folder.read(&path(THREE)), said(THREE, 1, "user", "Something else").as_bytes());
}

#[test]
fn what_was_pruned_does_not_come_back_until_it_is_recalled() {
    let folder = home();
    let before: u64 = packs(&folder).iter().map(|pack| fs::metadata(pack).unwrap().len()).sum();
    folder.run("archive prune walrus --force").ends(0).talks("3 sessions went");
    let after: u64 = packs(&folder).iter().map(|pack| fs::metadata(pack).unwrap().len()).sum();
    assert!(after < before, "{after} of {before}");
    folder.run("find walrus").ends(1);
    folder.run("index --root home").ends(0).talks("4 forgotten");
    folder.run("archive add --root home").ends(0).talks("4 forgotten");
    assert_eq!(sessions(&folder), 0);
    // Nobody counts it, and it is not taken for something that nobody can read.
    for line in ["usage --root home --json", "usage --root home --json --no-index"] {
        assert_eq!(folder.run(line).json()[0]["unknown_files"], 0, "{line}");
    }
    // Not when the index is made anew either.
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    folder.run("index --root home").ends(0).talks("4 forgotten");
    assert_eq!(sessions(&folder), 0);
    folder.run("archive unforget 0198").fails("2 sessions can be meant");
    folder.run("archive unforget 5555").finds_nothing("no session that was pruned");
    folder.run("archive unforget 0198aaaa-1").ends(0).talks(ONE);
    index(&folder);
    assert_eq!(sessions(&folder), 1);
    folder.run("find walrus").ends(0).says("0198aa");
    folder.run("archive unforget 0198aaaa-1").finds_nothing("no session that was pruned");
}

#[test]
fn a_file_with_a_long_first_record_is_added_as_it_is_indexed() {
    let folder = Folder::new();
    let long = NATIVE.replace("Fix the test.", &"Fix the test. ".repeat(200_000));
    folder.write("long.jsonl", long);
    folder.run("archive add ./long.jsonl").ends(0).talks("1 new");
}

#[test]
fn a_file_of_no_known_format_is_named_however_it_was_spelled() {
    let folder = Folder::with("notes", "nothing of a transcript\n");
    std::fs::create_dir(folder.path("sub")).unwrap();
    for spelled in ["notes", "./notes", "sub/../notes"] {
        folder
            .run(&format!("archive add {spelled}"))
            .ends(1)
            .talks("not kept: it is of no known format")
            .talks(spelled);
    }
}
