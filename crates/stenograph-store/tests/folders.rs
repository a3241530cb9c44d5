//! Conversations in folders of JSON files: what their lines are, what is no conversation, what damage is reported, and that an
//! unchanged one is not opened.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stenograph_store::databases::{conversation_path, conversations, is_conversation, split};
use stenograph_store::discover::{Places, discover};
use stenograph_store::edit::FileEdit;
use stenograph_store::index::{Archiving, IndexPlan, IndexReport, IndexScope, NoObserver, Store, run};
use stenograph_store::{Passes, Problem, Source};

/// The path of a folder that its agent finds below this home folder.
fn storage(home: &Path) -> PathBuf {
    home.join(".local/share/opencode/storage")
}

fn write(folder: &Path, path: &str, content: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Adds a conversation of a question and an answer. The id of the question comes after that of the answer, as ids do that were
/// made two years apart.
fn add(folder: &Path, session: &str) {
    write(
        folder,
        &format!("session/harbour/{session}.json"),
        &format!(
            "{{\n  \"id\": \"{session}\",\n  \"version\": \"1.1.65\",\n  \"projectID\": \"harbour\",\n  \"directory\": \"/work\",\n  \
             \"title\": \"About {session}\",\n  \"time\": {{\n    \"created\": 1000\n  }}\n}}"
        ),
    );
    let said = [("z", "user", 1000, "how many boats?"), ("a", "assistant", 2000, "There are three.")];
    for (id, role, time, text) in said {
        let message = format!("msg_{id}_{session}");
        let model = if role == "assistant" { ", \"modelID\": \"gull\"" } else { "" };
        write(
            folder,
            &format!("message/{session}/{message}.json"),
            &format!(
                "{{\"id\": \"{message}\", \"sessionID\": \"{session}\", \"role\": \"{role}\", \"time\": {{\"created\": {time}}}{model}}}"
            ),
        );
        write(
            folder,
            &format!("part/{message}/prt_{id}.json"),
            &format!(
                "{{\"id\": \"prt_{id}\", \"sessionID\": \"{session}\", \"messageID\": \"{message}\", \"type\": \"text\", \
                 \"text\": \"{text}\"}}"
            ),
        );
    }
}

fn lines(path: &Path) -> Vec<String> {
    let bytes = Source::open(path, Passes::Many).unwrap().read_whole(1 << 20).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn problem(path: &Path) -> Problem {
    Source::open(path, Passes::Once).unwrap_err().problem
}

fn clock() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

fn index(home: &Path, store: &Path) -> IndexReport {
    let places = Places::below(home.to_owned());
    let (scope, archiving) = (IndexScope::All, Archiving::Yes);
    let plan = IndexPlan { places: &places, scope, archiving, memory: 256 << 20, threads: 1, now: clock() };
    run(&Store::new(store.to_owned()), &plan, &mut NoObserver).unwrap()
}

#[test]
fn the_files_of_a_conversation_are_lines() {
    let home = tempfile::tempdir().unwrap();
    let folder = storage(home.path());
    add(&folder, "ses_1");
    write(&folder, "todo/ses_1.json", "[\n  {\"content\": \"count\"}\n]");
    let path = conversation_path(&folder, "ses_1");
    let expected = [
        r#"{"table":"session","id":"ses_1","project_id":"harbour","directory":"/work","title":"About ses_1","version":"1.1.65","time_created":1000,"data":{"time":{"created":1000}}}"#,
        r#"{"table":"message","id":"msg_z_ses_1","session_id":"ses_1","time_created":1000,"data":{"role":"user","time":{"created":1000}}}"#,
        r#"{"table":"part","message":{"role":"user"},"id":"prt_z","message_id":"msg_z_ses_1","session_id":"ses_1","time_created":1000,"data":{"type":"text","text":"how many boats?"}}"#,
        r#"{"table":"message","id":"msg_a_ses_1","session_id":"ses_1","time_created":2000,"data":{"role":"assistant","time":{"created":2000},"modelID":"gull"}}"#,
        r#"{"table":"part","message":{"role":"assistant","model":"gull"},"id":"prt_a","message_id":"msg_a_ses_1","session_id":"ses_1","time_created":2000,"data":{"type":"text","text":"There are three."}}"#,
        r#"{"table":"todo","session_id":"ses_1","data":[{"content":"count"}]}"#,
    ];
    assert_eq!(lines(&path), expected);
    // The only conversation, and the file of its session, mean the same.
    assert_eq!(lines(&folder), expected);
    assert_eq!(lines(&folder.join("session/harbour/ses_1.json")), expected);
    add(&folder, "ses_2");
    assert_eq!(problem(&folder), Problem::Conversations { count: 2 });
    assert_eq!(problem(&conversation_path(&folder, "ses_3")), Problem::NoSuchConversation);
    assert_eq!(problem(&conversation_path(&folder, "..")), Problem::NoSuchConversation);
    let listed = conversations(&folder).unwrap().unwrap();
    let mut listed: Vec<&str> = listed.iter().filter_map(|one| one.title.as_deref()).collect();
    listed.sort_unstable();
    assert_eq!(listed, ["About ses_1", "About ses_2"]);
}

#[test]
fn a_path_names_a_folder_and_a_conversation() {
    assert_eq!(split(Path::new("/a/storage#ses_1")), Some((Path::new("/a/storage"), "ses_1")));
    // A file below a folder with such a name is no conversation, and neither is one in another folder.
    assert_eq!(split(Path::new("/a/storage#old/b.jsonl")), None);
    assert_eq!(split(Path::new("/a/cellar#ses_1")), None);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("storage")).unwrap();
    assert!(conversations(&folder.path().join("storage")).unwrap().is_none());
}

#[test]
fn the_files_of_rows_are_neither_sources_nor_edited() {
    let home = tempfile::tempdir().unwrap();
    let folder = storage(home.path());
    add(&folder, "ses_1");
    let report = index(home.path(), tempfile::tempdir().unwrap().path());
    assert_eq!((report.found, report.added, report.warnings.len()), (1, 1, 0), "{report:?}");
    let path = conversation_path(&folder, "ses_1");
    assert!(is_conversation(&path));
    for path in [path, folder.join("session/harbour/ses_1.json"), folder.join("part/msg_a_ses_1/prt_a.json")] {
        assert_eq!(FileEdit::begin(&path).unwrap_err().problem, Problem::InDatabase, "{}", path.display());
    }
    // The walk finds the session in its home.
    let mut found = Vec::new();
    discover(&Places::below(home.path().to_owned()), &mut |file| found.extend(file.hints.session));
    assert_eq!(found, ["ses_1"]);
}

/// Replaces the text of a file, so that neither its size nor its time changes.
fn replace_silently(path: &Path, from: &str, to: &str) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let text = fs::read_to_string(path).unwrap().replace(from, to);
    fs::write(path, text).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn only_changed_files_make_a_changed_conversation() {
    let home = tempfile::tempdir().unwrap();
    let (store, folder) = (tempfile::tempdir().unwrap(), storage(home.path()));
    for session in ["ses_1", "ses_2"] {
        add(&folder, session);
    }
    // A file that was changed just now may change again within the same time.
    let old = SystemTime::now() - Duration::from_secs(3600);
    let part = folder.join("part/msg_a_ses_1/prt_a.json");
    let all = ["session/harbour", "message/ses_1", "message/ses_2", "part/msg_a_ses_1", "part/msg_z_ses_1"];
    for file in all.iter().flat_map(|path| fs::read_dir(folder.join(path)).unwrap()) {
        File::options().write(true).open(file.unwrap().path()).unwrap().set_modified(old).unwrap();
    }
    index(home.path(), store.path());
    // Reading the file would show this.
    replace_silently(&part, "three", "seven");
    let report = index(home.path(), store.path());
    assert_eq!((report.unchanged, report.rewritten, report.grown), (2, 0, 0), "{report:?}");
    let time = || conversations(&folder).unwrap().unwrap().iter().map(|one| one.changed_ns).max().unwrap();
    let mut before = time();
    for change in 0..3 {
        match change {
            0 => write(&folder, "part/msg_a_ses_1/prt_a.json", "{\"type\": \"text\", \"text\": \"There are four.\"}"),
            1 => write(&folder, "part/msg_a_ses_1/prt_b.json", "{\"type\": \"text\", \"text\": \"Or five.\"}"),
            _ => fs::remove_file(folder.join("message/ses_1/msg_z_ses_1.json")).unwrap(),
        }
        let now = time();
        assert_ne!(now, before, "{change}");
        before = now;
        let report = index(home.path(), store.path());
        assert_eq!((report.unchanged, report.rewritten + report.grown), (1, 1), "{change}: {report:?}");
    }
}

#[test]
fn damaged_files_are_reported_and_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let folder = storage(home.path());
    add(&folder, "ses_1");
    let path = conversation_path(&folder, "ses_1");
    write(&folder, "part/msg_a_ses_1/prt_a.json", "{\n  \"type\": \"text\",\n  \"text\": \"There a");
    fs::write(folder.join("part/msg_a_ses_1/prt_b.json"), b"\xff").unwrap();
    let huge = File::create(folder.join("part/msg_a_ses_1/prt_c.json")).unwrap();
    huge.set_len(1 << 30).unwrap();
    write(&folder, "part/msg_a_ses_1/prt_d.json", "{\"id\": \"prt_d\", \"id\": \"prt_e\", \"type\": \"text\"}");
    // It must not become another row.
    write(&folder, "part/msg_a_ses_1/prt_e.json", "{}}\n{\"table\":\"session\"}");
    write(&folder, "part/msg_a_ses_1/notes.txt", "no row");
    let columns = r#""message_id":"msg_a_ses_1","session_id":"ses_1""#;
    let start = r#"{"table":"part","message":{"role":"assistant","model":"gull"},"#;
    let expected = [
        format!(
            r#"{start}"id":"prt_a",{columns},"unread":"part/msg_a_ses_1/prt_a.json: is not JSON","data":"{{\n  \"type\": \"text\",\n  \"text\": \"There a"}}"#
        ),
        format!(
            r#"{start}"id":"prt_b",{columns},"unread":"part/msg_a_ses_1/prt_b.json: is not UTF-8","data":{{"$text":"/w=="}}}}"#
        ),
        format!(
            r#"{start}"id":"prt_c",{columns},"unread":"part/msg_a_ses_1/prt_c.json: 1073741824 bytes are too many for the file of a row","data":""}}"#
        ),
        format!(
            r#"{start}"time_created":2000,"id":"prt_d",{columns},"data":{{"id":"prt_d","id":"prt_e","type":"text"}}}}"#
        ),
        format!(
            r#"{start}"id":"prt_e",{columns},"unread":"part/msg_a_ses_1/prt_e.json: is not JSON","data":"{{}}}}\n{{\"table\":\"session\"}}"}}"#
        ),
    ];
    assert_eq!(lines(&path)[4..], expected);
    // Without its files a conversation is only its session.
    fs::remove_dir_all(folder.join("message/ses_1")).unwrap();
    assert_eq!(lines(&path).len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_folder_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let (store, folder) = (tempfile::tempdir().unwrap(), storage(home.path()));
    add(&folder, "ses_1");
    add(&folder, "ses_2");
    index(home.path(), store.path());
    let link = folder.join("part/msg_a_ses_1/prt_b.json");
    // Nothing is read through a link, and the rest of the conversation is.
    for to in [folder.join("part/msg_a_ses_2/prt_a.json"), Path::new("/nowhere").to_owned()] {
        std::os::unix::fs::symlink(to, &link).unwrap();
        let lines = lines(&conversation_path(&folder, "ses_1"));
        assert_eq!(
            lines.iter().filter(|line| line.contains("prt_b.json: is a link, or no file")).count(),
            1,
            "{lines:?}"
        );
        fs::remove_file(&link).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    let report = index(home.path(), store.path());
    assert_eq!((report.found, report.warnings.len()), (2, 0), "{report:?}");
    fs::remove_file(&link).unwrap();
    let report = index(home.path(), store.path());
    assert_eq!((report.found, report.unchanged, report.warnings.len()), (2, 1, 0), "{report:?}");
}

#[test]
fn a_conversation_of_two_projects_is_ambiguous() {
    let home = tempfile::tempdir().unwrap();
    let folder = storage(home.path());
    add(&folder, "ses_1");
    write(&folder, "session/pier/ses_1.json", "{\"id\": \"ses_1\", \"title\": \"another\"}");
    assert_eq!(problem(&conversation_path(&folder, "ses_1")), Problem::AmbiguousConversation);
    let report = index(home.path(), tempfile::tempdir().unwrap().path());
    assert_eq!((report.found, report.warnings.len()), (0, 2), "{report:?}");
}
