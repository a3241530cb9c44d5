//! The real agents play a recording to its end: they send requests to it instead of a model, run the recorded calls, and send
//! back the results. Each test runs if a variable names the agent's program, as in continuous integration; else it says so and
//! skips.

use std::process::{Command, Output, Stdio};

use crate::cassette::Serving;
use crate::real::{OFFLINE, program};
use crate::runner::Folder;

/// A text, a call that leaves a trace, another call, and the end.
const CLAUDE: &str = include_str!("../cassette/tides-claude-code.jsonl");
const CODEX: &str = include_str!("../cassette/tides-codex.jsonl");

const QUESTION: &str = "Where is the tide table?";

/// A working folder with the files that the recorded calls read.
fn work(table: &str) -> Folder {
    let folder = Folder::new();
    for made in ["work", "home"] {
        std::fs::create_dir_all(folder.path(made)).unwrap();
    }
    folder.write("work/tides.txt", format!("{table}\n"));
    folder
}

/// Runs Claude Code against the recording.
fn claude(program: &std::path::Path, folder: &Folder, serving: &Serving) -> Output {
    let mut command = Command::new(program);
    command.args(["-p", QUESTION, "--model", "claude-sonnet-4-5-20250929", "--allowedTools", "Bash,Read"]);
    command.current_dir(folder.path("work")).stdin(Stdio::null()).envs(OFFLINE);
    command.env("HOME", folder.path("home")).env("CLAUDE_CONFIG_DIR", folder.path("home"));
    command.env("ANTHROPIC_API_KEY", "none").env("ANTHROPIC_BASE_URL", &serving.address);
    command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_MAX_RETRIES", "0");
    command.output().unwrap()
}

/// Runs Codex against the recording, with these settings.
fn codex(program: &std::path::Path, folder: &Folder, config: &str) -> Output {
    folder.write("home/config.toml", config);
    folder.write("home/auth.json", "{\"OPENAI_API_KEY\":\"none\"}");
    let mut command = Command::new(program);
    command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", QUESTION]);
    command.current_dir(folder.path("work")).stdin(Stdio::null()).envs(OFFLINE);
    command.env("HOME", folder.path("home")).env("CODEX_HOME", folder.path("home"));
    command.output().unwrap()
}

/// Settings that make the recording a provider for Codex.
fn provider(serving: &Serving) -> String {
    format!(
        "model = \"gpt-5-codex\"\nmodel_provider = \"tape\"\n[model_providers.tape]\nname = \"tape\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\nbase_url = \"{}/v1\"\n",
        serving.address
    )
}

/// The agent reached the end of the recording and really ran its calls.
#[track_caller]
fn assert_played(done: &Output, folder: &Folder, table: &str) {
    let (stdout, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && stdout.contains("Soon after six."), "{stdout}\n{errors}");
    assert_eq!(std::fs::read_to_string(folder.path("work/seen.txt")).unwrap(), format!("{table}\n"));
}

#[test]
fn claude_code_plays_a_strict_recording_to_its_end() {
    let Some(program) = program("STENO_CLAUDE") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CLAUDE, "--strict --once");
    let done = claude(&program, &folder, &serving);
    assert_played(&done, &folder, "high water 06:12");
    // It also requests a title, and sends its folder and the date: the first takes no answer, the second is not drift.
    serving.says("text that the agent adds");
    serving.says("3 of 3 answers given, no drift, 1 outside the conversation");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn drift_of_claude_code_is_found_in_its_tool_results() {
    let Some(program) = program("STENO_CLAUDE") else { return };
    let folder = work("high water 18:40");
    let mut serving = Serving::start(CLAUDE, "--once");
    let done = claude(&program, &folder, &serving);
    assert_played(&done, &folder, "high water 18:40");
    serving.says("drift: result 4 changed: recorded \"high water 06:12\", requested \"high water 18:40\"");
    serving.says("3 of 3 answers given, 2 drifted, with 2 differences, 1 outside the conversation");
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn codex_plays_a_strict_recording_to_its_end() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CODEX, "--strict --once");
    let done = codex(&program, &folder, &provider(&serving));
    assert_played(&done, &folder, "high water 06:12");
    serving.says("text that the agent adds");
    serving.says("2 requests, 2 of 2 answers given, no drift");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn drift_of_codex_is_found_in_its_tool_results() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 18:40");
    let mut serving = Serving::start(CODEX, "--once");
    let done = codex(&program, &folder, &provider(&serving));
    assert_played(&done, &folder, "high water 18:40");
    serving.says("drift: result 4 changed: ");
    serving.says("2 requests, 2 of 2 answers given, 1 drifted, with 1 difference");
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn codex_retries_without_a_web_socket_after_a_refusal() {
    let Some(program) = program("STENO_CODEX") else { return };
    let folder = work("high water 06:12");
    let mut serving = Serving::start(CODEX, "--strict --once");
    let config = format!("model = \"gpt-5-codex\"\nopenai_base_url = \"{}/v1\"\n", serving.address);
    let done = codex(&program, &folder, &config);
    assert_played(&done, &folder, "high water 06:12");
    assert!(!String::from_utf8_lossy(&done.stderr).contains("Reconnecting"), "{done:?}");
    serving.says("2 requests, 2 of 2 answers given, no drift");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}
