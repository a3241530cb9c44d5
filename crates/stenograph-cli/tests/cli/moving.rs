//! `steno move`: sessions that go on in another agent, come back, and follow their folders.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::runner::{Done, Folder, demo};

/// The session of the demonstration.
const SESSION: &str = "8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10";

/// The folder that the demonstration names.
const OLD_FOLDER: &str = "/home/mira/almanac";

/// A home with the demonstration of Claude Code, whose folder is `work`. Returns its path below the folder too.
fn home() -> (Folder, String) {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("work")).unwrap();
    let work = work(&folder);
    let path = format!("home/.claude/projects/{}/{SESSION}.jsonl", slug(&work));
    fs::create_dir_all(folder.path(&path).parent().unwrap()).unwrap();
    let text = fs::read_to_string(demo("claude-code")).unwrap().replace(OLD_FOLDER, &work);
    // Claude Code ends a session with records that have no id.
    let end = format!("{{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"{SESSION}\"}}\n");
    folder.write(&path, text + &end.repeat(2));
    (folder, path)
}

fn work(folder: &Folder) -> String {
    folder.path("work").canonicalize().unwrap().display().to_string()
}

/// The name that Claude Code derives from a folder.
fn slug(folder: &str) -> String {
    folder.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect()
}

fn moved(folder: &Folder, line: &str) -> Value {
    let done = folder.run(&format!("move {line} --root home --json"));
    done.ends(0).json().remove(0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The id of the last record that has one.
fn last_id(text: &str) -> Value {
    let records = text.lines().rev().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["uuid"].clone()).find(Value::is_string).unwrap()
}

/// A turn as Codex appends it.
fn codex_turn(number: u32) -> String {
    let line = |second: u32, kind: &str, payload: &str| {
        format!(
            "{{\"timestamp\":\"2026-03-02T10:{number:02}:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        )
    };
    let said = |role: &str, kind: &str, text: &str| {
        format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
    };
    let counts = format!(
        r#"{{"input_tokens":{number}00,"cached_input_tokens":0,"output_tokens":{number}7,"reasoning_output_tokens":0,"total_tokens":{number}07}}"#
    );
    let total = format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{counts},"last_token_usage":{counts}}},"rate_limits":null}}"#
    );
    let call = r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_N"}"#;
    let result = r#"{"type":"function_call_output","call_id":"call_N","output":"reeds.txt"}"#;
    [
        line(1, "response_item", &said("user", "input_text", &format!("Question {number}?"))),
        line(2, "response_item", &call.replace('N', &number.to_string())),
        line(3, "response_item", &result.replace('N', &number.to_string())),
        line(4, "response_item", &said("assistant", "output_text", &format!("Answer {number}."))),
        line(5, "event_msg", &total),
    ]
    .concat()
}

/// A turn as Claude Code appends it to this session: every record of its answer states its usage.
fn claude_turn(folder: &Folder, session: &str, file: &str) -> String {
    let [one, two, three] = [1, 2, 3].map(|number| format!("3e9a0000-6b1d-4f8e-8a39-c2d7e5f0a1f{number}"));
    let record = |kind: &str, uuid: &str, parent: &Value, message: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{}\",\"sessionId\":\"{session}\",\"version\":\"2.1.0\",\"type\":\"{kind}\",\"message\":{message},\"uuid\":\"{uuid}\",\"timestamp\":\"2026-03-02T12:00:00.000Z\"}}\n",
            work(folder)
        )
    };
    let answer = |text: &str| {
        format!(
            r#"{{"id":"msg_new","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":31,"output_tokens":5}}}}"#
        )
    };
    let last = last_id(&fs::read_to_string(file).unwrap());
    record("user", &one, &last, r#"{"role":"user","content":"And the reeds?"}"#)
        + &record("assistant", &two, &Value::from(one.as_str()), &answer("Listen."))
        + &record("assistant", &three, &Value::from(two.as_str()), &answer("They rustle."))
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, before + text).unwrap();
}

