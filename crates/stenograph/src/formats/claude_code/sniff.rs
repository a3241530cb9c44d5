//! Distinguishes Claude Code's records from those of the many systems with similar ones. It looks at records, never at file
//! names.

use crate::format::Sniff;
use crate::json::Object;

/// How certain the first records make this format.
pub fn sniff(objects: &[Object<'_>]) -> Sniff {
    let mut best = Sniff::No;
    for object in objects {
        match record_shape(object) {
            RecordShape::Foreign => return Sniff::No,
            RecordShape::Unknown => {}
            RecordShape::Like => best = best.max(Sniff::Likely),
            RecordShape::Own => best = Sniff::Certain,
        }
    }
    best
}

enum RecordShape {
    /// Only another system writes this.
    Foreign,
    /// It could be anything.
    Unknown,
    /// It has the shape, but no field that only Claude Code writes.
    Like,
    /// Only Claude Code writes this.
    Own,
}

/// Record types of systems whose files resemble these.
const FOREIGN: [&str; 12] = [
    "message",
    "session",
    "session_start",
    "session_meta",
    "response_item",
    "request_item",
    "event_msg",
    "turn_context",
    "model_change",
    "tool_call",
    "init",
    "gemini",
];

fn record_shape(object: &Object<'_>) -> RecordShape {
    let kind = object.peek_str("type");
    let has = |keys: &[&str]| keys.iter().all(|key| object.has(key));
    let own_when = |good: bool| if good { RecordShape::Own } else { RecordShape::Unknown };
    match kind.as_deref() {
        Some(kind) if FOREIGN.contains(&kind) => RecordShape::Foreign,
        Some("user" | "assistant") => message_record(object),
        None if object.has("message") => message_record(object),
        Some("system") => system(object),
        Some("summary") => own_when(has(&["summary", "leafUuid"])),
        Some("ai-title") => own_when(has(&["aiTitle"])),
        Some("custom-title") => own_when(has(&["customTitle"])),
        Some("agent-name") => own_when(has(&["agentName"])),
        Some("last-prompt") => own_when(has(&["lastPrompt"]) || has(&["leafUuid"])),
        Some("permission-mode") => own_when(has(&["permissionMode", "sessionId"])),
        Some("mode") => own_when(has(&["mode", "sessionId"])),
        Some("agent-setting" | "tag" | "bridge-session" | "pr-link" | "worktree-state") => {
            own_when(has(&["sessionId"]))
        }
        Some("queue-operation") => own_when(has(&["operation", "sessionId"])),
        Some("file-history-snapshot") => own_when(has(&["messageId", "snapshot"])),
        Some("file-history-delta") => own_when(has(&["messageId", "snapshotMessageId"])),
        Some("content-replacement") => own_when(has(&["replacements"])),
        Some("progress") => own_when(has(&["isSidechain", "sessionId", "data"])),
        Some("attachment") => own_when(has(&["isSidechain", "sessionId", "attachment"])),
        Some("started") if has(&["key", "agentId"]) => RecordShape::Like,
        Some("result") if has(&["key", "agentId", "result"]) => RecordShape::Like,
        Some("result") => {
            own_when(has(&["session_id", "num_turns"]) && (has(&["subtype"]) || has(&["total_cost_usd"])))
        }
        Some("stream_event") => own_when(has(&["event", "session_id"])),
        Some("rate_limit_event") => own_when(has(&["rate_limit_info"])),
        _ => RecordShape::Unknown,
    }
}

/// A record with a message of the Messages API.
fn message_record(object: &Object<'_>) -> RecordShape {
    let Some(message) = object.peek_object("message") else { return RecordShape::Unknown };
    if message.has("parts") {
        // Qwen Code keeps Claude Code's envelope and Gemini's messages.
        return RecordShape::Foreign;
    }
    let typed = object.has("type");
    let marked = object.has("isSidechain") && object.has("sessionId") && object.has("uuid");
    let streamed = object.has("parent_tool_use_id") && object.has("session_id");
    let counted = message.has("usage") && object.has("sessionId") && object.has("requestId");
    let has_message = message.has("role") || message.has("content");
    match (has_message && typed, marked || streamed, counted) {
        (true, true, _) => RecordShape::Own,
        (true, false, _) | (false, _, true) => RecordShape::Like,
        (false, _, false) => RecordShape::Unknown,
    }
}

fn system(object: &Object<'_>) -> RecordShape {
    let has = |keys: &[&str]| keys.iter().all(|key| object.has(key));
    if has(&["systemPayload"]) {
        return RecordShape::Foreign;
    }
    let file = has(&["isSidechain", "sessionId", "uuid"]);
    let stream = has(&["subtype", "session_id", "uuid"]);
    let head = has(&["subtype", "session_id", "tools"]) && (has(&["mcp_servers"]) || has(&["claude_code_version"]));
    if file || head || stream { RecordShape::Own } else { RecordShape::Unknown }
}
