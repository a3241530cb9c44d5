//! Tells Claude Code's records from those of the many systems that look like it. It looks at records, never at names of files.

use crate::format::Sniff;
use crate::json::Object;

/// How sure the first records make us.
pub fn sniff(objects: &[Object<'_>]) -> Sniff {
    let mut best = Sniff::No;
    for object in objects {
        match look(object) {
            Look::Foreign => return Sniff::No,
            Look::Nothing => {}
            Look::Like => best = best.max(Sniff::Likely),
            Look::Own => best = Sniff::Certain,
        }
    }
    best
}

enum Look {
    /// Only another system writes this.
    Foreign,
    /// It tells nothing.
    Nothing,
    /// It has the shape, without any mark that only Claude Code makes.
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

fn look(object: &Object<'_>) -> Look {
    let kind = object.peek_str("type");
    let has = |keys: &[&str]| keys.iter().all(|key| object.has(key));
    let own_when = |good: bool| if good { Look::Own } else { Look::Nothing };
    match kind.as_deref() {
        Some(kind) if FOREIGN.contains(&kind) => Look::Foreign,
        Some("user" | "assistant") => talk(object),
        None if object.has("message") => talk(object),
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
        Some("started") if has(&["key", "agentId"]) => Look::Like,
        Some("result") if has(&["key", "agentId", "result"]) => Look::Like,
        Some("result") => {
            own_when(has(&["session_id", "num_turns"]) && (has(&["subtype"]) || has(&["total_cost_usd"])))
        }
        Some("stream_event") => own_when(has(&["event", "session_id"])),
        Some("rate_limit_event") => own_when(has(&["rate_limit_info"])),
        _ => Look::Nothing,
    }
}

/// A record with a message in the Messages form.
fn talk(object: &Object<'_>) -> Look {
    let Some(message) = object.peek_object("message") else { return Look::Nothing };
    if message.has("parts") {
        // Qwen Code keeps Claude Code's envelope and Gemini's messages.
        return Look::Foreign;
    }
    let typed = object.has("type");
    let marked = object.has("isSidechain") && object.has("sessionId") && object.has("uuid");
    let streamed = object.has("parent_tool_use_id") && object.has("session_id");
    let counted = message.has("usage") && object.has("sessionId") && object.has("requestId");
    let speaks = message.has("role") || message.has("content");
    match (speaks && typed, marked || streamed, counted) {
        (true, true, _) => Look::Own,
        (true, false, _) | (false, _, true) => Look::Like,
        (false, _, false) => Look::Nothing,
    }
}

fn system(object: &Object<'_>) -> Look {
    let has = |keys: &[&str]| keys.iter().all(|key| object.has(key));
    if has(&["systemPayload"]) {
        return Look::Foreign;
    }
    let file = has(&["isSidechain", "sessionId", "uuid"]);
    let stream = has(&["subtype", "session_id", "uuid"]);
    let head = has(&["subtype", "session_id", "tools"]) && (has(&["mcp_servers"]) || has(&["claude_code_version"]));
    if file || head || stream { Look::Own } else { Look::Nothing }
}
