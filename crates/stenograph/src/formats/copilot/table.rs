//! The records of Copilot's sessions. These are tables only.

use crate::formats::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedPlace, PartMap, RecordField, RecordMap, Restates, ResultMap, Speaks,
    StopMap, TEXT, UsageMap, Words,
};
use crate::formats::record_templates::{RecordIds, RecordTemplates};
use crate::model::Role;

pub(super) fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let name = word("type")?;
    let is = |path: &str, value: &str| word(path).as_deref() == Some(value);
    let special = match name.as_str() {
        "session.compaction_complete" if is("data.success", "false") => Some(&NO_COMPACTION),
        // The agent asked to stop and was told to continue.
        "session.task_complete" if is("data.outcome", "continue") => Some(&CONTINUED),
        "system.message" if is("data.role", "developer") => Some(&DEVELOPER),
        "tool.execution_complete" if is("data.success", "false") => Some(&FAILED_RESULT),
        _ => None,
    };
    let named = || KINDS.iter().find(|(kind, _)| *kind == name).map(|(_, map)| *map);
    let fact = || FACTS.contains(&name.as_str()).then_some(&FACT);
    special.or_else(named).or_else(fact).or(Some(&UNKNOWN))
}

/// Copilot rebuilds the messages of the model from these records. What it shows to the user needs no more.
pub(super) static TEMPLATES: RecordTemplates = RecordTemplates {
    header: r#"{"type":"session.start","data":{"sessionId":"<session>","version":1,"producer":"steno",
        "copilotVersion":"<version|unknown>","startTime":"<time>","context":{"cwd":"<cwd|/>","branch":"<branch|>"}},
        "id":"<id>","timestamp":"<time>","parentId":null}"#,
    user: r#"{"type":"user.message","data":{"content":"<text>"},"id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    answer: r#"{"type":"assistant.message","data":{"messageId":"<id>","model":"<model|>","content":"<text|\"\">",
        "toolRequests":"<calls|[]>","reasoningText":"<thought|>","apiCallId":"<group|>"},
        "id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    usage: r#"{"type":"session.usage_record","data":{"usage":{"model":"<model|unknown>","inputTokens":"<all input|0>",
        "outputTokens":"<output|0>","cacheReadTokens":"<cache read|0>","cacheWriteTokens":"<cache write|0>",
        "reasoningTokens":"<reasoning|0>","apiCallId":"<group|>"}},"id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    result: r#"{"type":"tool.execution_complete","data":{"toolCallId":"<call>","success":"<success|true>",
        "result":{"content":"<result>"},"error":{"message":"<failure>"}},
        "id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    compaction: r#"{"type":"session.compaction_complete","data":{"success":true,"summaryContent":"<text>"},
        "id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    failure: r#"{"type":"session.error","data":{"errorType":"<name|error>","message":"<text>"},
        "id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    title: r#"{"type":"session.title_changed","data":{"title":"<text>"},"id":"<id>","timestamp":"<time>","parentId":"<parent|null>"}"#,
    call: r#"{"toolCallId":"<call>","name":"<name>","arguments":"<arguments>","type":"function"}"#,
    ids: RecordIds::Uuids,
    ..RecordTemplates::NONE
};

/// Whether a session has events of this kind.
pub(super) fn is_known(name: &str) -> bool {
    KINDS.iter().any(|(kind, _)| *kind == name) || FACTS.contains(&name)
}

/// The counters of a usage.
pub(super) const COUNTERS: [&str; 5] =
    ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"];

const ID: (RecordField, &str) = (RecordField::Id, "id");
const PARENT: (RecordField, &str) = (RecordField::Parent, "parentId");
const TIME: (RecordField, &str) = (RecordField::Time, "timestamp");
const THREAD: (RecordField, &str) = (RecordField::Thread, "agentId");
const MODEL: (RecordField, &str) = (RecordField::Model, "data.model");

const EVENT: RecordMap = RecordMap { fields: &[ID, PARENT, TIME, THREAD], ..RecordMap::NONE };

static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..EVENT };
static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("type")], ..EVENT };
/// The main conversation reports these, under the id of the agent that it started.
static SUBAGENT: RecordMap = RecordMap { fields: &[ID, PARENT, TIME], ..FACT_OF };
const FACT_OF: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..EVENT };

