//! What people see: the screens of the most used commands in real terminals of two sizes, with and without colour, compared
//! with golden files; and the width and the harmlessness of everything that the other commands print.
//!
//! `STENO_UPDATE=1` writes the golden files again. Read every difference before you commit it.

use std::fs;
use std::path::Path;
use std::process::Command;

use unicode_width::UnicodeWidthStr;

use crate::runner::Folder;

const SIZES: [(usize, usize); 2] = [(80, 24), (120, 40)];

/// The commands with golden screens.
const COMMANDS: [(&str, &str); 12] = [
    ("overview", ""),
    ("list", "list"),
    ("find", "find leap"),
    ("show", "show 8c1f5a52"),
    ("tail", "tail 8c1f5a52 -n 4"),
    ("audit", "audit 8c1f5a52"),
    ("usage", "usage --no-index --root home"),
    ("diff", "diff demo.steno.jsonl demo.codex.jsonl --summary"),
    ("check", "check demo.codex.jsonl"),
    ("convert", "convert demo.steno.jsonl --to codex -o out.jsonl --force"),
    ("status", "status 8c1f5a52"),
    ("resume", "resume 8c1f5a52"),
];

/// Other commands, whose screens are only measured. `ffffffff` is the hostile session.
const OTHERS: [&str; 60] = [
    "formats",
    "config list",
    "config get Redact.Allow",
    "config folder list",
    "list --tree",
    "list --tree ffffffff",
    "list --tree demo.steno.jsonl demo.codex.jsonl",
    "list --sort errors",
    "list nothing-at-all",
    "replay demo.steno.jsonl --mode full --no-pager",
    "archive verify",
    "archive list",
    "archive prune --older-than 1d --dry-run",
    "archive prune --max-count 1 --dry-run",
    "archive restore ffffffff -o restored",
    "archive unforget ffffffff",
    "index --root home",
    "index --unknown",
    "status --root home",
    "status --active-within 100y --all",
    "status ffffffff --explain",
    "usage --root home --by model",
    "usage --root home --by tool --explain",
    "usage --by project,model",
    "usage --by branch",
    "usage --by session",
    "find --file calendar.rs",
    "find hostile",
    "find leap --events",
    "find hostile --events",
    "find --session hostile red",
    "find --session leap commit",
    "find nothing-at-all here",
    "diff demo.steno.jsonl demo.codex.jsonl",
    "diff ffffffff 8c1f5a52",
    "show ffffffff",
    "show ffffffff --all --full",
    "show 99999999",
    "tail ffffffff",
    "audit ffffffff",
    "audit ffffffff --explain",
    "audit ffffffff --only commands",
    "audit ffffffff 8c1f5a52",
    "check ffffffff",
    "check ffffffff --secrets",
    "check --laws demo.steno.jsonl",
    "convert ffffffff --to codex -o hostile.jsonl --force",
    "mark ffffffff --title hostile --note hostile --tag zoo",
    "mark",
    "redact ffffffff --dry-run",
    "redact 8c1f5a52 --everywhere --dry-run",
    "trim demo.claude-code.jsonl --max-tokens 320 --dry-run",
    "cut demo.claude-code.jsonl --turns 1 --dry-run",
    "compact demo.claude-code.jsonl --keep 1 --summary Done. --dry-run",
    "undo demo.claude-code.jsonl",
    "resume ffffffff",
    "recover demo.steno.jsonl",
    "chibi context list",
    "devflow list",
    "demo",
];

/// Commands that print data in a format of its own, whose lines stay whole.
const DATA: [&str; 3] =
    ["export ffffffff --to markdown", "cycod continue demo.openai-chat.jsonl", "show ffffffff --json"];

/// A text that attacks a terminal: escape sequences, C1 controls, bidirectional and invisible characters, wide ones.
const HOSTILE: &str = "hostile \\u001b[31mred\\u001b]0;owned\\u0007 \\u009b31m \\u202eltr \\u200bzero \\u2066iso 漢字漢字 👩‍👩‍👧 שלום \\r\\u0008";

/// A folder with the files of the demo, one of them in the home of its agent.
pub fn folder_with_demo() -> Folder {
    let folder = Folder::new();
    folder.run("demo").ends(0);
    let demo = folder.names().into_iter().find(|name| name.starts_with("steno-demo")).unwrap();
    for entry in fs::read_dir(folder.path(&demo)).unwrap() {
        let entry = entry.unwrap();
        // The tour leaves a store beside the files.
        if entry.path().is_file() {
            fs::copy(entry.path(), folder.path(entry.file_name().to_str().unwrap())).unwrap();
        }
    }
    fs::remove_dir_all(folder.path(&demo)).unwrap();
    let path = folder.path("home/.claude/projects/-home-mira-almanac/8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(folder.path("demo.claude-code.jsonl"), path).unwrap();
    folder
}

/// The same with a hostile session; all indexed.
fn sample() -> Folder {
    let folder = folder_with_demo();
    let message_line = |number: u32, role: &str, content: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"ffffffff-0000-4000-8000-{number:012}\",\"sessionId\":\"ffffffff-1111-4222-8333-444455556666\",\
             \"timestamp\":\"2026-03-01T08:0{number}:00.000Z\",\"cwd\":\"/home/mira/{HOSTILE}\",\"gitBranch\":\"{HOSTILE}\",\
             \"message\":{{\"role\":\"{role}\",\"model\":\"{HOSTILE}\",\"content\":{content}}}}}\n"
        )
    };
    let text = message_line(1, "user", &format!("\"{HOSTILE}\""))
        + &message_line(
            2,
            "assistant",
            &format!(
                "[{{\"type\":\"text\",\"text\":\"# {HOSTILE}\\n\\n```{HOSTILE}\\n{HOSTILE}\\n```\\n\\n| {HOSTILE} | b |\\n|---|---|\\n| {HOSTILE} | c |\"}}]"
            ),
        )
        + &message_line(
            3,
            "assistant",
            &format!(
                "[{{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Bash\",\"input\":{{\"command\":\"{HOSTILE}\",\"description\":\"{HOSTILE}\"}}}}]"
            ),
        )
        + &message_line(
            4,
            "user",
            &format!(
                "[{{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\",\"is_error\":true,\"content\":\"{HOSTILE}\"}}]"
            ),
        );
    let path = "home/.claude/projects/-home-mira/ffffffff-1111-4222-8333-444455556666.jsonl";
    fs::create_dir_all(folder.path(path).parent().unwrap()).unwrap();
    folder.write(path, text);
    folder.run("index --root home").ends(0);
    folder
}

