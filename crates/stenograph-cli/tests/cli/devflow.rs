//! Recording devflow runs, with real pipes and real kills.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::runner::{Folder, NATIVE, names};

const CHAT: &str = r#"{"role":"system","content":"Be brief."}
{"role":"user","content":"Fix <it>."}
{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"text"}
{"role":"assistant","content":"Done."}
"#;

#[test]
fn a_broken_compressed_transcript_does_not_hide_the_plain_one() {
    let folder = Folder::new();
    folder.run_with("record --from openai-chat --to devflow --set run=r", CHAT.as_bytes()).ends(0);
    let whole = folder.run("show .devflow/runs/r --text").ends(0).text().to_owned();
    let gzip = [&b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"[..], &[0xff; 20]].concat();
    for damaged in [&b""[..], b"junk\n", b"{}", &gzip] {
        folder.write(".devflow/runs/r/transcript.json.gz", damaged);
        for at in [".devflow/runs/r", ".devflow"] {
            let note = "note: .devflow/runs/r/transcript.json.gz: is not a complete transcript; reading transcript.json next to it instead\n";
            let shown = folder.run(&format!("show {at} --text"));
            assert_eq!((shown.ends(0).text(), shown.talk.as_str()), (whole.as_str(), note), "{damaged:?}");
            folder.run(&format!("audit {at}")).ends(0).says("1 call").talks(note);
            folder.run(&format!("export --to markdown {at}")).ends(0).says("Fix").talks(note);
        }
        folder.run("status .devflow/runs/r").says("devflow");
    }
}

#[test]
fn a_run_is_recorded_and_listed_and_shown() {
    let folder = Folder::new();
    folder.write("input.json", "{\"ticketId\":\"TK-421\"}");
    let line = "record --from openai-chat --to devflow --set flow=ticket-to-pr --set node=spec --set input=@input.json --set cost=0.12";
    folder.run_with(line, CHAT.as_bytes()).ends(0).talks("6 events recorded, completed");
    let ids = names(&folder.path(".devflow/runs"));
    assert_eq!(ids.len(), 1);
    assert!(
        ids[0].ends_with("-ticket-to-pr-TK421") && ids[0].len() == "2025-01-15-ticket-to-pr-TK421".len(),
        "{ids:?}"
    );
    assert_eq!(names(&folder.path(&format!(".devflow/runs/{}", ids[0]))), ["metadata.json", "transcript.json"]);
    let metadata = folder.read(&format!(".devflow/runs/{}/metadata.json", ids[0]));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
    assert_eq!((&metadata["status"], &metadata["turnCount"]), (&"completed".into(), &4.into()));
    assert_eq!((&metadata["totalCost"], &metadata["input"]["ticketId"]), (&0.12.into(), &"TK-421".into()));
    let listed = folder.run("devflow list --json").ends(0).json();
    assert_eq!((&listed[0]["firstQuery"], &listed[0]["status"]), (&"Fix <it>.".into(), &"completed".into()));
    let shown = folder.run(&format!("show .devflow/runs/{} --kind message --json", ids[0])).ends(0).json();
    assert_eq!(shown.len(), 4);
    // Another run of the same name gets a number.
    folder.run_with(line, CHAT.as_bytes()).ends(0);
    assert!(names(&folder.path(".devflow/runs"))[1].ends_with("-TK421-2"));
    folder.run("check .devflow/runs/*/transcript.json");
}

#[test]
fn bad_ids_and_values_are_refused_before_anything_is_written() {
    let folder = Folder::new();
    folder.run_with("record --from openai-chat --to devflow:base --set run=../x", b"").fails("../x: is not a valid");
    folder
        .run_with("record --from openai-chat --to devflow:base --set input=[1]", b"")
        .fails("input: has an invalid value");
    folder
        .run_with("record --from openai-chat --to devflow:base --set cost=much", b"")
        .fails("cost: has an invalid value");
    assert!(folder.names().is_empty());
    folder.run_with("record --from openai-chat --to devflow:base --set run=x", CHAT.as_bytes()).ends(0);
    let before = folder.read("base/runs/x/transcript.json");
    folder.run_with("record --from openai-chat --to devflow:base --set run=x", CHAT.as_bytes()).fails("already exists");
    assert_eq!(folder.read("base/runs/x/transcript.json"), before);
}

#[test]
fn a_command_that_fails_makes_a_run_that_failed() {
    let folder = Folder::with("script.sh", format!("cat <<'END'\n{CHAT}END\nexit 7\n"));
    folder.run("record --to devflow --set run=x -- sh script.sh").ends(7);
    let listed = folder.run("devflow list --json --status failed").ends(0).json();
    assert!(listed[0]["error"].as_str().unwrap().contains('7'), "{listed:?}");
}

#[test]
fn events_acknowledged_before_a_kill_are_found_after_it() {
    let folder = Folder::new();
    for round in 1..=6_usize {
        let line = format!("record --from openai-chat --to devflow --set run=r{round} --ack");
        let mut child = folder.command(&line);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            for number in 0.. {
                let role = if number % 2 == 0 { "user" } else { "assistant" };
                let message = format!("{{\"role\":\"{role}\",\"content\":\"message {number}\"}}\n");
                if input.write_all(message.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let acks = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).take(round * 7).count();
        child.kill().unwrap();
        child.wait().unwrap();
        feeding.join().unwrap();
        folder.run("devflow list --status running").ends(0).says(&format!("r{round}"));
        folder.run("devflow clean --keep-min-runs 0 --delete").ends(0).talks("1 running");
        folder.run("recover .devflow").ends(0);
        let shown = folder.run(&format!("show .devflow/runs/r{round} --kind message --json")).ends(0).json();
        assert!(shown.len() >= acks, "{} of {acks}", shown.len());
        for (number, event) in shown.iter().enumerate() {
            assert_eq!(event["content"], format!("message {number}"));
        }
        let listed = folder.run("devflow list --json --status failed --limit 1").ends(0).json();
        assert_eq!(listed[0]["error"], "interrupted");
        folder.run("recover .devflow").ends(0).talks("already complete");
    }
    assert_eq!(folder.run("devflow list --json").json().len(), 6);
}

#[test]
fn a_run_that_is_being_recorded_is_left_alone() {
    let folder = Folder::new();
    let mut child = folder.command("record --from openai-chat --to devflow --set run=x --ack");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(CHAT.as_bytes()).unwrap();
    assert_eq!(BufReader::new(child.stdout.take().unwrap()).lines().take(6).count(), 6);
    folder.run("recover .devflow").ends(0).talks("is still being recorded: not touched");
    folder.run("devflow archive x").fails("is still running");
    // A second one at the same time; the index knows both.
    folder.run_with("record --from openai-chat --to devflow --set run=y", CHAT.as_bytes()).ends(0);
    drop(input);
    assert!(child.wait().unwrap().success());
    let index: serde_json::Value = serde_json::from_slice(&folder.read(".devflow/index.json")).unwrap();
    let statuses: Vec<&str> =
        index["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "completed"]);
    folder.run("devflow archive x y").ends(0);
}

/// The events of a run with times, tokens and thoughts, which a devflow transcript cannot hold.
const NATIVE_RUN: &str = r#"{"v":1,"kind":"message","time":"2026-03-02T09:14:05Z","role":"user","content":"Fix the test."}
{"v":1,"kind":"thinking","time":"2026-03-02T09:14:06Z","content":"Run it first."}
{"v":1,"kind":"message","time":"2026-03-02T09:14:07Z","role":"assistant","content":"I look.","usage":{"input":100,"cache_read":1000,"output":20}}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:14:07Z","name":"Bash","call":"c1","input":{"command":"cargo test"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:14:09.500Z","name":"Bash","call":"c1","content":"ok"}
"#;

#[test]
fn a_replay_begins_with_the_facts_of_run_list() {
    let folder = Folder::new();
    let line = "record --to devflow --set run=x --set flow=review --set node=spec --set cost=0.12 --set duration=61000";
    folder.run_with(line, NATIVE_RUN.as_bytes()).ends(0);
    assert!(names(&folder.path(".devflow/runs/x")).contains(&"journal.steno".to_owned()));
    let listed = folder.run("devflow list").ends(0).text().to_owned();
    assert!(listed.contains("1100 tokens in, 20 out  $0.1200") && listed.contains("1 min 1 s"), "{listed}");
    for name in [".devflow/runs/x", ".devflow/runs/x/transcript.json", ".devflow/runs/x/journal.steno"] {
        let played = folder.run(&format!("replay {name}"));
        let head = played.ends(0).text();
        assert!(head.contains("devflow · flow review · node spec"), "{name}: {head}");
        assert!(head.contains("1 min 1 s · 1,100 in / 20 out · $0.1200 · completed"), "{name}: {head}");
    }
    // The ledger has the cost too, and the calls as in the journal.
    for index in ["--no-index", ""] {
        let total = folder.run(&format!("usage --root . --json {index}")).ends(0).json().remove(0)["total"].clone();
        let numbers =
            ["calls", "input", "cache_read", "output", "stated_cost"].map(|name| total[name].as_f64().unwrap());
        assert_eq!(numbers, [1.0, 100.0, 1000.0, 20.0, 0.12], "{total:#}");
        folder.run("index --root .").ends(0);
    }
    // Outside of its folder a transcript still states its session.
    std::fs::copy(folder.path(".devflow/runs/x/transcript.json"), folder.path("moved.json")).unwrap();
    folder.run("replay moved.json").ends(0).says("devflow · flow review · node spec").says("$0.1200");
}

#[test]
fn a_turn_states_how_long_the_assistant_took() {
    let folder = Folder::new();
    folder.run_with("record --to devflow --set run=x", NATIVE_RUN.as_bytes()).ends(0);
    let transcript: serde_json::Value =
        serde_json::from_slice(&folder.read(".devflow/runs/x/transcript.json")).unwrap();
    assert_eq!(transcript["turns"][0]["durationMs"], serde_json::Value::Null);
    // From the question to the result of the last call.
    assert_eq!(transcript["turns"][1]["durationMs"], 3500);
}

#[test]
fn a_refused_input_leaves_nothing_and_the_id_is_free() {
    let folder = Folder::new();
    for to in [
        "devflow --set run=x",
        "steno:run.jsonl",
        "chibi:contexts/talk",
        "cycod:talk.jsonl",
        "claude-events --set agent=a",
    ] {
        folder.run_with(&format!("record --to {to}"), b"plain words\n").fails("unknown format");
    }
    folder.run_with("record --from devflow --to devflow --set run=x", b"{}").ends(2).talks("invalid value 'devflow'");
    folder.run("devflow list").ends(1);
    assert_eq!(names(&folder.path(".devflow/runs")), Vec::<String>::new());
    assert!(!folder.path("run.jsonl").exists() && !folder.path("contexts/talk").exists());
    assert_eq!(names(&folder.path(".goodvibes/transcripts")), Vec::<String>::new());
    folder.run_with("record --from openai-chat --to devflow --set run=x", CHAT.as_bytes()).ends(0);
}

#[test]
fn a_broken_compressed_transcript_is_passed_over_where_there_is_a_plain_one() {
    let folder = Folder::new();
    folder.run_with("record --from openai-chat --to devflow --set run=x", CHAT.as_bytes()).ends(0);
    folder.write(".devflow/runs/x/transcript.json.gz", b"\x1f\x8b\x08\x00broken");
    folder.run("show .devflow/runs/x").ends(0).says("Fix <it>.");
    folder.run("replay .devflow/runs/x").ends(0).says("Fix <it>.");
    std::fs::remove_file(folder.path(".devflow/runs/x/transcript.json")).unwrap();
    folder.run("show .devflow/runs/x").ends(2);
}

#[test]
fn a_run_whose_calls_state_their_costs_costs_no_more_in_the_ledger() {
    let folder = Folder::new();
    let run = NATIVE_RUN.replace(r#""output":20}"#, r#""output":20,"cost":0.07}"#);
    let total = |folder: &Folder| folder.run("usage --root . --json").ends(0).json().remove(0)["total"].clone();
    folder.run_with("record --to devflow --set run=x", run.as_bytes()).ends(0);
    assert_eq!(total(&folder)["stated_cost"], 0.07);
    folder.run_with("record --to devflow --set run=y --set cost=0.2", run.as_bytes()).ends(0);
    assert!((total(&folder)["stated_cost"].as_f64().unwrap() - 0.27).abs() < 1e-9);
}

#[test]
fn a_recovered_run_does_not_end_before_it_starts() {
    let folder = Folder::new();
    folder.run_with("record --from steno --to devflow --set run=r", NATIVE.as_bytes()).ends(0);
    let journal = String::from_utf8(folder.read(".devflow/runs/r/journal.steno")).unwrap();
    // The recorder was killed before it wrote that the run ended.
    let cut_off: String = journal.split_inclusive('\n').take(1 + NATIVE.lines().count()).collect();
    folder.write(".devflow/runs/r/journal.steno", cut_off);
    folder.run("recover .devflow").ends(0);
    let metadata: serde_json::Value = serde_json::from_slice(&folder.read(".devflow/runs/r/metadata.json")).unwrap();
    assert!(metadata["startedAt"].as_str() <= metadata["endedAt"].as_str(), "{metadata:#}");
}

#[test]
fn the_status_of_a_folder_names_the_run() {
    let folder = Folder::new();
    folder.run_with("record --from steno --to devflow --set run=r-1", NATIVE.as_bytes()).ends(0);
    let run = &folder.run("status .devflow/runs/r-1 --json").json()[0];
    assert_eq!((&run["session"], &run["agent"]), (&"r-1".into(), &"devflow".into()), "{run:#}");
    let exported = folder.run("export --to markdown .devflow/runs/r-1");
    assert!(exported.ends(0).text().contains("| Format | devflow"), "{}", exported.text());
}
