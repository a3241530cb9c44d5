//! `steno replay`: printed without a terminal, played in a real terminal. `terminal/drive.py` drives the terminal: it presses
//! keys, reads the screen and checks that the terminal is restored.

use std::process::Command;

use crate::runner::{CHIBI, Folder, NATIVE};

/// Two turns with a night between them.
const TWO_DAYS: &str = r#"{"v":1,"kind":"fact","time":"2026-03-02T09:14:00Z","session":"s1","id":"e0","name":"settings"}
{"v":1,"kind":"message","time":"2026-03-02T09:14:05Z","session":"s1","id":"e1","role":"user","content":"Fix the test."}
{"v":1,"kind":"thinking","time":"2026-03-02T09:14:06Z","session":"s1","id":"e2","content":"Run it first."}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:14:07Z","session":"s1","id":"e3","name":"Bash","call":"c1","input":{"command":"cargo test"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:14:09Z","session":"s1","id":"e4","call":"c1","content":"ok","error":false}
{"v":1,"kind":"message","time":"2026-03-03T10:14:09Z","session":"s1","id":"e5","role":"user","content":"And the other one?"}
{"v":1,"kind":"message","time":"2026-03-03T10:14:12Z","session":"s1","id":"e6","role":"assistant","content":"All is well.","usage":{"input":12,"output":1234}}
"#;

#[test]
fn everything_is_printed_without_a_terminal() {
    let folder = Folder::with("a", TWO_DAYS);
    let expected = "\
Fix the test.
steno
2026-03-02 09:14 to 2026-03-03 10:14 UTC · 1,246 tokens

── 2026-03-02 UTC ──────────────────────────────────────────────────────────────
    2  ❯ You                                                            09:14:05
       Fix the test.

    3  (thinking)
       Run it first.

    4  $ cargo test
    5  └ 1 line
         ok

── 2026-03-03 UTC ──────────────────────────────────────────────────────────────
    6  ❯ You                                                            10:14:09
       And the other one?

    7  ● Agent                                                          10:14:12
       All is well.
";
    assert_eq!(folder.run("replay a").ends(0).text(), expected);
    // Show draws the same events in the same way.
    assert_eq!(folder.run("show a").ends(0).text(), expected);
    folder.run("replay a --all").ends(0).says("(settings)");
    folder.run("replay a --all --mode summary").ends(0).says("    1  (settings)");
}

#[test]
fn each_mode_shows_its_kinds_of_events() {
    let folder = Folder::with("a", TWO_DAYS);
    let summary = folder.run("replay a --mode summary");
    let lines: Vec<&str> = summary.ends(0).text().lines().skip(4).collect();
    assert_eq!(
        lines[1..6],
        [
            "    2  ❯ You  Fix the test.",
            "    3  (thinking)  Run it first.",
            "    4  $ cargo test",
            "    5  └ 1 line  ok",
            "",
        ]
    );
    assert_eq!(lines.len(), 9);
    let kinds = |mode: &str| -> Vec<String> {
        let events = folder.run(&format!("replay a --json --mode {mode}")).ends(0).json();
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds("assistant"), ["e6"]);
    assert_eq!(kinds("tools"), ["e3", "e4"]);
    assert_eq!(kinds("full"), ["e1", "e2", "e3", "e4", "e5", "e6"]);
}

#[test]
fn a_part_is_played_by_numbers_and_by_ids() {
    let folder = Folder::with("a", TWO_DAYS);
    let ids = |line: &str| -> Vec<String> {
        let events = folder.run(&format!("replay a --json {line}")).ends(0).json();
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("--start 3 --end 4"), ["e2", "e3"]);
    assert_eq!(ids("--start e5"), ["e5", "e6"]);
    assert_eq!(ids("--end e2"), ["e1", "e2"]);
    // The numbers are those of steno show.
    let shown = folder.run("show a --event 5 --json").json();
    assert_eq!(shown[0]["id"], ids("--start 5 --end 5")[0].as_str());
    folder.run("replay a --start 99").finds_nothing("no event 99");
    folder.run("replay a --start nobody").finds_nothing("no event with the id nobody");
    folder.run("replay a --start 5 --end 2").finds_nothing("the end (event 2) is before the start (event 5)");
    folder.run("replay a --end 0").finds_nothing("no event 0");
    folder.run("replay a --start e5 --end nobody").ends(0).talks("no event with the id nobody");
}

