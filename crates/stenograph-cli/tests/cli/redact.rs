//! `steno redact`, `--redact`, `check --secrets`, and what is left of a secret after `--everywhere`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cassette::python;
use crate::list::{home, index, message_line, path};
use crate::runner::{Folder, NATIVE};

const TOKEN: &str = "ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku";
const PASSWORD: &str = "Zq81hs72kdWv";
const ONE: &str = "0198aaaa-1111-4222-8333-444455556666";

fn native() -> String {
    NATIVE
        .replace("Fix the test.", &format!("Fix it with {TOKEN} in /home/kimberly/app."))
        .replace("\"ok\"", &format!("\"DB_PASSWORD={PASSWORD}\\nok for kimberly\""))
        .replace("cargo test", &format!("login {PASSWORD}"))
}

#[test]
fn a_redacted_copy_keeps_everything_else() {
    let folder = Folder::with("a.jsonl", native());
    let done = folder.run("redact a.jsonl -o b.jsonl");
    done.ends(0).talks("masked: 3 secrets, 2 personal details").talks("  github-pat: 1");
    let (before, after) = (native(), String::from_utf8(folder.read("b.jsonl")).unwrap());
    assert!(!after.contains(TOKEN) && !after.contains(PASSWORD) && !after.contains("kimberly"), "{after}");
    assert_eq!(before.lines().count(), after.lines().count());
    assert!(after.contains("\"call\":\"c1\"") && after.contains("/home/user-"), "{after}");
    folder.run("check b.jsonl --laws").ends(0);
    let again = folder.run("redact b.jsonl");
    assert_eq!(
        (again.ends(0).text(), again.talk.contains("masked: 0 secrets, 0 personal details")),
        (after.as_str(), true)
    );
    let json = &folder.run("redact a.jsonl --dry-run --json").ends(0).json()[0];
    assert_eq!((json["secrets"].as_u64(), json["found"][2]["rule"].as_str()), (Some(3), Some("github-pat")));
    folder.run("redact b.jsonl --dry-run").ends(1);
    folder.run("redact a.jsonl -o b.jsonl").fails("already exists");
}

#[test]
fn secrets_are_listed_and_not_revealed() {
    let folder = Folder::with("a.jsonl", native());
    let done = folder.run("check --secrets a.jsonl");
    done.ends(1).says("a.jsonl: steno, 2 likely secrets").says("  line 1: github-pat in content: ghp… (40 characters)");
    assert!(!done.text().contains(TOKEN) && !done.text().contains(PASSWORD));
    let json = &folder.run("check --secrets --json a.jsonl").ends(1).json()[0];
    assert_eq!((json["secrets"][1]["line"].as_u64(), json["report"]["secrets"].as_u64()), (Some(4), Some(2)));
    folder.write("clean.jsonl", NATIVE);
    folder.run("check --secrets clean.jsonl").ends(0).says("0 likely secrets");
}

#[test]
fn export_and_convert_read_a_redacted_source() {
    let folder = Folder::with("a.jsonl", native());
    folder.run("export a.jsonl --to markdown").ends(0).says(TOKEN).talks("warning: the input has 2 likely secrets");
    for to in ["markdown", "json"] {
        let done = folder.run(&format!("export a.jsonl --to {to} --redact"));
        done.ends(0).says("redacted:github-pat:").talks("masked: 3 secrets");
        assert!(!done.text().contains(TOKEN) && !done.text().contains(PASSWORD));
    }
    let done = folder.run("convert a.jsonl --to claude-code --carry --redact");
    done.ends(0).says("redacted:github-pat:").talks("masked: 3 secrets");
    assert!(!done.text().contains(TOKEN) && !done.text().contains(PASSWORD) && !done.text().contains("kimberly"));
}

