//! Sessions of a few calls, and the resulting diffs.

use super::*;
use crate::model::{Content, Input};

/// Creates the events of a session, call by call.
#[derive(Default)]
struct Session {
    changes: Changes,
    calls: u64,
}

impl Session {
    fn call(&mut self, tool: &str, input: &str) -> String {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        self.call_as(&id, tool, input);
        id
    }

    fn call_as(&mut self, id: &str, tool: &str, input: &str) {
        let input = Input::Json(input.to_owned().into());
        let body = Body::ToolCall { call: Some(id.to_owned().into()), name: tool.to_owned().into(), input };
        self.changes.add(&Event { cwd: Some("/w".into()), ..Event::new(body) });
    }

    fn answer(&mut self, id: &str, output: &str, error: Option<bool>) {
        let content = Content::text(output.to_owned());
        self.changes.add(&Event::new(Body::ToolResult {
            call: Some(id.to_owned().into()),
            name: None,
            content,
            error,
        }));
    }

    /// A successful call.
    fn does(&mut self, tool: &str, input: &str, output: &str) -> &mut Session {
        let id = self.call(tool, input);
        self.answer(&id, output, None);
        self
    }

    fn finish(self) -> ChangesOutcome {
        self.changes.finish()
    }

    fn diff(self) -> String {
        self.finish().files.iter().map(|file| file.diff.as_str()).collect()
    }
}

fn reasons(outcome: &ChangesOutcome) -> Vec<&'static str> {
    outcome.unseen.iter().map(|unseen| unseen.why.name()).collect()
}

const READ: &str = r#"{"file_path":"/w/a.rs"}"#;
const EDIT: &str = r#"{"file_path":"/w/a.rs","old_string":"two","new_string":"2"}"#;

#[test]
fn read_lines_are_the_context() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→two\n3→three\n").does("Edit", EDIT, "ok");
    let outcome = session.finish();
    let [file] = outcome.files.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(
        file.diff,
        "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    assert_eq!((file.added, file.removed, file.how, file.base), (1, 1, ChangeHow::Changed, BaseKnown::Whole));
    assert!(file.exact && outcome.unseen.is_empty());
}

#[test]
fn an_edit_of_an_unknown_file_has_no_line_numbers() {
    let mut session = Session::default();
    session.does("Edit", EDIT, "ok");
    let outcome = session.finish();
    assert_eq!(
        outcome.files[0].diff,
        "diff a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\nthe file's initial contents are not recorded\n@@ -?,1 +?,1 @@\n-two\n+2\n"
    );
    assert_eq!(outcome.files[0].base, BaseKnown::Nothing);
}

