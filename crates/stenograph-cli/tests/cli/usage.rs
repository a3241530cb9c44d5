//! `steno usage`: counting, grouping and output, and a comparison with an independent count.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::runner::Folder;

const MODEL: &str = "claude-sonnet-4-5-20250929";

/// A model call of session `s`, in one agent's format.
fn call(id: &str, time: &str, model: &str, usage: &Value) -> String {
    json!({"type": "assistant", "uuid": format!("uuid-of-the-record-{id}"), "sessionId": "walrus-session", "timestamp": time,
        "cwd": "/work/app", "gitBranch": "main", "requestId": format!("req_{id}"),
        "message": {"id": format!("msg_{id}"), "model": model, "role": "assistant", "content": [], "usage": usage}})
    .to_string()
        + "\n"
}

fn took(input: u64, output: u64) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3})
}

/// A home with two calls, late on one day and early on the next.
fn home() -> Folder {
    let folder = Folder::new();
    put(
        &folder,
        "walrus-session",
        &(call("1", "2026-01-31T23:30:00Z", MODEL, &took(10, 20))
            + &call("2", "2026-02-01T05:00:00Z", MODEL, &took(30, 40))),
    );
    folder
}

fn put(folder: &Folder, session: &str, text: &str) {
    let projects = "home/.claude/projects/-work-app";
    fs::create_dir_all(folder.path(projects)).unwrap();
    folder.write(&format!("{projects}/{session}.jsonl"), text);
}

#[track_caller]
fn usage(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("usage --root home --json {line}")).ends(0).json().remove(0)
}

