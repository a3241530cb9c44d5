//! The fold on hand-written events. Tests of the command cover the words of each format.

use super::*;
use crate::model::{Span, Usage};
use crate::time::Time;

/// Writes events one after the other, a second apart.
#[derive(Default)]
struct Recorder {
    auditor: Auditor,
    seconds: u64,
}

impl Recorder {
    fn put(&mut self, event: Event<'_>) -> &mut Recorder {
        self.seconds += 1;
        let time = Time::iso(format!("2026-01-02T03:{:02}:{:02}Z", self.seconds / 60, self.seconds % 60).into());
        let at = Some(Span { offset: 0, length: 1, line: self.seconds });
        self.auditor.add(&Event { time, at, ..event });
        self
    }

    fn message(&mut self, role: Role, text: &str) -> &mut Recorder {
        self.put(Event::new(Body::Message { role, content: Content::text(text.to_owned()) }))
    }

    fn call(&mut self, id: &str, name: &str, input: &str) -> &mut Recorder {
        self.put(call(id, name, input))
    }

    fn result(&mut self, id: &str, text: &str, error: bool) -> &mut Recorder {
        self.put(result(id, text, error))
    }

    fn done(&mut self) -> Audit {
        std::mem::take(&mut self.auditor).finish()
    }
}

fn call(id: &str, name: &str, input: &str) -> Event<'static> {
    let call = (!id.is_empty()).then(|| id.to_owned().into());
    Event::new(Body::ToolCall { call, name: name.to_owned().into(), input: Input::Json(input.to_owned().into()) })
}

fn result(id: &str, text: &str, error: bool) -> Event<'static> {
    let call = (!id.is_empty()).then(|| id.to_owned().into());
    let content = Content::text(text.to_owned());
    Event::new(Body::ToolResult { call, name: None, content, error: Some(error) })
}

const USER: Role = Role::User;
const MODEL: Role = Role::Assistant;