#[test]
fn edits_that_are_undone_later_vanish() {
    let mut session = Session::default();
    session.does("Edit", EDIT, "ok");
    session.does("Edit", r#"{"file_path":"/w/a.rs","old_string":"2","new_string":"two"}"#, "ok");
    session.does("Write", r#"{"file_path":"b","content":"x"}"#, "File created successfully at: b");
    session.does("delete_file", r#"{"path":"b"}"#, "ok");
    assert_eq!(session.finish(), ChangesOutcome::default());
}

#[test]
fn a_call_that_failed_or_was_never_answered_changes_nothing() {
    let mut session = Session::default();
    let id = session.call("Edit", EDIT);
    session.answer(&id, "String to replace not found", Some(true));
    session.does("Edit", EDIT, "Error: no such file");
    session.call("Edit", EDIT);
    let outcome = session.finish();
    assert_eq!(outcome.files, []);
    assert_eq!(reasons(&outcome), ["unanswered"]);
    assert_eq!(outcome.unseen[0].place.event, 5);
}

#[test]
fn a_repeated_call_counts_once() {
    let mut session = Session::default();
    let input = r#"{"file_path":"/w/a.rs","old_string":"a","new_string":"aa"}"#;
    session.does("Read", READ, "1→a\n").does("Edit", input, "ok");
    // A copy of the call and its result, as records of sub-agents and resumed sessions contain them.
    session.call_as("c2", "Edit", input);
    session.answer("c2", "ok", None);
    let content = Content::text("ok");
    let restated = Body::ToolResult { call: Some("c2".into()), name: None, content, error: None };
    session.changes.add(&Event { restates: true, ..Event::new(restated) });
    assert!(session.diff().ends_with("\n-a\n+aa\n"));
}

#[test]
fn created_and_deleted_files_have_the_headers_of_git() {
    let mut session = Session::default();
    session.does("create_file", r#"{"path":"new.txt","content":"x\ny"}"#, "ok");
    session.does("Read", r#"{"file_path":"old.txt"}"#, "     1→gone\n").does(
        "delete_file",
        r#"{"path":"old.txt"}"#,
        "ok",
    );
    assert_eq!(
        session.diff(),
        "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n\
         \\ No newline at end of file\n\
         diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    );
}

#[test]
fn moved_files_keep_their_known_contents() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→two\n").does("Edit", EDIT, "ok");
    session.does("move_file", r#"{"path":"a.rs","destination":"b.rs"}"#, "ok");
    session.does("move_file", r#"{"path":"unknown","destination":"elsewhere"}"#, "ok");
    let outcome = session.finish();
    assert_eq!(outcome.files[0].how, ChangeHow::Moved);
    assert_eq!(
        outcome.files[0].diff,
        "diff --git a/a.rs b/b.rs\nrename from a.rs\nrename to b.rs\n--- a/a.rs\n+++ b/b.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    assert_eq!(outcome.files[1].diff, "diff --git a/unknown b/elsewhere\nrename from unknown\nrename to elsewhere\n");
}

#[test]
fn a_patch_applies_to_all_its_files() {
    let mut session = Session::default();
    session.does("Read", READ, "L1: one\nL2: two\nL3: three\n");
    let patch = r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n one\n-two\n+2\n*** Add File: c\n+x\n*** End Patch"}"#;
    session.does("apply_patch", patch, "Success. Updated the following files:\nM a.rs\n");
    let diff = session.diff();
    assert!(
        diff.contains("rename to b.rs\n--- a/a.rs\n+++ b/b.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"),
        "{diff}"
    );
    assert!(diff.contains("+++ b/c\n@@ -0,0 +1 @@\n+x\n"), "{diff}");
}

#[test]
fn an_undo_reverts_the_last_edit() {
    let mut session = Session::default();
    session.does("editor", r#"{"command":"view","path":"a"}"#, "     1\tone\n     2\ttwo\n");
    session.does("editor", r#"{"command":"str_replace","path":"a","old_str":"one","new_str":"1"}"#, "ok");
    session.does("editor", r#"{"command":"insert","path":"a","insert_line":2,"new_str":"three"}"#, "ok");
    session.does("editor", r#"{"command":"undo_edit","path":"a"}"#, "ok");
    session.does("editor", r#"{"command":"undo_edit","path":"b"}"#, "ok");
    let outcome = session.finish();
    assert!(outcome.files[0].diff.ends_with("@@ -1,2 +1,2 @@\n-one\n+1\n two\n"), "{}", outcome.files[0].diff);
    assert_eq!(reasons(&outcome), ["nothing_to_undo"]);
}

#[test]
fn an_unrecorded_change_is_listed_and_shown() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→two\n").does("Edit", EDIT, "ok");
    session.does("Bash", r#"{"command":"sed -i s/one/1/ a.rs"}"#, "");
    session.does("Read", READ, "1→1\n2→2\n");
    let outcome = session.finish();
    assert!(outcome.files[0].diff.ends_with("@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n"));
    assert_eq!(reasons(&outcome), ["command", "changed_elsewhere"]);
    assert_eq!(outcome.unseen[0].what, "sed -i s/one/1/ a.rs");
    assert_eq!(outcome.unseen[0].path.as_deref(), Some("/w/a.rs"));
}

#[test]
fn an_edit_whose_old_text_is_not_there_is_listed_and_shown() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→zwei\n").does("Edit", EDIT, "ok");
    let outcome = session.finish();
    assert_eq!(reasons(&outcome), ["changed_elsewhere"]);
    assert!(outcome.files[0].diff.ends_with("@@ -?,1 +?,1 @@\n-two\n+2\n"));
}

#[test]
fn reading_a_file_after_its_edit_shows_its_initial_contents() {
    let mut session = Session::default();
    session.does("Edit", EDIT, "ok").does("Read", READ, "1→one\n2→2\n3→three\n");
    let diff = session.diff();
    assert!(diff.ends_with("+++ b/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"), "{diff}");
}

#[test]
fn parts_with_line_numbers_have_them_in_the_diff() {
    let mut session = Session::default();
    session.does("Read", r#"{"file_path":"/w/a.rs","offset":10,"limit":3}"#, "10→one\n11→two\n12→three\n");
    session.does("Edit", r#"{"file_path":"/w/a.rs","old_string":"two\n","new_string":"2\n2b\n"}"#, "ok");
    session.does("Read", r#"{"file_path":"/w/a.rs","offset":21,"limit":3}"#, "21→x\n22→y\n23→z\n");
    session.does("Edit", r#"{"file_path":"/w/a.rs","old_string":"y","new_string":"Y"}"#, "ok");
    let outcome = session.finish();
    assert!(outcome.files[0].exact);
    assert_eq!(outcome.files[0].base, BaseKnown::Parts);
    assert!(
        outcome.files[0]
            .diff
            .ends_with("@@ -10,3 +10,4 @@\n one\n-two\n+2\n+2b\n three\n@@ -20,3 +21,3 @@\n x\n-y\n+Y\n z\n"),
        "{}",
        outcome.files[0].diff
    );
}

#[test]
fn a_written_file_with_unknown_contents_is_shown_whole() {
    let mut session = Session::default();
    session.does("Write", r#"{"file_path":"a","content":"x\n"}"#, "The file a has been updated");
    let outcome = session.finish();
    assert_eq!(outcome.files[0].how, ChangeHow::Written);
    assert!(outcome.files[0].diff.ends_with("not recorded\n@@ -?,0 +1 @@\n+x\n"), "{}", outcome.files[0].diff);
}

#[test]
fn cells_of_a_notebook_are_shown_by_name() {
    let mut session = Session::default();
    session.does("NotebookEdit", r#"{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x = 1"}"#, "ok");
    session.does("NotebookEdit", r#"{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x = 2"}"#, "ok");
    assert!(session.diff().ends_with("cell c1: the earlier contents are not recorded\n@@ -?,0 +?,1 @@\n+x = 2\n"));
}

#[test]
fn windows_paths_are_spelled_for_git() {
    let mut session = Session::default();
    let body = Body::Message { role: crate::model::Role::User, content: Content::text("") };
    session.changes.add(&Event { cwd: Some("C:\\w".into()), ..Event::new(body) });
    session.changes.source_calls().moves_to("C:\\w");
    let input = Input::Json(r#"{"file_path":"C:\\w\\src\\a.rs","old_string":"x","new_string":"y"}"#.into());
    let call = Body::ToolCall { call: Some("1".into()), name: "Edit".into(), input };
    session.changes.add(&Event::new(call));
    session.answer("1", "ok", None);
    assert!(session.diff().starts_with("diff a/src/a.rs b/src/a.rs\n"));
}

#[test]
fn a_record_over_the_limit_is_listed() {
    let mut changes = Changes::default();
    changes.add(&Event::new(Body::Other { name: None, bytes: None }));
    assert_eq!(reasons(&changes.finish()), ["record_over_the_limit"]);
}

#[test]
fn a_result_may_precede_its_call() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→two\n");
    session.answer("late", "ok", None);
    session.call_as("late", "Edit", EDIT);
    let outcome = session.finish();
    assert!(outcome.files[0].diff.ends_with("-two\n+2\n"));
    assert!(outcome.unseen.is_empty());
}

#[test]
fn hunks_after_an_unseen_change_are_for_people() {
    let mut session = Session::default();
    session
        .does("Read", r#"{"file_path":"/w/a.rs","offset":1,"limit":3}"#, "1→one\n2→two\n3→three\n")
        .does("Edit", EDIT, "ok");
    session.does("Read", READ, "1→other\n2→two\n").does("Edit", EDIT, "ok");
    let outcome = session.finish();
    assert_eq!(reasons(&outcome), ["changed_elsewhere"]);
    assert!(!outcome.files[0].exact);
    assert_eq!(
        outcome.files[0].diff,
        "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\
         diff a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\nan unrecorded change to the file came before this one\n\
         @@ -1,2 +?,2 @@\n other\n-two\n+2\n"
    );
}

#[test]
fn several_edits_of_one_call_apply_all_or_none() {
    let mut session = Session::default();
    session.does("Read", READ, "1→one\n2→two\n");
    let edits = r#"{"file_path":"/w/a.rs","edits":[{"old_string":"one","new_string":"1"},{"old_string":"1\ntwo","new_string":"1\n2"}]}"#;
    session.does("MultiEdit", edits, "ok");
    assert!(session.diff().ends_with("@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n"));
}

#[test]
fn two_calls_with_one_id_are_different_calls() {
    let mut session = Session::default();
    for (old, new) in [("one", "two"), ("two", "three")] {
        session.call_as("c1", "Edit", &format!(r#"{{"file_path":"/w/a","old_string":"{old}","new_string":"{new}"}}"#));
        session.answer("c1", "The file has been updated.", Some(false));
    }
    let outcome = session.changes.finish();
    assert!(outcome.files[0].diff.ends_with("-one\n+three\n"), "{}", outcome.files[0].diff);
}

#[test]
fn sources_may_take_turns() {
    let mut changes = Changes::default();
    let call = |old: &str, new: &str| {
        let input = format!(r#"{{"file_path":"/w/a","old_string":"{old}","new_string":"{new}"}}"#);
        Event::new(Body::ToolCall { call: None, name: "Edit".into(), input: Input::Json(input.into()) })
    };
    let answer = || {
        let content = Content::text("The file has been updated.");
        Event::new(Body::ToolResult { call: None, name: None, content, error: Some(false) })
    };
    changes.add(&call("one", "two"));
    // Calls without ids are paired source by source.
    changes.source(1);
    changes.add(&call("two", "three"));
    changes.source(0);
    changes.add(&answer());
    changes.source(1);
    changes.add(&answer());
    let outcome = changes.finish();
    assert!(outcome.unseen.is_empty());
    assert!(outcome.files[0].diff.ends_with("-one\n+three\n"), "{}", outcome.files[0].diff);
}