fn keys(json: &Value) -> Vec<&str> {
    json["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap_or("-")).collect()
}

#[test]
fn two_groupings_are_nested() {
    let folder = home();
    let json = usage(&folder, "--timezone UTC --by project,day");
    assert_eq!((&json["by"], &json["then_by"]), (&"project".into(), &"day".into()));
    let rows: Vec<(&Value, &Value)> =
        json["rows"].as_array().unwrap().iter().map(|row| (&row["project"], &row["day"])).collect();
    assert_eq!(rows, [(&"app".into(), &"2026-01-31".into()), (&"app".into(), &"2026-02-01".into())]);
    let csv = folder.run("usage --root home --timezone UTC --by model,day --csv");
    assert!(csv.ends(0).text().starts_with("model,day,calls,"), "{}", csv.text());
    assert!(csv.text().lines().nth(1).unwrap().starts_with(&format!("{MODEL},2026-01-31,")), "{}", csv.text());
    folder.run("usage --root home --timezone UTC --by day,model").ends(0).says("DAY         MODEL");
    folder.run("usage --root home --by day,day").fails("--by takes one or two different names");
    folder.run("usage --root home --watch").fails("--watch needs a terminal");
}

#[test]
fn on_a_terminal_groups_have_bars_and_a_watch_ends_with_a_signal() {
    let folder = home();
    for line in ["usage --root home --timezone UTC", "usage --root home --by model", "usage --root home --by model,day"]
    {
        if let Some(done) = crate::replay::watched(&folder, line, &serde_json::json!([["see", "total"]])) {
            let output = done.output();
            assert!(output.contains('\u{2588}') && output.contains("TOKENS"), "{output}");
            assert!(output.lines().all(|line| line.trim_end().chars().count() <= 80), "{output}");
        }
    }
    let steps = serde_json::json!([["see", "total"], ["signal", "INT"]]);
    if let Some(done) = crate::replay::watched(&folder, "usage --root home --watch", &steps) {
        done.ends(0);
    }
}

#[test]
fn calls_are_grouped_as_requested() {
    let folder = home();
    let by = |by: &str| {
        let json = usage(&folder, &format!("--timezone UTC --by {by}"));
        assert_eq!(json["by"], by);
        for row in json["rows"].as_array().unwrap() {
            assert_eq!(row["key"], row[by]);
        }
        keys(&json).join(" ")
    };
    assert_eq!(by("day"), "2026-01-31 2026-02-01");
    assert_eq!(by("week"), "2026-01-26");
    assert_eq!(by("month"), "2026-01 2026-02");
    assert_eq!(by("hour-block"), "2026-01-31 23:00 2026-02-01 05:00");
    assert_eq!(by("session"), "walrus-session");
    assert_eq!(by("project"), "app");
    assert_eq!(by("model"), MODEL);
    assert_eq!(by("agent"), "claude-code");
    assert_eq!(by("branch"), "main");
    assert_eq!(by("tool"), "-");
    assert_eq!(by("subagent"), "-");
    folder.run("usage --root home --by moon").ends(2).talks("invalid value");
}

#[test]
fn json_names_every_number_in_rows_and_in_the_total() {
    let folder = home();
    let json = usage(&folder, "--by model");
    for row in [&json["rows"][0], &json["total"]] {
        let numbers = ["input", "output", "cache_write", "cache_read", "calls"].map(|name| row[name].as_u64().unwrap());
        assert_eq!(numbers, [40, 60, 6, 14, 2]);
        // 40 * 3 + 60 * 15 + 6 * 3.75 + 14 * 0.3 dollars for a million tokens.
        assert_eq!(row["cost"].to_string(), "0.0010467");
    }
    let csv = folder.run("usage --root home --by model --csv");
    let lines: Vec<&str> = csv.ends(0).text().lines().collect();
    assert_eq!(lines[0].split(',').take(4).collect::<Vec<_>>(), ["model", "calls", "input", "output"]);
    assert_eq!(lines[1], format!("{MODEL},2,40,60,6,0,14,0,0,0,0.0010467,0,,{MODEL}"));
    assert_eq!(lines.len(), 2);
    folder.run("usage --root home --csv --json").ends(2);
    folder.run("usage --root home --by model").ends(0).says("CACHE WRITE").says("total");
}

#[test]
fn days_follow_the_local_time_zone_and_the_last_one_is_included() {
    let folder = home();
    let calls = |line: &str| usage(&folder, line)["total"]["calls"].as_u64().unwrap();
    assert_eq!(keys(&usage(&folder, "--timezone Europe/Berlin")), ["2026-02-01"]);
    assert_eq!(keys(&usage(&folder, "--timezone America/Los_Angeles")), ["2026-01-31"]);
    assert_eq!(calls("--timezone UTC --until 2026-01-31"), 1);
    assert_eq!(calls("--timezone UTC --until 2026-01"), 1);
    assert_eq!(calls("--timezone UTC --until 2026"), 2);
    assert_eq!(calls("--timezone UTC --since 2026-02-01"), 1);
    assert_eq!(calls("--timezone UTC --since 2026-01-31 --until 2026-02-01"), 2);
    assert_eq!(calls("--timezone Europe/Berlin --since 2026-02-01 --until 2026-02-01"), 2);
    assert_eq!(calls("--since 2026-01-31T23:30:00Z --until 2026-01-31T23:30:01Z"), 1);
    folder.run("usage --root home --timezone UTC --until 2026-01-30").finds_nothing("no calls match");
    folder.run("usage --root home --since soon").fails("soon: not a time");
    folder.run("usage --root home --timezone Mars/Olympus").ends(2).talks("unknown time zone");
}

#[test]
fn a_model_without_a_price_is_reported_and_never_free() {
    let folder = home();
    folder.run("usage --root home --strict").ends(0);
    put(&folder, "other", &call("3", "2026-02-01T06:00:00Z", "walrus-9", &took(1, 1)));
    let json = usage(&folder, "--by model");
    let row = &json["rows"].as_array().unwrap().iter().find(|row| row["key"] == "walrus-9").unwrap().clone();
    assert_eq!((&row["cost"], &row["unpriced_calls"]), (&Value::Null, &1.into()));
    assert_eq!((&json["total"]["unpriced_calls"], &json["unpriced"][0]["model"]), (&1.into(), &"walrus-9".into()));
    let table = folder.run("usage --root home --by model");
    table.ends(0).says("no price").says("+?").talks("walrus-9: no price");
    assert!(!table.text().lines().any(|line| line.contains("walrus-9") && line.contains("$0")), "{}", table.text());
    folder.run("usage --root home --strict").ends(1).talks("walrus-9");
    folder.run("usage --root home --strict --json").ends(1);
    folder.run("usage --root home --strict --model sonnet").ends(0);
}

#[test]
fn explain_states_what_was_merged_and_left_out_and_where() {
    let folder = home();
    let copy = call("1", "2026-01-31T23:30:00Z", MODEL, &took(10, 20)).replace("walrus-session", "seal-session");
    let again = call("4", "2026-02-01T07:00:00Z", MODEL, &took(1, 2));
    let made_up = call("5", "2026-02-01T07:00:00Z", "<synthetic>", &took(1, 2));
    put(&folder, "seal-session", &(copy + &again + &again + &made_up));
    let json = usage(&folder, "--explain");
    let decisions: Vec<(&str, u64)> = json["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["reason"].as_str().unwrap(), one["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(decisions, [("streamed", 1), ("copied", 1), ("synthetic", 1)]);
    let example = &json["decisions"][0]["examples"][0];
    assert!(example["file"].as_str().unwrap().ends_with("seal-session.jsonl"));
    assert_eq!(example["line"], 3);
    folder.run("usage --root home --explain").ends(0).says("3 rows in the ledger").says("seal-session.jsonl:4");
}

#[test]
fn where_nothing_is_nothing_is_counted() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    let done = folder.run("usage --root home");
    done.finds_nothing("no model calls found");
    assert!(done.out.is_empty());
    folder.run("usage --root nowhere").fails("not a folder");
    folder.run("usage nowhere.jsonl").fails("nowhere.jsonl");
    folder.write("empty.jsonl", "");
    folder.run("usage empty.jsonl").finds_nothing("contains no token counts");
    folder.write("lines.jsonl", "\n\n\n\n");
    folder.run("usage lines.jsonl").finds_nothing("contains no token counts");
}

#[test]
fn files_and_folders_can_be_named_and_nothing_else_counts() {
    let folder = home();
    fs::create_dir_all(folder.path("other")).unwrap();
    folder.write("other/x.jsonl", call("6", "2026-01-01T00:00:00Z", MODEL, &took(1, 1)));
    folder.write("y.jsonl", call("7", "2026-01-01T00:00:00Z", MODEL, &took(1, 1)));
    folder.run("index --root home").ends(0);
    let calls =
        |line: &str| folder.run(&format!("usage --json {line}")).ends(0).json()[0]["total"]["calls"].as_u64().unwrap();
    assert_eq!(calls("other"), 1);
    assert_eq!(calls("y.jsonl"), 1);
    assert_eq!(calls("y.jsonl y.jsonl ./y.jsonl"), 1);
    assert_eq!(calls("other y.jsonl"), 2);
    assert_eq!(calls("other home"), 3);
    // Files that were deleted elsewhere do not matter; files that were deleted here do.
    fs::remove_dir_all(folder.path("home/.claude")).unwrap();
    assert_eq!(calls("other"), 1);
    assert_eq!(calls("other --root home"), 1);
    assert_eq!(calls("home"), 2);
    assert_eq!(calls("--root home"), 2);
    assert_eq!(calls("--root home --no-index"), 2);
    folder.run("usage other nowhere").finds_nothing("nowhere");
}

#[test]
fn hostile_names_do_no_harm() {
    let folder = Folder::new();
    let evil = "=cmd|'/c calc'!A1\u{1b}]0;owned\u{7}\u{202e},\"x\"\nnext";
    put(&folder, "evil", &call("1", "2026-01-01T00:00:00Z", evil, &took(1, 1)));
    let table = folder.run("usage --root home --by model");
    table.ends(0);
    let explained = folder.run("usage --root home --explain");
    let json = folder.run("usage --root home --by model --json");
    let csv = folder.run("usage --root home --by model --csv");
    for done in [&table, &explained, &json, &csv] {
        for text in [done.text(), &done.talk] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        }
    }
    assert!(!table.text().contains('\u{202e}') && !table.talk.contains('\u{202e}'));
    assert_eq!(json.json()[0]["rows"][0]["model"], evil);
    let lines: Vec<&str> = csv.text().lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("\"'=cmd|"), "{}", lines[1]);
}

