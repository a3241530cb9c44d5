//! The record types of Claude Code, and the field with the text of each. Reader and writer both use these tables; this module
//! takes and writes no field.

use crate::json::Object;
use crate::model::ExtraFields;

/// A record type that is not part of the conversation.
pub struct FactType {
    /// The name of the fact.
    pub name: &'static str,
    /// The field with its text.
    pub text: Option<&'static str>,
    /// Whether it repeats the content of other records.
    pub restates: bool,
}

/// The entry for a record type that is neither a message nor `system`.
pub fn fact_type(kind: &str) -> Option<FactType> {
    let text = match kind {
        "summary" | "task-summary" | "tool_use_summary" => Some("summary"),
        "ai-title" => Some("aiTitle"),
        "custom-title" => Some("customTitle"),
        "agent-name" => Some("agentName"),
        "agent-setting" => Some("agentSetting"),
        "tag" => Some("tag"),
        "last-prompt" => Some("lastPrompt"),
        "permission-mode" => Some("permissionMode"),
        "mode" => Some("mode"),
        "pr-link" => Some("prUrl"),
        "queue-operation" => Some("content"),
        "result" => Some("result"),
        "prompt_suggestion" => Some("suggestion"),
        _ => None,
    };
    let name = match kind {
        "ai-title" | "custom-title" => "title",
        _ => NAMES.into_iter().find(|name| *name == kind)?,
    };
    Some(FactType { name, text, restates: matches!(kind, "progress" | "stream_event" | "last-prompt") })
}

const NAMES: [&str; 45] = [
    // In files.
    "summary",
    "task-summary",
    "agent-name",
    "agent-setting",
    "agent-color",
    "tag",
    "last-prompt",
    "permission-mode",
    "mode",
    "bridge-session",
    "pr-link",
    "queue-operation",
    "file-history-snapshot",
    "file-history-delta",
    "attribution-snapshot",
    "content-replacement",
    "speculation-accept",
    "worktree-state",
    "relocated",
    "frame-link",
    "atis-latch",
    "api-request-shape",
    "api-request-blob",
    "api-request",
    "tools-used",
    "cost-state",
    "progress",
    "attachment",
    // In the journal of a workflow.
    "started",
    "result",
    // In the stream of `--output-format stream-json`.
    "stream_event",
    "rate_limit_event",
    "conversation_reset",
    "control_request",
    "control_response",
    "control_cancel_request",
    "keep_alive",
    "auth_status",
    "tool_progress",
    "tool_use_summary",
    "prompt_suggestion",
    "streamlined_text",
    "streamlined_tool_use_summary",
    "update_environment_variables",
    "transcript_mirror",
];

/// The subtypes of `system` records that only state a fact.
pub const SUBTYPES: [&str; 34] = [
    // In files.
    "microcompact_boundary",
    "stop_hook_summary",
    "turn_duration",
    "local_command",
    "away_summary",
    "informational",
    "bridge_status",
    "scheduled_task_fire",
    "agents_killed",
    "api_metrics",
    "memory_saved",
    "permission_retry",
    "model_fallback",
    "snip_boundary",
    "api_refusal",
    "model_refusal_fallback",
    "session_start",
    // In the stream.
    "hook_started",
    "hook_progress",
    "hook_response",
    "task_started",
    "task_progress",
    "task_notification",
    "task_updated",
    "status",
    "session_state_changed",
    "files_persisted",
    "post_turn_summary",
    "local_command_output",
    "elicitation_complete",
    "notification",
    "plugin_install",
    "mirror_error",
    "permission_denied",
];

/// How a record names its session and its side conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As in files: `sessionId`, `agentId`.
    File,
    /// As in the stream: `session_id`, `parent_tool_use_id`.
    Stream,
    /// As in the journal of a workflow: `agentId` and no session.
    Journal,
}

impl Dialect {
    /// The dialect of a record, from the unread object.
    pub fn of(object: &Object<'_>, kind: Option<&str>) -> Dialect {
        let has_link = object.peek("parent_tool_use_id").is_some_and(is_link);
        Dialect::by(kind, has_link, |key| object.peek(key))
    }

    /// The dialect of a record, from its extra fields. Taken fields are unknown here, so none of them decides.
    pub fn of_extra(extra: &ExtraFields<'_>, kind: Option<&str>, thread: Option<&str>) -> Dialect {
        let has_link = extra.raw("parent_tool_use_id").is_some_and(is_link) || thread.is_some();
        Dialect::by(kind, has_link, |key| extra.raw(key))
    }

    fn by<'r>(kind: Option<&str>, has_link: bool, raw: impl Fn(&str) -> Option<&'r str>) -> Dialect {
        match kind {
            Some("started" | "result") if raw("key").is_some() => Dialect::Journal,
            Some("user" | "assistant") if has_link && raw("isSidechain") != Some("true") => Dialect::Stream,
            Some("system") if raw("isSidechain").is_none() => Dialect::Stream,
            Some(kind) if kind == "result" || kind.contains('_') => Dialect::Stream,
            _ => Dialect::File,
        }
    }

    /// The field with the id of the session.
    pub fn session(self) -> Option<&'static str> {
        match self {
            Dialect::File => Some("sessionId"),
            Dialect::Stream => Some("session_id"),
            Dialect::Journal => None,
        }
    }

    /// The field with the id of the side conversation.
    pub fn thread(self) -> &'static str {
        match self {
            Dialect::File | Dialect::Journal => "agentId",
            Dialect::Stream => "parent_tool_use_id",
        }
    }
}

fn is_link(raw: &str) -> bool {
    raw == "null" || raw.starts_with('"')
}

/// The thread name of a side conversation without an id.
pub const UNNAMED_THREAD: &str = "sidechain";
