//! What people meet who have just installed the command: one answer everywhere, names that other commands accept, and errors that
//! say what to do.

use std::fs;

use crate::list::{home, index, message_line, path};
use crate::runner::Folder;

const ONE: &str = "0198aaaa-1111-4222-8333-444455556666";
const THREE: &str = "ffff0000-1111-4222-8333-444455556666";

/// A record with tokens, of a session elsewhere.
fn counted_line(session: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"u-{session}","sessionId":"{session}","timestamp":"2026-01-02T03:09:00.000Z","cwd":"/work/app","requestId":"r1","message":{{"role":"assistant","id":"m1","model":"claude-sonnet-4","content":"Done.","usage":{{"input_tokens":7,"output_tokens":5}}}}}}"#
    ) + "\n"
}

/// An index that was built from a folder where no agent keeps its files.
fn indexed_elsewhere() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("elsewhere")).unwrap();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write(&format!("elsewhere/{ONE}.jsonl"), message_line(ONE, 1, "user", "Feed it") + &counted_line(ONE));
    folder.run("index --root elsewhere").ends(0);
    folder
}

#[test]
fn usage_and_status_report_on_the_sessions_of_the_store() {
    let folder = indexed_elsewhere();
    assert_eq!(folder.run("list --json").json().len(), 1);
    for line in ["usage --json", "usage --json --no-index"] {
        assert_eq!(folder.run(line).ends(0).json()[0]["total"]["input"], 7, "{line}");
    }
    folder.run("status --active-within 100y").ends(0).says("0198aaaa").says("Feed it");
    folder.run("status").finds_nothing("no agent was active in the last 1 d (of 1 transcript)");
    folder.run("usage --by project").ends(0).says("app");
}

#[test]
fn a_session_whose_files_are_gone_is_counted_from_the_archive() {
    let folder = indexed_elsewhere();
    fs::remove_file(folder.path(&format!("elsewhere/{ONE}.jsonl"))).unwrap();
    folder.run("index --root elsewhere").ends(0);
    assert_eq!(folder.run("usage 0198 --json").ends(0).json()[0]["total"]["input"], 7);
}