/// The calls and tokens of a home, counted from the files and from an index.
fn usage(folder: &Folder) -> Value {
    let total =
        |line: &str| folder.run(&format!("usage --root home --json {line}")).ends(0).json().remove(0)["total"].clone();
    let plain = total("--no-index");
    folder.run("index --root home").ends(0);
    let indexed = total("");
    assert_eq!(indexed, plain);
    plain
}

#[test]
fn a_session_goes_where_the_other_agent_looks() {
    let (folder, path) = home();
    let before = folder.read(&path);
    let was = files(&folder.path("home"));
    let dry = folder.run(&format!("move {path} --to codex --root home --dry-run"));
    dry.ends(0).says("codex resume NEW-ID\n").talks("would write ").talks("-NEW-ID.jsonl").talks("5 of 5 kept");
    assert_eq!(files(&folder.path("home")), was);
    let done = folder.run(&format!("move {path} --to codex --root home"));
    done.ends(0).talks("claude-code to codex: ").talks("5 of 5 kept").talks("undo it with: steno undo ");
    let placed =
        files(&folder.path("home/.codex")).into_iter().find(|path| path.extension().unwrap() == "jsonl").unwrap();
    let name = placed.file_stem().unwrap().to_str().unwrap();
    let id = &name[name.len() - 36..];
    assert_eq!((name.split_at(8).0, &id[14..15]), ("rollout-", "7"));
    assert_eq!(done.text(), format!("cd {} && codex resume {id}\n", work(&folder)));
    let first = fs::read_to_string(&placed).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!((text(&first["payload"]["id"]), text(&first["payload"]["cwd"])), (id, work(&folder).as_str()));
    assert_eq!((text(&first["steno"]["of"]), text(&first["steno"]["session"])), ("claude-code", SESSION));
    assert_eq!(folder.read(&path), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&placed), mode(placed.parent().unwrap())), (0o600, 0o700));
    }
    // A second move makes another session; nothing is replaced.
    assert_ne!(text(&moved(&folder, &format!("{path} --to codex"))["session"]), id);
    // A session that was just placed is found by its id.
    folder.run(&format!("move {id} --to claude-code --root home --dry-run")).ends(0);
    // From an index, by id; and a native session without a folder needs one.
    folder.run("index --root home").ends(0);
    let json = moved(&folder, &format!("{SESSION} --to codex"));
    assert_eq!((text(&json["result"]), text(&json["source_session"])), ("placed", SESSION));
}

#[test]
fn a_session_comes_back_with_its_new_turns() {
    let (folder, path) = home();
    let before = String::from_utf8(folder.read(&path)).unwrap();
    let copy = PathBuf::from(text(&moved(&folder, &format!("{path} --to codex"))["path"]));
    let back = |folder: &Folder| moved(folder, &format!("{} --to claude-code", copy.display()));
    // Nothing happened there.
    assert_eq!(text(&back(&folder)["result"]), "unchanged");
    append(&copy, &codex_turn(1));
    let json = back(&folder);
    assert_eq!((text(&json["result"]), text(&json["session"])), ("appended", SESSION));
    assert_eq!(text(&json["command"]), format!("cd {} && claude --resume {SESSION}", work(&folder)));
    let after = String::from_utf8(folder.read(&path)).unwrap();
    let new: Vec<Value> =
        after.strip_prefix(&before).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(new.len(), 4, "{new:#?}");
    let mut parent = last_id(&before);
    for record in &new {
        assert_eq!(text(&record["sessionId"]), SESSION);
        assert_eq!(record["parentUuid"], parent, "{record:#}");
        parent = record["uuid"].clone();
    }
    assert!(new[1]["message"]["content"][0]["name"] == "exec_command" && after.contains("reeds.txt"));
    // Once more: what came before is not written again.
    assert_eq!(text(&back(&folder)["result"]), "unchanged");
    append(&copy, &codex_turn(2));
    assert_eq!(text(&back(&folder)["result"]), "appended");
    let again = String::from_utf8(folder.read(&path)).unwrap();
    assert_eq!(again.strip_prefix(&after).unwrap().lines().count(), 4);
    // The newest append is undone, then the one before it.
    folder.run(&format!("undo {path}")).ends(0);
    assert_eq!(String::from_utf8(folder.read(&path)).unwrap(), after);
    folder.run(&format!("undo {path}")).ends(0);
    assert_eq!(String::from_utf8(folder.read(&path)).unwrap(), before);
}