#[test]
fn the_name_of_a_redacted_file_reveals_nothing() {
    let folder = Folder::new();
    let file = folder.path(&format!("home/kimberly/{TOKEN}.jsonl"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, NATIVE.replace("\"session\":\"s1\",", "")).unwrap();
    for to in ["markdown", "json", "html", "csv"] {
        for name in [file.display().to_string(), format!("home/kimberly/{TOKEN}.jsonl")] {
            let done = folder.run(&format!("export {name} --to {to} --redact"));
            let text = done.ends(0).text();
            assert!(!text.contains(TOKEN) && !text.contains("kimberly"), "{to}: {text}");
        }
    }
}

#[test]
fn the_key_of_the_store_gives_equal_masks_in_all_files() {
    let folder = home();
    folder.write("a.jsonl", native());
    folder.write("b.jsonl", NATIVE.replace("Fix the test.", TOKEN));
    let mask = |done: &crate::runner::Done| {
        let text = done.text().to_owned();
        text.split("[redacted:github-pat:").nth(1).unwrap().split(']').next().unwrap().to_owned()
    };
    let (one, other) = (mask(folder.run("redact a.jsonl").ends(0)), mask(folder.run("redact b.jsonl").ends(0)));
    assert_eq!(one, other);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.path("store/redaction.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn own_patterns_and_the_allow_list_come_from_the_settings() {
    let folder = Folder::with("a.jsonl", NATIVE.replace("Fix the test.", &format!("ACME-123456 {TOKEN}")));
    fs::create_dir(folder.path("home")).unwrap();
    folder.run("config set Redact.Patterns ACME-[0-9]+").ends(0);
    folder.run("config set Redact.Allow ^ghp_x7").ends(0);
    let done = folder.run("redact a.jsonl");
    done.ends(0).says("[redacted:custom:").says(TOKEN);
    folder.run("config set Redact.Patterns (").ends(0);
    folder.run("redact a.jsonl").fails("not a regular expression");
}

/// Whether a file holds a text, plainly, in small letters, or in a zstd frame.
fn holds(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap();
    let lower = text.to_ascii_lowercase();
    let has = |bytes: &[u8]| {
        let bytes = bytes.to_ascii_lowercase();
        bytes.windows(lower.len()).any(|window| window == lower.as_bytes())
    };
    let frames = bytes.windows(4).enumerate().filter(|(_, magic)| *magic == [0x28, 0xb5, 0x2f, 0xfd]);
    let in_frame = |(at, _): (usize, &[u8])| {
        let mut out = Vec::new();
        let decoder = zstd::stream::Decoder::new(&bytes[at..]);
        let _ = decoder.map(|decoder| std::io::Read::read_to_end(&mut decoder.single_frame(), &mut out));
        has(&out)
    };
    has(&bytes) || frames.into_iter().any(in_frame)
}

fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => open.push(entry),
                false if holds(&entry, text) => found.push(entry.display().to_string()),
                false => {}
            }
        }
    }
    found
}

/// A home whose first session has secrets in its file, two archived versions, the index, an undo file and a journal.
fn home_with_secrets() -> Folder {
    let folder = home();
    let clean = String::from_utf8(folder.read(&path(ONE))).unwrap();
    let in_folder = format!("\"cwd\":\"/work/{TOKEN}\"");
    let with_token = clean
        + &message_line(ONE, 8, "user", &format!("Use {TOKEN} for the walrus"))
            .replace("\"cwd\":\"/work/app\"", &in_folder);
    folder.write(&path(ONE), &with_token);
    index(&folder);
    // The file is rewritten, so the archive has two versions with secrets.
    let rewritten = message_line(ONE, 1, "user", &format!("Begin again with {PASSWORD}"))
        + &message_line(ONE, 9, "user", &format!("export DB_PASSWORD={PASSWORD}"));
    folder.write(&path(ONE), &rewritten);
    index(&folder);
    folder.write(&format!("{}.undo", path(ONE)), &with_token);
    folder.write(&format!("{}.steno", path(ONE)), NATIVE.replace("Fix the test.", TOKEN));
    folder
}

/// The files below a folder that hold one of the secrets.
fn files_with_secrets(folder: &Folder) -> Vec<String> {
    [TOKEN, PASSWORD].into_iter().flat_map(|secret| files_with(&folder.path(""), secret)).collect()
}

#[test]
fn nothing_of_a_secret_is_left_on_the_machine() {
    let folder = home_with_secrets();
    for secret in [TOKEN, PASSWORD] {
        let found = files_with(&folder.path(""), secret);
        assert!(found.iter().any(|file| file.contains("/archive/packs/")), "{found:?}");
    }
    folder.run(&format!("find {PASSWORD} --root home")).ends(0);

    let planned = folder.run("redact 0198aaaa-1 --everywhere --dry-run --root home");
    planned.ends(0).talks("would be masked: 3 secrets").talks("would be masked in all archived versions: 4 secrets");
    let planned = &folder.run("redact 0198aaaa-1 --everywhere --dry-run --json --root home").ends(0).json()[0];
    let done = &folder.run("redact 0198aaaa-1 --everywhere --json --root home").ends(0).json()[0];
    assert_eq!((&planned["report"], &planned["archive"]), (&done["report"], &done["archive"]));
    assert!(done["removed"][0].as_str().unwrap().ends_with(".undo"), "{done}");
    assert_eq!(files_with_secrets(&folder), Vec::<String>::new());
    for secret in [TOKEN, PASSWORD] {
        folder.run(&format!("find {secret} --root home")).ends(1);
    }
    folder.run("archive verify").ends(0);
    folder.run("find walrus --root home").ends(0);
    folder.run("show 0198aaaa-1 --root home").ends(0).says("redacted:");
    // Running it again changes nothing; other sessions are untouched.
    folder.run("redact 0198aaaa-1 --everywhere --root home").ends(0).talks("masked: 0 secrets");
    folder.run("redact 0198aaaa-1 --everywhere --dry-run --root home").ends(1);
    folder.run("list --root home").ends(0).says("ffff0000");
}