#[test]
fn tools_are_counted_with_failures_retries_and_time() {
    let mut recorder = Recorder::default();
    recorder.call("c1", "Bash", r#"{"command":"make"}"#).result("c1", "no rule", true);
    recorder.call("c2", "Bash", r#"{"command":"make"}"#).result("c2", "built", false);
    recorder.call("c3", "Bash", r#"{"command":"make"}"#).result("c3", "built", false);
    recorder.call("c4", "Read", r#"{"file_path":"/a"}"#);
    let audit = recorder.done();
    let bash = &audit.tools[0];
    assert_eq!((bash.calls, bash.failed, bash.retries, bash.unanswered), (3, 1, 1, 0));
    assert_eq!((bash.time_ms, bash.longest_ms), (3000, 1000));
    assert_eq!((audit.tools[1].unanswered, audit.calls.items[3].outcome), (1, CallOutcome::Unknown));
    assert!(audit.calls.items[1].is_retry && !audit.calls.items[2].is_retry);
    assert_eq!(audit.calls.items[0].error_text.as_deref(), Some("no rule"));
}

#[test]
fn a_repeated_call_counts_once() {
    let mut recorder = Recorder::default();
    let write = r#"{"file_path":"/a.rs","content":"x"}"#;
    // Flat without an id, nested with one, and once more by a record that restates.
    recorder.call("", "Write", write).call("toolu_0123456789", "Write", write);
    recorder.put(Event { restates: true, ..call("toolu_0123456789", "Write", write) });
    recorder.result("toolu_0123456789", "ok", false).result("toolu_0123456789", "ok", false);
    // A copy of the record in another file.
    recorder.auditor.source(1);
    recorder.call("toolu_0123456789", "Write", write);
    let audit = recorder.done();
    assert_eq!((audit.tools[0].calls, audit.tools[0].unanswered), (1, 0));
    assert_eq!((audit.files.items.len(), audit.files.items[0].writes), (1, 1));
}

#[test]
fn a_short_id_may_be_reused() {
    let mut recorder = Recorder::default();
    recorder.call("c1", "ls", "{}").result("c1", "a", false).call("c1", "ls", "{}").result("c1", "b", false);
    assert_eq!(recorder.done().tools[0].calls, 2);
}

#[test]
fn a_result_may_precede_its_call() {
    let mut recorder = Recorder::default();
    recorder.result("c1", "bad", true).call("c1", "ls", "{}");
    let audit = recorder.done();
    assert_eq!((audit.tools[0].failed, audit.tools[0].unanswered), (1, 0));
}

#[test]
fn a_failed_call_changed_no_file() {
    let mut recorder = Recorder::default();
    recorder.call("c1", "Edit", r#"{"file_path":"/a"}"#).result("c1", "no such text", true);
    recorder.call(
        "c2",
        "apply_patch",
        r#"{"input":"*** Begin Patch\n*** Add File: b\n*** Delete File: c\n*** End Patch"}"#,
    );
    recorder.result("c2", "done", false);
    let audit = recorder.done();
    let found: Vec<(&str, FileOutcome)> = audit.files.items.iter().map(|file| (&*file.path, file.change)).collect();
    assert_eq!(found, [("/a", FileOutcome::Tried), ("b", FileOutcome::Created), ("c", FileOutcome::Deleted)]);
}

#[test]
fn the_last_message_is_all_of_one_response() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").message(MODEL, "first").message(USER, "and?");
    let piece = |text: &str, group: &str| Event {
        group: Some(group.to_owned().into()),
        ..Event::new(Body::Message { role: MODEL, content: Content::text(text.to_owned()) })
    };
    recorder.put(piece("one", "m1")).put(piece("two", "m1")).put(piece("two", "m1"));
    assert_eq!(recorder.done().last.unwrap().text, "one\n\ntwo");
    let mut recorder = Recorder::default();
    recorder.message(MODEL, "a").call("c", "ls", "{}").result("c", "", false).message(MODEL, "b").message(MODEL, "c");
    let stop = Body::Stop { reason: None, success: Some(true), content: Some(Content::text("c")) };
    recorder.put(Event::new(stop));
    assert_eq!(recorder.done().last.unwrap().text, "b\n\nc");
}

#[test]
fn a_resolved_failure_is_not_reported() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "build it");
    recorder.call("c1", "Bash", r#"{"command":"cargo test"}"#).result("c1", "2 failed", true);
    recorder.call("c2", "Edit", r#"{"file_path":"/a"}"#).result("c2", "ok", false);
    recorder.call("c3", "Bash", r#"{"command":"cargo test -p x"}"#).result("c3", "ok", false);
    recorder.message(MODEL, "done");
    assert_eq!(recorder.done().failure, None);
}

#[test]
fn a_run_fails_by_its_first_unresolved_error() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "build it").message(MODEL, "I begin");
    recorder.call("c1", "Bash", r#"{"command":"cargo test"}"#).result("c1", "2 failed", true);
    recorder.call("c2", "Bash", r#"{"command":"git status"}"#).result("c2", "clean", false);
    recorder.call("c3", "Bash", r#"{"command":"cargo test -q"}"#).result("c3", "2 failed", true);
    recorder.message(MODEL, "I give up");
    let failure = recorder.done().failure.unwrap();
    assert_eq!((failure.fault.kind, failure.fault.place.event, failure.times), (FaultKind::Tool, 4, 2));
    assert_eq!(failure.input, [("command".to_owned(), "cargo test".to_owned())]);
    let texts = |steps: &[AuditStep]| steps.iter().map(|step| step.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&failure.before), ["user: build it", "I begin"]);
    assert_eq!(texts(&failure.after.items), ["git status", "cargo test -q", "I give up"]);
}

#[test]
fn an_error_fails_a_run_unless_something_good_follows() {
    let failure =
        || Event::new(Body::Failure { name: Some("overloaded".into()), content: Some(Content::text("later")) });
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").put(failure());
    let audit = recorder.done();
    assert_eq!(audit.failure.unwrap().fault.kind, FaultKind::Failure);
    assert!(audit.errors.items[0].recovered_by.is_none());
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").put(failure()).message(MODEL, "done");
    let audit = recorder.done();
    assert_eq!(audit.failure, None);
    assert!(audit.errors.items[0].recovered_by.is_some());
    let mut recorder = Recorder::default();
    let success = Body::Stop { reason: None, success: Some(true), content: Some(Content::text("done")) };
    recorder.message(USER, "go").put(failure()).put(Event::new(success));
    let audit = recorder.done();
    assert_eq!(audit.failure, None);
    assert!(audit.errors.items[0].recovered_by.is_some());
}

#[test]
fn each_conversation_recovers_on_its_own() {
    let failure = |thread: Option<&'static str>| Event {
        thread: thread.map(Into::into),
        ..Event::new(Body::Failure { name: Some("overloaded".into()), content: None })
    };
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").put(failure(None)).put(failure(Some("side")));
    let answer = Body::Message { role: MODEL, content: Content::text("well") };
    recorder.put(Event { thread: Some("side".into()), ..Event::new(answer) }).message(MODEL, "done");
    assert!(recorder.done().errors.items.iter().all(|fault| fault.recovered_by.is_some()));
}

#[test]
fn a_transcript_that_ends_in_a_call_names_it() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").call("c1", "Bash", r#"{"command":"sleep 1000"}"#);
    let failure = recorder.done().failure.unwrap();
    assert_eq!((failure.fault.kind, failure.fault.place.event), (FaultKind::Unfinished, 2));
    assert_eq!(failure.call.unwrap().text, "sleep 1000");
}

#[test]
fn phases_without_progress() {
    let mut recorder = Recorder::default();
    for number in 0..3 {
        recorder.call(&format!("f{number}"), "Bash", r#"{"command":"make"}"#).result(
            &format!("f{number}"),
            &format!("{number}"),
            true,
        );
    }
    recorder.call("g", "Bash", r#"{"command":"ls"}"#).result("g", "ok", false);
    for number in 0..6 {
        recorder.call(&format!("r{number}"), "Read", r#"{"path":"/a"}"#).result(&format!("r{number}"), "same", false);
    }
    let audit = recorder.done();
    let found: Vec<_> =
        audit.phases.items.iter().map(|phase| (phase.kind, phase.from.event, phase.to.event, phase.count)).collect();
    assert_eq!(found, [(StuckKind::Failing, 1, 6, 3), (StuckKind::Repeating, 9, 20, 6)]);
}

#[test]
fn different_calls_of_one_tool_are_not_a_loop() {
    let mut recorder = Recorder::default();
    for number in 0..12 {
        recorder.call(&format!("r{number}"), "Read", &format!(r#"{{"path":"/{number}"}}"#));
        recorder.result(&format!("r{number}"), "text", false);
    }
    assert!(recorder.done().phases.items.is_empty());
}

#[test]
fn a_compaction_reports_what_it_removed() {
    let used = |tokens: u64, text: &str| Event {
        usage: Some(Usage { input: Some(tokens), cache_read: Some(10), ..Usage::default() }),
        ..Event::new(Body::Message { role: MODEL, content: Content::text(text.to_owned()) })
    };
    let mut recorder = Recorder::default();
    recorder.message(USER, "go").call("c1", "Read", r#"{"path":"/a"}"#).result("c1", "x", false);
    recorder.call("c2", "Bash", r#"{"command":"make"}"#).result("c2", "x", false).put(used(990, "so far"));
    recorder.put(Event::new(Body::Compaction { summary: None }));
    recorder.put(Event::new(Body::Compaction { summary: Some(Content::text("short")) }));
    recorder.put(used(90, "on"));
    let audit = recorder.done();
    let [compaction] = audit.compactions.items.as_slice() else { panic!("one: {:?}", audit.compactions) };
    assert_eq!((compaction.events, compaction.messages, compaction.calls), (6, 2, 2));
    assert_eq!((compaction.tokens_before, compaction.tokens_after), (Some(1000), Some(100)));
    assert_eq!((compaction.files.items.as_slice(), compaction.summary_length), (["/a".to_owned()].as_slice(), 5));
    assert_eq!(compaction.commands.items, ["make"]);
    assert_eq!((audit.context.first, audit.context.max, audit.context.last), (1000, 1000, 100));
}

#[test]
fn agents_are_a_tree_and_know_their_conversations() {
    let side = |thread: &str, event: Event<'static>| Event { thread: Some(thread.to_owned().into()), ..event };
    let asked = |text: &str| Event::new(Body::Message { role: USER, content: Content::text(text.to_owned()) });
    let mut recorder = Recorder::default();
    recorder.call("t1", "Task", r#"{"subagent_type":"Explore","description":"look","prompt":"Look around."}"#);
    recorder.put(side("a1", asked("Look around.")));
    recorder.put(side("a1", call("c1", "Task", r#"{"subagent_type":"Deep","prompt":"Dig."}"#)));
    recorder.put(side("a2", asked("Dig."))).put(side("a2", call("c2", "Bash", r#"{"command":"ls"}"#)));
    recorder.put(side("a2", result("c2", "no", true))).put(side("a1", result("c1", "dug", false)));
    recorder.result("t1", "looked", false);
    let audit = recorder.done();
    let [first, second] = audit.agents.items.as_slice() else { panic!("two: {:?}", audit.agents) };
    assert_eq!(
        (first.kind.as_deref(), first.parent, first.calls, first.state),
        (Some("Explore"), None, 1, AgentState::Completed)
    );
    assert_eq!((second.id.as_deref(), second.parent, second.failed), (Some("a2"), Some(0), 1));
    assert_eq!(first.answer.as_deref(), Some("looked"));
}

#[test]
fn a_poll_is_linked_to_the_call_that_started_the_job() {
    let audit = codex(&[
        ("spawn_agent", r#"{"agent_type":"worker","message":"go"}"#, r#"{"agent_id":"ag-7"}"#),
        ("wait_agent", r#"{"ids":["ag-7"]}"#, r#"{"status":{"ag-7":{"completed":"all done"}}}"#),
    ]);
    let agent = &audit.agents.items[0];
    assert_eq!((agent.id.as_deref(), agent.state), (Some("ag-7"), AgentState::Completed));
    assert_eq!(agent.later.items.iter().map(|place| place.event).collect::<Vec<_>>(), [4]);
    assert_eq!(audit.calls.items[1].asks_after, Some(1));
}

/// The audit of a Codex session with these calls: tool, input and result.
fn codex(calls: &[(&str, &str, &str)]) -> Audit {
    let mut auditor = Auditor::default();
    for (number, (tool, input, output)) in calls.iter().enumerate() {
        let id = format!("call_{number}");
        let call = serde_json::json!({"type": "function_call", "name": tool, "call_id": id, "arguments": input});
        let result = serde_json::json!({"type": "function_call_output", "call_id": id, "output": output});
        for payload in [call, result] {
            let record = serde_json::json!({"type": "response_item", "payload": payload}).to_string();
            let read = crate::read::all(&crate::formats::codex::Codex, format!("{record}\n").as_bytes());
            read.events.iter().for_each(|event| auditor.add(event));
        }
    }
    auditor.finish()
}

/// The states of the agents `a`, `b`, …, all of which one call polls with this result.
fn polled(agents: &[&str], result: &str) -> Vec<AgentState> {
    let started: Vec<String> = agents.iter().map(|id| format!(r#"{{"agent_id":"{id}"}}"#)).collect();
    let mut calls: Vec<_> = started.iter().map(|id| ("spawn_agent", r#"{"message":"go"}"#, id.as_str())).collect();
    let ids = serde_json::json!({ "ids": agents }).to_string();
    calls.push(("wait_agent", &ids, result));
    codex(&calls).agents.items.iter().map(|agent| agent.state).collect()
}

#[test]
fn an_agent_runs_until_a_record_states_its_end() {
    let audit = codex(&[("spawn_agent", r#"{"message":"go"}"#, r#"{"agent_id":"ag-7"}"#)]);
    assert_eq!((audit.agents.items[0].state, audit.agents.items[0].answer.as_deref()), (AgentState::Running, None));
    let audit = codex(&[("spawn_agent", r#"{"message":"go"}"#, "All done.\nProcess running with session ID 7")]);
    assert_eq!(audit.agents.items[0].state, AgentState::Completed, "a text is the answer of the agent");
}

#[test]
fn a_poll_of_several_agents_updates_each_with_its_own_state() {
    let result = r#"{"status":{"a":{"completed":"x"},"b":"running"}}"#;
    assert_eq!(polled(&["a", "b"], result), [AgentState::Completed, AgentState::Running]);
    // An agent that the result does not list keeps its state.
    assert_eq!(polled(&["a", "c"], result), [AgentState::Completed, AgentState::Running]);
}

#[test]
fn the_state_of_an_agent_is_an_exact_word_and_no_part_of_its_message() {
    let state = |status: &str| polled(&["a"], &format!(r#"{{"status":{{"a":{status}}}}}"#))[0];
    assert_eq!(state(r#"{"completed":"fixed the file_not_found case"}"#), AgentState::Completed);
    assert_eq!(state(r#"{"errored":"the run is incomplete"}"#), AgentState::Failed);
    assert_eq!(state(r#""incomplete""#), AgentState::Running);
    assert_eq!(state(r#""shutdown""#), AgentState::Completed);
}

#[test]
fn a_session_of_many_events_stays_small() {
    let mut recorder = Recorder::default();
    for number in 0..51_000_u32 {
        let id = format!("call_{number:08}");
        recorder.auditor.add(&call(&id, "Bash", &format!(r#"{{"command":"echo {number}","file":"/f{number}"}}"#)));
        recorder.auditor.add(&result(&id, "x", number % 7 == 0));
    }
    let audit = recorder.done();
    assert_eq!((audit.events, audit.tools[0].calls), (102_000, 51_000));
    assert_eq!(audit.calls.count(), 51_000);
    assert!(audit.calls.more > 0 && audit.files.more > 0);
    let mut draft = crate::json::Draft::new();
    audit.put(Parts::All, &mut draft);
    assert!(crate::json::is_valid(&draft.render(None)));
}

#[test]
fn an_empty_session_has_an_audit() {
    let audit = Auditor::default().finish();
    assert!(audit.failure.is_none() && audit.last.is_none() && audit.tools.is_empty());
    let mut draft = crate::json::Draft::new();
    audit.put(Parts::All, &mut draft);
    assert!(crate::json::is_valid(&draft.render(None)));
}

#[test]
fn times_that_go_back_take_no_time() {
    let mut auditor = Auditor::default();
    let at = |text: &'static str, event: Event<'static>| Event { time: Time::iso(text.into()), ..event };
    auditor.add(&at("2026-01-02T03:00:10Z", call("c1", "ls", "{}")));
    auditor.add(&at("2026-01-02T03:00:00Z", result("c1", "x", false)));
    let audit = auditor.finish();
    assert_eq!((audit.tools[0].timed, audit.calls.items[0].took_ms), (0, None));
}

#[test]
fn a_question_ends_the_response_before_it() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "Look.").message(MODEL, "I look.").message(MODEL, "All is well.");
    let asked = Event::new(Body::Message { role: USER, content: Content::text("Thanks!") });
    recorder.put(Event { restates: true, ..asked }).message(MODEL, "You are welcome.");
    assert_eq!(recorder.done().last.map(|last| last.text).as_deref(), Some("You are welcome."));
}

#[test]
fn a_record_that_follows_the_result_decides_the_call_everywhere() {
    let records = [
        r#"{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2025-01-01T00:00:00Z","cwd":"/w","originator":"cli","cli_version":"1"}}"#,
        r#"{"timestamp":"2025-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"build"}]}}"#,
        r#"{"timestamp":"2025-01-01T00:00:02Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"a","arguments":"{\"cmd\":\"make\"}"}}"#,
        r#"{"timestamp":"2025-01-01T00:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"no rule"}}"#,
        r#"{"timestamp":"2025-01-01T00:00:04Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"a","command":["make"],"exit_code":2}}"#,
        r#"{"timestamp":"2025-01-01T00:00:05Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Stopped."}]}}"#,
    ];
    let mut auditor = Auditor::default();
    let text = records.map(|record| format!("{record}\n")).concat();
    let read = crate::read::all(&crate::formats::codex::Codex, text.as_bytes());
    read.events.iter().for_each(|event| auditor.add(event));
    let audit = auditor.finish();
    let counts = |failed: u64| [failed, audit.tools[0].failed, audit.threads[0].failed, audit.turns.items[0].failed];
    assert_eq!(counts(1), [1; 4]);
    let failure = audit.failure.unwrap();
    assert_eq!((failure.fault.place.event, failure.call.unwrap().exit, failure.before.len()), (5, Some(2), 1));
}

#[test]
fn many_calls_at_once_get_their_results() {
    let mut recorder = Recorder::default();
    recorder.message(USER, "go");
    for call in 0..300 {
        recorder.call(&format!("call-{call:04}"), "Bash", &format!(r#"{{"command":"make {call}"}}"#));
    }
    for call in 0..300 {
        recorder.result(&format!("call-{call:04}"), "no rule", true);
    }
    let audit = recorder.done();
    let Tool { calls, failed, unanswered, .. } = audit.tools[0];
    assert_eq!((calls, failed, unanswered), (300, 300, 0));
    assert_eq!((audit.turns.items[0].failed, audit.threads[0].failed), (300, 300));
}
