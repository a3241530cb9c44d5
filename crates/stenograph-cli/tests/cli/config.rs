//! `steno config`: persistent settings in files that people also write by hand.

use crate::runner::{Done, Folder};

/// Runs with its own home folder and no setting in the environment.
fn run(folder: &Folder, line: &str, variables: &[(&str, &str)]) -> Done {
    let mut command = folder.command(line);
    for variable in ["STENO_CONFIG", "XDG_CONFIG_HOME", "APPDATA"] {
        command.env_remove(variable);
    }
    command.env("HOME", folder.path("home")).env("XDG_CONFIG_HOME", folder.path("home/.config"));
    command.env("APPDATA", folder.path("home/.config")).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains("panicked"), "{line}: {talk}");
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

const FILE: &str = "home/.config/steno/config.toml";

#[test]
fn a_setting_lasts_and_its_key_may_be_typed_in_any_case() {
    let folder = Folder::new();
    run(&folder, "config get App.AutoSaveChatHistory", &[]).ends(0).says("true\n");
    run(&folder, "config set app.autosavechathistory false", &[]).ends(0).talks("App.AutoSaveChatHistory set to false");
    assert_eq!(folder.read(FILE), b"[App]\nAutoSaveChatHistory = false\n");
    run(&folder, "config get APP.AUTOSAVECHATHISTORY", &[]).ends(0).says("false\n");
    run(&folder, "config unset App.AutoSaveChatHistory", &[]).ends(0);
    run(&folder, "config unset App.AutoSaveChatHistory", &[]).ends(1).talks("is not set");
    run(&folder, "config get App.AutoSaveChatHistory", &[]).ends(0).says("true\n");
}

#[test]
fn the_environment_counts_before_the_folder_and_the_folder_before_the_user() {
    let folder = Folder::new();
    run(&folder, "config set App.MaxChatTokens 1000", &[]).ends(0);
    let local = run(&folder, "config set App.MaxChatTokens 2000 --local", &[]);
    local.ends(0).talks(".steno");
    run(&folder, "config set App.MaxChatTokens 3000", &[]).ends(0).talks("overrides it with 2000");
    run(&folder, "config get App.MaxChatTokens", &[]).ends(0).says("2000\n");
    run(&folder, "config get App.MaxChatTokens --user", &[]).ends(0).says("3000\n");
    let listed = run(&folder, "config list --json", &[("CYCOD_MAX_CHAT_TOKENS", "4000")]);
    let listed = listed.ends(0).json();
    assert_eq!(listed.len(), 7);
    assert_eq!((&listed[2]["value"], &listed[2]["origin"]), (&4000.into(), &"environment".into()));
    let off = [("CYCOD_AUTO_SAVE_TRAJECTORY", "0"), ("CYCOD_AUTO_SAVE_CHAT_HISTORY", "False")];
    run(&folder, "config list", &off).ends(0).says("App.AutoSaveTrajectory   false").says("variable CYCOD_AUTO_SAVE");
    run(&folder, "config list", &[("CYCOD_AUTO_SAVE_TRAJECTORY", "perhaps")]).fails("perhaps; expected true or false");
}

#[test]
fn a_given_file_is_used_and_comments_stay() {
    let folder = Folder::with("my.toml", "# mine\n[App] # all of it\nAutoSaveTrajectory = true # for now\n");
    let own = [("STENO_CONFIG", "my.toml")];
    run(&folder, "config set App.AutoSaveTrajectory no", &own).ends(0).talks("my.toml");
    assert_eq!(folder.read("my.toml"), b"# mine\n[App] # all of it\nAutoSaveTrajectory = false # for now\n");
    assert_eq!(folder.names(), ["my.toml"]);
    let json = run(&folder, "config set App.MaxToolTokens 7 --json", &own).ends(0).json();
    assert_eq!((&json[0]["key"], &json[0]["value"]), (&"App.MaxToolTokens".into(), &7.into()));
}

#[test]
fn an_invalid_setting_is_refused_with_a_hint() {
    let folder = Folder::new();
    run(&folder, "config set App.AutoSaveHistory false", &[]).fails("unknown setting").talks("App.AutoSaveChatHistory");
    run(&folder, "config set App.MaxChatTokens many", &[]).fails("must be a whole number");
    run(&folder, "config set App.MaxChatTokens -1", &[]).fails("must be a whole number");
    run(&folder, "config get App.MaxChatTokens", &[]).ends(1).talks("is not set");
    assert!(folder.names().is_empty());
    folder.write("bad.toml", "[App\n");
    run(&folder, "config list", &[("STENO_CONFIG", "bad.toml")]).fails("line 1: not TOML");
    folder.write("odd.toml", "App.MaxChatTokens = \"many\"\nColour = 1\n");
    run(&folder, "config list", &[("STENO_CONFIG", "odd.toml")]).fails("must be a whole number");
    folder.write("odd.toml", "Colour = 1\n");
    run(&folder, "config list", &[("STENO_CONFIG", "odd.toml")]).ends(0).talks("unknown setting: Colour");
}

#[test]
fn concurrent_changes_of_settings_all_take_effect() {
    let folder = Folder::new();
    let keys = ["App.MaxChatTokens 1", "App.MaxPromptTokens 2", "App.MaxToolTokens 3", "App.AutoSaveTrajectory off"];
    std::thread::scope(|scope| {
        for key in keys {
            let folder = &folder;
            scope.spawn(move || run(folder, &format!("config set {key}"), &[]).ends(0).code);
        }
    });
    let listed = run(&folder, "config list --json", &[]).ends(0).json();
    assert_eq!(listed.iter().filter(|setting| setting["origin"] == "user").count(), 4);
}
