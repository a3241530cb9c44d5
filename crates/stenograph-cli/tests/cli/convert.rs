//! `steno convert`.

use stenograph::Registry;

use crate::runner::{CHIBI, Folder, NATIVE};

#[test]
fn data_goes_to_standard_output_and_the_losses_to_standard_error() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("convert a --to chibi");
    assert_eq!(done.ends(0).json().len(), 3);
    done.talks("steno to chibi: 4 events").talks("thinking     0 of 1 kept, 1 dropped");
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn a_named_output_is_written_whole_and_the_input_is_untouched() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("convert a --to chibi -o out");
    assert_eq!(done.ends(0).text(), "");
    assert_eq!(folder.names(), ["a", "out"]);
    assert_eq!(folder.read("a"), NATIVE.as_bytes());
    assert_eq!(folder.run("convert a --to chibi").out, folder.read("out"));
    folder.run("convert a --to steno -o out --force").ends(0);
    assert_eq!(folder.read("out"), NATIVE.as_bytes());
}

#[test]
fn json_reports_everything_where_standard_output_is_free() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("convert a --to chibi -o out --json");
    let report = &done.ends(0).json()[0];
    assert_eq!((&report["from"], &report["to"], &report["way"]), (&"steno".into(), &"chibi".into(), &"written".into()));
    assert_eq!(report["lossy"], true);
    assert_eq!(report["report"]["read"]["thinking"], 1);
    assert_eq!(done.talk, "");
    let done = folder.run("convert a --to chibi --json");
    let report: serde_json::Value = serde_json::from_str(&done.ends(0).talk).unwrap();
    assert_eq!(report["lossy"], true);
    assert_eq!(done.json().len(), 3);
}

#[test]
fn strict_writes_nothing_when_something_is_lost() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("convert a --to chibi --strict -o out");
    done.ends(2).talks("error: the conversion would lose content").talks("hint: ").talks("1 dropped");
    assert_eq!(folder.names(), ["a"]);
    let done = folder.run("convert a --to chibi --strict");
    assert_eq!(done.ends(2).text(), "");
    folder.write("b", CHIBI);
    folder.run("convert b --to steno --strict -o out").ends(0);
    assert_eq!(folder.run("convert b --to steno --strict").ends(0).out, folder.read("out"));
}

#[test]
fn strict_leaves_an_older_output_as_it_was() {
    let folder = Folder::with("a", NATIVE);
    folder.write("out", "older");
    folder.run("convert a --to chibi --strict -o out").ends(2);
    assert_eq!(folder.read("out"), b"older");
    assert_eq!(folder.names(), ["a", "out"]);
}

#[test]
fn a_carried_source_is_restored_byte_for_byte() {
    let odd = format!("\u{feff}{}\r\n\n{{\"v\":1, \"kind\" :\"stop\"}}", NATIVE.trim_end());
    for text in [NATIVE, odd.as_str()] {
        let folder = Folder::with("a", text);
        folder
            .run("convert a --to chibi --carry -o b --from steno")
            .ends(0)
            .talks("the source is embedded: converting back to steno");
        folder.run("convert b --to steno -o c").ends(0).talks("from the source embedded in the chibi file");
        assert_eq!(folder.read("c"), text.as_bytes());
        let changed = String::from_utf8(folder.read("b")).unwrap().replace("Fix the test.", "Mend the test.");
        folder.write("edited", changed.split_once("\"steno\":").map_or("", |_| changed.as_str()));
        folder.run("convert edited --to steno -o d").ends(0).talks("1 record edited since");
    }
}

#[test]
fn every_format_carries_every_other_or_reports_that_it_cannot() {
    let folder = Folder::with("a", NATIVE);
    for format in Registry::built_in().targets() {
        let info = format.info();
        let done = folder.run(&format!("convert a --to {} --carry -o carried --force", info.name));
        if !info.traits.carries {
            done.fails("cannot embed a source");
            continue;
        }
        if done.code == 2 {
            done.fails("the target has no place for any event of this source");
            continue;
        }
        done.ends(0);
        folder.run("convert carried --to steno -o back --force").ends(0);
        assert_eq!(folder.read("back"), NATIVE.as_bytes(), "{}", info.name);
    }
}