#[test]
fn a_session_that_went_on_in_both_agents_becomes_a_fork() {
    let (folder, path) = home();
    let copy = text(&moved(&folder, &format!("{path} --to codex"))["path"]).to_owned();
    append(Path::new(&copy), &codex_turn(1));
    let own = fs::read_to_string(folder.path(&path)).unwrap();
    let question = format!(
        r#"{{"parentUuid":{},"isSidechain":false,"userType":"external","cwd":"{}","sessionId":"{SESSION}","version":"2.1.0","type":"user","message":{{"role":"user","content":"And here?"}},"uuid":"3e9affff-6b1d-4f8e-8a39-c2d7e5f0a1ff","timestamp":"2026-03-02T11:00:00.000Z"}}"#,
        last_id(&own),
        work(&folder)
    );
    append(&folder.path(&path), &format!("{question}\n"));
    let original = folder.read(&path);
    let done = folder.run(&format!("move {copy} --to claude-code --root home"));
    done.ends(0).talks("both sessions have new turns").talks("the original stays as it is");
    assert_eq!(folder.read(&path), original);
    let project = folder.path(&path).parent().unwrap().to_owned();
    let fork = files(&project)
        .into_iter()
        .find(|file| file.extension().unwrap() == "jsonl" && !file.ends_with(format!("{SESSION}.jsonl")))
        .unwrap();
    let written = fs::read_to_string(&fork).unwrap();
    let id = fork.file_stem().unwrap().to_str().unwrap();
    assert!(done.text().ends_with(&format!("claude --resume {id}\n")));
    assert!(written.contains("Answer 1.") && !written.contains("And here?"));
    for line in written.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(record["sessionId"] == id || record.get("sessionId").is_none(), "{record}");
        assert!(record["type"] != "user" || record["forkedFrom"]["sessionId"] == SESSION, "{record}");
    }
    // The three count each call once, and are one family.
    let total = usage(&folder);
    fs::remove_file(&fork).unwrap();
    folder.run("index --root home").ends(0);
    assert_eq!(folder.run("usage --root home --json --no-index").ends(0).json()[0]["total"], total);
}

#[test]
fn each_call_counts_once_and_the_family_is_one() {
    let (folder, path) = home();
    let alone = usage(&folder);
    let json = moved(&folder, &format!("{path} --to codex"));
    let (copy, id) = (text(&json["path"]).to_owned(), text(&json["session"]).to_owned());
    assert_eq!(usage(&folder), alone);
    append(Path::new(&copy), &codex_turn(1));
    let more = usage(&folder);
    let calls = |total: &Value| total["calls"].as_u64().unwrap();
    assert_eq!(calls(&more), calls(&alone) + 1);
    // Both ids mean one session each, and the tree shows them together.
    for name in [SESSION, &id] {
        folder.run(&format!("show {name} --root home")).ends(0);
        let tree = folder.run(&format!("list --tree {name} --root home --json")).ends(0).json();
        let sessions: Vec<&str> =
            tree.iter().filter(|row| row["depth"].is_number()).map(|row| text(&row["session"])).collect();
        assert!(sessions.contains(&SESSION) && sessions.contains(&id.as_str()), "{tree:#?}");
        let child = tree.iter().find(|row| row["session"] == id.as_str()).unwrap();
        assert_eq!(child["depth"], 1, "{tree:#?}");
    }
    let all = folder.run("list --tree --root home");
    all.ends(0).says("[moved from it]");
    moved(&folder, &format!("{copy} --to claude-code"));
    assert_eq!(usage(&folder), more);
}