static START: RecordMap = RecordMap {
    fields: &[
        ID,
        PARENT,
        TIME,
        THREAD,
        (RecordField::Session, "data.sessionId"),
        (RecordField::Version, "data.copilotVersion"),
        (RecordField::Model, "data.selectedModel"),
        (RecordField::Cwd, "data.context.cwd"),
        (RecordField::Branch, "data.context.branch"),
    ],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

static RESUME: RecordMap = RecordMap {
    fields: &[
        ID,
        PARENT,
        TIME,
        THREAD,
        (RecordField::Model, "data.selectedModel"),
        (RecordField::Cwd, "data.context.cwd"),
        (RecordField::Branch, "data.context.branch"),
    ],
    ..FACT_OF
};

static CONTEXT: RecordMap = RecordMap {
    fields: &[ID, PARENT, TIME, THREAD, (RecordField::Cwd, "data.cwd"), (RecordField::Branch, "data.branch")],
    ..FACT_OF
};

static NEW_MODEL: RecordMap =
    RecordMap { fields: &[ID, PARENT, TIME, THREAD, (RecordField::Model, "data.newModel")], ..FACT_OF };

static TITLE: RecordMap = RecordMap { parts: &[PartMap::Fact("title", "data.title", &[])], ..EVENT };

/// One per model call. The shutdown record and checkpoints sum these up.
static USAGE: RecordMap = RecordMap {
    fields: &[
        ID,
        PARENT,
        TIME,
        THREAD,
        (RecordField::Model, "data.usage.model"),
        (RecordField::Group, "data.usage.apiCallId"),
        (RecordField::StopReason, "data.usage.finishReason"),
    ],
    usage: Some(UsageMap {
        input: &["data.usage.inputTokens"],
        output: &["data.usage.outputTokens"],
        cache_read: &["data.usage.cacheReadTokens"],
        cache_write: &["data.usage.cacheWriteTokens"],
        reasoning: &["data.usage.reasoningTokens"],
        cost: &[],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("usage")],
    ..RecordMap::NONE
};

/// No usage record has the calls that wrote the summary.
static COMPACTION: RecordMap = RecordMap {
    fields: &[ID, PARENT, TIME, THREAD, (RecordField::Model, "data.compactionTokensUsed.model")],
    usage: Some(UsageMap {
        input: &["data.compactionTokensUsed.inputTokens"],
        output: &["data.compactionTokensUsed.outputTokens"],
        cache_read: &["data.compactionTokensUsed.cacheReadTokens"],
        cache_write: &["data.compactionTokensUsed.cacheWriteTokens"],
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Compacted("data.summaryContent")],
    ..RecordMap::NONE
};

static NO_COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Failed("", "data.error")], ..EVENT };
static ERROR: RecordMap = RecordMap { parts: &[PartMap::Failed("data.errorType", "data.message")], ..EVENT };

static CALL_FAILURE: RecordMap = RecordMap {
    fields: &[ID, PARENT, TIME, THREAD, MODEL, (RecordField::Group, "data.apiCallId")],
    parts: &[PartMap::Failed("data.failureKind", "data.errorMessage")],
    ..RecordMap::NONE
};

static COMPLETE: RecordMap = RecordMap {
    parts: &[PartMap::Ended(StopMap { reason: "data.reason", success: "data.success", content: "data.summary" })],
    ..EVENT
};

static CONTINUED: RecordMap =
    RecordMap { parts: &[PartMap::Fact("session.task_complete", "data.summary", &[])], ..EVENT };

static ABORT: RecordMap =
    RecordMap { parts: &[PartMap::Ended(StopMap { reason: "data.reason", success: "", content: "" })], ..EVENT };

static INFORMATION: RecordMap = RecordMap { parts: &[PartMap::Fact("session.info", "data.message", &[])], ..EVENT };
static WARNING: RecordMap = RecordMap { parts: &[PartMap::Fact("session.warning", "data.message", &[])], ..EVENT };
static NOTIFICATION: RecordMap =
    RecordMap { parts: &[PartMap::Fact("system.notification", "data.content", &[])], ..EVENT };
static SKILL: RecordMap = RecordMap { parts: &[PartMap::Fact("skill.invoked", "data.content", &[])], ..EVENT };

const MESSAGE: RecordMap = RecordMap { parts: &[PartMap::Content("data.content", TEXT)], ..EVENT };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static DEVELOPER: RecordMap = RecordMap { speaks: Speaks::As(Role::Developer), ..MESSAGE };

static ASSISTANT: RecordMap = RecordMap {
    fields: &[
        ID,
        PARENT,
        TIME,
        THREAD,
        MODEL,
        (RecordField::Group, "data.apiCallId"),
        (RecordField::RequestId, "data.requestId"),
    ],
    // Releases without usage records state only this count.
    usage: Some(UsageMap { output: &["data.outputTokens"], ..UsageMap::NONE }),
    parts: &[
        PartMap::Thinking("data.reasoningText", TEXT),
        PartMap::Content("data.content", TEXT),
        PartMap::Calls(
            "data.toolRequests",
            CallMap { id: "toolCallId", name: "name", input: InputAt::Maybe("arguments") },
        ),
    ],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

/// The message that follows repeats it as its reasoning text.
static REASONING: RecordMap = RecordMap { speaks: Speaks::Thinking, restates: Restates::Everything, ..MESSAGE };

const CALL: PartMap =
    PartMap::Call(CallMap { id: "data.toolCallId", name: "data.toolName", input: InputAt::Maybe("data.arguments") });

static REQUESTED: RecordMap = RecordMap { parts: &[CALL], ..EVENT };

static EXECUTION: RecordMap = RecordMap {
    fields: &[ID, PARENT, TIME, THREAD, MODEL],
    parts: &[CALL],
    restates: Restates::Everything,
    ..RecordMap::NONE
};

const RESULT_AT: ResultMap = ResultMap {
    call: "data.toolCallId",
    name: "",
    content: "data.result.content",
    texts: TEXT,
    error: ErrorAt::Word("data.success", &["false"], &["true"]),
};

static RESULT: RecordMap =
    RecordMap { fields: &[ID, PARENT, TIME, THREAD, MODEL], parts: &[PartMap::Result(RESULT_AT)], ..RecordMap::NONE };

static FAILED_RESULT: RecordMap = RecordMap {
    fields: &[ID, PARENT, TIME, THREAD, MODEL],
    parts: &[PartMap::Result(ResultMap { content: "data.error.message", ..RESULT_AT })],
    ..RecordMap::NONE
};

const KINDS: &[(&str, &RecordMap)] = &[
    ("session.start", &START),
    ("session.resume", &RESUME),
    ("session.context_changed", &CONTEXT),
    ("session.model_change", &NEW_MODEL),
    ("session.title_changed", &TITLE),
    ("session.usage_record", &USAGE),
    ("session.compaction_complete", &COMPACTION),
    ("session.error", &ERROR),
    ("model.call_failure", &CALL_FAILURE),
    ("session.task_complete", &COMPLETE),
    ("abort", &ABORT),
    ("session.info", &INFORMATION),
    ("session.warning", &WARNING),
    ("user.message", &USER),
    ("system.message", &SYSTEM),
    ("system.notification", &NOTIFICATION),
    ("skill.invoked", &SKILL),
    ("assistant.message", &ASSISTANT),
    ("assistant.reasoning", &REASONING),
    ("tool.user_requested", &REQUESTED),
    ("tool.execution_start", &EXECUTION),
    ("tool.execution_complete", &RESULT),
    ("subagent.started", &SUBAGENT),
    ("subagent.completed", &SUBAGENT),
    ("subagent.failed", &SUBAGENT),
];

/// Kinds of records that are kept without anything being taken from them.
const FACTS: &[&str] = &[
    "assistant.fusion_phase_completed",
    "assistant.fusion_phase_failed",
    "assistant.turn_end",
    "assistant.turn_start",
    "external_tool.completed",
    "external_tool.requested",
    "hook.end",
    "hook.start",
    "human_response.recorded",
    "mcp.oauth_recovery_completed",
    // The calls that write the summary of a compaction.
    "model.message",
    "model.messages_snapshot",
    "model.model_call_started",
    "model.model_call_success",
    "model.response",
    "model.tool_execution",
    "model.turn_ended",
    "model.turn_started",
    "permission.assentDetected",
    "permission.carriedForward",
    "permission.completed",
    "permission.contextualAuthorization",
    "permission.messageAuthorization",
    "permission.messageAuthorizationDegraded",
    "permission.messageAuthorizationRead",
    "permission.requested",
    "session.auto_mode_resolved",
    "session.autopilot_objective_changed",
    "session.binary_asset",
    "session.canvas.recorded",
    "session.canvas.removed",
    "session.compaction_start",
    "session.completion_receipt",
    "session.context_cleared",
    "session.fusion_change_checkpoint",
    "session.fusion_commit_started",
    "session.fusion_completed",
    "session.fusion_handoff",
    "session.fusion_resolved",
    "session.fusion_route_failed",
    "session.handoff",
    "session.mode_changed",
    "session.mode_notice_delivered",
    "session.model_deselected",
    "session.permission_recovery",
    "session.permissions_changed",
    "session.plan_changed",
    "session.remote_steerable_changed",
    "session.request_body_compression_disabled",
    "session.schedule_cancelled",
    "session.schedule_created",
    "session.schedule_rearmed",
    "session.session_limits_changed",
    "session.shutdown",
    "session.truncation",
    "session.usage_checkpoint",
    "session.workspace_file_changed",
    "skill.context_delivered",
    "skill.context_delivered_ref",
    "skill.invoked_ref",
    "subagent.configured",
    "subagent.deselected",
    "subagent.selected",
    "tool_search.activated",
];
