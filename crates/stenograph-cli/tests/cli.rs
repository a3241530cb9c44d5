//! The command as people use it: the real binary on real files. Each file in `cli/` covers one subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

#[path = "cli/agent_homes.rs"]
mod agent_homes;
#[path = "cli/agree.rs"]
mod agree;
#[path = "cli/archive.rs"]
mod archive;
#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/audit_diff.rs"]
mod audit_diff;
#[path = "cli/audit_sides.rs"]
mod audit_sides;
#[path = "cli/audit_words.rs"]
mod audit_words;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/browser.rs"]
mod browser;
#[path = "cli/cassette.rs"]
mod cassette;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/compact.rs"]
mod compact;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/containers.rs"]
mod containers;
#[path = "cli/context.rs"]
mod context;
#[path = "cli/convert.rs"]
mod convert;
#[path = "cli/cut.rs"]
mod cut;
#[path = "cli/cycod.rs"]
mod cycod;
#[path = "cli/databases.rs"]
mod databases;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/devflow.rs"]
mod devflow;
#[path = "cli/diff.rs"]
mod diff;
#[path = "cli/edit_memory.rs"]
mod edit_memory;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/export_html.rs"]
mod export_html;
#[path = "cli/find.rs"]
mod find;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/importing.rs"]
mod importing;
#[path = "cli/inbox.rs"]
mod inbox;
#[path = "cli/index.rs"]
mod index;
#[path = "cli/leslie.rs"]
mod leslie;
#[path = "cli/list.rs"]
mod list;
#[path = "cli/list_tree.rs"]
mod list_tree;
#[path = "cli/mark.rs"]
mod mark;
#[path = "cli/moving.rs"]
mod moving;
#[path = "cli/nested.rs"]
mod nested;
#[path = "cli/newcomer.rs"]
mod newcomer;
#[path = "cli/pick.rs"]
mod pick;
#[path = "cli/picture.rs"]
mod picture;
#[path = "cli/readme.rs"]
mod readme;
#[path = "cli/real.rs"]
mod real;
#[path = "cli/real_cassette.rs"]
mod real_cassette;
#[path = "cli/real_move.rs"]
mod real_move;
#[path = "cli/real_written.rs"]
mod real_written;
#[path = "cli/record.rs"]
mod record;
#[path = "cli/record_claude_events.rs"]
mod record_claude_events;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/redact.rs"]
mod redact;
#[path = "cli/repeats.rs"]
mod repeats;
#[path = "cli/replay.rs"]
mod replay;
#[path = "cli/resume.rs"]
mod resume;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/runner.rs"]
mod runner;
#[path = "cli/screens.rs"]
mod screens;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/serve_marks.rs"]
mod serve_marks;
#[path = "cli/serve_pictures.rs"]
mod serve_pictures;
#[path = "cli/serve_redact.rs"]
mod serve_redact;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/show.rs"]
mod show;
#[path = "cli/status.rs"]
mod status;
#[path = "cli/status_index.rs"]
mod status_index;
#[path = "cli/tail.rs"]
mod tail;
#[path = "cli/times.rs"]
mod times;
#[path = "cli/trajectories.rs"]
mod trajectories;
#[path = "cli/trim.rs"]
mod trim;
#[path = "cli/upgrade.rs"]
mod upgrade;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/usage_left.rs"]
mod usage_left;
#[path = "cli/usage_peers.rs"]
mod usage_peers;
#[path = "cli/watch.rs"]
mod watch;
#[path = "cli/writing.rs"]
mod writing;

/// The list above names every file in the folder.
#[test]
fn no_test_file_is_forgotten() {
    let listed = include_str!("cli.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(listed.contains(&format!("\"cli/{name}\"")), "{name} is in no list");
    }
}
