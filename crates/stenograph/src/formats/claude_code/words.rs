//! The words and fields with which Claude Code states the outcome and the cost of calls. These are tables only.

use super::read::{COUNTERS, ClaudeCodeReader, LIFETIMES, SYNTHETIC};
use crate::model::{
    AgentState, CallWords, ExitCodeAt, JudgementPaths, LimitPaths, NestedPaths, NoticeWords, SessionWords, UsageWords,
    Verdict,
};
use crate::read::JsonLines;

pub(super) const WORDS: CallWords = CallWords {
    exit_codes: &[
        ExitCodeAt::First("Exit code "),
        ExitCodeAt::First("Error: Exit code "),
        ExitCodeAt::Head("<exit_code>"),
    ],
    failure_prefixes: &["<tool_use_error>"],
    interruption_prefixes: &["[Request interrupted by user"],
    interruption_messages: &["[Request interrupted by user"],
    interrupted_fields: &["toolUseResult.interrupted"],
    verdict_prefixes: &[
        ("The user doesn't want to proceed with this tool use", Verdict::Denied),
        ("The user doesn't want to take this action right now", Verdict::Denied),
        ("User rejected tool use", Verdict::Denied),
        ("User has approved your plan", Verdict::Approved),
        ("This command requires approval", Verdict::Refused),
        ("Claude requested permissions", Verdict::Refused),
        ("Permission to use", Verdict::Refused),
        ("Permission for this action", Verdict::Refused),
        ("PreToolUse:", Verdict::Blocked),
    ],
    denial_fields: &[("toolDenialKind", "user")],
    job_prefixes: &["Command running in background with ID: ", "agentId: ", "Task ID: "],
    job_fields: &[
        "toolUseResult.agentId",
        "toolUseResult.backgroundTaskId",
        "toolUseResult.shellId",
        "toolUseResult.taskId",
        "toolUseResult.task.id",
    ],
    agent_state_fields: &["toolUseResult.status", "toolUseResult.task.status", "toolUseResult.retrieval_status"],
    agent_state_tags: Some(("<status>", "</status>")),
    agent_states: &[
        ("async_launched", AgentState::Running),
        ("remote_launched", AgentState::Running),
        ("teammate_spawned", AgentState::Running),
        ("pending", AgentState::Running),
        ("running", AgentState::Running),
        ("in_progress", AgentState::Running),
        ("completed", AgentState::Completed),
        ("failed", AgentState::Failed),
        ("killed", AgentState::Failed),
        ("stopped", AgentState::Failed),
        // How a poll ended: with the task's end, at its time limit, without waiting.
        ("success", AgentState::Completed),
        ("timeout", AgentState::Running),
        ("not_ready", AgentState::Running),
    ],
    agent_kind_fields: &["toolUseResult.agentType"],
    creation_fields: &[("toolUseResult.type", "create")],
    mode_fields: &["permissionMode"],
    mode_facts: &["permission-mode"],
    judgements: &[JudgementPaths {
        fact: "attachment",
        field: "attachment.type",
        words: &[("hook_blocking_error", Verdict::Blocked)],
        reason: "attachment.blockingError.blockingError",
    }],
    nested_reader: Some(|want| Box::new(JsonLines(ClaudeCodeReader::new(want)))),
    nested: Some(NestedPaths {
        fact: "progress",
        record: "data.message",
        thread: "data.agentId",
        call: "parentToolUseID",
    }),
    notice: Some(NoticeWords {
        begins: "<task-notification>",
        job: ("<task-id>", "</task-id>"),
        state: ("<status>", "</status>"),
        exit: "exit code ",
    }),
    compaction_tokens: Some(("compactMetadata.preTokens", "compactMetadata.postTokens")),
    preserved_ids: &["compactMetadata.preservedMessages.uuids"],
    ..CallWords::NONE
};

pub(super) const USAGE: UsageWords = UsageWords {
    counters: &[("message.usage", &COUNTERS), ("message.usage.cache_creation", &LIFETIMES)],
    synthetic_model: Some(("message.model", SYNTHETIC)),
    // The result of a sub-agent sums up the calls in the sub-agent's own file.
    sums: &["toolUseResult.usage.input_tokens"],
    ..UsageWords::NONE
};

pub(super) const SESSION: SessionWords = SessionWords {
    rate_limits: &[LimitPaths {
        object: "rate_limit_info",
        name: Some("rateLimitType"),
        used: ("utilization", 1.0),
        minutes: None,
        resets: "resetsAt",
    }],
    instructions: &["shape.system", "attachment.systemPrompt"],
    tools: &["shape.tools", "attachment.tools", "tools"],
    added: &["rendered"],
    ..SessionWords::NONE
};
