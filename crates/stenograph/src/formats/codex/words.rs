//! What Codex says in words of its own about what came of calls. Only words and paths; nothing is read here.

use crate::model::{CallWords, ExitCodeAt, JudgementPaths, ReportPaths, ScriptWords, Verdict};

pub(super) const WORDS: CallWords = CallWords {
    script: Some(ScriptWords {
        command: "cmd",
        step: "step",
        status: "status",
        job: "session_id",
        head: "Script ",
        sign: "wall_time_seconds",
        exit: "exit_code",
    }),
    hosted_tools: &[("web_search", "payload.status"), ("web_search", "status")],
    exit_codes: &[
        ExitCodeAt::Json("metadata.exit_code"),
        ExitCodeAt::Head("Process exited with code "),
        ExitCodeAt::First("Exit code: "),
        ExitCodeAt::First("exit code: "),
    ],
    failure_prefixes: &[
        "failed to parse function arguments",
        "failed in sandbox",
        "sandbox denied",
        "apply_patch verification failed",
        "unsupported call",
        "execution error",
        "Script failed",
        "err:",
    ],
    interruption_prefixes: &["aborted"],
    verdict_prefixes: &[
        ("exec command rejected by user", Verdict::Denied),
        ("patch rejected by user", Verdict::Denied),
        ("user rejected MCP tool call", Verdict::Denied),
        ("This action was rejected due to unacceptable risk", Verdict::Refused),
        ("approval policy is", Verdict::Refused),
    ],
    job_prefixes: &["Process running with session ID "],
    mode_fields: &["payload.approval_policy", "payload.sandbox_policy.type", "payload.sandbox_policy.mode"],
    reports: &[
        ReportPaths {
            fact: "exec_command_end",
            call: "payload.call_id",
            command: "payload.command",
            exit: "payload.exit_code",
            ..ReportPaths::NONE
        },
        ReportPaths {
            fact: "patch_apply_end",
            call: "payload.call_id",
            success: "payload.success",
            changes: "payload.changes",
            ..ReportPaths::NONE
        },
        ReportPaths {
            fact: "collab_agent_spawn_end",
            call: "payload.call_id",
            thread: "payload.new_thread_id",
            kind: "payload.new_agent_role",
            task: "payload.prompt",
            ..ReportPaths::NONE
        },
    ],
    preserved_records: &["payload.replacement_history"],
    judgements: &[JudgementPaths {
        fact: "guardian_assessment",
        field: "payload.status",
        words: &[("approved", Verdict::Approved), ("denied", Verdict::Refused), ("aborted", Verdict::Refused)],
        reason: "payload.rationale",
    }],
    ..CallWords::NONE
};