#[test]
fn a_session_that_is_being_written_is_refused() {
    let folder = home_with_secrets();
    let before = files_with_secrets(&folder);
    let agent = fs::OpenOptions::new().append(true).open(folder.path(&path(ONE))).unwrap();
    folder.run("redact 0198aaaa-1 --everywhere --root home").fails("").talks("end the session first");
    assert_eq!(files_with_secrets(&folder), before);
    drop(agent);
    folder.run("redact 0198aaaa-1 --everywhere --root home").ends(0);
    assert_eq!(files_with_secrets(&folder), Vec::<String>::new());
}

#[test]
fn it_says_what_it_cannot_clean() {
    let folder = home_with_secrets();
    folder.run(&format!("mark 0198aaaa-1 --note {TOKEN} --root home")).ends(0);
    let result = path(ONE).replace(".jsonl", "/tool-results/t1.txt");
    fs::create_dir_all(folder.path(&result).parent().unwrap()).unwrap();
    folder.write(&result, TOKEN);
    let planned = &folder.run("redact 0198aaaa-1 --everywhere --dry-run --json --root home").ends(0).json()[0];
    assert!(planned["not_cleaned"][0].as_str().unwrap().ends_with("/tool-results/t1.txt"), "{planned}");
    assert_eq!(planned["marks_have_secrets"].as_bool(), Some(true));
    let done = folder.run("redact 0198aaaa-1 --everywhere --root home");
    done.ends(0).talks("a title, tag or note").talks("not cleaned: ").talks("/tool-results/t1.txt");
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    let file = path(ONE);
    folder.run(&format!("redact {file} --everywhere --root home")).fails("the index is missing").talks("steno index");
}

#[test]
fn other_sessions_with_the_same_secrets_are_named() {
    const OTHER: &str = "ffff0000-1111-4222-8333-444455556666";
    let folder = home_with_secrets();
    let other = String::from_utf8(folder.read(&path(OTHER))).unwrap();
    folder.write(&path(OTHER), other + &message_line(OTHER, 30, "user", &format!("It was {PASSWORD}, I think")));
    index(&folder);
    let planned = folder.run("redact 0198aaaa-1 --everywhere --dry-run --root home");
    planned.ends(0).talks("warning: 1 other session has some of these secrets:").talks(OTHER);
    let done = folder.run("redact 0198aaaa-1 --everywhere --root home");
    done.ends(0).talks(OTHER);
    assert!(!done.talk.contains(PASSWORD) && !done.talk.contains(TOKEN), "{}", done.talk);
    assert!(files_with_secrets(&folder).iter().any(|file| file.contains(OTHER)));
    folder.run(&format!("redact {OTHER} --everywhere --root home")).ends(0);
    // The index has found the journal as a session of its own; it was cleaned with the first session.
    assert_eq!(files_with(&folder.path(""), TOKEN), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_run_that_is_killed_can_be_repeated() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    const LINE: &str = "redact 0198aaaa-1 --everywhere --root home";
    let rounds = std::env::var("STENO_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(16_u32);
    let folder = home_with_secrets();
    let start = Instant::now();
    folder.run(LINE).ends(0);
    // Kills are spread over the time that a complete run took; whatever each of them interrupts, the next run completes it.
    let whole = start.elapsed();
    let (mut killed, mut with_secrets) = (0, 0);
    for round in 0..rounds {
        let folder = home_with_secrets();
        let mut command = folder.command(LINE);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros((whole.as_micros() as u64) * u64::from(round) / u64::from(rounds)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        with_secrets += u32::from(!files_with_secrets(&folder).is_empty());
        folder.run(LINE).ends(0);
        assert_eq!(files_with_secrets(&folder), Vec::<String>::new(), "after a kill in round {round}");
        folder.run("archive verify").ends(0);
        folder.run("find walrus --root home").ends(0);
        folder.run(&format!("find {PASSWORD} --root home")).ends(1);
    }
    assert!(killed > 0 && with_secrets > 0, "{killed} of {rounds} runs killed, {with_secrets} with secrets");
}

#[test]
fn another_scanner_finds_nothing_in_a_redacted_file() {
    let Some(python) = python() else { return };
    let script = "import sys, betterleaks\nfor path in sys.argv[1:]:\n    found = betterleaks.scan_string(open(path).read())\n    print(len(found), [f.rule_id for f in found])";
    let scan = |file: &Path| {
        let done = Command::new(python).args(["-c", script]).arg(file).output().unwrap();
        String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr)
    };
    let slack = "xoxb-123456789012-210987654321-x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3F";
    let stripe = "sk_live_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3F";
    let text = format!("token {TOKEN} and {slack} and {stripe}");
    let folder = Folder::with("a.jsonl", NATIVE.replace("Fix the test.", &text));
    let before = scan(&folder.path("a.jsonl"));
    if before.contains("ModuleNotFoundError") {
        eprintln!("WARNING: betterleaks cannot be installed: no other scanner checks redacted files");
        return;
    }
    assert!(!before.starts_with('0'), "the scanner finds nothing: {before}");
    folder.run("redact a.jsonl -o b.jsonl").ends(0);
    let after = scan(&folder.path("b.jsonl"));
    assert!(after.starts_with("0 "), "{after}");
}