#[test]
fn a_move_is_undone_until_the_session_goes_on() {
    let (folder, path) = home();
    let before = files(&folder.path("home"));
    let copy = text(&moved(&folder, &format!("{path} --to codex"))["path"]).to_owned();
    let text_of_copy = fs::read_to_string(&copy).unwrap();
    append(Path::new(&copy), &codex_turn(1));
    folder.run(&format!("undo {copy}")).fails("has new turns since it was moved");
    assert!(Path::new(&copy).exists());
    fs::write(&copy, text_of_copy).unwrap();
    folder.run(&format!("undo {copy}")).ends(0).talks("removed; steno move had written it");
    assert_eq!(files(&folder.path("home")), before);
}

#[test]
fn a_session_follows_its_folder() {
    let (folder, path) = home();
    let before = String::from_utf8(folder.read(&path)).unwrap();
    let old = work(&folder);
    fs::rename(folder.path("work"), folder.path("renamed")).unwrap();
    let new = folder.path("renamed").canonicalize().unwrap().display().to_string();
    let dry = folder.run(&format!("move {path} --cwd renamed --root home --dry-run"));
    dry.ends(0).talks("would move");
    let done = folder.run(&format!("move {path} --cwd renamed --root home"));
    done.ends(0).says(&format!("cd {new} && claude --resume {SESSION}\n"));
    let there = format!("home/.claude/projects/{}/{SESSION}.jsonl", slug(&new));
    assert!(!folder.path(&path).exists());
    let after = String::from_utf8(folder.read(&there)).unwrap();
    let fields = |text: &str, folder: &str| text.matches(&format!("\"cwd\":\"{folder}\"")).count();
    assert_eq!(fields(&after, &new), fields(&before, &old));
    assert_eq!(after.replace(&format!("\"cwd\":\"{new}\""), &format!("\"cwd\":\"{old}\"")), before);
    // It goes on there, and an undo would lose that.
    append(&folder.path(&there), "{\"type\":\"mode\",\"mode\":\"normal\"}\n");
    folder.run(&format!("undo {there}")).fails("has new turns");
    folder.write(&there, &after);
    folder.run(&format!("undo {there}")).ends(0).talks("moved back to");
    assert_eq!((String::from_utf8(folder.read(&path)).unwrap(), folder.path(&there).exists()), (before, false));
}

#[test]
fn a_session_whose_place_does_not_depend_on_its_folder_stays_there() {
    let (folder, path) = home();
    let copy = text(&moved(&folder, &format!("{path} --to codex"))["path"]).to_owned();
    fs::rename(folder.path("work"), folder.path("renamed")).unwrap();
    let json = moved(&folder, &format!("{copy} --cwd renamed"));
    assert_eq!((text(&json["result"]), text(&json["path"])), ("followed", copy.as_str()));
    let new = folder.path("renamed").canonicalize().unwrap().display().to_string();
    assert!(fs::read_to_string(&copy).unwrap().contains(&format!("\"cwd\":\"{new}\"")));
    // Its embedded source is still whole.
    folder.run(&format!("convert {copy} --to claude-code -o back.jsonl")).ends(0).talks("restored byte for byte");
    assert_eq!(folder.read("back.jsonl"), folder.read(&path));
}

#[test]
fn a_session_of_another_agent_moves_to_claude_code_and_back() {
    let folder = Folder::new();
    for made in ["work", "home/.codex/sessions/2026/03/02"] {
        fs::create_dir_all(folder.path(made)).unwrap();
    }
    let source = format!("home/.codex/sessions/2026/03/02/rollout-2026-03-02T09-14-05-{SESSION}.jsonl");
    // The records of a rollout may be numbered.
    let original = fs::read_to_string(demo("codex")).unwrap().replace(OLD_FOLDER, &work(&folder));
    let numbered = |(number, line): (usize, &str)| {
        line.replacen(",\"type\"", &format!(",\"ordinal\":{number},\"type\""), 1) + "\n"
    };
    let original: String = original.lines().enumerate().map(numbered).collect();
    folder.write(&source, &original);
    let json = moved(&folder, &format!("{source} --to claude-code"));
    let (copy, id) = (text(&json["path"]).to_owned(), text(&json["session"]).to_owned());
    assert!(copy.ends_with(&format!("/.claude/projects/{}/{id}.jsonl", slug(&work(&folder)))), "{copy}");
    assert_eq!(&id[14..15], "4");
    append(Path::new(&copy), &claude_turn(&folder, &id, &copy));
    let json = moved(&folder, &format!("{copy} --to codex"));
    assert_eq!((text(&json["result"]), text(&json["session"])), ("appended", SESSION));
    let after = String::from_utf8(folder.read(&source)).unwrap();
    let new = after.strip_prefix(&original).unwrap();
    assert!(new.contains("And the reeds?") && new.contains("They rustle.") && !new.contains("session_meta"), "{new}");
    for (number, line) in (original.lines().count()..).zip(new.lines()) {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["ordinal"], number, "{new}");
    }
    // One count for the call, and the total continues that of the rollout.
    let totals = |text: &str| -> Vec<u64> {
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter_map(|record| record["payload"]["info"]["total_token_usage"]["input_tokens"].as_u64()).collect()
    };
    assert_eq!(totals(new), [totals(&original).last().unwrap() + 31]);
}

