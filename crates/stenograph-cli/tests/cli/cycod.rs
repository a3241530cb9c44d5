//! Recording as CycoD does, and continuing its recordings, with real processes and their own home folder.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::runner::{Done, Folder, names};

const SYSTEM: &str = "{\"role\":\"system\",\"content\":\"be kind\"}\n";
const USER: &str = "{\"role\":\"user\",\"content\":\"which tree?\"}\n";
const CALL: &str = "{\"role\":\"assistant\",\"content\":\"Calling function(s)...\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"},\"type\":\"function\"}]}\n";
const ANSWER: &str = "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"seen\"}\n";
const ASSISTANT: &str = "{\"role\":\"assistant\",\"content\":\"An oak.\"}\n";

fn conversation() -> String {
    [SYSTEM, USER, CALL, ANSWER, ASSISTANT].concat()
}

fn command(folder: &Folder, line: &str) -> Command {
    let mut command = folder.command(line);
    for variable in ["STENO_CONFIG", "CYCOD_AUTO_SAVE_CHAT_HISTORY", "CYCOD_AUTO_SAVE_TRAJECTORY"] {
        command.env_remove(variable);
    }
    command.env("HOME", folder.path("home")).env("USERPROFILE", folder.path("home"));
    command.env("XDG_CONFIG_HOME", folder.path("home/.config"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(mut child: Child, input: &str) -> Done {
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains("panicked"), "{talk}");
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

fn run(folder: &Folder, line: &str, input: &str) -> Done {
    finish(command(folder, line).spawn().unwrap(), input)
}

fn history(folder: &Folder) -> Vec<String> {
    let path = folder.path("home/.cycod/history");
    if path.exists() { names(&path) } else { Vec::new() }
}

fn saved(folder: &Folder, ending: &str) -> String {
    let name = history(folder).into_iter().find(|name| name.ends_with(ending)).unwrap();
    String::from_utf8(folder.read(&format!("home/.cycod/history/{name}"))).unwrap()
}

#[test]
fn a_requested_file_is_written_besides_the_saved_ones() {
    let folder = Folder::new();
    let done = run(&folder, "record --from openai-chat --to cycod:talk.jsonl", &conversation());
    done.ends(0).talks("6 events recorded, completed: talk.jsonl");
    assert_eq!(String::from_utf8(folder.read("talk.jsonl")).unwrap(), conversation());
    assert_eq!(history(&folder).len(), 2);
    assert_eq!(saved(&folder, ".jsonl"), conversation());
    assert!(saved(&folder, ".md").contains("> which tree?\n\nCalling function(s)...\n\n```xml\n<function_calls>"));
    assert_eq!(folder.names(), ["home", "talk.jsonl"]);
}

#[test]
fn both_are_saved_unless_they_are_switched_off() {
    let folder = Folder::new();
    run(&folder, "record --from openai-chat --to cycod", USER).ends(0);
    let first = history(&folder);
    assert!(first[0].starts_with("chat-history-") && first[1].starts_with("trajectory-"), "{first:?}");
    run(&folder, "config set App.AutoSaveTrajectory false", "").ends(0);
    run(&folder, "record --from openai-chat --to cycod", USER).ends(0);
    assert_eq!(history(&folder).len(), 3);
    run(&folder, "config set App.AutoSaveChatHistory false", "").ends(0);
    run(&folder, "record --from openai-chat --to cycod:talk.jsonl", USER).ends(0);
    assert_eq!(history(&folder).len(), 3);
    let mut recording = command(&folder, "record --from openai-chat --to cycod:talk2.jsonl");
    finish(recording.env("CYCOD_AUTO_SAVE_CHAT_HISTORY", "true").spawn().unwrap(), USER).ends(0);
    assert_eq!(history(&folder).len(), 4);
    let line = "record --from openai-chat --to cycod:talk3.jsonl --set auto_save_trajectory=true";
    run(&folder, line, USER).ends(0);
    assert_eq!(history(&folder).len(), 5);
    run(&folder, "record --to cycod:x --set auto_save_trajectory=perhaps", USER).fails("must be true or false");
}

#[test]
fn a_history_and_a_trajectory_at_once_are_saved_once() {
    let folder = Folder::new();
    run(&folder, "record --from openai-chat --to cycod:talk.jsonl --to cycod:talk.md", &conversation()).ends(0);
    assert_eq!(history(&folder).len(), 2);
    assert_eq!(folder.read("talk.md"), saved(&folder, ".md").as_bytes());
    assert_eq!(folder.read("talk.jsonl"), conversation().as_bytes());
}

#[test]
fn names_are_made_from_templates_in_both_spellings() {
    let folder = Folder::new();
    folder.write("oak.jsonl", USER);
    let line = "record --from openai-chat --load oak.jsonl --to cycod:talks/{fileBase}-{timestamp}.{fileext}";
    run(&folder, line, ASSISTANT).ends(0);
    let made = names(&folder.path("talks"));
    assert!(made[0].starts_with("oak-2") && made[0].len() == "oak-20260302101405.jsonl".len(), "{made:?}");
    std::fs::create_dir(folder.path("there")).unwrap();
    run(&folder, "record --from openai-chat --to cycod:there", USER).ends(0);
    let made = names(&folder.path("there"));
    assert!(made.len() == 1 && made[0].starts_with("chat-history-1") && made[0].ends_with(".jsonl"), "{made:?}");
}

#[test]
fn loading_continues_in_the_same_file_or_branches_into_another() {
    let folder = Folder::new();
    // As CycoD leaves it: a byte order mark, and no newline at the end.
    let before = format!("\u{feff}{SYSTEM}{}", USER.trim_end());
    folder.write("talk.jsonl", &before);
    run(&folder, "record --from openai-chat --load talk.jsonl --to cycod:branch.jsonl", ASSISTANT).ends(0);
    assert_eq!(folder.read("talk.jsonl"), before.as_bytes());
    assert_eq!(folder.read("branch.jsonl"), [SYSTEM, USER, ASSISTANT].concat().as_bytes());
    run(&folder, "record --from openai-chat --load talk.jsonl --to cycod:talk.jsonl", ASSISTANT).ends(0);
    assert_eq!(folder.read("talk.jsonl"), format!("{before}\n{ASSISTANT}").as_bytes());
    // Each of them was also saved whole in the history folder.
    for name in history(&folder).iter().filter(|name| name.ends_with(".jsonl")) {
        let text = String::from_utf8(folder.read(&format!("home/.cycod/history/{name}"))).unwrap();
        assert_eq!(text.trim_start_matches('\u{feff}'), [SYSTEM, USER, ASSISTANT].concat());
    }
}

#[test]
fn messages_with_keys_of_their_own_and_very_long_ones_are_found_again() {
    let folder = Folder::new();
    for (name, line) in [
        ("keyed.jsonl", USER.replace("}\n", ",\"seq\":1}\n")),
        ("long.jsonl", USER.replace("which", &"which ".repeat(20_000))),
    ] {
        let record = format!("record --from openai-chat --to cycod:{name}");
        run(&folder, &record, &line).ends(0);
        run(&folder, &format!("show {name} --json"), "").ends(0).says("which");
        run(&folder, &record, ASSISTANT).ends(0);
        run(&folder, &format!("show {name} --json"), "").ends(0).says("which").says("An oak.");
    }
}

#[test]
fn a_recording_that_is_killed_loses_nothing_that_was_acknowledged() {
    let folder = Folder::new();
    let line = "record --from openai-chat --to cycod:talk.jsonl --sync always --ack";
    let mut child = command(&folder, line).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
    for (count, line) in [(1, SYSTEM), (1, USER), (2, CALL)] {
        input.write_all(line.as_bytes()).unwrap();
        assert_eq!(acks.by_ref().take(count).filter(Result::is_ok).count(), count);
    }
    assert_eq!(folder.read("talk.jsonl"), [SYSTEM, USER, CALL].concat().as_bytes(), "each message as it occurs");
    child.kill().unwrap();
    child.wait().unwrap();
    // The worst case: only the journal is left.
    std::fs::remove_file(folder.path("talk.jsonl")).unwrap();
    run(&folder, "recover talk.jsonl", "").ends(0).talks("completed");
    assert_eq!(folder.read("talk.jsonl"), [SYSTEM, USER, CALL].concat().as_bytes());
    let shown = run(&folder, "show talk.jsonl --json", "").ends(0).json();
    let contents: Vec<&str> = shown.iter().filter_map(|event| event["content"].as_str()).collect();
    assert_eq!(contents[..3], ["be kind", "which tree?", "Calling function(s)..."]);
    assert_eq!(shown.iter().filter(|event| event["kind"] == "tool_call").count(), 1);
}

#[test]
fn continuing_an_interrupted_recording_hints_how_to_complete_it() {
    let folder = Folder::new();
    let mut child = command(&folder, "record --from openai-chat --to cycod --ack").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(USER.as_bytes()).unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
    acks.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let done = run(&folder, "cycod continue", "");
    assert_eq!(done.ends(0).talks("if it was cut off, run steno recover ").text(), USER);
    run(&folder, "recover home/.cycod/history", "").ends(0).talks("completed");
    let done = run(&folder, "cycod continue", "");
    assert!(done.ends(0).text() == USER && !done.talk.contains("recover"), "{}", done.talk);
}

#[test]
fn without_a_home_folder_the_recording_is_made_all_the_same() {
    let folder = Folder::new();
    let mut homeless = command(&folder, "record --from openai-chat --to cycod:talk.jsonl");
    homeless.env_remove("HOME").env_remove("USERPROFILE");
    finish(homeless.spawn().unwrap(), USER).ends(0).talks("is not saved: no home folder");
    folder.write("home", "a file");
    run(&folder, "record --from openai-chat --to cycod:other.jsonl", USER).ends(0).talks("is not saved");
    assert_eq!(folder.read("talk.jsonl"), USER.as_bytes());
    assert_eq!(folder.read("other.jsonl"), USER.as_bytes());
}

#[test]
fn the_newest_history_is_printed_ready_to_be_sent() {
    let folder = Folder::new();
    run(&folder, "cycod continue", "").ends(1).talks("no chat history in ");
    std::fs::create_dir_all(folder.path(".cycod/history")).unwrap();
    let history =
        format!("\u{feff}{{\"_meta\":{{\"title\":\"Trees\",\"titleLocked\":false}}}}\n{USER}{}", CALL.trim_end());
    folder.write(".cycod/history/chat-history-1.jsonl", &history);
    let done = run(&folder, "cycod continue", "");
    done.ends(0).talks("chat-history-1.jsonl: 3 messages, \"Trees\"").talks("1 call without a result");
    let answer = "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{\\\"result\\\": \\\"...unknown; tool not called...\\\"}\"}\n";
    assert_eq!(done.text(), [USER, CALL, answer].concat());
    assert_eq!(folder.read(".cycod/history/chat-history-1.jsonl"), history.as_bytes());
    let json = run(&folder, "cycod continue --json", "").ends(0).json();
    assert_eq!((json[0]["messages"].as_array().unwrap().len(), &json[0]["title"]), (3, &"Trees".into()));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    folder.write("exception-chat-history-2.jsonl", USER);
    let file = std::fs::File::options().write(true).open(folder.path("exception-chat-history-2.jsonl")).unwrap();
    file.set_modified(later).unwrap();
    run(&folder, "cycod continue", "").ends(0).talks("exception-chat-history-2.jsonl: 1 message");
    folder.write("exception-chat-history-2.jsonl", "{\"banana\":1}\n");
    file.set_modified(later).unwrap();
    run(&folder, "cycod continue", "").ends(1).talks("no messages");
}

#[test]
fn a_conversation_is_trimmed_to_the_limit_of_the_argument_or_the_setting() {
    let folder = Folder::new();
    let long = format!("{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{}\"}}\n", "seen ".repeat(2000));
    folder.write("chat-history-1.jsonl", [SYSTEM, USER, CALL, &long, ASSISTANT, USER].concat());
    let whole = run(&folder, "cycod continue", "");
    assert!(whole.ends(0).text().len() > 10_000);
    let trimmed = run(&folder, "cycod continue --max-tokens 200", "");
    trimmed.ends(0).talks("trimmed from ");
    assert!(trimmed.text().len() < 1000 && trimmed.text().starts_with(SYSTEM) && trimmed.text().ends_with(USER));
    run(&folder, "cycod continue --max-tokens 1", "").ends(1).talks("the newest question always stay").says("be kind");
    run(&folder, "config set App.MaxChatTokens 200", "").ends(0);
    assert_eq!(run(&folder, "cycod continue", "").ends(0).text(), trimmed.text());
    assert_eq!(run(&folder, "cycod continue --max-tokens 0", "").ends(0).text(), whole.text());
}

#[test]
fn a_recording_can_be_continued() {
    let folder = Folder::new();
    run(&folder, "record --from openai-chat --to cycod", &conversation()).ends(0);
    let done = run(&folder, "cycod continue --root home", "");
    assert_eq!(done.ends(0).text(), conversation());
    run(&folder, "index", "").ends(0);
    assert_eq!(run(&folder, "cycod continue latest", "").ends(0).text(), conversation());
    run(&folder, "show home/.cycod/history --kind user --text", "").ends(0).says("which tree?");
}

#[test]
fn a_named_history_is_made_ready_and_the_limits_depend_on_the_moment() {
    let folder = Folder::new();
    let long = format!("{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{}\"}}\n", "seen ".repeat(2000));
    folder.write("talk.jsonl", [SYSTEM, USER, CALL, &long, ASSISTANT, USER].concat());
    folder.write("chat-history-1.jsonl", USER);
    let whole = run(&folder, "cycod continue talk.jsonl", "");
    whole.ends(0).talks("talk.jsonl: 6 messages");
    run(&folder, "config set App.MaxToolTokens 50", "").ends(0);
    let before_a_request = run(&folder, "cycod continue talk.jsonl --at request", "");
    assert!(before_a_request.ends(0).text().len() < 2000);
    assert_eq!(run(&folder, "cycod continue talk.jsonl --at user-message", "").ends(0).text(), whole.text());
    run(&folder, "cycod continue nowhere.jsonl", "").fails("no such file");
    folder.write("steno.jsonl", crate::runner::NATIVE);
    run(&folder, "cycod continue steno.jsonl", "").fails("not a chat history");
}

#[test]
fn a_loaded_conversation_that_exceeds_a_limit_says_so_at_each_moment_and_is_recorded_whole() {
    let folder = Folder::new();
    folder.write("talk.jsonl", conversation());
    run(&folder, "config set App.MaxPromptTokens 20", "").ends(0);
    run(&folder, "config set App.MaxToolTokens 30", "").ends(0);
    run(&folder, "config set App.MaxChatTokens 100000", "").ends(0);
    let long = "word ".repeat(100);
    let more = [USER, CALL, ANSWER].concat().replace("which tree?", &long).replace("seen", &long);
    let done = run(&folder, "record --load talk.jsonl --from openai-chat --to cycod:talk.jsonl", &more);
    done.ends(0).talks("125 tokens exceed App.MaxPromptTokens (20)").talks("exceed App.MaxToolTokens (30)");
    done.talks("steno cycod continue talk.jsonl");
    assert_eq!(String::from_utf8(folder.read("talk.jsonl")).unwrap(), conversation() + &more);
    run(&folder, "config set App.MaxChatTokens 50", "").ends(0);
    let done = run(&folder, "record --load talk.jsonl --from openai-chat --to cycod:other.jsonl", USER);
    done.ends(0).talks("exceed App.MaxChatTokens (50)");
}
