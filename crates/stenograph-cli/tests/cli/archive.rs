//! `steno archive` and `steno archive prune`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::list::{home, index, message_line, path};
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
fn archived_files_are_restored_byte_for_byte() {
    let folder = home();
    let before = folder.read(&path(THREE));
    fs::remove_dir_all(folder.path("home/.claude/projects/-work-shop")).unwrap();
    folder.run("archive restore ffff").ends(0).says(THREE).talks("1 file restored");
    assert_eq!(folder.read(&path(THREE)), before);
    // Existing files are overwritten only on request.
    let unchanged = folder.run("archive restore ffff");
    assert_eq!(unchanged.ends(0).says("already up to date").talk, "");
    folder.write(&path(THREE), "mine");
    folder.run("archive restore ffff").fails("exists with different content");
    assert_eq!(folder.read(&path(THREE)), b"mine");
    folder.run("archive restore ffff -o elsewhere/back.jsonl").ends(0);
    assert_eq!(folder.read("elsewhere/back.jsonl"), before);
    folder.run("archive restore ffff --force").ends(0);
    assert_eq!(folder.read(&path(THREE)), before);
    folder.run("archive restore 5555").finds_nothing("not in the archive");
    folder.run("archive restore 0198").fails("2 sessions match");
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
    folder.run("archive restore 0198aaaa-1 -o back --version 1").fails("--version needs one file");
}

#[test]
fn archive_add_indexes_nothing_and_stores_only_new_bytes() {
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
    folder.run("archive restore mine.jsonl --version 7 -o x.jsonl").finds_nothing("version 7 is not in the archive");
    folder.write("stranger.bin", [0, 1, 2, 3]);
    folder.run("archive add stranger.bin").ends(1).talks("not archived: unknown format");
    folder.run("archive add missing.jsonl").fails("missing.jsonl");
}

#[test]
fn archive_add_finds_the_same_files_as_index() {
    let folder = home();
    fs::remove_dir_all(folder.path("store")).unwrap();
    folder.run("archive list").finds_nothing("the archive is empty");
    folder.run("archive add --root home").ends(0).talks("4 new");
    let listed = folder.run("archive list").ends(0).text().to_owned();
    assert!(listed.contains(THREE) && listed.starts_with("SESSION"), "{listed}");
    // With an index, archived sources without a file are found.
    fs::remove_file(folder.path(&path(THREE))).unwrap();
    folder.run("archive list").ends(0).says("[gone] ");
    index(&folder);
    folder.run("find walrus session:ffff").ends(0).says("ffff00");
}

/// Flips a bit in every block of the packs.
fn damage_packs(folder: &Folder) {
    for pack in packs(folder) {
        let mut bytes = fs::read(&pack).unwrap();
        let blocks: Vec<usize> =
            bytes.windows(8).enumerate().filter(|(_, window)| window == b"STNBLOK2").map(|(at, _)| at).collect();
        blocks.iter().for_each(|at| bytes[at + 80] ^= 0x40);
        fs::write(&pack, bytes).unwrap();
    }
}

#[test]
fn damage_is_found_and_named_and_the_next_run_heals_it() {
    let folder = home();
    folder.run("archive verify").ends(0).talks("4 copies").talks("no damage");
    damage_packs(&folder);
    let done = folder.run("archive verify --json");
    let damaged = &done.ends(1).json()[0]["damaged"];
    assert!(damaged.as_array().unwrap().iter().any(|damaged| damaged["session"] == THREE), "{damaged}");
    folder.run("archive verify").ends(1).says(".jsonl: ").says("from byte 0 on").talks("damaged").talks("steno index");
    folder.run("archive restore ffff -o out.jsonl").fails("damaged");
    assert!(!folder.path("out.jsonl").exists());
    // One file no longer exists, so its copy is lost and named; the others are archived again.
    fs::remove_file(folder.path(&path(TWO))).unwrap();
    folder.run("index --root home").ends(0).talks(TWO).talks("is lost");
    let damaged = folder.run("archive verify --repair --json").ends(1).json();
    let damaged: Vec<_> =
        damaged[0]["damaged"].as_array().unwrap().iter().map(|damaged| damaged["session"].clone()).collect();
    assert_eq!(damaged, [TWO]);
    let before = folder.read(&path(THREE));
    fs::remove_file(folder.path(&path(THREE))).unwrap();
    folder.run("archive restore ffff").ends(0);
    assert_eq!(folder.read(&path(THREE)), before);
}

