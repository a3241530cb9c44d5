//! Kimi CLI: the wire of a session, one message per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    StopMap, TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, FolderAt, FolderFile, Role, UsageWords, Verdict};

const NAME: &str = "kimi";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Kimi CLI's sessions (wire.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{KIMI_SHARE_DIR|~/.kimi}/sessions/<project>/<session>/wire.jsonl",
        "{KIMI_SHARE_DIR|~/.kimi}/sessions/<project>/<session>/subagents/<thread>/wire.jsonl",
    ],
    folder_files: &[FolderFile {
        path: "../../../kimi.json",
        folder: FolderAt::List { list: "work_dirs", folder: "path", session: "last_session_id" },
    }],
    resume: Some("kimi -S {session}"),
    spec: "MoonshotAI/kimi-cli, src/kimi_cli/wire/types.py",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("message.payload.return_value.extras.exit_code")],
        verdict_prefixes: &[("The tool call is rejected by the user", Verdict::Denied)],
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[(
            "message.payload.token_usage",
            &["input_other", "output", "input_cache_read", "input_cache_creation"],
        )],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `kimi`.
pub static KIMI: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "message.type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let Some(kind) = word("message.type") else {
        return word("protocol_version").map(|_| &HEADER);
    };
    match kind.as_str() {
        "TurnBegin" | "SteerInput" => Some(&USER),
        "ContentPart" => match word("message.payload.type").as_deref() {
            Some("think") => Some(&THOUGHT),
            Some("text") => Some(&ANSWER),
            _ => None,
        },
        "ToolCall" => Some(&CALL),
        "ToolResult" => Some(&RESULT),
        "StatusUpdate" => Some(&STATUS),
        "CompactionEnd" => Some(&COMPACTION),
        "TurnEnd" => Some(&END),
        "StepInterrupted" => Some(&INTERRUPTED),
        kind if FACTS.contains(&kind) => Some(&FACT),
        _ => None,
    }
}

/// Messages that are kept without anything being taken from them.
const FACTS: &[&str] = &[
    "ApprovalRequest",
    "ApprovalRequestResolved",
    "ApprovalResponse",
    "CompactionBegin",
    "HookResolved",
    "HookTriggered",
    "MCPLoadingBegin",
    "MCPLoadingEnd",
    "Notification",
    "PlanDisplay",
    "QuestionRequest",
    "StepBegin",
    "StepRetry",
    // The sub-agent has a wire of its own.
    "SubagentEvent",
    "ToolCallRequest",
];

static HEADER: RecordMap = RecordMap { parts: &[PartMap::Stated("session")], ..RecordMap::NONE };

const MESSAGE: RecordMap = RecordMap { fields: &[(RecordField::Seconds, "timestamp")], ..RecordMap::NONE };

static USER: RecordMap = RecordMap {
    parts: &[PartMap::Content("message.payload.user_input", TEXT)],
    speaks: Speaks::As(Role::User),
    ..MESSAGE
};
static ANSWER: RecordMap = RecordMap {
    parts: &[PartMap::Content("message.payload.text", TEXT)],
    speaks: Speaks::As(Role::Assistant),
    ..MESSAGE
};
static THOUGHT: RecordMap =
    RecordMap { parts: &[PartMap::Content("message.payload.think", TEXT)], speaks: Speaks::Thinking, ..MESSAGE };

static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "message.payload.id",
        name: "message.payload.function.name",
        input: InputAt::Text("message.payload.function.arguments"),
    })],
    ..MESSAGE
};

static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "message.payload.tool_call_id",
        name: "",
        content: "message.payload.return_value.output",
        texts: TEXT,
        error: ErrorAt::Flag("message.payload.return_value.is_error"),
    })],
    ..MESSAGE
};

/// One per model call, after its answer.
static STATUS: RecordMap = RecordMap {
    fields: &[(RecordField::Seconds, "timestamp"), (RecordField::Group, "message.payload.message_id")],
    usage: Some(UsageMap {
        input: &["message.payload.token_usage.input_other"],
        output: &["message.payload.token_usage.output"],
        cache_read: &["message.payload.token_usage.input_cache_read"],
        cache_write: &["message.payload.token_usage.input_cache_creation"],
        input_has: InputHas::NoCache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("usage")],
    ..RecordMap::NONE
};

static COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Compacted("")], ..MESSAGE };
static END: RecordMap =
    RecordMap { parts: &[PartMap::Ended(StopMap { reason: "", success: "", content: "" })], ..MESSAGE };
static INTERRUPTED: RecordMap = RecordMap { parts: &[PartMap::Failed("", "")], ..MESSAGE };
static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("message.type")], ..MESSAGE };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_message = |object: &Object<'_>| {
        object.has("timestamp")
            && object.peek_object("message").is_some_and(|message| message.has("type") && message.has("payload"))
    };
    // The header is one that Kimi Code has too.
    let is_header = |object: &Object<'_>| object.has("protocol_version") && !object.has("created_at");
    match objects.iter().any(is_message) && objects.iter().all(|object| is_message(object) || is_header(object)) {
        true => Sniff::Certain,
        false if objects.len() == 1 && objects.iter().all(is_header) => Sniff::Maybe,
        false => Sniff::No,
    }
}
