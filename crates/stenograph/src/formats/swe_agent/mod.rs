//! SWE-agent's trajectories, one document each. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::json::{Object, items};
use crate::model::{Role, TotalPaths, UsageWords, UserWords};

const NAME: &str = "swe-agent";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "SWE-agent's trajectories",
    framing: Framing::Items(Items::Array("history")),
    extension: "traj",
    homes: &["trajectories/*/*/*/<session>.traj", "trajectories/*/*/<session>.traj", "<session>.traj"],
    spec: "SWE-agent, sweagent/types.py, releases 0.5 to 1.1",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["thought", "action"],
    totals: &["info.model_stats"],
    typed: &[("ISSUE:\n", "\n\nINSTRUCTIONS:")],
    // The environment answers in the role of the user and ends with its prompt.
    user: UserWords { flags: &["is_demo"], messages: &[("", "bash-$")], ..UserWords::NONE },
    usage: UsageWords {
        total: Some(TotalPaths {
            facts: &["session_end"],
            object: "info.model_stats",
            input: "tokens_sent",
            output: "tokens_received",
            cache_read: "",
            cache_write: "",
            reasoning: "",
            cost: "instance_cost",
        }),
        calls: &["info.model_stats.api_calls"],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `swe-agent`.
pub static SWE_AGENT: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("role")?.as_str() {
            "system" => Some(&SYSTEM),
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            "tool" => Some(&TOOL),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap { parts: &[PartMap::Stated("session")], ..RecordMap::NONE };

static TAIL: RecordMap = RecordMap {
    fields: &[(RecordField::Version, "info.swe_agent_version")],
    parts: &[PartMap::Stated("session_end"), PartMap::Stop("info.exit_status")],
    ..RecordMap::NONE
};

const MESSAGE: RecordMap = RecordMap {
    parts: &[
        PartMap::Content("content", TEXT),
        PartMap::Calls(
            "tool_calls",
            CallMap { id: "id", name: "function.name", input: InputAt::Text("function.arguments") },
        ),
    ],
    fields: &[(RecordField::From, "agent")],
    usage: None,
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static ASSISTANT: RecordMap = MESSAGE;
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };

static TOOL: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_ids[]",
        name: "",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..MESSAGE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let first_has = |list: &str, keys: &[&str]| {
        let first = document.peek(list).and_then(items).and_then(|list| list.first().copied());
        first.and_then(Object::parse).is_some_and(|first| keys.iter().all(|key| first.has(key)))
    };
    let is_trajectory = first_has("trajectory", &["action", "observation", "response", "thought"]);
    let is_history = first_has("history", &["role", "content", "agent", "message_type"]);
    if is_trajectory || is_history { Sniff::Certain } else { Sniff::No }
}