#[test]
fn a_damaged_log_is_an_error_with_a_way_out_and_loses_nothing() {
    let folder = home();
    folder.run("archive prune session:ffff").ends(0);
    let good = folder.read("store/archive/log.jsonl");
    for at in [10, good.len() / 3, good.len() - 40, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        folder.write("store/archive/log.jsonl", &bad);
        for line in [
            "archive list",
            "archive verify",
            "archive restore 0198aaaa-1 -o out",
            "index --root home",
            "archive add --root home",
        ] {
            let done = folder.run(line);
            done.fails("the archive log is damaged");
            assert!(done.talk.contains("steno archive verify --repair"), "{line}: {}", done.talk);
        }
        assert_eq!(folder.read("store/archive/log.jsonl"), bad);
        folder.run("archive verify --repair").ends(0).talks("came from the packs").talks("no damage");
        assert_eq!(folder.read("store/archive/log.jsonl"), good);
        folder.run("index --root home").ends(0).talks("1 pruned earlier");
        assert_eq!(sessions(&folder), 2);
    }
}

#[test]
fn the_index_archives_again_when_the_archive_is_gone_or_another_one() {
    let folder = home();
    let gone = folder.read(&path(TWO));
    fs::remove_file(folder.path(&path(TWO))).unwrap();
    index(&folder);
    fs::rename(folder.path("store/archive"), folder.path("aside")).unwrap();
    folder.run("index --root home").ends(0).talks("3 unchanged").talks("archived").talks(TWO).talks("is lost");
    folder.run("archive verify").ends(0).talks("3 copies");
    // Copies that only the other archive has come back with it.
    fs::rename(folder.path("store/archive"), folder.path("another")).unwrap();
    fs::rename(folder.path("aside"), folder.path("store/archive")).unwrap();
    folder.run("index --root home").ends(0);
    folder.run("archive restore 0198aaaa-9").ends(0);
    assert_eq!(folder.read(&path(TWO)), gone);
    // A lost or truncated pack.
    for cut in [true, false] {
        for pack in packs(&folder) {
            let bytes = fs::read(&pack).unwrap();
            if cut { fs::write(&pack, &bytes[..bytes.len() / 3]).unwrap() } else { fs::remove_file(&pack).unwrap() }
        }
        folder.run("index --root home").ends(0).talks("sources that still exist are archived again");
        folder.run("archive verify --repair").ends(0).talks("4 copies").talks("no damage");
    }
    // The same for an archive without an index.
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    packs(&folder).iter().for_each(|pack| fs::remove_file(pack).unwrap());
    folder.run("archive add --root home").ends(0).talks("4 archived again because the copies were lost");
    folder.run("archive verify --repair").ends(0).talks("no damage");
}

#[test]
fn folders_are_remembered() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("more/deep")).unwrap();
    fs::create_dir(folder.path("home")).unwrap();
    folder.write("more/deep/mine.jsonl", NATIVE);
    folder.run("config folder add none").fails("not a folder");
    folder.run("config folder add more").ends(0);
    let listed = folder.run("config folder list").ends(0).text().trim().to_owned();
    assert_eq!(PathBuf::from(listed), fs::canonicalize(folder.path("more")).unwrap());
    folder.run("index --root home").ends(0).talks("1 new");
    folder.run("config folder remove more").ends(0);
    folder.run("config folder remove more").finds_nothing("not an added folder");
    assert_eq!(folder.run("config folder list --json").ends(0).text(), "");
}

#[test]
fn pruning_needs_a_selection_and_a_dry_run_does_nothing() {
    let folder = home();
    folder.run("archive prune").fails("say what to prune");
    folder.run("archive prune --older-than soon").ends(2).talks("90d");
    folder.run("archive prune project:none").finds_nothing("no sessions to prune");
    let log = folder.read("store/archive/log.jsonl");
    let done = folder.run("archive prune --max-count 1 --dry-run");
    done.ends(0).says("0198aaaa-1").says("0198aaaa-9").talks("2 sessions would be pruned");
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
    folder.write(&path(THREE), message_line(THREE, 1, "user", "Something else"));
    let done = folder.run("archive prune --older-than 1d");
    done.ends(0).says("0198aaaa-1").talks("1 session pruned");
    done.talks("kept: 0198aaaa-9")
        .talks("is gone; the archive has the only copy")
        .talks("has changed; the archive has the only copy");
    assert!(folder.path(&path(ONE)).exists());
    assert_eq!(sessions(&folder), 2);
    folder.run("archive restore 0198aaaa-9").ends(0);
    assert!(folder.path(&path(TWO)).exists());
    folder.run("archive prune session:ffff").ends(1).talks("0 sessions pruned");
    folder.run("archive prune session:ffff --force").ends(0).talks("1 session pruned");
    folder.run("archive restore ffff -o x.jsonl").finds_nothing("not in the archive");
    assert_eq!(folder.read(&path(THREE)), message_line(THREE, 1, "user", "Something else").as_bytes());
}

