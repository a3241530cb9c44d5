//! Trajectories that `steno convert --to atif` writes, checked by Harbor's own validator in Python.

use std::path::Path;
use std::process::Command;

use crate::cassette::python;
use crate::runner::Folder;

/// Calls at once, a failed one, a late result, images, a sub-agent, a compaction, a failure, usage after an answer.
const SESSION: &str = r#"{"v":1,"kind":"fact","name":"session","session":"s1","cwd":"/srv/tides","version":"1.2.0","time":"2026-03-02T09:00:00Z"}
{"v":1,"kind":"message","session":"s1","role":"system","content":"Be brief."}
{"v":1,"kind":"message","session":"s1","time":"2026-03-02T09:00:00Z","role":"user","content":[{"text":"What is this?"},{"media":"image/png","url":"https://example.org/tide.png"},{"media":"image/png","data":"iVBORw0KGgo="}]}
{"v":1,"kind":"thinking","session":"s1","time":"2026-03-02T09:00:01Z","model":"m-1","group":"g1","content":"A table."}
{"v":1,"kind":"message","session":"s1","time":"2026-03-02T09:00:01Z","model":"m-1","group":"g1","role":"assistant","content":"I look twice.","usage":{"input":100,"output":20,"cache_read":40,"cache_write":5,"reasoning":3,"cost":0.01}}
{"v":1,"kind":"tool_call","session":"s1","time":"2026-03-02T09:00:01Z","model":"m-1","group":"g1","name":"look","call":"c1","input":{"where":"harbour"}}
{"v":1,"kind":"tool_call","session":"s1","time":"2026-03-02T09:00:01Z","model":"m-1","group":"g1","name":"run","call":"c2","input":"ls -l"}
{"v":1,"kind":"tool_result","session":"s1","time":"2026-03-02T09:00:02Z","call":"c2","content":"no such file","error":true}
{"v":1,"kind":"tool_result","session":"s1","time":"2026-03-02T09:00:03Z","call":"c1","content":[{"media":"image/gif","data":"R0lGODlh"}]}
{"v":1,"kind":"tool_result","session":"s1","call":"stray","content":"nobody asked"}
{"v":1,"kind":"tool_call","session":"s1","time":"2026-03-02T09:00:04Z","model":"m-1","group":"g2","name":"task","call":"c3","input":{"prompt":"Ask the harbour master.","subagent_type":"asker"},"usage":{"input":10,"output":2}}
{"v":1,"kind":"message","session":"s1","thread":"asker-1","time":"2026-03-02T09:00:05Z","role":"user","content":"Ask the harbour master."}
{"v":1,"kind":"tool_call","session":"s1","thread":"asker-1","time":"2026-03-02T09:00:06Z","model":"m-2","name":"ask","call":"c4","input":{},"usage":{"input":7,"output":1,"cost":0.002}}
{"v":1,"kind":"tool_result","session":"s1","thread":"asker-1","time":"2026-03-02T09:00:07Z","call":"c4","content":"at six"}
{"v":1,"kind":"message","session":"s1","thread":"asker-1","time":"2026-03-02T09:00:08Z","model":"m-2","role":"assistant","content":"At six."}
{"v":1,"kind":"tool_result","session":"s1","time":"2026-03-02T09:00:09Z","call":"c3","content":"{\"agent_id\":\"asker-1\",\"answer\":\"At six.\"}"}
{"v":1,"kind":"compaction","session":"s1","time":"2026-03-02T09:00:10Z","content":"We asked; it is at six."}
{"v":1,"kind":"failure","session":"s1","time":"2026-03-02T09:00:11Z","name":"overloaded","content":"try again"}
{"v":1,"kind":"message","session":"s1","time":"2026-03-02 09:00:12z","model":"m-1","group":"g3","role":"assistant","content":"High water is at six."}
{"v":1,"kind":"fact","name":"usage","session":"s1","model":"m-1","usage":{"input":50,"output":9}}
{"v":1,"kind":"tool_call","session":"s1","model":"m-1","group":"g4","name":"look","input":{"where":"office"}}
"#;

/// Prints each file that is invalid with its errors.
const VALIDATE: &str = "import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sys.argv[1:]:
    validator = TrajectoryValidator()
    if not validator.validate(path):
        print(path, validator.get_errors())";

#[test]
fn written_trajectories_are_valid() {
    let folder = Folder::with("session.jsonl", SESSION);
    let mut written = vec!["session.json".to_owned()];
    folder.run("convert session.jsonl --to atif -o session.json");
    let mut sources = 0;
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
    for entry in std::fs::read_dir(formats).unwrap().flatten() {
        let (name, fixtures) = (entry.file_name().into_string().unwrap(), entry.path().join("fixtures"));
        // What Harbor writes is not ours, and the template is no format.
        if matches!(name.as_str(), "atif" | "format_template") {
            continue;
        }
        let files = std::fs::read_dir(fixtures).into_iter().flatten().flatten().map(|file| file.path());
        for file in
            files.filter(|file| !file.extension().is_some_and(|ending| ending == "golden" || ending == "losses"))
        {
            sources += 1;
            let out = format!("{name}-{sources}.json");
            let mut command = folder.command("convert --to atif");
            let done = command.arg(&file).arg("-o").arg(folder.path(&out)).output().unwrap();
            assert!(done.status.code() != Some(2), "{}: {}", file.display(), String::from_utf8_lossy(&done.stderr));
            // A source without a conversation has no steps.
            if std::fs::metadata(folder.path(&out)).is_ok_and(|file| file.len() > 0) {
                written.push(out);
            }
        }
    }
    assert!(written.len() > 60, "{} of {sources}", written.len());

    let text = String::from_utf8(folder.read("session.json")).unwrap();
    for expected in [
        "\"path\": \"https://example.org/tide.png\"",
        "\"subagent_trajectory_ref\": [",
        "\"trajectory_id\": \"asker-1\"",
        "\"tool_result_is_error\": true",
        "\"total_prompt_tokens\": 205,",
        "\"total_completion_tokens\": 31,",
        "\"total_cost_usd\": 0.012,",
        "\"input\": \"ls -l\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let usage = |file: &str| folder.run(&format!("usage {file} --json")).json()[0]["total"].clone();
    let (written_usage, native_usage) = (usage("session.json"), usage("session.jsonl"));
    for counter in ["input", "output", "cache_read", "cache_write"] {
        assert_eq!(written_usage[counter], native_usage[counter], "{counter}: {written_usage}");
    }

    let Some(python) = python() else { return };
    let has_harbor = Command::new(python).args(["-c", "import harbor.models.trajectories"]).output().unwrap();
    if !has_harbor.status.success() {
        eprintln!("WARNING: harbor cannot be installed: its validator does not check what is written");
        return;
    }
    let done =
        Command::new(python).current_dir(folder.path(".")).args(["-c", VALIDATE]).args(&written).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "");
}