#[test]
fn a_broken_pipe_is_a_quiet_end() {
    let folder = Folder::new();
    let calls: String =
        (0..5000).map(|id| call(&id.to_string(), "2026-01-01T00:00:00Z", &format!("m-{id}"), &took(1, 1))).collect();
    put(&folder, "many", &calls);
    let mut command = folder.command("usage --root home --by model --csv");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains("panicked") && !talk.contains("error"), "{talk}");
}

#[test]
fn stated_costs_are_shown_next_to_computed_ones() {
    let folder = Folder::new();
    let stated = call("1", "2026-01-01T00:00:00Z", MODEL, &took(1_000_000, 0)).replacen('{', "{\"costUSD\":3.5,", 1);
    put(&folder, "a", &(stated + &call("2", "2026-01-01T00:00:00Z", MODEL, &took(1_000_000, 0))));
    let total = usage(&folder, "")["total"].clone();
    let money = ["cost", "stated_cost", "compared_cost", "difference"].map(|name| total[name].to_string());
    assert_eq!(money, ["6.0000267", "3.5", "3.00001335", "0.49998665"]);
    folder.run("usage --root home").ends(0).says("STATED").says("$3.50 (+$0.5000)");
}

#[test]
fn odd_counts_and_times_are_counted_as_far_as_they_are_numbers() {
    let folder = Folder::new();
    let most = u64::MAX;
    let odd = [
        call("1", "2026-01-01T00:00:00Z", MODEL, &json!({"input_tokens": most, "output_tokens": 1})),
        call("2", "2026-01-01T00:00:00Z", MODEL, &json!({"input_tokens": most, "output_tokens": 1})),
        call("3", "yesterday", MODEL, &json!({"input_tokens": -5, "output_tokens": 1})),
        call("4", "0000-00-00T00:00:00Z", MODEL, &json!({"input_tokens": 1.5, "output_tokens": 1})),
        call("5", "-009999-01-02T00:00:00Z", MODEL, &json!({"output_tokens": 1})),
        call("6", "9999-12-31T23:59:59Z", MODEL, &json!({"output_tokens": 1})),
        call("7", "2026-01-01T00:00:00Z", MODEL, &json!({"output_tokens": 1}))
            .replace("\"output_tokens\":1", "\"output_tokens\":1000000000000000000000000000000"),
    ];
    put(&folder, "odd", &odd.concat());
    for by in ["day", "week", "month", "hour-block", "model"] {
        for zone in ["UTC", "Pacific/Kiritimati", "America/New_York"] {
            let total = usage(&folder, &format!("--by {by} --timezone {zone}"))["total"].clone();
            assert_eq!((total["input"].as_u64(), total["output"].as_u64()), (Some(most), Some(6)));
        }
    }
    folder.run("usage --root home").ends(0);
    folder.run("usage --root home --csv --by session").ends(0);
}

