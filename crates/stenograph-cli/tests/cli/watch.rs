//! `steno index --watch` with real files that grow, shrink, rotate and vanish while it runs.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::list::{home, message_line, path};
use crate::runner::Folder;

const SESSION: &str = "0198aaaa-1111-4222-8333-444455556666";

/// A watcher that ends with the test.
struct Watching(Child);

impl Watching {
    fn start(folder: &Folder) -> Watching {
        let mut command = folder.command("index --watch --root home --json");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Watching(child)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a query finds this many events. The time limit is for slow machines.
fn wait_for(folder: &Folder, query: &str, count: usize) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let done = folder.run(&format!("find {query} --root home --json"));
        let found = done.json().len() - 1;
        if found == count {
            return;
        }
        assert!(Instant::now() < patience, "{query}: {found} found, not {count}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn append(folder: &Folder, name: &str, text: &str) {
    let mut file = fs::File::options().create(true).append(true).open(folder.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn events_written_while_index_watches_are_found() {
    let folder = home();
    let file = path(SESSION);
    let _watching = Watching::start(&folder);
    append(&folder, &file, &message_line(SESSION, 40, "user", "a penguin grows"));
    wait_for(&folder, "penguin", 1);
    // In two halves: the first is not a line yet.
    let line = message_line(SESSION, 41, "user", "a penguin comes in halves");
    let (one, two) = line.split_at(150);
    append(&folder, &file, one);
    append(&folder, &file, two);
    wait_for(&folder, "penguin", 2);
    // It shrinks.
    folder.write(&file, message_line(SESSION, 1, "user", "one seal is left"));
    wait_for(&folder, "seal", 1);
    // Whether its earlier text is found depends on whether the archive had it in time.
    // It rotates: the old file gets another name, and a new one begins.
    let aside = file.replace("0198aaaa-1111", "0198aaaa-1112");
    fs::rename(folder.path(&file), folder.path(&aside)).unwrap();
    append(&folder, &file, &message_line(SESSION, 42, "user", "a seal in the new file"));
    wait_for(&folder, "seal", 2);
    // It vanishes, and is still found in the archive.
    fs::remove_file(folder.path(&aside)).unwrap();
    append(&folder, &file, &message_line(SESSION, 43, "user", "a third seal"));
    wait_for(&folder, "seal", 3);
    // A file of a new session, in a new folder.
    fs::create_dir_all(folder.path("home/.claude/projects/-new")).unwrap();
    let other = "0298aaaa-1111-4222-8333-444455556666";
    append(
        &folder,
        &format!("home/.claude/projects/-new/{other}.jsonl"),
        &message_line(other, 44, "user", "a brand new otter"),
    );
    wait_for(&folder, "otter", 1);
}

/// While a process holds a lease on a file, the kernel blocks every open until the holder releases it or 45 seconds pass. It
/// notifies the holder of each attempt.
#[cfg(target_os = "linux")]
const LEASE: &str = "
import fcntl, signal, sys
signal.signal(signal.SIGIO, lambda *_: print('asked', flush=True))
file = open(sys.argv[1], 'r+')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()
";

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_an_index_that_cannot_open_a_file() {
    let folder = home();
    let mut holder = std::process::Command::new("python3");
    holder.args(["-c", LEASE]).arg(folder.path(&path(SESSION))).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = Watching(holder.spawn().unwrap());
    let mut lines = std::io::BufReader::new(holder.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "held");
    let mut index = Watching(folder.command("index --root home").stderr(Stdio::null()).spawn().unwrap());
    assert_eq!(lines.next().unwrap().unwrap(), "asked");
    let killed = std::process::Command::new("kill").args(["-TERM", &index.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ended = index.0.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15), "{ended}");
    // The next run completes the work of the killed one.
    drop(holder);
    folder.run("index --root home").ends(0);
    folder.run(&format!("show {SESSION} --root home")).ends(0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_well() {
    let folder = home();
    let mut watching = Watching::start(&folder);
    append(&folder, &path(SESSION), &message_line(SESSION, 40, "user", "a penguin grows"));
    wait_for(&folder, "penguin", 1);
    let killed = std::process::Command::new("kill").args(["-INT", &watching.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(watching.0.wait().unwrap().code(), Some(0));
}
