//! `steno usage --as`, and the programs themselves if variables name them: `STENO_CCUSAGE` (20.0.24) and `STENO_CCSTAT`
//! (0.6.2), with `STENO_PEERS` naming a home folder to count. Else those tests are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::runner::{CHIBI, Folder};

const FIRST: &str = r#"{"type":"assistant","timestamp":"2026-03-02T09:14:05.100Z","sessionId":"s1","requestId":"r1","uuid":"u1","version":"2.1.0","isSidechain":false,"cwd":"/work","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-20250514","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000}}}
"#;

/// A home with two streamed answers: one with a request id, and one without, whose lines have their own times.
fn home() -> Folder {
    let folder = Folder::new();
    let project = folder.path("home/.claude/projects/-work");
    fs::create_dir_all(&project).unwrap();
    let more = FIRST.replace("\"output_tokens\":1,", "\"output_tokens\":50,").replace("\"u1\"", "\"u2\"");
    let bare = FIRST.replace("\"requestId\":\"r1\",", "").replace("\"m1\"", "\"m2\"").replace("\"u1\"", "\"u3\"");
    let later = bare.replace("05.100Z", "06.100Z").replace("\"u3\"", "\"u4\"");
    fs::write(project.join("s1.jsonl"), [FIRST, &more, &bare, &later].concat()).unwrap();
    folder.write("home/notes.jsonl", CHIBI);
    folder
}

fn totals(json: &Value) -> [u64; 5] {
    ["calls", "input", "output", "cache_read", "cache_write"].map(|name| json[name].as_u64().unwrap())
}

#[test]
fn each_rule_has_its_own_total_and_its_name() {
    let folder = home();
    let count = |rule: &str| {
        let done = folder.run(&format!("usage --root home {rule} --json"));
        done.ends(0);
        (totals(&done.json()[0]["total"]), done)
    };
    assert_eq!(count("").0, [2, 20, 51, 200, 2000]);
    let (numbers, done) = count("--as ccusage-20");
    assert_eq!(numbers, [3, 30, 52, 300, 3000]);
    done.talks("note: counted by the rules of ccusage 20.0.24: ").talks("ccusage does not count chibi (1 file)");
    let rule = &done.json()[0]["as"];
    assert_eq!([&rule["rule"], &rule["program"], &rule["version"]], ["ccusage-20", "ccusage", "20.0.24"]);
    assert_eq!(rule["not_counted"][0]["agent"], "chibi");
    let (numbers, done) = count("--as first-row");
    assert_eq!(numbers, [2, 20, 2, 200, 2000]);
    done.talks("note: counted by the rules of ccstat 0.6.2: ");
    assert_eq!(folder.run("usage --root home --json").json()[0].get("as"), None);
}

#[test]
fn filters_apply_to_the_rows_of_another_rule_too() {
    let folder = home();
    let by_model = folder.run("usage --root home --as ccusage-20 --by model --json");
    assert_eq!(by_model.ends(0).json()[0]["rows"][0]["key"], "claude-sonnet-4-20250514");
    let some = folder.run("usage --root home --as ccusage-20 --since 2026-03-02T09:14:06Z --json");
    assert_eq!(some.ends(0).json()[0]["total"]["calls"], 1);
    folder.run("usage --root home --as ccusage-20 --since 2026-04-01").finds_nothing("no calls match");
    folder.run("usage --root home --as first-row --by tool").fails("ccstat cannot group by tool");
    folder.run("usage --root home --as nobody").ends(2);
}

#[test]
fn both_counts_stand_side_by_side() {
    let folder = home();
    let done = folder.run("usage --root home --as ccusage-20 --explain");
    let lines: Vec<Vec<&str>> =
        done.ends(0).text().lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let has = |words: &[&str]| assert!(lines.iter().any(|line| line.ends_with(words)), "{words:?}\n{}", done.text());
    has(&["steno", "2", "20", "51", "2,000", "200"]);
    has(&["ccusage-20", "3", "30", "52", "3,000", "300"]);
    has(&["difference", "+1", "+10", "+1", "+1,000", "+100"]);
    done.says("ccusage-20 is ccusage 20.0.24: ");
    let json = &folder.run("usage --root home --as first-row --explain --json").json()[0]["compared"];
    assert_eq!((&json[0]["difference"]["output"], &json[0]["difference"]["input"]), (&(-49).into(), &0.into()));
}

#[test]
fn one_file_is_counted_by_a_rule_whatever_it_is_called() {
    let folder = Folder::with("copy.txt", FIRST);
    assert_eq!(totals(&folder.run("usage copy.txt --as first-row --json").json()[0]["total"]), [1, 10, 1, 100, 1000]);
    folder.write("empty.jsonl", "");
    folder.run("usage empty.jsonl --as ccusage-20").finds_nothing("contains no token counts");
    folder.run("usage missing.jsonl --as ccusage-20").fails("missing.jsonl");
}

fn named(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        eprintln!("{variable} names nothing: the program is not asked");
    }
    found
}

/// The output of a program about a home, without a network.
fn asked(program: &Path, home: &Path, line: &str) -> Value {
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).env_clear().env("HOME", home).env("TZ", "UTC").env("NO_COLOR", "1");
    command.env("CLAUDE_CONFIG_DIR", home.join(".claude")).env("CODEX_HOME", home.join(".codex"));
    command.env("https_proxy", "http://127.0.0.1:9");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // It may print messages before its answer.
    let answer: Vec<&str> = text.lines().skip_while(|line| *line != "{").collect();
    serde_json::from_str(&answer.join("\n")).unwrap()
}

/// Input, output, cache read and cache write of the agent whose name has this prefix, by a rule.
fn ours(home: &Path, rule: &str, agent: &str) -> [u64; 4] {
    let folder = Folder::new();
    let line = format!("usage --root {} --as {rule} --by agent --timezone UTC --json", home.display());
    let rows = folder.run(&line).ends(0).json()[0]["rows"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["key"].as_str().unwrap().starts_with(agent)).cloned();
    row.map_or([0; 4], |row| ["input", "output", "cache_read", "cache_write"].map(|name| row[name].as_u64().unwrap()))
}

#[test]
fn ccusage_itself_counts_the_same() {
    let (Some(program), Some(home)) = (named("STENO_CCUSAGE"), named("STENO_PEERS")) else { return };
    let answer = asked(&program, &home, "daily --json --offline --by-agent");
    for agent in ["claude", "codex"] {
        let days = answer["daily"].as_array().unwrap().iter();
        let rows = days.flat_map(|day| day["agents"].as_array().unwrap()).filter(|row| row["agent"] == agent);
        let names = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens"];
        let theirs = rows.fold([0; 4], |mut sum, row| {
            sum.iter_mut().zip(names).for_each(|(sum, name)| *sum += row[name].as_u64().unwrap());
            sum
        });
        assert_eq!(ours(&home, "ccusage-20", agent), theirs, "{agent}");
        eprintln!("{agent}: {theirs:?}");
    }
}

#[test]
fn ccstat_itself_counts_the_same() {
    let (Some(program), Some(home)) = (named("STENO_CCSTAT"), named("STENO_PEERS")) else { return };
    let answer = asked(&program, &home, "daily --json --utc");
    let tokens = &answer["totals"]["tokens"];
    let names = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"];
    let theirs = names.map(|name| tokens[name].as_u64().unwrap());
    assert_eq!(ours(&home, "first-row", "claude"), theirs);
    eprintln!("{theirs:?}");
}
