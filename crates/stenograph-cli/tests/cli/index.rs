//! `steno index` for a user: reports about skipped files, and other processes that write at the same time.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::list::{home, message_line, path};

const SESSION: &str = "0198aaaa-1111-4222-8333-444455556666";

#[test]
fn files_that_are_passed_over_are_counted_by_kind_and_place() {
    let folder = home();
    fs::create_dir_all(folder.path("home/notes/deep")).unwrap();
    for number in 0..4 {
        folder.write(&format!("home/notes/n{number}.png"), "an image");
    }
    folder.write("home/notes/deep/README", "no ending");
    folder.write("home/notes/deep/data.jsonl", "this is not a transcript\n");
    for _ in 0..2 {
        let done = folder.run("index --root home");
        done.ends(0).talks("skipped 6 files that are not transcripts: 4 .png, ").talks("1 without an extension");
        done.talks("1 .jsonl").talks("home/notes (4)").talks("home/notes/deep (2)");
    }
    let json = folder.run("index --root home --json").ends(0).json().pop().unwrap();
    assert_eq!(json["passed_over"]["count"], 6);
    let groups = json["passed_over"]["groups"].as_array().unwrap();
    let counted: u64 = groups.iter().map(|group| group["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 6);
    let of = |ending: &str| groups.iter().find(|group| group["ending"] == ending).unwrap();
    assert_eq!((of("jsonl")["reason"].as_str(), of("png")["reason"].as_str()), (Some("format"), Some("ending")));
    assert!(of("png")["folder"].as_str().unwrap().ends_with("home/notes"));
}

#[test]
fn text_of_an_earlier_version_is_found_marked_and_opened() {
    let folder = home();
    folder.write(&path(SESSION), message_line(SESSION, 1, "user", "only a seal"));
    folder.run("index --root home").ends(0).talks("1 rewritten");
    let hits = folder.run(&format!("find fed session:{SESSION} --root home --json")).ends(0).json();
    assert_eq!((hits.len(), &hits[0]["version"]), (2, &serde_json::json!(1)));
    let event = hits[0]["event"].as_u64().unwrap();
    let done = folder.run(&format!("find fed session:{SESSION} --root home"));
    done.ends(0).says("version 1, which is no longer in the file");
    done.says(&format!(" --version 1 --event {event}"));
    let shown = folder.run(&format!("show {SESSION} --version 1 --event {event} --root home"));
    shown.ends(0).says("It is fed.").talks("showing archived version 1 of ");
    folder.run(&format!("show {SESSION} --root home")).ends(0).says("only a seal");
    folder.run(&format!("show {SESSION} --version 9 --root home")).finds_nothing("version 9 is not in the archive");
    assert_eq!(folder.run("find seal --root home --json").json()[0]["version"], serde_json::Value::Null);
}

#[cfg(unix)]
#[test]
fn a_second_process_waits_and_names_the_first() {
    let folder = home();
    let lock = fs::File::create(folder.path("store/index.lock")).unwrap();
    lock.lock().unwrap();
    let mut command = folder.command("index --root home");
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "it does not wait");
    drop(lock);
    let mut talk = String::new();
    child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{talk}");
    assert!(talk.contains("note: waiting for another process, which is writing to the index"), "{talk}");
    assert!(talk.contains("unchanged"), "{talk}");
}

#[cfg(unix)]
#[test]
fn a_run_that_waits_can_be_interrupted() {
    let folder = home();
    let lock = fs::File::create(folder.path("store/index.lock")).unwrap();
    lock.lock().unwrap();
    let mut command = folder.command("index --root home");
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = [0; 13];
    child.stderr.as_mut().unwrap().read_exact(&mut talk).unwrap();
    assert_eq!(&talk, b"note: waiting");
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn two_watchers_share_the_work() {
    let folder = home();
    let mut watchers: Vec<_> = (0..2)
        .map(|_| {
            let mut command = folder.command("index --watch --root home --json");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut file = fs::File::options().append(true).open(folder.path(&path(SESSION))).unwrap();
    std::io::Write::write_all(&mut file, message_line(SESSION, 40, "user", "a penguin grows").as_bytes()).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while folder.run("find penguin --root home --json").json().len() != 2 {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(50));
    }
    for watcher in &mut watchers {
        assert!(watcher.try_wait().unwrap().is_none(), "one of the watchers has ended");
        let killed = std::process::Command::new("kill").args(["-INT", &watcher.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let mut talk = String::new();
        watcher.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
        assert_eq!(watcher.wait().unwrap().code(), Some(0), "{talk}");
        assert!(!talk.contains("error: "), "{talk}");
    }
}

/// A file system in memory with limited space, if the test may create one.
#[cfg(target_os = "linux")]
struct SmallDisk(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(at: std::path::PathBuf, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(&at).unwrap();
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "steno-test"]).arg(&at);
        command.output().is_ok_and(|done| done.status.success()).then_some(SmallDisk(at))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["-l"]).arg(&self.0).output();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_watcher_on_a_full_disk_reports_it_once_and_continues_when_there_is_space() {
    let folder = home();
    let Some(disk) = SmallDisk::mount(folder.path("disk"), "6m") else {
        eprintln!("no disk is filled: nobody may mount one here");
        return;
    };
    let mut command = folder.command("index --watch --root home --json");
    command.env("STENO_HOME", disk.0.join("store"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let find = |query: &str| {
        let mut command = folder.command(&format!("find {query} --root home --json"));
        let done = command.env("STENO_HOME", disk.0.join("store")).output().unwrap();
        String::from_utf8_lossy(&done.stdout).lines().count().saturating_sub(1)
    };
    let wait_for = |query: &str| {
        let patience = Instant::now() + Duration::from_secs(90);
        while find(query) == 0 {
            assert!(Instant::now() < patience, "{query}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_for("walrus");
    // The disk is full.
    let mut ballast = fs::File::create(disk.0.join("ballast")).unwrap();
    while std::io::Write::write(&mut ballast, &[1; 4096]).is_ok_and(|written| written > 0) {}
    let mut file = fs::File::options().append(true).open(folder.path(&path(SESSION))).unwrap();
    let more = message_line(SESSION, 40, "user", &format!("a penguin grows {}", "and grows ".repeat(20_000)));
    std::io::Write::write_all(&mut file, more.as_bytes()).unwrap();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut talk = String::new();
    while !talk.contains("no space left on the device") {
        assert!(std::io::BufRead::read_line(&mut errors, &mut talk).unwrap() > 0, "it has ended: {talk}");
    }
    std::thread::sleep(Duration::from_secs(5));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    assert!(!disk.0.join("store/index.lock").exists(), "a lock stays");
    fs::remove_file(disk.0.join("ballast")).unwrap();
    drop(ballast);
    wait_for("penguin");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    errors.read_to_string(&mut talk).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{talk}");
    assert_eq!(talk.matches("no space left on the device").count(), 1, "{talk}");
    assert!(talk.contains("indexing again"), "{talk}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_watcher_that_starts_on_a_full_disk_waits_for_room() {
    let folder = home();
    let Some(disk) = SmallDisk::mount(folder.path("disk"), "6m") else {
        eprintln!("no disk is filled: nobody may mount one here");
        return;
    };
    let mut ballast = fs::File::create(disk.0.join("ballast")).unwrap();
    while std::io::Write::write(&mut ballast, &[1; 4096]).is_ok_and(|written| written > 0) {}
    let mut command = folder.command("index --watch --root home --json");
    command.env("STENO_HOME", disk.0.join("store"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut talk, &mut line).unwrap();
    assert!(line.contains("no space left on the device"), "{line}");
    fs::remove_file(disk.0.join("ballast")).unwrap();
    drop(ballast);
    let patience = Instant::now() + Duration::from_secs(90);
    loop {
        let mut command = folder.command("find walrus --root home");
        if command.env("STENO_HOME", disk.0.join("store")).output().unwrap().status.success() {
            break;
        }
        assert!(Instant::now() < patience && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(100));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_repository_does_not_block_indexing() {
    let folder = home();
    let git = folder.path("home/project/.git");
    fs::create_dir_all(&git).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let made = std::process::Command::new("mkfifo").arg(git.join("config")).status().unwrap();
    assert!(made.success());
    let other = "0298aaaa-1111-4222-8333-444455556666";
    let project = folder.path("home/project");
    let text = message_line(other, 1, "user", "an otter").replace("/work/app", project.to_str().unwrap());
    folder.write(&format!("home/.claude/projects/-work-app/{other}.jsonl"), text);
    folder.run("index --root home").ends(0).talks("1 new");
}
