//! What Codex says in words of its own about what came of calls. Only words and paths; nothing is read here.

use crate::format::marks::{Exit, Judgement, Marks, Script, Twin, Verdict};

pub(super) const MARKS: Marks = Marks {
    script: Some(Script {
        command: "cmd",
        step: "step",
        status: "status",
        handle: "session_id",
        head: "Script ",
        sign: "wall_time_seconds",
        exit: "exit_code",
    }),
    hosted: &[("web_search", "payload.status"), ("web_search", "status")],
    exits: &[
        Exit::Json("metadata.exit_code"),
        Exit::Head("Process exited with code "),
        Exit::First("Exit code: "),
        Exit::First("exit code: "),
    ],
    failures: &[
        "failed to parse function arguments",
        "failed in sandbox",
        "sandbox denied",
        "apply_patch verification failed",
        "unsupported call",
        "execution error",
        "Script failed",
        "err:",
    ],
    interruptions: &["aborted"],
    verdicts: &[
        ("exec command rejected by user", Verdict::Denied),
        ("patch rejected by user", Verdict::Denied),
        ("user rejected MCP tool call", Verdict::Denied),
        ("This action was rejected due to unacceptable risk", Verdict::Refused),
        ("approval policy is", Verdict::Refused),
    ],
    handles: &["Process running with session ID "],
    modes: &["payload.approval_policy", "payload.sandbox_policy.type", "payload.sandbox_policy.mode"],
    twins: &[
        Twin {
            fact: "exec_command_end",
            call: "payload.call_id",
            command: "payload.command",
            exit: "payload.exit_code",
            ..Twin::NONE
        },
        Twin {
            fact: "patch_apply_end",
            call: "payload.call_id",
            success: "payload.success",
            changes: "payload.changes",
            ..Twin::NONE
        },
        Twin {
            fact: "collab_agent_spawn_end",
            call: "payload.call_id",
            thread: "payload.new_thread_id",
            kind: "payload.new_agent_role",
            task: "payload.prompt",
            ..Twin::NONE
        },
    ],
    handed_over: &["payload.replacement_history"],
    judgements: &[Judgement {
        fact: "guardian_assessment",
        field: "payload.status",
        words: &[("approved", Verdict::Approved), ("denied", Verdict::Refused), ("aborted", Verdict::Refused)],
        reason: "payload.rationale",
    }],
    ..Marks::NONE
};