#[test]
fn a_session_that_stays_counts_among_those_that_are_left() {
    let side = format!("home/.claude/projects/-work-app/{ONE}/subagents/agent-a1b2.jsonl");
    let kept = home().read(&path(ONE)).len() + home().read(&side).len();
    for limit in ["--max-count 1".to_owned(), format!("--max-size {kept}")] {
        let folder = home();
        fs::remove_file(folder.path(&path(ONE))).unwrap();
        let done = folder.run(&format!("archive prune {limit}"));
        done.ends(0).talks("kept: 0198aaaa-1").says("0198aaaa-9").says("ffff0000").talks("2 sessions pruned");
        assert_eq!(sessions(&folder), 1);
    }
}

#[test]
fn a_session_without_a_copy_does_not_count_among_those_that_are_left() {
    let folder = home();
    let name = "00000000-0000-4000-8000-000000000001";
    folder.write(&path(name), message_line(name, 0, "user", "Hi"));
    folder.run("index --root home --no-keep").ends(0).talks("1 new");
    folder.run("archive prune --max-count 3").finds_nothing("no sessions to prune");
}

#[test]
fn a_pruned_session_does_not_come_back_until_it_is_unforgotten() {
    let folder = home();
    let before = packs(&folder);
    folder.run("archive prune walrus --force").ends(0).talks("3 sessions pruned");
    assert!(before.iter().all(|pack| !pack.exists()), "{before:?}");
    folder.run("find walrus").ends(1);
    folder.run("index --root home").ends(0).talks("4 pruned earlier");
    folder.run("archive add --root home").ends(0).talks("4 pruned earlier");
    assert_eq!(sessions(&folder), 0);
    // It is neither counted nor reported as unreadable.
    for line in ["usage --root home --json", "usage --root home --json --no-index"] {
        assert_eq!(folder.run(line).json()[0]["unknown_files"], 0, "{line}");
    }
    // Nor after the index is rebuilt.
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    folder.run("index --root home").ends(0).talks("4 pruned earlier");
    assert_eq!(sessions(&folder), 0);
    folder.run("archive unforget 0198").fails("2 pruned sessions match");
    folder.run("archive unforget 5555").finds_nothing("no pruned session has that id");
    folder.run("archive unforget 0198aaaa-1").ends(0).talks(ONE);
    index(&folder);
    assert_eq!(sessions(&folder), 1);
    folder.run("find walrus").ends(0).says("0198aa");
    folder.run("archive unforget 0198aaaa-1").finds_nothing("no pruned session has that id");
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
        folder.run(&format!("archive add {spelled}")).ends(1).talks("not archived: unknown format").talks(spelled);
    }
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files_below(&entry)) } else { found.push(entry) }
    }
    found
}