#[test]
fn events_that_were_taken_back_are_not_played() {
    let message_line = |id: &str, parent: &str, role: &str| {
        format!(
            "{{\"v\":1,\"kind\":\"message\",\"id\":\"{id}\",\"parent\":\"{parent}\",\"role\":\"{role}\",\"content\":\"say {id}\"}}\n"
        )
    };
    let lines = [
        message_line("a", "", "user"),
        message_line("b", "a", "assistant"),
        message_line("c", "a", "assistant"),
        message_line("d", "c", "user"),
    ];
    let folder = Folder::with("a", lines.concat());
    let played = folder.run("replay a");
    assert!(!played.ends(0).text().contains("say b"));
    played.says("    3  ● Agent\n").says("say d");
}

#[test]
fn other_formats_and_containers_are_played_too() {
    let folder = Folder::with("a", CHIBI);
    folder.run("replay a --mode summary").ends(0).says("    1  ❯ alice  What is Rust?").says("└ ");
    folder.write("b.zst", zstd::encode_all(TWO_DAYS.as_bytes(), 3).unwrap());
    assert_eq!(folder.run("replay b.zst").text(), folder.run_with("replay -", TWO_DAYS.as_bytes()).text());
    folder.run("replay b.zst").says("All is well.");
}

#[test]
fn a_source_that_cannot_be_played_is_explained() {
    let folder = Folder::with("empty", "");
    folder.run("replay empty").fails("the file is empty");
    folder.write("facts", TWO_DAYS.lines().next().unwrap());
    folder.run("replay facts").finds_nothing("no events to play");
    folder.run("replay none.jsonl").fails("no such file");
    assert!(folder.run("replay facts --speed 0").ends(2).talk.contains("expected a speed"));
    folder.run("replay - --follow").fails("cannot follow standard input");
}

