//! `steno diff`: compares two runs.

use crate::runner::{CHIBI, Folder, NATIVE};

/// The same run up to the result, then a different continuation.
fn other() -> String {
    let answer = r#"{"v":1,"kind":"message","time":"2026-03-02T09:15:00Z","session":"s2","id":"e5","role":"assistant","content":"Done."}"#;
    format!("{}{answer}\n", NATIVE.replace("\"s1\"", "\"s2\"").replace("\"ok\"", "\"one test failed\""))
}

#[test]
fn the_same_run_is_the_same() {
    let folder = Folder::with("a", NATIVE);
    folder.run("diff a a").ends(0).says("equal: 4 steps").says("turns         1").says("4 equal, 0 moved, 0 changed");
    folder.write("b", NATIVE.replace("\"s1\"", "\"s2\""));
    // Another session name does not make another conversation.
    folder.run("diff a b").ends(0).says("* session       s1  s2");
}

#[test]
fn a_comparison_shows_where_two_runs_diverge_and_what_differs() {
    let folder = Folder::with("a", NATIVE);
    folder.write("b", other());
    let done = folder.run("diff a b");
    done.ends(1).says("equal up to step 3 (event 3 of A, event 3 of B)");
    done.says(
        "~ result Bash, event 4 of A, event 4 of B: 2 and 15 characters\n    A  [ok]\n    B  [one test failed]\n",
    );
    done.says("+ assistant, event 5 of B\n    Done.\n");
    done.says("steps: 3 equal, 0 moved, 1 changed, 0 only in A, 1 only in B");
    let brief = folder.run("diff a b --summary");
    brief.ends(1).says("equal up to step 3");
    assert!(!brief.text().contains("one test failed"));
}

#[test]
fn a_result_that_failed_is_another_result() {
    let folder = Folder::with("a", NATIVE);
    let failed = NATIVE.replace("\"error\":false", "\"error\":true");
    assert_ne!(failed, NATIVE);
    folder.write("b", failed);
    let done = folder.run("diff a b");
    done.ends(1).says("1 changed").says("    A  ok\n    B  failed\n");
    let lines = folder.run("diff a b --json").ends(1).json();
    let changed = lines.iter().find(|line| line["change"] == "changed").unwrap();
    assert_eq!((&changed["a"]["failed"], &changed["b"]["failed"]), (&false.into(), &true.into()));
}

#[test]
fn json_has_the_same_comparison() {
    let folder = Folder::with("a", NATIVE);
    folder.write("b", other());
    let lines = folder.run("diff a b --json").ends(1).json();
    let session = lines.iter().find(|line| line["fact"] == "session").unwrap();
    assert_eq!((&session["a"], &session["differs"]), (&"s1".into(), &true.into()));
    let changes: Vec<&str> = lines.iter().filter_map(|line| line["change"].as_str()).collect();
    assert_eq!(changes, ["same", "changed", "only_b"]);
    let changed = lines.iter().find(|line| line["change"] == "changed").unwrap();
    assert_eq!((&changed["a"]["text"], &changed["b"]["event"]), (&"ok".into(), &4.into()));
    let summary = lines.last().unwrap();
    assert_eq!((&summary["equal"], &summary["same_up_to"]["steps"]), (&false.into(), &3.into()));
}

#[test]
fn a_converted_copy_is_the_same() {
    let folder = Folder::with("a", NATIVE);
    folder.write("c", CHIBI);
    for (source, target) in [("a", "claude-code"), ("a", "codex"), ("a", "chibi"), ("c", "claude-code"), ("c", "steno")]
    {
        folder.run(&format!("convert {source} --to {target} -o {source}-{target}"));
        let done = folder.run(&format!("diff {source} {source}-{target}"));
        done.ends(0).says(" 0 moved, 0 changed, 0 only in A, 0 only in B");
    }
    // A kind that a format lacks is reported and not compared.
    folder.run("diff a a-chibi").says("not compared: 1 step of kind thinking in A; B has none");
}

#[test]
fn moved_steps_are_distinguished_from_changed_ones() {
    let lines: Vec<&str> = NATIVE.lines().collect();
    let folder = Folder::with("a", NATIVE);
    folder.write("b", [lines[0], lines[2], lines[3], lines[1]].join("\n"));
    let done = folder.run("diff a b");
    done.ends(1).says("> thinking, event 2 of A, event 4 of B: moved\n    Run it first.\n");
    done.says("steps: 3 equal, 1 moved, 0 changed, 0 only in A, 0 only in B");
}

#[test]
fn a_failed_comparison_is_explained() {
    let folder = Folder::with("a", NATIVE);
    folder.run("diff a none.jsonl").fails("no such file");
    folder.write("empty", "");
    folder.run("diff a empty").fails("the file is empty");
    folder.write("facts", "{\"v\":1,\"kind\":\"fact\",\"name\":\"settings\"}\n");
    folder.run("diff facts facts").ends(0).says("both are empty");
    folder.run("diff a facts").ends(1).says("different from the first step");
}

#[test]
fn a_tools_input_is_equal_as_text_and_below_a_key() {
    let run = r#"{"v":1,"kind":"message","session":"s1","id":"e1","role":"user","content":"Mend it."}
{"v":1,"kind":"tool_call","session":"s1","id":"e2","name":"apply_patch","call":"c1","input_text":"*** Begin Patch\n*** End Patch"}
{"v":1,"kind":"tool_result","session":"s1","id":"e3","call":"c1","content":"ok"}
"#;
    let folder = Folder::with("a.jsonl", run);
    folder.run("convert a.jsonl --to openai-chat -o b.jsonl").ends(0);
    assert!(std::fs::read_to_string(folder.path("b.jsonl")).unwrap().contains(r#"{\"input\":\"*** Begin"#));
    folder.run("diff a.jsonl b.jsonl").ends(0).says("3 equal, 0 moved, 0 changed");
}

#[test]
fn a_copy_that_lost_every_call_or_every_failure_is_not_the_same() {
    let folder = Folder::with("a.jsonl", NATIVE.replace("\"error\":false", "\"error\":true"));
    assert!(folder.run("convert a.jsonl --to codex -o b.jsonl").code < 2);
    let whole = String::from_utf8(folder.read("b.jsonl")).unwrap();
    let without = |words: &[&str]| {
        let lines = whole.lines().filter(|line| !words.iter().any(|words| line.contains(words)));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    folder.write("c.jsonl", without(&["\"function_call"]));
    folder.run("diff a.jsonl c.jsonl").ends(1);
    folder.write("d.jsonl", without(&["\"function_call_output\""]));
    folder.run("diff a.jsonl d.jsonl").ends(1);
    // Within one format everything can be compared.
    folder.write("e.jsonl", NATIVE.replace("\"error\":false", "\"error\":true"));
    folder.write("f.jsonl", NATIVE);
    folder.run("diff e.jsonl f.jsonl").ends(1);
}
