//! The rules of every command that writes a file: it replaces no existing file unasked and overwrites no input, its result is
//! readable only by those who may read the source, and a journal cannot name files elsewhere.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::runner::{Folder, NATIVE};

/// Every command that has -o, without its argument.
const WRITING: [&str; 6] = [
    "convert in.jsonl --to openai-chat",
    "export in.jsonl --to markdown",
    "export in.jsonl --to json",
    "trim in.jsonl --max-tokens 100000",
    "cut in.jsonl --events 2",
    "compact in.jsonl --keep 0 --summary short",
];

/// Two turns, so that one of them can be removed.
fn input() -> String {
    let more = NATIVE.replace("\"e", "\"f").replace("\"c1\"", "\"c2\"");
    NATIVE.to_owned() + &more
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn an_existing_file_is_replaced_only_on_request() {
    for line in WRITING {
        let folder = Folder::with("in.jsonl", input());
        folder.write("out", "mine");
        folder.run(&format!("{line} -o out")).fails("out: already exists");
        assert_eq!(folder.read("out"), b"mine", "{line}");
        // A dangling link counts as an existing file too.
        symlink("nowhere", folder.path("link")).unwrap();
        folder.run(&format!("{line} -o link")).fails("link: already exists");
        folder.run(&format!("{line} -o out --force")).ends(0);
        assert_ne!(folder.read("out"), b"mine", "{line}");
        folder.run(&format!("{line} -o new")).ends(0);
        assert_eq!(folder.names(), ["in.jsonl", "link", "new", "out"], "{line}");
    }
}

#[test]
fn the_input_is_never_written_over_whatever_it_is_called() {
    for line in WRITING {
        let folder = Folder::with("in.jsonl", input());
        fs::hard_link(folder.path("in.jsonl"), folder.path("hard")).unwrap();
        symlink("in.jsonl", folder.path("soft")).unwrap();
        for name in ["in.jsonl", "hard", "soft", "./in.jsonl"] {
            folder.run(&format!("{line} -o {name} --force")).fails("is the input itself");
        }
        assert_eq!(folder.read("in.jsonl"), input().as_bytes(), "{line}");
    }
}

#[test]
fn devices_and_pipes_and_standard_output_are_written_to() {
    // A compaction has a new time and id each time.
    for line in WRITING.into_iter().filter(|line| !line.starts_with("compact")) {
        let folder = Folder::with("in.jsonl", input());
        let plain = folder.run(&format!("{line} -o -")).ends(0).out.clone();
        assert!(!plain.is_empty(), "{line}");
        assert_eq!(folder.run(&format!("{line} -o /dev/stdout")).ends(0).out, plain, "{line}");
        folder.run(&format!("{line} -o /dev/null")).ends(0);
        // Redirected into a file, it is still standard output.
        let into = fs::File::create(folder.path("into")).unwrap();
        let done = folder.command(&format!("{line} -o /dev/stdout")).stdout(into).output().unwrap();
        assert!(done.status.success(), "{line}");
        assert_eq!(folder.read("into"), plain, "{line}");
        Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
        let pipe = folder.path("pipe");
        let reading = std::thread::spawn(move || fs::read(pipe).unwrap());
        folder.run(&format!("{line} -o pipe")).ends(0);
        assert_eq!(reading.join().unwrap(), plain, "{line}");
    }
}

#[test]
fn a_result_has_the_permissions_of_its_source_and_never_more() {
    for line in WRITING {
        for (source, umask, wanted) in
            [(0o600, "022", 0o600), (0o640, "022", 0o640), (0o666, "022", 0o644), (0o644, "077", 0o600)]
        {
            let folder = Folder::with("in.jsonl", input());
            set_mode(&folder.path("in.jsonl"), source);
            let steno = folder.command(&format!("{line} -o out"));
            let words: Vec<_> = steno.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            let script = format!("umask {umask}; exec '{}' {}", env!("CARGO_BIN_EXE_steno"), words.join(" "));
            let done = Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
            assert_eq!(mode(&folder.path("out")), wanted, "{line} of {source:o} under {umask}");
        }
        let folder = Folder::with("in.jsonl", input());
        let piped = line.replace("in.jsonl", "-");
        folder.run_with(&format!("{piped} -o out"), input().as_bytes()).ends(0);
        assert_eq!(mode(&folder.path("out")), 0o600, "{line}");
    }
}

#[test]
fn an_edit_in_place_keeps_the_permissions_and_its_undo_file_is_private() {
    for line in ["cut in.jsonl --events 2 --in-place", "compact in.jsonl --keep 0 --summary short --in-place"] {
        let folder = Folder::with("in.jsonl", input());
        set_mode(&folder.path("in.jsonl"), 0o664);
        folder.run(line).ends(0);
        assert_eq!((mode(&folder.path("in.jsonl")), mode(&folder.path("in.jsonl.undo"))), (0o664, 0o600), "{line}");
        folder.run("undo in.jsonl").ends(0);
        assert_eq!((mode(&folder.path("in.jsonl")), folder.read("in.jsonl")), (0o664, input().into_bytes()));
    }
    let folder = Folder::with("in.jsonl", input());
    folder.run("cut in.jsonl --split-at 5 -o piece.jsonl").ends(0);
    assert_eq!(mode(&folder.path("piece.1.jsonl")), mode(&folder.path("in.jsonl")));
}

#[test]
fn a_recording_is_readable_by_its_owner_only() {
    let folder = Folder::new();
    let message = r#"{"v":1,"kind":"message","role":"user","content":"Hello"}"#;
    for to in ["steno:a/run.steno.jsonl", "cycod:b/chat.jsonl", "devflow:c", "leslie:d", "claude-events:e", "chibi:f"] {
        let line = format!("record --to {to}");
        let mut recorder = folder.command(&line);
        recorder
            .env("HOME", folder.path("home"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        let mut child = recorder.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), message.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{to}");
    }
    let mut seen = 0;
    let mut open = vec![folder.path("")];
    while let Some(inside) = open.pop() {
        for path in fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().path()) {
            seen += 1;
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), wanted, "{}", path.display());
            open.extend(path.is_dir().then_some(path));
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn of_two_edits_at_once_none_is_lost() {
    for round in 0..30 {
        let folder = Folder::with("in.jsonl", input());
        let edits = ["cut in.jsonl --events 2 --in-place --json", "cut in.jsonl --events 6 --in-place --json"];
        let running = edits.map(|line| {
            let mut command = folder.command(line);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        });
        let done = running.map(|child| child.wait_with_output().unwrap());
        let (mut edits_done, mut removed) = (0, 0);
        for done in done {
            if done.status.success() {
                // The second command counts the remaining events, and may remove a call with its result.
                let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
                (edits_done, removed) = (edits_done + 1, removed + report["removed"].as_array().unwrap().len());
            } else {
                let talk = String::from_utf8_lossy(&done.stderr);
                assert!(done.status.code() == Some(2) && talk.contains("process "), "{round}: {talk}");
            }
        }
        assert!(edits_done >= 1 && removed >= edits_done, "{round}");
        let lines = folder.read("in.jsonl").iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 8 - removed, "{round}");
        for _ in 0..edits_done {
            folder.run("undo in.jsonl").ends(0);
        }
        assert_eq!(folder.read("in.jsonl"), input().as_bytes(), "{round}");
        assert_eq!(folder.names(), ["in.jsonl"], "{round}");
    }
}

/// Every command that changes a file in place.
const CHANGING: [&str; 4] = [
    "trim in.jsonl --max-tokens 1 --in-place",
    "cut in.jsonl --events 2 --in-place",
    "compact in.jsonl --keep 0 --summary short --in-place",
    "undo in.jsonl",
];

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_an_agent_has_open_is_not_edited() {
    let folder = Folder::with("in.jsonl", input());
    folder.run("cut in.jsonl --events 8 --in-place").ends(0);
    let before = folder.read("in.jsonl");
    // Reading it is not restricted.
    let mut reading =
        Command::new("sleep").arg("600").stdin(fs::File::open(folder.path("in.jsonl")).unwrap()).spawn().unwrap();
    let open = fs::File::options().append(true).open(folder.path("in.jsonl")).unwrap();
    let mut agent = Command::new("sleep").arg("600").stdout(open).spawn().unwrap();
    for line in CHANGING {
        folder.run(line).fails(&format!("process {} has it open for writing", agent.id()));
        assert_eq!(folder.read("in.jsonl"), before, "{line}");
    }
    assert_eq!(folder.names(), ["in.jsonl", "in.jsonl.undo"]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    folder.run("cut in.jsonl --events 2 --in-place").ends(0);
    reading.kill().unwrap();
    reading.wait().unwrap();
}

#[test]
fn a_running_recording_is_not_edited() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    for (to, file) in [("steno:in.jsonl", "in.jsonl"), ("cycod:in.jsonl", "in.jsonl")] {
        let folder = Folder::new();
        let mut recorder = folder
            .command(&format!("record --to {to} --ack"))
            .env("HOME", folder.path("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = recorder.stdin.take().unwrap();
        stdin.write_all(input().as_bytes()).unwrap();
        let mut acknowledged = BufReader::new(recorder.stdout.take().unwrap()).lines();
        for _ in 0..8 {
            acknowledged.next().unwrap().unwrap();
        }
        let before = folder.read(file);
        for line in CHANGING.iter().take(3) {
            folder.run(line).fails(&format!("process {}", recorder.id()));
            assert_eq!(folder.read(file), before, "{line}");
        }
        let more = NATIVE.replace("\"e", "\"g").replace("\"c1\"", "\"c3\"");
        stdin.write_all(more.as_bytes()).unwrap();
        drop(stdin);
        assert!(recorder.wait().unwrap().success(), "{to}");
        assert!(folder.read(file).len() > before.len(), "{to}");
        folder.run("cut in.jsonl --events 2 --in-place").ends(0);
    }
}

#[test]
fn an_undo_file_is_beside_the_file_itself() {
    let folder = Folder::new();
    fs::create_dir(folder.path("real")).unwrap();
    folder.write("real/in.jsonl", input());
    symlink("real/in.jsonl", folder.path("in.jsonl")).unwrap();
    folder.run("cut in.jsonl --events 2 --in-place").ends(0);
    assert_eq!(folder.names(), ["in.jsonl", "real"]);
    assert!(folder.path("real/in.jsonl.undo").exists() && folder.path("in.jsonl").is_symlink());
    folder.run("undo in.jsonl").ends(0);
    assert_eq!(folder.read("real/in.jsonl"), input().as_bytes());
}

/// A running recording whose first line is acknowledged.
fn recording(folder: &Folder, to: &str) -> (std::process::Child, std::process::ChildStdin) {
    use std::io::{BufRead, BufReader, Write};
    let mut command = folder.command(&format!("record --from steno {to} --ack"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(NATIVE.as_bytes()).unwrap();
    let mut acknowledged = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(acknowledged.next().unwrap().is_ok());
    std::thread::spawn(move || acknowledged.for_each(drop));
    (child, input)
}

#[test]
fn a_result_takes_the_place_of_no_file_that_is_being_recorded_or_written() {
    for line in WRITING {
        let folder = Folder::with("in.jsonl", input());
        let (mut child, more) = recording(&folder, "--to steno:live.steno.jsonl");
        folder.run(&format!("{line} -o live.steno.jsonl --force")).fails("is writing to it");
        drop(more);
        assert!(child.wait().unwrap().success(), "{line}");
        assert_eq!(String::from_utf8(folder.read("live.steno.jsonl")).unwrap().matches("\"id\":\"e").count(), 4);
    }
    let folder = Folder::with("in.jsonl", input());
    folder.write("open.jsonl", "mine\n");
    let mut agent = Command::new("sh");
    agent.args(["-c", "exec >> open.jsonl; echo ready >&2; read line"]).current_dir(folder.path(""));
    let mut agent = agent.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Read::read_exact(agent.stderr.as_mut().unwrap(), &mut [0; 5]).unwrap();
    folder.run("convert in.jsonl --to openai-chat -o open.jsonl --force").fails("open");
    assert_eq!(folder.read("open.jsonl"), b"mine\n");
    drop(agent.stdin.take());
    agent.wait().unwrap();
}

#[test]
fn a_recorder_leaves_a_file_alone_that_took_the_place_of_its_own() {
    use std::io::Write;
    let mine = "mine\n".repeat(10_000);
    for (to, name) in [
        ("--to steno:live.steno.jsonl", "live.steno.jsonl"),
        ("--to devflow --set run=r1", ".devflow/runs/r1/journal.steno"),
    ] {
        let folder = Folder::with("mine", &mine);
        let (mut child, mut more) = recording(&folder, to);
        fs::rename(folder.path("mine"), folder.path(name)).unwrap();
        let _ = more.write_all(NATIVE.replace("\"e", "\"f").as_bytes());
        drop(more);
        assert_eq!(child.wait().unwrap().code(), Some(2), "{to}");
        assert_eq!(folder.read(name), mine.as_bytes(), "{to}");
    }
}

#[test]
fn a_chibi_window_cannot_be_edited_while_it_is_locked_or_out_of_date() {
    let folder = Folder::with("in.jsonl", input());
    fs::create_dir(folder.path("ctx")).unwrap();
    folder.run("convert in.jsonl --to chibi -o ctx/context.jsonl");
    let before = folder.read("ctx/context.jsonl");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for edit in ["cut ctx/context.jsonl --turns 1 --in-place", "trim ctx/context.jsonl --max-tokens 1 --in-place"] {
        folder.write("ctx/.lock", now.to_string());
        folder.run(edit).fails("another process is writing to it");
        fs::remove_file(folder.path("ctx/.lock")).unwrap();
        folder.write("ctx/.dirty", "");
        folder.run(edit).fails("out of date");
        fs::remove_file(folder.path("ctx/.dirty")).unwrap();
        assert_eq!(folder.read("ctx/context.jsonl"), before);
    }
    folder.run("cut ctx/context.jsonl --turns 1 --in-place").ends(0);
}

/// A journal that names files it may not write.
fn crafted(documents: &str) -> String {
    let time = "\"time\":\"2026-11-16T08:18:37Z\"";
    format!(
        "{{\"v\":1,\"kind\":\"fact\",{time},\"name\":\"recording\",\"recording\":{{\"layout\":\"cycod\",\"settings\":{{\"asked\":\"{documents}\"}},\"documents\":{{\"{documents}\":5}}}}}}\n\
         {{\"v\":1,\"kind\":\"message\",{time},\"role\":\"user\",\"content\":\"$(touch pwned)\"}}\n"
    )
}

#[test]
fn a_journal_completes_transcripts_of_its_own_whatever_folder_is_named() {
    for document in ["../.bashrc", ".bashrc", "../other/Makefile", "hooks/post-checkout"] {
        let folder = Folder::new();
        for made in ["proj/repo/hooks", "proj/other"] {
            fs::create_dir_all(folder.path(made)).unwrap();
        }
        for file in ["proj/.bashrc", "proj/repo/.bashrc", "proj/other/Makefile"] {
            folder.write(file, "# rc\n");
        }
        folder.write("proj/repo/e.steno", crafted(document));
        let done = folder.run("recover proj");
        done.ends(2).talks("cannot be completed");
        for file in ["proj/.bashrc", "proj/repo/.bashrc", "proj/other/Makefile"] {
            assert_eq!(folder.read(file), b"# rc\n", "{document}");
        }
        assert!(!folder.path("proj/repo/hooks/post-checkout").exists());
    }
}

#[test]
fn a_recording_that_cannot_be_completed_does_not_keep_the_others_from_it() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        fs::create_dir(folder.path(name)).unwrap();
        let (mut child, more) = recording(&folder, &format!("--to cycod:{name}/chat.jsonl"));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(more);
    }
    fs::rename(folder.path("a/chat.jsonl"), folder.path("a/real.jsonl")).unwrap();
    symlink("real.jsonl", folder.path("a/chat.jsonl")).unwrap();
    folder.run("recover .").ends(2).talks("a/chat.jsonl.steno: cannot be completed").talks("b/chat.jsonl");
    assert!(!String::from_utf8_lossy(&folder.read("b/chat.jsonl")).is_empty());
    folder.run("recover b").ends(0).talks("already complete");
}