#[test]
fn a_dash_is_standard_input_wherever_a_transcript_is_taken() {
    let folder = Folder::new();
    let text = message_line(THREE, 1, "user", "Feed it") + &counted_line(THREE);
    let run = |line: &str| folder.run_with(line, text.as_bytes());
    assert_eq!(run("usage - --json").ends(0).json()[0]["total"]["input"], 7);
    run("tail - -n 1").ends(0).says("Done.");
    assert_eq!(run("status - --json").ends(0).json()[0]["session"], THREE);
    run("resume - --shell sh").ends(0).says(&format!("cd /work/shop && claude --resume {THREE}"));
    run("tail -f -").fails("standard input cannot be followed");
    // The copy of standard input is removed.
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn a_file_that_is_not_indexed_can_be_resumed() {
    let folder = Folder::with("a.jsonl", message_line(THREE, 1, "user", "Feed it"));
    let done = folder.run("resume a.jsonl --shell sh");
    done.ends(0).says(&format!("claude --resume {THREE}")).talks("is not where the agent looks");
}

#[test]
fn a_session_without_messages_is_never_the_latest() {
    let folder = home();
    folder.write(
        "home/.claude/projects/-work-app/0000aaaa-1111-4222-8333-444455556666.jsonl",
        r#"{"type":"custom-title","customTitle":"Only a title","sessionId":"0000aaaa-1111-4222-8333-444455556666"}"#,
    );
    index(&folder);
    folder.run("show latest --text").ends(0).says("Feed the walrus ffff00");
    let listed = folder.run("list --json").json();
    assert_eq!(listed.last().unwrap()["title"], "Only a title");
    folder.run("show 0000aaaa").finds_nothing("no messages and no calls to show");
}

#[test]
fn a_warm_up_is_no_question_and_comes_after_all_sessions() {
    let folder = home();
    let warm_up = "0000bbbb-1111-4222-8333-444455556666";
    let answer = message_line(warm_up, 9, "assistant", "I am ready.");
    let text = message_line(warm_up, 8, "user", "Warmup") + &answer.replace("2026-01", "2026-02");
    folder.write(&format!("home/.claude/projects/-work-app/{warm_up}.jsonl"), text);
    index(&folder);
    folder.run("show latest --text").ends(0).says("Feed the walrus ffff00");
    let listed = folder.run("list --json").json();
    let last = listed.last().unwrap();
    assert_eq!((&last["session"], &last["asked"]), (&warm_up.into(), &serde_json::Value::Null));
    let newest = folder.run("list --limit 4").ends(0).text().lines().last().unwrap().to_owned();
    assert!(newest.contains("(no question)"), "{newest}");
}

#[test]
fn the_journal_of_a_workflow_belongs_to_its_session_anywhere() {
    let folder = Folder::new();
    let run = format!("elsewhere/{ONE}/subagents/workflows/wf_1");
    fs::create_dir_all(folder.path(&run)).unwrap();
    folder.write(&format!("elsewhere/{ONE}.jsonl"), message_line(ONE, 1, "user", "Feed it"));
    folder.write(
        &format!("{run}/journal.jsonl"),
        "{\"type\":\"started\",\"key\":\"v2:a\",\"agentId\":\"ag1\"}\n{\"type\":\"result\",\"key\":\"v2:a\",\"agentId\":\"ag1\",\"result\":\"ok\"}\n",
    );
    folder.run("index --root elsewhere").ends(0);
    let listed = folder.run("list --json").json();
    assert_eq!((listed.len(), &listed[0]["sources"]), (1, &2.into()), "{listed:?}");
}

#[test]
fn a_command_is_shown_and_titled_as_it_was_typed() {
    let command = "<command-message>review is running</command-message>\\n<command-name>/review</command-name>\\n<command-args>and fix it</command-args>";
    let local = "<command-name>/clear</command-name>\\n<command-message>clear</command-message>";
    let text = message_line(ONE, 1, "user", command) + &message_line(ONE, 2, "user", local);
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    folder.write(&path(ONE), text);
    index(&folder);
    folder.run("list").ends(0).says("/review and fix it");
    let shown = folder.run("show 0198");
    shown.ends(0).says("/review and fix it").says("/clear");
    assert!(!shown.text().contains("command-name"), "{}", shown.text());
}

#[test]
fn a_name_that_a_table_cut_is_accepted_or_explained() {
    let folder = home();
    folder.run("show ffff00… --text").ends(0).says("Feed the walrus ffff00");
    folder.run("show 0198aaaa-… --text").fails("ambiguous: 2 sessions match").talks("0198aaaa-1").talks("0198aaaa-9");
}

#[test]
fn an_unknown_name_is_not_audited_as_a_query() {
    let folder = home();
    folder.run("audit walrus").finds_nothing("no file or session has that name").talks("steno audit --query 'walrus'");
    folder.run("audit ffff walrus").finds_nothing("no file or session has that name");
    folder.run("audit --query walrus").ends(0).says("ffff0000");
}

#[test]
fn mistakes_end_with_an_error_in_one_line() {
    let folder = home();
    folder.run("index nodir").fails("nodir: no such file or folder");
    folder.run("list --limit x").fails("invalid value 'x' for '--limit <N>': expected a whole number");
    folder.run("--root home list").fails("--root belongs after the command");
    folder.run("list --gone").finds_nothing("no session's file is gone");
    folder.run("--root home").ends(0).says("Latest sessions (3 of 3)");
}

#[test]
fn the_last_events_that_people_see_are_numbered() {
    let hidden = r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#;
    let text = message_line(ONE, 1, "user", "Feed it") + &message_line(ONE, 2, "assistant", "Fed.");
    let folder = Folder::with("a.jsonl", text + &format!("{hidden}\n{hidden}\n"));
    let shown = folder.run("show a.jsonl --last 1");
    shown.ends(0).says("    2  ").says("Fed.");
    folder.run("tail a.jsonl -n 1").ends(0).says("Fed.");
}

#[test]
fn find_and_list_name_a_session_alike_in_json() {
    let folder = home();
    let (found, listed) = (folder.run("find walrus session:ffff --json").json(), folder.run("list --json").json());
    assert_eq!((&found[0]["title"], &found[0]["asked"]), (&listed[0]["title"], &listed[0]["asked"]));
    assert_eq!(found[0]["asked"], "Feed the walrus ffff00");
}

#[test]
fn the_settings_of_a_folder_reach_no_terminal() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path(".steno")).unwrap();
    folder.write(".steno/config.toml", "[Redact]\nPatterns = [\"a\\u001b[31mb\"]\n");
    for line in ["config list", "config get Redact.Patterns"] {
        let done = folder.run(line);
        assert!(!done.ends(0).text().contains('\u{1b}'), "{line}: {:?}", done.text());
    }
    folder.run("config --help").ends(0).says("Redact.Allow").says("Redact.Patterns");
}