fn packed(bytes: &[u8], ending: &str) -> Vec<u8> {
    if ending == "zst" {
        return zstd::encode_all(bytes, 3).unwrap();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn nothing_of_a_pruned_home_comes_back_however_its_files_are_renamed_copied_or_compressed() {
    let folder = home();
    folder.write("home/.claude/projects/-work-app/notes.jsonl", NATIVE);
    index(&folder);
    let all = sessions(&folder);
    assert_eq!(all, 4);
    folder.run("archive prune --older-than 1d --force").ends(0).talks("4 sessions pruned");
    for (round, file) in files_below(&folder.path("home")).into_iter().enumerate() {
        let bytes = fs::read(&file).unwrap();
        let uuid = format!("0198bbbb-{round:04}-4222-8333-444455556666");
        for name in ["renamed.jsonl".to_owned(), format!("copy-{round}.jsonl"), format!("{uuid}.jsonl")] {
            fs::write(file.with_file_name(name), &bytes).unwrap();
        }
        for ending in ["gz", "zst"] {
            fs::write(file.with_file_name(format!("{uuid}.jsonl.{ending}")), packed(&bytes, ending)).unwrap();
        }
        fs::remove_file(&file).unwrap();
    }
    for _ in 0..2 {
        folder.run("index --root home").ends(0).talks(" pruned earlier");
        assert_eq!(sessions(&folder), 0);
        folder.run("archive add --root home").ends(0).talks(" pruned earlier");
        folder.run("archive list").finds_nothing("the archive is empty");
        let _ = fs::remove_dir_all(folder.path("store/index"));
    }
}

#[test]
fn a_forgotten_session_does_not_come_back_as_a_part_a_variant_or_a_conversion_of_itself() {
    let folder = home();
    let whole = folder.read(&path(THREE));
    let converted = "home/.codex/sessions/rollout-2026-07-01T00-00-00-converted.jsonl";
    fs::create_dir_all(folder.path("home/.codex/sessions")).unwrap();
    folder.run(&format!("convert {} --to codex -o converted", path(THREE))).ends(0);
    folder.run("archive prune session:ffff").ends(0);
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let windows = String::from_utf8(whole.clone()).unwrap().replace('\n', "\r\n");
    let longer = [whole.clone(), message_line(THREE, 9, "user", "Another walrus").into_bytes()].concat();
    let variants = [("half", whole[..first].to_vec()), ("windows", windows.into_bytes()), ("longer", longer)];
    for (name, bytes) in variants {
        folder.write(&format!("home/.claude/projects/-work-app/{name}.jsonl"), bytes);
    }
    folder.write(converted, folder.read("converted"));
    folder.run("index --root home").ends(0).talks(" pruned earlier");
    assert_eq!(sessions(&folder), 2);
    assert!(!folder.run("archive list").text().contains(THREE));
}

#[test]
fn usage_reports_that_it_leaves_out_a_forgotten_session() {
    let folder = home();
    folder.run("archive prune session:ffff").ends(0);
    for line in ["usage --root home", "usage --root home --no-index", "usage --root home --explain"] {
        folder.run(line).talks("1 file of a pruned session is not counted").talks("steno archive unforget");
    }
    let json = folder.run("usage --root home --json").json();
    assert_eq!(json[0]["forgotten"], 1);
}

#[test]
fn a_forgotten_session_that_continues_is_named_until_it_is_unforgotten() {
    let folder = home();
    folder.run("archive prune session:ffff").ends(0);
    let longer = [folder.read(&path(THREE)), message_line(THREE, 9, "user", "Another walrus").into_bytes()].concat();
    folder.write(&path(THREE), &longer);
    for line in ["index --root home", "archive add --root home"] {
        let done = folder.run(line);
        done.ends(0).talks(&format!("1 pruned session has new events: {THREE}")).talks("steno archive unforget");
    }
    let json = folder.run("index --root home --json").ends(0).json();
    assert_eq!(json[0]["continued"], serde_json::json!([THREE]));
    assert_eq!(sessions(&folder), 2);
    folder.run("archive unforget ffff").ends(0);
    folder.run("index --root home").ends(0).talks("1 new");
    folder.run("find walrus session:ffff").ends(0).says("Another");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe.jsonl")).status().unwrap();
    assert!(made.success());
    folder.run("archive add pipe.jsonl").fails("not a regular file").talks("hint:");
}

#[test]
fn the_index_contains_no_text_of_a_pruned_session() {
    let folder = home();
    let words = "a narwhal that nobody else mentions";
    folder.write(&path(THREE), message_line(THREE, 1, "user", words));
    index(&folder);
    let held = |words: &str| {
        let files = fs::read_dir(folder.path("store/index")).unwrap().map(|entry| entry.unwrap().path());
        let holds = |path: &PathBuf| {
            path.is_file() && fs::read(path).unwrap().windows(words.len()).any(|window| window == words.as_bytes())
        };
        files.into_iter().filter(holds).count()
    };
    assert!(held(words) > 0);
    folder.run("archive prune session:ffff --force").ends(0);
    assert_eq!(held(words), 0);
    folder.run("find narwhal --root home").ends(1);
    folder.run("find walrus --root home").ends(0);
}

#[test]
fn a_log_and_a_pack_that_lost_their_ends_together_are_not_sound() {
    let folder = home();
    for name in ["store/archive/log.jsonl", "store/archive/packs/000001.pack"] {
        let bytes = folder.read(name);
        let lost = if name.ends_with("jsonl") { 30 } else { 1 };
        folder.write(name, &bytes[..bytes.len() - lost]);
    }
    folder.run("archive verify").ends(1).talks("the index refers to a copy that is not in the archive").talks("hint:");
    let json = folder.run("archive verify --json").ends(1).json();
    assert_eq!(json[0]["missing"].as_array().unwrap().len(), 4);
    index(&folder);
    folder.run("archive verify").ends(0);
}