#[test]
fn invalid_bytes_and_oversize_records_hide_nothing_else() {
    let folder = Folder::new();
    let good = call("1", "2026-01-01T00:00:00Z", MODEL, &took(1, 1));
    let mut bytes = b"\xff\xfe\x00\n{\"type\":\"assistant\",\xc3\x28}\n".to_vec();
    bytes.splice(0..0, good.bytes());
    bytes.extend(call("2", "2026-01-01T00:00:00Z", "A", &took(1, 1)).replace("\"A\"", "\"m\u{fffd}\"").bytes());
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    folder.write("home/.claude/projects/-work-app/bad.jsonl", &bytes);
    let large = good.replace("msg_1", "msg_large").replace(
        "\"content\":[]",
        &format!("\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]", "x".repeat(33 << 20)),
    );
    let [before, behind] = ["3", "4"].map(|id| call(id, "2026-01-01T00:00:00Z", MODEL, &took(1, 1)));
    put(&folder, "large", &(before + &large + &behind));
    let json = usage(&folder, "--by session");
    assert!(json["total"]["calls"].as_u64().unwrap() >= 4, "{json}");
    folder.run("index --root home").ends(0);
    assert_eq!(usage(&folder, "--by session"), json);
}

/// Runs the independent count, which was written from the rules alone.
fn independent(folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/count/independent.py");
    let output = Command::new("python3").arg(script).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn counts_alike(folder: &Folder, root: &Path, what: &str) -> u64 {
    let mut command = folder.command("usage --by agent --json --root");
    let output = command.arg(root).output().unwrap();
    let ours: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut calls = 0;
    for (agent, expected) in independent(root).as_object().unwrap() {
        let none = Value::Null;
        let row = ours["rows"].as_array().unwrap().iter().find(|row| row["key"] == agent.as_str()).unwrap_or(&none);
        for name in ["input", "output", "cache_read", "cache_write", "calls"] {
            assert_eq!(row[name].as_u64().unwrap_or(0), expected[name].as_u64().unwrap(), "{what}: {agent}: {name}");
        }
        calls += expected["calls"].as_u64().unwrap();
    }
    calls
}

#[test]
fn an_independent_count_of_the_corpus_comes_to_the_same() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(corpus) = fs::canonicalize(&beside) else {
        eprintln!("{}: not at hand, so nothing was compared", beside.display());
        return;
    };
    assert!(counts_alike(&Folder::new(), &corpus, "the corpus") > 4000);
}

#[test]
fn an_independent_count_of_the_golden_ledgers_comes_to_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/tests/ledger");
    let mut calls = 0;
    for case in fs::read_dir(root).unwrap().flatten() {
        let name = case.file_name().into_string().unwrap();
        // It reads no native streams, adds numbers that overflow counters, and knows only the final totals of runs.
        if !["native", "odd", "running"].iter().any(|word| name.contains(word)) {
            calls += counts_alike(&Folder::new(), &case.path(), &name);
        }
    }
    assert!(calls > 50);
}

#[test]
fn the_independent_count_proves_itself() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/count/independent.py");
    let output = Command::new("python3").arg(script).arg("--self-test").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
