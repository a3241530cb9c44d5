//! Calls and their outcomes, with records in every order.

use super::*;
use crate::formats::codex::Codex;
use crate::read;

/// The events of a Codex session with these records.
fn codex(records: &[&str]) -> Vec<Event<'static>> {
    let head = r#"{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2025-01-01T00:00:00Z","cwd":"/w","originator":"cli","cli_version":"1"}}"#;
    let text: String = std::iter::once(&head).chain(records).map(|record| format!("{record}\n")).collect();
    read::all(&Codex, text.as_bytes()).events
}

fn item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2025-01-01T00:00:01Z","type":"response_item","payload":{payload}}}"#)
}

fn runs(id: &str, command: &str) -> String {
    let arguments = serde_json::json!({ "cmd": command }).to_string();
    item(
        &serde_json::json!({"type": "function_call", "name": "exec_command", "call_id": id, "arguments": arguments})
            .to_string(),
    )
}

fn polls(id: &str, session: u64) -> String {
    let arguments = serde_json::json!({ "session_id": session, "chars": "" }).to_string();
    item(
        &serde_json::json!({"type": "function_call", "name": "write_stdin", "call_id": id, "arguments": arguments})
            .to_string(),
    )
}

fn answers(id: &str, output: &str) -> String {
    item(&serde_json::json!({"type": "function_call_output", "call_id": id, "output": output}).to_string())
}

fn exits(id: &str, code: i64) -> String {
    answers(id, &format!("Chunk ID: x\nWall time: 1 seconds\nProcess exited with code {code}\nOutput:\nx"))
}

/// The decisions about all calls, by number, the last one of each.
fn decided(records: &[String]) -> Vec<(u64, CallOutcome, OutcomeRule)> {
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut calls = Calls::default();
    let mut found = std::collections::BTreeMap::new();
    for event in codex(&records) {
        let step = calls.add(&event);
        for decision in step.decision.iter().chain(&step.later) {
            found.insert(decision.call, (decision.call, decision.outcome, decision.rule));
        }
    }
    found.into_values().collect()
}

#[test]
fn an_exit_code_in_the_text_is_a_failure() {
    let decisions = decided(&[runs("a", "cargo test"), exits("a", 101), runs("b", "ls"), exits("b", 0)]);
    assert_eq!(decisions, [(1, CallOutcome::Failed, OutcomeRule::ExitCode), (2, CallOutcome::Ok, OutcomeRule::Result)]);
}

#[test]
fn a_program_that_answers_with_one_has_not_failed() {
    for command in ["grep -r x .", "cd a && rg x", "diff a b", "test -f x", "which cargo", "git diff --quiet"] {
        let decisions = decided(&[runs("a", command), exits("a", 1)]);
        assert_eq!(decisions, [(1, CallOutcome::Ok, OutcomeRule::AnswerCode)], "{command}");
        let decisions = decided(&[runs("a", command), exits("a", 2)]);
        assert_eq!(decisions, [(1, CallOutcome::Failed, OutcomeRule::ExitCode)], "{command}");
    }
}

#[test]
fn a_poll_reports_the_exit_code_of_its_job() {
    let starts = answers("a", "Chunk ID: x\nProcess running with session ID 7\nOutput:\n");
    let decisions = decided(&[runs("a", "make"), starts.clone()]);
    assert_eq!(decisions, [(1, CallOutcome::Running, OutcomeRule::StillRunning)]);
    let decisions =
        decided(&[runs("a", "make"), starts.clone(), polls("b", 7), exits("b", 2), polls("c", 7), exits("c", 2)]);
    let ok = |number| (number, CallOutcome::Ok, OutcomeRule::Result);
    assert_eq!(decisions, [(1, CallOutcome::Failed, OutcomeRule::JobExitCode), ok(2), ok(3)], "it fails once");
    let decisions = decided(&[runs("a", "grep x y"), starts, polls("b", 7), exits("b", 1)]);
    assert_eq!(decisions, [(1, CallOutcome::Ok, OutcomeRule::AnswerCode), ok(2)]);
}