#[test]
fn the_same_format_is_a_copy() {
    let odd = format!("{NATIVE}\r\n junk \n");
    let folder = Folder::with("a", &odd);
    let done = folder.run("convert a --to steno");
    done.ends(0).talks("already steno: copied byte for byte").talks("1 note about the source: run steno check a");
    assert_eq!(done.out, odd.as_bytes());
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = Folder::new();
    let done = folder.run_with("convert - --to chibi -o -", NATIVE.as_bytes());
    assert_eq!(done.ends(0).json().len(), 3);
    assert!(folder.names().is_empty());
}

#[test]
fn a_missing_piece_is_reported() {
    let folder = Folder::with("a", NATIVE);
    folder.run("convert a --to chibi --carry -o b").ends(0);
    let carried = String::from_utf8(folder.read("b")).unwrap();
    let without: Vec<&str> = carried.lines().filter(|line| !line.contains("cargo test")).collect();
    folder.write("c", without.join("\n"));
    folder.run("convert c --to steno").ends(0).talks("1 piece of the embedded source is missing");
    folder.run("convert c --to steno --strict -o d").ends(2);
    assert_eq!(folder.names(), ["a", "b", "c"]);
}

#[cfg(unix)]
#[test]
fn the_input_is_never_written_over() {
    let folder = Folder::with("a", NATIVE);
    std::fs::hard_link(folder.path("a"), folder.path("hard")).unwrap();
    std::os::unix::fs::symlink("a", folder.path("soft")).unwrap();
    for (input, output) in [("a", "a"), ("a", "./a"), ("a", "hard"), ("a", "soft"), ("soft", "a"), ("hard", "soft")] {
        let done = folder.run(&format!("convert {input} --to chibi -o {output}"));
        done.fails("is the input itself");
    }
    let path = folder.path("a");
    let append = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let ended = folder.command("convert a --to chibi").stdout(append).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let input = std::fs::File::open(&path).unwrap();
    let ended = folder.command("convert - --to chibi -o soft").stdin(input).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(folder.read("a"), NATIVE.as_bytes());
    assert_eq!(folder.names(), ["a", "hard", "soft"]);
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    let folder = Folder::with("a", NATIVE);
    folder.run("convert a --to chibi -o /dev/null").ends(0);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    assert_eq!(folder.run("convert a --to chibi -o /dev/stdout").ends(0).json().len(), 3);
}

#[test]
fn an_output_that_cannot_be_leaves_nothing() {
    let folder = Folder::with("a", NATIVE);
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.run("convert a --to chibi -o folder").fails("folder: is a folder");
    folder.run("convert a --to chibi -o none/out").fails("none/out: the output folder does not exist");
    folder.run("convert missing --to chibi -o out").fails("missing: no such file");
    folder.run("convert folder --to chibi -o out").fails("folder: is a folder");
    folder.write("unknown", "hello\n");
    folder.run("convert unknown --to chibi -o out").fails("unknown format");
    assert_eq!(folder.names(), ["a", "folder", "unknown"]);
}

#[test]
fn strict_refuses_to_join_texts_that_stood_apart() {
    let line = r#"{"v":1,"kind":"message","role":"user","content":[{"text":"AB"},{"text":"CD"}]}"#;
    let folder = Folder::with("m.steno.jsonl", format!("{line}\n"));
    folder.run("convert m.steno.jsonl --to chibi --strict -o out").ends(2).talks("changed content ×1");
    assert_eq!(folder.names(), ["m.steno.jsonl"]);
    let done = folder.run("convert m.steno.jsonl --to chibi --json -o out");
    assert_eq!(done.ends(0).json()[0]["lossy"], true);
}

