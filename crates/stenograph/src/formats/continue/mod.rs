//! Continue's sessions, one document each. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{CallWords, ExitCodeAt, Role, UsageWords};

const NAME: &str = "continue";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Continue's sessions",
    framing: Framing::Items(Items::Array("history")),
    extension: "json",
    homes: &["{CONTINUE_GLOBAL_DIR|~/.continue}/sessions/????????-????-*.json"],
    resume: Some("cn --fork {session}"),
    spec: "continuedev/continue, core/index.d.ts: Session",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["toolCallStates.toolCall", "toolCallStates.parsedArgs", "editorState"],
    totals: &["usage"],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::First("Error executing tool Bash: Error (exit code ")],
        failure_prefixes: &["Error executing tool "],
        ..CallWords::NONE
    },
    usage: UsageWords { counters: &[("message.usage", &["prompt_tokens", "completion_tokens"])], ..UsageWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `continue`.
pub static CONTINUE: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "message.role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("message.role")?.as_str() {
            "system" => Some(&SYSTEM),
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            "thinking" => Some(&THINKING),
            "tool" => Some(&TOOL),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "sessionId"), (RecordField::Cwd, "workspaceDirectory")],
    // Continue's default is not a title.
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "title", &["Untitled Session", "New Session"])],
    ..RecordMap::NONE
};

static TAIL: RecordMap = RecordMap { parts: &[PartMap::Stated("session_end")], ..RecordMap::NONE };

const ITEM: RecordMap = RecordMap {
    fields: &[(RecordField::Model, "message.usage.model")],
    usage: Some(UsageMap {
        input: &["message.usage.prompt_tokens"],
        output: &["message.usage.completion_tokens"],
        cache_read: &["message.usage.prompt_tokens_details.cached_tokens"],
        cache_write: &["message.usage.prompt_tokens_details.cache_write_tokens"],
        reasoning: &["message.usage.completion_tokens_details.reasoning_tokens"],
        cost: &[],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[
        PartMap::Thinking("reasoning.text", TEXT),
        PartMap::Content("message.content", TEXT),
        PartMap::Calls(
            "message.toolCalls",
            CallMap { id: "id", name: "function.name", input: InputAt::Text("function.arguments") },
        ),
        PartMap::Results(
            "toolCallStates",
            ResultMap {
                call: "toolCallId",
                name: "",
                content: "output",
                texts: &["content"],
                error: ErrorAt::Word("status", &["errored", "canceled"], &["done"]),
            },
        ),
    ],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static ASSISTANT: RecordMap = ITEM;
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..ITEM };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..ITEM };
static THINKING: RecordMap =
    RecordMap { parts: &[PartMap::Content("message.content", TEXT)], speaks: Speaks::Thinking, ..ITEM };

static TOOL: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "message.toolCallId",
        name: "",
        content: "message.content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..ITEM
};

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let is_session = ["sessionId", "title", "workspaceDirectory", "history"].iter().all(|key| document.has(key));
    if is_session { Sniff::Certain } else { Sniff::No }
}
