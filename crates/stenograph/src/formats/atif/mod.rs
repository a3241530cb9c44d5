//! ATIF, the Agent Trajectory Interchange Format of Harbor: one document per trajectory, one record per step. See `README.md`
//! beside this file.

mod step;
mod write;

use super::record_map::{
    CallMap, ConversationMap, ErrorAt, Foreign, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField,
    RecordMap, RecordsMap, ResultMap, Speaks, TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{CallWords, ExitCodeAt, Role, SessionWords, TotalPaths, UsageWords};

const NAME: &str = "atif";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "harbor",
    title: "ATIF, Harbor's trajectories of agents",
    framing: Framing::Items(Items::Array("steps")),
    extension: "json",
    spec: "Harbor, RFC 0001: Agent Trajectory Interchange Format, versions 1.0 to 1.8",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    holds_subagents: true,
    record_schema: &[
        "source=system: step_id number, message text|list",
        "source=user: step_id number, message text|list",
        "source=agent: step_id number, message text|list, tool_calls[].tool_call_id text, \
         tool_calls[].function_name text, tool_calls[].arguments object, observation.results list?",
    ],
    totals: &["final_metrics"],
    calls: CallWords {
        job_fields: &["observation.results.subagent_trajectory_ref.0.trajectory_id"],
        agent_kind_fields: &["observation.results.subagent_trajectory_ref.0.extra.agent_name"],
        exit_codes: &[
            ExitCodeAt::First("Exit code "),
            ExitCodeAt::Head("Process exited with code "),
            ExitCodeAt::Head("Exit code: "),
        ],
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[("metrics", &["prompt_tokens", "completion_tokens", "cached_tokens"])],
        total: Some(TotalPaths {
            facts: &["session_end"],
            object: "final_metrics",
            input: "total_prompt_tokens",
            output: "total_completion_tokens",
            cache_read: "total_cached_tokens",
            cache_write: "",
            reasoning: "",
            cost: "total_cost_usd",
        }),
        ..UsageWords::NONE
    },
    session: SessionWords { tools: &["agent.tool_definitions"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `atif`.
pub static ATIF: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "source", foreign: Some(Foreign::Writer(write::writer)) };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("source")?.as_str() {
            "user" => Some(&USER),
            "agent" => Some(&AGENT),
            "system" => Some(&SYSTEM),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        (RecordField::From, "agent.name"),
        (RecordField::Version, "agent.version"),
        (RecordField::Model, "agent.model_name"),
        (RecordField::Cwd, "agent.extra.cwd"),
    ],
    parts: &[PartMap::Stated("session"), SUBAGENTS],
    ..RecordMap::NONE
};

static TAIL: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "session_id")],
    parts: &[PartMap::Stated("session_end"), SUBAGENTS],
    ..RecordMap::NONE
};

/// The trajectories of sub-agents, usually after the steps.
const SUBAGENTS: PartMap = PartMap::Conversations(
    "subagent_trajectories",
    &ConversationMap {
        thread: "trajectory_id",
        fact: "subagent",
        fields: &[(RecordField::Version, "agent.version"), (RecordField::Model, "agent.model_name")],
        records: "steps",
        record: RecordsMap { kind: "source", map_of },
    },
);

const STEP: RecordMap = RecordMap {
    fields: &[
        (RecordField::IdNumber, "step_id"),
        (RecordField::Time, "timestamp"),
        (RecordField::Model, "model_name"),
        (RecordField::StopReason, "extra.stop_reason"),
        (RecordField::Cwd, "extra.cwd"),
        (RecordField::Restates, "is_copied_context"),
    ],
    usage: Some(UsageMap {
        input: &["metrics.prompt_tokens"],
        output: &["metrics.completion_tokens"],
        cache_read: &["metrics.cached_tokens"],
        cache_write: &["metrics.extra.cache_creation_input_tokens", "metrics.extra.cache_write_input_tokens"],
        reasoning: &["metrics.extra.reasoning_output_tokens", "metrics.extra.reasoning_tokens"],
        cost: &["metrics.cost_usd"],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[
        PartMap::Thinking("reasoning_content", TEXT),
        PartMap::Content("message", TEXT),
        PartMap::Calls(
            "tool_calls",
            CallMap { id: "tool_call_id", name: "function_name", input: InputAt::Json("arguments") },
        ),
        PartMap::Results(
            "observation.results",
            ResultMap {
                call: "source_call_id",
                name: "",
                content: "content",
                texts: TEXT,
                error: ErrorAt::Flag("extra.tool_result_is_error"),
            },
        ),
    ],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static AGENT: RecordMap = STEP;
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..STEP };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..STEP };

fn sniff(head: &Head<'_>) -> Sniff {
    let version = head.document().and_then(|document| document.peek_str("schema_version"));
    match version.is_some_and(|version| version.starts_with("ATIF-v1.")) {
        true => Sniff::Certain,
        false => Sniff::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    const DEMO: &str = include_str!("fixtures/demo.trajectory.json");

    fn counted(source: &str) -> crate::model::Usage {
        Session::from_bytes(source.as_bytes()).unwrap().usage().total()
    }

    #[test]
    fn steps_are_counted_once_and_not_again_by_their_total() {
        // The total leaves out the sub-agent.
        let usage = counted(DEMO);
        assert_eq!(
            (usage.input, usage.cache_write, usage.cache_read, usage.output),
            (Some(650), Some(50), Some(2200), Some(109))
        );
        // The total includes the sub-agent.
        let all = DEMO.replace("\"total_prompt_tokens\": 2600", "\"total_prompt_tokens\": 2900");
        let all = all.replace("\"total_completion_tokens\": 89", "\"total_completion_tokens\": 109");
        assert_eq!(counted(&all), usage);
        // Only the total counts where the steps state nothing.
        let usage = counted(&DEMO.replace("\"metrics\"", "\"measured\""));
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(400), Some(2200), Some(89)));
    }

    #[test]
    fn versions_of_the_first_series_are_claimed_and_no_others() {
        let sniffed = |version: &str| sniff(&Head::new(format!("{{\"schema_version\": \"{version}\"}}").as_bytes()));
        assert_eq!(sniffed("ATIF-v1.0"), Sniff::Certain);
        assert_eq!(sniffed("ATIF-v2.0"), Sniff::No);
    }
}