#[test]
fn a_web_search_of_codex_is_counted_and_has_a_result_where_the_target_demands_one() {
    let record = |second: u32, kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"2026-01-02T03:04:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let session = r#"{"id":"0198aaaa-1111-4222-8333-444455556666","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work/app","cli_version":"0.166.0"}"#;
    let question = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"find the walrus"}]}"#;
    let search = |id: &str| {
        format!(
            r#"{{"type":"web_search_call","id":"{id}","status":"completed","action":{{"type":"search","query":"{id}"}}}}"#
        )
    };
    let answer = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"On the ice."}]}"#;
    let source = record(5, "session_meta", session)
        + &record(6, "response_item", question)
        + &record(7, "response_item", &search("ws_1"))
        + &record(8, "response_item", &search("ws_2"))
        + &record(9, "response_item", answer);
    let folder = Folder::with("codex.jsonl", source);
    folder.run("convert codex.jsonl --to claude-code -o claude.jsonl").ends(0).talks("2 invented");
    let text = String::from_utf8(folder.read("claude.jsonl")).unwrap();
    let blocks = text.lines().flat_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["message"]["content"].as_array().cloned().unwrap_or_default()
    });
    let of = |kind: &str, id: &str| -> Vec<String> {
        let of_kind = blocks.clone().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[id].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("tool_use", "id"), ["ws_1", "ws_2"]);
    assert_eq!(of("tool_result", "tool_use_id"), ["ws_1", "ws_2"]);
    assert_eq!(folder.run("usage codex.jsonl --json").json()[0]["total"]["searches"], 2);
}

#[test]
fn carrying_a_carrying_source_promises_only_what_it_restores() {
    let folder = Folder::with("a", NATIVE);
    folder.run("convert a --to chibi --carry -o b").ends(0);
    let done = folder.run("convert b --to steno --carry -o c");
    done.ends(0).talks("steno restored").talks("nothing is embedded: the output is the steno source itself");
    assert_eq!(folder.read("c"), NATIVE.as_bytes());
    let done = folder.run("convert b --to codex --carry -o d");
    done.ends(0)
        .talks("the steno source embedded in the chibi file is embedded here too: converting to steno restores it");
    folder.run("convert d --to steno -o e").ends(0);
    assert_eq!(folder.read("e"), NATIVE.as_bytes());
    assert_eq!(folder.run("convert d --to leslie -o f --json").ends(0).json()[0].get("carries"), None);
    assert_eq!(folder.run("convert b --to codex --carry -o g --json").ends(0).json()[0]["carries"], "steno");
}

/// In a native stream each part of a record is a separate line, and carries the bytes that follow it.
#[test]
fn bytes_after_the_last_record_survive_two_conversions() {
    let folder = Folder::new();
    let call = r#"{"role":"assistant","content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"Bash","arguments":"{}"}}]}"#;
    let source = format!("{{\"role\":\"user\",\"content\":\"ask\"}}\n{call}\r\n\n\n");
    folder.write("a.jsonl", &source);
    folder.run("convert a.jsonl --to steno --carry -o b.steno.jsonl");
    for to in ["codex", "claude-code", "chibi", "steno"] {
        folder.run(&format!("convert b.steno.jsonl --to {to} --carry -o c-{to}.jsonl"));
        folder.run(&format!("convert c-{to}.jsonl --to openai-chat -o d-{to}.jsonl")).ends(0);
        assert_eq!(String::from_utf8_lossy(&folder.read(&format!("d-{to}.jsonl"))), source, "{to}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_not_reported_as_done() {
    let folder = Folder::with("a", NATIVE);
    for line in ["convert a --to steno", "convert a --to steno --strict"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = folder.command(line).stdout(full).output().unwrap();
        let talk = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && talk.starts_with("error: standard output"), "{line}: {talk}");
    }
}
