//! The words and fields with which Codex states the outcome and the cost of calls. These are tables only.

use super::notices;
use super::read::CodexReader;
use crate::model::{
    AgentState, CallWords, ExitCodeAt, HistoryPaths, JudgementPaths, LimitPaths, ReportPaths, ScriptWords,
    SessionWords, TotalPaths, UsageWords, Verdict,
};

pub(super) const WORDS: CallWords = CallWords {
    script: Some(ScriptWords {
        command: "cmd",
        step: "step",
        status: "status",
        job: "session_id",
        head: "Script ",
        marker: "wall_time_seconds",
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
    agent_list_key: Some("status"),
    agent_states: &[
        ("pending_init", AgentState::Running),
        ("running", AgentState::Running),
        ("completed", AgentState::Completed),
        ("shutdown", AgentState::Completed),
        ("errored", AgentState::Failed),
        ("interrupted", AgentState::Failed),
        ("not_found", AgentState::Failed),
    ],
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
    nested_reader: Some(|want| Box::new(CodexReader::new(want))),
    preserved_records: &["payload.replacement_history"],
    judgements: &[JudgementPaths {
        fact: "guardian_assessment",
        field: "payload.status",
        words: &[("approved", Verdict::Approved), ("denied", Verdict::Refused), ("aborted", Verdict::Refused)],
        reason: "payload.rationale",
    }],
    ..CallWords::NONE
};

/// The object with the running total of the session.
const TOTAL: &str = "payload.info.total_token_usage";

pub(super) const USAGE: UsageWords = UsageWords {
    counters: &[(TOTAL, &[notices::INPUT, notices::OUTPUT, notices::CACHED, notices::CACHE_WRITE, notices::REASONING])],
    total: Some(TotalPaths {
        facts: &["usage"],
        object: TOTAL,
        input: notices::INPUT,
        output: notices::OUTPUT,
        cache_read: notices::CACHED,
        cache_write: notices::CACHE_WRITE,
        reasoning: notices::REASONING,
        cost: "",
    }),
    searches: &[("web_search", "completed")],
    repeated_sessions: &["payload.parent_thread_id", "payload.source.subagent.thread_spawn.parent_thread_id"],
    history: Some(HistoryPaths {
        object: "payload.history_base",
        session: "thread_id",
        length: "end_byte_offset",
        number: "ordinal",
    }),
    ..UsageWords::NONE
};

const fn window(object: &'static str) -> LimitPaths {
    LimitPaths {
        object,
        name: None,
        used: ("used_percent", 100.0),
        minutes: Some("window_minutes"),
        resets: "resets_at",
    }
}

pub(super) const SESSION: SessionWords = SessionWords {
    rate_limits: &[window("payload.rate_limits.primary"), window("payload.rate_limits.secondary")],
    tools: &["payload.dynamic_tools"],
    instructions: &[
        "payload.user_instructions",
        "payload.developer_instructions",
        "payload.collaboration_mode.settings.developer_instructions",
    ],
    ..SessionWords::NONE
};
