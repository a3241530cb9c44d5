//! `steno trim`.

use std::fs;
use std::io::Write;

use crate::runner::{Folder, demo};

/// Two old turns with a long result each, and a new one.
fn chat() -> String {
    let result = |id: &str, text: &str| {
        format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"{}\"}}\n", text.repeat(400))
    };
    let call = |id: &str| {
        format!(
            "{{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{{\"id\":\"{id}\",\"function\":{{\"name\":\"read\",\"arguments\":\"{{}}\"}},\"type\":\"function\"}}]}}\n"
        )
    };
    let message_line = |role: &str, text: &str| format!("{{\"role\":\"{role}\", \"content\":\"{text}\"}}\n");
    [
        message_line("system", "Be brief."),
        message_line("user", "one"),
        call("c1"),
        result("c1", "a"),
        message_line("assistant", "done 1"),
        message_line("user", "two"),
        call("c2"),
        result("c2", "b"),
        message_line("assistant", "done 2"),
        message_line("user", "three"),
    ]
    .concat()
}

#[test]
fn old_results_are_replaced_first_and_everything_else_is_copied() {
    let folder = Folder::with("chat.jsonl", chat());
    folder
        .run("trim chat.jsonl --max-tokens 130 -o out.jsonl")
        .ends(0)
        .talks("1 event replaced by ...snip...: 97 tokens");
    let (before, after) = (chat(), String::from_utf8(folder.read("out.jsonl")).unwrap());
    let changed: Vec<(&str, &str)> = before.lines().zip(after.lines()).filter(|(a, b)| a != b).collect();
    assert_eq!(changed.len(), 1);
    assert!(changed[0].1.contains("\"content\":\"...snip...\""), "{changed:?}");
    assert_eq!(folder.read("chat.jsonl"), before.as_bytes());
    folder.run("check out.jsonl").ends(0);
}

#[test]
fn whole_turns_are_removed_if_results_are_not_enough() {
    let folder = Folder::with("chat.jsonl", chat());
    let done = folder.run("trim chat.jsonl --max-tokens 8");
    assert_eq!(done.ends(0).text().lines().count(), 2);
    assert!(done.text().contains("Be brief.") && done.text().contains("three"));
    done.talks("removed with whole turns");
}

#[test]
fn a_target_that_cannot_be_reached_is_reported() {
    let folder = Folder::with("chat.jsonl", chat());
    folder.run("trim chat.jsonl --max-tokens 1 -o out.jsonl").ends(1).talks("cannot go below");
    let kept = folder.run("trim chat.jsonl --max-tokens 1 --keep-newest -o kept.jsonl");
    kept.ends(1).talks("hint: without --keep-newest");
    assert_eq!(folder.read("out.jsonl").iter().filter(|byte| **byte == b'\n').count(), 2);
    folder.run("trim out.jsonl --max-tokens 1 --dry-run").ends(1).talks("nothing can be removed");
    folder.run("trim chat.jsonl --max-tokens 1 --dry-run").ends(1).says("message removed, 1 token\n");
}

#[test]
fn a_dry_run_reports_what_it_would_remove_and_writes_nothing() {
    let folder = Folder::with("chat.jsonl", chat());
    folder
        .run("trim chat.jsonl --max-tokens 130 --dry-run")
        .ends(0)
        .says("event 4 (line 4): tool_result snipped, 97 tokens");
    assert_eq!(folder.names(), ["chat.jsonl"]);
    let report = &folder.run("trim chat.jsonl --max-tokens 130 --dry-run --json").ends(0).json()[0];
    assert_eq!(report["rule"], "pairs");
    assert_eq!(report["reached"], true);
    assert_eq!(report["estimate"], true);
    assert_eq!(report["removed"][0]["event"], 4);
    assert_eq!((&report["removed"][0]["action"], &report["dry_run"]), (&"snipped".into(), &true.into()));
    assert!(report["after"].as_u64().unwrap() <= 130);
}

#[test]
fn an_edit_in_place_can_be_undone_byte_for_byte_and_keeps_appended_lines() {
    let folder = Folder::with("chat.jsonl", chat());
    folder.run("trim chat.jsonl --max-tokens 50 --in-place").ends(0).talks("steno undo chat.jsonl");
    assert_ne!(folder.read("chat.jsonl"), chat().as_bytes());
    assert_eq!(folder.names(), ["chat.jsonl", "chat.jsonl.undo"]);
    folder.run("undo chat.jsonl").ends(0).talks("byte for byte");
    assert_eq!(folder.read("chat.jsonl"), chat().as_bytes());
    assert_eq!(folder.names(), ["chat.jsonl"]);

    folder.run("trim chat.jsonl --max-tokens 50 --in-place").ends(0);
    let line = "{\"role\":\"assistant\",\"content\":\"later\"}\n";
    fs::File::options().append(true).open(folder.path("chat.jsonl")).unwrap().write_all(line.as_bytes()).unwrap();
    folder.run("undo chat.jsonl").ends(0).talks("appended since");
    assert_eq!(folder.read("chat.jsonl"), (chat() + line).as_bytes());
    folder.run("undo chat.jsonl").finds_nothing("nothing to undo");
    folder.run("undo chat.jsonl --json").finds_nothing("nothing to undo").says("\"undone\":null");
    folder.run("undo nosuch.jsonl").fails("no such file");
}

#[test]
fn a_file_that_was_changed_since_is_not_brought_back() {
    let folder = Folder::with("chat.jsonl", chat());
    folder.run("trim chat.jsonl --max-tokens 50 -o out.jsonl --reversible").ends(0);
    folder.write("out.jsonl", "{\"role\":\"user\",\"content\":\"mine\"}\n");
    folder.run("undo out.jsonl").fails("the file changed after the edit");
    assert_eq!(folder.names(), ["chat.jsonl", "out.jsonl", "out.jsonl.undo"]);
}

