//! `steno move` to an agent that keeps its sessions in a database: its own command imports them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::real::{OFFLINE, program};
use crate::runner::{Folder, demo, names};

/// The session of the demonstration.
const SESSION: &str = "8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10";

/// A folder to work in, and a session of Claude Code.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("work")).unwrap();
    fs::create_dir_all(folder.path("home/.claude/projects/almanac")).unwrap();
    folder.write(&format!("home/.claude/projects/almanac/{SESSION}.jsonl"), fs::read(demo("claude-code")).unwrap());
    folder
}

/// Moves the session with these programs. Returns the exit code, and what the command says.
fn moved(folder: &Folder, programs: &str, options: &str) -> (Option<i32>, String) {
    let line = format!("move {SESSION} --to opencode --cwd work {options}");
    folder.run("index").ends(0);
    let Output { status, stderr, .. } = folder.command(&line).env("PATH", folder.path(programs)).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn without_the_program_the_converted_session_is_kept() {
    let folder = folder();
    let (code, said) = moved(&folder, "none", "--dry-run");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("would run: ") && said.contains("opencode import NEW-ID.json"), "{said}");
    let kept = || names(&folder.path("")).into_iter().find(|name| name.starts_with("steno-move-"));
    assert_eq!(kept(), None);
    let (code, said) = moved(&folder, "none", "");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("error: opencode: the program is not installed") && said.contains("import it with: "),
        "{said}"
    );
    let kept = kept().unwrap();
    let document = names(&folder.path(&kept)).remove(0);
    assert!(said.contains(&document), "{said}");
    folder.run(&format!("check {kept}/{document}")).ends(0).says("opencode-export");
    folder.run(&format!("show {kept}/{document}")).ends(0).says("almanac");
}

#[cfg(unix)]
#[test]
fn a_program_that_fails_is_quoted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    fs::create_dir(folder.path("bin")).unwrap();
    folder.write("bin/opencode", "#!/bin/sh\necho 'the tide is out' >&2\nexit 1\n");
    fs::set_permissions(folder.path("bin/opencode"), fs::Permissions::from_mode(0o755)).unwrap();
    let (code, said) = moved(&folder, "bin", "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("opencode did not import the session: the tide is out"), "{said}");
}

/// The real program imports the session, exports the same messages, and imports again what the archive restores.
#[cfg(unix)]
#[test]
fn the_real_program_imports_the_session() {
    let Some(opencode) = program("STENO_OPENCODE") else { return };
    let folder = folder();
    fs::create_dir(folder.path("bin")).unwrap();
    std::os::unix::fs::symlink(&opencode, folder.path("bin/opencode")).unwrap();
    let (code, said) = moved(&folder, "bin", "");
    assert_eq!(code, Some(0), "{said}");
    let id = said.split("opencode.db#").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let exported = |name: &str| {
        let done = run(&folder, &opencode, &["export", &id]);
        fs::write(folder.path(name), done.stdout).unwrap();
        folder.run(&format!("convert {name} --to openai-chat -o -")).text().to_owned()
    };
    let before = exported("first.json");
    assert!(before.contains("almanac"), "{before}");
    folder.run("index").ends(0);
    folder.run("list --tree").ends(0).says("moved from it");
    folder.run(&format!("archive restore {id}")).ends(0).talks("opencode import");
    assert!(run(&folder, &opencode, &["session", "delete", &id]).status.success());
    assert!(run(&folder, &opencode, &["import", &format!("../{id}.json")]).status.success());
    assert_eq!(exported("second.json"), before);
}

#[cfg(unix)]
fn run(folder: &Folder, program: &PathBuf, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder.path("work")).env("HOME", folder.path("home")).envs(OFFLINE);
    command.output().unwrap()
}
