//! The real agents play a recording to its end: they ask it in a model's place, run the recorded calls, and send back what came of
//! them. Each test runs where a variable names the agent's program, as the continuous integration does; elsewhere it says that nobody
//! was asked.

use std::process::{Command, Output, Stdio};

use crate::cassette::Serving;
use crate::real::{OFFLINE, program};
use crate::runner::Folder;

/// A text, a call that leaves a trace, another call, and the end.
const CLAUDE: &str = include_str!("../cassette/tides-claude-code.jsonl");
const CODEX: &str = include_str!("../cassette/tides-codex.jsonl");

const QUESTION: &str = "Where is the tide table?";

/// A folder to work in, with what the recorded calls look at.
fn work(table: &str) -> Folder {
    let folder = Folder::new();
    for made in ["work", "home"] {
        std::fs::create_dir_all(folder.path(made)).unwrap();
    }
    folder.write("work/tides.txt", format!("{table}\n"));
    folder
}

/// Lets Claude Code ask the recording.
fn claude(program: &std::path::Path, folder: &Folder, serving: &Serving) -> Output {
    let mut command = Command::new(program);
    command.args(["-p", QUESTION, "--model", "claude-sonnet-4-5-20250929", "--allowedTools", "Bash,Read"]);
    command.current_dir(folder.path("work")).stdin(Stdio::null()).envs(OFFLINE);
    command.env("HOME", folder.path("home")).env("CLAUDE_CONFIG_DIR", folder.path("home"));
    command.env("ANTHROPIC_API_KEY", "none").env("ANTHROPIC_BASE_URL", &serving.address);
    command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_MAX_RETRIES", "0");
    command.output().unwrap()
}

/// Lets Codex ask the recording, with these settings.
fn codex(program: &std::path::Path, folder: &Folder, config: &str) -> Output {
    folder.write("home/config.toml", config);
    folder.write("home/auth.json", "{\"OPENAI_API_KEY\":\"none\"}");
    let mut command = Command::new(program);
    command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", QUESTION]);
    command.current_dir(folder.path("work")).stdin(Stdio::null()).envs(OFFLINE);
    command.env("HOME", folder.path("home")).env("CODEX_HOME", folder.path("home"));
    command.output().unwrap()
}

/// Settings by which Codex knows the recording as a provider of its own.
fn provider(serving: &Serving) -> String {
    format!(
        "model = \"gpt-5-codex\"\nmodel_provider = \"tape\"\n[model_providers.tape]\nname = \"tape\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\nbase_url = \"{}/v1\"\n",
        serving.address
    )
}

/// The agent came to the end of the recording, and its calls were really made.
#[track_caller]
fn assert_played(done: &Output, folder: &Folder, table: &str) {
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("Soon after six."), "{said}\n{errors}");
    assert_eq!(std::fs::read_to_string(folder.path("work/seen.txt")).unwrap(), format!("{table}\n"));
}

#[test]
fn claude_code_plays_a_strict_recording_to_its_end() {
    let Some(program) = program("STENO_CLAUDE") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CLAUDE, "--strict --once");
    let done = claude(&program, &folder, &serving);
    assert_played(&done, &folder, "high water 06:12");
    // It asks for a title, too, and tells of its folder and the date: the first takes no answer, the second is no drift.
    serving.says("what the agent adds by itself");
    serving.says("3 of 3 answers given, none drifted, 1 beside the conversation");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn claude_code_is_told_apart_from_its_recording_by_what_its_tools_answer() {
    let Some(program) = program("STENO_CLAUDE") else { return };
    let folder = work("high water 18:40");
    let mut serving = Serving::start(CLAUDE, "--once");
    let done = claude(&program, &folder, &serving);
    assert_played(&done, &folder, "high water 18:40");
    serving.says("drift: tool_result 4 changed: \"high water 06:12\" was recorded, \"high water 18:40\" is asked");
    serving.says("3 of 3 answers given, 2 drifted, with 2 differences, 1 beside the conversation");
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn codex_plays_a_strict_recording_to_its_end() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CODEX, "--strict --once");
    let done = codex(&program, &folder, &provider(&serving));
    assert_played(&done, &folder, "high water 06:12");
    serving.says("what the agent adds by itself");
    serving.says("2 requests, 2 of 2 answers given, none drifted");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn codex_is_told_apart_from_its_recording_by_what_its_tools_answer() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 18:40");
    let mut serving = Serving::start(CODEX, "--once");
    let done = codex(&program, &folder, &provider(&serving));
    assert_played(&done, &folder, "high water 18:40");
    serving.says("drift: tool_result 4 changed: ");
    serving.says("2 requests, 2 of 2 answers given, 1 drifted, with 1 difference");
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn codex_asks_again_without_a_socket_when_it_is_told_that_there_is_none() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CODEX, "--strict --once");
    let config = format!("model = \"gpt-5-codex\"\nopenai_base_url = \"{}/v1\"\n", serving.address);
    let done = codex(&program, &folder, &config);
    assert_played(&done, &folder, "high water 06:12");
    assert!(!String::from_utf8_lossy(&done.stderr).contains("Reconnecting"), "{done:?}");
    serving.says("2 requests, 2 of 2 answers given, none drifted");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}
