//! Help texts, versions and usage errors.

use stenograph::formats::FORMATS;

use crate::runner::{Folder, names};

const COMMANDS: [&str; 35] = [
    "list",
    "find",
    "show",
    "tail",
    "status",
    "audit",
    "diff",
    "usage",
    "replay",
    "resume",
    "pick",
    "export",
    "redact",
    "serve",
    "check",
    "convert",
    "move",
    "trim",
    "cut",
    "compact",
    "undo",
    "index",
    "archive",
    "mark",
    "record",
    "recover",
    "cassette",
    "chibi",
    "devflow",
    "cycod",
    "formats",
    "config",
    "demo",
    "completions",
    "man",
];

/// Commands with several forms.
const ACTIONS: [(&str, &str); 27] = [
    ("config", "get"),
    ("config", "list"),
    ("config", "set"),
    ("config", "unset"),
    ("config", "folder"),
    ("config folder", "add"),
    ("config folder", "list"),
    ("config folder", "remove"),
    ("chibi", "context"),
    ("chibi context", "clear"),
    ("chibi context", "list"),
    ("chibi context", "rebuild"),
    ("chibi", "inbox"),
    ("chibi inbox", "peek"),
    ("chibi inbox", "send"),
    ("chibi inbox", "take"),
    ("archive", "add"),
    ("archive", "list"),
    ("archive", "prune"),
    ("archive", "restore"),
    ("archive", "unforget"),
    ("archive", "verify"),
    ("cycod", "continue"),
    ("devflow", "archive"),
    ("devflow", "clean"),
    ("devflow", "list"),
    ("devflow", "restore"),
];

/// Every command and every form of it.
pub fn all_commands() -> Vec<String> {
    let actions = ACTIONS.iter().map(|(command, action)| format!("{command} {action}"));
    COMMANDS.iter().map(ToString::to_string).chain(actions).collect()
}

#[test]
fn every_command_has_help_with_examples() {
    let folder = Folder::new();
    let top = folder.run("--help");
    top.ends(0).says("Examples:").says("Exit codes:");
    for command in COMMANDS {
        top.says(&format!("  {command} "));
        let help = folder.run(&format!("{command} --help"));
        help.ends(0).says("Examples:\n  steno ");
        let first = help.text().lines().next().unwrap();
        assert!(!first.ends_with('.') && first.chars().next().unwrap().is_uppercase(), "{command}: {first}");
        folder.run(&format!("{command} -h")).ends(0).says("Examples:\n  steno ");
    }
    for (command, action) in ACTIONS {
        folder.run(&format!("{command} --help")).says(&format!("  {action} "));
        folder.run(&format!("{command} {action} --help")).ends(0).says("Examples:\n  steno ");
    }
    folder.run("--version").ends(0).says("steno ");
}

#[test]
fn the_list_of_commands_is_whole() {
    let top = Folder::new().run("--help");
    let groups = top.text().split("\nOptions:\n").next().unwrap();
    let listed: Vec<&str> = groups.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert_eq!(listed, COMMANDS);
}

#[test]
fn invalid_arguments_exit_with_2() {
    let folder = Folder::new();
    folder.run("").ends(2).talks("Usage:");
    folder.run("chek").ends(2).talks("check");
    folder.run("check").ends(2).talks("FILE");
    folder.run("convert a").ends(2).talks("--to");
}

#[test]
fn all_formats_are_listed() {
    let folder = Folder::new();
    let (people, programs) = (folder.run("formats"), folder.run("formats --json"));
    let json = programs.ends(0).json();
    assert_eq!(json.len(), FORMATS.len());
    for (format, json) in FORMATS.iter().zip(json) {
        let info = format.info();
        people.ends(0).says(info.name).says(info.title).says(info.extension);
        info.homes.iter().for_each(|home| {
            people.says(home);
        });
        assert_eq!(json["name"], info.name);
        assert_eq!(json["carries"], info.traits.carries);
        assert_eq!(json["lines"], info.framing.allows_lines());
        // A document cannot be recorded while it arrives.
        let help = folder.run("record --help");
        let values = help.text().split("possible values: ").nth(1).unwrap().split(']').next().unwrap();
        assert_eq!(values.split([',', ' ', '\n']).any(|name| name == info.name), info.framing.allows_lines());
        assert_eq!(json["homes"].as_array().unwrap().len(), info.homes.len());
        assert_eq!(json["resume"].as_str(), info.resume);
        people.says(info.resume.unwrap_or_default());
    }
}

/// What a shell offers for the last of these words.
fn offered(folder: &Folder, words: &[&str]) -> String {
    let mut command = folder.command("--");
    command.arg("steno").args(words).env("STENO_COMPLETE", "fish");
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn sessions_projects_and_formats_are_completed_while_the_user_types() {
    let folder = crate::list::home();
    let sessions = offered(&folder, &["show", "ffff"]);
    assert!(sessions.starts_with("ffff0000") && sessions.contains("Feed the walrus"), "{sessions}");
    assert!(offered(&folder, &["tail", "lat"]).starts_with("latest"));
    assert_eq!(offered(&folder, &["list", "--project", "sh"]).trim(), "shop");
    assert!(offered(&folder, &["convert", "a", "--to", "cod"]).starts_with("codex"));
    // Formats that steno cannot write are not offered.
    let targets = offered(&folder, &["convert", "a", "--to", "o"]);
    assert!(targets.contains("openai-chat") && !targets.contains("openhands"), "{targets}");
    folder.write("a", crate::runner::NATIVE);
    folder
        .run("convert a --to opencode")
        .fails("opencode")
        .talks("hint: steno formats lists the formats that can be written");
    assert!(offered(&folder, &["archive", "restore", "ffff"]).starts_with("ffff0000"));
    assert!(offered(&folder, &["cycod", "continue", "ffff"]).starts_with("ffff0000"));
    assert!(offered(&folder, &["arch"]).starts_with("archive"));
    folder.run("mark latest --tag team/zoo").ends(0);
    assert_eq!(offered(&folder, &["mark", "latest", "--tag", "te"]).trim(), "team/zoo");
    // Without a store there is nothing to offer, and no error.
    assert_eq!(offered(&Folder::new(), &["list", "--project", "sh"]), "");
}

#[test]
fn shells_get_completions_and_man_gets_pages() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        folder.run(&format!("completions {shell}")).ends(0).says("STENO_COMPLETE");
    }
    folder.run("man").ends(0).says(".TH steno 1").says("convert");
    std::fs::create_dir(folder.path("pages")).unwrap();
    folder.run("man pages").ends(0);
    let mut pages: Vec<String> = COMMANDS.iter().map(|command| format!("steno-{command}.1")).collect();
    pages.extend(ACTIONS.iter().map(|(command, action)| format!("steno-{}-{action}.1", command.replace(' ', "-"))));
    pages.push("steno.1".to_owned());
    pages.sort();
    assert_eq!(names(&folder.path("pages")), pages);
    folder.run("man none").fails("the output folder does not exist");
}