#[test]
fn the_output_can_be_undone_into_the_input() {
    let folder = Folder::with("chat.jsonl", chat());
    folder
        .run("trim chat.jsonl --max-tokens 50 -o out.jsonl --reversible --json")
        .ends(0)
        .says("\"undo\":\"out.jsonl.undo\"");
    folder.run("undo out.jsonl --json").ends(0).says("\"undone\":\"trim\"");
    assert_eq!(folder.read("out.jsonl"), chat().as_bytes());
}

#[test]
fn nothing_to_do_leaves_the_file_alone() {
    let folder = Folder::with("chat.jsonl", chat());
    folder.run("trim chat.jsonl --max-tokens 5000 --in-place").ends(0).talks("already short enough");
    assert_eq!(folder.names(), ["chat.jsonl"]);
}

#[test]
fn cycod_trims_as_cycod_does() {
    let folder = Folder::with("chat.jsonl", chat());
    let done = folder.run("trim chat.jsonl --rule cycod --max-tokens 100 --max-tool-tokens 20");
    // Both results precede the last answer, and nothing else may be replaced.
    assert_eq!(done.ends(1).text().matches("\"content\":\"...snip...\"").count(), 2);
    assert_eq!(done.text().lines().count(), 10);
    let done = folder.run("trim chat.jsonl --rule cycod --max-tool-tokens 20");
    assert_eq!(done.ends(0).text().matches(&("a".repeat(70) + "...snip...")).count(), 1);
}

#[test]
fn a_vocabulary_counts() {
    let folder = Folder::with("chat.jsonl", chat());
    let report = &folder.run("trim chat.jsonl --max-tokens 60 --tokenizer gpt-4o --dry-run --json").json()[0];
    assert_eq!(report["tokenizer"], "o200k");
    assert_eq!(report["reached"], true);
    // A model name makes the count exact; a file that states another model takes precedence.
    assert_eq!(report["estimate"], false);
    folder.run("trim chat.jsonl --max-tokens 60 --tokenizer gpt-4o").ends(0).talks("o200k, exact for the texts");
    folder.run("trim chat.jsonl --max-tokens 60 --tokenizer o200k").ends(0).talks("o200k, an estimate");
    let other = r#"{"v":1,"kind":"message","role":"assistant","model":"claude-x","content":"hi"}"#;
    folder.write("other.jsonl", format!("{other}\n"));
    folder.run("trim other.jsonl --max-tokens 60 --tokenizer gpt-4o").ends(0).talks("o200k, an estimate");
    folder.run("trim chat.jsonl --max-tokens 60 --tokenizer nobody").fails("unknown tokenizer: nobody");
    folder.run("trim chat.jsonl --rule cycod --tokenizer o200k").fails("has its own tokenizer");
}

#[test]
fn contradictory_options_are_refused() {
    let folder = Folder::with("chat.jsonl", chat());
    folder.run("trim chat.jsonl").fails("no token limit");
    folder.run("trim chat.jsonl --max-tokens 50 --reversible").fails("--reversible needs an output file");
    folder.run("trim chat.jsonl --max-tokens 50 -o chat.jsonl").fails("is the input itself").talks("--in-place");
    folder
        .run_with("trim - --max-tokens 50 --in-place", chat().as_bytes())
        .fails("cannot edit standard input in place");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(chat().as_bytes()).unwrap();
    folder.write("chat.gz", packed.finish().unwrap());
    folder.run("trim chat.gz --max-tokens 50 --in-place").fails("cannot edit a compressed file in place");
    folder.run("trim chat.gz --max-tokens 50 -o plain.jsonl").ends(0);
    assert_eq!(folder.run("trim missing.jsonl --max-tokens 50").code, 2);
}

#[test]
fn every_format_is_trimmed_and_cut_in_place_and_brought_back() {
    for format in stenograph::formats::FORMATS {
        let info = format.info();
        let bytes = fs::read(demo(info.name)).unwrap();
        let folder = Folder::with("demo", &bytes);
        if info.is_never_edited {
            folder.run("trim demo --max-tokens 10 --in-place").fails("cannot be edited");
            folder.run("cut demo --turns 1 --in-place").fails("cannot be edited");
            assert_eq!(folder.read("demo"), bytes, "{}", info.name);
            continue;
        }
        let whole =
            folder.run("trim demo --max-tokens 1000000 --dry-run --json").ends(0).json()[0]["before"].as_u64().unwrap();
        for line in
            [format!("trim demo --max-tokens {} --in-place", whole / 2 + 1), "cut demo --turns 1 --in-place".into()]
        {
            let done = folder.run(&line);
            // A demonstration may have one turn and nothing else.
            let is_refused = done.code == 2 && done.talk.contains("this would remove everything");
            assert!(done.code < 2 || is_refused, "{}: {line}: {}", info.name, done.talk);
            let notes = |folder: &Folder| {
                folder.run(&format!("check demo --json --from {}", info.name)).json()[0]["notes_count"].as_u64()
            };
            let after = notes(&folder);
            if folder.names().len() > 1 {
                folder.run("undo demo").ends(0);
            }
            assert_eq!(folder.read("demo"), bytes, "{}: {line}", info.name);
            // What was removed may have had notes of its own.
            assert!(after.is_some() && after <= notes(&folder), "{}: {line}", info.name);
            assert_eq!(folder.names(), ["demo"]);
        }
    }
}
