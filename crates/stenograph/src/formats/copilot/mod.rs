//! GitHub Copilot CLI: the events of a session. See `README.md` beside this file.

mod table;

use super::record_map::{Foreign, MappedFormat};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{
    CallWords, ExitCodeAt, JudgementPaths, Placement, ProjectName, ReportPaths, SessionIdKind, UsageWords, UserWords,
    Verdict,
};

static INFO: FormatInfo = FormatInfo {
    name: "copilot",
    agent: "copilot",
    title: "GitHub Copilot CLI's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{COPILOT_HOME|~/.copilot}/session-state/<session>/events.jsonl",
        "{COPILOT_HOME|~/.copilot}/session-state/<session>.jsonl",
    ],
    resume: Some("copilot --resume {session}"),
    spec: "github/copilot-sdk, session-events; what release 1.0.102 writes",
    placement: Some(Placement {
        path: "{COPILOT_HOME|~/.copilot}/session-state/<session>/events.jsonl",
        project: ProjectName::Nowhere,
        id: SessionIdKind::RandomUuid,
        folders: &[
            "session.start: data.context.cwd",
            "session.resume: data.context.cwd",
            "session.context_changed: data.cwd",
        ],
        sessions: &["session.start: data.sessionId"],
        forks: &[],
    }),
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    record_schema: &[
        "*: type text, id text, timestamp text, parentId text|null, data object",
        "type=session.start: data.sessionId text, data.version number, data.producer text, data.copilotVersion text, \
         data.startTime text",
        "type=user.message: data.content text",
        "type=assistant.message: data.messageId text, data.content text, data.toolRequests[].toolCallId text, \
         data.toolRequests[].name text",
        "type=tool.execution_complete: data.toolCallId text, data.success flag",
    ],
    spelling: &["type", "parentId", "data.role", "data.toolRequests.type"],
    restated: &["data.transformedContent"],
    user: UserWords { flags: &["data.isAutopilotContinuation"], ..UserWords::NONE },
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("data.shellExecution.exitCode")],
        verdict_prefixes: &[
            ("The user rejected this tool call", Verdict::Denied),
            ("The tool execution was denied by the user", Verdict::Denied),
            ("Permission denied by hook", Verdict::Blocked),
            ("Permission denied", Verdict::Refused),
            ("Permission to run this tool was denied", Verdict::Refused),
        ],
        mode_fields: &["data.permissionMode"],
        reports: &[ReportPaths {
            fact: "subagent.started",
            call: "data.toolCallId",
            thread: "agentId",
            kind: "data.agentName",
            task: "data.agentDescription",
            ..ReportPaths::NONE
        }],
        judgements: &[JudgementPaths {
            fact: "permission.completed",
            field: "data.result.kind",
            words: &[
                ("approved", Verdict::Approved),
                ("approved-for-session", Verdict::Approved),
                ("approved-for-location", Verdict::Approved),
            ],
            // The result of the call states a refusal, with its reason.
            reason: "",
        }],
        compaction_tokens: Some(("data.preCompactionTokens", "data.postCompactionTokens")),
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[("data.usage", &table::COUNTERS), ("data.compactionTokensUsed", &table::COUNTERS)],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `copilot`.
pub static COPILOT: MappedFormat = MappedFormat {
    info: &INFO,
    sniff,
    map_of: table::map_of,
    kind: "type",
    foreign: Some(Foreign::Templates(&table::TEMPLATES)),
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_start = |object: &Object<'_>| {
        object.peek_str("type").as_deref() == Some("session.start")
            && object.peek_object("data").is_some_and(|data| data.has("sessionId") && data.has("producer"))
    };
    match objects.first().is_some_and(is_start) {
        true => Sniff::Certain,
        false if !objects.is_empty() && objects.iter().all(is_event) => Sniff::Likely,
        false => Sniff::No,
    }
}

/// Whether an object is an event of a session.
fn is_event(object: &Object<'_>) -> bool {
    let has = |key: &str| object.has(key);
    object.peek_str("type").is_some_and(|name| table::is_known(&name))
        && object.peek("data").is_some_and(|data| data.starts_with('{'))
        && has("id")
        && has("timestamp")
        && has("parentId")
}