#[test]
fn a_session_in_several_files_moves_as_a_whole() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("work")).unwrap();
    const ID: &str = "8be95a86f24d4551aa8ea5a6aff2e4aa";
    let base = format!("home/.openhands/conversations/{ID}");
    fs::create_dir_all(folder.path(&base).join("events")).unwrap();
    let state = format!(
        r#"{{"id":"{ID}","agent":{{"kind":"Agent","llm":{{"model":"gull-1"}}}},"workspace":{{"working_dir":"{}"}},"execution_status":"idle"}}"#,
        work(&folder)
    );
    folder.write(&format!("{base}/base_state.json"), &state);
    for (number, (source, role, text)) in
        [("user", "user", "Count the boats"), ("agent", "assistant", "Three."), ("user", "user", "And the buoys?")]
            .into_iter()
            .enumerate()
    {
        let event = format!(
            r#"{{"id":"e{number}","timestamp":"2026-03-02T10:00:0{number}.000000","source":"{source}","llm_message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}},"kind":"MessageEvent"}}"#
        );
        folder.write(&format!("{base}/events/event-0000{number}-e{number}.json"), &event);
    }
    folder.run("index --root home").ends(0);
    for name in [ID, base.as_str()] {
        let json = moved(&folder, &format!("{name} --to codex --force"));
        let there = fs::read_to_string(text(&json["path"])).unwrap();
        let said = ["Count the boats", "Three.", "And the buoys?"];
        assert!(said.iter().all(|said| there.contains(said)), "{name}: {there}");
    }
    // The copy names the session, although no file states its id.
    folder.run("index --root home").ends(0);
    folder.run("list --tree --root home").ends(0).says("moved from it");
}

#[test]
fn what_a_fork_lacks_moves_with_it() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("work")).unwrap();
    let day = "home/.codex/sessions/2026/03/02";
    fs::create_dir_all(folder.path(day)).unwrap();
    let parent = fs::read_to_string(demo("codex")).unwrap().replace(OLD_FOLDER, &work(&folder));
    const FORK: &str = "8c1f5a52-3d0e-7c6b-9a57-2f1e0b7d4cff";
    let header = format!(
        r#"{{"timestamp":"2026-03-02T12:00:00.000Z","type":"session_meta","payload":{{"id":"{FORK}","forked_from_id":"{SESSION}","timestamp":"2026-03-02T12:00:00.000Z","cwd":"{}","originator":"codex_exec","cli_version":"0.166.0","source":"exec","history_base":{{"thread_id":"{SESSION}","end_ordinal_exclusive":9,"end_byte_offset":{}}}}}}}"#,
        work(&folder),
        parent.len()
    );
    let fork = format!("{day}/rollout-2026-03-02T12-00-00-{FORK}.jsonl");
    folder.write(&fork, format!("{header}\n{}", codex_turn(9)));
    folder.run(&format!("move {fork} --to claude-code --root home")).fails("records before the fork").talks(SESSION);
    folder.run(&format!("show {fork} --root home")).ends(0).talks(SESSION);
    let path = format!("{day}/rollout-2026-03-02T09-14-05-{SESSION}.jsonl");
    folder.write(&path, &(parent.clone() + &codex_turn(7)));
    let before = usage(&folder);
    let json = moved(&folder, &format!("{FORK} --to claude-code"));
    let there = fs::read_to_string(text(&json["path"])).unwrap();
    let first = parent.lines().find_map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        (record["payload"]["type"] == "user_message").then(|| text(&record["payload"]["message"]).to_owned())
    });
    assert!(there.contains(&first.unwrap()) && there.contains("Question 9?") && !there.contains("Question 7?"));
    assert_eq!(usage(&folder), before);
    // Back there, the fork still has only its own records.
    let (copy, id) = (text(&json["path"]).to_owned(), text(&json["session"]).to_owned());
    append(Path::new(&copy), &claude_turn(&folder, &id, &copy));
    let was = String::from_utf8(folder.read(&fork)).unwrap();
    let json = moved(&folder, &format!("{copy} --to codex"));
    assert_eq!((text(&json["result"]), text(&json["session"])), ("appended", FORK));
    let now = String::from_utf8(folder.read(&fork)).unwrap();
    let new = now.strip_prefix(&was).unwrap();
    assert!(new.contains("They rustle.") && !new.contains("Question 9?"), "{new}");
}

