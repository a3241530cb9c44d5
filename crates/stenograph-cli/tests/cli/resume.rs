//! `steno resume`.

use std::fs;

use crate::list::{home, index, message_line, path};
use crate::runner::Folder;

const THREE: &str = "ffff0000-1111-4222-8333-444455556666";

#[test]
fn the_command_is_printed_with_the_way_there() {
    let folder = home();
    let done = folder.run("resume ffff --root home --shell sh");
    assert_eq!(done.ends(0).text(), format!("cd /work/shop && claude --resume {THREE}\n"));
    done.talks("the folder of the session does not exist here: /work/shop");
    let done = folder.run("resume ffff --shell powershell");
    let line = format!("Set-Location -LiteralPath '/work/shop'; if ($?) {{ claude --resume {THREE} }}\n");
    assert_eq!(done.ends(0).text(), line);
    let json = folder.run("resume ffff --root home --json").ends(0).json();
    assert_eq!((&json[0]["session"], &json[0]["folder"]), (&THREE.into(), &"/work/shop".into()));
    assert_eq!((&json[0]["folder_exists"], &json[0]["at_home"]), (&false.into(), &true.into()));
}

#[test]
fn a_file_outside_its_home_is_reported() {
    let folder = home();
    fs::rename(folder.path(&path(THREE)), folder.path("home/kept.jsonl")).unwrap();
    index(&folder);
    let done = folder.run("resume ffff --root home");
    done.ends(0).says(&format!("claude --resume {THREE}")).talks("is not where the agent looks");
}

#[test]
fn a_session_whose_file_is_gone_must_be_restored_first() {
    let folder = home();
    fs::remove_file(folder.path(&path(THREE))).unwrap();
    index(&folder);
    folder.run("resume ffff").finds_nothing("the file is gone").talks("steno archive restore ffff0000");
    folder.run("tail ffff").finds_nothing("the file is gone").talks("steno show ffff");
}

#[test]
fn not_every_agent_has_a_command() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/notes")).unwrap();
    folder.write("home/notes/s1.steno.jsonl", crate::runner::NATIVE);
    index(&folder);
    folder.run("resume s1").finds_nothing("has no command to resume a session");
}

#[test]
fn a_session_that_wishes_for_another_command_gets_none() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    let evil = "a;touch pwned";
    folder.write(&path("x"), message_line(evil, 1, "user", "Hello"));
    index(&folder);
    let mut command = folder.command("resume");
    let output = command.arg(evil).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), b"".as_slice()));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no safe command"));
}