/// What a command writes to a terminal; `None` without Python.
pub fn screen(folder: &Folder, line: &str, (columns, lines): (usize, usize), color: &str) -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal/capture.py");
    let command = folder.command(&format!("{line} --no-pager --color {color}"));
    let mut python = Command::new("python3");
    python.args([script, &columns.to_string(), &lines.to_string()]);
    python.arg(command.get_program()).args(command.get_args()).current_dir(folder.path("."));
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => python.env(key, value),
            None => python.env_remove(key),
        };
    }
    let output = python.env("TERM", "xterm-256color").output().ok()?;
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A screen without what depends on the day and the folder of the test.
fn normal(screen: &str, folder: &Folder) -> String {
    let folder = fs::canonicalize(folder.path(".")).unwrap().display().to_string();
    let screen = screen.replace(&folder, "FOLDER");
    let age = regex::Regex::new(r"\d+(s|m|h|d) ago|in \d+(s|m|h|d)\b").unwrap();
    let screen = age.replace_all(&screen, |found: &regex::Captures<'_>| {
        found[0].chars().map(|char| if char.is_ascii_digit() { '#' } else { char }).collect::<String>()
    });
    screen.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The lines that are wider than the terminal, or contain a control beyond colours.
fn faults(screen: &str, columns: usize, what: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let colour = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for line in screen.lines() {
        // A progress bar draws over itself.
        let line = line.rsplit('\r').next().unwrap_or(line);
        let line = line.replace("\u{1b}[2K", "").replace("\u{1b}[1A", "");
        let plain = colour.replace_all(&line, "");
        // Joiners belong in some emoji.
        let bad = |char: char| {
            char.is_control()
                || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        if plain.chars().any(bad) {
            faults.push(format!("{what}: a control: {plain:?}"));
        }
        // A path and a command that people copy stay whole, and the terminal wraps them.
        let content = plain.trim_start();
        let is_whole =
            !content.contains(' ') || ["steno ", "$ ", "cd ", "/"].iter().any(|begin| content.starts_with(begin));
        if plain.width() > columns && !is_whole {
            faults.push(format!("{what}: {} columns: {plain}", plain.width()));
        }
    }
    faults
}

#[test]
fn the_most_used_commands_look_as_the_golden_screens() {
    let folder = sample();
    let mut wrong = Vec::new();
    for (name, line) in COMMANDS {
        let mut found = String::new();
        for size in SIZES {
            for color in ["never", "always"] {
                let Some(shown) = screen(&folder, line, size, color) else {
                    eprintln!("no python3: the screens are not compared");
                    return;
                };
                let what = format!("steno {line}, {}x{}, --color {color}", size.0, size.1);
                wrong.extend(faults(&shown, size.0, &what));
                found += &format!("== {what}\n{}", normal(&shown, &folder).replace('\u{1b}', "␛"));
            }
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/screens/{name}.txt"));
        if std::env::var_os("STENO_UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &found).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        let differing = found.lines().zip(golden.lines()).enumerate().find(|(_, (found, golden))| found != golden);
        wrong.extend(
            differing.map(|(number, (found, golden))| {
                format!("{}:{}: {found:?}, not {golden:?}", path.display(), number + 1)
            }),
        );
        if found.lines().count() != golden.lines().count() {
            wrong.push(format!("{}: another number of lines", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_command_prints_controls_or_lines_wider_than_the_terminal() {
    let folder = sample();
    let mut wrong = Vec::new();
    for line in OTHERS.into_iter().chain(DATA) {
        for color in ["never", "always"] {
            let Some(shown) = screen(&folder, line, (80, 24), color) else { return };
            if shown.is_empty() {
                wrong.push(format!("{line}: nothing"));
            }
            let columns = if DATA.contains(&line) { usize::MAX } else { 80 };
            wrong.extend(faults(&shown, columns, line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_help_is_wider_than_the_terminal() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for command in crate::help::all_commands() {
        let Some(shown) = screen(&folder, &format!("{command} --help"), (80, 24), "never") else { return };
        wrong.extend(faults(&shown, 80, &command));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