#[test]
fn what_cannot_be_moved_is_said_with_a_hint() {
    let (folder, path) = home();
    folder
        .run(&format!("move {path} --to nobody --root home"))
        .fails("unknown agent: nobody")
        .talks("claude-code, codex");
    folder.run(&format!("move {path} --to aider --root home")).fails("cannot write one that it resumes");
    folder.run(&format!("move {path} --to claude-code --root home")).fails("already a session of claude-code");
    folder.run(&format!("move {path} --root home")).ends(2);
    folder.run(&format!("move {path} --cwd nowhere --root home")).fails("no such folder");
    folder.run("index --root home").ends(0);
    folder.run("move unheard-of --to codex --root home").finds_nothing("no file or session has that name");
    folder.write(
        "chat.jsonl",
        "{\"role\":\"user\",\"content\":\"Hello\"}\n{\"role\":\"assistant\",\"content\":\"Hi.\"}\n",
    );
    folder
        .run("move chat.jsonl --to codex --root home --force")
        .fails("does not state its working folder")
        .talks("--cwd DIR");
    let done = folder.run("move chat.jsonl --to codex --cwd work --root home --force");
    done.ends(0).says(&format!("cd {} && codex resume ", work(&folder)));
}

#[test]
fn a_session_at_work_is_not_moved_unasked() {
    let (folder, path) = home();
    let now = jiff_now();
    let own = fs::read_to_string(folder.path(&path)).unwrap();
    let question = format!(
        "{{\"parentUuid\":{},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{}\",\"sessionId\":\"{SESSION}\",\"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"Go on.\"}},\"uuid\":\"3e9affff-6b1d-4f8e-8a39-c2d7e5f0a1fe\",\"timestamp\":\"{now}\"}}\n",
        last_id(&own),
        work(&folder)
    );
    append(&folder.path(&path), &question);
    folder.run(&format!("move {path} --to codex --root home")).fails("still working on it").talks("--force");
    folder.run(&format!("move {path} --to codex --root home --force")).ends(0);
}

/// The current time as records spell it.
fn jiff_now() -> String {
    let done = std::process::Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.000Z"]).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[cfg(unix)]
#[test]
fn resume_moves_and_starts_the_other_agent() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = home();
    fs::create_dir(folder.path("bin")).unwrap();
    folder.write("bin/codex", "#!/bin/sh\necho \"started in $(pwd): $*\"\nexit 7\n");
    fs::set_permissions(folder.path("bin/codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |line: &str| -> Done {
        let search = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
        let output = folder.command(line).env("PATH", search).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        Done { code: output.status.code().unwrap(), out: output.stdout, talk }
    };
    let printed = run(&format!("resume {path} --in codex --root home"));
    printed.ends(0).says(&format!("cd {} && codex resume ", work(&folder)));
    let done = run(&format!("resume {path} --in codex --root home --run"));
    done.ends(7).says(&format!("started in {}: resume ", work(&folder))).talks("claude-code to codex");
}
