//! The memory of `steno trim`, `steno cut` and `steno compact`: some bytes for each event, and none for the texts.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::runner::Folder;

/// The size of the files, and the memory limit of the command. Before files were read in chunks, it took ten times the file.
const FILE_SIZE: usize = 30 << 20;
const MEMORY_KB_MAX: u64 = 80_000;

/// The peak memory of a command, in KB.
fn peak_kb(folder: &Folder, line: &str) -> u64 {
    let mut child =
        folder.command(line).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let status = fs::read_to_string(&status_file).unwrap_or_default();
        let figure = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let figure = figure.and_then(|figure| figure.trim().trim_end_matches(" kB").parse().ok());
        peak = figure.unwrap_or(0).max(peak);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(matches!(ended.code(), Some(0 | 1)), "{line}: {ended}");
    assert!(peak > 0, "{line}: it was never seen");
    peak
}

/// Turns of a question, a call, its long result and an answer, in a file of that size.
fn session(turn: impl Fn(usize, &str) -> String) -> String {
    let words = "The quick brown fox jumps over the lazy dog. ".repeat(80);
    let mut file = String::with_capacity(FILE_SIZE + (16 << 10));
    let mut number = 0;
    while file.len() < FILE_SIZE {
        number += 1;
        file.push_str(&turn(number, &words));
    }
    file
}

fn claude_code() -> String {
    let id = |number: usize| format!("\"9d2f6c1e-0000-4000-8000-{number:012}\"");
    session(|turn, words| {
        let mut lines = String::new();
        let messages = [
            ("user", r#"{"role":"user","content":"Look around."}"#.to_owned()),
            (
                "assistant",
                format!(
                    r#"{{"id":"msg_{turn}","role":"assistant","content":[{{"type":"tool_use","id":"toolu_{turn}","name":"list","input":{{}}}}]}}"#
                ),
            ),
            (
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"tool_use_id":"toolu_{turn}","type":"tool_result","content":"{words}"}}]}}"#
                ),
            ),
            (
                "assistant",
                format!(r#"{{"id":"end_{turn}","role":"assistant","content":[{{"type":"text","text":"{words}"}}]}}"#),
            ),
        ];
        for (step, (kind, message)) in messages.into_iter().enumerate() {
            let own = 4 * turn + step;
            let parent = if own == 4 { "null".to_owned() } else { id(own - 1) };
            writeln!(
                lines,
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"uuid\":{},\"timestamp\":\"2026-03-02T09:14:05.000Z\",\
                 \"sessionId\":\"9d2f6c1e-0000-4000-8000-00000000000f\",\"type\":\"{kind}\",\"message\":{message}}}",
                id(own)
            )
            .unwrap();
        }
        lines
    })
}

fn codex() -> String {
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"2026-09-03T08:11:50.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let header = line("session_meta", r#"{"id":"0199","cwd":"/w"}"#);
    let turns = session(|turn, words| {
        let message =
            format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"Go {turn}."}}]}}"#);
        let again = format!(r#"{{"type":"user_message","message":"Go {turn}."}}"#);
        let call = format!(r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"call_{turn}"}}"#);
        let result = format!(r#"{{"type":"function_call_output","call_id":"call_{turn}","output":"{words}"}}"#);
        let answer =
            format!(r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{words}"}}]}}"#);
        [
            line("response_item", &message),
            line("event_msg", &again),
            line("response_item", &call),
            line("response_item", &result),
            line("response_item", &answer),
        ]
        .concat()
    });
    header + &turns
}

fn takes_little(session: &str, target: &str) {
    let folder = Folder::with("session.jsonl", session);
    for line in [
        format!("trim session.jsonl --max-tokens {target} -o trimmed.jsonl"),
        "trim session.jsonl --rule cycod --max-tool-tokens 200 --dry-run".to_owned(),
        "cut session.jsonl --turns 10..2000 -o cut.jsonl".to_owned(),
        "cut session.jsonl --turns ..20 --in-place".to_owned(),
        "cut session.jsonl --split-every 2000 -o piece.jsonl".to_owned(),
        "compact session.jsonl --keep 2000 --summary So.far -o compacted.jsonl".to_owned(),
        "compact session.jsonl --keep-tokens 1000000 --dry-run".to_owned(),
        // The command reads all removed events.
        "compact session.jsonl --keep 2 --as steno --summarise wc".to_owned(),
    ] {
        let peak = peak_kb(&folder, &line);
        assert!(peak < MEMORY_KB_MAX, "{line}: {peak} KB");
    }
}

#[test]
fn a_large_file_of_claude_code_is_edited_in_little_memory() {
    takes_little(&claude_code(), "100000");
}

#[test]
fn a_large_file_of_codex_is_edited_in_little_memory() {
    takes_little(&codex(), "5000000");
}
