//! mini-swe-agent's trajectories, one document each. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{CallWords, ExitCodeAt, Role};

const NAME: &str = "mini-swe-agent";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "mini-swe-agent's trajectories",
    framing: Framing::Items(Items::Array("messages")),
    extension: "traj.json",
    homes: &["<session>.traj.json"],
    spec: "what mini-swe-agent 2.4 writes (mini-swe-agent-1.1)",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["extra.response", "extra.actions", "extra.raw_output"],
    typed: &[("Please solve this issue: ", "\n\nYou can execute bash commands")],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("extra.returncode")],
        // The run ends with the call that submits the work.
        interruption_prefixes: &[
            "{\n  \"returncode\": -1,\n  \"output\": \"\", \"exception_info\": \"action was not executed\"",
        ],
        ..CallWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `mini-swe-agent`.
pub static MINI_SWE_AGENT: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("role")?.as_str() {
            "system" => Some(&SYSTEM),
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            "tool" => Some(&TOOL),
            "exit" => Some(&EXIT),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[
        (RecordField::Model, "info.config.model.model_name"),
        (RecordField::Cwd, "info.config.environment.cwd"),
        (RecordField::Version, "info.mini_version"),
    ],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

static TAIL: RecordMap = RecordMap { parts: &[PartMap::Stated("session_end")], ..RecordMap::NONE };

const MESSAGE: RecordMap = RecordMap {
    fields: &[
        (RecordField::Seconds, "extra.timestamp"),
        (RecordField::Model, "extra.response.model"),
        (RecordField::Group, "extra.response.id"),
    ],
    usage: Some(UsageMap {
        input: &["extra.response.usage.prompt_tokens"],
        output: &["extra.response.usage.completion_tokens"],
        cache_read: &["extra.response.usage.prompt_tokens_details.cached_tokens"],
        cache_write: &["extra.response.usage.cache_creation_input_tokens"],
        reasoning: &["extra.response.usage.completion_tokens_details.reasoning_tokens"],
        cost: &["extra.cost"],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[
        PartMap::Thinking("reasoning_content", TEXT),
        PartMap::Content("content", TEXT),
        PartMap::Calls(
            "tool_calls",
            CallMap { id: "id", name: "function.name", input: InputAt::Text("function.arguments") },
        ),
    ],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static ASSISTANT: RecordMap = MESSAGE;
static USER: RecordMap = RecordMap { usage: None, speaks: Speaks::As(Role::User), ..MESSAGE };
static SYSTEM: RecordMap = RecordMap { usage: None, speaks: Speaks::As(Role::System), ..MESSAGE };

static TOOL: RecordMap = RecordMap {
    usage: None,
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_id",
        name: "",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..MESSAGE
};

static EXIT: RecordMap = RecordMap { usage: None, parts: &[PartMap::Stop("extra.exit_status")], ..MESSAGE };

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let format = document.peek_str("trajectory_format");
    let is_named = format.is_some_and(|format| format.starts_with("mini-swe-agent"));
    let has_version = document.peek_object("info").is_some_and(|info| info.has("mini_version"));
    if is_named || has_version { Sniff::Certain } else { Sniff::No }
}
