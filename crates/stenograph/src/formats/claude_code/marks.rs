//! What Claude Code says in words of its own about what came of calls. Only words and paths; nothing is read here.

use crate::format::marks::{Exit, Judgement, Marks, Nested, Notice, Verdict};

pub(super) const MARKS: Marks = Marks {
    exits: &[Exit::First("Exit code "), Exit::First("Error: Exit code "), Exit::Head("<exit_code>")],
    failures: &["<tool_use_error>"],
    interruptions: &["[Request interrupted by user"],
    interrupted_fields: &["toolUseResult.interrupted"],
    verdicts: &[
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
    denials: &[("toolDenialKind", "user")],
    handles: &["Command running in background with ID: ", "agentId: ", "Task ID: "],
    handle_fields: &[
        "toolUseResult.agentId",
        "toolUseResult.backgroundTaskId",
        "toolUseResult.shellId",
        "toolUseResult.taskId",
        "toolUseResult.task.id",
    ],
    state_fields: &["toolUseResult.status", "toolUseResult.task.status", "toolUseResult.retrieval_status"],
    kind_fields: &["toolUseResult.agentType"],
    made: &[("toolUseResult.type", "create")],
    modes: &["permissionMode"],
    mode_facts: &["permission-mode"],
    judgements: &[Judgement {
        fact: "attachment",
        field: "attachment.type",
        words: &[("hook_blocking_error", Verdict::Blocked)],
        reason: "attachment.blockingError.blockingError",
    }],
    nested: Some(Nested { fact: "progress", record: "data.message", thread: "data.agentId", call: "parentToolUseID" }),
    notice: Some(Notice {
        begins: "<task-notification>",
        handle: ("<task-id>", "</task-id>"),
        state: ("<status>", "</status>"),
        exit: "exit code ",
    }),
    compacted: Some(("compactMetadata.preTokens", "compactMetadata.postTokens")),
    preserved: &["compactMetadata.preservedMessages.uuids"],
    ..Marks::NONE
};
