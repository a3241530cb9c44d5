//! `steno audit --diff`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::runner::Folder;

const SESSION: &str = r#"{"v":1,"kind":"message","session":"s1","role":"user","content":"Greet","cwd":"/work/shop"}
{"v":1,"kind":"tool_call","session":"s1","name":"Read","call":"c1","input":{"file_path":"/work/shop/src/main.rs"}}
{"v":1,"kind":"tool_result","session":"s1","call":"c1","content":"1→fn main() {\n2→    println!(\"hi\");\n3→}\n"}
{"v":1,"kind":"tool_call","session":"s1","name":"Edit","call":"c2","input":{"file_path":"/work/shop/src/main.rs","old_string":"\"hi\"","new_string":"\"hello\""}}
{"v":1,"kind":"tool_result","session":"s1","call":"c2","content":"The file has been updated."}
{"v":1,"kind":"tool_call","session":"s1","name":"Write","call":"c3","input":{"file_path":"/work/shop/NOTES","content":"a \u001b[31mred\u001b[0m word\n"}}
{"v":1,"kind":"tool_result","session":"s1","call":"c3","content":"File created successfully at: /work/shop/NOTES"}
{"v":1,"kind":"tool_call","session":"s1","name":"Edit","call":"c4","input":{"file_path":"/work/shop/lib.rs","old_string":"one","new_string":"two"}}
{"v":1,"kind":"tool_result","session":"s1","call":"c4","content":"The file has been updated."}
{"v":1,"kind":"tool_call","session":"s1","name":"Bash","call":"c5","input":{"command":"sed -i s/a/b/ Cargo.toml"}}
{"v":1,"kind":"tool_result","session":"s1","call":"c5","content":""}
"#;

const DIFF: &str = "\
diff --git a/NOTES b/NOTES
new file mode 100644
--- /dev/null
+++ b/NOTES
@@ -0,0 +1 @@
+a \u{1b}[31mred\u{1b}[0m word
diff a/lib.rs b/lib.rs
--- a/lib.rs
+++ b/lib.rs
the file's initial contents are not recorded
@@ -?,1 +?,1 @@
-one
+two
diff --git a/src/main.rs b/src/main.rs
--- a/src/main.rs
+++ b/src/main.rs
@@ -1,3 +1,3 @@
 fn main() {
-    println!(\"hi\");
+    println!(\"hello\");
 }
# 1 possible change not visible in the recorded calls:
#   event 10: a command that may write files: sed -i s/a/b/ Cargo.toml (/work/shop/Cargo.toml)
";

#[test]
fn the_net_change_of_each_file_is_a_diff_and_the_rest_is_listed() {
    let folder = Folder::with("a.jsonl", SESSION);
    let done = folder.run("audit a.jsonl --diff");
    assert_eq!(done.ends(0).text(), DIFF);
}

#[test]
fn git_applies_the_diff_from_a_pipe() {
    let folder = Folder::with("a.jsonl", SESSION);
    std::fs::create_dir(folder.path("src")).unwrap();
    folder.write("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n");
    let diff = folder.run("audit a.jsonl --diff").text().to_owned();
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(folder.path(""))
        .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{diff}");
    assert_eq!(folder.read("src/main.rs"), b"fn main() {\n    println!(\"hello\");\n}\n");
    assert_eq!(folder.read("NOTES"), b"a \x1b[31mred\x1b[0m word\n");
}

#[test]
fn json_lists_changed_files_and_changes_that_cannot_be_seen() {
    let folder = Folder::with("a.jsonl", SESSION);
    let json = folder.run("audit a.jsonl --diff --json").json();
    let files = json[0]["files"].as_array().unwrap();
    let rows: Vec<String> = files
        .iter()
        .map(|file| {
            format!(
                "{} {} {} {} {} {}",
                file["path"], file["how"], file["base"], file["exact"], file["added"], file["removed"]
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            r#""/work/shop/NOTES" "created" "whole" true 1 0"#,
            r#""/work/shop/lib.rs" "changed" "nothing" false 1 1"#,
            r#""/work/shop/src/main.rs" "changed" "whole" true 1 1"#,
        ]
    );
    assert!(files[2]["diff"].as_str().unwrap().starts_with("diff --git a/src/main.rs"));
    let unseen = &json[0]["unseen"][0];
    assert_eq!((unseen["event"].as_u64(), unseen["line"].as_u64()), (Some(10), Some(10)));
    assert_eq!((unseen["why"].as_str(), unseen["path"].as_str()), (Some("command"), Some("/work/shop/Cargo.toml")));
}

#[test]
fn where_nothing_changed_the_answer_is_no() {
    let folder = Folder::with(
        "a.jsonl",
        "{\"v\":1,\"kind\":\"message\",\"session\":\"s1\",\"role\":\"user\",\"content\":\"hi\"}\n",
    );
    let done = folder.run("audit a.jsonl --diff");
    assert_eq!(done.ends(1).text(), "");
}
