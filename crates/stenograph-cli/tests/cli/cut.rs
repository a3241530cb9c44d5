//! `steno cut`.

use crate::list_tree::record;
use crate::runner::{Folder, NATIVE};

fn talk() -> String {
    let line = |minute: u32, rest: &str| format!("{{\"v\":1,\"time\":\"2026-03-02T09:{minute}:00Z\",{rest}}}\n");
    [
        line(10, r#""kind":"fact","name":"session""#),
        line(10, r#""kind":"message","role":"system","content":"Be brief.""#),
        line(11, r#""kind":"message","role":"user","content":"one""#),
        line(12, r#""kind":"tool_call","name":"read","call":"c1","input":{}"#),
        line(13, r#""kind":"tool_result","call":"c1","content":"a","error":false"#),
        line(14, r#""kind":"message","role":"assistant","content":"1""#),
        line(20, r#""kind":"message","role":"user","content":"two""#),
        line(21, r#""kind":"message","role":"assistant","content":"2""#),
        line(30, r#""kind":"message","role":"user","content":"three""#),
    ]
    .concat()
}

fn lines(numbers: &[usize]) -> String {
    let talk = talk();
    let all: Vec<&str> = talk.split_inclusive('\n').collect();
    numbers.iter().map(|number| all[number - 1]).collect()
}

#[test]
fn events_are_removed_by_number_and_a_call_with_its_result() {
    let folder = Folder::with("talk.jsonl", talk());
    let done = folder.run("cut talk.jsonl --events 5..6");
    assert_eq!(done.ends(0).text(), lines(&[1, 2, 3, 7, 8, 9]));
    done.talks("removed 3 of 9 events").talks("1 event removed in addition");
    let done = folder.run("cut talk.jsonl --events 1..3");
    assert_eq!(done.ends(0).text(), lines(&[1, 4, 5, 6, 7, 8, 9]));
    done.talks("1 event kept because the format requires it");
}

#[test]
fn a_dry_run_lists_the_events_and_writes_nothing() {
    let folder = Folder::with("talk.jsonl", talk());
    let done = folder.run("cut talk.jsonl --events 5..6 --dry-run");
    done.ends(0).says("event 4 (line 4): tool_call removed\n").talks("would remove 3 of 9 events");
    done.talks("1 event would be removed in addition");
    let report = &folder.run("cut talk.jsonl --events 4..6 --dry-run --json").ends(0).json()[0];
    assert_eq!((&report["dry_run"], &report["events"]["removed"]), (&true.into(), &3.into()));
    assert_eq!(report["removed"][1]["kind"], "tool_result");
    let protected = folder.run("cut talk.jsonl --events 1 -o out.jsonl");
    assert_eq!(protected.ends(1).talk, "talk.jsonl: the format requires the selected event; nothing was written\n");
    assert_eq!(folder.names(), ["talk.jsonl"]);
}

#[test]
fn turns_and_times_are_removed() {
    let folder = Folder::with("talk.jsonl", talk());
    assert_eq!(folder.run("cut talk.jsonl --turns 2").ends(0).text(), lines(&[1, 2, 3, 4, 5, 6, 9]));
    assert_eq!(folder.run("cut talk.jsonl --turns ..2").ends(0).text(), lines(&[1, 2, 9]));
    assert_eq!(folder.run("cut talk.jsonl --since 2026-03-02T09:20:00Z").ends(0).text(), lines(&[1, 2, 3, 4, 5, 6]));
    let both = "cut talk.jsonl --since 2026-03-02T10:20:00+01:00 --until 2026-03-02T09:30:00Z";
    assert_eq!(folder.run(both).ends(0).text(), lines(&[1, 2, 3, 4, 5, 6, 9]));
    folder.run("cut talk.jsonl --until 2025-01-01 -o out.jsonl").ends(1).talks("nothing was written");
    assert_eq!(folder.names(), ["talk.jsonl"]);
}

#[test]
fn abandoned_turns_are_not_counted_and_go_with_the_turn_that_replaced_them() {
    let parents = [("u1", None), ("a1", Some("u1")), ("u2", Some("a1")), ("a2", Some("u2")), ("u3", Some("a1"))];
    let later = [("a3", Some("u3")), ("u4", Some("a3")), ("a4", Some("u4"))];
    let lines =
        (1..).zip(parents.into_iter().chain(later)).map(|(minute, (id, parent))| record("s1", id, parent, minute));
    let folder = Folder::with("a.jsonl", lines.collect::<String>());
    let left = |turns: &str| {
        let text = folder.run(&format!("cut a.jsonl --turns {turns}")).ends(0).text().to_owned();
        let ids = ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"];
        ids.into_iter().filter(|id| text.contains(&format!("\"uuid\":\"{id}-"))).collect::<Vec<_>>()
    };
    assert_eq!(left("1"), ["u2", "a2", "u3", "a3", "u4", "a4"]);
    assert_eq!(left("2"), ["u1", "a1", "u4", "a4"]);
    assert_eq!(left("3"), ["u1", "a1", "u2", "a2", "u3", "a3"]);
}

#[test]
fn a_cut_in_place_can_be_undone() {
    let folder = Folder::with("talk.jsonl", talk());
    folder.run("cut talk.jsonl --turns 1 --in-place").ends(0).talks("steno undo talk.jsonl");
    folder.run("cut talk.jsonl --turns 1 --in-place").ends(0);
    assert_eq!(folder.read("talk.jsonl"), lines(&[1, 2, 9]).as_bytes());
    folder.run("undo talk.jsonl").ends(0);
    folder.run("undo talk.jsonl").ends(0);
    assert_eq!(folder.read("talk.jsonl"), talk().as_bytes());
    assert_eq!(folder.names(), ["talk.jsonl"]);
}

#[test]
fn pieces_have_the_header_and_the_system_prompt_each() {
    let folder = Folder::with("talk.steno.jsonl", talk());
    folder.run("cut talk.steno.jsonl --split-every 1").ends(0).says("talk.2.steno.jsonl: 1 turn, events 7 to 8");
    assert_eq!(folder.read("talk.1.steno.jsonl"), lines(&[1, 2, 3, 4, 5, 6]).as_bytes());
    assert_eq!(folder.read("talk.2.steno.jsonl"), lines(&[1, 2, 7, 8]).as_bytes());
    assert_eq!(folder.read("talk.3.steno.jsonl"), lines(&[1, 2, 9]).as_bytes());
    folder.run("cut talk.steno.jsonl --split-every 1").fails("already exists");
    folder.run("cut talk.steno.jsonl --split-every 9 --dry-run").ends(1);
}

#[test]
fn pieces_of_a_session_are_sessions_of_their_own() {
    let whole = "0198f2c4-0000-7000-8000-000000000001";
    for session in [whole, "s1"] {
        let session_text = talk().replace("{\"v\":1,", &format!("{{\"v\":1,\"session\":\"{session}\","));
        let folder = Folder::with("talk.steno.jsonl", &session_text);
        let done = folder.run("cut talk.steno.jsonl --split-every 1 --json");
        let sessions: Vec<String> = done.ends(0).json().iter().map(|piece| piece["session"].to_string()).collect();
        done.talks("each piece is a separate session");
        let mut all = sessions.clone();
        all.push(format!("\"{session}\""));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4, "{sessions:?}");
        for (number, own) in (1..).zip(&sessions) {
            let text = String::from_utf8(folder.read(&format!("talk.{number}.steno.jsonl"))).unwrap();
            assert!(text.lines().all(|line| line.contains(own)), "{own}: {text}");
            assert!(session != whole || own.len() == whole.len() + 2, "{own}");
            // Nothing else in a record changes.
            let back = text.replace(own, &format!("\"{session}\""));
            let values = |text: &str| -> Vec<serde_json::Value> {
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            };
            let records = values(&session_text);
            assert!(values(&back).iter().all(|record| records.contains(record)), "{back}");
        }
        // The same pieces have the same ids.
        let again = folder.run("cut talk.steno.jsonl --split-every 1 --json --force -o talk.steno.jsonl");
        assert_eq!(again.ends(0).out, done.out);
    }
}

#[test]
fn a_transcript_is_divided_at_an_event_or_by_tokens() {
    let folder = Folder::with("talk.jsonl", talk());
    let pieces = |line: &str| -> Vec<String> {
        let done = folder.run(line);
        done.ends(0).json().iter().map(|piece| piece["events"].to_string()).collect()
    };
    assert_eq!(pieces("cut talk.jsonl --split-at 7 --dry-run --json"), ["[1,6]", "[7,9]"]);
    // A call and its result stay together: the piece begins after them.
    assert_eq!(pieces("cut talk.jsonl --split-at 5,8 --dry-run --json"), ["[1,5]", "[6,7]", "[8,9]"]);
    assert_eq!(pieces("cut talk.jsonl --split-tokens 9 --dry-run --json"), ["[1,6]", "[7,9]"]);
    folder.run_with("cut - --split-every 1 -o part.jsonl", talk().as_bytes()).ends(0);
    assert_eq!(folder.names(), ["part.1.jsonl", "part.2.jsonl", "part.3.jsonl", "talk.jsonl"]);
}

#[test]
fn a_split_that_moved_is_reported_with_the_reason() {
    let folder = Folder::with("talk.jsonl", talk());
    let moved = "note: a call would be separated from its result before event 5: split before event 6 instead";
    folder.run("cut talk.jsonl --split-at 5,7 --dry-run").ends(0).talks(moved);
    let none = "note: there is nothing to divide before event 99 of 9 events: not split there";
    folder.run("cut talk.jsonl --split-at 7,99 --dry-run").ends(1).talks(none).says("talk.2.jsonl");
    folder.write("end.jsonl", NATIVE);
    let end = folder.run("cut end.jsonl --split-at 4 --dry-run");
    end.ends(1).talks("not split there").talks("would be one piece");
}

#[test]
fn a_piece_larger_than_requested_is_reported() {
    let folder = Folder::with("talk.jsonl", talk());
    let done = folder.run("cut talk.jsonl --split-tokens 4 --dry-run");
    done.ends(1).talks("note: talk.1.jsonl has").talks("more than 4: turns and the shared header are never split");
    let done = folder.run("cut talk.jsonl --split-tokens 9 --dry-run");
    assert_eq!(done.ends(0).talk, "");
}

#[test]
fn counts_in_a_header_follow_and_totals_of_a_session_are_noted_as_unchanged() {
    let folder = Folder::with("talk.jsonl", talk());
    folder.run("convert talk.jsonl --to leslie -o leslie.txt");
    folder.run("cut leslie.txt --turns 1 -o cut.txt").ends(0);
    let (before, after) = (folder.read("leslie.txt"), folder.read("cut.txt"));
    let (before, after) = (String::from_utf8(before).unwrap(), String::from_utf8(after).unwrap());
    assert!(before.contains("\nTool Calls: 1\n---\n"), "{before}");
    // Nothing else in the header changes, and the rest is copied.
    let expected = before.replace("Tool Calls: 1", "Tool Calls: 0");
    let (head, rest) = expected.split_once("---\n\n").unwrap();
    let kept = &rest[rest.find("user:\n<user_query>\ntwo").unwrap()..];
    assert_eq!(after, format!("{head}---\n\n{kept}"));
    folder.write("run.json", r#"{"runId":"r","metadata":{"flowId":"f","startedAt":"2026-03-02T09:00:00Z","status":"completed","totalTokensIn":9,"totalTokensOut":0,"totalCost":0,"turnCount":2},"turns":[{"id":1,"role":"user","content":"a","timestamp":"2026-03-02T09:00:00Z"},{"id":2,"role":"user","content":"b","timestamp":"2026-03-02T09:00:00Z"}]}"#);
    let done = folder.run("cut run.json --turns 1 -o cut.json --json");
    assert_eq!(
        done.ends(0).json()[0]["untouched_totals"].to_string(),
        r#"["metadata.totalTokensIn","metadata.turnCount"]"#
    );
    let note = "note: metadata.totalTokensIn, metadata.turnCount left unchanged";
    folder.run("cut run.json --turns 1 -o again.json").ends(0).talks(note);
}

#[test]
fn a_cut_that_leaves_nothing_is_refused() {
    let folder = Folder::with("talk.jsonl", NATIVE);
    folder.run("cut talk.jsonl --events 1.. -o out.jsonl").fails("this would remove everything");
    folder.run("cut talk.jsonl --events 1.. --in-place").fails("this would remove everything");
    folder.run("cut talk.jsonl --events 1.. --dry-run").fails("this would remove everything");
    assert_eq!((folder.names(), folder.read("talk.jsonl")), (vec!["talk.jsonl".to_owned()], NATIVE.into()));
    // A remaining header counts as content.
    folder.write("header.jsonl", talk());
    assert_eq!(folder.run("cut header.jsonl --events 1..").ends(0).text(), lines(&[1]));
}

#[test]
fn contradictory_options_are_refused() {
    let folder = Folder::with("talk.jsonl", NATIVE);
    folder.run("cut talk.jsonl").fails("say what to cut");
    folder.run("cut talk.jsonl --events 1 --tokenizer o200k").ends(2).talks("cannot be used with");
    folder.run("cut talk.jsonl --split-every 1 --tokenizer o200k").ends(2).talks("cannot be used with");
    folder.run("cut talk.jsonl --split-every 1 --split-tokens 5").ends(2).talks("cannot be used with");
    folder.run_with("cut - --split-every 1", NATIVE.as_bytes()).fails("the pieces need a name");
    for wrong in [
        "--events 0",
        "--events 5..2",
        "--events x",
        "--until noon",
        "--events 1 --split-every 2",
        "--split-every 0",
        "--split-at 0",
        "--split-tokens 0",
    ] {
        assert_eq!(folder.run(&format!("cut talk.jsonl {wrong}")).code, 2, "{wrong}");
    }
}
