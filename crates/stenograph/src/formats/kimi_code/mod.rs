//! Kimi Code: the operations of a session, one per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Restates,
    ResultMap, Speaks, StopMap, TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, FolderAt, FolderFile, Role, SessionWords, UsageWords, UserWords};

const NAME: &str = "kimi-code";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Kimi Code's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "~/.kimi-code/sessions/<project>/<session>/agents/main/wire.jsonl",
        "~/.kimi-code/sessions/<project>/<session>/agents/<thread>/wire.jsonl",
    ],
    folder_files: &[FolderFile { path: "../../state.json", folder: FolderAt::Key("cwd") }],
    resume: Some("kimi -S {session}"),
    spec: "what Kimi Code 2.1.0 writes; MoonshotAI/kimi-code",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    user: UserWords { authors: &[("message.origin.kind", &["user"]), ("origin.kind", &["user"])], ..UserWords::NONE },
    calls: CallWords {
        mode_fields: &["mode"],
        compaction_tokens: Some(("tokensBefore", "tokensAfter")),
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[("usage", &["inputOther", "output", "inputCacheRead", "inputCacheCreation"])],
        model_facts: &["llm.request"],
        ..UsageWords::NONE
    },
    session: SessionWords { tools: &["tools"], instructions: &["systemPrompt"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `kimi-code`.
pub static KIMI_CODE: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let kind = word("type")?;
    match kind.as_str() {
        "metadata" => Some(&HEADER),
        "context.append_message" => Some(match word("message.role").as_deref() {
            Some("user") => &USER,
            Some("assistant") => &ASSISTANT,
            _ => &SYSTEM,
        }),
        "context.append_loop_event" => match word("event.type")?.as_str() {
            "content.part" if word("event.part.type").as_deref() == Some("think") => Some(&THOUGHT),
            "content.part" => Some(&ANSWER),
            "tool.call" => Some(&CALL),
            "tool.result" => Some(&RESULT),
            "step.end" => Some(&STEP_END),
            _ => Some(&STEP),
        },
        "turn.prompt" | "turn.steer" => Some(&PROMPT),
        "agent.message.appended" => Some(match word("message.message.role").as_deref() {
            Some("user") => &USER_AGAIN,
            Some("tool") => &RESULT_AGAIN,
            _ => &ASSISTANT_AGAIN,
        }),
        "usage.record" => Some(&USAGE),
        "llm.request" => Some(&REQUEST),
        "turn.ended" => Some(&END),
        "context.apply_compaction" => Some(&COMPACTION),
        "context.undo" => Some(&UNDO),
        kind if PREFIXES.iter().any(|prefix| kind.starts_with(prefix)) => Some(&FACT),
        _ => None,
    }
}

/// The areas of operations that are kept without anything being taken from them.
const PREFIXES: &[&str] = &[
    "agent.",
    "background.",
    "config.",
    "context.",
    "full_compaction.",
    "goal.",
    "llm.",
    "mcp.",
    "permission.",
    "plan.",
    "plan_mode.",
    "plugin.",
    "profile.",
    "prompt.",
    "runtime.",
    "skill.",
    "task.",
    "token_counting.",
    "tools.",
    "turn.",
    "usage.",
];

static HEADER: RecordMap = RecordMap {
    fields: &[(RecordField::Millis, "created_at")],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

const OPERATION: RecordMap = RecordMap { fields: &[(RecordField::Millis, "time")], ..RecordMap::NONE };

static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..OPERATION };
static STEP: RecordMap = RecordMap { parts: &[PartMap::Named("event.type")], ..OPERATION };
static REQUEST: RecordMap = RecordMap {
    fields: &[(RecordField::Millis, "time"), (RecordField::Model, "model")],
    parts: &[PartMap::Named("type")],
    ..RecordMap::NONE
};

const APPENDED: RecordMap = RecordMap {
    fields: &[(RecordField::Millis, "time"), (RecordField::Id, "message.id")],
    parts: &[
        PartMap::Content("message.content", TEXT),
        PartMap::Calls("message.toolCalls", CallMap { id: "id", name: "name", input: InputAt::Text("arguments") }),
    ],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..APPENDED };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..APPENDED };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..APPENDED };

/// The parts of an answer share the id of their step.
const PART: RecordMap = RecordMap {
    fields: &[(RecordField::Millis, "time"), (RecordField::Id, "event.uuid"), (RecordField::Group, "event.stepUuid")],
    ..RecordMap::NONE
};

static ANSWER: RecordMap =
    RecordMap { parts: &[PartMap::Content("event.part.text", TEXT)], speaks: Speaks::As(Role::Assistant), ..PART };
static THOUGHT: RecordMap =
    RecordMap { parts: &[PartMap::Content("event.part.think", TEXT)], speaks: Speaks::Thinking, ..PART };

static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "event.toolCallId",
        name: "event.name",
        input: InputAt::Maybe("event.args"),
    })],
    ..PART
};

static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "event.toolCallId",
        name: "",
        content: "event.result.output",
        texts: TEXT,
        error: ErrorAt::Flag("event.result.isError"),
    })],
    ..OPERATION
};

static STEP_END: RecordMap = RecordMap {
    fields: &[
        (RecordField::Millis, "time"),
        (RecordField::StopReason, "event.finishReason"),
        (RecordField::RequestId, "event.messageId"),
    ],
    parts: &[PartMap::Named("event.type")],
    ..RecordMap::NONE
};

/// The same message again, as the agent passed it on.
const AGAIN: RecordMap = RecordMap {
    parts: &[
        PartMap::Content("message.message.content", TEXT),
        PartMap::Calls(
            "message.message.toolCalls",
            CallMap { id: "id", name: "name", input: InputAt::Text("arguments") },
        ),
    ],
    restates: Restates::Everything,
    ..OPERATION
};

/// What the user typed; the message follows.
static PROMPT: RecordMap = RecordMap {
    parts: &[PartMap::Content("input", TEXT)],
    speaks: Speaks::As(Role::User),
    restates: Restates::Everything,
    ..OPERATION
};
static USER_AGAIN: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..AGAIN };
static ASSISTANT_AGAIN: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..AGAIN };
static RESULT_AGAIN: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "message.message.toolCallId",
        name: "",
        content: "message.message.content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..AGAIN
};

/// One per model call, with the short name of the model; the request before it has the full one.
static USAGE: RecordMap = RecordMap {
    usage: Some(UsageMap {
        input: &["usage.inputOther"],
        output: &["usage.output"],
        cache_read: &["usage.inputCacheRead"],
        cache_write: &["usage.inputCacheCreation"],
        input_has: InputHas::NoCache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("usage")],
    ..OPERATION
};

static END: RecordMap =
    RecordMap { parts: &[PartMap::Ended(StopMap { reason: "reason", success: "", content: "" })], ..OPERATION };
static COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Compacted("summary")], ..OPERATION };
static UNDO: RecordMap = RecordMap { parts: &[PartMap::Count("rewind", "count")], ..OPERATION };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_header = |object: &Object<'_>| {
        object.peek_str("type").as_deref() == Some("metadata")
            && object.has("protocol_version")
            && object.has("created_at")
    };
    let is_operation = |object: &Object<'_>| {
        let kind = object.peek_str("type").unwrap_or_default();
        object.has("time") && PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
    };
    match objects.first().is_some_and(is_header) {
        true => Sniff::Certain,
        false if !objects.is_empty() && objects.iter().all(is_operation) => Sniff::Likely,
        false => Sniff::No,
    }
}