#[test]
fn hostile_text_does_nothing_to_a_terminal() {
    let folder = Folder::with("a", NATIVE.replace("Fix the test.", "\\u001b[2J\\u009b31m \u{202e}x"));
    let done = folder.run("replay a");
    assert!(done.ends(0).text().contains("␛[2J"));
    assert!(!done.text().contains(['\u{1b}', '\u{9b}', '\u{202e}']));
    for mode in ["summary", "assistant", "tools"] {
        let text = folder.run(&format!("replay a --mode {mode}"));
        assert!(!text.text().contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{mode}");
    }
}

/// The result of a replay in a terminal.
pub struct Watched(pub serde_json::Value);

/// Plays in a terminal of 80 columns and 24 lines; `None` without Python.
#[track_caller]
pub fn watched(folder: &Folder, line: &str, steps: &serde_json::Value) -> Option<Watched> {
    let command = folder.command(line);
    let arguments: Vec<&str> = command.get_args().map(|argument| argument.to_str().unwrap()).collect();
    watched_program(folder, command.get_program().to_str().unwrap(), &arguments, steps)
}

/// Runs any program in such a terminal.
#[track_caller]
pub fn watched_program(
    folder: &Folder,
    program: &str,
    arguments: &[&str],
    steps: &serde_json::Value,
) -> Option<Watched> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/drive.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(steps.to_string()).arg(program).args(arguments);
    python.current_dir(folder.path(".")).env("TERM", "xterm").env("TZ", "UTC").env("STENO_HOME", folder.path("store"));
    python.env("HOME", folder.path("home"));
    if arguments.join(" ").contains("--mode summary") {
        python.env("NO_COLOR", "1");
    } else {
        python.env_remove("NO_COLOR");
    }
    let Ok(output) = python.output() else {
        eprintln!("no python3: the terminal is not tried");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{:?}", output.stderr));
    assert_eq!(found["failed"], serde_json::Value::Null, "{}", found["failed"].as_str().unwrap_or_default());
    Some(Watched(found))
}

impl Watched {
    pub(crate) fn output(&self) -> &str {
        self.0["said"].as_str().unwrap()
    }

    #[track_caller]
    pub fn ends(&self, code: i64) -> &Watched {
        assert_eq!((self.0["code"].as_i64(), self.0["restored"].as_bool()), (Some(code), Some(true)), "{}", self.0);
        assert!(self.0["widest"].as_u64().unwrap() <= 80, "{}", self.0);
        self
    }

    #[track_caller]
    pub fn says(&self, what: &str) -> &Watched {
        assert!(self.0["said"].as_str().unwrap().contains(what), "{}", self.0);
        self
    }
}

#[test]
fn keys_move_the_replay_and_the_terminal_is_restored() {
    let folder = Folder::with("a", TWO_DAYS);
    let steps = serde_json::json!([
        ["see", "Fix the test."],
        ["see", "event 2 of 7"],
        ["type", " "],
        ["see", "paused"],
        ["type", "n"],
        ["see", "Run it first."],
        ["type", "\u{1b}[C"],
        ["see", "cargo test"],
        ["type", "b"],
        ["gone", "cargo test"],
        ["type", "g6\r"],
        ["see", "1 d 1 h later"],
        ["see", "And the other one?"],
        ["see", "event 6 of 7"],
        ["type", "U"],
        ["gone", "And the other one?"],
        ["type", "u"],
        ["see", "And the other one?"],
        ["type", "++"],
        ["see", "4x"],
        ["type", "-"],
        ["see", "2x"],
        ["type", "m"],
        ["see", "summary"],
        ["type", "m"],
        ["see", "assistant"],
        ["see", "All is well."],
        ["type", "mm"],
        ["see", "full"],
        ["type", "G"],
        ["see", "event 7 of 7"],
        ["see", "1,234 out"],
        ["type", "g"],
        ["see", "go to event"],
        ["type", "6\r"],
        ["see", "event 6 of 7"],
        ["type", "k"],
        ["type", "j"],
        ["type", "?"],
        ["see", "half as fast"],
        ["type", "?"],
        ["gone", "half as fast"],
        ["type", "g3\r"],
        ["see", "event 3 of 7"],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        done.ends(0).says("stopped at event 3 of 7").says("continue with: steno replay a --start 3");
        assert!(done.0["colours"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_search_finds_folded_lines_and_continues_with_n() {
    let output: String = (1..=60).map(|number| format!("line {number}\\n")).collect();
    let folder = Folder::with("a", TWO_DAYS.replace("\"content\":\"ok\"", &format!("\"content\":\"{output}\"")));
    let steps = serde_json::json!([
        ["see", "event 2 of 7"],
        ["type", " "],
        ["see", "paused"],
        // Scrolling down beyond an event goes to the next one.
        ["type", "j"],
        ["see", "Run it first."],
        ["type", "/LINE 50"],
        ["see", "/LINE 50_"],
        ["type", "\u{1b}"],
        ["gone", "LINE 50"],
        ["type", "/line 50\r"],
        ["see", "event 5 of 7"],
        ["see", "line 50"],
        ["gone", "more lines"],
        ["type", "/the\r"],
        ["see", "event 6 of 7"],
        ["see", "And the other one?"],
        ["type", "n"],
        ["see", "event 2 of 7"],
        ["type", "N"],
        ["see", "event 6 of 7"],
        ["type", "/nowhere\r"],
        ["see", "/nowhere: not found"],
        ["see", "event 6 of 7"],
        // After the search, n is the next event again.
        ["type", "\u{1b}"],
        ["gone", "nowhere"],
        ["type", "n"],
        ["see", "All is well."],
        ["type", "f"],
        ["see", "end"],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        done.ends(0);
    }
}

#[test]
fn it_plays_by_itself_to_the_end() {
    let folder = Folder::with("a", TWO_DAYS);
    let steps = serde_json::json!([["see", "All is well."], ["see", "end"], ["type", "\u{3}"]]);
    if let Some(done) = watched(&folder, "replay a --speed 64x --mode summary", &steps) {
        done.ends(0);
        // NO_COLOR is set.
        assert_eq!(done.0["colours"], 0);
    }
}

#[test]
fn the_terminal_is_restored_however_the_replay_ends() {
    let folder = Folder::with("a", TWO_DAYS);
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let steps = serde_json::json!([["see", "Fix the test."], ["signal", signal]]);
        if let Some(done) = watched(&folder, "replay a", &steps) {
            done.ends(code);
        }
    }
}

#[test]
fn printing_to_a_terminal_leaves_its_settings_unchanged() {
    let folder = Folder::with("a", TWO_DAYS);
    for (signal, code) in [("QUIT", -3), ("TERM", -15), ("HUP", -1)] {
        for line in ["tail -f a", "status --watch a"] {
            let seen = if line.starts_with("tail") { "All is well." } else { "s1" };
            let steps = serde_json::json!([["see", seen], ["signal", signal]]);
            if let Some(done) = watched(&folder, line, &steps) {
                assert_eq!((&done.0["code"], &done.0["restored"]), (&code.into(), &true.into()), "{line}: {}", done.0);
            }
        }
    }
}

#[test]
fn a_transcript_does_nothing_to_the_terminal_it_is_written_to() {
    let folder = Folder::with("a", NATIVE.replace("Fix the test.", "Fix\\u001b[31m the \u{9b}31m test. Walrus"));
    for line in
        ["convert a --to chibi-markdown -o -", "cut a --events 2", "trim a --max-tokens 100000", "export a --to json"]
    {
        let steps = serde_json::json!([["see", "Walrus"]]);
        if let Some(done) = watched(&folder, line, &steps) {
            let is_prose = line.contains("markdown");
            assert_eq!(done.0["said"].as_str().unwrap().contains("␛[31m"), is_prose, "{line}: {}", done.0);
            assert!(!done.0["said"].as_str().unwrap().contains(['\u{1b}', '\u{9b}']), "{line}: {}", done.0);
        }
    }
}

#[test]
fn suspended_it_gives_the_terminal_back_and_takes_it_again() {
    let folder = Folder::with("a", TWO_DAYS);
    let steps = serde_json::json!([
        ["see", "event 2 of 7"],
        ["type", " \u{1a}"],
        ["stops"],
        ["signal", "CONT"],
        ["see", "paused"],
        ["signal", "TSTP"],
        ["stops"],
        ["signal", "CONT"],
        ["see", "paused"],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        done.ends(0);
        assert_eq!(done.0["restored_when_stopped"], serde_json::json!([true, true]));
    }
}

#[test]
fn a_screen_of_any_size_will_do() {
    let long: String = (1..200).map(|number| format!("line {number}\\n")).collect();
    let folder = Folder::with("a", TWO_DAYS.replace("Fix the test.", &long));
    let steps = serde_json::json!([
        ["see", "event 2 of 7"],
        ["type", " "],
        ["see", "paused"],
        ["size", 30, 8],
        ["see", "line 3"],
        ["gone", "line 9"],
        ["type", "\u{1b}[6~"],
        ["see", "line 9"],
        ["type", "\u{1b}[5~"],
        ["gone", "line 9"],
        ["size", 5, 2],
        ["see", "eve"],
        ["size", 80, 24],
        ["see", "paused"],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        done.ends(0);
    }
}

/// Within a long event, the visible text stays visible when the width of the window changes, whatever the number of lines.
#[test]
fn the_visible_text_stays_visible_when_the_width_changes() {
    let long: String = (1..60).map(|number| format!("line {number} {}\\n", "and on ".repeat(20))).collect();
    let folder = Folder::with("a", TWO_DAYS.replace("All is well.", &long).replace("Fix the test.", &long));
    let steps = serde_json::json!([
        ["see", "event 2 of 7"],
        ["type", " "],
        ["see", "paused"],
        ["type", ">"],
        ["see", "event 7 of 7"],
        ["type", "\u{1b}[6~"],
        ["see", "line 12"],
        ["size", 20, 24],
        ["see", "event 7"],
        ["size", 200, 24],
        ["see", "line 12"],
        ["size", 80, 24],
        ["see", "line 12"],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        assert_eq!((&done.0["code"], &done.0["restored"]), (&0.into(), &true.into()), "{}", done.0);
    }
}

/// The size changes and then a key is pressed while the terminal accepts no output: the replay learns of both at once.
#[test]
fn a_key_during_a_resize_is_read() {
    let long: String = (1..200).map(|number| format!("line {number} {}\\n", "-".repeat(150))).collect();
    let folder = Folder::with("a", TWO_DAYS.replace("Fix the test.", &long));
    let steps = serde_json::json!([
        ["see", "event 2 of 7"],
        ["type", " "],
        ["see", "paused"],
        ["size", 200, 150],
        ["wait", 0.3],
        ["size", 80, 24],
        ["wait", 0.1],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a", &steps) {
        assert_eq!(
            (&done.0["code"], &done.0["restored"]),
            (&serde_json::json!(0), &serde_json::json!(true)),
            "{}",
            done.0
        );
    }
}

#[test]
fn a_run_that_is_still_going_is_joined() {
    let (before, after) = TWO_DAYS.split_at(TWO_DAYS.match_indices('\n').nth(2).unwrap().0 + 1);
    let folder = Folder::with("a", before);
    let steps = serde_json::json!([
        ["see", "Run it first."],
        ["see", "waiting for new events"],
        ["append", folder.path("a"), after],
        ["see", "All is well."],
        ["type", "q"],
    ]);
    if let Some(done) = watched(&folder, "replay a --follow --speed 100x", &steps) {
        done.ends(0);
    }
}