#[test]
fn a_call_that_failed_stays_failed_however_its_job_ends() {
    let stopped = answers("a", "aborted by user\nProcess running with session ID 7\nOutput:\n");
    let decisions = decided(&[runs("a", "make"), stopped, polls("b", 7), exits("b", 0)]);
    assert_eq!(decisions[0], (1, CallOutcome::Interrupted, OutcomeRule::Interruption));
    // Two jobs of one call: the first failure is the last decision.
    let both = answers("a", "Process running with session ID 7\nProcess running with session ID 8\nOutput:\n");
    let failing = [runs("a", "make"), both, polls("b", 7), exits("b", 2), polls("c", 8), exits("c", 0)];
    assert_eq!(decided(&failing)[0], (1, CallOutcome::Failed, OutcomeRule::JobExitCode));
}

#[test]
fn a_result_may_come_before_its_call() {
    for (command, code, outcome) in
        [("make", 1, CallOutcome::Failed), ("grep x y", 1, CallOutcome::Ok), ("make", 2, CallOutcome::Failed)]
    {
        let decisions = decided(&[exits("a", code), runs("a", command)]);
        assert_eq!(decisions.iter().map(|(_, outcome, _)| *outcome).collect::<Vec<_>>(), [outcome], "{command} {code}");
    }
}

#[test]
fn a_failure_is_returned_once_however_it_is_ordered() {
    let records = [runs("a", "make"), exits("a", 2), exits("a", 2), runs("a", "make")];
    for order in [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3], [0, 3, 1, 2]] {
        let ordered: Vec<String> = order.iter().map(|at| records[*at].clone()).collect();
        let ordered: Vec<&str> = ordered.iter().map(String::as_str).collect();
        let mut calls = Calls::default();
        let failed = codex(&ordered).iter().filter(|event| calls.add(event).has_failed()).count();
        assert_eq!(failed, 1, "{order:?}");
    }
}

#[test]
fn a_result_without_its_call_is_decided_by_its_own_evidence() {
    assert_eq!(decided(&[exits("a", 1)]), [(1, CallOutcome::Unknown, OutcomeRule::NoEvidence)]);
    assert_eq!(decided(&[exits("a", 127)]), [(1, CallOutcome::Failed, OutcomeRule::ExitCode)]);
    assert_eq!(
        decided(&[answers("a", "aborted by user after 2s")]),
        [(1, CallOutcome::Interrupted, OutcomeRule::Interruption)]
    );
    assert_eq!(
        decided(&[answers("a", "exec command rejected by user")]),
        [(1, CallOutcome::Denied, OutcomeRule::Refusal)]
    );
}

#[test]
fn a_fold_continues_the_same_after_saving_at_any_event() {
    let starts = answers("a", "Process running with session ID 7\nOutput:\n");
    let name = "n".repeat(300);
    let long =
        serde_json::json!({"type": "function_call", "name": name, "call_id": "l", "arguments": "{}"}).to_string();
    let records = [
        runs("a", "make"),
        starts,
        item(&long),
        answers("l", "ok"),
        exits("e", 1),
        runs("b", "ls \"x"),
        polls("c", 7),
        exits("c", 2),
        runs("e", "make"),
        exits("b", 0),
        exits("b", 0),
    ];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut whole = Calls::default();
    for event in codex(&records) {
        let mut again = Calls::restore(&whole.save());
        assert_eq!(again, whole);
        assert_eq!(again.add(&event), whole.add(&event));
    }
    assert_eq!(Calls::restore("no JSON"), Calls::default());
}

#[test]
fn the_saved_state_is_bounded() {
    let mut calls = Calls::default();
    for number in 0..2000 {
        let body = Body::ToolCall {
            call: Some(format!("call {number}").into()),
            name: "t".into(),
            input: Input::Json(format!(r#"{{"command":"{number}"}}"#).into()),
        };
        calls.add(&Event::new(body));
    }
    assert!(calls.save().len() < 24 << 10, "{}", calls.save().len());
}
