//! OpenHands since its release 1: the events of a conversation and its state, one JSON object per file or line. See `README.md`
//! beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role, SessionWords, TotalPaths, UsageWords, Verdict};

const NAME: &str = "openhands";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "OpenHands' conversations since release 1",
    framing: Framing::Lines,
    extension: "json",
    homes: &[
        "~/.openhands/conversations/<session>/events/event-*.json",
        "~/.openhands/conversations/<session>/base_state.json",
    ],
    resume: Some("openhands --resume {session}"),
    spec: "OpenHands/software-agent-sdk, openhands/sdk/event",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["parent_id"],
    restated: &["action"],
    totals: &["stats"],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("observation.exit_code")],
        verdict_prefixes: &[("Action rejected", Verdict::Denied)],
        ..CallWords::NONE
    },
    usage: UsageWords {
        total: Some(TotalPaths {
            facts: &["session"],
            object: "stats.usage_to_metrics.agent.accumulated_token_usage",
            input: "prompt_tokens",
            output: "completion_tokens",
            cache_read: "cache_read_tokens",
            cache_write: "cache_write_tokens",
            reasoning: "reasoning_tokens",
            cost: "",
        }),
        calls: &["stats.usage_to_metrics.agent.token_usages"],
        ..UsageWords::NONE
    },
    session: SessionWords { tools: &["tools"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `openhands`.
pub static OPENHANDS: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "kind", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let Some(kind) = word("kind") else {
        return word("execution_status").map(|_| &STATE);
    };
    match kind.as_str() {
        "SystemPromptEvent" => Some(&PROMPT),
        "MessageEvent" => Some(match word("source").as_deref() {
            Some("user") => &USER,
            Some("agent") => &ANSWER,
            _ => &NOTICE,
        }),
        "ActionEvent" => Some(&ACTION),
        "ObservationEvent" => Some(&OBSERVATION),
        "UserRejectObservation" => Some(&REJECTION),
        "AgentErrorEvent" => Some(&ERROR),
        "Condensation" => Some(&CONDENSATION),
        "ConversationErrorEvent" => Some(&FAILURE),
        "PauseEvent" => Some(&PAUSE),
        "InterruptEvent" => Some(&INTERRUPT),
        "ConversationStateUpdateEvent" => Some(&UPDATE),
        "CondensationRequest" => Some(&REQUEST),
        _ => None,
    }
}

static STATE: RecordMap = RecordMap {
    fields: &[(RecordField::Model, "agent.llm.model"), (RecordField::Cwd, "workspace.working_dir")],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

const EVENT: RecordMap = RecordMap {
    fields: &[
        (RecordField::Id, "id"),
        (RecordField::Time, "timestamp"),
        (RecordField::Parent, "parent_id"),
        (RecordField::Group, "llm_response_id"),
    ],
    parts: &[PartMap::Thinking("llm_message.reasoning_content", TEXT), PartMap::Content("llm_message.content", TEXT)],
    ..RecordMap::NONE
};

static PROMPT: RecordMap =
    RecordMap { parts: &[PartMap::Content("system_prompt.text", &[])], speaks: Speaks::As(Role::System), ..EVENT };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..EVENT };
static ANSWER: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..EVENT };
static NOTICE: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..EVENT };
static ACTION: RecordMap = RecordMap {
    parts: &[
        PartMap::Thinking("reasoning_content", TEXT),
        PartMap::Content("thought", TEXT),
        PartMap::Call(CallMap { id: "tool_call_id", name: "tool_name", input: InputAt::Text("tool_call.arguments") }),
    ],
    speaks: Speaks::As(Role::Assistant),
    ..EVENT
};

const RESULT: ResultMap = ResultMap {
    call: "tool_call_id",
    name: "tool_name",
    content: "observation.content",
    texts: TEXT,
    error: ErrorAt::Flag("observation.is_error"),
};

static OBSERVATION: RecordMap = RecordMap {
    fields: &[
        (RecordField::Id, "id"),
        (RecordField::Time, "timestamp"),
        (RecordField::Cwd, "observation.metadata.working_dir"),
    ],
    parts: &[PartMap::Result(RESULT)],
    ..RecordMap::NONE
};
static REJECTION: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap { content: "rejection_reason", error: ErrorAt::Nowhere, ..RESULT })],
    ..EVENT
};
static ERROR: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        content: "error",
        error: ErrorAt::Word("kind", &["AgentErrorEvent"], &[]),
        ..RESULT
    })],
    ..EVENT
};
static CONDENSATION: RecordMap =
    RecordMap { parts: &[PartMap::Content("summary", &[])], speaks: Speaks::Summary, ..EVENT };
static FAILURE: RecordMap = RecordMap { parts: &[PartMap::Content("detail", &[])], speaks: Speaks::Failure, ..EVENT };
static PAUSE: RecordMap = RecordMap { parts: &[PartMap::Stated("pause")], ..EVENT };
static INTERRUPT: RecordMap = RecordMap { parts: &[PartMap::Stated("interrupt")], ..EVENT };
static UPDATE: RecordMap = RecordMap { parts: &[PartMap::Stated("state")], ..EVENT };
static REQUEST: RecordMap = RecordMap { parts: &[PartMap::Stated("condensation_request")], ..EVENT };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_event = |object: &Object<'_>| {
        let kind = object.peek_str("kind").unwrap_or_default();
        let is_state = ["agent", "workspace", "execution_status"].iter().all(|key| object.has(key));
        let names = ["Event", "Observation", "Condensation", "Request"];
        let is_named = names.iter().any(|name| kind.ends_with(name));
        is_state || is_named && ["id", "timestamp", "source"].iter().all(|key| object.has(key))
    };
    if !objects.is_empty() && objects.iter().all(is_event) { Sniff::Certain } else { Sniff::No }
}
