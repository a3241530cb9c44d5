//! `steno tail`: real processes that follow real files.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::runner::{CHIBI, Folder, NATIVE};

/// A line of the native stream with this text.
fn message_line(text: &str) -> String {
    format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"{text}\"}}\n")
}

/// A running command and its output.
struct Running {
    child: Child,
    out: Receiver<String>,
    talk: Receiver<String>,
}

/// Long enough for a busy machine; normally nothing waits that long.
const PATIENCE: Duration = Duration::from_secs(60);

impl Running {
    fn start(folder: &Folder, line: &str) -> Running {
        let mut child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = each_line(child.stdout.take().unwrap());
        let talk = each_line(child.stderr.take().unwrap());
        Running { child, out, talk }
    }

    /// The next line of data.
    #[track_caller]
    fn next(&self) -> String {
        self.out.recv_timeout(PATIENCE).expect("nothing came")
    }

    /// The text of the next event.
    #[track_caller]
    fn says(&self, text: &str) {
        let event: serde_json::Value = serde_json::from_str(&self.next()).unwrap();
        assert_eq!(event["content"], text);
    }

    #[track_caller]
    fn talks(&self, what: &str) {
        let line = self.talk.recv_timeout(PATIENCE).expect("nothing was said");
        assert!(line.contains(what), "{what} is not in: {line}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn each_line(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn append(folder: &Folder, name: &str, text: &str) {
    OpenOptions::new().append(true).open(folder.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn the_end_looks_as_steno_show_has_it() {
    let folder = Folder::with("a", NATIVE);
    // A tail does not know the numbers of the events.
    let unnumbered = |line: &str| {
        let mut lines: Vec<String> = folder.run(line).ends(0).text().lines().map(str::to_owned).collect();
        for line in lines.iter_mut().filter(|line| line.starts_with("    ")) {
            line.replace_range(..5, "     ");
        }
        lines
    };
    assert_eq!(unnumbered("tail a -n 2"), unnumbered("show a --last 2"));
    assert_eq!(unnumbered("tail a"), unnumbered("show a --last 100"));
    assert_eq!(folder.run("tail a --json -n 1").text(), folder.run("show a --last 1 --json").text());
    folder.write("b", CHIBI);
    assert_eq!(unnumbered("tail b -n 1"), unnumbered("show b --last 1"));
    assert_eq!(folder.run("tail a -n 0").ends(0).text(), "");
}

#[test]
fn far_from_the_beginning_lines_have_no_numbers() {
    let folder = Folder::with("a", NATIVE.repeat(1000));
    let json = folder.run("tail a --json -n 1").json();
    assert_eq!(json[0]["at"].get("line"), None);
    let offset = usize::try_from(json[0]["at"]["offset"].as_u64().unwrap()).unwrap();
    let length = usize::try_from(json[0]["at"]["length"].as_u64().unwrap()).unwrap();
    assert!(NATIVE.repeat(1000)[offset..offset + length].contains("\"e4\""));
}

#[test]
fn an_incomplete_last_line_is_shown_and_reported() {
    let folder = Folder::with("a", &NATIVE[..NATIVE.len() - 20]);
    folder.run("tail a -n 1").ends(0).says("tool_result").talks("is incomplete");
}

#[test]
fn compressed_files_and_documents_have_an_end_too() {
    let folder = Folder::with("a.zst", zstd::encode_all(NATIVE.as_bytes(), 3).unwrap());
    folder.run("tail a.zst -n 1").ends(0).says("result of Bash, 1 line");
    assert_eq!(folder.run("tail a.zst").text().lines().count(), 10);
}

#[test]
fn a_source_that_cannot_be_followed_is_explained() {
    let folder = Folder::with("a", "");
    folder.run("tail a").finds_nothing("the file is empty");
    folder.run("tail none").fails("no such file");
    folder.write("b", "what is this\n");
    folder.run("tail b").fails("unknown format");
    std::fs::create_dir(folder.path("c")).unwrap();
    folder.run("tail c").fails("is a folder");
}

#[test]
fn without_a_name_the_newest_transcript_is_shown() {
    let folder = Folder::new();
    folder.run("tail --root .").finds_nothing("no transcripts");
    for (name, text) in [("old", "old words"), ("new", "new words")] {
        fs::create_dir_all(folder.path(&format!(".chibi/contexts/{name}"))).unwrap();
        let path = format!(".chibi/contexts/{name}/context.jsonl");
        folder.write(&path, CHIBI.replace("[package]", text));
        let old = std::time::SystemTime::now() - Duration::from_secs(if name == "old" { 600 } else { 0 });
        fs::File::options().write(true).open(folder.path(&path)).unwrap().set_modified(old).unwrap();
    }
    folder.run("tail --root . -n 1").ends(0).says("new words").talks("new/context.jsonl");
    folder.run("tail --root none").fails("no such folder");
}

#[test]
fn new_events_are_shown_as_they_arrive() {
    let folder = Folder::with("a", message_line("one") + &message_line("two"));
    let tail = Running::start(&folder, "tail -f a -n 1 --json");
    tail.says("two");
    append(&folder, "a", &message_line("three"));
    tail.says("three");
    let four = message_line("four");
    append(&folder, "a", &four[..30]);
    append(&folder, "a", &(four[30..].to_owned() + &message_line("five")));
    tail.says("four");
    tail.says("five");
}

#[test]
fn an_empty_file_is_waited_for() {
    let folder = Folder::with("a", "");
    let tail = Running::start(&folder, "tail -f a --json");
    append(&folder, "a", &message_line("one"));
    tail.says("one");
}

#[test]
fn a_renamed_file_is_shown_to_its_end_and_the_new_one_from_its_beginning() {
    let folder = Folder::with("a", message_line("one"));
    let tail = Running::start(&folder, "tail -f a --json");
    tail.says("one");
    let mut writer = OpenOptions::new().append(true).open(folder.path("a")).unwrap();
    fs::rename(folder.path("a"), folder.path("a.1")).unwrap();
    tail.talks("is gone");
    writer.write_all(message_line("two").as_bytes()).unwrap();
    tail.says("two");
    folder.write("a", message_line("three"));
    tail.talks("replaced by another file");
    tail.says("three");
    append(&folder, "a", &message_line("four"));
    tail.says("four");
}

#[test]
fn a_rotation_at_once_loses_nothing() {
    let folder = Folder::with("a", message_line("one"));
    let tail = Running::start(&folder, "tail -f a --json");
    tail.says("one");
    append(&folder, "a", &message_line("two"));
    folder.write("b", message_line("three"));
    fs::hard_link(folder.path("a"), folder.path("a.1")).unwrap();
    fs::rename(folder.path("b"), folder.path("a")).unwrap();
    tail.says("two");
    tail.says("three");
    tail.talks("replaced by another file");
}

#[test]
fn a_file_that_becomes_shorter_is_shown_from_its_beginning() {
    let folder = Folder::with("a", message_line("one") + &message_line("two"));
    let tail = Running::start(&folder, "tail -f a --json");
    tail.says("one");
    tail.says("two");
    folder.write("a", message_line("three"));
    tail.talks("the file shrank");
    tail.says("three");
    append(&folder, "a", &message_line("four"));
    tail.says("four");
}

#[test]
fn a_reader_that_closes_the_pipe_of_tail_is_not_an_error() {
    let folder = Folder::with("a", message_line("one"));
    let mut child = folder.command("tail -f a --json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    append(&folder, "a", &message_line("two"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn a_file_that_is_rotated_without_a_pause_is_followed() {
    let folder = Folder::with("a", message_line("begin"));
    let mut running = Running::start(&folder, "tail -f a --json");
    running.says("begin");
    // Each time, the name is missing for a moment, and `tail` may look just then.
    for number in 0..300 {
        folder.write("next", message_line(&number.to_string()));
        fs::rename(folder.path("a"), folder.path("old")).unwrap();
        fs::rename(folder.path("next"), folder.path("a")).unwrap();
    }
    append(&folder, "a", &message_line("end"));
    let is_end = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap()["content"] == "end";
    while !is_end(running.next()) {}
    assert!(running.child.try_wait().unwrap().is_none(), "it ended");
}

#[test]
fn the_marks_of_a_recording_are_not_shown() {
    let folder = Folder::new();
    let thought = "{\"v\":1,\"kind\":\"thinking\",\"content\":\"Hm.\"}\n";
    folder.run_with("record --to chibi:ctx", (message_line("Go.") + thought).as_bytes()).ends(0).talks("journal.steno");
    let done = folder.run("tail ctx");
    done.ends(0).says("Go.").says("Hm.");
    assert!(!done.text().contains("recording"), "{}", done.text());
    let kinds: Vec<String> =
        folder.run("tail ctx --json").json().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["message", "thinking", "stop"]);
    // They do not count as requested events either.
    folder.run("tail ctx -n 2").ends(0).says("Hm.");
}

#[test]
fn events_have_the_numbers_of_show() {
    let folder = Folder::new();
    // More than one window of 64 KiB, so that the beginning is not read.
    let text: String = (1..=2000).map(|number| message_line(&format!("{number} {}", "walrus ".repeat(10)))).collect();
    folder.write("long.steno.jsonl", &text);
    folder.run("tail long.steno.jsonl -n 2").ends(0).says(" 1999  ❯ You").says(" 2000  ❯ You");
    fs::create_dir(folder.path("home")).unwrap();
    fs::rename(folder.path("long.steno.jsonl"), folder.path("home/long.steno.jsonl")).unwrap();
    folder.run("index --root home").ends(0);
    folder.run("tail home/long.steno.jsonl -n 2").ends(0).says(" 1999  ❯ You").says(" 2000  ❯ You");
    // Events that the index does not know yet follow its last one.
    let mut file = OpenOptions::new().append(true).open(folder.path("home/long.steno.jsonl")).unwrap();
    file.write_all(message_line("new").as_bytes()).unwrap();
    folder.run("tail home/long.steno.jsonl -n 1").ends(0).says(" 2001  ❯ You");
    let running = Running::start(&folder, "tail -f home/long.steno.jsonl -n 0");
    std::thread::sleep(Duration::from_millis(500));
    file.write_all(message_line("newer").as_bytes()).unwrap();
    while !running.next().contains(" 2002  ❯ You") {}
}
