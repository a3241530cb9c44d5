//! What calls request, in the forms of many tools.

use super::*;

fn steps(tool: &str, json: &'static str) -> Vec<String> {
    let plan = plan(tool, &Input::Json(json.into()), Some("/w"));
    plan.steps.into_iter().map(|step| format!("{} {:?}", step.path, step.act)).collect()
}

#[test]
fn whole_writes_of_every_tool_are_the_same() {
    let expected = |before: &str| [format!("/w/a Write {{ text: \"x\", before: {before} }}")];
    assert_eq!(steps("Write", r#"{"file_path":"/w/a","content":"x"}"#), expected("Unknown"));
    assert_eq!(steps("write_file", r#"{"path":"a","content":"x"}"#), expected("Unknown"));
    assert_eq!(steps("write_to_file", r#"{"path":"./a","content":"x"}"#), expected("Unknown"));
    assert_eq!(steps("create_file", r#"{"filePath":"a","content":"x"}"#), expected("Absent"));
    assert_eq!(steps("CreateFile", r#"{"path":"a","fileText":"x"}"#), expected("Absent"));
    assert_eq!(
        steps("str_replace_editor", r#"{"command":"create","path":"/w/a","file_text":"x"}"#),
        expected("Absent")
    );
}

#[test]
fn replacements_of_every_tool_are_the_same() {
    let expected = |times: &str| [format!("/w/a Replace {{ old: \"x\", new: \"y\", times: {times} }}")];
    assert_eq!(steps("Edit", r#"{"file_path":"/w/a","old_string":"x","new_string":"y"}"#), expected("Once"));
    assert_eq!(
        steps("Edit", r#"{"file_path":"a","old_string":"x","new_string":"y","replace_all":true}"#),
        expected("Everywhere")
    );
    assert_eq!(
        steps("replace", r#"{"file_path":"a","old_string":"x","new_string":"y","expected_replacements":2}"#),
        expected("Everywhere")
    );
    assert_eq!(steps("StrReplace", r#"{"path":"a","oldStr":"x","newStr":"y"}"#), expected("Once"));
    assert_eq!(steps("edit", r#"{"path":"a","oldText":"x","newText":"y"}"#), expected("Once"));
    assert_eq!(
        steps("editor", r#"{"path":"a","old_text":"x","new_text":"y","command":"str_replace"}"#),
        expected("Once")
    );
    assert_eq!(
        steps("str_replace_editor", r#"{"command":"str_replace","path":"a","old_str":"x","new_str":"y"}"#),
        expected("Once")
    );
    assert_eq!(
        steps("MultiEdit", r#"{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}"#),
        expected("Once")
    );
    assert_eq!(steps("edit", r#"{"path":"a","edits":[{"oldText":"x","newText":"y"}]}"#), expected("Once"));
}

#[test]
fn other_actions_are_recognized_by_their_fields() {
    assert_eq!(
        steps("str_replace_editor", r#"{"command":"insert","path":"a","insert_line":3,"new_str":"x"}"#),
        ["/w/a Insert { after: 3, text: \"x\" }"]
    );
    assert_eq!(steps("str_replace_editor", r#"{"command":"undo_edit","path":"a"}"#), ["/w/a Undo"]);
    assert_eq!(steps("delete_file", r#"{"target_file":"a"}"#), ["/w/a Delete"]);
    assert_eq!(steps("move_file", r#"{"source":"a","destination":"b"}"#), ["/w/a Move(\"/w/b\")"]);
    assert_eq!(
        steps("NotebookEdit", r#"{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x"}"#),
        ["/w/a.ipynb Cell { label: \"cell c1\", source: Some(\"x\") }"]
    );
    assert_eq!(steps("append_file", r#"{"path":"a","content":"x"}"#), ["/w/a Append(\"x\")"]);
}

#[test]
fn a_read_states_whether_it_covers_the_whole_file() {
    assert_eq!(steps("Read", r#"{"file_path":"a"}"#), ["/w/a Look { all: true }"]);
    assert_eq!(steps("Read", r#"{"file_path":"a","offset":10,"limit":5}"#), ["/w/a Look { all: false }"]);
    assert_eq!(
        steps("str_replace_editor", r#"{"command":"view","path":"a","view_range":[1,2]}"#),
        ["/w/a Look { all: false }"]
    );
}

#[test]
fn patches_are_read_from_any_field() {
    let delete = "*** Begin Patch\\n*** Delete File: a\\n*** End Patch";
    for input in [
        format!(r#"{{"input":"{delete}"}}"#),
        format!(r#"{{"patch":"{delete}"}}"#),
        format!(r#"{{"command":["bash","-lc","apply_patch <<'EOF'\n{delete}\nEOF"],"workdir":"/w"}}"#),
        format!(r#"{{"command":["apply_patch","{delete}"]}}"#),
        format!(r#"{{"cmd":"apply_patch <<'EOF'\n{delete}\nEOF\n"}}"#),
    ] {
        let plan = plan("any", &Input::Json(input.clone().into()), Some("/w"));
        assert_eq!(plan.steps, [Step { path: "/w/a".into(), act: Act::Delete }], "{input}");
    }
    let text = Input::Text("*** Begin Patch\n*** Delete File: a\n*** End Patch".into());
    assert_eq!(plan("apply_patch", &text, None).steps.len(), 1);
    let unified = steps("apply_diff", r#"{"path":"a","diff":"@@ -1 +1 @@\n-x\n+y\n"}"#);
    assert_eq!(unified, ["/w/a Patch([Hunk { at: Some(1), after: None, old: \"x\\n\", new: \"y\\n\" }])"]);
}

#[test]
fn changes_that_cannot_be_tracked_are_reported() {
    assert_eq!(steps("edit_file", r#"{"target_file":"a","code_edit":"// … existing code …"}"#), ["/w/a Opaque(Shape)"]);
    assert_eq!(steps("bash", r#"{"command":"rm a"}"#), ["/w/a Opaque(Command)"]);
    assert_eq!(steps("apply_patch", r#"{"input":"*** Begin Patch\n*** Add File: a\n+cut"}"#), [" Opaque(Patch)"]);
    assert_eq!(steps("Write", r#"{"file_path":"a","content":"\ud83d"}"#), ["/w/a Opaque(Damaged)"]);
    assert_eq!(steps("Write", r#"{"file_path":"a","content":"\u0000"}"#), ["/w/a Opaque(Damaged)"]);
}

#[test]
fn calls_that_do_not_change_files_have_no_steps() {
    for (tool, input) in [
        ("Grep", r#"{"path":"src","pattern":"x"}"#),
        ("TodoWrite", r#"{"todos":[]}"#),
        ("bash", r#"{"command":"ls"}"#),
        ("create_or_update_file", r#"{"owner":"o","repo":"r","path":"a","content":"x"}"#),
    ] {
        assert_eq!(steps(tool, input), Vec::<String>::new(), "{tool}");
    }
}
